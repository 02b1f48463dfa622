"""Arguments for every rule with a derivative: where `check_rule` looks at it.

The tables of NumPy's functions are in tests/rules/numpy; rows are sampled at the points of their own domain.
"""

import bisect
import builtins
import cmath
import contextvars
import functools
import itertools
import math
import operator
import statistics
import types
import warnings
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
from tests.rules.numpy.checks import is_number, like, mapped
from tests.rules.numpy.composed_samples import COMPOSED, RANDOM
from tests.rules.numpy.samples import REAL_ONLY, SAMPLES

from plaingrad.rules import elementwise, special
from plaingrad.rules.numpy import random_numbers, ufuncs
from plaingrad.rules.python import arithmetic, averages, calls, constructors, containers, iteration

class Sample(NamedTuple):
    """A call to check: of the rule's function, or of a small program around it."""

    call: Any
    args: tuple[Any, ...]
    options: dict[str, Any] = {}


TABLE: dict[Any, list[Sample]] = {}


def is_of_scipy(rule):
    """Whether a rule is about SciPy or another package, or a helper of such rules, which are tested
    with it: tests/rules/scipy, tests/wild, tests/types, tests/concurrency."""
    source = rule.source.replace("\\", "/")
    elsewhere = ("scipy/", "pandas/", "packages/", "bottleneck.py", "pydantic.py", "numbers.py", "mpmath_matrices.py", "mpi/", "processes/", "other_systems.py", "matplotlib.py")
    return any(f"/rules/{part}" in source for part in elsewhere)


def at(*args, **options):
    """The function itself, at these arguments."""
    return Sample(None, args, options)


def program(f, *args, **options):
    """A program that calls the function."""
    return Sample(f, args, options)


def given(functions, *samples):
    for function in functions if isinstance(functions, (list, tuple)) else (functions,):
        TABLE.setdefault(function, []).extend(samples)


# Rows ----------------------------------------------------------------------------------------------------------------

COMPLEX_POINTS = (0.4 + 0.3j, -1.2 + 0.7j, 0.6 - 1.1j)
ORDERED = (np.maximum, np.minimum, np.fmax, np.fmin)  # complex numbers are ordered by their real parts first
DECIMAL_POINTS = (Decimal("2.3"), Decimal("1.5"), Decimal("0.75"))
FRACTION_POINTS = (Fraction(7, 3), Fraction(5, 4))


def takes_complex(function):
    if isinstance(function, np.ufunc):
        return function not in ORDERED and any(t.startswith("D" * function.nin + "->") for t in function.types)
    if getattr(function, "__module__", None) == "cmath":
        return function not in (cmath.rect, cmath.phase)
    return function in (abs, pow) or (
        getattr(function, "__module__", None) == "_operator" and function.__name__ not in ("mod",)
    )


def of_row(rule):
    """A row at the sample points of its domain: numbers, arrays that are broadcast, complex and narrow ones."""
    f, name = rule.function, getattr(rule.function, "__name__", "")
    owner = getattr(f, "__objclass__", None)
    if owner is Decimal:
        args = DECIMAL_POINTS[: len(rule.partials)]
        return [at(DECIMAL_POINTS[0], Decimal(2), argnums=0)] if name == "scaleb" else [at(*args), at(*args[::-1])]
    if getattr(f, "__module__", None) == "fractions":
        args = FRACTION_POINTS[: len(rule.partials)]
        return [at(*args), at(*args[::-1])]
    points = list(zip(*rule.domain))
    moving = tuple(n for n, p in enumerate(rule.partials) if p is not None)
    if f is special.polygamma:
        return [at(*point, argnums=1) for point in points]
    if owner is np.ndarray:
        columns = [np.array(column, float) for column in zip(*points)]
        return [at(*columns, argnums=moving), at(*[c.astype(np.float32) for c in columns], argnums=moving)]
    if owner is not None:
        cls = np.float64 if owner is np.generic else owner
        if issubclass(cls, (complex, np.complexfloating)):
            return [at(*[cls(x) for x in (COMPLEX_POINTS[k:] + COMPLEX_POINTS[:k])[: len(points[0])]]) for k in (0, 1)]
        return [at(cls(point[0]), *map(float, point[1:]), argnums=moving) for point in points]
    samples = [at(*map(float, point), argnums=moving) for point in points]
    if f in (math.log, cmath.log):
        samples += [at(float(x)) for x in rule.domain[0]]
    if takes_complex(f):
        n = f.nin if isinstance(f, np.ufunc) else len(rule.partials)
        samples += [at(*(COMPLEX_POINTS[k:] + COMPLEX_POINTS[:k])[:n]) for k in range(3)]
        samples += [at(*COMPLEX_POINTS[:1], *map(float, points[0][1:n]))] if n > 1 else []
        if f in (math.log, cmath.log):
            samples += [at(z) for z in COMPLEX_POINTS if f is cmath.log]
    if isinstance(f, np.ufunc) or getattr(f, "__module__", None) == "_operator" or f in (abs, pow):
        columns = [np.array(column, float) for column in zip(*points)]
        wide = [c.reshape([-1] + [1] * (len(columns) - 1 - n)) for n, c in enumerate(columns)]
        samples += [at(*wide, argnums=moving), at(columns[0], *map(float, points[0][1:]), argnums=moving)]
        samples += [at(*[c.astype(np.float32) for c in columns], argnums=moving)]
        samples += [at(*[np.array(float(x)) for x in points[0]], argnums=moving)]
        if isinstance(f, np.ufunc):
            samples += [at(*[np.zeros(0) for _ in columns], argnums=moving)]
            if takes_complex(f):
                z = np.array(COMPLEX_POINTS)
                samples += [at(*[np.roll(z, n) for n in range(f.nin)])]
    return samples


