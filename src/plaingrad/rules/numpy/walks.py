"""`np.nditer` over differentiated arrays: the elements that it hands out are views of the arrays' own memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from plaingrad.define import composed, mover
from plaingrad.errors import MissingRuleError
from plaingrad.rules.derivatives import where


class Place:
    """Memory of an array, for NumPy to make a view of it that knows the array."""

    def __init__(self, interface: dict[str, Any], base: Any) -> None:
        self.__array_interface__ = interface
        self.base = base


def view_of(array: Any, v: Any) -> Any:
    """The view of `array` that lies where `v` does."""
    if array.dtype.kind != "O":
        interface = dict(v.__array_interface__)
        interface["data"] = interface["data"][0], not v.flags.writeable
        return np.asarray(Place(interface, array))
    axes = range(array.ndim)
    flat = array.transpose(sorted(axes, key=lambda k: -array.strides[k])).reshape(-1)
    start = (v.__array_interface__["data"][0] - flat.__array_interface__["data"][0]) // flat.itemsize
    step = v.strides[0] // flat.itemsize if v.size > 1 else 1
    part = flat[start : start + v.size * step : step]
    return part.reshape(v.shape) if np.may_share_memory(flat, array) and len(part) == v.size else v


def placed(given: Any, operands: Any) -> Any:
    """What the iterator gives, as views of the arrays; a tuple for several."""
    if isinstance(given, tuple):
        return tuple([placed(v, (operand,)) for v, operand in zip(given, operands, strict=False)])
    return view_of(operands[0], given)


def started(op: Any, args: Any, options: Any) -> Any:
    """The iterator, and why it cannot be followed; empty if it can."""
    it = np.nditer(op, *args, **options)
    flags = (args[0] if args else options.get("flags")) or ()
    given = op if isinstance(op, (list, tuple)) else (op,)
    if "buffered" in flags:
        return it, "it hands out buffers, where numbers lose their derivatives; leave `buffered` out"
    for array, operand in zip(given, it.operands, strict=False):
        if array is not None and not (isinstance(array, np.ndarray) and is_same(array, operand)):
            return it, "it makes a copy of an operand; give it arrays of the types that it is to have"
    return it, ""


def is_same(array: Any, operand: Any) -> bool:
    """Whether two arrays are the same memory, seen as the same numbers."""
    here, there = array.__array_interface__["data"], operand.__array_interface__["data"]
    return here[0] == there[0] and array.dtype == operand.dtype


def step(it: Any) -> Any:
    """The next elements; StopIteration is handed on as a result."""
    return next(it, StopIteration)


def entry(it: Any, key: Any) -> Any:
    """The elements of one operand, or of some."""
    return it[key]


mover(placed, started, step, entry)


class Walk:
    """In the place of an `nditer`, and used like it."""

    def __init__(self, it: Any) -> None:
        self.it = it
        self.operands = it.operands

    def __getattr__(self, name: str) -> Any:
        return getattr(self.it, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("it", "operands"):
            object.__setattr__(self, name, value)
        else:
            setattr(self.it, name, value)  # multi_index, index, iterrange

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        given = step(self.it)
        if given is StopIteration:
            raise StopIteration
        return placed(given, self.operands)

    def __len__(self) -> int:
        return len(self.it)

    def __getitem__(self, key: Any) -> Any:
        operands = self.operands[key]
        return placed(entry(self.it, key), operands if isinstance(key, slice) else (operands,))

    def __setitem__(self, key: Any, value: Any) -> None:
        self[key][...] = value

    @property
    def value(self) -> Any:
        """Where it stands."""
        return placed(self.it.value, self.operands)

    @property
    def itviews(self) -> Any:
        """The operands as they are gone through."""
        return placed(self.it.itviews, self.operands)

    def copy(self) -> Any:
        """Another one at the same place."""
        return Walk(self.it.copy())

    __copy__ = copy

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        self.it.close()


@composed(np.nditer)
def nditer(op: Any, *args: Any, **options: Any) -> Any:
    """The walk over the arrays."""
    it, why = started(op, args, options)
    if why:
        raise MissingRuleError(
            f"`numpy.nditer` {where()}, has no derivative here: {why}.\n"
            "  To go on: loop over the array, np.ndindex or a.flat.\n  See docs: errors#missing-rule"
        )
    return Walk(it)
