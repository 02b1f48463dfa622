"""Stationary points: minima of f(x) with bounds and constraints, by the conditions of Karush, Kuhn and Tucker.

At a regular solution the active constraints c(x) = 0 and their multipliers m are known, and (x, m) solves

    df/dx_i - sum_k m_k dc_k/dx_i = 0 for x_i that is on no bound;  x_i = bound_i for the others;  c_k(x) = 0

A solver's answer is rough: it is moved to the point that solves this, where derivatives are taken, by Newton steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import carrying, is_active, is_near, outside, refuse, solved, stepped

ON_BOUND = 1e-3  # of the size of x and of the bound: constraints that may be active
MOST_STEPS = 6
CHANGE = 0.25  # the most that the equations' derivative changes, of itself, between the last two Newton steps
CURVED = 1e-6  # the most that scaled second derivatives may be negative
MOST_GUESSES = 8  # at the active set
LARGEST = 4000  # unknowns; their matrix is dense


class Problem(NamedTuple):
    """What is minimised.

    Attributes:
        f: a number by a vector x.
        low: lower bounds of x, or None.
        high: upper bounds of x, or None.
        constraints: (c, low, high) with c a vector by a vector, low <= c(x) <= high.
        slope: df/dx by x, where it is known; else it is derived.
        curvature: the matrix of second derivatives by x, where it is known; else it is derived.
    """

    f: Any
    low: Any = None
    high: Any = None
    constraints: tuple[tuple[Any, Any, Any], ...] = ()
    slope: Any = None
    curvature: Any = None


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


def near(x: Any, bound: Any, sign: float) -> Any:
    """Which x are on a bound, as far as a solver goes, or beyond it; sign: -1 for an upper bound."""
    return np.isfinite(bound) & (sign * (x - bound) <= ON_BOUND * scale_of(x, bound))


def is_free(problem: Problem) -> bool:
    """Whether nothing bounds x."""
    return problem.low is None and problem.high is None and not problem.constraints


def slope_of(problem: Problem, x: Any) -> Any:
    """df/dx."""
    return derivatives.gradient(problem.f, x) if problem.slope is None else problem.slope(x)


def curvature_of(problem: Problem, x: Any) -> Any:
    """The second derivatives of f."""
    return derivatives.hessian(problem.f, x) if problem.curvature is None else problem.curvature(x)


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

    r = derivatives.gradient(lagrangian, x) if m.size else slope_of(problem, x)
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
    below = none if problem.low is None else near(x, np.asarray(problem.low), 1.0)
    above = none if problem.high is None else near(x, np.asarray(problem.high), -1.0) & ~below
    rows = []
    for c, low, high in problem.constraints:
        values = c(x)
        at_low = near(values, np.broadcast_to(low, values.shape), 1.0)
        at_high = near(values, np.broadcast_to(high, values.shape), -1.0) & ~at_low
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


def settled(problem: Problem, x: Any) -> tuple[Active, Any]:
    """A guess at the active set and its multipliers: those that pull the wrong way are no longer active."""
    if is_free(problem):
        return active_set(problem, x), np.zeros(0)
    gradient = slope_of(problem, x)
    active = active_set(problem, x)
    fixed = fixed_in(problem, x)
    slopes = normals(problem, active, x)
    m = multipliers(slopes, gradient, active.free)
    for _ in range(x.size + slopes.shape[0] + 1):
        pull = gradient - np.dot(m, slopes)
        loose = ~fixed & ((active.below & (pull < 0)) | (active.above & (pull > 0)))
        equal, signs = is_equality(problem, active, x)
        wrong = np.where(equal, 0.0, m * signs)
        if np.any(loose):
            active = active._replace(below=active.below & ~loose, above=active.above & ~loose)
        elif wrong.size and np.min(wrong) < 0:
            worst = int(np.argmin(wrong))
            active, slopes = without(active, worst), np.delete(slopes, worst, 0)
        else:
            break
        m = multipliers(slopes, gradient, active.free)
    return active, m


def fixed_in(problem: Problem, x: Any) -> Any:
    """Which x_i have bounds that are equal."""
    if problem.low is None or problem.high is None:
        return np.zeros(x.size, dtype=bool)
    return np.asarray(problem.low) == np.asarray(problem.high)


@outside
def conditions_at(order: int, function: Any, problem: Problem, x: Any) -> Any:
    """(active set, z, matrix): the solution near x, and the derivative of the conditions there."""
    if x.size > LARGEST:
        refuse(function, f"its {x.size} unknowns are more than the {LARGEST} whose second derivatives are taken")
    active, m = settled(problem, x)
    for _ in range(MOST_GUESSES):
        z, matrix = moved_to_solution(function, problem, active, np.concatenate([x, m]), x)
        better = mended(function, problem, active, z)
        if better is None:
            check_curvature(function, problem, active, matrix)
            return active, z, matrix
        active = better
        m = multipliers(normals(problem, active, x), slope_of(problem, x), active.free)
    refuse(function, "it is not clear which of its bounds and constraints hold the solution")


def check_curvature(function: Any, problem: Problem, active: Active, matrix: Any) -> None:
    """Refuse saddles and maxima; where other constraints hold as well, what is a minimum is not so easily said."""
    free = active.free
    if problem.constraints or not np.any(free):
        return
    curved = matrix[np.ix_(free, free)]
    size = np.sqrt(np.abs(np.diag(curved)))  # so that units do not count
    size = np.where(size > 0, size, 1.0)
    curved = (curved + curved.T) / np.outer(size, size)
    if np.min(np.linalg.eigvalsh(curved)) < -CURVED:
        refuse(function, "what was found is no minimum: the second derivative is negative in some direction")


def moved_to_solution(function: Any, problem: Problem, active: Active, z: Any, x: Any) -> tuple[Any, Any]:
    """z by Newton steps, and the derivative of the conditions there.

    Near a singular solution it changes as much from step to step as the distance does.
    """
    matrix, converged = None, False
    for _ in range(MOST_STEPS):
        before, matrix = matrix, conditions_slope(problem, active, z)
        try:
            step = np.linalg.solve(matrix, equations(problem, active, z))
        except np.linalg.LinAlgError:
            refuse(function, "the second derivative is singular at the solution")
        if not np.all(np.isfinite(step)) or not is_near(step[: x.size], x):
            refuse(function, "the solver has not converged to a regular minimum (are its tolerances tight?)")
        z = z - step
        length = np.max(np.abs(step[: x.size]), initial=0.0)
        size = 1.0 + np.max(np.abs(x), initial=0.0)
        # Where other solvers are inside, steps do not get shorter than their errors.
        steady = before is not None and np.max(np.abs(change(matrix, before)), initial=0.0) <= CHANGE
        converged = length == 0.0 or (steady and length <= 1e-6 * size)
        if converged:
            break
    if not converged or not is_near(z[: x.size] - x, x):
        refuse(function, "the solver has not converged to a regular minimum (are its tolerances tight?)")
    return z, matrix


def change(matrix: Any, before: Any) -> Any:
    """I - matrix^-1 before."""
    return np.eye(matrix.shape[0]) - np.linalg.solve(matrix, before)


def mended(function: Any, problem: Problem, active: Active, z: Any) -> Active | None:
    """A better guess at the active set, or None: this one is right, and every active constraint is needed."""
    if is_free(problem):
        return None
    x, m = z[: active.below.size], z[active.below.size :]
    gradient = slope_of(problem, x)
    size = 1e-7 * np.max(np.abs(gradient), initial=0.0)
    fixed = fixed_in(problem, x)
    pull = np.where(fixed, 0.0, gradient - np.dot(m, normals(problem, active, x)))
    loose = (active.below & (pull < -size)) | (active.above & (pull > size))
    equal, signs = is_equality(problem, active, x)
    wrong = np.where(equal, np.inf, m * signs)
    if np.any(loose):
        return active._replace(below=active.below & ~loose, above=active.above & ~loose)
    if wrong.size and np.min(wrong) < -size:
        return without(active, int(np.argmin(wrong)))
    beyond = crossed(problem, active, x)
    if beyond is not None:
        return beyond
    if np.any(~active.free & ~fixed & (np.abs(pull) <= size)) or np.any(np.abs(wrong) <= size):
        refuse(function, "the solution lies on a bound or constraint that does not hold it: it has no derivative there")
    return None


def crossed(problem: Problem, active: Active, x: Any) -> Active | None:
    """The active set with what x lies beyond, or None."""
    below = beyond(x, problem.low, 1.0) & ~active.below
    above = beyond(x, problem.high, -1.0) & ~active.above
    rows, more = [], bool(np.any(below) or np.any(above))
    for (c, low, high), (at_low, at_high) in zip(problem.constraints, active.rows, strict=True):
        values = c(x)
        under = np.setdiff1d(np.flatnonzero(beyond(values, low, 1.0)), at_low)
        over = np.setdiff1d(np.flatnonzero(beyond(values, high, -1.0)), np.concatenate([at_high, at_low, under]))
        more = more or under.size > 0 or over.size > 0
        rows.append((np.concatenate([at_low, under]), np.concatenate([at_high, over])))
    return Active(active.below | below, active.above | above, tuple(rows)) if more else None


def beyond(x: Any, bound: Any, sign: float) -> Any:
    """Which x lie beyond a bound, rounding aside."""
    if bound is None:
        return np.zeros(x.size, dtype=bool)
    bound = np.broadcast_to(bound, x.shape)
    return np.isfinite(bound) & (sign * (x - bound) < -1e-9 * scale_of(x, bound))


def conditions_slope(problem: Problem, active: Active, z: Any) -> Any:
    """d(conditions)/dz."""
    count = active.below.size

    def within(z: Any) -> Any:
        return equations(problem, active, z)

    if z.size > count or problem.constraints:
        return derivatives.jacobian(within, z)
    curved = curvature_of(problem, z)
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
    z = stepped(solved, lambda z: equations(problem, active, z), z, r, matrix)
    return carrying(x, z[: x.size])


def depends(problem: Problem, x: Any) -> bool:
    """Whether anything of the problem depends on the inputs at this level."""
    if is_active((problem.low, problem.high)) or is_active(problem.f(x)):
        return True
    return any(is_active((c(x), low, high)) for c, low, high in problem.constraints)


__all__ = ["Problem", "minimum"]
