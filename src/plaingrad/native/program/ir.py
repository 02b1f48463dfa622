"""A numeric program as a tree: three-address statements, counted and general loops, no jumps but a loop's `Break`.

What Numba's typed IR is turned into, and what the derivative programs are made of and printed from. Variables are
names with a Numba type (`Program.types`); a variable may be assigned in several places (the arms of a branch, the end
of a loop body), every other one once. The result is assigned to `RESULT` and returned at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

RESULT = "result"


class Place(int):
    """A line number that also knows its file and its function: of a statement taken over from another function."""

    file: str
    function: str

    def __new__(cls, line: int, file: str, function: str) -> Place:
        """The line `line` of `file`, in `function`."""
        new = super().__new__(cls, line)
        new.file, new.function = file, function
        return new


@dataclass(frozen=True, slots=True)
class Var:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A number, string, bool or None."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Ref:
    """An object outside the program: a function, a module, a global or captured array."""

    value: Any
    name: str


Operand = Var | Const | Ref


def moved(target: str, a: Operand, line: int) -> Let:
    """`target = a`; of a captured array a copy: a variable may have a shadow, it has none, and nobody writes to it."""
    if isinstance(getattr(a, "value", None), np.ndarray):
        return Let(target, "call", (Ref(np.copy, "copy"), a), (), line)
    return Let(target, "copy", (a,), None, line)


def value_of(a: Operand) -> Any:
    """The constant or outside object that an operand is; None for a variable."""
    return None if isinstance(a, Var) else a.value


@dataclass(slots=True)
class Let:
    """target = op(args).

    Attributes:
        target: the variable's name.
        op: "copy", "binary", "unary", "compare", "call" (the callee first), "method" (the object first), "item"
            (value, index), "attribute", "tuple", "slice" (start, stop[, step]), "list".
        args: the operands.
        detail: the operator's symbol, the attribute's or method's name; for calls the keyword names, which belong to
            the last of `args`.
        line: the user's line.
    """

    target: str
    op: str
    args: tuple[Operand, ...]
    detail: Any = None
    line: int = 0


@dataclass(slots=True)
class Store:
    """array[index] = value."""

    array: Operand
    index: Operand
    value: Operand
    line: int = 0


@dataclass(slots=True)
class InPlace:
    """array op= value, in the memory of the array; `op` is the symbol of the operator, "+" for +=."""

    array: Operand
    op: str
    value: Operand
    line: int = 0


@dataclass(slots=True)
class Do:
    """A call for its effect: print, or a function that returns nothing."""

    call: Let
    line: int = 0


@dataclass(slots=True)
class If:
    """A branch."""

    test: Operand
    then: list[Stmt]
    orelse: list[Stmt]
    line: int = 0


@dataclass(slots=True)
class For:
    """for target in range(start, stop, step); a `Break` may stand where the body, or an arm at its end, ends.

    `parallel`: the user has said, by `numba.prange`, that the iterations may run side by side.
    """

    target: str
    start: Operand
    stop: Operand
    step: Operand
    body: list[Stmt]
    line: int = 0
    parallel: bool = False


@dataclass(slots=True)
class Loop:
    """while True; it ends at a `Break`, which stands where the body, or an arm at its end, ends."""

    body: list[Stmt]
    line: int = 0


@dataclass(slots=True)
class Break:
    """Leave the innermost loop."""

    line: int = 0


@dataclass(slots=True)
class Raise:
    """raise exception(*args)."""

    exception: Any
    args: tuple[Operand, ...] = ()
    line: int = 0


Stmt = Let | Store | InPlace | Do | If | For | Loop | Break | Raise


@dataclass(slots=True)
class Program:
    """A function.

    Attributes:
        name: of the user's function.
        file: where it stands.
        params: its parameters.
        body: its statements; the last value of `RESULT` is returned.
        types: the Numba type of every variable.
        result: the Numba type of what is returned.
        function: the Python function or dispatcher that it was made of.
        zeros: parameters that are 0.0.
        own: of a derived program, the names that hold cotangents of numbers and what leads to these.
        backward: whether all of it is a reverse sweep, which raises nothing that the forward sweep has not raised.
    """

    name: str
    file: str
    params: list[str]
    body: list[Stmt]
    types: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    function: Any = None
    zeros: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    backward: bool = False


@dataclass(slots=True)
class Parts:
    """What becomes of a run of statements: the forward form, and the reverse one in the order it runs."""

    forward: list[Stmt] = field(default_factory=list)
    backward: list[Stmt] = field(default_factory=list)


def where(line: int, program: Program) -> str:
    """The file, line and function that a line number of `program` means, for messages."""
    if isinstance(line, Place):
        return f"{line.file}:{int(line)}, in `{line.function}`"
    return f"{program.file}:{line}, in `{program.name}`"


def statements(body: list[Stmt]) -> Iterator[Stmt]:
    """Every statement in `body`, outer ones first."""
    for s in body:
        yield s
        if isinstance(s, If):
            yield from statements(s.then)
            yield from statements(s.orelse)
        elif isinstance(s, (For, Loop)):
            yield from statements(s.body)


def breaks(body: list[Stmt]) -> bool:
    """Whether `body` may leave its own loop."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, Break) or (isinstance(last, If) and (breaks(last.then) or breaks(last.orelse)))


