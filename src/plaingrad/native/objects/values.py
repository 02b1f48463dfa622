"""Abstract values of partial evaluation: what is known of a variable while a program is turned into one of numbers.

A `Leaf` is a variable of the program that is made: a number, an array, whatever Numba types. Everything else is
structure, which exists at that time only. Objects that can change live in a heap, by number; a `Ref` is a variable
that holds one.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):
    """A construct that is not followed: (why, the file, the line, the function)."""


class NotKnown(Refused):
    """An index is not known where it has to be: a loop around may be unrolled."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A variable of the program that is made."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """A value that is known: a number, a string, None, a function, a class, a module."""

    value: Any


@dataclass(frozen=True, slots=True)
class Ref:
    """An object in the heap."""

    at: int


@dataclass(frozen=True, slots=True)
class Tup:
    """A tuple, or a named tuple of class `cls`."""

    items: tuple[Any, ...]
    cls: Any = tuple


@dataclass(frozen=True, slots=True)
class Bound:
    """A method of an object: a function and what comes first."""

    function: Any
    first: Any


@dataclass(frozen=True, slots=True)
class Method:
    """A method of what Numba or this room knows by itself: of a leaf, a list, a dictionary."""

    of: Any
    name: str


@dataclass(frozen=True, slots=True)
class Closure:
    """A function defined inside: its node, what it captures, the defaults of its parameters, and where it stands."""

    node: Any
    cells: tuple[tuple[str, Any], ...]
    defaults: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]
    home: Any


@dataclass(frozen=True, slots=True)
class Maybe:
    """None where `is_none`, which is known when the program runs, else a value."""

    is_none: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Several:
    """What a loop goes through: `kind` is range, zip, enumerate, reversed or items; `parts` what it is of."""

    kind: str
    parts: tuple[Any, ...]


UNKNOWN = Leaf("not_followed")  # stands for a value that was refused, while all that is refused is collected
ONCE = ("zip", "enumerate", "reversed", "once", "generator")  # kinds of what can be gone through once only
FROZEN, GIVEN = 1, 2  # bits of `frozen`: must not be changed; an argument that is not changed so far
UNSET = Static("a variable without a value")
CLASH = Static("a variable of different kinds, depending on which way was taken")


@dataclass(slots=True)
class Instance:
    """An object with fields."""

    cls: Any
    fields: dict[str, Any]
    frozen: int = False


@dataclass(slots=True)
class Items:
    """A list whose length is known."""

    items: list[Any]
    frozen: int = False


@dataclass(slots=True)
class Rows:
    """A list of unknown length: for each leaf of `pattern`, which its entries are like, a list or array of numbers."""

    pattern: Any
    columns: list[Any]
    frozen: int = False
    given: bool = False  # by an argument: its columns are arrays


@dataclass(slots=True)
class Keys:
    """A dictionary whose keys are known."""

    items: dict[Any, Any]
    frozen: int = False


@dataclass(slots=True)
class Cell:
    """A variable that functions defined inside share."""

    value: Any
    frozen: int = False


Thing = Instance | Items | Rows | Keys | Cell


def contents(x: Any) -> list[Any]:
    """The values directly inside a value or thing."""
    if isinstance(x, Tup):
        return list(x.items)
    if isinstance(x, Bound):
        return [x.function, x.first]
    if isinstance(x, Method):
        return [x.of]
    if isinstance(x, Closure):
        return [*[v for _, v in x.cells], *x.defaults, *[v for _, v in x.named]]
    if isinstance(x, Several):
        return list(x.parts)
    if isinstance(x, Maybe):
        return [x.is_none, x.value]
    if isinstance(x, Instance):
        return list(x.fields.values())
    if isinstance(x, Items):
        return list(x.items)
    if isinstance(x, Keys):
        return list(x.items.values())
    if isinstance(x, Rows):
        return list(x.columns)
    return [x.value] if isinstance(x, Cell) else []


def with_contents(x: Any, new: list[Any]) -> Any:
    """A value or thing like `x`, with other values directly inside."""
    if isinstance(x, Tup):
        return Tup(tuple(new), x.cls)
    if isinstance(x, Bound):
        return Bound(new[0], new[1])
    if isinstance(x, Method):
        return Method(new[0], x.name)
    if isinstance(x, Closure):
        n, m = len(x.cells), len(x.cells) + len(x.defaults)
        cells = tuple([(name, v) for (name, _), v in zip(x.cells, new[:n], strict=True)])
        named = tuple([(name, v) for (name, _), v in zip(x.named, new[m:], strict=True)])
        return Closure(x.node, cells, tuple(new[n:m]), named, x.home)
    if isinstance(x, Several):
        return Several(x.kind, tuple(new))
    if isinstance(x, Maybe):
        return Maybe(new[0], new[1])
    if isinstance(x, Instance):
        return Instance(x.cls, dict(zip(x.fields, new, strict=True)), x.frozen)
    if isinstance(x, Items):
        return Items(list(new), x.frozen)
    if isinstance(x, Keys):
        return Keys(dict(zip(x.items, new, strict=True)), x.frozen)
    if isinstance(x, Rows):
        return Rows(x.pattern, list(new), x.frozen, x.given)
    return Cell(new[0], x.frozen) if isinstance(x, Cell) else x


def label(x: Any) -> Any:
    """What two values or things have in common when only what is inside of them differs."""
    if isinstance(x, Tup):
        return Tup, x.cls, len(x.items)
    if isinstance(x, Closure):
        return (
            Closure,
            id(x.node),
            tuple([n for n, _ in x.cells]),
            len(x.defaults),
            tuple([n for n, _ in x.named]),
        )
    if isinstance(x, (Several, Method)):
        return type(x), getattr(x, "kind", getattr(x, "name", None)), len(contents(x))
    if isinstance(x, Instance):
        return Instance, x.cls, tuple(x.fields)
    if isinstance(x, Items):
        return Items, len(x.items)
    if isinstance(x, Keys):
        return Keys, tuple([(type(key), key) for key in x.items])
    if isinstance(x, Rows):
        return Rows, repr(x.pattern), len(x.columns), x.given
    return type(x)


@dataclass(slots=True)
class State:
    """What is known at a place of a program: variables by name, and the heap."""

    names: dict[str, Any] = field(default_factory=dict)
    heap: dict[int, Thing] = field(default_factory=dict)

    def copy(self) -> State:
        """The same, to be changed on its own."""
        return State(dict(self.names), {k: with_contents(x, contents(x)) for k, x in self.heap.items()})


def is_number(x: Any) -> bool:
    """Whether a known value can be a number of the program that is made."""
    return isinstance(x, Static) and type(x.value) in (int, float, bool, complex)


def same(x: Any, y: Any) -> bool:
    """Whether two values are surely one."""
    if isinstance(x, Static) and isinstance(y, Static):
        if x.value is y.value:
            return True
        return (
            type(x.value) is type(y.value)
            and isinstance(x.value, (int, float, complex, str))
            and (repr(x.value) == repr(y.value))
        )
    return type(x) is type(y) and not isinstance(x, Static) and x == y


def load(name: str) -> ast.expr:
    """The expression that reads a variable."""
    return ast.Name(name, ast.Load())


def assign(name: str, value: ast.expr) -> ast.stmt:
    """name = value."""
    return ast.Assign([ast.Name(name, ast.Store())], value)
