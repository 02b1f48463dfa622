"""Structures of numbers as one vector, and back: what SciPy sees of dictionaries, dataclasses and lists of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.leaves import here, structure_of
from plaingrad.api.parameters import vector_of, with_values
from plaingrad.errors import ArgumentError


def is_vector(x: Any) -> bool:
    """Whether SciPy takes `x` as it is: a number, an array with one axis, a list of numbers."""
    if isinstance(x, (np.ndarray, np.number, float, int)):
        return np.ndim(x) <= 1
    return isinstance(x, (list, tuple)) and all(isinstance(part, (np.number, float, int)) for part in x)


def packed(x: Any) -> Any:
    """The real numbers in a structure, in order, as one vector."""
    leaves = structure_of(x)[1]
    if any(leaf.is_complex for leaf in leaves):
        raise ArgumentError(
            "x0 holds complex numbers; give real and imaginary parts.\n  See docs: errors#argument"
        )
    return vector_of(leaves)


def as_vector(z: Any) -> Any:
    """What a user's function returned, for SciPy: numbers and vectors as they are, all else as one vector."""
    if is_vector(z):
        return z
    return np.reshape(z, (-1,)) if isinstance(z, np.ndarray) else packed(z)


def unpacker(x0: Any) -> Callable[[Any], Any]:
    """The function from vectors, or matrices with a column for each time, to structures like `x0`."""
    structure, leaves = structure_of(x0)

    def unpack(flat: Any) -> Any:
        return with_values(structure, x0, here(recorded.parted, flat, leaves))

    return unpack


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
