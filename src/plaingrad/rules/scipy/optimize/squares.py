"""Least squares: the gradient of half the sum of squares is 0, with bounds that are active."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import (
    Rules,
    as_tuple,
    called,
    carrying,
    fresh,
    is_active,
    number,
    refuse,
    underived,
)
from plaingrad.rules.scipy.optimize.constraints import as_bounds, spread
from plaingrad.rules.scipy.optimize.large_minima import at_any_minimum
from plaingrad.rules.scipy.optimize.results import find, put, spoil
from plaingrad.rules.scipy.optimize.stationary import Problem

RULES = Rules()
LOSSES = {  # rho(z) of z = (residual / f_scale)**2
    "linear": lambda z: z,
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1),
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}


def cost_of(residuals: Any, loss: Any, scale: Any) -> Any:
    """Half the sum of rho(residual**2), a number by a vector."""

    def cost(x: Any) -> Any:
        r = residuals(x)
        if isinstance(loss, str) and loss == "linear":
            return 0.5 * np.dot(r, r)
        z = (r / scale) ** 2
        rho = LOSSES[loss](z) if isinstance(loss, str) else loss(z)[0]
        return 0.5 * np.sum(scale**2 * rho)

    return cost


def bounds_of(bounds: Any, count: int) -> tuple[Any, Any]:
    """(lower, upper) or a `Bounds`, as vectors; None where nothing is bounded."""
    if not isinstance(bounds, (tuple, list)):
        return as_bounds(bounds, count)
    low, high = np.asarray(bounds[0]), np.asarray(bounds[1])
    if np.all(np.isinf(low)) and np.all(np.isinf(high)):
        return None, None
    return spread(low, count), spread(high, count)


@RULES.defined(find("least_squares"))
def least_squares(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Every method and loss; x, cost and fun have derivatives."""
    result = called(function, call)
    f, args, options = given["fun"], as_tuple(given["args"]), given["kwargs"] or {}

    def residuals(x: Any) -> Any:
        return np.atleast_1d(f(x, *args, **options))

    x = fresh(result["x"])
    cost = cost_of(residuals, given["loss"], given["f_scale"])
    problem = Problem(cost, *bounds_of(given["bounds"], x.size))
    z = at_any_minimum(function, problem, x)
    r = residuals(z)
    if not is_active(z) and not is_active(r):
        return result
    spoil(function, result, r, "x", "fun", "cost")
    put(result, "x", z)
    put(result, "fun", carrying(fresh(result["fun"]), r))
    put(result, "cost", carrying(fresh(result["cost"]), cost(z)))
    return result


