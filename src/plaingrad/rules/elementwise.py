"""Functions of one, two or three numbers, shared by math, cmath, NumPy and the operators.

One row is one fact: the name, where it is smooth, then dz/d(argument) in order; `None` for what is no number.
In a row x, y are primal inputs, z is the primal output, m the module called. For complex numbers a row is
the holomorphic derivative, or, for a real function of a complex number, conj(x_bar + i y_bar).
"""

from __future__ import annotations

import cmath
import math
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from plaingrad.define import (
    ABOVE_ONE,
    PAIR,
    POSITIVE,
    POSITIVE_PAIR,
    REAL,
    UNIT,
    composed,
    linear,
    no_tangent,
    rrule,
    scalar,
)
from plaingrad.rules.pushforwards import both_forms, lined_up, of_each_number, pushed, total
from plaingrad.rules.special import digamma
from plaingrad.tangents import NoTangent, ZeroTangent

LN2, LN10, TWO_OVER_ROOT_PI = math.log(2), math.log(10), 2 / math.sqrt(math.pi)

# More domains: where both are needed, and away from the jumps of integer-valued factors.
EXPONENTS = ((0.6, 1.7, 2.5), (1.3, -0.7, 3.0))
TRIPLE = ((0.7, -1.2), (-0.4, 2.1), (1.6, 0.3))
BETWEEN = ((0.5, -2.0, 3.0), (-1.1, -0.9, -1.2), (1.4, 1.3, 1.2))


def named(*names: str) -> tuple[Any, ...]:
    """Every function of `math`, `cmath` and NumPy with one of these names."""
    return tuple(dict.fromkeys(getattr(m, n) for n in names for m in (math, cmath, np) if hasattr(m, n)))


REAL_TYPES = (float, np.ndarray, np.generic, np.half, np.single, np.double, np.longdouble)
COMPLEX_TYPES = (complex, np.csingle, np.cdouble, np.clongdouble)


def dunders(*names: str, types: tuple[type, ...] = REAL_TYPES + COMPLEX_TYPES) -> tuple[Any, ...]:
    """The methods of float, complex, arrays and NumPy's scalar types with one of these names."""
    return tuple(dict.fromkeys(t.__dict__[n] for n in names for t in types if t.__dict__.get(n)))


# IEEE arithmetic where Python raises ------------------------------------------------------------------------


def over(a: Any, b: Any) -> Any:
    """a / b as IEEE arithmetic has it: a pole is inf or nan, never an exception."""
    if type(b) is float:
        return a / b if b else _ieee_quotient(a, b)
    if isinstance(b, (float, complex, np.number)) and b == 0:
        return _ieee_quotient(a, b)
    return a / b


def _inverse(y: Any, z: Any) -> Any:
    """1 / y in the arithmetic of z: a Decimal has its own, and a long double more digits than an integer's quotient."""
    if isinstance(z, (Decimal, Fraction)):
        return over(type(z)(1), y)
    return over(np.longdouble(1) if getattr(z, "dtype", FLOAT).char in "gG" else 1, y)


