"""Derived induction variables: what a counted loop adds to an integer in every iteration, as a formula.

`o += 1` in a nest of loops hands `o` from one iteration to the next, so that each one depends on those before it, and
reverse mode would keep `o` for each. Where what is added is the same in all iterations, the value is `start + k * step`
in iteration k, and behind the loop `start + n * step`, which makes it one more thing of that kind in the loop around.
What is too large for 64 bits has no value of its own in Numba's code either.
"""

from __future__ import annotations

from dataclasses import replace

from plaingrad.native.analysis.invariants import Invariants, assigned_in
from plaingrad.native.program.ir import (
    Const,
    For,
    Let,
    Operand,
    Program,
    Ref,
    Stmt,
    Var,
    breaks,
    reads_of,
    renamed,
    with_inner,
    without_assignments,
)
from plaingrad.native.runtime.helpers import trips

Terms = list[tuple[str, Operand]]  # signs, and what they stand before


def counters_as_formulas(program: Program) -> Program:
    """`program` with formulas for the integers to which its counted loops add."""
    work = _Counters(program)
    body = work.body(program.body)
    if not work.made:
        return program
    while dead := work.made - reads_of(body):
        body = without_assignments(body, dead)
        work.made -= dead
    return replace(program, body=body, types=work.known.types)


class _Counters:
    """The pass on one program.

    Attributes:
        known: what is known of its values.
        made: the variables that may be left out where nothing reads them.
    """

    def __init__(self, program: Program) -> None:
        self.known = Invariants(program)
        self.made: set[str] = set()

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """Statements, the innermost loops first."""
        out: list[Stmt] = []
        for s in body:
            s = with_inner(s, self.body)
            out += self.loop(s, out) if isinstance(s, For) and not breaks(s.body) else [s]
        return out

    def loop(self, s: For, out: list[Stmt]) -> list[Stmt]:
        """A loop behind the statements `out`, with what is done around it."""
        before: list[Stmt] = []
        after: list[Stmt] = []
        if s.step not in (Const(1), Const(-1)) or not self.known.is_integer(Var(s.target)):
            return [s]
        if not self.known.is_integer(s.start):
            return [s]
        moved = [
            x.target
            for x in s.body
            if isinstance(x, Let) and x.op == "copy" and self.known.is_integer(Var(x.target))
        ]
        for name in moved:
            made = self.formula(s, name, out)
            if made is not None:
                front, s, behind = made
                before += front
                after += behind
                self.known.learn([*before, s, *after])
        return [*before, s, *after]

    def formula(self, s: For, name: str, out: list[Stmt]) -> tuple[list[Stmt], For, list[Stmt]] | None:
        """The loop without the move that only adds to an integer, with what is done before and behind; or None."""
        inside = assigned_in([s])
        place, move = next((k, x) for k, x in enumerate(s.body) if isinstance(x, Let) and x.target == name)
        terms = self.added(name, move.args[0], inside)
        if not terms or name in reads_of(s.body[place + 1 :]):
            return None
        first = self.first(name, out, inside)
        if first is None:
            return None
        line, before = move.line, list[Stmt]()
        step: Operand = Const(0)
        for sign, term in terms:
            step = self.combined(before, step, sign, self.known.before(term, inside, before), line)
        up = s.step == Const(1)
        head: list[Stmt] = []
        k = (
            self.combined(head, Var(s.target), "-", s.start, line)
            if up
            else self.combined(head, s.start, "-", Var(s.target), line)
        )
        now = self.known.fresh(name)
        far = self.combined(head, k, "*", step, line)
        head.append(Let(now, "copy", (self.combined(head, first, "+", far, line),), None, line))
        count = self.known.fresh(f"{name}_count")
        after: list[Stmt] = [Let(count, "call", (Ref(trips, "trips"), s.start, s.stop, s.step), (), line)]
        whole = self.combined(after, Var(count), "*", step, line)
        after.append(Let(name, "copy", (self.combined(after, first, "+", whole, line),), None, line))
        self.made |= {name, count, now, *(x.name for x in move.args if isinstance(x, Var))} | assigned_in(
            [*before, *after]
        )
        self.known.assigned[name] = 1
        body = renamed([x for x in s.body if x is not move], {name: now})
        return before, replace(s, body=[*head, *body]), after

    def first(self, name: str, out: list[Stmt], inside: set[str]) -> Operand | None:
        """What a variable is before a loop that assigns it once; None if it is assigned elsewhere as well."""
        if self.known.assigned[name] != 2 or name not in inside:
            return None
        later: set[str] = set(inside)
        for k, s in reversed(list(enumerate(out))):
            if isinstance(s, Let) and s.target == name:
                x = s.args[0]
                if s.op != "copy" or not self.known.is_integer(x) or (isinstance(x, Var) and x.name in later):
                    return None
                if name in reads_of(out[k + 1 :]):
                    return None
                del out[k]
                return x
            later |= assigned_in([s])
        return None

    def added(self, name: str, x: Operand, inside: set[str]) -> Terms | None:
        """What an iteration adds to a variable, if x is its next value; None where that is something else."""
        if x == Var(name):
            return []
        d = self.known.definition(x)
        if (
            d is None
            or not isinstance(x, Var)
            or x.name not in inside
            or not all(map(self.known.is_integer, d.args))
        ):
            return None
        if d.op == "copy":
            return self.added(name, d.args[0], inside)
        if d.op != "binary" or d.detail not in ("+", "-"):
            return None
        a, b = d.args
        for one, other, sign in ((a, b, d.detail), *([(b, a, "+")] if d.detail == "+" else [])):
            if self.known.is_fixed(other, inside):
                terms = self.added(name, one, inside)
                return None if terms is None else [*terms, (sign, other)]
        return None

    def combined(self, out: list[Stmt], a: Operand, op: str, b: Operand, line: int) -> Operand:
        """a op b, by a statement that goes to `out` where it is needed."""
        if isinstance(a, Const) and isinstance(b, Const):
            value = {"+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value}[op]
            return Const((value + 2**63) % 2**64 - 2**63)
        if b == Const(0) and op in ("+", "-"):
            return a
        if a == Const(0) and op == "+":
            return b
        if op == "*" and Const(1) in (a, b):
            return a if b == Const(1) else b
        name = self.known.fresh("far")
        made = Let(name, "binary", (a, b), op, line)
        out.append(made)
        self.known.learn([made])
        return Var(name)
