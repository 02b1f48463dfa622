"""Distributions' methods have derivatives in x and in every parameter: a sweep drawn with a fixed seed, and the corners."""

import numpy as np
import plaingrad
import pytest
from tests.scipy.agreement import agrees

stats = pytest.importorskip("scipy.stats")
special = pytest.importorskip("scipy.special")
pytestmark = pytest.mark.filterwarnings("ignore")

SHAPES = {
    "alpha": (3.57,), "beta": (2.3, 0.63), "betaprime": (5.0, 6.0), "burr12": (10.0, 4.0), "cauchy": (), "chi2": (5.5,),
    "crystalball": (2.0, 3.0), "dgamma": (1.1,), "dweibull": (2.1,), "exponnorm": (1.5,), "f": (29.0, 18.0),
    "gamma": (1.99,), "genextreme": (-0.1,), "genhyperbolic": (0.5, 1.5, -0.5), "geninvgauss": (2.3, 1.5),
    "gennorm": (1.3,), "genpareto": (0.1,), "gumbel_r": (), "invgauss": (0.145,), "johnsonsu": (2.55, 2.25),
    "kappa4": (0.3, 0.2), "laplace": (), "loggamma": (0.41,), "lognorm": (0.95,), "nakagami": (4.97,),
    "ncf": (27.0, 27.0, 0.4), "nct": (14.0, 0.24), "ncx2": (21.0, 1.06), "norm": (), "norminvgauss": (1.25, 0.5),
    "pareto": (2.62,), "pearson3": (-1.8,), "powerlaw": (1.66,), "rice": (0.78,), "skewnorm": (4.0,), "t": (2.74,),
    "triang": (0.16,), "truncnorm": (-1.0, 2.0), "tukeylambda": (3.13,), "vonmises": (3.99,), "wald": (),
    "weibull_min": (2.87,),
}  # fmt: skip
METHODS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
PAIRS = [(name, method) for name in SHAPES for method in METHODS]
CHOSEN = [PAIRS[k] for k in np.sort(np.random.default_rng(16).choice(len(PAIRS), 48, replace=False))]


def point(name, method):
    """The argument and the parameters, loc and scale too."""
    parameters = [*SHAPES[name], 0.3, 1.4]
    first = 0.37 if method in ("ppf", "isf") else float(getattr(stats, name).ppf(0.37, *parameters))
    return np.array([first, *parameters])


@pytest.mark.parametrize(("name", "method"), CHOSEN)
def test_methods_in_x_and_all_parameters(name, method):
    function = getattr(getattr(stats, name), method)
    agrees(lambda t: function(t[0], *[t[k] for k in range(1, len(t))]), point(name, method), 3e-6, nested=False)


@pytest.mark.parametrize(
    ("name", "method"),
    [("gamma", "cdf"), ("beta", "logpdf"), ("t", "sf"), ("dgamma", "cdf"), ("lognorm", "logsf")],
)
def test_methods_once_nested(name, method):
    function = getattr(getattr(stats, name), method)
    agrees(lambda t: function(t[0], *[t[k] for k in range(1, len(t))]), point(name, method), 1e-5)


@pytest.mark.parametrize("name", ["gamma", "skewnorm", "t", "nct", "ncf", "alpha"])
def test_moments_and_entropy(name):
    distribution = getattr(stats, name)
    shapes = {**SHAPES, "t": (9.3,)}[name]

    def summary(t):
        parameters = [t[k] for k in range(len(t))]
        if name in ("nct", "ncf", "alpha"):
            integrals = [distribution.entropy(*parameters)] if name == "alpha" else [distribution.mean(*parameters)]
            return np.stack([*integrals, distribution.median(*parameters)])
        return np.stack([distribution.mean(*parameters), distribution.std(*parameters), distribution.entropy(*parameters)])

    agrees(summary, [*shapes, 0.3, 1.4], 1e-5, nested=False)


def test_frozen_distributions_and_arrays_of_parameters():
    x = np.array([0.4, 1.1, 2.5])
    agrees(lambda t: stats.gamma(t[:3], scale=t[3]).logpdf(x), [1.2, 2.3, 0.8, 1.5], nested=False)
    agrees(lambda t: stats.norm(loc=t[0], scale=t[1]).cdf(x), [0.2, 1.3])


