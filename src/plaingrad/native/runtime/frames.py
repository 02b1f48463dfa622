"""Frames: what the forward sweep of a function that calls itself keeps for its reverse sweep, as one array."""

from __future__ import annotations

import numpy as np

from plaingrad.native.runtime.declare import overload
from plaingrad.native.runtime.workspace import (
    bytes_taken,
    got_reference,
    own_memory,
    put_reference,
    room,
    words_of,
)


def box(arena, n):  # type: ignore[no-untyped-def]
    """A frame for n arrays."""
    return [None] * n


@overload(box, moves=True)
def _box(arena, n):  # type: ignore[no-untyped-def]
    return lambda arena, n: room(arena, n, np.int64)


def put(arena, frame, k, x):  # type: ignore[no-untyped-def]
    """`frame` with the array x in place k."""
    frame[k] = x
    return frame


@overload(put, moves=True)
def _put(arena, frame, k, x):  # type: ignore[no-untyped-def]
    def put(arena, frame, k, x):  # type: ignore[no-untyped-def]
        address = bytes_taken(arena, 8 * words_of(x))
        own_memory(arena, put_reference(address, x))
        frame[k] = address
        return frame

    return put


def got(frame, k, like):  # type: ignore[no-untyped-def]
    """The array in place k of a frame, of the type of `like`."""
    return frame[k]


@overload(got, moves=True)
def _got(frame, k, like):  # type: ignore[no-untyped-def]
    return lambda frame, k, like: got_reference(frame[k], like)
