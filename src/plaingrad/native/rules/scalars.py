"""Rows of the rulebook as native code: a partial is a function that Numba compiles, with the module for an argument."""

from __future__ import annotations

import cmath
import dis
import functools
import inspect
import math
import operator
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import types

from plaingrad import rulebook
from plaingrad.critical import imported
from plaingrad.native.program.value_types import has_complex
from plaingrad.native.runtime import declare, helpers
from plaingrad.native.runtime.declare import overload, register_jitable
from plaingrad.native.runtime.vector import simd
from plaingrad.native.runtime.vector.simd import PackType
from plaingrad.rules import elementwise, special
from plaingrad.rules.numpy import entire
from plaingrad.rules.special import BERNOULLI

WRITTEN = "__plaingrad_written__"  # attribute of a slope of SciPy's that is compiled: as it stands in its row
OPERATORS = {"%": operator.mod, "**": operator.pow}


def row_of(function: Any) -> tuple[Any, ...] | None:
    """The partial derivatives of `function` if a scalar row tells them."""
    if function in ROWS_OF_SLOPES:
        return ROWS_OF_SLOPES[function]
    if function is math.hypot:
        function = np.hypot  # Numba's hypot takes two numbers
    rule = rulebook.find(getattr(function, "stands_for", function))
    if rule is not None and rule.variants:  # chosen call by call, by types or context: the plain tier's work
        return None
    if rule is not None and rule.kind == "no_tangent":
        return ()
    if rule is None or rule.kind not in ("scalar", "full") or not rule.partials:
        return None
    return tuple([as_written(partial) for partial in rule.partials])


def as_written(partial: Any) -> Any:
    """A partial derivative as it stands in its row; `REFUSED` for one that is not known."""
    return REFUSED if getattr(partial, "is_unknown", False) else getattr(partial, "__wrapped__", partial)


STEPS = frozenset((np.sign, np.round, np.around))  # functions with rules of their own in the plain tier


def is_constant(function: Any, kinds: list[Any]) -> bool:
    """Whether the derivative of `function`, of operands of these types, is zero wherever it has one."""
    try:
        if function in STEPS:
            return not any(has_complex(t) for t in kinds)
        rule = rulebook.find(function)
    except TypeError:
        return False
    return rule is not None and rule.kind == "no_tangent" and not rule.variants


def _second_power(m: Any, x: Any, y: Any, z: Any) -> Any:
    return helpers.second_power_slope(x, y)


def _second_powers(m: Any, x: Any, y: Any, z: Any) -> Any:
    return helpers.second_power_slopes(x, y)


def _mixed_power(m: Any, x: Any, y: Any, z: Any) -> Any:
    return helpers.mixed_power_slope(x, y)


def _log_of_base(m: Any, x: Any, y: Any, z: Any, slope: Any) -> Any:
    return helpers.log_of_base(x, z)


def _whether_taken(m: Any, taken: Any, bar: Any, z: Any) -> Any:
    return helpers.where_taken(taken, 1.0)


REFUSED = "refused"  # a derivative of a slope that is not there


# The derivatives of what slopes are made of, for derivatives of derived programs.
ROWS_OF_SLOPES: dict[Any, tuple[Any, ...]] = {
    elementwise.over: (
        lambda m, a, b, z: elementwise.over(1.0, b),
        lambda m, a, b, z: elementwise.over(-z, b),
    ),
    elementwise._inverse: (lambda m, y, w, z: -z * z, None),
    elementwise.direction: (
        lambda m, x, n, z: elementwise.direction(1.0, n),
        lambda m, x, n, z: -elementwise.direction(z, n),
    ),
    elementwise._sign: (0,),
    elementwise.length_slope: (
        lambda m, x, y, n, z: elementwise.direction(1.0, n),
        0,
        lambda m, x, y, n, z: -elementwise.direction(z, n),
    ),
    elementwise.arctan_slope: (lambda m, x, z: -2.0 * x * z * z,),
    np.sinc: (lambda m, x, z: entire.sinc_derivative(1, x),),
    helpers.where_taken: (None, _whether_taken),
    helpers.power_slope: (_second_power, _mixed_power),
    helpers.power_slopes: (_second_powers, REFUSED),
    helpers.exponent_slope: (lambda m, x, y, z, slope: elementwise.direction(z, x), None, _log_of_base),
}


def module_of(function: Any, kinds: list[Any]) -> Any:
    """The module that a row computes with: the function's own, else the one that suits the argument types."""
    name = getattr(function, "__module__", None)
    if isinstance(function, np.ufunc):
        return np
    if name in ("math", "cmath"):
        return math if name == "math" else cmath
    if any(isinstance(t, types.Array) for t in kinds):
        return np
    return cmath if any(isinstance(t, types.Complex) for t in kinds) else math


def name_of(function: Any) -> str:
    """What a refusal calls a function that has a row."""
    name = getattr(function, "__name__", str(function))
    is_scipys = type(function) is np.ufunc and not hasattr(np, name) or hasattr(function, "stands_for")
    return f"scipy.special.{name}" if is_scipys else name


