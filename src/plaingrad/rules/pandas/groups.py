"""Aggregations of `groupby`, as definitions: sums, means, variances, extremes, first and last numbers, running sums.

The value is that of pandas; the derivative is of the same formula, in which what is missing is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.implicit import Rules, carrying, fresh, outside, refuse


@outside
def computed(order: int, name: str, out: Any, counts: Any, values: Any, labels: Any, options: Any) -> Any:
    """(results, sizes of the groups) by pandas, as constants."""
    result, sizes = np.array(out), np.array(counts)
    getattr(sys.modules["pandas._libs.groupby"], name)(result, sizes, values, labels, **options)
    return result, sizes


@outside
def running(order: int, out: Any, values: Any, labels: Any, groups: Any, options: Any) -> Any:
    """Running sums by pandas, as constants."""
    result = np.array(out)
    sys.modules["pandas._libs.groupby"].group_cumsum(result, values, labels, groups, **options)
    return result


@outside
def there(order: int, values: Any, labels: Any, mask: Any = None) -> Any:
    """Which numbers count: those that are in a group, and not missing."""
    found = (labels >= 0)[:, None] & ~np.isnan(values)
    return found if mask is None else found & (np.asarray(mask) == 0)


def sums(x: Any, labels: Any, groups: int) -> Any:
    """The sums of the rows of each group."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    z = np.zeros((groups, x.shape[1]), x.dtype)
    if not len(order):
        return z
    inside = labels[order]
    starts = np.flatnonzero(np.concatenate([[True], inside[1:] != inside[:-1]]))
    z[inside[starts]] = np.add.reduceat(x[order], starts, axis=0)
    return z


def kept(value: Any, z: Any) -> Any:
    """What pandas says, with the derivative of z; what is missing is a constant."""
    return carrying(fresh(value), np.where(np.isnan(value), 0.0, z))


def counted(present: Any, labels: Any, groups: int) -> Any:
    """How many numbers there are in each group, at least 1."""
    return np.maximum(sums(present.astype(float), labels, groups), 1.0)


def group_sum(
    out: Any, counts: Any, values: Any, labels: Any, mask: Any, result_mask: Any = None, min_count: Any = 0,
    is_datetimelike: Any = False, initial: Any = 0, skipna: Any = True,
) -> None:  # fmt: skip
    """Sums."""
    options = {
        "mask": mask,
        "result_mask": result_mask,
        "min_count": min_count,
        "initial": initial,
        "skipna": skipna,
    }
    value, sizes = computed("group_sum", out, counts, values, labels, options)
    x = np.where(there(values, labels, mask), values, 0.0)
    out[...] = kept(value, sums(x, labels, len(out)))
    counts[...] = sizes


def group_mean(
    out: Any, counts: Any, values: Any, labels: Any, min_count: Any = -1, is_datetimelike: Any = False,
    mask: Any = None, result_mask: Any = None, skipna: Any = True,
) -> None:  # fmt: skip
    """Means."""
    options = {"min_count": min_count, "mask": mask, "result_mask": result_mask, "skipna": skipna}
    value, sizes = computed("group_mean", out, counts, values, labels, options)
    present = there(values, labels, mask)
    z = sums(np.where(present, values, 0.0), labels, len(out)) / counted(present, labels, len(out))
    out[...] = kept(value, z)
    counts[...] = sizes


def group_var(
    out: Any, counts: Any, values: Any, labels: Any, min_count: Any = -1, ddof: Any = 1, mask: Any = None,
    result_mask: Any = None, is_datetimelike: Any = False, name: Any = "var", skipna: Any = True,
) -> None:  # fmt: skip
    """Variances, or by `name` standard deviations and standard errors of means."""
    options = {
        "min_count": min_count, "ddof": ddof, "mask": mask, "result_mask": result_mask, "name": name, "skipna": skipna,
    }  # fmt: skip
    value, sizes = computed("group_var", out, counts, values, labels, options)
    present = there(values, labels, mask)
    n = counted(present, labels, len(out))
    mean = sums(np.where(present, values, 0.0), labels, len(out)) / n
    d = np.where(present, values - mean[labels], 0.0)
    z = sums(d * d, labels, len(out)) / np.maximum(n - ddof, 1.0)
    if name == "sem":
        z = z / n
    if name != "var":
        z = np.sqrt(np.where(np.isnan(value), 1.0, z))
    out[...] = kept(value, z)
    counts[...] = sizes