# NumPy: the tables that its own tests use ------------------------------------------------------------------------------


def of_numpy(function):
    """The samples of a function of NumPy; complex and in single precision too where it takes that."""
    samples = []
    rng = np.random.default_rng(11)  # the same numbers whichever tests run before
    for args, kwargs in SAMPLES.get(function, []):
        samples.append(at(*args, kwargs=kwargs))
        if function not in REAL_ONLY and not (function is np.complex128 and np.__version__ < "2"):  # there the array itself
            mixed = mapped(lambda x: like(x, x + 0.3j * rng.uniform(0.5, 1.5, np.shape(x))), args)
            samples.append(at(*mixed, kwargs=kwargs))
    for args, kwargs in SAMPLES.get(function, [])[:2]:
        if "dtype" not in kwargs and any(isinstance(x, np.ndarray) for x in args if is_number(x)):
            if not any(x is np.float64 for x in args):
                single = mapped(lambda x: x.astype(np.float32) if isinstance(x, np.ndarray) and x.ndim else x, args)
                samples.append(at(*single, kwargs=kwargs))
    return samples + [at(*args, kwargs=kwargs) for args, kwargs in COMPOSED.get(function, [])]


ArrayFunction = type(np.sum)
DISPATCHER = {f.__wrapped__: f for f in (*SAMPLES, *COMPOSED) if isinstance(f, ArrayFunction)}
for _call, (_method, _samples) in RANDOM.items():
    given(_method, *[program(_call, *args, kwargs=kwargs) for args, kwargs in _samples])
for _generator in random_numbers.GENERATORS:
    for _name in ("random", "standard_normal", "standard_exponential"):
        if _name in vars(_generator):
            _method = vars(_generator)[_name]

            def _drawn(x, shape, method=_method, generator=_generator):
                g = np.random.default_rng(5) if generator is np.random.Generator else np.random.RandomState(5)
                return x * method(g, shape)

            given(_method, program(_drawn, 1.5, 3), program(_drawn, 1.5, None))
            if _generator is np.random.Generator:

                def _drawn_into(x, out, method=_method):
                    method(np.random.default_rng(5), out=out)
                    return out * x

                given(_method, program(_drawn_into, 1.5, np.zeros(3)))

X = np.array([0.6, -1.3, 2.2])
M = np.array([[1.0, 2.0, 0.5], [-1.0, 3.0, 0.7]])

for _f in (np.conjugate, vars(np.ndarray)["conj"], vars(np.ndarray)["conjugate"]):
    given(_f, at(X), at(X + 1j * X[::-1]), at(np.array(1.5 + 1j)))
