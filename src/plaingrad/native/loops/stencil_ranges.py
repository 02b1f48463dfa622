"""Iteration ranges of a stencil's reverse: where all contributions fall together, and what becomes of the rim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plaingrad.native.loops.elements import ElementLoop, Offset
from plaingrad.native.loops.gathers import Region, reach_of
from plaingrad.native.loops.if_conversion import Declined
from plaingrad.native.loops.nests import iteration_of
from plaingrad.native.program.ir import Const, Do, For, Let, Operand, Ref, Stmt, Var
from plaingrad.native.runtime import helpers

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


class Ranges:
    """The ranges of the loops on the way back, and the places in them."""

    def __init__(self, rt: Reverse, s: For, nest: ElementLoop) -> None:
        self.rt = rt
        self.nest = nest
        self.line = s.line
        self.loop = s
        self.each = iteration_of(rt, nest)
        if not self.each.seeds:
            raise Declined
        self.made = {x.target: x for x in self.each.pool}
        self.rank = {x.target: k for k, x in enumerate(self.each.pool)}
        self.forward: list[Stmt] = []  # in front of the nest, and behind it
        self.behind: list[Stmt] = []
        self.held = self._held()  # array -> a copy of it, where it may be overwritten later
        self.head: list[Stmt] = []
        self.bounds = [(self._bound(axis.start), self._bound(axis.stop)) for axis in nest.axes]
        self.head_of_bounds = list(self.head)

    def plus(self, out: list[Stmt], x: Operand, shift: int) -> Operand:
        """x + shift, an int."""
        if shift == 0:
            return x
        if isinstance(x, Const):
            return Const(x.value + shift)
        op = "+" if shift > 0 else "-"
        return self.rt.emit(out, "binary", (x, Const(abs(shift))), op, self.line)

    def index(self, region: Region, axis: int, shift: int) -> Operand:
        """The target's place along `axis`, plus `shift`, as an index that is known not to be negative."""
        key = axis, shift
        if key not in region.known:
            out = region.levels[axis]
            x = self.plus(out, region.at[axis], shift)
            if not isinstance(x, Const):
                x = self.rt.emit(out, "call", (Ref(np.uint64, "uint64"), x), (), self.line)
            region.known[key] = x
        return region.known[key]

    def place(self, region: Region, shifts: Offset) -> Operand:
        """The index of the element `shifts` away from the target."""
        parts = tuple(self.index(region, k, shift) for k, shift in enumerate(shifts))
        return parts[0] if len(parts) == 1 else self.rt.emit(region.out, "tuple", parts, None, self.line)

    def _begin_lines(self) -> None:
        """Have rows of what this nest, and its reverse, store to begin at lines of memory where the storing begins."""
        each, (start, _), leads = self.each, self.bounds[-1], self.rt.values.leads
        if not isinstance(start, Const):
            return
        for name, offset in each.seeds.items():
            leads.setdefault(name, start.value + offset[-1])
        for name, group in each.gathers.items():
            first = start.value + reach_of(group, self.nest.rank - 1)[1]
            for shadow in (name, *each.seeds):  # they may exchange their buffers
                leads.setdefault(f"{shadow}_b", first)

    def _fits(self) -> Operand:
        """Whether every range is wide enough for its rims, and no index negative."""
        each = self.each
        tests: list[Operand] = []
        offsets = [offset for _, offset in each.places.values()] + list(each.seeds.values())
        for k, (start, stop) in enumerate(self.bounds):
            rim = max(
                [reach_of(group, k)[1] - reach_of(group, k)[0] for group in each.gathers.values()] or [0]
            )
            need = max(2 * rim, 1)
            width = self.rt.emit(self.head, "binary", (stop, start), "-", self.line)
            tests.append(self.rt.emit(self.head, "compare", (width, Const(need)), ">=", self.line))
            low = min(offset[k] for offset in offsets)
            if isinstance(start, Const):
                if start.value + low < 0:
                    raise Declined
            else:
                first = self.plus(self.head, start, low)
                tests.append(self.rt.emit(self.head, "compare", (first, Const(0)), ">=", self.line))
        tests += self._guards()
        return self.both(self.head, tests)

    def _guards(self) -> list[Operand]:
        """Whether the elements that only some iterations read are elements in all iterations.

        Raises:
            Declined: one has another index than the loop variables plus offsets; or an array is stored to by some
                iterations at a place that the others may not have.
        """
        rt, each, arms = self.rt, self.each, self.nest.arms
        root = rt.values.root
        always: dict[str, list[Offset]] = {}  # by the root of the shape
        for read, (name, offset) in each.places.items():
            array = name if name in rt.types else name.removesuffix("_b")
            if read not in arms.guarded and (array == name or array not in arms.partly):
                always.setdefault(root.get(array, array), []).append(offset)

        def is_always(array: str, offset: Offset) -> bool:
            reach = [reach_of(dict.fromkeys(always.get(array, []), Const(0)), k) for k in range(len(offset))]
            return all(low <= c <= high for c, (low, high) in zip(offset, reach, strict=True))

        tests: list[Operand] = []
        for name in sorted(arms.partly):
            array = root.get(name, name)
            if array not in always or (name in each.seeds and not is_always(array, each.seeds[name])):
                raise Declined
        for read in sorted(arms.guarded, key=self.rank.__getitem__):
            if read not in each.places:
                raise Declined
            name, offset = each.places[read]
            array = root.get(name, name)
            if array in always and is_always(array, offset):
                continue
            shape = rt.emit(self.head, "attribute", (Var(array),), "shape", self.line)
            for k, (_, stop) in enumerate(self.bounds):
                size = rt.emit(self.head, "item", (shape, Const(k)), None, self.line)
                last = self.plus(self.head, stop, offset[k])
                tests.append(rt.emit(self.head, "compare", (last, size), "<=", self.line))
        return tests

    def _is_guarded(self, name: str, offset: Offset) -> bool:
        """Whether all reads of an array at an offset are guarded."""
        reads = [read for read, place in self.each.places.items() if place == (name, offset)]
        return all(read in self.nest.arms.guarded for read in reads)

    def _nearest(self, out: list[Stmt], array: str, index: Operand) -> Operand:
        """`index`, or where that is none of the array's the nearest one: for reads of which nothing will be taken."""
        rt, rank, clamped = self.rt, self.nest.rank, Ref(helpers.clamped, "clamped")
        shape = rt.emit(out, "attribute", (Var(array),), "shape", self.line)
        parts: list[Operand] = []
        for k in range(rank):
            part = rt.emit(out, "item", (index, Const(k)), None, self.line) if rank > 1 else index
            size = rt.emit(out, "item", (shape, Const(k)), None, self.line)
            parts.append(rt.emit(out, "call", (clamped, part, size), (), self.line))
        return parts[0] if rank == 1 else rt.emit(out, "tuple", tuple(parts), None, self.line)

    def _copied_from(self, name: str) -> str | None:
        """The array that `name` begins as a copy of, if this nest gathers into it and follows at once."""
        birth = self.rt.values.births[name]
        if name in self.nest.in_place or birth.made.op != "method" or birth.made.detail != ("copy", ()):
            return None
        source = birth.made.args[0]
        if (
            not isinstance(source, Var)
            or source.name not in self.each.gathers
            or not self._follows(name, source.name)
        ):
            return None
        group, a = self.each.gathers[source.name], self.each.seeds[name]
        inside = all(low <= a[k] <= high for k in range(len(a)) for low, high in [reach_of(group, k)])
        return source.name if inside else None

    def _copy_around(self, name: str) -> None:
        """On the way forward: a copy, of which this nest overwrites a box at once, is made around that box only."""
        made = self.rt.values.births[name].made
        source, rank = made.args[0], self.nest.rank
        if made.op != "method" or made.detail != ("copy", ()) or rank not in helpers.COPY_AROUND:
            return
        if name in self.nest.in_place | self.nest.arms.partly:
            return
        if not isinstance(source, Var) or not self.rt.values.is_whole(source.name):
            return
        if not self._follows(name, source.name):
            return
        self.forward += self.head_of_bounds
        corners: list[Operand] = []
        for side in (0, 1):
            parts = [
                self.plus(self.forward, b[side], a)
                for b, a in zip(self.bounds, self.each.seeds[name], strict=True)
            ]
            corners.append(self.rt.emit(self.forward, "tuple", tuple(parts), None, self.line))
        f = helpers.COPY_AROUND[rank]
        for out, behind in ((self.forward, False), (self.behind, True)):
            call = (Ref(f, f.__name__), Var(name), source, *corners, Const(behind))
            out.append(Do(Let("_", "call", call, (), self.line), self.line))

    def _begins_empty(self, name: str) -> bool:
        """Whether `name` begins as zeros, or as anything, and this nest follows at once."""
        s = self.rt.values.births[name].made
        f = getattr(s.args[0], "value", None) if s.op == "call" else None
        return f in (np.empty, np.zeros, np.empty_like, np.zeros_like) and self._follows(name, None)

    def _follows(self, name: str, source: str | None) -> bool:
        """Whether nothing touches `name`, or gives `source` another meaning, between its birth and the nest."""
        return self.rt.values.follows(name, source, self.loop)
