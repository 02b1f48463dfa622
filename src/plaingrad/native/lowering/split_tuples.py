"""Tuples taken apart: every tuple that carries derivatives also exists as its parts, which rules then see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.errors import NativeError
from plaingrad.native.program.ir import (
    RESULT,
    Const,
    For,
    If,
    Let,
    Loop,
    Operand,
    Program,
    Ref,
    Stmt,
    Store,
    Var,
    operands,
    statements,
    unused,
    where,
    with_inner,
)
from plaingrad.native.program.value_types import has_tangent, is_real
from plaingrad.native.runtime.array_helpers import array_of

REDUCTIONS = (Const(sum), Const(min), Const(max))
MOST_BRANCHES = 16  # for one access to a tuple by a variable index


def exploded(program: Program) -> tuple[Program, list[str], dict[str, list[str]]]:
    """(the program with tuples also in parts, names of the parts of the result, parameter -> names of its leaves)."""
    work = _Exploder(program)
    leaves: dict[str, list[str]] = {}
    setup: list[Stmt] = []
    for name in program.params:
        leaves[name] = work.unpack(name, program.types[name], setup)
    body = setup + work.body(without_lists(program.body, program.types, work.types))
    results = work.leaves(RESULT, program.result)
    return (
        replace(program, body=body, types=work.types),
        results,
        leaves,
    )


def without_lists(body: list[Stmt], types_of: dict[str, Any], new: dict[str, Any]) -> list[Stmt]:
    """`body` with np.array([x, ...]), also of lists of lists, as a call with the numbers for arguments."""
    lists = {s.target: s for s in statements(body) if isinstance(s, Let) and s.op == "list"}
    uses: dict[str, int] = {}
    for s in statements(body):
        for a in operands(s):
            if isinstance(a, Var) and a.name in lists:
                uses[a.name] = uses.get(a.name, 0) + 1
    return _without(body, lists, uses, types_of, new) if lists else body


def _without(body: list[Stmt], lists: Any, uses: Any, types_of: Any, new: Any) -> list[Stmt]:
    """`without_lists`; `lists`: variable -> what makes a list of it, `uses`: how often each of these is still read."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, (If, For, Loop)):
            out.append(with_inner(s, lambda inner: _without(inner, lists, uses, types_of, new)))
        elif isinstance(s, Let) and s.op == "call" and len(s.args) == 2 and not s.detail:
            found = lists.get(s.args[1].name) if isinstance(s.args[1], Var) else None
            if found is None or getattr(s.args[0], "value", None) not in (np.array, np.asarray):
                out.append(s)
            else:
                out += _array_of(s, found, lists, uses, types_of, new)
        else:
            out.append(s)
    removed = {s.target for s in lists.values() if uses.get(s.target) == 0}
    return [s for s in out if not (isinstance(s, Let) and s.op == "list" and s.target in removed)]


def _array_of(s: Let, found: Let, lists: Any, uses: Any, types_of: Any, new: Any) -> list[Stmt]:
    """`s`, an array made of the list that `found` makes, by `array_of` its numbers; `s` itself where that cannot be."""
    t = types_of[s.target]
    if not has_tangent(t):
        return [s]
    rows = [lists.get(a.name) if isinstance(a, Var) else None for a in found.args]
    nested = all(r is not None for r in rows) and t.ndim == 2
    parts = [a for r in rows for a in r.args] if nested else list(found.args)  # type: ignore[union-attr]
    kinds = [types_of.get(a.name) if isinstance(a, Var) else None for a in parts]
    if not (nested or t.ndim == 1) or not all(k is None or isinstance(k, types.Number) for k in kinds):
        return [s]
    out: list[Stmt] = []
    made: list[Operand] = []
    for k, (a, kind) in enumerate(zip(parts, kinds, strict=True)):
        if isinstance(a, Const):
            a = Const(complex(a.value) if isinstance(t.dtype, types.Complex) else float(a.value))
        elif kind != t.dtype:
            name = f"{s.target}_n{k}"
            new[name] = t.dtype
            f = complex if isinstance(t.dtype, types.Complex) else float
            out.append(Let(name, "call", (Const(f), a), (), s.line))
            a = Var(name)
        made.append(a)
    args = (Ref(array_of, "array_of"), *made)
    uses[found.target] -= 1
    if nested:
        flat = f"{s.target}_flat"
        new[flat] = t.copy(ndim=1)
        shape = f"{s.target}_shape"
        new[shape] = types.UniTuple(types.int64, 2)
        out.append(Let(flat, "call", args, (), s.line))
        out.append(Let(shape, "tuple", (Const(len(rows)), Const(len(rows[0].args))), None, s.line))  # type: ignore[union-attr]
        out.append(Let(s.target, "method", (Var(flat), Var(shape)), ("reshape", ()), s.line))
        if uses[found.target] == 0:
            for r in found.args:
                uses[r.name] -= 1  # type: ignore[union-attr]
        return out
    return [*out, Let(s.target, "call", args, (), s.line)]


