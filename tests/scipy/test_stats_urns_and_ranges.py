"""Distributions that SciPy computes in C++ or by compiled integrands: beside sums over all cases, and differences."""

import math

import numpy as np
import plaingrad
import pytest

stats = pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.filterwarnings("ignore")
M, N1, DRAWN = 30, 12, 9


def both(f, at):
    reverse, forward = plaingrad.grad(f)(at), plaingrad.jvp(f, (at,), (1.0,))[1]
    assert reverse == pytest.approx(forward, rel=1e-9, abs=1e-14)
    return reverse


def differences(f, x, h):
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def test_fishers_distribution_in_its_odds_is_an_exponential_family():
    weights = [math.comb(N1, k) * math.comb(M - N1, DRAWN - k) for k in range(DRAWN + 1)]

    def moments(odds):
        p = np.array([w * odds**k for k, w in enumerate(weights)])
        p /= p.sum()
        k = np.arange(DRAWN + 1.0)
        mean = p @ k
        return p, mean, p @ (k - mean) ** 2, p @ (k - mean) ** 3

    odds = 1.7
    p, mean, variance, third = moments(odds)
    fisher = stats.nchypergeom_fisher
    for k in (0, 4, 9):
        assert both(lambda o, k=k: fisher.pmf(k, M, N1, DRAWN, o), odds) == pytest.approx(p[k] * (k - mean) / odds, rel=1e-9)
    below = p[:5] @ (np.arange(5) - mean) / odds
    assert both(lambda o: fisher.cdf(4, M, N1, DRAWN, o), odds) == pytest.approx(below, rel=1e-9)
    assert both(lambda o: fisher.mean(M, N1, DRAWN, o), odds) == pytest.approx(variance / odds, rel=1e-9)
    assert both(lambda o: fisher.var(M, N1, DRAWN, o), odds) == pytest.approx(third / odds, rel=1e-8)
    twice = plaingrad.grad(plaingrad.grad(lambda o: fisher.logpmf(4, M, N1, DRAWN, o)))(odds)
    assert twice == pytest.approx(-(4 - mean) / odds**2 - variance / odds**2, rel=1e-8)


def test_the_distribution_of_wallenius_in_its_odds():
    mpmath = pytest.importorskip("mpmath")

    def exact(k, odds):
        d = odds * (N1 - k) + (M - N1 - (DRAWN - k))
        whole = mpmath.quad(lambda t: (1 - t ** (odds / d)) ** k * (1 - t ** (1 / d)) ** (DRAWN - k), [0, 0.2, 0.8, 1])
        return math.comb(N1, k) * math.comb(M - N1, DRAWN - k) * whole

    wallenius = stats.nchypergeom_wallenius
    slopes = [float(mpmath.diff(lambda o, k=k: exact(k, o), 1.7)) for k in range(DRAWN + 1)]
    for k in (0, 4, 8):
        assert both(lambda o, k=k: wallenius.pmf(k, M, N1, DRAWN, o), 1.7) == pytest.approx(slopes[k], rel=1e-8)
    mean = np.arange(DRAWN + 1.0) @ slopes
    assert plaingrad.grad(lambda o: wallenius.mean(M, N1, DRAWN, o))(1.7) == pytest.approx(mean, rel=1e-7)


def test_the_entropy_of_an_urn_with_numbers_that_are_hardly_drawn():
    for urn in (stats.nchypergeom_fisher, stats.nchypergeom_wallenius):
        f = lambda odds, urn=urn: urn.entropy(140, 80, 60, odds)
        assert both(f, 0.5) == pytest.approx(differences(f, 0.5, 1e-3), rel=1e-5)


def test_counts_of_an_urn_are_refused_by_name():
    with pytest.raises(plaingrad.MissingRuleError, match="counts"):
        plaingrad.grad(lambda n: stats.nchypergeom_fisher.pmf(4, M, n, DRAWN, 1.7))(12.0)


@pytest.mark.parametrize(("q", "k", "df"), [(3.5, 3.0, 10.0), (1.2, 4.5, 2.5), (4.2, 10.0, 300.0), (3.0, 3.0, 2e5)])
def test_the_studentized_range(q, k, df):
    dist = stats.studentized_range
    assert both(lambda q: dist.cdf(q, k, df), q) == pytest.approx(dist.pdf(q, k, df), rel=1e-7)
    assert both(lambda q: dist.pdf(q, k, df), q) == pytest.approx(differences(lambda q: dist.pdf(q, k, df), q, 1e-2), rel=1e-5)
    assert both(lambda k: dist.sf(q, k, df), k) == pytest.approx(differences(lambda k: dist.sf(q, k, df), k, 1e-2), rel=1e-5)
    of_df = plaingrad.grad(lambda df: dist.cdf(q, k, df))(df)
    assert of_df == pytest.approx(0.0 if df > 1e5 else differences(lambda df: dist.cdf(q, k, df), df, df / 100), rel=1e-5)


def test_quantiles_of_the_studentized_range_and_tukeys_test():
    dist = stats.studentized_range
    slope = plaingrad.grad(lambda p: dist.ppf(p, 3.0, 10.0))(0.95)
    assert slope == pytest.approx(1 / dist.pdf(dist.ppf(0.95, 3.0, 10.0), 3.0, 10.0), rel=1e-5)
    random = np.random.default_rng(2)
    a, b, c = random.normal(size=(3, 6)) + np.array([[0.0], [0.7], [0.2]])

    def p_value(shift):
        return stats.tukey_hsd(a + shift, b, c).pvalue[0, 1]

    assert both(p_value, 0.1) == pytest.approx(differences(p_value, 0.1, 1e-3), rel=1e-5)