# -- where a formula switches ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["logpdf", "cdf", "sf", "ppf", "isf"])
@pytest.mark.parametrize(
    ("name", "shapes"),
    [("genextreme", (0.0,)), ("genpareto", (0.0,)), ("kappa4", (0.0, 0.2)), ("kappa4", (0.2, 0.0)), ("kappa4", (0.0, 0.0))],
)
def test_shapes_at_which_a_formula_is_a_limit(name, shapes, method):
    """The limit does not contain the shape, but its derivative by the shape is not 0."""
    function = getattr(getattr(stats, name), method)
    t = np.array([0.7, *shapes, 0.1, 1.3])
    agrees(lambda t: function(t[0], *[t[k] for k in range(1, len(t))]), t, 1e-6, nested=method == "cdf" and shapes[-1] == 0)


def test_the_extreme_value_distribution_at_zero_in_closed_form():
    """log cdf = -exp(-x - c x^2 / 2 - ...)."""
    x = 0.7
    slope = plaingrad.grad(lambda c: stats.genextreme.logcdf(x, c))(0.0)
    assert slope == pytest.approx(np.exp(-x) * x**2 / 2, rel=1e-13)
    second = plaingrad.grad(plaingrad.grad(lambda c: stats.genextreme.logcdf(x, c)))(0.0)
    assert second == pytest.approx(np.exp(-x) * (2 * x**3 / 3 - x**4 / 4), rel=1e-12)


def test_moments_of_the_extreme_value_distribution_at_zero_in_closed_form():
    """(1 - gamma(1 + c)) / c and the variance as power series in c; they were constants there without a word."""
    zeta3 = 1.2020569031595942
    mean, variance = (lambda c: stats.genextreme.mean(c)), (lambda c: stats.genextreme.var(c))
    slope = -(np.euler_gamma**2 / 2 + np.pi**2 / 12)
    slope_of_variance = -np.euler_gamma * np.pi**2 / 3 - 2 * zeta3
    for f, exact in ((mean, slope), (variance, slope_of_variance)):
        assert plaingrad.grad(f)(0.0) == pytest.approx(exact, rel=1e-13)
        assert plaingrad.jvp(f, (0.0,), (1.0,)) == (f(0.0), pytest.approx(exact, rel=1e-13))
        curved = (f(1e-2) - 2 * f(0.0) + f(-1e-2)) / 1e-4
        assert plaingrad.grad(plaingrad.grad(f))(0.0) == pytest.approx(curved, rel=1e-3)
    mixed = plaingrad.grad(lambda c: stats.genextreme.mean(c).sum())(np.array([0.0, 0.2]))
    assert mixed == pytest.approx([slope, (mean(0.2 + 1e-5) - mean(0.2 - 1e-5)) / 2e-5])


@pytest.mark.parametrize("c", [0.0, 1e-5, -3e-4, 2e-3])
def test_moments_of_the_extreme_value_distribution_near_zero_beside_mpmath(c):
    """SciPy's skewness and kurtosis are constants there, beside differences in which most figures cancel."""
    mpmath = pytest.importorskip("mpmath")

    def exact(k, c):
        c = mpmath.mpf(c) if c else mpmath.mpf("1e-25")
        a, b, d, e = [mpmath.gamma(1 + n * c) for n in (1, 2, 3, 4)]
        second, third = (b - a**2) / c**2, -(d - 3 * a * b + 2 * a**3) / c**3
        fourth = (e - 4 * a * d + 6 * a**2 * b - 3 * a**4) / c**4
        return ((1 - a) / c, second, third / second ** mpmath.mpf(1.5), fourth / second**2 - 3)[k]

    with mpmath.workdps(150):
        slopes = [float(mpmath.diff(lambda c, k=k: exact(k, c), mpmath.mpf(c) + mpmath.mpf("1e-20"), h=mpmath.mpf("1e-22"))) for k in range(4)]
    for k, moment in enumerate("mvsk"):
        f = lambda c, moment=moment: stats.genextreme.stats(c, moments=moment)
        assert plaingrad.grad(f)(c) == pytest.approx(slopes[k], rel=1e-9)
        assert plaingrad.jvp(f, (c,), (1.0,))[1] == pytest.approx(slopes[k], rel=1e-9)


