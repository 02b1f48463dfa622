"""Reverse mode: a level that records what is done with active values on a tape, for the way back."""

from __future__ import annotations

from typing import ClassVar

from plaingrad.engine.reverse.arrays import ReverseArrays
from plaingrad.engine.reverse.rules import ReverseRules


class ReverseLevel(ReverseRules, ReverseArrays):
    """A reverse-mode derivative in progress.

    The table gives active numbers and memory an index, under which the reverse pass keeps their cotangents.
    """

    __slots__ = ()

    has_own_table: ClassVar[bool] = True
    takes_native_rules: ClassVar[bool] = True
