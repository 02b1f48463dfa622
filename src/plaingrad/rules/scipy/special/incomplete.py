"""The incomplete gamma and beta functions, in all arguments.

Slopes in the parameters are integrals of the density times powers of logarithms. Each is taken over the tail that the
argument is in, where the integrand has one sign, so that no digit is lost (to about 1e-12 for parameters from 1e-6 to
1e7). A moment of order n has moments of order n + 1 as slopes, so every derivative is known. First derivatives of
arrays are those of series and continued fractions (`shape_slopes`), where these hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import find, keep, row
from plaingrad.rules.scipy.special import shape_slopes
from plaingrad.rules.scipy.special.gamma import polygamma, psi_gap
from plaingrad.rules.scipy.special.quadrature import kind_of, over_half_line

IGAM_FAC, BETA_PDF = find("_igam_fac"), find("_beta_pdf")
SHAPES = ((0.6, 2.3, 5.1), (0.4, 2.9, 3.3))
TRIPLES = ((0.6, 2.3, 5.1), (1.4, 0.9, 3.3), (0.2, 0.8, 0.55))
DEEP = 45.0  # exp(-45) is nothing
FEW = 8  # numbers, for which the integrals are as fast as series of arrays


# Densities ---------------------------------------------------------------------------------------------------


def gamma_density(a: Any, x: Any) -> Any:
    """x^(a - 1) exp(-x) / gamma(a), nan for negative a, of which the distribution function is nan."""
    zero, far = np.equal(x, 0), np.equal(x, np.inf) & np.isfinite(a)
    y = np.where(zero | far, 1.0, x)
    if IGAM_FAC is not None:
        inside = IGAM_FAC(a, y) / y
    else:
        inside = np.exp(sc.xlogy(np.subtract(a, 1), y) - y - sc.gammaln(a))
    at_zero = np.where(np.equal(a, 1), 1.0, np.where(np.less(a, 1), np.inf, 0.0))
    inside = np.where(np.less(a, 0), np.nan, np.where(far, 0.0, inside))
    return np.where(zero & np.greater_equal(a, 0), at_zero, inside).astype(kind_of(a, x), copy=False)[()]


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """x^(a - 1) (1 - x)^(b - 1) / beta(a, b) for x from 0 to 1, elsewhere nan."""
    inside = np.greater_equal(x, 0) & np.less_equal(x, 1)
    y = np.where(inside, x, 0.5)
    if BETA_PDF is not None:
        z = BETA_PDF(y, a, b)
    else:
        whole = np.where(np.greater(a, 0) & np.greater(b, 0), sc.betaln(a, b), np.nan)
        z = np.exp(sc.xlogy(np.subtract(a, 1), y) + sc.xlog1py(np.subtract(b, 1), -y) - whole)
    return np.where(inside, z, np.nan).astype(kind_of(a, b, x), copy=False)[()]


row("gamma_density", SHAPES, lambda m, a, x, z: z * (np.log(x) - sc.psi(a)),
    lambda m, a, x, z: z * (np.true_divide(a - 1, x) - 1), functions=(gamma_density,))
row("beta_density", TRIPLES, lambda m, a, b, x, z: z * (np.log(x) - psi_gap(a, b)),
    lambda m, a, b, x, z: z * (np.log1p(-x) - psi_gap(b, a)),
    lambda m, a, b, x, z: z * (np.true_divide(a - 1, x) - np.true_divide(b - 1, 1 - x)), functions=(beta_density,))


# Moments of logarithms over tails ------------------------------------------------------------------------------


def gamma_tail(upper: bool, n: int, a: Any, x: Any, c: Any) -> Any:
    """The integral of (log t - c)^n t^(a - 1) exp(-t) / gamma(a) from 0 to x, or from x on."""
    kind = kind_of(a, x)
    a, x, c = [np.asarray(y, float) for y in (a, x, c)]
    good = np.isfinite(a) & np.isfinite(x) & (a > 0) & (x > 0)
    a, x = np.where(good, a, 1.0), np.where(good, x, 1.0)
    density = gamma_density(a, x)
    if upper:  # t = x + s
        width = np.maximum(1.0, 1 / (np.maximum(1 - a / x, 0) + 1 / np.sqrt(x)))
        end = DEEP * width + a
        z = density * over_half_line(
            lambda s, a, x, c: (np.log(x + s) - c) ** n * np.exp((a - 1) * np.log1p(s / x) - s), width, end, a, x, c
        )
    else:  # t = x exp(-s)
        width = 1 / (np.maximum(a - x, 0) + np.sqrt(a))
        end = (DEEP + x) / a
        end = np.minimum(end, np.maximum(DEEP * 40 * width, DEEP / a))
        z = density * x * over_half_line(
            lambda s, a, x, c: (np.log(x) - c - s) ** n * np.exp(-a * s - x * np.expm1(-s)), width, end, a, x, c
        )
    return np.where(good, z, np.nan).astype(kind)[()]


def gamma_tail_in_a(m: Any, upper: bool, n: int, a: Any, x: Any, c: Any, z: Any) -> Any:
    """The derivative of the density in a is (log t - psi(a)) times it."""
    return gamma_tail(upper, n + 1, a, x, c) + (c - sc.psi(a)) * z


row("gamma_tail", ((0, 1), (1, 2), (0.6, 2.3), (0.4, 2.9), (0.1, 0.2)), None, None, gamma_tail_in_a,
    lambda m, upper, n, a, x, c, z: (np.log(x) - c) ** n * gamma_density(a, x) * (1 - 2 * upper),
    lambda m, upper, n, a, x, c, z: -n * gamma_tail(upper, n - 1, a, x, c) if n else 0.0 * z, functions=(gamma_tail,))


def beta_tail(m: int, n: int, a: Any, b: Any, x: Any, c: Any, d: Any) -> Any:
    """The integral from 0 to x of (log t - c)^m (log(1 - t) - d)^n times the density of the beta distribution."""
    kind = kind_of(a, b, x)
    a, b, x, c, d = [np.asarray(y, float) for y in (a, b, x, c, d)]
    good = np.isfinite(a) & np.isfinite(b) & (a > 0) & (b > 0) & (x > 0) & (x < 1)
    a, b, x = np.where(good, a, 1.0), np.where(good, b, 1.0), np.where(good, x, 0.5)
    width = 1 / (np.maximum(a - b * x / (1 - x), 0) + np.sqrt(b * x) / (1 - x) + np.sqrt(a) * 0.1)
    end = (DEEP - b * np.log1p(-x)) / a
    end = np.minimum(end, np.maximum(DEEP * 40 * width, DEEP / a))

    def integrand(s: Any, a: Any, b: Any, x: Any, c: Any, d: Any) -> Any:  # t = x exp(-s)
        rest = np.log1p(-x) + np.log1p(-x * np.expm1(-s) / (1 - x))
        rise = np.exp(-a * s + (b - 1) * (rest - np.log1p(-x)))
        return (np.log(x) - s - c) ** m * (rest - d) ** n * rise

    z = beta_density(a, b, x) * x * over_half_line(integrand, width, end, a, b, x, c, d)
    return np.where(good, z, np.nan).astype(kind)[()]


row("beta_tail", ((1, 0), (0, 2), (0.6, 2.3), (1.4, 0.9), (0.2, 0.8), (0.1, 0.2), (-0.1, -0.4)), None, None,
    lambda m_, m, n, a, b, x, c, d, z: beta_tail(m + 1, n, a, b, x, c, d) + (c - psi_gap(a, b)) * z,
    lambda m_, m, n, a, b, x, c, d, z: beta_tail(m, n + 1, a, b, x, c, d) + (d - psi_gap(b, a)) * z,
    lambda m_, m, n, a, b, x, c, d, z: (np.log(x) - c) ** m * (np.log1p(-x) - d) ** n * beta_density(a, b, x),
    lambda m_, m, n, a, b, x, c, d, z: -m * beta_tail(m - 1, n, a, b, x, c, d) if m else 0.0 * z,
    lambda m_, m, n, a, b, x, c, d, z: -n * beta_tail(m, n - 1, a, b, x, c, d) if n else 0.0 * z,
    functions=(beta_tail,))


def gammainc_in_a(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) in a, from the tail that x is in; 0 at 0 and at infinity."""
    kind = kind_of(a, x)
    a, x = np.broadcast_arrays(np.asarray(a, float), np.asarray(x, float))
    good = np.greater(a, 0) & np.isfinite(a) & np.greater_equal(x, 0)
    z = np.where(good, 0.0, np.nan)
    inside = good & np.greater(x, 0) & np.isfinite(x)
    if a.size >= FEW:
        z[inside] = shape_slopes.gamma_slope(gamma_factor, a[inside], x[inside])
        inside &= np.isnan(z)
    if inside.any():
        z[inside] = gammainc_in_a_by_tails(a[inside], x[inside])
    return z.astype(kind, copy=False)[()]


