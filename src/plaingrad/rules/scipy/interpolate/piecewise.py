"""Piecewise polynomials, evaluated by formulas: in coefficients, knots and queries.

Which piece a query lies in is structure; within the piece everything is a polynomial.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.interpolate import _ppoly

from plaingrad.rules.scipy.compiled import constant, definitions

polynomials = definitions(_ppoly)


def pieces(x: Any, at: Any, extrapolate: bool) -> Any:
    """The piece in which each query lies, and which have none; breakpoints ascend or descend."""
    last = len(x) - 2
    if x[-1] >= x[0]:
        found = np.searchsorted(x, at, "right") - 1
        outside = (at < x[0]) | (at > x[-1])
    else:
        found = np.searchsorted(-x, -at, "right") - 1
        outside = (at > x[0]) | (at < x[-1])
    none = np.isnan(at) | (outside & (not extrapolate))
    return np.clip(found, 0, last), none


constant(pieces)


def rising(n: int, count: int) -> int:
    """n (n + 1) ... with `count` factors."""
    return math.prod(range(n, n + count))


@polynomials("evaluate", mutates=True)
def evaluate(c, x, xp, dx, extrapolate, out):
    """Horner's scheme for the derivative of order dx of c[0] s^n + c[1] s^(n - 1) + ..., s the distance from the break."""
    piece, none = pieces(x, xp, extrapolate)
    s = (xp - x[piece])[:, None]
    degree = c.shape[0] - 1
    z = np.zeros((len(xp), c.shape[2]), c.dtype)
    for k in range(degree + 1 - dx):
        z = z * s + rising(degree - k - dx + 1, dx) * c[k][piece]
    out[...] = np.where(none[:, None], np.nan, z)


@polynomials("integrate", mutates=True)
def integrate(c, x, a, b, extrapolate, out):
    """The sum over pieces of the integrals over their parts of [a, b]."""
    piece, none = pieces(x, np.stack([a, b]), extrapolate)
    if none.any():
        out[...] = np.nan
        return
    first, last = sorted(piece.tolist())
    inner = x[first + 1 : last + 1]
    low, high = (a, b) if x[-1] >= x[0] else (b, a)
    starts = np.concatenate([np.reshape(low, (1,)), inner]) - x[first : last + 1]
    stops = np.concatenate([inner, np.reshape(high, (1,))]) - x[first : last + 1]
    degree = c.shape[0] - 1
    zeros = np.zeros((last + 1 - first, c.shape[2]), c.dtype)
    below, above = zeros, zeros
    for k in range(degree + 1):
        part = c[k, first : last + 1] / (degree - k + 1)
        below, above = below * starts[:, None] + part, above * stops[:, None] + part
    below, above = below * starts[:, None], above * stops[:, None]
    total = (above - below).sum(0)
    out[...] = total if x[-1] >= x[0] else -total


@polynomials("fix_continuity", mutates=True)
def fix_continuity(c, x, order):
    """Derivatives up to `order` are those of the piece before at its end: of each order a running sum."""
    degree, h = c.shape[0] - 1, (x[1:-1] - x[:-2])[:, None]
    if c.shape[1] < 2:
        return
    for k in range(order, -1, -1):
        step = np.zeros((c.shape[1] - 1, c.shape[2]), c.dtype)
        for power in range(degree, k, -1):
            step = step + math.comb(power, k) * c[degree - power, :-1] * h ** (power - k)
        c[degree - k, 1:] = c[degree - k, 0] + np.cumsum(step, 0)


def spans(t: Any, k: int, x: Any, extrapolate: bool) -> Any:
    """For each query the number of the knot before it, and which queries have none."""
    n = len(t) - k - 1
    found = np.clip(np.searchsorted(t, x, "right") - 1, k, n - 1)
    while np.any((t[found] == t[found + 1]) & (found > k)):
        found = np.where((t[found] == t[found + 1]) & (found > k), found - 1, found)
    outside = (x < t[k]) | (x > t[n])
    return found, np.isnan(x) | (outside & (not extrapolate))


constant(spans)
