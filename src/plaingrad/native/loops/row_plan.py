"""Which loops over elements do what a run of statements on rows does: the plan that `row_loops` carries out.

The loops are numbered twice. On the way forward a statement stands in the first loop in which its operands are known:
those of a reduction are known behind its loop. On the way back it stands in the first loop in which the cotangent of
its result is complete: that of a number is complete behind the loops of all vectors that it was broadcast to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plaingrad.native.loops.element_loops import ElementLoops, at_once, is_expensive, unsafe
from plaingrad.native.lowering.fused_reductions import of_numbers, summed
from plaingrad.native.modes.transform import has_kinks
from plaingrad.native.program.ir import (
    Const,
    For,
    Let,
    Operand,
    Parts,
    Ref,
    Stmt,
    Store,
    Var,
    assigns,
    free_reads,
    operands,
)
from plaingrad.native.runtime import row_helpers as helpers

ONE, UNKNOWN = Const(1), Const(0)
EXTREMES = {np.max: "max", np.amax: "max", np.min: "min", np.amin: "min"}


def reduced(s: Let) -> Operand | None:
    """The array of which `s` is the sum, mean, maximum or minimum over all elements."""
    found = summed(s)
    if found is not None or s.detail:
        return found if found is not None or extreme_of(s) is None else s.args[0]
    return s.args[1] if extreme_of(s) else None


def extreme_of(s: Let) -> str | None:
    """ "max" or "min" if `s` is that of all elements of an array."""
    if s.op == "method":
        return s.detail[0] if s.detail in (("max", ()), ("min", ())) and len(s.args) == 1 else None
    if s.op != "call" or s.detail or len(s.args) != 2:
        return None
    try:
        return EXTREMES.get(getattr(s.args[0], "value", None))
    except TypeError:
        return None


@dataclass(slots=True)
class Row:
    """Where the elements of a vector are.

    Attributes:
        array: what is indexed.
        places: the indices in front of that of the element.
        step: how far to go for every step of the loop: 0 where a vector of length 1 is broadcast.
    """

    array: Var
    places: tuple[Operand, ...] = ()
    step: Operand = ONE


@dataclass(slots=True)
class Family:
    """Vectors that are combined element by element, so that one loop runs over all of them.

    Attributes:
        leaves: those that are not made by the group.
        length: the number of elements, a variable that has its value in front of the loop around.
        lengths: that of every leaf; empty where they are surely the same.
    """

    leaves: list[str] = field(default_factory=list)
    length: Operand = UNKNOWN
    lengths: dict[str, Operand] = field(default_factory=dict)


class RowPlan(ElementLoops):
    """A run of statements on rows.

    Attributes:
        loop: the loop around.
        run: the statements.
        nodes: those that make vectors, by the vector's name.
        rows: where the elements of a vector are, if they are in memory.
        home: statement -> the loop of the way forward that it belongs to, or in front of which it stands.
        back: the same for the way back.
        divided: the vectors that are a vector over a number, and that number. The way back multiplies by its
            inverse, which may differ in the last bit; not where jumps of slopes could depend on it.
    """

    def __init__(self, found: Any, loop: For, run: list[Stmt]) -> None:
        super().__init__(found.rt, next(s.line for s in run if found.is_vector_work(s)))  # type: ignore[union-attr]
        self.found, self.loop, self.run = found, loop, run
        self.nodes: dict[str, Let] = {
            s.target: s for s in run if isinstance(s, Let) and found.is_elementwise(s, 1)
        }
        views = {s.target: s for s in run if isinstance(s, Let) and found.is_view(s)}
        self.rows: dict[str, Row] = {}
        for s in run:
            for x in self.vectors_of(s):
                if x.name in views:
                    view = views[x.name]
                    self.rows[x.name] = Row(view.args[0], found.places(view.args[1]) or ())  # type: ignore[arg-type]
                elif x.name not in self.nodes:
                    self.rows[x.name] = Row(x)
        self.leaves = dict(self.rows)
        self.dropped = {id(s) for x, s in views.items() if x in self.rows and found.only_for(s, self.work())}
        self.home: dict[int, int] = {}
        self.back: dict[int, int] = {}

    def vectors_of(self, s: Stmt) -> list[Var]:
        """The vectors whose elements a statement of the run reads."""
        if isinstance(s, Store):
            return [s.value] if self.found.is_row_store(s) else []  # type: ignore[list-item]
        if isinstance(s, Let) and self.found.is_vector_work(s):
            return [a for a in s.args if self.found.is_vector(a)]  # type: ignore[misc]
        return []

    def work(self) -> list[Stmt]:
        """The statements that read vectors element by element."""
        return [s for s in self.run if self.vectors_of(s)]

    def is_sum(self, s: Stmt) -> bool:
        """Whether a statement is the sum or mean of a vector."""
        return isinstance(s, Let) and bool(self.vectors_of(s)) and summed(s) is not None

    def is_extreme(self, s: Stmt) -> bool:
        """Whether a statement is the maximum or minimum of a vector."""
        return (
            isinstance(s, Let) and bool(self.vectors_of(s)) and reduced(s) is not None and summed(s) is None
        )

    def is_in_loop(self, s: Stmt) -> bool:
        """Whether a statement is done for every element."""
        return bool(self.vectors_of(s)) and not self.is_extreme(s)

    # -- whether it can be done ----------------------------------------------------------------------------------------

    def is_sound(self) -> bool:
        """Whether loops over elements do what the statements do."""
        rt, work = self.rt, self.work()
        if not any(isinstance(s, Let) and rt.is_active(Var(s.target)) for s in work):
            return False
        for s in self.nodes.values():
            if not self.found.only_for(s, work) or s.target in rt.results or rt.memory.is_written(s.target):
                return False
        for row in self.leaves.values():
            if not self.is_final(row.array.name) or assigns(self.loop, row.array.name):
                return False
        changed = {s.target for s in self.run if isinstance(s, Let) and rt.assigned.get(s.target, 0) != 1}
        if any(a.name in changed for s in work for a in operands(s) if isinstance(a, Var)):
            return False
        if any(isinstance(s, Let) and s.target in changed for s in work):
            return False
        stores = [s for s in self.run if isinstance(s, Store)]
        stored = [rt.memory.of(s.array.name) for s in stores]  # type: ignore[union-attr]
        if any(self.vectors_of(s) and stored.count(x) > 1 for s, x in zip(stores, stored, strict=True)):
            return False
        read = {
            rt.memory.of(a.name)
            for s in self.run
            for a in operands(s)
            if isinstance(a, Var)
            and not (isinstance(s, Store) and a == s.array)
            and not self.is_final(a.name)
        }
        return read.isdisjoint(stored)

    def is_final(self, x: str) -> bool:
        """Whether what is read from an array is never overwritten."""
        return not self.rt.memory.is_written(x) or self.rt.values.is_settled(x)

    # -- in which loop -------------------------------------------------------------------------------------------------

    def plan(self) -> None:
        """Find the loops of all statements, the functions of one element, and what needs a buffer."""
        self.number_forward()
        self.number_backward()
        self.each: dict[Operand, Operand] = {
            Var(x): self.element(Var(x)) for x in (*self.leaves, *self.nodes)
        }
        self.parts: dict[str, Parts] = {}
        self.definitions: dict[str, Let] = {}
        for name, s in self.nodes.items():
            self.parts[name] = self.rt.body([of_numbers(s, self.each[Var(name)].name, self.each)])  # type: ignore[union-attr]
            self.definitions.update({x.target: x for x in self.parts[name].forward if isinstance(x, Let)})
        self.vector_of = {e.name: x.name for x, e in self.each.items()}  # type: ignore[union-attr]
        self.backs: dict[int, list[Stmt]] = {
            q: [s for s in self.run if self.is_in_loop(s) and self.back[id(s)] == q and self.is_varying(s)]
            for q in set(self.back.values())
        }
        nodes = list(self.nodes.values())
        self.divided = (
            {}
            if any(map(has_kinks, nodes))
            else {x: y for x, s in self.nodes.items() if (y := self.divisor(s))}
        )
        self.buffered = unsafe(self.rt, nodes) & self.nodes.keys()
        self.buffered |= {s.target for s in nodes if at_once(s)}
        self.buffered |= {
            x.name for s in self.run if self.is_extreme(s) for x in self.vectors_of(s) if x.name in self.nodes
        }
        self.kept: set[str] = set()
        while not self.all_buffered():
            pass

    def divisor(self, s: Let) -> Var | None:
        """The number, a variable, that a vector is divided by, if `s` does that."""
        args = s.args
        if s.op == "call" and getattr(s.args[0], "value", None) is np.divide:
            args = s.args[1:]
        elif (s.op, s.detail) != ("binary", "/"):
            return None
        x, y = args
        if not self.found.is_vector(x) or not isinstance(y, Var) or self.found.is_array(y):
            return None
        return y

    def is_varying(self, s: Stmt) -> bool:
        """Whether the way back does anything for a statement."""
        if isinstance(s, Store):
            return self.rt.is_active(s.array)
        return isinstance(s, Let) and self.rt.is_active(Var(s.target))

    def number_forward(self) -> None:
        """Number the loops of the way forward."""
        ready: dict[str, int] = {}  # number -> in front of which loop it is there; vector -> in which loop
        last = 0  # of variables with several values the order is kept
        for s in self.run:
            names = [a.name for a in operands(s) if isinstance(a, Var)]
            at = max((ready.get(name, 0) for name in names), default=0)
            if self.is_ordered(s):
                at = last = max(at, last)
            self.home[id(s)] = at
            if not isinstance(s, Let):
                continue
            behind = self.is_sum(s)
            if s.target in self.nodes:
                behind = at_once(s) is not None
            elif self.is_extreme(s):
                [x] = self.vectors_of(s)
                made = self.nodes.get(x.name)
                if made is not None:  # read from its buffer
                    self.home[id(s)] = at = max(at, self.home[id(made)] + 1)
            ready[s.target] = at + behind

    def number_backward(self) -> None:
        """Number the loops of the way back."""
        due: dict[
            str, int
        ] = {}  # number -> in front of which loop its cotangent is complete; vector -> in which loop
        last = 0
        for s in reversed(self.run):
            at = due.get(s.target, 0) if isinstance(s, Let) else 0
            if self.is_ordered(s):
                at = last = max(at, last)
            self.back[id(s)] = at
            for a in operands(s):
                if isinstance(a, Var):
                    is_vector = a.name in self.nodes or a.name in self.leaves
                    later = 1 if self.is_in_loop(s) and not is_vector else 0
                    due[a.name] = max(due.get(a.name, 0), at + later)

    def is_ordered(self, s: Stmt) -> bool:
        """Whether a statement stores a number, or has to do with variables that have several values."""
        if self.vectors_of(s) or isinstance(s, Store):
            return not self.vectors_of(s)
        names = [a.name for a in operands(s) if isinstance(a, Var)]
        names += [s.target] if isinstance(s, Let) else []
        return any(self.rt.assigned.get(name, 0) > 1 for name in names)

    # -- what is in memory ---------------------------------------------------------------------------------------------

    def all_buffered(self) -> bool:
        """Whether nothing expensive is computed twice; what is found is marked."""
        found: set[str] = set()
        self.kept = set()
        for q in self.backs:
            loads, made = self.needed(self.wanted_back(q), None)
            self.kept |= loads & self.nodes.keys()
            found |= {self.vector_of[name] for name in made if name in self.vector_of}
        for p in set(self.home.values()):
            _, made = self.needed(self.wanted_forward(p), p)
            found |= {self.vector_of[name] for name in made if name in self.vector_of} - self.at_home(p)
        found = {x for x in found if is_expensive(self.nodes[x])} - self.buffered
        self.buffered |= found
        self.kept |= {
            x.name
            for s in self.run
            if self.is_extreme(s) and self.is_varying(s)
            for x in self.vectors_of(s)
            if x.name in self.nodes
        }
        return not found

    def at_home(self, p: int) -> set[str]:
        """The vectors that are made in a loop of the way forward."""
        return {x for x, s in self.nodes.items() if self.home[id(s)] == p}

    def wanted_forward(self, p: int) -> set[str]:
        """The elements that a loop of the way forward is about."""
        found: set[str] = set()
        for x in self.at_home(p) & self.buffered:
            s = self.nodes[x]
            each = self.each[s.args[1]] if at_once(s) else self.each[Var(x)]
            found.add(each.name)  # type: ignore[union-attr]
        for s in self.run:
            if self.home[id(s)] == p and (self.is_sum(s) or (isinstance(s, Store) and self.vectors_of(s))):
                found |= {self.each[x].name for x in self.vectors_of(s)}  # type: ignore[union-attr]
        return found

    def wanted_back(self, q: int) -> set[str]:
        """The elements that the slopes in a loop of the way back read."""
        return self.read_back(self.backs[q])

    def read_back(self, work: list[Stmt]) -> set[str]:
        """The numbers of one element that the reverse of statements reads."""
        nodes = [s for s in work if isinstance(s, Let) and s.target in self.nodes]
        body = [x for s in nodes if s.target not in self.divided for x in self.parts[s.target].backward]
        found = {x for x in free_reads(body, set()) if x in self.vector_of or x in self.definitions}
        quotients = [s.target for s in nodes if self.rt.is_active(self.divided.get(s.target, Const(1.0)))]
        return found | {self.each[Var(x)].name for x in quotients}  # type: ignore[union-attr]

    def needed(self, wanted: set[str], home: int | None) -> tuple[set[str], set[str]]:
        """(the vectors to load elements of, the numbers to compute) for these elements in a loop.

        Args:
            wanted: the numbers of one element.
            home: the number of a loop of the way forward, in which what it makes is not loaded.
        """
        loads: set[str] = set()
        made: set[str] = set()
        todo = list(wanted)
        while todo:
            name = todo.pop()
            vector = self.vector_of.get(name)
            if vector in self.leaves or (vector in self.buffered and not self.is_made_in(vector, home)):  # type: ignore[arg-type]
                loads.add(vector)  # type: ignore[arg-type]
            elif name not in made and name in self.definitions:
                made.add(name)
                todo += [a.name for a in self.definitions[name].args if isinstance(a, Var)]
        return loads, made

    def is_made_in(self, vector: str, home: int | None) -> bool:
        """Whether an element of a vector is computed, not loaded, in a loop of the way forward."""
        s = self.nodes[vector]
        return self.home[id(s)] == home and at_once(s) is None

    def families(self) -> dict[str, Family]:
        """The family of every vector."""
        found = {x: Family([x]) for x in self.leaves}
        for s in self.run:
            mine = self.vectors_of(s) + (
                [Var(s.target)] if isinstance(s, Let) and s.target in self.nodes else []
            )
            if not mine:
                continue
            first = found[mine[0].name]
            for x in mine[1:]:
                other = found.get(x.name, first)
                if other is not first:
                    first.leaves += other.leaves
                found[x.name] = first
                for name, family in found.items():
                    if family is other:
                        found[name] = first
        return found

    def measured(self, family: Family, out: list[Stmt]) -> None:
        """Find the length of a family, and the steps of its leaves."""
        rows = [self.leaves[x] for x in family.leaves]
        if len({self.root(row.array) for row in rows}) == 1:
            family.length = self.shape(rows[0].array, out)[-1]
            return
        for x, row in zip(family.leaves, rows, strict=True):
            n = self.shape(row.array, out)[-1]
            family.lengths[x] = n
            row.step = self.unsigned(self.step(n, out), out)
            both = (Ref(helpers.longer, "longer"), family.length, n)
            family.length = n if family.length == UNKNOWN else self.whole_number(out, "call", both, ())

    def root(self, x: Var) -> Any:
        """Something that arrays of one shape share."""
        return self.rt.values.root.get(x.name, x.name), self.rt.types[x.name].ndim
