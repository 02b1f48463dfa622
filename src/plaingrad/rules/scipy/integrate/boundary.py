"""Boundary value problems: the collocation equations that SciPy has solved, by the implicit function theorem."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate
from scipy.interpolate import PPoly

from plaingrad.rules.scipy.implicit import (
    Rules,
    as_users,
    at_root,
    called,
    carrying,
    fresh,
    is_active,
    mover,
    refuse,
)
from plaingrad.rules.scipy.integrate.switching import compares, moving, switches_of
from plaingrad.rules.scipy.integrate.variational import Steps
from plaingrad.rules.scipy.optimize.results import put, spoil

RULES = Rules()
LARGEST = 4000


class Spline(PPoly):
    """The cubic spline through values with slopes, with derivatives.

    Attributes:
        plain: SciPy's.
        y: its values, one column for each mark.
        slopes: its slopes there.
    """

    plain: Any
    y: Any
    slopes: Any

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values at x, or those of the nu-th derivative."""
        if nu > 1 or not (extrapolate is None or extrapolate is True):
            refuse(integrate.solve_bvp, "of its `sol` values and slopes have derivatives (nu=0 and nu=1)")
        value = self.plain(fresh(np.asarray(x) * 1.0), nu)
        at = np.reshape(np.asarray(x) * 1.0, (-1,))
        marks = self.plain.x
        places = np.clip(np.searchsorted(marks, fresh(at), side="right") - 1, 0, len(marks) - 2)
        h = marks[places + 1] - marks[places]
        s = (at - marks[places]) / h
        y0, y1 = self.y[:, places], self.y[:, places + 1]
        d0, d1 = self.slopes[:, places] * h, self.slopes[:, places + 1] * h
        if nu == 0:
            z = y0 + s * (d0 + s * (3 * (y1 - y0) - 2 * d0 - d1 + s * (2 * (y0 - y1) + d0 + d1)))
        else:
            z = (d0 + s * (2 * (3 * (y1 - y0) - 2 * d0 - d1) + 3 * s * (2 * (y0 - y1) + d0 + d1))) / h
        return carrying(fresh(value), np.reshape(z, np.shape(value)))


@mover
def spline_through(plain: Any, y: Any, slopes: Any) -> Spline:
    """The same spline, of values and slopes that have derivatives."""
    made = object.__new__(Spline)
    names = {name for cls in type(plain).__mro__ for name in getattr(cls, "__slots__", ())} | set(getattr(plain, "__dict__", ()))
    for name in names - {"__dict__", "__weakref__"}:
        if hasattr(plain, name):
            setattr(made, name, getattr(plain, name))
    made.plain, made.y, made.slopes = plain, y, slopes
    return made


def refuse_jumps(function: Any, fun: Any, result: Any, free: bool) -> None:
    """Refuse a right-hand side that jumps at a place that moves with the inputs."""
    p = result.p

    @as_users
    def one(x: Any, y: Any) -> Any:
        at, column = np.reshape(x, (1,)), np.reshape(y, (-1, 1))
        return np.reshape(np.asarray(fun(at, column, p) if free else fun(at, column)), (-1,))

    x, y = fresh(result.x), fresh(result.y)
    if compares(one, float(x[len(x) // 2]), y[:, len(x) // 2]):
        steps = Steps(x, lambda t: np.transpose(result.sol(t)), True, 4)
        marks = moving(function, one, steps, switches_of(function, one, steps, False, False))
        if marks:
            refuse(function, f"its right-hand side jumps at {marks[0].low:.6g}, which moves with the inputs")


@RULES.defined(integrate.solve_bvp)
def solve_bvp(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """y, its slopes, p and `sol`; the mesh is constant."""
    result = called(function, call)
    if result.y.dtype.kind == "c" or given["S"] is not None:
        refuse(function, "its values are complex, or it has a singular term (S)")
    fun, bc, x, free = given["fun"], given["bc"], fresh(result.x), given["p"] is not None
    shape, h = result.y.shape, np.diff(fresh(result.x))
    count = result.y.size

    def slopes_of(x: Any, y: Any, p: Any) -> Any:
        return np.asarray(fun(x, y, p) if free else fun(x, y))

    def equations(z: Any) -> Any:
        y, p = np.reshape(z[:count], shape), z[count:]
        f = slopes_of(x, y, p)
        middle = 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (f[:, 1:] - f[:, :-1])
        at_middle = slopes_of(x[:-1] + 0.5 * h, middle, p)
        inside = y[:, 1:] - y[:, :-1] - h / 6 * (f[:, :-1] + f[:, 1:] + 4 * at_middle)
        ends = bc(y[:, 0], y[:, -1], p) if free else bc(y[:, 0], y[:, -1])
        return np.concatenate([np.reshape(inside, (-1,)), np.reshape(np.asarray(ends), (-1,))])

    if is_active(given["x"]):
        refuse(function, "its mesh depends on the inputs; scale the variable instead")
    parts = [np.reshape(result.y, (-1,)), *([np.reshape(result.p, (-1,))] if free else [])]
    z = fresh(np.concatenate(parts))
    if is_active(list(given.values())):
        refuse_jumps(function, fun, result, free)
    if not is_active(equations(z)):
        return result
    if z.size > LARGEST:
        refuse(function, f"its {z.size} unknowns are more than the {LARGEST} that a dense matrix is made for")
    z = at_root(function, equations, z)
    y, p = np.reshape(z[:count], shape), z[count:]
    slopes = slopes_of(x, y, p)
    spoil(function, result, z, "x", "y", "yp", "p")
    put(result, "y", carrying(fresh(result.y), y))
    put(result, "yp", carrying(fresh(result.yp), slopes))
    if free:
        put(result, "p", carrying(fresh(result.p), p))
    put(result, "sol", spline_through(result.sol, y, slopes))
    return result