given(np.conjugate, at(1.5 + 2j), at(1.5))
given([float.conjugate], at(1.5))
given([complex.conjugate], at(1.5 + 2j))
given(np.sign, at(X), at(1.5), at(X + 1j * X[::-1]), at(np.zeros(0)))
given(np.modf, at(X), at(2.3), at(np.zeros(0)))
given(np.frexp, at(X), at(2.3))
given(np.divmod, at(X * 1.3, np.array([0.7, 0.4, -0.3])), at(7.3, 2.0), at(M, X + 0.1))
given(math.ldexp, at(1.5, 3), at(-0.3, -2))
given(np.ldexp, at(X, 3), at(X, np.array([1, -2, 0])), at(1.5, 2))


def _walked(x):
    total = 0.0
    for a, b in np.nditer([x, 2.0 * x[::-1]], ["external_loop"]):
        total = total + (a * b * b).sum()
    return total


given(np.nditer, program(lambda x: [v * v for v in np.nditer(x)], X), program(_walked, X))
given(vars(np.ndarray)["byteswap"], program(lambda a, x: np.ndarray.byteswap(a)[0] * x, np.array([1, 2], np.int16), 1.5))
given(vars(np.ndarray)["__iter__"], program(lambda a: [2 * y for y in np.ndarray.__iter__(a)], X), program(lambda a: [y[0] * y[1] for y in np.ndarray.__iter__(a)], M))
given(vars(np.ndarray)["__array_ufunc__"], program(lambda a: np.ndarray.__array_ufunc__(a, np.multiply, "__call__", a, 2.0), X), program(lambda a: np.ndarray.__array_ufunc__(a, np.add, "reduce", a), X))

class Twice(np.ndarray):
    """Its functions are those of ndarray, doubled."""

    def __array_function__(self, func, types, args, kwargs):
        z = np.ndarray.__array_function__(self, func, types, args, kwargs)
        return z if z is NotImplemented else z * 2.0


def _function_of_arrays(a):
    return np.ndarray.__array_function__(a, np.sum, (np.ndarray, Twice), (a * a,), {"axis": 0})


given(
    vars(np.ndarray)["__array_function__"],
    program(_function_of_arrays, X),
    program(_function_of_arrays, M),
    program(lambda a: np.cumsum(a.view(Twice), axis=-1).view(np.ndarray) * a, M),
    program(lambda a: np.ndarray.__array_function__(a, np.sum, (np.ndarray, str), (a,), {}) is NotImplemented, X),
)


# Masked arrays: what is under the mask has no part, though its slope be infinite there.
HIDDEN = [False, True, False]


def _in_masked(f, mask=HIDDEN):
    """f of masked arrays, as a plain array with zeros under the mask of the result."""

    def call(*args):
        z = f(*[np.ma.array(x, mask=np.broadcast_to(mask, np.shape(x))) if np.ndim(x) else x for x in args])
        return np.ma.filled(z, 0.0)

    return call


NEGATIVE_HIDDEN, ZERO_HIDDEN = np.array([0.6, -1.3, 2.2]), np.array([0.6, 0.0, 2.2])
if hasattr(np.ma.core, "_MaskedUnaryOperation"):
    _samples = []
    for _f in (np.ma.log, np.ma.sqrt, np.ma.exp, np.ma.sin, np.ma.absolute, np.ma.arcsin):
        _points = (0.4 * NEGATIVE_HIDDEN, ZERO_HIDDEN * 0.4, np.array([0.6, 1.0, 0.2]), M * 0.1 + 0.2)
        _samples += [program(_in_masked(_f), a) for a in _points]
    _samples += [program(_in_masked(np.ma.log, False), NEGATIVE_HIDDEN), program(lambda a: np.ma.filled(np.ma.log(a), 0.0), NEGATIVE_HIDDEN)]
    _samples += [program(lambda a: np.ma.filled(np.ma.core._MaskedUnaryOperation.__call__(np.ma.log, a), 0.0), NEGATIVE_HIDDEN)]
    given(np.ma.core._MaskedUnaryOperation.__call__, *_samples)
if hasattr(np.ma.core, "_MaskedBinaryOperation"):
    _samples = []
    for _f in (np.ma.add, np.ma.multiply, np.ma.subtract, np.ma.hypot, np.ma.arctan2):
        _samples += [program(_in_masked(_f), NEGATIVE_HIDDEN, X + 3.0), program(_in_masked(_f), ZERO_HIDDEN, ZERO_HIDDEN)]
        _samples += [program(_in_masked(_f), M, X + 0.1), program(_in_masked(_f), X, 1.7), program(_in_masked(_f), 1.7, X)]
    given(np.ma.core._MaskedBinaryOperation.__call__, *_samples)
