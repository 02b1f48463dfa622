"""Distribution functions that are incomplete gamma and beta functions, Student's, Kolmogorov's and Smirnov's.

Counts are rounded down by SciPy, so that there is no slope in them; the quantile functions that solve for a count take it
as a real number (`inverses`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rules.scipy.forms import defined, find, keep_quiet, row
from plaingrad.rules.scipy.special.incomplete import (
    beta_density,
    betainc_in_a,
    betainc_in_b,
    gamma_density,
    gammainc_in_a,
)
from plaingrad.rules.scipy.special.normal import bell
from plaingrad.rules.scipy.special.quadrature import kind_of

SHAPES = ((0.6, 2.3, 5.1), (0.4, 2.9, 3.3))
TRIPLES = ((0.6, 2.3, 5.1), (1.4, 0.9, 3.3), (0.2, 0.8, 0.55))
FREEDOMS = ((3.6, 2.3, 5.1), (1.4, 4.9, 3.3), (0.7, 1.8, 0.55))
COUNTS = ((1, 0, 3), (4, 2, 7), (0.2, 0.8, 0.55))


# Gamma and chi squared, Poisson ----------------------------------------------------------------------------------

row("chdtr", SHAPES, lambda m, v, x, z: gammainc_in_a(v / 2, x / 2) / 2, lambda m, v, x, z: gamma_density(v / 2, x / 2) / 2)
row("chdtrc", SHAPES, lambda m, v, x, z: -gammainc_in_a(v / 2, x / 2) / 2,
    lambda m, v, x, z: -gamma_density(v / 2, x / 2) / 2)
row("gdtr", TRIPLES, lambda m, a, b, x, z: x * gamma_density(b, a * x), lambda m, a, b, x, z: gammainc_in_a(b, a * x),
    lambda m, a, b, x, z: a * gamma_density(b, a * x))
row("gdtrc", TRIPLES, lambda m, a, b, x, z: -x * gamma_density(b, a * x), lambda m, a, b, x, z: -gammainc_in_a(b, a * x),
    lambda m, a, b, x, z: -a * gamma_density(b, a * x))
row("pdtr", ((1, 0, 3), (0.7, 1.9, 3.3)), None, lambda m, k, x, z: -gamma_density(np.floor(k) + 1.0, x))
row("pdtrc", ((1, 0, 3), (0.7, 1.9, 3.3)), None, lambda m, k, x, z: gamma_density(np.floor(k) + 1.0, x))


# Beta, binomial, negative binomial, F ---------------------------------------------------------------------------------


def bdtr_slope(k: Any, n: Any, p: Any) -> Any:
    """Of I(1 - p; n - k, k + 1) in p; 0 where k is n, and the sum is 1."""
    k, n = np.floor(k) * 1.0, np.floor(n) * 1.0
    inside = np.less(k, n) & np.greater_equal(k, 0)
    whole = np.equal(k, n)
    density = beta_density(np.where(inside, k + 1, 1.0), np.where(inside, n - k, 1.0), p)
    return np.where(inside, -density, np.where(whole, 0.0, np.nan))[()]


def nbdtr_slope(k: Any, n: Any, p: Any) -> Any:
    """Of I(p; n, k + 1) in p."""
    return beta_density(np.floor(n) * 1.0, np.floor(k) + 1.0, p)


def fdtr_parts(m: Any, n: Any, x: Any) -> tuple[Any, Any, Any]:
    """m x / (n + m x) and its complement, and n + m x."""
    total = n + m * x
    return m * x / total, n / total, total


def fdtr_slopes(m: Any, n: Any, x: Any) -> tuple[Any, Any, Any]:
    """Of I(m x / (n + m x); m / 2, n / 2) in m, n and x."""
    y, _, total = fdtr_parts(m, n, x)
    density = beta_density(m / 2, n / 2, y) / (total * total)
    return (
        betainc_in_a(m / 2, n / 2, y) / 2 + density * n * x,
        betainc_in_b(m / 2, n / 2, y) / 2 - density * m * x,
        density * m * n,
    )


row("btdtr", TRIPLES, lambda m, a, b, x, z: betainc_in_a(a, b, x), lambda m, a, b, x, z: betainc_in_b(a, b, x),
    lambda m, a, b, x, z: beta_density(a, b, x))
row("bdtr", COUNTS, None, None, lambda m, k, n, p, z: bdtr_slope(k, n, p))
row("bdtrc", COUNTS, None, None, lambda m, k, n, p, z: -bdtr_slope(k, n, p))
row("nbdtr", COUNTS, None, None, lambda m, k, n, p, z: nbdtr_slope(k, n, p))
row("nbdtrc", COUNTS, None, None, lambda m, k, n, p, z: -nbdtr_slope(k, n, p))
row("fdtr", FREEDOMS, lambda m, a, b, x, z: fdtr_slopes(a, b, x)[0], lambda m, a, b, x, z: fdtr_slopes(a, b, x)[1],
    lambda m, a, b, x, z: fdtr_slopes(a, b, x)[2])
row("fdtrc", FREEDOMS, lambda m, a, b, x, z: -fdtr_slopes(a, b, x)[0], lambda m, a, b, x, z: -fdtr_slopes(a, b, x)[1],
    lambda m, a, b, x, z: -fdtr_slopes(a, b, x)[2])


# Student's t: the normal distribution with a random scale s, v s^2 being chi squared --------------------------------------

ENDS = 45.0  # exp(-45) is nothing


def scales(v: Any, sharp: Any) -> tuple[Any, Any]:
    """Nodes w = log(s) with an axis of their own, and their distance: trapezoids converge exponentially.

    Args:
        v: the degrees of freedom.
        sharp: how fast the rest of the integrand varies in w.
    """
    r = ENDS / v
    low, high = -(r + 1.2 * np.sqrt(r)), np.log1p(2 * r + 3 * np.sqrt(r)) / 2
    h = np.minimum(0.05, np.minimum(0.5 / np.sqrt(2 * v), 0.6 / (1 + sharp)))
    most = float(np.max((high - low) / h, initial=2.0))
    n = int(min(most, 20000)) + 2
    return low[..., None] + (high - low)[..., None] * np.linspace(0, 1, n), (high - low) / (n - 1)


keep_quiet(scales)


def log_scale_density(w: Any, v: Any) -> Any:
    """The density of log(s)."""
    return np.exp(v * (w - np.expm1(2 * w) / 2) + gauge(v))


def gauge(v: Any) -> Any:
    """log of 2 (v/2)^(v/2) exp(-v/2) / gamma(v/2), for large v by Stirling's series."""
    h = v / 2
    large = np.greater(h, 20)
    r = 1 / np.where(large, h, 20.0)
    q = np.where(large, 20.0, h)
    rest = r / 12 - r**3 / 360 + r**5 / 1260 - r**7 / 1680 + r**9 / 1188
    far = 0.5 * np.log(np.where(large, h, 1.0) / (2 * np.pi)) - rest
    return np.log(2.0) + np.where(large, far, q * np.log(q) - q - sc.gammaln(q))


