"""Classification of statements on rows: which vectors they make, of which rows, and the loops that they mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from plaingrad.native.loops.element_code import ElementCode, at_once
from plaingrad.native.loops.elements import UNKNOWN, ZERO, Access, Axis, ElementLoop, lowered, row
from plaingrad.native.lowering.fused_reductions import summed
from plaingrad.native.program.ir import For, Let, Operand, Ref, Stmt, Store, Var
from plaingrad.native.runtime import row_helpers as helpers


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


EXTREMES = {np.max: "max", np.amax: "max", np.min: "min", np.amin: "min"}


class RowQuestions(ElementCode):
    """Questions about a run of statements on rows."""

    def __init__(self, found: Any, loop: For, run: list[Stmt]) -> None:
        super().__init__(found.rt, next(s.line for s in run if found.is_vector_work(s)))  # type: ignore[union-attr]
        self.found, self.loop, self.run = found, loop, run
        self.nodes: dict[str, Let] = {
            s.target: s for s in run if isinstance(s, Let) and found.is_elementwise(s, 1)
        }
        views = {s.target: s for s in run if isinstance(s, Let) and found.is_view(s)}
        self.rows: dict[str, Access] = {}
        for s in run:
            for x in self.vectors_of(s):
                if x.name in views:
                    view = views[x.name]
                    self.rows[x.name] = row(view.args[0], found.places(view.args[1]) or ())  # type: ignore[arg-type]
                elif x.name not in self.nodes:
                    self.rows[x.name] = row(x)
        self.leaves = list(self.rows)
        self.stored: dict[int, Access] = {}
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

    def is_final(self, x: str) -> bool:
        """Whether what is read from an array is never overwritten."""
        return not self.rt.memory.is_written(x) or self.rt.values.is_settled(x)

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

    def at_home(self, p: int) -> set[str]:
        """The vectors that are made in a loop of the way forward."""
        return {x for x, s in self.nodes.items() if self.home[id(s)] == p}

    def is_made_in(self, vector: str, home: int | None) -> bool:
        """Whether an element of a vector is computed, not loaded, in a loop of the way forward."""
        s = self.nodes[vector]
        return self.home[id(s)] == home and at_once(s) is None

    def families(self) -> list[list[str]]:
        """Vectors that are combined element by element, so that one loop runs over all of them."""
        found = {x: [x] for x in self.leaves}
        for s in self.run:
            mine = [x.name for x in self.vectors_of(s)]
            mine += [s.target] if isinstance(s, Let) and s.target in self.nodes else []
            for x in mine[1:]:
                first, other = found[mine[0]], found.get(x, [x])
                if other is not first:
                    first += other
                    found.update(dict.fromkeys(other, first))
        return list({id(names): names for names in found.values()}.values())

    def loop_of(self, family: list[str]) -> ElementLoop:
        """The loop over the elements of a family."""
        reads = {Var(x): self.rows[x] for x in family if x in self.leaves}
        nodes = [s for x, s in self.nodes.items() if x in family]
        found = lowered(self.element, [Axis(ZERO, UNKNOWN)], reads, nodes, self.line)
        for s in self.run:
            if isinstance(s, Store) and self.found.is_row_store(s) and s.value.name in family:  # type: ignore[union-attr]
                write = row(s.array, self.found.places(s.index) or ())  # type: ignore[arg-type]
                self.stored[id(s)] = write = replace(write, value=found.elements[s.value])
                found.writes.append(write)
        return found

    def measured(self, loop: ElementLoop, out: list[Stmt]) -> None:
        """Find the length of a loop, and the steps of what it reads."""
        if len({self.root(read.array) for read in loop.reads}) == 1:
            loop.axes = [Axis(ZERO, self.shape(loop.reads[0].array, out)[-1])]
            return
        length: Operand = UNKNOWN
        for k, read in enumerate(loop.reads):
            n = self.shape(read.array, out)[-1]
            assert read.places
            last = replace(read.places[-1], step=self.unsigned(self.step(n, out), out), length=n)
            loop.reads[k] = replace(read, places=(*read.places[:-1], last))
            both = (Ref(helpers.longer, "longer"), length, n)
            length = n if length == UNKNOWN else self.whole_number(out, "call", both, ())
        loop.axes = [Axis(ZERO, length)]

    def root(self, x: Var) -> Any:
        """Something that arrays of one shape share."""
        return self.rt.values.root.get(x.name, x.name), self.rt.types[x.name].ndim
