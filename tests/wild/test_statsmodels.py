"""statsmodels: least squares, likelihoods, link functions, robust norms and filters of time series."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("statsmodels")
    import statsmodels.api as sm
    from statsmodels.discrete.discrete_model import Logit, Poisson
    from statsmodels.genmod import families
    from statsmodels.nonparametric.smoothers_lowess import lowess
    from statsmodels.robust import norms, scale
    from statsmodels.stats import moment_helpers, stattools
    from statsmodels.tools import eval_measures
    from statsmodels.tsa import filters
    from statsmodels.tsa import stattools as tsa

RNG = np.random.default_rng(0)
X = sm.add_constant(RNG.standard_normal((8, 2)))
Y = X @ np.array([1.0, 2.0, 3.0]) + RNG.standard_normal(8)
BETA = np.array([0.1, 0.2, 0.3])
SERIES = np.array([1.0, 2.2, 1.5, 3.1, 2.7, 4.2, 3.3, 2.1])


def test_least_squares_by_its_observations_and_weights(agrees):
    agrees(lambda y: sm.OLS(y, X).fit().params.sum(), Y)
    agrees(lambda w: sm.WLS(Y, X, weights=w).fit().params.sum(), np.linspace(1.0, 2.0, 8))
    agrees(lambda y: sm.GLM(y, X, family=families.Gaussian()).fit().params.sum(), Y)


def test_robust_regression(agrees):
    agrees(lambda y: sm.RLM(y, X).fit(maxiter=5).params.sum(), Y, rtol=1e-5)


def test_likelihoods(agrees):
    agrees(lambda b: sm.OLS(Y, X).loglike(b), BETA)
    agrees(lambda b: Logit((Y > 0).astype(float), X).loglike(b), BETA)
    agrees(lambda b: Poisson(np.round(np.abs(Y)), X).loglike(b), BETA)


@pytest.mark.parametrize("norm", [norms.HuberT, norms.TukeyBiweight, norms.AndrewWave, norms.Hampel, norms.RamsayE])
def test_robust_norms(agrees, norm):
    agrees(lambda z: norm().rho(z).sum(), SERIES)


def test_links_and_families(agrees):
    p = np.array([0.3, 0.4])
    for link in (families.links.Logit, families.links.CLogLog, families.links.Log, families.links.Sqrt, families.links.Probit):
        agrees(lambda v: link()(v).sum() + link().deriv(v).sum() + link().inverse(v).sum(), p)
    agrees(lambda m: families.Poisson().deviance(np.array([1.0, 2.0]), m), p)
    agrees(lambda m: families.Binomial().deviance(np.array([1.0, 0.0]), m), p)


def test_time_series(agrees):
    agrees(lambda s: tsa.acf(s, nlags=2, fft=False).sum(), SERIES)
    agrees(lambda s: tsa.acf(s, nlags=2, fft=True).sum(), SERIES)
    agrees(lambda s: tsa.pacf(s, nlags=2)[1], SERIES)
    agrees(lambda s: np.nansum(filters.filtertools.convolution_filter(s, [0.25, 0.5, 0.25])), SERIES)
    agrees(lambda s: filters.cf_filter.cffilter(s, 2, 4)[0][1], SERIES)


def test_measures(agrees):
    agrees(lambda a: eval_measures.rmse(a, SERIES[::-1] + 0.1), SERIES)
    agrees(lambda a: stattools.durbin_watson(a), SERIES)
    agrees(lambda a: stattools.jarque_bera(a)[1], SERIES)
    agrees(lambda a: scale.mad(a), SERIES)
    agrees(lambda a: moment_helpers.cov2corr(a)[0, 1], np.array([[2.0, 0.3], [0.3, 1.0]]))


def test_compiled_code_is_refused_by_what_was_called(refuses):
    refuses(lambda a: lowess(a, np.arange(8.0))[:, 1].sum(), SERIES, called="statsmodels.nonparametric.")
