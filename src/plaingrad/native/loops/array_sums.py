"""Fused reductions: sums of elementwise expressions over an axis, or all elements, without an array for the terms.

`np.sum(np.exp(x - m), axis=1)` is one nest of loops on the way forward, which adds in the order in which Numba's
`np.sum` does, from 0 on, so that the bits are the same. On the way back every term has the cotangent of its sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba.core import types

from plaingrad.native.loops.array_trees import Tree
from plaingrad.native.loops.elements import Access, Along
from plaingrad.native.lowering.fused_reductions import is_mean, summed
from plaingrad.native.program.ir import Const, Do, Let, Operand, Parts, Ref, Stmt, Var
from plaingrad.native.runtime.row_helpers import share

if TYPE_CHECKING:
    from plaingrad.native.loops.array_loops import ArrayLoops
    from plaingrad.native.reverse.reverse import Reverse


@dataclass(frozen=True, slots=True)
class Sum:
    """What is added up.

    Attributes:
        array: the array.
        axis: along which axis; None for all elements.
    """

    array: Var
    axis: int | None


def added_up(rt: Reverse, s: Let) -> Sum | None:
    """What `s` adds up, if its result is active and the array is one of float64; None for other statements."""
    found = _sum_over_axis(s) or ((whole := summed(s)) and Sum(whole, None)) or None
    t = rt.types.get(found.array.name) if found else None
    if found is None or not rt.is_active(Var(s.target)) or rt.assigned.get(s.target, 0) != 1:
        return None
    if not isinstance(t, types.Array) or t.dtype != types.float64 or not 1 <= t.ndim <= 3:
        return None
    if found.axis is None or t.ndim == 1:
        return Sum(found.array, None)
    axis = found.axis + t.ndim if found.axis < 0 else found.axis
    return Sum(found.array, axis) if 0 <= axis < t.ndim else None


def pays(found: Sum, statements: int) -> bool:
    """Whether loops are better than Numba's own function: not for the sum of all elements of an array that is made."""
    return found.axis is not None or statements > 1


def _sum_over_axis(s: Let) -> Sum | None:
    """The array and axis of `np.sum(a, axis)` or `a.sum(axis)`."""
    if s.op == "call" and len(s.args) == 3 and getattr(s.args[0], "value", None) is np.sum:
        keywords, args = s.detail or (), s.args[1:]
    elif s.op == "method" and len(s.args) == 2 and s.detail[0] == "sum":
        keywords, args = s.detail[1] or (), s.args
    else:
        return None
    array, axis = args
    if tuple(keywords) not in ((), ("axis",)) or not isinstance(array, Var) or not isinstance(axis, Const):
        return None
    return Sum(array, axis.value) if type(axis.value) is int else None


class SumTree(Tree):
    """An elementwise expression that is added up.

    Attributes:
        axis: along which axis; None for all elements.
    """

    def __init__(self, found_by: ArrayLoops, nodes: list[Let], root: Let, found: Sum) -> None:
        self.axis = found.axis
        super().__init__(found_by, nodes, root, found.array)

    def written(self) -> Access:
        """The sum that an element is added to: of all of them, or the one at the other axes' places."""
        rest = tuple(Along(axis) for axis in range(self.ndim) if axis != self.axis)
        return Access(Var(self.root.target), None if self.axis is None else rest, self.each[self.end])

    def reverse(self) -> Parts:
        """The parts that stand for the statements."""
        rt = self.rt
        forward: list[Stmt] = []
        lengths, sides = self.sides(forward, {x: x for x in self.leaves}, None)
        kept: dict[Var, Var] = {}
        for x in self.leaves:
            if self.each[x].name in self.needed:  # type: ignore[union-attr]
                kept[x] = rt.kept(x, forward, self.line)  # type: ignore[assignment]
        self.lengths = lengths
        counters = self.counters()
        inner = [*self.loads(self.leaves, sides, counters), *self.numbers]
        bar = Var(f"{self.root.target}_b")
        if self.axis is None:
            forward += self.whole(counters, inner)
            begin: list[Stmt] = []
            if is_mean(self.root):
                bar = rt.emit(begin, "call", (Ref(share, "share"), bar, self.size(begin)), (), self.line)
                rt.types[bar.name] = types.float64
            back = [*begin, *self.backward(bar, kept)]
            return Parts(
                forward, [*back, Let(f"{self.root.target}_b", "copy", (Const(0.0),), None, self.line)]
            )
        forward += self.along_axis(counters, inner)
        back = self.backward(bar, kept)
        return Parts([*forward, rt.zeros(self.root.target)], [*back, *rt.cleared(self.root.target)])

    def whole(self, counters: list[Operand], inner: list[Stmt]) -> list[Stmt]:
        """The loops that add all elements up."""
        total = self.variable("total", types.float64)
        inner = [*inner, *self.one_more(total)]
        out: list[Stmt] = [Let(total.name, "copy", (Const(0.0),), None, self.line)]
        out += self.nest(counters, self.lengths, inner, [], [])
        if not is_mean(self.root):
            return [*out, Let(self.root.target, "copy", (total,), None, self.line)]
        args = (Ref(np.true_divide, "true_divide"), total, self.size(out))
        return [*out, Let(self.root.target, "call", args, (), self.line)]

    def size(self, out: list[Stmt]) -> Operand:
        """The number of elements."""
        size = self.lengths[0]
        for n in self.lengths[1:]:
            size = self.whole_number(out, "binary", (size, n), "*")
        return size

    def one_more(self, total: Var) -> list[Stmt]:
        """total += element."""
        more = self.variable("more", types.float64)
        return [
            Let(more.name, "binary", (total, self.each[self.end]), "+", self.line),
            Let(total.name, "copy", (more,), None, self.line),
        ]

    def along_axis(self, counters: list[Operand], inner: list[Stmt]) -> list[Stmt]:
        """The loops that add up along the axis, and the array of the sums."""
        [write] = self.loop.writes
        z = write.array
        shape = self.variable("shape", types.UniTuple(types.int64, self.ndim - 1))
        out: list[Stmt] = [
            Let(shape.name, "tuple", self.placed(write, self.lengths, []), None, self.line),
            self.made(shape),
        ]
        if self.axis == self.ndim - 1:
            total = self.variable("total", types.float64)
            before: list[Stmt] = [Let(total.name, "copy", (Const(0.0),), None, self.line)]
            behind: list[Stmt] = []
            self.store(behind, z, self.placed(write, counters, behind), total)
            return [*out, *self.nest(counters, self.lengths, [*inner, *self.one_more(total)], before, behind)]
        out.append(Do(Let("_", "method", (z, Const(0.0)), ("fill", ()), self.line), self.line))
        inner = [*inner]
        self.add_at(inner, z, self.placed(write, counters, inner), self.each[self.end])
        return [*out, *self.nest(counters, self.lengths, inner, [], [])]


__all__ = ["Sum", "SumTree", "added_up", "pays"]
