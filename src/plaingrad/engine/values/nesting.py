"""Derivatives of derivatives: the levels around one, from the inside out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from plaingrad.rewrite import PLAIN

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def outwards(level: Level) -> Iterator[Level]:
    """`level` and those further out."""
    at: Any = level
    while at is not PLAIN:
        yield at
        at = at.parent


def depth_of(level: Any) -> int:
    """How many levels there are, this one and those further out."""
    return sum(1 for _ in outwards(level))
