"""Lists of numbers as arrays with room to spare, so that what goes through them has a derivative.

A list becomes an array and the number of its elements in use; `append` makes a larger array where the room is used up.
That is right as long as no second name sees the list when its length changes, so a list with two names whose length is
changed after it got the second stays as it is (and is refused where it carries a derivative), like lists of other
things and those that are used in other ways than the ones below.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import as_dtype

from plaingrad.native.lowering.list_uses import Uses, is_list
from plaingrad.native.lowering.renaming import leaves, versioned, with_one_name
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    Let,
    Loop,
    Operand,
    Program,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    operands,
    statements,
    unused,
    with_inner,
)
from plaingrad.native.runtime.declare import register_jitable
from plaingrad.native.runtime.helpers import place_in_list


@register_jitable
def place_to_insert(index, n):  # type: ignore[no-untyped-def]
    """The place that an element inserted into a list of `n` gets: the nearest one for an index that is out of range."""
    return max(index + n, 0) if index < 0 else min(index, n)


def without_lists(program: Program) -> Program:
    """`program` with arrays for the lists that allow it."""
    lists = {name for name, t in program.types.items() if is_list(t)}
    if not lists:
        return program
    others = other_names(program.body, lists)
    if others:
        program = replace(program, body=with_one_name(program.body, others))
        lists -= set(others)
    lists = Uses(program, lists).convertible()
    return _Converter(program, lists).program() if lists else program


def other_names(body: list[Stmt], lists: set[str]) -> dict[str, str]:
    """The lists that are only another name for one list that is made in one place, and that list."""
    made: dict[str, list[Let]] = {}
    for s in statements(body):
        if isinstance(s, Let) and s.target in lists:
            made.setdefault(s.target, []).append(s)
    inside = {s.target for loop in statements(body) if isinstance(loop, (For, Loop))
              for s in statements(loop.body) if isinstance(s, Let)}  # fmt: skip
    own = {name for name, every in made.items() if any(_copied(s) not in made for s in every)}
    while True:
        origins = _origins(made, own)
        others = {name: origin for name, origin in origins.items() if name != origin}
        stale: set[str] = set()
        _look_for_stale(body, {x: origin for x, origin in others.items() if origin in inside}, set(), stale)
        if not stale:
            return others
        own |= stale


def _copied(s: Let) -> str | None:
    """The variable that `s` gives another name to."""
    return s.args[0].name if s.op == "copy" and isinstance(s.args[0], Var) else None


def _origins(made: dict[str, list[Let]], own: set[str]) -> dict[str, str]:
    """Of every list the one that it is always another name for; those in `own`, and those of several lists, are new."""
    found = {name: name for name in own}
    changed = True
    while changed:  # optimistic: what is not found yet agrees with everything
        changed = False
        for name, every in made.items():
            known = {found[x] for s in every if (x := _copied(s)) in found}
            origin = found.get(name) if name in own or not known else known.pop() if len(known) == 1 else name
            if origin != found.get(name):
                found[name] = origin  # type: ignore[assignment]
                own |= {name} & {origin}
                changed = True
    return found


def _look_for_stale(body: list[Stmt], others: dict[str, str], fresh: set[str], stale: set[str]) -> None:
    """Enter in `stale` the names in `others` that may be read when their list has been made anew in a loop.

    Args:
        body: statements.
        others: names, and the lists that they are names for.
        fresh: the names that have been assigned since their list was made; it is brought up to date.
        stale: what is found.
    """
    for s in body:
        stale |= {a.name for a in operands(s) if isinstance(a, Var) and a.name in others} - fresh
        if isinstance(s, Let):
            fresh -= {name for name, origin in others.items() if origin == s.target}
            fresh |= {s.target} & others.keys()
        elif isinstance(s, If):
            arms = (set(fresh), set(fresh))
            _look_for_stale(s.then, others, arms[0], stale)
            _look_for_stale(s.orelse, others, arms[1], stale)
            going = [arm for arm, b in zip(arms, (s.then, s.orelse), strict=True) if not leaves(b)]
            met = set.intersection(*going) if going else set()
            fresh.clear()
            fresh.update(met)
        elif isinstance(s, (For, Loop)):
            made = {x.target for x in statements(s.body) if isinstance(x, Let)}
            fresh -= {name for name, origin in others.items() if origin in made}
            _look_for_stale(s.body, others, set(fresh), stale)


class _Converter:
    """The program with arrays for lists."""

    def __init__(self, program: Program, lists: set[str]) -> None:
        self.source = program
        self.lists = lists
        self.types = dict(program.types)
        self.taken = set(self.types) | {s.target for s in statements(program.body) if isinstance(s, Let)}
        self.used: dict[str, str] = {}
        for name in sorted(lists):
            self.types[name] = types.Array(program.types[name].dtype, 1, "C")
            self.used[name] = self.fresh(f"{name}_used", types.int64)
        self.line = 0

    def program(self) -> Program:
        """The program."""
        body = self.body(self.source.body)
        changing = self.lists | set(self.used.values())
        body = versioned(body, changing, self.version)
        return replace(self.source, body=body, types=self.types)

    def version(self, name: str) -> str:
        """A name for a value of a variable, or for a flag."""
        return self.fresh(name, self.types[name]) if name else self.fresh("left", types.boolean)

    def fresh(self, base: str, t: Any) -> str:
        """A new variable."""
        name = unused(base, self.taken)
        self.types[name] = t
        return name

    def is_one(self, a: Operand) -> bool:
        """Whether an operand is a list that is made an array."""
        return isinstance(a, Var) and a.name in self.lists

    def n(self, a: Operand) -> Var:
        """The variable that holds how many elements of a list are in use."""
        return Var(self.used[a.name])  # type: ignore[union-attr]

    def let(self, out: list[Stmt], base: str, t: Any, op: str, *args: Operand, detail: Any = None) -> Var:
        """A new variable with its value."""
        name = self.fresh(base, t)
        out.append(Let(name, op, args, detail, self.line))
        return Var(name)

    def set(self, out: list[Stmt], name: Var | str, value: Operand) -> None:
        """name = value."""
        out.append(Let(name if isinstance(name, str) else name.name, "copy", (value,), None, self.line))

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """Statements with arrays for lists."""
        out: list[Stmt] = []
        for s in body:
            self.line = s.line
            if isinstance(s, (If, For, Loop)):
                out.append(with_inner(s, self.body))
            elif isinstance(s, Store) and self.is_one(s.array):
                out.append(replace(s, index=self.place(out, s.array, s.index)))
            elif isinstance(s, Let) and s.target in self.lists:
                self.make(s, out)
            elif isinstance(s, (Let, Do)) and any(map(self.is_one, operands(s))):
                self.use(s.call if isinstance(s, Do) else s, out)
            else:
                out.append(s)
        return out

    def place(self, out: list[Stmt], a: Operand, index: Operand) -> Operand:
        """The place of an element; an index that is out of range raises."""
        ref = Ref(place_in_list, "place_in_list")
        return self.let(out, "place", types.int64, "call", ref, index, self.n(a), detail=())

    def room(self, out: list[Stmt], target: str, n: Operand) -> None:
        """target = an array for `n` elements."""
        scalar = as_dtype(self.types[target].dtype).type
        args = (Ref(np.zeros, "zeros"), n, Ref(scalar, scalar.__name__))
        out.append(Let(target, "call", args, (), self.line))

    def moved(self, out: list[Stmt], source: Operand, n: Operand, target: Operand, shift: Operand) -> None:
        """target[shift + k] = source[k] for k below n."""
        body: list[Stmt] = []
        k = Var(self.fresh("k", types.int64))
        x = self.let(body, "x", self.types[source.name].dtype, "item", source, k)  # type: ignore[union-attr]
        to = self.let(body, "to", types.int64, "binary", k, shift, detail="+") if shift != Const(0) else k
        body.append(Store(target, to, x, self.line))
        out.append(For(k.name, Const(0), n, Const(1), body, self.line))

    def part(self, out: list[Stmt], a: Operand) -> Var:
        """The view of the elements in use."""
        cut = self.let(out, "cut", types.slice2_type, "slice", Const(0), self.n(a))
        return self.let(out, "part", self.types[a.name], "item", a, cut)  # type: ignore[union-attr]

    def make(self, s: Let, out: list[Stmt]) -> None:
        """A new list."""
        new, used = Var(s.target), Var(self.used[s.target])
        if s.op == "copy":
            self.set(out, new, s.args[0])
            self.set(out, used, self.n(s.args[0]))
        elif s.op == "list":
            self.room(out, s.target, Const(max(len(s.args), 4)))
            out += [Store(new, Const(k), x, s.line) for k, x in enumerate(s.args)]
            self.set(out, used, Const(len(s.args)))
        elif s.op == "binary" and s.detail == "+":
            first, second = s.args
            total = self.let(out, "size", types.int64, "binary", self.n(first), self.n(second), detail="+")
            held = self.let(out, "size", types.int64, "copy", self.n(first))
            self.room(out, s.target, total)
            self.moved(out, first, held, new, Const(0))
            self.moved(out, second, self.n(second), new, held)
            self.set(out, used, total)
        elif s.op == "binary":
            times = self.let(out, "times", types.int64, "call", Const(max), s.args[1], Const(0), detail=())
            total = self.let(out, "size", types.int64, "binary", self.n(s.args[0]), times, detail="*")
            self.room(out, s.target, total)
            body: list[Stmt] = []
            k = Var(self.fresh("k", types.int64))
            shift = self.let(body, "shift", types.int64, "binary", k, self.n(s.args[0]), detail="*")
            self.moved(body, s.args[0], self.n(s.args[0]), new, shift)
            out.append(For(k.name, Const(0), times, Const(1), body, s.line))
            self.set(out, used, total)
        else:
            part = self.part(out, s.args[0])
            if s.op == "item":
                layout = types.Array(self.types[s.target].dtype, 1, "A")
                part = self.let(out, "part", layout, "item", part, s.args[1])
            out.append(Let(s.target, "method", (part,), ("copy", ()), s.line))
            out.append(Let(used.name, "call", (Const(len), new), (), s.line))

    def use(self, s: Let, out: list[Stmt]) -> None:
        """A statement that reads or changes a list."""
        if s.op == "item":
            out.append(replace(s, args=(s.args[0], self.place(out, s.args[0], s.args[1]))))
        elif s.op == "method":
            self.method(s, out)
        elif s.args[0] == Const(len):
            self.set(out, s.target, self.n(s.args[1]))
        elif s.args[0] == Const(bool):
            out.append(Let(s.target, "compare", (self.n(s.args[1]), Const(0)), "!=", s.line))
        elif s.args[0] == Const(sum):
            self.reduce(s, out, Const(0), Const(0))
        elif isinstance(s.args[0], Const):
            self.unless_empty(
                out, s.args[1], ValueError, f"{s.args[0].value.__name__}() iterable argument is empty"
            )
            first = self.let(out, "first", self.types[s.target], "item", s.args[1], Const(0))
            self.reduce(s, out, first, Const(1))
        else:
            out.append(Let(s.target, "method", (self.part(out, s.args[1]),), ("copy", ()), s.line))

    def reduce(self, s: Let, out: list[Stmt], first: Operand, start: Operand) -> None:
        """The sum, or the extremum, of the elements from `start` on, and of `first`."""
        t = self.types[s.target]
        if first == Const(0) and isinstance(t, (types.Float, types.Complex)):
            first = Const(0.0 if isinstance(t, types.Float) else 0j)
        self.set(out, s.target, first)
        body: list[Stmt] = []
        k = Var(self.fresh("k", types.int64))
        x = self.let(body, "x", self.types[s.args[1].name].dtype, "item", s.args[1], k)  # type: ignore[union-attr]
        both = (Var(s.target), x)
        if s.args[0] == Const(sum):
            total = self.let(body, "total", t, "binary", *both, detail="+")
        else:
            total = self.let(body, "best", t, "call", s.args[0], *both, detail=())
        self.set(body, s.target, total)
        out.append(For(k.name, start, self.n(s.args[1]), Const(1), body, s.line))

    def unless_empty(self, out: list[Stmt], a: Operand, error: Any, message: str) -> None:
        """Raise where a list has no elements."""
        test = self.let(out, "is_empty", types.boolean, "compare", self.n(a), Const(0), detail="==")
        out.append(If(test, [Raise(error, (Const(message),), self.line)], [], self.line))

    def method(self, s: Let, out: list[Stmt]) -> None:
        """A method that changes a list."""
        a, name = s.args[0], s.detail[0]
        if name == "append":
            self.append(out, a, s.args[1])
        elif name == "extend":
            body: list[Stmt] = []
            k = Var(self.fresh("k", types.int64))
            x = self.let(body, "x", self.types[s.args[1].name].dtype, "item", s.args[1], k)  # type: ignore[union-attr]
            self.append(body, a, x)
            out.append(For(k.name, Const(0), self.n(s.args[1]), Const(1), body, s.line))
        elif name == "insert":
            self.insert(s, out)
        elif name == "reverse":
            self.reverse(out, a)
        elif name == "pop":
            self.unless_empty(out, a, IndexError, "pop from empty list")
            place = self.place(out, a, s.args[1]) if len(s.args) == 2 else None
            down = self.let(out, "down", types.int64, "binary", self.n(a), Const(1), detail="-")
            if s.target != "_":
                out.append(Let(s.target, "item", (a, down if place is None else place), None, s.line))
            if place is not None:
                k = Var(self.fresh("k", types.int64))
                body = []
                up = self.let(body, "up", types.int64, "binary", k, Const(1), detail="+")
                x = self.let(body, "x", self.types[a.name].dtype, "item", a, up)  # type: ignore[union-attr]
                body.append(Store(a, k, x, s.line))
                out.append(For(k.name, place, down, Const(1), body, s.line))
            self.set(out, self.n(a), down)
        elif name == "clear":
            self.set(out, self.n(a), Const(0))
        else:
            self.let(out, "sorted", types.none, "method", self.part(out, a), detail=("sort", ()))

    def insert(self, s: Let, out: list[Stmt]) -> None:
        """One more element in front of the one at a place: the last ones move up."""
        a, index, x = s.args
        ref = Ref(place_to_insert, "place_to_insert")
        place = self.let(out, "place", types.int64, "call", ref, index, self.n(a), detail=())
        last = self.let(out, "last", types.int64, "copy", self.n(a))
        self.append(out, a, x)
        k = Var(self.fresh("k", types.int64))
        body: list[Stmt] = []
        down = self.let(body, "down", types.int64, "binary", k, Const(1), detail="-")
        moved = self.let(body, "x", self.types[a.name].dtype, "item", a, down)  # type: ignore[union-attr]
        body.append(Store(a, k, moved, s.line))
        out.append(For(k.name, last, place, Const(-1), body, s.line))
        out.append(Store(a, place, x, s.line))

    def reverse(self, out: list[Stmt], a: Operand) -> None:
        """The elements the other way around."""
        half = self.let(out, "half", types.int64, "binary", self.n(a), Const(2), detail="//")
        last = self.let(out, "last", types.int64, "binary", self.n(a), Const(1), detail="-")
        k = Var(self.fresh("k", types.int64))
        body: list[Stmt] = []
        other = self.let(body, "other", types.int64, "binary", last, k, detail="-")
        x = self.let(body, "x", self.types[a.name].dtype, "item", a, k)  # type: ignore[union-attr]
        y = self.let(body, "x", self.types[a.name].dtype, "item", a, other)  # type: ignore[union-attr]
        body += [Store(a, k, y, self.line), Store(a, other, x, self.line)]
        out.append(For(k.name, Const(0), half, Const(1), body, self.line))

    def append(self, out: list[Stmt], a: Operand, x: Operand) -> None:
        """One more element, in a larger array if the room is used up."""
        size = self.let(out, "size", types.int64, "call", Const(len), a, detail=())
        full = self.let(out, "is_full", types.boolean, "compare", self.n(a), size, detail="==")
        grown: list[Stmt] = []
        twice = self.let(grown, "twice", types.int64, "binary", size, Const(2), detail="*")
        wanted = self.let(grown, "wanted", types.int64, "binary", twice, Const(4), detail="+")
        new = Var(self.fresh("larger", self.types[a.name]))  # type: ignore[union-attr]
        self.room(grown, new.name, wanted)
        self.moved(grown, a, self.n(a), new, Const(0))
        self.set(grown, a, new)  # type: ignore[arg-type]
        out.append(If(full, grown, [], self.line))
        out.append(Store(a, self.n(a), x, self.line))
        up = self.let(out, "up", types.int64, "binary", self.n(a), Const(1), detail="+")
        self.set(out, self.n(a), up)
