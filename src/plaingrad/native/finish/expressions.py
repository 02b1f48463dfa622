"""Expressions: numbers that are read once become part of the expression that reads them; a third of the lines stay.

The last pass: the operands of its statements may be expressions, which only `emit` understands. Nothing is computed in
another order where that could be seen: an expression moves over no write, call or branch, and over no assignment of
what it reads.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from numba.core import types

from plaingrad.native.finish.dead_code import is_pure
from plaingrad.native.program.ir import (
    Const,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Program,
    Stmt,
    Store,
    Var,
    operands,
    statements,
)

TEMPORARY = re.compile(r"t(_\d+)*\Z")  # the front end's names
MOST = 5  # operations in an expression


def with_expressions(program: Program) -> Program:
    """`program` with temporaries in the place where they are read."""
    reads: dict[str, int] = {}
    assigned: dict[str, int] = {}
    for s in statements(program.body):
        for a in operands(s):
            if isinstance(a, Var):
                reads[a.name] = reads.get(a.name, 0) + 1
        if isinstance(s, (Let, For)):
            assigned[s.target] = assigned.get(s.target, 0) + 1
    once = {
        name
        for name, count in assigned.items()
        if count == 1 and reads.get(name) == 1 and _is_number(program.types.get(name))
    }
    folded = {name for name in once if name in program.own or TEMPORARY.match(name)}
    several = {name for name, count in assigned.items() if count > 1}
    return replace(program, body=_folded(program.body, once, folded, several))


def _folded(body: list[Stmt], once: set[str], folded: set[str], several: set[str]) -> list[Stmt]:
    """Statements with expressions in them.

    Args:
        body: the statements.
        once: the numbers that are read once, which may be written where they are copied.
        folded: those of them that may be written in any expression.
        several: the variables that are assigned more than once.
    """
    out: list[Any] = []
    waiting: dict[str, int] = {}  # name -> its place in `out`
    facts: dict[str, tuple[int, set[str]]] = {}  # operations, variables read that are assigned again

    def taken(x: Any) -> Any:
        if not isinstance(x, Var) or x.name not in waiting:
            return x
        place = waiting.pop(x.name)
        found, out[place] = out[place], None
        return found

    for s in body:
        if isinstance(s, Let):
            size, changing = 1, set()
            args = []
            for a in s.args:
                if isinstance(a, Var) and a.name in waiting:
                    more, others = facts[a.name]
                    if s.op == "copy" or (a.name in folded and size + more <= MOST):
                        size += more
                        changing |= others
                        a = taken(a)
                elif isinstance(a, Var) and a.name in several:
                    changing.add(a.name)
                args.append(a)
            s = replace(s, args=tuple(args))
            if s.op in ("call", "method") and not _is_pure(s):
                waiting = {}
            if s.target in several:
                waiting = {name: k for name, k in waiting.items() if s.target not in facts[name][1]}
            if s.target in once and _is_foldable(s):
                facts[s.target] = size, changing
                waiting[s.target] = len(out)
            out.append(s)
            continue
        if isinstance(s, If):
            test = taken(s.test) if _name(s.test) in folded else s.test
            s = If(
                test, _folded(s.then, once, folded, several), _folded(s.orelse, once, folded, several), s.line
            )
        elif isinstance(s, (For, Loop)):
            s = replace(s, body=_folded(s.body, once, folded, several))
        elif isinstance(s, Store):
            value = taken(s.value) if _name(s.value) in folded else s.value
            s = Store(s.array, s.index, value, s.line)
        elif isinstance(s, InPlace):
            s = InPlace(s.array, s.op, taken(s.value) if _name(s.value) in folded else s.value, s.line)
        waiting = {}
        out.append(s)
    return [s for s in out if s is not None]


def _name(x: Any) -> str:
    return getattr(x, "name", "")


def _is_pure(s: Let) -> bool:
    return s.op == "call" and is_pure(getattr(s.args[0], "value", None)) and "out" not in (s.detail or ())


def _is_foldable(s: Let) -> bool:
    if s.op == "copy":
        return isinstance(s.args[0], Const)
    return s.op in ("binary", "unary", "compare", "item", "tuple") or (s.op == "call" and _is_pure(s))


def _is_number(t: Any) -> bool:
    """Whether a type is one of numbers, or of tuples of these, as indices are."""
    if isinstance(t, types.BaseTuple):
        return all(map(_is_number, t))
    return isinstance(t, (types.Number, types.Boolean))
