"""Functions defined as integrals: exponential, sine and cosine integrals, Fresnel's, Spence's, those of Bessel functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.define import POSITIVE, REAL
from plaingrad.rules.scipy.forms import row, several
from plaingrad.rules.scipy.special.normal import erfcx_slope

NEAR = ((0.2, 0.9, 1.7),)
DEGREES = ((1, 2, 0), (0.4, 1.3, 2.2))
EIGHTH = (1 - 1j) / math.sqrt(2)  # exp(-i pi / 4)


def series_of_squares(x: Any, start: float, steps: Any) -> Any:
    """start (1 + r1 x^2 (1 + r2 x^2 (...)))."""
    square = x * x
    total: Any = 1.0
    for r in reversed(steps):
        total = 1 + r * square * total
    return start * total


def near_zero(x: Any, direct: Any, bound: float, start: float, steps: Any, odd: bool = False) -> Any:
    """direct(x), within `bound` of 0 its series."""
    near = np.less(np.abs(x), bound)
    v, w = np.where(near, x, 0.0), np.where(near, bound, x)
    inside = series_of_squares(v, start, steps)
    return np.where(near, inside * v if odd else inside, direct(w))[()]


def sine_ratio(x: Any) -> Any:
    """sin(x) / x."""
    return near_zero(x, lambda x: np.sin(x) / x, 1.0, 1.0, [-1 / (2 * k * (2 * k + 1)) for k in range(1, 11)])


def hyperbolic_ratio(x: Any) -> Any:
    """sinh(x) / x."""
    return near_zero(x, lambda x: np.sinh(x) / x, 1.0, 1.0, [1 / (2 * k * (2 * k + 1)) for k in range(1, 11)])


def one_less_j0(x: Any) -> Any:
    """(1 - j0(x)) / x."""
    steps = [-1 / (4 * k * k) for k in range(2, 13)]
    return near_zero(x, lambda x: (1 - sc.j0(x)) / x, 1.0, 0.25, steps, odd=True)


def i0_less_one(x: Any) -> Any:
    """(i0(x) - 1) / x."""
    return near_zero(x, lambda x: (sc.i0(x) - 1) / x, 1.0, 0.25, [1 / (4 * k * k) for k in range(2, 13)], odd=True)


def quarter_turns(x: Any) -> Any:
    """pi x^2 / 2 less whole turns: x = n + f with n even, whose square is a multiple of 4."""
    if np.iscomplexobj(x):
        return np.pi / 2 * x * x
    n = 2 * np.rint(x / 2)
    f = x - n
    return np.pi / 2 * (np.fmod(2 * n * f, 4) + f * f)


def spence_slope(x: Any) -> Any:
    """log(x) / (1 - x), near 1 by its series."""
    near = np.abs(x - 1) < 0.3
    y = np.where(near, 1 - x, 0.0)
    total: Any = 0.0
    for k in range(34, 0, -1):
        total = 1 / k + y * total
    w = np.where(near, 2.0, x)
    return np.where(near, -total, np.log(w) / (1 - w))[()]


def expn_slope(n: Any, x: Any) -> Any:
    """-E(n - 1, x); E(-1, x) = exp(-x) (1 + 1/x) / x."""
    last = np.less(n, 1)
    r = np.true_divide(1, x)
    return np.where(last, -np.exp(-x) * r * (1 + r), -sc.expn(np.where(last, 1, n) - 1, x))[()]


def scaled_exp1_slope(x: Any, z: Any) -> Any:
    """z (1 + 1/x) - 1 for z = x exp(x) E1(x), far out by the expansion at infinity."""
    far = np.greater(x, 50)
    r = 1 / np.where(far, x, 50.0)
    total: Any = 1.0
    for k in range(24, 0, -1):  # the sum of (-1)^k (k + 1) (k + 1)! r^k
        total = 1 - (k + 1) * (k + 1) / k * r * total
    y = np.where(far, 1.0, x)
    return np.where(far, r * r * total, np.where(far, 0.0, z) * (1 + 1 / y) - 1)[()]


def on_right(x: Any, slope: Any) -> Any:
    """`slope`, nan for negative x, where SciPy's values are not those of the function."""
    return np.where(np.less(x, 0), np.nan, slope)[()]


row("exp1", POSITIVE, lambda m, x, z: np.true_divide(-np.exp(-x), x))
row("expi", REAL, lambda m, x, z: np.true_divide(np.exp(x), x))
row("expn", DEGREES, None, lambda m, n, x, z: expn_slope(n, x))
row("_scaled_exp1", POSITIVE, lambda m, x, z: scaled_exp1_slope(x, z))
row("spence", POSITIVE, lambda m, x, z: spence_slope(x))
several("shichi", POSITIVE, (lambda m, x, z: hyperbolic_ratio(x),), (lambda m, x, z: np.true_divide(np.cosh(x), x),))
several("sici", POSITIVE, (lambda m, x, z: sine_ratio(x),), (lambda m, x, z: np.true_divide(np.cos(x), x),))
several("fresnel", REAL, (lambda m, x, z: np.sin(quarter_turns(x)),), (lambda m, x, z: np.cos(quarter_turns(x)),))
# K = exp(-i (x^2 + pi/4)) F / sqrt(pi) = erfcx(exp(-i pi/4) x) / 2, and the conjugate.
several("modfresnelp", NEAR, (lambda m, x, z: on_right(x, -np.exp(1j * np.multiply(x, x))),),
        (lambda m, x, z: EIGHTH / 2 * erfcx_slope(EIGHTH * x, 2 * z[1]),))
several("modfresnelm", NEAR, (lambda m, x, z: on_right(x, -np.exp(-1j * np.multiply(x, x))),),
        (lambda m, x, z: EIGHTH.conjugate() / 2 * erfcx_slope(EIGHTH.conjugate() * x, 2 * z[1]),))
several("itj0y0", POSITIVE, (lambda m, x, z: sc.j0(x),), (lambda m, x, z: sc.y0(x),))
several("iti0k0", POSITIVE, (lambda m, x, z: sc.i0(x),), (lambda m, x, z: sc.k0(x),))
several("it2j0y0", POSITIVE, (lambda m, x, z: one_less_j0(x),), (lambda m, x, z: np.true_divide(-sc.y0(x), x),))
several("it2i0k0", POSITIVE, (lambda m, x, z: i0_less_one(x),), (lambda m, x, z: np.true_divide(-sc.k0(x), x),))
several("itairy", POSITIVE, (lambda m, x, z: sc.airy(x)[0],), (lambda m, x, z: sc.airy(x)[2],),
        (lambda m, x, z: sc.airy(-x)[0],), (lambda m, x, z: sc.airy(-x)[2],))
row("itstruve0", POSITIVE, lambda m, x, z: sc.struve(0, x))
row("it2struve0", POSITIVE, lambda m, x, z: np.true_divide(-sc.struve(0, x), x))
row("itmodstruve0", POSITIVE, lambda m, x, z: sc.modstruve(0, x))