@RULES.defined(find("leastsq"))
def leastsq(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(x, code), or x, inv(J^T J), facts, a message, code."""
    outcome = called(function, call)
    f, args = given["func"], as_tuple(given["args"])

    def residuals(x: Any) -> Any:
        return np.reshape(np.asarray(f(x, *args)), (-1,))

    x = fresh(np.atleast_1d(outcome[0]))
    z = at_any_minimum(function, Problem(cost_of(residuals, "linear", 1.0)), x)
    if not given["full_output"]:
        return np.reshape(z, np.shape(outcome[0])), outcome[1]
    r = residuals(z)
    if is_active(r):
        spoil(function, outcome[2], r)
    cov = outcome[1]
    if cov is not None and is_active(r):
        cov = carrying(fresh(cov), inverse_squares(residuals, z))
    return np.reshape(z, np.shape(outcome[0])), cov, *outcome[2:]


def inverse_squares(residuals: Any, x: Any) -> Any:
    """inv(J^T J)."""
    slopes = derivatives.jacobian(residuals, x)
    return np.linalg.inv(np.dot(np.transpose(slopes), slopes))


def fitted(given: dict[str, Any]) -> Any:
    """The weighted residuals of `curve_fit`, by the parameters."""
    f, xdata, ydata, sigma = given["f"], given["xdata"], given["ydata"], given["sigma"]
    ydata = np.asarray(ydata)
    if isinstance(xdata, (list, tuple, np.ndarray)):
        xdata = np.asarray(xdata)
    if given.get("nan_policy") == "omit":
        missing = np.isnan(ydata) | np.any(np.isnan(np.reshape(xdata, (-1, np.shape(xdata)[-1]))), 0)
        xdata, ydata = xdata[..., ~missing], ydata[~missing]
        if sigma is not None and np.ndim(sigma):
            sigma = np.asarray(sigma)[~missing]
            sigma = sigma[:, ~missing] if sigma.ndim == 2 else sigma
    root = None
    if sigma is not None:
        sigma = np.asarray(sigma)
        root = np.linalg.cholesky(sigma) if sigma.ndim == 2 else None

    def residuals(p: Any) -> Any:
        r = f(xdata, *[p[k] for k in range(p.size)]) - ydata
        if root is not None:
            return np.linalg.solve(root, r)
        return np.reshape(r if sigma is None else r / sigma, (-1,))

    return residuals


@RULES.defined(find("curve_fit"))
def curve_fit(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """popt by the conditions of least squares, pcov by its formula."""
    outcome = called(function, call)
    residuals = fitted(given)
    popt = fresh(outcome[0])
    options = given["kwargs"]
    cost = cost_of(residuals, options.get("loss", "linear"), options.get("f_scale", 1.0))
    z = at_any_minimum(function, Problem(cost, *bounds_of(given["bounds"], popt.size)), popt)
    r = residuals(z)
    if not is_active(r):
        return outcome
    if np.all(np.isfinite(outcome[1])):
        pcov = inverse_squares(residuals, z)
        if not given["absolute_sigma"] and r.size > popt.size:
            pcov = pcov * (2.0 * cost(z) / (r.size - popt.size))
        pcov = carrying(fresh(outcome[1]), pcov)
    else:
        pcov = underived(fresh(outcome[1]), r, "the covariance of `scipy.optimize.curve_fit`, which is not finite")
    if len(outcome) > 2:
        spoil(function, outcome[2], r)
    return z, pcov, *outcome[2:]


# -- linear ------------------------------------------------------------------------------------------------------------


def linear_least(function: Any, a: Any, b: Any, x: Any, low: Any, high: Any) -> Any:
    """min |ax - b| within bounds, x the solution."""

    def cost(x: Any) -> Any:
        r = a @ x - b
        return 0.5 * np.dot(r, r)

    if not isinstance(a, np.ndarray):
        return at_any_minimum(function, Problem(cost, low, high), x)

    def slope(x: Any) -> Any:
        return np.dot(np.transpose(a), np.dot(a, x) - b)

    def curvature(x: Any) -> Any:
        return np.dot(np.transpose(a), a)

    return at_any_minimum(function, Problem(cost, low, high, slope=slope, curvature=curvature), x)


@RULES.defined(find("lsq_linear"))
def lsq_linear(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """|Ax - b| within bounds; A an array, a sparse matrix or a linear operator."""
    result = called(function, call)
    a, b = given["A"], np.asarray(given["b"])
    if isinstance(a, (np.ndarray, list, tuple)):
        a = np.asarray(a)
    x = fresh(result["x"])
    low, high = bounds_of(given["bounds"], x.size)
    z = linear_least(function, a, b, x, low, high)
    r = a @ z - b
    if not is_active(r) and not is_active(z):
        return result
    spoil(function, result, r, "x", "fun", "cost")
    put(result, "x", z)
    put(result, "fun", carrying(fresh(result["fun"]), r))
    put(result, "cost", carrying(fresh(result["cost"]), 0.5 * np.dot(r, r)))
    return result


@RULES.defined(find("linprog"))
def linprog(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """A vertex: its active constraints are as many equations as there are unknowns."""
    result = called(function, call)
    if result["x"] is None:
        return result
    c, values = np.asarray(given["c"]), [given[k] for k in ("c", "A_ub", "b_ub", "A_eq", "b_eq", "bounds")]
    if not is_active(values):
        return result
    if given["integrality"] is not None and np.any(given["integrality"]):
        refuse(function, "some of its unknowns are integers")
    x = fresh(result["x"])
    constraints = []
    for name, low in (("ub", -np.inf), ("eq", None)):
        matrix, right = given[f"A_{name}"], given[f"b_{name}"]
        if matrix is not None:
            if isinstance(matrix, (np.ndarray, list, tuple)):
                matrix = np.atleast_2d(matrix)
            right = np.reshape(np.asarray(right), (-1,))
            constraints.append((rows_of(matrix), right if low is None else low, right))
    problem = Problem(lambda x: np.dot(c, x), *pairs_of(given["bounds"], x.size), tuple(constraints))
    z = at_any_minimum(function, problem, x)
    spoil(function, result, problem.f(z), "x", "fun", "slack", "con")
    put(result, "x", z)
    put(result, "fun", carrying(fresh(result["fun"]), problem.f(z)))
    at = 0
    for name, matrix in (("slack", given["A_ub"]), ("con", given["A_eq"])):
        if matrix is not None:
            rows, _, right = constraints[at]
            put(result, name, carrying(fresh(result[name]), right - rows(z)))
            at += 1
    for name in ("ineqlin", "eqlin", "lower", "upper"):
        if name in result:
            spoil(function, result[name], problem.f(z))
    return result


def rows_of(matrix: Any) -> Any:
    """x -> matrix x."""
    return lambda x: matrix @ x


def pairs_of(bounds: Any, count: int) -> tuple[Any, Any]:
    """`linprog` takes one pair for all, too; without any, x >= 0."""
    if bounds is None:
        return as_bounds([(0.0, None)] * count, count)
    if len(bounds) == 2 and all(np.ndim(end) == 0 for end in bounds if end is not None):
        return as_bounds([tuple(bounds)] * count, count)
    return as_bounds([tuple(pair) for pair in bounds] * (count if len(bounds) == 1 else 1), count)


@RULES.defined(find("isotonic_regression"))
def isotonic_regression(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Weighted means of blocks, which stay as they are."""
    result = called(function, call)
    y = np.asarray(given["y"])
    w = np.ones(y.size) if given["weights"] is None else np.asarray(given["weights"])
    if not is_active((y, w)):
        return result
    ends = result["blocks"]
    sums = np.add.reduceat(w, ends[:-1])
    x = np.repeat(np.add.reduceat(w * y, ends[:-1]) / sums, np.diff(ends))
    put(result, "weights", carrying(fresh(result["weights"]), sums))
    put(result, "x", carrying(fresh(result["x"]), x))
    return result


@RULES.defined(find("quadratic_assignment"))
def quadratic_assignment(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The assignment is of integers; what it costs has a derivative."""
    result = called(function, call)
    a, b = np.asarray(given["A"]), np.asarray(given["B"])
    if not is_active((a, b)):
        return result
    order = result["col_ind"]
    put(result, "fun", carrying(fresh(float(result["fun"])), number(np.sum(a * b[order][:, order]))))
    return result


RULES.refused("its unknowns are integers", find("milp"))
RULES.enter(find("linear_sum_assignment"), "no_tangent")

__all__ = ["RULES"]
