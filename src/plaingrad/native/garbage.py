"""Garbage is looked for less often while a derived program is made and compiled.

Numba makes hundreds of thousands of small objects that live until it is done, and the collector of CPython looks
through all objects of the process again and again meanwhile: that was a tenth to a fifth of a first gradient.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from plaingrad.critical import shared_lock

OBJECTS = 20_000  # that are made between two collections, at least

_lock = shared_lock()
_inside = 0  # how many threads and calls are within `seldom_collected`
_usual: tuple[int, int, int] = (0, 0, 0)  # the thresholds that held before the first of them
_ours: tuple[int, int, int] = (0, 0, 0)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect after OBJECTS new objects at the earliest; afterwards as before, unless somebody has set that anew."""
    global _inside, _usual, _ours
    with _lock:
        _inside += 1
        if _inside == 1:
            _usual = gc.get_threshold()
            first, *others = _usual
            if first:  # 0: the user wants no collection
                gc.set_threshold(max(first, OBJECTS), *others)
            _ours = gc.get_threshold()
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and gc.get_threshold() == _ours:
                gc.set_threshold(*_usual)
