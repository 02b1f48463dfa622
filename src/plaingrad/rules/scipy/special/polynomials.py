"""Orthogonal polynomials and Legendre functions, in the argument, in their parameters, and in real degrees.

The derivative of a Jacobi polynomial is one of degree n - 1 with parameters one higher (DLMF 18.9); all others are
Jacobi's, or limits of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rules.scipy.forms import row
from plaingrad.rules.scipy.special.hypergeometric import hyp1f1_slope, hyp2f1_slope

MOST_DEGREE = 500  # of a sum of polynomials
DEGREES = ((2, 3, 0), (0.3, -0.6, 0.8))
WITH_ONE = ((2, 3, 0), (0.7, 1.6, 2.8), (0.3, -0.6, 0.8))
WITH_TWO = ((2, 3, 0), (0.7, 1.6, 2.8), (1.3, 0.4, 0.8), (0.3, -0.6, 0.8))


def less(n: Any) -> Any:
    """n - 1, and 0 where n is 0."""
    return np.where(np.equal(n, 0), 1, n) - 1


def lowered(factor: Any, n: Any, below: Any) -> Any:
    """factor times the polynomial `below` of degree n - 1, and 0 where n is 0."""
    return np.where(np.equal(n, 0), 0.0, factor * below)[()]


def first_kind_in_degree(n: Any, x: Any) -> Any:
    """Chebyshev's polynomials are cos(n theta), or cosh; the slope in n, for x >= -1."""
    inside = np.less_equal(np.abs(x), 1)
    theta = np.arccos(np.where(inside, x, 0.5))
    t = np.arccosh(np.where(np.greater(x, 1), x, 2.0))
    beyond = np.where(np.greater(x, 1), t * np.sinh(n * t), np.nan)
    return np.where(inside, -theta * np.sin(n * theta), beyond)[()]


def second_kind_in_degree(n: Any, x: Any) -> Any:
    """sin((n + 1) theta) / sin(theta); the slope in n, for x > -1."""
    inside = np.less(np.abs(x), 1)
    theta = np.arccos(np.where(inside, x, 0.5))
    t = np.arccosh(np.where(np.greater(x, 1), x, 2.0))
    beyond = np.where(np.greater(x, 1), t * np.cosh((n + 1) * t) / np.sinh(t), np.where(np.equal(x, 1), 1.0, np.nan))
    return np.where(inside, theta * np.cos((n + 1) * theta) / np.sin(theta), beyond)[()]


def jacobi_slopes(n: Any, a: Any, b: Any, x: Any, z: Any) -> tuple[Any, Any, Any]:
    """In n, a and b of binom(n + a, n) 2F1(-n, n + a + b + 1; a + 1; (1 - x) / 2)."""
    u = (1 - x) / 2
    size = sc.binom(n + a, n)
    c = a + 1.0
    in_a, in_b, in_c = [size * hyp2f1_slope(k, -1.0 * n, n + a + b + 1.0, c, u) for k in range(3)]
    first = z * (sc.psi(n + c) - sc.psi(n + 1.0)) - in_a + in_b
    return first, z * (sc.psi(n + c) - sc.psi(c)) + in_b + in_c, in_b


def jacobi_in_parameter(place: int, n: Any, a: Any, b: Any, x: Any, z: Any) -> Any:
    """In a (1) or b (2); a polynomial of whole degree is mirrored to x >= 0, where nothing cancels."""
    mirrored = np.less(x, 0) & np.equal(n, np.rint(n))
    sign = np.where(mirrored, np.where(np.equal(np.remainder(n, 2), 0), 1.0, -1.0), 1.0)
    p, q, y = np.where(mirrored, b, a), np.where(mirrored, a, b), np.where(mirrored, -x, x)
    slopes = jacobi_slopes(n, p, q, y, sign * z)
    return np.where(np.equal(n, 0), 0.0, sign * np.where(mirrored, slopes[3 - place], slopes[place]))[()]


def gegenbauer_in_parameter(n: Any, a: Any, x: Any, z: Any) -> Any:
    """gamma(n + 2a) / (n! gamma(2a)) 2F1(-n, n + 2a; a + 1/2; (1 - x) / 2)."""
    mirrored = np.less(x, 0) & np.equal(n, np.rint(n))
    sign = np.where(mirrored & np.not_equal(np.remainder(n, 2), 0), -1.0, 1.0)
    u = (1 - np.where(mirrored, -x, x)) / 2
    size = sc.poch(2 * a, n) / sc.gamma(n + 1.0)
    arguments = (-1.0 * n, n + 2.0 * a, a + 0.5, u)
    inner = 2 * hyp2f1_slope(1, *arguments) + hyp2f1_slope(2, *arguments)
    whole = z * 2 * (sc.psi(n + 2.0 * a) - sc.psi(2.0 * a)) + sign * size * inner
    return np.where(np.equal(n, 0), 0.0, whole)[()]


