"""`scipy.optimize.root` with Jacobians filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from plaingrad.api import jacobian
from plaingrad.optimize.packing import as_vector, opened

WITH_JACOBIAN = ("hybr", "lm")


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    *,
    tier: Any = "auto",
    **options: Any,
) -> Any:
    """The x for which fun(x) vanishes, by `scipy.optimize.root` with plaingrad's Jacobian.

    Args:
        fun: as many equations as unknowns, by x, which has the structure of `x0`: a vector, or that structure again.
        x0: where to begin: an array, or a dictionary, dataclass, list, ... of real numbers and arrays.
        args: further arguments of `fun`.
        method: as in SciPy; "hybr" and "lm" take a Jacobian.
        jac: the Jacobian by the vector, as in SciPy; None: plaingrad's, where the method takes one.
        tier: of the derivatives, as in `plaingrad.jacobian`.
        options: everything else as in SciPy.

    Examples:
        >>> from plaingrad.optimize import root
        >>> found = root(lambda p: [p["a"] * p["b"] - 6.0, p["a"] - p["b"] - 1.0], {"a": 1.0, "b": 1.0})
        >>> round(float(found.x["a"]), 6)
        3.0
    """
    start, unpack = opened(x0)
    more = args if isinstance(args, tuple) else (args,)

    def of_vector(x: Any, *args: Any) -> Any:
        return np.asarray(as_vector(fun(unpack(x), *args)))

    def filled(x: Any, *args: Any) -> Any:
        return jacobian(lambda x: np.reshape(of_vector(x, *args), (-1,)), tier=tier)(x)

    if jac is None and method in WITH_JACOBIAN and start.ndim <= 1:
        jac = filled
    result = optimize.root(of_vector, start, args=more, method=method, jac=jac, **options)
    result.x = unpack(result.x)
    return result
