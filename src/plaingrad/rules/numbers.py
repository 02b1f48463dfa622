"""Numbers with arithmetic of their own (mpmath, gmpy2, classes that a program declares): one set of rules for all.

A row is as in `elementwise`, but `m` has the functions of the numbers themselves, and no constant is a float: so slopes
have all the digits that the numbers have.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.define import elementwise_rrule, linear, no_tangent, rrule
from plaingrad.errors import MissingRuleError
from plaingrad.rule_data import Rule
from plaingrad.tangents import NoTangent

SOURCE = "plaingrad/rules/numbers.py:1"

# A number that is made of another one, or a new object equal to it, is that number: the identity.
rulebook.add(
    Rule(
        number_classes.copied,
        "scalar",
        elementwise_rrule(number_classes.copied, (1,)),
        partials=(1,),
        source=SOURCE,
    )
)
rulebook.add(
    Rule(
        number_classes.made,
        "scalar",
        elementwise_rrule(number_classes.made, (0, 1)),
        partials=(0, 1),
        source=SOURCE,
    )
)


def _is_complex(x: Any) -> bool:
    known = number_classes.of(x)
    return isinstance(x, complex) if known is None else known.is_complex


def _sign(m: Any, x: Any, z: Any) -> Any:
    """The slope of abs: conj(x) / |x|, and 0 at 0."""
    if _is_complex(x):
        return x.conjugate() / z if z else 0 * x
    return (x > 0) - (x < 0)


def _power_slope(m: Any, x: Any, y: Any, z: Any) -> Any:
    """y x ** (y - 1); 0 where y is 0."""
    return 0 * x if y == 0 and x == 0 else y * x ** (y - 1)


def _exponent_slope(m: Any, x: Any, y: Any, z: Any) -> Any:
    """z log x, for a real power z log |x|, and 0 where x is 0."""
    if x == 0:
        return 0 * z
    return z * m.log(number_classes.made(z, x) if _is_complex(z) else abs(x))


def _inverse(m: Any, x: Any, y: Any, z: Any) -> Any:
    """1 / y in the arithmetic of z: the quotient of two integers is a float, of fewer digits."""
    known = number_classes.of(z)
    plain = number_classes.of(y) is None and known is not None and known.system is None
    return number_classes.made(z, 1) / y if plain else 1 / y


#: Of operators on such numbers.
ROWS: dict[Any, tuple[Any, ...]] = {
    operator.add: (1, 1),
    operator.sub: (1, -1),
    operator.mul: (lambda m, x, y, z: y, lambda m, x, y, z: x),
    operator.truediv: (_inverse, lambda m, x, y, z: -z / y),
    operator.pow: (_power_slope, _exponent_slope),
    operator.mod: (1, lambda m, x, y, z: -round_down(x, y)),
    operator.neg: (-1,),
    operator.pos: (1,),
    operator.abs: (_sign,),
}


def round_down(x: Any, y: Any) -> Any:
    """The whole number n of x = n y + x % y."""
    return round((x - x % y) / y)


OPERATORS = {f: Rule(f, "scalar", elementwise_rrule(f, row), partials=row) for f, row in ROWS.items()}
OPERATORS[abs] = OPERATORS[operator.abs]
OPERATORS[pow] = OPERATORS[operator.pow]
#: NumPy calls the operators of Python objects.
for _name in "add subtract multiply divide true_divide power remainder negative positive absolute".split():
    _operator = {"subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv", "power": "pow",
                 "remainder": "mod", "negative": "neg", "positive": "pos", "absolute": "abs"}.get(_name, _name)  # fmt: skip
    OPERATORS[getattr(np, _name)] = OPERATORS[getattr(operator, _operator)]


def _pi(m: Any) -> Any:
    return m.const_pi() if hasattr(m, "const_pi") else +m.pi


def _zeta_slope(m: Any, s: Any, *others: Any) -> Any:
    """Of the derivative of order n of zeta(s, a) by s, as mpmath calls it: zeta(s, a, n)."""
    a, n = (*others[:-1], *(1, 0)[len(others) - 1 :])[:2]
    return m.zeta(s, a, n + 1)


def _hurwitz_slope(m: Any, s: Any, a: Any, *others: Any) -> Any:
    """Of zeta(s, a, n) by a: the derivative of order n, by s, of -s zeta(s + 1, a)."""
    n = others[0] if len(others) > 1 else 0
    slope = -s * m.zeta(s + 1, a, n)
    return slope - n * m.zeta(s + 1, a, n - 1) if n else slope


def _bessel(name: str, before: int, after: int) -> tuple[Any, ...]:
    """A row of a Bessel function by its argument. mpmath also takes the order of a derivative by it."""

    def slope(m: Any, n: Any, x: Any, *others: Any) -> Any:
        f = getattr(m, name)
        if len(others) > 1 and others[0]:
            return f(n, x, others[0] + 1)
        return (before * f(n - 1, x) + after * f(n + 1, x)) / 2

    return None, slope, None


def _normal(m: Any, x: Any, others: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """(the density of a normal distribution at x, (x - mean) / width, width), from what follows x in the call."""
    mean, width = (*others[:-1], *(0, 1)[len(others) - 1 :])[:2]
    return m.npdf(x, mean, width), (x - mean) / width, width


def _ncdf_rows() -> tuple[Any, ...]:
    def by_x(m: Any, x: Any, *others: Any) -> Any:
        return _normal(m, x, others)[0]

    def by_mean(m: Any, x: Any, *others: Any) -> Any:
        return -_normal(m, x, others)[0]

    def by_width(m: Any, x: Any, *others: Any) -> Any:
        density, t, _ = _normal(m, x, others)
        return -t * density

    return by_x, by_mean, by_width


def _npdf_rows() -> tuple[Any, ...]:
    def by_x(m: Any, x: Any, *others: Any) -> Any:
        density, t, width = _normal(m, x, others)
        return -t * density / width

    def by_mean(m: Any, x: Any, *others: Any) -> Any:
        density, t, width = _normal(m, x, others)
        return t * density / width

    def by_width(m: Any, x: Any, *others: Any) -> Any:
        density, t, width = _normal(m, x, others)
        return (t * t - 1) * density / width

    return by_x, by_mean, by_width


def _log_slope(m: Any, x: Any, *base_and_z: Any) -> Any:
    """1 / x, or 1 / (x log base)."""
    base = base_and_z[0] if len(base_and_z) == 2 else None
    return 1 / x if base is None else 1 / (x * m.log(base))


#: Of functions, by their names in mpmath and gmpy2.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "sqrt": (lambda m, x, z: 1 / (2 * z),),
    "cbrt": (lambda m, x, z: 1 / (3 * z * z),),
    "rec_sqrt": (lambda m, x, z: -z / (2 * x),),
    "exp": (lambda m, x, z: z,),
    "exp2": (lambda m, x, z: z * m.log(number_classes.made(x, 2)),),
    "exp10": (lambda m, x, z: z * m.log(number_classes.made(x, 10)),),
    "expm1": (lambda m, x, z: m.exp(x),),
    "expj": (lambda m, x, z: 1j * z,),
    "ln": (lambda m, x, z: 1 / x,),
    "log": (_log_slope, lambda m, x, base, z: -z / (base * m.log(base))),
    "log2": (lambda m, x, z: 1 / (x * m.log(number_classes.made(x, 2))),),
    "log10": (lambda m, x, z: 1 / (x * m.log(number_classes.made(x, 10))),),
    "log1p": (lambda m, x, z: 1 / (1 + x),),
    "sin": (lambda m, x, z: m.cos(x),),
    "cos": (lambda m, x, z: -m.sin(x),),
    "tan": (lambda m, x, z: 1 + z * z,),
    "sec": (lambda m, x, z: z * m.tan(x),),
    "csc": (lambda m, x, z: -z * m.cot(x),),
    "cot": (lambda m, x, z: -1 - z * z,),
    "asin": (lambda m, x, z: 1 / m.cos(z),),
    "acos": (lambda m, x, z: -1 / m.sin(z),),
    "atan": (lambda m, x, z: 1 / (1 + x * x),),
    "atan2": (lambda m, y, x, z: x / (x * x + y * y), lambda m, y, x, z: -y / (x * x + y * y)),
    "sinh": (lambda m, x, z: m.cosh(x),),
    "cosh": (lambda m, x, z: m.sinh(x),),
    "tanh": (lambda m, x, z: 1 - z * z,),
    "sech": (lambda m, x, z: -z * m.tanh(x),),
    "csch": (lambda m, x, z: -z * m.coth(x),),
    "coth": (lambda m, x, z: 1 - z * z,),
    "asinh": (lambda m, x, z: 1 / m.cosh(z),),
    "acosh": (lambda m, x, z: 1 / m.sinh(z),),
    "atanh": (lambda m, x, z: 1 / ((1 - x) * (1 + x)),),
    "hypot": (lambda m, x, y, z: x / z if z else 0 * x, lambda m, x, y, z: y / z if z else 0 * y),
    "erf": (lambda m, x, z: 2 * m.exp(-x * x) / m.sqrt(_pi(m)),),
    "erfc": (lambda m, x, z: -2 * m.exp(-x * x) / m.sqrt(_pi(m)),),
    "gamma": (lambda m, x, z: z * m.digamma(x),),
    "factorial": (lambda m, x, z: z * m.digamma(x + 1),),
    "rgamma": (lambda m, x, z: -z * m.digamma(x),),
    "loggamma": (lambda m, x, z: m.digamma(x),),
    "lngamma": (lambda m, x, z: m.digamma(x),),
    "power": (_power_slope, _exponent_slope),
    "square": (lambda m, x, z: 2 * x,),
    "fabs": (_sign,),
    "degrees": (lambda m, x, z: 180 / _pi(m),),
    "radians": (lambda m, x, z: _pi(m) / 180,),
    "add": (1, 1),
    "sub": (1, -1),
    "mul": (lambda m, x, y, z: y, lambda m, x, y, z: x),
    "div": (_inverse, lambda m, x, y, z: -z / y),
    "fma": (lambda m, x, y, c, z: y, lambda m, x, y, c, z: x, 1),
}
#: mpmath gives these the order before the argument: the next derivative is a call of the same function.
STEPS = ("floor", "ceil", "nint", "rint", "trunc", "sign", "is_nan", "is_zero", "is_finite", "is_infinite", "isnan",
         "isinf", "isfinite", "isint", "almosteq", "is_signed", "is_integer")  # fmt: skip


def _row(function: Any, partials: tuple[Any, ...]) -> Rule:
    return Rule(
        function, "scalar", elementwise_rrule(function, partials), partials=partials, source=SOURCE
    )


_helpers: dict[tuple[int, str], Callable[..., Any]] = {}  # by identity of the context, which is kept by the helper


def helper(context: Any, name: str) -> Callable[..., Any]:
    """The method `name` of a context of mpmath as a function of numbers, with its rule."""
    found = _helpers.get((id(context), name))
    if found is None:
        method = getattr(context, name)

        def function(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        function.__qualname__ = function.__name__ = f"{type(context).__name__}.{name}"
        found = _helpers[id(context), name] = function
        rulebook.add(_row(found, METHODS[name]))
    return found


no_tangent(helper)


WITH_OPTIONS = "It is called with keyword arguments, of which its rule knows nothing."


def with_options(context: Any, name: str, options: Any, *args: Any) -> Any:
    """A method of a context with keyword arguments: no rule knows what they change."""
    return getattr(context, name)(*args, **options)


def _refused(context: Any, name: str, options: Any, *args: Any) -> Any:
    raise MissingRuleError(
        f"mpmath.{name} has no derivative here: {WITH_OPTIONS}\n  To go on: write a rule, @plaingrad.rrule.\n"
        "  See docs: errors#missing-rule"
    )


rulebook.add(
    Rule(with_options, "full", _refused, source=SOURCE, refuses=WITH_OPTIONS)
)


def _definition(name: str) -> Callable[..., Any]:
    def method_of_context(context: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return with_options(context, name, kwargs, *args)
        return helper(context, name)(*args)

    return method_of_context


#: Of methods of mpmath's contexts that gmpy2 does not have in this form: orders and degrees have no derivative.
OF_MPMATH: dict[str, tuple[Any, ...]] = {
    "convert": (1,),
    "psi": (None, lambda m, n, x, z: m.psi(n + 1, x)),
    "besselj": _bessel("besselj", 1, -1),
    "bessely": _bessel("bessely", 1, -1),
    "besseli": _bessel("besseli", 1, 1),
    "besselk": _bessel("besselk", -1, -1),
    "lambertw": (lambda m, x, *k_and_z: 1 / (m.exp(k_and_z[-1]) * (1 + k_and_z[-1])), None),
    "ei": (lambda m, x, z: m.exp(x) / x,),
    "e1": (lambda m, x, z: -m.exp(-x) / x,),
    "si": (lambda m, x, z: m.sinc(x),),
    "ci": (lambda m, x, z: m.cos(x) / x,),
    "root": (lambda m, x, n, *k_and_z: k_and_z[-1] / (n * x), None, None),
    "erfinv": (lambda m, x, z: m.sqrt(_pi(m)) * m.exp(z * z) / 2,),
    "ncdf": _ncdf_rows(),
    "npdf": _npdf_rows(),
    "zeta": (_zeta_slope, _hurwitz_slope, None, None),
    "arg": (lambda m, x, z: -1j / x if _is_complex(x) else 0,),
    "re": (1,),
    "im": (lambda m, x, z: -1j if _is_complex(x) else 0,),
}
METHODS = {**FUNCTIONS, **OF_MPMATH}


def _fsum(context: Any, terms: Any, absolute: bool = False, squared: bool = False) -> Any:
    items = list(terms)
    if absolute:
        items = [abs(x) for x in items]
    if squared:
        items = [x * x for x in items]
    return sum_once(context, *items)


def _fdot(context: Any, A: Any, B: Any = None, conjugate: bool = False) -> Any:
    pairs = list(A if B is None else zip(A, B))
    others = [conjugated(b) if conjugate else b for _, b in pairs]
    return dot_once(context, len(pairs), *[a for a, _ in pairs], *others)


def sum_once(context: Any, *items: Any) -> Any:
    """The sum, rounded once."""
    return context.fsum(items)


def dot_once(context: Any, n: int, *items: Any) -> Any:
    """The sum of products, rounded once."""
    return context.fdot(items[:n], items[n:])


def _sum_rrule(context: Any, *items: Any) -> Any:
    return sum_once(context, *items), lambda z_bar: (NoTangent, *[z_bar for _ in items])


def _dot_rrule(context: Any, n: int, *items: Any) -> Any:
    def dot_pullback(z_bar: Any) -> Any:
        return NoTangent, NoTangent, *[z_bar * conjugated(x) for x in (*items[n:], *items[:n])]

    return dot_once(context, n, *items), dot_pullback


rrule(sum_once)(_sum_rrule)
rrule(dot_once)(_dot_rrule)


def conjugated(x: Any) -> Any:
    """The conjugate of a number of any class."""
    if _is_complex(x):
        return x.conjugate()
    return x


def real_part(x: Any) -> Any:
    """x.real of a complex number with arithmetic of its own."""
    return x.real


def imaginary_part(x: Any) -> Any:
    """x.imag of a complex number with arithmetic of its own."""
    return x.imag


def conjugate(x: Any) -> Any:
    """x.conjugate() of a complex number with arithmetic of its own."""
    return x.conjugate()


rulebook.add(_row(real_part, (1,)))
rulebook.add(_row(imaginary_part, (lambda m, x, z: -1j * number_classes.made(x, 1),)))
linear(conjugate, lambda z_bar, x: conjugate(z_bar))
PARTS: dict[str, Callable[[Any], Any]] = {"real": real_part, "imag": imaginary_part}


def constructor(cls: type, is_complex: bool, kwargs: dict[str, Any]) -> Rule:
    """The rule of a call of a class of such numbers."""

    def construct(*args: Any) -> Any:
        return cls(*args, **kwargs)

    construct.__qualname__ = cls.__qualname__
    if cls.__name__ == "mpq":
        partials: tuple[Any, ...] = (_numerator_slope, _denominator_slope)
    elif is_complex:
        partials = (1, lambda m, x, y, *others: 0 if _is_complex(x) else 1j, None)
    else:
        partials = (1, None, None)
    return _row(construct, partials)


def _numerator_slope(m: Any, x: Any, *others: Any) -> Any:
    return 1 if len(others) == 1 else number_classes.made(others[-1], 1) / others[0]


def _denominator_slope(m: Any, x: Any, y: Any, z: Any) -> Any:
    return -z / y


def rules_of_mpmath() -> Iterator[Rule]:
    """Rules of mpmath's functions: those of `mpmath.mp`, and the methods that all contexts share."""
    context = getattr(sys.modules.get("mpmath"), "mp", None)
    if context is None:
        return
    for name, partials in METHODS.items():
        function = getattr(context, name, None)
        if function is None:
            continue
        method = getattr(function, "__func__", None)
        if method is None:
            yield _row(function, partials)
        else:
            yield Rule(method, "composed", definition=_definition(name), source=SOURCE)
            inner = context.defined_functions.get(name, (method,))[0]
            if inner is not method:  # each new context wraps it anew
                yield Rule(inner, "composed", definition=_definition(name), source=SOURCE)
    yield _row(context.digamma, (lambda m, x, z: m.psi(1, x),))
    yield Rule(context.fsum.__func__, "composed", definition=_fsum, source=SOURCE)
    yield Rule(context.fdot.__func__, "composed", definition=_fdot, source=SOURCE)
    yield Rule(context.conj.__func__, "composed", definition=lambda context, x: conjugated(context.convert(x)), source=SOURCE)
    yield Rule(vars(context.mpc.__mro__[1])["conjugate"], "composed", definition=lambda x: conjugate(x), source=SOURCE)
    for cls in (context.mpf.__mro__[1], context.mpc.__mro__[1]):
        for name in ("__float__", "__complex__"):
            if name in vars(cls):
                yield _row(vars(cls)[name], (1,))
    for name in STEPS:
        function = getattr(context, name, None)
        if function is not None:
            yield Rule(getattr(function, "__func__", function), "no_tangent", source=SOURCE)


def rules_of_functions(module: Any) -> Iterator[Rule]:
    """Rules of the functions of a module that have the names of elementary functions."""
    for name, partials in FUNCTIONS.items():
        function = getattr(module, name, None)
        if callable(function):
            yield _row(function, partials)
    for name in STEPS:
        function = getattr(module, name, None)
        if callable(function):
            yield Rule(function, "no_tangent", source=SOURCE)


def rules_of_gmpy2() -> Iterator[Rule]:
    """Rules of gmpy2's functions."""
    module = sys.modules.get("gmpy2")
    return iter(()) if module is None else rules_of_functions(module)


def wait() -> None:
    """Have the rules entered when a program first calls a function of these libraries."""
    for module in ("mpmath.ctx_mp_python", "mpmath.ctx_mp", "mpmath.functions.functions",
                   "mpmath.functions.expintegrals", "mpmath.functions.factorials", "mpmath.functions.zeta",
                   "mpmath.functions.bessel", "mpmath.ctx_base"):  # fmt: skip
        rulebook.when_met(module, rules_of_mpmath)
    for module in ("gmpy2", "gmpy2.gmpy2"):
        rulebook.when_met(module, rules_of_gmpy2)
