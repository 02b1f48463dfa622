"""Functions of Python and its `math` on mapped numbers, and containers of mapped values."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from plaingrad.engine.batches import admitted, forms
from plaingrad.engine.batches.elementwise_steps import broadcast
from plaingrad.engine.batches.mapped import Mapped, any_mapped
from plaingrad.engine.batches.numpy_steps import operation
from plaingrad.engine.batches.steps import Steps, is_python_number

OF_MATH = {
    getattr(math, name): getattr(np, ufunc)
    for name, ufunc in [
        *[
            (name, name)
            for name in "sin cos tan exp expm1 log1p log2 log10 sqrt sinh cosh tanh hypot fabs".split()
        ],
        *[(name, name) for name in "isnan isinf isfinite copysign degrees radians exp2 cbrt".split()],
        *[(f"a{name}", f"arc{name}") for name in "sin cos tan sinh cosh tanh tan2".split()],
        *[("log", "log"), ("pow", "power")],
    ]
    if hasattr(math, name)
}


def of_math(level: Steps, f: Any, *xs: Any) -> Any:
    """A function of `math`: of floats, whatever real numbers it is given."""
    if len(xs) != (2 if OF_MATH[f].nin == 2 else 1):
        level.give_up(f"{f.__name__} of {len(xs)} arguments")
    return broadcast(level, OF_MATH[f], tuple([number(level, x) for x in xs]), True)


def number(level: Steps, x: Any) -> Any:
    """A real number as a float."""
    if type(x) is not Mapped:
        return level.plainly(float, x)
    if x.shape or x.dtype.kind not in "fiub":
        level.give_up("a number that is none")
    if x.cls is float and x.batch is level.batch:
        return x
    if x.dtype == float:
        return Mapped(level.batch, level.value(x), float)
    return level.made(level.outside(forms.called, np.ndarray.astype, (level.value(x), float), {}), True)


def to_float(level: Steps, f: Any, x: Any) -> Any:
    """float(x)."""
    return number(level, x)


def to_int(level: Steps, f: Any, x: Any) -> Any:
    """int(x) of an integer."""
    if type(x) is not Mapped or x.shape or x.dtype != np.int64:
        level.give_up("an integer part")
    return Mapped(level.batch, level.value(x), int)


def to_bool(level: Steps, f: Any, x: Any) -> bool:
    """bool(x), where the examples agree."""
    return bool(x)


def absolute(level: Steps, f: Any, x: Any) -> Any:
    """abs(x)."""
    return operation(level, operator.abs, x)


def extreme(level: Steps, f: Any, *xs: Any) -> Any:
    """max and min of several numbers."""
    if len(xs) == 1:
        xs = tuple(xs[0]) if isinstance(xs[0], (list, tuple)) else ()
    if len(xs) < 2 or not all(is_float(x) for x in xs):
        level.give_up(f"{f.__name__} of anything but floats")
    best, form = xs[0], forms.larger if f is max else forms.smaller
    for x in xs[1:]:
        pair = best, x
        if not any_mapped(pair):
            best = level.plainly(f, *pair)
            continue
        mapped = tuple([type(x) is Mapped for x in pair])
        best = level.made(level.outside(forms.elementwise, form, tuple(map(level.value, pair)), mapped, 0))
        of_python = {is_python_number(x) for x in pair}
        best.cls = None if len(of_python) > 1 else float if True in of_python else np.float64
    return best


def is_float(x: Any) -> bool:
    """Whether one example's value is a real number of double precision."""
    if type(x) is Mapped:
        return x.dtype == float and x.cls is not np.ndarray
    return isinstance(x, float)


def total(level: Steps, f: Any, xs: Any, start: Any = 0) -> Any:
    """sum(xs): one addition after another."""
    for x in level.iterable(xs):
        start = operation(level, operator.add, start, x) if any_mapped((start, x)) else level.add(start, x)
    return start


def zipped(level: Steps, f: Any, *xs: Any, strict: bool = False) -> Any:
    """zip."""
    return iterator(level, zip(*map(level.iterable, xs), strict=strict))


def enumerated(level: Steps, f: Any, xs: Any, start: int = 0) -> Any:
    """enumerate."""
    return iterator(level, enumerate(level.iterable(xs), start))


def backwards(level: Steps, f: Any, xs: Any) -> Any:
    """reversed, of a sequence."""
    return iterator(level, reversed(level.iterable(xs)))


def iterator(level: Steps, it: Any) -> Any:
    """An iterator that only this run goes on with, as far as the program does."""
    level.batch.iterators[id(it)] = it
    return it


def truth(level: Steps, f: Any, xs: Any) -> bool:
    """any, all: they go on until the answer is known."""
    for x in level.iterable(xs):
        if not admitted.is_safe(x):
            level.give_up(f"the truth of {type(x).__name__}")
        if bool(x) is (f is any):
            return f is any
    return f is all


def listed(level: Steps, f: Any, xs: Any = ()) -> Any:
    """list, tuple."""
    return f(level.iterable(xs))


def of_leaf(level: Steps, f: Any, x: Any) -> Any:
    """A function that gives a value like the one that it is given."""
    if type(x) is not Mapped:
        level.give_up(f"{f.__name__} of a structure")
    return Mapped(level.batch, level.outside(forms.called, f, (level.value(x),), {}), x.cls)


def is_named_tuple(cls: Any) -> bool:
    """Whether a class is one that `namedtuple` has made, whose constructor only moves references."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and hasattr(cls, "_fields")
        and cls.__new__.__module__ == f"namedtuple_{cls.__name__}"
        and "__init__" not in vars(cls)
    )


def type_of(level: Steps, f: Any, x: Any) -> Any:
    """type(x)."""
    if type(x) is not Mapped:
        return type(x)
    if x.cls is None:
        level.give_up("the type of a number")
    return x.cls


def is_instance(level: Steps, f: Any, x: Any, classes: Any) -> bool:
    """isinstance(x, classes)."""
    if type(x) is not Mapped:
        return isinstance(x, classes)
    return issubclass(type_of(level, type, x), classes)


STEPS: dict[Any, Any] = dict.fromkeys(OF_MATH, of_math)
STEPS |= {float: to_float, int: to_int, bool: to_bool, abs: absolute, max: extreme, min: extreme, sum: total}
STEPS |= {zip: zipped, enumerate: enumerated, reversed: backwards, list: listed, tuple: listed}
STEPS |= {type: type_of, isinstance: is_instance, any: truth, all: truth}
