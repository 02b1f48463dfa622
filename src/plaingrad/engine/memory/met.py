"""Which cotangents a step of the tape meets: what tells steps apart that may be gone back over side by side.

A step that is not known here may do anything; a tape with one is gone back over by one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plaingrad.engine.memory.memory import (
    address,
    extent,
    owner_of,
    whole_multiple_back,
    whole_sum_back,
)
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
    Write,
    WriteCotangent,
    elementwise_back,
    read_number_back,
    write_number_back,
)

API = "plaingrad.api"
Read = tuple[int, Any]  # an index, and the array or view; None for a number, or for all of the memory
Met = tuple[list[int], list[int], list[Read], bool]

#: Of the functions in entries (arguments, CALLED, f): what f(shadow, *arguments) makes, changes and reads, or None.
CALLS_MEET: dict[Any, Callable[..., tuple[int | None, int | None, list[tuple[Any, Any]]]]] = {
    whole_sum_back: lambda n, i, j, negative: (n, None, [(i, None), (j, None)]),
    whole_multiple_back: lambda n, i, factor, divided: (n, None, [(i, None)]),
    elementwise_back: lambda n, z, x, i, partial, args: (n, None, [(i, x)]),
    read_number_back: lambda n, i, a, k: (n, None, [(i, a)]),
    write_number_back: lambda i, a, k, j: (None, i, [(j, None)]),
    **dict.fromkeys(ARRAY_ARITHMETIC.values(), lambda n, z, a, i, b, j: (n, None, [(i, a), (j, b)])),
}


def met_by(kind: int, first: Any, what: Any) -> Met | None:
    """What the step of an entry (first, kind, what) makes, changes and reads, and whether it undoes a write.

    None where nobody knows.
    """
    if kind == CALLED:
        meet = CALLS_MEET.get(what)
        if meet is None:
            return None
        made, changed, read = meet(*first)
        return listed(made), listed(changed), [(i, x) for i, x in read if i is not None], False
    if kind != STEP:
        return None
    t = type(what)
    if t is RuleStep:
        if what.rule.mutates or (getattr(what.rule.function, "__module__", None) or "").startswith(API):
            return None  # hooks are the program's own code, which is called in the order of the tape
        made = [i for i, _ in places(what.outputs)]
        return made, [], [place for _, slot in what.inputs for place in places(slot)], False
    if t is Write:
        return [], [], [], True
    if t is ReadNumber or t is ReadArray:
        made = [what.index] if t is ReadNumber else [what.output.index]
        return made, [], list(places(what.slot)), False
    if t is WriteCotangent:
        return [], [what.slot.index], list(places(what.v_slot)), False
    if t is InPlaceSum or t is InPlaceRule:
        return [], [what.slot.index], list(places(what.b_slot)), False
    return None


def listed(index: int | None) -> list[int]:
    """The index in a list, if there is one."""
    return [] if index is None else [index]


def places(slot: Any) -> Iterator[Read]:
    """The indices that a slot names, with their arrays."""
    if slot is None:
        return
    if type(slot) is NumberSlot:
        yield slot.index, None
    elif type(slot) is ArraySlot:
        yield slot.index, slot.x
    else:
        for inner in slot.slots.values():
            yield from places(inner)


def span_of(x: Any) -> tuple[int, int] | None:
    """The first element and the end of view `x` in the memory of its owner; None for all of it."""
    if type(x) is not np.ndarray or x.base is None:
        return None
    owner = owner_of(x)
    if owner.dtype != x.dtype or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        return None
    low, size = extent(x)
    first = (low - address(owner)) // x.itemsize
    return first, first + size // x.itemsize
