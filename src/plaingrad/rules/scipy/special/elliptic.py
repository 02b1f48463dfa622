"""Elliptic integrals of Legendre's and of Carlson's form, Jacobi's functions, the arithmetic-geometric mean.

Slopes in the parameter are Carlson's integrals, which have no differences in them (DLMF 19.18, 19.25).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.define import POSITIVE_PAIR
from plaingrad.rules.scipy.forms import row, several
from plaingrad.rules.scipy.special.quadrature import kind_of

MODULI = ((-1.3, 0.2, 0.5, 0.9),)
AMPLITUDES = ((-1.2, 0.6, 2.1, 7.0), (0.7, 0.3, 0.4, -1.1))
TRIPLES = ((0.3, 1.1, 2.4), (0.7, 1.6, 0.2), (1.2, 0.4, 3.0))
QUADRUPLES = (*TRIPLES, (0.9, 2.2, 0.6))
STEP, ENDS = 0.3, 42.0  # trapezoids in log t: their error is exp(-2 pi^2 / step)


def carlson(digits: str, *args: Any) -> Any:
    """The integral over t > 0 of the product of (t + x)^(-n/2), n from `digits`, for x from `args`.

    In log t the integrand falls off exponentially on both sides and is analytic near the axis, so that trapezoids
    converge exponentially. Arguments are in the plane cut along the negative axis, one of them may be 0.
    """
    powers = tuple(map(int, digits))
    kind = kind_of(*args)
    xs = np.broadcast_arrays(*[np.asarray(x) for x in args])
    xs = [x.astype(np.result_type(kind, float))[..., None] for x in xs]
    sizes = np.abs(np.stack(xs))
    low, high = np.where(sizes == 0, np.inf, sizes).min(0), sizes.max(0)
    at_zero = sum(np.where(size == 0, n, 0) for n, size in zip(powers, sizes))
    first = np.log(low) - ENDS / (1 - at_zero / 2)
    last = np.log(high) + ENDS / (sum(powers) / 2 - 1)
    spans = last - first
    if not np.isfinite(spans).any():
        return np.where(np.isfinite(spans), 0.0, np.nan)[..., 0].astype(kind)[()]
    nodes = int(np.nanmax(np.where(np.isfinite(spans), spans, 0.0)) / STEP) + 2
    h = spans / (nodes - 1)
    t = np.exp(first + h * np.arange(nodes))
    total = t
    for n, x in zip(powers, xs):
        total = total * np.power(t + x, -n / 2)
    z = (h * np.where(at_zero >= 2, np.inf, total)).sum(-1)
    for x in xs:
        on_cut = (np.imag(x) == 0) & (np.real(x) < 0)
        z = np.where(on_cut[..., 0], np.nan, z)
    return z.astype(kind)[()]


def carlson_slope(place: int) -> Any:
    """d/dx of (t + x)^(-n/2) is -n/2 (t + x)^(-n/2 - 1)."""

    def slope(m: Any, digits: str, *args: Any) -> Any:
        n = int(digits[place])
        return -n / 2 * carlson(digits[:place] + str(n + 2) + digits[place + 1 :], *args[:-1])

    return slope


row("carlson", (), None, *[carlson_slope(n) for n in range(4)], functions=(carlson,))


NEAR = 0.1  # within that of 0 quotients by m lose digits, and series have all after 16 terms
SQUARES = [math.prod((2 * j - 1) / (2 * j) for j in range(1, k + 1)) ** 2 for k in range(17)]
SECOND_KIND_D = tuple([c * (1 + 1 / (2 * k - 1)) for k, c in enumerate(SQUARES) if k])
FIRST_KIND_SLOPE = tuple([k * c for k, c in enumerate(SQUARES) if k])


def near_zero(coefficients: tuple[float, ...], near: Any, m: Any) -> Any:
    """pi/2 times the power series in m, where `near`."""
    y = np.where(near, m, 0.0)
    total: Any = 0.0
    for c in coefficients[::-1]:
        total = c + y * total
    return np.pi / 2 * total


def second_kind_d(m: Any) -> Any:
    """(K - E) / m, the integral of sin^2 / sqrt(1 - m sin^2) over a quarter (DLMF 19.5)."""
    near = np.less(np.abs(m), NEAR)
    y = np.where(near, 1.0, m)
    series = near_zero(SECOND_KIND_D, near, m)
    x = np.where(near, 0.5, m)
    return np.where(near, series, (sc.ellipk(x) - sc.ellipe(x)) / y)[()]


def ellipk_slope(m: Any, rest: Any, z: Any) -> Any:
    """(E - (1 - m) K) / (2 m (1 - m)); `rest` is 1 - m."""
    near = np.less(np.abs(m), NEAR)
    if not np.any(near):
        return np.true_divide(sc.ellipe(1 - rest) - rest * z, 2 * m * rest)
    series = near_zero(FIRST_KIND_SLOPE, near, m)
    y, r = np.where(near, 0.5, m), np.where(near, 0.5, rest)
    return np.where(near, series, np.true_divide(sc.ellipe(1 - r) - r * z, 2 * y * r))[()]


def folded(phi: Any) -> tuple[Any, Any, Any]:
    """How many half turns are in an amplitude, and the sine and the squared cosine of what is left."""
    turns = np.rint(phi / np.pi)
    rest = phi - turns * np.pi
    return turns, np.sin(rest), np.cos(rest) ** 2


def ellipkinc_slope(phi: Any, m: Any) -> Any:
    """Half the integral of sin^2 / (1 - m sin^2)^(3/2)."""
    turns, s, c = folded(phi)
    part = s**3 * sc.elliprd(c, 1.0, 1 - m * s * s) / 6
    whole = ellipk_slope(m, 1 - m, sc.ellipk(m))
    return np.where(turns == 0, part, part + 2 * turns * np.where(turns == 0, 0.0, whole))[()]


def ellipeinc_slope(phi: Any, m: Any) -> Any:
    """Minus half the integral of sin^2 / sqrt(1 - m sin^2)."""
    turns, s, c = folded(phi)
    return -(s**3 * sc.elliprd(c, 1 - m * s * s, 1.0) / 3 + 2 * turns * second_kind_d(m)) / 2


def amplitude_slope(m: Any, z: Any) -> Any:
    """How the amplitude moves with the parameter while u stays: u = F(amplitude, m)."""
    return -ellipkinc_slope(z[3], m) * z[2]


def agm_slope(x: Any, y: Any, z: Any) -> Any:
    """The derivative of the arithmetic-geometric mean in y, where 2 K(1 - (y/x)^2) agm(x, y) = pi x."""
    rest = np.true_divide(y, x) ** 2
    k = sc.ellipkm1(rest)
    return z * np.true_divide(k - sc.elliprd(0.0, rest, 1.0) / 3, y * k)


def elliprc_slopes(x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    """Integrals, or for negative y, where z is a principal value, the differential equation."""
    if np.iscomplexobj(z):
        return -sc.elliprd(y, y, x) / 6, -sc.elliprd(x, y, y) / 3
    negative = np.less(y, 0)
    a = np.where(negative, y, -1.0)
    in_x = (z - 1 / np.sqrt(x)) / (2 * (a - x))
    v = np.where(negative, 1.0, y)
    return (
        np.where(negative, in_x, -sc.elliprd(v, v, x) / 6)[()],
        np.where(negative, -(z / 2 + x * in_x) / a, -sc.elliprd(x, v, v) / 3)[()],
    )


def elliprg_slope(x: Any, y: Any, w: Any) -> Any:
    """The derivative in x: a quarter of RF(x, y, w) - x RD(y, w, x) / 3."""
    zero = np.equal(x, 0)
    return (sc.elliprf(x, y, w) - np.where(zero, 0.0, x * sc.elliprd(y, w, np.where(zero, 1.0, x))) / 3) / 4


row("ellipk", MODULI, lambda m, x, z: ellipk_slope(x, 1 - x, z))
row("ellipkm1", ((0.1, 0.4, 0.9, 1.7),), lambda m, x, z: -ellipk_slope(1 - x, x, z))
row("ellipe", MODULI, lambda m, x, z: -second_kind_d(x) / 2)
row("ellipkinc", AMPLITUDES, lambda m, phi, x, z: np.true_divide(1, np.sqrt(1 - x * np.sin(phi) ** 2)),
    lambda m, phi, x, z: ellipkinc_slope(phi, x))
row("ellipeinc", AMPLITUDES, lambda m, phi, x, z: np.sqrt(1 - x * np.sin(phi) ** 2),
    lambda m, phi, x, z: ellipeinc_slope(phi, x))
several("ellipj", ((-1.2, 0.6, 2.1, 7.0), (0.7, 0.3, 0.4, 0.1)),
        (lambda m, u, x, z: z[1] * z[2], lambda m, u, x, z: z[1] * amplitude_slope(x, z)),
        (lambda m, u, x, z: -z[0] * z[2], lambda m, u, x, z: -z[0] * amplitude_slope(x, z)),
        (lambda m, u, x, z: -x * z[0] * z[1],
         lambda m, u, x, z: -z[0] * (z[0] / 2 + x * z[1] * amplitude_slope(x, z)) / z[2]),
        (lambda m, u, x, z: z[2], lambda m, u, x, z: amplitude_slope(x, z)))
row("agm", POSITIVE_PAIR, lambda m, x, y, z: agm_slope(y, x, z), lambda m, x, y, z: agm_slope(x, y, z))
row("elliprc", POSITIVE_PAIR, lambda m, x, y, z: elliprc_slopes(x, y, z)[0],
    lambda m, x, y, z: elliprc_slopes(x, y, z)[1])
row("elliprf", TRIPLES, lambda m, x, y, w, z: -sc.elliprd(y, w, x) / 6, lambda m, x, y, w, z: -sc.elliprd(x, w, y) / 6,
    lambda m, x, y, w, z: -sc.elliprd(x, y, w) / 6)
row("elliprg", TRIPLES, lambda m, x, y, w, z: elliprg_slope(x, y, w), lambda m, x, y, w, z: elliprg_slope(y, w, x),
    lambda m, x, y, w, z: elliprg_slope(w, x, y))
row("elliprd", TRIPLES, lambda m, x, y, w, z: -0.75 * carlson("313", x, y, w),
    lambda m, x, y, w, z: -0.75 * carlson("133", x, y, w), lambda m, x, y, w, z: -2.25 * carlson("115", x, y, w))
row("elliprj", QUADRUPLES, lambda m, x, y, w, p, z: -0.75 * carlson("3112", x, y, w, p),
    lambda m, x, y, w, p, z: -0.75 * carlson("1312", x, y, w, p),
    lambda m, x, y, w, p, z: -0.75 * carlson("1132", x, y, w, p),
    lambda m, x, y, w, p, z: -1.5 * carlson("1114", x, y, w, p))
