"""Code of fused row operations: the loops over elements that `row_plan` has planned, forward and back."""

from __future__ import annotations

import numpy as np
from numba.core import types

from plaingrad.native.loops.element_code import at_once, plus
from plaingrad.native.loops.elements import row
from plaingrad.native.loops.row_questions import extreme_of
from plaingrad.native.loops.row_values import RowValues
from plaingrad.native.lowering.fused_reductions import is_mean
from plaingrad.native.program.ir import Const, Do, For, Let, Operand, Parts, Ref, Stmt, Store, Var, free_reads
from plaingrad.native.runtime import row_helpers as helpers


class Group(RowValues):
    """A run of statements on rows."""

    def reverse(self) -> Parts:
        """The parts that stand for the statements."""
        rt = self.rt
        before: list[Stmt] = []
        for loop in self.loops:
            self.measured(loop, before)
            self.rows.update({self.vector_of[read.value.name]: read for read in loop.reads})  # type: ignore[union-attr]
        forward: list[Stmt] = []
        self.buffers(before, forward)
        self.bars: dict[str, Var] = {}
        numbers = {id(s): rt.statement(s) for s in self.run if self.is_alone(s)}
        forward += self.checks()
        for p in range(max(self.home.values()) + 1):
            for s in self.run:
                if self.home[id(s)] == p and id(s) in numbers:
                    forward += numbers[id(s)].forward
                elif self.home[id(s)] == p and self.is_extreme(s):
                    forward.append(self.extreme(s, forward))  # type: ignore[arg-type]
            forward += self.forward_loops(p)
        backward: list[Stmt] = []
        self.inverses: dict[Var, tuple[Var, Var]] = {}  # y -> (scale, inverse): x / y is x * scale * inverse
        for y in dict.fromkeys(self.divided.values()):
            scale = rt.emit(backward, "call", (Ref(helpers.scale, "scale"), y), (), self.line)
            rt.types[scale.name] = types.float64
            of = (Ref(np.true_divide, "true_divide"), Const(1.0), self.product(y, scale, backward))
            inverse = rt.emit(backward, "call", of, (), self.line)
            rt.types[inverse.name] = types.float64
            self.inverses[y] = scale, inverse
        received: set[str] = set()
        for q in range(max(self.back.values()) + 1):
            for s in reversed(self.run):
                if self.back[id(s)] == q and id(s) in numbers:
                    backward += numbers[id(s)].backward
                elif self.back[id(s)] == q and self.is_extreme(s) and self.is_varying(s):
                    self.extreme_back(s, received, before, backward)  # type: ignore[arg-type]
            backward += self.backward_loops(q, received, before)
        rt.preheaders.setdefault(id(self.loop), []).extend(before)
        return Parts(forward, backward)

    def is_alone(self, s: Stmt) -> bool:
        """Whether a statement stays as it is."""
        return not self.vectors_of(s) and id(s) not in self.dropped

    def forward_loops(self, p: int) -> list[Stmt]:
        """The loops of the way forward with a number, one for each family."""
        out: list[Stmt] = []
        here = [s for s in self.run if self.is_in_loop(s) and self.home[id(s)] == p]
        for loop, work in self.members(here):
            length = loop.axes[0].stop
            made = [s for s in work if isinstance(s, Let) and s.target in self.buffered]
            sums = [s for s in work if self.is_sum(s)]
            stores = [s for s in work if isinstance(s, Store)]
            if not (made or sums or stores):
                continue
            k = self.variable("k", types.int64)
            mine = {self.each[x].name for s in [*sums, *stores] for x in self.vectors_of(s)}  # type: ignore[union-attr]
            values = {s.target: self.each[s.args[1] if at_once(s) else Var(s.target)] for s in made}
            inner = self.values(mine | {x.name for x in values.values()}, p, k)  # type: ignore[union-attr]
            for x, value in values.items():
                self.store(inner, self.rows[x].array, self.at(x, k, inner), value)
            for s in stores:
                write = self.stored[id(s)]
                self.store(inner, write.array, self.placed(write, [k], inner), write.value)  # type: ignore[arg-type]
            totals: dict[str, Var] = {}
            for s in sums:
                total = totals[s.target] = self.variable("total", types.float64)
                out.append(Let(total.name, "copy", (Const(0.0),), None, self.line))
                more = self.variable("more", types.float64)
                inner.append(
                    Let(more.name, "binary", (total, self.each[self.vectors_of(s)[0]]), "+", self.line)
                )
                inner.append(Let(total.name, "copy", (more,), None, self.line))
            out.append(For(k.name, Const(0), length, Const(1), inner, self.line))
            for s in sums:
                total = totals[s.target]
                if is_mean(s):  # type: ignore[arg-type]
                    args = (Ref(np.true_divide, "true_divide"), total, length)
                    out.append(Let(s.target, "call", args, (), s.line))
                else:
                    out.append(Let(s.target, "copy", (total,), None, s.line))
            out += [x for s in made for x in self.function_of_all(s, length)]
        return out

    def function_of_all(self, s: Let, length: Operand) -> list[Stmt]:
        """A function of all elements of a row of a buffer, in which its arguments are; nothing for other functions."""
        f = at_once(s)
        if f is None:
            return []
        buffer = self.rows[s.target]
        whole = self.variable("row", types.Array(types.float64, 1, "C"))
        return [
            Let(whole.name, "item", (buffer.array, buffer.in_front[0]), None, s.line),
            Do(Let("_", "call", (f, whole, length), (), s.line), s.line),
        ]

    def extreme(self, s: Let, out: list[Stmt]) -> Let:
        """The maximum or minimum of a row."""
        [x] = self.vectors_of(s)
        f = helpers.max_along if extreme_of(s) == "max" else helpers.min_along
        here = self.rows[x.name]
        place = self.place(here, out)
        return Let(s.target, "call", (Ref(f, f.__name__), here.array, place), (), s.line)

    # -- the way back --------------------------------------------------------------------------------------------------

    def bar_of(self, x: str, before: list[Stmt]) -> Var:
        """The buffer for the cotangent of a vector made here, one row."""
        if x not in self.bars:
            self.bars[x] = self.room(f"{x}_b", (Const(1), self.length(x)), before)
        return self.bars[x]

    def extreme_back(self, s: Let, received: set[str], before: list[Stmt], out: list[Stmt]) -> None:
        """What passes the cotangent of a maximum or minimum on to the elements that equal it."""
        [x] = self.vectors_of(s)
        z_bar = Var(f"{s.target}_b")
        here = self.rows[x.name]
        place = self.place(here, out)
        bar, bar_place = Var(f"{here.array.name}_b"), place
        if self.rt.is_active(x):
            if x.name in self.nodes:
                bar = self.bar_of(x.name, before)
                bar_place = self.place(row(bar, (Const(0),)), out)
                if x.name not in received:
                    out.append(Do(Let("_", "method", (bar, Const(0.0)), ("fill", ()), s.line), s.line))
                    received.add(x.name)
            args = (bar, bar_place, here.array, place, Var(s.target), z_bar)
            f = helpers.add_at_extremes
            out.append(Do(Let("_", "call", (Ref(f, f.__name__), *args), (), s.line), s.line))
        out.append(Let(z_bar.name, "copy", (Const(0.0),), None, s.line))

    def backward_loops(self, q: int, received: set[str], before: list[Stmt]) -> list[Stmt]:
        """The loops of the way back with a number, one for each family."""
        out: list[Stmt] = []
        for loop, work in self.members(self.backs.get(q, [])):
            self.backward_loop(q, loop.axes[0].stop, work[::-1], received, before, out)
        return out

    def backward_loop(
        self,
        q: int,
        length: Operand,
        work: list[Stmt],
        received: set[str],
        before: list[Stmt],
        out: list[Stmt],
    ) -> None:
        """One of them."""
        rt, line = self.rt, self.line
        k = self.variable("k", types.int64)
        own = set(self.vector_of) | set(self.definitions)
        slopes = [
            x
            for s in work
            if isinstance(s, Let) and s.target in self.nodes and s.target not in self.divided
            for x in self.parts[s.target].backward
        ]
        wanted = self.read_back(work)
        inner = self.values(wanted, None, k)
        touched = [
            x for s in work for x in (*self.vectors_of(s), *([Var(s.target)] if isinstance(s, Let) else []))
        ]
        vectors = [x for x in dict.fromkeys(touched) if x in self.each and rt.is_active(x)]
        ending = [x for x in vectors if x.name in self.nodes and self.back[id(self.nodes[x.name])] == q]
        for x in vectors:
            bar = f"{self.each[x].name}_b"  # type: ignore[union-attr]
            if x in ending and x.name in received:
                index = self.index(inner, (Const(0), k))
                inner.append(Let(bar, "item", (self.bars[x.name], index), None, line))
            else:
                inner.append(Let(bar, "copy", (Const(0.0),), None, line))
        for name in self.numbers_between(slopes):
            inner.append(Let(f"{name}_b", "copy", (Const(0.0),), None, line))
        ended: list[Stmt] = []
        for s in work:
            if isinstance(s, Store):
                self.taken_back(s, k, inner)
            elif self.is_sum(s):
                assert isinstance(s, Let)
                share = Var(f"{s.target}_b")
                if is_mean(s):
                    args = (Ref(helpers.share, "share"), share, length)
                    share = rt.emit(out, "call", args, (), line)
                    rt.types[share.name] = types.float64
                rt.add(inner, self.each[self.vectors_of(s)[0]], share, line)
                ended.append(Let(f"{s.target}_b", "copy", (Const(0.0),), None, line))
            elif isinstance(s, Let) and s.target in self.divided:
                self.quotient_back(s, inner, out, ended)
            else:
                assert isinstance(s, Let)
                inner += [self.added(x, own) for x in self.parts[s.target].backward]
        self.arrive([x for x in vectors if x not in ending], k, received, before, inner)
        out.append(For(k.name, Const(0), length, Const(1), inner, line))
        out += ended

    def arrive(
        self, vectors: list[Var], k: Var, received: set[str], before: list[Stmt], inner: list[Stmt]
    ) -> None:
        """Add what an iteration has found for its vectors where it belongs."""
        for x in vectors:
            term = Var(f"{self.each[x].name}_b")  # type: ignore[union-attr]
            if x.name in self.leaves:
                array = self.rows[x.name].array
                self.add_at(inner, Var(f"{array.name}_b"), self.at(x.name, k, inner), term)
                continue
            write = self.add_at if x.name in received else self.store
            write(inner, self.bar_of(x.name, before), (Const(0), k), term)
            received.add(x.name)

    def quotient_back(self, s: Let, inner: list[Stmt], before: list[Stmt], behind: list[Stmt]) -> None:
        """The reverse of z = x / y for one element, y a number: x_bar += z_bar / y, y_bar -= sum(z_bar z) / y."""
        rt, line = self.rt, self.line
        x, y = s.args[-2], self.divided[s.target]
        z = self.each[Var(s.target)]
        z_bar = Var(f"{z.name}_b")  # type: ignore[union-attr]
        if rt.is_active(x):
            rt.add(inner, self.each[x], self.over(z_bar, y, inner), line)
        if rt.is_active(y):
            total = self.variable("total", types.float64)
            before.append(Let(total.name, "copy", (Const(0.0),), None, line))
            inner.append(plus(total.name, total, self.product(z_bar, z, inner), line))
            minus = rt.emit(behind, "unary", (self.over(total, y, behind),), "-", line)
            rt.types[minus.name] = types.float64
            rt.add(behind, y, minus, line)

    def over(self, x: Operand, y: Var, out: list[Stmt]) -> Var:
        """x / y, of numbers, by the inverse of y."""
        scale, inverse = self.inverses[y]
        return self.product(self.product(x, scale, out), inverse, out)

    def product(self, a: Operand, b: Operand, out: list[Stmt]) -> Var:
        """a * b, of numbers."""
        found = self.rt.emit(out, "binary", (a, b), "*", self.line)
        self.rt.types[found.name] = types.float64
        return found

    def numbers_between(self, bodies: list[Stmt]) -> list[str]:
        """The active numbers of one element that are no elements of vectors."""
        return sorted(
            name
            for name in self.definitions
            if name not in self.vector_of
            and name in self.rt.active
            and f"{name}_b" in free_reads(bodies, set())
        )

    def taken_back(self, s: Store, k: Operand, out: list[Stmt]) -> None:
        """The cotangent of an element that was stored is that of the value; that of what was overwritten is 0."""
        bar = Var(f"{s.array.name}_b")  # type: ignore[union-attr]
        index = self.index(out, self.placed(self.stored[id(s)], [k], out))
        if self.rt.is_active(s.value):
            now = self.rt.emit(out, "item", (bar, index), None, self.line)
            self.rt.types[now.name] = types.float64
            self.rt.add(out, self.each[s.value], now, self.line)
        out.append(Store(bar, index, Const(0.0), self.line))


__all__ = ["Group"]
