"""Broadcasting in fused elementwise expressions: the lengths of the loops, and where elements of operands are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numba.core import types

from plaingrad.native.loops.element_code import ElementCode, at_once, is_expensive, unsafe
from plaingrad.native.loops.elements import ONE, UNKNOWN, ZERO, Access, Along, Axis, lowered
from plaingrad.native.program.ir import Const, For, Let, Operand, Ref, Stmt, Var, operands
from plaingrad.native.runtime import workspace
from plaingrad.native.runtime.array_helpers import along

if TYPE_CHECKING:
    from plaingrad.native.loops.array_loops import ArrayLoops


class Sides(ElementCode):
    """The operands of an elementwise expression in its loops."""

    def __init__(self, found_by: ArrayLoops, nodes: list[Let], root: Let, end: Var | None = None) -> None:
        rt = found_by.rt
        super().__init__(rt, root.line)
        self.found_by = found_by
        self.nodes, self.root = nodes, root
        self.end = Var(root.target) if end is None else end
        self.between = nodes[:-1] if end is None else nodes
        self.is_kept = end is None and is_expensive(root)
        self.ndim = rt.types[self.end.name].ndim
        self.lengths: list[Operand] = []
        inside = {s.target for s in nodes}
        self.leaves: list[Var] = []
        for s in nodes or [root]:
            for a in operands(s):
                is_leaf = isinstance(a, Var) and isinstance(rt.types.get(a.name), types.Array)
                if is_leaf and a.name not in inside and a not in self.leaves:  # type: ignore[union-attr]
                    self.leaves.append(a)  # type: ignore[arg-type]
        axes = [Axis(ZERO, UNKNOWN)] * self.ndim
        reads = {x: Access(x, self.last_axes(rt.types[x.name].ndim)) for x in self.leaves}
        self.loop = lowered(self.element, axes, reads, nodes, self.line)
        self.each, self.numbers = self.loop.elements, self.loop.body
        self.loop.writes.append(self.written())
        self.parts = rt.body(list(self.numbers))
        self.needed = self.computed_again()
        self.to_cut = self.expensive() | unsafe(rt, nodes) | {x.target for x in self.between if at_once(x)}

    def written(self) -> Access:
        """Where an iteration stores, or adds, the element that it computes."""
        return Access(Var(self.root.target), self.last_axes(self.ndim), self.each[self.end])

    def last_axes(self, ndim: int) -> tuple[Along, ...]:
        """The places in an array of so many axes: those of the last counters."""
        return tuple(map(Along, range(self.ndim - ndim, self.ndim)))

    def made(self, shape: Var) -> Let:
        """The statement that makes the root: in the arena, unless it may be part of the result or there may be many."""
        rt = self.rt
        dtype = Ref(np.float64, "float64")
        if not rt.may_be_in_arena(self.root):
            return Let(self.root.target, "call", (Ref(np.empty, "empty"), shape, dtype), (), self.line)
        return Let(
            self.root.target, "call", (Ref(workspace.room, "room"), rt.arena, shape, dtype), (), self.line
        )

    def is_alike(self, x: Var) -> bool:
        """Whether a leaf surely has the shape of the end."""
        roots = self.rt.values.root
        return roots.get(x.name, x.name) == roots.get(self.end.name, self.end.name)

    def sides(
        self, out: list[Stmt], arrays: dict[Var, Var], like: Var | None, instead: dict[Var, Var] | None = None
    ) -> tuple[list[Operand], dict[Var, Access]]:
        """(the lengths of the loops, where the elements of each leaf are).

        Args:
            out: where statements go that have to be done first.
            arrays: leaf -> what is read of it, or added to, in this loop.
            like: an array of the shape of the result; None where that is yet to be found.
            instead: leaf -> what is indexed in place of `arrays`, of the same shape but for its last axis.
        """
        shapes: dict[Var, list[Operand]] = {}
        for x, array in arrays.items():
            if like is None or (len(self.leaves) > 1 and not self.is_alike(x)):
                shapes[x] = self.shape(array, out)
        if like is None:
            lengths = self.together(shapes, out)
        else:
            lengths = self.lengths or self.shape(like, out)
        found: dict[Var, Access] = {}
        for read in self.loop.reads:
            x = read.array
            if x not in arrays:
                continue
            array, steps = arrays[x], [ONE] * self.rt.types[x.name].ndim
            if len(self.leaves) > 1 and not self.is_alike(x):
                steps = [self.step(n, out) for n in shapes[x][:-1]]
                steps.append(ZERO if self.is_column(x) else ONE)
                if not self.is_column(x) and instead is None:
                    copy = Var(self.rt.fresh(f"{x.name}_along"))
                    self.rt.types[copy.name] = self.rt.types[x.name]
                    out.append(
                        Let(copy.name, "call", (Ref(along, "along"), array, lengths[-1]), (), self.line)
                    )
                    array = copy
            places = tuple(
                replace(place, step=step) for place, step in zip(read.places or (), steps, strict=True)
            )
            found[x] = replace(read, array=array if instead is None else instead[x], places=places)
        return lengths, found

    def together(self, shapes: dict[Var, list[Operand]], out: list[Stmt]) -> list[Operand]:
        """The lengths of the result."""
        order = sorted(shapes, key=lambda x: (self.is_column(x), -self.rt.types[x.name].ndim))
        lengths = list(shapes[order[0]])
        if len(lengths) < self.ndim:  # the one with the most axes is a column
            order.sort(key=lambda x: -self.rt.types[x.name].ndim)
            lengths = list(shapes[order[0]])
        for x in order[1:]:
            mine = shapes[x]
            start = self.ndim - len(mine)
            for k, n in enumerate(mine):
                lengths[start + k] = self.common(lengths[start + k], n, out)
        return lengths

    def is_column(self, x: Var) -> bool:
        """Whether a leaf surely has 1 for the length of its last axis, and another leaf may have more."""
        known = self.found_by.is_column
        return known(x) and not all(map(known, self.leaves))

    def counters(self) -> list[Operand]:
        """New variables for the loops."""
        found: list[Operand] = []
        for _ in range(self.ndim):
            name = self.rt.fresh("k")
            self.rt.types[name] = types.int64
            found.append(Var(name))
        return found

    def loads(self, leaves: list[Var], sides: dict[Var, Access], counters: list[Operand]) -> list[Stmt]:
        """The elements of leaves."""
        out: list[Stmt] = []
        for x in leaves:
            index = self.index(out, self.placed(sides[x], counters, out))
            out.append(Let(self.each[x].name, "item", (sides[x].array, index), None, self.line))  # type: ignore[union-attr]
        return out

    def nest(
        self,
        counters: list[Operand],
        lengths: list[Operand],
        inner: list[Stmt],
        before: list[Stmt],
        behind: list[Stmt],
    ) -> list[Stmt]:
        """Loops of these lengths, with statements around the innermost."""
        for k, length in reversed(list(zip(counters, lengths, strict=True))):
            inner = [For(k.name, Const(0), length, Const(1), inner, self.line)]  # type: ignore[union-attr]
            if k is counters[-1]:
                inner = [*before, *inner, *behind]
        return inner
