"""Solutions of initial value problems by code that is compiled, or iterates: their variational equations.

y' = f(t, y, parameters) is, on panels with collocation points c (Radau's, order 13), the system of equations

    d_kj = y(t_k) + h_k sum_i A_ji f(t_ki, y_ki, parameters) - y_kj = 0

One Newton step on it gives y its derivative: forwards a sweep over the panels, in reverse mode one back, which is the
adjoint equation, with dense solves of J = df/dy. It is stable for stiff systems, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import integrate

from plaingrad.rulebook import Rule
from plaingrad.rules import derivatives
from plaingrad.rules.pushforwards import dot_of, varies
from plaingrad.rules.scipy.implicit import (
    copied,
    fresh,
    helpers,
    is_active,
    ordered,
    outside,
    plainly,
    refuse,
    source_of,
)
from plaingrad.rules.scipy.integrate.columns import right_sides, takes_columns
from plaingrad.tangents import ZeroTangent

STAGES = 7
LARGEST = 2**27  # numbers in the matrices of all panels


def radau(count: int) -> tuple[Any, Any]:
    """(points in (0, 1], A): A_ji is the integral of the i-th Lagrange polynomial from 0 to c_j."""
    legendre = np.polynomial.legendre
    right = legendre.legsub(legendre.Legendre.basis(count).coef, legendre.Legendre.basis(count - 1).coef)
    u = np.sort(legendre.legroots(right).real)
    u[-1] = 1.0
    integrals = np.stack([legendre.legval(u, legendre.legint(row, lbnd=-1)) / 2 for row in np.eye(count)], 1)
    return (u + 1) / 2, integrals @ np.linalg.inv(legendre.legvander(u, count - 1))


C, A = radau(STAGES)
WITH_START = np.concatenate([[0.0], C])
BETWEEN = (WITH_START[:-1] + WITH_START[1:]) / 2
#: From values at 0 and C to coefficients of Legendre polynomials: powers would lose digits.
TO_LEGENDRE = np.linalg.inv(np.polynomial.legendre.legvander(2 * WITH_START - 1, STAGES))


# -- panels ------------------------------------------------------------------------------------------------------------


def nodes_of(marks: Any) -> Any:
    """The first time, then the collocation points of every panel."""
    inner = marks[:-1, None] + np.diff(marks)[:, None] * C
    return np.concatenate([marks[:1], inner.ravel()])


class Steps(NamedTuple):
    """A solution as it is known.

    Attributes:
        times: where panels may end.
        at: its values at a vector of times, one row each.
        are_all: the times are all that there are, the solver's steps.
        first: how many panels are tried first.
    """

    times: Any
    at: Any
    are_all: bool
    first: int


@plainly
def solved_again(function: Any, f: Any, span: Any, y0: Any, options: dict[str, Any]) -> Steps:
    """By `solve_ivp` with dense output."""
    sol = integrate.solve_ivp(f, span, y0, dense_output=True, **options)
    if not sol.success:
        refuse(function, f"its solution is not whole: {sol.message}")
    return Steps(sol.sol.ts, lambda t: sol.sol(t).T, True, 4)


@plainly
def panels_of(steps: Steps, options: dict[str, Any]) -> tuple[Any, Any] | None:
    """(marks between panels, y at the nodes): as few of the solver's steps as describe the solution to its tolerance.

    What is looked at is how well y is interpolated. How well the equations are solved says less of stiff ones, whose
    right-hand side makes much of rounding errors. None: the times are too far apart.
    """
    count = min(steps.first, len(steps.times) - 1)
    chosen = np.unique(np.round(np.linspace(0, len(steps.times) - 1, count + 1)).astype(int))
    while True:
        marks = steps.times[chosen]
        t = nodes_of(marks)
        places = (marks[:-1, None] + np.diff(marks)[:, None] * BETWEEN).ravel()
        both = steps.at(np.concatenate([t, places]))
        y, exact = both[: len(t)], both[len(t) :]
        off = np.abs(between(marks, y, places) - exact) / (
            options.get("atol", 1e-6) + options.get("rtol", 1e-3) * np.abs(exact)
        )
        worst = off.reshape(len(marks) - 1, -1).max(1)
        bad = np.flatnonzero((worst > 10) & (np.diff(chosen) > 1))
        if not bad.size:
            return (marks, y) if steps.are_all or np.all(worst <= 10) else None
        chosen = np.unique(np.concatenate([chosen, (chosen[bad] + chosen[bad + 1]) // 2]))


def defects(y: Any, slopes: Any, h: Any) -> Any:
    """d_kj of the values at all nodes but the first, with f there."""
    size = y.shape[1]
    starts = y[:-1:STAGES]
    inner = np.reshape(y[1:], (-1, STAGES, size))
    sums = np.einsum("ji,kin->kjn", A, np.reshape(slopes, (-1, STAGES, size)))
    return np.reshape(starts[:, None, :] + h[:, None, None] * sums - inner, (-1, size))


@plainly
def plain_times(marks: Any) -> list[float]:
    """Times of all nodes but the first, as SciPy hands them to a right-hand side, which may jump where a panel ends: the
    last of each panel is inside."""
    t, lengths = nodes_of(marks)[1:], np.diff(marks)
    ends = t[STAGES - 1 :: STAGES]
    ends -= np.sign(lengths) * (4.0 * np.spacing(np.abs(ends)) + 1e-12 * np.abs(lengths))
    return t.tolist()


def values(function: Any, f: Any, marks: Any, known: Any, y0: Any) -> Any:
    """y at the nodes, one row each, by SciPy: `known`."""
    return known


def values_definition(function: Any, f: Any, marks: Any, known: Any, y0: Any) -> Any:
    """The same, with derivatives in y0 and in all that f depends on."""
    y = values_outside(function, f, marks, known, y0)
    times, h = plain_times(marks), np.diff(marks)
    at_once = takes_columns(f, times, fresh(y[1:]))
    matrices: Any = None
    for _ in range(ordered()):
        slopes = right_sides(f, times, y[1:], at_once)
        d = np.concatenate([np.reshape(y0 - y[0], (1, -1)), defects(y, slopes, h)])
        if not is_active(d):
            return y
        if matrices is None:
            matrices = matrices_at(function, f, times, y[1:], h, at_once)
        y = flow(y, d, matrices)
    return y


@outside
def values_outside(order: int, function: Any, f: Any, marks: Any, known: Any, y0: Any) -> Any:
    """The values as constants."""
    return copied(values(function, f, marks, known, y0))


@outside
def matrices_at(order: int, function: Any, f: Any, times: Any, y: Any, h: Any, at_once: bool) -> Any:
    """For every panel 1 - h A J, a matrix of all its points."""
    size = y.shape[1]
    if h.size * (STAGES * size) ** 2 > LARGEST:
        refuse(
            function,
            f"{size} unknowns on {h.size} panels are too many for dense matrices; RK45 is followed by steps",
        )

    def shifted(s: Any) -> Any:
        return right_sides(f, times, y + s, at_once)

    shifted.__plaingrad_mode__ = "forward"  # type: ignore[attr-defined]
    slopes = derivatives.jacobian(shifted, np.zeros(size))  # of all nodes at once
    slopes = np.reshape(slopes, (h.size, STAGES, size, size))
    blocks = np.einsum("ji,kimn->kjmin", A, slopes) * h[:, None, None, None, None]
    return np.eye(STAGES * size) - np.reshape(blocks, (h.size, STAGES * size, STAGES * size))


# -- the Newton step ---------------------------------------------------------------------------------------------------


def flow(y: Any, d: Any, matrices: Any) -> Any:
    """y, with the derivative of y + (1 - h A J)^-1 (d, carried from panel to panel)."""
    return copied(y)


def flow_rrule(y: Any, d: Any, matrices: Any) -> Any:
    """The panels are gone through backwards."""

    def flow_pullback(y_bar: Any) -> tuple[Any, ...]:
        size = np.shape(y)[1]
        turned = np.swapaxes(matrices, 1, 2)
        carried = np.zeros(size)
        found = []
        for k in range(matrices.shape[0] - 1, -1, -1):
            own = np.reshape(y_bar[1 + STAGES * k : 1 + STAGES * (k + 1)], (STAGES, size))
            last = np.concatenate([own[:-1], own[-1:] + carried[None]])
            w = np.reshape(np.linalg.solve(turned[k], np.reshape(last, (-1,))), (STAGES, size))
            carried = np.sum(w, 0)
            found.append(w)
        first = np.reshape(y_bar[0] + carried, (1, size))
        return y_bar, np.concatenate([first, *found[::-1]]), ZeroTangent

    return y * 1.0, flow_pullback


def flow_frule(y: Any, d: Any, matrices: Any) -> Any:
    """The panels are gone through forwards; tangents may have a leading axis."""

    def flow_pushforward(dots: Any) -> Any:
        y_dot, d_dot = dot_of(dots, 0), dot_of(dots, 1)
        if not varies(d_dot):
            return y_dot
        size = np.shape(y)[1]
        chunk = d_dot if np.ndim(d_dot) == 3 else np.reshape(d_dot, (1, -1, size))
        carried = chunk[:, 0]
        rows = [chunk[:, :1]]
        for k in range(matrices.shape[0]):
            own = chunk[:, 1 + STAGES * k : 1 + STAGES * (k + 1)] + carried[:, None, :]
            moved = np.linalg.solve(matrices[k], np.transpose(np.reshape(own, (-1, STAGES * size))))
            rows.append(np.reshape(np.transpose(moved), (-1, STAGES, size)))
            carried = rows[-1][:, -1]
        z_dot = np.reshape(np.concatenate(rows, 1), np.shape(d_dot))
        return z_dot if not varies(y_dot) else y_dot + z_dot

    return y * 1.0, flow_pushforward


helpers(
    Rule(values, "composed", definition=values_definition, source=source_of(values_definition)),
    Rule(
        flow,
        "full",
        flow_rrule,
        frule=flow_frule,
        chunked_frule=flow_frule,
        affine=True,
        source=source_of(flow_rrule),
    ),
)


# -- between the nodes -------------------------------------------------------------------------------------------------


def between(marks: Any, y: Any, t: Any) -> Any:
    """The collocation polynomials at times t, a vector: one row each."""
    places = places_of(marks, t)
    s = (t - marks[places]) / (marks[places + 1] - marks[places])
    u = 2.0 * s - 1.0
    basis = [u * 0.0 + 1.0, u]
    for k in range(1, STAGES):
        basis.append(((2 * k + 1) * u * basis[k] - k * basis[k - 1]) / (k + 1))
    weights = np.dot(np.stack(basis, 1), TO_LEGENDRE)
    rows = np.reshape(places[:, None] * STAGES + np.arange(STAGES + 1), (-1,))
    return np.einsum("kp,kpn->kn", weights, np.reshape(y[rows], (len(places), STAGES + 1, -1)))


@plainly
def places_of(marks: Any, t: Any) -> Any:
    """The panel of each time."""
    forward = 1.0 if marks[-1] >= marks[0] else -1.0
    return np.clip(np.searchsorted(forward * marks, forward * t, side="right") - 1, 0, len(marks) - 2)
