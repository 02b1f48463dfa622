"""Tests' statistics and p-values, summaries, transforms, fits, and the distributions of newer SciPy."""

import numpy as np
import plaingrad
import pytest
from tests.scipy.agreement import agrees, slope

optimize, stats = pytest.importorskip("scipy.optimize"), pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=12), RNG.normal(size=9) + 0.4
W = 0.6 * X + RNG.normal(size=12)
P = np.abs(X) + 0.3


def both(result):
    return np.stack([result.statistic, result.pvalue])


TESTS = {
    "ttest_1samp": lambda t: both(stats.ttest_1samp(t[:12], 0.2)),
    "ttest_ind": lambda t: both(stats.ttest_ind(t[:12], t[12:], equal_var=False)),
    "pearsonr": lambda t: both(stats.pearsonr(t[:12], W)),
    "linregress": lambda t: np.stack([*stats.linregress(t[:12], W)]),
    "f_oneway": lambda t: both(stats.f_oneway(t[:12], t[12:])),
    "bartlett": lambda t: both(stats.bartlett(t[:12], t[12:])),
    "levene": lambda t: both(stats.levene(t[:12], t[12:])),
    "jarque_bera": lambda t: both(stats.jarque_bera(t)),
    "skewtest": lambda t: both(stats.skewtest(t)),
    "chisquare": lambda t: both(stats.chisquare([12.0, 15.0, 9.0], 36 * t[:3] ** 2 / (t[:3] ** 2).sum())),
    "ks_1samp": lambda t: both(stats.ks_1samp(t, stats.norm.cdf)),
    "cramervonmises": lambda t: both(stats.cramervonmises(t, "norm")),
    "bootstrap": lambda t: stats.bootstrap((t,), np.mean, n_resamples=50, random_state=1).standard_error,
}


@pytest.mark.parametrize("name", list(TESTS))
def test_statistics_and_p_values(name):
    agrees(TESTS[name], np.concatenate([X, Y]), 1e-6, nested=False)


def test_statistics_of_ranks_are_constant():
    for test in (stats.mannwhitneyu, stats.kruskal, stats.ks_2samp):
        found = plaingrad.grad(lambda t, test=test: test(t[:12], t[12:]).statistic * 1.0)(np.concatenate([X, Y]))
        assert not found.any()
    assert not plaingrad.grad(lambda t: stats.weightedtau(t, W).statistic * 1.0)(X).any()


def test_summaries():
    agrees(lambda t: np.stack([stats.gmean(t), stats.hmean(t), stats.skew(t), stats.kurtosis(t), stats.sem(t)]), P[:5], 1e-6)
    agrees(lambda t: np.stack([stats.trim_mean(t, 0.2), stats.iqr(t), stats.circmean(t), stats.entropy(t)]), P, 1e-6, nested=False)
    agrees(lambda t: stats.zscore(t), P, 1e-6, nested=False)
    agrees(lambda t: stats.wasserstein_distance(t[:6], t[6:]), X, 1e-6, nested=False)


def test_variances_within_limits():
    """SciPy puts nan beyond them, which made the gradient nan."""
    limits = (0.4, 1.4)

    def three(t):
        return np.stack([stats.tvar(t, limits), stats.tstd(t, limits), stats.tsem(t, limits)])

    inside = (limits[0] <= P) & (limits[1] >= P)
    agrees(three, P, 1e-6, nested=False)
    exact = np.where(inside, 2 * (P - P[inside].mean()) / (inside.sum() - 1), 0.0)
    np.testing.assert_allclose(plaingrad.grad(lambda t: stats.tvar(t, limits))(P), exact, atol=1e-14)


# -- power transforms --------------------------------------------------------------------------------------------------


def test_power_transforms_at_their_limits():
    """At these exponents SciPy takes logarithms, which do not depend on the exponent."""
    agrees(lambda t: stats.boxcox_llf(t[0], P), [0.0], 1e-5, nested=False)  # older SciPy cancels beside 0
    for exponent in (0.0, 2.0):
        agrees(lambda t: stats.yeojohnson(X, t[0]), [exponent], 1e-6, nested=exponent == 2.0)
        agrees(lambda t: stats.yeojohnson_llf(t[0], X), [exponent], 1e-5, nested=False)


def boxcox_likelihood(exponent, x):
    """The logarithm of the likelihood of an exponent, which may be complex."""
    return (exponent - 1) * np.log(x).sum() - x.size / 2 * np.log(
        centred_squares((x**exponent - 1) / exponent)
    )


def yeojohnson_likelihood(exponent, x):
    above = ((1 + np.maximum(x, 0)) ** exponent - 1) / exponent
    below = -((1 - np.minimum(x, 0)) ** (2 - exponent) - 1) / (2 - exponent)
    jacobian = (np.sign(x) * np.log1p(np.abs(x))).sum()
    return (exponent - 1) * jacobian - x.size / 2 * np.log(centred_squares(np.where(x >= 0, above, below)))