def test_the_median_of_the_double_gamma_distribution_is_its_loc():
    for a in (0.7, 1.1, 2.0):
        f = lambda t: stats.dgamma.median(t[0], loc=t[1], scale=t[2])
        at = np.array([a, 0.2, 1.3])
        assert plaingrad.grad(f)(at) == pytest.approx([0.0, 1.0, 0.0], abs=1e-15)
        assert plaingrad.jvp(f, (at,), (np.ones(3),)) == (0.2, 1.0)
    assert plaingrad.grad(lambda q: stats.dgamma.ppf(q, 1.0))(0.5) == pytest.approx(2.0)  # Laplace's


def test_moments_of_the_generalised_pareto_distribution_at_zero_in_closed_form():
    """n! / ((1 - c) ... (1 - n c)): the slope at 0 is n! n (n + 1) / 2."""
    for n, exact in ((1, 1.0), (2, 6.0), (3, 36.0)):
        f = lambda c, n=n: stats.genpareto.moment(n, c)
        assert plaingrad.grad(f)(0.0) == pytest.approx(exact, rel=1e-12)
        assert plaingrad.jvp(f, (0.0,), (1.0,))[1] == pytest.approx(exact, rel=1e-12)
    assert plaingrad.grad(plaingrad.grad(lambda c: stats.genpareto.moment(1, c)))(0.0) == pytest.approx(2.0)
    for f, exact in ((stats.genpareto.mean, 1.0), (stats.genpareto.var, 4.0)):
        assert plaingrad.grad(lambda c, f=f: f(c))(0.0) == pytest.approx(exact, rel=1e-12)


def test_a_skew_normal_and_a_ring_without_their_shape():
    assert plaingrad.grad(lambda a: stats.skewnorm.logpdf(0.7, a))(0.0) == pytest.approx(0.7 * np.sqrt(2 / np.pi))
    if np.isfinite(stats.vonmises.logpdf(0.7, 0.0)):  # older SciPy does not take 0
        assert plaingrad.grad(lambda k: stats.vonmises.logpdf(0.7, k))(0.0) == pytest.approx(np.cos(0.7))


@pytest.mark.parametrize(("name", "shapes"), [("pearson3", (0.0,)), ("ncx2", (4.0, 0.0))])
def test_limits_that_nobody_has_written_are_refused(name, shapes):
    with pytest.raises(plaingrad.MissingRuleError, match=f"of `{name}`, SciPy leaves its .* out of the formula"):
        plaingrad.grad(lambda c: getattr(stats, name).cdf(1.7, *shapes[:-1], c))(shapes[-1])


def test_a_shape_that_is_constant_at_the_switch():
    slope = plaingrad.grad(lambda x: stats.genextreme.cdf(x, 0.0))(0.7)
    assert slope == pytest.approx(stats.genextreme.pdf(0.7, 0.0))


# -- compiled functions ------------------------------------------------------------------------------------------------


def test_kolmogorovs_distribution():
    agrees(lambda t: stats.kstwobign.pdf(t), [0.6, 0.8, 1.3], 1e-6)  # its slope was refused
    slope = plaingrad.grad(lambda x: stats.kstwo.cdf(x, 7))(0.4)
    assert slope == pytest.approx(stats.kstwo.pdf(0.4, 7))
    assert plaingrad.grad(lambda q: stats.kstwo.ppf(q, 7))(0.4) == pytest.approx(1 / stats.kstwo.pdf(stats.kstwo.ppf(0.4, 7), 7))


def test_the_distribution_function_of_a_ring():
    agrees(lambda t: stats.vonmises.cdf(t[:4], t[4]), [0.3, -1.2, 3.5, 9.0, 2.5], 1e-6)
    agrees(lambda t: stats.vonmises.cdf(t[:2], t[2]), [0.03, -0.2, 80.0], 2e-5, nested=False)