class _Exploder:
    """One program whose tuples are taken apart: part k of the tuple `t` is the variable `t_pk`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.types = dict(program.types)
        self.taken = set(self.types)

    def parts(self, name: str) -> list[str] | None:
        """The names of the parts of a tuple that carries derivatives, else None."""
        t = self.types.get(name)
        if not isinstance(t, types.BaseTuple) or not has_tangent(t):
            return None
        found = []
        for k, part in enumerate(t):
            inner = f"{name}_p{k}"
            self.types.setdefault(inner, part)
            found.append(inner)
        return found

    def leaves(self, name: str, t: Any) -> list[str]:
        """The names of all parts, of nested tuples too."""
        self.types.setdefault(name, t)
        parts = self.parts(name)
        if parts is None:
            return [name]
        return [leaf for part in parts for leaf in self.leaves(part, self.types[part])]

    def unpack(self, name: str, t: Any, out: list[Stmt]) -> list[str]:
        """Statements that take a tuple apart; the names of its leaves."""
        self.types.setdefault(name, t)
        parts = self.parts(name)
        if parts is None:
            return [name]
        found = []
        for k, part in enumerate(parts):
            out.append(Let(part, "item", (Var(name), Const(k))))
            found += self.unpack(part, self.types[part], out)
        return found

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """Statements with tuples also in parts."""
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, If):
                s = If(s.test, self.body(s.then), self.body(s.orelse), s.line)
            elif isinstance(s, For):
                s = replace(s, body=self.body(s.body))
            elif isinstance(s, Loop):
                s = Loop(self.body(s.body), s.line)
            elif isinstance(s, Let):
                out += self.let(s)
                continue
            elif isinstance(s, Store):
                s = self.store(s, out)
            out.append(s)
        return out

    def store(self, s: Store, out: list[Stmt]) -> Store:
        """array[index] = tuple of numbers, from an array of the numbers."""
        inside = self.parts(s.value.name) if isinstance(s.value, Var) else None
        if not inside or not isinstance(self.types.get(s.array.name), types.Array):  # type: ignore[union-attr]
            return s
        name = unused(f"{s.value.name}_as_array", self.taken)  # type: ignore[union-attr]
        self.types[name] = types.Array(self.types[inside[0]], 1, "C")
        out.append(Let(name, "call", (Ref(array_of, "array_of"), *map(Var, inside)), (), s.line))
        return Store(s.array, s.index, Var(name), s.line)

    def let(self, s: Let) -> list[Stmt]:
        """One assignment, with the parts of its result."""
        parts = self.parts(s.target)
        of = s.args[1:2] if s.op == "call" and s.args[0] in REDUCTIONS else ()
        if of and isinstance(of[0], Var):
            inside = self.parts(of[0].name)
            if inside and all(is_real(self.types[part]) for part in inside):
                return self.reduced(s, inside)
        if s.op == "item" and isinstance(s.args[0], Var):
            inside = self.parts(s.args[0].name)
            if inside is not None:
                if not isinstance(s.args[1], Const):
                    return [s, *self.chosen(s, inside)] if has_tangent(self.types.get(s.target)) else [s]
                return self.copies(s.target, Var(inside[s.args[1].value]), s.line)
        if s.op == "attribute" and isinstance(s.args[0], Var):
            inside, fields = self.parts(s.args[0].name), getattr(self.types.get(s.args[0].name), "fields", ())
            if inside is not None and s.detail in fields:
                return self.copies(s.target, Var(inside[fields.index(s.detail)]), s.line)
        if parts is None:
            return [s]
        joined = [self.parts(a.name) if isinstance(a, Var) else None for a in s.args]
        if s.op == "binary" and None not in joined:  # a + b
            s = Let(
                s.target, "tuple", tuple(Var(part) for each in joined for part in each or ()), None, s.line
            )
        if s.op == "tuple":
            out: list[Stmt] = []
            for part, value in zip(parts, s.args, strict=True):
                out += self.copies(part, value, s.line)
            return [*out, s]
        if s.op == "call" and getattr(s.args[0], "value", None) is getattr(
            self.types[s.target], "instance_class", self
        ):
            return [*self.let(Let(s.target, "tuple", self.in_order(s), None, s.line))[:-1], s]
        if s.op == "copy":
            return self.copies(s.target, s.args[0], s.line)
        out = [s]
        self.unpack(s.target, self.types[s.target], out)
        return out

    def reduced(self, s: Let, parts: list[str]) -> list[Stmt]:
        """sum, min or max of a tuple of numbers, from the numbers."""
        if s.args[0] != Const(sum):
            args = (*map(Var, parts), *s.args[2:])
            if len(args) == 1:
                return [Let(s.target, "copy", args, None, s.line)]
            return [Let(s.target, "call", (s.args[0], *args), s.detail, s.line)]
        total: Operand = s.args[2] if len(s.args) > 2 else Const(0)
        out: list[Stmt] = []
        for k, part in enumerate(parts):
            name = s.target if k == len(parts) - 1 else f"{s.target}_up_to_{k}"
            self.types[name] = self.types[s.target]
            out.append(Let(name, "binary", (total, Var(part)), "+", s.line))
            total = Var(name)
        return out

    def chosen(self, s: Let, parts: list[str]) -> list[Stmt]:
        """target = the part that a variable index tells, by a branch for every part."""
        if isinstance(s.args[1], Var) and isinstance(self.types.get(s.args[1].name), types.SliceType):
            raise NativeError(
                f"a slice of a tuple at {where(s.line, self.program)}, has no native derivative.\n"
                "  To go on: name its parts, or use tier='plain'.\n  See docs: errors#native"
            )
        if len(parts) > MOST_BRANCHES:
            raise NativeError(
                f"a tuple of {len(parts)} parts is indexed by a variable at {where(s.line, self.program)}; natively "
                "that has no derivative.\n  To go on: use an array, or tier='plain'.\n  See docs: errors#native"
            )
        out: list[Stmt] = []
        for k, part in reversed(list(enumerate(parts))):
            here = self.copies(s.target, Var(part), s.line)
            if k == len(parts) - 1:
                out = here
                continue
            tests = [f"{s.target}_is_{k}", f"{s.target}_is_minus_{k}", f"{s.target}_takes_{k}"]
            self.types |= dict.fromkeys(tests, types.boolean)
            out = [
                Let(tests[0], "compare", (s.args[1], Const(k)), "==", s.line),
                Let(tests[1], "compare", (s.args[1], Const(k - len(parts))), "==", s.line),
                Let(tests[2], "binary", (Var(tests[0]), Var(tests[1])), "|", s.line),
                If(Var(tests[2]), here, out, s.line),
            ]
        return out

    def in_order(self, s: Let) -> tuple[Operand, ...]:
        """The operands that a named tuple is made of, in the order of its fields."""
        fields, keywords = self.types[s.target].fields, tuple(s.detail or ())
        given = dict(zip(fields, s.args[1 : len(s.args) - len(keywords)], strict=False))
        given |= dict(zip(keywords, s.args[len(s.args) - len(keywords) :], strict=True))
        return tuple(given[name] for name in fields)

    def copies(self, target: str, value: Operand, line: int) -> list[Stmt]:
        """target = value, part by part."""
        parts = self.parts(target)
        out: list[Stmt] = [Let(target, "copy", (value,), None, line)]
        if parts is not None and isinstance(value, Var):
            for part, other in zip(parts, self.parts(value.name) or (), strict=True):
                out += self.copies(part, Var(other), line)
        elif parts is not None and isinstance(value, Const):
            for part, each in zip(parts, value.value, strict=True):
                out += self.copies(part, Const(each), line)
        return out
