"""Argmin loops: what a loop keeps is that of one iteration, the only one that has a derivative.

`if d < best: best = d; k = j`, or `best = min(best, d)`: behind the loop `best` is the `d` of the iteration that was
the last to be taken. So the way forward keeps its number and nothing else, and the way back does that one iteration:
what its reverse reads is computed again, without tapes. Where no iteration was taken, `best` is what it was before.

An iteration has to be one that may be done again: it only computes numbers, from nothing that an earlier one has made
but for the tests that decide. What is kept by several tests (a minimum and a maximum) has a winner for each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from numba.core import types

from plaingrad.native.analysis.invariants import assigned_in
from plaingrad.native.loops.elements import ElementLoop, loop_of
from plaingrad.native.modes.transform import has_kinks
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Parts,
    Raise,
    Stmt,
    Store,
    Var,
    assigns,
    breaks,
    free_reads,
    operands,
    reads_of,
    statements,
    value_of,
)
from plaingrad.native.program.value_types import is_array
from plaingrad.native.reverse.recomputation import is_recomputable
from plaingrad.native.rules import scalars

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


@dataclass(slots=True)
class Choice:
    """A statement of a loop's body that decides whether an iteration is taken.

    Attributes:
        statement: a branch, or the minimum or maximum of what was kept and something else.
        takes: of a branch, whether its first arm takes.
        kept: what is kept -> the variable that holds it until the iteration ends.
    """

    statement: If | Let
    takes: bool
    kept: dict[str, str]

    @property
    def taken(self) -> list[Stmt]:
        """What an iteration does that is taken."""
        s = self.statement
        if isinstance(s, If):
            return s.then if self.takes else s.orelse
        [(kept, now)] = self.kept.items()
        other = next(a for a in s.args[1:] if a != Var(kept))
        return [Let(now, "copy", (other,), None, s.line)]


def replayed(rt: Reverse, s: For | Loop) -> Parts | None:
    """The parts of a loop of which one iteration counts, or None for any other."""
    if not isinstance(s, For) or not has_choices(s) or not rt.may_replay:
        return None
    loop = loop_of(rt, s)
    choices = _choices(rt, s, loop) if _is_pure(rt, loop) else []
    if not choices or s.target in rt.read_outside(s):
        return None
    state, setup = rt.trial(), len(rt.setup)
    body, before, after = s.body, list[Stmt](), list[Stmt]()
    for choice in choices:
        again = _again(rt, s, loop, choice, choices)
        if again is None or len(rt.setup) > setup:  # something has to be kept
            rt.undo(state)
            return None
        won, winner = rt.fresh("won"), rt.fresh("winner")
        rt.types[won], rt.types[winner] = types.boolean, rt.types[s.target]
        before += [
            Let(won, "copy", (Const(False),), None, s.line),
            Let(winner, "copy", (s.start,), None, s.line),
        ]
        note: list[Stmt] = [
            Let(won, "copy", (Const(True),), None, s.line),
            Let(winner, "copy", (Var(s.target),), None, s.line),
        ]
        body = [y for x in body for y in (_noted(rt, choice, note) if x is choice.statement else [x])]
        place = Let(s.target, "copy", (Var(winner),), None, s.line)
        after.append(If(Var(won), [place, *again], [], s.line))
    return Parts([*before, replace(s, body=body)], after)


def has_choices(s: Stmt) -> bool:
    """Whether a loop might be one of this form."""
    return (
        isinstance(s, For)
        and not breaks(s.body)
        and any(isinstance(x, If) or _is_extremum(x) for x in s.body)
    )


def _is_extremum(x: Stmt) -> bool:
    return (
        isinstance(x, Let)
        and x.op == "call"
        and value_of(x.args[0]) in (min, max)
        and len(x.args) == 3
        and not x.detail
    )


def _is_pure(rt: Reverse, loop: ElementLoop) -> bool:
    """Whether an iteration only computes numbers."""
    effects = any(isinstance(x, (Store, InPlace, Do, Raise, Loop)) for x in statements(loop.body))
    return not effects and not loop.written and not any(is_array(rt.types.get(x)) for x in loop.inside)


# -- what decides ------------------------------------------------------------------------------------------------------


def _choices(rt: Reverse, s: For, loop: ElementLoop) -> list[Choice]:
    """The statements that decide what `s` keeps; none if it hands on any other number with a derivative."""
    carried = loop.exposed | rt.read_outside(s)
    count = Counter(x.target for x in statements(s.body) if isinstance(x, (Let, For)))
    moves = {x.target: x.args[0] for x in s.body if isinstance(x, Let) and x.op == "copy"}
    found: dict[int, Choice] = {}
    for name in sorted(loop.inside & rt.active & carried):
        now = moves.get(name)
        if count[name] != 1 or not isinstance(now, Var) or not isinstance(rt.types.get(name), types.Float):
            return []
        made = [x for x in s.body if assigns(x, now.name)]
        takes = _takes(made[0], name, now.name) if len(made) == 1 else None
        if takes is None or rt.types.get(now.name) != rt.types[name]:
            return []
        choice = found.setdefault(id(made[0]), Choice(made[0], takes, {}))  # type: ignore[arg-type]
        if choice.takes != takes or (choice.kept and isinstance(made[0], Let)):
            return []
        choice.kept[name] = now.name
    own = {now for choice in found.values() for now in choice.kept.values()}
    for choice in found.values():
        other = choice.statement
        keeping = (other.orelse if choice.takes else other.then) if isinstance(other, If) else []
        if any(isinstance(x, Let) and x.target in rt.active - own for x in statements(keeping)):
            return []
    return list(found.values())


def _takes(x: Stmt, name: str, now: str) -> bool | None:
    """Whether the first arm of a branch takes, of which the other leaves a variable; None where neither is so."""
    if isinstance(x, If):
        for takes, keeping, taking in ((True, x.orelse, x.then), (False, x.then, x.orelse)):
            kept = [y for y in keeping if assigns(y, now)]
            if len(kept) == 1 and kept[0] == Let(
                now, "copy", (Var(name),), None, getattr(kept[0], "line", 0)
            ):
                return takes if any(isinstance(y, Let) and y.target == now for y in taking) else None
        return None
    return True if _is_extremum(x) and operands(x)[1:].count(Var(name)) == 1 else None


def _noted(rt: Reverse, choice: Choice, note: list[Stmt]) -> list[Stmt]:
    """The statement that decides, with what notes that an iteration is taken."""
    s = choice.statement
    if isinstance(s, If):
        then, orelse = ([*s.then, *note], s.orelse) if choice.takes else (s.then, [*s.orelse, *note])
        return [If(s.test, then, orelse, s.line)]
    first, second = s.args[1:]
    test = rt.fresh("taken")
    rt.types[test] = types.boolean
    before = "<" if value_of(s.args[0]) is min else ">"
    beats = Let(test, "compare", (second, first), before, s.line)  # else the first stays, of equals too
    is_second = first == Var(next(iter(choice.kept)))
    return [beats, s, If(Var(test), note if is_second else [], [] if is_second else note, s.line)]


# -- the iteration that counts -----------------------------------------------------------------------------------------


def _again(rt: Reverse, s: For, loop: ElementLoop, one: Choice, every: list[Choice]) -> list[Stmt] | None:
    """The reverse of an iteration that `one` takes, with what it reads; None where that may not be done again."""
    kept = {name for choice in every for pair in choice.kept.items() for name in pair}
    others = [choice.statement for choice in every if choice is not one]
    skipped = {name for choice in every if choice is not one for name in choice.kept}
    body: list[Stmt] = []
    for x in s.body:
        if x is one.statement:
            body += one.taken
        elif not any(x is y for y in others) and not (isinstance(x, Let) and x.target in skipped):
            body.append(x)
    moves = {id(x) for x in body if isinstance(x, Let) and x.target in one.kept}
    for x in statements(body):
        reads = any(isinstance(a, Var) and a.name in kept for a in operands(x))
        if reads and id(x) not in moves and not (isinstance(x, Let) and x.target not in rt.active):
            return None
    inner = rt.body(body)
    needed = _needed(rt, s, inner)
    if needed is None:
        return None
    missing = (loop.exposed | kept | loop.inside - assigned_in([*needed, *inner.backward])) - {s.target}
    if free_reads([*needed, *inner.backward], {s.target}) & loop.inside & missing:
        return None  # made by an earlier iteration, or by what decides on another winner
    return [*needed, *inner.backward]


def _needed(rt: Reverse, s: For, inner: Parts) -> list[Stmt] | None:
    """The statements of an iteration whose results its reverse reads; None if some may not be done again."""
    wanted = free_reads(inner.backward, {s.target})
    found: list[Stmt] = []
    for x in reversed(inner.forward):
        targets = {y.target for y in statements([x]) if isinstance(y, (Let, For))}
        if targets & wanted:
            if not all(_may_be_done_again(rt, y) for y in statements([x])):
                return None
            found.insert(0, x)
            wanted |= reads_of([x])
    return found


def _may_be_done_again(rt: Reverse, x: Stmt) -> bool:
    """Whether a statement has the same result on the way back, but for the last bits."""
    if isinstance(x, For):
        return True
    if not isinstance(x, Let):
        return False
    if is_recomputable(rt, x) and x.target not in rt.machinery:
        return True
    f = value_of(x.args[0]) if x.op == "call" else None
    is_smooth = not has_kinks(x) and not x.detail
    return x.op == "binary" and x.detail == "**" or (f is not None and is_smooth and _has_row(f))


def _has_row(f: object) -> bool:
    try:
        return scalars.row_of(f) is not None
    except TypeError:
        return False
