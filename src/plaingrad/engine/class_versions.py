"""Version tags of classes: a number that CPython changes whenever an attribute of a class, or of a base, is replaced.

It caches attribute lookups by them. There is no Python name for them, so they are read where they lie, in the type
object; the place is found by an experiment when this module is imported.
"""

from __future__ import annotations

import ctypes
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
        _look_up(cls, "__hash__")  # a class gets one when an attribute is looked up
    return place, place.value or UNKNOWN
