"""Prefetching: a kept array is read a block ahead of the loop that uses it, so that the loop's loads hit the cache.

A loop that computes much from each line of memory has few lines on their way at any time, and waits for each of them:
the reverse of a stencil on 256x256 took 10 ms for 104 MB of kept states, of which reading was 6 ms. One load from every
line, with nothing in between, has the processor fetch as many at once as it can: the same 104 MB take 2.5 ms. That is
done for parts that stay in the second-level cache until the loop comes to them, and only where what the arena holds is
more than the caches would keep anyway.
"""

from __future__ import annotations

import numpy as np

from plaingrad.native.runtime.declare import overload, register_jitable
from plaingrad.native.runtime.workspace import CAPACITY, SEEN, address_of, array_at

AT_ONCE = 1 << 17  # bytes brought near at a time
LEAST = 1 << 24  # bytes of an arena from which on that is worth it


@register_jitable(moves=True)
def rows_at_once(arena, x):  # type: ignore[no-untyped-def]
    """How many entries along the first axis of `x` are to be brought near at a time; all where none need be."""
    found = x.shape[0]
    if x.size != 0 and arena[CAPACITY] >= LEAST:
        found = AT_ONCE // (x.itemsize * (x.size // x.shape[0]))
    return found if found > 1 else 1


def bring_near(arena, x, first, last):  # type: ignore[no-untyped-def]
    """Load the entries from `first` to `last` along the first axis of a C array; compiled code only."""


@overload(bring_near, moves=True)
def _bring_near(arena, x, first, last):  # type: ignore[no-untyped-def]
    def bring_near(arena, x, first, last):  # type: ignore[no-untyped-def]
        if arena[CAPACITY] < LEAST or x.size == 0:
            return
        if first < 0:
            first = 0
        if last > x.shape[0]:
            last = x.shape[0]
        if last <= first:
            return
        row = x.itemsize * (x.size // x.shape[0])
        words = array_at(address_of(x) + first * row, (last - first) * row // 8, np.int64)
        part = words.size // 4  # four places at a time take four fifths of the time that one takes
        seen = 0
        for k in range(part):
            seen ^= words[np.uint64(k)] ^ words[np.uint64(k + part)]
            seen ^= words[np.uint64(k + 2 * part)] ^ words[np.uint64(k + 3 * part)]
        arena[SEEN] = seen  # or the compiler leaves the loads out

    return bring_near


__all__ = ["bring_near", "rows_at_once"]
