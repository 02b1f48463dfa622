"""`scipy.integrate.solve_ivp` with the Jacobian filled in, and states in any structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate

from plaingrad.api import jacobian
from plaingrad.optimize import opened
from plaingrad.optimize.packing import as_vector, is_vector

WITH_JACOBIAN = ("RADAU", "BDF", "LSODA")


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    *,
    args: Any = None,
    events: Any = None,
    tier: Any = "auto",
    **options: Any,
) -> Any:
    """The solution of y' = fun(t, y), by `scipy.integrate.solve_ivp` with plaingrad's Jacobian where one is taken.

    Args:
        fun: y' by t and y, which has the structure of `y0`: in that structure again, or as a vector.
        t_span: as in SciPy.
        y0: the initial state: an array, or a dictionary, dataclass, list, ... of real numbers and arrays.
        method: as in SciPy; Radau, BDF and LSODA get a Jacobian, unless `jac` is given.
        args: further arguments of `fun` and `events`.
        events: as in SciPy; they get y like `fun`.
        tier: of the derivatives, as in `plaingrad.jacobian`.
        options: everything else as in SciPy.

    Returns:
        SciPy's result. `y`, `y_events` and what `sol` returns have the structure of `y0`, with times on the last axis.

    Examples:
        >>> from plaingrad.integrate import solve_ivp
        >>> fall = solve_ivp(lambda t, y: {"z": y["v"], "v": -9.81}, (0.0, 1.0), {"z": 9.0, "v": 0.0})
        >>> round(float(fall.y["z"][-1]), 3)
        4.095
    """
    start, unpack = opened(y0)
    is_plain = is_vector(y0)

    def of_vector(t: Any, y: Any, *args: Any) -> Any:
        return as_vector(fun(t, unpack(y), *args))

    def filled(t: Any, y: Any, *args: Any) -> Any:
        return jacobian(lambda y: np.asarray(of_vector(t, y, *args)), tier=tier)(y)

    if isinstance(method, str) and method.upper() in WITH_JACOBIAN and options.get("jac") is None:
        options["jac"] = filled
    if events is not None and not is_plain:
        events = (
            of_vectors(events, unpack) if callable(events) else [of_vectors(one, unpack) for one in events]
        )
    result = integrate.solve_ivp(of_vector, t_span, start, method=method, args=args, events=events, **options)
    if not is_plain:
        result.y = unpack(result.y)
        if result.y_events is not None:
            result.y_events = [unpack(np.transpose(y)) if len(y) else y for y in result.y_events]
        if result.sol is not None:
            sol = result.sol
            result.sol = lambda t: unpack(sol(t))
    return result


def of_vectors(event: Any, unpack: Callable[[Any], Any]) -> Any:
    """An event that gets y in its structure, with what it says about itself."""

    def of_vector(t: Any, y: Any, *args: Any) -> Any:
        return event(t, unpack(y), *args)

    for name in ("terminal", "direction"):
        if hasattr(event, name):
            setattr(of_vector, name, getattr(event, name))
    return of_vector