if hasattr(np.ma.core, "_DomainedBinaryOperation"):
    _samples = []
    for _f in (np.ma.divide, np.ma.true_divide, np.ma.fmod, np.ma.remainder):
        _samples += [program(_in_masked(_f), NEGATIVE_HIDDEN + 3.1, ZERO_HIDDEN), program(lambda a, f=_f: np.ma.filled(f(a, ZERO_HIDDEN), 0.0), NEGATIVE_HIDDEN + 3.1)]
        _samples += [program(_in_masked(_f), M + 4.3, X + 0.05), program(_in_masked(_f), X, 0.7), program(_in_masked(_f), 5.3, X)]
    given(np.ma.core._DomainedBinaryOperation.__call__, *_samples)
given(
    np.ma.power,
    program(_in_masked(np.ma.power), ZERO_HIDDEN, X),
    program(_in_masked(np.ma.power), ZERO_HIDDEN, -0.5),
    program(_in_masked(np.ma.power, False), NEGATIVE_HIDDEN, np.array([1.5, 0.5, 2.5])),
    program(_in_masked(np.ma.power), np.abs(M) + 0.1, X),
    program(_in_masked(np.ma.power), 1.7, X),
    program(lambda a: np.ma.filled(np.ma.power(a, 3.0), 0.0), X),
)
given(
    np.ma.MaskedArray.std,
    *[program(_in_masked(lambda a, o=_options: np.ma.MaskedArray.std(a, **o)), _x) for _x in (X, M) for _options in ({}, {"ddof": 1}, {"axis": -1}, {"axis": 0, "keepdims": True})],
    program(_in_masked(np.ma.MaskedArray.std, [False, True, True]), X),
    program(lambda a: np.ma.filled(np.ma.array(a, mask=True).std(axis=0), 0.0), M),
    program(_in_masked(lambda a: a.std(axis=1)), M),
)

given(vars(np.ndarray)["__complex__"], at(np.array(1.5)), at(np.array(1.5 + 2j)))
given(vars(np.ndarray)["__float__"], at(np.array(1.5)), at(np.array([2.5], np.float32)[0:1].reshape(())))
flat = vars(np.flatiter)
given(flat["__getitem__"], program(lambda a: np.flatiter.__getitem__(a.flat, 3), M), program(lambda a: np.flatiter.__getitem__(a.flat, slice(1, 4)), M), program(lambda a: np.flatiter.__getitem__(a.flat, [0, 2, 2]), M))


def _set_flat(a, x):
    a = a * 1.0
    np.flatiter.__setitem__(a.flat, slice(1, 3), x)
    return a


given(flat["__setitem__"], program(_set_flat, M, 2.5), program(_set_flat, M, np.array([1.5, 2.5])))
given(flat["__iter__"], program(lambda a: [2 * y for y in np.flatiter.__iter__(a.flat)], M))
given(flat["__next__"], program(lambda a: np.flatiter.__next__(a.flat), M))
given(flat["copy"], program(lambda a: np.flatiter.copy(a.flat), M))
given(flat["__array__"], program(lambda a: np.flatiter.__array__(a.flat), M))
given(vars(np.generic)["choose"], program(lambda x: np.generic.choose(np.int64(1), [x, x * x]), 1.5))
given(np.vectorize._vectorize_call, program(lambda a: np.vectorize(lambda x: x * math.sin(x))(a), X), program(lambda a, b: np.vectorize(lambda x, y: x * y)(a, b), M, X))
if hasattr(getattr(getattr(np, "_core", None), "_multiarray_umath", None), "_array_converter"):
    given(np._core._multiarray_umath._array_converter, program(lambda a: np.average(a, axis=0), M), program(lambda a: np.apply_along_axis(lambda r: r * r.sum(), 0, a), M))

# Methods of NumPy's scalars
S, ARGS_OF_SCALARS = np.float64(1.7), {
    "take": (0,), "compress": ([True],), "choose": None, "clip": (0.5, 3.0), "astype": (np.float32,), "repeat": (3,), "trace": None, "diagonal": None,
    "__deepcopy__": ({},), "__array_wrap__": None, "swapaxes": None, "__getitem__": ((),), "reshape": (1, 1), "round": (1,), "fill": (2.0,), "put": (0, 2.0), "sort": (),
}  # fmt: skip


