"""What an array is, set in place: `a.shape = ...` is followed; strides, type and data are refused.

Pullbacks hold arrays as they are, so a change of shape is a step on the tape: the way back gives the array the shape
that it had before, as it does with overwritten elements, and the end of the way back the one that it has now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.engine.refusals.refuse import refuse
from plaingrad.errors import MissingRuleError
from plaingrad.rewrite import PLAIN

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

ATTRIBUTES = ("shape", "strides", "dtype", "data")


def involved(level: Level, a: np.ndarray) -> list[Any]:
    """The levels, the innermost first, at which `a` is differentiated, or read again by a pullback."""
    found: list[Any] = []
    at: Any = level
    while at is not PLAIN:
        # What is captured is the owner; views may be new ones, as numpy.ma makes them.
        if at.region(a) is not None or (a.base is None and id(a) in at.captured):
            found.append(at)
        at = at.parent
    return found


def set_shape(level: Level, a: np.ndarray, shape: Any, put: Callable[[], None]) -> None:
    """a.shape = shape, which `put` does.

    Raises:
        MissingRuleError: `a` is an argument, which the caller knows by another name, or is differentiated in a way that
            does not know of shapes that change.
    """
    levels = involved(level, a)
    if levels:
        before = a.shape
        tried = a.view()
        tried.shape = shape  # raises what the program's own assignment does
        if tried.shape == before:
            return
        for at in levels:
            twin = at.fresh.get(at.region(a))
            if type(a) is not np.ndarray or not at.follows_shapes or (twin is not None and twin.copy is a):
                refuse_change(at, a, "shape")
        for at in reversed(levels):
            at.shape_changes(a, tried.shape)
    put()


def refuse_change(level: Level, a: np.ndarray, name: str) -> None:
    """Refuse to set an attribute in `ATTRIBUTES` of an array that is differentiated, or that a pullback reads again.

    Levels further out have tables of their own.

    Raises:
        MissingRuleError: it is, at this level or further out.
    """
    for at in involved(level, a):
        if at.region(a) is not None:
            which, why = "a differentiated array", "Its derivative has the layout that it had before."
        else:
            which, why = (
                "an array that a pullback reads again",
                "The pullback would find another array there.",
            )
        fix = "use reshape, view or a copy, which are new arrays"
        refuse(
            MissingRuleError, f"`.{name}` of {which} is set in place", why=why, fix=fix, anchor="missing-rule"
        )
