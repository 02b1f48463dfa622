"""Rows that are only read and written number by number become places of their arrays: x = a[i]; x[j] is a[i, j].

A row is a view, and a view holds a reference to its memory: in a loop that is two atomic counts an iteration, and calls
that keep the compiler from seeing through the loop. Most helper functions take rows, and are put in the place of their
calls, so that after that nothing needs the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from numba.core import config, types

from plaingrad.native.program.dispatchers import options_of
from plaingrad.native.program.ir import (
    Const,
    For,
    If,
    Let,
    Loop,
    Operand,
    Program,
    Stmt,
    Store,
    Var,
    operands,
    statements,
    with_inner,
)

EXTENTS = ("shape", "size", "ndim")


def without_rows(program: Program) -> Program:
    """`program` with the places of arrays for those of rows."""
    options = options_of(program.function)
    if options.get("boundscheck") or config.BOUNDSCHECK:
        return program  # a row that does not exist is an error where it is taken
    while True:
        rows = _Rows(program)
        if not rows.places:
            return program
        program = rows.replaced()


class _Rows:
    """The rows of a program, and where they are.

    Attributes:
        places: row -> (the array, the indices that lead to the row).
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.types = dict(program.types)
        self.assigned: dict[str, list[Stmt]] = {}
        for s in statements(program.body):
            if isinstance(s, (Let, For)):
                self.assigned.setdefault(s.target, []).append(s)
        found = {s.target: place for s in statements(program.body) if (place := self.place(s)) is not None}
        self.places = {}
        if found:
            bad = set(self.misused(program.body, found, set()))
            # a row of a row waits until the outer one is gone
            self.places = {x: place for x, place in found.items() if x not in bad and place[0] not in found}
        self.count = 0

    # -- which ones ------------------------------------------------------------------------------------------------

    def is_constant(self, x: Operand) -> bool:
        """Whether an operand has one value wherever it can be read."""
        return not isinstance(x, Var) or len(self.assigned.get(x.name, ())) <= (
            x.name not in self.program.params
        )

    def indices(self, index: Operand) -> tuple[Operand, ...] | None:
        """The whole numbers that an index is made of; None if it is another index."""
        parts: tuple[Operand, ...] = (index,)
        if isinstance(index, Var) and isinstance(self.types.get(index.name), types.BaseTuple):
            made = self.assigned.get(index.name, [])
            if len(made) != 1 or not isinstance(made[0], Let) or made[0].op != "tuple":
                return None
            parts = made[0].args
        return parts if all(map(self.is_whole, parts)) else None

    def is_whole(self, x: Operand) -> bool:
        """Whether an operand is a whole number that does not change."""
        if isinstance(x, Const):
            return type(x.value) is int
        return (
            isinstance(x, Var) and isinstance(self.types.get(x.name), types.Integer) and self.is_constant(x)
        )

    def place(self, s: Stmt) -> tuple[str, tuple[Operand, ...]] | None:
        """(array, indices) of the row that a statement takes; None if it is another statement."""
        if not isinstance(s, Let) or s.op != "item" or not isinstance(s.args[0], Var):
            return None
        array, index = s.args
        whole, row = self.types.get(array.name), self.types.get(s.target)
        if not (isinstance(whole, types.Array) and isinstance(row, types.Array)):
            return None
        if not isinstance(whole.dtype, (types.Number, types.Boolean)):
            return None
        if not (self.is_constant(array) and len(self.assigned[s.target]) == 1):
            return None
        at = self.indices(index)
        if at is None or len(at) + row.ndim != whole.ndim or s.target in self.program.params:
            return None
        return array.name, at

    def misused(self, body: list[Stmt], rows: dict[str, Any], known: set[str]) -> Iterator[str]:
        """The rows that something else is done with, or that are used where they may be those of another iteration."""
        known = set(known)
        for s in body:
            for x in operands(s):
                if isinstance(x, Var) and x.name in rows and not (x.name in known and self.fits(s, x, rows)):
                    yield x.name
            if isinstance(s, If):
                yield from self.misused(s.then, rows, known)
                yield from self.misused(s.orelse, rows, known)
            elif isinstance(s, (For, Loop)):
                yield from self.misused(s.body, rows, known)
            elif isinstance(s, Let) and s.target in rows:
                known.add(s.target)

    def fits(self, s: Stmt, x: Var, rows: dict[str, Any]) -> bool:
        """Whether a statement that reads the row x can do with its place."""
        ndim = self.types[x.name].ndim
        if isinstance(s, Store):
            at = self.indices(s.index)
            return s.array == x and s.value != x and at is not None and len(at) == ndim
        if not isinstance(s, Let):
            return False
        if s.op == "item":
            at = self.indices(s.args[1])
            return s.args[0] == x and at is not None and (len(at) == ndim or s.target in rows)
        if s.op == "attribute":
            return s.detail in EXTENTS and (ndim == 1 or s.detail != "size")
        return s.op == "call" and s.args == (Const(len), x) and not s.detail

    # -- without them ----------------------------------------------------------------------------------------------

    def replaced(self) -> Program:
        """The program without these rows."""
        return replace(self.program, body=self.body(self.program.body), types=self.types)

    def fresh(self, base: str, t: Any) -> str:
        """A new variable of a type."""
        while True:
            self.count += 1
            name = f"{base}_{self.count}"
            if name not in self.types:
                self.types[name] = t
                return name

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """Statements without rows."""
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, Let) and s.target in self.places:
                continue
            if isinstance(s, Store) and self.row_of(s.array):
                out.append(
                    replace(s, array=self.array(s.array), index=self.index(s.array, s.index, out, s.line))
                )
            elif isinstance(s, Let) and any(map(self.row_of, s.args)):
                self.let(s, out)
            else:
                out.append(with_inner(s, self.body))
        return out

    def row_of(self, x: Operand) -> bool:
        """Whether an operand is a row that goes."""
        return isinstance(x, Var) and x.name in self.places

    def array(self, x: Operand) -> Var:
        """The array that a row is of."""
        assert isinstance(x, Var)
        return Var(self.places[x.name][0])

    def index(self, x: Operand, index: Operand, out: list[Stmt], line: int) -> Var:
        """The index in the array of an index in the row x."""
        assert isinstance(x, Var)
        inner = self.indices(index)
        assert inner is not None
        at = (*self.places[x.name][1], *inner)
        kinds = [self.types[a.name] if isinstance(a, Var) else types.int64 for a in at]
        name = self.fresh(f"{x.name}_at", types.BaseTuple.from_types(kinds))
        out.append(Let(name, "tuple", at, None, line))
        return Var(name)

    def let(self, s: Let, out: list[Stmt]) -> None:
        """An assignment that reads a row."""
        x = next(a for a in s.args if self.row_of(a))
        array = self.array(x)
        if s.op == "item":
            out.append(replace(s, args=(array, self.index(x, s.args[1], out, s.line))))
            return
        assert isinstance(x, Var)
        before = len(self.places[x.name][1])
        ndim = self.types[x.name].ndim
        if s.detail == "ndim":
            out.append(replace(s, op="copy", args=(Const(ndim),), detail=None))
            return
        shape = self.fresh(f"{x.name}_of", types.UniTuple(types.intp, self.types[array.name].ndim))
        out.append(Let(shape, "attribute", (array,), "shape", s.line))
        if s.detail != "shape":
            out.append(Let(s.target, "item", (Var(shape), Const(before)), None, s.line))
            return
        extents: list[Operand] = []
        for k in range(before, before + ndim):
            extents.append(Var(self.fresh(f"{x.name}_extent", types.intp)))
            out.append(Let(extents[-1].name, "item", (Var(shape), Const(k)), None, s.line))  # type: ignore[union-attr]
        out.append(replace(s, op="tuple", args=tuple(extents), detail=None))


__all__ = ["without_rows"]
