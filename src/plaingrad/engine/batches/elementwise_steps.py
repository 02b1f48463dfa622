"""Operators and ufuncs on mapped values: what broadcasts its operands."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from plaingrad.engine.batches import forms
from plaingrad.engine.batches.mapped import Mapped
from plaingrad.engine.batches.shape_steps import as_one
from plaingrad.engine.batches.steps import Steps, ndim_of

ARITHMETIC = frozenset(
    getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow neg pos abs invert and_ or_ xor lshift rshift".split()
)
ON_INTEGERS = frozenset(
    (np.add, np.subtract, np.multiply, np.power, np.square, np.negative, np.left_shift, np.abs)
)
POWERS = frozenset((operator.pow, operator.lshift, operator.rshift, np.power, np.left_shift))
ORDER = frozenset((operator.lt, operator.le, operator.gt, operator.ge))


def broadcast(level: Steps, f: Any, xs: Any, is_python: bool) -> Any:
    """A function that broadcasts its operands."""
    for x in xs:
        if not isinstance(x, (Mapped, np.ndarray, np.generic, int, float, complex)):
            level.give_up(f"an operand of type {type(x).__name__}")
    level.check_types(xs)
    if f in ORDER and any(np.result_type(x.value if type(x) is Mapped else x).kind == "c" for x in xs):
        level.give_up("an order of complex numbers")  # an error for those of Python
    if f in ARITHMETIC or f in ON_INTEGERS:
        level.check_integers(xs)
        kinds = [x.dtype.kind if type(x) is Mapped else np.result_type(x).kind for x in xs]
        if all(kind == "b" for kind in kinds) or (f in POWERS and all(kind in "iub" for kind in kinds)):
            level.give_up("arithmetic of truths, or powers and shifts of integers")
    mapped = tuple([type(x) is Mapped for x in xs])
    ndim = max(map(ndim_of, xs))
    return level.made(
        level.outside(forms.elementwise, f, tuple(map(level.value, xs)), mapped, ndim), is_python
    )


def ufunc(level: Steps, f: np.ufunc, *xs: Any) -> Any:
    """A ufunc of one result."""
    if len(xs) != f.nin:
        level.give_up("a ufunc with an output")
    return broadcast(level, f, tuple([as_one(level, x) for x in xs]), False)


def where(level: Steps, f: Any, condition: Any, x: Any, y: Any) -> Any:
    """np.where(condition, x, y)."""
    xs = [as_one(level, x) for x in (condition, x, y)]
    return _selected(level, f, xs)


def clip(level: Steps, f: Any, x: Any, a_min: Any = None, a_max: Any = None) -> Any:
    """np.clip."""
    if a_min is None or a_max is None:
        level.give_up("clip at one side")
    return _selected(level, np.clip, [x, a_min, a_max])


def _selected(level: Steps, f: Any, xs: Any) -> Any:
    z = broadcast(level, f, tuple(xs), False)
    if not z.shape and f is np.where:
        z.cls = np.ndarray  # 0-d
    return z
