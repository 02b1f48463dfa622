"""Code that tells what it compares, made of a function of the program and of what that calls.

Functions of Python are followed, those of NumPy and SciPy, too, where they have no derivative rule. Built-in functions
that jump (`floor`, `copysign`, `min` by a key) tell where. What else may branch by itself is noted as `Unknown`: compiled
code, operators of the program's objects.
"""

from __future__ import annotations

import bisect
import cmath
import copy
import functools
import itertools
import math
import operator
from types import BuiltinFunctionType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np
from scipy import special

from plaingrad import origin, rulebook
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import mover
from plaingrad.rules.scipy.integrate.told import (
    answered,
    begin,
    compared,
    divided,
    each_edge,
    end,
    unknown,
    whole,
)

SMOOTH = frozenset(
    (
        "scalar",
        "linear",
        "bilinear",
        "full",
        "composed",
        "mover",
        "inspector",
        "higher_order",
        "outside",
        "asks",
    )
)
LIBRARIES = ("builtins", "numpy", "scipy", "collections", "types", "functools", "itertools", "plaingrad")
FEW = 12  # items that are compared each with each
OBJECT_NEW = object.__new__


def choosing(f: Any) -> Any:
    """`max` and `sorted`: told of all pairs among arguments, or among the items of one, by their keys."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not is_array(args[0]):
            args = (list(args[0]),)
        key = kwargs.get("key")
        if key is not None:
            kwargs["key"] = key = followed(key)
        each_pair(args[0] if len(args) == 1 else args, key)
        return f(*args, **kwargs)

    return told


@mover
def is_array(x: Any) -> bool:
    """Whether x is an array."""
    return isinstance(x, np.ndarray)


def each_pair(items: Any, key: Any) -> None:
    """Note every two of a few items."""
    if is_array(items) or len(items) > FEW:
        unknown(items)
    else:
        keys = [item if key is None else key(item) for item in items]
        for k in range(len(keys)):
            for j in range(k):
                compared(keys[j], keys[k])


def larger(f: Any) -> Any:
    """`np.maximum` and the like: told of two arguments."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) >= 2:
            compared(args[0], args[1])
        return f(*args, **kwargs)

    return told


def at_zero(f: Any, place: int = 0) -> Any:
    """`abs` and the like: of the argument at a place."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) > place:
            compared(args[place], 0.0)
        return f(*args, **kwargs)

    return told


def at_whole(f: Any) -> Any:
    """`floor` and the like."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if args:
            whole(args[0])
        return f(*args, **kwargs)

    return told


def rounding(f: Any) -> Any:
    """`round` and the like, to so many digits."""

    def told(x: Any, *args: Any, **kwargs: Any) -> Any:
        digits = args[0] if args else kwargs.get("decimals", kwargs.get("ndigits"))
        whole(x * 10.0**digits if digits else x, 0.5)
        return f(x, *args, **kwargs)

    return told


def between(f: Any) -> Any:
    """`np.clip` and the like."""

    def told(x: Any, *args: Any, **kwargs: Any) -> Any:
        for bound in (*args[:2], *kwargs.values()):
            compared(x, bound)
        return f(x, *args, **kwargs)

    return told


def dividing(f: Any, shift: float = 0.0) -> Any:
    """`np.fmod` and the like."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2:
            divided(args[0], args[1], shift)
        return f(*args, **kwargs)

    return told


def among(f: Any) -> Any:
    """`np.digitize(x, edges)` and the like."""

    def told(x: Any, edges: Any, *args: Any, **kwargs: Any) -> Any:
        each_edge(x, edges)
        return f(x, edges, *args, **kwargs)

    return told


def into(f: Any) -> Any:
    """`bisect(edges, x)` and the like."""

    def told(edges: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("key"):
            each_edge(x, edges)
        return f(edges, x, *args, **kwargs)

    return told


def of_object(f: Any) -> Any:
    """`len` and the like, which a class may answer as it likes."""

    def told(*args: Any) -> Any:
        operands(*args)
        return f(*args)

    return told


def passing(f: Any) -> Any:
    """`map` and the like, which call functions that they are given."""

    def told(*args: Any, **kwargs: Any) -> Any:
        return f(*[handed(x) for x in args], **{name: handed(x) for name, x in kwargs.items()})

    return told


@mover
def handed(x: Any) -> Any:
    """An argument, followed if it is a function."""
    return (
        followed(x)
        if isinstance(x, (FunctionType, MethodType, functools.partial, BuiltinFunctionType))
        else x
    )


def casting(f: Any, place: int = 0) -> Any:
    """`np.array` and the like, to which a dtype may be given behind the argument at a place."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) > place:
            cut(args[place], args[place + 1] if len(args) > place + 1 else kwargs.get("dtype"))
        return f(*args, **kwargs)

    return told


