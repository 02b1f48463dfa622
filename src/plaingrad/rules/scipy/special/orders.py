"""Derivatives of Bessel functions in their order, by contour integrals (Watson, chapter 6; DLMF 10.9, 10.32).

J, I and K of real arguments have faster sums where these hold (`order_sums`). For the rest:
the order stands in the exponent of the integrals only, exp(-v t), so that the n-th derivative has a factor (-t)^n.
Contours go through the saddle point, where the integrand is as large as the result, and no digit is lost to cancellation.
Orders up to 300 in size, arguments up to 2000, farther out where Hankel's expansion holds; elsewhere nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.rules.scipy.forms import row
from plaingrad.rules.scipy.special import order_sums
from plaingrad.rules.scipy.special.quadrature import kind_of, over_half_line

MOST_ORDER, MOST_ARGUMENT = 300.0, 2000.0
EXPANDED_FROM = 40.0  # there Hankel's expansion has all digits, for orders up to the root of the argument
EXPANSION_TERMS = 30
DEEP = 45.0
BLOCK = 8192  # numbers at a time for sums
OF_NODES = 400  # numbers at a time where each has a row of nodes
FEW = 32  # numbers up to which integrals take less time than power series
CONTOUR_NODES = 400
LEGENDRE: dict[int, Any] = {}


def order_slope(kind: str, n: int, v: Any, x: Any) -> Any:
    """The n-th derivative in v of the Bessel function `kind` ("j", "y", "i", "k", "h1", "h2"; "ie", "ke" scaled)."""
    result = kind_of(v, x)
    if kind in ("h1", "h2"):
        result = np.result_type(result, np.complex64)
    v, x = np.broadcast_arrays(np.asarray(v, float), np.asarray(x, np.result_type(x, float)))
    shape = v.shape
    v, x = v.ravel(), x.ravel()
    evaluate = COMPLEX[kind] if x.dtype.kind == "c" or kind in ("h1", "h2") else REAL[kind]
    good = np.isfinite(v) & np.isfinite(x) & (x != 0) & (np.abs(v) <= MOST_ORDER)
    if evaluate is REAL.get(kind):
        good &= x > 0
    expanded = (np.abs(x) >= EXPANDED_FROM) & (v * v <= np.abs(x))
    good &= expanded | (np.abs(x) <= MOST_ARGUMENT)
    z = np.full(v.size, np.nan, result if result.kind == "c" else float)
    block = BLOCK if kind in SUMMED and evaluate is REAL[kind] else OF_NODES
    with np.errstate(all="ignore"):
        for part in np.array_split(np.flatnonzero(good), max(1, -(-v.size // block))):
            if part.size:
                z[part] = evaluate(n, v[part], x[part])
    return np.reshape(z, shape).astype(result)[()]


def nodes(n: int) -> Any:
    """Gauss and Legendre's rule on [0, pi] with n nodes."""
    if n not in LEGENDRE:
        t, w = np.polynomial.legendre.leggauss(n)
        LEGENDRE[n] = (t + 1) * np.pi / 2, w * np.pi / 2
    return LEGENDRE[n]


def enough(v: Any, x: Any) -> int:
    """How many nodes follow the oscillations; one of a few numbers, since rules are kept."""
    size = float(np.max(np.maximum(np.abs(v), np.abs(x)), initial=0.0))
    return 64 * (1 + math.ceil((0.75 * size + 10) / 64))


def upright(n: int, v: Any, exponent: Callable[[Any], Any], at: Any, x: Any) -> Any:
    """The integral over theta from 0 to pi of (-t)^n exp(exponent(t) - v t), t = at + i theta."""
    theta, weights = nodes(enough(v, x))
    t = at[:, None] + 1j * theta
    return ((-t) ** n * np.exp(exponent(t) - v[:, None] * t)) @ weights


