"""The numbers and arrays in an object, in the order in which they arrive at a rank that gets it by pickle."""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

import numpy as np

from plaingrad.define import mover
from plaingrad.origin import is_of
from plaingrad.rules.processes.transfer import has_tangent, strangeness

#: Packages of classes whose objects belong to several processes, or to the system.
SHARED = frozenset(("multiprocessing", "multiprocess", "_multiprocessing", "_ctypes", "socket", "_socket"))


class Structure(NamedTuple):
    """An object without its numbers: as pickled, and what is left as it is (queues, connections, locks)."""

    pickled: bytes
    left: list[Any]


class _Taking(pickle.Pickler):
    """Pickles an object without its numbers. A float that is there twice arrives as two, an array as one."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.found: list[Any] = []
        self.left: list[Any] = []
        self.strange = ""
        self._places: dict[int, int] = {}

    def persistent_id(self, x: Any) -> int | None:
        """The place of a number or array; below zero: of what is left as it is."""
        if has_tangent(x) and (type(x) is np.ndarray or not isinstance(x, np.ndarray)):
            n = None if type(x) is float else self._places.get(id(x))
            if n is None:
                n = self._places[id(x)] = len(self.found)
                self.found.append(x)
            return n
        t = type(x)
        if t.__module__ != "builtins" and is_shared(t):
            n = self._places.get(id(x))
            if n is None:
                self.left.append(x)
                n = self._places[id(x)] = -len(self.left)
            return n
        self.strange = self.strange or strangeness(x, t)
        return None


class _Putting(pickle.Unpickler):
    def __init__(self, structure: Structure, xs: list[Any]) -> None:
        super().__init__(io.BytesIO(structure.pickled))
        self._xs, self._left = xs, structure.left

    def persistent_load(self, n: int) -> Any:
        """The number at place n, or what was left as it is."""
        return self._left[-n - 1] if n < 0 else self._xs[n]


def is_shared(t: type) -> bool:
    """Whether objects of a class go to another process by name, or in another way of their own."""
    return any(is_of(cls.__module__, SHARED) for cls in t.__mro__)


def taken_apart(x: Any) -> tuple[Structure | None, list[Any], str]:
    """The structure of x, its numbers and arrays, and why there may be others; (None, [x], "") of one of these itself."""
    t = type(x)
    if t is float or t is np.ndarray and x.dtype.kind in "fc":
        return None, [x], ""
    file = io.BytesIO()
    taking = _Taking(file)
    taking.dump(x)
    return Structure(file.getvalue(), taking.left), taking.found, taking.strange


def with_numbers(structure: Structure | None, xs: list[Any]) -> Any:
    """The object that has this structure, with xs for its numbers."""
    return _Putting(structure, xs).load() if structure else xs[0]


mover(taken_apart, with_numbers)
