"""Tuples taken apart: every tuple that carries derivatives also exists as its parts, which rules then see."""

from __future__ import annotations

from typing import Any

from numba.core import types

from plaingrad.errors import NativeError
from plaingrad.native.activity import has_tangent
from plaingrad.native.tree import RESULT, Const, For, If, Let, Loop, Operand, Program, Stmt, Var


def exploded(program: Program) -> tuple[Program, list[str], dict[str, list[str]]]:
    """(the program with tuples also in parts, names of the parts of the result, parameter -> names of its leaves)."""
    work = _Exploder(program)
    leaves: dict[str, list[str]] = {}
    setup: list[Stmt] = []
    for name in program.params:
        leaves[name] = work.unpack(name, program.types[name], setup)
    body = setup + work.body(program.body)
    results = work.leaves(RESULT, program.result)
    return (
        Program(program.name, program.file, program.params, body, work.types, program.result),
        results,
        leaves,
    )


class _Exploder:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.types = dict(program.types)

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
                s = For(s.target, s.start, s.stop, s.step, self.body(s.body), s.line)
            elif isinstance(s, Loop):
                s = Loop(self.body(s.body), s.line)
            elif isinstance(s, Let):
                out += self.let(s)
                continue
            out.append(s)
        return out

    def let(self, s: Let) -> list[Stmt]:
        """One assignment, with the parts of its result."""
        parts = self.parts(s.target)
        if s.op == "item" and isinstance(s.args[0], Var):
            inside = self.parts(s.args[0].name)
            if inside is not None:
                if not isinstance(s.args[1], Const):
                    if has_tangent(self.types.get(s.target)):
                        raise NativeError(
                            f"a tuple is indexed by a variable at {self.program.file}:{s.line}; natively that has no "
                            "derivative.\n  To go on: use an array, or tier='plain'.\n  See docs: errors#native"
                        )
                    return [s]
                return self.copies(s.target, Var(inside[s.args[1].value]), s.line)
        if parts is None:
            return [s]
        if s.op == "tuple":
            out: list[Stmt] = []
            for part, value in zip(parts, s.args, strict=True):
                out += self.copies(part, value, s.line)
            return [*out, s]
        if s.op == "copy":
            return self.copies(s.target, s.args[0], s.line)
        out = [s]
        self.unpack(s.target, self.types[s.target], out)
        return out

    def copies(self, target: str, value: Operand, line: int) -> list[Stmt]:
        """target = value, part by part."""
        parts = self.parts(target)
        out: list[Stmt] = [Let(target, "copy", (value,), None, line)]
        if parts is not None and isinstance(value, Var):
            for part, other in zip(parts, self.parts(value.name) or (), strict=True):
                out += self.copies(part, Var(other), line)
        return out