def of_scalar_method(function):
    """A method or attribute of np.generic, at a number of double and one of single precision."""
    name = function.__name__
    args = ARGS_OF_SCALARS.get(name, ())
    if args is None:  # made for arrays: they raise for numbers
        args = (0, 1) if name == "swapaxes" else (np.zeros(()),) if name == "__array_wrap__" else ()
    if not callable(function):
        return [program(lambda x: digest(getattr(x, name)), S), program(lambda x: digest(getattr(x, name)), np.complex128(1 + 2j))]
    options = {"argnums": 0}
    return [Sample(lambda x, *more: digest(function(x, *more)), (S, *args), options), Sample(lambda x, *more: digest(function(x, *more)), (np.float32(1.7), *args), options)]


def digest(y):
    """The numbers in a result, as something that can be differentiated and compared."""
    if isinstance(y, (float, complex, np.ndarray, np.generic, Fraction, Decimal)):
        return y
    if isinstance(y, np.flatiter):
        return [digest(part) for part in y]
    if isinstance(y, (list, tuple)):
        return [digest(part) for part in y]
    if isinstance(y, dict):
        return [digest(part) for part in y.values()]
    if isinstance(y, (set, frozenset)):
        return sorted([digest(part) for part in y], key=lambda part: (str(type(part)), str(part)))
    if hasattr(type(y), "__next__"):
        return [digest(part) for part in itertools.islice(y, 4)]
    if isinstance(y, (type({}.keys()), type({}.values()), type({}.items()), range, types.MappingProxyType)):
        return [digest(part) for part in list(y)]
    if isinstance(y, BaseException):
        return [type(y).__name__, digest(y.args)]
    if isinstance(y, (int, str, bytes, type(None), slice)):
        return y
    if isinstance(y, type) or callable(y):
        return getattr(y, "__name__", type(y).__name__)
    return type(y).__name__


# Python: numbers -----------------------------------------------------------------------------------------------------

class Celsius(float):
    pass


given(cmath.polar, at(1.5 + 2j), at(-0.5 - 1j), at(1.5))
given([math.modf, math.frexp], at(2.3), at(-1.7), program(lambda x: math.modf(x)[0] * math.frexp(x)[0], 2.3))
given([elementwise._fraction, elementwise._mantissa], at(2.3), at(-1.7))
given(calls.call_binary, program(lambda x, y: calls.call_binary(x, y, "__add__", "__radd__"), 1.5, 2.0))
given(arithmetic._sum_of_numbers, at(0, 1.5, 2.0), at(0.5, 1.5, 1.0 + 2j), at(0, np.float64(1.5), 2.5))
given(sum, at([1.5, 2.5]), at([1.5, 2, 3.5], 0.5), at([X, 2 * X]), at([1.0 + 2j, 2.0]), at(X), at((np.float64(1.5), 2.0)), at([]), at([Fraction(1, 3), Fraction(3, 2)]), at([Decimal("1.5"), Decimal(2)]), program(lambda x: sum(x * k for k in range(4)), 1.5))
given(divmod, at(7.3, 2.0), at(-7.3, 2.1), at(X, 0.7), at(np.float64(7.3), 2.0), at(Fraction(7, 3), Fraction(5, 4)), at(Decimal("7.3"), Decimal("2.1")), at(7.3, 0.0))
given(math.hypot, at(3.0, 4.0), at(1.0, 2.0, 3.0), at(1.5), at())
given(arithmetic._distance, at(2, 1.0, 2.0, 3.0, 5.0))
given(math.dist, at([1.0, 2.0], (3.0, 5.0)), at(X, np.array([1.0, 2.0, 3.0])), at([1.0], [1.0, 2.0]))
given(arithmetic._exact_sum, at(1.5, 2.5, 1e-3))
given(math.fsum, at([1.5, 2.5, 1e-3]), at(X), program(lambda x: math.fsum(x * k for k in (1.0, 0.5)), 1.5))
given(math.prod, at([1.5, 2.5, 3.0]), at([1.5, 0.0, 2.0]), at([0.5, 3], start=2.5), at([X, 2 * X]), at([]))
if hasattr(math, "sumprod"):
    given(arithmetic._exact_sum_of_products, at(2, 1.0, 2.0, 3.0, 5.0))
    given(math.sumprod, at([1.0, 2.0], [3.0, 5.0]), at([1.0], [2.0, 3.0]))
