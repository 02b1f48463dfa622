"""`scipy.optimize.minimize` with gradients, Hessians and constraint Jacobians filled in."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from plaingrad.api import hessian, hvp, jacobian, value_and_grad
from plaingrad.optimize.packing import opened
from plaingrad.progress import told

WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
WITH_HESSIAN = ("dogleg", "trust-exact")
WITH_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    *,
    tier: Any = "auto",
) -> Any:
    """The x that minimises fun(x), by `scipy.optimize.minimize` with plaingrad's derivatives.

    Args:
        fun: a number by x, which has the structure of `x0`.
        x0: where to begin: an array, or a dictionary, dataclass, list, ... of real numbers and arrays.
        args: further arguments of `fun`.
        method: as in SciPy. Those that take none get no gradient; those that take Hessians get them, or products.
        jac: the gradient; None: plaingrad's. By vectors, like `hess` and `hessp`, as SciPy calls them.
        hess: the Hessian; None: plaingrad's, where the method takes one.
        hessp: products with it; None: plaingrad's, where the method takes them.
        bounds: as in SciPy: of the numbers of `x0` in order.
        constraints: as in SciPy; their functions get x like `fun`, and the Jacobians that they lack.
        tol: as in SciPy.
        callback: as in SciPy; it gets x like `fun`.
        options: as in SciPy.
        tier: of the derivatives of `fun`, as in `plaingrad.grad`.

    Returns:
        SciPy's result; its `x` has the structure of `x0`.

    Examples:
        >>> from plaingrad.optimize import minimize
        >>> fit = minimize(lambda p: (p["a"] - 1.0) ** 2 + (p["b"] - p["a"]) ** 2, {"a": 0.0, "b": 3.0})
        >>> round(fit.x["b"], 6)
        1.0
    """
    start, unpack = opened(x0)
    more = args if isinstance(args, tuple) else (args,)

    def of_vector(x: Any, *args: Any) -> Any:
        return number(fun(unpack(x), *args))

    objective, given = filled(method, of_vector, {"jac": jac, "hess": hess, "hessp": hessp}, tier)
    if jac is True:
        objective = lambda x, *args: fun(unpack(x), *args)
    handed = {"args": more, "method": method, "bounds": bounds, "tol": tol, "options": options, **given}
    if callback is not None:
        handed["callback"] = unpacking(callback, unpack)
    result = optimize.minimize(
        evaluated(objective), start, constraints=with_jacobians(constraints, unpack), **handed
    )
    result.x = unpack(result.x)
    return result


def evaluated(objective: Callable[..., Any]) -> Callable[..., Any]:
    """`objective`, whose evaluations are told to who wants to know how far the work is."""
    count = itertools.count(1)

    def evaluate(*args: Any) -> Any:
        found = objective(*args)
        told("minimize", next(count), None)
        return found

    return evaluate


def filled(method: Any, f: Any, given: dict[str, Any], tier: Any) -> tuple[Any, dict[str, Any]]:
    """(the objective for SciPy, its derivatives as keywords) with what the method takes and was not given."""
    name = method.lower() if isinstance(method, str) else None
    given, objective = dict(given), f
    if given["jac"] is None and name not in WITHOUT_GRADIENT:
        objective, given["jac"] = value_and_grad(f, tier=tier), True
    if given["hess"] is None and given["hessp"] is None:
        if name in WITH_HESSIAN:
            given["hess"] = lambda x, *args: hessian(lambda x: f(x, *args), tier=tier)(x)
        elif name in WITH_PRODUCTS:
            given["hessp"] = lambda x, p, *args: hvp(lambda x: f(x, *args), (x,), (p,), tier=tier)[0]
    return objective, given


def number(z: Any) -> Any:
    """A value of an objective that may be an array of one number."""
    return np.reshape(z, ())[()] if isinstance(z, np.ndarray) else z


def unpacking(callback: Callable[..., Any], unpack: Callable[[Any], Any]) -> Callable[..., Any]:
    """A callback that gets x in its structure; SciPy looks at the name of the parameter."""
    if list(inspect.signature(callback).parameters) == ["intermediate_result"]:

        def call_with_result(intermediate_result: Any) -> Any:
            intermediate_result = optimize.OptimizeResult(intermediate_result)
            intermediate_result.x = unpack(intermediate_result.x)
            return callback(intermediate_result=intermediate_result)

        return call_with_result

    def call_with_x(xk: Any, *others: Any) -> Any:
        return callback(unpack(xk), *others)

    return call_with_x


def with_jacobians(constraints: Any, unpack: Callable[[Any], Any]) -> Any:
    """Constraints whose functions take vectors, with the Jacobians that they lack."""
    if isinstance(constraints, dict) or not isinstance(constraints, (list, tuple)):
        return with_jacobian(constraints, unpack)
    return [with_jacobian(one, unpack) for one in constraints]


def with_jacobian(one: Any, unpack: Callable[[Any], Any]) -> Any:
    """One of them."""
    if isinstance(one, dict):
        f = one["fun"]
        filled = {**one, "fun": lambda x, *args: f(unpack(x), *args)}
        if one.get("jac") is None:
            filled["jac"] = lambda x, *args: jacobian(lambda x: vector(f(unpack(x), *args)))(x)
        return filled
    if isinstance(one, optimize.NonlinearConstraint):
        f = one.fun
        filled = optimize.NonlinearConstraint(
            lambda x: f(unpack(x)), one.lb, one.ub, one.jac, one.hess, one.keep_feasible
        )
        if isinstance(one.jac, str):
            filled.jac = jacobian(lambda x: vector(f(unpack(x))))
            filled.hess = lambda x, v: hessian(lambda x: np.dot(v, vector(f(unpack(x)))))(x)
        return filled
    return one


def vector(z: Any) -> Any:
    """The values of constraints as a vector."""
    return np.reshape(np.asarray(z), (-1,))
