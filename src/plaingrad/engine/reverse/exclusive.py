"""Containers among the arguments, which are patched during a call, belong to one thread's derivatives at a time."""

from __future__ import annotations

import sys
import time
from _thread import get_ident
from collections.abc import Collection
from typing import Any

from plaingrad.critical import exclusively, shared_lock
from plaingrad.engine.calls.level import Level
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.entries import has_fields, is_of_floats
from plaingrad.engine.memory.kinds import MAPPING, OBJECT, SEQUENCE, kind_of
from plaingrad.errors import PlaingradError
from plaingrad.tangents.fields import fields_of

_lock = shared_lock()
_patched: dict[int, list[Any]] = {}  # id of a patched container -> levels that patch it, innermost last
at_work: dict[Any, tuple[Any, int]] = {}  # levels -> `Inputs` that are made fresh for them now, their threads
WAIT_SECONDS = 600.0


def collect(x: Any, containers: dict[int, Any], seen: set[int]) -> None:
    """Enter into `containers` those in `x` that may be patched, by identity."""
    kind = kind_of(type(x))
    if kind not in (SEQUENCE, MAPPING, OBJECT) or id(x) in seen:
        return
    seen.add(id(x))
    if kind == OBJECT:
        if not has_fields(x):
            return
        values: Any = fields_of(x).values()
    else:
        values = x.values() if kind == MAPPING else x
    if not isinstance(x, tuple):
        containers[id(x)] = x
    if is_of_floats(x):
        return
    for value in list(values):
        collect(value, containers, seen)


def acquire(level: Any, containers: dict[int, Any]) -> None:
    """Wait until no other thread's derivative has one of `containers` (by identity) patched, and take them."""
    if not containers:
        return
    around = levels_around(level)
    deadline = time.monotonic() + WAIT_SECONDS
    while True:  # polled: waiting is rare, and the engine uses no Python classes that user code may adopt
        if exclusively(_lock, _take, level, containers, around):
            return
        if time.monotonic() > deadline:
            raise PlaingradError(
                "an argument is being differentiated by another thread, which did not finish within "
                f"{WAIT_SECONDS:.0f} s; pass each thread its own copy"
            )
        time.sleep(0.0005)


def _take(level: Any, containers: dict[int, Any], around: set[Any]) -> bool:
    around = set(around)
    for i in containers:
        for holder in set(_patched.get(i, ())) - around:
            inputs, thread = at_work.get(holder, (None, 0))
            if inputs is None and not hasattr(
                holder, "base"
            ):  # no segment, and at work nowhere: left behind likewise
                _give_back(holder, containers)
                continue
            if thread != get_ident():
                continue
            if is_going_on(holder, inputs):  # a rule of its asks for a derivative one level out
                around.add(holder)
            else:  # left by an interrupted clean-up
                inputs.restore()
                at_work.pop(holder, None)
    if not all(not _patched.get(i) or _patched[i][-1] in around for i in containers):
        return False
    for i in containers:
        _patched.setdefault(i, []).append(level)
    return True


def is_going_on(level: Any, inputs: Any) -> bool:
    """Whether the call that inputs were made fresh for has not ended, of a level of this thread."""
    if level.is_closed:
        return False
    if core is not None and type(inputs).__module__ == core.__name__:  # it has no frame
        return True
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "with_fresh" and frame.f_locals.get("inputs") is inputs:
            return True
        frame = frame.f_back
    return False


def release(level: Any, containers: dict[int, Any]) -> None:
    """Let others patch `containers`; it may be done twice, and where not all of them were taken."""
    if containers:
        exclusively(_lock, _give_back, level, containers)


def _give_back(level: Any, containers: dict[int, Any]) -> None:
    for i in containers:
        levels = _patched.get(i, [])
        levels[:] = [other for other in levels if other is not level]
        if not levels:
            _patched.pop(i, None)


def restore_others(kept: Collection[Any]) -> None:
    """Put back what was patched for levels of threads that are no more: all but those of this thread and `kept`."""
    here = get_ident()
    for level, (inputs, thread) in list(at_work.items()):
        if thread != here and level not in kept:
            inputs.restore()
            at_work.pop(level, None)
    for i, patching in list(_patched.items()):
        patching[:] = [level for level in patching if level in kept or level in at_work]
        if not patching:
            del _patched[i]


if core is not None:
    core.set_exclusive({"patched": _patched, "at_work": at_work, "lock": _lock, "release": release})


def levels_around(level: Any) -> set[Any]:
    """`level`, those further out, and those that segments among them stand in for."""
    found: set[Any] = set()
    todo = [level]
    while todo:
        level = todo.pop()
        if isinstance(level, Level) and level not in found:
            found.add(level)
            todo += [level.parent, getattr(level, "base", None)]
    return found
