"""Elements of arguments that loops read at a constant place, p[0], read once before everything else.

The element is then a number like any other: its cotangent lives in a register, and goes into the shadow of the array
once, at the end. Only arrays that are never written qualify. An array that is too short for the place is not read
before it would have been (the loop may run no iteration); where it would have been it is an IndexError, which Numba
leaves out: it reads what is behind the array.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.analysis.memory import Memory
from plaingrad.native.program.ir import (
    Const,
    For,
    If,
    Let,
    Loop,
    Operand,
    Program,
    Raise,
    Ref,
    Stmt,
    Var,
    breaks,
    statements,
    unused,
    with_inner,
)
from plaingrad.native.runtime.helpers import trips

Place = tuple[str, tuple[int, ...]]  # array, index
ZEROS: dict[Any, Operand] = {
    types.float64: Const(0.0),
    types.complex128: Const(0j),
    types.int64: Const(0),
    types.float32: Ref(np.float32(0.0), "zero"),
}


def cells_first(program: Program) -> Program:
    """`program` with constant places of its array arguments read at the start."""
    memory = Memory(program)
    assigned = {s.target for s in statements(program.body) if isinstance(s, (Let, For))}
    arrays = {
        name: t
        for name in program.params
        if isinstance(t := program.types[name], types.Array)
        and t.dtype in ZEROS
        and not memory.is_written(name)
        and name not in assigned
    }
    places: dict[Place, None] = {}
    for s in statements(program.body):
        if isinstance(s, (For, Loop)):
            places.update({p: None for x in statements(s.body) if (p := place_of(x, arrays)) is not None})
    if not places:
        return program
    work = _Cells(program, arrays, list(places))
    body = work.body(program.body, set())
    return replace(program, body=[*work.setup(), *body], types=work.types)


def place_of(s: Stmt, arrays: dict[str, Any]) -> Place | None:
    """The constant place of one of `arrays` that a statement reads."""
    if not (
        isinstance(s, Let) and s.op == "item" and isinstance(s.args[0], Var) and isinstance(s.args[1], Const)
    ):
        return None
    t = arrays.get(s.args[0].name)
    index = s.args[1].value
    index = index if isinstance(index, tuple) else (index,)
    if t is None or len(index) != t.ndim or not all(type(k) is int for k in index):
        return None
    return s.args[0].name, index


@dataclass(slots=True)
class _Cell:
    """A place: the variable of its value, and the one that tells whether the array reaches that far."""

    value: str
    there: str


class _Cells:
    def __init__(self, program: Program, arrays: dict[str, Any], places: list[Place]) -> None:
        self.arrays = arrays
        self.types = dict(program.types)
        self.taken = set(program.types)
        self.cells = {}
        for name, index in places:
            base = "_".join([name, *[f"m{-k}" if k < 0 else str(k) for k in index]])
            value = self.fresh(base, arrays[name].dtype)
            self.cells[name, index] = _Cell(value, self.fresh(f"has_{base}", types.boolean))

    def fresh(self, base: str, t: Any) -> str:
        """A name that is not in use."""
        name = unused(base, self.taken)
        self.types[name] = t
        return name

    def setup(self) -> list[Stmt]:
        """The reads, of arrays that reach far enough."""
        out: list[Stmt] = []
        shapes: dict[str, list[str]] = {}
        for (name, index), cell in self.cells.items():
            t = self.arrays[name]
            if name not in shapes:
                shape = self.fresh(f"{name}_shape", types.UniTuple(types.int64, t.ndim))
                out.append(Let(shape, "attribute", (Var(name),), "shape"))
                shapes[name] = [self.fresh(f"{name}_size", types.int64) for _ in range(t.ndim)]
                out += [Let(size, "item", (Var(shape), Const(k))) for k, size in enumerate(shapes[name])]
            there: Operand | None = None
            for k, size in zip(index, shapes[name], strict=True):
                reaches = self.fresh(f"reaches_{name}", types.boolean)
                out.append(Let(reaches, "compare", (Var(size), Const(k if k >= 0 else -k - 1)), ">"))
                if there is not None:
                    both = self.fresh(f"reaches_{name}", types.boolean)
                    out.append(Let(both, "binary", (there, Var(reaches)), "&"))
                    reaches = both
                there = Var(reaches)
            assert there is not None
            out.append(Let(cell.there, "copy", (there,)))
            where: Operand = Const(index if t.ndim > 1 else index[0])
            read = Let(cell.value, "item", (Var(name), where))
            out.append(If(Var(cell.there), [read], [Let(cell.value, "copy", (ZEROS[t.dtype],))]))
        return out

    def body(self, body: list[Stmt], known: set[Place]) -> list[Stmt]:
        """Statements that read the numbers instead, behind checks that these are there, but for those `known`."""
        out: list[Stmt] = []
        known = set(known)
        for s in body:
            found = self.reached(s)
            out += self.checks([p for p in found if p not in known], s)
            known |= found.keys()
            out.append(self.statement(s, known))
        return out

    def statement(self, s: Stmt, known: set[Place]) -> Stmt:
        """One statement with what is inside it."""
        place = place_of(s, self.arrays)
        if place in self.cells:
            assert isinstance(s, Let)
            return replace(s, op="copy", args=(Var(self.cells[place].value),))
        return with_inner(s, lambda inner: self.body(inner, known))

    def reached(self, s: Stmt) -> dict[Place, None]:
        """The places that a statement surely reads; of a loop, in its first iteration, if there is one."""
        place = place_of(s, self.arrays)
        if place is not None and place in self.cells:
            return {place: None}
        found: dict[Place, None] = {}
        if isinstance(s, (For, Loop)):
            for x in s.body:
                if not isinstance(
                    x, (If, For)
                ):  # a branch may raise; whether a loop runs is told in front of it
                    found |= self.reached(x)
                elif breaks([x]) or any(isinstance(inside, Raise) for inside in statements([x])):
                    break
        return found

    def checks(self, places: list[Place], s: Stmt) -> list[Stmt]:
        """An IndexError, in front of `s`, if an array does not reach as far as one of `places`."""
        if not places:
            return []
        out: list[Stmt] = []
        there = Var(self.cells[places[0]].there)
        for place in places[1:]:
            both = self.fresh("there", types.boolean)
            out.append(Let(both, "binary", (there, Var(self.cells[place].there)), "&", s.line))
            there = Var(both)
        missing = self.fresh("missing", types.boolean)
        out.append(Let(missing, "unary", (there,), "not", s.line))
        raised: list[Stmt] = [Raise(IndexError, (Const("index is out of bounds"),), s.line)]
        if isinstance(s, For):
            count, some = self.fresh("count", types.int64), self.fresh("some", types.boolean)
            raised = [
                Let(count, "call", (Ref(trips, "trips"), s.start, s.stop, s.step), (), s.line),
                Let(some, "compare", (Var(count), Const(0)), ">", s.line),
                If(Var(some), raised, [], s.line),
            ]
        return [*out, If(Var(missing), raised, [], s.line)]
