"""Dictionaries with known keys as tuples: what is read by a key is read by its place.

Numba types such a dictionary (an argument of the border's, or `{"a": x, "b": v}` with values of several types) as one
with these keys and a type for each. It has no shadow and no place in memory of its own; a tuple does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba.core import types

from plaingrad.errors import NativeError
from plaingrad.native.program.ir import Const, Do, Let, Program, Stmt, Var, where, with_inner


def without_keys(program: Program) -> Program:
    """`program` with tuples for dictionaries.

    Raises:
        NativeError: a dictionary is used otherwise than by a key that is written there.
    """
    if not any(map(holds_keys, program.types.values())):
        return program
    kinds = {name: as_tuple(t) for name, t in program.types.items()}
    body = _body(program.body, program)
    return replace(program, body=body, types=kinds, result=as_tuple(program.result))


def holds_keys(t: Any) -> bool:
    """Whether a type is a dictionary with known keys, or a tuple with one in it."""
    if isinstance(t, types.LiteralStrKeyDict):
        return True
    return isinstance(t, types.BaseTuple) and any(map(holds_keys, t))


def as_tuple(t: Any) -> Any:
    """A type with tuples for dictionaries."""
    if not holds_keys(t):
        return t
    parts = [as_tuple(part) for part in t]
    return types.BaseTuple.from_types(parts, getattr(t, "instance_class", None) if is_named(t) else None)


def is_named(t: Any) -> bool:
    """Whether a type is one of named tuples."""
    return isinstance(t, types.BaseNamedTuple)


def _body(body: list[Stmt], program: Program) -> list[Stmt]:
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Let):
            s = _let(s, program)
        elif isinstance(s, Do):
            s = Do(_let(s.call, program), s.line)
        out.append(with_inner(s, lambda inner: _body(inner, program)))
    return out


def _let(s: Let, program: Program) -> Let:
    if s.op in ("copy", "tuple", "attribute") or s.args[:1] == (Const(len),):
        return s
    kinds = [program.types.get(a.name) if isinstance(a, Var) else None for a in s.args]
    if s.op == "item" and isinstance(kinds[0], types.LiteralStrKeyDict):
        if isinstance(s.args[1], Const) and s.args[1].value in kinds[0].fields:
            return replace(s, args=(s.args[0], Const(kinds[0].fields.index(s.args[1].value))))
    elif s.op == "item" or not any(map(holds_keys, kinds)):
        return s
    raise NativeError(
        f"a dictionary that is not read by a key written there, at {where(s.line, program)}, cannot be differentiated "
        "natively.\n  To go on: tier='plain' differentiates it as it is.\n  See docs: errors#native"
    )
