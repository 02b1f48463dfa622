"""Statistics over windows of a vector, exponentially weighted means, correlation and moments, as definitions.

The value is that of pandas; the derivative is of the same formula, in which what is missing is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh

BLOCK = 1_000_000  # so many numbers of windows are looked at at once


def places(start: Any, end: Any) -> Any:
    """(where the numbers of the windows are, which of them are in the window): a row for each."""
    width = max(int(np.max(end - start, initial=1)), 1)
    at = start[:, None] + np.arange(width)
    inside = at < end[:, None]
    return np.where(inside, at, 0), inside


def by_blocks(one: Callable[[Any, Any], Any], values: Any, start: Any, end: Any) -> Any:
    """one(numbers of windows, which are there), a row for each window, for blocks of windows."""
    count = len(start)
    step = max(BLOCK // max(int(np.max(end - start, initial=1)), 1), 1)
    parts = []
    for first in range(0, count, step):
        at, inside = places(start[first : first + step], end[first : first + step])
        x = values[at]
        there = inside & ~np.isnan(x)
        parts.append(one(np.where(there, x, 0.0), there))
    return np.concatenate(parts) if parts else np.zeros(0)


def with_value(function: Any, args: Any, z: Any) -> Any:
    """What pandas says, with the derivative of z; what is missing in it is a constant."""
    value = called(function, (args, {}))
    return carrying(fresh(value), np.where(np.isnan(value), 0.0, z))


def roll_var(values: Any, start: Any, end: Any, minp: Any, ddof: Any = 1) -> Any:
    """Variances."""

    def one(x: Any, there: Any) -> Any:
        n = there.sum(axis=1)
        d = np.where(there, x - (x.sum(axis=1) / np.maximum(n, 1))[:, None], 0.0)
        return (d * d).sum(axis=1) / np.maximum(n - ddof, 1)

    function = sys.modules["pandas._libs.window.aggregations"].roll_var
    return with_value(function, (values, start, end, minp, ddof), by_blocks(one, values, start, end))


def extreme(name: str) -> Callable[..., Any]:
    """The definition of `roll_max` or `roll_min`."""
    worst, best = (-np.inf, np.argmax) if name == "roll_max" else (np.inf, np.argmin)

    def rolled(values: Any, start: Any, end: Any, minp: Any) -> Any:
        def one(x: Any, there: Any) -> Any:
            chosen = best(np.where(there, x, worst), axis=1)
            return x[np.arange(len(x)), chosen]

        function = getattr(sys.modules["pandas._libs.window.aggregations"], name)
        return with_value(function, (values, start, end, minp), by_blocks(one, values, start, end))

    return rolled


def ewm(
    vals: Any, start: Any, end: Any, minp: Any, com: Any, adjust: Any, ignore_na: Any,
    deltas: Any = None, normalize: Any = True,
) -> Any:  # fmt: skip
    """Exponentially weighted means, or sums: each is the last one and the next number, with weights that are constants."""
    function = sys.modules["pandas._libs.window.aggregations"].ewm
    args = (vals, start, end, minp, com, adjust, ignore_na, deltas, normalize)
    alpha = 1.0 / (1.0 + com)
    factor, new = 1.0 - alpha, 1.0 if adjust else alpha
    parts: list[Any] = [0.0] * len(vals)
    for first, last in zip(start, end, strict=True):
        weighted, weight, is_first = 0.0, 1.0, True
        for i in range(first, last):
            x = vals[i]
            is_there = bool(x == x)
            if not is_first and (is_there or not ignore_na):
                weight *= factor if deltas is None or not normalize else factor ** deltas[i - 1]
                if not normalize:
                    weighted = weighted * factor
            if is_there and is_first:
                weighted, is_first = x, False
            elif is_there and normalize:
                weighted = (weight * weighted + new * x) / (weight + new)
                weight = weight + new if adjust else 1.0
            elif is_there:
                weighted = weighted + x
            parts[i] = weighted
    return with_value(function, args, np.array(parts, float))


def nancorr(mat: Any, cov: Any = False, minp: Any = None) -> Any:
    """Covariances, or correlations, of columns, each of the rows where both have a number."""
    function = sys.modules["pandas._libs.algos"].nancorr
    there = ~np.isnan(mat)
    count = mat.shape[1]
    z = np.zeros((count, count))
    for i in range(count):
        for j in range(i + 1):
            both = there[:, i] & there[:, j]
            n = max(int(both.sum()), 1)
            a, b = mat[both, i], mat[both, j]
            a, b = a - a.sum() / n, b - b.sum() / n
            if cov:
                z[i, j] = z[j, i] = (a * b).sum() / max(n - 1, 1)
            elif i != j and (a != 0).any() and (b != 0).any():
                z[i, j] = z[j, i] = (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())
    value = called(function, ((mat, cov, minp), {}))
    return carrying(fresh(value), np.where(np.isnan(value), 0.0, z))


def rules() -> Iterable[Rule]:
    """Of `pandas._libs.window.aggregations`, and of `pandas._libs.algos`."""
    yield from Rules()  # of the helpers
    aggregations: Any = sys.modules.get("pandas._libs.window.aggregations")
    algos: Any = sys.modules.get("pandas._libs.algos")
    found = [(aggregations, "roll_var", roll_var), (aggregations, "ewm", ewm), (algos, "nancorr", nancorr)]
    found += [(aggregations, name, extreme(name)) for name in ("roll_max", "roll_min")]
    for module, name, definition in found:
        function = getattr(module, name, None)
        if function is not None:
            yield Rule(function, "composed", definition=definition, source=f"{__file__}:1")
