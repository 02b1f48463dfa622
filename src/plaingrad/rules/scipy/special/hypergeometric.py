"""Hypergeometric functions, Wright's Bessel function and Struve's, in the argument and in the parameters.

Slopes in the parameters are the series themselves, differentiated term by term: a term's logarithmic derivative grows by
1/(a + k) for each factor a + k. Where the series converges slowly, or loses digits, the answer is nan.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rules.scipy.forms import row
from plaingrad.rules.scipy.special.orders import order_slope
from plaingrad.rules.scipy.special.quadrature import kind_of, over_half_line

MOST_TERMS = 3000
LOST = 1e-11  # of the largest term; what is left of less is noise
TRIPLES = ((0.6, 2.3, -1.1), (1.4, 0.9, 2.3), (0.2, -1.8, 1.5))
QUADRUPLES = ((0.6, 2.3, -1.1), (1.4, 0.9, 0.7), (2.4, 1.9, 3.3), (0.2, -0.8, 0.45))


def series(digits: str, upper: int, *args: Any) -> Any:
    """The derivative of pFq(a...; b...; z) in its parameters, by its power series.

    Args:
        digits: how often each parameter, upper ones first, is differentiated: "010" once in the second.
        upper: how many parameters are upper ones.
        args: the parameters and z.
    """
    orders = tuple(map(int, digits))
    kind = kind_of(*args)
    wide = np.result_type(kind, float)
    *parameters, z = [x.astype(wide).ravel() for x in np.broadcast_arrays(*[np.asarray(x) for x in args])]
    shape = np.broadcast_shapes(*[np.shape(x) for x in args])
    jets = list(np.ndindex(*[n + 1 for n in orders]))  # derivatives of the running term, of every order up to the asked
    term = {jet: np.zeros_like(z) for jet in jets}
    term[(0,) * len(orders)] = np.ones_like(z)
    total, largest = term[orders] + 0, np.abs(term[orders])
    quiet = np.zeros(z.shape)
    with np.errstate(all="ignore"):
        for k in range(MOST_TERMS):
            term = multiplied(term, jets, parameters, upper, k)
            term = {jet: value * (z / (k + 1)) for jet, value in term.items()}
            total = total + term[orders]
            size = np.abs(term[orders])
            largest = np.maximum(largest, size)
            done = ~(size > 1e-17 * np.abs(total)) & ~(np.abs(term[jets[0]]) > 1e-17 * np.abs(total))
            quiet = np.where(done, quiet + 1, 0)
            if (quiet > 8).all():
                break
    lost = largest * 2e-16 > LOST * np.maximum(np.abs(total), 1e-3 * largest.clip(0, 1))
    good = (quiet > 8) & ~lost & np.isfinite(total)
    return np.reshape(np.where(good, total, np.nan), shape).astype(kind)[()]


def multiplied(term: Any, jets: Any, parameters: Any, upper: int, k: int) -> Any:
    """The derivatives of the term after the factors (a + k) and 1 / (b + k), in every parameter one after the other."""
    for place, a in enumerate(parameters):
        factor = a + k
        new = {}
        for jet in jets:
            less = (*jet[:place], jet[place] - 1, *jet[place + 1 :])
            if place < upper:
                new[jet] = term[jet] * factor + (jet[place] * term[less] if jet[place] else 0.0)
            else:  # new * factor = old, differentiated
                new[jet] = (term[jet] - (jet[place] * new[less] if jet[place] else 0.0)) / factor
        term = new
    return term


def moved(digits: str, place: int, by: int) -> str:
    """So many derivatives more in one parameter."""
    return digits[:place] + str(int(digits[place]) + by) + digits[place + 1 :]


def series_in_parameter(place: int) -> Any:
    """The slope of `series` in a parameter, or in z, which is the last argument."""

    def slope(m: Any, digits: str, upper: int, *args: Any) -> Any:
        if place < len(digits):
            return series(moved(digits, place, 1), upper, *args[:-1])
        return series_in_z(digits, upper, *args[:-1])

    return slope


def series_in_z(digits: str, upper: int, *args: Any) -> Any:
    """The derivative in z, by one that is linear in a parameter: z F' = a (F(a + 1) - F) = (b - 1) (F(b - 1) - F)."""
    *parameters, z = args
    shift, factor = (1, parameters[0]) if upper else (-1, parameters[0] - 1)
    near = [parameters[0] + shift, *parameters[1:]]
    rise = factor * (series(digits, upper, *near, z) - series(digits, upper, *args))
    n = int(digits[0])
    if n:
        less = moved(digits, 0, -1)
        rise = rise + n * (series(less, upper, *near, z) - series(less, upper, *args))
    return np.true_divide(rise, z)


