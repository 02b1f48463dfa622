"""Least squares with x >= 0: on the unknowns that are not 0 it is a linear problem without bounds, A_P x_P = b.

With r = A x - b and G = A_P^T A_P, x_P moves by G^-1 (A_P^T (b_dot - A_dot x) - A_dot_P^T r), and |r| by r (A_dot x - b_dot) / |r|.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.pushforwards import dot_of, joined, lead_of, total, varies
from plaingrad.rules.scipy.implicit import Rules, helpers, refuse, source_of
from plaingrad.rules.scipy.optimize.results import find
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero, unthunk

RULES = Rules()
NNLS = find("nnls")
SINGULAR = 1e-13  # squared, how much of a column others do not explain


def free_in(a: Any, x: Any, r: Any) -> Any:
    """The places of the unknowns that are not 0; refused where bounds touch the solution and do not hold it."""
    pull = np.abs(r @ a)
    size = 1e-7 * pull.max(initial=0.0)
    is_free = x > 1e-12 * x.max(initial=0.0)
    if (pull[~is_free] <= size).any() or np.count_nonzero(x) != np.count_nonzero(is_free):
        refuse(NNLS, "the solution lies on a bound that does not hold it: it has no derivative there")
    return is_free.nonzero()[0]


def check_squares(squares: Any) -> None:
    """Refuse normal equations that are singular: pivots of Cholesky's factor are what is left of each column."""
    try:
        left = np.linalg.cholesky(squares).diagonal()
    except np.linalg.LinAlgError:
        left = np.zeros(len(squares))
    if not (left * left > SINGULAR * squares.diagonal()).all():
        refuse(NNLS, "the second derivative is singular at the solution: columns of A depend on each other")


helpers(*[Rule(f, "no_tangent", source=source_of(f)) for f in (free_in, check_squares)])


def solved(a: Any, b: Any, rest: Any, options: Any) -> tuple[Any, ...]:
    """x, |r|, r, where x is not 0, and the columns and G there."""
    x, norm = NNLS(a, b, *rest, **options)
    r = a @ x - b
    places = free_in(a, x, r)
    columns = a[:, places]
    squares = columns.T @ columns
    check_squares(squares)
    return x, norm, r, places, columns, squares


def over(norm_bar: Any, norm: Any) -> Any:
    """norm_bar / norm; as of a square root where that is 0."""
    with np.errstate(all="ignore"):
        return np.asarray(norm_bar) / norm


def nnls_rrule(A: Any, b: Any, *rest: Any, **options: Any) -> Any:
    a, right = np.asarray(A), np.reshape(np.asarray(b), (-1,))  # SciPy takes one column, too
    x, norm, r, places, columns, squares = solved(a, right, rest, options)

    def nnls_pullback(z_bar: Any) -> tuple[Any, ...]:
        x_bar, norm_bar = unthunk(z_bar[0]), unthunk(z_bar[1])
        pulled = ZeroTangent if is_zero(x_bar) or not places.size else np.linalg.solve(squares, x_bar[places])
        of_r = ZeroTangent if is_zero(norm_bar) else over(norm_bar, norm) * r

        def a_bar() -> Any:
            found = np.zeros(np.shape(a)) if of_r is ZeroTangent else np.outer(of_r, x)
            if pulled is not ZeroTangent:
                found[:, places] -= np.outer(r, pulled) + np.outer(columns @ pulled, x[places])
            return found

        parts = (
            ZeroTangent if pulled is ZeroTangent else columns @ pulled,
            ZeroTangent if of_r is ZeroTangent else -of_r,
        )
        b_bar = total(*parts)
        return (
            Thunk(a_bar),
            b_bar if is_zero(b_bar) else np.reshape(b_bar, np.shape(b)),
            *[NoTangent for _ in rest],
        )

    return (x, norm), nnls_pullback


def nnls_frule(A: Any, b: Any, *rest: Any, **options: Any) -> Any:
    a, right = np.asarray(A), np.reshape(np.asarray(b), (-1,))  # SciPy takes one column, too
    x, norm, r, places, columns, squares = solved(a, right, rest, options)

    def nnls_pushforward(dots: Any) -> Any:
        a_dot, b_dot = joined(dot_of(dots, 0), A), joined(dot_of(dots, 1), b)
        lead = lead_of((a_dot, a), (b_dot, b))
        if varies(b_dot):
            b_dot = np.reshape(b_dot, (*np.shape(b_dot)[: np.ndim(b_dot) - np.ndim(b)], -1))
        moved: Any = 0.0  # of b - A x with constant x
        if varies(b_dot):
            moved = b_dot + moved
        if varies(a_dot):
            moved = moved - a_dot @ x
        force = moved @ columns
        if varies(a_dot):
            force = force - r @ a_dot[..., places]
        x_dot = np.zeros((*lead, x.size))
        if places.size:
            force = np.swapaxes(np.reshape(force, (-1, places.size)), 0, 1)
            found = np.swapaxes(np.linalg.solve(squares, force), 0, 1)
            x_dot[..., places] = np.reshape(found, (*lead, places.size))
        return x_dot, -(moved @ over(r, norm))

    return (x, norm), nnls_pushforward


RULES.enter(
    NNLS, "full", rrule=nnls_rrule, frule=nnls_frule, chunked_frule=nnls_frule, source=source_of(nnls_rrule)
)

__all__ = ["RULES"]
