"""Gather loops of stencils: every element of a cotangent once, the sum of what the iterations around it contribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numba.core import types

from plaingrad.native.loops import prefetch
from plaingrad.native.loops.elements import Offset
from plaingrad.native.loops.nests import total
from plaingrad.native.program.ir import Const, Do, For, If, Let, Operand, Ref, Stmt, Store, Var

if TYPE_CHECKING:
    from plaingrad.native.loops.stencils import Backward


@dataclass(slots=True)
class Region:
    """Where contributions are being written: inside loops over targets.

    Attributes:
        levels: the statements of each loop, from the outermost inwards.
        at: the loop variables, or constants, that name the target.
        known: (axis, shift) -> an index that is there already.
    """

    levels: list[list[Stmt]]
    at: list[Operand]
    known: dict[tuple[int, int], Operand] = field(default_factory=dict)

    @property
    def out(self) -> list[Stmt]:
        """The innermost statements."""
        return self.levels[-1]

    def deeper(self, at: Operand, out: list[Stmt]) -> Region:
        """One loop further in."""
        return Region([*self.levels, out], [*self.at, at], dict(self.known))


def reach_of(group: dict[Offset, Operand], axis: int) -> tuple[int, int]:
    """The least and the greatest offset along an axis."""
    found = [offset[axis] for offset in group]
    return min(found), max(found)


class Gather:
    """The loops over the elements of one cotangent.

    Along every axis the elements that all iterations around them contribute to lie between `low` and `high`, those
    that any does between `first` and `last`.
    """

    def __init__(
        self, work: Backward, name: str, group: dict[Offset, Operand], assign: bool, origin: str | None
    ) -> None:
        self.work = work
        self.group = group
        self.shadow = Var(f"{name}_b")
        self.assign = assign
        self.origin = origin
        self.stored: Offset = work.each.seeds[origin] if origin else ()
        self.rank = work.nest.rank
        self.out: list[Stmt] = []
        self.reach = [reach_of(group, k) for k in range(self.rank)]
        plus = work.plus
        self.low = [
            plus(self.out, s, high) for (s, _), (_, high) in zip(work.bounds, self.reach, strict=True)
        ]
        self.high = [plus(self.out, e, low) for (_, e), (low, _) in zip(work.bounds, self.reach, strict=True)]
        self.first = [
            plus(self.out, s, low) for (s, _), (low, _) in zip(work.bounds, self.reach, strict=True)
        ]
        self.last = [
            plus(self.out, e, high) for (_, e), (_, high) in zip(work.bounds, self.reach, strict=True)
        ]
        self.size: list[Operand] = []
        if assign:
            shape = work.rt.emit(self.out, "attribute", (self.shadow,), "shape", work.line)
            emit = work.rt.emit
            self.size = [emit(self.out, "item", (shape, Const(k)), None, work.line) for k in range(self.rank)]

    def statements(self) -> list[Stmt]:
        """The loops: over the rows whose middle is whole, and over the others.

        With a branch between the two inside one loop, the compiler makes code of half the speed.
        """
        self._whole_rows(Region([], []), self.out)
        if self.rank > 1:
            self._rim_rows(Region([], []), self.out, [])
        return self.out

    def _whole_rows(self, region: Region, out: list[Stmt]) -> None:
        k = len(region.at)
        if k == self.rank - 1:
            self._whole_row(region, out)
            return
        name = self.work.rt.fresh("row")
        body: list[Stmt] = []
        self._whole_rows(region.deeper(Var(name), body), body)
        self._run(out, k, name, body)

    def _run(self, out: list[Stmt], axis: int, name: str, body: list[Stmt]) -> None:
        """`body` for the targets in the middle of an axis; along the first, with kept arrays brought near by parts."""
        work, low, high = self.work, self.low[axis], self.high[axis]
        arrays = work.kept_in(list(self.group.values())) if axis == 0 else []
        if not arrays:
            out.append(work.over(name, low, high, body))
            return
        rt, line, arena = work.rt, work.line, work.rt.arena
        step = rt.emit(out, "call", (Ref(prefetch.rows_at_once, "rows_at_once"), arena, arrays[0]), (), line)
        first, part = rt.fresh("first"), []
        end = rt.emit(part, "binary", (Var(first), step), "+", line)
        last = rt.emit(part, "call", (Ref(min, "min"), end, high), (), line)
        for x in arrays:
            call = (Ref(prefetch.bring_near, "bring_near"), arena, x, Var(first), last)
            part.append(Do(Let("_", "call", call, (), line), line))
        part.append(work.over(name, Var(first), last, body))
        rt.types[first] = types.int64
        out.append(For(first, low, high, step, part, line))

    def _rim_rows(self, region: Region, out: list[Stmt], tests: list[Operand]) -> None:
        k = len(region.at)
        if k == self.rank - 1:
            rim: list[Stmt] = []
            test = self.work.both(out, tests)
            self._rim_row(self._inside(region, rim), rim)
            out.append(If(test, [], rim, self.work.line))
            return
        name = self.work.rt.fresh("row")
        body: list[Stmt] = []
        here = self.work.between(body, Var(name), self.low[k], self.high[k])
        start = Const(0) if self.assign else self.first[k]
        stop = self.size[k] if self.assign else self.last[k]
        self._rim_rows(region.deeper(Var(name), body), body, [*tests, *here])
        out.append(self.work.over(name, start, stop, body))

    def _inside(self, region: Region, out: list[Stmt]) -> Region:
        """The region in an arm, where its indices are made."""
        return Region([*region.levels[:-1], out], region.at, dict(region.known))

    def _put(self, region: Region, terms: list[Operand], add: bool) -> None:
        """target = sum of terms, or target += that."""
        rt, line = self.work.rt, self.work.line
        place = self.work.place(region, (0,) * self.rank)
        if add:
            terms = [rt.emit(region.out, "item", (self.shadow, place), None, line), *terms]
        value = total(rt, region.out, terms, line) if terms else Const(0.0)
        region.out.append(Store(self.shadow, place, value, line))

    def _origin_at(self, region: Region) -> Operand:
        """What the copy that the array began as contributes to the target."""
        place = self.work.place(region, (0,) * self.rank)
        return self.work.rt.emit(region.out, "item", (Var(f"{self.origin}_b"), place), None, self.work.line)

    def _base(self, region: Region, start: Operand, stop: Operand, copied: bool) -> Stmt:
        """A part of a row that no iteration contributes to, or not yet: zeros, or the cotangent of the copy."""
        name = self.work.rt.fresh("at")
        body: list[Stmt] = []
        inner = region.deeper(Var(name), body)
        self._put(inner, [self._origin_at(inner)] if copied and self.origin else [], False)
        return self.work.over(name, start, stop, body)

    def _whole_row(self, region: Region, out: list[Stmt]) -> None:
        """A row to whose middle all offsets contribute: its ends one by one, its middle in a loop."""
        work, k = self.work, self.rank - 1
        low, high = self.reach[k]
        start, stop = work.bounds[k]
        if self.assign and self.first[k] != Const(0):
            out.append(self._base(region, Const(0), self.first[k], True))
        for m in range(low, high):
            self._end(region, out, start, m, [o for o in self.group if o[k] <= m], lambda a, m=m: m < a)
        name = work.rt.fresh("at")
        body: list[Stmt] = []
        inner = region.deeper(Var(name), body)
        terms = [work.contribution(inner, bar, offset) for offset, bar in self.group.items()]
        self._put(inner, terms, not self.assign)
        self._run(out, k, name, body)
        for m in range(low, high):
            self._end(region, out, stop, m, [o for o in self.group if o[k] > m], lambda a, m=m: m >= a)
        if self.assign:
            out.append(self._base(region, self.last[k], self.size[k], True))

    def _end(
        self,
        region: Region,
        out: list[Stmt],
        bound: Operand,
        shift: int,
        offsets: list[Offset],
        is_copied: Any,
    ) -> None:
        """The element `shift` behind a bound of the range, to which only `offsets` contribute."""
        at = self.work.plus(out, bound, shift)
        body: list[Stmt] = []
        inner = region.deeper(at, body)
        terms = [self.work.contribution(inner, self.group[offset], offset) for offset in offsets]
        if self.origin and is_copied(self.stored[-1]):
            terms.append(self._origin_at(inner))
        if terms or self.assign:
            self._put(inner, terms, not self.assign)
        out += body

    def _rim_row(self, region: Region, out: list[Stmt]) -> None:
        """A row near the edge: loops over the columns, one for each offset that contributes."""
        work, k = self.work, self.rank - 1
        start, stop = work.bounds[k]
        if self.assign:
            self._rim_base(region, out)
        for offset, bar in self.group.items():
            tests: list[Operand] = []
            for axis in range(k):
                at = work.plus(out, region.at[axis], -offset[axis])
                tests += work.between(out, at, *work.bounds[axis])
            name = work.rt.fresh("at")
            arm: list[Stmt] = []
            body: list[Stmt] = []
            inner = self._inside(region, arm).deeper(Var(name), body)
            self._put(inner, [work.contribution(inner, bar, offset)], True)
            first, last = work.plus(arm, start, offset[k]), work.plus(arm, stop, offset[k])
            arm.append(work.over(name, first, last, body))
            out.append(If(work.both(out, tests), arm, [], work.line))

    def _rim_base(self, region: Region, out: list[Stmt]) -> None:
        """What a row near the edge holds before any iteration contributes."""
        work, k = self.work, self.rank - 1
        if self.origin is None:
            out.append(self._base(region, Const(0), self.size[k], False))
            return
        tests: list[Operand] = []
        for axis in range(k):
            at = work.plus(out, region.at[axis], -self.stored[axis])
            tests += work.between(out, at, *work.bounds[axis])
        crossed: list[Stmt] = []
        inner = self._inside(region, crossed)
        first, last = (work.plus(crossed, bound, self.stored[k]) for bound in work.bounds[k])
        crossed += [
            self._base(inner, Const(0), first, True),
            self._base(inner, first, last, False),
            self._base(inner, last, self.size[k], True),
        ]
        whole: list[Stmt] = []
        inner = self._inside(region, whole)
        whole.append(self._base(inner, Const(0), self.size[k], True))
        out.append(If(work.both(out, tests), crossed, whole, work.line))


__all__ = ["Gather", "Region", "reach_of"]