row("series", (("10", "01"), (1, 1), (0.6, 2.3), (1.4, 0.9), (0.2, -0.8)), None, None,
    *[series_in_parameter(place) for place in range(5)], functions=(series,))


def hyp0f1_slope(b: Any, x: Any) -> Any:
    """In b; the series has no upper parameter."""
    return series("1", 0, b, x)


def hyp1f1_slope(place: int, a: Any, b: Any, x: Any) -> Any:
    """In a or b; to the left of 0 by Kummer's transformation, whose terms have one sign: exp(x) 1F1(b - a; b; -x)."""
    left = np.less(np.real(x), 0)
    p, y = np.where(left, b - a, a), np.where(left, -x, x)
    size = np.where(left, np.exp(np.where(left, x, 0.0)), 1.0)
    in_a = series("10", 1, p, b, y)
    if place == 0:
        return (np.where(left, -size, size) * in_a)[()]
    in_b = series("01", 1, p, b, y)
    return (size * (in_b + np.where(left, in_a, 0.0)))[()]


def hyp2f1_slope(place: int, a: Any, b: Any, c: Any, x: Any) -> Any:
    """In a, b or c; to the left of -0.5 by Pfaff's transformation, (1 - x)^-a 2F1(a, c - b; c; x / (x - 1))."""
    left = np.less(np.real(x), -0.5)
    y = np.where(left, x / (np.where(left, x, 0.0) - 1), x)
    q = np.where(left, c - b, b)
    log = np.where(left, -np.log1p(-np.where(left, x, 0.0)), 0.0)
    size = np.exp(a * log)
    if place == 1:
        return (np.where(left, -size, size) * series("010", 2, a, q, c, y))[()]
    if place == 0:
        return (size * (series("100", 2, a, q, c, y) + np.where(left, log * series("000", 2, a, q, c, y), 0.0)))[()]
    in_q = np.where(left, series("010", 2, a, q, c, y), 0.0)
    return (size * (series("001", 2, a, q, c, y) + in_q))[()]


def wright_series(in_a: int, in_b: int, a: Any, b: Any, x: Any) -> Any:
    """The sum of x^k / k! times the derivative of 1 / gamma(a k + b): all terms positive but for psi."""
    kind = kind_of(a, b, x)
    a, b, x = np.broadcast_arrays(*[np.asarray(y, float) for y in (a, b, x)])
    total, largest = np.zeros(a.shape), np.zeros(a.shape)
    log = np.log(np.where(x > 0, x, 1.0))
    for k in range(600):
        y = a * k + b
        size = np.exp(k * log - sc.gammaln(k + 1.0))
        term = np.where((x > 0) | (k == 0), size, 0.0) * k**in_a * rgamma_derivative(in_a + in_b, y)
        total, largest = total + term, np.maximum(largest, np.abs(term))
        if k > 5 and (np.abs(term) <= 1e-18 * largest).all():
            break
    good = (np.abs(term) <= 1e-17 * largest) & (np.abs(total) > 1e-5 * largest) | (largest == 0)
    return np.where(good, total, np.nan).astype(kind)[()]


def rgamma_derivative(n: int, y: Any) -> Any:
    """The n-th derivative of 1 / gamma for y >= 0, n up to 3, by those of its logarithm."""
    safe = np.where(y == 0, 1.0, y)
    z, p = sc.rgamma(safe), -sc.psi(safe)
    if n > 3:
        return np.full(np.shape(y), np.nan)
    at_zero = (0.0, 1.0, 2 * np.euler_gamma, 3 * np.euler_gamma**2 - np.pi**2 / 2)[n]
    if n == 0:
        inside = z
    elif n == 1:
        inside = z * p
    else:
        q = -sc.polygamma(1, safe)
        inside = z * (p * p + q) if n == 2 else z * (p**3 + 3 * p * q - sc.polygamma(2, safe))
    return np.where(y == 0, at_zero, inside)


row("wright_series", ((0, 1), (1, 0), (0.6, 1.3), (1.4, 0.9), (0.2, 1.5)), None, None,
    lambda m, i, j, a, b, x, z: wright_series(i + 1, j, a, b, x), lambda m, i, j, a, b, x, z: wright_series(i, j + 1, a, b, x),
    lambda m, i, j, a, b, x, z: wright_in_x(i, j, a, b, x), functions=(wright_series,))


def wright_in_x(i: int, j: int, a: Any, b: Any, x: Any) -> Any:
    """The terms move up by one, which is b + a instead of b; k^i becomes (k + 1)^i."""
    return sum(math.comb(i, n) * wright_series(n, j + i - n, a, a + b, x) for n in range(i + 1))


