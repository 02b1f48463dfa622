"""Minimisers, local and global: df/dx = 0, with bounds and constraints that are active."""

from __future__ import annotations

from typing import Any

import numpy as np

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
from plaingrad.rules.scipy.optimize.constraints import as_bounds, as_constraints, vector_function
from plaingrad.rules.scipy.optimize.large_minima import at_any_minimum
from plaingrad.rules.scipy.optimize.results import find, put, spoil
from plaingrad.rules.scipy.optimize.stationary import Problem

RULES = Rules()
TAKING_BOUNDS = ("nelder-mead", "powell", "l-bfgs-b", "tnc", "cobyla", "cobyqa", "slsqp", "trust-constr")
TAKING_CONSTRAINTS = ("cobyla", "cobyqa", "slsqp", "trust-constr")


def of_vector(f: Any, args: tuple[Any, ...], first: bool = False, shape: Any = None) -> Any:
    """A user's function as a number by a vector; `first`: of what it returns only the first is the number."""

    def objective(x: Any) -> Any:
        z = f(x if shape is None else np.reshape(x, shape), *args)
        return number(np.asarray(z[0] if first else z))

    return objective


def completed(function: Any, problem: Problem, result: Any) -> Any:
    """A result with derivatives of x and fun; the others refuse."""
    x = fresh(result["x"])
    flat = np.reshape(x, (-1,))
    z = at_any_minimum(function, problem, flat)
    if not is_active(z) and not is_active(problem.f(flat)):
        return result
    z = np.reshape(z, np.shape(x))
    value = problem.f(np.reshape(z, (-1,)))
    spoil(function, result, value, "x", "fun")
    put(result, "x", z)
    put(result, "fun", carrying(fresh(result["fun"]), np.reshape(value, np.shape(result["fun"]))[()]))
    return result


def spoiled(function: Any, outcome: Any, r: Any) -> Any:
    """What is returned beside x and f(x): real numbers and arrays refuse."""
    name = f"a result of `scipy.optimize.{function.__name__}`"
    return tuple(
        [
            underived(part, r, name)
            if isinstance(part, float) or (isinstance(part, np.ndarray) and part.dtype.kind == "f")
            else part
            for part in outcome
        ]
    )


def kind_of_call(given: dict[str, Any], custom: Any) -> tuple[bool, bool]:
    """Whether bounds, and constraints, count with this method."""
    method, bounds = given["method"], given["bounds"]
    if callable(method):
        return bounds is not None, True
    if method is None:
        return True, True
    return method.lower() in TAKING_BOUNDS, method.lower() in TAKING_CONSTRAINTS