@outside
def chosen(order: int, value: Any, values: Any, labels: Any, mask: Any, last: bool) -> Any:
    """The row of the first number, or last, that is what pandas has chosen for each group; 0 where it has none."""
    rows = np.zeros(value.shape, np.intp)
    group, column = np.broadcast_arrays(labels[:, None], np.arange(values.shape[1]))
    found = there(values, labels, mask) & (values == value[labels])
    at = np.broadcast_to(np.arange(len(labels))[:, None], values.shape)
    step = slice(None, None, 1 if last else -1)
    rows[group[found][step], column[found][step]] = at[found][step]
    return rows


#: The parameters after `labels`, in order, as far as they matter here.
NAMES = {
    "group_last": ("mask", "result_mask", "min_count"), "group_nth": ("mask", "result_mask", "min_count", "rank"),
    "group_min": ("min_count", "is_datetimelike", "mask"), "group_max": ("min_count", "is_datetimelike", "mask"),
    "group_prod": ("mask", "result_mask", "min_count"),
    "group_median_float64": ("min_count", "mask", "result_mask"),
}  # fmt: skip


def choosing(name: str) -> Callable[..., None]:
    """The definition of an aggregation that picks one number of each group."""

    def picked(out: Any, counts: Any, values: Any, labels: Any, *args: Any, **kwargs: Any) -> None:
        options = {**dict(zip(NAMES[name], args, strict=False)), **kwargs}
        if options.get("rank", 1) != 1:  # equal numbers before it cannot be told from it
            refuse(getattr(sys.modules["pandas._libs.groupby"], name), "it takes the n-th number")
        value, sizes = computed(name, out, counts, values, labels, options)
        rows = chosen(value, values, labels, options.get("mask"), name == "group_last")
        z = values[rows, np.arange(values.shape[1])] if len(values) else np.zeros(value.shape)
        out[...] = kept(value, np.where(np.isnan(z), 0.0, z))
        counts[...] = sizes

    return picked


@outside
def rows_of(order: int, labels: Any, groups: int) -> list[Any]:
    """The rows of each group, in order."""
    by_group = np.argsort(labels, kind="stable")
    return np.split(by_group, np.searchsorted(labels[by_group], np.arange(groups + 1)))[1:-1]


def one_by_one(name: str, one: Callable[[Any], Any]) -> Callable[..., None]:
    """The definition of an aggregation that takes the numbers of each group and column together."""

    def together(out: Any, counts: Any, values: Any, labels: Any, *args: Any, **kwargs: Any) -> None:
        options = {**dict(zip(NAMES[name], args, strict=False)), **kwargs}
        value, sizes = computed(name, out, counts, values, labels, options)
        present = there(values, labels, options.get("mask"))
        z = np.zeros(value.shape, values.dtype)
        for group, rows in enumerate(rows_of(labels, len(out))):
            for column in range(values.shape[1]):
                found = values[rows[present[rows, column]], column]
                if len(found):
                    z[group, column] = one(found)
        out[...] = kept(value, z)
        counts[...] = sizes

    return together


def group_cumsum(
    out: Any, values: Any, labels: Any, ngroups: Any, is_datetimelike: Any = False, skipna: Any = True,
    mask: Any = None, result_mask: Any = None,
) -> None:  # fmt: skip
    """Running sums."""
    options = {"is_datetimelike": is_datetimelike, "skipna": skipna, "mask": mask, "result_mask": result_mask}
    value = running(out, values, labels, ngroups, options)
    x = np.where(there(values, labels, mask), values, 0.0)
    z = np.zeros(values.shape, x.dtype)
    for rows in rows_of(labels, ngroups):
        z[rows] = np.cumsum(x[rows], axis=0)
    out[...] = kept(value, z)


def rules() -> Iterable[Rule]:
    """Of `pandas._libs.groupby`."""
    yield from Rules()  # of the helpers
    module: Any = sys.modules.get("pandas._libs.groupby")
    found = [("group_sum", group_sum), ("group_mean", group_mean), ("group_var", group_var)]
    found += [("group_cumsum", group_cumsum)]
    found += [(name, choosing(name)) for name in ("group_min", "group_max", "group_last", "group_nth")]
    found += [
        (name, one_by_one(name, one))
        for name, one in (("group_prod", np.prod), ("group_median_float64", np.median))
    ]
    for name, definition in found:
        function = getattr(module, name, None)
        if function is not None:
            yield Rule(function, "composed", definition=definition, source=f"{__file__}:1")
