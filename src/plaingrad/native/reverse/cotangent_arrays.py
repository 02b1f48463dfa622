"""Cotangents of arrays as variables of the reverse sweep: exchanged, not copied; set to zero only where that shows.

The reverse transform writes `move` and `clear` where the cotangent of an owned array (`immutable`) ends, and `Choice`
where a loop can either assign or add. `resolved` follows the reverse sweep and keeps book of the buffers that are
*pending*: zero by right, with anything in them. A move into a pending buffer exchanges two names; a choice with a
pending target assigns; anything else that touches a pending buffer has it filled with zeros first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Ref,
    Stmt,
    Var,
    operands,
    statements,
)
from plaingrad.native.reverse import first_contribution


def move(to: Var, of: Var, line: int = 0) -> Stmt:
    """to += of; of = 0."""
    return Do(Let("_", "call", (Ref(_MOVE, "move"), to, of), (), line), line)


def clear(x: Var) -> Stmt:
    """x = 0."""
    return Do(Let("_", "call", (Ref(_CLEAR, "clear"), x), ()))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Stands for the test of a branch between two ways to do the same: to assign all of `targets`, and to add to them.

    Attributes:
        targets: the buffers that receive.
        spent: those whose contents the assigning way uses up; they are zero by right behind it.
    """

    targets: frozenset[str]
    spent: frozenset[str]


def choose(choice: Choice, assigning: list[Stmt], adding: list[Stmt], line: int = 0) -> Stmt:
    """A branch that `resolved` decides: `assigning` where all targets are pending, else `adding`."""
    return If(Ref(choice, "choice"), assigning, adding, line)


_MOVE, _CLEAR = "move", "clear"


def resolved(body: list[Stmt], owned: set[str], live: set[str]) -> list[Stmt]:
    """A reverse sweep, or another run of statements, without `move`, `clear` and `Choice`.

    Args:
        body: its statements.
        owned: the names of all buffers.
        live: those that hold something when it begins; the others hold anything.
    """
    return _Resolver(body, owned).body(body, owned - live)


def touched(body: list[Stmt]) -> set[str]:
    """The variables that statements read or assign, at any depth."""
    found = {a.name for s in statements(body) for a in operands(s) if isinstance(a, Var)}
    for s in statements(body):
        if isinstance(s, (Let, For)):
            found.add(s.target)
    return found


def _pseudo(s: Stmt) -> Any:
    """`_MOVE` or `_CLEAR`, or the choice that `s` is about; else None."""
    if isinstance(s, If) and isinstance(s.test, Ref) and isinstance(s.test.value, Choice):
        return s.test.value
    if isinstance(s, Do) and s.call.op == "call" and isinstance(s.call.args[0], Ref):
        value = s.call.args[0].value
        return value if value is _MOVE or value is _CLEAR else None
    return None