@RULES.defined(find("minimize"))
def minimize(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Every method has the derivative of the minimum, whatever its own derivatives are."""
    result = called(function, call)
    f = of_vector(given["fun"], as_tuple(given["args"]), bool(given["jac"]) and given["jac"] is True)
    bounded, constrained = kind_of_call(given, None)
    low, high = as_bounds(given["bounds"], result["x"].size) if bounded else (None, None)
    constraints = as_constraints(given["constraints"]) if constrained else ()
    return completed(function, Problem(f, low, high, constraints), result)


@RULES.defined(find("minimize_scalar"))
def minimize_scalar(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Of one number."""
    result = called(function, call)
    low, high = (None, None) if given["bounds"] is None else ends(*given["bounds"])
    f = of_vector(given["fun"], as_tuple(given["args"]), shape=())
    return completed(function, Problem(f, low, high), result)


def ends(low: Any, high: Any) -> tuple[Any, Any]:
    """An interval as vectors of one."""
    return np.reshape(np.asarray(low) * 1.0, (1,)), np.reshape(np.asarray(high) * 1.0, (1,))


@RULES.defined(*map(find, ("fminbound", "golden", "brent")))
def scalar_minimum(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The older functions of one number, whose result is x or a tuple."""
    outcome = called(function, call)
    low, high = ends(given["x1"], given["x2"]) if "x1" in given else (None, None)
    f = of_vector(given["func"], as_tuple(given["args"]), shape=())
    return with_minimum(function, Problem(f, low, high), outcome, bool(given["full_output"]))


def with_minimum(function: Any, problem: Problem, outcome: Any, full: bool, value: bool = True) -> Any:
    """(x, f(x), ...), or x alone; `value`: whether f(x) is there."""
    x = fresh(outcome[0] if full else outcome)
    z = at_any_minimum(function, problem, np.reshape(x, (-1,)))
    if not full:
        return np.reshape(z, np.shape(x))[()] if is_active(z) else x
    if not is_active(z) and not is_active(problem.f(np.reshape(x, (-1,)))):
        return outcome
    fun = problem.f(z)
    x = np.reshape(z, np.shape(x))[()]
    if not value:
        return x, *spoiled(function, outcome[1:], fun)
    return x, carrying(fresh(outcome[1]), np.reshape(fun, np.shape(outcome[1]))[()]), *spoiled(function, outcome[2:], fun)


@RULES.defined(*map(find, ("fmin", "fmin_powell", "fmin_cg", "fmin_bfgs", "fmin_ncg")))
def older_minimum(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """x, or (x, f(x), ...)."""
    outcome = called(function, call)
    f = of_vector(given["func"] if "func" in given else given["f"], as_tuple(given["args"]))
    full = bool(given["full_output"]) or bool(given["retall"])
    if full and not given["full_output"]:  # (x, all x on the way)
        return with_minimum(function, Problem(f), outcome, True, False)
    return with_minimum(function, Problem(f), outcome, full)


@RULES.defined(find("fmin_l_bfgs_b"))
def fmin_l_bfgs_b(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(x, f(x), facts)."""
    outcome = called(function, call)
    first = given["fprime"] is None and not given["approx_grad"]
    f = of_vector(given["func"], as_tuple(given["args"]), first)
    low, high = as_bounds(given["bounds"], outcome[0].size)
    return with_minimum(function, Problem(f, low, high), outcome, True)


@RULES.defined(find("fmin_tnc"))
def fmin_tnc(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(x, count, code)."""
    outcome = called(function, call)
    first = given["fprime"] is None and not given["approx_grad"]
    f = of_vector(given["func"], as_tuple(given["args"]), first)
    low, high = as_bounds(given["bounds"], outcome[0].size)
    return with_minimum(function, Problem(f, low, high), outcome, True, False)


@RULES.defined(find("fmin_cobyla"))
def fmin_cobyla(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """x under c(x) >= 0."""
    outcome = called(function, call)
    args = as_tuple(given["args"])
    cons = [given["cons"]] if callable(given["cons"]) else list(given["cons"])
    others = args if given["consargs"] is None else as_tuple(given["consargs"])
    constraints = tuple([(vector_function(c, others), 0.0, np.inf) for c in cons])
    return with_minimum(function, Problem(of_vector(given["func"], args), None, None, constraints), outcome, False)


@RULES.defined(find("fmin_slsqp"))
def fmin_slsqp(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """x, or (x, f(x), ...)."""
    outcome = called(function, call)
    args = as_tuple(given["args"])
    count = (outcome[0] if given["full_output"] else outcome).size
    low, high = as_bounds(given["bounds"], count) if len(given["bounds"]) else (None, None)
    constraints = [(vector_function(c, args), 0.0, 0.0) for c in given["eqcons"]]
    constraints += [(vector_function(c, args), 0.0, np.inf) for c in given["ieqcons"]]
    if given["f_eqcons"] is not None:
        constraints.append((vector_function(given["f_eqcons"], args), 0.0, 0.0))
    if given["f_ieqcons"] is not None:
        constraints.append((vector_function(given["f_ieqcons"], args), 0.0, np.inf))
    problem = Problem(of_vector(given["func"], args), low, high, tuple(constraints))
    return with_minimum(function, problem, outcome, bool(given["full_output"]))


# -- global ones -------------------------------------------------------------------------------------------------------


@RULES.defined(*map(find, ("differential_evolution", "dual_annealing", "shgo", "direct")))
def global_minimum(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The best minimum found is a local one, too."""
    result = called(function, call)
    integrality = given.get("integrality")
    if integrality is not None and np.any(integrality):
        refuse(function, "some of its unknowns are integers")
    args = as_tuple(given["args"]) if given["args"] is not None else ()
    low, high = as_bounds(given["bounds"], result["x"].size)
    constraints = as_constraints(given.get("constraints"))
    return completed(function, Problem(of_vector(given["func"], args), low, high, constraints), result)


@RULES.defined(find("basinhopping"))
def basinhopping(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Its arguments for f are those of the local minimiser."""
    result = called(function, call)
    options = given["minimizer_kwargs"] or {}
    f = of_vector(given["func"], as_tuple(options.get("args", ())), options.get("jac") is True)
    low, high = as_bounds(options.get("bounds"), result["x"].size)
    constraints = as_constraints(options.get("constraints"))
    return completed(function, Problem(f, low, high, constraints), result)


@RULES.defined(find("brute"))
def brute(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The best point of a grid, which `finish` has made a minimum."""
    outcome = called(function, call)
    if given["finish"] is None:
        refuse(function, "a point of a grid is no minimum (finish=None)")
    f = of_vector(given["func"], as_tuple(given["args"]), shape=None)
    return with_minimum(function, Problem(f), outcome, bool(given["full_output"]))
