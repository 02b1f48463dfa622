"""Levels that are used again.

Opening a level sets up some fifty hooks, and one that is dropped leaves cycles for the collector. So one that nobody
refers to any more after its derivative was read off is emptied, and the next derivative begins with it. Compiled levels
inside no other are kept here, reverse ones inside a forward one (Hessian-vector products) with that. Levels with chunks
of tangents, or Taylor coefficients, are kept by how many these are, as long as they take little memory.
"""

from __future__ import annotations

import sys
from typing import Any

from plaingrad import rulebook
from plaingrad.engine.calls.level import Level
from plaingrad.engine.users_code import adopt, codes
from plaingrad.rewrite import CURRENT, PLAIN

MOST = 4  # are kept
MOST_SIZES = 8  # of chunks

# Levels of each class, with what their hooks were made for, how many references each has to the one around it, and how
# many there were to it.
free_levels: dict[type[Level], list[tuple[Any, Any, int, int]]] = {}
# (class, how many tangents) -> the same, of levels with chunks.
_free_chunks: dict[tuple[type[Level], int], list[tuple[Any, Any, int, int]]] = {}
# (class of a level, of the one around it, whether it has no chunk) -> how many references it has to itself, to that;
# in which circumstances.
_own_references: tuple[Any, dict[Any, tuple[int, int]]] = None, {}


def new_level(level_class: type[Level], outer: Any, chunk: int | None = None) -> Any:
    """A level of this class inside `outer`, with as many tangents as `chunk` says."""
    given = (outer,) if chunk is None else (outer, chunk)
    if chunk is None:
        free = free_levels.get(level_class) if outer is PLAIN else outer.spare
    else:
        free = _free_chunks.get((level_class, chunk)) if outer is PLAIN else None
    if free:
        try:
            made_for, level, _, _ = free.pop()
        except IndexError:  # another thread was faster
            return level_class(*given)
        if made_for == _circumstances() and type(level) is level_class:
            level.renew()
            return level
    return level_class(*given)


def make_ready(level_class: type[Level]) -> bool:
    """Make a level inside no other that the next derivative may begin with; whether there is none to begin with yet."""
    if CURRENT.get() is not PLAIN or free_levels.get(level_class):
        return False
    level = level_class(PLAIN)
    level.calls.closed()
    level.is_closed = level.keeps_hooks = True
    held = [level]
    del level
    give_back(held)
    return True


def give_back(held: list[Any]) -> None:
    """Keep the level in `held`, which is taken out: its derivative was read off, and nobody will ask it again."""
    level = held.pop()
    if not level.keeps_hooks or level.recorder is None:
        return
    outer = level.parent
    chunk = level.lead[0] if getattr(level, "lead", ()) else None
    if chunk is not None:
        free = (
            None if outer is not PLAIN or level.recorder.takes_much else _free_chunks_of(type(level), chunk)
        )
    else:
        free = free_levels.setdefault(type(level), []) if outer is PLAIN else outer.spare
    if free is not None and len(free) < MOST:
        circumstances = _circumstances()
        own, to_outer = _references(type(level), outer, chunk, circumstances)
        if sys.getrefcount(level) == own + level.references_of_spare():
            level.empty()
            free.append((circumstances, level, to_outer, own))


def _free_chunks_of(level_class: type[Level], chunk: int) -> list[tuple[Any, Any, int, int]]:
    found = _free_chunks.get((level_class, chunk))
    if found is None:
        if len(_free_chunks) >= MOST_SIZES:
            _free_chunks.clear()
        found = _free_chunks[level_class, chunk] = []
    return found


def _references(
    level_class: type[Level], outer: Any, chunk: int | None, circumstances: tuple[Any, ...]
) -> tuple[int, int]:
    """How many references a closed level of this class has where nobody else refers to it, and it has to `outer`."""
    global _own_references
    made_for, counts = _own_references
    if made_for != circumstances:
        _own_references = circumstances, (counts := {})
    key = level_class, type(outer), chunk is None
    if key not in counts:
        around = outer if outer is PLAIN else type(outer)(PLAIN)
        before = sys.getrefcount(around)
        level = level_class(around) if chunk is None else level_class(around, chunk)  # type: ignore[call-arg]
        level.calls.closed()
        counts[key] = sys.getrefcount(level), sys.getrefcount(around) - before
    return counts[key]


def _circumstances() -> tuple[Any, ...]:
    """What the hooks of a level depend on."""
    return rulebook.changes(), codes.is_watched, adopt.other_threads()
