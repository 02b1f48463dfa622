"""What generated programs call: sums over the axes of broadcasting, counts of iterations, slopes."""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import overload, register_jitable

from plaingrad.errors import NativeError


@numba.njit
def extent(a):  # type: ignore[no-untyped-def]
    """(address of the first byte of an array, address behind its last)."""
    low = high = a.ctypes.data
    for k in range(a.ndim):
        reach = a.strides[k] * (a.shape[k] - 1)
        if reach > 0:
            high += reach
        else:
            low += reach
    return low, high + a.itemsize


@numba.njit
def check_disjoint(a, b):  # type: ignore[no-untyped-def]
    """Raise if arrays overlap: Numba does a += b element after element, NumPy as if b were copied first."""
    if a.size == 0 or b.size == 0:
        return
    low_a, high_a = extent(a)
    low_b, high_b = extent(b)
    if low_a < high_b and low_b < high_a:
        if a.ndim == 1 and b.ndim == 1 and a.strides[0] == b.strides[0]:
            if a.strides[0] != 0 and (low_a - low_b) % abs(a.strides[0]) != 0:
                return  # every other element each
        raise NativeError(
            "an array is changed in place by an overlapping view of itself; pass a copy of the view"
        )


@numba.njit(cache=True)
def trips(start, stop, step):  # type: ignore[no-untyped-def]
    """The length of range(start, stop, step)."""
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    if step > 0:
        return (stop - start + step - 1) // step if stop > start else 0
    return (start - stop - step - 1) // -step if start > stop else 0


@register_jitable
def where_taken(taken, bar):  # type: ignore[no-untyped-def]
    """The cotangent of the operand that min or max took, 0 of the others, whatever the cotangent is."""
    return bar if taken else 0.0


def add_to(target, term):  # type: ignore[no-untyped-def]
    """target += term, summed over the axes along which target was broadcast; arrays."""
    extra = np.ndim(term) - target.ndim
    if extra > 0:
        term = np.sum(term, axis=tuple(range(extra)))
    if target.shape != np.shape(term) and np.ndim(term):
        stretched = tuple(k for k in range(target.ndim) if target.shape[k] == 1)
        term = np.sum(term, axis=stretched, keepdims=True)
    target += term.real if target.dtype.kind == "f" and np.iscomplexobj(term) else term


@overload(add_to)
def _add_to(target, term):  # type: ignore[no-untyped-def]
    if not isinstance(term, types.Array) or term.ndim == 0:

        def add_number(target, term):  # type: ignore[no-untyped-def]
            target += np.asarray(term)[()]

        return add_number
    if term.ndim > target.ndim:

        def add_each(target, term):  # type: ignore[no-untyped-def]
            for k in range(term.shape[0]):
                add_to(target, term[k])

        return add_each
    real = isinstance(term.dtype, types.Complex) and not isinstance(target.dtype, types.Complex)
    ndim = target.ndim

    def add_alike(target, term):  # type: ignore[no-untyped-def]
        if target.shape == term.shape:
            if real:
                target += term.real
            else:
                target += term
            return
        for place in np.ndindex(term.shape):
            at = place
            for k in range(ndim):
                if target.shape[k] == 1:
                    at = tuple_setitem(at, k, 0)
            if real:
                target[at] += term[place].real
            else:
                target[at] += term[place]

    return add_alike


@register_jitable
def power_slope(x, y):  # type: ignore[no-untyped-def]
    """d(x**y)/dx; 0 where y is 0."""
    if y == 0:
        return 0.0 * x
    if y == 1:
        return 0.0 * x + 1.0
    if y == 2:
        return 2.0 * x
    return y * np.power(x, y - 1.0)


@register_jitable
def second_power_slope(x, y):  # type: ignore[no-untyped-def]
    """d2(x**y)/dx2; 0 where y is 0 or 1."""
    if y == 0 or y == 1:
        return 0.0 * x
    if y == 2:
        return 0.0 * x + 2.0
    return y * (y - 1.0) * np.power(x, y - 2.0)