def gegenbauer_in_degree(n: Any, a: Any, x: Any, z: Any) -> Any:
    """The same in n."""
    size = sc.poch(2 * a, n) / sc.gamma(n + 1.0)
    arguments = (-1.0 * n, n + 2.0 * a, a + 0.5, (1 - x) / 2)
    inner = hyp2f1_slope(1, *arguments) - hyp2f1_slope(0, *arguments)
    return (z * (sc.psi(n + 2.0 * a) - sc.psi(n + 1.0)) + size * inner)[()]


def laguerre_in_degree(n: Any, a: Any, x: Any, z: Any) -> Any:
    """binom(n + a, n) 1F1(-n; a + 1; x)."""
    return z * (sc.psi(n + a + 1.0) - sc.psi(n + 1.0)) - sc.binom(n + a, n) * hyp1f1_slope(0, -1.0 * n, a + 1.0, x)


def laguerre_in_parameter(n: Any, a: Any, x: Any, z: Any) -> Any:
    """The same in a; for whole degrees a sum of polynomials of lower degree, L(k) / (n - k)."""
    whole = np.equal(n, np.rint(n)) & np.greater_equal(n, 0) & np.less_equal(n, MOST_DEGREE)
    general = z * (sc.psi(n + a + 1.0) - sc.psi(a + 1.0)) + sc.binom(n + a, n) * hyp1f1_slope(1, -1.0 * n, a + 1.0, x)
    total: Any = 0.0
    for k in range(int(np.max(np.where(whole, n, 0), initial=0))):
        below = np.less(k, n)
        total = total + np.where(below, sc.eval_genlaguerre(k, a, x) / np.where(below, n - k, 1.0), 0.0)
    return np.where(whole, total, general)[()]


def shifted_jacobi(place: int, n: Any, p: Any, q: Any, x: Any, z: Any) -> Any:
    """Jacobi's with a = p - q and b = q - 1 at 2x - 1, over binom(2n + p - 1, n); in p (1) or q (2)."""
    a, b, y = p - q, q - 1.0, 2 * x - 1
    size = sc.binom(2 * n + p - 1.0, n)
    in_a = jacobi_in_parameter(1, n, a, b, y, z * size) / size
    if place == 2:
        return jacobi_in_parameter(2, n, a, b, y, z * size) / size - in_a
    return in_a - z * (sc.psi(2 * n + p * 1.0) - sc.psi(n + p * 1.0))


def legendre_function_in_degree(m: Any, v: Any, x: Any) -> Any:
    """Of (-1)^m (1 - x^2)^(m/2) gamma(v + m + 1) / (2^m m! gamma(v - m + 1)) 2F1(m - v, m + v + 1; m + 1; (1 - x)/2)."""
    m = np.multiply(m, 1.0)
    good = np.greater_equal(m, 0) & np.greater(v - m, -0.5) & np.less(np.abs(x), 1)
    w, y, k = np.where(good, v, 1.0), np.where(good, x, 0.5), np.where(good, m, 0.0)
    size = np.where(np.equal(np.remainder(k, 2), 0), 1.0, -1.0) * (1 - y * y) ** (k / 2)
    size = size * sc.poch(w - k + 1.0, 2 * k) / (2.0**k * sc.gamma(k + 1.0))
    arguments = (k - w, k + w + 1.0, k + 1.0, (1 - y) / 2)
    inner = hyp2f1_slope(1, *arguments) - hyp2f1_slope(0, *arguments)
    rise = sc.psi(w + k + 1.0) - sc.psi(w - k + 1.0)
    return np.where(good, size * (rise * sc.hyp2f1(*arguments) + inner), np.nan)[()]


row("eval_jacobi", WITH_TWO, lambda m, n, a, b, x, z: jacobi_slopes(n, a, b, x, z)[0],
    lambda m, n, a, b, x, z: jacobi_in_parameter(1, n, a, b, x, z),
    lambda m, n, a, b, x, z: jacobi_in_parameter(2, n, a, b, x, z),
    lambda m, n, a, b, x, z: lowered((n + a + b + 1) / 2, n, sc.eval_jacobi(less(n), a + 1, b + 1, x)))
row("eval_sh_jacobi", ((2, 3, 0), (2.7, 2.6, 2.8), (1.3, 0.4, 0.8), (0.3, 0.6, 0.8)), None,
    lambda m, n, p, q, x, z: shifted_jacobi(1, n, p, q, x, z), lambda m, n, p, q, x, z: shifted_jacobi(2, n, p, q, x, z),
    lambda m, n, p, q, x, z: lowered((n + p) / sc.binom(2 * n + p - 1.0, n), n, sc.eval_jacobi(less(n), p - q + 1, q * 1.0, 2 * x - 1)))