given([averages._mean, averages._float_mean], at(0.7, 1.3, 2.9))
given(averages._harmonic_mean, at(None, 0.7, 1.3, 2.9), at([0.2, 3.0, 1.5], 0.7, 1.3, 2.9))
given(averages._spread, *[at(name, None, 0.7, 1.3, 2.9, 4.1) for name in ("variance", "pvariance", "stdev", "pstdev")], at("variance", 2.0, 0.7, 1.3, 2.9))
given([statistics.mean, statistics.harmonic_mean], at([0.7, 1.3, 2.9]), at([]), at([Fraction(1, 3), Fraction(5, 2)]))
given(statistics.harmonic_mean, at([0.7, 1.3], [1.0, 2.5]))
given([statistics.variance, statistics.pvariance, statistics.stdev, statistics.pstdev], at([0.7, 1.3, 2.9, 4.1]), at([0.7, 1.3, 2.9], 1.5), at([]))
given(statistics._mean_stdev, at([0.7, 1.3, 2.9, 4.1]))
given(float, at(1.5), at(np.float64(1.5)), at(np.float32(1.5)), at(Fraction(3, 2)), at(Decimal("1.5")), at(np.array(1.5)), at("1.5"), at("x"))
given(float.__dict__["real"], at(1.5))
given(float.__float__, at(1.5))
for _t in (np.generic, np.half, np.single, np.double, np.longdouble):
    if "__float__" in vars(_t):
        given(vars(_t)["__float__"], at((np.float64 if _t is np.generic else _t)(1.5)))
given([complex.real, complex.imag], at(1.5 + 2j))
given(complex.__complex__, at(1.5 + 2j))
given(constructors._complex, at(1.5, 2.5), at(1.5), at(1.5 + 2j))
given(complex, at(1.5, 2.5), at(1.5), at(1.5 + 2j), at(np.complex64(1 + 2j)), at("1+2j"), at("x"))
given(float.__new__, at(float, 1.5), at(Celsius, 1.5))
given(complex.__new__, at(complex, 1.5, 2.5), at(complex, 1.5 + 2j))
for _t in (float, np.half, np.single, np.double, np.longdouble, np.generic, np.ndarray):
    _make = {np.generic: np.float64, np.ndarray: lambda x: np.array([x, -x])}.get(_t, _t)
    given(vars(_t)["__divmod__"], at(_make(7.3), _make(2.1)))
    given(vars(_t)["__rdivmod__"], at(_make(2.1), _make(7.3)))
given(Fraction, at(Fraction(3, 2), Fraction(5, 7)), at(Fraction(3, 2)), at(1.5), at("3/2"), at(Decimal("1.5")))
given(Fraction.from_float.__func__, at(Fraction, 1.5))
given(Fraction.from_decimal.__func__, at(Fraction, Decimal("1.5")))
if hasattr(Fraction, "from_number"):
    given(Fraction.from_number.__func__, at(Fraction, 1.5))
given([Rational.__float__, Fraction.__copy__], at(Fraction(3, 2)))
given(Fraction.__deepcopy__, at(Fraction(3, 2), {}))
given(Fraction.__divmod__, at(*FRACTION_POINTS))
given(Fraction.__rdivmod__, at(*FRACTION_POINTS[::-1]))
given(Decimal, at(Decimal("1.5")), at(1.5), at("1.5"), at("x"))
given([Decimal.__float__, Decimal.__complex__, Decimal.real, Decimal.normalize, Decimal.canonical, Decimal.conjugate, Decimal.next_minus, Decimal.next_plus, Decimal.__copy__], at(Decimal("1.25")))
given(Decimal.__deepcopy__, at(Decimal("1.25"), {}))
given(Decimal.next_toward, at(Decimal("1.25"), Decimal("2"), argnums=0))
given(Decimal.__dict__["from_float"], program(lambda x: Decimal.from_float(x), 1.5))
given(Decimal.from_float, program(lambda x: Decimal.from_float(x), 1.5))
if hasattr(Decimal, "from_number"):
    given(Decimal.from_number, program(lambda x: Decimal.from_number(x), 1.5))