class _Resolver:
    def __init__(self, body: list[Stmt], owned: set[str]) -> None:
        self.owned = owned
        self.reads = Counter(a.name for s in statements(body) for a in operands(s) if isinstance(a, Var))
        self.count = 0
        self.held: dict[str, str] = {}  # a buffer that another one has adopted -> the one to be had for it

    def body(self, body: list[Stmt], pending: set[str]) -> list[Stmt]:
        """Statements resolved; `pending` is brought up to date."""
        out: list[Stmt] = []
        for k, s in enumerate(body):
            kind = _pseudo(s)
            given = first_contribution.contribution(s)
            if isinstance(kind, Choice):
                out += self.chosen(kind, s, pending)
            elif kind is _CLEAR:
                names = {x.name for x in s.call.args[1:]}  # type: ignore[union-attr]
                out += [
                    first_contribution.give_back(name, self.held.pop(name))
                    for name in sorted(names & self.held.keys())
                ]
                pending |= self.owned & names
            elif given is not None and given.to in pending:
                out += self.first(given, body, k, pending)
            elif kind is _MOVE:
                out += self.moved(s, pending)
            elif isinstance(s, If):
                out += self.branch(s, pending)
            elif isinstance(s, (For, Loop)):
                out += self.loop(s, pending)
            else:
                out += self.filled(touched([s]), pending)
                out.append(s)
        return out

    def filled(self, names: set[str], pending: set[str]) -> list[Stmt]:
        """Zeros for those of `names` that are pending."""
        found = sorted(names & pending)
        pending -= set(found)
        return [Do(Let("_", "method", (Var(name), Const(0.0)), ("fill", ()))) for name in found]

    def first(
        self, given: first_contribution.Contribution, body: list[Stmt], k: int, pending: set[str]
    ) -> list[Stmt]:
        """The first contribution to a pending buffer, body[k]: taken as it is where that is possible."""
        s = body[k]
        line = s.line  # type: ignore[union-attr]
        out = self.filled(touched([s]) - {given.to}, pending)
        product = first_contribution.put(given, line)
        term = given.of[0]
        if product is not None:
            pending.discard(given.to)
            return [*out, product]
        if isinstance(term, Var):
            if term.name in self.owned:
                if term.name not in self.held and first_contribution.ends_soon(
                    term.name, given.to, body[k + 1 :], lambda x: self.ends(x, term.name)
                ):
                    pending.discard(given.to)
                    self.count += 1
                    held = self.held[term.name] = f"held_buffer_{self.count}"
                    out.append(Let(held, "copy", (Var(given.to),), None, line))
                    return [*out, first_contribution.take(given.to, held, term, line)]
            elif first_contribution.is_fresh(term.name, body[:k], self.reads[term.name]):
                pending.discard(given.to)
                return [*out, first_contribution.take(given.to, given.to, term, line)]
        return [*out, *self.filled({given.to}, pending), s]

    def ends(self, s: Stmt, name: str) -> bool:
        """Whether `s` says that a buffer is zero from here on."""
        return _pseudo(s) is _CLEAR and Var(name) in s.call.args[1:]  # type: ignore[union-attr]

    def chosen(self, choice: Choice, s: Any, pending: set[str]) -> list[Stmt]:
        """The way that fits."""
        assign = choice.targets <= pending and choice.targets <= touched(s.then)
        ways = s.then if assign else s.orelse
        out = self.filled(touched(ways) - (choice.targets if assign else set()), pending)
        if assign:
            pending -= choice.targets
            pending |= choice.spent & self.owned
        return [*out, *ways]

    def moved(self, s: Any, pending: set[str]) -> list[Stmt]:
        """to += of; of = 0."""
        _, to, of = s.call.args
        if of.name in pending:
            return []
        pending.add(of.name)
        if to.name not in pending:
            return [InPlace(to, "+", of, s.line)]
        pending.discard(to.name)
        self.count += 1
        held = f"held_buffer_{self.count}"
        return [
            Let(held, "copy", (to,), None, s.line),
            Let(to.name, "copy", (of,), None, s.line),
            Let(of.name, "copy", (Var(held),), None, s.line),
        ]

    def branch(self, s: If, pending: set[str]) -> list[Stmt]:
        """Both arms, at whose ends the same buffers are pending."""
        one, other = set(pending), set(pending)
        then, orelse = self.body(s.then, one), self.body(s.orelse, other)
        both = one & other
        then += self.filled(one - both, one)
        orelse += self.filled(other - both, other)
        pending.clear()
        pending |= both
        return [replace(s, then=then, orelse=orelse)]

    def loop(self, s: For | Loop, pending: set[str]) -> list[Stmt]:
        """A loop: what is pending at the top of an iteration is so at its end."""
        mentioned = touched(s.body) & self.owned
        held = pending & mentioned
        while True:
            end = set(held)
            count = self.count
            body = self.body(s.body, end)
            if held <= end:
                break
            held &= end
            self.count = count
        body += self.filled(end - held, end)
        out = self.filled((pending & mentioned) - held, pending)
        pending -= mentioned
        pending |= held
        return [*out, replace(s, body=body)]
