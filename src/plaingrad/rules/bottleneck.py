"""Reductions of bottleneck, which pandas and others use where it is installed: compiled, and NumPy's by definition.

The value is bottleneck's, the derivative that of the same formula, in which what is missing is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.rulebook import Rule

MODULE = "bottleneck.reduce"


def nansum(a: Any, axis: Any, ddof: Any) -> Any:
    """The sum of what is there."""
    return np.where(np.isnan(a), 0.0, a).sum(axis=axis)


def nanmean(a: Any, axis: Any, ddof: Any) -> Any:
    """Its mean."""
    return nansum(a, axis, 0) / np.maximum((~np.isnan(a)).sum(axis=axis), 1)


def nanvar(a: Any, axis: Any, ddof: Any) -> Any:
    """Its variance."""
    there = ~np.isnan(a)
    n = there.sum(axis=axis, keepdims=True)
    mean = np.where(there, a, 0.0).sum(axis=axis, keepdims=True) / np.maximum(n, 1)
    d = np.where(there, a - mean, 0.0)
    return (d * d).sum(axis=axis) / np.maximum(there.sum(axis=axis) - ddof, 1)


def nanstd(a: Any, axis: Any, ddof: Any) -> Any:
    """Its standard deviation; where that is 0, a minimum, so is the slope."""
    v = nanvar(a, axis, ddof)
    return np.where(v > 0, np.sqrt(np.where(v > 0, v, 1.0)), 0.0)


def ss(a: Any, axis: Any, ddof: Any) -> Any:
    """The sum of squares."""
    return (a * a).sum(axis=axis)


def by_numpy(name: str) -> Callable[..., Any]:
    """What NumPy calls the same; where nothing is there, the result is a constant anyhow."""

    def reduced(a: Any, axis: Any, ddof: Any) -> Any:
        some = (~np.isnan(a)).any(axis=axis, keepdims=True)
        return getattr(np, name)(np.where(some, a, 0.0), axis=axis)

    return reduced


FORMULAS: dict[str, Callable[..., Any]] = {
    "nansum": nansum, "nanmean": nanmean, "nanvar": nanvar, "nanstd": nanstd, "ss": ss,
    **{name: by_numpy(name) for name in ("nanmin", "nanmax", "nanmedian", "median")},
}  # fmt: skip


def definition_of(function: Any, formula: Callable[..., Any]) -> Callable[..., Any]:
    """The reduction for real arrays."""
    from plaingrad.rules.scipy.implicit import called, carrying, fresh  # what solvers use, too

    def reduced(a: Any, axis: Any = None, ddof: Any = 0) -> Any:
        options = {"ddof": ddof} if ddof else {}
        value = called(function, ((a, axis), options))
        z = formula(np.asarray(a), axis, ddof)
        return carrying(fresh(value), np.where(np.isnan(value), 0.0, z))

    return reduced


def rules() -> Iterable[Rule]:
    """Of `bottleneck.reduce`; what looks for missing values or the places of extremes has no derivative."""
    from plaingrad.rules.scipy.implicit import Rules

    yield from Rules()  # of the helpers
    module: Any = sys.modules.get(MODULE)
    for name, formula in FORMULAS.items():
        function = getattr(module, name, None)
        if function is not None:
            made = definition_of(function, formula)
            yield Rule(function, "composed", definition=made, source=f"{__file__}:1")
    for name in ("anynan", "allnan", "nanargmin", "nanargmax"):
        function = getattr(module, name, None)
        if function is not None:
            yield Rule(function, "no_tangent", source=f"{__file__}:1")


def wait() -> None:
    """Let the rulebook enter these rules when bottleneck is met."""
    rulebook.when_met(MODULE, rules)
