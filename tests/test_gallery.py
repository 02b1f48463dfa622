"""The examples of the gallery find what is known of their data, by other means; small forms of them are drawn."""

import importlib
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import plaingrad

pytest.importorskip("scipy")
EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(monkeypatch):
    """Import an example by name as `python examples/NAME.py` would find it."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)
    yield importlib.import_module
    for name in {path.stem for path in EXAMPLES.glob("*.py")} & (set(sys.modules) - before):
        del sys.modules[name]


@pytest.fixture
def drawn(tmp_path):
    """Run an example with a small picture; what it returned."""
    pytest.importorskip("matplotlib.pyplot")

    def run(module, **sizes):
        path = tmp_path / "new" / "picture.png"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            returned = module.main(path, **sizes)
        assert path.read_bytes().startswith(b"\x89PNG")
        return returned

    return run


def test_the_influenza_has_the_rates_that_others_find(example):
    epidemic = example("epidemic")
    days, in_bed = np.loadtxt(EXAMPLES / "data" / "flu_1978.csv", delimiter=",", skiprows=1).T
    p = epidemic.fit(days, in_bed).x
    assert p.contact == pytest.approx(1.79, abs=0.01)
    assert p.recovery == pytest.approx(0.455, abs=0.002)
    # At the peak of Kermack and McKendrick's equations the healthy are recovery / contact of the school.
    healthy = epidemic.BOYS * p.recovery / p.contact
    started = epidemic.BOYS - p.start
    most = epidemic.BOYS - healthy + healthy * np.log(healthy / started)
    assert epidemic.peak(p, 0.0)[1] == pytest.approx(most, rel=1e-7)
    moves = plaingrad.jacobian(lambda immune: epidemic.peak(p, immune))(0.0)
    assert moves[1] == pytest.approx(epidemic.BOYS * (healthy / started - 1.0), rel=1e-6)


def test_the_nile_has_the_variances_of_the_textbook(example):
    nile = example("nile_kalman")
    flow = np.loadtxt(EXAMPLES / "data" / "nile.csv", delimiter=",", skiprows=1)[:, 1]
    assert np.exp(nile.estimate(flow)) == pytest.approx([15099.0, 1469.1], rel=1e-3)


def test_the_likelihood_at_mauna_loa_is_a_normal_density(example):
    from scipy.stats import multivariate_normal

    mauna_loa = example("mauna_loa")
    t, ppm = (column[:120:3] for column in mauna_loa.read())
    covariance = mauna_loa.kernel(mauna_loa.START, t, t) + 0.04 * np.eye(len(t))
    density = multivariate_normal(np.zeros(len(t)), covariance).logpdf(ppm - 320.0)
    assert -mauna_loa.misfit(mauna_loa.START, t, ppm - 320.0) == pytest.approx(density, rel=1e-9)


def test_ground_that_is_the_same_everywhere_is_drawn_down_as_theis_says(example):
    from scipy.special import exp1

    aquifer = example("aquifer")
    logs = np.log(np.concatenate([np.full(50, 400.0), [2e-4, 1e12]]))
    minutes, distances = np.array([10.0, 100.0, 800.0, 100.0]), np.array([30.0, 30.0, 30.0, 90.0])
    theis = aquifer.PUMPED / (4 * np.pi * 400.0) * exp1(distances**2 * 2e-4 / (1600.0 * minutes / 1440.0))
    assert aquifer.at_wells(logs, distances, minutes) == pytest.approx(theis, rel=0.02)


def test_shares_and_their_slopes_solve_the_equations_of_the_bounds_that_hold(example):
    portfolio = example("portfolio")
    returns = np.loadtxt(EXAMPLES / "data" / "markowitz_1959.csv", delimiter=",", skiprows=1)[:, 1:]
    means, covariance = returns.mean(axis=0), np.cov(returns.T)
    assert means == pytest.approx(
        [0.066, 0.062, 0.146, 0.173, 0.198, 0.055, 0.128, 0.190, 0.116], abs=5e-4
    )  # of the book
    shares = portfolio.portfolio(means, covariance, portfolio.TARGET).x
    free = (shares > 1e-6) & (shares < portfolio.LIMIT - 1e-6)
    n = int(free.sum())

    def solved(means):
        rest = ~free
        a = np.stack([np.ones(n), means[free]])
        matrix = np.block([[2 * covariance[np.ix_(free, free)], a.T], [a, np.zeros((2, 2))]])
        right = [1.0 - shares[rest].sum(), portfolio.TARGET - means[rest] @ shares[rest]]
        return np.linalg.solve(
            matrix, np.concatenate([-2 * covariance[np.ix_(free, rest)] @ shares[rest], right])
        )

    assert shares[free] == pytest.approx(solved(means)[:n], abs=1e-7)
    slopes = plaingrad.jacobian(
        lambda means: portfolio.portfolio(means, covariance, portfolio.TARGET).x[free]
    )(means)
    differences = [(solved(means + d) - solved(means - d))[:n] / 2e-5 for d in 1e-5 * np.eye(9)]
    assert slopes == pytest.approx(np.transpose(differences), abs=1e-4)


def test_the_rings_have_the_curve_of_dalal_fowlkes_and_hoadley(example):
    from scipy.optimize import minimize

    challenger = example("challenger")
    fahrenheit, damaged = np.loadtxt(EXAMPLES / "data" / "challenger.csv", delimiter=",", skiprows=1).T
    assert len(fahrenheit) == 23 and damaged.sum() == 9
    minus = lambda p: -challenger.log_density(p, fahrenheit, damaged)
    challenger.SPREAD = 1e6
    found = minimize(plaingrad.value_and_grad(minus), np.array([-2.0, -1.0]), jac=True).x
    assert found[1] / 10.0 == pytest.approx(-0.1156, abs=1e-4)
    assert found[0] - 7.0 * found[1] == pytest.approx(5.085, abs=1e-3)


def test_the_sampler_finds_the_moments_of_a_normal_density(example):
    challenger = example("challenger")
    precision = np.array([[2.0, 0.6], [0.6, 1.0]])
    samples, taken = challenger.sampled(lambda x: -0.5 * x @ precision @ x, np.zeros(2), (), 400, step=0.4, jumps=5)
    assert taken > 0.8
    assert np.cov(samples.T) == pytest.approx(np.linalg.inv(precision), abs=0.3)


def test_longleys_coefficients_are_the_certified_ones(example):
    longley = example("longley")
    table = np.loadtxt(EXAMPLES / "data" / "longley.csv", delimiter=",", skiprows=1)
    found = longley.coefficients(table[:, [2, 3, 4, 5, 6, 0]], table[:, 1])
    certified = [-3482258.63459582, 15.0618722713733, -0.358191792925910e-1, -2.02022980381683, -1.03322686717359,
                 -0.511041056535807e-1, 1829.15146461355]
    assert found == pytest.approx(certified, rel=1e-8)


def test_the_risk_by_age_is_that_of_statsmodels(example):
    models = pytest.importorskip("statsmodels.duration.hazard_regression")
    transplants = example("transplants")
    days, died, age = data = transplants.read()
    beta, hessian = transplants.newton(np.zeros(2), data)
    theirs = models.PHReg(days, transplants.covariates(age), status=died, ties="breslow").fit()
    assert beta == pytest.approx(theirs.params, rel=1e-6)
    assert np.sqrt(np.diag(np.linalg.inv(hessian))) == pytest.approx(theirs.bse, rel=1e-5)


def test_a_small_network_reads_digits(example):
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_digits

    digits = example("digits")
    x, digit = load_digits(return_X_y=True)
    x, rng = x / 8.0 - 1.0, np.random.default_rng(3)
    net, losses = digits.trained(digits.fresh(rng, 64, 16, 10), x[:600], digit[:600], 120, rng)
    assert np.mean(net(x[600:]).argmax(axis=1) == digit[600:]) > 0.8
    one = plaingrad.grad(digits.loss)(net, x[700], digit[700])
    length = np.sqrt(sum(np.sum(part**2) for part in plaingrad.tree_leaves(one)))
    assert digits.lengths(net, x[699:702], digit[699:702])[1] == pytest.approx(length)


def test_a_later_perigee_moves_the_station_as_its_anomaly_does(example):
    """The orbit is nearly a circle, along which both are angles; a turn of the plane moves it by the cosine of its tilt."""
    pytest.importorskip("sgp4")
    satellite = example("satellite")
    moves = satellite.of_last_digits(satellite.elements(), np.array([90.0]))[0]
    radius = np.linalg.norm(satellite.position(satellite.elements(), 90.0))
    along = dict(zip(satellite.NAMES, moves[0]))
    assert along["perigee"] == pytest.approx(radius * 1e-4 * np.pi / 180, rel=2e-3)
    assert along["anomaly"] == pytest.approx(along["perigee"], rel=5e-3)
    assert along["node"] == pytest.approx(along["perigee"] * np.cos(np.radians(51.6439)), rel=1e-2)


def test_small_forms_are_drawn(example, drawn, capsys):
    found = drawn(example("deblurring"), still=3, free=2)
    assert found["image"].shape == (155, 265)
    drawn(example("aquifer"), steps=2)
    drawn(example("mauna_loa"), steps=2, every=6)
    for line in capsys.readouterr().out.splitlines():
        if "differences to" in line:
            assert float(line.split("differences to")[1].split(";")[0]) < 1e-6
