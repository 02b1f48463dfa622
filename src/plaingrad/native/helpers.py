"""What generated programs call: tapes that grow, sums over the axes of broadcasting, counts of iterations."""

from __future__ import annotations

import math

import numba
import numpy as np
from numba.core import types
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import overload


@numba.njit(cache=True)
def grown(tape, size):  # type: ignore[no-untyped-def]
    """`tape` with room for `size` entries at least."""
    if size <= tape.size:
        return tape
    new = np.empty(max(2 * tape.size, size), tape.dtype)
    for k in range(tape.size):
        new[k] = tape[k]
    return new


@numba.njit
def keep_array(tape, at, x):  # type: ignore[no-untyped-def]
    """tape[at + 1] = x; entries in between, of iterations that had nothing to keep, are filled."""
    while len(tape) < at + 2:
        tape.append(x)
    tape[at + 1] = x


@numba.njit
def kept_array(tape, at):  # type: ignore[no-untyped-def]
    """What `keep_array` put at `at`; any array for an iteration that had nothing to keep."""
    return tape[min(at + 1, len(tape) - 1)]


@numba.njit(cache=True)
def trips(start, stop, step):  # type: ignore[no-untyped-def]
    """The length of range(start, stop, step)."""
    if step > 0:
        return (stop - start + step - 1) // step if stop > start else 0
    return (start - stop - step - 1) // -step if start > stop else 0


def add_to(target, term):  # type: ignore[no-untyped-def]
    """target += term, summed over the axes along which target was broadcast; arrays."""
    extra = np.ndim(term) - target.ndim
    if extra > 0:
        term = np.sum(term, axis=tuple(range(extra)))
    if target.shape != np.shape(term) and np.ndim(term):
        stretched = tuple(k for k in range(target.ndim) if target.shape[k] == 1)
        term = np.sum(term, axis=stretched, keepdims=True)
    target += term


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


@numba.njit
def power_slope(x, y):  # type: ignore[no-untyped-def]
    """d(x**y)/dx; 0 where y is 0."""
    if y == 0:
        return 0.0 * x
    if y == 1:
        return 0.0 * x + 1.0
    if y == 2:
        return 2.0 * x
    return y * x ** (y - 1)


@numba.njit
def exponent_slope(x, y, z):  # type: ignore[no-untyped-def]
    """d(x**y)/dy for real numbers; 0 where x is 0 and y is not negative."""
    if x > 0:
        return z * math.log(x)
    if x == 0 and y >= 0:
        return 0.0
    return math.nan


@numba.vectorize
def power_slopes(x, y):  # type: ignore[no-untyped-def]
    """`power_slope` of arrays."""
    return power_slope(x, y)


@numba.vectorize
def exponent_slopes(x, y, z):  # type: ignore[no-untyped-def]
    """`exponent_slope` of arrays."""
    return exponent_slope(x, y, z)
