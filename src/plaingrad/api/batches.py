"""Functions of one example applied to batches: `vmap`. A batch runs at once, else in a loop; see `engine.batches`."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, ParamSpec

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.batch_results import (
    BlocksDifferError,
    branch_of,
    check_unmasked,
    checked_axis,
    stacked,
    whole,
)
from plaingrad.api.gradients import grad, value_and_grad
from plaingrad.api.leaves import Branch, Leaf, check_callable, described, here, positions_of
from plaingrad.api.operator_objects import Derivative
from plaingrad.api.parameters import part_of, with_values
from plaingrad.critical import imported
from plaingrad.engine.batches.mapped import MAKING, Mapped
from plaingrad.engine.batches.mapped import Batch as Run
from plaingrad.engine.memory.entries import entries_of, has_fields
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.refusals import watch
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN

P = ParamSpec("P")


def vmap(f: Callable[P, Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, Any]:
    """The function that applies `f` to every example of a batch.

    A function that only computes, with NumPy, `math` and Python's operators, runs once for the whole batch, if there
    are 32 examples or more: so do `grad(f)` and `value_and_grad(f)`, for a gradient of each example. Any other function
    is called once for each example, in order, so it may do whatever Python can: branch on numbers, loop until it has
    converged, print, raise. Both give the same to rounding. For a function made by `numba.njit`, of numbers and arrays,
    whose result is a number or array, the loop is compiled, and runs in as many threads as Numba has if `f` only
    computes. What `vmap` returns can be differentiated, and nested.

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
        found = at_once(f, batch, kwargs, out_axes)
        if found is not None:
            return found[0]
        first = here(recorded.of_one, f, batch.row(0), kwargs)
        if type(f).__module__.startswith("numba.") and not kwargs and batch.size > 1:
            rest = compiled_rest(programs, f, batch, first)
            if rest is not None:
                whole = here(recorded.with_first, first, rest)
                return here(recorded.moved_axis, whole, checked_axis(out_axes, whole.ndim, "out_axes"))
        rows = [batch.row(k) for k in range(1, batch.size)]
        return stacked([first, *here(recorded.of_each, f, rows, kwargs)], out_axes)

    batched.__plaingrad_batched__ = f  # type: ignore[attr-defined]  # called as it is where a batch runs at once
    batched.__plaingrad_derivative__ = True  # type: ignore[attr-defined]  # a loop in Python: not for Numba
    name = getattr(f, "__name__", repr(f))
    batched.__doc__ = f"{name} of every example of a batch; see plaingrad.vmap.\n\n{f.__doc__ or ''}".rstrip()
    return batched


MAKING.update((grad, value_and_grad, vmap))


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

    def mapped(self, run: Run, arrays: list[Any]) -> list[Any]:
        """The arguments of a run for all these examples."""
        parts = [Mapped(run, a, np.ndarray if len(a.shape) > 1 else a.dtype.type) for a in arrays]
        pairs = zip(self.structures, self.args, strict=True)
        return [with_values(structure, x, parts) for structure, x in pairs]

    def _structure(self, x: Any, axis: Any, name: str, seen: dict[int, Any]) -> Any:
        """The structure of an argument with a `Leaf` for each array that is mapped; None for what is shared."""
        if axis is None:
            return None
        kind = ARRAY if type(x) is Mapped else kind_of(type(x))
        check_unmasked(x, name)
        if kind == ARRAY:
            axis = checked_axis(axis, x.ndim, f"in_axes of {name}")
            self.sizes.setdefault(x.shape[axis], name)
            self.arrays.append(x if axis == 0 else here(recorded.axis_in_front, x, axis))
            return Leaf(None, len(self.arrays) - 1)
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


FEWEST = 32  # examples: with fewer, the loop is as quick
MOST_NUMBERS = 1 << 12  # of one example: beyond, what Python takes does not count
IN_A_BLOCK = 1 << 18  # numbers of all examples that run at once


