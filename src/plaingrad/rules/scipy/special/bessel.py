"""Bessel functions in argument and order: ordinary, modified, scaled, spherical, Kelvin's, and their integrals.

Slopes in the argument are half sums of neighbours (DLMF 10.6, 10.29), in the order integrals (`orders`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.define import POSITIVE, REAL
from plaingrad.rules.scipy.forms import damped, find, row, several, unknown
from plaingrad.rules.scipy.special.orders import order_slope

ORDERS = ((0.3, 1.7, 4.2), (0.9, 2.4, 1.1))
SHARES = ((1.3, 1.7, 4.2), (0.9, 2.4, 1.1))
WHOLE = ((2, 0, 3), (0.9, 2.4, 1.1))
FAR = 1000.0  # there neighbours of scaled functions differ in their last digits only
FAR_TERMS = 10


def expanded_slope(v: Any, x: Any, sign: int) -> Any:
    """The derivative of the sum of a_k(v) (sign / x)^k / sqrt(x), the expansion of scaled modified functions."""
    total = 0.5 + 0 * x
    term = 1.0 + 0 * x
    for k in range(1, FAR_TERMS):
        term = term * (4 * v * v - (2 * k - 1) ** 2) * sign / (8 * k * x)
        total = total + (k + 0.5) * term
    return -total / (x * np.sqrt(x))


def is_far(v: Any, x: Any) -> Any:
    """Whether the expansion has all digits."""
    return (np.abs(x) > FAR) & np.less(4 * np.multiply(v, v), np.abs(x))


def kve_slope(v: Any, x: Any, z: Any) -> Any:
    """Of exp(x) K."""
    far = is_far(v, x)
    if not np.any(far):
        return z - (sc.kve(v - 1, x) + sc.kve(v + 1, x)) / 2
    y = np.where(far, x, FAR)
    outside = np.sqrt(np.pi / 2) * expanded_slope(np.where(far, v, 0.0), y, 1)
    return np.where(far, outside, z - (sc.kve(v - 1, x) + sc.kve(v + 1, x)) / 2)[()]


def ive_slope(v: Any, x: Any, z: Any) -> Any:
    """Of exp(-|x|) I, x real."""
    far = is_far(v, x)
    if not np.any(far):
        return (sc.ive(v - 1, x) + sc.ive(v + 1, x)) / 2 - np.sign(x) * z
    y = np.where(far, np.abs(x), FAR)
    w = np.where(far, v, 0.0)
    parity = np.where(far, z, 1.0) / np.where(far, sc.ive(w, y), 1.0) * np.where(np.less(x, 0), -1.0, 1.0)
    outside = parity * expanded_slope(w, y, -1) / np.sqrt(2 * np.pi)
    return np.where(far, outside, (sc.ive(v - 1, x) + sc.ive(v + 1, x)) / 2 - np.sign(x) * z)[()]


def hankel_slope(v: Any, x: Any, z: Any, sign: int) -> Any:
    """Of exp(-i x) H1 (sign 1) or exp(i x) H2 (sign -1), far out as a K of the turned argument."""
    f = sc.hankel1e if sign > 0 else sc.hankel2e
    x = x + 0j
    far = is_far(v, x) & (sign * np.imag(x) >= -np.abs(np.real(x))) & (np.real(x) > 0)
    y = np.where(far, -1j * sign * x, FAR)
    outside = expanded_slope(np.where(far, v, 0.0), y, 1) * np.sqrt(np.pi / 2)
    turned = outside * -2 / np.pi * np.exp(-0.5j * np.pi * sign * np.where(far, v, 0.0))
    return np.where(far, turned, (f(v - 1, x) - f(v + 1, x)) / 2 - 1j * sign * z)[()]


def half_difference(f: Any) -> Any:
    """The slope in x of J, Y and H."""
    return lambda m, v, x, z: (f(v - 1, x) - f(v + 1, x)) / 2


def by_order(kind: str) -> Any:
    """The slope in v."""
    return lambda m, v, x, z: order_slope(kind, 1, v, x)


def scaled_order(kind: str, scale: Any) -> Any:
    """The slope in v of a scaled function."""
    return lambda m, v, x, z: order_slope(kind, 1, v, x) * scale(x)


def real_rate(x: Any, x_dot: Any) -> Any:
    """The derivative of |Re x|."""
    return np.sign(np.real(x)) * np.real(x_dot)


def imaginary_rate(x: Any, x_dot: Any) -> Any:
    """The derivative of |Im x|."""
    return np.sign(np.imag(x)) * np.imag(x_dot)


def fading(x: Any) -> Any:
    """exp(-|Im x|)."""
    return np.exp(-np.abs(np.imag(x)))


row("j0", REAL, lambda m, x, z: -sc.j1(x))
row("j1", REAL, lambda m, x, z: (sc.j0(x) - sc.jv(2, x)) / 2)
row("y0", POSITIVE, lambda m, x, z: -sc.y1(x))
row("y1", POSITIVE, lambda m, x, z: (sc.y0(x) - sc.yn(2, x)) / 2)
row("i0", REAL, lambda m, x, z: sc.i1(x))
row("i1", REAL, lambda m, x, z: (sc.i0(x) + sc.iv(2, x)) / 2)
row("k0", POSITIVE, lambda m, x, z: -sc.k1(x))
row("k1", POSITIVE, lambda m, x, z: -(sc.k0(x) + sc.kn(2, x)) / 2)
row("i0e", REAL, lambda m, x, z: ive_slope(0.0, x, z) if np.any(is_far(0.0, x)) else sc.i1e(x) - np.sign(x) * z)
row("i1e", REAL, lambda m, x, z: ive_slope(1.0, x, z))
row("k0e", POSITIVE, lambda m, x, z: kve_slope(0.0, x, z) if np.any(is_far(0.0, x)) else z - sc.k1e(x))
row("k1e", POSITIVE, lambda m, x, z: kve_slope(1.0, x, z))
row("jv", ORDERS, by_order("j"), half_difference(sc.jv))
row("yv", ORDERS, by_order("y"), half_difference(sc.yv))
row("yn", WHOLE, None, half_difference(sc.yv))
row("iv", ORDERS, by_order("i"), lambda m, v, x, z: (sc.iv(v - 1, x) + sc.iv(v + 1, x)) / 2)
row("kv", ORDERS, by_order("k"), lambda m, v, x, z: -(sc.kv(v - 1, x) + sc.kv(v + 1, x)) / 2)
row("kn", WHOLE, None, lambda m, v, x, z: -(sc.kv(v - 1, x) + sc.kv(v + 1, x)) / 2)
row("kve", ORDERS, by_order("ke"), lambda m, v, x, z: kve_slope(v, x, z))
row("hankel1", ORDERS, by_order("h1"), half_difference(sc.hankel1))
row("hankel2", ORDERS, by_order("h2"), half_difference(sc.hankel2))
row("hankel1e", ORDERS, scaled_order("h1", lambda x: np.exp(-1j * x)), lambda m, v, x, z: hankel_slope(v, x, z, 1))
row("hankel2e", ORDERS, scaled_order("h2", lambda x: np.exp(1j * x)), lambda m, v, x, z: hankel_slope(v, x, z, -1))
damped("ive", ORDERS, by_order("ie"), lambda m, v, x, z: (sc.ive(v - 1, x) + sc.ive(v + 1, x)) / 2, real_rate,
       lambda m, v, x, z: ive_slope(v, x, z))
damped("jve", ORDERS, scaled_order("j", fading), half_difference(sc.jve), imaginary_rate, half_difference(sc.jve))
damped("yve", ORDERS, scaled_order("y", fading), half_difference(sc.yve), imaginary_rate, half_difference(sc.yve))
# I_v / I_(v - 1), and 1 less that: Riccati's equation.
row("_iv_ratio", SHARES, unknown("_iv_ratio", 0, "a ratio of Bessel functions in the order"),
    lambda m, v, x, z: 1 - z * z - np.true_divide(2 * v - 1, x) * z)
row("_iv_ratio_c", SHARES, unknown("_iv_ratio_c", 0, "a ratio of Bessel functions in the order"),
    lambda m, v, x, z: np.true_divide(2 * v - 1, x) * (1 - z) - z * (2 - z))
row("besselpoly", ((0.4, 1.3, 0.8), (0.7, 1.2, 2.1), (0.3, 1.0, 2.0)),
    lambda m, a, lmb, nu, z: np.true_divide(sc.jv(nu, 2 * a) - (lmb + 1) * z, a),
    unknown("besselpoly", 1, "a moment of a Bessel function in its exponent"),
    unknown("besselpoly", 2, "a moment of a Bessel function in the order"))


# Spherical: by recurrences without quotients ---------------------------------------------------------------------


def spherical(name: str, below: int, above: int) -> None:
    """Enter one of j, y, i, k and its derivative f': (2n + 1) f' = below n f(n - 1) + above (n + 1) f(n + 1)."""
    f, slope = find(f"_spherical_{name}"), find(f"_spherical_{name}_d")
    if f is None or slope is None:
        return

    def second(m: Any, n: Any, x: Any, z: Any) -> Any:
        n = np.asarray(n)
        lower = slope(np.maximum(n - 1, 0), x)
        return ((below * n * lower + above * (n + 1) * slope(n + 1, x)) / (2 * n + 1))[()]

    row(f"_spherical_{name}", ((2, 0, 3), (0.9, 2.4, 1.1)), None, lambda m, n, x, z: slope(n, x))
    row(f"_spherical_{name}_d", ((2, 0, 3), (0.9, 2.4, 1.1)), None, second)


spherical("jn", 1, -1)
spherical("yn", 1, -1)
spherical("in", 1, 1)
spherical("kn", -1, -1)


# Kelvin's: their equation is f'' = i f - f' / x -------------------------------------------------------------------


def ber_ratio(x: Any) -> Any:
    """berp(x) / x; near 0 by its series."""
    near = np.less(np.abs(x), 1)
    y = np.where(near, x, 0.0)
    return np.where(near, kelvin_series(y, 1), sc.berp(x) / np.where(near, 1.0, x))[()]


def bei_ratio(x: Any) -> Any:
    """beip(x) / x; near 0 by its series."""
    near = np.less(np.abs(x), 1)
    y = np.where(near, x, 0.0)
    return np.where(near, kelvin_series(y, 0), sc.beip(x) / np.where(near, 1.0, x))[()]


def kelvin_series(x: Any, first: int) -> Any:
    """The sum of (-1)^k (n / 2) (x/2)^(2n - 2) / n!^2 for n = 2k (k from 1), or n = 2k + 1, which is first = 0."""
    square = x * x / 4
    total: Any = 0.0
    for k in range(7, first - 1, -1):
        n = 2 * k + 1 - first
        total = total + (-1) ** k * n / 2 / sc.gamma(n + 1.0) ** 2 * square ** (n - 1)
    return total


row("ber", REAL, lambda m, x, z: sc.berp(x))
row("bei", REAL, lambda m, x, z: sc.beip(x))
row("ker", POSITIVE, lambda m, x, z: sc.kerp(x))
row("kei", POSITIVE, lambda m, x, z: sc.keip(x))
row("berp", REAL, lambda m, x, z: -sc.bei(x) - ber_ratio(x))
row("beip", REAL, lambda m, x, z: sc.ber(x) - bei_ratio(x))
row("kerp", POSITIVE, lambda m, x, z: -sc.kei(x) - np.true_divide(z, x))
row("keip", POSITIVE, lambda m, x, z: sc.ker(x) - np.true_divide(z, x))
several("kelvin", POSITIVE, (lambda m, x, z: z[2],), (lambda m, x, z: z[3],),
        (lambda m, x, z: 1j * z[0] - ber_ratio(x) - 1j * bei_ratio(x),),
        (lambda m, x, z: 1j * z[1] - np.true_divide(z[3], x),))
