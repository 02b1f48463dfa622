"""openskill: ratings of players, objects that are copied, sorted and updated."""

import pytest

openskill_models = pytest.importorskip("openskill.models")


@pytest.mark.parametrize("name", ["PlackettLuce", "BradleyTerryFull", "BradleyTerryPart", "ThurstoneMostellerFull"])
def test_a_rating_after_a_match_depends_on_the_ratings_before(agrees, name):
    def after(mu_a, sigma_a, mu_b, sigma_b):
        model = getattr(openskill_models, name)()
        a, b, c = model.rating(mu_a, sigma_a), model.rating(mu_b, sigma_b), model.rating()
        [[a], [b, c]] = model.rate([[a], [b, c]], ranks=[2, 1])
        return a.mu + 2 * b.mu + 3 * a.sigma + b.sigma

    agrees(after, 27.0, 7.0, 22.0, 6.0)


def test_the_chance_to_win(agrees):
    def chance(mu_a, mu_b):
        model = openskill_models.PlackettLuce()
        return model.predict_win([[model.rating(mu_a, 5.0)], [model.rating(mu_b, 4.0)]])[0]

    agrees(chance, 27.0, 22.0)


def test_a_season_of_matches(agrees):
    def champion(skills):
        model = openskill_models.PlackettLuce()
        players = [model.rating(mu, 8.0) for mu in skills]
        for first, second in ((0, 1), (1, 2), (2, 0), (0, 1)):
            [[players[first]], [players[second]]] = model.rate([[players[first]], [players[second]]])
        return max(player.ordinal() for player in players)

    agrees(champion, [25.0, 24.0, 26.5])