@register_jitable
def mixed_power_slope(x, y):  # type: ignore[no-untyped-def]
    """d2(x**y)/dx dy of a real power; 0 where x is 0."""
    if x == 0:
        return 0.0 * x
    return np.power(x, y - 1.0) * (1.0 + y * np.log(abs(x)))


@register_jitable
def log_of_size(x):  # type: ignore[no-untyped-def]
    """log |x|, 0 where x is 0."""
    if x == 0:
        return 0.0 * x
    return np.log(abs(x))


def exponent_slope(x, y, z):  # type: ignore[no-untyped-def]
    """d(x**y)/dy = z log x, for a real power z log |x|; 0 where x is 0."""
    if x == 0:
        return 0.0 * z
    return z * (np.log(x + 0j) if np.iscomplexobj(z) else np.log(abs(x)))


@overload(exponent_slope)
def _exponent_slope(x, y, z):  # type: ignore[no-untyped-def]
    if isinstance(z, types.Complex):
        return lambda x, y, z: 0.0 * z if x == 0 else z * np.log(x + 0j)
    return lambda x, y, z: 0.0 * z if x == 0 else z * np.log(abs(x))


@numba.vectorize
def power_slopes(x, y):  # type: ignore[no-untyped-def]
    """`power_slope` of arrays."""
    return power_slope(x, y)


@numba.vectorize
def second_power_slopes(x, y):  # type: ignore[no-untyped-def]
    """`second_power_slope` of arrays."""
    return second_power_slope(x, y)


@numba.vectorize
def exponent_slopes(x, y, z):  # type: ignore[no-untyped-def]
    """`exponent_slope` of arrays."""
    return exponent_slope(x, y, z)


def copy_around(to, of, low, high):  # type: ignore[no-untyped-def]
    """to[place] = of[place] wherever not low <= place < high along all axes, for arrays of one shape of rank 3 at most.

    Where the box is empty, or reaches out of the arrays, everything is copied.
    """
    whole = of.copy()
    inside = tuple([slice(a, b) for a, b in zip(low, high, strict=True)])
    if all(0 <= a < b <= n for a, b, n in zip(low, high, to.shape, strict=True)):
        whole[inside] = to[inside]
    to[...] = whole


@register_jitable
def _copy_row(to, of, start, stop):  # type: ignore[no-untyped-def]
    for k in range(start, stop):
        to[np.uint64(k)] = of[np.uint64(k)]


@overload(copy_around, inline="never")
def _copy_around(to, of, low, high):  # type: ignore[no-untyped-def]
    rank = to.ndim

    def fits(to, low, high):  # type: ignore[no-untyped-def]
        for k in range(rank):
            if not (0 <= low[k] < high[k] <= to.shape[k]):
                return False
        return True

    fits = register_jitable(fits)

    def along_one_axis(to, of, low, high):  # type: ignore[no-untyped-def]
        n = to.shape[0]
        box = fits(to, low, high)
        _copy_row(to, of, 0, low[0] if box else n)
        _copy_row(to, of, high[0] if box else n, n)

    def along_two_axes(to, of, low, high):  # type: ignore[no-untyped-def]
        n = to.shape[1]
        box = fits(to, low, high)
        for i in range(to.shape[0]):
            crosses = box and low[0] <= i < high[0]
            _copy_row(to[i], of[i], 0, low[1] if crosses else n)
            _copy_row(to[i], of[i], high[1] if crosses else n, n)

    def along_three_axes(to, of, low, high):  # type: ignore[no-untyped-def]
        n = to.shape[2]
        box = fits(to, low, high)
        for i in range(to.shape[0]):
            for j in range(to.shape[1]):
                crosses = box and low[0] <= i < high[0] and low[1] <= j < high[1]
                _copy_row(to[i, j], of[i, j], 0, low[2] if crosses else n)
                _copy_row(to[i, j], of[i, j], high[2] if crosses else n, n)

    return (along_one_axis, along_two_axes, along_three_axes)[rank - 1]
