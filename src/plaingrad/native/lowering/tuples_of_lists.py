"""Tuples that hold lists as variables for their parts: `t = (xs, ys)`, `xs = t[0]`, as a function returns two lists.

Lists become arrays (`lists.py`) only where every use of them is known, and one in a tuple is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba.core import types

from plaingrad.native.program.ir import (
    RESULT,
    Const,
    Let,
    Operand,
    Program,
    Stmt,
    Var,
    operands,
    statements,
    unused,
    with_inner,
)
from plaingrad.native.program.value_types import part_types


def is_tuple_of_lists(t: Any) -> bool:
    """Whether `t` is a type of tuples that have lists among their parts."""
    return isinstance(t, types.BaseTuple) and any(isinstance(part, types.List) for part in part_types(t))


def without_tuples_of_lists(program: Program) -> Program:
    """`program` with variables for the parts, where the tuples are only made, copied and read part by part."""
    names = {name for name, t in program.types.items() if is_tuple_of_lists(t)}
    if not names or names & {*program.params, RESULT}:
        return program
    if not all(is_known(s, names) for s in statements(program.body)):
        return program
    taken, kinds = set(program.types), dict(program.types)
    parts: dict[str, list[str]] = {}
    for name in sorted(names):
        parts[name] = [unused(f"{name}_{k}", taken) for k in range(len(kinds[name]))]
        kinds.update(zip(parts[name], kinds.pop(name), strict=True))
    return replace(program, body=_body(program.body, parts), types=kinds)


def is_known(s: Stmt, names: set[str]) -> bool:
    """Whether a statement does nothing to such a tuple but make, copy or read it."""
    reads = [a for a in operands(s) if isinstance(a, Var) and a.name in names]
    if isinstance(s, Let) and s.target in names:
        return (s.op == "tuple" and not reads) or (s.op == "copy" and len(reads) == 1)
    return not reads or (
        isinstance(s, Let) and s.op == "item" and isinstance(s.args[1], Const) and s.args[0] in reads
    )


def _body(body: list[Stmt], parts: dict[str, list[str]]) -> list[Stmt]:
    out: list[Stmt] = []
    for s in body:
        if not isinstance(s, Let):
            out.append(with_inner(s, lambda inner: _body(inner, parts)))
        elif s.target in parts:
            first = s.args[0]
            values: Any = s.args if s.op == "tuple" else map(Var, parts[first.name])  # type: ignore[union-attr]
            pairs = zip(parts[s.target], values, strict=True)
            out += [Let(name, "copy", (value,), None, s.line) for name, value in pairs]
        elif s.op == "item" and isinstance(s.args[0], Var) and s.args[0].name in parts:
            value: Operand = Var(parts[s.args[0].name][s.args[1].value])  # type: ignore[union-attr]
            out.append(Let(s.target, "copy", (value,), None, s.line))
        else:
            out.append(s)
    return out
