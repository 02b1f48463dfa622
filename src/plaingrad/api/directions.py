"""Forward mode along several directions at once: tangents whose numbers and arrays have a leading axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.leaves import Leaf, described, filled, here, leaf_values, structure_of, structures_of
from plaingrad.api.seeds import direction_type
from plaingrad.engine.forward.push import push
from plaingrad.errors import NonScalarOutputError, TangentError


def jvp_of_batch(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]:
    """`jvp` with tangents whose leaves have a leading axis."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TangentError(
            "primals and tangents must be tuples with one entry for each argument.\n  See docs: errors#tangent"
        )
    if len(primals) != len(tangents):
        raise TangentError(
            f"there are {len(primals)} primals and {len(tangents)} tangents; give one for each argument, None for one "
            "that is held fixed.\n  See docs: errors#tangent"
        )
    dots, size = _directions(primals, tangents)
    y, y_dot = push(f, tuple(primals), dots, {}, size)
    if not has_aux:
        return y, _mirrored(y, y_dot, size)
    if not (type(y) is tuple and len(y) == 2):
        raise NonScalarOutputError(f"with has_aux=True the function must return (y, aux), not {described(y)}")
    return y[0], _mirrored(y[0], y_dot[0] if type(y_dot) is tuple else None, size), y[1]


def _directions(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
    """The tangents as arrays, and how many directions they are.

    Raises:
        TangentError: they do not fit, or are not equally many.
    """
    structures, leaves = structures_of(primals)
    found: dict[int, Any] = {}
    for structure, x_dot in zip(structures, tangents, strict=True):
        try:
            found.update(leaf_values(structure, x_dot))
        except (AttributeError, KeyError, TypeError, IndexError):
            raise TangentError(
                f"a tangent must have the structure of its argument, not {described(x_dot)}.\n"
                "  See docs: errors#tangent"
            ) from None
    arrays = {n: _checked(dot, leaves[n]) for n, dot in found.items()}
    sizes = sorted({len(array) for array in arrays.values()})
    if len(sizes) != 1 or sizes == [0]:
        raise TangentError(
            f"with batch=True all tangents have the same number of directions, at least one, not {sizes}.\n"
            "  See docs: errors#tangent"
        )

    def seed(leaf: Leaf) -> Any:
        if leaf.position in arrays:
            return arrays[leaf.position]
        return np.zeros((sizes[0], *leaf.shape), direction_type(leaf.x))

    still = [all(leaf not in arrays for leaf in _positions(structure)) for structure in structures]
    dots = [None if s else filled(structure, seed) for structure, s in zip(structures, still, strict=True)]
    return tuple(dots), sizes[0]


def _positions(structure: Any) -> list[int]:
    positions: list[int] = []
    if structure is not None:
        filled(structure, lambda leaf: positions.append(leaf.position))
    return positions


def _checked(dot: Any, leaf: Leaf) -> Any:
    """The directions of one leaf as an array."""
    array = here(recorded.as_array, dot) if isinstance(dot, np.ndarray) else here(np.array, dot)
    if array.shape[1:] != leaf.shape or array.ndim == 0 or array.dtype.kind not in "fciu":
        raise TangentError(
            f"with batch=True the tangent of {described(leaf.x)} is an array of shape {('n', *leaf.shape)}, not "
            f"{described(dot)}.\n  See docs: errors#tangent".replace("'n'", "n")
        )
    if array.dtype.kind == "c" and not leaf.is_complex:
        raise TangentError("the tangent of a real number or array is real.\n  See docs: errors#tangent")
    dtype = direction_type(leaf.x)
    return array if array.dtype == dtype else here(recorded.as_dtype, array, dtype)


def _mirrored(y: Any, y_dot: Any, size: int) -> Any:
    """`y_dot` with the structure of `y`, an array with a leading axis for each of its numbers and arrays."""
    structure, _ = structure_of(y, as_real=True)
    found = leaf_values(structure, y_dot)

    def entry(leaf: Leaf) -> Any:
        dot = found.get(leaf.position)
        if dot is None:
            return np.zeros((size, *leaf.shape), np.asarray(leaf.x).dtype)
        return dot.reshape((size, *leaf.shape)) if isinstance(dot, np.ndarray) else here(np.array, dot)

    return filled(structure, entry)
