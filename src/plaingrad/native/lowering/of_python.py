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


def cross(a, b):  # type: ignore[no-untyped-def]
    """The vector product of doubles and integers."""
    return np.cross(a * 1.0, b * 1.0)


def number_as_array(x):  # type: ignore[no-untyped-def]
    """A number as an array without axes."""
    return np.full((), x)


def asarray_of(x: Any, *others: Any) -> Any:
    """np.asarray of a float or complex number."""
    t = types.unliteral(x) if x is not None else None
    return number_as_array if not others and t in (types.float64, types.complex128) else None


COMPOSED[np.asarray] = asarray_of


def real_part(x):  # type: ignore[no-untyped-def]
    """The real part of a number."""
    return x.real


def imaginary_part(x):  # type: ignore[no-untyped-def]
    """The imaginary part of a number."""
    return x.imag


def of_number(part: Any) -> Any:
    """np.real or np.imag of a complex number."""
    return lambda x: part if isinstance(types.unliteral(x), types.Complex) else None


COMPOSED[np.real], COMPOSED[np.imag] = of_number(real_part), of_number(imaginary_part)


def cross_of_parts(a, b):  # type: ignore[no-untyped-def]
    """np.cross of two vectors, lists or tuples, of two or three numbers."""
    m, n = len(a), len(b)
    if not (2 <= m <= 3 and 2 <= n <= 3):
        raise ValueError("Incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if m == 2 and n == 2:
        raise ValueError(
            "Dimensions for both inputs is 2.\nPlease replace your numpy.cross(a, b) call with a call to "
            "`cross2d(a, b)` from `numba.np.extensions`."
        )
    a0, a1, b0, b1 = a[0], a[1], b[0], b[1]
    a2 = a[2] if m == 3 else 0.0
    b2 = b[2] if n == 3 else 0.0
    found = np.empty(3)
    found[0] = a1 * b2 - a2 * b1
    found[1] = a2 * b0 - a0 * b2
    found[2] = a0 * b1 - a1 * b0
    return found


def cross_of(a: Any, b: Any, *others: Any) -> Any:
    """np.cross of doubles and integers; where one operand is a list, or a tuple of three, and one holds doubles."""
    if others or all(isinstance(t, types.Array) for t in (a, b)):
        return cross if has_integers(a, b, *others) else None
    inside = []
    for t in (a, b):
        if isinstance(t, types.BaseTuple) and len(t) == 3:
            inside += list(t)
        elif isinstance(t, types.List) or (isinstance(t, types.Array) and t.ndim == 1):
            inside.append(t.dtype)
        else:
            return None
    inside = [types.unliteral(t) for t in inside]
    if (
        not all(t == types.float64 or isinstance(t, types.Integer) for t in inside)
        or types.float64 not in inside
    ):
        return None
    return cross_of_parts


COMPOSED[np.cross] = cross_of
