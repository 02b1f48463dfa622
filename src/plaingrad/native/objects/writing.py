"""Objects that are arguments and are changed: what the function that was made leaves in them, and putting it there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.jitclasses import FIELDS
from plaingrad.native.objects.results import Known, Part, Several, built
from plaingrad.native.objects.values import (
    FROZEN,
    GIVEN,
    Instance,
    Items,
    Keys,
    Leaf,
    Ref,
    Rows,
    Static,
    Tup,
    same,
)


@dataclass(frozen=True, slots=True)
class Argument:
    """A number or array of the call itself, by its place among them."""

    place: int


@dataclass(frozen=True, slots=True)
class Given:
    """An object that is an argument, or is in one, by its place among them."""

    place: int


@dataclass(frozen=True, slots=True)
class Change:
    """What is left in an object that is an argument, or is in one.

    Attributes:
        place: the object, by its place among them.
        name: its attribute; None for all entries of a list or dictionary.
        value: the structure of what is there afterwards.
    """

    place: int
    name: str | None
    value: Any


def changes(f: Frame, made: Any, places: dict[int, int], leaves: list[Any]) -> list[Change]:
    """What is changed in the objects of the arguments.

    Args:
        f: the frame, for messages.
        made: the function that was made.
        places: the objects in the heap, each with its place among those of the arguments.
        leaves: gets the variables that are new numbers and arrays.

    Raises:
        Refused: it cannot be put together.
    """
    left = Left(f, made, places, leaves)
    found = []
    for at, place in places.items():
        then, now = made.entry[at], made.state.heap[at]
        if isinstance(now, Instance):
            if then.fields.keys() - now.fields.keys():
                raise f.refuse("an attribute of an argument is deleted")
            for name, value in now.fields.items():
                if name not in then.fields or not is_one(then.fields[name], value):
                    found.append(Change(place, name, left.of(value)))
        elif isinstance(now, Rows):
            is_same = isinstance(then, Rows) and then.columns == now.columns
            if not (is_same or now.given or now.frozen & GIVEN):
                raise f.refuse("a list that is an argument is changed at a place that is not known")
        elif not are_one(then, now):
            found.append(Change(place, None, left.inside(now)))
    return found


class Left:
    """The structure of what is left in the objects of the arguments; see `changes`."""

    def __init__(self, f: Frame, made: Any, places: dict[int, int], leaves: list[Any]) -> None:
        self.f, self.heap, self.places, self.leaves = f, made.state.heap, places, leaves
        self.arguments = {name: k for k, name in enumerate(made.params)}
        self.known: dict[str, int] = {}
        self.seen: set[int] = set()

    def of(self, x: Any) -> Any:
        """The structure of a value."""
        if isinstance(x, Leaf):
            if x.name in self.arguments:
                return Argument(self.arguments[x.name])
            if x.name not in self.known:
                self.known[x.name] = len(self.leaves)
                self.leaves.append(x)
            return Part(self.known[x.name])
        if isinstance(x, Static):
            return Known(x.value)
        if isinstance(x, Tup):
            return Several(x.cls, None, tuple(map(self.of, x.items)))
        if not isinstance(x, Ref):
            raise self.f.refuse("what is no object, number or array is put into an argument")
        if x.at in self.places:
            return Given(self.places[x.at])
        thing = self.heap[x.at]
        if x.at in self.seen or thing.frozen & FROZEN or isinstance(thing, Rows):
            raise self.f.refuse("what is put into an argument is there twice, or a list of unknown length")
        self.seen.add(x.at)
        return self.inside(thing)

    def inside(self, thing: Any) -> Several:
        """The structure of an object, list or dictionary."""
        if isinstance(thing, Instance):
            if FIELDS in vars(thing.cls):
                raise self.f.refuse("an instance of a jitclass is put into an argument")
            return Several(thing.cls, tuple(thing.fields), tuple(map(self.of, thing.fields.values())))
        if isinstance(thing, Keys):
            return Several(dict, tuple(thing.items), tuple(map(self.of, thing.items.values())))
        return Several(list, None, tuple(map(self.of, thing.items)))


def are_one(then: Any, now: Any) -> bool:
    """Whether a list or dictionary has the same entries."""
    if isinstance(then, Keys) and isinstance(now, Keys):
        if list(then.items) != list(now.items):
            return False
        return all(map(is_one, then.items.values(), now.items.values()))
    if isinstance(then, Items) and isinstance(now, Items):
        return len(then.items) == len(now.items) and all(map(is_one, then.items, now.items))
    return False


def is_one(x: Any, y: Any) -> bool:
    """Whether two values are one."""
    if isinstance(x, Tup) and isinstance(y, Tup):
        return x.cls is y.cls and len(x.items) == len(y.items) and all(map(is_one, x.items, y.items))
    return same(x, y)


def put(found: list[Change], objects: list[Any], leaves: tuple[Any, ...], parts: Any) -> None:
    """Leave in the objects of the arguments what the function that was made left there.

    Args:
        found: what is changed.
        objects: the objects of the arguments.
        leaves: their numbers and arrays.
        parts: the new numbers and arrays.
    """
    own = [same_memory(x, leaves) for x in parts]

    def of(x: Any) -> Any:
        if isinstance(x, Argument):
            return leaves[x.place]
        if isinstance(x, Given):
            return objects[x.place]
        if isinstance(x, Several):
            return built(Several(x.cls, x.names, tuple([Known(of(part)) for part in x.entries])), ())
        return built(x, own)

    values = [of(change.value) for change in found]
    for change, value in zip(found, values, strict=True):
        at = objects[change.place]
        if change.name is not None:
            setattr(at, change.name, value)
        elif type(at) is list:
            at[:] = value
        else:
            at.clear()
            at.update(value)


def same_memory(x: Any, leaves: tuple[Any, ...]) -> Any:
    """The array of the call that `x` is, where compiled code handed one back; else `x`."""
    if isinstance(x, np.ndarray):
        for leaf in leaves:
            if isinstance(leaf, np.ndarray) and is_same_array(leaf, x):
                return leaf
    return x


def is_same_array(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays are the same elements of the same memory."""
    mine, its = x.__array_interface__["data"][0], y.__array_interface__["data"][0]
    return mine == its and x.shape == y.shape and x.strides == y.strides and x.dtype == y.dtype


__all__ = ["Change", "changes", "put"]
