"""Likelihoods, distribution functions, and what is estimated."""

import numpy as np
from scipy import stats

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(10)
SAMPLE = RANDOM.normal(size=100_000)
POSITIVE = RANDOM.gamma(2.0, size=100_000)
SHARES = RANDOM.uniform(0.01, 0.99, 10_000)
POINTS = RANDOM.normal(size=(10_000, 5))
FACTOR = RANDOM.normal(size=(5, 5)) + 2.0 * np.eye(5)


@program("norm.logpdf, loc and scale, 10^5", np.array([0.1, 1.2]), goal=4)
def norm(p):
    return np.sum(stats.norm.logpdf(SAMPLE, p[0], p[1]))


@program("gamma.logpdf, shape and scale, 10^5", np.array([1.8, 1.1]), goal=4)
def gamma(p):
    return np.sum(stats.gamma.logpdf(POSITIVE, p[0], scale=p[1]))


@program("t.logpdf, degrees of freedom, 10^5", np.array([4.0, 0.1, 1.2]), goal=4)
def student(p):
    return np.sum(stats.t.logpdf(SAMPLE, p[0], p[1], p[2]))


@program("norm.cdf in x, 10^5", SAMPLE, goal=4)
def cdf(x):
    return np.sum(stats.norm.cdf(x))


@program("gamma.cdf, shape, 10^5", np.array([1.8]), goal=6)
def gamma_cdf(p):
    return np.sum(stats.gamma.cdf(POSITIVE, p[0]))


@program("beta.ppf, both shapes, 10^4", np.array([2.0, 3.0]), goal=6)
def beta_ppf(p):
    return np.sum(stats.beta.ppf(SHARES, p[0], p[1]))


@program("multivariate_normal.logpdf in the factor, 10^4 x 5", FACTOR, goal=4)
def multivariate(a):
    return np.sum(stats.multivariate_normal.logpdf(POINTS, np.zeros(5), a @ a.T))


@program("gaussian_kde in 500 points, 500 queries", SAMPLE[:500], goal=4)
def kde(x):
    return np.sum(np.log(stats.gaussian_kde(x)(SAMPLE[500:1000])))


@program("ttest_ind, pearsonr, skew, 10^5", SAMPLE, goal=6)
def tests(x):
    return stats.ttest_ind(x, POSITIVE).statistic + stats.pearsonr(x, POSITIVE)[0] + stats.skew(x)
