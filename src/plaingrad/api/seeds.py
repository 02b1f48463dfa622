"""Seeds: the cotangents and directions that a derivative begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.api.leaves import Leaf, described
from plaingrad.engine.memory.kinds import ARRAY, NUMBER, kind_of
from plaingrad.errors import ArgumentError, NonScalarOutputError


def unit_cotangent(y: Any, f: Any) -> Any:
    """1 as a cotangent of the scalar `y`."""
    if type(y) is float:
        return 1.0
    kind = kind_of(type(y))
    name = getattr(f, "__name__", "the function")
    own = number_classes.of(y)
    if own is not None and not own.is_complex:
        return own.made(y, 1)
    if kind == NUMBER and own is None and not isinstance(y, (complex, np.complexfloating)):
        return 1.0 if isinstance(y, (float, np.floating)) else type(y)(1)
    if kind == ARRAY and y.shape == () and y.dtype.kind in "fiu":
        return np.ones((), y.dtype if y.dtype.kind == "f" else float)
    truth = isinstance(y, (bool, np.bool_)) or (kind == ARRAY and y.dtype.kind == "b")
    if isinstance(y, (int, np.integer)) and not truth:
        return 1.0
    if (
        own is not None
        or isinstance(y, (complex, np.complexfloating))
        or (kind == ARRAY and y.dtype.kind == "c")
    ):
        hint = "return its real part or its absolute value, or use vjp with the cotangent you mean"
    elif y is None:
        hint = "is a `return` missing?"
    elif truth:
        hint = "a truth value changes by jumps only; return the number that was compared"
    else:
        hint = "reduce it to one number (sum, mean, an entry), or use vjp with a cotangent of its shape"
    raise NonScalarOutputError(
        f"grad needs one real number, but {name} returned {described(y)}.\n  To go on: {hint}.\n"
        "  See docs: errors#non-scalar-output"
    )


def check_is_numpys(x: Any) -> None:
    """Refuse an array of another system, whose elements have no directions of their own here."""
    if number_classes.system_of(x) is not None:
        raise ArgumentError(
            f"Jacobians, Hessians and linear maps are of numbers and arrays of NumPy, not of a {type(x).__name__}.\n"
            "  To go on: take an array of NumPy and make the other of it inside the function; grad, vjp, jvp and hvp "
            "take both.\n  See docs: errors#argument"
        )


def of_numpy(structure: Any, leaves: Any) -> tuple[Any, Any]:
    """A structure and its leaves, which are refused if there is an array of another system among them."""
    for leaf in leaves:
        check_is_numpys(leaf.x)
    return structure, leaves


def unit_directions(leaves: Sequence[Leaf], start: int, count: int) -> dict[int, Any]:
    """Unit directions start ... start + count along a leading axis, by position of the leaf; zeros are left out.

    A leaf of n complex numbers has 2 n directions: first 1 for each of them, then i.
    """
    for leaf in leaves:
        check_is_numpys(leaf.x)
    dots: dict[int, Any] = {}
    begin = 0
    for leaf in leaves:
        low, high = max(start, begin), min(start + count, begin + leaf.directions)
        if low < high:
            dot = np.zeros((count, *leaf.shape), direction_type(leaf.x))
            k = np.arange(low, high)
            ones = np.where(k - begin < leaf.size, 1, 1j) if leaf.is_complex else 1
            dot.reshape(count, leaf.size)[k - start, (k - begin) % leaf.size] = ones
            dots[leaf.position] = dot
        begin += leaf.directions
    return dots


def seeds(y: Leaf) -> Iterator[Any]:
    """Weight 1 on each element of y in turn; then, if y is complex, weight i."""
    check_is_numpys(y.x)
    for one in (1, 1j) if y.is_complex else (1,):
        for k in range(y.size):
            if y.is_array:
                seed = np.zeros(y.shape, y.x.dtype)
                seed.flat[k] = one
                yield seed
            else:
                yield type(y.x)(one)


def direction_type(x: Any) -> Any:
    """The dtype of derivatives of a number or array."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype
    return complex if isinstance(x, complex) else float
