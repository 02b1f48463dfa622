"""What communication knows of a derivative that is being taken, by its level, which is used for several in turn."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

T = TypeVar("T")


class PerDerivative(Generic[T]):
    """A table by level, of objects with an attribute `run` that stands for the derivative.

    Attributes:
        made: (what stands for the derivative, the level) -> a new object.
    """

    def __init__(self, made: Callable[[Any, Level], T]) -> None:
        self.made = made
        self._of_levels: weakref.WeakKeyDictionary[Level, Any] = weakref.WeakKeyDictionary()

    def of(self, level: Level) -> T:
        """That of the derivative which `level` takes; made if there is none, or one of a derivative before it."""
        found = self._of_levels.get(level)
        if found is None or found.run is not level.patched:
            found = self._of_levels[level] = self.made(level.patched, level)
        return found  # type: ignore[no-any-return]

    def last(self, level: Level) -> T | None:
        """The one that was made last for `level`."""
        return self._of_levels.get(level)