def score(w: Any, v: Any) -> Any:
    """The derivative of the logarithm of that density in v."""
    h = v / 2
    large = np.greater(h, 20)
    r = 1 / np.where(large, h, 20.0)
    q = np.where(large, 20.0, h)
    far = r / 2 + r**2 / 12 - r**4 / 120 + r**6 / 252 - r**8 / 240 + r**10 / 132
    return np.where(large, far, np.log(q) - sc.psi(q)) / 2 - (np.expm1(2 * w) - 2 * w) / 2


def student_in_freedom(v: Any, t: Any) -> Any:
    """The slope in v of the distribution function, from the tail that t is in."""
    kind = kind_of(v, t)
    v, t = np.broadcast_arrays(np.asarray(v, float), np.asarray(t, float))
    good = np.greater(v, 0.1) & np.less(v, 1e8) & np.isfinite(t)
    u = np.where(good, -np.abs(t), 0.0)
    y = np.where(good, v, 1.0)
    w, h = scales(y, np.minimum(np.abs(u), 30.0))
    c, s = y[..., None], np.exp(w)
    part = sc.ndtr(u[..., None] * s) - sc.ndtr(u)[..., None]
    z = (part * log_scale_density(w, c) * score(w, c)).sum(-1) * h
    end = np.where(np.isinf(t) & np.greater(v, 0), 0.0, np.nan)
    return np.where(good, np.where(np.greater(t, 0), -z, z), end).astype(kind)[()]


def student_density(v: Any, t: Any) -> Any:
    """(1 + t^2 / v)^(-(v + 1)/2) / (sqrt(v) beta(1/2, v/2)), and the normal density for infinite v."""
    whole = np.isinf(v)
    y = np.where(whole, 1.0, v)
    z = np.exp(-(y + 1) / 2 * np.log1p(t * t / y) - student_gauge(y))
    return np.where(whole, bell(t), z)[()]


