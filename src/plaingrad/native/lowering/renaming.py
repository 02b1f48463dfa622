"""Renaming: a name for every value of a variable that is assigned several times, which is what the transforms take.

The front end gives such programs. Passes that make a variable change as it goes rename it here: every assignment gets
a new name, and where ways meet (behind a branch, at the top of a loop) a name that is assigned at the end of each way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from plaingrad.native.program.ir import (
    Break,
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Raise,
    Stmt,
    Store,
    Var,
    breaks,
    statements,
    without_assignments,
)

Names = dict[str, str]  # variable -> the name that has its value now


def with_one_name(body: list[Stmt], names: Names) -> list[Stmt]:
    """`body` with `names[x]` for every x in `names`, all of which are only other names for those."""
    kept = without_assignments(body, set(names))
    return _Renamer(set(), lambda name: name).body(kept, dict(names))


def versioned(body: list[Stmt], changing: set[str], fresh: Callable[[str], str]) -> list[Stmt]:
    """`body` with names of their own for the values of the variables `changing`.

    Args:
        body: the statements of a program.
        changing: the variables; none of them is a parameter.
        fresh: `fresh(variable)` is a new variable of the same type; `fresh("")` a new flag.
    """
    return _Renamer(changing, fresh).body(body, {})


class _Renamer:
    def __init__(self, changing: set[str], fresh: Callable[[str], str]) -> None:
        self.changing = changing
        self.fresh = fresh
        # of the loops around: variable -> its name where the loop is left; the flag of a `for` that it is left
        self.ways_out: list[tuple[Names, str]] = []

    def body(self, body: list[Stmt], now: Names) -> list[Stmt]:
        """Statements; `now` is brought up to date."""
        out: list[Stmt] = []
        for s in body:
            self.statement(s, now, out)
        return out

    def statement(self, s: Stmt, now: Names, out: list[Stmt]) -> None:
        """One statement."""
        if isinstance(s, Let):
            args = tuple(self.read(a, now) for a in s.args)
            out.append(replace(s, args=args, target=self.assigned(s.target, now)))
        elif isinstance(s, Do):
            out.append(Do(replace(s.call, args=tuple(self.read(a, now) for a in s.call.args)), s.line))
        elif isinstance(s, Store):
            parts = (self.read(a, now) for a in (s.array, s.index, s.value))
            out.append(Store(*parts, s.line))
        elif isinstance(s, InPlace):
            out.append(InPlace(self.read(s.array, now), s.op, self.read(s.value, now), s.line))
        elif isinstance(s, Raise):
            out.append(replace(s, args=tuple(self.read(a, now) for a in s.args)))
        elif isinstance(s, Break):
            names, flag = self.ways_out[-1]
            out += self.carried(names, now, s.line)
            out += [Let(flag, "copy", (Const(True),), None, s.line), s] if flag else [s]
        elif isinstance(s, If):
            self.branch(s, now, out)
        else:
            self.loop(s, now, out)

    def read(self, a: Operand, now: Names) -> Operand:
        """An operand by its present name."""
        return Var(now.get(a.name, a.name)) if isinstance(a, Var) else a

    def assigned(self, name: str, now: Names) -> str:
        """The name of a new value."""
        if name in self.changing:
            now[name] = self.fresh(name)
        return now.get(name, name)

    def carried(self, to: Names, now: Names, line: int) -> list[Stmt]:
        """The values of now under the names `to`."""
        pairs = [(new, now[name]) for name, new in to.items() if name in now and now[name] != new]
        return [Let(new, "copy", (Var(old),), None, line) for new, old in pairs]

    def branch(self, s: If, now: Names, out: list[Stmt]) -> None:
        """A branch: behind it the values of both arms have one name."""
        test = self.read(s.test, now)
        envs = (dict(now), dict(now))
        then, orelse = self.body(s.then, envs[0]), self.body(s.orelse, envs[1])
        going = [env for env, arm in zip(envs, (then, orelse), strict=True) if not leaves(arm)]
        if len(going) == 1:
            now.update(going[0])
        elif going:
            met = {
                name: self.fresh(name)
                for name in sorted(envs[0] | envs[1])
                if envs[0].get(name) != envs[1].get(name)
            }
            then = at_end(then, self.carried(met, envs[0], s.line))
            orelse = at_end(orelse, self.carried(met, envs[1], s.line))
            now.update(met)
        out.append(If(test, then, orelse, s.line))

    def loop(self, s: For | Loop, now: Names, out: list[Stmt]) -> None:
        """A loop: what it changes has one name at its top, another where the loop is left."""
        inside = {x.target for x in statements(s.body) if isinstance(x, Let)} & self.changing
        top = {name: self.fresh(name) for name in sorted(inside)}
        leaves_early = any(isinstance(x, Break) for x in own_statements(s.body))
        end = {name: self.fresh(name) for name in top} if leaves_early else {}
        flag = self.fresh("") if leaves_early and isinstance(s, For) and end else ""
        if flag:
            out.append(Let(flag, "copy", (Const(False),), None, s.line))
        out += self.carried(top, now, s.line)
        if isinstance(s, For):
            s = replace(
                s, start=self.read(s.start, now), stop=self.read(s.stop, now), step=self.read(s.step, now)
            )
        before = {name for name in top if name in now}
        env = {**now, **{name: top[name] for name in before}}
        self.ways_out.append((end, flag))
        body = self.body(s.body, env)
        self.ways_out.pop()
        body = at_end(body, self.carried(top, env, s.line))
        out.append(replace(s, body=body))
        now.update(top if flag or not end else end)
        if flag:
            met = {name: self.fresh(name) for name in top}
            arms = (self.carried(met, {**now, **end}, s.line), self.carried(met, now, s.line))
            out.append(If(Var(flag), *arms, s.line))
            now.update(met)


def own_statements(body: list[Stmt]) -> Iterator[Stmt]:
    """The statements of `body` and its branches, without those of loops inside."""
    for s in body:
        yield s
        if isinstance(s, If):
            yield from own_statements(s.then)
            yield from own_statements(s.orelse)


def at_end(body: list[Stmt], more: list[Stmt]) -> list[Stmt]:
    """`body`, going on with `more` where it runs off its end; a jump out of a loop stays the end of its arm."""
    last = body[-1] if body else None
    if isinstance(last, (Break, Raise)):
        return body
    if isinstance(last, If) and (breaks([last]) or leaves(last.then) or leaves(last.orelse)):
        return [*body[:-1], replace(last, then=at_end(last.then, more), orelse=at_end(last.orelse, more))]
    return [*body, *more]


def leaves(body: list[Stmt]) -> bool:
    """Whether control never runs off the end of `body`."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, If):
        return leaves(last.then) and leaves(last.orelse)
    return isinstance(last, (Break, Raise))
