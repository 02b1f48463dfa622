"""Root finders: f(x, parameters) = 0 says what dx is."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.implicit import (
    Rules,
    as_tuple,
    at_roots,
    called,
    fresh,
    is_active,
    mover,
    number,
)
from plaingrad.rules.scipy.optimize.large_roots import at_any_root
from plaingrad.rules.scipy.optimize.results import find, put, spoil

RULES = Rules()


@mover
def with_root(outcome: Any, x: Any) -> Any:
    """What a root finder of numbers returned, with another root in it."""
    if hasattr(outcome, "_replace"):
        return outcome._replace(root=x)
    if isinstance(outcome, tuple):
        put(outcome[1], "root", x)
        return x, outcome[1]
    return x


@RULES.defined(*map(find, ("brentq", "brenth", "ridder", "bisect", "toms748", "newton")))
def scalar_root(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """One number, or with `newton` an array of roots of one equation each."""
    f, args = (given["func"] if "func" in given else given["f"]), as_tuple(given["args"])
    outcome = called(function, call)
    x = fresh(outcome[0] if isinstance(outcome, tuple) else outcome)

    def equation(x: Any) -> Any:
        z = f(x, *args)
        return number(z) if np.ndim(x) == 0 else z

    return with_root(outcome, at_roots(function, equation, x))


@RULES.defined(find("root_scalar"))
def root_scalar(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """f may return its derivatives, too."""
    f, args = given["f"], as_tuple(given["args"])
    result = called(function, call)
    several = bool(given["fprime"]) and not callable(given["fprime"])

    def equation(x: Any) -> Any:
        z = f(x, *args)
        return number(z[0] if several else z)

    put(result, "root", at_roots(function, equation, fresh(result.root)))
    return result


def as_vector(z: Any) -> Any:
    """What a user's function of a vector returned, as a vector."""
    return np.reshape(np.asarray(z), (-1,))


@RULES.defined(find("fsolve"))
def fsolve(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """A system of equations by MINPACK; what is returned beside x refuses."""
    f, args = given["func"], as_tuple(given["args"])
    outcome = called(function, call)
    x = fresh(outcome[0] if given["full_output"] else outcome)

    def equations(x: Any) -> Any:
        return as_vector(f(x, *args))

    z = at_any_root(function, equations, x)
    if not given["full_output"]:
        return z
    if is_active(z):
        spoil(function, outcome[1], z)
    return z, *outcome[1:]


@RULES.defined(find("root"))
def root(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """A system of equations; with `jac=True` f returns the Jacobian, too."""
    f, args = given["fun"], as_tuple(given["args"])
    result = called(function, call)
    several = bool(given["jac"]) and not callable(given["jac"])
    x = fresh(result.x)

    def equations(x_flat: Any) -> Any:
        z = f(np.reshape(x_flat, np.shape(x)), *args)
        return as_vector(z[0] if several else z)

    if np.shape(x) == ():
        x = np.reshape(x, (1,))
    z = at_any_root(function, equations, x)
    if is_active(z):
        spoil(function, result, z, "x")
    put(result, "x", np.reshape(z, np.shape(result.x)))
    return result


@RULES.defined(find("fixed_point"))
def fixed_point(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """f(x) = x."""
    f, args = given["func"], as_tuple(given["args"])
    x = fresh(called(function, call))

    def equations(x_flat: Any) -> Any:
        return as_vector(f(np.reshape(x_flat, np.shape(x)), *args)) - x_flat

    if np.ndim(x):
        return at_any_root(function, equations, x)
    return at_roots(function, lambda x: number(f(x, *args)) - x, x)


@RULES.defined(
    *map(find, ("broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing", "newton_krylov"))
)
def nonlinear(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Large systems: F(x) = 0 for x of any shape."""
    f = given["F"]
    x = fresh(called(function, call))

    def equations(x_flat: Any) -> Any:
        return as_vector(f(np.reshape(x_flat, np.shape(x))))

    return at_any_root(function, equations, x)