def gamma_factor(a: Any, x: Any) -> Any:
    """x^a exp(-x) / gamma(a)."""
    return IGAM_FAC(a, x) if IGAM_FAC is not None else x * gamma_density(a, x)


def gammainc_in_a_by_tails(a: Any, x: Any) -> Any:
    """The same by integrals, whose own derivatives are known."""
    low = np.less_equal(x, a)
    inside = np.greater(x, 0) & np.isfinite(x) & np.greater(a, 0)
    left, right = low & inside, ~low & inside
    below = gamma_tail(False, 1, np.where(left, a, 1.0), np.where(left, x, 0.5), sc.psi(np.where(left, a, 1.0)))
    above = gamma_tail(True, 1, np.where(right, a, 1.0), np.where(right, x, 1.5), sc.psi(np.where(right, a, 1.0)))
    at_end = (np.equal(x, 0) | np.equal(x, np.inf)) & np.greater(a, 0) & np.isfinite(a)
    return np.where(left, below, np.where(right, -above, np.where(at_end, 0.0, np.nan)))[()]


def betainc_in_a(a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) in a, from the tail that x is in; 0 at both ends."""
    return betainc_slope(True, a, b, x)


def betainc_in_b(a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) in b."""
    return betainc_slope(False, a, b, x)


def betainc_slope(in_first: bool, a: Any, b: Any, x: Any) -> Any:
    """The derivative in a or b; the upper tail is the lower one of the mirrored distribution."""
    kind = kind_of(a, b, x)
    a, b, x = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float), np.asarray(x, float))
    good = np.greater(a, 0) & np.greater(b, 0) & np.isfinite(a + b) & np.greater_equal(x, 0) & np.less_equal(x, 1)
    z = np.where(good, 0.0, np.nan)
    inside = good & np.greater(x, 0) & np.less(x, 1)
    if a.size >= FEW:
        low = np.less_equal(x * (a + b), a)
        left, right = low & inside, ~low & inside
        z[left] = shape_slopes.beta_slope(beta_density, in_first, a[left], b[left], x[left])
        z[right] = -shape_slopes.beta_slope(beta_density, not in_first, b[right], a[right], 1 - x[right])
        inside &= np.isnan(z)
    if inside.any():
        z[inside] = betainc_slope_by_tails(int(in_first), int(not in_first), a[inside], b[inside], x[inside])
    return z.astype(kind, copy=False)[()]


