"""Reverse mode: a level that records what is done with active values on a tape, for the way back."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from plaingrad.engine.memory.shapes import ShapeChange, put_shape
from plaingrad.engine.memory.tape import STEP
from plaingrad.engine.reverse.arrays import ReverseArrays
from plaingrad.engine.reverse.rules import ReverseRules


class ReverseLevel(ReverseRules, ReverseArrays):
    """A reverse-mode derivative in progress.

    The table gives active numbers and memory an index, under which the reverse pass keeps their cotangents.
    """

    __slots__ = ()

    has_own_table: ClassVar[bool] = True
    takes_native_rules: ClassVar[bool] = True
    follows_shapes: ClassVar[bool] = True
    keeps_tasks: ClassVar[bool] = True

    def shape_changes(self, a: np.ndarray, shape: tuple[int, ...]) -> None:
        """A step, so that what is further back sees the shape of now."""
        i = self.region(a)
        is_owner = i is not None and a.base is None
        layout = self.tape.layout(i) if is_owner and self.recorder is not None else None
        if layout is not None:
            put_shape(layout, shape)
        self.tape.extend((-1 if i is None else i, STEP, ShapeChange(a, i, shape, layout)))
