"""The structure of arguments and gradients: where the differentiated leaves of a nested argument are.

A node mirrors one argument or one entry of it. Its `gradient` is ordinary Python, run one level out.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import getrefcount
from types import NoneType
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.memory import Shadow
from plaingrad.engine.memory.tape import ArraySlot, NumberSlot, Tree, add_to
from plaingrad.tangents import Tangent


def _unshared_count() -> int:
    bar = np.zeros(1)
    return getrefcount(bar)


UNSHARED = _unshared_count()  # what `getrefcount` says of an array that one local variable holds


class NumberNode:
    """A number: its gradient is a number of the same type, 0 where it had no influence."""

    __slots__ = ("index", "x")

    def __init__(self, index: int, x: Any) -> None:
        self.index = index
        self.x = x

    def gradient(self, shadow: Shadow, made: dict[int, Any]) -> Any:
        """The cotangent of the number."""
        bar = shadow.bars[self.index]
        x = self.x
        if number_classes.is_own(x):
            return number_classes.made(x, 0 if bar is None else bar)
        if bar is None:
            return type(x)(0)
        if type(x) is float:
            return float(bar) if isinstance(bar, (np.floating, int)) else bar
        if type(x) is complex:
            return bar if type(bar) is complex else bar + 0j
        if isinstance(x, np.generic):
            return bar.astype(x.dtype) if isinstance(bar, np.generic) else type(x)(bar)
        return bar


class ArrayNode:
    """An array: its gradient is a new array of the same shape and dtype."""

    __slots__ = ("index", "x")

    def __init__(self, index: int, x: np.ndarray) -> None:
        self.index = index
        self.x = x

    def gradient(self, shadow: Shadow, made: dict[int, Any]) -> Any:
        """The cotangent of the array, in memory of its own."""
        bar = shadow.read(self.index, self.x)
        if bar is None:
            return np.zeros(self.x.shape, self.x.dtype)
        if bar.base is None:
            shadow.bars[self.index] = None
            if getrefcount(bar) <= UNSHARED:  # nobody else holds it: hand it over
                return bar
        return np.array(bar)


class ObjectsNode:
    """An array of Python objects, which is a container: its gradient is such an array."""

    __slots__ = ("entries", "shape")

    def __init__(self, shape: tuple[int, ...], entries: dict[tuple[int, ...], Any]) -> None:
        self.shape = shape
        self.entries = entries

    def gradient(self, shadow: Shadow, made: dict[int, Any]) -> Any:
        """The gradients of the elements."""
        made[id(self)] = whole = np.empty(self.shape, object)
        for place, node in self.entries.items():
            whole[place] = entry_gradient(node, shadow, made)
        return whole


class PlaceNode(ArrayNode):
    """An array that is differentiated where it lies, perhaps in several places, each of which gets the gradient."""

    __slots__ = ()

    def gradient(self, shadow: Shadow, made: dict[int, Any]) -> Any:
        """A copy of the cotangent of the array."""
        bar = shadow.read(self.index, self.x)
        return np.zeros(self.x.shape, self.x.dtype) if bar is None else np.array(bar)


class SequenceNode:
    """A list, tuple or namedtuple."""

    __slots__ = ("entries", "x")

    def __init__(self, x: Any, entries: list[Any]) -> None:
        self.x = x
        self.entries = entries

    def gradient(self, shadow: Shadow, made: dict[int, Any]) -> Any:
        """A sequence of the same type, entry by entry."""
        x = self.x
        if isinstance(x, tuple):
            parts = [entry_gradient(node, shadow, made) for node in self.entries]
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        made[id(self)] = whole = []
        bars = shadow.bars
        for node in self.entries:
            if type(node) is NumberNode and type(node.x) is float:
                bar = bars[node.index]
                whole.append(
                    0.0 if bar is None else bar if type(bar) is float else node.gradient(shadow, made)
                )
            else:
                whole.append(entry_gradient(node, shadow, made))
        return whole


class FloatsNode:
    """A list or tuple of floats at a compiled level, whose indices follow one another."""

    __slots__ = ("first", "values", "x")

    def __init__(self, x: Any, values: list[float], first: int) -> None:
        self.x = x
        self.values = values
        self.first = first

    @property
    def entries(self) -> list[NumberNode]:
        """A node for each."""
        return [NumberNode(self.first + k, x) for k, x in enumerate(self.values)]

    def gradient(self, shadow: Shadow, made: dict[int, Any]) -> Any:
        """A sequence of the same type."""
        bars = shadow.bars
        if core is not None and type(bars) is core.Bars:
            whole = bars.floats(self.first, len(self.values))
        else:  # pulled back inside another level
            whole = [node.gradient(shadow, made) for node in self.entries]
        if type(self.x) is not list:
            return tuple(whole)
        made[id(self)] = whole
        return whole


class MappingNode:
    """A dictionary."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[Any, Any]) -> None:
        self.entries = entries

    def gradient(self, shadow: Shadow, made: dict[int, Any]) -> Any:
        """A dictionary with the same keys."""
        made[id(self)] = whole = {}
        for key, node in self.entries.items():
            whole[key] = entry_gradient(node, shadow, made)
        return whole


