"""Bounds and constraints as SciPy takes them, as vectors and functions of a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint
from scipy.sparse import issparse

from plaingrad.rules.scipy.implicit import as_tuple


def as_bounds(bounds: Any, count: int) -> tuple[Any, Any]:
    """Lower and upper bounds as two vectors, or None."""
    if bounds is None:
        return None, None
    if isinstance(bounds, Bounds):
        low, high = np.asarray(bounds.lb), np.asarray(bounds.ub)
    else:
        pairs = list(bounds)
        low = np.array([-np.inf if pair[0] is None else number_of(pair[0]) for pair in pairs])
        high = np.array([np.inf if pair[1] is None else number_of(pair[1]) for pair in pairs])
    return spread(low, count), spread(high, count)


def number_of(x: Any) -> Any:
    """One bound."""
    return np.reshape(x, ())[()] if isinstance(x, np.ndarray) else x


def spread(x: Any, count: int) -> Any:
    """One for each unknown."""
    return x if np.shape(x) == (count,) else np.broadcast_to(x, (count,)) + 0.0


def as_constraints(constraints: Any) -> tuple[tuple[Any, Any, Any], ...]:
    """(c, low, high) for each, c a vector by a vector."""
    if constraints is None:
        return ()
    single = isinstance(constraints, (dict, LinearConstraint, NonlinearConstraint))
    return tuple([as_constraint(one) for one in ([constraints] if single else list(constraints))])


def as_constraint(one: Any) -> tuple[Any, Any, Any]:
    """One of SciPy's three kinds, or that of `differential_evolution`'s bounds on x."""
    if isinstance(one, dict):
        f, args = one["fun"], as_tuple(one.get("args", ()))
        return vector_function(f, args), 0.0, (0.0 if one["type"].lower() == "eq" else np.inf)
    if isinstance(one, LinearConstraint):
        a = one.A.toarray() if issparse(one.A) else np.atleast_2d(one.A)
        return (lambda x: np.dot(a, x)), one.lb, one.ub
    if isinstance(one, Bounds):
        return (lambda x: x * 1.0), one.lb, one.ub
    return vector_function(one.fun, ()), one.lb, one.ub


def vector_function(f: Any, args: tuple[Any, ...]) -> Any:
    """What a user's function returns, as a vector."""
    return lambda x: np.reshape(np.asarray(f(x, *args)), (-1,))


__all__ = ["as_bounds", "as_constraints", "vector_function"]
