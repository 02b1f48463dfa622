"""A loop of sums for several iterations at once: every number of its body becomes a `Pack` of them.

The body, way forward and way back, is translated statement by statement. A number that differs between iterations is a
pack; tapes, cotangents and arrays of an iteration become arrays of packs; rows that the loop's counter selects are
gathered. A branch that is taken in some of the iterations becomes both arms and a choice. The sum is added up one
iteration after the other, so it keeps its bits. The last block, if it is not full, repeats its last iteration with
weight zero.

What is not of this form is left alone: calls of other functions, `while`, writing, divisions in such branches.
"""

from __future__ import annotations

import math
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native.loops.scratch import meaning
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    Let,
    Operand,
    Parts,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    operands,
    statements,
)
from plaingrad.native.program.value_types import is_real
from plaingrad.native.runtime.helpers import where_taken
from plaingrad.native.runtime.vector import code, simd, simd_functions, simd_memory
from plaingrad.native.runtime.vector.map import EACH

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

FUNCTIONS = {
    getattr(module, name): getattr(simd_functions, name)
    for module in (math, np)
    for name in ("exp", "log", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "tanh")
} | {
    abs: simd.absolute,
    math.fabs: simd.absolute,
    np.abs: simd.absolute,
    max: simd.maximum,
    min: simd.minimum,
}
NAMES = frozenset(
    ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "over", "_inverse", "_sign")
)  # what slopes may use
GROWING = frozenset(("grown", "more"))
LOOSE = {"+": simd.plus, "-": simd.minus, "*": simd.times}


class Declined(Exception):
    """The body is not of the form that is translated."""


def in_packs(
    rt: Reverse, s: For, inner: Parts, total: str, family: set[str], scratch: set[str], tapes: set[str]
) -> tuple[list[Stmt], dict[str, str]] | None:
    """(the loop over blocks with what comes before and after, active variable -> its factor), or None.

    Args:
        rt: the transform.
        s: the loop.
        inner: its body, forward and backward.
        total: its sum.
        family: the variables that are the sum plus terms.
        scratch: the arrays that every iteration fills anew.
        tapes: the tapes of loops in the body.
    """
    try:
        return _Blocks(rt, s, inner, total, family, scratch, tapes).made()
    except Declined:
        return None


