"""Stationary points: minima of f(x) with bounds and constraints, by the conditions of Karush, Kuhn and Tucker.

At a regular solution the active constraints c(x) = 0 and their multipliers m are known, and (x, m) solves

    df/dx_i - sum_k m_k dc_k/dx_i = 0 for x_i that is on no bound;  x_i = bound_i for the others;  c_k(x) = 0

A solver's answer is rough: it is moved to the point that solves this, where derivatives are taken, by Newton steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import carrying, fresh, is_active, is_near, ordered, outside, refuse, solved

ON_BOUND = 1e-5  # of the size of x and of the bound: constraints that may be active
MOST_STEPS = 4
LARGEST = 3000  # unknowns; their matrix is dense


class Problem(NamedTuple):
    """What is minimised.

    Attributes:
        f: a number by a vector x.
        low: lower bounds of x, or None.
        high: upper bounds of x, or None.
        constraints: (c, low, high) with c a vector by a vector, low <= c(x) <= high.
        smooth: whether a solution must be checked to be one; not where the solver says so exactly.
    """

    f: Any
    low: Any = None
    high: Any = None
    constraints: tuple[tuple[Any, Any, Any], ...] = ()


class Active(NamedTuple):
    """Which constraints hold with equality.

    Attributes:
        below: which x_i are on their lower bounds.
        above: which are on their upper bounds.
        rows: for each constraint the places of its active entries on their lower ends, and on their upper ends.
    """

    below: Any
    above: Any
    rows: tuple[tuple[Any, Any], ...]

    @property
    def free(self) -> Any:
        """Which x_i are on no bound."""
        return ~(self.below | self.above)


def scale_of(*xs: Any) -> Any:
    """The size of finite numbers, at least 1."""
    finite = [np.abs(np.where(np.isfinite(x), x, 0.0)) for x in xs]
    return 1.0 + np.max(finite, axis=0)


def near(x: Any, bound: Any) -> Any:
    """Which x are on a bound, as far as a solver goes."""
    return np.isfinite(bound) & (np.abs(x - bound) <= ON_BOUND * scale_of(x, bound))


def equations(problem: Problem, active: Active, z: Any) -> Any:
    """The conditions at z = (x, multipliers)."""
    count = active.below.size
    x, m = z[:count], z[count:]

    def lagrangian(x: Any) -> Any:
        total = problem.f(x)
        place = 0
        for (c, _, _), (at_low, at_high) in zip(problem.constraints, active.rows):
            size = at_low.size + at_high.size
            if size:
                entries = c(x)[np.concatenate([at_low, at_high])]
                total = total - np.dot(m[place : place + size], entries)
                place += size
        return total

    r = derivatives.gradient(lagrangian, x)
    if problem.low is not None and np.any(active.below):
        r = np.where(active.below, x - np.where(active.below, problem.low, 0.0), r)
    if problem.high is not None and np.any(active.above):
        r = np.where(active.above, x - np.where(active.above, problem.high, 0.0), r)
    parts = [r]
    for (c, low, high), (at_low, at_high) in zip(problem.constraints, active.rows):
        if at_low.size or at_high.size:
            values = c(x)
            parts.append(values[at_low] - np.broadcast_to(low, np.shape(values))[at_low])
            parts.append(values[at_high] - np.broadcast_to(high, np.shape(values))[at_high])
    return np.concatenate(parts) if len(parts) > 1 else r


def active_set(problem: Problem, x: Any) -> Active:
    """Constraints that hold with equality at x, as far as x is known."""
    none = np.zeros(x.size, dtype=bool)
    below = none if problem.low is None else near(x, np.asarray(problem.low))
    above = none if problem.high is None else near(x, np.asarray(problem.high)) & ~below
    rows = []
    for c, low, high in problem.constraints:
        values = c(x)
        at_low = near(values, np.broadcast_to(low, values.shape))
        at_high = near(values, np.broadcast_to(high, values.shape)) & ~at_low
        rows.append((np.flatnonzero(at_low), np.flatnonzero(at_high)))
    return Active(below, above, tuple(rows))


def is_equality(problem: Problem, active: Active, x: Any) -> Any:
    """For each active constraint, whether it is an equation; +1 on a lower end, -1 on an upper one."""
    equal, signs = [], []
    for (c, low, high), (at_low, at_high) in zip(problem.constraints, active.rows):
        shape = np.shape(c(x))
        both = np.broadcast_to(low, shape) == np.broadcast_to(high, shape)
        equal += [both[at_low], both[at_high]]
        signs += [np.ones(at_low.size), -np.ones(at_high.size)]
    if not equal:
        return np.zeros(0, dtype=bool), np.zeros(0)
    return np.concatenate(equal), np.concatenate(signs)


def normals(problem: Problem, active: Active, x: Any) -> Any:
    """dc/dx of the active constraints, one row each."""
    rows = [np.zeros((0, x.size))]
    for (c, _, _), (at_low, at_high) in zip(problem.constraints, active.rows):
        if at_low.size or at_high.size:
            rows.append(derivatives.jacobian(c, x)[np.concatenate([at_low, at_high])])
    return np.concatenate(rows)


def multipliers(slopes: Any, gradient: Any, free: Any) -> Any:
    """The m that balance the gradient best."""
    if not slopes.shape[0]:
        return np.zeros(0)
    a = np.where(free, slopes, 0.0)
    b = np.where(free, gradient, 0.0)
    return np.linalg.lstsq(np.transpose(a), b, rcond=None)[0]


def without(active: Active, drop: int) -> Active:
    """The active set but for one constraint, counted through."""
    rows = []
    for at_low, at_high in active.rows:
        both = []
        for part in (at_low, at_high):
            both.append(np.delete(part, drop) if 0 <= drop < part.size else part)
            drop -= part.size
        rows.append((both[0], both[1]))
    return active._replace(rows=tuple(rows))


def settled(function: Any, problem: Problem, x: Any) -> tuple[Active, Any]:
    """The active set and its multipliers: those that pull the wrong way are no longer active."""
    gradient = derivatives.gradient(problem.f, x)
    active = active_set(problem, x)
    fixed = np.zeros(x.size, dtype=bool)
    if problem.low is not None and problem.high is not None:
        fixed = np.asarray(problem.low) == np.asarray(problem.high)
    size = 1e-6 * (1e-6 + np.max(np.abs(gradient), initial=0.0))
    slopes = normals(problem, active, x)
    for _ in range(x.size + slopes.shape[0] + 1):
        m = multipliers(slopes, gradient, active.free)
        pull = gradient - np.dot(m, slopes)
        loose = ~fixed & ((active.below & (pull < -size)) | (active.above & (pull > size)))
        equal, signs = is_equality(problem, active, x)
        wrong = np.where(equal, 0.0, m * signs)
        if np.any(loose):
            active = active._replace(below=active.below & ~loose, above=active.above & ~loose)
        elif wrong.size and np.min(wrong) < -size:
            worst = int(np.argmin(wrong))
            active, slopes = without(active, worst), np.delete(slopes, worst, 0)
        else:
            break
    weak = ~fixed & ~active.free & (np.abs(pull) <= size)
    if np.any(weak) or np.any(np.abs(wrong[~equal]) <= size):
        refuse(function, "the solution lies on a bound or constraint that does not hold it: it has no derivative there")
    return active, m


@outside
def conditions_at(order: int, function: Any, problem: Problem, x: Any) -> Any:
    """(active set, z, matrix): the solution near x, and the derivative of the conditions there."""
    if x.size > LARGEST:
        refuse(function, f"its {x.size} unknowns are more than the {LARGEST} whose second derivatives are taken")
    active, m = settled(function, problem, x)
    z = np.concatenate([x, m])
    for _ in range(MOST_STEPS):
        matrix = conditions_slope(problem, active, z)
        try:
            step = np.linalg.solve(matrix, equations(problem, active, z))
        except np.linalg.LinAlgError:
            refuse(function, "the second derivative is singular at the solution")
        moved = step[: x.size]
        if not np.all(np.isfinite(step)) or not is_near(moved, x):
            refuse(function, "the solver has not converged to a regular minimum")
        z = z - step
        if np.max(np.abs(moved), initial=0.0) <= 1e-9 * (1.0 + np.max(np.abs(x), initial=0.0)):
            break
    if not is_near(z[: x.size] - x, x):
        refuse(function, "the solver has not converged to a regular minimum")
    return active, z, matrix


def conditions_slope(problem: Problem, active: Active, z: Any) -> Any:
    """d(conditions)/dz."""
    count = active.below.size

    def within(z: Any) -> Any:
        return equations(problem, active, z)

    if z.size > count or problem.constraints:
        return derivatives.jacobian(within, z)
    curved = derivatives.hessian(problem.f, z)
    return np.where(active.free[:, None], curved, np.eye(count))


def minimum(function: Any, problem: Problem, x: Any) -> Any:
    """The solution x, a vector, with its derivative, and whether it depends on the inputs."""
    if not depends(problem, x):
        return x
    active, z, matrix = conditions_at(function, problem, x)
    if not np.any(active.free) and not z[x.size :].size and not is_active((problem.low, problem.high)):
        return x
    r = equations(problem, active, z)
    if not is_active(r):
        return x
    for _ in range(ordered()):
        z = solved(z, r, matrix)
        r = equations(problem, active, z) if ordered() > 1 else r
    return carrying(x, z[: x.size])


def depends(problem: Problem, x: Any) -> bool:
    """Whether anything of the problem depends on the inputs at this level."""
    if is_active((problem.low, problem.high)) or is_active(problem.f(x)):
        return True
    return any(is_active((c(x), low, high)) for c, low, high in problem.constraints)


__all__ = ["Problem", "depends", "fresh", "minimum"]
