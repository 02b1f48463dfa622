"""`dist.fit` where its answer is no maximum of the likelihood: refused by name, never a number."""

import numpy as np
import pytest

import plaingrad

stats = pytest.importorskip("scipy.stats")


def jacobian(dist, x, **fixed):
    return plaingrad.jacobian(lambda x: np.array(dist.fit(x, **fixed)))(x)


@pytest.mark.parametrize("seed", range(8))
def test_a_lognormal_whose_likelihood_is_unbounded_is_refused(seed):
    x = np.exp(2.0 * np.random.default_rng(seed).normal(size=12))
    loc = stats.lognorm.fit(x)[1]
    assert 0 < x.min() - loc < 1e-12  # SciPy stops beside the smallest number
    with pytest.raises(plaingrad.MissingRuleError, match="unbounded|no simple root"):
        jacobian(stats.lognorm, x)
    assert np.isfinite(jacobian(stats.lognorm, x, floc=0)).all()


def test_a_pareto_that_runs_off_to_an_exponential_is_refused():
    x = stats.expon.ppf((np.arange(30.0) + 0.5) / 30, 1.0)
    shape, loc, scale = stats.pareto.fit(x)
    if scale < 1e6:
        pytest.skip("this SciPy finds a maximum")
    with pytest.raises(plaingrad.MissingRuleError, match="has no maximum|no simple root"):
        jacobian(stats.pareto, x)


@pytest.mark.parametrize("name", ["norm", "expon", "uniform", "rayleigh", "lognorm"])
def test_regular_maxima_move_and_stretch_with_the_data(name):
    """Shapes stay, loc moves by what all numbers move by, and scale stays then (the sums of rows are 0, 1, 0)."""
    x = np.exp(0.5 * np.random.default_rng(0).normal(size=30))
    rows = jacobian(getattr(stats, name), x)
    sums = [0.0] * (len(rows) - 2) + [1.0, 0.0]
    assert np.allclose(rows.sum(1), sums, atol=1e-6)
    assert np.allclose(rows @ x, [0.0] * (len(rows) - 2) + [*getattr(stats, name).fit(x)[-2:]], atol=1e-5)


def test_a_saddle_is_no_minimum():
    optimize = pytest.importorskip("scipy.optimize")

    def found(p):
        return optimize.minimize(lambda x: (x[0] - p) ** 2 - (x[1] - p) ** 2, np.array([0.5, 0.5]), method="BFGS").x[0]

    with pytest.raises(plaingrad.MissingRuleError, match="no minimum"):
        plaingrad.grad(found)(0.5)
