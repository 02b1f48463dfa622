"""Loads and buffers of fused row operations, and the checks of lengths in front of their loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.loops.elements import Access, ElementLoop, row
from plaingrad.native.loops.row_plan import RowPlan
from plaingrad.native.program.ir import Const, Do, Let, Operand, Ref, Stmt, Store, Var
from plaingrad.native.runtime import row_helpers as helpers
from plaingrad.native.runtime import workspace
from plaingrad.native.runtime.helpers import trips


class RowValues(RowPlan):
    """What loops over the elements of rows read and write."""

    def buffers(self, before: list[Stmt], forward: list[Stmt]) -> None:
        """Make the buffers, in front of the loop around."""
        if not self.buffered:
            return
        loop, count, counter = self.loop, Const(1), Var(self.loop.target)
        if self.kept:
            args = (Ref(trips, "trips"), loop.start, loop.stop, loop.step)
            count = self.whole_number(before, "call", args, ())
            if loop.start != Const(0):
                counter = self.whole_number(forward, "binary", (counter, loop.start), "-")
        for x in sorted(self.buffered):
            is_kept = x in self.kept
            array = self.room(x, (count if is_kept else Const(1), self.length(x)), before)
            self.rows[x] = row(array, (counter if is_kept else Const(0),))

    def length(self, x: str) -> Operand:
        """The number of elements of a vector."""
        return self.family[x].axes[0].stop

    def room(self, base: str, lengths: tuple[Operand, ...], before: list[Stmt]) -> Var:
        """A new array of the arena."""
        array = self.variable(f"{base}_rows", types.Array(types.float64, len(lengths), "C"))
        shape = self.variable("shape", types.UniTuple(types.int64, len(lengths)))
        before.append(Let(shape.name, "tuple", lengths, None, self.line))
        args = (Ref(workspace.room, "room"), self.rt.arena, shape, Ref(np.float64, "float64"))
        before.append(Let(array.name, "call", args, (), self.line))
        return array

    def checks(self) -> list[Stmt]:
        """What raises where lengths do not fit."""
        out: list[Stmt] = []

        def check(f: Any, *args: Operand) -> None:
            out.append(Do(Let("_", "call", (Ref(f, f.__name__), *args), (), self.line), self.line))

        for loop in self.loops:
            for n in self.compared(loop).values():
                check(helpers.check_broadcast, n, loop.axes[0].stop)
        for s in self.run:
            for x in self.vectors_of(s) if self.is_sum(s) or isinstance(s, Store) else []:
                loop, length = self.family[x.name], self.length(x.name)
                lengths = self.compared(loop)
                mine = [n for leaf, n in lengths.items() if leaf in self.leaves_of(x.name)]
                if 0 < len(mine) < len(lengths):
                    longest = mine[0]
                    for n in mine[1:]:
                        longest = self.whole_number(
                            out, "call", (Ref(helpers.longer, "longer"), longest, n), ()
                        )
                    check(helpers.check_whole, longest, length)
                if isinstance(s, Store) and (
                    lengths or self.root(s.array) != self.root(loop.reads[0].array)  # type: ignore[arg-type]
                ):
                    check(helpers.check_stored, length, self.shape(s.array, out)[-1])  # type: ignore[arg-type]
        return out

    def compared(self, loop: ElementLoop) -> dict[str, Operand]:
        """The lengths of the leaves of a loop that are compared when the program runs; none where all are the same."""
        lengths = {self.vector_of[read.value.name]: read.places[-1].length for read in loop.reads}  # type: ignore
        return {x: n for x, n in lengths.items() if n is not None}

    def leaves_of(self, x: str) -> set[str]:
        """The leaves that a vector is made of."""
        if x in self.leaves:
            return {x}
        return {leaf for a in self.vectors_of(self.nodes[x]) for leaf in self.leaves_of(a.name)}

    def at(self, x: str, k: Operand, out: list[Stmt]) -> tuple[Operand, ...]:
        """The places of an element of a vector that is in memory."""
        return self.placed(self.rows[x], [k], out)

    def values(self, wanted: set[str], home: int | None, k: Operand) -> list[Stmt]:
        """What gives these numbers of one element their values."""
        loads, made = self.needed(wanted, home)
        out: list[Stmt] = []
        for x in sorted(loads):
            index = self.index(out, self.at(x, k, out))
            out.append(Let(self.each[Var(x)].name, "item", (self.rows[x].array, index), None, self.line))  # type: ignore[union-attr]
        for name in self.definitions:
            if name in made:
                self.define(name, home, out)
        return out

    def define(self, name: str, home: int | None, out: list[Stmt]) -> None:
        """Compute a number of one element; on the way back (`home` is None) without divisions by numbers."""
        s = self.definitions[name]
        y = self.divided.get(self.vector_of.get(name, "")) if home is None else None
        if y is None:
            out.append(s)
            return
        x = self.nodes[self.vector_of[name]].args[-2]
        out.append(Let(name, "copy", (self.over(self.each[x], y, out),), None, s.line))

    def members(self, work: list[Stmt]) -> list[tuple[ElementLoop, list[Stmt]]]:
        """Statements by loops."""
        found: dict[int, tuple[ElementLoop, list[Stmt]]] = {}
        for s in work:
            loop = self.family[self.vectors_of(s)[0].name]
            found.setdefault(id(loop), (loop, []))[1].append(s)
        return list(found.values())

    def place(self, row: Access, out: list[Stmt]) -> Var:
        """A tuple of the indices in front of that of an element."""
        place = self.variable("place", types.UniTuple(types.int64, len(row.in_front)))
        out.append(Let(place.name, "tuple", row.in_front, None, self.line))
        return place