def flat(n: int, v: Any, x: Any, at: Any, shift: complex, cosh: bool) -> Any:
    """The integral over s > at of (-t)^n exp(-v t - x sinh s), or with cosh; t = s + shift, y = x (sinh s - sinh at)."""
    r = np.real(x)
    base = np.cosh(at) if cosh else np.sinh(at)
    end = DEEP + 4 * np.abs(v) + 10

    def integrand(y: Any, r: Any, v: Any, x: Any, base: Any) -> Any:
        u = base + y / r
        if cosh:
            rise = y / r
            fall = np.sqrt((base - 1 + rise) * (u + 1))  # sinh s
            s = np.log1p(base - 1 + rise + fall)
        else:
            fall = np.sqrt(1 + u * u)
            s = np.arcsinh(u)
        t = s + shift
        return (-t) ** n * np.exp(-v * t - x / r * y - x * base) / (r * fall)

    return over_half_line(integrand, np.ones_like(r), end, r, v, x, base)


def bessel_j(n: int, v: Any, x: Any) -> Any:
    """Schlaefli's integral, with the upright part through the saddle at cosh(t) = v / x where v > x > 0."""
    at = np.arccosh(np.maximum(v / np.abs(x), 1.0))
    if x.dtype.kind != "c":
        around = np.real(upright(n, v, lambda t: x[:, None] * np.sinh(t), at, x))
        return (around + np.imag(flat(n, v, x, at, 1j * np.pi, False))) / np.pi
    around = upright(n, v, lambda t: x[:, None] * np.sinh(t), at, x)
    below = np.conj(upright(n, v, lambda t: np.conj(x)[:, None] * np.sinh(t), at, x))
    difference = flat(n, v, x, at, 1j * np.pi, False) - flat(n, v, x, at, -1j * np.pi, False)
    return (around + below - 1j * difference) / (2 * np.pi)


def bessel_y(n: int, v: Any, x: Any) -> Any:
    """Like Schlaefli's integral (DLMF 10.9.7)."""
    zero = np.zeros_like(v)
    if x.dtype.kind != "c":
        around = np.imag(upright(n, v, lambda t: x[:, None] * np.sinh(t), zero, x))
        turned = np.real(flat(n, v, x, zero, 1j * np.pi, False))
    else:
        up = upright(n, v, lambda t: x[:, None] * np.sinh(t), zero, x)
        down = np.conj(upright(n, v, lambda t: np.conj(x)[:, None] * np.sinh(t), zero, x))
        around = (up - down) / 2j
        turned = (flat(n, v, x, zero, 1j * np.pi, False) + flat(n, v, x, zero, -1j * np.pi, False)) / 2
    growing = (-1) ** n * flat(n, -v, x, zero, 0.0, False)
    return (around - growing - turned) / np.pi


def bessel_ie(n: int, v: Any, x: Any) -> Any:
    """exp(-Re x) times the derivative of I, by the integral with cosh, through the saddle at sinh(t) = v / x."""
    at = np.arcsinh(np.maximum(v / np.abs(x), 0.0))
    r = np.real(x)
    up = upright(n, v, lambda t: x[:, None] * np.cosh(t) - r[:, None], at, x)
    if x.dtype.kind != "c":
        return (np.real(up) + np.exp(-r) * np.imag(flat(n, v, x, at, 1j * np.pi, True))) / np.pi
    down = np.conj(upright(n, v, lambda t: np.conj(x)[:, None] * np.cosh(t) - r[:, None], at, x))
    difference = flat(n, v, x, at, 1j * np.pi, True) - flat(n, v, x, at, -1j * np.pi, True)
    return (up + down - 1j * np.exp(-r) * difference) / (2 * np.pi)


def bessel_ke(n: int, v: Any, x: Any) -> Any:
    """exp(x) times the derivative of K: the integral of t^n exp(-x (cosh(t) - 1)) times cosh or sinh of v t."""
    end = DEEP + 4 * np.abs(v) + 10

    def integrand(y: Any, v: Any, x: Any) -> Any:  # y = x (cosh(t) - 1)
        rise = y / x
        fall = np.sqrt(rise * (rise + 2))
        t = np.log1p(rise + fall)
        both = np.exp(v * t - y) + (-1) ** n * np.exp(-v * t - y)
        return t**n * both / (2 * x * fall)

    return over_half_line(integrand, np.ones_like(x), end, v, x)


# Far out ---------------------------------------------------------------------------------------------------------


