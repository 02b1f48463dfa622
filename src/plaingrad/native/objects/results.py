"""What a function of objects returns: the numbers and arrays in it, and how it is put together from these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plaingrad.native.objects.engine import Frame, placed
from plaingrad.native.objects.jitclasses import FIELDS
from plaingrad.native.objects.values import Instance, Items, Keys, Leaf, Maybe, Ref, State, Static, Tup, load
from plaingrad.tangents import NoTangent, Tangent, ZeroTangent, is_zero


@dataclass(frozen=True, slots=True)
class Known:
    """A part that is the same for every call."""

    value: Any


@dataclass(frozen=True, slots=True)
class Part:
    """A number or array, by its place among the results of the function that was made."""

    place: int


@dataclass(frozen=True, slots=True)
class Several:
    """A tuple, list, dictionary or object: its class, the keys or names of entries (None: by place), the entries."""

    cls: Any
    names: tuple[Any, ...] | None
    entries: tuple[Any, ...]


def returned(f: Frame, value: Any, state: State, given: set[int]) -> tuple[Any, list[Any], list[Any]]:
    """(the structure of what is returned, its numbers and arrays, the tests of which none may be true: of None).

    Args:
        f: the frame, for messages.
        value: what is returned.
        state: what is known where the function ends.
        given: the objects that are arguments.

    Raises:
        Refused: it is nothing that can be put together.
    """
    leaves: list[Any] = []
    seen: set[int] = set()
    tests: list[Any] = []

    def of(x: Any) -> Any:
        if isinstance(x, Maybe):
            tests.append(x.is_none)
            return of(x.value)
        if isinstance(x, Leaf) or (isinstance(x, Static) and type(x.value) in (float, complex)):
            leaves.append(x)
            return Part(len(leaves) - 1)
        if isinstance(x, Static):
            return Known(x.value)
        if isinstance(x, Tup):
            return Several(x.cls, None, tuple([of(part) for part in x.items]))
        if not isinstance(x, Ref):
            raise f.refuse("a function, or what can be gone through, is returned")
        if x.at in given or x.at in seen:
            raise f.refuse(
                "an object is returned that is an argument"
                if x.at in given
                else "an object is returned twice"
            )
        seen.add(x.at)
        thing = state.heap[x.at]
        if isinstance(thing, Instance):
            if FIELDS in vars(thing.cls):
                raise f.refuse("an instance of a jitclass is returned")
            return Several(thing.cls, tuple(thing.fields), tuple([of(v) for v in thing.fields.values()]))
        if isinstance(thing, Keys):
            return Several(dict, tuple(thing.items), tuple([of(v) for v in thing.items.values()]))
        if isinstance(thing, Items):
            return Several(list, None, tuple([of(v) for v in thing.items]))
        raise f.refuse("a list of unknown length is returned")

    return of(value), leaves, tests


def with_results(
    f: Frame, made: Any, leaves: list[Any], line: int, more: list[Any] | None = None, tests: Any = ()
) -> Any:
    """The function that returns these values, known where one that was made ends, as a tuple; one alone as it is.

    With `more`, it returns a pair: that, and a tuple of these. Where one of `tests` is true, it raises.
    """
    whole = f.whole
    if more is None and not tests and [Leaf(x) for x in made.outs] == leaves:
        return whole.space[made.name]
    name = whole.fresh(made.name.rsplit("_", 1)[0])
    body: list[ast.stmt] = []
    call = ast.Call(load(made.name), [load(p) for p in made.params], [])
    if made.outs:
        targets: list[ast.expr] = [ast.Name(out, ast.Store()) for out in made.outs]
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
        body.append(ast.Assign([target], call))
    else:
        body.append(ast.Expr(call))
    for test in tests:
        error = ast.Call(whole.outside(TypeError, "TypeError"), [ast.Constant("None is returned")], [])
        body.append(ast.If(f.expression(test), [ast.Raise(error, None)], []))
    parts = [f.expression(x) for x in leaves]
    result = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
    if more is not None:
        result = ast.Tuple([result, ast.Tuple([f.expression(x) for x in more], ast.Load())], ast.Load())
    body.append(ast.Return(result))
    parameters = ast.arguments([], [ast.arg(p) for p in made.params], None, [], [], None, [])
    statement = ast.FunctionDef(name, parameters, body, [], None, lineno=line)
    if hasattr(ast, "TypeAlias"):
        statement.type_params = []
    module = ast.Module([statement], [])
    placed(module, line)
    place: dict[str, Any] = {}
    exec(compile(module, f.home.file, "exec", dont_inherit=True), whole.space, place)
    whole.space[name] = place[name]
    whole.mine.add(name)
    return place[name]


def built(x: Any, parts: Any) -> Any:
    """The value of this structure, with these numbers and arrays."""
    if isinstance(x, Known):
        return x.value
    if isinstance(x, Part):
        return parts[x.place]
    entries = [built(part, parts) for part in x.entries]
    if x.cls is list:
        return entries
    if x.cls is dict:
        return dict(zip(x.names, entries, strict=True))
    if issubclass(x.cls, tuple):
        return tuple(entries) if x.cls is tuple else x.cls(*entries)
    made = object.__new__(x.cls)
    for name, value in zip(x.names, entries, strict=True):
        object.__setattr__(made, name, value)
    return made


def tangent_of(x: Any, dots: Any) -> Any:
    """The tangent of a value of this structure, from those of its numbers and arrays."""
    if isinstance(x, Known):
        return NoTangent
    if isinstance(x, Part):
        return dots[x.place]
    entries = [tangent_of(part, dots) for part in x.entries]
    if x.cls is list:
        return entries
    if x.cls is dict:
        return dict(zip(x.names, entries, strict=True))
    if issubclass(x.cls, tuple):
        return tuple(entries)
    return Tangent(x.cls, dict(zip(x.names, entries, strict=True)))


def parts_of(x: Any, bar: Any) -> Iterator[tuple[int, Any]]:
    """(the place of a number or array, its part of a cotangent of the whole)."""
    if isinstance(x, Part):
        yield x.place, bar
    elif isinstance(x, Several):
        names = range(len(x.entries)) if x.names is None else x.names
        for name, part in zip(names, x.entries, strict=True):
            yield from parts_of(part, entry_of(bar, name))


def entry_of(bar: Any, name: Any) -> Any:
    """The part of a tangent or cotangent that belongs to an entry; zero where there is none."""
    if bar is None or is_zero(bar):
        return ZeroTangent
    if isinstance(name, int) and isinstance(bar, (tuple, list)):
        return bar[name]
    return bar.get(name, ZeroTangent)


__all__ = ["built", "entry_of", "parts_of", "returned", "tangent_of", "with_results"]
