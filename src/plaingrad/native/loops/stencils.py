"""Loops that compute each element of a new array from neighbours in others: reversed by gathering, not scattering.

For `for i, j: v[i, j] = f(u[i + a, j + b], ...)` the general reverse adds into `u_b[i + a, j + b]` for every
neighbour, which no compiler vectorises. Here every element of `u_b` is assigned once: the sum, over the distinct
offsets, of what the iterations around it contribute. Elements near the edge of the loop's range (the rim) receive
fewer contributions, and are done column by column. Where the range is narrower than the stencil, or where an index
would be negative (which counts from the end in Python), the loop runs backward and scatters, element after element.

Nothing is taped element by element: values are computed again from arrays that are never overwritten
(`values.Values.is_settled`), or of which a copy is kept. An array that is changed in place, each element from itself
and from other arrays, is taken as well. The form declines, and leaves the loop to the general reverse, where anything
is not as `nests` describes it, or where two arrays may be the same memory (`distinct.Distinct`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native.loops.gathers import Gather, Region, reach_of
from plaingrad.native.loops.nests import Declined, Nest, Offset, forwarded, iteration_of, nest_of
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Parts,
    Ref,
    Stmt,
    Store,
    Var,
    assigns,
)
from plaingrad.native.reverse import cotangent_arrays
from plaingrad.native.reverse.recomputation import is_recomputable
from plaingrad.native.runtime import helpers

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


class Backward:
    """The reverse of one nest."""

    def __init__(self, rt: Reverse, s: For, nest: Nest) -> None:
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
        self.bounds = [(self._bound(loop.start), self._bound(loop.stop)) for loop in nest.loops]
        self.head_of_bounds = list(self.head)

    # -- what is read --------------------------------------------------------------------------------------------------

    def slice_of(self, wanted: list[Operand]) -> list[Let]:
        """The statements of the pool that `wanted` needs."""
        found: set[str] = set()
        todo = [a.name for a in wanted if isinstance(a, Var)]
        while todo:
            name = todo.pop()
            if name in found or name not in self.made:
                continue
            found.add(name)
            args = self.made[name].args
            todo += [a.name for a in (args[:1] if name in self.each.places else args) if isinstance(a, Var)]
        return [self.made[name] for name in sorted(found, key=self.rank.__getitem__)]

    def _held(self) -> dict[str, Operand]:
        """Copies, made in front of the nest, of the arrays that its reverse reads and that may be overwritten by then.

        Raises:
            Declined: an array that is read may be one that the nest stores to; or copying would cost more than the
                nest, which may run over another part of the array every time.
        """
        rt, each = self.rt, self.each
        wanted = [*each.own.values(), *[bar for group in each.gathers.values() for bar in group.values()]]
        wanted += [
            *each.numbers.values(),
            *[bar for _, bar in each.loose],
            *[read.args[1] for read, _ in each.loose],
        ]
        sources = {
            x.args[0].name for x in self.slice_of(wanted) if x.op == "item" and isinstance(x.args[0], Var)
        }
        values = {name for name in sources if isinstance(rt.types.get(name), types.Array)}
        stored = sorted(
            {x.array.name for x in self.nest.body if isinstance(x, Store) and isinstance(x.array, Var)}
        )
        read = values | each.gathers.keys() | {x.args[0].name for x, _ in each.loose}  # type: ignore[union-attr]
        for k, name in enumerate(stored):
            for other in sorted(read | set(stored[:k])):
                same = name == other and name in self.nest.in_place
                if (
                    name not in rt.values.owned
                    and not same
                    and not rt.values.distinct.are(name, other, self.loop)
                ):
                    raise Declined
        held: dict[str, Operand] = {}
        for name in sorted(values):
            copy = rt.kept(Var(name), self.forward, self.line)
            if copy != Var(name):
                held[name] = copy
        if held and not (
            self._is_steady() and all(rt.types[name].ndim == len(self.nest.loops) for name in held)
        ):
            raise Declined
        return held

    def kept_in(self, wanted: list[Operand]) -> list[Var]:
        """The arrays that `wanted` reads around the target and that every iteration of the loop outside has anew."""
        rt, found = self.rt, set()
        around = next((s for s in reversed(rt.enclosing) if isinstance(s, (For, Loop))), None)
        for x in self.slice_of(wanted):
            if around is None or x.target not in self.each.places:
                continue
            name = x.args[0].name  # type: ignore[union-attr]
            if isinstance(rt.types.get(name), types.Array) and rt.values.is_whole(name):
                held = self.held.get(name)
                found |= {held.name} if isinstance(held, Var) else {name} if assigns(around, name) else set()
        return [Var(name) for name in sorted(found)]

    def _is_steady(self) -> bool:
        """Whether the nest has the same bounds whenever it runs."""
        bounds = [a for loop in self.nest.loops for a in (loop.start, loop.stop)]
        named = {a.name for a in bounds if isinstance(a, Var)}
        for s in self.slice_of(bounds):
            named |= {a.name for a in s.args if isinstance(a, Var)}
        return all(name in self.nest.inside or self.rt.values.is_steady(name) for name in named)

    def _bound(self, x: Operand) -> Operand:
        """A bound of a loop, computed again in front of the loops."""
        if not isinstance(x, Var) or x.name not in self.nest.inside:
            return x
        names: dict[str, Operand] = {}
        loops = {loop.target for loop in self.nest.loops}
        for s in self.slice_of([x]):
            if any(isinstance(a, Var) and a.name in loops for a in s.args) or not is_recomputable(self.rt, s):
                raise Declined
            names[s.target] = self._copied(s, names, self.head)
        if x.name not in names:
            raise Declined
        return names[x.name]

    def _copied(self, s: Let, names: dict[str, Operand], out: list[Stmt]) -> Var:
        """The statement `s` again, under a new name."""
        args = tuple(names.get(a.name, a) if isinstance(a, Var) else a for a in s.args)
        new = self.rt.emit(out, s.op, args, s.detail, s.line)
        if s.target in self.rt.types:
            self.rt.types[new.name] = self.rt.types[s.target]
        return new

    # -- small pieces --------------------------------------------------------------------------------------------------

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

    def contribution(self, region: Region, bar: Operand, offset: Offset) -> Operand:
        """What the iteration that has the target at `offset` contributes to it."""
        return self.copy(region, [bar], offset)[0]

    def copy(self, region: Region, wanted: list[Operand], offset: Offset) -> list[Operand]:
        """`wanted`, of the iteration that has the target at `offset`."""
        names = dict(self.held)
        chosen = self.slice_of(wanted)
        read = {a.name for s in chosen for a in self._inputs(s) if isinstance(a, Var)}
        read |= {a.name for a in wanted if isinstance(a, Var)}
        for k, loop in enumerate(self.nest.loops):
            if loop.target in read:
                names[loop.target] = self.plus(region.out, region.at[k], -offset[k])
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

    def _begin_lines(self) -> None:
        """Have rows of what this nest, and its reverse, store to begin at lines of memory where the storing begins."""
        each, (start, _), leads = self.each, self.bounds[-1], self.rt.values.leads
        if not isinstance(start, Const):
            return
        for name, offset in each.seeds.items():
            leads.setdefault(name, start.value + offset[-1])
        for name, group in each.gathers.items():
            first = start.value + reach_of(group, len(self.nest.loops) - 1)[1]
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
        rt, rank, clamped = self.rt, len(self.nest.loops), Ref(helpers.clamped, "clamped")
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
        source, rank = made.args[0], len(self.nest.loops)
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
        names = [self.rt.fresh("at") for _ in self.nest.loops]
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
        names = [self.rt.fresh("at") for _ in self.nest.loops]
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
        loops: list[For] = []
        for loop, (start, stop) in zip(self.nest.loops, self.bounds, strict=True):
            n = rt.emit(levels[-1], "binary", (stop, start), "-", self.line)
            last = rt.emit(levels[-1], "binary", (stop, Const(1)), "-", self.line)
            body: list[Stmt] = []
            made = self.over(rt.fresh("r"), Const(0), n, body)
            levels[-1].append(made)
            loops.append(made)
            names[loop.target] = rt.emit(body, "binary", (last, Var(made.target)), "-", self.line)
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
