"""Numbers made of numbers: float, complex, int, Fraction, Decimal, and their methods.

A new number equal to an old one is the identity, so its cotangent passes; where the result is the argument itself
nothing has happened. Rounding to integers or to a quantum is a step: no tangent.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, getcontext, setcontext
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.class_keys import is_instance
from plaingrad.define import POSITIVE, REAL, as_callable, composed, frule, linear, no_tangent, rrule, scalar
from plaingrad.rules.elementwise import REAL_TYPES, TRIPLE, dunders, exponent_slope, over, power_slope
from plaingrad.rules.pushforwards import as_number, both_forms, dot_of, of_each_number, pushed, total, varies
from plaingrad.rules.python.arithmetic import quotient_of
from plaingrad.tangents import NoTangent


def identity(z_bar: Any, *arguments: Any, **options: Any) -> Any:
    """The adjoint of a change of type."""
    return z_bar


def same_number(*functions: Any) -> None:
    """Enter functions of a number that make an equal one, of another type or next to it: x_bar = z_bar, z_dot = x_dot.

    The tangent is passed on, not sent through the function, which may not take it: `Decimal.next_plus` is not linear.
    """
    for function in functions:
        linear(function, identity)
        _enter_same_number(function, as_callable(function))


def _enter_same_number(function: Any, call: Callable[..., Any]) -> None:
    @both_forms(function)
    def same_number_frule(x: Any, *others: Any, **options: Any) -> Any:
        z = call(x, *others, **options)
        return z, lambda dots: pushed(lambda x_dot: as_number(z, x_dot), dots[0])


# float, complex, int ----------------------------------------------------------------------------------------

same_number(float, float.__dict__["real"], *dunders("__float__", types=REAL_TYPES))
no_tangent(int, bool, float.__dict__["imag"], float.__dict__["is_integer"])
linear(complex.__dict__["real"], identity)
linear(complex.__dict__["imag"], lambda z_bar, x: 1j * z_bar)
of_each_number(complex.__dict__["real"], np.real)
of_each_number(complex.__dict__["imag"], np.imag)
same_number(complex.__dict__["__complex__"])


def _complex(real: Any = 0, imag: Any = None) -> complex:
    return complex(real) if imag is None else complex(real, imag)


@rrule(_complex)
def complex_rrule(real: Any = 0, imag: Any = None) -> Any:
    """z = x + iy; both parts may be complex themselves."""

    def complex_pullback(z_bar: Any) -> Any:
        return z_bar, -1j * z_bar

    return _complex(real, imag), complex_pullback


@both_forms(_complex, affine=True)
def complex_frule(real: Any = 0, imag: Any = None) -> Any:
    """z_dot = x_dot + i y_dot."""
    return _complex(real, imag), lambda dots: of_parts(dots[0], dot_of(dots, 1))


def of_parts(x_dot: Any, y_dot: Any) -> Any:
    """x_dot + i y_dot."""
    return total(x_dot, 1j * y_dot if varies(y_dot) else y_dot)


def _is_converted(real: Any, imag: Any) -> str:
    """The special method by which an object becomes a complex number; "" for a number."""
    cls = type(real)
    if cls is float or cls is complex or imag is not None or number_classes.is_own(real):
        return ""
    if is_instance(real, (complex, float, int, str, np.generic, np.ndarray, Decimal, Fraction)):
        return ""
    return "__complex__" if hasattr(cls, "__complex__") else "__float__" if hasattr(cls, "__float__") else ""


no_tangent(_is_converted)


@composed(complex)
def complex_(real: Any = 0, imag: Any = None) -> complex:
    """z = x + iy, or what an object says that it is."""
    name = _is_converted(real, imag)
    return _complex(getattr(type(real), name)(real) if name else real, imag)


@rrule(float.__new__)
def float_new_rrule(cls: type, x: Any = 0) -> Any:
    """A float, or an instance of a subclass of float."""

    def float_new_pullback(z_bar: Any) -> Any:
        return NoTangent, z_bar

    return float.__new__(cls, x), float_new_pullback


@both_forms(float.__new__, affine=True)
def float_new_frule(cls: type, x: Any = 0) -> Any:
    """The tangent of the number."""
    return float.__new__(cls, x), lambda dots: dots[1]


@rrule(complex.__new__)
def complex_new_rrule(cls: type, real: Any = 0, imag: Any = 0) -> Any:
    """A complex number, or an instance of a subclass of complex."""

    def complex_new_pullback(z_bar: Any) -> Any:
        return NoTangent, z_bar, -1j * z_bar

    return complex.__new__(cls, real, imag), complex_new_pullback


@both_forms(complex.__new__, affine=True)
def complex_new_frule(cls: type, real: Any = 0, imag: Any = 0) -> Any:
    """z_dot = x_dot + i y_dot."""
    return complex.__new__(cls, real, imag), lambda dots: of_parts(dots[1], dot_of(dots, 2))


def _entered_divmod(descriptor: Any, reflected: bool) -> None:
    def divided(x: Any, y: Any) -> Any:
        """(x // y, x % y), unless the other operand is no number: it has the say then."""
        own, other = (y, x) if reflected else (x, y)
        numeric = (int, float, np.number, np.bool_, Fraction, Decimal)
        if not isinstance(own, np.ndarray) and not is_instance(other, numeric):
            return NotImplemented
        return quotient_of(x, y), x % y

    composed(descriptor)((lambda y, x: divided(x, y)) if reflected else divided)


for _descriptor in dunders("__divmod__", types=REAL_TYPES):
    _entered_divmod(_descriptor, reflected=False)
for _descriptor in dunders("__rdivmod__", types=REAL_TYPES):
    _entered_divmod(_descriptor, reflected=True)

no_tangent(*[_t.__dict__["is_integer"] for _t in (np.half, np.single, np.double, np.longdouble)])

# Fraction ---------------------------------------------------------------------------------------------------


@rrule(Fraction)
def fraction_rrule(numerator: Any = 0, denominator: Any = None) -> Any:
    """z = x / y."""
    z = Fraction(numerator, denominator)

    def fraction_pullback(z_bar: Any) -> Any:
        if denominator is None:
            return (z_bar,)
        return over(z_bar, denominator), over(-z_bar * z, denominator)

    return z, fraction_pullback


@frule(Fraction)
def fraction_frule(numerator: Any = 0, denominator: Any = None) -> Any:
    """z_dot = (x_dot - z y_dot) / y."""
    z = Fraction(numerator, denominator)

    def fraction_pushforward(dots: Any) -> Any:
        if denominator is None:
            return dots[0]
        y_dot = dot_of(dots, 1)
        moved = total(dots[0], -z * y_dot if varies(y_dot) else y_dot)
        return over(moved, denominator) if varies(moved) else moved

    return z, fraction_pushforward


@rrule(Fraction.__dict__["from_float"].__func__, Fraction.__dict__["from_decimal"].__func__)
def fraction_from_rrule(cls: type, x: Any) -> Any:
    """The fraction equal to a float or Decimal."""

    def fraction_from_pullback(z_bar: Any) -> Any:
        return NoTangent, z_bar

    return cls(x), fraction_from_pullback


@frule(Fraction.__dict__["from_float"].__func__, Fraction.__dict__["from_decimal"].__func__, affine=True)
def fraction_from_frule(cls: type, x: Any) -> Any:
    """The tangent of the number."""
    return cls(x), lambda dots: dots[1]


same_number(Rational.__float__, Fraction.__copy__, Fraction.__deepcopy__)
no_tangent(Fraction.__round__, Fraction.__floor__, Fraction.__ceil__, Fraction.__trunc__,
           Fraction.__hash__, Fraction.__bool__, Fraction.__eq__, Fraction.__lt__, Fraction.__le__, Fraction.__gt__,
           Fraction.__ge__, Fraction.__floordiv__, Fraction.__rfloordiv__)
scalar("Fraction.__add__", REAL * 2, 1, 1, functions=(Fraction.__add__, Fraction.__radd__))
scalar("Fraction.__sub__", REAL * 2, 1, -1, functions=(Fraction.__sub__,))
scalar("Fraction.__rsub__", REAL * 2, -1, 1, functions=(Fraction.__rsub__,))
scalar("Fraction.__mul__", REAL * 2, lambda m, x, y, z: y, lambda m, x, y, z: x, functions=(Fraction.__mul__, Fraction.__rmul__))
scalar("Fraction.__truediv__", REAL * 2, lambda m, x, y, z: 1 / y, lambda m, x, y, z: -z / y, functions=(Fraction.__truediv__,))
scalar("Fraction.__rtruediv__", REAL * 2, lambda m, y, x, z: -z / y, lambda m, y, x, z: 1 / y, functions=(Fraction.__rtruediv__,))
scalar("Fraction.__neg__", REAL, -1, functions=(Fraction.__neg__,))
scalar("Fraction.__pos__", REAL, 1, functions=(Fraction.__pos__,))
scalar("Fraction.__abs__", REAL, lambda m, x, z: (x > 0) - (x < 0), functions=(Fraction.__abs__,))
for _cls in (Fraction, Decimal):
    _entered_divmod(_cls.__divmod__, reflected=False)
    _entered_divmod(_cls.__rdivmod__, reflected=True)
    scalar(f"{_cls.__name__}.__mod__", REAL * 2, 1, lambda m, x, y, z: -(x // y), functions=(_cls.__mod__,))
    scalar(f"{_cls.__name__}.__rmod__", REAL * 2, lambda m, y, x, z: -(x // y), 1, functions=(_cls.__rmod__,))
    scalar(f"{_cls.__name__}.__pow__", REAL * 2, lambda m, x, y, *rest: power_slope(x, y),
           lambda m, x, y, *rest: exponent_slope(x, y, rest[-1]), functions=(_cls.__pow__,))
    scalar(f"{_cls.__name__}.__rpow__", REAL * 2, lambda m, y, x, *rest: exponent_slope(x, y, rest[-1]),
           lambda m, y, x, *rest: power_slope(x, y), functions=(_cls.__rpow__,))
if hasattr(Fraction, "is_integer"):  # since CPython 3.12
    no_tangent(Fraction.is_integer)
if "from_number" in Fraction.__dict__:  # since CPython 3.14
    rrule(Fraction.__dict__["from_number"].__func__)(fraction_from_rrule)
    frule(Fraction.__dict__["from_number"].__func__, affine=True)(fraction_from_frule)

# Decimal: partials of whole numbers and Decimals only, which mix with neither float nor Fraction -------------

same_number(Decimal, *[Decimal.__dict__[_name] for _name in ("__float__", "__complex__", "real")])


@rrule(Decimal.from_float)
def decimal_from_float_rrule(x: Any) -> Any:
    """The Decimal equal to a float."""

    def decimal_from_float_pullback(z_bar: Any) -> Any:
        return (z_bar,)

    return Decimal.from_float(x), decimal_from_float_pullback


@frule(Decimal.from_float, affine=True)
def decimal_from_float_frule(x: Any) -> Any:
    """The tangent of the number."""
    z = Decimal.from_float(x)
    return z, lambda dots: pushed(lambda x_dot: as_number(z, x_dot), dots[0])


same_number(*[Decimal.__dict__[_name] for _name in (
    "normalize", "canonical", "conjugate", "next_minus", "next_plus", "next_toward", "__copy__", "__deepcopy__")])
scalar("Decimal.sqrt", POSITIVE, lambda m, x, *context_and_z: 1 / (2 * context_and_z[-1]), functions=(Decimal.sqrt,))
scalar("Decimal.exp", REAL, lambda m, x, *context_and_z: context_and_z[-1], functions=(Decimal.exp,))
scalar("Decimal.ln", POSITIVE, lambda m, x, *context_and_z: 1 / x, functions=(Decimal.ln,))
scalar("Decimal.log10", POSITIVE, lambda m, x, *context_and_z: 1 / (x * Decimal(10).ln()), functions=(Decimal.log10,))
scalar("Decimal.fma", TRIPLE, lambda m, x, y, *others: y, lambda m, x, y, *others: x, 1, functions=(Decimal.fma,))
scalar("Decimal.copy_abs", REAL, lambda m, x, z: (x > 0) - (x < 0), functions=(Decimal.copy_abs, Decimal.__abs__))
scalar("Decimal.copy_negate", REAL, -1, functions=(Decimal.copy_negate, Decimal.__neg__))
scalar("Decimal.copy_sign", REAL * 2, lambda m, x, y, *others: -1 if x.is_signed() != y.is_signed() else 1, 0,
       functions=(Decimal.copy_sign,))
scalar("Decimal.scaleb", ((1, 2), (3, -2)), lambda m, x, y, *others: Decimal(10) ** y, None, functions=(Decimal.scaleb,))
scalar("Decimal.remainder_near", ((5, 7), (3, 2)), 1, lambda m, x, y, *others: (others[-1] - x) / y,
       functions=(Decimal.remainder_near,))
scalar("Decimal.max", REAL * 2, lambda m, x, y, *others: int(x >= y), lambda m, x, y, *others: int(x < y), functions=(Decimal.max,))
scalar("Decimal.min", REAL * 2, lambda m, x, y, *others: int(x <= y), lambda m, x, y, *others: int(x > y), functions=(Decimal.min,))
no_tangent(*[Decimal.__dict__[_name] for _name in (
    "quantize", "to_integral", "to_integral_exact", "to_integral_value", "compare", "compare_signal", "compare_total",
    "compare_total_mag", "is_canonical", "is_finite", "is_infinite", "is_nan", "is_qnan", "is_snan", "is_signed", "is_zero",
    "is_normal", "is_subnormal", "adjusted", "radix", "logb", "number_class", "same_quantum", "imag",
    "__bool__", "__int__", "__round__", "__floor__", "__ceil__", "__trunc__", "__floordiv__", "__rfloordiv__", "__hash__",
    "__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__", "__sizeof__")])
scalar("Decimal.__add__", REAL * 2, 1, 1, functions=(Decimal.__add__, Decimal.__radd__))
scalar("Decimal.__sub__", REAL * 2, 1, -1, functions=(Decimal.__sub__,))
scalar("Decimal.__rsub__", REAL * 2, -1, 1, functions=(Decimal.__rsub__,))
scalar("Decimal.__mul__", REAL * 2, lambda m, x, y, z: y, lambda m, x, y, z: x, functions=(Decimal.__mul__, Decimal.__rmul__))
scalar("Decimal.__truediv__", REAL * 2, lambda m, x, y, z: 1 / y, lambda m, x, y, z: -z / y, functions=(Decimal.__truediv__,))
scalar("Decimal.__rtruediv__", REAL * 2, lambda m, y, x, z: -z / y, lambda m, y, x, z: 1 / y, functions=(Decimal.__rtruediv__,))
scalar("Decimal.__pos__", REAL, 1, functions=(Decimal.__pos__,))


def _enter_context_method(name: str, f: Callable[..., Any]) -> None:
    @composed(Context.__dict__[name])
    def in_context(context: Context, /, *args: Any) -> Any:
        """What the operator or method gives while the context is in force."""
        before = getcontext()
        setcontext(context)
        try:
            return f(*args)
        finally:
            setcontext(before)


for _name, _f in {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y, "divide": lambda x, y: x / y,
    "remainder": lambda x, y: x % y, "power": lambda x, y: x**y, "plus": lambda x: +x, "minus": lambda x: -x, "abs": abs,
    "fma": lambda x, y, z: x.fma(y, z), "sqrt": lambda x: x.sqrt(), "exp": lambda x: x.exp(), "ln": lambda x: x.ln(),
    "log10": lambda x: x.log10(), "create_decimal": lambda x: +Decimal(x), "create_decimal_from_float": lambda x: +Decimal.from_float(x),
}.items():
    _enter_context_method(_name, _f)