def betainc_slope_by_tails(in_a: int, in_b: int, a: Any, b: Any, x: Any) -> Any:
    """The same by integrals, whose own derivatives are known."""
    inside = np.greater(x, 0) & np.less(x, 1) & np.greater(a, 0) & np.greater(b, 0)
    low = np.less_equal(x * (a + b), a)
    left, right = low & inside, ~low & inside
    p, q, y = np.where(left, a, 1.0), np.where(left, b, 1.0), np.where(left, x, 0.25)
    below = beta_tail(in_a, in_b, p, q, y, psi_gap(p, q), psi_gap(q, p))
    p, q, y = np.where(right, b, 1.0), np.where(right, a, 1.0), np.where(right, 1 - x, 0.25)
    above = beta_tail(in_b, in_a, p, q, y, psi_gap(p, q), psi_gap(q, p))
    at_end = (np.equal(x, 0) | np.equal(x, 1)) & np.greater(a, 0) & np.greater(b, 0)
    return np.where(left, below, np.where(right, -above, np.where(at_end, 0.0, np.nan)))[()]


for _function, _by_tails in (
    (gammainc_in_a, gammainc_in_a_by_tails),
    (betainc_in_a, lambda a, b, x: betainc_slope_by_tails(1, 0, a, b, x)),
    (betainc_in_b, lambda a, b, x: betainc_slope_by_tails(0, 1, a, b, x)),
):  # who differentiates a slope differentiates the integrals
    keep(Rule(_function, "composed", definition=_by_tails, source="incomplete.py"))


