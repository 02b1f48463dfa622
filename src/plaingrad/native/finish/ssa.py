"""SSA form for derived programs, with copy propagation: cotangents begin with the first contribution to them.

Numba brings a program into this form itself, in time that grows with the square of the number of assignments to a
name; and LLVM does not know that 0.0 + x is x (it is not for x = -0.0). Where branches meet, and where an iteration
ends, values move into a variable of the meeting place; only those variables are assigned more than once.

A cotangent that is known to be zero is not computed with: what it is multiplied with is skipped, even inf and nan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba.core import types

from plaingrad.native.finish.preaccumulate import preaccumulated
from plaingrad.native.finish.ssa_values import (
    COMPLEX_ZERO,
    ZERO,
    Exit,
    OpenLoop,
    Scope,
    Values,
    names_assigned,
)
from plaingrad.native.program.ir import (
    RESULT,
    Break,
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Program,
    Raise,
    Stmt,
    Store,
    Var,
    breaks,
    operands,
    statements,
)


def single_assignment(program: Program) -> Program:
    """`program` in single-assignment form."""
    work = _Single(program)
    top = Scope(None)
    for name in program.params:
        top.local[name] = Var(name)
    body: list[Any] = []
    falls = work.body(program.body, top, body)
    if falls and RESULT not in work.unsure:
        value = top.find(RESULT)
        if value is not None and value != Var(RESULT):
            body.append(Let(RESULT, "copy", (value,)))
    return replace(program, body=_flat(body), types=work.types, own=frozenset(work.own))


class _Single(Values):
    # -- statements ------------------------------------------------------------------------------------------------

    def body(self, body: list[Stmt], scope: Scope, out: list[Any]) -> bool:
        """Statements, appended to `out`; whether control runs off their end."""
        for s in body:
            if isinstance(s, Let):
                self.let(s, scope, out)
            elif isinstance(s, If):
                if not self.branch(s, scope, out):
                    return False
            elif isinstance(s, (For, Loop)):
                if not self.loop(s, scope, out):
                    return False
            elif isinstance(s, Break):
                found = Exit(self.inside(scope))
                self.loops[-1].exits.append(found)
                out += [found, s]
                return False
            else:
                self.other(s, scope, out)
                if isinstance(s, Raise):
                    return False
        return True

    def other(self, s: Stmt, scope: Scope, out: list[Any]) -> None:
        """A statement that assigns nothing."""
        if isinstance(s, Store):
            array, index, value = (self.read(x, scope) for x in (s.array, s.index, s.value))
            last = out[-1] if out else None
            same = isinstance(last, Let) and last.op == "item" and last.args == (array, index)
            if not (same and value == Var(last.target)):  # type: ignore[union-attr]
                out.append(Store(array, index, value, s.line))
        elif isinstance(s, InPlace):
            out.append(InPlace(self.read(s.array, scope), s.op, self.read(s.value, scope), s.line))
        elif isinstance(s, Do):
            args = tuple(self.read(a, scope) for a in s.call.args)
            out.append(Do(replace(s.call, args=args), s.line))
        elif isinstance(s, Raise):
            out.append(Raise(s.exception, tuple(self.read(a, scope) for a in s.args), s.line))

    def let(self, s: Let, scope: Scope, out: list[Any]) -> None:
        """An assignment."""
        args = tuple(self.read(a, scope) for a in s.args)
        value = self.simplified(s, args)
        if value is not None:
            self.bind(s.target, value, scope, out, s.line)
            return
        if s.target in self.own and s.target not in self.types:
            t = self.number_type(s, args)
            if t is not None:
                self.types[s.target] = t
        key = self.key_of(s, args)
        before = scope.found(key) if key is not None else None
        if before is not None:
            self.bind(s.target, Var(before), scope, out, s.line)
            return
        self.assign(s.target, replace(s, args=args), scope, out)
        if key is not None:
            scope.computed[key] = out[-1].target

    # -- branches --------------------------------------------------------------------------------------------------

    def branch(self, s: If, scope: Scope, out: list[Any]) -> bool:
        """A branch: names with a value on both ways that differ move into one variable."""
        left, right = Scope(scope), Scope(scope)
        then: list[Any] = []
        orelse: list[Any] = []
        then_falls = self.body(s.then, left, then)
        else_falls = self.body(s.orelse, right, orelse)
        out.append(If(self.read(s.test, scope), then, orelse, s.line))
        if not (then_falls and else_falls):
            if then_falls or else_falls:
                scope.local.update((left if then_falls else right).local)
            return then_falls or else_falls
        for name in list(dict.fromkeys((*left.local, *right.local))):
            a, b = left.find(name), right.find(name)
            if a is None or b is None:
                continue  # without a value on one way, so it is not read before it has got one
            if a == b and _is_zero(a) == _is_zero(b):
                scope.local[name] = a
                continue
            meeting = self.version(name)
            then.append(Let(meeting, "copy", (a,), None, s.line))
            orelse.append(Let(meeting, "copy", (b,), None, s.line))
            scope.local[name] = Var(meeting)
        return True

    # -- loops -----------------------------------------------------------------------------------------------------

    def inside(self, scope: Scope) -> dict[str, Operand]:
        """What the names that the innermost open loop has changed stand for."""
        found: dict[str, Operand] = {}
        top = self.loops[-1].scope
        while True:
            found = {**scope.local, **found}
            if scope is top:
                return found
            assert scope.outside is not None
            scope = scope.outside

    def loop(self, s: For | Loop, scope: Scope, out: list[Any]) -> bool:
        """A loop: names with a value before it that it assigns live in one variable at the top of every iteration."""
        bounds = tuple(self.read(x, scope) for x in operands(s))
        if isinstance(s, For):
            s = self.with_one_chain(s, scope)
        inner = Scope(scope)
        effects = self.effects_of(s)
        homes: dict[str, str] = {}
        for name in names_assigned([s]):
            value = scope.find(name)
            if value is None or name in self.unsure:
                continue
            if _is_zero(value) and effects.get(name, "varies") != "varies":
                continue  # zero it stays at the top of every iteration
            homes[name] = self.version(name)
            out.append(Let(homes[name], "copy", (value,), None, s.line))
            inner.local[name] = Var(homes[name])
        body: list[Any] = []
        self.loops.append(OpenLoop(inner))
        if isinstance(s, For):
            counter = s.target
            if counter not in self.unsure:
                counter = self.version(counter)
                inner.local[s.target] = Var(counter)
            made: For | Loop = For(counter, *bounds, body, s.line)
        else:
            made = Loop(body, s.line)
        if self.body(s.body, inner, body):
            body += self.moves({homes[name]: inner.local[name] for name in homes}, s.line)
        exits = self.loops.pop().exits
        out.append(made)
        if isinstance(s, Loop):  # what every way out has a value for
            if not exits:
                return False
            for name in exits[0].values:
                if name not in homes and name not in self.unsure and all(name in e.values for e in exits):
                    values = [e.values[name] for e in exits]
                    if all(map(_is_zero, values)):
                        scope.local[name] = values[0]
                    else:
                        homes[name] = self.version(name)
        for e in exits:
            e.moves = self.moves({home: e.values[name] for name, home in homes.items()}, s.line)
        scope.local.update({name: Var(home) for name, home in homes.items()})
        return True

    def with_one_chain(self, s: For, scope: Scope) -> For:
        """A loop of the reverse sweep with `preaccumulated` body where that goes, else as it is."""
        effects = self.effects_of(s)
        zero: set[str] = set()
        carried: list[str] = []
        for name in effects:
            value = scope.find(name)
            if name in self.unsure:
                return s
            if _is_zero(value) and effects[name] != "varies":
                zero.add(name)
            elif value is not None:
                carried.append(name)
        if not carried or any(self.types.get(name) != types.float64 for name in carried):
            return s
        body = preaccumulated(s, carried, zero, self.own)
        if body is None:
            return s
        new = names_assigned(body).keys() - names_assigned(s.body).keys()
        if not new.isdisjoint(self.taken - self.chained):
            return s
        self.chained |= new
        self.taken |= new
        self.own |= new
        self.rewritten.append(replace(s, body=body))
        return self.rewritten[-1]

    def moves(self, wanted: dict[str, Operand], line: int) -> list[Stmt]:
        """All of `wanted`, variable -> value, at once: one after the other, a value held where moves go in circles."""
        left = {to: value for to, value in wanted.items() if value != Var(to)}
        out: list[Stmt] = []
        readers: dict[str, int] = {}
        for value in left.values():
            if isinstance(value, Var):
                readers[value.name] = readers.get(value.name, 0) + 1
        ready = [to for to in left if not readers.get(to)]
        while left:
            if not ready:
                to = next(iter(left))
                held = self.version(to)
                out.append(Let(held, "copy", (Var(to),), None, line))
                left = {t: Var(held) if v == Var(to) else v for t, v in left.items()}
                readers[to] = 0
                ready = [to]
            to = ready.pop()
            value = left.pop(to)
            out.append(Let(to, "copy", (value,), None, line))
            if isinstance(value, Var) and value.name in readers:
                readers[value.name] -= 1
                if not readers[value.name] and value.name in left:
                    ready.append(value.name)
        return out

    def effects_of(self, s: For | Loop) -> dict[str, str]:
        """What an iteration does to the cotangents that it assigns, of those that are zero before: see `_effects`."""
        found = self.effects.get(id(s))
        if found is None:
            found = self._effects(s.body)
            if breaks(s.body):
                found = dict.fromkeys(found, "keeps")
                for inner in statements(s.body):
                    if isinstance(inner, Let) and inner.target in found and not self.is_zeroing(inner):
                        found[inner.target] = "varies"
            self.effects[id(s)] = found
        return found

    def _effects(self, body: list[Stmt]) -> dict[str, str]:
        """cotangent -> "zeroes" if it is zero at the end, "keeps" if it is so if it was before, else "varies"."""
        found: dict[str, str] = {}
        for s in body:
            if isinstance(s, Let) and s.target in self.own:
                found[s.target] = "zeroes" if self.is_zeroing(s) else "varies"
            elif isinstance(s, If):
                then, orelse = self._effects(s.then), self._effects(s.orelse)
                for name in dict.fromkeys((*then, *orelse)):
                    both = {then.get(name, "keeps"), orelse.get(name, "keeps")}
                    _follow(
                        found,
                        name,
                        both.pop() if len(both) == 1 else "varies" if "varies" in both else "keeps",
                    )
            elif isinstance(s, (For, Loop)):
                for name, effect in self.effects_of(s).items():
                    _follow(found, name, "varies" if effect == "varies" else "keeps")
        return found

    def is_zeroing(self, s: Let) -> bool:
        """Whether an assignment makes a cotangent zero."""
        a = s.args[0] if s.args else None
        return s.op == "copy" and isinstance(a, Const) and type(a.value) in (float, complex) and not a.value


def _follow(found: dict[str, str], name: str, effect: str) -> None:
    if effect != "keeps" or name not in found:
        found[name] = effect


def _is_zero(x: Operand | None) -> bool:
    return x is ZERO or x is COMPLEX_ZERO


def _flat(body: list[Any]) -> list[Stmt]:
    """`body` with the moves at ways out of loops in their places."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Exit):
            out += s.moves
        elif isinstance(s, If):
            out.append(If(s.test, _flat(s.then), _flat(s.orelse), s.line))
        elif isinstance(s, (For, Loop)):
            out.append(replace(s, body=_flat(s.body)))
        else:
            out.append(s)
    return out