def at_once(f: Any, batch: Batch, kwargs: dict[str, Any], out_axes: Any) -> tuple[Any] | None:
    """(the result,) of a run for the whole batch, or for blocks of it; None, and nothing was done: the loop is to."""
    code = code_of(f)
    if batch.size < FEWEST or watch.observer is not None or code is None:
        return None
    runs_of = imported(
        "plaingrad.api.batched_gradients"
    )  # with the level and its tables, when there is a batch
    if runs_of.refusal_of(code) is not None:
        return None
    numbers = numbers_of_one(f, batch)
    if numbers > MOST_NUMBERS or not all(
        type(a) in (np.ndarray, Mapped) and a.dtype.kind in "fciub" and a.dtype.isnative for a in batch.arrays
    ):
        return None
    block = max(FEWEST, IN_A_BLOCK // (numbers + 1))
    results: list[Any] = []
    runs: list[Run] = []
    for start in range(0, batch.size, block):
        run = Run(min(block, batch.size - start))
        arrays = batch.arrays
        if run.size < batch.size:
            arrays = here(recorded.entries_of_arrays, arrays, slice(start, start + run.size))
        if not runs_of.try_batch(f, code, run, batch.mapped(run, arrays), kwargs, results):
            return None
        runs.append(run)
    try:
        return (whole(results, runs, out_axes, set()),)
    except BlocksDifferError:
        return None


def numbers_of_one(f: Any, batch: Batch) -> int:
    """How many numbers one example has of its own, with those of its gradient by what the examples share."""
    count = sum(math.prod(a.shape[1:]) for a in batch.arrays)
    if type(f) is Derivative and f._made_by[0] in (grad, value_and_grad):
        for n in positions_of(f._made_by[2][0]):
            if -len(batch.args) <= n < len(batch.args) and batch.structures[n] is None:
                count += numbers_in(batch.args[n], set())
    return count


def numbers_in(x: Any, seen: set[int]) -> int:
    """How many numbers are in a structure."""
    if isinstance(x, (Mapped, np.ndarray)):
        return math.prod(x.shape)
    kind = kind_of(type(x))
    if kind in (NOTHING, NUMBER) or id(x) in seen or (kind not in (SEQUENCE, MAPPING) and not has_fields(x)):
        return 1
    seen.add(id(x))
    return sum(numbers_in(part, seen) for _, part in entries_of(x))


def code_of(f: Any) -> Any:
    """The code of a function, or of that which one of plaingrad's operators was given; None for others."""
    while type(f) in (Derivative, MethodType) or "__plaingrad_batched__" in getattr(f, "__dict__", ()):
        f = (
            f._made_by[1]
            if type(f) is Derivative
            else f.__func__
            if type(f) is MethodType
            else f.__plaingrad_batched__
        )
    return f.__code__ if type(f) is FunctionType else None


def compiled_rest(programs: dict[Any, Any], f: Any, batch: Batch, first: Any) -> Any:
    """What `f`, a dispatcher of Numba, gives for all examples but the first, from a compiled loop; None: not done."""
    is_array = type(first) is np.ndarray and first.dtype.kind in "fciub"
    if not is_array and not isinstance(first, (bool, int, float, complex)):
        return None
    if any(structure is not None and type(structure) is not Leaf for structure in batch.structures):
        return None
    mapped = tuple([structure is not None for structure in batch.structures])
    key = mapped, None if is_array else np.asarray(first).dtype.type
    native = imported("plaingrad.native.border.batches")
    if key not in programs:
        programs[key] = native.loop_over(f, *key)
    kept = [
        batch.arrays[s.position] if s is not None else x
        for s, x in zip(batch.structures, batch.args, strict=True)
    ]
    if CURRENT.get() is PLAIN:
        return native.rest_in_threads(f, programs[key], first, mapped, kept)
    return here(recorded.rest_of, programs[key], first, mapped, kept)