class Unavailable(Exception):
    """A slope that cannot be compiled."""


def is_special(partial: Any) -> bool:
    """Whether it is a slope of a function of SciPy's, or a function that one calls."""
    return isinstance(partial, FunctionType) and str(partial.__module__).startswith("plaingrad.rules.scipy")


def of_arrays(partial: Any, count: int) -> Any:
    """A slope of a function of SciPy's, compiled for arrays; it takes no module, `count` is that of its operands."""
    return imported("plaingrad.native.rules.special_slopes").elementwise(partial, count)


@functools.lru_cache(None)
def compiled_partial(partial: Any) -> Any:
    """`partial(m, *args, z)` for calls from compiled code; the functions it calls are compiled along.

    Raises:
        Unavailable: there is no native form of it.
    """
    if is_special(partial):
        return imported("plaingrad.native.rules.special_slopes").native_form(partial)
    space = dict(partial.__globals__)
    made = FunctionType(partial.__code__, space, partial.__name__, partial.__defaults__, partial.__closure__)
    made.__module__ = __name__  # a module that exists: Numba looks it up for a function that calls itself
    compiled = declare.compiled(
        made, error_model="numpy"
    )  # a derivative never raises what the primal would not
    for name in partial.__code__.co_names:
        if space.get(name) is partial:
            space[name] = compiled
        elif isinstance(space.get(name), FunctionType) and space[name] not in NATIVE:
            space[name] = compiled_partial(space[name])
    return compiled


@functools.lru_cache(None)
def reads(partial: Any) -> frozenset[int]:
    """Which positional arguments of a partial its code looks at."""
    names = partial.__code__.co_varnames[: partial.__code__.co_argcount]
    loaded: set[str] = set()
    for i in dis.get_instructions(partial):
        if i.opname.startswith("LOAD_FAST") or i.opname.startswith("LOAD_DEREF"):
            loaded.update(i.argval if isinstance(i.argval, tuple) else (i.argval,))
    rest = range(len(names), 8) if partial.__code__.co_flags & inspect.CO_VARARGS else ()
    return frozenset(k for k, name in enumerate(names) if name in loaded) | frozenset(rest)


# What partials call, as Numba shall compile it: without exceptions, for numbers and for arrays ----


def is_complex_sign(t: Any, s: Any) -> bool:
    """Whether a statement is conj(x) / |x| of complex x, which is no function with a complex slope."""
    if s.op != "call" or getattr(s.args[0], "value", None) is not elementwise._sign:
        return False
    return has_complex(t.type_of(s.args[1]))


@overload(elementwise.over)
def _over(a, b):  # type: ignore[no-untyped-def]
    if PackType in map(type, (a, b)):
        return lambda a, b: simd.quotient(a, b)
    return lambda a, b: np.divide(a, b)


@overload(elementwise._inverse)
def _inverse(y, z):  # type: ignore[no-untyped-def]
    if isinstance(y, PackType):
        return lambda y, z: simd.quotient(1.0, y)
    return lambda y, z: np.divide(1.0, y)


@overload(elementwise.is_complex)
def _typed_complex(x):  # type: ignore[no-untyped-def]
    found = has_complex(x)
    return lambda x: found


@overload(elementwise.direction)
def _direction(x, z):  # type: ignore[no-untyped-def]
    if isinstance(z, types.Array):
        return lambda x, z: x / np.where(z == 0, np.ones_like(z), z)
    return lambda x, z: x / z if z != 0 else 0.0 * x


LOW, HIGH = 1e-292, 4e307  # lengths outside have lost digits, or overflow soon
UP = 2.0**511


@register_jitable
def length_slope_of_numbers(x, y):  # type: ignore[no-untyped-def]
    """x / hypot(x, y), and 0 at the origin."""
    z = np.hypot(x, y)
    if z == 0:
        return 0.0 * x
    if not LOW < z < HIGH and z == z:
        scale = UP if z < LOW else 0.25
        x = x * scale
        z = np.hypot(x, y * scale)
    return x / z


@numba.vectorize
def length_slopes(x, y):  # type: ignore[no-untyped-def]
    """The same of arrays."""
    return length_slope_of_numbers(x, y)


@overload(elementwise.length_slope)
def _length_slope(x, y, z):  # type: ignore[no-untyped-def]
    if types.Array in map(type, (x, y, z)):
        return lambda x, y, z: length_slopes(x, y)
    return lambda x, y, z: length_slope_of_numbers(x, y)


@overload(elementwise.arctan_slope)
def _arctan_slope(x):  # type: ignore[no-untyped-def]
    if has_complex(x):
        return lambda x: np.divide(np.divide(1.0, 1.0 - 1j * x), 1.0 + 1j * x)
    if isinstance(x, PackType):
        return lambda x: simd.quotient(1.0, 1.0 + x * x)
    return lambda x: np.divide(1.0, 1.0 + x * x)


