"""Lists of arrays inside of programs: beside each one a list of the shadows, or tangents, of its arrays.

A list holds references. What is done to it, statement by statement, is done to the list beside it, which then has the
shadow of `xs[k]` at its place k, whatever else the array is called, in how many lists it is, and when it is written.
On the way back nothing is undone: no list is read there. What has been taken out of one is kept by reference, with its
shadow. All arrays that are ever in a list are one class of memory (`activity.Memory`), so all of them have shadows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import Do, Let, Operand, Ref, Stmt, Store, Var, operands
from plaingrad.native.program.value_types import is_array_list
from plaingrad.native.runtime.list_helpers import OURS, emptied, popped

CHANGING = {"append": (2,), "extend": (2,), "insert": (3,), "pop": (1, 2), "clear": (1,), "reverse": (1,)}
METHODS = {**CHANGING, "copy": (1,)}  # name -> the numbers of operands that it takes, the list among them
Kinds = Mapping[str, Any]


def lists_in(s: Stmt, kinds: Kinds) -> list[str]:
    """The lists of arrays that a statement itself reads, changes or makes."""
    found = [a.name for a in operands(s) if isinstance(a, Var)]
    found += [s.target] if isinstance(s, Let) else []
    return [name for name in found if is_array_list(kinds.get(name))]


def is_step(s: Stmt, kinds: Kinds) -> bool:
    """Whether a statement makes a list of arrays, changes it, or takes something out of it, in a way that is known."""

    def kind(a: Operand) -> Any:
        return kinds.get(a.name) if isinstance(a, Var) else None

    def is_one(a: Operand) -> bool:
        return is_array_list(kind(a))

    if isinstance(s, Store):  # of a slice Numba (0.68) never frees what was there
        return is_one(s.array) and isinstance(kind(s.value), types.Array)
    call = s.call if isinstance(s, Do) else s
    if not isinstance(call, Let):
        return False
    made = isinstance(s, Let) and is_array_list(kinds.get(s.target))
    if call.op == "list":
        return made and not any(isinstance(a, Ref) for a in call.args)
    if call.op == "copy":
        return made
    if call.op == "item":
        return is_one(call.args[0])
    if call.op == "binary":
        return made and (all(map(is_one, call.args)) if call.detail == "+" else is_one(call.args[0]))
    if call.op == "call":
        f = getattr(call.args[0], "value", None)
        if f is popped or f is emptied:
            return is_one(call.args[1])
        return made and f is list and len(call.args) == 2 and is_one(call.args[1])
    if call.op != "method" or not is_one(call.args[0]) or call.detail[1]:
        return False
    name = call.detail[0]
    if name == "extend" and not is_one(call.args[1]):
        return False
    return len(call.args) in METHODS.get(name, ()) and not any(isinstance(a, Ref) for a in call.args)


def constants_held(s: Stmt, kinds: Kinds) -> list[Ref]:
    """The arrays outside the program that a statement puts into a list: there is no memory to stand beside them."""
    call = s.call if isinstance(s, Do) else s
    lists = lists_in(s, kinds)
    puts = isinstance(call, Store) or (isinstance(call, Let) and call.op in ("list", "method"))
    found = operands(s) if lists and puts else ()
    return [a for a in found if isinstance(a, Ref) and isinstance(a.value, np.ndarray)]


def shared(s: Stmt, kinds: Kinds) -> list[str]:
    """The lists and arrays that a step puts into one class of memory: those that hold, and those that are held."""
    if not is_step(s, kinds):
        return []
    found = [a.name for a in operands(s) if isinstance(a, Var)] + ([s.target] if isinstance(s, Let) else [])
    return [name for name in found if _is_held(kinds.get(name))]


def changed(s: Stmt, kinds: Kinds) -> list[str]:
    """The lists of arrays whose length or elements a statement changes."""
    call = s.call if isinstance(s, Do) else s
    owner: Operand | None = None
    if isinstance(s, Store):
        owner = s.array
    elif isinstance(call, Let) and call.op == "method" and call.detail[0] in CHANGING:
        owner = call.args[0]
    elif isinstance(call, Let) and call.op == "call" and getattr(call.args[0], "value", None) in OURS:
        owner = call.args[1]
    return [owner.name] if isinstance(owner, Var) and is_array_list(kinds.get(owner.name)) else []


def beside(s: Stmt, kinds: Kinds, other: Callable[[str], str]) -> list[Stmt]:
    """A step, and the same for the shadows: `other(x)` is the name of what stands beside the list or array x."""

    def new(a: Operand) -> Operand:
        return Var(other(a.name)) if isinstance(a, Var) and _is_held(kinds.get(a.name)) else a

    if isinstance(s, Store):
        return [s, replace(s, array=new(s.array), value=new(s.value))]
    call = s.call if isinstance(s, Do) else s
    assert isinstance(call, Let)
    again = replace(call, args=tuple(map(new, call.args)))
    if isinstance(s, Let) and _is_held(kinds.get(s.target)):
        return [s, replace(again, target=other(s.target))]
    return [s, Do(replace(again, target="_"), s.line)]


def _is_held(t: Any) -> bool:
    return isinstance(t, types.Array) or is_array_list(t)


__all__ = [
    "beside",
    "changed",
    "constants_held",
    "is_array_list",
    "is_step",
    "lists_in",
    "shared",
]