row("eval_gegenbauer", WITH_ONE, lambda m, n, a, x, z: gegenbauer_in_degree(n, a, x, z),
    lambda m, n, a, x, z: gegenbauer_in_parameter(n, a, x, z),
    lambda m, n, a, x, z: lowered(2 * a, n, sc.eval_gegenbauer(less(n), a + 1, x)))
row("eval_legendre", DEGREES, lambda m, n, x, z: jacobi_slopes(n, 0.0, 0.0, x, z)[0],
    lambda m, n, x, z: lowered((n + 1) / 2, n, sc.eval_jacobi(less(n), 1.0, 1.0, x)))
row("eval_sh_legendre", ((2, 3, 0), (0.3, 0.6, 0.8)), lambda m, n, x, z: jacobi_slopes(n, 0.0, 0.0, 2 * x - 1, z)[0],
    lambda m, n, x, z: lowered(n + 1.0, n, sc.eval_jacobi(less(n), 1.0, 1.0, 2 * x - 1)))
row("eval_chebyt", DEGREES, lambda m, n, x, z: first_kind_in_degree(n, x),
    lambda m, n, x, z: lowered(n, n, sc.eval_chebyu(less(n), x)))
row("eval_sh_chebyt", ((2, 3, 0), (0.3, 0.6, 0.8)), lambda m, n, x, z: first_kind_in_degree(n, 2 * x - 1),
    lambda m, n, x, z: lowered(2 * n, n, sc.eval_chebyu(less(n), 2 * x - 1)))
row("eval_chebyc", DEGREES, lambda m, n, x, z: 2 * first_kind_in_degree(n, x / 2),
    lambda m, n, x, z: lowered(n, n, sc.eval_chebyu(less(n), x / 2)))
row("eval_chebyu", DEGREES, lambda m, n, x, z: second_kind_in_degree(n, x),
    lambda m, n, x, z: lowered(2.0, n, sc.eval_gegenbauer(less(n), 2.0, x)))
row("eval_sh_chebyu", ((2, 3, 0), (0.3, 0.6, 0.8)), lambda m, n, x, z: second_kind_in_degree(n, 2 * x - 1),
    lambda m, n, x, z: lowered(4.0, n, sc.eval_gegenbauer(less(n), 2.0, 2 * x - 1)))
row("eval_chebys", DEGREES, lambda m, n, x, z: second_kind_in_degree(n, x / 2),
    lambda m, n, x, z: lowered(1.0, n, sc.eval_gegenbauer(less(n), 2.0, x / 2)))
row("eval_laguerre", DEGREES, lambda m, n, x, z: laguerre_in_degree(n, 0.0, x, z),
    lambda m, n, x, z: lowered(-1.0, n, sc.eval_genlaguerre(less(n), 1.0, x)))
row("eval_genlaguerre", WITH_ONE, lambda m, n, a, x, z: laguerre_in_degree(n, a, x, z),
    lambda m, n, a, x, z: laguerre_in_parameter(n, a, x, z),
    lambda m, n, a, x, z: lowered(-1.0, n, sc.eval_genlaguerre(less(n), a + 1, x)))
row("eval_hermite", DEGREES, None, lambda m, n, x, z: lowered(2 * n, n, sc.eval_hermite(less(n), x)))
row("eval_hermitenorm", DEGREES, None, lambda m, n, x, z: lowered(n, n, sc.eval_hermitenorm(less(n), x)))
row("lpmv", ((0, 1, 2), (2.3, 3.0, 2.0), (0.3, -0.6, 0.8)), None, lambda m, k, v, x, z: legendre_function_in_degree(k, v, x),
    lambda m, k, v, x, z: np.true_divide(v * x * z - (v + k) * sc.lpmv(k, v - 1, x), x * x - 1))


def sph_harm_slope(m: Any, n: Any, theta: Any, phi: Any, z: Any) -> Any:
    """In the polar angle phi: m cot(phi) Y + sqrt((n - m) (n + m + 1)) exp(-i theta) Y(m + 1)."""
    last = np.greater_equal(m, n)
    above = sc.sph_harm(np.where(last, m, m + 1), n, theta, phi)
    climb = np.where(last, 0.0, np.sqrt(np.where(last, 0, (n - m) * (n + m + 1.0))))
    return (m * z / np.tan(phi) + climb * np.exp(-1j * theta) * above)[()]


# In SciPy before 1.17; the azimuth is the first angle.
row("sph_harm", ((1, 0, 2), (2, 3, 2), (0.4, 1.3, 2.2), (0.9, 0.3, 1.7)), None, None,
    lambda m_, m, n, theta, phi, z: 1j * m * z, lambda m_, m, n, theta, phi, z: sph_harm_slope(m, n, theta, phi, z))