def hankel_series(n: int, v: Any, x: Any) -> list[Any]:
    """The derivatives of order 0 to n in v of the sum of a_k(v) / x^k (DLMF 10.17.1), cut where it is smallest."""
    four = [4 * v * v, 8 * v, 8.0 + 0 * v]
    jet = [1.0 + 0 * x] + [0 * x] * n
    totals = list(jet)
    size = np.ones(np.shape(x))
    for k in range(1, EXPANSION_TERMS):
        factor = [(four[j] if j < 3 else 0 * v) - ((2 * k - 1) ** 2 if j == 0 else 0) for j in range(n + 1)]
        jet = [
            sum(math.comb(m, j) * factor[j] * jet[m - j] for j in range(min(m, 2) + 1)) / (8 * k * x)
            for m in range(n + 1)
        ]
        smaller = np.abs(jet[0]) + np.abs(jet[n]) < 4 * size
        jet = [np.where(smaller, part, 0.0) for part in jet]
        size = np.where(smaller, np.abs(jet[0]) + np.abs(jet[n]), 0.0)
        totals = [total + part for total, part in zip(totals, jet)]
    return totals


def far_hankel(n: int, v: Any, x: Any, sign: int) -> Any:
    """H1 (sign 1) or H2 (sign -1) by Hankel's expansion (DLMF 10.17.5)."""
    phase = np.exp(1j * sign * (x - np.pi / 4)) * np.exp(-0.5j * sign * np.pi * v)
    return leibniz(n, -0.5j * sign * np.pi, hankel_series(n, v, -1j * sign * x)[: n + 1]) * phase * np.sqrt(2 / (np.pi * x))


def far_ke(n: int, v: Any, x: Any) -> Any:
    """exp(x) K by its expansion (DLMF 10.40.2)."""
    return hankel_series(n, v, x)[n] * np.sqrt(np.pi / (2 * x))


def far_ie(n: int, v: Any, x: Any) -> Any:
    """exp(-Re x) I by its expansion (DLMF 10.40.1); what it leaves out is exp(-2 x) of it."""
    return hankel_series(n, v, -x)[n] / np.sqrt(2 * np.pi * x) * np.exp(1j * np.imag(x) if x.dtype.kind == "c" else 0.0)


def leibniz(n: int, c: complex, parts: list[Any]) -> Any:
    """exp(-c v) d^n/dv^n of exp(c v) F(v), for the derivatives of F."""
    return sum(math.comb(n, k) * c ** (n - k) * parts[k] for k in range(n + 1))


def turned(kind: Callable[..., Any], c: complex, n: int, v: Any, x: Any) -> Any:
    """d^n/dv^n of exp(c v) kind(v, x)."""
    return leibniz(n, c, [kind(k, v, x) for k in range(n + 1)]) * np.exp(c * v)


# By where the argument is ----------------------------------------------------------------------------------------


def near_or_far(near: Callable[..., Any], far: Callable[..., Any]) -> Callable[..., Any]:
    """`far` where Hankel's expansion holds, else `near`."""

    def evaluate(n: int, v: Any, x: Any) -> Any:
        return chosen(
            [((np.abs(x) >= EXPANDED_FROM) & (v * v <= np.abs(x)), far), (np.ones(v.size, bool), near)], n, v, x
        )

    return evaluate


def chosen(cases: list[tuple[Any, Callable[..., Any]]], n: int, v: Any, x: Any) -> Any:
    """For each element the first of the cases that is true of it."""
    z = np.zeros(v.size, np.result_type(x, float))
    rest = np.ones(v.size, bool)
    for condition, evaluate in cases:
        now = condition & rest
        rest &= ~condition
        if now.any():
            part = np.asarray(evaluate(n, v[now], x[now]))
            z = z.astype(np.result_type(z, part), copy=False)
            z[now] = part
    return z