# The same once more, for who does not differentiate the code above -----------------------------------------------


def gamma_density_in_a(a: Any, x: Any) -> Any:
    """The derivative of the gamma distribution's density in a."""
    return gamma_density(a, x) * (np.log(x) - sc.psi(a))


def gammainc_twice_in_a(a: Any, x: Any) -> Any:
    """The second derivative of P(a, x) in a, x a number, from the tail that it is in."""
    if x == 0 or x == np.inf:
        return 0.0 * a
    c = sc.psi(a)
    if x <= a:
        return gamma_tail(False, 2, a, x, c) - polygamma(1, a) * sc.gammainc(a, x)
    return polygamma(1, a) * sc.gammaincc(a, x) - gamma_tail(True, 2, a, x, c)


def beta_density_in_a(a: Any, b: Any, x: Any) -> Any:
    """The derivative of the beta distribution's density in a."""
    return beta_density(a, b, x) * (np.log(x) - psi_gap(a, b))


def beta_density_in_b(a: Any, b: Any, x: Any) -> Any:
    """The derivative of the beta distribution's density in b."""
    return beta_density(a, b, x) * (np.log1p(-x) - psi_gap(b, a))


def betainc_twice(i: int, j: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b), i times in a and j times in b, i + j = 2, x a number, from the tail that it is in."""
    if x == 0 or x == 1:
        return 0.0 * a
    c, d = psi_gap(a, b), psi_gap(b, a)
    if x * (a + b) <= a:
        moment, share = beta_tail(i, j, a, b, x, c, d), sc.betainc(a, b, x)
    else:
        moment, share = -beta_tail(j, i, b, a, 1 - x, d, c), -sc.betainc(b, a, 1 - x)
    bend = -polygamma(1, a + b)
    if i == 2:
        bend = bend + polygamma(1, a)
    if j == 2:
        bend = bend + polygamma(1, b)
    return moment - bend * share


row("gammainc", SHAPES, lambda m, a, x, z: gammainc_in_a(a, x), lambda m, a, x, z: gamma_density(a, x))
row("gammaincc", SHAPES, lambda m, a, x, z: -gammainc_in_a(a, x), lambda m, a, x, z: -gamma_density(a, x))
row("betainc", TRIPLES, lambda m, a, b, x, z: betainc_in_a(a, b, x), lambda m, a, b, x, z: betainc_in_b(a, b, x),
    lambda m, a, b, x, z: beta_density(a, b, x))
row("betaincc", TRIPLES, lambda m, a, b, x, z: -betainc_in_a(a, b, x), lambda m, a, b, x, z: -betainc_in_b(a, b, x),
    lambda m, a, b, x, z: -beta_density(a, b, x))
row("_igam_fac", SHAPES, lambda m, a, x, z: z * (np.log(x) - sc.psi(a)),
    lambda m, a, x, z: z * (np.true_divide(a, x) - 1))
row("_beta_pdf", (TRIPLES[2], *TRIPLES[:2]), lambda m, x, a, b, z: z * (np.true_divide(a - 1, x) - np.true_divide(b - 1, 1 - x)),
    lambda m, x, a, b, z: z * (np.log(x) - psi_gap(a, b)), lambda m, x, a, b, z: z * (np.log1p(-x) - psi_gap(b, a)))
