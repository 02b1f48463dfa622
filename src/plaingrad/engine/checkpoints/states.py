"""The state of a repeated step: its leaves, copies of it, what may not be copied, and writing it back in place."""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from plaingrad.class_keys import is_among
from plaingrad.engine.checkpoints.checkpoint import generators_of_numbers
from plaingrad.engine.checkpoints.segment import Segment
from plaingrad.engine.memory.entries import entries_of, has_fields, put
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.refuse import refuse
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.values.fresh import rebuilt
from plaingrad.errors import ArgumentError, CheckpointError
from plaingrad.rewrite import CURRENT, in_force


def leaves(x: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """The numbers and the arrays of real or complex numbers in a state, in order."""
    kind = kind_of(type(x))
    if kind == NUMBER:
        yield x
    elif kind == ARRAY:
        if x.dtype.kind in "fc":
            yield x
    elif kind in (SEQUENCE, MAPPING) or (kind != NOTHING and has_fields(x)):
        seen = set() if seen is None else seen
        if id(x) not in seen:
            seen.add(id(x))
            for _, part in entries_of(x):
                yield from leaves(part, seen)


def contents(x: Any) -> list[Any]:
    """What the mutable containers in a state hold, in order."""
    found: list[Any] = []
    seen: set[int] = set()
    todo = [x]
    while todo:
        x = todo.pop()
        kind = kind_of(type(x))
        if kind in (NUMBER, ARRAY, NOTHING) or is_shared(x) or id(x) in seen:
            continue
        seen.add(id(x))
        if kind in (SEQUENCE, MAPPING) or has_fields(x):
            parts = [part for _, part in entries_of(x)]
            if not isinstance(x, tuple):
                found += parts
            todo += parts
    return found


def copied(x: Any, memo: dict[int, Any] | None = None, leaf: Callable[[Any], Any] | None = None) -> Any:
    """A state with containers and arrays of its own; `leaf` makes the numbers and arrays."""
    memo = {} if memo is None else memo
    t = type(x)
    kind = kind_of(t)
    if kind == NOTHING or is_shared(x):
        return x
    if kind == NUMBER:
        return x if leaf is None else leaf(x)
    if id(x) in memo:
        return memo[id(x)]
    if kind == ARRAY:
        if leaf is not None and x.dtype.kind in "fc":
            copy = leaf(x)
        elif x.dtype.kind == "O":
            copy = np.empty_like(x)
            for place in np.ndindex(x.shape):
                copy[place] = copied(x[place], memo, leaf)
        else:
            copy = copy_of(x)
        memo[id(x)] = copy
        return copy
    if kind == SEQUENCE:
        if isinstance(x, tuple):
            return rebuilt(x, [copied(part, memo, leaf) for part in x])
        memo[id(x)] = copy = deque(maxlen=x.maxlen) if t is deque else t()
        copy.extend([copied(part, memo, leaf) for part in x])
        return copy
    if t is set or t is frozenset:
        return t(x)
    if kind == MAPPING:
        memo[id(x)] = copy = x.copy()
    else:
        memo[id(x)] = copy = object.__new__(t)
    for key, value in entries_of(x):
        new = copied(value, memo, leaf)
        if kind == MAPPING:
            dict.__setitem__(copy, key, new)
        else:
            object.__setattr__(copy, key, new)
    return copy


def copy_of(a: np.ndarray) -> np.ndarray:
    """A copy of an array in its own layout, made with the hooks in force."""
    return CURRENT.get().method(a, "copy")(order="K")


COPYABLE = frozenset((list, tuple, deque, set, frozenset))


def is_shared(x: Any) -> bool:
    """Whether a copy of a state refers to the same `x`: functions, classes, generators of random numbers."""
    shared = (FunctionType, MethodType, BuiltinFunctionType, ModuleType, type, *generators_of_numbers())
    return isinstance(x, shared)


def refuse_uncopyable(x: Any, seen: set[int] | None = None) -> None:
    """Refuse a state with something in it that cannot be copied."""
    seen = set() if seen is None else seen
    kind = kind_of(type(x))
    if kind in (NUMBER, ARRAY, NOTHING) or is_shared(x) or id(x) in seen:
        return
    seen.add(id(x))
    t = type(x)
    is_plain = t.__new__ is object.__new__ and has_fields(x)
    known = is_among(t, COPYABLE) or (kind == SEQUENCE and hasattr(x, "_fields"))
    if not (known or (kind == MAPPING and isinstance(x, dict)) or is_plain or dataclasses.is_dataclass(t)):
        raise ArgumentError(
            f"checkpoint_sequence cannot copy the {t.__qualname__} in its state; states are made of numbers, arrays, "
            "lists, tuples, dicts and objects with fields.\n  See docs: errors#argument"
        )
    if t is not set and t is not frozenset:
        for _, part in entries_of(x):
            refuse_uncopyable(part, seen)


def activated(segment: Segment, x: Any) -> tuple[Any, list[Any]]:
    """(a copy of state `x` whose numbers and arrays are active in `segment`, their indices in order of the leaves)."""

    def leaf(part: Any) -> Any:
        if kind_of(type(part)) == NUMBER:
            new = segment.fresh_number(part)
            segment.add_number(new)
        else:
            new = in_force(segment.parent, copy_of, part)
            segment.add_region(owner_of(new))
        return new

    new = copied(x, {}, leaf)
    indices: list[Any] = []
    for part in leaves(new):
        i = segment.slot_of(part).index
        indices.append(None if i in indices else i)  # one array in two places has one cotangent
    return new, indices


def in_place_of(y: Any, x: Any) -> bool:
    """Whether `y`, which a step returned, is its argument `x`: the same containers and arrays, each in its place."""
    kind = kind_of(type(x))
    if kind == SEQUENCE and isinstance(x, tuple):
        if type(y) is not type(x) or len(y) != len(x):
            return False
        return all(map(in_place_of, y, x))
    return kind in (NUMBER, NOTHING) or y is x


def refuse_shared_memory(x: Any) -> None:
    """Refuse a state, changed in place, two arrays of which share memory: copies of it would not."""
    arrays = list({id(leaf): leaf for leaf in leaves(x) if isinstance(leaf, np.ndarray)}.values())
    for a, b in itertools.combinations(arrays, 2):
        if np.may_share_memory(a, b):
            refuse(
                CheckpointError,
                "the step of a checkpoint_sequence changes its state in place, and two arrays of it share memory",
                why="In the copies that are stored they would not.",
                fix="keep one array in the state, and take views of it in the step",
                anchor="checkpoint",
            )


def written_back(level: ReverseLevel, x: Any, y: Any) -> Any:
    """The caller's state `x`, changed to what its copy `y` has become, as steps in place would have left it."""
    kind = kind_of(type(x))
    if kind == ARRAY:
        if x.flags.writeable and x.dtype.kind in "fciub":
            level.setitem(y, x, Ellipsis)
        return x
    if kind in (NUMBER, NOTHING) or is_shared(x):
        return y
    if isinstance(x, tuple):
        return rebuilt(x, [written_back(level, a, b) for a, b in zip(x, y, strict=True)])
    old, new = dict(entries_of(x)), dict(entries_of(y))
    if old.keys() != new.keys():
        refuse(
            CheckpointError,
            "the step of a checkpoint_sequence changes the structure of its argument in place",
            why="The caller's object would have to change with it.",
            fix="return a new object from the step",
            anchor="checkpoint",
        )
    for key, value in new.items():
        put(x, key, written_back(level, old[key], value) if type(old[key]) is type(value) else value)
    return x