given(Decimal.__divmod__, at(Decimal("7.3"), Decimal("2.1")))
given(Decimal.__rdivmod__, at(Decimal("2.1"), Decimal("7.3")))
for _name, _args in {
    "add": (1, 3), "subtract": (1, 3), "multiply": (2, 3), "divide": (1, 3), "remainder": (7, 3), "power": (2, "0.5"), "plus": ("1.5",), "minus": ("1.5",), "abs": ("-1.5",),
    "fma": (2, 3, "0.125"), "sqrt": (2,), "exp": (2,), "ln": (2,), "log10": (2,), "create_decimal": ("1.5",), "create_decimal_from_float": (1.5,),
}.items():  # fmt: skip
    _numbers = _args if _name == "create_decimal_from_float" else tuple(map(Decimal, _args))
    given(Context.__dict__[_name], program(lambda *xs, name=_name: getattr(Context, name)(Context(prec=25), *xs), *_numbers))

# Python: containers, iteration, calls -------------------------------------------------------------------------------

class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def scaled(self, factor, *, offset=0.0):
        return factor * self.x + offset

    @property
    def product(self):
        return self.x * self.y


given(tuple.__new__, program(lambda x: tuple.__new__(tuple, [x, 2.0]), 1.5), program(lambda x: tuple.__new__(tuple), 1.5))
given(frozenset.__new__, program(lambda x: digest(frozenset.__new__(frozenset, [x, 2.0])), 1.5))
given(containers._place, program(lambda x: x * containers._place([1.0, x, 3.0], 2.0, 0, None, None, True), 1.5))
for _f in (bisect.bisect_left, bisect.bisect_right):
    given(_f, program(lambda x, f=_f: x * f([1.0, x, 3.0], 2.0), 1.5), program(lambda x, f=_f: x * f([3.0, x, 1.0], -2.0, key=lambda v: -v), 1.5))
for _f in (bisect.insort_left, bisect.insort_right):
    given(_f, at([1.0, 2.0, 4.0], 3.0), program(lambda xs, x, f=_f: f(xs, x, key=lambda v: v * 2), [1.0, 2.0, 4.0], 3.0))
given(reversed, program(lambda a: list(reversed(a)), X), program(lambda x: list(reversed([x, 2.0])), 1.5), program(lambda x: list(reversed(3)), 1.5))
given(functools.reduce, program(lambda xs: functools.reduce(lambda a, b: a * b, xs), [1.5, 2.0, 3.0]), program(lambda x: functools.reduce(operator.mul, [x, x], 2.0), 1.5), program(lambda x: functools.reduce(operator.mul, []), 1.5))
given(iteration._running_totals, program(lambda xs: list(iteration._running_totals(iter(xs), None, None)), [1.5, 2.0]), program(lambda xs: list(iteration._running_totals(iter(xs), operator.mul, 2.0)), [1.5, 2.0]))
given(itertools.accumulate, program(lambda xs: list(itertools.accumulate(xs)), [1.5, 2.0, 3.0]), program(lambda xs, x: list(itertools.accumulate(xs, lambda a, b: a * b, initial=x)), [1.5, 2.0], 3.0), program(lambda a: list(itertools.accumulate(a)), X))
given(itertools.count, program(lambda x, h: list(itertools.islice(itertools.count(x, h), 4)), 1.5, 0.5))
given(type(digest).__call__, program(lambda x: type(digest).__call__(lambda y: y * x, x), 1.5))
given(type(Point(0, 0).scaled).__call__, program(lambda x: type(Point(0, 0).scaled).__call__(Point(x, 2.0).scaled, x, offset=x), 1.5))
given(functools.partial.__call__, program(lambda x: functools.partial.__call__(functools.partial(operator.mul, x), x), 1.5))
given(staticmethod.__call__, program(lambda x: staticmethod.__call__(staticmethod(lambda y: y * y), x), 1.5))
given(types.GenericAlias.__call__, program(lambda x: types.GenericAlias.__call__(list[float], (x, 2.0)), 1.5))
given(property.__get__, program(lambda x: property.__get__(Point.product, Point(x, 2.0)), 1.5))
given(type.__call__, program(lambda x: type.__call__(Point, x, y=x * x).y, 1.5), program(lambda x: type.__call__(Celsius, x), 1.5))
given(contextvars.Context.run, program(lambda x: contextvars.copy_context().run(lambda y: y * x, x), 1.5))
given(operator.getitem, at([1.5, 2.0], 1), at(X, 1), at({"a": 1.5}, "a"), at([1.5], 3), at(M, (slice(None), 1)))
given(operator.setitem, at([1.5, 2.0], 1, 3.5), at(X, 1, 3.5), at({"a": 1.5}, "a", 2.5), at(X, slice(0, 2), 2.5))
given(operator.delitem, at([1.5, 2.0], 1), at({"a": 1.5}, "b"))
for _f in (operator.contains, operator.countOf, operator.indexOf):
    given(_f, program(lambda x, f=_f: x * f([1.0, x, 2.0], 2.0), 1.5), program(lambda a, f=_f: a * f(list(a) + [9.0], 9.0), X))