class _Blocks:
    def __init__(
        self,
        rt: Reverse,
        s: For,
        inner: Parts,
        total: str,
        family: set[str],
        scratch: set[str],
        tapes: set[str],
    ):
        self.rt, self.s, self.inner, self.total, self.family = rt, s, inner, total, family
        self.line = s.line
        if not (isinstance(s.start, Const) and s.start.value >= 0 and s.step == Const(1)):
            raise Declined
        body = [*inner.forward, *inner.backward]
        self.every = list(statements(body))
        self.assigned = {x.target for x in statements(inner.forward) if isinstance(x, (Let, For))}
        names = {a.name for x in self.every for a in operands(x) if isinstance(a, Var)}
        names |= {x.target for x in self.every if isinstance(x, Let)}
        bases = {name[:-2] for name in names if name.endswith("_b")}
        self.bars = {x for x in bases if x in rt.active and f"{x}_b" not in rt.types}
        self.outer = sorted(self.bars - self.assigned - scratch - {total})
        self.rows, self.low, self.high, self.width = map(rt.fresh, ("rows", "low", "high", "width"))
        self.depth = 0  # of loops, where statements are translated
        self.tiles: list[Stmt] = []
        self.before: list[Stmt] = []
        self.after: list[Stmt] = []
        self.names: dict[str, str] = {}  # what an array, or the cotangent of a number from outside, is called
        self.arrays: set[str] = set()  # of packs, by their old names
        self.tuples = {x.target: x.args for x in self.every if isinstance(x, Let) and x.op == "tuple"}
        self.whole_rows = self.read_by_rows()
        self.varying = self.spread(scratch, tapes)
        self.tapes = tapes
        self.scratch = scratch
        self.buffers = {
            x.call.args[1].name: True  # type: ignore[union-attr]
            for x in self.every
            if isinstance(x, Do) and getattr(x.call.args[0], "value", None) in EACH.values()
        }

    # -- which variables differ between iterations -----------------------------------------------------------------

    def spread(self, scratch: set[str], tapes: set[str]) -> set[str]:
        """The variables that differ between iterations."""
        rt = self.rt
        found = {f"{x}_b" for x in self.bars}
        self.arrays |= {f"{x}_b" for x in self.bars if isinstance(rt.types.get(x), types.Array)}
        self.arrays |= scratch
        grew = True
        while grew:
            before = len(found) + len(self.arrays)
            for x in self.every:
                if isinstance(x, Let) and x.target not in self.family:
                    self.let_spreads(x, found)
                elif isinstance(x, Store) and self.varies(x.value, found) and isinstance(x.array, Var):
                    if x.array.name not in tapes and x.array.name not in self.arrays:
                        raise Declined
                    self.arrays.add(x.array.name)
                elif isinstance(x, If) and self.varies(x.test, found):
                    targets = {y.target for y in statements([*x.then, *x.orelse]) if isinstance(y, Let)}
                    found |= targets - self.family
            grew = len(found) + len(self.arrays) > before
        return found

    def let_spreads(self, x: Let, found: set[str]) -> None:
        if x.op == "tuple" and Var(self.s.target) in x.args[:1]:
            return
        if x.op == "item":
            array, index = x.args
            if self.is_row(index):
                if isinstance(self.rt.types.get(x.target), types.Array):
                    self.arrays.add(x.target)
                else:
                    found.add(x.target)
                return
            if isinstance(array, Var) and array.name in self.arrays:
                t = self.rt.types.get(x.target[:-2] if x.target.endswith("_b") else x.target)
                if isinstance(t, types.Array):
                    self.arrays.add(x.target)
                else:
                    found.add(x.target)
                return
        elif x.op == "call" and _name(x) in GROWING:
            if any(isinstance(a, Var) and a.name in self.arrays for a in x.args):
                self.arrays.add(x.target)
            return
        elif x.op == "attribute":
            return
        if any(self.varies(a, found) for a in x.args):
            found.add(x.target)

    def varies(self, a: Operand, found: set[str] | None = None) -> bool:
        """Whether an operand differs between iterations."""
        return isinstance(a, Var) and a.name in (self.varying if found is None else found)

    def is_row(self, index: Operand) -> bool:
        """Whether an index begins with the counter of the loop."""
        if index == Var(self.s.target):
            return True
        parts = self.tuples.get(index.name, ()) if isinstance(index, Var) else ()
        return Var(self.s.target) in parts[:1]

    # -- the whole -------------------------------------------------------------------------------------------------

    def made(self) -> tuple[list[Stmt], dict[str, str]]:
        rt, line = self.rt, self.line
        factors: dict[str, str] = {}
        for x in self.outer:
            factors[x] = rt.fresh(f"{x}_factor")
            packed = self.names[f"{x}_b"] = rt.fresh(f"{x}_packs")
            t = rt.types[x]
            if isinstance(t, types.Array):
                if t.ndim > 2 or t.dtype != types.float64:
                    raise Declined
                self.make(self.before, packed, simd_memory.packs_like, Var(x))
                self.make(self.after, factors[x], simd_memory.collapsed, Var(packed))
            else:
                self.make(self.before, packed, simd.all_alike, Const(0.0))
                self.make(self.after, factors[x], simd.total_of, Var(packed))
        for x in sorted(self.scratch):
            if rt.types[x].ndim > 2:
                raise Declined
            for name in (x, f"{x}_b"):
                self.names[name] = rt.fresh(f"{name}_packs")
                self.make(self.before, self.names[name], simd_memory.packs_like, Var(x))
        for tape in sorted(self.tapes & self.arrays):
            self.names[tape] = rt.fresh(f"{tape}_packs")
            if self.buffers.get(tape):
                self.make(self.before, self.names[tape], simd_memory.packs_like, Var(tape))
            else:
                self.make(self.before, self.names[tape], simd_memory.no_packs)
        first, body = self.block()
        if sum(_adds(x, self.family) for x in statements(self.inner.forward)) != 1:
            raise Declined  # terms of one iteration would be added before those of another
        forward = self.translated(self.inner.forward, None, False)
        zeros: list[Stmt] = []
        for x in sorted(self.bars - set(self.outer) - self.scratch - {self.total}):
            if is_real(rt.types[x]):
                self.make(zeros, f"{x}_b", simd.all_alike, Const(0.0))
        self.make(zeros, f"{self.total}_b", simd.lanes_between, Var(self.low), Var(self.high))
        backward = self.translated(self.inner.backward, None, True)
        body += [*self.tiles, *forward, *zeros, *backward]
        loop = For(first, self.s.start, self.s.stop, Var(self.width), body, line)
        return [*self.before, loop, *self.after], factors

    def block(self) -> tuple[str, list[Stmt]]:
        """(the counter of blocks, statements at the top of a block).

        The last block ends where the loop ends: some of its iterations have been done before, and have no weight. A
        loop of less than WIDTH iterations does them one by one.
        """
        rt, line = self.rt, self.line
        first, start, last, distance = map(rt.fresh, ("first", "start", "last", "distance"))
        size = rt.fresh("size")
        self.before += [
            Let(size, "binary", (self.s.stop, self.s.start), "-", line),
            Let(last, "binary", (self.s.stop, Const(code.WIDTH)), "-", line),
        ]
        self.make(self.before, self.width, simd_memory.width_for, Var(size))
        body: list[Stmt] = []
        self.make(self.before, distance, simd_memory.distance_for, Var(size))
        self.make(body, start, simd_memory.start_of, Var(first), Var(last), Var(distance))
        body.append(Let(self.low, "binary", (Var(first), Var(start)), "-", line))
        body.append(Let(self.high, "copy", (Var(self.width),), None, line))
        self.make(body, self.rows, simd_memory.rows_from, Var(start), Var(distance))
        return first, body

    def make(self, out: list[Stmt], target: str, f: Any, *args: Operand) -> None:
        """target = f(*args)."""
        out.append(Let(target, "call", (Ref(f, f.__name__), *args), (), self.line))

    # -- statements ------------------------------------------------------------------------------------------------

    def translated(self, body: list[Stmt], test: Operand | None, loose: bool) -> list[Stmt]:
        """Statements for a pack of iterations; `test` is the mask of those in which they are done."""
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, Let):
                self.let(s, out, test, loose)
            elif isinstance(s, Store):
                if test is not None:
                    raise Declined
                self.store(s, out)
            elif isinstance(s, If):
                if self.varies(s.test):
                    self.branch(s, out, test, loose)
                else:
                    arms = (self.translated(arm, test, loose) for arm in (s.then, s.orelse))
                    out.append(If(self.new(s.test), *arms, s.line))
            elif isinstance(s, For):
                bounds = (s.start, s.stop, s.step)
                if test is not None or any(self.varies(a) for a in bounds):
                    raise Declined
                self.no_sum_in(s)
                self.depth += 1
                inside = self.translated(s.body, None, loose)
                self.depth -= 1
                out.append(For(s.target, *map(self.new, bounds), inside, s.line))
            elif isinstance(s, Do) and s.call.args[1] in map(Var, self.buffers) and test is None:
                self.make(out, "_", s.call.args[0].value, *map(self.new, s.call.args[1:]))  # type: ignore[union-attr]
            elif isinstance(s, Raise) and test is None and not any(map(self.varies, s.args)):
                out.append(Raise(s.exception, tuple(map(self.new, s.args)), s.line))
            else:
                raise Declined
        return out

    def no_sum_in(self, s: For) -> None:
        """An inner loop may not add to the sum: the order would be another."""
        if any(isinstance(x, Let) and x.target in self.family for x in statements(s.body)):
            raise Declined

    def new(self, a: Operand) -> Operand:
        """An operand by its new name."""
        if a == Var(self.s.target):
            raise Declined
        return Var(self.names.get(a.name, a.name)) if isinstance(a, Var) else a

    def target(self, name: str) -> str:
        return self.names.get(name, name)

    def store(self, s: Store, out: list[Stmt]) -> None:
        assert isinstance(s.array, Var)
        if s.array.name in self.arrays:
            if self.is_row(s.index):
                raise Declined
            self.make(out, "_", simd_memory.put, self.new(s.array), self.new(s.index), self.new(s.value))
        elif s.array.name in self.tapes:
            out.append(Store(s.array, self.new(s.index), self.new(s.value), s.line))
        else:
            raise Declined

    def let(self, s: Let, out: list[Stmt], test: Operand | None, loose: bool) -> None:
        line = s.line
        if s.target in self.family:
            self.grow(s, out, test)
        elif s.op == "tuple" and self.is_row(Var(s.target)):
            if any(self.varies(a) or a == Var(self.s.target) for a in s.args[1:]):
                raise Declined
        elif s.op == "item" and self.is_row(s.args[1]):
            self.row(s, out)
        elif s.op == "item" and isinstance(s.args[0], Var) and s.args[0].name in self.arrays:
            if self.varies(s.args[1]):
                raise Declined
            array, index = map(self.new, s.args)
            if s.target in self.arrays:
                out.append(Let(self.target(s.target), "item", (array, index), None, line))
            elif self.rt.types.get(s.target) == types.boolean:  # kept as 0.0 and 1.0
                number = Var(self.rt.fresh("number"))
                self.make(out, number.name, simd_memory.take, array, index)
                out.append(Let(self.target(s.target), "compare", (number, Const(0.0)), "!=", line))
            else:
                self.make(out, self.target(s.target), simd_memory.take, array, index)
        elif s.op == "attribute" and isinstance(s.args[0], Var) and s.args[0].name in self.arrays:
            self.size(s, out)
        elif s.op == "call" and _name(s) in GROWING and s.target in self.arrays:
            self.make(
                out,
                self.target(s.target),
                simd_memory.more_packs,
                self.new(Var(s.target)),
                self.new(s.args[-1]),
            )
        elif s.target not in self.varying:
            if any(isinstance(a, Var) and a.name in self.arrays for a in s.args):
                raise Declined
            out.append(Let(s.target, s.op, tuple(map(self.new, s.args)), s.detail, line))
        else:
            self.number(s, out, test, loose)

    def number(self, s: Let, out: list[Stmt], test: Operand | None, loose: bool) -> None:
        """A number that differs between iterations."""
        if any(isinstance(a, Var) and a.name in self.arrays for a in s.args):
            raise Declined
        t = self.rt.types.get(s.target, types.float64)
        if t not in (types.float64, types.boolean):
            raise Declined
        args, target = tuple(map(self.new, s.args)), self.target(s.target)
        if not any(map(self.varies, s.args)):
            if t != types.float64 or s.op not in ("copy", "binary", "item", "unary"):
                raise Declined
            value = args[0]
            if s.op != "copy":
                value = Var(self.rt.fresh("alone"))
                out.append(Let(value.name, s.op, args, s.detail, s.line))
            self.make(out, target, simd.all_alike, value)
        elif s.op == "binary" and s.detail in LOOSE and loose:
            self.make(out, target, LOOSE[s.detail], *args)
        elif s.op in ("binary", "compare"):
            if s.detail not in ("+", "-", "*", "/", "&", "|", "<", "<=", ">", ">=", "==", "!="):
                raise Declined
            if s.detail == "/" and test is not None:
                raise Declined
            out.append(Let(target, s.op, args, s.detail, s.line))
        elif s.op == "copy":
            out.append(Let(target, "copy", args, None, s.line))
        elif s.op == "unary":
            if s.detail == "not":
                self.make(out, target, simd.negated, *args)
            else:
                out.append(Let(target, "unary", args, s.detail, s.line))
        elif s.op == "call":
            self.call(s, target, args, out, test)
        else:
            raise Declined

    def call(
        self, s: Let, target: str, args: tuple[Operand, ...], out: list[Stmt], test: Operand | None
    ) -> None:
        f = getattr(s.args[0], "value", None)
        if s.detail:
            raise Declined
        if f in (float, np.float64) and len(args) == 2:
            out.append(Let(target, "copy", args[1:], None, s.line))
            return
        if isinstance(getattr(f, "py_func", None), FunctionType) and _is_simple(f.py_func) and test is None:
            partial = tuple(
                Ref(simd_functions, "pack_functions") if getattr(a, "value", None) in (math, np) else a
                for a in args[1:]
            )
            out.append(Let(target, "call", (args[0], *partial), (), s.line))
            return
        if getattr(f, "__name__", "") == "_inverse_log" and len(args) == 4:  # of the module, x and log x
            self.make(out, target, simd.quotient, Const(1.0), args[2])
            return
        if f is where_taken:
            self.make(out, target, simd.choose, *args[1:], Const(0.0))
            return
        try:
            mine = FUNCTIONS.get(f)
        except TypeError:
            mine = None
        if mine is None:
            raise Declined
        self.make(out, target, mine, *args[1:])

    def row(self, s: Let, out: list[Stmt]) -> None:
        """An element or a row of an array, in the place of the loop's counter."""
        array, index = s.args
        t = self.rt.type_of(array)
        if not isinstance(t, types.Array) or t.dtype != types.float64 or array.name in self.arrays:  # type: ignore[union-attr]
            raise Declined
        if self.rt.memory.is_written(array.name) or array.name in self.assigned:  # type: ignore[union-attr]
            raise Declined
        parts: tuple[Operand, ...] = (index,) if index == Var(self.s.target) else self.tuples[index.name]  # type: ignore[union-attr]
        if len(parts) == 1 and t.ndim == 2:
            out.append(Let(self.target(s.target), "copy", (self.tile(array),), None, s.line))
            return
        if len(parts) != t.ndim or t.ndim > 2 or any(self.varies(a) for a in parts[1:]):
            raise Declined
        column = parts[-1]
        if t.ndim == 2 and array.name in self.whole_rows:  # type: ignore[union-attr]
            if self.depth == 1 and t.layout == "C":  # read once or twice a block: memory decides
                ahead = (self.tile(array), self.new(column), array, Var(self.rows))
                self.make(out, self.target(s.target), simd_memory.take_ahead, *ahead)
            else:
                self.make(out, self.target(s.target), simd_memory.take, self.tile(array), self.new(column))
            return
        place = self.new(column) if t.ndim == 2 else Const(0)
        self.make(out, self.target(s.target), simd_memory.gather, array, Var(self.rows), place)

    def read_by_rows(self) -> set[str]:
        """The matrices of which every iteration reads a whole row, element by element."""
        stops = {
            x.target: meaning(self.rt, x.stop)
            for x in statements(self.s.body)
            if isinstance(x, For) and (x.start, x.step) == (Const(0), Const(1))
        }
        found = set()
        for x in self.every:
            if (
                isinstance(x, Let)
                and x.op == "item"
                and isinstance(x.args[0], Var)
                and self.is_row(x.args[1])
            ):
                array, column = x.args[0].name, self.tuples.get(getattr(x.args[1], "name", ""), ())[-1:]
                if column and stops.get(getattr(column[0], "name", "")) == ("shape", array, 1):
                    found.add(array)
        return found

    def tile(self, array: Operand) -> Operand:
        """The rows of a matrix for the iterations of a block, as packs, gathered once."""
        name = f"{array.name}_tile"  # type: ignore[union-attr]
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = self.rt.fresh(name)
            self.make(self.before, found, simd_memory.tile_for, array)
            self.make(self.tiles, "_", simd_memory.gather_rows, array, Var(self.rows), Var(found))
        return Var(found)

    def size(self, s: Let, out: list[Stmt]) -> None:
        """The shape of an array of packs without its last axis, or the number of elements of a vector."""
        array = s.args[0]
        base = self.rt.types.get(array.name)  # type: ignore[union-attr]
        ndim = 1 if array.name in self.tapes else getattr(base, "ndim", 0)  # type: ignore[union-attr]
        if s.detail not in ("shape", "size") or ndim == 0 or (s.detail, ndim) == ("size", 2):
            raise Declined
        shape = self.rt.fresh("shape")
        out.append(Let(shape, "attribute", (self.new(array),), "shape", s.line))
        lengths: list[Operand] = []
        for axis in range(ndim):
            lengths.append(Var(self.rt.fresh("length")))
            out.append(Let(lengths[-1].name, "item", (Var(shape), Const(axis)), None, s.line))  # type: ignore[union-attr]
        op = "copy" if s.detail == "size" else "tuple"
        out.append(Let(s.target, op, tuple(lengths), None, s.line))

    def grow(self, s: Let, out: list[Stmt], test: Operand | None) -> None:
        """The sum plus or minus a term, or its copy."""
        if s.op == "copy":
            out.append(s)
            return
        kin = [a for a in s.args if isinstance(a, Var) and a.name in self.family]
        term = next(a for a in s.args if a not in kin)
        if not self.varies(term):
            raise Declined
        terms = self.new(term)
        if s.detail == "-":
            minus = Var(self.rt.fresh("minus"))
            out.append(Let(minus.name, "unary", (terms,), "-", s.line))
            terms = minus
        self.make(
            out,
            s.target,
            simd.add_in_order,
            kin[0],
            terms,
            test or Const(True),
            Var(self.low),
            Var(self.high),
        )

    def branch(self, s: If, out: list[Stmt], test: Operand | None, loose: bool) -> None:
        """A branch that is taken in some of the iterations: both arms, and a choice of what they assign."""
        if any(not isinstance(x, Let) for x in [*s.then, *s.orelse]):
            raise Declined
        mask = self.new(s.test)
        other = Var(self.rt.fresh("other"))
        self.make(out, other.name, simd.negated, mask)
        growing = [any(_adds(x, self.family) for x in arm) for arm in (s.then, s.orelse)]
        if all(growing):
            raise Declined
        values = []
        for arm, mine, skips in ((s.then, mask, growing[1]), (s.orelse, other, not growing[1])):
            values.append(self.arm(arm, mine, test, skips, out, loose))
        for name in sorted({*values[0], *values[1]}):
            if name not in self.varying:
                continue
            then, orelse = (made.get(name) for made in values)
            old = self.target(name) if name in self.known(s) else None
            then, orelse = then or old or orelse, orelse or old or then
            self.make(out, self.target(name), simd.choose, mask, Var(then), Var(orelse))  # type: ignore[arg-type]

    def arm(
        self, arm: list[Stmt], mask: Operand, test: Operand | None, skips: bool, out: list[Stmt], loose: bool
    ) -> dict[str, str]:
        """An arm, done for all iterations under new names: variable -> its name there.

        What it does to the sum, if `skips` does not say that the other arm decides it, is done where `mask` is set.
        """
        if test is not None:
            both = Var(self.rt.fresh("both"))
            out.append(Let(both.name, "binary", (test, mask), "&", self.line))
            mask = both
        kept, made = dict(self.names), {}
        for x in arm:
            assert isinstance(x, Let)
            if x.target in self.family:
                if not skips:
                    self.grow(x, out, mask)
                continue
            name = self.rt.fresh(x.target)
            self.varying.add(name)
            if x.target in self.rt.types:
                self.rt.types[name] = self.rt.types[x.target]
            self.let(Let(name, x.op, x.args, x.detail, x.line), out, mask, loose)
            self.names[x.target] = made[x.target] = name
        self.names = kept
        return made

    def known(self, branch: If) -> set[str]:
        """The variables that have a value in front of a branch: cotangents, and what is assigned elsewhere too."""
        inside = {id(x) for x in statements([*branch.then, *branch.orelse])}
        others = {x.target for x in self.every if isinstance(x, Let) and id(x) not in inside}
        return others | {f"{x}_b" for x in self.bars}


def _adds(x: Stmt, family: set[str]) -> bool:
    return isinstance(x, Let) and x.target in family and x.op != "copy"


def _name(s: Let) -> str:
    return getattr(getattr(s.args[0], "value", None), "__name__", "")


def _is_simple(partial: FunctionType) -> bool:
    """Whether a slope is made of arithmetic and functions that packs have."""
    return (
        str(partial.__module__) == "plaingrad.native.rules.scalars"
        and set(partial.__code__.co_names) <= NAMES
    )
