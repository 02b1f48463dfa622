"""The numbers and arrays in an object, in the order in which they arrive at a rank that gets it by pickle."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from plaingrad.define import mover
from plaingrad.rules.processes.transfer import has_tangent, put_together, strangeness


class _Taking(pickle.Pickler):
    """Pickles an object without its numbers. A float that is there twice arrives as two, an array as one."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.found: list[Any] = []
        self.strange = ""
        self._places: dict[int, int] = {}

    def persistent_id(self, x: Any) -> int | None:
        """The place of a number or array."""
        if has_tangent(x) and (type(x) is np.ndarray or not isinstance(x, np.ndarray)):
            n = None if type(x) is float else self._places.get(id(x))
            if n is None:
                n = self._places[id(x)] = len(self.found)
                self.found.append(x)
            return n
        self.strange = self.strange or strangeness(x, type(x))
        return None


def taken_apart(x: Any) -> tuple[bytes, list[Any], str]:
    """The structure of x, its numbers and arrays, and why there may be others; ("", [x], "") of one of these itself."""
    t = type(x)
    if t is float or t is np.ndarray and x.dtype.kind in "fc":
        return b"", [x], ""
    file = io.BytesIO()
    taking = _Taking(file)
    taking.dump(x)
    return file.getvalue(), taking.found, taking.strange


def with_numbers(structure: bytes, xs: list[Any]) -> Any:
    """The object that has this structure, with xs for its numbers."""
    return put_together(structure, xs) if structure else xs[0]


mover(taken_apart, with_numbers)
