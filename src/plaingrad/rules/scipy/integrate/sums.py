"""Infinite sums: their first terms, and the Euler-Maclaurin formula for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import (
    Rules,
    as_tuple,
    as_users,
    called,
    carrying,
    fresh,
    is_active,
    number,
    refuse,
)
from plaingrad.rules.scipy.integrate.quadrature import summed
from plaingrad.rules.scipy.optimize.results import put, spoil

RULES = Rules()
FIRST = 200  # terms that are added
MOST = 100_000  # terms of a finite sum


@RULES.defined(getattr(integrate, "nsum", None))
def nsum(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Of one sum; its function takes arrays of k."""
    result = called(function, call)
    f, args, step = with_names(given["f"], given.get("kwargs")), as_tuple(given["args"]), given["step"]
    a, b = given["a"], given["b"]
    if not is_active((f, args)) and not is_active(f(fresh(np.asarray(a) * 1.0) + 0.0, *args)):
        return result
    if (
        is_active((a, b, step))
        or given["log"]
        or np.ndim(result.sum)
        or np.isinf(a)
        or np.ndim(a)
        or np.ndim(b)
    ):
        refuse(
            function, "it is known for one sum over constant k from a finite a only, and not of logarithms"
        )
    count = FIRST if np.isinf(b) else int(np.floor((b - a) / step)) + 1
    if count > MOST:
        refuse(function, f"it has {count} terms, more than {MOST}")
    k = a + step * np.arange(count)
    total = np.sum(np.asarray(f(k * 1.0, *args)))
    if np.isinf(b):
        total = total + rest(function, f, args, float(a + step * count), float(step), result, total)
    spoil(function, result, total, "sum")
    put(result, "sum", carrying(fresh(result.sum), total))
    return result


def with_names(f: Any, named: Any) -> Any:
    """f with arguments by name, which newer SciPy passes on."""
    return (lambda x, *args: f(x, *args, **named)) if named else f


def rest(function: Any, f: Any, args: Any, start: Any, step: Any, result: Any, first: Any) -> Any:
    """The terms from `start` on: integral / step + f / 2 - step f' / 12 + step^3 f''' / 720."""

    def one(x: Any, *args: Any) -> Any:
        return number(np.asarray(f(np.asarray(x), *args)))

    def slope(x: Any) -> Any:
        return derivatives.along(lambda x: one(x, *args), x, 1.0)

    def curve(x: Any) -> Any:
        return derivatives.along(lambda x: derivatives.along(slope, x, 1.0), x, 1.0)

    ends = one(start, *args) / 2 - step * slope(start) / 12 + step**3 * curve(start) / 720
    value = fresh((fresh(result.sum) - first - ends) * step)
    return summed(function, as_users(one), args, (start, np.inf), value) / step + ends
