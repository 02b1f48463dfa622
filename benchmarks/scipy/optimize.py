"""Solvers: what a gradient of the solution costs beside the solution."""

import numpy as np
from scipy import optimize

from benchmarks.ordinary.program import program

TOLERANCE = 1e-4  # differences of a solver are as good as its own tolerance
RANDOM = np.random.default_rng(4)
MATRIX = RANDOM.normal(size=(100, 100)) / 20.0 + np.eye(100)
TIMES = np.linspace(0.0, 4.0, 2000)
NOISY = 2.0 * np.exp(-0.7 * TIMES) + 0.3 + 0.05 * RANDOM.normal(size=2000)
NONNEGATIVE = RANDOM.uniform(size=(120, 40))
LIMITS = RANDOM.uniform(0.5, 1.0, size=(40, 60))
COSTS = -RANDOM.uniform(0.5, 1.0, size=60)


@program("brentq, one root", np.array([2.0]), goal=None)
def brentq(p):
    return optimize.brentq(lambda x: np.exp(x) + x**3 - p[0], -3.0, 3.0)


DUE = np.linspace(0.1, 30.0, 20_000)


@program("brentq, the yield of 20,000 payments", np.linspace(0.5, 1.5, 20_000), goal=4)
def payments(c):
    return optimize.brentq(lambda y: np.sum(c * np.exp(-y * DUE)) - 15_000.0, 0.0, 1.0)


@program("root, 100 equations", np.linspace(0.5, 1.5, 100), goal=4)
def root(b):
    return np.sum(optimize.root(lambda x: MATRIX @ x + 0.1 * x**3 - b, np.zeros(100), tol=1e-12).x ** 2)


@program("minimize, BFGS, Rosenbrock of 20", np.linspace(0.8, 1.2, 20), goal=4)
def bfgs(a):
    def rosenbrock(x):
        return np.sum(10.0 * (x[1:] - x[:-1] ** 2) ** 2 + (a[:-1] - x[:-1]) ** 2)

    def slope(x):
        z = np.zeros(20)
        z[1:] += 20.0 * (x[1:] - x[:-1] ** 2)
        z[:-1] -= 40.0 * (x[1:] - x[:-1] ** 2) * x[:-1] + 2.0 * (a[:-1] - x[:-1])
        return z

    return np.sum(optimize.minimize(rosenbrock, np.zeros(20), method="BFGS", jac=slope, tol=1e-9).x ** 2)


@program("minimize, SLSQP with bounds, 20", np.linspace(-1.0, 1.2, 20), goal=4)
def slsqp(a):
    equal = {"type": "eq", "fun": lambda x: np.sum(x) - 8.0}
    found = optimize.minimize(
        lambda x: np.sum((x - a) ** 2) + 0.1 * np.sum(x**4),
        np.full(20, 0.4),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 20,
        constraints=equal,
        options={"ftol": 1e-12},
    )
    return found.fun


@program("least_squares, 3 of 2000 points", NOISY, goal=6)
def least_squares(y):
    def residuals(p):
        return p[0] * np.exp(-p[1] * TIMES) + p[2] - y

    return np.sum(optimize.least_squares(residuals, np.ones(3), xtol=1e-14, ftol=1e-14, gtol=1e-12).x ** 2)


@program("curve_fit with covariance, 2000 points", NOISY, goal=6)
def curve_fit(y):
    def jac(t, a, b, c):
        return np.stack([np.exp(-b * t), -a * t * np.exp(-b * t), np.ones_like(t)], axis=1)

    popt, pcov = optimize.curve_fit(
        lambda t, a, b, c: a * np.exp(-b * t) + c, TIMES, y, np.ones(3), jac=jac, xtol=1e-13, ftol=1e-15
    )
    return popt[1] + 100.0 * np.sqrt(pcov[1, 1])


@program("nnls, 120 x 40", RANDOM.normal(size=120), goal=None)
def nnls(b):
    return np.sum(optimize.nnls(NONNEGATIVE, b)[0] ** 2)


MANY = RANDOM.uniform(size=(1500, 300))


@program("nnls, 1500 x 300", RANDOM.normal(size=1500) + 1.0, goal=4)
def large_nnls(b):
    return np.sum(optimize.nnls(MANY, b)[0] ** 2)


@program("linprog, 60 unknowns", np.linspace(1.0, 2.0, 40), goal=6)
def linprog(b):
    return np.sum(optimize.linprog(COSTS, A_ub=LIMITS, b_ub=b).x ** 2)
