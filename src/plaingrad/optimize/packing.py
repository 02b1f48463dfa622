"""Structures of numbers as one vector, and back: what SciPy sees of dictionaries, dataclasses and lists of arrays."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.errors import ArgumentError


def is_vector(x: Any) -> bool:
    """Whether SciPy takes `x` as it is: a number, an array with one axis, a list of numbers."""
    if isinstance(x, (np.ndarray, np.number, float, int)):
        return np.ndim(x) <= 1
    return isinstance(x, (list, tuple)) and all(isinstance(part, (np.number, float, int)) for part in x)


def packed(x: Any) -> Any:
    """The real numbers in a structure, in order, as one vector."""
    parts: list[Any] = []
    _gather(x, parts)
    return np.concatenate(parts) if parts else np.zeros(0)


def as_vector(z: Any) -> Any:
    """What a user's function returned, for SciPy: numbers and vectors as they are, all else as one vector."""
    if is_vector(z):
        return z
    return np.reshape(z, (-1,)) if isinstance(z, np.ndarray) else packed(z)


def _gather(x: Any, parts: list[Any]) -> None:
    if isinstance(x, (complex, np.complexfloating)) or (isinstance(x, np.ndarray) and x.dtype.kind == "c"):
        raise ArgumentError(
            "x0 holds complex numbers; give real and imaginary parts.\n  See docs: errors#argument"
        )
    if isinstance(x, (float, np.floating)):
        parts.append(np.array([x]))
    elif isinstance(x, np.ndarray):
        if x.dtype.kind == "f":
            parts.append(np.reshape(x, (-1,)))
    else:
        for _, part in _entries(x):
            _gather(part, parts)


def _entries(x: Any) -> list[tuple[Any, Any]]:
    """What a container or object holds, by place; nothing for anything else."""
    if isinstance(x, dict):
        return list(x.items())
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return [(field.name, getattr(x, field.name)) for field in dataclasses.fields(x)]
    fields = getattr(x, "__dict__", None)
    return (
        list(fields.items()) if type(fields) is dict and not callable(x) and not isinstance(x, type) else []
    )


def unpacker(x0: Any) -> Callable[[Any], Any]:
    """The function from vectors, or matrices with a column for each time, to structures like `x0`."""

    def unpack(flat: Any) -> Any:
        return _built(x0, flat, 0)[0]

    return unpack


def _built(x: Any, flat: Any, at: int) -> tuple[Any, int]:
    """(a structure like x with the numbers of `flat` from `at` on, the place after them)."""
    if isinstance(x, (float, np.floating)):
        z = flat[at]
        return (z if np.ndim(z) else float(z)), at + 1
    if isinstance(x, np.ndarray):
        if x.dtype.kind != "f":
            return x, at
        return np.reshape(flat[at : at + x.size], x.shape + np.shape(flat)[1:]), at + x.size
    parts = []
    for name, part in _entries(x):
        new, at = _built(part, flat, at)
        parts.append((name, new))
    if not parts:
        return x, at
    if isinstance(x, dict):
        return dict(parts), at
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[part for _, part in parts]), at
    if isinstance(x, (list, tuple)):
        return type(x)([part for _, part in parts]), at
    made = copy.copy(x)
    for name, part in parts:
        object.__setattr__(made, name, part)  # of frozen ones, too
    return made, at


def opened(x0: Any) -> tuple[Any, Callable[[Any], Any]]:
    """(the vector for SciPy, what makes of such a vector what the program's functions take)."""
    if is_vector(x0):
        return np.asarray(x0, dtype=float), lambda x: x
    if isinstance(x0, np.ndarray) and x0.dtype.kind in "iub":
        x0 = x0.astype(float)
    flat = packed(x0)
    if not flat.size:
        raise ArgumentError(
            f"x0 is a {type(x0).__qualname__} without real numbers.\n  See docs: errors#argument"
        )
    return flat, unpacker(x0)
