"""Outer-loop vectorisation of sums: several iterations at once, every number of the body a `Pack` of them.

The body, way forward and way back, is translated statement by statement. A number that differs between iterations is a
pack; tapes, cotangents and arrays of an iteration become arrays of packs; rows that the loop's counter selects are
gathered. A branch that is taken in some of the iterations becomes both arms and a choice. The sum is added up one
iteration after the other, so it keeps its bits. The last block, if it is not full, repeats its last iteration with
weight zero.

What is not of this form is left alone: calls of other functions, `while`, writing, divisions in such branches.

This is a part of the form `sums`, whose loop is seen in `elements`. What is translated here is another thing, what
reverse mode has derived of an iteration, with its tapes and cotangents; which of its values differ between iterations
is found in `block_spreads`.
"""

from __future__ import annotations

import math
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native.loops.block_rows import Declined
from plaingrad.native.loops.block_spreads import GROWING, Spreads, called_name
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
    statements,
)
from plaingrad.native.program.value_types import is_real
from plaingrad.native.runtime.helpers import where_taken
from plaingrad.native.runtime.vector import code, simd, simd_functions, simd_memory

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
LOOSE = {"+": simd.plus, "-": simd.minus, "*": simd.times}


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


class _Blocks(Spreads):
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
        elif s.op == "call" and called_name(s) in GROWING and s.target in self.arrays:
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


def _adds(x: Stmt, family: set[str]) -> bool:
    return isinstance(x, Let) and x.target in family and x.op != "copy"


def _is_simple(partial: FunctionType) -> bool:
    """Whether a slope is made of arithmetic and functions that packs have."""
    return (
        str(partial.__module__) == "plaingrad.native.rules.scalars"
        and set(partial.__code__.co_names) <= NAMES
    )
