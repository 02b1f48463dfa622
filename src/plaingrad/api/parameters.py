"""Parameters in structures (pytrees): their leaves, maps over them, as one vector and back, a step along a gradient."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.leaves import (
    TANGENT,
    Branch,
    Leaf,
    check_callable,
    described,
    here,
    leaf_values,
    structure_of,
)
from plaingrad.copying import shallow_copy
from plaingrad.engine.memory.entries import put
from plaingrad.engine.values.fresh import rebuilt
from plaingrad.errors import ArgumentError
from plaingrad.tangents import Tangent, is_zero, unthunk
from plaingrad.tangents.types import OPERATIONS, primal_type_of

T = TypeVar("T")


def tree_leaves(x: Any) -> list[Any]:
    """The real and complex numbers, and the arrays of them, in a structure, in order.

    A structure is what `grad` takes: numbers, arrays, lists, tuples, dicts, named tuples, dataclasses and other
    objects, nested, and `Tangent`. Its leaves are what a gradient has entries for: not the ints, strings and
    functions in it. A list, dict or object that stands in several places is met once.

    Examples:
        >>> tree_leaves({"w": [1.0, 2.0], "steps": 10, "name": "linear"})
        [1.0, 2.0]
    """
    return [leaf.x for leaf in structure_of(x, as_real=True)[1]]


def tree_map(f: Callable[..., Any], x: T, *more: Any) -> T:
    """The structure `x` with f(leaf, ...) for each leaf.

    Args:
        f: a function of a leaf of `x`, and of the entries of `more` in its place.
        x: a structure; see `tree_leaves`.
        more: structures like `x`: others of its kind, or gradients, where an object has a `Tangent`.

    Returns:
        A list for a list, an object of the same class for an object. What is no leaf is as in `x`.

    Raises:
        ArgumentError: one of `more` has no entry for a leaf of `x`.

    Examples:
        >>> tree_map(lambda w, slope: w - 0.5 * slope, {"w": 1.0, "b": [2.0]}, {"w": 4.0, "b": [2.0]})
        {'w': -1.0, 'b': [1.0]}
    """
    check_callable(f, "tree_map")
    structure, leaves = structure_of(x, as_real=True)
    columns = [[leaf.x for leaf in leaves]]
    for n, other in enumerate(more):
        columns.append(entries_at(structure, leaves, other, f"argument {n + 2} of tree_map"))
    return with_values(structure, x, here(recorded.mapped, f, columns))  # type: ignore[no-any-return]


def ravel(x: T) -> tuple[Any, Callable[[Any], T]]:
    """`(vector, back)`: all leaves of a structure as one vector, and the function from such vectors to structures.

    Both may be differentiated. `back` takes a vector of the same length; what is no leaf is as in `x`. An array of
    shape (n, m) gives a structure whose leaves have one more axis, m long, at the end.

    Args:
        x: a structure; see `tree_leaves`.

    Raises:
        ArgumentError: there is a `Fraction` or `Decimal`, or `back` was given another length.

    Examples:
        >>> import numpy as np
        >>> vector, back = ravel({"w": np.array([[1.0, 2.0]]), "b": 3.0})
        >>> vector
        array([1., 2., 3.])
        >>> back(10 * vector)
        {'w': array([[10., 20.]]), 'b': 30.0}
    """
    structure, leaves = structure_of(x, as_real=True)
    vector = vector_of(leaves)
    size = sum(leaf.size for leaf in leaves)

    def back(vector: Any) -> T:
        """The structure with the entries of `vector` for its leaves."""
        if not isinstance(vector, np.ndarray) or not vector.ndim or vector.shape[0] != size:
            raise ArgumentError(
                f"back takes an array of {size} numbers, not {described(vector)}.\n  See docs: errors#argument"
            )
        return with_values(structure, x, here(recorded.parted, vector, leaves))  # type: ignore[no-any-return]

    return vector, back


def updated(x: T, step: Any, scale: Any = 1.0) -> T:
    """x + scale * step, leaf by leaf, as a new structure: where parameters are after a step along a gradient.

    For an object and its `Tangent` it is what `x + scale * step` gives, if the class has no operators of its own. It is
    made by copying the object and replacing its attributes, without `__init__`: an attribute that was computed from
    others is stepped by its own entry. Ints, strings and what else has no tangent are as in `x`; the types of numbers
    and the dtypes of arrays are kept.

    Args:
        x: a structure; see `tree_leaves`.
        step: its gradient, or another tangent: as `grad` returns it, zeros left out or not.
        scale: a number.

    Raises:
        TangentError: `step` does not fit `x`.

    Examples:
        >>> from dataclasses import dataclass
        >>> from plaingrad import grad
        >>> @dataclass
        ... class Line:
        ...     slope: float
        ...     offset: float
        >>> line = Line(1.0, 2.0)
        >>> slopes = grad(lambda line: (3.0 * line.slope + line.offset) ** 2)(line)
        >>> updated(line, slopes, -0.1)
        Line(slope=-2.0, offset=1.0)
        >>> line - 0.1 * slopes == updated(line, slopes, -0.1)
        True
    """
    structure, leaves = structure_of(x, as_real=True)
    found = leaf_values(structure, TANGENT.of(step, x, "step", as_real=True))
    values = [leaf.x for leaf in leaves]
    moved = [leaf.position for leaf in leaves if leaf.position in found]
    news = here(recorded.stepped, [values[n] for n in moved], [found[n] for n in moved], scale)
    for n, new in zip(moved, news, strict=True):
        values[n] = new
    return with_values(structure, x, values)  # type: ignore[no-any-return]


OPERATIONS["updated"] = updated


def vector_of(leaves: Sequence[Leaf]) -> Any:
    """The numbers in `leaves` as one vector, of the dtype that holds them all."""
    for leaf in leaves:
        if not isinstance(leaf.x, (float, complex, np.inexact, np.ndarray)):
            raise ArgumentError(
                f"an array cannot hold {described(leaf.x)}; convert it to a float.\n  See docs: errors#argument"
            )
    return here(recorded.as_vector, [leaf.x for leaf in leaves]) if leaves else np.zeros(0)


def gradient_vector(x: Any, gradient: Any) -> Any:
    """A gradient as a vector that is laid out like the one that `ravel` makes of `x`."""
    structure, leaves = structure_of(x, as_real=True)
    found = leaf_values(structure, TANGENT.of(gradient, x, "gradient", as_real=True))
    parts = [found.get(leaf.position, leaf) for leaf in leaves]
    return here(recorded.as_vector, [np.zeros(d.shape) if d is leaf else d for d, leaf in zip(parts, leaves)])


def entries_at(structure: Any, leaves: Sequence[Leaf], d: Any, name: str) -> list[Any]:
    """The entries of `d`, which has this structure, or that of its tangents, in the places of `leaves`."""
    found: dict[int, Any] = {}
    waiting = [(structure, unthunk(d))]
    while waiting:
        node, d = waiting.pop()
        if type(node) is Leaf:
            if d is not None and not is_zero(d):
                found[node.position] = d
        elif type(node) is Branch:
            waiting += [
                (entry, part_of(d, node, key, name))
                for key, entry in node.entries.items()
                if entry is not None
            ]
    if len(found) < len(leaves):
        lacking = next(leaf for leaf in leaves if leaf.position not in found)
        raise ArgumentError(
            f"{name} has no entry for a leaf of the first structure, {described(lacking.x)}.\n"
            "  See docs: errors#argument"
        )
    return [found[leaf.position] for leaf in leaves]


def part_of(d: Any, node: Branch, key: Any, name: str) -> Any:
    """The entry of `d`, a structure like `node` or a tangent of it, under `key`."""
    try:
        if type(node.x) is Tangent:
            return vars_of(d)
        if isinstance(node.x, (list, tuple, deque, dict)):
            if isinstance(d, (list, tuple, deque)) and len(d) != len(node.entries):
                raise IndexError
            return d[key]
        return d[key] if type(d) is Tangent or isinstance(d, dict) else getattr(d, key)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ArgumentError(
            f"{name} is not like the first structure: {described(d)} where that has {described(node.x)}, of "
            f"{len(node.entries)} entries.\n  See docs: errors#argument"
        ) from None


def vars_of(d: Any) -> Any:
    """The fields of a `Tangent`."""
    return object.__getattribute__(d, "_fields")


def with_values(structure: Any, x: Any, values: Sequence[Any], made: dict[int, Any] | None = None) -> Any:
    """A structure like `x` with these values for its leaves. What `x` holds twice, it holds twice."""
    made = {} if made is None else made
    if structure is None:
        return x
    if type(structure) is Leaf:
        return values[structure.position]
    if id(structure) in made:
        return made[id(structure)]
    x, entries = structure.x, structure.entries
    if isinstance(x, tuple):
        parts = zip(x, entries.values(), strict=True)
        return rebuilt(x, [with_values(entry, part, values, made) for part, entry in parts])
    if type(x) is Tangent:
        fields: dict[str, Any] = {}
        made[id(structure)] = new = Tangent(primal_type_of(x), fields)
        fields.update(with_values(entries["_fields"], vars_of(x), values, made))
        return new
    made[id(structure)] = new = shallow_copy(x)
    for key, entry in entries.items():
        if entry is not None:
            put(new, key, with_values(entry, None, values, made))
    return new
