"""Privatisation: arrays that every iteration of a loop fills anew before it reads them, so that nothing passes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native.loops.elements import ONE, ZERO, Axis, pictured
from plaingrad.native.program.ir import (
    Const,
    For,
    Let,
    Operand,
    Store,
    Var,
    breaks,
    operands,
    statements,
)
from plaingrad.native.program.value_types import part_types

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

MAKERS = (np.empty, np.zeros, np.ones)


def scratch_arrays(rt: Reverse, s: For) -> set[str]:
    """The arrays made before `s` that only `s` uses, and that each iteration fills before it reads any element.

    An array counts if its elements are all that is used of it, and if a loop or perfect nest of loops over its whole
    shape, with one assignment to the element, stands in the body of `s` in front of all reads.
    """
    found = {x.array.name for x in statements(s.body) if isinstance(x, Store) and isinstance(x.array, Var)}
    return {name for name in found if _is_scratch(rt, s, name)}


def _is_scratch(rt: Reverse, s: For, name: str) -> bool:
    shape = _shape_of(rt, name)
    if shape is None or name in rt.results:
        return False
    owner = rt.memory.of(name)
    if any(other != name and rt.memory.of(other) == owner for other in rt.types):
        return False
    inside = {id(x) for x in statements(s.body)}
    for x in statements(rt.exploded.body):
        if not any(a == Var(name) for a in operands(x)):
            continue
        element = isinstance(x, Store) and x.array == Var(name) and _is_place(rt, x.index)
        element = element or (isinstance(x, Let) and x.op == "item" and _is_place(rt, x.args[1]))
        if not (element and id(x) in inside) and not (isinstance(x, Let) and x.op == "attribute"):
            return False
    for x in s.body:
        if isinstance(x, For) and _fills(rt, x, name, shape, []):
            return True
        if any(isinstance(y, Let) and y.op == "item" and y.args[0] == Var(name) for y in statements([x])):
            return False
    return False


def _is_place(rt: Reverse, index: Operand) -> bool:
    """Whether an index names one element."""
    if isinstance(index, Const):
        return isinstance(index.value, int)
    t = rt.type_of(index)
    return isinstance(t, types.Integer) or (
        isinstance(t, types.BaseTuple) and all(isinstance(part, types.Integer) for part in part_types(t))
    )


def _shape_of(rt: Reverse, name: str) -> list[Operand] | None:
    """The shape that an array is made with, where it is made."""
    made = rt.definitions.get(name)
    if (
        made is None
        or made.op != "call"
        or getattr(made.args[0], "value", None) not in MAKERS
        or len(made.args) < 2
    ):
        return None
    shape = made.args[1]
    if isinstance(rt.type_of(shape), types.BaseTuple):
        parts: Any = rt.definitions.get(shape.name)  # type: ignore[union-attr]
        return list(parts.args) if parts is not None and parts.op == "tuple" else None
    return [shape]


def _fills(rt: Reverse, s: For, name: str, shape: list[Operand], around: list[Axis]) -> bool:
    """Whether `s`, inside loops over the leading axes, assigns to every element of an array and reads none."""
    axis = len(around)
    if (s.start, s.step) != (ZERO, ONE) or breaks(s.body) or axis >= len(shape):
        return False
    if not _is_extent(rt, s.stop, name, axis, shape):
        return False
    loop = pictured(rt, [*around, Axis(s.start, s.stop, s.target)], [], s.body, s.line)
    if any(read.array == Var(name) for read in loop.reads):
        return False
    for x in s.body:
        if isinstance(x, Store) and x.array == Var(name) and loop.offset(x.index) == (0,) * len(shape):
            return True
        if isinstance(x, For) and _fills(rt, x, name, shape, loop.axes):
            return True
    return False


def _is_extent(rt: Reverse, stop: Operand, name: str, axis: int, shape: list[Operand]) -> bool:
    """Whether `stop` is the length of an axis of an array."""
    found = meaning(rt, stop)
    if found == meaning(rt, shape[axis]):
        return True
    names = {
        ("shape", name, axis),
        *([("size", name)] if len(shape) == 1 else []),
        *([("len", name)] if not axis else []),
    }
    return found in names


def meaning(rt: Reverse, x: Operand) -> Any:
    """An operand, or the property of an array that it is."""
    d = rt.definitions.get(x.name) if isinstance(x, Var) else None
    if d is None or any(isinstance(a, Var) and rt.assigned.get(a.name, 0) > 1 for a in d.args):
        return x
    if d.op == "attribute" and d.detail == "size" and isinstance(d.args[0], Var):
        return "size", d.args[0].name
    if d.op == "item" and isinstance(d.args[0], Var) and isinstance(d.args[1], Const):
        whole = rt.definitions.get(d.args[0].name)
        array = (
            whole.args[0]
            if whole is not None and whole.op == "attribute" and whole.detail == "shape"
            else None
        )
        if isinstance(array, Var) and rt.assigned.get(array.name, 0) <= 1:
            return "shape", array.name, d.args[1].value
    if d.op == "call" and getattr(d.args[0], "value", None) is len and isinstance(d.args[1], Var):
        return "len", d.args[1].name
    return x
