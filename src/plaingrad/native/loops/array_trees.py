"""Code of one fused elementwise expression: its loop forward, and its loop back (see `array_loops`)."""

from __future__ import annotations

from numba.core import types

from plaingrad.native.loops.element_code import at_once, is_expensive, plus
from plaingrad.native.loops.tree_sides import Sides
from plaingrad.native.program.ir import (
    Const,
    Do,
    Let,
    Operand,
    Parts,
    Ref,
    Stmt,
    Var,
    free_reads,
)
from plaingrad.native.reverse import cotangent_arrays
from plaingrad.native.runtime.array_helpers import folded, room_along


class Tree(Sides):
    """An elementwise expression.

    Attributes:
        loop: its loop over elements: leaves are read, and the element that an iteration computes is written.
        nodes: its statements.
        root: the statement whose result is wanted: the last of them, or what comes behind.
        end: the array whose elements the statements lead to; where it is not the result of the root, it is not made.
        between: the statements whose results are not made.
        leaves: the arrays that it takes its elements from.
        is_kept: whether elements of the end are read, rather than computed again, if the way back needs them.
        lengths: of the loops, if the way back takes them over.
        to_cut: the nodes that must be arrays; where there are any, no loop is made of this tree.
    """

    # -- what is computed again ----------------------------------------------------------------------------------------

    def computed_again(self) -> set[str]:
        """The numbers that the way back reads, with those that they are computed from."""
        made = {s.target: s for s in self.parts.forward if isinstance(s, Let)}
        leaves = {self.each[x].name for x in self.leaves}  # type: ignore[union-attr]
        end = self.each[self.end].name  # type: ignore[union-attr]
        found: set[str] = set()
        todo = [name for name in free_reads(self.parts.backward, set()) if name in made or name in leaves]
        while todo:
            name = todo.pop()
            if name in found:
                continue
            found.add(name)
            if name in made and not (name == end and self.is_kept):
                todo += [
                    a.name
                    for a in made[name].args
                    if isinstance(a, Var) and (a.name in made or a.name in leaves)
                ]
        return found

    def expensive(self) -> set[str]:
        """The arrays that are not made, but needed on the way back and expensive."""
        return {
            s.target for s in self.between if is_expensive(s) and self.each[Var(s.target)].name in self.needed
        }  # type: ignore[union-attr]

    # -- the two loops -------------------------------------------------------------------------------------------------

    def reverse(self) -> Parts:
        """The parts that stand for the statements."""
        rt, root = self.rt, Var(self.root.target)
        forward: list[Stmt] = []
        lengths, sides = self.sides(forward, {x: x for x in self.leaves}, None)
        shape = Var(rt.fresh("shape"))
        rt.types[shape.name] = types.UniTuple(types.int64, self.ndim)
        kept: dict[Var, Var] = {}
        for x in self.leaves:
            if self.each[x].name in self.needed:  # type: ignore[union-attr]
                kept[x] = rt.kept(x, forward, self.line)  # type: ignore[assignment]
        forward.append(Let(shape.name, "tuple", tuple(lengths), None, self.line))
        forward.append(self.made(shape))
        counters = self.counters()
        inner = self.loads(self.leaves, sides, counters)
        each = at_once(self.root)
        end = self.numbers[-1]
        inner += self.numbers if each is None else self.numbers[:-1]
        [write] = self.loop.writes
        places = self.placed(write, counters, inner)
        self.store(inner, root, places, self.each[root] if each is None else end.args[1])
        behind = [] if each is None else self.computed_at_once(each, counters, lengths)
        forward += self.nest(counters, lengths, inner, [], behind)
        bar = Var(f"{root.name}_b")
        if self.each[root].name in self.needed and self.is_kept:  # type: ignore[union-attr]
            kept[root] = rt.kept(root, forward, self.line)  # type: ignore[assignment]
        back = self.backward(bar, kept)
        if root.name in rt.values.owned:
            return Parts(forward, [*back, cotangent_arrays.clear(bar)])
        return Parts([*forward, rt.zeros(root.name)], [*back, *rt.cleared(root.name)])

    def computed_at_once(self, each: Ref, counters: list[Operand], lengths: list[Operand]) -> list[Stmt]:
        """A function of all elements in one row of the root, in which its arguments are."""
        out: list[Stmt] = []
        row = Var(self.root.target)
        if self.ndim > 1:
            row = Var(self.rt.fresh("row"))
            self.rt.types[row.name] = types.Array(types.float64, 1, "C")
            index = self.index(out, tuple(counters[:-1]))
            out.append(Let(row.name, "item", (Var(self.root.target), index), None, self.line))
        out.append(Do(Let("_", "call", (each, row, lengths[-1]), (), self.line), self.line))
        return out

    def backward(self, bar: Var, kept: dict[Var, Var]) -> list[Stmt]:
        """The loop of the way back."""
        rt = self.rt
        active = [x for x in self.leaves if rt.is_active(x)]
        same = [x for x in active if x.name in rt.values.owned and self.is_alike(x)]
        adding = self.back_loop(bar, kept, active, [])
        if not same:
            return adding
        assigning = self.back_loop(bar, kept, active, same)
        choice = cotangent_arrays.Choice(frozenset(f"{x.name}_b" for x in same), frozenset())
        return [cotangent_arrays.choose(choice, assigning, adding, self.line)]

    def back_loop(self, bar: Var, kept: dict[Var, Var], active: list[Var], assigned: list[Var]) -> list[Stmt]:
        """The loop that adds to the cotangents of the leaves, or assigns those of `assigned`."""
        rt, line = self.rt, self.line
        out: list[Stmt] = []
        values = {x: name for x, name in kept.items() if x in self.leaves}
        lengths, sides = self.sides(out, values, bar)
        bars = {x: Var(f"{x.name}_b") for x in active}
        targets, end = self.targets(out, bars, lengths)
        _, places = self.sides(out, bars, bar, targets)
        counters = self.counters()
        inner = self.loads(list(values), sides, counters)
        root = Var(self.root.target)
        made_by_load = {self.each[x].name for x in kept}  # type: ignore[union-attr]
        if root in kept:
            inner.append(
                Let(
                    self.each[root].name, "item", (kept[root], self.index(inner, tuple(counters))), None, line
                )
            )  # type: ignore[union-attr]
        inner += [
            s for s in self.parts.forward if isinstance(s, Let) and s.target in self.needed - made_by_load
        ]
        numbers = [e.name for e in self.each.values() if isinstance(e, Var) and e.name in rt.active]
        inner += [Let(f"{name}_b", "copy", (Const(0.0),), None, line) for name in numbers]
        inner.append(self.arrived(bar, counters, inner))
        inner += [self.added(s, set(numbers)) for s in self.parts.backward]
        before: list[Stmt] = []
        behind: list[Stmt] = []
        for x in active:
            term = Var(f"{self.each[x].name}_b")  # type: ignore[union-attr]
            if x in assigned:
                self.store(inner, bars[x], tuple(counters), term)
            elif self.is_column(x):
                total = Var(rt.fresh("column"))
                rt.types[total.name] = types.float64
                before.append(Let(total.name, "copy", (Const(0.0),), None, line))
                inner.append(plus(total.name, total, term, line))
                self.add_at(behind, places[x].array, self.placed(places[x], counters, behind), total)
            else:
                self.add_at(inner, places[x].array, self.placed(places[x], counters, inner), term)
        return [*out, *self.nest(counters, lengths, inner, before, behind), *end]

    def arrived(self, bar: Var, counters: list[Operand], out: list[Stmt]) -> Let:
        """The cotangent of an element of the end: that of what it is stored or added to."""
        name = self.each[self.end].name  # type: ignore[union-attr]
        [write] = self.loop.writes
        if write.places is None:
            return Let(f"{name}_b", "copy", (bar,), None, self.line)
        return Let(
            f"{name}_b", "item", (bar, self.index(out, self.placed(write, counters, out))), None, self.line
        )

    def targets(
        self, out: list[Stmt], bars: dict[Var, Var], lengths: list[Operand]
    ) -> tuple[dict[Var, Var], list[Stmt]]:
        """(for each leaf what is added into, what is done behind the loop)."""
        found: dict[Var, Var] = {}
        end: list[Stmt] = []
        for x, bar in bars.items():
            found[x] = bar
            if self.is_column(x) or self.is_alike(x) or len(self.leaves) == 1:
                continue
            room = Var(self.rt.fresh(f"{x.name}_room"))
            self.rt.types[room.name] = self.rt.types[x.name]
            out.append(
                Let(room.name, "call", (Ref(room_along, "room_along"), bar, lengths[-1]), (), self.line)
            )
            end.append(Do(Let("_", "call", (Ref(folded, "folded"), bar, room), (), self.line), self.line))
            found[x] = room
        return found, end


__all__ = ["Tree"]
