"""Who refers to a value, and what a tape says: how a segment knows that it may be dropped, and made again alike.

References are counted as the garbage collector does it. Tapes are compared by what enters derivatives.
"""

from __future__ import annotations

import functools
import gc
import zlib
from collections.abc import Callable, Iterable
from itertools import compress
from sys import getrefcount
from types import CellType, FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np

from plaingrad.class_keys import entry_for, is_among
from plaingrad.engine.memory.memory import owner_of, whole_multiple_back, whole_sum_back
from plaingrad.engine.memory.tape import (
    ARRAY_ARITHMETIC,
    CALLED,
    STEP,
    ArraySlot,
    InPlaceRule,
    InPlaceSum,
    NumberSlot,
    ReadArray,
    ReadNumber,
    RuleStep,
    Tree,
    Write,
    WriteCotangent,
    elementwise_back,
    read_number_back,
    write_number_back,
)

T = TypeVar("T", bound=type)


def parts_of_function(f: FunctionType) -> list[Any]:
    """Where a function keeps values: cells and defaults."""
    return [part for part in (f.__closure__, f.__defaults__, f.__kwdefaults__) if part is not None]


#: What an object of a class refers to, for the classes of which pullbacks and steps are made.
PARTS: dict[type, Callable[[Any], list[Any]]] = {
    **dict.fromkeys((tuple, list, dict, CellType, MethodType, functools.partial), gc.get_referents),
    **dict.fromkeys((ArraySlot, NumberSlot, Tree, RuleStep, Write), gc.get_referents),
    **dict.fromkeys((ReadNumber, ReadArray, WriteCotangent, InPlaceSum, InPlaceRule), gc.get_referents),
    FunctionType: parts_of_function,
}


TABLES: set[type] = set()  # levels: nobody gets at values through them


def looked_into(step: T) -> T:
    """A class of steps, entered among those whose instances are looked into."""
    PARTS[step] = gc.get_referents
    return step


def parts_of(x: Any) -> list[Any]:
    """What `x` refers to, as far as pullbacks keep values there."""
    if isinstance(x, np.ndarray):
        return [] if x.base is None else [x.base]
    parts = entry_for(PARTS, type(x))
    return [] if parts is None else parts(x)


class Inside:
    """What pullbacks and tables refer to, directly or not, and how often: to find what is referred to from elsewhere.

    As the garbage collector does it: an object with more references than were found inside is held from outside, and
    so is what it refers to. What is overlooked inside counts as outside, which is the safe side.
    """

    __slots__ = ("counts", "nodes", "todo", "wanted")

    def __init__(self, wanted: set[int]) -> None:
        self.wanted = wanted  # identities of the objects that the question is about
        self.nodes: dict[int, Any] = {}
        self.counts: dict[int, int] = {}
        self.todo: list[Any] = []

    def see_level(self, level: Any, start: int) -> None:
        """Count what the tables of a level refer to, and its tape from entry `start` on.

        Its own are the values that it has filed; nobody gets at them through the level.
        """
        self.counts[id(level)] = 1  # steps of segments refer to it: it is seen once
        alive = (level.numbers(), level.arrays, level.captured.values())
        for values in alive:
            self.refer_to(compress(values, map(self.wanted.__contains__, map(id, values))))
        self.see_tape(getattr(level, "tape", []), start)

    def refer_to(self, values: Iterable[Any]) -> None:
        """Count a reference to each of `values`."""
        counts = self.counts
        for x in values:
            key = id(x)
            if key in counts:
                counts[key] += 1
                continue
            try:
                is_part = type(x) in PARTS
            except TypeError:  # a class without hash
                is_part = False
            if is_part or key in self.wanted or isinstance(x, np.ndarray):
                counts[key] = 1
                self.nodes[key] = x
                self.todo.append(x)

    def see_tape(self, tape: Any, start: int) -> None:
        """Count what the tape refers to from entry `start` on."""
        if type(tape) is not list:
            self.refer_to(tape.held(start))
            return
        marks = tape[start + 1 :: 3]
        is_step = list(map((0).__gt__, marks))
        self.refer_to(compress(tape[start::3], is_step))
        slopes = tape[start + 2 :: 3]
        self.refer_to(compress(slopes, is_step))
        self.refer_to(
            slopes[k]
            for k in compress(range(len(slopes)), map(self.wanted.__contains__, map(id, slopes)))
            if not is_step[k]
        )

    def follow(self) -> None:
        """Count what those refer to in turn."""
        while self.todo:
            self.refer_to(parts_of(self.todo.pop()))

    def excess(self) -> list[tuple[Any, int]]:
        """Every object, and how many more references it has than were counted."""
        values = list(self.nodes.values())
        counts = list(map(getrefcount, values))  # nothing else may refer to one of them just now
        return [(x, count - self.counts[id(x)]) for x, count in zip(values, counts, strict=True)]

    def held_elsewhere(self) -> list[Any]:
        """Those of the wanted objects that something else refers to as well."""
        todo = [x for x, more in self.excess() if more > _INSIDE and not is_among(type(x), TABLES)]
        reached = {id(x) for x in todo}
        while todo:
            for x in parts_of(todo.pop()):
                key = id(x)
                if key in self.nodes and key not in reached:
                    reached.add(key)
                    todo.append(x)
        return [x for key, x in self.nodes.items() if key in reached and key in self.wanted]