def student_gauge(v: Any) -> Any:
    """log(sqrt(v) beta(1/2, v/2)); for large v without the difference of logarithms of gamma."""
    large = np.greater(v, 200)
    r = 1 / np.where(large, v, 200.0)
    far = 0.5 * math.log(2 * math.pi) + r / 4 - r**3 / 24 + r**5 / 20 - r**7 * 17 / 112
    q = np.where(large, 200.0, v)
    return np.where(large, far, 0.5 * np.log(q) + sc.betaln(0.5, q / 2))


row("stdtr", ((2.6, 4.3, 11.0), (-0.4, 1.9, 0.3)), lambda m, v, t, z: student_in_freedom(v, t),
    lambda m, v, t, z: student_density(v, t))


# Kolmogorov and Smirnov ----------------------------------------------------------------------------------------------


def kolmogorov_slope(x: Any) -> Any:
    """Of 2 sum (-1)^(k-1) exp(-2 k^2 x^2); for small x of its theta transform (Feller 1948)."""
    low = np.less(x, 0.9)
    none = np.less_equal(x, 0.02)
    y = np.where(low & ~none, x, 0.9)
    w = np.where(low, 0.9, x)
    inside: Any = 0.0
    outside: Any = 0.0
    for k in range(1, 9):
        c = (2 * k - 1) ** 2 * math.pi**2 / 8
        inside = inside - np.exp(-c / (y * y)) * (2 * c / (y * y) - 1) / (y * y)
        outside = outside + (-1) ** k * 8 * k * k * w * np.exp(-2 * k * k * w * w)
    return np.where(none, 0 * x, np.where(low, math.sqrt(2 * math.pi) * inside, outside))[()]


def smirnov_slope(order: int, n: Any, x: Any) -> Any:
    """The derivatives in x of x sum C(n, j) (x + j/n)^(j-1) (1 - x - j/n)^(n-j), for n up to 1000; nan where they cancel."""
    kind = kind_of(n, x)
    n, x = np.broadcast_arrays(np.floor(np.asarray(n, float)), np.asarray(x, float))
    good = (n >= 1) & (n <= 1000) & (x > 0) & (x < 1)
    n, x = np.where(good, n, 1.0)[..., None], np.where(good, x, 0.5)[..., None]
    j = np.arange(int(n.max(initial=1.0)) + 1)
    a = x + j / n
    b = 1 - a
    used = (b > 0) & (j <= n)
    a, b = np.where(used, a, 0.5), np.where(used, b, 0.5)
    i = np.where(used, j, 0)
    term = np.where(used, np.exp(-sc.betaln(n - i + 1, i + 1) - np.log(n + 1) + np.log(x) + (i - 1) * np.log(a) + (n - i) * np.log(b)), 0.0)
    one = 1 / x + (i - 1) / a - (n - i) / b
    two = -1 / x**2 - (i - 1) / a**2 - (n - i) / b**2
    three = 2 / x**3 + 2 * (i - 1) / a**3 - 2 * (n - i) / b**3
    factor = (one, one**2 + two, one**3 + 3 * one * two + three)[order - 1] if order < 4 else np.nan * one
    parts = term * factor
    z = parts.sum(-1)
    good &= np.abs(z) > 1e-5 * np.abs(parts).max(-1)
    return np.where(good, z, np.nan).astype(kind)[()]


row("smirnov_slope", ((1, 2), (4, 7), (0.3, 0.47)), None, None, lambda m, k, n, x, z: smirnov_slope(k + 1, n, x),
    functions=(smirnov_slope,))
_smirnovp = find("_smirnovp")
row("_smirnovp", ((4, 7), (0.3, 0.47)), None, lambda m, n, x, z: smirnov_slope(2, n, x))
row("smirnov", ((4, 7), (0.3, 0.47)), None, lambda m, n, x, z: _smirnovp(n, x) if _smirnovp else smirnov_slope(1, n, x))
row("_smirnovc", ((4, 7), (0.3, 0.47)), None, lambda m, n, x, z: -_smirnovp(n, x) if _smirnovp else -smirnov_slope(1, n, x))
row("kolmogorov", ((0.4, 0.8, 1.7),), lambda m, x, z: kolmogorov_slope(x))


@defined("_kolmogp")
def _kolmogp(x):
    return kolmogorov_slope(np.asarray(x, float))


row("_kolmogc", ((0.4, 0.8, 1.7),), lambda m, x, z: -kolmogorov_slope(x))
