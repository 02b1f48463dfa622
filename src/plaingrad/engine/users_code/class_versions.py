"""Version tags of classes: a number that CPython changes whenever an attribute of a class, or of a base, is replaced.

It caches attribute lookups by them. There is no Python name for them, so they are read where they lie, in the type
object; the place is found by an experiment when this module is imported.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

_WORD = ctypes.sizeof(ctypes.c_uint32)
_look_up = type.__getattribute__


def _words(cls: type) -> list[int]:
    return list((ctypes.c_uint32 * (type.__basicsize__ // _WORD)).from_address(id(cls)))


def _experiment() -> int | None:
    """The offset of the tag in a type object: of what a new attribute of a base changes, the first; else None."""
    base = type("base", (), {"value": 0})
    cls = type("cls", (base,), {})
    seen = []
    for k in range(4):
        base.value = k  # type: ignore[attr-defined]
        _look_up(cls, "__hash__")
        seen.append(_words(cls))
        _look_up(cls, "__eq__")
        if seen[-1] != _words(cls):
            return None
    for at, values in enumerate(zip(*seen, strict=True)):
        if len(set(values)) == len(values) and 0 not in values:
            return at * _WORD
    return None


_OFFSET = _experiment()
UNKNOWN = -1  # no tag is equal to it


def tag_of(cls: type) -> tuple[Any, int]:
    """(where the tag of the heap type `cls` lies, as `.value`; what it is now, `UNKNOWN` if it has none)."""
    if _OFFSET is None:
        return ctypes.c_uint32(), UNKNOWN
    place = ctypes.c_uint32.from_address(id(cls) + _OFFSET)
    if not place.value:
        _look_up(cls, "__new__")  # a class gets one when an attribute is looked up
    return place, place.value or UNKNOWN


class Versions:
    """Whether several classes are as they were, and some objects are still of the classes they were of: as `.value`."""

    __slots__ = ("classes", "objects", "tags")

    def __init__(self, classes: Iterable[type], objects: Iterable[Any]) -> None:
        self.objects = [(x, type(x)) for x in objects]
        kept = {id(cls): cls for cls in (*classes, *[cls for _, cls in self.objects])}
        self.classes = list(kept.values())  # kept, since their memory is read
        self.tags = [tag_of(cls) for cls in self.classes]

    @property
    def value(self) -> bool:
        """Whether all is as it was."""
        for place, tag in self.tags:
            if place.value != tag:
                return False
        for x, cls in self.objects:
            if type(x) is not cls:
                return False
        return True


def versions_of(classes: Iterable[type], objects: Iterable[Any]) -> tuple[Any, int]:
    """As `tag_of`, of several classes and of the classes of objects."""
    return Versions(classes, objects), True
