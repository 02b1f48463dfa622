"""Stencils, loops that compute each element of a new array from neighbours: reversed by gathering, not scattering.

For `for i, j: v[i, j] = f(u[i + a, j + b], ...)` the general reverse adds into `u_b[i + a, j + b]` for every
neighbour, which no compiler vectorises. Here every element of `u_b` is assigned once: the sum, over the distinct
offsets, of what the iterations around it contribute. Elements near the edge of the loop's range (the rim) receive
fewer contributions, and are done column by column. Where the range is narrower than the stencil, or where an index
would be negative (which counts from the end in Python), the loop runs backward and scatters, element after element.

Nothing is taped element by element: values are computed again from arrays that are never overwritten
(`immutable.is_settled`), or of which a copy is kept. An array that is changed in place, each element from itself
and from other arrays, is taken as well. The form declines, and leaves the loop to the general reverse, where anything
is not as `nests` asks for it, or where two arrays may be the same memory (`no_alias.Distinct`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.core import types

from plaingrad.native.loops.elements import Offset, nest_of
from plaingrad.native.loops.gathers import Gather, Region
from plaingrad.native.loops.if_conversion import Declined
from plaingrad.native.loops.nests import forwarded
from plaingrad.native.loops.stencil_values import ValuesAgain
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Operand,
    Parts,
    Stmt,
    Store,
    Var,
)
from plaingrad.native.reverse import cotangent_arrays

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


def gathered(rt: Reverse, s: Any) -> Parts | None:
    """The parts of a loop that is a stencil; None where it is not."""
    if rt.values is None or not isinstance(s, For):
        return None
    try:
        nest = forwarded(rt, nest_of(rt, s))
        work = Backward(rt, s, nest)
        backward = work.statements()
        return Parts([*work.forward, s, *work.behind], backward)
    except Declined:
        return None


class Backward(ValuesAgain):
    """The reverse of one nest."""

    # -- small pieces --------------------------------------------------------------------------------------------------

    def contribution(self, region: Region, bar: Operand, offset: Offset) -> Operand:
        """What the iteration that has the target at `offset` contributes to it."""
        return self.copy(region, [bar], offset)[0]

    def copy(self, region: Region, wanted: list[Operand], offset: Offset) -> list[Operand]:
        """`wanted`, of the iteration that has the target at `offset`."""
        names = dict(self.held)
        chosen = self.slice_of(wanted)
        read = {a.name for s in chosen for a in self._inputs(s) if isinstance(a, Var)}
        read |= {a.name for a in wanted if isinstance(a, Var)}
        for k, counter in enumerate(self.nest.counters):
            if counter in read:
                names[counter] = self.plus(region.out, region.at[k], -offset[k])
        for s in chosen:
            place = self.each.places.get(s.target)
            if place is not None:
                shifts = tuple(c - o for c, o in zip(place[1], offset, strict=True))
                s = Let(s.target, "item", (s.args[0], self.place(region, shifts)), None, s.line)
            names[s.target] = self._copied(s, names, region.out)
        return [names.get(a.name, a) if isinstance(a, Var) else a for a in wanted]

    def _inputs(self, s: Let) -> tuple[Operand, ...]:
        return s.args[:1] if s.target in self.each.places else s.args

    def both(self, out: list[Stmt], tests: list[Operand]) -> Operand:
        """Whether all of `tests` hold."""
        found = tests[0]
        for test in tests[1:]:
            found = self.rt.emit(out, "binary", (found, test), "&", self.line)
        return found

    def between(self, out: list[Stmt], x: Operand, low: Operand, high: Operand) -> list[Operand]:
        """low <= x, x < high."""
        first = self.rt.emit(out, "compare", (low, x), "<=", self.line)
        return [first, self.rt.emit(out, "compare", (x, high), "<", self.line)]

    def over(self, name: str, start: Operand, stop: Operand, body: list[Stmt]) -> For:
        """A counted loop."""
        self.rt.types[name] = types.int64
        return For(name, start, stop, Const(1), body, self.line)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def statements(self) -> list[Stmt]:
        """The reverse: gathering where the range is wide enough, else scattering."""
        each = self.each
        fits = self._fits()
        born = [name for name in each.seeds if name in self.rt.values.owned]
        fused = {name: source for name in born if (source := self._copied_from(name)) is not None}
        ending = [name for name in born if self._begins_empty(name)]
        for name in born:
            self._copy_around(name)
        self._begin_lines()
        targets = frozenset(f"{name}_b" for name in each.gathers)
        adding = self._way(fits, {}, False, ending)
        owned = all(name in self.rt.values.owned for name in each.gathers)
        if not targets or not owned:
            out = [*self.head, *adding]
        else:
            assigning = self._way(fits, fused, True, [*ending, *fused])
            spent = frozenset(f"{name}_b" for name in (*fused, *ending))
            out = [
                *self.head,
                cotangent_arrays.choose(
                    cotangent_arrays.Choice(targets, spent), assigning, adding, self.line
                ),
            ]
        return [*out, *[cotangent_arrays.clear(Var(f"{name}_b")) for name in ending]]

    def _way(self, fits: Operand, fused: dict[str, str], assign: bool, spent: list[str]) -> list[Stmt]:
        """The branch between gathering and scattering; `assign` what is gathered, or add to it."""
        gather: list[Stmt] = []
        origins = {source: name for name, source in fused.items()}
        for name, group in self.each.gathers.items():
            gather += self._gather(name, group, assign, origins.get(name))
        gather += self._remaining()
        gather += self._ended([name for name in self.each.seeds if name not in spent])
        scatter: list[Stmt] = []
        if assign:
            scatter += [
                Do(Let("_", "method", (Var(f"{name}_b"), Const(0.0)), ("fill", ())))
                for name in self.each.gathers
            ]
        scatter += self._scatter()
        scatter += [
            InPlace(Var(f"{source}_b"), "+", Var(f"{name}_b"), self.line) for name, source in fused.items()
        ]
        return [If(fits, gather, scatter, self.line)]

    def _gather(
        self, name: str, group: dict[Offset, Operand], assign: bool, origin: str | None
    ) -> list[Stmt]:
        """Every element of the cotangent of `name`, once."""
        return Gather(self, name, group, assign, origin).statements()

    def _remaining(self) -> list[Stmt]:
        """What goes to numbers, or to elements that have another index than the loop variables plus offsets."""
        numbers, loose = self.each.numbers, self.each.loose
        if not numbers and not loose:
            return []
        names = [self.rt.fresh("at") for _ in self.nest.axes]
        levels: list[list[Stmt]] = [[] for _ in names]
        region = Region(levels, [Var(name) for name in names])
        wanted = [*numbers.values(), *[bar for _, bar in loose], *[read.args[1] for read, _ in loose]]
        found = self.copy(region, wanted, tuple(0 for _ in names))
        self._add_remaining(region.out, found)
        return self._nested(names, levels)

    def _add_remaining(self, out: list[Stmt], found: list[Operand]) -> None:
        numbers, loose = self.each.numbers, self.each.loose
        for name, bar in zip(numbers, found, strict=False):
            self.rt.add(out, Var(name), bar, self.line)
        for k, (read, _) in enumerate(loose):
            bar, place = found[len(numbers) + k], found[len(numbers) + len(loose) + k]
            self._add_at(out, read.args[0].name, place, bar)  # type: ignore[union-attr]

    def _add_at(self, out: list[Stmt], name: str, place: Operand, bar: Operand) -> None:
        """name_b[place] += bar."""
        shadow = Var(f"{name}_b")
        now = self.rt.emit(out, "item", (shadow, place), None, self.line)
        out.append(Store(shadow, place, self.rt.emit(out, "binary", (now, bar), "+", self.line), self.line))

    def _nested(self, names: list[str], levels: list[list[Stmt]]) -> list[Stmt]:
        """The loops `names` over the ranges of the nest, around statements."""
        for k in range(len(names) - 1, 0, -1):
            levels[k - 1].append(self.over(names[k], *self.bounds[k], levels[k]))
        return [self.over(names[0], *self.bounds[0], levels[0])]

    def _ended(self, stored: list[str]) -> list[Stmt]:
        """The cotangents of the elements that the nest has stored to: zeros, or what they had before contributed."""
        if not stored:
            return []
        names = [self.rt.fresh("at") for _ in self.nest.axes]
        levels: list[list[Stmt]] = [[] for _ in names]
        region = Region(levels, [Var(n) for n in names])
        bars = [self.each.own.get(name, Const(0.0)) for name in stored]
        for name, bar in zip(stored, self.copy(region, bars, (0,) * len(names)), strict=True):
            place = self.place(region, self.each.seeds[name])
            region.out.append(Store(Var(f"{name}_b"), place, bar, self.line))
        return self._nested(names, levels)

    def _scatter(self) -> list[Stmt]:
        """The iterations in reverse order, each adding what it contributes."""
        each, rt = self.each, self.rt
        out: list[Stmt] = []
        levels = [out]
        names = dict(self.held)
        for counter, (start, stop) in zip(self.nest.counters, self.bounds, strict=True):
            n = rt.emit(levels[-1], "binary", (stop, start), "-", self.line)
            last = rt.emit(levels[-1], "binary", (stop, Const(1)), "-", self.line)
            body: list[Stmt] = []
            made = self.over(rt.fresh("r"), Const(0), n, body)
            levels[-1].append(made)
            names[counter] = rt.emit(body, "binary", (last, Var(made.target)), "-", self.line)
            levels.append(body)
        body = levels[-1]
        groups = [
            (name, offset, bar) for name, group in each.gathers.items() for offset, bar in group.items()
        ]
        groups += [(name, each.seeds[name], bar) for name, bar in each.own.items()]
        first = {place: read for read, place in reversed(each.places.items())}
        indices = [self.made[first[name, offset]].args[1] for name, offset, _ in groups]
        wanted = [bar for _, _, bar in groups] + [*each.numbers.values(), *[bar for _, bar in each.loose]]
        wanted += [*indices, *[read.args[1] for read, _ in each.loose]]
        stores = [x for x in self.nest.body if isinstance(x, Store) and rt.is_active(x.array)]
        wanted += [x.index for x in stores]
        found: set[str] = set()
        todo = [a.name for a in wanted if isinstance(a, Var)]
        while todo:
            name = todo.pop()
            if name not in found and name in self.made:
                found.add(name)
                todo += [a.name for a in self.made[name].args if isinstance(a, Var)]
        for name in sorted(found, key=self.rank.__getitem__):
            x = self.made[name]
            if name in self.nest.arms.guarded:
                array, index = x.args[0].name, x.args[1]  # type: ignore[union-attr]
                index = names.get(index.name, index) if isinstance(index, Var) else index
                index = self._nearest(body, array, index)
                x = Let(x.target, "item", (x.args[0], index), None, x.line)
            names[name] = self._copied(x, names, body)
        got = [names.get(a.name, a) if isinstance(a, Var) else a for a in wanted]
        begin = len(groups) + len(each.numbers) + len(each.loose)
        for k, (name, offset, _) in enumerate(groups):
            if self._is_guarded(name, offset):
                got[begin + k] = self._nearest(body, name, got[begin + k])
        for x, place in zip(stores, got[len(wanted) - len(stores) :], strict=True):
            body.append(Store(Var(f"{x.array.name}_b"), place, Const(0.0), self.line))  # type: ignore[union-attr]
        rest = len(groups) + len(each.numbers) + len(each.loose)
        for (name, _, _), bar, place in zip(groups, got, got[rest:], strict=False):
            self._add_at(body, name, place, bar)
        more = got[len(groups) : rest] + got[rest + len(groups) : len(got) - len(stores)]
        self._add_remaining(body, more)
        return out


__all__ = ["gathered"]
