"""Densities of the gamma and beta distributions and integrals over their tails, for compiled code, one at a time.

The plain tier has them for arrays, in `rules/scipy/special/incomplete.py`, with the same nodes; the densities are
SciPy's private ones there. Here both are the density at its mode times the exponential of how far the argument is from
there, by Stirling's formula, which loses no digits where the parameters are large (Loader, Fast and accurate
computation of binomial probabilities, 2000). Carlson's integrals are those of `elliptic.py` there.
"""

from __future__ import annotations

import math

import numpy as np
from numba.core import types

from plaingrad.native.runtime import special_functions as special
from plaingrad.native.runtime.declare import overload, register_jitable
from plaingrad.rules.scipy.special import elliptic, incomplete
from plaingrad.rules.scipy.special.elliptic import ENDS, STEP
from plaingrad.rules.scipy.special.incomplete import DEEP
from plaingrad.rules.scipy.special.quadrature import FIRST, NODES
from plaingrad.rules.special import BERNOULLI

HALF_LOG = 0.5 * math.log(2 * math.pi)
LARGE = 12.0  # there Stirling's series has all digits
gammaln = special.gammaln


@register_jitable
def log_less(y, t):  # type: ignore[no-untyped-def]
    """log(y) - t for t = y - 1, by the series of the inverse hyperbolic tangent where y is close to 1."""
    if not abs(t) < 0.4:
        return np.log(y) - t
    r = t / (2 + t)
    square = r * r
    total = 0.0
    for k in range(12, 0, -1):
        total = square * (1 / (2 * k + 1) + total)
    return r * (2 * total - t)


@register_jitable
def beyond_stirling(y):  # type: ignore[no-untyped-def]
    """log gamma(y) - (y - 1/2) log y + y - log(2 pi) / 2."""
    if not y >= LARGE:
        return gammaln(y) - (y - 0.5) * np.log(y) + y - HALF_LOG
    r = 1 / y
    total = 0.0
    power = r
    for k in range(len(BERNOULLI)):
        total += BERNOULLI[k] / ((2 * k + 2) * (2 * k + 1)) * power
        power *= r * r
    return total


@register_jitable
def gamma_density_of_numbers(a, x):  # type: ignore[no-untyped-def]
    """x^(a - 1) exp(-x) / gamma(a)."""
    if not a >= 0:
        return math.nan
    if x == 0:
        return 1.0 if a == 1 else (math.inf if a < 1 else 0.0)
    if a == 0 or x == math.inf and a < math.inf:
        return 0.0
    rise = a * log_less(x / a, (x - a) / a) - beyond_stirling(a) - HALF_LOG
    return np.sqrt(a) / x * np.exp(rise)


@register_jitable
def beta_density_of_numbers(a, b, x):  # type: ignore[no-untyped-def]
    """x^(a - 1) (1 - x)^(b - 1) / beta(a, b) for x from 0 to 1, elsewhere nan."""
    if not 0 <= x <= 1:
        return math.nan
    if x == 0:
        return b * 1.0 if a == 1 else (math.inf if a < 1 else 0.0)
    if x == 1:
        return a * 1.0 if b == 1 else (math.inf if b < 1 else 0.0)
    n = a + b
    away = b * x - a * (1 - x)  # x n - a
    rise = a * log_less(x * n / a, away / a) + b * log_less((1 - x) * n / b, -away / b)
    rise += beyond_stirling(n) - beyond_stirling(a) - beyond_stirling(b) - HALF_LOG
    return np.sqrt(a / n * b) / (x * (1 - x)) * np.exp(rise)


@register_jitable
def gamma_tail_of_numbers(upper, n, a, x, c):  # type: ignore[no-untyped-def]
    """The integral of (log t - c)^n times the density from 0 to x, or from x on."""
    if not (a > 0 and x > 0 and a < math.inf and x < math.inf):
        return math.nan
    log = np.log(x)
    if upper:  # t = x + s
        width = max(1.0, 1 / (max(1 - a / x, 0.0) + 1 / np.sqrt(x)))
        end = DEEP * width + a
    else:  # t = x exp(-s)
        width = 1 / (max(a - x, 0.0) + np.sqrt(a))
        end = min((DEEP + x) / a, max(DEEP * 40 * width, DEEP / a))
    h = (np.log(max(end / width, 2.0)) + 0.1 - FIRST) / (NODES - 1)
    total = 0.0
    for k in range(NODES):
        e = np.exp(-(FIRST + h * k))
        s = width * np.exp(FIRST + h * k - e)
        if upper:
            value = (np.log(x + s) - c) ** n * np.exp((a - 1) * np.log1p(s / x) - s)
        else:
            value = (log - c - s) ** n * np.exp(-a * s - x * np.expm1(-s))
        total += value * (s * (1 + e)) * h
    return total * gamma_density_of_numbers(a, x) * (1.0 if upper else x)


