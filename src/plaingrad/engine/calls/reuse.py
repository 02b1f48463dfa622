"""Levels that are used again.

Opening a level sets up some fifty hooks, and one that is dropped leaves cycles for the collector. So one that nobody
refers to any more after its derivative was read off is emptied, and the next derivative begins with it. Compiled levels
inside no other are kept here, reverse ones inside a forward one (Hessian-vector products) with that.
"""

from __future__ import annotations

import sys
from typing import Any

from plaingrad import rulebook
from plaingrad.engine.calls.level import Level
from plaingrad.engine.users_code import adopt, codes
from plaingrad.rewrite import PLAIN

MOST = 4  # are kept

# Levels of each class, with what their hooks were made for, how many references each has to the one around it, and how
# many there were to it.
free_levels: dict[type[Level], list[tuple[Any, Any, int, int]]] = {}
# (class of a level, of the one around it) -> how many references it has to itself, and to that; in which circumstances.
_own_references: tuple[Any, dict[Any, tuple[int, int]]] = None, {}


def new_level(level_class: type[Level], outer: Any) -> Any:
    """A level of this class inside `outer`."""
    free = free_levels.get(level_class) if outer is PLAIN else outer.spare
    if free:
        try:
            made_for, level, _, _ = free.pop()
        except IndexError:  # another thread was faster
            return level_class(outer)
        if made_for == _circumstances() and type(level) is level_class:
            level.renew()
            return level
    return level_class(outer)


def give_back(held: list[Any]) -> None:
    """Keep the level in `held`, which is taken out: its derivative was read off, and nobody will ask it again."""
    level = held.pop()
    if not level.keeps_hooks or level.recorder is None:
        return
    outer = level.parent
    free = free_levels.setdefault(type(level), []) if outer is PLAIN else outer.spare
    if len(free) < MOST:
        circumstances = _circumstances()
        own, to_outer = _references(type(level), outer, circumstances)
        if sys.getrefcount(level) == own + level.references_of_spare():
            level.empty()
            free.append((circumstances, level, to_outer, own))


def _references(level_class: type[Level], outer: Any, circumstances: tuple[Any, ...]) -> tuple[int, int]:
    """How many references a closed level of this class has where nobody else refers to it, and it has to `outer`."""
    global _own_references
    made_for, counts = _own_references
    if made_for != circumstances:
        _own_references = circumstances, (counts := {})
    key = level_class, type(outer)
    if key not in counts:
        around = outer if outer is PLAIN else type(outer)(PLAIN)
        before = sys.getrefcount(around)
        level = level_class(around)
        level.calls.closed()
        counts[key] = sys.getrefcount(level), sys.getrefcount(around) - before
    return counts[key]


def _circumstances() -> tuple[Any, ...]:
    """What the hooks of a level depend on."""
    return rulebook.changes(), codes.is_watched, adopt.other_threads()