@mover
def cut(x: Any, dtype: Any) -> None:
    """Note numbers that lose what they have behind the point, by a dtype or in an array that they are put into."""
    if dtype is None or isinstance(dtype, (list, dict)):
        return
    kind = dtype.dtype.kind if is_array(dtype) else np.dtype(dtype).kind
    if kind in "iub":
        for part in x if isinstance(x, (list, tuple)) else [x]:
            if isinstance(part, (list, tuple)):
                cut(part, dtype)
            elif not is_array(part) or part.dtype.kind == "f":
                compared(part, 0.0) if kind == "b" else whole(part)


def as_type(x: Any, *args: Any, **kwargs: Any) -> Any:
    """x.astype(dtype)."""
    return x.astype(*args, **kwargs)


def stored(value: Any, o: Any) -> None:
    """Note a store into whole numbers, or into an object of the program's."""
    if is_array(o):
        cut(value, o)
    else:
        operands(o)


SWITCHES: dict[Any, Any] = {
    **{f: choosing(f) for f in (max, min, sorted)},
    **{f: larger(f) for f in (np.maximum, np.minimum, np.fmax, np.fmin)},
    **{f: larger(f) for f in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)},
    **{f: larger(f) for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)},
    **{
        f: at_zero(f)
        for f in (
            abs,
            bool,
            math.fabs,
            np.abs,
            np.fabs,
            np.sign,
            np.heaviside,
            np.signbit,
            math.atan2,
            np.arctan2,
        )
    },
    **{f: at_zero(f, 1) for f in (math.copysign, np.copysign)},
    **{f: at_whole(f) for f in (math.floor, math.ceil, math.trunc, math.modf, int)},
    **{f: at_whole(f) for f in (np.floor, np.ceil, np.trunc, np.fix, np.modf)},
    **{
        f: at_whole(f)
        for f in (np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8)
    },
    **{f: rounding(f) for f in (round, np.rint, np.round, np.around)},
    **{
        f: dividing(f) for f in (math.fmod, np.fmod, np.mod, np.remainder, np.floor_divide, divmod, np.divmod)
    },
    **{f: dividing(f) for f in (operator.mod, operator.imod, operator.floordiv, operator.ifloordiv)},
    **{f: casting(f) for f in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray)},
    **{f: casting(f, 1) for f in (np.full, np.full_like)},
    as_type: casting(as_type),
    math.remainder: dividing(math.remainder, 0.5),
    np.clip: between(np.clip),
    np.digitize: among(np.digitize),
    **{f: into(f) for f in (np.searchsorted, bisect.bisect_left, bisect.bisect_right)},
    len: of_object(len),
    **{f: passing(f) for f in (map, filter, functools.reduce, np.apply_along_axis, np.vectorize)},
    **{
        f: passing(f)
        for f in (itertools.takewhile, itertools.dropwhile, itertools.filterfalse, itertools.starmap)
    },
    **{f: passing(f) for f in (itertools.accumulate, itertools.groupby)},
}
METHODS = {
    "clip": np.clip,
    "searchsorted": np.searchsorted,
    "round": np.round,
    "__abs__": np.abs,
    "astype": as_type,
}  # of arrays
#: Functions with rules that jump where no comparison is told.
JUMPING = frozenset((np.nan_to_num, cmath.phase, np.spacing, np.nextafter, math.nextafter, math.ulp, math.frexp, np.frexp, np.quantile, np.percentile, np.nanquantile, np.nanpercentile, np.fromiter, special.expn, special.kn, special.yn, special.bdtr, special.bdtrc, special.bdtri, special.nbdtr, special.nbdtrc, special.nbdtri, special.pdtr, special.pdtrc))  # fmt: skip
#: Functions without derivatives that do not jump, or whose jumps are those of what they are called with.
PLAIN = frozenset((np.zeros, np.ones, np.empty, np.zeros_like, np.ones_like, np.empty_like, np.arange, np.eye, np.shape, np.ndim, np.size, np.any, np.all, np.where, isinstance, issubclass, callable, type, print, id, hash, getattr, hasattr, super))  # fmt: skip
CONTAINERS = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    range,
    slice,
    enumerate,
    zip,
    reversed,
    float,
    complex,
    BaseException,
)


# -- what is called instead --------------------------------------------------------------------------------------------


@mover
def followed(f: Any) -> Any:
    """What to call instead of f: the same, which tells what it compares."""
    return watched(f, followed_function)


@mover
def followed_function(f: Any) -> Any:
    """The same of a Python function that is called: not where its derivative is known."""
    told = SWITCHES.get(f)
    if told is not None:
        return told
    rule = rulebook.find(f)
    if rule is not None:
        return f if is_smooth(f, rule) else deciding(f)
    if type(f.__module__) is str and f.__module__.startswith("plaingrad."):
        return f
    return integrand(f)


def is_smooth(f: Any, rule: Any) -> bool:
    """Whether a function with a rule jumps nowhere."""
    return f in PLAIN or (rule.kind in SMOOTH and f not in JUMPING)


