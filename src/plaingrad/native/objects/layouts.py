"""Arguments of a structure that was seen before: a function is generated that takes their numbers and arrays out.

`structure.flattened` finds out what is known of an argument. For a structure that it has found, a `Layout` has a
function of straight-line code that reads the same fields and entries, and returns None wherever an argument is not
of this structure: another class, other fields, another length or text, an object that is there twice. Then the call is
looked at as a new one. Gradients get their structure in generated code, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from plaingrad.native.border.conversion import bound, opened
from plaingrad.native.border.shortcuts import by_shortcut
from plaingrad.native.objects import structure
from plaingrad.native.objects.structure import SHORT, about, columns_of, fields_of, is_known, is_leaf
from plaingrad.native.program.per_function import PerFunction
from plaingrad.tangents import Tangent

_layouts = PerFunction()  # of functions: see `key_of` -> `Layout`s
MOST = 8  # structures for one function and types of arguments


class Unusual(Exception):
    """A structure for which nothing is generated."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A structure of arguments, and the function of numbers and arrays for it.

    Attributes:
        leaves_of: the arguments -> their numbers and arrays; None if they have another structure.
        gradients: (the arguments, the gradients of the numbers and arrays at `positions`) -> those of the arguments.
        positions: of the numbers and arrays that are differentiated.
        run: the function of numbers and arrays.
        is_current: whether that is still the function of what the user's function now is.
        once: whether it does what must not be done twice, as printing.
    """

    leaves_of: Callable[[tuple[Any, ...]], list[Any] | None]
    gradients: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]
    positions: tuple[int, ...]
    run: Any
    is_current: Callable[[], bool]
    once: bool


def by_layout(f: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> Any:
    """(f(*args), the gradients of the arguments at `positions`); None where the call is to be looked at."""
    function, first, more = opened(f)
    if type(function) is not FunctionType or more:
        return None
    tables = _layouts.of(function)
    if not tables:
        return None
    code = function.__code__
    if code.co_argcount != len(first) + len(args) or code.co_kwonlyargcount:
        return None
    given = (*first, *args)
    found = tables.get(key_of(given, first, positions), ())
    for layout in found:
        leaves = layout.leaves_of(given)
        if leaves is None:
            continue
        if not layout.is_current():
            tables.clear()
            return None
        try:
            done = by_shortcut(layout.run, tuple(leaves), layout.positions)
        except Exception:  # the call is made again, and says what Python says
            if layout.once:
                raise
            return None
        return None if done is None else (done[0], layout.gradients(given, done[1]))
    return None


def key_of(given: tuple[Any, ...], first: tuple[Any, ...], positions: tuple[int, ...]) -> Any:
    """What a table of layouts is looked at by: the types of the arguments, and which of them are differentiated.

    Of `o.m(x)` the first argument that is given is x, of `C.m(o, x)` it is o: `first` are those that come before.
    """
    return len(first), positions, *map(type, given)


def keep(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], call: Any, found: Any, once: bool
) -> None:
    """Keep the structure of a call (`call.Call`) that was done by `found.run`, where nothing else is to be done.

    `once`: see `Layout`.
    """
    if call.compiled is not None or found.changes or found.extra:
        return
    function, first, more = opened(f)
    given = (*first, *args)
    code = getattr(function, "__code__", None)
    if more or code is None or code.co_argcount != len(given) or bound(function, given, {}) is not given:
        return
    table = _layouts.of(function).setdefault(key_of(given, first, positions), [])
    try:
        reals = [k + len(first) for k in positions]
        leaves_of = reader(given, reals, call.rows)
        leaves = leaves_of(given)
        if (
            len(table) < MOST
            and leaves is not None
            and list(map(form_of, leaves)) == list(map(form_of, call.leaves))
        ):
            table.append(
                Layout(leaves_of, mirror(call), call.positions, found.run, found.whole.is_current, once)
            )
    except Unusual:
        return


def form_of(x: Any) -> Any:
    """The class of a number, the type of an array."""
    return (x.dtype, x.shape) if isinstance(x, np.ndarray) else type(x)


# -- the functions that are generated ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Text:
    """A function that is being written.

    Attributes:
        lines: of its body.
        space: its globals.
        leaves: the expressions for numbers and arrays.
        objects: the variables whose objects must be different ones.
        many: the variables that are sets of identities of such objects, with how many they must be.
        count: of variables.
    """

    lines: list[str] = field(default_factory=list)
    space: dict[str, Any] = field(default_factory=lambda: {"array": np.array, "Tangent": Tangent})
    leaves: list[str] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    many: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def fresh(self) -> str:
        """A name that no other variable has."""
        self.count += 1
        return f"v{self.count}"

    def held(self, x: Any) -> str:
        """The name of an object from outside."""
        name = f"K{len(self.space)}"
        self.space[name] = x
        return name

    def unless(self, condition: str) -> None:
        """Give up unless a condition holds."""
        self.lines.append(f"if not ({condition}): return None")

    def let(self, expression: str) -> str:
        """A variable with this value."""
        name = self.fresh()
        self.lines.append(f"{name} = {expression}")
        return name

    def made(self, head: str, end: str) -> Any:
        """The function."""
        body = "\n".join(f"    {line}" for line in (*self.lines, end))
        exec(compile(f"{head}\n{body}\n", "<plaingrad layout>", "exec"), self.space)
        return self.space[head.removeprefix("def ").split("(")[0]]


def reader(args: tuple[Any, ...], reals: list[int], rows: bool) -> Callable[[tuple[Any, ...]], Any]:
    """`Layout.leaves_of` for arguments like these; whole numbers at `reals` become floats.

    Raises:
        Unusual: nothing is generated for such arguments.
    """
    text = Text()
    names = [text.fresh() for _ in args]
    text.lines.append(f"{', '.join(names)}, = args")
    for k, (name, x) in enumerate(zip(names, args, strict=True)):
        if k in reals and type(x) is int:
            text.unless(f"type({name}) is int")
            text.leaves.append(f"float({name})")
        else:
            read(text, name, x, rows)
    if len(text.objects) + len(text.many) > 1:
        all_of = ["{" + ", ".join(f"id({name})" for name in text.objects) + "}"] if text.objects else []
        count = " + ".join([str(len(text.objects)), *[size for _, size in text.many]])
        text.unless(f"len({' | '.join([*all_of, *[name for name, _ in text.many]])}) == {count}")
    inner = text.made("def read(args):", f"return [{', '.join(text.leaves)}]")

    def leaves_of(given: tuple[Any, ...]) -> list[Any] | None:
        try:
            return inner(given)  # type: ignore[no-any-return]
        except (AttributeError, KeyError):  # a field is not there
            return None

    return leaves_of


def read(text: Text, name: str, x: Any, rows: bool) -> None:
    """Write what checks the value of a variable to be like `x`, and reads its numbers and arrays."""
    cls = type(x)
    if is_known(x):
        if isinstance(x, str):
            text.unless(f"type({name}) is {text.held(cls)} and {name} == {text.held(x)}")
        else:
            text.unless(f"{name} is {text.held(x)}")
        return
    text.unless(f"type({name}) is {text.held(cls)}")
    if is_leaf(x):
        text.leaves.append(name)
    elif cls is list and rows and len(x) > SHORT and columns_of(x, set()) is not None:
        text.objects.append(name)
        text.unless(f"len({name}) > {SHORT}")
        column(text, name, x)
    elif cls is dict:
        text.objects.append(name)
        text.unless(f"(*{name},) == {text.held(tuple(x))}")
        for key, v in x.items():
            read(text, text.let(f"{name}[{text.held(key)}]"), v, rows)
    elif cls is list or isinstance(x, tuple):
        if cls is list:
            text.objects.append(name)
        text.unless(f"len({name}) == {len(x)}")
        for k, v in enumerate(x):
            read(text, text.let(f"{name}[{k}]"), v, rows)
    else:
        text.objects.append(name)
        for field_name, v in fields_of(x).items():
            read(text, text.let(f"{fields(text, name, x, field_name)}"), v, rows)


def fields(text: Text, name: str, x: Any, field_name: str) -> str:
    """An expression for a field of an object, whose fields are checked with the first of them.

    Raises:
        Unusual: it has slots and a dictionary, or fields that its class has in its place.
    """
    own, known = getattr(x, "__dict__", None), about(type(x))
    every = list(fields_of(x))
    if own is None:
        if known is None or set(known.slots) != set(every):
            raise Unusual
        return f"{name}.{field_name}"
    if set(own) != set(every):
        raise Unusual
    if field_name == every[0]:
        text.lines.append(f"{name}d = {name}.__dict__")
        text.unless(f"(*{name}d,) == {text.held(tuple(own))}")
    return f"{name}d[{field_name!r}]"


def column(text: Text, name: str, x: Any) -> None:
    """Write what `structure._column` does: the values in a list, or column, become an array for each of their numbers.

    Raises:
        Unusual: the values are no numbers, and no objects with a dictionary.
    """
    cls = type(x[0])
    text.unless(f"{{*map(type, {name})}} == {text.held({cls})}")
    if cls is float or cls is int:
        made = text.let(f"array({name})")
        if cls is int:
            text.unless(f"{made}.dtype.kind in 'if'")
        text.leaves.append(made)
        return
    if is_known(x[0]):
        value = text.held(x[0])
        text.unless(f"all([v is {value} or v == {value} for v in {name}])")
        return
    own = getattr(x[0], "__dict__", None)
    if own is None or isinstance(x[0], tuple) or set(own) != set(fields_of(x[0])):
        raise Unusual
    text.many.append((text.let(f"{{*map(id, {name})}}"), f"len({name})"))
    every = text.let(f"[v.__dict__ for v in {name}]")
    text.unless(f"{{*map(len, {every})}} == {{{len(own)}}}")
    for field_name in fields_of(x[0]):
        column(text, text.let(f"[d[{field_name!r}] for d in {every}]"), [getattr(v, field_name) for v in x])


def mirror(call: Any) -> Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]:
    """`Layout.gradients` for a call (`call.Call`)."""
    text = Text()
    bars = {k: f"bars[{n}]" for n, k in enumerate(call.positions)}
    try:
        parts = [written(text, call.given[k], iter(range(start, len(call.leaves))), bars, call.rows)
                 for k, start in call.wanted]  # fmt: skip
    except Unusual:
        count, positions, wanted = len(call.leaves), call.positions, call.wanted

        def gradients(given: tuple[Any, ...], found: tuple[Any, ...]) -> tuple[Any, ...]:
            every: list[Any] = [None] * count
            for k, bar in zip(positions, found, strict=True):
                every[k] = bar
            return tuple(
                [structure.mirrored(given[k], iter(every[start:]), call.rows) for k, start in wanted]
            )

        return gradients
    return text.made("def gradients(args, bars):", f"return {', '.join(parts)},")  # type: ignore[no-any-return]


def written(text: Text, x: Any, places: Any, bars: dict[int, str], rows: bool) -> str:
    """An expression for the gradient of an argument: see `structure.mirrored`.

    Raises:
        Unusual: a long list is among what is differentiated.
    """
    cls = type(x)
    if is_leaf(x):
        bar = bars.get(next(places))
        if bar is None or cls is np.ndarray:
            return "None" if bar is None else bar
        return f"{text.held(cls)}({bar})"
    if is_known(x):
        return "None"
    if rows and cls is list and len(x) > SHORT and columns_of(x, set()) is not None:
        raise Unusual
    named = (
        x.items() if cls is dict else enumerate(x) if isinstance(x, (list, tuple)) else fields_of(x).items()
    )
    parts = [(key, written(text, v, places, bars, rows)) for key, v in named]
    values = ", ".join(part for _, part in parts)
    if cls is list:
        return f"[{values}]"
    if isinstance(x, tuple):
        return f"{text.held(cls)}({values})" if hasattr(x, "_fields") else f"({values},)" if parts else "()"
    keyed = "{" + ", ".join(f"{text.held(key)}: {part}" for key, part in parts) + "}"
    return keyed if cls is dict else f"Tangent({text.held(cls)}, {keyed})"


__all__ = ["by_layout", "keep"]