def hyperu_slope(i: int, j: int, a: Any, b: Any, x: Any) -> Any:
    """The derivatives of U, i times in a and j times in b, by its integral, for x > 0; from a > 1 down by recurrence.

    U(a) falls off fastest of all solutions as a grows, so that the recurrence is stable downwards (DLMF 13.3.7).
    """
    kind = kind_of(a, b, x)
    a, b, x = np.broadcast_arrays(*[np.asarray(y, float) for y in (a, b, x)])
    good = np.isfinite(a) & np.isfinite(b) & (x > 0) & np.isfinite(x) & (a > -100)
    a, b, x = [np.where(good, y, 1.0) for y in (a, b, x)]
    steps = np.maximum(np.ceil(1.0 - a), 0.0)
    top = a + steps
    orders = [(n, j) for n in range(i + 1)] if j == 0 else [(0, 0), (0, 1)]
    now = [hyperu_integral(*order, top, b, x) for order in orders]
    most = int(steps.max(initial=0.0))
    if most and j and (i or j > 1):
        good &= steps == 0
    elif most:
        above = [hyperu_integral(*order, top + 1, b, x) for order in orders]
        now = hyperu_down(j, top, b, x, now, above, steps, most)
    last = now[-1] if j <= 1 and not (i and j) else hyperu_integral(i, j, a, b, x)
    return np.where(good, last, np.nan).astype(kind)[()]


def hyperu_down(j: int, a: Any, b: Any, x: Any, now: Any, above: Any, steps: Any, most: int) -> Any:
    """U(a - 1) = (x + 2a - b) U(a) - a (a - b + 1) U(a + 1), and its derivatives in a, or the one in b (j = 1)."""
    for step in range(most):
        going = step < steps
        new = []
        for n in range(len(now)):
            z = (x + 2 * a - b) * now[n] - a * (a - b + 1) * above[n]
            if n and j:
                z = z - now[0] + a * above[0]
            elif n:
                z = z + 2 * n * now[n - 1] - n * (2 * a - b + 1) * above[n - 1]
                if n > 1:
                    z = z - n * (n - 1) * above[n - 2]
            new.append(z)
        above = [np.where(going, y, w) for y, w in zip(now, above)]
        now = [np.where(going, y, w) for y, w in zip(new, now)]
        a = np.where(going, a - 1, a)
    return now


def hyperu_integral(i: int, j: int, a: Any, b: Any, x: Any) -> Any:
    """The integral of exp(-x t) t^(a - 1) (1 + t)^(b - a - 1) / gamma(a) and of its derivatives, a > 0 (DLMF 13.4.4)."""
    psi = sc.psi(a)
    first, second = sc.polygamma(1, a), sc.polygamma(2, a)

    def integrand(t: Any, a: Any, b: Any, x: Any, psi: Any, first: Any, second: Any) -> Any:
        beyond = np.log1p(t)
        c = np.log(t) - beyond - psi
        moment = (1.0, c, c * c - first, c**3 - 3 * c * first - second)[i] if i < 4 else np.nan
        return moment * beyond**j * np.exp(-x * t + (a - 1) * np.log(t) + (b - a - 1) * beyond - sc.gammaln(a))

    width = 1 / x
    end = (45 + 4 * np.abs(b) + 4 * a) * width
    return over_half_line(integrand, width, end, a, b, x, psi, first, second)


row("hyperu_slope", ((0, 1), (1, 0), (1.6, 2.3), (1.4, 0.9), (0.7, 1.5)), None, None,
    lambda m, i, j, a, b, x, z: hyperu_slope(i + 1, j, a, b, x), lambda m, i, j, a, b, x, z: hyperu_slope(i, j + 1, a, b, x),
    lambda m, i, j, a, b, x, z: -a * hyperu_slope(i, j, a + 1, b + 1, x)
    - (i * hyperu_slope(i - 1, j, a + 1, b + 1, x) if i else 0.0), functions=(hyperu_slope,))
row("hyperu", ((0.6, 2.3), (1.4, 0.9), (0.7, 1.5)), lambda m, a, b, x, z: hyperu_slope(1, 0, a, b, x),
    lambda m, a, b, x, z: hyperu_slope(0, 1, a, b, x), lambda m, a, b, x, z: -a * hyperu_slope(0, 0, a + 1, b + 1, x))
row("hyp0f1", ((0.6, 2.3), (0.7, -1.2)), lambda m, b, x, z: hyp0f1_slope(b, x),
    lambda m, b, x, z: np.true_divide(sc.hyp0f1(b + 1, x), b))
row("hyp1f1", TRIPLES, lambda m, a, b, x, z: hyp1f1_slope(0, a, b, x), lambda m, a, b, x, z: hyp1f1_slope(1, a, b, x),
    lambda m, a, b, x, z: np.true_divide(a, b) * sc.hyp1f1(a + 1, b + 1, x))