def test_moments_of_noncentral_distributions():
    agrees(lambda t: np.stack(stats.nct.stats(t[0], t[1], moments="mvsk")), [9.5, 0.7], 1e-5)
    agrees(lambda t: np.stack(stats.ncf.stats(t[0], t[1], t[2], moments="mvsk")), [5.0, 14.0, 0.7], 1e-5, nested=False)
    agrees(lambda t: np.stack(stats.nbinom.stats(t[0], t[1], moments="mvsk")), [4.3, 0.4], 1e-5, nested=False)


def test_a_moment_that_does_not_exist_has_no_derivative():
    """The formula of the mean goes on below one degree of freedom, where the mean is infinite or unknown."""
    assert not np.isfinite(stats.nct.mean(0.8, 0.5))
    assert np.isnan(plaingrad.grad(lambda df: stats.nct.mean(df, 0.5))(0.8))
    assert np.isnan(plaingrad.grad(lambda df: stats.ncf.mean(5.0, df, 0.7))(1.5))


# -- counts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fixed", "parameters"),
    [
        ("binom", (7,), (0.4,)), ("poisson", (), (2.6,)), ("geom", (), (0.35,)), ("nbinom", (), (4.3, 0.4)),
        ("betabinom", (7,), (2.1, 0.8)), ("skellam", (), (2.0, 3.3)), ("zipf", (), (4.5,)), ("logser", (), (0.6,)),
    ],
)  # fmt: skip
def test_distributions_of_counts_in_their_parameters(name, fixed, parameters):
    distribution = getattr(stats, name)
    counts = np.array([1, 2, 4])

    def methods(t):
        given = (*fixed, *[t[k] for k in range(len(t))])
        found = [distribution.logpmf(counts, *given), distribution.cdf(counts, *given), distribution.sf(counts, *given)]
        return np.concatenate([*found, np.reshape(distribution.mean(*given), (1,)), np.reshape(distribution.std(*given), (1,))])

    agrees(methods, parameters, 1e-5, nested=False)


def test_a_difference_of_counts_on_both_sides_of_zero():
    """SciPy evaluates both sides everywhere, one of them outside of its domain."""
    k = np.array([-3, -1, 0, 2])
    agrees(lambda t: np.concatenate([stats.skellam.pmf(k, t[0], t[1]), stats.skellam.cdf(k, t[0], t[1])]), [2.0, 3.3], 1e-5)


@pytest.mark.skipif(not hasattr(stats, "poisson_binom"), reason="newer SciPy")
def test_trials_with_probabilities_of_their_own():
    """The number of successes, by all outcomes of three trials."""

    def by_outcomes(p):
        return p[0] * (1 - p[1]) * (1 - p[2]) + (1 - p[0]) * p[1] * (1 - p[2]) + (1 - p[0]) * (1 - p[1]) * p[2]

    p = np.array([0.2, 0.5, 0.7])
    found = plaingrad.grad(lambda p: stats.poisson_binom.pmf(1, p))(p)
    np.testing.assert_allclose(found, plaingrad.grad(by_outcomes)(p), rtol=1e-12)
    agrees(lambda p: stats.poisson_binom.cdf([0, 1, 2], [p[0], p[1], p[2]]), p, nested=False)


# -- draws -------------------------------------------------------------------------------------------------------------


def test_draws_move_with_location_and_scale_and_by_the_quantile_function():
    drawn = stats.norm.rvs(size=3, random_state=5)
    found = plaingrad.jacobian(lambda t: stats.norm.rvs(t[0], t[1], size=3, random_state=5))(np.array([0.3, 1.4]))
    np.testing.assert_allclose(found, np.stack([np.ones(3), drawn], 1))
    agrees(lambda t: stats.genextreme.rvs(t[0], t[1], t[2], size=3, random_state=5), [-0.1, 0.3, 1.4], 1e-6, nested=False)


@pytest.mark.parametrize(
    "draw",
    [lambda a: stats.gamma.rvs(a, size=3, random_state=5), lambda a: stats.poisson.rvs(a, size=3, random_state=5)],
)
def test_draws_without_a_path_are_refused(draw):
    with pytest.raises(plaingrad.MissingRuleError):
        plaingrad.grad(lambda a: draw(a).sum() * 1.0)(2.3)
