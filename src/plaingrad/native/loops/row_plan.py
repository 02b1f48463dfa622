"""Scheduling of fused row operations: which loop over elements does what, and what is kept in buffers.

The loops are numbered twice. On the way forward a statement stands in the first loop in which its operands are known:
those of a reduction are known behind its loop. On the way back it stands in the first loop in which the cotangent of
its result is complete: that of a number is complete behind the loops of all vectors that it was broadcast to.
"""

from __future__ import annotations

from plaingrad.native.loops.element_code import at_once, is_expensive, unsafe
from plaingrad.native.loops.row_questions import RowQuestions
from plaingrad.native.modes.transform import has_kinks
from plaingrad.native.program.ir import (
    Const,
    Let,
    Stmt,
    Store,
    Var,
    assigns,
    free_reads,
    operands,
)


class RowPlan(RowQuestions):
    """A run of statements on rows.

    Attributes:
        loop: the loop around.
        run: the statements.
        nodes: those that make vectors, by the vector's name.
        family: vector -> the loop over its elements, which is that of all vectors that it is combined with.
        rows: where the elements of a vector are, if they are in memory.
        home: statement -> the loop of the way forward that it belongs to, or in front of which it stands.
        back: the same for the way back.
        divided: the vectors that are a vector over a number, and that number. The way back multiplies by its
            inverse, which may differ in the last bit; not where jumps of slopes could depend on it.
    """

    # -- whether it can be done ----------------------------------------------------------------------------------------

    def is_sound(self) -> bool:
        """Whether loops over elements do what the statements do."""
        rt, work = self.rt, self.work()
        if not any(isinstance(s, Let) and rt.is_active(Var(s.target)) for s in work):
            return False
        for s in self.nodes.values():
            if not self.found.only_for(s, work) or s.target in rt.results or rt.memory.is_written(s.target):
                return False
        for x in self.leaves:
            array = self.rows[x].array.name
            if not self.is_final(array) or assigns(self.loop, array):
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

    # -- in which loop -------------------------------------------------------------------------------------------------

    def plan(self) -> None:
        """Find the loops of all statements, the functions of one element, and what needs a buffer."""
        self.number_forward()
        self.number_backward()
        self.family = {x: loop for names in self.families() for loop in [self.loop_of(names)] for x in names}
        self.loops = list({id(loop): loop for loop in self.family.values()}.values())
        self.each = {x: e for loop in self.loops for x, e in loop.elements.items()}
        self.vector_of = {e.name: x.name for x, e in self.each.items()}  # type: ignore[union-attr]
        numbers = {self.vector_of[s.target]: s for loop in self.loops for s in loop.body}  # type: ignore[union-attr]
        self.parts = {x: self.rt.body([numbers[x]]) for x in self.nodes}
        self.definitions = {
            x.target: x for parts in self.parts.values() for x in parts.forward if isinstance(x, Let)
        }
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