row("hyp2f1", QUADRUPLES, lambda m, a, b, c, x, z: hyp2f1_slope(0, a, b, c, x),
    lambda m, a, b, c, x, z: hyp2f1_slope(1, a, b, c, x), lambda m, a, b, c, x, z: hyp2f1_slope(2, a, b, c, x),
    lambda m, a, b, c, x, z: np.true_divide(a * b, c) * sc.hyp2f1(a + 1, b + 1, c + 1, x))
row("wright_bessel", ((0.6, 1.3), (1.4, 0.9), (0.2, 1.5)), lambda m, a, b, x, z: wright_series(1, 0, a, b, x),
    lambda m, a, b, x, z: wright_series(0, 1, a, b, x), lambda m, a, b, x, z: sc.wright_bessel(a, a + b, x))
row("log_wright_bessel", ((0.6, 1.3), (1.4, 0.9), (0.2, 1.5)), lambda m, a, b, x, z: wright_series(1, 0, a, b, x) / np.exp(z),
    lambda m, a, b, x, z: wright_series(0, 1, a, b, x) / np.exp(z),
    lambda m, a, b, x, z: np.exp(sc.log_wright_bessel(a, a + b, x) - z))


# Struve's functions ----------------------------------------------------------------------------------------------

STRUVE_FAR = 9.0


def struve_power(v: Any, x: Any, sign: int) -> Any:
    """The slope in v of the power series, (x/2)^(v+1) / (gamma(3/2) gamma(v + 3/2)) 1F2(1; 3/2, v + 3/2; sign x^2/4)."""
    p = 0.0 * x + sign * np.multiply(x, x) / 4
    b = v + 1.5
    scale = np.power(x / 2, v + 1) * sc.rgamma(b) / sc.gamma(1.5)
    log = np.log(x / 2) - sc.psi(b)
    return scale * (log * series("000", 1, 1.0, 1.5, b, p) + series("001", 1, 1.0, 1.5, b, p))


def struve_rest(v: Any, x: Any) -> Any:
    """The slope in v of H - Y, an integral of exp(-x t) (1 + t^2)^(v - 1/2) (DLMF 11.5.2)."""
    log = np.log(x / 2) - sc.psi(v + 0.5)

    def integrand(t: Any, v: Any, x: Any, log: Any) -> Any:
        rise = np.log1p(t * t)
        return (log + rise) * np.exp((v - 0.5) * rise - x * t)

    integral = over_half_line(integrand, 1 / x, (45 + 4 * np.abs(v)) / x, v, x, log)
    return 2 / math.sqrt(math.pi) * np.power(x / 2, v) * sc.rgamma(v + 0.5) * integral


def struve_in_order(v: Any, x: Any) -> Any:
    """The slope of H in v, for x > 0."""
    far = np.greater(x, STRUVE_FAR)
    good = np.greater(x, 0)
    near = struve_power(v, np.where(good & ~far, x, 1.0), -1)
    y = np.where(good & far, x, STRUVE_FAR)
    beyond = order_slope("y", 1, v, y) + struve_rest(v, y) if np.any(far) else near
    return np.where(good, np.where(far, beyond, near), np.nan)[()]


def modstruve_in_order(v: Any, x: Any) -> Any:
    """The slope of L in v, for x > 0."""
    good = np.greater(x, 0)
    return np.where(good, struve_power(v, np.where(good, x, 1.0), 1), np.nan)[()]


def struve_in_x(v: Any, x: Any, z: Any, lower: Any, upper: Any, sign: int) -> Any:
    """F(v - 1) - v F(v) / x, and near 0 the half sum, which has no quotient (DLMF 11.4.23 to 11.4.28)."""
    near = np.less(np.abs(x), 1)
    y = np.where(near, 1.0, x)
    power = np.power(np.where(near, x, 1.0) / 2, v) * sc.rgamma(v + 1.5) / math.sqrt(math.pi)
    return np.where(near, (lower - sign * upper + power) / 2, lower - v * np.where(near, 0.0, z) / y)[()]


ORDERS = ((0.3, 1.7, 2.2), (0.9, 2.4, 12.0))
row("struve", ORDERS, lambda m, v, x, z: struve_in_order(v, x),
    lambda m, v, x, z: struve_in_x(v, x, z, sc.struve(v - 1, x), sc.struve(v + 1, x), 1))
row("modstruve", ORDERS, lambda m, v, x, z: modstruve_in_order(v, x),
    lambda m, v, x, z: struve_in_x(v, x, z, sc.modstruve(v - 1, x), sc.modstruve(v + 1, x), -1))
