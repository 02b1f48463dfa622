"""Derivatives of the incomplete gamma and beta functions in their parameters, for compiled code, one at a time.

Where their power series keeps its digits it is differentiated term by term: below the mean all terms have one sign
(DLMF 8.7.1, 8.17.8). Elsewhere they are the integrals of `special_integrals` over the tail that the argument is in,
which take some hundred times as long.
"""

from __future__ import annotations

import math

import numpy as np

from plaingrad.native.runtime import special_functions as special
from plaingrad.native.runtime.declare import overload, register_jitable
from plaingrad.native.runtime.special_integrals import (
    beta_density_of_numbers,
    beta_tail_of_numbers,
    gamma_density_of_numbers,
    gamma_tail_of_numbers,
)
from plaingrad.rules.scipy.special import incomplete
from plaingrad.rules.special import BERNOULLI

MOST = 1000.0  # parameters, and terms, of series
KEPT = 1e-3  # of the sum of sizes must be left
SMALL = 1e-17
psi = special.psi


@register_jitable
def gamma_slope_by_series(a, x):  # type: ignore[no-untyped-def]
    """The sum of x^(a + k) exp(-x) / gamma(a + k + 1), its terms differentiated in a; nan where digits are lost."""
    log, p = np.log(x), psi(a + 1)
    term = gamma_density_of_numbers(a, x) * x / a
    total = 0.0
    size = 0.0
    for k in range(int(MOST)):
        total += term * (log - p)
        size += term * (abs(log) + abs(p))
        ratio = x / (a + k + 1)
        if ratio < 1 and term * (abs(log) + abs(p)) * ratio <= SMALL * size * (1 - ratio):
            return total if abs(total) > KEPT * size else math.nan
        p += 1 / (a + k + 1)
        term *= ratio
    return math.nan


@register_jitable
def gammainc_in_a_of_numbers(a, x):  # type: ignore[no-untyped-def]
    """The derivative of P(a, x) in a; 0 at 0 and at infinity."""
    if not (0 < a < math.inf and x >= 0):
        return math.nan
    if x == 0 or x == math.inf:
        return 0.0
    if a <= MOST and x <= 2 * a + 20:
        z = gamma_slope_by_series(a, x)
        if z == z:
            return z
    if x <= a:
        return gamma_tail_of_numbers(False, 1, a, x, psi(a))
    return -gamma_tail_of_numbers(True, 1, a, x, psi(a))


@register_jitable
def beta_slope_by_series(in_first, a, b, x):  # type: ignore[no-untyped-def]
    """The sum of x^(a + k) (1 - x)^b gamma(a + b + k) / (gamma(a + k + 1) gamma(b)), differentiated in a or b."""
    log = np.log(x) if in_first else np.log1p(-x)
    p = psi(a + b)
    q = psi(a + 1) if in_first else psi(b)
    term = beta_density_of_numbers(a, b, x) * x * (1 - x) / a
    total = 0.0
    size = 0.0
    for k in range(int(MOST)):
        whole = abs(log) + abs(p) + abs(q)
        total += term * (log + p - q)
        size += term * whole
        ratio = x * (a + b + k) / (a + k + 1)
        bound = max(ratio, x)
        if bound < 1 and term * (whole + 1) * bound <= SMALL * size * (1 - bound):
            return total if abs(total) > KEPT * size else math.nan
        p += 1 / (a + b + k)
        if in_first:
            q += 1 / (a + k + 1)
        term *= ratio
    return math.nan


@register_jitable
def betainc_slope_of_numbers(in_first, a, b, x):  # type: ignore[no-untyped-def]
    """The derivative of I_x(a, b) in a or b; beyond the mean that of the mirrored distribution; 0 at both ends."""
    if not (0 < a < math.inf and 0 < b < math.inf and 0 <= x <= 1):
        return math.nan
    if x == 0 or x == 1:
        return 0.0
    sign = 1.0
    if x * (a + b) > a:
        in_first = not in_first
        a, b, x = b, a, 1 - x
        sign = -1.0
    if a <= MOST and b <= MOST:
        z = beta_slope_by_series(in_first, a, b, x)
        if z == z:
            return sign * z
    c, d = psi_gap(a, b), psi_gap(b, a)
    return sign * beta_tail_of_numbers(1 if in_first else 0, 0 if in_first else 1, a, b, x, c, d)


@register_jitable
def psi_gap(x, y):  # type: ignore[no-untyped-def]
    """psi(x) - psi(x + y); where x is large all digits of y are kept."""
    if x < 20 or x + y < 20:
        return psi(x) - psi(x + y)
    w = x + y
    total = -np.log1p(y / x) - y / (2 * x * w)
    for k in range(len(BERNOULLI)):
        total += BERNOULLI[k] / (2 * k + 2) * (w ** (-2 * k - 2) - x ** (-2 * k - 2))
    return total


@overload(incomplete.gammainc_in_a)
def _gammainc_in_a(a, x):  # type: ignore[no-untyped-def]
    return lambda a, x: gammainc_in_a_of_numbers(float(a), float(x))


@overload(incomplete.betainc_in_a)
def _betainc_in_a(a, b, x):  # type: ignore[no-untyped-def]
    return lambda a, b, x: betainc_slope_of_numbers(True, float(a), float(b), float(x))


@overload(incomplete.betainc_in_b)
def _betainc_in_b(a, b, x):  # type: ignore[no-untyped-def]
    return lambda a, b, x: betainc_slope_of_numbers(False, float(a), float(b), float(x))
