"""Python's own functions of arrays and tuples, and NumPy's of arrays of several types, by what has rules."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.lowering.composition import COMPOSED, composed, is_real_vector


@composed(builtins.max, lambda *kinds: len(kinds) == 1 and is_real_vector(*kinds))
def largest(x):  # type: ignore[no-untyped-def]
    """The first of the largest elements, as Python compares them."""
    if x.size == 0:
        raise StopIteration  # as Numba does
    found = x[0]
    for k in range(1, x.size):
        if x[k] > found:
            found = x[k]
    return found


@composed(builtins.min, lambda *kinds: len(kinds) == 1 and is_real_vector(*kinds))
def smallest(x):  # type: ignore[no-untyped-def]
    """The first of the smallest elements, as Python compares them."""
    if x.size == 0:
        raise StopIteration  # as Numba does
    found = x[0]
    for k in range(1, x.size):
        if x[k] < found:
            found = x[k]
    return found


@composed(builtins.sum, lambda *kinds: len(kinds) == 1 and is_real_vector(*kinds))
def total(x):  # type: ignore[no-untyped-def]
    """The elements added one after the other, to 0."""
    found = 0.0
    for k in range(x.size):
        found += x[k]
    return found


def as_it_is(items):  # type: ignore[no-untyped-def]
    """A tuple of the parts of a tuple: what `f(x, *args)` passes on."""
    return items


COMPOSED[tuple] = lambda items=None: as_it_is if isinstance(items, types.BaseTuple) else None


def has_integers(a: Any, b: Any, *others: Any) -> bool:
    """Whether one of two vectors holds integers and the other doubles."""
    if others or not all(isinstance(t, types.Array) and t.ndim == 1 for t in (a, b)):
        return False
    return {types.float64} < {a.dtype, b.dtype} and any(isinstance(t.dtype, types.Integer) for t in (a, b))


@composed(np.cross, has_integers)
def cross(a, b):  # type: ignore[no-untyped-def]
    """The vector product of doubles and integers."""
    return np.cross(a * 1.0, b * 1.0)