def operands(s: Stmt) -> tuple[Operand, ...]:
    """What a statement itself reads (not the statements inside it)."""
    if isinstance(s, Let):
        return s.args
    if isinstance(s, Do):
        return s.call.args
    if isinstance(s, Store):
        return s.array, s.index, s.value
    if isinstance(s, InPlace):
        return s.array, s.value
    if isinstance(s, If):
        return (s.test,)
    if isinstance(s, For):
        return s.start, s.stop, s.step
    if isinstance(s, Raise):
        return s.args
    return ()


def with_inner(s: Stmt, change: Callable[[list[Stmt]], list[Stmt]]) -> Stmt:
    """A branch or loop with the statements inside it changed; any other statement as it is."""
    if isinstance(s, If):
        return replace(s, then=change(s.then), orelse=change(s.orelse))
    if isinstance(s, (For, Loop)):
        return replace(s, body=change(s.body))
    return s


def without_assignments(body: list[Stmt], names: set[str]) -> list[Stmt]:
    """`body` without the assignments to variables of these names."""
    return [
        with_inner(s, lambda inner: without_assignments(inner, names))
        for s in body
        if not (isinstance(s, Let) and s.target in names)
    ]


def unused(base: str, taken: set[str]) -> str:
    """`base`, or that with a number, which is not among the names `taken`; it is from now on."""
    name, n = base, 1
    while name in taken:
        name = f"{base}_{n}"
        n += 1
    taken.add(name)
    return name


def reads_of(body: list[Stmt]) -> set[str]:
    """The variables that statements read, at any depth."""
    return {a.name for s in statements(body) for a in operands(s) if isinstance(a, Var)}


def free_reads(body: list[Stmt], bound: set[str]) -> set[str]:
    """The variables that statements read and do not give a value first."""
    found: set[str] = set()
    bound = set(bound)
    for s in body:
        found |= {a.name for a in operands(s) if isinstance(a, Var) and a.name not in bound}
        if isinstance(s, Let):
            bound.add(s.target)
        elif isinstance(s, If):
            found |= free_reads(s.then, bound) | free_reads(s.orelse, bound)
        elif isinstance(s, For):
            found |= free_reads(s.body, bound | {s.target})
        elif isinstance(s, Loop):
            found |= free_reads(s.body, bound)
    return found


def carried_reads(body: list[Stmt]) -> set[str]:
    """The variables that some way through `body` may read before it gives them a value."""
    found: set[str] = set()
    _note_reads(body, set(), found, [])
    return found


def _note_reads(
    body: list[Stmt], bound: set[str], found: set[str], breaks: list[set[str]]
) -> set[str] | None:
    """What is bound behind `body`, None where it always jumps away.

    What is read without being `bound` is added to `found`, what is bound at jumps out of the loop to `breaks`.
    """
    bound = set(bound)
    for s in body:
        found |= {a.name for a in operands(s) if isinstance(a, Var) and a.name not in bound}
        if isinstance(s, Let):
            bound.add(s.target)
        elif isinstance(s, If):
            arms = [_note_reads(arm, bound, found, breaks) for arm in (s.then, s.orelse)]
            ends = [arm for arm in arms if arm is not None]
            if not ends:
                return None
            bound = set.intersection(*ends)
        elif isinstance(s, For):
            _note_reads(s.body, bound | {s.target}, found, [])
        elif isinstance(s, Loop):
            left: list[set[str]] = []
            _note_reads(s.body, bound, found, left)
            bound = set.intersection(*left) if left else bound
        elif isinstance(s, (Break, Raise)):
            if isinstance(s, Break):
                breaks.append(bound)
            return None
    return bound


def assigns(s: Stmt, name: str) -> bool:
    """Whether a statement, or one inside it, assigns `name`."""
    return any(isinstance(x, (Let, For)) and x.target == name for x in statements([s]))


def renamed(body: list[Stmt], names: dict[str, str]) -> list[Stmt]:
    """`body` with other names for variables."""

    def new(a: Operand) -> Operand:
        return Var(names.get(a.name, a.name)) if isinstance(a, Var) else a

    def let(s: Let) -> Let:
        return Let(names.get(s.target, s.target), s.op, tuple(map(new, s.args)), s.detail, s.line)

    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Let):
            out.append(let(s))
        elif isinstance(s, Do):
            out.append(Do(let(s.call), s.line))
        elif isinstance(s, Store):
            out.append(Store(new(s.array), new(s.index), new(s.value), s.line))
        elif isinstance(s, InPlace):
            out.append(InPlace(new(s.array), s.op, new(s.value), s.line))
        elif isinstance(s, If):
            out.append(If(new(s.test), renamed(s.then, names), renamed(s.orelse, names), s.line))
        elif isinstance(s, For):
            target = names.get(s.target, s.target)
            start, stop, step = map(new, (s.start, s.stop, s.step))
            out.append(For(target, start, stop, step, renamed(s.body, names), s.line, s.parallel))
        elif isinstance(s, Loop):
            out.append(Loop(renamed(s.body, names), s.line))
        elif isinstance(s, Raise):
            out.append(Raise(s.exception, tuple(map(new, s.args)), s.line))
        else:
            out.append(s)
    return out
