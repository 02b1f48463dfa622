"""Which series belongs to which function, and what a jet level does with coefficients: ordinary Python over arrays.

A row is `jet(*operands, z)`: the operands that vary are series, aligned with the result, the others are as they were
given. Under an outer derivative this module runs rewritten, one level out, as `taylor.series` does.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from plaingrad.engine.forward.pushing import aligned, chosen
from plaingrad.engine.taylor import series
from plaingrad.rules.elementwise import COMPLEX_TYPES, REAL_TYPES, dunders, named
from plaingrad.rules.numpy.einsum import einsum_of_many

Jet = Callable[..., np.ndarray]

JETS: dict[Any, dict[tuple[int, ...], Jet]] = {}  # function -> positions that vary -> its row


def unary(name: str, jet: Jet, functions: tuple[Any, ...] | None = None) -> None:
    """Enter `jet(x, z)` for every function of math, cmath and NumPy called `name`."""
    for f in named(name) if functions is None else functions:
        JETS[f] = {(0,): jet}


def binary(functions: tuple[Any, ...], first: Jet, second: Jet, both: Jet) -> None:
    """Enter rows `jet(x, y, z)` where the first, the second, and both arguments vary."""
    for f in functions:
        JETS[f] = {(0,): first, (1,): second, (0, 1): both}


def swapped(jet: Jet) -> Jet:
    """`jet` with its two operands the other way round."""
    return lambda y, x, *more: jet(x, y, *more)


def whole(x: Any, z: Any) -> Any:
    """The series `x` with the shape of the result."""
    shape = (x.shape[0], *np.shape(z))
    return x if x.shape == shape else np.broadcast_to(x, shape)


def spread(c: Any, like: Any, z: Any) -> Any:
    """The constant `c` as a series of the shape of the result."""
    return series.constant(
        np.broadcast_to(np.asarray(c, like.dtype), np.shape(z)), like.shape[0], np.shape(z)
    )


# Arithmetic --------------------------------------------------------------------------------------------------


def scaled(x: Any, y: Any, z: Any) -> Any:
    """x y where one of them is constant."""
    return x * y


def divided(x: Any, y: Any, z: Any) -> Any:
    """x / y for a constant y."""
    return x / y


def inverted(x: Any, y: Any, z: Any) -> Any:
    """x / y for a constant x."""
    y = whole(y, z)
    return series.divide(spread(x, y, z), y)


def product(x: Any, y: Any, z: Any) -> Any:
    """x y."""
    return series.multiply(x, y)


def quotient(x: Any, y: Any, z: Any) -> Any:
    """x / y."""
    return series.divide(x, y)


binary((operator.mul, np.multiply, *dunders("__mul__", "__rmul__")), scaled, scaled, product)
binary((operator.truediv, np.divide, *dunders("__truediv__")), divided, inverted, quotient)
binary(dunders("__rtruediv__"), swapped(inverted), swapped(divided), swapped(quotient))
unary("square", lambda x, z: series.square(x))
unary("reciprocal", lambda x, z: series.reciprocal(x))
unary("absolute", series.absolute, (abs, operator.abs, np.absolute, math.fabs, np.fabs, *dunders("__abs__")))


# Powers ------------------------------------------------------------------------------------------------------


def power(x: Any, y: Any, *modulus_and_z: Any) -> Any:
    """x ** y for a constant y."""
    z = modulus_and_z[-1]
    return series.power(whole(x, z), y, z)


def exponential(x: Any, y: Any, *modulus_and_z: Any) -> Any:
    """x ** y for a constant x."""
    z = modulus_and_z[-1]
    return series.power_of_constant(x, whole(y, z), z)


def general_power(x: Any, y: Any, *modulus_and_z: Any) -> Any:
    """x ** y."""
    z = modulus_and_z[-1]
    return series.power_of_series(whole(x, z), whole(y, z), z)


binary(
    (operator.pow, math.pow, np.power, np.float_power, pow, *dunders("__pow__")),
    power, exponential, general_power,
)  # fmt: skip
binary(dunders("__rpow__"), swapped(exponential), swapped(power), swapped(general_power))
unary("sqrt", series.sqrt)
unary("cbrt", series.cbrt)


# Exponentials and logarithms --------------------------------------------------------------------------------


def log_to_base(x: Any, *base_and_z: Any) -> Any:
    """log x to a constant base, or the natural one."""
    if len(base_and_z) == 1:
        return series.log(x, base_and_z[0])
    return series.log(x, np.log(x[0])) / np.log(base_and_z[0])


def log_of_constant(x: Any, base: Any, z: Any) -> Any:
    """log x to base `base`, for a constant x."""
    return inverted(np.log(x), series.log(base, np.log(base[0])), z)


def log_of_both(x: Any, base: Any, z: Any) -> Any:
    """log x to base `base`."""
    return series.divide(series.log(x, np.log(x[0])), series.log(base, np.log(base[0])))


binary((math.log, cmath.log), log_to_base, log_of_constant, log_of_both)
unary("log", series.log, (np.log,))
for _name in ("exp", "exp2", "expm1", "log2", "log10", "log1p"):
    unary(_name, getattr(series, _name))


def one_constant(jet: Jet) -> tuple[Jet, Jet, Jet]:
    """Rows for a function of two series, where one, the other, or none of them is constant."""

    def first(x: Any, y: Any, z: Any) -> Any:
        x = whole(x, z)
        return jet(x, spread(y, x, z), z)

    def second(x: Any, y: Any, z: Any) -> Any:
        y = whole(y, z)
        return jet(spread(x, y, z), y, z)

    def both(x: Any, y: Any, z: Any) -> Any:
        return jet(whole(x, z), whole(y, z), z)

    return first, second, both


binary((np.logaddexp,), *one_constant(series.logaddexp))
binary((np.logaddexp2,), *one_constant(series.logaddexp2))


# Trigonometry, special functions, parts ------------------------------------------------------------------------

for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"):
    unary(
        _name,
        getattr(series, _name),
        named(_name, _name.replace("a", "arc", 1) if _name[0] == "a" else _name),
    )
binary(named("atan2", "arctan2"), *one_constant(series.atan2))
binary((np.hypot,), *one_constant(series.hypot))
for _name in ("erf", "erfc", "gamma", "lgamma"):
    unary(_name, getattr(series, _name))


def phase(x: Any, z: Any) -> Any:
    """The angle of a complex number; of a real one a step."""
    if x.dtype.kind != "c":
        return series.constant(z, x.shape[0], x.shape[1:])
    return series.atan2(x.imag, x.real, z)


unary("phase", phase, (cmath.phase,))
assert {float.__mul__, complex.__mul__} <= JETS.keys() and REAL_TYPES and COMPLEX_TYPES


# Coefficients 1, 2, ... are what the level files ------------------------------------------------------------------


def with_value(x: Any, x_dot: Any) -> np.ndarray:
    """The series of `x`, whose further coefficients are `x_dot`."""
    if isinstance(x, np.ndarray):
        return np.concatenate((np.reshape(x, (1, *x.shape)), x_dot))
    is_complex = isinstance(x, (complex, np.complexfloating)) and x_dot.dtype.kind != "c"
    s = np.empty(x_dot.shape[0] + 1, complex if is_complex else x_dot.dtype)
    s[0] = x
    s[1:] = x_dot
    return s


def seed(direction: Any, like: Any, n: int) -> np.ndarray:
    """The coefficients 1..n of `like` + t `direction`."""
    d = np.asarray(direction)
    is_complex = np.iscomplexobj(like) and d.dtype.kind != "c"
    kind = d.dtype if d.dtype.kind in "fcO" else np.dtype(float)
    s = np.zeros((n, *np.shape(d)), np.result_type(kind, np.complex64) if is_complex else kind)
    s[0] = direction
    return s


def expansion(x: Any, x_dot: Any, n: int) -> np.ndarray:
    """The first n coefficients of a result; None for those of a constant."""
    if x_dot is None:
        return series.constant(x, n, np.shape(x))
    return with_value(x, x_dot)[:n]


def by_row(jet: Jet, args: tuple[Any, ...], z: Any, positions: Any, dots: Any) -> Any:
    """The coefficients of jet(*args, z), where those at `positions` have the coefficients `dots`."""
    operands = list(args)
    ndim = np.ndim(z)
    for position, x_dot in zip(positions, dots, strict=True):
        x = args[position]
        s = with_value(x, x_dot)
        if np.iscomplexobj(z):
            s = series.as_complex(s)
        operands[position] = series.aligned(s, ndim) if ndim else s
    return jet(*operands, z)[1:]


def along_slopes(slopes: Any, args: Any, z: Any, positions: Any, dots: Any) -> Any:
    """The coefficients of z, where dz/dx is the series that `slopes` gives, or locally constant.

    Args:
        slopes: for each position a pair (value, coefficients) to some order, coefficients None for a constant.
        args: the arguments.
        z: the result.
        positions: which arguments vary.
        dots: their coefficients.
    """
    ndim = np.ndim(z)
    total: Any = None
    for (slope, slope_dot), position, x_dot in zip(slopes, positions, dots, strict=True):
        if slope is None:
            continue
        x_dot = aligned(x_dot, args[position], ndim, x_dot.shape[:1])
        if slope_dot is None:
            term = slope * x_dot
        else:
            p = with_value(slope, slope_dot)
            p = series.aligned(p, ndim) if ndim else p
            k = p.shape[0]
            orders = np.arange(1, k + 1).astype(x_dot.real.dtype).reshape((-1,) + (1,) * (x_dot.ndim - 1))
            term = series.multiply(p, x_dot[:k] * orders) / orders
        n = term.shape[0]
        total = term if total is None else total[:n] + term[: total.shape[0]]
    if total is not None and not np.iscomplexobj(z) and np.iscomplexobj(total):
        total = np.real(total)
    return total


def bilinear(
    f: Any, a: Any, b: Any, a_dot: Any, b_dot: Any, others: Any, options: dict[str, Any], lead: Any
) -> Any:
    """The coefficients of f(a, b), linear in each: c_k = sum of f(a_i, b_(k-i))."""
    a_series = [a, *[chosen(a_dot, k) for k in range(lead[0])]]
    b_series = [b, *[chosen(b_dot, k) for k in range(lead[0])]]
    each = []
    for k in range(1, lead[0] + 1):
        c = f(a_series[0], b_series[k], *others, **options)
        for i in range(1, k + 1):
            c = c + f(a_series[i], b_series[k - i], *others, **options)
        each.append(c)
    return np.stack(each)


# Rules of any form whose functions are linear in each of the arguments that can vary.
MULTILINEAR = frozenset((einsum_of_many, np.correlate, np.vdot))


def multilinear(f: Any, args: Any, kwargs: dict[str, Any], positions: Any, dots: Any, lead: Any) -> Any:
    """The coefficients of f(*args): c_k = the sum of f(a_i, b_j, ...) over i + j + ... = k."""
    every = {
        n: [args[n], *[chosen(x_dot, k) for k in range(lead[0])]]
        for n, x_dot in zip(positions, dots, strict=True)
    }
    found = []
    for k in range(1, lead[0] + 1):
        c: Any = None
        for orders in compositions(k, len(positions)):
            operands = list(args)
            for n, i in zip(positions, orders, strict=True):
                operands[n] = every[n][i]
            term = f(*operands, **kwargs)
            c = term if c is None else c + term
        found.append(c)
    return np.stack(found)


def compositions(k: int, parts: int) -> Any:
    """The ways to write k as a sum of so many whole numbers from 0 on."""
    if parts == 1:
        return [(k,)]
    return [(i, *rest) for i in range(k + 1) for rest in compositions(k - i, parts - 1)]


# Linear algebra: order by order -------------------------------------------------------------------------------------


def solve(a: Any, b: Any, a_dot: Any, b_dot: Any, y: Any) -> Any:
    """The coefficients of the solution of a y = b: a_0 y_k = b_k - sum of a_i y_(k-i)."""
    n = len(b_dot) if a_dot is None else len(a_dot)
    vectors = np.ndim(y) == np.ndim(a) - 1
    found = [y]
    for k in range(1, n + 1):
        rest: Any = 0.0 if b_dot is None else b_dot[k - 1]
        if a_dot is not None:
            for i in range(1, k + 1):
                z = found[k - i]
                rest = rest - (
                    (a_dot[i - 1] @ np.expand_dims(z, -1))[..., 0] if vectors else a_dot[i - 1] @ z
                )
        if vectors:
            found.append(np.linalg.solve(a, np.expand_dims(rest, -1))[..., 0])
        else:
            found.append(np.linalg.solve(a, rest))
    return np.stack(found[1:])


def inverse(a: Any, a_dot: Any, y: Any) -> Any:
    """The coefficients of the inverse: y_k = -y_0 sum of a_i y_(k-i)."""
    found = [y]
    for k in range(1, len(a_dot) + 1):
        rest: Any = 0.0
        for i in range(1, k + 1):
            rest = rest + a_dot[i - 1] @ found[k - i]
        found.append(-(y @ rest))
    return np.stack(found[1:])


def length(*coordinates_dots_and_z: Any) -> Any:
    """The coefficients of the length of a vector of numbers, 0 at the kink."""
    z = coordinates_dots_and_z[-1]
    count = len(coordinates_dots_and_z) // 2
    dots = coordinates_dots_and_z[count:-1]
    n = next(len(x_dot) for x_dot in dots if x_dot is not None)
    if z == 0:
        return np.zeros(n)
    squares: Any = 0.0
    for x, x_dot in zip(coordinates_dots_and_z[:count], dots, strict=True):
        if x_dot is None:
            x_dot = np.zeros(n)
        s = with_value(x / z, x_dot / z)
        squares = squares + series.multiply(s, s)
    return series.sqrt(squares, 1.0)[1:] * z


# Rules whose equation would be evaluated once an order have what follows: called as direct(*args, *coefficients, y).
DIRECT: dict[Any, Callable[..., Any]] = {np.linalg.solve: solve, np.linalg.inv: inverse, math.hypot: length}


# Rules without a row: pieces of the differential equation z' = pushforward(x(t)) x'(t) ------------------------------


def evaluated(partials: tuple[Any, ...], m: Any, args: tuple[Any, ...], z: Any) -> list[Any]:
    """The values of the partial derivatives; None where there is none."""
    return [p(m, *args, z) if callable(p) else p for p in partials]


def rate(x_dot: Any, order: int) -> Any:
    """The series of x' to `order`, from coefficients 1, 2, ... of x."""
    orders = np.arange(1, order + 2).astype(x_dot.real.dtype if x_dot.dtype.kind in "fc" else x_dot.dtype)
    return x_dot[: order + 1] * orders.reshape((-1,) + (1,) * (x_dot.ndim - 1))


def but_first(s: Any) -> Any:
    """All coefficients but the value."""
    return s[1:]


def integrated(rate: Any, rate_dot: Any, order: int) -> Any:
    """Coefficients 1..order + 1 from the value of the derivative and its coefficients 1..order, None for zero."""
    rate = np.asarray(rate)
    s = np.zeros((order + 1, *rate.shape), rate.dtype if rate.dtype.kind in "fcO" else float)
    if rate_dot is not None:
        s = with_value(rate, rate_dot)
    else:
        s[0] = rate
    orders = np.arange(1, order + 2).astype(s.real.dtype if s.dtype.kind in "fc" else s.dtype)
    return s / orders.reshape((-1,) + (1,) * (s.ndim - 1))


def beginning(y_dot: Any, order: int) -> Any:
    """The first coefficients, and nan for those up to `order` that are not known."""
    known = y_dot[:order]
    missing = order - len(known)
    if missing == 0:
        return known
    unknown: Any = np.nan
    if known.dtype.kind == "O" and not any(isinstance(c, Fraction) for c in known.flat):
        unknown = Decimal("nan")
    return np.concatenate((known, np.full((missing, *known.shape[1:]), unknown, known.dtype)))
