"""Special functions at many points, in the argument and in parameters."""

import numpy as np
from scipy import special

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(1)
MILLION = RANDOM.uniform(0.1, 3.0, 1_000_000)
MANY = RANDOM.uniform(0.1, 3.0, 100_000)
SOME = RANDOM.uniform(0.2, 3.0, 10_000)
SHARES = RANDOM.uniform(0.05, 0.95, 100_000)


@program("erf, 10^6", MILLION, goal=4)
def erf(x):
    return np.sum(special.erf(x))


@program("gammaln, 10^6", MILLION, goal=4)
def gammaln(x):
    return np.sum(special.gammaln(x))


@program("expit, 10^6", MILLION, goal=4)
def expit(x):
    return np.sum(special.expit(x))


@program("ndtr, 10^6", MILLION, goal=4)
def ndtr(x):
    return np.sum(special.ndtr(x))


@program("i0e, 10^6", MILLION, goal=4)
def i0e(x):
    return np.sum(special.i0e(x))


@program("jv of order 1.5, 10^5", MANY, goal=4)
def jv(x):
    return np.sum(special.jv(1.5, x))


@program("logsumexp, rows of 100", MILLION.reshape(-1, 100), goal=4)
def logsumexp(x):
    return np.sum(special.logsumexp(x, axis=1))


@program("gammainc in x, 10^5", MANY, goal=4)
def gammainc(x):
    return np.sum(special.gammainc(1.5, x))


@program("gammainc in a, 10^5", MANY, goal=6)
def gammainc_a(a):
    return np.sum(special.gammainc(a, 1.5))


@program("betainc in a, 10^5", MANY, goal=6)
def betainc_a(a):
    return np.sum(special.betainc(a, 2.0, SHARES))


@program("betaincinv in p, 10^5", SHARES, goal=4)
def betaincinv(p):
    return np.sum(special.betaincinv(2.0, 3.0, p))


@program("hyp2f1 in x, 10^4", SHARES[:10_000], goal=4)
def hyp2f1(x):
    return np.sum(special.hyp2f1(0.5, 1.5, 2.5, x))


@program("jv in its order, 10^4", SOME, goal=6)
def jv_order(v):
    return np.sum(special.jv(v, 2.0))
