"""Compiled functions of pandas that take elements, shift them, or apply a function to each, as definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.implicit import refuse


def taken(values: Any, indexer: Any, out: Any, fill_value: Any, fills: Any) -> None:
    """out[i] = values[indexer[i]], or what fills where the index is -1."""
    if values.shape[0]:
        out[...] = values[indexer]
    if fills:
        out[indexer == -1] = fill_value


def taken_1d(values: Any, indexer: Any, out: Any, fill_value: Any = np.nan, allow_fill: Any = True) -> None:
    """Elements of a vector."""
    taken(values, indexer, out, fill_value, allow_fill)


def taken_rows(values: Any, indexer: Any, out: Any, fill_value: Any = np.nan, allow_fill: Any = True) -> None:
    """Rows of a matrix."""
    taken(values, indexer, out, fill_value, allow_fill)


def taken_columns(values: Any, indexer: Any, out: Any, fill_value: Any = np.nan, allow_fill: Any = True) -> None:
    """Columns of a matrix."""
    taken(values.T, indexer, out.T, fill_value, allow_fill)


def taken_both(values: Any, indexer: Any, out: Any, fill_value: Any = np.nan, allow_fill: Any = True) -> None:
    """A submatrix; `indexer` has the rows and the columns."""
    rows, columns = indexer
    if values.size:
        out[...] = values[rows][:, columns]
    if allow_fill:
        out[rows == -1] = fill_value
        out[:, columns == -1] = fill_value


def diff_2d(arr: Any, out: Any, periods: Any, axis: Any, datetimelike: Any = False) -> None:
    """Differences along an axis; what has no neighbour is left as it is."""
    z, x = (out, arr) if axis == 0 else (out.T, arr.T)
    if periods >= 0:
        z[periods:] = x[periods:] - x[: max(len(x) - periods, 0)]
    else:
        z[:periods] = x[:periods] - x[-periods:]


def map_infer(arr: Any, f: Any, *, convert: Any = True, ignore_na: Any = False) -> Any:
    """f of each element; an array of numbers if all results are floats, else of objects."""
    given = [x if ignore_na and is_missing(x) else f(x) for x in arr]
    result = np.empty(len(given), object)
    for n, x in enumerate(given):
        result[n] = x
    return sys.modules["pandas._libs.lib"].maybe_convert_objects(result) if convert else result


def maybe_convert_objects(objects: Any, **options: Any) -> Any:
    """Numbers, of which one is a float at least, as floats."""
    given = objects.tolist()
    if not all(isinstance(x, REALS) and type(x) is not bool for x in given):
        refuse(sys.modules["pandas._libs.lib"].maybe_convert_objects, "objects that are no real numbers are among them")
    return np.array(given, float)


def ensure_float64(arr: Any) -> Any:
    """The array itself if it is one of float64, else one like it."""
    return np.asarray(arr, np.float64)


def is_missing(x: Any) -> Any:
    """Whether pandas takes a number, or None, for missing."""
    return x is None or x != x


REALS = (float, int, np.floating, np.integer)
TAKES = {
    "take_1d_": taken_1d, "take_2d_axis0_": taken_rows, "take_2d_axis1_": taken_columns, "take_2d_multi_": taken_both,
}  # fmt: skip


def rules() -> Iterable[Rule]:
    """Of `pandas._libs.algos` and `lib`, for floating-point results."""
    algos: Any = sys.modules.get("pandas._libs.algos")
    lib: Any = sys.modules.get("pandas._libs.lib")
    found: list[tuple[Any, Any]] = [
        (getattr(algos, name), definition)
        for start, definition in TAKES.items()
        for name in dir(algos)
        if name.startswith(start) and name.endswith(("_float32", "_float64"))
    ]
    found += [(getattr(algos, "diff_2d", None), diff_2d), (getattr(lib, "map_infer", None), map_infer)]
    found += [(getattr(lib, "maybe_convert_objects", None), maybe_convert_objects)]
    found += [(getattr(algos, "ensure_float64", None), ensure_float64)]
    for function, definition in found:
        if function is not None:  # what writes, or calls, is followed without differentiated arguments, too
            seen = definition is not maybe_convert_objects and definition is not ensure_float64
            yield Rule(function, "composed", definition=definition, mutates=seen, source=f"{__file__}:1")
