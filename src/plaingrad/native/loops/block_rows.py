"""Tiles: the rows of numbers that the iterations of a block read or make, so many rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba.core import types

from plaingrad.native.loops.scratch import meaning
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    Let,
    Operand,
    Parts,
    Stmt,
    Var,
    operands,
    statements,
)
from plaingrad.native.runtime.vector import simd, simd_memory
from plaingrad.native.runtime.vector.map import EACH

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


class Declined(Exception):
    """The body is not of the form that is translated."""


class Rows:
    """What a block knows of its rows."""

    def __init__(
        self,
        rt: Reverse,
        s: For,
        inner: Parts,
        total: str,
        family: set[str],
        scratch: set[str],
        tapes: set[str],
    ):
        self.rt, self.s, self.inner, self.total, self.family = rt, s, inner, total, family
        self.line = s.line
        if not (isinstance(s.start, Const) and s.start.value >= 0 and s.step == Const(1)):
            raise Declined
        body = [*inner.forward, *inner.backward]
        self.every = list(statements(body))
        self.assigned = {x.target for x in statements(inner.forward) if isinstance(x, (Let, For))}
        names = {a.name for x in self.every for a in operands(x) if isinstance(a, Var)}
        names |= {x.target for x in self.every if isinstance(x, Let)}
        bases = {name[:-2] for name in names if name.endswith("_b")}
        self.bars = {x for x in bases if x in rt.active and f"{x}_b" not in rt.types}
        self.outer = sorted(self.bars - self.assigned - scratch - {total})
        self.rows, self.low, self.high, self.width = map(rt.fresh, ("rows", "low", "high", "width"))
        self.depth = 0  # of loops, where statements are translated
        self.tiles: list[Stmt] = []
        self.before: list[Stmt] = []
        self.after: list[Stmt] = []
        self.names: dict[str, str] = {}  # what an array, or the cotangent of a number from outside, is called
        self.arrays: set[str] = set()  # of packs, by their old names
        self.tuples = {x.target: x.args for x in self.every if isinstance(x, Let) and x.op == "tuple"}
        self.whole_rows = self.read_by_rows()
        self.varying = self.spread(scratch, tapes)
        self.tapes = tapes
        self.scratch = scratch
        self.buffers = {
            x.call.args[1].name: True  # type: ignore[union-attr]
            for x in self.every
            if isinstance(x, Do) and getattr(x.call.args[0], "value", None) in EACH.values()
        }

    def is_row(self, index: Operand) -> bool:
        """Whether an index begins with the counter of the loop."""
        if index == Var(self.s.target):
            return True
        parts = self.tuples.get(index.name, ()) if isinstance(index, Var) else ()
        return Var(self.s.target) in parts[:1]

    def new(self, a: Operand) -> Operand:
        """An operand by its new name."""
        if a == Var(self.s.target):
            raise Declined
        return Var(self.names.get(a.name, a.name)) if isinstance(a, Var) else a

    def target(self, name: str) -> str:
        """The new name of a variable of the loop."""
        return self.names.get(name, name)

    def row(self, s: Let, out: list[Stmt]) -> None:
        """An element or a row of an array, in the place of the loop's counter."""
        array, index = s.args
        t = self.rt.type_of(array)
        if not isinstance(t, types.Array) or t.dtype != types.float64 or array.name in self.arrays:  # type: ignore[union-attr]
            raise Declined
        if self.rt.memory.is_written(array.name) or array.name in self.assigned:  # type: ignore[union-attr]
            raise Declined
        parts: tuple[Operand, ...] = (index,) if index == Var(self.s.target) else self.tuples[index.name]  # type: ignore[union-attr]
        if len(parts) == 1 and t.ndim == 2:
            out.append(Let(self.target(s.target), "copy", (self.tile(array),), None, s.line))
            return
        if len(parts) != t.ndim or t.ndim > 2 or any(self.varies(a) for a in parts[1:]):
            raise Declined
        column = parts[-1]
        if t.ndim == 2 and array.name in self.whole_rows:  # type: ignore[union-attr]
            if self.depth == 1 and t.layout == "C":  # read once or twice a block: memory decides
                ahead = (self.tile(array), self.new(column), array, Var(self.rows))
                self.make(out, self.target(s.target), simd_memory.take_ahead, *ahead)
            else:
                self.make(out, self.target(s.target), simd_memory.take, self.tile(array), self.new(column))
            return
        place = self.new(column) if t.ndim == 2 else Const(0)
        self.make(out, self.target(s.target), simd_memory.gather, array, Var(self.rows), place)

    def read_by_rows(self) -> set[str]:
        """The matrices of which every iteration reads a whole row, element by element."""
        stops = {
            x.target: meaning(self.rt, x.stop)
            for x in statements(self.s.body)
            if isinstance(x, For) and (x.start, x.step) == (Const(0), Const(1))
        }
        found = set()
        for x in self.every:
            if (
                isinstance(x, Let)
                and x.op == "item"
                and isinstance(x.args[0], Var)
                and self.is_row(x.args[1])
            ):
                array, column = x.args[0].name, self.tuples.get(getattr(x.args[1], "name", ""), ())[-1:]
                if column and stops.get(getattr(column[0], "name", "")) == ("shape", array, 1):
                    found.add(array)
        return found

    def tile(self, array: Operand) -> Operand:
        """The rows of a matrix for the iterations of a block, as packs, gathered once."""
        name = f"{array.name}_tile"  # type: ignore[union-attr]
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = self.rt.fresh(name)
            self.make(self.before, found, simd_memory.tile_for, array)
            self.make(self.tiles, "_", simd_memory.gather_rows, array, Var(self.rows), Var(found))
        return Var(found)

    def size(self, s: Let, out: list[Stmt]) -> None:
        """The shape of an array of packs without its last axis, or the number of elements of a vector."""
        array = s.args[0]
        base = self.rt.types.get(array.name)  # type: ignore[union-attr]
        ndim = 1 if array.name in self.tapes else getattr(base, "ndim", 0)  # type: ignore[union-attr]
        if s.detail not in ("shape", "size") or ndim == 0 or (s.detail, ndim) == ("size", 2):
            raise Declined
        shape = self.rt.fresh("shape")
        out.append(Let(shape, "attribute", (self.new(array),), "shape", s.line))
        lengths: list[Operand] = []
        for axis in range(ndim):
            lengths.append(Var(self.rt.fresh("length")))
            out.append(Let(lengths[-1].name, "item", (Var(shape), Const(axis)), None, s.line))  # type: ignore[union-attr]
        op = "copy" if s.detail == "size" else "tuple"
        out.append(Let(s.target, op, tuple(lengths), None, s.line))

    def grow(self, s: Let, out: list[Stmt], test: Operand | None) -> None:
        """The sum plus or minus a term, or its copy."""
        if s.op == "copy":
            out.append(s)
            return
        kin = [a for a in s.args if isinstance(a, Var) and a.name in self.family]
        term = next(a for a in s.args if a not in kin)
        if not self.varies(term):
            raise Declined
        terms = self.new(term)
        if s.detail == "-":
            minus = Var(self.rt.fresh("minus"))
            out.append(Let(minus.name, "unary", (terms,), "-", s.line))
            terms = minus
        self.make(
            out,
            s.target,
            simd.add_in_order,
            kin[0],
            terms,
            test or Const(True),
            Var(self.low),
            Var(self.high),
        )

    def known(self, branch: If) -> set[str]:
        """The variables that have a value in front of a branch: cotangents, and what is assigned elsewhere too."""
        inside = {id(x) for x in statements([*branch.then, *branch.orelse])}
        others = {x.target for x in self.every if isinstance(x, Let) and id(x) not in inside}
        return others | {f"{x}_b" for x in self.bars}
