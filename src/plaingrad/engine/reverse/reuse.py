"""Levels that are used again.

Opening a level sets up some fifty hooks, and one that is dropped leaves cycles for the collector. So one that nobody
refers to any more after its gradients were read off is emptied, and the next gradient begins with it.
"""

from __future__ import annotations

import sys
from typing import Any

from plaingrad import rulebook
from plaingrad.engine.fusion.hot_hooks import SWEEP_BYTES
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.users_code import adopt, codes
from plaingrad.engine.values import texts
from plaingrad.engine.values.borrowed import Borrowed
from plaingrad.rewrite import CURRENT, PLAIN

MOST = 4  # are kept

_free: list[tuple[Any, ReverseLevel]] = []  # with what its hooks were made for
_own_references: tuple[Any, int] = None, 0  # how many a level has to itself, in which circumstances


def new_level() -> ReverseLevel:
    """A level inside the one in force."""
    outer = CURRENT.get()
    if outer is PLAIN and _free:
        try:
            made_for, level = _free.pop()
        except IndexError:  # another thread was faster
            return ReverseLevel(outer)
        if made_for == _circumstances():
            _renew(level)
            return level
    return ReverseLevel(outer)


def give_back(run: Any) -> None:
    """Keep the level of `run`, whose gradients were read off and which nobody will pull back again."""
    level = run.level
    if level.parent is PLAIN and level.keeps_hooks and level.recorder is not None and len(_free) < MOST:
        circumstances = _circumstances()
        expected = _references_of_its_own(circumstances)
        run.level = None
        if sys.getrefcount(level) == expected:
            _empty(level)
            _free.append((circumstances, level))
        else:
            run.level = level


def _references_of_its_own(circumstances: tuple[Any, ...]) -> int:
    global _own_references
    made_for, count = _own_references
    if made_for != circumstances:
        level = ReverseLevel(PLAIN)
        level.calls.closed()
        count = sys.getrefcount(level)
        _own_references = circumstances, count
    return count


def _circumstances() -> tuple[Any, ...]:
    """What the hooks of a level depend on."""
    return rulebook.changes(), codes.is_watched, adopt.other_threads()


def _empty(level: ReverseLevel) -> None:
    """Let go of what the last derivative has left."""
    for held in (level.alive, level.arrays, level.captured, level.twins, level.fresh, level.heirs):
        held.clear()
    level.patched = []
    level.texts = texts.texts_for(PLAIN)
    level.borrowed = Borrowed(level)
    level._array_bytes, level._array_limit = 0, SWEEP_BYTES
    level.inputs = 0
    level.recorder.renew()


def _renew(level: ReverseLevel) -> None:
    level.refusal = None
    level.may_sweep = True
    level.is_closed = level.keeps_hooks = False
    level.calls.open = True
