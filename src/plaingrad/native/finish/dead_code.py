"""Dead code elimination: statements whose value is not read, and that can neither raise nor write, are dropped.

In a user's own code only what surely cannot raise is dropped; in a reverse sweep everything was computed before, in
the forward sweep, so nothing in it raises.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plaingrad.native.program.ir import (
    RESULT,
    Break,
    Const,
    For,
    If,
    Let,
    Loop,
    Program,
    Raise,
    Stmt,
    Var,
    operands,
)
from plaingrad.native.runtime.helpers import trips
from plaingrad.native.runtime.workspace import room, room_from

SAFE = frozenset(("copy", "tuple", "slice"))
COMPUTING = frozenset(("binary", "unary", "compare", "item", "attribute"))
PURE_MODULES = ("math", "cmath", "numpy", "plaingrad.rules", "plaingrad.native.rules.scalars")


def without_dead(program: Program) -> Program:
    """`program` without statements that nothing needs."""
    body, _ = _Sweep(program).body(program.body, {RESULT}, None)
    return replace(program, body=body)


def is_pure(f: Any) -> bool:
    """Whether a function does nothing but return a value."""
    if f in (len, float, int, complex, abs, min, max, trips, room, room_from):
        return True
    module = str(getattr(f, "__module__", None) or "")
    within = any(module == pure or module.startswith(f"{pure}.") for pure in PURE_MODULES)
    return within and "random" not in module


class _Sweep:
    """Backward over a program, with the variables that are read later."""

    def __init__(self, program: Program) -> None:
        self.own = program.own
        self.backward = program.backward

    def is_droppable(self, s: Let) -> bool:
        """Whether a statement has no effect but its value."""
        if s.op in SAFE:
            return True
        if not (self.backward or s.target in self.own):
            return False
        if s.op in COMPUTING:
            return True
        if s.op == "method":
            return s.detail[0] in ("conjugate", "copy")
        return s.op == "call" and is_pure(getattr(s.args[0], "value", None)) and "out" not in (s.detail or ())

    def body(self, body: list[Stmt], live: set[str], behind: set[str] | None) -> tuple[list[Stmt], set[str]]:
        """(the statements that are needed, the variables that have to have a value before them).

        Args:
            body: statements.
            live: the variables read behind them.
            behind: the variables read behind the innermost loop.
        """
        out: list[Stmt] = []
        live = set(live)
        for s in reversed(body):
            if isinstance(s, Let):
                if s.target not in live and self.is_droppable(s):
                    continue
                live.discard(s.target)
            elif isinstance(s, If):
                then, left = self.body(s.then, live, behind)
                orelse, right = self.body(s.orelse, live, behind)
                if not then and not orelse:
                    continue
                live = left | right
                s = If(s.test, then, orelse, s.line)
            elif isinstance(s, (For, Loop)):
                inner, live = self.loop(s, live)
                if isinstance(s, For) and not inner and (self.backward or isinstance(s.step, Const)):
                    continue
                s = replace(s, body=inner)
            elif isinstance(s, Break):
                live = set(behind or ())
            elif isinstance(s, Raise):
                live = set()
            live.update(a.name for a in operands(s) if isinstance(a, Var))
            out.append(s)
        return out[::-1], live

    def loop(self, s: For | Loop, live: set[str]) -> tuple[list[Stmt], set[str]]:
        """(the needed statements of a loop's body, what has to have a value before it)."""
        top = set(live) if isinstance(s, For) else set()
        while True:
            inner, needed = self.body(s.body, top, live)
            if isinstance(s, For):
                needed.discard(s.target)
            if needed <= top:
                return inner, top | needed
            top |= needed