def centred_squares(y):
    return ((y - y.mean()) ** 2).sum()


@pytest.mark.parametrize(
    ("chosen", "likelihood", "x"),
    [
        (lambda t: stats.boxcox(t)[1], boxcox_likelihood, P),
        (lambda t: stats.yeojohnson(t)[1], yeojohnson_likelihood, X),
    ],
)
def test_exponents_of_greatest_likelihood(chosen, likelihood, x):
    """SciPy's search ends when it is near, too far for differences: they are those of the zero of the slope."""

    def exact(t):
        return optimize.brentq(
            lambda e: likelihood(e + 1e-30j, t).imag * 1e30, -4.1, 4.3, xtol=1e-14, rtol=1e-15
        )

    v = np.sin(2.0 + np.arange(x.size))
    expected = slope(exact, x, v)
    assert abs(chosen(x) - exact(x)) <= 1e-6
    np.testing.assert_allclose((plaingrad.grad(chosen)(x) * v).sum(), expected, rtol=1e-6)
    np.testing.assert_allclose(plaingrad.jvp(chosen, (x,), (v,))[1], expected, rtol=1e-6)


def test_what_is_transformed_by_the_exponent_of_greatest_likelihood():
    agrees(lambda t: stats.boxcox(t)[0], P, 1e-4, nested=False)  # SciPy's search ends when it is near


def test_exponents_that_are_left_out_are_refused():
    with pytest.raises(plaingrad.MissingRuleError, match="leaves p out"):
        plaingrad.grad(lambda p: stats.pmean(P, p))(0.0)
    with pytest.raises(plaingrad.MissingRuleError, match="leaves lambda_ out"):
        plaingrad.grad(lambda p: stats.power_divergence([5.0, 6.0, 7.0], [7.0, 5.0, 6.0], lambda_=p)[0])(0.0)


# -- fits --------------------------------------------------------------------------------------------------------------


def test_fits_in_the_data():
    np.testing.assert_allclose(plaingrad.grad(lambda t: stats.norm.fit(t)[0])(X), np.full(12, 1 / 12))
    found = plaingrad.grad(lambda t: stats.gamma.fit(t, floc=0)[0])(P)
    a = stats.gamma.fit(P, floc=0)[0]
    from scipy.special import polygamma

    exact = (1 / P.mean() - 1 / P) / 12 / (1 / a - polygamma(1, a))  # log a - psi(a) = log mean - mean log
    np.testing.assert_allclose(found, exact, rtol=1e-6)


# -- distributions of SciPy 1.15 and later ----------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(stats, "Normal"), reason="newer SciPy")
def test_normal_uniform_and_what_is_made_of_them():
    def normal(t):
        return stats.Normal(mu=t[0], sigma=t[1])

    t = [0.3, 1.4]
    for method in ("pdf", "logcdf", "ccdf"):
        agrees(lambda t, method=method: getattr(normal(t), method)(t[2]), [*t, 0.7], 1e-6, nested=method == "logcdf")
    agrees(lambda t: normal(t).icdf(0.37), t, 1e-6, nested=False)
    agrees(lambda t: np.stack([stats.truncate(normal(t), t[2], t[3]).cdf(0.5), normal(t).entropy()]), [*t, -1.0, 2.0], 1e-6, nested=False)
    agrees(lambda t: stats.order_statistic(normal(t), r=2, n=4).mean(), t, 1e-6, nested=False)  # was nan
    agrees(lambda t: stats.exp(normal(t)).variance(), t, 1e-6, nested=False)
    agrees(lambda t: stats.Mixture([normal(t), normal(t[2:])], weights=[0.3, 0.7]).pdf(0.4), [*t, -1.0, 0.7], 1e-6, nested=False)


@pytest.mark.skipif(not hasattr(stats, "make_distribution"), reason="newer SciPy")
def test_distributions_that_are_made():
    gamma = stats.make_distribution(stats.gamma)
    agrees(lambda t: (t[1] * gamma(a=t[0]) + t[2]).logpdf(1.7), [2.3, 1.3, 0.2], 1e-6)
    agrees(lambda t: gamma(a=t[0]).cdf(t[1], method="quadrature"), [2.3, 1.7], 1e-6, nested=False)
    assert plaingrad.grad(lambda a: stats.log(gamma(a=a)).mean())(2.3) == pytest.approx(0.542537458665, rel=1e-9)  # psi'


@pytest.mark.parametrize("name", ["tvar", "tstd", "tsem"])
def test_without_limits_scipys_functions_call_each_other_as_they_do(name):
    f = getattr(stats, name)
    agrees(lambda x: f(x), P, nested=False)