@register_jitable
def unit_of_number(x):  # type: ignore[no-untyped-def]
    """conj(x) / |x| of a complex number, and 0 at 0."""
    z = abs(x)
    if z == 0:
        return 0.0 * x
    if not LOW < z < HIGH and z == z:
        x = x * (UP if z < LOW else 0.25)
        z = abs(x)
    return np.conj(x) / z


@overload(elementwise._sign)
def _sign(x):  # type: ignore[no-untyped-def]
    if has_complex(x):
        unit = unit_of_number
        if not isinstance(x, types.Array):
            return lambda x: unit(x)

        def units(x):  # type: ignore[no-untyped-def]
            found = np.empty_like(x)
            for place, element in np.ndenumerate(x):
                found[place] = unit(element)
            return found

        return units
    if isinstance(x, PackType):
        return lambda x: simd.sign(x)
    return lambda x: np.sign(x)


@overload(elementwise._share)
def _share(exp, join, x, y):  # type: ignore[no-untyped-def]
    if types.Array in map(type, (x, y)):

        def shares(exp, join, x, y):  # type: ignore[no-untyped-def]
            difference = y - x
            same = np.isinf(difference * 0.0 + x) & (x == y)
            return exp(-join(0.0, np.where(same, np.zeros_like(difference), difference)))

        return shares

    def share(exp, join, x, y):  # type: ignore[no-untyped-def]
        return exp(-join(0.0, 0.0 if x == y else y - x))

    return share


@overload(special.digamma)
def _digamma(x):  # type: ignore[no-untyped-def]
    def digamma(x):  # type: ignore[no-untyped-def]
        if math.isnan(x) or x == math.inf:
            return x
        if x <= 0 and x == math.floor(x):
            return math.nan
        found = 0.0
        if x < -0.5:
            found -= math.pi / math.tan(math.pi * (x - np.rint(x)))
            x = 1 - x
        while x < 12:
            found -= 1 / x
            x += 1
        square = 1 / (x * x)
        power = square
        tail = -0.5 / x
        for k in range(len(BERNOULLI)):
            tail -= BERNOULLI[k] / (2 * k + 2) * power
            power *= square
        return found + tail + math.log(x)

    return digamma


@overload(entire.sinc_derivative)
def _sinc_derivative(n, x):  # type: ignore[no-untyped-def]
    number = sinc_derivative_of_number
    if not isinstance(x, types.Array):
        return lambda n, x: number(n, x)

    def sinc_derivatives(n, x):  # type: ignore[no-untyped-def]
        found = np.empty_like(x)
        for place, element in np.ndenumerate(x):
            found[place] = number(n, element)
        return found

    return sinc_derivatives


@register_jitable
def sinc_derivative_of_number(n, x):  # type: ignore[no-untyped-def]
    """`entire.sinc_derivative` of one number."""
    u = np.pi * x
    if not abs(u) < max(2.0, 0.5 * n):
        wave = (np.sin(u), np.cos(u))
        found = wave[0] / u
        for k in range(1, n + 1):
            found = ((-1.0 if k % 4 > 1 else 1.0) * wave[k % 2] - k * found) / u
        return found * np.pi**n
    first = (n + 1) // 2
    power = 1.0 + 0.0 * u
    if n % 2 == 1:
        power = 1.0 * u
    found = 0.0 * u
    for k in range(first, first + 12 + n):
        found += (1.0 if k % 2 == 0 else -1.0) * power / (2 * k + 1)
        power *= u * u / ((2 * k + 1 - n) * (2 * k + 2 - n))
    return found * np.pi**n


@overload(special.polygamma)
def _polygamma(n, x):  # type: ignore[no-untyped-def]
    def polygamma(n, x):  # type: ignore[no-untyped-def]
        if math.isnan(x) or (x <= 0 and x == math.floor(x)):
            return math.nan
        s = n + 1
        found = 0.0
        while x < 12 + n:
            found += (1 / x) ** s
            x += 1
        found += x ** (1.0 - s) / (s - 1) + 0.5 * x ** (-1.0 * s)
        rising = 1.0 * s  # s (s + 1) ... (s + 2k - 2), then divided by (2k)!
        for k in range(1, len(BERNOULLI) + 1):
            rising /= (2 * k - 1) * (2 * k)
            found += BERNOULLI[k - 1] * rising * x ** (1.0 - s - 2 * k)
            rising *= (s + 2 * k - 1) * (s + 2 * k)
        factorial = 1.0
        for k in range(2, n + 1):
            factorial *= k
        return found * factorial if n % 2 == 1 else -found * factorial

    return polygamma


NATIVE = frozenset(
    (
        special.digamma,
        special.polygamma,
        entire.sinc_derivative,
        elementwise.over,
        elementwise._inverse,
        elementwise.is_complex,
        elementwise.direction,
        elementwise._sign,
        elementwise._share,
        elementwise.length_slope,
        elementwise.arctan_slope,
    )
)