@mover
def integrand(f: Any) -> Any:
    """A function as code that tells what it compares, and that it may catch exceptions."""
    new = derivatives.watched(f, CALLED)
    return catching(new) if f.__code__.co_exceptiontable and not f.__code__.co_flags & 0x2A0 else new


def catching(f: Any) -> Any:
    """f, of which it is noted that it may branch by exceptions; no generator or coroutine."""

    def told(*args: Any, **kwargs: Any) -> Any:
        unknown()
        return f(*args, **kwargs)

    return told


@mover
def watched(f: Any, of_function: Any = integrand) -> Any:
    """f with what `of_function` makes of the Python function behind it; itself where there is none."""
    t = type(f)
    if t is FunctionType:
        return of_function(f)
    if t is MethodType:
        return MethodType(watched(f.__func__, of_function), f.__self__)
    if t is functools.partial:
        return functools.partial(watched(f.func, of_function), *f.args, **f.keywords)
    if t is np.vectorize:
        again = copy.copy(f)
        again.pyfunc = watched(f.pyfunc, of_function)
        return again
    if isinstance(f, type) or origin.is_of(t.__module__, ("plaingrad", "numpy", "scipy")):
        return compiled(f)
    call = next((vars(cls)["__call__"] for cls in t.__mro__ if "__call__" in vars(cls)), None)
    if type(call) is FunctionType:
        return MethodType(followed_function(call), f)
    return compiled(f)


def compiled(f: Any) -> Any:
    """The same of what is no Python code of the program's."""
    try:
        told = SWITCHES.get(f)
    except TypeError:  # it has no hash
        return deciding(f)
    if told is not None:
        return told
    if isinstance(f, type) and issubclass(f, (*CONTAINERS, np.generic, np.ndarray, np.errstate)):
        return f
    if isinstance(f, type) and not is_library(f):
        return constructing(f)
    rule = rulebook.find(f)
    return f if f in PLAIN or (rule is not None and is_smooth(f, rule)) else deciding(f)


def is_library(cls: type) -> bool:
    """Whether a class is not the program's."""
    return origin.package_of(cls.__module__) in LIBRARIES


def constructing(cls: Any) -> Any:
    """A class of the program, whose `__init__` is followed."""
    start = cls.__init__
    if type(cls) is not type or cls.__new__ is not OBJECT_NEW or type(start) is not FunctionType:
        return deciding(cls)

    def told(*args: Any, **kwargs: Any) -> Any:
        o = OBJECT_NEW(cls)
        followed_function(start)(o, *args, **kwargs)
        return o

    return told


def deciding(f: Any) -> Any:
    """f, whose calls are noted."""

    def told(*args: Any, **kwargs: Any) -> Any:
        call = unknown(f, args, kwargs)
        return answered(call, f(*args, **kwargs))

    return told


@mover
def method(o: Any, name: str) -> Any:
    """An object with what is called instead of a method of o."""
    if isinstance(o, np.ndarray) and name in METHODS:
        return SimpleNamespace(**{name: functools.partial(SWITCHES[METHODS[name]], o)})
    return SimpleNamespace(**{name: followed(getattr(o, name))})


def attribute(o: Any, name: str) -> Any:
    """o.name, whose getter is followed."""
    getter = getter_of(o, name)
    return getattr(o, name) if getter is None else getter(o)


@mover
def getter_of(o: Any, name: str) -> Any:
    """What is called for an attribute of an object of the program; None if it is what is stored."""
    t = type(o)
    if isinstance(o, type) or is_library(t):
        return None
    found = next((vars(cls)[name] for cls in t.__mro__ if name in vars(cls)), None)
    if type(found) is property and type(found.fget) is FunctionType:
        return followed_function(found.fget)
    is_stored = found is None and not hasattr(t, "__getattr__")
    if (
        not (is_stored or isinstance(found, (FunctionType, staticmethod, classmethod)))
        or t.__getattribute__ is not object.__getattribute__
    ):
        if not isinstance(found, (float, int, str, np.ndarray, tuple, list, dict)):
            unknown(o)
    return None


@mover
def operands(*parts: Any) -> None:
    """Note operands of an operator that is the program's own."""
    for x in parts:
        t = type(x)
        if not is_library(t):
            unknown(*parts)
            return


def operated(a: Any, b: Any) -> None:
    """Note the operands of a division that leaves a remainder."""
    operands(a, b)
    divided(a, b)


CALLED = {
    "compared": compared,
    "divided": operated,
    "prep": followed,
    "method": method,
    "attribute": attribute,
    "operands": operands,
    "stored": stored,
}


def comparisons(f: Any, args: Any, x: Any) -> list[Any]:
    """What f(x) compares."""
    token = begin()
    told = []
    try:
        watched(f)(x, *args)
    finally:
        told = end(token)
    return told


__all__ = ["comparisons", "watched"]