class ObjectNode:
    """An object with attributes or slots."""

    __slots__ = ("cls", "entries")

    def __init__(self, cls: type, entries: dict[str, Any]) -> None:
        self.cls = cls
        self.entries = entries

    def gradient(self, shadow: Shadow, made: dict[int, Any]) -> Any:
        """A `Tangent` with the same fields."""
        fields: dict[str, Any] = {}
        made[id(self)] = whole = Tangent(self.cls, fields)
        for name, node in self.entries.items():
            fields[name] = entry_gradient(node, shadow, made)
        return whole


def seed(shadow: Shadow, slots: Any, y_bar: Any) -> None:
    """The cotangent of the result becomes `y_bar`.

    Arrays are copied: they may be memory that the function has written, in which the way back undoes the writes.
    """
    if not seeded(shadow, slots, y_bar):
        add_to(shadow, slots, y_bar)
        _make_own(shadow, slots)


def seeded(shadow: Shadow, slots: Any, y_bar: Any) -> bool:
    """`seed` of a real number; whether it is one."""
    if type(y_bar) is float and type(slots) is NumberSlot and type(slots.x) in (float, np.float64):
        shadow.bars[slots.index] = y_bar
        return True
    return False


def _make_own(shadow: Shadow, slots: Any) -> None:
    if type(slots) is Tree:
        for slot in slots.slots.values():
            _make_own(shadow, slot)
    elif type(slots) is ArraySlot and isinstance(shadow.bars[slots.index], np.ndarray):
        shadow.writable(slots.index, slots.x)


def entry_gradient(node: Any, shadow: Shadow, made: dict[int, Any]) -> Any:
    """The gradient of one entry; of one that was met before (shared, or a cycle) the same object again."""
    if node is None:
        return None
    found = made.get(id(node))
    return node.gradient(shadow, made) if found is None else found


def all_moved(nodes: Iterable[Any], shadow: Shadow, arrays: dict[int, Any], seen: set[int]) -> bool:
    """Whether the gradients are made of cotangents as they are: floats for floats, and arrays that nobody else has.

    The nodes of those arrays are noted in `arrays`.
    """
    for node in nodes:
        kind = type(node)
        if kind is NumberNode:
            if type(node.x) is not float or type(shadow.bars[node.index]) not in (float, NoneType):
                return False
        elif kind is SequenceNode:
            if id(node) not in seen:
                seen.add(id(node))
                if not all_moved(node.entries, shadow, arrays, seen):
                    return False
        elif kind is ArrayNode:
            owns = getattr(shadow.bars, "owns", None)
            if owns is None or id(node) in arrays or node.x.base is not None or not owns(node.index):
                return False
            arrays[id(node)] = node
        elif kind is FloatsNode:
            bars = shadow.bars
            if core is None or type(bars) is not core.Bars:
                if not all_moved(node.entries, shadow, arrays, seen):
                    return False
            elif not bars.are_floats(node.first, len(node.values)):
                return False
        elif node is not None:
            return False
    return True


def moved(nodes: list[Any], shadow: Shadow, arrays: dict[int, Any]) -> tuple[Any, ...]:
    """`gradients`, where `all_moved` is true and has noted these arrays."""
    made = {key: shadow.bars.handed_over(node.index) for key, node in arrays.items()}
    return tuple([entry_gradient(node, shadow, made) for node in nodes])


def gradients(nodes: list[Any], shadow: Shadow) -> tuple[Any, ...]:
    """The gradient of each argument."""
    made: dict[int, Any] = {}
    return tuple([entry_gradient(node, shadow, made) for node in nodes])
