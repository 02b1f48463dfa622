"""Minima in many unknowns: the matrix of second derivatives is not made; products with it are derivatives of the gradient.

On the unknowns that are on no bound it is symmetric, and at a minimum positive definite: conjugate gradients solve its
systems. What they do not solve is refused, and so is what curves down in a direction that they meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import linalg as solvers

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import carrying, is_active, is_near, outside, refuse, stepped
from plaingrad.rules.scipy.optimize.stationary import (
    CHANGE,
    LARGEST,
    MOST_GUESSES,
    MOST_STEPS,
    Active,
    Problem,
    depends,
    mended,
    minimum,
    settled,
    slope_of,
)
from plaingrad.rules.scipy.sparse.iterative import EXACT, SYSTEMS, Hidden, improved

ROUNDS = 2000  # iterations for one system
STEP = 1e-10  # relative residual of a Newton step
ROUNDING = 1e-12  # what a product of a vector with its image may be below 0
TRIAL = 1e-6  # of the system that tells whether all can be solved


def at_any_minimum(function: Any, problem: Problem, x: Any) -> Any:
    """The minimum x, a vector, with its derivative. Constraints need a matrix, bounds do not."""
    if x.size <= LARGEST or problem.constraints:
        return minimum(function, problem, x)
    if not depends(problem, x):
        return x
    active, z, name = krylov_minimum(function, problem, x)
    start = on_bounds(problem, active, z)
    r = pulls(problem, active, start)
    if not is_active((r, start)):
        return x
    return carrying(x, stepped(improved, lambda z: pulls(problem, active, z), start, r, name))


def on_bounds(problem: Problem, active: Active, x: Any) -> Any:
    """x with the bounds themselves where they hold it."""
    if problem.low is not None and np.any(active.below):
        x = np.where(active.below, problem.low, x)
    if problem.high is not None and np.any(active.above):
        x = np.where(active.above, problem.high, x)
    return x


def pulls(problem: Problem, active: Active, x: Any) -> Any:
    """df/dx of the unknowns on no bound, 0 of the others."""
    return np.where(active.free, slope_of(problem, x), 0.0)


@outside
def krylov_minimum(order: int, function: Any, problem: Problem, x: Any) -> tuple[Active, Any, Hidden]:
    """(active set, the minimum near x, and under a name the second derivatives there, 1 for unknowns on bounds)."""
    active, _ = settled(problem, x)
    for _ in range(MOST_GUESSES):
        z = moved(function, problem, active, x)
        better = mended(function, problem, active, z)
        if better is None:
            product = curvature(function, problem, active, z)
            # A vector that has a part along every eigenvector meets each direction in which f curves down.
            answer(function, product, np.random.default_rng(0).normal(size=z.size), TRIAL)
            operator = solvers.LinearOperator((z.size, z.size), matvec=product, rmatvec=product, dtype=float)
            name = Hidden()
            SYSTEMS[name] = solvers.cg, operator, product(z), {**EXACT, "maxiter": ROUNDS}, None
            return active, z, name
        active = better
    refuse(function, "it is not clear which of its bounds hold the solution")


def curvature(function: Any, problem: Problem, active: Active, x: Any) -> Any:
    """v -> the second derivatives at x times v, between unknowns on no bound; v itself for the others."""
    free = active.free

    def product(v: Any) -> Any:
        v = np.reshape(np.real(v), (-1,))
        inside = np.where(free, v, 0.0)
        curved = derivatives.along(lambda x: slope_of(problem, x), x, inside)
        if np.dot(inside, curved) < -ROUNDING * np.linalg.norm(inside) * np.linalg.norm(curved):
            refuse(
                function, "what was found is no minimum: the second derivative is negative in some direction"
            )
        return np.where(free, curved, v)

    return product


def answer(function: Any, product: Any, right: Any, tolerance: float) -> Any:
    """The solution of one system with symmetric products."""
    operator = solvers.LinearOperator((right.size, right.size), matvec=product, dtype=float)
    relative = {name: tolerance for name in EXACT if name != "atol"}
    z, info = solvers.cg(operator, right, **{**EXACT, **relative, "maxiter": ROUNDS})
    if info != 0 or not np.all(np.isfinite(z)):
        refuse(
            function,
            f"conjugate gradients do not solve the equations of its {right.size} unknowns' derivative",
        )
    return z


def moved(function: Any, problem: Problem, active: Active, x: Any) -> Any:
    """x by Newton steps, at which the second derivative hardly changes any more."""
    z, before, step = on_bounds(problem, active, x), None, None
    size = 1.0 + np.max(np.abs(x), initial=0.0)
    for _ in range(MOST_STEPS):
        product = curvature(function, problem, active, z)
        if before is not None:
            after = product(step)
            if np.linalg.norm(after - before(step)) > CHANGE * np.linalg.norm(after):
                break
            if np.max(np.abs(step)) <= 1e-6 * size:
                return checked(function, z, x)
        r = pulls(problem, active, z)
        if not np.any(r):
            return checked(function, z, x)
        step = answer(function, product, r, STEP)
        if not is_near(step, x):
            break
        z, before = z - step, product
    refuse(function, "the solver has not converged to a regular minimum (are its tolerances tight?)")


def checked(function: Any, z: Any, x: Any) -> Any:
    """z, if it is near x."""
    if not is_near(z - x, x):
        refuse(function, "the solver has not converged to a regular minimum (are its tolerances tight?)")
    return z


__all__ = ["at_any_minimum"]