_INSIDE = 0


def _calibrate() -> int:
    """The excess of references to objects that only the tape refers to."""
    tape: list[Any] = []
    for k in range(3):
        tape += ((float(k),), STEP, None)
    inside = Inside(set())
    inside.see_tape(tape, 0)
    inside.follow()
    (excess,) = {more for x, more in inside.excess()}
    return excess


_INSIDE = _calibrate()


def fingerprint(tape: list[Any], active: dict[int, Any]) -> int:
    """A number that two tapes share if they say the same: slopes, and what pullbacks keep, in any order.

    Of arrays with identities in `active` the shape counts: what is in them follows from the rest. Of others the shape,
    the sum and a few elements do. Indices do not: threads may have mixed them.
    """
    marks = tape[1::3]
    slopes = tape[2::3]
    numbers: list[Any] = list(compress(slopes, map((0).__le__, marks)))
    digests: dict[int, Any] = {}
    total = len(marks)
    for at, mark in enumerate(marks):
        if mark == STEP:
            total += _account([slopes[at]], numbers, digests, active)
        elif mark == CALLED:
            places = _DATA.get(slopes[at])
            kept = tape[3 * at]
            if places is None:
                numbers += [x for x in kept if type(x) is float]
            else:
                total += _account([slopes[at].__name__, *[kept[k] for k in places]], numbers, digests, active)
    try:
        return zlib.crc32(np.sort(np.array(numbers, float)).tobytes(), total & 0xFFFFFFFF)
    except TypeError:
        return zlib.crc32(repr(sorted(map(repr, numbers))).encode(), total & 0xFFFFFFFF)


#: Which arguments of a step that the reverse pass calls are data, not indices; of others only numbers count.
_DATA: dict[Any, tuple[int, ...]] = {
    **dict.fromkeys([*ARRAY_ARITHMETIC.values(), elementwise_back], (1, 2, 4)),
    whole_sum_back: (3,),
    whole_multiple_back: (2, 3),
    read_number_back: (2, 3),
    write_number_back: (1, 2),
}


def _account(todo: list[Any], numbers: list[Any], digests: dict[int, Any], active: dict[int, Any]) -> int:
    """A number for what one step keeps; floats are put into `numbers`."""
    others: list[Any] = []
    seen: set[int] = set()
    while todo:
        x = todo.pop()
        t = type(x)
        if t is float:
            numbers.append(x)
        elif t is int or t is str or t is bool:
            others.append(x)
        elif t is complex:
            numbers += (x.real, x.imag)
        elif isinstance(x, np.generic):
            others.append(x.tobytes())
        elif isinstance(x, np.ndarray):
            key = id(x)
            if key not in digests:
                is_active = dict.__contains__(active, key if x.base is None else id(owner_of(x)))
                digests[key] = x.shape if is_active else digest(x)
            others.append(digests[key])
        elif id(x) in seen:
            continue
        elif t is ArraySlot or t is NumberSlot:
            todo.append(x.x)
        elif t is RuleStep:
            others.append(x.rule.name)
            todo += (x.outputs, x.inputs, x.pullback)
        elif hasattr(t, "account"):
            others.append(x.account())
        elif is_among(t, PARTS):
            seen.add(id(x))
            others.append(t.__name__)
            todo += parts_of(x) if t is not ReadNumber else (x.slot, x.key)
    return zlib.crc32(repr(others).encode())


def digest(a: np.ndarray) -> Any:
    """A short account of the contents of an array."""
    if a.dtype.kind not in "fciub":
        return a.shape, a.dtype.str
    flat = np.asarray(a).ravel() if a.flags.c_contiguous else np.asarray(a).flat
    few = np.asarray(flat[:: max(1, a.size // 64)])
    with np.errstate(all="ignore"):
        return a.shape, a.dtype.str, np.add.reduce(np.asarray(a), axis=None).tobytes(), few.tobytes()
