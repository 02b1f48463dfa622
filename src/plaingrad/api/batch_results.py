"""Results of a batch: one structure of arrays, from those of all examples or of runs for many at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.leaves import Branch, Leaf, described, here
from plaingrad.api.parameters import part_of, with_values
from plaingrad.engine.batches import forms
from plaingrad.engine.batches.mapped import Batch, Mapped
from plaingrad.engine.memory.entries import entries_of, has_fields
from plaingrad.engine.memory.kinds import ARRAY, NOTHING, NUMBER, OBJECT, kind_of
from plaingrad.engine.values.probes import is_masked
from plaingrad.errors import ArgumentError
from plaingrad.tangents import is_zero


def check_unmasked(x: Any, name: str) -> None:
    """Refuse an array with a mask, which would be lost."""
    if is_masked(x):
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
    kind = ARRAY if type(first) is Mapped else kind_of_result(first)
    for x in results:
        check_unmasked(x, "a result")
    if all(map(is_number_or_array, results)):
        shapes = {x.shape if type(x) is Mapped else np.shape(x) for x in results}
        if len(shapes) > 1:
            raise ArgumentError(
                f"the results have different shapes: {sorted(shapes)}.\n"
                "  To go on: a loop over the examples.\n  See docs: errors#argument"
            )
        axis = checked_axis(axis, len(shapes.pop()) + 1, "out_axes")
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


def kind_of_result(x: Any) -> int:
    """The kind of `x`, where a function is nothing: what it holds is not stacked."""
    kind = kind_of(type(x))
    return NOTHING if kind == OBJECT and (not has_fields(x) or isinstance(x, partial)) else kind


def is_number_or_array(x: Any) -> bool:
    """Whether `x` is stacked as it is, and is no structure."""
    return type(x) is Mapped or kind_of(type(x)) in (ARRAY, NUMBER) or isinstance(x, (bool, int, np.generic))


CONSTANT = frozenset((type(None), bool, int, str, bytes, type, type(...)))


class BlocksDifferError(Exception):
    """Blocks of examples give results of different forms, which the loop says better."""


def whole(results: Sequence[Any], runs: Sequence[Batch], axis: Any, seen: set[int]) -> Any:
    """One result from those of runs for blocks of examples; `seen`: the arrays that are in it already."""
    first = results[0]
    are_mapped = [type(y) is Mapped and y.batch is run for y, run in zip(results, runs, strict=True)]
    if any(are_mapped):
        if not all(are_mapped) or any(y.shape != first.shape or y.dtype != first.dtype for y in results):
            raise BlocksDifferError
        axis = checked_axis(axis, len(first.shape) + 1, "out_axes")
        if len(results) > 1:
            return here(forms.blocks_joined, [y.value for y in results], axis)
        value = first.value
        if (
            axis
            or not first.is_fresh
            or type(value) is not np.ndarray
            or value.base is not None
            or id(value) in seen
        ):
            return here(forms.copied, value, axis)
        seen.add(id(value))
        return value
    kind = NOTHING if type(first) is Mapped else kind_of_result(first)
    if kind == NOTHING and not is_zero(first) and not all(type(y) in CONSTANT for y in results):
        raise BlocksDifferError  # what was made for all examples may hold values of each: a function, a slice
    if kind in (NOTHING, NUMBER) or is_number_or_array(first) or is_zero(first):
        return stacked([y for y, run in zip(results, runs, strict=True) for _ in range(run.size)], axis)
    keys = [key for key, _ in entries_of(first)]
    columns = [dict(entries_of(y)) for y in results]
    if any(type(y) is not type(first) for y in results) or any(list(column) != keys for column in columns):
        raise BlocksDifferError
    node = branch_of(first)
    parts = [
        whole(
            [c[key] for c in columns],
            runs,
            axis if isinstance(axis, int) else part_of(axis, node, key, "out_axes"),
            seen,
        )
        for key in keys
    ]
    return with_values(Branch(first, {key: Leaf(None, n) for n, key in enumerate(keys)}), first, parts)
