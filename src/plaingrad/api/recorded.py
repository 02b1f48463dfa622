"""The parts of the public door that compute with derivatives. They are ordinary Python over numbers and arrays.

Where a derivative is being taken around the call they run rewritten, one level out, and are recorded there like any
other code. They know nothing of levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad import define
from plaingrad.tangents import NoTangent


def element(a: np.ndarray) -> Any:
    """The number in a 0-d array."""
    return a[()]


def as_array(x: Any) -> np.ndarray:
    """A number as a 0-d array."""
    return np.array(x)


# -- rules of our own functions ----------------------------------------------------------------------------------------


def hooked(fn: Callable[[Any], Any], leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    """`leaves`; their cotangents go through `fn`."""
    return copies(leaves)


def copies(leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    """`leaves` with arrays in memory of their own."""
    return tuple([np.array(x) if isinstance(x, np.ndarray) else x for x in leaves])


@define.rrule(hooked)
def hooked_rrule(fn: Callable[[Any], Any], leaves: tuple[Any, ...]) -> Any:
    """Cotangents of the leaves: fn(those that arrive)."""

    def hooked_pullback(bars: Any) -> tuple[Any, ...]:
        return NoTangent, fn(bars)

    return copies(leaves), hooked_pullback  # the hook is done with: levels further out do not meet it


@define.frule(hooked)
def hooked_frule(fn: Callable[[Any], Any], leaves: tuple[Any, ...]) -> Any:
    """Tangents pass as they are."""

    def hooked_pushforward(dots: Any) -> Any:
        return dots[1]

    return hooked(fn, leaves), hooked_pushforward


define.frule(hooked, chunked=True)(hooked_frule)


def hook_on_leaves(fn: Any, spread: Any, gather: Any) -> Callable[[Any], Any]:
    """The user's hook as a function of a tuple of leaves' cotangents."""

    def on_leaves(bars: Any) -> Any:
        x_bar = spread(bars)
        changed = fn(x_bar)
        return gather(x_bar if changed is None else changed)

    return on_leaves
