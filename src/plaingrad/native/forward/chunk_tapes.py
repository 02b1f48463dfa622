"""Chunks of tangents of tapes and cotangents: what derived programs call that are derived again."""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.cpython.unsafe.tuple import tuple_setitem

from plaingrad.native.forward.chunk_arrays import add_scaled
from plaingrad.native.forward.chunks import Lanes, as_lanes, objects, zero_lanes, zero_lanes_like
from plaingrad.native.runtime.declare import overload


def grown(tape, size):  # type: ignore[no-untyped-def]
    """A tape of lanes with room for `size` entries at least."""
    if size <= tape.size:
        return tape
    out = objects(max(2 * tape.size, size))
    out[: tape.size] = tape
    return out


@overload(grown)
def _grown(tape, size):  # type: ignore[no-untyped-def]
    n = tape.dtype.n

    def longer(tape, size):  # type: ignore[no-untyped-def]
        if size <= tape.size:
            return tape
        out = as_lanes(np.zeros((max(2 * tape.size, size), n)), n)
        for k in range(tape.size):
            out[k] = tape[k]
        return out

    return longer


def more(arena, tape, size):  # type: ignore[no-untyped-def]
    """`grown`, with the place where memory is taken from."""
    return grown(tape, size)


@overload(more)
def _more(arena, tape, size):  # type: ignore[no-untyped-def]
    return lambda arena, tape, size: grown(tape, size)


def add_to(target, term):  # type: ignore[no-untyped-def]
    """target += term of arrays of lanes, summed over the axes along which target was broadcast."""
    shape = term.shape if isinstance(term, np.ndarray) and term.dtype == object else ()
    if 0 < len(shape) < target.ndim:
        for part in target:
            add_to(part, term)
        return
    for place in np.ndindex(shape or target.shape):
        at = place[len(place) - target.ndim :]
        at = tuple(0 if target.shape[k] == 1 and shape else i for k, i in enumerate(at))
        target[at] = target[at] + (term[place] if shape else term)


@overload(add_to)
def _add_to(target, term):  # type: ignore[no-untyped-def]
    if isinstance(term, Lanes):
        return lambda target, term: add_scaled(target, 1.0, term)
    if term.ndim > target.ndim:

        def add_each(target, term):  # type: ignore[no-untyped-def]
            for k in range(term.shape[0]):
                add_to(target, term[k])

        return add_each
    if term.ndim < target.ndim:

        def add_within(target, term):  # type: ignore[no-untyped-def]
            for k in range(target.shape[0]):
                add_to(target[k], term)

        return add_within
    ndim = target.ndim

    def add_alike(target, term):  # type: ignore[no-untyped-def]
        for k in range(ndim):
            if target.shape[k] != term.shape[k] and target.shape[k] != 1:
                raise ValueError("a tangent has not the shape of its array")
        for place in np.ndindex(term.shape):
            at = place
            for k in range(ndim):
                if target.shape[k] == 1:
                    at = tuple_setitem(at, k, 0)
            target[at] = target[at] + term[place]

    return add_alike


def fitted(z, term):  # type: ignore[no-untyped-def]
    """Lanes in new memory, of the shape of `z`."""
    out = zero_lanes_like(z, 1)
    for place in np.ndindex(z.shape):
        out[place] = np.broadcast_to(term, z.shape)[place]
    return out


@overload(fitted)
def _fitted(z, term):  # type: ignore[no-untyped-def]
    n = term.dtype.n if isinstance(term, types.Array) else term.n

    def placed(z, term):  # type: ignore[no-untyped-def]
        out = as_lanes(np.zeros(z.shape + (n,)), n)
        add_scaled(out, 1.0, term)
        return out

    return placed


def conj_of(x_dot):  # type: ignore[no-untyped-def]
    """conj(x): lanes are real."""
    return x_dot


@overload(conj_of)
def _conj_of(x_dot):  # type: ignore[no-untyped-def]
    return lambda x_dot: x_dot


def withdrawn(bar, numbers):  # type: ignore[no-untyped-def]
    """What lies at these places of an array of lanes, in the order of the places; there it becomes zero."""
    out = zero_lanes_like(numbers, bar.reshape(-1)[0].size if bar.size else 1)
    for place in reversed(list(np.ndindex(numbers.shape))):  # the last of equal places was written
        at = np.unravel_index(numbers[place], bar.shape)
        out[place] = bar[at]
        bar[at] = bar[at] * 0.0
    return out


@overload(withdrawn)
def _withdrawn(bar, numbers):  # type: ignore[no-untyped-def]
    n, ndim = bar.dtype.n, bar.ndim
    first = (0,) * ndim

    def taken(bar, numbers):  # type: ignore[no-untyped-def]
        out = as_lanes(np.zeros((numbers.size, n)), n)
        each, nothing = numbers.reshape(-1), zero_lanes(n)
        for k in range(each.size - 1, -1, -1):
            at, rest = first, each[k]
            for axis in range(ndim - 1, -1, -1):
                at = tuple_setitem(at, axis, rest % bar.shape[axis])
                rest //= bar.shape[axis]
            out[k] = bar[at]
            bar[at] = nothing
        return out.reshape(numbers.shape)

    return taken
