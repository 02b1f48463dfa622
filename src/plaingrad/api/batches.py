"""Functions of one example applied to batches: `vmap`. The loop is compiled where the function is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.leaves import Branch, Leaf, check_callable, described, here
from plaingrad.api.parameters import part_of, with_values
from plaingrad.critical import imported
from plaingrad.engine.memory.entries import entries_of, has_fields
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents import is_zero

P = ParamSpec("P")


def vmap(f: Callable[P, Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, Any]:
    """The function that applies `f` to every example of a batch.

    `f` is called once for each example, in order, so it may do whatever Python can: branch on numbers, loop until it
    has converged, raise. In a batch of one example's derivatives, `vmap(grad(f), in_axes=(None, 0))`, each is taken and
    dropped before the next, so it needs the memory of one. For a function made by `numba.njit`, of numbers and arrays,
    whose result is a number or array, the loop is compiled, too. What `vmap` returns can be differentiated, and nested.

    Args:
        f: a function of one example.
        in_axes: for each positional argument the axis of its arrays along which the examples lie, or None for what is
            the same for all; one int for all arguments. For an argument that is a list, tuple, dict or object, an entry
            may be such a structure of ints and None, too.
        out_axes: the axis of the results' arrays along which the examples are to lie; may be a structure, too.

    Returns:
        A function of the same arguments as `f`; those by name are the same for all examples. It returns the structure
        of f's result, with arrays for its numbers, and arrays of one more axis for its arrays.

    Raises:
        ArgumentError: arguments do not agree on the number of examples, or there are none; a number is to be mapped;
            results differ in structure or shape.

    Examples:
        >>> import numpy as np
        >>> from plaingrad import grad
        >>> X, y, w = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.0]), np.array([0.5, 0.5])
        >>> vmap(np.dot, in_axes=(None, 0))(w, X)
        array([1.5, 3.5])
        >>> loss = lambda w, x, y: (w @ x - y) ** 2
        >>> vmap(grad(loss), in_axes=(None, 0, 0))(w, X, y)
        array([[ 1.,  2.],
               [21., 28.]])
    """
    check_callable(f, "vmap")
    programs: dict[Any, Any] = {}  # compiled loops, by the form of the arguments and the result

    def batched(*args: Any, **kwargs: Any) -> Any:
        batch = Batch(in_axes, args)
        first = here(recorded.of_one, f, batch.row(0), kwargs)
        if type(f).__module__.startswith("numba.") and not kwargs and batch.size > 1:
            rest = compiled_rest(programs, f, batch, first)
            if rest is not None:
                whole = here(recorded.with_first, first, rest)
                return here(recorded.moved_axis, whole, checked_axis(out_axes, whole.ndim, "out_axes"))
        rows = [batch.row(k) for k in range(1, batch.size)]
        return stacked([first, *here(recorded.of_each, f, rows, kwargs)], out_axes)

    batched.__plaingrad_derivative__ = True  # type: ignore[attr-defined]  # a loop in Python: not for Numba
    name = getattr(f, "__name__", repr(f))
    batched.__doc__ = f"{name} of every example of a batch; see plaingrad.vmap.\n\n{f.__doc__ or ''}".rstrip()
    return batched


class Batch:
    """The arguments of a call, and which of their arrays are mapped.

    Attributes:
        size: the number of examples.
    """

    def __init__(self, in_axes: Any, args: tuple[Any, ...]) -> None:
        if isinstance(in_axes, list):
            in_axes = tuple(in_axes)
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ArgumentError(
                f"in_axes has {len(in_axes)} entries, and there are {len(args)} positional arguments.\n"
                "  See docs: errors#argument"
            )
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        self.args = args
        self.arrays: list[np.ndarray] = []  # with the examples along the first axis
        self.sizes: dict[int, str] = {}
        pairs = enumerate(zip(args, axes, strict=True))
        self.structures = [self._structure(x, axis, f"argument {n}", {}) for n, (x, axis) in pairs]
        self.is_flat = all(structure is None or type(structure) is Leaf for structure in self.structures)
        if not self.arrays:
            raise ArgumentError("no argument is mapped: in_axes has no axis.\n  See docs: errors#argument")
        if len(self.sizes) > 1:
            said = ", ".join(f"{size} in {name}" for size, name in self.sizes.items())
            raise ArgumentError(
                f"the arguments differ in the number of examples: {said}.\n  See docs: errors#argument"
            )
        (self.size,) = self.sizes
        if not self.size:
            raise ArgumentError(
                "the batch is empty, so what the function returns is not known.\n  See docs: errors#argument"
            )

    def row(self, k: int) -> list[Any]:
        """The arguments of example `k`."""
        plainly = CURRENT.get() is PLAIN
        parts = [x[k] for x in self.arrays] if plainly else here(recorded.entries_of_arrays, self.arrays, k)
        if self.is_flat:
            pairs = zip(self.structures, self.args, strict=True)
            return [x if structure is None else parts[structure.position] for structure, x in pairs]
        return [
            with_values(structure, x, parts) for structure, x in zip(self.structures, self.args, strict=True)
        ]

    def _structure(self, x: Any, axis: Any, name: str, seen: dict[int, Any]) -> Any:
        """The structure of an argument with a `Leaf` for each array that is mapped; None for what is shared."""
        if axis is None:
            return None
        kind = kind_of(type(x))
        check_unmasked(x, name)
        if kind == ARRAY:
            axis = checked_axis(axis, x.ndim, f"in_axes of {name}")
            self.sizes.setdefault(x.shape[axis], name)
            self.arrays.append(x if axis == 0 else here(recorded.axis_in_front, x, axis))
            return Leaf(x, len(self.arrays) - 1)
        if kind not in (SEQUENCE, MAPPING) and not (kind != NOTHING and kind != NUMBER and has_fields(x)):
            if kind == NUMBER or isinstance(x, (int, np.number)):
                raise ArgumentError(
                    f"{name} is {described(x)}, which has no axis of examples.\n"
                    "  To go on: in_axes with None in its place, or an array.\n  See docs: errors#argument"
                )
            return None
        if id(x) in seen:
            return seen[id(x)]
        branch = Branch(x, {})
        if not isinstance(x, tuple):
            seen[id(x)] = branch
        for key, part in entries_of(x):
            of_part = (
                axis if isinstance(axis, int) else part_of(axis, branch_of(x), key, f"in_axes of {name}")
            )
            inside = f"{name}[{key!r}]" if kind in (SEQUENCE, MAPPING) else f"{name}.{key}"
            is_left = (
                kind not in (SEQUENCE, MAPPING)
                and isinstance(axis, int)
                and kind_of(type(part)) in (NOTHING, NUMBER)
            )
            branch.entries[key] = None if is_left else self._structure(part, of_part, inside, seen)
        return branch


def check_unmasked(x: Any, name: str) -> None:
    """Refuse an array with a mask, which would be lost."""
    if isinstance(x, np.ma.MaskedArray):
        raise ArgumentError(
            f"{name} is an array with a mask, which vmap does not keep.\n"
            "  To go on: filled() values, and the mask beside them.\n  See docs: errors#argument"
        )


def branch_of(x: Any) -> Branch:
    """`x` and its keys."""
    return Branch(x, dict(entries_of(x)))


def checked_axis(axis: Any, ndim: int, name: str) -> int:
    """`axis`, counted from the front."""
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool) or not -ndim <= axis < ndim:
        raise ArgumentError(
            f"{name} is {axis!r}, but the array there has {ndim} axes.\n  See docs: errors#argument"
        )
    return int(axis) % ndim


def stacked(results: Sequence[Any], axis: Any) -> Any:
    """One result from those of all examples: arrays for numbers, arrays with one more axis for arrays."""
    first = results[0]
    kind = kind_of(type(first))
    for x in results:
        check_unmasked(x, "a result")
    if all(map(is_number_or_array, results)):
        shapes = {np.shape(x) for x in results}
        if len(shapes) > 1:
            raise ArgumentError(
                f"the results have different shapes: {sorted(shapes)}.\n"
                "  To go on: a loop over the examples.\n  See docs: errors#argument"
            )
        axis = checked_axis(axis, np.ndim(first) + 1, "out_axes")
        return here(recorded.stacked_along, list(results), axis)
    if kind == NOTHING or is_zero(first):
        if any(type(x) is not type(first) or x != first for x in results):
            raise ArgumentError(
                f"the results differ where they hold {described(first)}, so there is no one result for the batch.\n"
                "  See docs: errors#argument"
            )
        return first
    if any(type(x) is not type(first) for x in results) or kind == NUMBER:
        raise ArgumentError(
            f"the results have different types: {described(first)} for the first example.\n  See docs: errors#argument"
        )
    keys = [key for key, _ in entries_of(first)]
    columns = [dict(entries_of(x)) for x in results]
    if any(list(column) != keys for column in columns):
        raise ArgumentError(
            f"the results have different entries: {keys} for the first example.\n  See docs: errors#argument"
        )
    branch = Branch(first, {key: Leaf(None, n) for n, key in enumerate(keys)})
    node = branch_of(first)
    parts = [
        stacked(
            [c[key] for c in columns], axis if isinstance(axis, int) else part_of(axis, node, key, "out_axes")
        )
        for key in keys
    ]
    return with_values(branch, first, parts)


def is_number_or_array(x: Any) -> bool:
    """Whether `x` is stacked as it is, and is no structure."""
    return kind_of(type(x)) in (ARRAY, NUMBER) or isinstance(x, (bool, int, np.generic))


def compiled_rest(programs: dict[Any, Any], f: Any, batch: Batch, first: Any) -> Any:
    """What `f`, a dispatcher of Numba, gives for all examples but the first, from a compiled loop; None: not done."""
    is_array = type(first) is np.ndarray and first.dtype.kind in "fciub"
    if not is_array and not isinstance(first, (bool, int, float, complex)):
        return None
    if any(structure is not None and type(structure) is not Leaf for structure in batch.structures):
        return None
    mapped = tuple([structure is not None for structure in batch.structures])
    key = mapped, None if is_array else np.asarray(first).dtype.type
    if key not in programs:
        programs[key] = imported("plaingrad.native.border.batches").loop_over(f, *key)
    kept = [
        batch.arrays[s.position] if s is not None else x
        for s, x in zip(batch.structures, batch.args, strict=True)
    ]
    return here(recorded.rest_of, programs[key], first, mapped, kept)
