"""What is computed again on the way back rather than kept on a tape, and what no iteration changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import (
    Const,
    For,
    Let,
    Operand,
    Parts,
    Stmt,
    Var,
    assigns,
    free_reads,
    operands,
    reads_of,
    statements,
)
from plaingrad.native.program.value_types import is_array_list, is_real
from plaingrad.native.runtime.helpers import trips

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


CHEAP = frozenset(("copy", "attribute", "tuple", "slice"))


def definitions_in(body: list[Stmt]) -> dict[str, Let]:
    """The assignments that stand in `body` itself, of variables that it assigns once."""
    count: dict[str, int] = {}
    for x in statements(body):
        if isinstance(x, (Let, For)):
            count[x.target] = count.get(x.target, 0) + 1
    return {x.target: x for x in body if isinstance(x, Let) and count[x.target] == 1}


def split(
    rt: Reverse, needed: set[str], definitions: dict[str, Let], assigned: set[str]
) -> tuple[set[str], list[Stmt]]:
    """Of the variables that a reverse reads: (those that are kept, the statements that compute the others again)."""
    saved: set[str] = set()
    redone: set[str] = set()
    todo = list(needed & assigned)
    while todo:
        name = todo.pop()
        if name in saved or name in redone:
            continue
        d = definitions.get(name)
        if d is not None and is_recomputable(rt, d) and not reads_of([d]) & rt.machinery:
            redone.add(name)
            todo += [a.name for a in operands(d) if isinstance(a, Var) and a.name in assigned]
        else:
            saved.add(name)
    return saved, [d for name, d in definitions.items() if name in redone]


def redone_in_arm(rt: Reverse, arm: Parts) -> Parts:
    """An arm of a branch in a loop: what its reverse reads of its values is computed again where that is cheap."""
    definitions = {x: d for x, d in definitions_in(arm.forward).items() if base_of(rt, x) in rt.definitions}
    _, redone = split(rt, free_reads(arm.backward, rt.machinery), definitions, set(definitions))
    return Parts(arm.forward, [*redone, *arm.backward])


def is_recomputable(rt: Reverse, s: Let) -> bool:
    """Whether a value is recomputed on the way back rather than kept.

    Not where rounding could change more than the last bits: the two sweeps are not compiled alike.
    """
    t = rt.types.get(s.target)
    if reads_a_list(rt, s):
        return False  # it may have changed since
    if base_of(rt, s.target) != s.target and s.op in ("copy", "attribute", "method"):
        return True  # the shadow of a view
    if isinstance(t, types.Array) or s.target.endswith("_b"):
        source = s.args[0] if s.args else None
        return (
            s.op == "item" and isinstance(source, Var) and not isinstance(rt.type_of(s.args[1]), types.Array)
        )
    if s.op in CHEAP or s.op == "unary":
        return True
    if s.op == "binary":
        steps = s.detail in ("//", "%") and any(is_real(rt.type_of(a)) for a in s.args)
        return s.detail not in ("**", "@") and not steps
    if s.op == "compare":
        return not any(is_real(rt.type_of(a)) for a in s.args)
    if s.op == "item":
        source = s.args[0]
        if not isinstance(source, Var):
            return True
        if isinstance(rt.types.get(source.name), types.BaseTuple):
            made = rt.definitions.get(source.name)
            return source.name in rt.source.params or made is not None and is_recomputable(rt, made)
        if not isinstance(rt.types.get(source.name), types.Array):
            return False  # a list may have changed since
        if source.name in rt.refilled:
            return True
        return not rt.memory.is_written(source.name) or rt.values.is_settled(source.name)
    f = getattr(s.args[0], "value", None) if s.op == "call" else None
    if f is int:
        return not any(is_real(rt.type_of(a)) for a in s.args[1:])
    if f is len:
        return isinstance(rt.type_of(s.args[1]), (types.Array, types.BaseTuple))
    return f in (float, trips, np.uint64)


def reads_a_list(rt: Reverse, s: Stmt) -> bool:
    """Whether a statement, or one inside of it, has to do with a list of arrays, or of shadows."""
    names = {a.name for x in statements([s]) for a in operands(x) if isinstance(a, Var)}
    return any(is_array_list(rt.types.get(base_of(rt, name))) for name in names)


def is_invariant(rt: Reverse, x: Operand, outer: For) -> bool:
    """Whether the value of an operand inside a loop is the same, and safely computed, before it."""
    if not isinstance(x, Var):
        return True
    if not assigns(outer, x.name):
        return True
    d = rt.definitions.get(x.name)
    if d is None or not (
        d.op in ("copy", "unary")
        or (d.op == "attribute" and d.detail in ("shape", "size"))
        or (
            d.op == "binary"
            and d.detail in ("+", "-", "*")
            and isinstance(rt.types.get(x.name), types.Integer)
        )
        or (d.op == "call" and getattr(d.args[0], "value", None) is len and not _is_list(rt, d.args[1]))
        or (
            d.op == "item"
            and isinstance(rt.type_of(d.args[0]), types.BaseTuple)
            and isinstance(d.args[1], Const)
        )
    ):
        return False
    return all(is_invariant(rt, a, outer) for a in d.args)


def _is_list(rt: Reverse, x: Operand) -> bool:
    return isinstance(rt.type_of(x), types.List)


def moved(rt: Reverse, x: Operand, outer: For, out: list[Stmt]) -> Operand:
    """An operand that `is_invariant`, computed before the loop by statements that go to `out`."""
    if not isinstance(x, Var) or not assigns(outer, x.name):
        return x
    d = rt.definitions[x.name]
    return rt.emit(out, d.op, tuple([moved(rt, a, outer, out) for a in d.args]), d.detail, d.line)


def base_of(rt: Reverse, name: str) -> str:
    """The array that `name` is the shadow of, else `name`."""
    return name[:-2] if name.endswith("_b") and name not in rt.types else name