given(operator.concat, at([1.5], [2.5]), at((1.5,), (2.5, X)), at([1.5], 2.5))
if hasattr(operator, "call"):
    given(operator.call, program(lambda x: operator.call(lambda y: y * x, x), 1.5), program(lambda x: operator.call(math.hypot, x, 2.0), 1.5))
given(operator.itemgetter.__call__, program(lambda xs: operator.itemgetter(1)(xs), [1.5, 2.5]), program(lambda d: operator.itemgetter("a", "b")(d), {"a": 1.5, "b": 2.5}))
given(operator.attrgetter.__call__, program(lambda p: operator.attrgetter("x", "product")(p), Point(1.5, 2.5)))
given(operator.methodcaller.__call__, program(lambda p: operator.methodcaller("scaled", 2.0, offset=p.y)(p), Point(1.5, 2.5)))
for _name in ("iadd", "isub", "imul", "itruediv", "imod", "ipow"):
    _f = getattr(operator, _name)
    given(_f, at(2.3, 1.5), at(np.abs(X) + 0.3, 1.7), at(np.abs(M) + 0.3, np.abs(X) + 0.2), at(2.3 + 1j, 1.5) if _name != "imod" else at(2.3, 0.0))
given(operator.ifloordiv, at(7.3, 2.0), at(X * 3.1, 0.7))
given(operator.iadd, at([1.5], [2.5]))
given(operator.imatmul, at(np.eye(2) + M[:, :2], M[:, :2]))
for _name in ("iand", "ior", "ixor", "ilshift", "irshift"):
    given(getattr(operator, _name), program(lambda x, f=getattr(operator, _name): x * f(6, 1), 1.5))
given(operator.ior, at({"a": 1.5}, {"b": 2.5}))
given(operator.iconcat, at([1.5], [2.5]), at((1.5,), (2.5,)))
given(print, program(lambda x: (print(x, [x], sep="", end="", file=NOWHERE), x)[1], 1.5))


class Nowhere:
    def write(self, text):
        return len(text)

    def flush(self):
        pass


NOWHERE = Nowhere()

# Rules that refuse: what they are for has no derivative, and they say so.
REFUSING = {
    vars(np.ndarray)["resize"]: lambda a: np.ndarray.resize(a * 2, (1, 3), refcheck=False),
    vars(np.generic)["byteswap"]: lambda a: np.generic.byteswap(a[0]),
    ufuncs.without_rule: lambda a: ufuncs.without_rule(np.heaviside, a),
    random_numbers.drawn_choice: lambda p: np.random.default_rng(5).choice(3, p=p / p.sum()),
    random_numbers.drawn_gamma: lambda k: np.random.default_rng(5).gamma(np.abs(k)).sum(),
    random_numbers.around_zero: lambda c: np.random.default_rng(5).multivariate_normal(np.zeros(3), np.eye(3) * c).sum(),
}


def samples_of(rule):
    """Where to look at a rule with a derivative; an empty list where nothing is known."""
    f = rule.function
    try:
        if f in TABLE:
            return TABLE[f]
    except TypeError:
        return []
    if rule.kind == "scalar":
        return of_row(rule)
    if f in SAMPLES or f in COMPOSED:
        return of_numpy(f)
    if f in DISPATCHER:
        return of_numpy(DISPATCHER[f])
    if getattr(f, "__objclass__", None) is np.generic:
        return of_scalar_method(f)
    return []


del builtins, warnings
