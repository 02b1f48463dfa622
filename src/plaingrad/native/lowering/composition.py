"""The table of decompositions: which function stands for which function of NumPy, for which types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from plaingrad.native.program.value_types import has_tangent, is_array

COMPOSED: dict[Any, Callable[..., Any]] = {}


def composed(function: Any, accepts: Callable[..., bool] | None = None) -> Callable[[Any], Any]:
    """Enter the decorated function for `function`, for argument types that `accepts`, of which one has a tangent."""

    def enter(f: Any) -> Any:
        def chosen(*kinds: Any, **named: Any) -> Any:
            some = any(map(has_tangent, (*kinds, *named.values())))
            return f if some and (accepts is None or accepts(*kinds, **named)) else None

        if function is not None:
            COMPOSED[function] = chosen
        return f

    return enter


def is_matrix(t: Any, *others: Any) -> bool:
    """Whether the first argument is a matrix."""
    return is_array(t) and t.ndim == 2


def is_vector(t: Any, *others: Any) -> bool:
    """Whether the first argument is a vector."""
    return is_array(t) and t.ndim == 1


def are_vectors(a: Any, b: Any, *others: Any) -> bool:
    """Whether the first two arguments are vectors."""
    return is_vector(a) and is_vector(b)


def is_real_array(t: Any, *others: Any) -> bool:
    """Whether the first argument is an array of floats."""
    return is_array(t) and isinstance(t.dtype, types.Float)


def is_real_vector(t: Any, *others: Any) -> bool:
    """Whether the first argument is a vector of floats."""
    return is_real_array(t) and t.ndim == 1


def is_number(t: Any) -> bool:
    """Whether an argument is a number."""
    return t is None or isinstance(t, (types.Float, types.Integer))