def _ieee_quotient(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        z = np.divide(a, b)
    return z if isinstance(b, np.generic) else z.item()


def _raised(x: Any, y: Any) -> Any:
    """x ** y as IEEE arithmetic has it: a pole or an overflow is inf, never an exception or a warning."""
    if isinstance(x, np.generic) or isinstance(y, np.generic):
        with np.errstate(all="ignore"):
            return x**y
    try:
        return x**y
    except (ZeroDivisionError, OverflowError):
        with np.errstate(all="ignore"):
            return np.power(x, y * 1.0).item()


def direction(x: Any, z: Any) -> Any:
    """x / z, and 0 where z is 0: the slope of a length, 0 at its kink."""
    if isinstance(z, np.ndarray):
        return x / np.where(z == 0, 1, z)
    return x / z if z else 0 * x


def _range_of(kind: Any) -> tuple[Any, Any, Any]:
    """Between which lengths of a type no digit is lost and nothing overflows, and a power of 2 that lifts those below."""
    info = np.finfo(kind)
    found = info.tiny / info.eps, info.max / 4, np.ldexp(kind(1), -info.minexp // 2)
    return tuple(map(float, found)) if kind is np.double else found  # type: ignore[return-value]


RANGES = {np.dtype(kind): _range_of(kind) for kind in (np.half, np.single, np.double, np.longdouble)}
FLOAT = np.dtype(float)


def scale_for(z: Any) -> Any:
    """Powers of 2 that bring lengths near the ends of the range inside it, where they have all their digits; else 1.0."""
    low, high, up = RANGES.get(getattr(z, "dtype", FLOAT), RANGES[FLOAT])
    if not isinstance(z, np.ndarray):
        return 1.0 if low < z < high or z == 0 or z != z else up if z < low else 0.25
    inside = (z > low) & (z < high) | (z == 0)
    return 1.0 if inside.all() else np.where(inside, 1, np.where(z < low, up, 0.25)).astype(z.dtype)


def length_slope(x: Any, y: Any, z: Any) -> Any:
    """x / z for z = hypot(x, y), also where z overflows or has lost its digits; 0 at the kink."""
    scale = scale_for(z)
    if type(scale) is float and scale == 1.0:
        return direction(x, z)
    return direction(x * scale, np.hypot(x * scale, y * scale))


def _sign(x: Any) -> Any:
    """The slope of abs: conj(x) / |x|, and 0 at 0."""
    if isinstance(x, (np.ndarray, np.generic)):
        return _unit(np.conjugate(x)) if x.dtype.kind == "c" else np.sign(x)
    if isinstance(x, complex):
        return _unit(x.conjugate())
    return (x > 0) - (x < 0) if x == x else x


def _unit(x: Any) -> Any:
    """x / |x| of a complex number, and 0 at 0."""
    z = abs(x)
    scale = scale_for(z)
    if type(scale) is float and scale == 1.0:
        return direction(x, z)
    x = x * scale
    return direction(x, abs(x))


# Arithmetic -------------------------------------------------------------------------------------------------

scalar("add", PAIR, 1, 1, functions=(operator.add, np.add, *dunders("__add__", "__radd__")))
scalar("subtract", PAIR, 1, -1, functions=(operator.sub, np.subtract, *dunders("__sub__")))
scalar("rsub", PAIR, -1, 1, functions=dunders("__rsub__"))
scalar("multiply", PAIR, lambda m, x, y, z: y, lambda m, x, y, z: x,
       functions=(operator.mul, np.multiply, *dunders("__mul__", "__rmul__")))
scalar("divide", PAIR, lambda m, x, y, z: _inverse(y, z), lambda m, x, y, z: over(-z, y),
       functions=(operator.truediv, np.divide, *dunders("__truediv__")))
scalar("rtruediv", PAIR, lambda m, y, x, z: over(-z, y), lambda m, y, x, z: _inverse(y, z),
       functions=dunders("__rtruediv__"))
scalar("negative", REAL, -1, functions=(operator.neg, np.negative, *dunders("__neg__")))
scalar("positive", REAL, 1, functions=(operator.pos, np.positive, *dunders("__pos__")))
scalar("absolute", REAL, lambda m, x, z: _sign(x),
       functions=(abs, operator.abs, np.absolute, math.fabs, np.fabs, *dunders("__abs__")))
scalar("square", REAL, lambda m, x, z: 2 * x)
scalar("reciprocal", REAL, lambda m, x, z: -z * z)
# z = x - n y with an integer n that is constant between its jumps.
scalar("remainder", PAIR, 1, lambda m, x, y, z: -(x // y),
       functions=(operator.mod, np.remainder, *dunders("__mod__", types=REAL_TYPES)))
scalar("rmod", PAIR, lambda m, y, x, z: -(x // y), 1, functions=dunders("__rmod__", types=REAL_TYPES))
scalar("fmod", PAIR, 1, lambda m, x, y, z: over(z - x, y))
scalar("ieee_remainder", PAIR, 1, lambda m, x, y, z: over(z - x, y), functions=(math.remainder,))


# Powers: x ** 0 is constant, also at x = 0; the slope in the exponent is z Re(log x) where the power is real, which
# is right wherever the exponent is in truth constant, and 0 at base 0.


SMALLEST_INVERTED = {np.dtype(kind): float(1 / np.finfo(kind).max) for kind in (np.half, np.single, np.csingle)}


def _has_no_inverse(x: Any) -> Any:
    """Whether 1 / x is infinite or nan."""
    return np.logical_not(abs(x) > SMALLEST_INVERTED.get(getattr(x, "dtype", FLOAT), 5.6e-309))


def power_slope(x: Any, y: Any) -> Any:
    """y x ** (y - 1); 0 where y is 0, also at x = 0. A shortcut must not lose how it depends on y."""
    if isinstance(y, np.ndarray):
        constant = (y == 0) & _has_no_inverse(x)
        return _without_overflow(y * np.where(constant, 0, x) ** np.where(constant, 1, y - 1), x, y)
    if y == 0 and isinstance(x, np.ndarray):
        return y * np.where(_has_no_inverse(x), np.inf, x) ** -1
    if y == 0 and _has_no_inverse(x):
        return 0 * y
    if type(y) is int and y == 2:
        return 2 * x
    return _without_overflow(y * (x ** (y - 1) if isinstance(x, np.ndarray) else _raised(x, y - 1)), x, y)


def _without_overflow(slope: Any, x: Any, y: Any) -> Any:
    """`slope`, y x ** (y - 1), or where that is infinite y x ** y / x: 1 / x of a denormal number is infinite."""
    if isinstance(slope, np.ndarray):
        if slope.dtype.kind != "f" or not np.isinf(slope).any():
            return slope
        lost = np.isinf(slope) & (x != 0) & (np.absolute(x) < 1)
        return np.where(lost, y * x**y / np.where(lost, x, 1), slope)
    if isinstance(slope, (float, np.floating)) and (slope == math.inf or slope == -math.inf) and 0 < abs(x) < 1:
        return over(y * _raised(x, y), x)
    return slope


def exponent_slope(x: Any, y: Any, z: Any) -> Any:
    """z log x, for a real power z Re(log x), and 0 where x is 0."""
    if isinstance(x, (np.ndarray, np.generic)):
        size = np.where(x == 0, 1, x + 0j if is_complex(z) else np.absolute(x))
        return np.where(x == 0, 0, z) * np.log(size)
    if x == 0:
        return 0 * y
    if is_complex(z):
        return z * cmath.log(x)
    return z * (Decimal(abs(x)).ln() if isinstance(z, Decimal) else math.log(abs(x)))


scalar("power", EXPONENTS, lambda m, x, y, z: power_slope(x, y), lambda m, x, y, z: exponent_slope(x, y, z),
       functions=(operator.pow, math.pow, np.power, np.float_power))
scalar("pow", EXPONENTS, lambda m, x, y, *modulus_and_z: power_slope(x, y),
       lambda m, x, y, *modulus_and_z: exponent_slope(x, y, modulus_and_z[-1]), functions=(pow, *dunders("__pow__")))
scalar("rpow", EXPONENTS[::-1], lambda m, y, x, *modulus_and_z: exponent_slope(x, y, modulus_and_z[-1]),
       lambda m, y, x, *modulus_and_z: power_slope(x, y), functions=dunders("__rpow__"))
scalar("sqrt", POSITIVE, lambda m, x, z: over(0.5, z))
scalar("cbrt", REAL, lambda m, x, z: over(1, 3 * z * z))


# Exponentials and logarithms --------------------------------------------------------------------------------


def _inverse_log(m: Any, x: Any, *base_and_z: Any) -> Any:
    """1 / x, or 1 / (x log base)."""
    return over(1, x) if len(base_and_z) == 1 else over(1, x * m.log(base_and_z[0]))


def _share(exp: Any, join: Any, x: Any, y: Any) -> Any:
    """e^x / (e^x + e^y) as exp(-join(0, y - x)): no digit of large x and y is lost. Equal infinities share equally."""
    with np.errstate(invalid="ignore"):
        difference = y - x
    same = np.isinf(x) & np.equal(x, y)
    return exp(-join(0.0, np.where(same, 0.0, difference) if np.any(same) else difference))[()]


scalar("exp", REAL, lambda m, x, z: z)
scalar("exp2", REAL, lambda m, x, z: z * LN2)
scalar("expm1", REAL, lambda m, x, z: m.exp(x))
scalar("log", POSITIVE, lambda m, x, z: over(1, x), functions=(np.log,))
scalar("log", POSITIVE_PAIR, _inverse_log, lambda m, x, base, z: over(-z, base * m.log(base)),
       functions=(math.log, cmath.log))  # one argument or two
scalar("log2", POSITIVE, lambda m, x, z: over(1 / LN2, x))
scalar("log10", POSITIVE, lambda m, x, z: over(1 / LN10, x))
scalar("log1p", POSITIVE, lambda m, x, z: over(1, 1 + x))
scalar("logaddexp", PAIR, lambda m, x, y, z: _share(np.exp, np.logaddexp, x, y),
       lambda m, x, y, z: _share(np.exp, np.logaddexp, y, x))
scalar("logaddexp2", PAIR, lambda m, x, y, z: _share(np.exp2, np.logaddexp2, x, y),
       lambda m, x, y, z: _share(np.exp2, np.logaddexp2, y, x))

# Trigonometry -----------------------------------------------------------------------------------------------


def is_complex(x: Any) -> bool:
    """Whether `x` is complex: slopes taken from z are then those of the branch that z is on."""
    return isinstance(x, complex) or (isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "c")


def arctan_slope(x: Any) -> Any:
    """1 / (1 + x**2); the square of a large complex number would be nan."""
    return over(over(1, 1 - 1j * x), 1 + 1j * x) if is_complex(x) else over(1, 1 + x * x)


scalar("sin", REAL, lambda m, x, z: m.cos(x))
scalar("cos", REAL, lambda m, x, z: -m.sin(x))
scalar("tan", REAL, lambda m, x, z: 1 + z * z)
scalar("arcsin", UNIT, lambda m, x, z: over(1, m.cos(z) if is_complex(z) else m.sqrt((1 - x) * (1 + x))), functions=named("asin", "arcsin"))
scalar("arccos", UNIT, lambda m, x, z: over(-1, m.sin(z) if is_complex(z) else m.sqrt((1 - x) * (1 + x))), functions=named("acos", "arccos"))
scalar("arctan", REAL, lambda m, x, z: arctan_slope(x), functions=named("atan", "arctan"))
scalar("arctan2", PAIR, lambda m, x, y, z: over(over(y, m.hypot(x, y)), m.hypot(x, y)),
       lambda m, x, y, z: over(over(-x, m.hypot(x, y)), m.hypot(x, y)), functions=named("atan2", "arctan2"))
scalar("sinh", REAL, lambda m, x, z: m.cosh(x))
scalar("cosh", REAL, lambda m, x, z: m.sinh(x))
scalar("tanh", REAL, lambda m, x, z: 1 - z * z)
scalar("arcsinh", REAL, lambda m, x, z: over(1, m.cosh(z)), functions=named("asinh", "arcsinh"))
# Two roots, not the root of a product: that one is wrong in the left half plane.
scalar("arccosh", ABOVE_ONE, lambda m, x, z: over(1, m.sinh(z) if is_complex(z) else m.sqrt(x - 1) * m.sqrt(x + 1)), functions=named("acosh", "arccosh"))
scalar("arctanh", UNIT, lambda m, x, z: over(over(1, 1 - x), 1 + x) if is_complex(x) else over(1, (1 - x) * (1 + x)), functions=named("atanh", "arctanh"))
scalar("degrees", REAL, 180 / math.pi, functions=named("degrees", "rad2deg"))
scalar("radians", REAL, math.pi / 180, functions=named("radians", "deg2rad"))
scalar("hypot", PAIR, lambda m, x, y, z: length_slope(x, y, z), lambda m, x, y, z: length_slope(y, x, z), functions=(np.hypot,))

# Special functions ------------------------------------------------------------------------------------------

scalar("erf", REAL, lambda m, x, z: TWO_OVER_ROOT_PI * m.exp(-x * x))
scalar("erfc", REAL, lambda m, x, z: -TWO_OVER_ROOT_PI * m.exp(-x * x))
scalar("gamma", REAL, lambda m, x, z: z * digamma(x))
scalar("lgamma", REAL, lambda m, x, z: digamma(x))

# Choices: the slope belongs to the argument that is returned; the first of two equal ones -------------------

scalar("maximum", PAIR, lambda m, x, y, z: m.logical_not(m.less(x, y)), lambda m, x, y, z: m.less(x, y))
scalar("minimum", PAIR, lambda m, x, y, z: m.logical_not(m.greater(x, y)), lambda m, x, y, z: m.greater(x, y))
scalar("fmax", PAIR, lambda m, x, y, z: m.logical_not(m.less(x, y) | m.isnan(x)), lambda m, x, y, z: m.less(x, y) | m.isnan(x))
scalar("fmin", PAIR, lambda m, x, y, z: m.logical_not(m.greater(x, y) | m.isnan(x)), lambda m, x, y, z: m.greater(x, y) | m.isnan(x))
scalar("heaviside", PAIR, 0, lambda m, x, y, z: m.equal(x, 0))
scalar("copysign", PAIR, lambda m, x, y, z: _sign(x) * m.copysign(1.0, y), 0)
scalar("nextafter", PAIR, 1, 0)  # x and a constant step
_umath = np._core.umath if hasattr(np, "_core") and hasattr(np._core, "umath") else np.core.umath
scalar("clip", BETWEEN,
       lambda m, x, low, high, z: m.greater_equal(x, low) & m.less_equal(x, high),
       lambda m, x, low, high, z: m.less(x, low) & m.less_equal(low, high),
       lambda m, x, low, high, z: m.greater(m.maximum(x, low), high), functions=(_umath.clip,))
if hasattr(math, "fma"):  # since CPython 3.13
    scalar("fma", TRIPLE, lambda m, x, y, c, z: y, lambda m, x, y, c, z: x, 1)

# Complex numbers --------------------------------------------------------------------------------------------

scalar("phase", REAL, lambda m, x, z: over(-1j, x) if isinstance(x, complex) else 0.0, functions=(cmath.phase,))  # conj(i x / |x|**2)
scalar("rect", POSITIVE_PAIR, lambda m, r, phi, z: m.rect(1.0, phi), lambda m, r, phi, z: 1j * z, functions=(cmath.rect,))
for _f in (np.conjugate, *dunders("conj", "conjugate")):
    linear(_f, lambda z_bar, x: np.conjugate(z_bar) if isinstance(x, (np.ndarray, np.generic)) else z_bar.conjugate())
    of_each_number(_f, np.conjugate)


@composed(cmath.polar)
def polar(x: Any) -> Any:
    """|x| and the phase of x."""
    return abs(x), cmath.phase(x)


SIGN_IS_DIRECTION = bool(np.sign(1j) == 1j)  # since NumPy 2; before, it is the sign of the real part


@rrule(np.sign)
def sign_rrule(x: Any) -> Any:
    """x / |x|: a step for real x, a direction for complex x (in NumPy 2)."""
    z = np.sign(x)

    def sign_pullback(z_bar: Any) -> Any:
        if not np.iscomplexobj(x) or not SIGN_IS_DIRECTION:
            return (ZeroTangent,)
        return (across(z_bar, x, z),)

    return z, sign_pullback


def across(tangent: Any, x: Any, z: Any) -> Any:
    """The part of a tangent that turns x, over |x|: its own transpose."""
    return direction(tangent - z * np.real(np.conjugate(z) * tangent), np.absolute(x)) * (z != 0)


@both_forms(np.sign)
def sign_frule(x: Any) -> Any:
    """The direction turns with what is across it."""
    z = np.sign(x)
    turns = np.iscomplexobj(x) and SIGN_IS_DIRECTION
    return z, lambda dots: pushed(across, dots[0], x, z) if turns else ZeroTangent


# Several results at once ------------------------------------------------------------------------------------


def _fraction(x: Any) -> Any:
    return math.modf(x)[0]


def _whole(x: Any) -> Any:
    return math.modf(x)[1]


def _mantissa(x: Any) -> Any:
    return math.frexp(x)[0]


def _exponent(x: Any) -> Any:
    return math.frexp(x)[1]


no_tangent(_whole, _exponent)
scalar("fraction", REAL, 1, functions=(_fraction,))
scalar("mantissa", REAL, lambda m, x, z: scaled_by_power_of_two(1.0, x, -_exponent(x)), functions=(_mantissa,))


@composed(math.modf)
def modf(x: Any) -> Any:
    """The fractional and the whole part of a number."""
    return _fraction(x), _whole(x)


@composed(math.frexp)
def frexp(x: Any) -> Any:
    """The mantissa and the exponent of a number."""
    return _mantissa(x), _exponent(x)


@rrule(np.modf)
def modf_rrule(x: Any) -> Any:
    """The fractional part moves with x, the whole part is a step."""

    def modf_pullback(z_bar: Any) -> Any:
        return (z_bar[0],)

    return np.modf(x), modf_pullback


@both_forms(np.modf, affine=True)
def modf_frule(x: Any) -> Any:
    """The fractional part moves with x."""
    return np.modf(x), lambda dots: (pushed(np.positive, dots[0]), ZeroTangent)  # not the very array that x has


@rrule(np.frexp)
def frexp_rrule(x: Any) -> Any:
    """x = mantissa 2 ** exponent, and the exponent is a step."""
    z = np.frexp(x)
    exponent = z[1]

    def frexp_pullback(z_bar: Any) -> Any:
        return (np.ldexp(z_bar[0], -exponent),)

    return z, frexp_pullback


@both_forms(np.frexp, affine=True)
def frexp_frule(x: Any) -> Any:
    """mantissa = x 2 ** -exponent."""
    z = np.frexp(x)
    return z, lambda dots: (pushed(np.ldexp, dots[0], -z[1]), NoTangent)


@rrule(np.divmod)
def divmod_rrule(x: Any, y: Any) -> Any:
    """remainder = x - quotient y, and the quotient is a step."""
    z = np.divmod(x, y)
    quotient = z[0]

    def divmod_pullback(z_bar: Any) -> Any:
        return z_bar[1], -quotient * z_bar[1]

    return z, divmod_pullback


@both_forms(np.divmod, affine=True)
def divmod_frule(x: Any, y: Any) -> Any:
    """remainder = x - quotient y."""
    z = np.divmod(x, y)

    def divmod_pushforward(dots: Any) -> Any:
        x_dot, y_dot = [pushed(lined_up, x_dot, p, np.ndim(z[1])) for x_dot, p in zip(dots, (x, y))]
        return ZeroTangent, pushed(np.positive, total(x_dot, pushed(lambda y_dot: -z[0] * y_dot, y_dot)))

    return z, divmod_pushforward


def scaled_by_power_of_two(z_bar: Any, x: Any, i: Any) -> Any:
    """z_bar 2 ** i, inf where it overflows."""
    scaled = np.ldexp(z_bar, i)
    return scaled if isinstance(x, (np.ndarray, np.generic)) or np.ndim(scaled) else float(scaled)


def _enter_ldexp(function: Any) -> None:
    linear(function, scaled_by_power_of_two)

    @both_forms(function)
    def ldexp_frule(x: Any, *others: Any, **options: Any) -> Any:
        """x_dot 2 ** i, inf where it overflows."""
        z = function(x, *others, **options)

        def ldexp_pushforward(dots: Any) -> Any:
            x_dot = pushed(lined_up, dots[0], x, np.ndim(z))
            return pushed(scaled_by_power_of_two, x_dot, dots[0], *others)

        return z, ldexp_pushforward


_enter_ldexp(math.ldexp)
_enter_ldexp(np.ldexp)

# No tangent: integers, comparisons, steps -------------------------------------------------------------------

no_tangent(scale_for, _has_no_inverse)
no_tangent(operator.floordiv, np.floor_divide, *dunders("__floordiv__", "__rfloordiv__"))
no_tangent(*dunders("__bool__", "__int__", "__index__", "__round__", "__floor__", "__ceil__", "__trunc__", "__hash__",
                    "__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"))
no_tangent(*named("ceil", "floor", "trunc", "rint", "spacing", "ulp", "isclose", "isfinite", "isinf", "isnan",
                  "isnat", "signbit", "gcd", "lcm"))
no_tangent(math.isqrt, math.comb, math.perm, math.factorial)
no_tangent(*named("equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
                  "logical_and", "logical_or", "logical_xor", "logical_not",
                  "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_count", "invert", "left_shift", "right_shift"))
