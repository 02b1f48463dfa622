"""Integrals and differential equations."""

import numpy as np
from scipy import integrate

from benchmarks.ordinary.program import program

TOLERANCE = 1e-4
RATES = np.array([0.6, 0.03, 0.8, 0.025])
YEARS = np.linspace(0.0, 20.0, 41)
HEIGHTS = np.random.default_rng(5).normal(size=100_001)


def change(t, y, p):
    return np.array([p[0] * y[0] - p[1] * y[0] * y[1], p[3] * y[0] * y[1] - p[2] * y[1]])


@program("solve_ivp, RK45, 4 rates", RATES, goal=10)
def rk45(p):
    found = integrate.solve_ivp(change, (0.0, 20.0), [30.0, 4.0], t_eval=YEARS, args=(p,), rtol=1e-6)
    return np.sum(np.log(found.y) ** 2)


@program("solve_ivp, BDF, 4 rates", RATES, goal=6)
def bdf(p):
    found = integrate.solve_ivp(
        change, (0.0, 20.0), [30.0, 4.0], "BDF", YEARS, args=(p,), rtol=1e-8, atol=1e-8
    )
    return np.sum(np.log(found.y) ** 2)


CELLS = 100


def diffusion(t, u):
    rate = np.empty(CELLS)
    rate[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2]
    rate[0], rate[-1] = u[1] - u[0], u[-2] - u[-1]
    return 3.0 * rate - u**3


@program("solve_ivp, RK45, diffusion in 100 cells", np.linspace(0.0, 1.0, CELLS), goal=10)
def diffusing(u):
    return np.sum(integrate.solve_ivp(diffusion, (0.0, 5.0), u, rtol=1e-6).y[:, -1] ** 2)


@program("odeint, 4 rates", RATES, goal=None)
def odeint(p):
    found = integrate.odeint(change, [30.0, 4.0], YEARS, args=(p,), tfirst=True, rtol=1e-8, atol=1e-8)
    return np.sum(np.log(found) ** 2)


@program("quad, 2 parameters", np.array([0.7, 1.3]), goal=None)
def quad(p):
    return integrate.quad(lambda x: np.exp(-p[0] * x * x) * np.cos(p[1] * x), 0.0, 3.0)[0]


LINES = np.linspace(0.1, 2.9, 30)


@program("quad, a spectrum of 30 lines", np.linspace(0.5, 1.5, 30), goal=6)
def quad_of_spectrum(p):
    def absorbed(x):
        return 1.0 - np.exp(-np.sum(p / (1.0 + 30.0 * (x - LINES) ** 2)))

    return integrate.quad(absorbed, 0.0, 3.0)[0]


ENERGIES = np.linspace(0.0, 8.0, 5000)


@program("quad, over 5000 levels", np.linspace(0.5, 1.5, 5000), goal=6)
def quad_of_levels(p):
    return integrate.quad(lambda t: np.dot(p, np.exp(-ENERGIES / t)), 1.0, 3.0)[0]


@program("dblquad, 2 parameters", np.array([0.7, 1.3]), goal=None)
def dblquad(p):
    return integrate.dblquad(lambda y, x: np.exp(-p[0] * x * x - p[1] * y * y), 0.0, 1.0, 0.0, 1.0)[0]


@program("simpson, 10^5 points", HEIGHTS, goal=4)
def simpson(y):
    return integrate.simpson(y * y, dx=1e-3)


@program("solve_bvp, one parameter", np.array([0.8]), goal=6)
def bvp(p):
    mesh = np.linspace(0.0, 1.0, 11)
    found = integrate.solve_bvp(
        lambda x, y: np.stack([y[1], -p[0] * np.exp(y[0])]),
        lambda a, b: np.array([a[0], b[0]]),
        mesh,
        np.zeros((2, 11)),
        tol=1e-8,
    )
    return np.max(found.sol(np.array([0.5]))[0])