def in_parts(near: Callable[..., Any]) -> Callable[..., Any]:
    """`near` of some numbers at a time: each has a row of nodes."""

    def evaluate(n: int, v: Any, x: Any) -> Any:
        count = -(-v.size // OF_NODES)
        return np.concatenate([near(n, *part) for part in zip(np.array_split(v, count), np.array_split(x, count))])

    return evaluate


def summed_or(holds: Callable[..., Any], summed: Callable[..., Any], near: Callable[..., Any]) -> Callable[..., Any]:
    """`summed` where that holds and there are many, else `near`."""

    def evaluate(n: int, v: Any, x: Any) -> Any:
        if v.size < FEW:
            return near(n, v, x)
        return chosen([(holds(v, x), summed), (np.ones(v.size, bool), in_parts(near))], n, v, x)

    return evaluate


real_j = summed_or(
    order_sums.series_holds_j,
    order_sums.summed_j,
    near_or_far(bessel_j, lambda n, v, x: np.real(far_hankel(n, v, x, 1))),
)
real_y = near_or_far(bessel_y, lambda n, v, x: np.imag(far_hankel(n, v, x, 1)))
right_j = near_or_far(bessel_j, lambda n, v, x: (far_hankel(n, v, x, 1) + far_hankel(n, v, x, -1)) / 2)
right_ie = near_or_far(bessel_ie, far_ie)
real_ie = summed_or(order_sums.series_holds_i, order_sums.summed_ie, right_ie)
real_ke = summed_or(order_sums.trapezoids_hold, order_sums.trapezoids_ke, near_or_far(bessel_ke, far_ke))


def right_i(n: int, v: Any, x: Any) -> Any:
    """I where the argument is near the positive axis."""
    return right_ie(n, v, x) * np.exp(np.real(x))


def complex_i(n: int, v: Any, x: Any) -> Any:
    """I everywhere: near the imaginary axis it is J turned."""
    a, b = np.real(x), np.imag(x)
    return chosen(
        [
            (a >= np.abs(b), right_i),
            ((b >= np.abs(a)), lambda n, v, x: turned(right_j, 0.5j * np.pi, n, v, -1j * x)),
            ((b <= -np.abs(a)), lambda n, v, x: turned(right_j, -0.5j * np.pi, n, v, 1j * x)),
            (b >= 0, lambda n, v, x: turned(right_i, 1j * np.pi, n, v, -x)),
            (b < 0, lambda n, v, x: turned(right_i, -1j * np.pi, n, v, -x)),
        ],
        n, v, x,
    )  # fmt: skip


def complex_j(n: int, v: Any, x: Any) -> Any:
    """J everywhere: near the imaginary axis it is I turned."""
    a, b = np.real(x), np.imag(x)
    return chosen(
        [
            (a >= np.abs(b), right_j),
            ((b >= np.abs(a)), lambda n, v, x: turned(right_i, 0.5j * np.pi, n, v, -1j * x)),
            ((b <= -np.abs(a)), lambda n, v, x: turned(right_i, -0.5j * np.pi, n, v, 1j * x)),
            (b >= 0, lambda n, v, x: turned(right_j, 1j * np.pi, n, v, -x)),
            (b < 0, lambda n, v, x: turned(right_j, -1j * np.pi, n, v, -x)),
        ],
        n, v, x,
    )  # fmt: skip


def contour_ke(n: int, v: Any, x: Any) -> Any:
    """exp(x) K in the right half plane: over a line whose ends are turned so that x cosh(t) is real there."""
    phi = np.angle(x)[:, None]
    size = np.abs(x)[:, None]
    reach = np.arccosh(1 + (DEEP + 6 * np.abs(v)[:, None]) / size) + np.abs(phi)
    u = reach * np.linspace(-1, 1, CONTOUR_NODES)
    steep = np.where(phi == 0, 0.5, np.tan(np.abs(phi) / 2) / np.where(phi == 0, 1, np.abs(phi)))
    bend = np.tanh(steep * u)
    t = u - 1j * phi * bend
    speed = 1 - 1j * phi * steep * (1 - bend * bend)
    half = np.sinh(t / 2)
    values = (-t) ** n * np.exp(-2 * x[:, None] * half * half - v[:, None] * t) * speed
    return values.sum(-1) * (reach[:, 0] * 2 / (CONTOUR_NODES - 1)) / 2


right_ke = near_or_far(contour_ke, far_ke)


def complex_k(n: int, v: Any, x: Any) -> Any:
    """K everywhere: in the left half plane by K and I of the opposite argument (DLMF 10.34.2)."""
    a, b = np.real(x), np.imag(x)

    def right(n: int, v: Any, x: Any) -> Any:
        return right_ke(n, v, x) * np.exp(-x)

    return chosen(
        [
            (a >= 0, right),
            (b >= 0, lambda n, v, x: turned(right, -1j * np.pi, n, v, -x) - 1j * np.pi * complex_i(n, v, -x)),
            (b < 0, lambda n, v, x: turned(right, 1j * np.pi, n, v, -x) + 1j * np.pi * complex_i(n, v, -x)),
        ],
        n, v, x,
    )  # fmt: skip


def complex_h(sign: int) -> Callable[..., Any]:
    """H1 or H2: K of the turned argument, in the other half plane what is left of 2 J."""

    def direct(n: int, v: Any, x: Any, sign: int) -> Any:
        return -2j * sign / np.pi * turned(complex_k, -0.5j * sign * np.pi, n, v, -1j * sign * x)

    def evaluate(n: int, v: Any, x: Any) -> Any:
        x = x + 0j
        return chosen(
            [
                (sign * np.imag(x) >= 0, lambda n, v, x: direct(n, v, x, sign)),
                (sign * np.imag(x) < 0, lambda n, v, x: 2 * complex_j(n, v, x) - direct(n, v, x, -sign)),
            ],
            n, v, x,
        )  # fmt: skip

    return evaluate


def complex_y(n: int, v: Any, x: Any) -> Any:
    """Y: directly near the positive axis, else from H1 or H2, whichever is the smaller one."""
    a, b = np.real(x), np.imag(x)
    return chosen(
        [
            ((a >= np.abs(b)) & (np.abs(x) < EXPANDED_FROM), bessel_y),
            (b >= 0, lambda n, v, x: 1j * (complex_j(n, v, x) - complex_h(1)(n, v, x))),
            (b < 0, lambda n, v, x: 1j * (complex_h(-1)(n, v, x) - complex_j(n, v, x))),
        ],
        n, v, x,
    )  # fmt: skip


REAL: dict[str, Callable[..., Any]] = {
    "j": real_j, "y": real_y, "ie": real_ie, "ke": real_ke, "i": lambda n, v, x: real_ie(n, v, x) * np.exp(x), "k": lambda n, v, x: real_ke(n, v, x) * np.exp(-x),
}  # fmt: skip
SUMMED = ("j", "ie", "ke", "i", "k")
COMPLEX: dict[str, Callable[..., Any]] = {
    "j": complex_j, "y": complex_y, "i": complex_i, "k": complex_k, "h1": complex_h(1), "h2": complex_h(-1),
    "ie": lambda n, v, x: complex_i(n, v, x) * np.exp(-np.abs(np.real(x))),
    "ke": lambda n, v, x: complex_k(n, v, x) * np.exp(x),
}  # fmt: skip
# F'(v, x) = (F(v - 1) + sign F(v + 1)) / 2 of J, Y, H: sign -1, of I: sign 1; of K both with a minus.
SIGNS = {"j": (1, -1, 0), "y": (1, -1, 0), "h1": (1, -1, 0), "h2": (1, -1, 0), "i": (1, 1, 0), "k": (-1, -1, 0),
         "ie": (1, 1, -1), "ke": (-1, -1, 1)}  # fmt: skip


def order_slope_in_x(m: Any, kind: str, n: int, v: Any, x: Any, z: Any) -> Any:
    """By the recurrence, whose coefficients do not depend on the order."""
    below, above, itself = SIGNS[kind]
    if kind == "ie" and np.iscomplexobj(x):
        return np.full(np.shape(z), np.nan)  # exp(-|Re x|) is not holomorphic
    return (below * order_slope(kind, n, v - 1, x) + above * order_slope(kind, n, v + 1, x)) / 2 + itself * z


row("order_slope", (("j", "y", "ke"), (1, 1, 2), (0.3, 1.7, 0.6), (0.9, 2.4, 1.1)), None, None,
    lambda m, kind, n, v, x, z: order_slope(kind, n + 1, v, x), order_slope_in_x, functions=(order_slope,))
