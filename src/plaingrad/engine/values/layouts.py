"""What an array is, set in place (`a.shape = ...`): a pullback that holds the array would read another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.engine.refusals.refuse import refuse
from plaingrad.errors import MissingRuleError
from plaingrad.rewrite import PLAIN

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

ATTRIBUTES = ("shape", "strides", "dtype", "data")


def refuse_change(level: Level, a: np.ndarray, name: str) -> None:
    """Refuse to set an attribute in `ATTRIBUTES` of an array that is differentiated, or that a pullback reads again.

    Levels further out have tables of their own.

    Raises:
        MissingRuleError: it is, at this level or further out.
    """
    at: Any = level
    while at is not PLAIN:
        if at.region(a) is not None:
            which, why = "a differentiated array", "Its derivative has the layout that it had before."
        elif a.base is None and id(a) in at.captured:  # views may be new ones, as numpy.ma makes them
            which, why = (
                "an array that a pullback reads again",
                "The pullback would find another array there.",
            )
        else:
            at = at.parent
            continue
        fix = "use reshape, view or a copy, which are new arrays"
        refuse(
            MissingRuleError, f"`.{name}` of {which} is set in place", why=why, fix=fix, anchor="missing-rule"
        )