@register_jitable
def beta_tail_of_numbers(m, n, a, b, x, c, d):  # type: ignore[no-untyped-def]
    """The integral from 0 to x of (log t - c)^m (log(1 - t) - d)^n times the density; t = x exp(-s)."""
    if not (a > 0 and b > 0 and a < math.inf and b < math.inf and 0 < x < 1):
        return math.nan
    log, log_rest = np.log(x), np.log1p(-x)
    width = 1 / (max(a - b * x / (1 - x), 0.0) + np.sqrt(b * x) / (1 - x) + np.sqrt(a) * 0.1)
    end = min((DEEP - b * log_rest) / a, max(DEEP * 40 * width, DEEP / a))
    h = (np.log(max(end / width, 2.0)) + 0.1 - FIRST) / (NODES - 1)
    total = 0.0
    for k in range(NODES):
        e = np.exp(-(FIRST + h * k))
        s = width * np.exp(FIRST + h * k - e)
        gain = np.log1p(-x * np.expm1(-s) / (1 - x))
        value = (log - s - c) ** m * (log_rest + gain - d) ** n * np.exp(-a * s + (b - 1) * gain)
        total += value * (s * (1 + e)) * h
    return total * beta_density_of_numbers(a, b, x) * x


@overload(incomplete.gamma_density)
def _gamma_density(a, x):  # type: ignore[no-untyped-def]
    return lambda a, x: gamma_density_of_numbers(float(a), float(x))


@overload(incomplete.beta_density)
def _beta_density(a, b, x):  # type: ignore[no-untyped-def]
    return lambda a, b, x: beta_density_of_numbers(float(a), float(b), float(x))


@overload(incomplete.gamma_tail)
def _gamma_tail(upper, n, a, x, c):  # type: ignore[no-untyped-def]
    return lambda upper, n, a, x, c: gamma_tail_of_numbers(upper, n, float(a), float(x), float(c))


@overload(incomplete.beta_tail)
def _beta_tail(m, n, a, b, x, c, d):  # type: ignore[no-untyped-def]
    return lambda m, n, a, b, x, c, d: beta_tail_of_numbers(
        m, n, float(a), float(b), float(x), float(c), float(d)
    )


@register_jitable
def carlson_of_numbers(powers, xs):  # type: ignore[no-untyped-def]
    """The integral over t > 0 of the product of (t + x)^(-n/2), n from `powers`, by trapezoids in log t."""
    low, high, at_zero, steep = math.inf, 0.0, 0, 0
    for k in range(len(powers)):
        if not 0 <= xs[k] < math.inf:
            return math.nan
        steep += powers[k]
        high = max(high, xs[k])
        if xs[k] == 0:
            at_zero += powers[k]
        else:
            low = min(low, xs[k])
    if at_zero >= 2 or high == 0:
        return math.inf
    first = np.log(low) - ENDS / (1 - at_zero / 2)
    span = np.log(high) + ENDS / (steep / 2 - 1) - first
    nodes = int(span / STEP) + 2
    h = span / (nodes - 1)
    total = 0.0
    for j in range(nodes):
        t = np.exp(first + h * j)
        value = t
        for k in range(len(powers)):
            value *= (t + xs[k]) ** (-powers[k] / 2)
        total += h * value
    return total


@overload(elliptic.carlson, prefer_literal=True, strict=False)
def _carlson(digits, *xs):  # type: ignore[no-untyped-def]
    if not isinstance(digits, types.StringLiteral):
        return None
    powers = tuple(map(int, digits.literal_value))
    if len(powers) == 3:
        return lambda digits, x, y, w: carlson_of_numbers(powers, (float(x), float(y), float(w)))
    return lambda digits, x, y, w, p: carlson_of_numbers(powers, (float(x), float(y), float(w), float(p)))
