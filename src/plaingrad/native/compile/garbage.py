"""Garbage is looked for less often while a derived program is made and compiled.

Numba makes hundreds of thousands of small objects that live until it is done, and the collector of CPython looks
through all objects of the process again and again meanwhile: that was a tenth to a fifth of a first gradient.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from plaingrad.critical import closing, exclusively, shared_lock

OBJECTS = 20_000  # that are made between two collections, at least

_lock = shared_lock()
_inside: set[object] = set()  # one for each call, of any thread, that is within `seldom_collected`
_usual: tuple[int, int, int] = (0, 0, 0)  # the thresholds that held before the first of them
_ours: tuple[int, int, int] = (0, 0, 0)


def seldom_collected(work: Callable[..., Any], *args: Any) -> Any:
    """work(*args), with collections after OBJECTS new objects at the earliest.

    Afterwards they come as before, unless somebody has set that anew.
    """
    call = object()

    def begin() -> Any:
        exclusively(_lock, _enter, call)
        return work(*args)

    def end() -> None:
        exclusively(_lock, _leave, call)

    return closing(begin, end)


def _enter(call: object) -> None:
    global _usual, _ours
    if not _inside:
        _usual = gc.get_threshold()
        first, second, third = _usual
        _ours = max(first, OBJECTS) if first else 0, second, third  # 0: the user wants no collection
    _inside.add(call)
    if len(_inside) == 1:
        gc.set_threshold(*_ours)


def _leave(call: object) -> None:
    """It may be done twice."""
    if _inside == {call} and gc.get_threshold() == _ours:
        gc.set_threshold(*_usual)
    _inside.discard(call)
