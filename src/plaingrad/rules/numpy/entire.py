"""`np.sinc` and `np.i0`: entire functions whose formulas have a branch, or a quotient 0/0, at 0.

Their derivatives of order n are functions of their own here, each the derivative of the one before. So nothing is lost
where the formula that NumPy computes with has a branch, and nothing cancels beside it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad.define import composed, scalar

ORDERS_AND_POINTS: Any = ((1, 2, 3, 4), (-1.3, 0.4, 0.01, 5.2))


def sinc_derivative(n: int, x: Any) -> Any:
    """The derivative of order n of sin(pi x) / (pi x).

    With u = pi x it is pi**n s_n(u), where u s_n = sin(u + n pi / 2) - n s_(n-1). That recurrence loses digits where u
    is small; there the power series of s_n is summed.
    """
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        u = np.pi * x.astype(np.result_type(x, np.float64))
        limit = max(2.0, n / 2)
        small = np.absolute(u) < limit
        y = np.where(small, 1.0, u)
        wave = (np.sin(y), np.cos(y), -np.sin(y), -np.cos(y))
        far = wave[0] / y
        for k in range(1, n + 1):
            far = (wave[k % 4] - k * far) / y
        found = np.where(small, sinc_series(n, np.where(small, u, 0.0)), far) * np.pi**n
    return found.astype(x.dtype, copy=False)[()]


def sinc_series(n: int, u: Any) -> Any:
    """The sum of (-1)**k u**(2k - n) / ((2k + 1) (2k - n)!) over 2k >= n, for small u."""
    first = (n + 1) // 2
    power = u ** (2 * first - n)
    total = 0.0
    for k in range(first, first + 12 + n):
        total = total + (-1) ** k * power / (2 * k + 1)
        power = power * u * u / ((2 * k + 1 - n) * (2 * k + 2 - n))
    return total


def i0_derivative(n: int, x: Any) -> Any:
    """The derivative of order n of the modified Bessel function I_0: 2**-n sum of binom(n, k) I_|n - 2k|(x).

    I_m / I_(m-1) is the continued fraction x / (2m + x (I_(m+1) / I_m)), whose terms are all positive.
    """
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        size = np.absolute(x.astype(np.result_type(x, np.float64)))
        finite = size[np.isfinite(size)]
        ratio = np.zeros_like(size)
        ratios = []
        for m in range(n + 12 + int(9 * math.sqrt(np.max(finite, initial=0.0))), 0, -1):
            ratio = size / (2 * m + size * ratio)
            if m <= n:
                ratios.append(ratio)
        bessel = [np.i0(size)]
        for ratio in ratios[::-1]:
            bessel.append(bessel[-1] * ratio)
        found = sum([math.comb(n, k) * bessel[abs(n - 2 * k)] for k in range(n + 1)]) / 2.0**n
        if n % 2:
            found = found * np.sign(x)
    return found.astype(x.dtype, copy=False)[()]


def sinc_of(x: Any) -> Any:
    """np.sinc(x) of an array."""
    return np.sinc(x)


def i0_of(x: Any) -> Any:
    """np.i0(x) of an array of floats; a number for a number."""
    z = np.i0(x)
    return z if isinstance(x, np.ndarray) else z[()]


scalar("sinc_derivative", ORDERS_AND_POINTS, None, lambda m, n, x, z: sinc_derivative(n + 1, x), functions=(sinc_derivative,))
scalar("i0_derivative", ORDERS_AND_POINTS, None, lambda m, n, x, z: i0_derivative(n + 1, x), functions=(i0_derivative,))
scalar("sinc", ORDERS_AND_POINTS[1:], lambda m, x, z: sinc_derivative(1, x), functions=(sinc_of,))
scalar("i0", ORDERS_AND_POINTS[1:], lambda m, x, z: i0_derivative(1, x), functions=(i0_of,))


@composed(np.sinc)
def sinc(x):
    """sin(pi x) / (pi x), 1 at 0."""
    return sinc_of(np.asanyarray(x))


@composed(np.i0)
def i0(x):
    """The modified Bessel function of the first kind and order 0."""
    x = np.asanyarray(x)
    return i0_of(x if x.dtype.kind in "cf" else x.astype(float))
