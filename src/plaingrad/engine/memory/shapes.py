"""Shapes that are set in place (`a.shape = ...`): a step of the tape, and what becomes of a tangent.

Ordinary Python over arrays: under a nested derivative it runs rewritten, at the next level out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.engine.memory.holders import looked_into
from plaingrad.engine.memory.memory import Shadow

HAS_METHOD = hasattr(np.ndarray, "_set_shape")


def put_shape(a: np.ndarray, shape: tuple[int, ...]) -> None:
    """a.shape = shape; since NumPy 2.5 that has another name."""
    if HAS_METHOD:
        a._set_shape(shape)  # type: ignore[attr-defined]
    else:
        a.shape = shape


@looked_into
class ShapeChange:
    """a.shape = after, of an array in region `index`, or of a constant that a pullback reads (None).

    `layout` is what a compiled tape has of the region to know where elements are, if it has any.
    """

    __slots__ = ("a", "after", "before", "index", "layout")

    def __init__(self, a: np.ndarray, index: int | None, after: tuple[int, ...], layout: Any) -> None:
        self.a = a
        self.index = index
        self.layout = layout
        self.before = a.shape
        self.after = after

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """The array, and its cotangent, have the shape that they had before."""
        undone.append(self)  # before it is done
        put_shape(self.a, self.before)
        if self.layout is not None:
            put_shape(self.layout, self.before)
        if self.index is not None and self.a.base is None:
            bar = shadow.bars[self.index]
            if bar is not None:
                shadow.bars[self.index] = np.reshape(bar, self.before)

    def again(self) -> None:
        """The array has the shape that the function left it in."""
        put_shape(self.a, self.after)
        if self.layout is not None:
            put_shape(self.layout, self.after)


def reshape_tangent(region: Any, shape: tuple[int, ...]) -> None:
    """The tangent of an array that owns its memory gets the shape that the array is given."""
    if region.dot is not None:
        region.dot = np.reshape(region.dot, region.lead + shape)
        region.flat = None  # it is laid out anew when a view asks for it
