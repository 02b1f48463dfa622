"""Saved state: what the forward sweep hands over to the reverse sweep, the frame, and the shadows that both use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native.program import value_types
from plaingrad.native.program.ir import (
    Const,
    If,
    Let,
    Operand,
    Ref,
    Stmt,
    Store,
    Var,
    free_reads,
    operands,
    reads_of,
    statements,
    without_assignments,
)
from plaingrad.native.program.value_types import is_array
from plaingrad.native.reverse import recomputation
from plaingrad.native.runtime import frames, workspace

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

ZEROS = {types.float64: 0.0, types.int64: 0, types.boolean: False, types.complex128: 0j}
FEW = 4  # numbers of a type that are handed over one by one


@dataclass(slots=True)
class Sweeps:
    """The statements of both sweeps, and the names that they have to do with the world by.

    Attributes:
        forward: up to the results.
        backward: from the seeds to the cotangents.
        seeds: the names of the cotangents of the results.
        shadows: the names of the shadows of arrays.
        bars: the cotangents of the scalar parameters.
    """

    forward: list[Stmt]
    backward: list[Stmt]
    seeds: list[str]
    shadows: list[str]
    bars: list[Operand]


def packed(rt: Reverse, frame: list[str], few: int = FEW) -> tuple[list[str], list[Stmt], list[Stmt]]:
    """How the frame is handed over: (names, statements that pack, statements that unpack).

    Numbers of a type, where there are many, go in one array; so do those whose type Python does not know.
    """
    names: list[str] = []
    kinds: dict[Any, list[str]] = {}
    for name in frame:
        t = types.unliteral(rt.types[name]) if name in rt.types else None
        if isinstance(t, (types.Number, types.Boolean)):
            kinds.setdefault(t, []).append(name)
        else:
            names.append(name)
    pack: list[Stmt] = []
    unpack: list[Stmt] = []
    for t, of_type in kinds.items():
        if t in ZEROS and len(of_type) < few:
            names += of_type
            continue
        dtype = value_types.dtype_of(t)
        array = rt.fresh(f"{dtype.__name__}s")
        names.append(array)
        rt.types[array] = types.Array(t, 1, "C")
        room = (Ref(workspace.room, "room"), rt.arena, Const(len(of_type)), Ref(dtype, dtype.__name__))
        pack.append(Let(array, "call", room, ()))
        for k, name in enumerate(of_type):
            pack.append(Store(Var(array), Const(k), Var(name)))
            unpack.append(Let(name, "item", (Var(array), Const(k))))
    return names, pack, unpack


def enclosed(rt: Reverse, frame: list[str]) -> tuple[list[str], list[Stmt], list[Stmt]]:
    """`packed` for a function that calls itself: all of the frame in one array of the arena, whose type says nothing.

    Raises:
        NativeError: the frame holds something else than numbers and arrays.
    """
    names, pack, unpack = packed(rt, frame, 1)
    box = rt.fresh("frame")
    pack.append(Let(box, "call", (Ref(frames.box, "box"), rt.arena, Const(len(names))), ()))
    got: list[Stmt] = []
    for k, name in enumerate(names):
        t = rt.types.get(recomputation.base_of(rt, name))
        if not isinstance(t, types.Array):
            raise rt.refuse(f"a {t} that is kept in a function that calls itself", 0)
        like = rt.empty_like(name)
        put = (Ref(frames.put, "put"), rt.arena, Var(box), Const(k), Var(name))
        pack.append(Let(box, "call", put, ()))
        got.append(Let(name, "call", (Ref(frames.got, "got"), Var(box), Const(k), like), ()))
    return [box], pack, [*got, *unpack]


def indices_read(rt: Reverse, found: Sweeps, given: set[str]) -> list[Stmt]:
    """What makes the slices, and tuples, that the reverse sweep reads: no frame holds slices."""
    definitions = {
        name: s
        for name, s in recomputation.definitions_in(found.forward).items()
        if isinstance(rt.types.get(name), (types.SliceType, types.BaseTuple)) and s.op in ("slice", "tuple")
    }
    _, made = recomputation.split(rt, free_reads(found.backward, given), definitions, set(definitions))
    return made


def shadows_of_views(
    rt: Reverse, found: Sweeps, given: set[str]
) -> tuple[list[Stmt], list[Stmt], list[Stmt]]:
    """The shadows of views are views of shadows, made on the way back where the view itself is at the top level.

    Returns:
        statements at the beginning of the reverse sweep, the forward sweep without shadows that nothing reads,
        statements at the end of the reverse sweep. Where the forward sweep has still to do with the shadow of a
        parameter, it makes one of its own, into which the one that is given is copied, and out of which again.
    """
    definitions = definitions_of_views(rt, found.forward)
    needed = free_reads(found.backward, given)
    moved: set[str] = set()
    todo = [name for name in needed if name in definitions]
    while todo:
        name = todo.pop()
        if name not in moved:
            moved.add(name)
            todo += [
                a.name for a in operands(definitions[name]) if isinstance(a, Var) and a.name in definitions
            ]
    begin: list[Stmt] = [d for name, d in definitions.items() if name in moved]
    needed = free_reads([*begin, *found.backward], given)
    forward = without_shadows(rt, found.forward, needed)
    end: list[Stmt] = []
    for shadow in found.shadows:
        if shadow not in reads_of(forward):
            continue
        own, t = rt.fresh(shadow), rt.types[shadow[:-2]]
        forward = rt.with_zeros(shadow[:-2], forward)
        place = found.shadows.index(shadow)
        found.shadows[place] = own
        given.discard(shadow)
        given.add(own)
        everything = Const(Ellipsis)
        begin.insert(0, Store(Var(shadow), everything, Var(own)))
        end += [Store(Var(own), everything, Var(shadow)), *rt.cleared(shadow[:-2])]
        assert isinstance(t, types.Array)
    return begin, forward, end


def definitions_of_views(rt: Reverse, body: list[Stmt]) -> dict[str, Let]:
    """The shadows that `body` itself, not something in it, makes once, and as views of other shadows."""
    return {
        name: s
        for name, s in recomputation.definitions_in(body).items()
        if _is_shadow(rt, name)
        and not recomputation.reads_a_list(rt, s)
        and not (s.op == "call" and getattr(s.args[0], "value", None) is np.zeros_like)
    }


def _is_shadow(rt: Reverse, name: str) -> bool:
    base = recomputation.base_of(rt, name)
    return base != name and is_array(rt.types.get(base))


def without_shadows(rt: Reverse, body: list[Stmt], needed: set[str]) -> list[Stmt]:
    """`body` without assignments of shadows that neither it nor the reverse sweep reads."""
    while True:
        read = needed | reads_of(body)
        dead = {
            s.target
            for s in statements(body)
            if isinstance(s, Let) and s.target not in read and _is_shadow(rt, s.target)
            if not (
                s.op in ("method", "call") and recomputation.reads_a_list(rt, s)
            )  # it is taken off a list
        }
        if not dead:
            return body
        body = without_assignments(body, dead)


def surely_assigned(body: list[Stmt]) -> set[str]:
    """The variables that have a value behind `body` whichever way is taken."""
    found: set[str] = set()
    for s in body:
        if isinstance(s, Let):
            found.add(s.target)
        elif isinstance(s, If):
            found |= surely_assigned(s.then) & surely_assigned(s.orelse)
    return found
