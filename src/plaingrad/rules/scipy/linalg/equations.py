"""Linear equations: A z = b, where A is given in one of many ways. b_bar solves A^H b_bar = z_bar, and A_bar = -b_bar z^H.

What a solver does not read of A has the derivative zero: the other triangle, what is outside of the bands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.pushforwards import total, varies
from plaingrad.rules.scipy.linalg.entering import entered, of_batch, sl
from plaingrad.rules.scipy.linalg.matrices import (
    as_columns,
    bands_times,
    diagonal,
    folded,
    on_diagonal,
    outer_bands,
    symmetrised,
    transposed,
)
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

# What `assume_a` says is read: a map to the matrix that is meant, and its transpose.
SYMMETRIC = ("sym", "symmetric")
HERMITIAN = ("her", "hermitian", "pos", "positive definite")


def read_of(assume_a: Any, a: Any, lower: bool) -> Any:
    """The matrix that is solved with, as a linear function of `a`."""
    if assume_a in SYMMETRIC + HERMITIAN:
        return symmetrised(a, lower, assume_a in HERMITIAN)
    if assume_a == "diagonal":
        return on_diagonal(diagonal(a))
    if assume_a == "tridiagonal":
        return np.triu(np.tril(a, 1), -1)
    return np.triu(a) if assume_a == "upper triangular" else np.tril(a) if assume_a == "lower triangular" else a


def read_bar(assume_a: Any, a_bar: Any, lower: bool) -> Any:
    """The transpose of `read_of`."""
    if assume_a in SYMMETRIC + HERMITIAN:
        return folded(a_bar, lower, assume_a in HERMITIAN)
    return read_of(assume_a, a_bar, lower)


def solve_with(a: Any, b: Any, assume_a: Any, lower: bool, options: dict[str, Any]) -> Any:
    """The same solver for another right-hand side."""
    known = {"assume_a": assume_a} if assume_a is not None else {}
    return sl.solve(a, b, lower=lower, **known, **options)


def solve_adjoint(a: Any, b: Any, assume_a: Any, lower: bool, options: dict[str, Any]) -> Any:
    """A^-H b by a solver of the same kind."""
    if assume_a in HERMITIAN:
        return solve_with(a, b, assume_a, lower, options)
    if assume_a in SYMMETRIC:
        return solve_with(conj(a), b, assume_a, lower, options)
    other = {"upper triangular": "lower triangular", "lower triangular": "upper triangular"}.get(assume_a, assume_a)
    return solve_with(adjoint(a), b, other, lower, options)


@entered("solve", dims=(2, "1|2"), batches=False)
def solve(f, a, b, lower=False, *deprecated, check_finite=True, assume_a=None, transposed=False, **options):
    """`assume_a` says which part of A is read."""
    if len(deprecated) > 2:
        names = ("check_finite", "assume_a", "transposed")
        check_finite, assume_a, transposed = [*deprecated[2:], check_finite, assume_a, transposed][: len(names)]
    a, b = np.asarray(a), np.asarray(b)
    known = {"assume_a": assume_a} if assume_a is not None else {}
    z = f(a, b, lower=lower, check_finite=check_finite, transposed=transposed, **known, **options)
    vector = np.ndim(b) == 1
    quiet = {"check_finite": False}
    m = np.swapaxes(a, -1, -2) if transposed else a
    kind = {"upper triangular": "lower triangular", "lower triangular": "upper triangular"}.get(assume_a, assume_a)
    kind = kind if transposed else assume_a
    below = bool(lower) != bool(transposed)

    def solve_pullback(z_bar):
        if np.size(z) == 0:
            return np.zeros(np.shape(a)), np.zeros(np.shape(b))
        columns, bars = (np.expand_dims(z, -1), np.expand_dims(z_bar, -1)) if vector else (z, z_bar)
        b_bar = solve_adjoint(m, bars, kind, below, quiet)

        def a_bar():
            m_bar = -b_bar @ adjoint(columns)
            return read_bar(assume_a, np.swapaxes(m_bar, -1, -2) if transposed else m_bar, lower)

        return Thunk(a_bar), b_bar[..., 0] if vector else b_bar

    def solve_pushforward(a_dot, b_dot, lower_dot=None):
        moved: Any = ZeroTangent
        if varies(a_dot):
            m_dot = read_of(assume_a, a_dot, lower)
            columns = np.expand_dims(z, -1) if vector else z
            moved = -((np.swapaxes(m_dot, -1, -2) if transposed else m_dot) @ columns)
        if varies(b_dot):
            moved = total(moved, np.expand_dims(b_dot, -1) if vector else b_dot)
        if np.size(z) == 0:
            return np.zeros_like(z)
        z_dot = solve_with(m, moved, kind, below, quiet)
        return z_dot[..., 0] if vector else z_dot

    return z, solve_pullback, solve_pushforward


@entered("inv", dims=(2,), batches=False)
def inv(f, a, overwrite_a=False, check_finite=True, **options):
    """A^-1."""
    a = np.asarray(a)
    z = f(a, check_finite=check_finite, **options)
    kind, lower = options.get("assume_a"), options.get("lower", False)
    if kind == "diagonal":  # the rest of the result is not computed
        m = on_diagonal(diagonal(z))
        return z, lambda z_bar: (-adjoint(m * m) * on_diagonal(diagonal(z_bar)),), lambda a_dot, *others: -m * m * a_dot
    parts = SYMMETRIC + HERMITIAN + ("upper triangular", "lower triangular")

    def inv_pullback(z_bar):
        a_bar = -adjoint(z) @ z_bar @ adjoint(z)
        return (read_bar(kind, a_bar, lower) if kind in parts else a_bar,)

    def inv_pushforward(a_dot, *others):
        return -z @ (read_of(kind, a_dot, lower) if kind in parts else a_dot) @ z

    return z, inv_pullback, inv_pushforward


TRANSPOSES = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def triangle(a: Any, lower: bool, unit_diagonal: bool) -> Any:
    """What is read of a triangular matrix."""
    k = (-1 if lower else 1) if unit_diagonal else 0
    return np.tril(a, k) if lower else np.triu(a, k)


def op(a: Any, trans: int) -> Any:
    """A, its transpose, or its conjugate transpose."""
    return (a, transposed(a), adjoint(a))[trans] if trans < 2 or np.iscomplexobj(a) else transposed(a)


def solve_op(a: Any, b: Any, trans: int, lower: bool, unit_diagonal: bool) -> Any:
    """op(A)^-1 b, and op(A)^-H b for `trans` + 10; nan where a factor is singular."""
    if trans == 11:  # A^T's adjoint is conj(A)
        return conj(solve_op(a, conj(b), 0, lower, unit_diagonal))
    trans = {10: 2, 12: 0}.get(trans, trans)
    try:
        return sl.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal, check_finite=False)
    except np.linalg.LinAlgError:
        return np.full(np.shape(b), np.nan, np.result_type(a, b))


@entered("solve_triangular", dims=(2, "1|2"))
def solve_triangular(f, a, b, trans=0, lower=False, unit_diagonal=False, *rest, **options):
    """One triangle of A is read."""
    z = f(a, b, trans, lower, unit_diagonal, *rest, **options)
    way = TRANSPOSES[trans]

    def triangular_pullback(z_bar):
        if np.size(z) == 0:
            return np.zeros(np.shape(a)), np.zeros(np.shape(b))
        b_bar = solve_op(a, z_bar, way + 10, lower, unit_diagonal)

        def a_bar():
            m_bar = -as_columns(b_bar) @ adjoint(as_columns(z))
            return triangle(op(m_bar, way), lower, unit_diagonal)

        return Thunk(a_bar), b_bar

    def triangular_pushforward(a_dot, b_dot, *others):
        if np.size(z) == 0:
            return np.zeros_like(z)
        moved = b_dot
        if varies(a_dot):
            moved = total(moved, -(op(triangle(a_dot, lower, unit_diagonal), way) @ z))
        return solve_op(a, moved, way, lower, unit_diagonal)

    return z, triangular_pullback, triangular_pushforward


def banded(a: Any, lower: int, upper: int) -> Any:
    """The bands of A^H, in LAPACK's storage."""
    rows, n = np.shape(a)
    z = []
    for k in range(rows):  # diagonal `upper - k` of A is diagonal `k - upper` of A^H
        shift = upper - k
        part = a[k, max(shift, 0) : n + min(shift, 0)]
        before, after = np.zeros(max(-shift, 0), part.dtype), np.zeros(max(shift, 0), part.dtype)
        z.append(np.concatenate([before, conj(part), after])[:n])
    return np.stack(z[::-1])


@entered("solve_banded", dims=(None, 2, "1|2"), batches=False)
def solve_banded(f, l_and_u, ab, b, *rest, check_finite=True, **options):
    """The bands `ab` of A, `l_and_u` of them below and above the diagonal."""
    lower, upper = l_and_u
    ab, b = np.asarray(ab), np.asarray(b)
    if np.ndim(ab) > 2 or np.ndim(b) > 2:
        return solve_banded_batch(f, l_and_u, ab, b)
    z = f(l_and_u, ab, b, check_finite=check_finite)
    rows = lower + upper + 1

    def banded_pullback(z_bar):
        if np.size(z) == 0:
            return NoTangent, np.zeros(np.shape(ab)), np.zeros(np.shape(b))
        b_bar = f((upper, lower), banded(ab, lower, upper), z_bar, check_finite=False)
        return NoTangent, Thunk(lambda: -outer_bands(as_columns(b_bar), as_columns(z), rows, upper)), b_bar

    def banded_pushforward(_, ab_dot, b_dot):
        moved = b_dot
        if np.size(z) == 0:
            return np.zeros_like(z)
        if varies(ab_dot):
            product = bands_times(ab_dot, as_columns(z), upper)
            moved = total(moved, -np.reshape(product, np.shape(z)))
        return f(l_and_u, ab, moved, check_finite=False)

    return z, banded_pullback, banded_pushforward


def solve_banded_batch(f: Any, l_and_u: Any, ab: Any, b: Any) -> Any:
    """One problem after the other."""
    if not hasattr(sl.solve_triangular, "__wrapped__"):
        f(l_and_u, ab, b)  # it says that it takes no batches
    dims = (None, 2, "1|2")
    shapes = (np.shape(ab)[:-2], np.shape(b)[:-2] if np.ndim(b) > 1 else ())
    return of_batch(solve_banded, f, dims, [l_and_u, ab, b], [{}], np.broadcast_shapes(*shapes))


def both_halves(ab: Any, lower: bool) -> Any:
    """All bands of a Hermitian matrix, of which one half is given; also for what is no matrix, such as a tangent."""
    rows, n = np.shape(ab)
    k = rows - 1
    given = ab if lower else banded_half(ab)
    middle = np.real(given[:1])
    above = [np.concatenate([np.zeros(j, given.dtype), conj(given[j, : n - j])])[:n] for j in range(k, 0, -1)]
    return np.concatenate([*[np.reshape(row, (1, n)) for row in above], middle, given[1:]], 0)


def banded_half(ab: Any) -> Any:
    """The lower half of a Hermitian matrix whose upper half is given."""
    rows, n = np.shape(ab)
    z = []
    for j in range(rows):
        row = ab[rows - 1 - j, min(j, n) :]
        z.append(np.concatenate([conj(row), np.zeros(min(j, n), row.dtype)]))
    return np.stack(z)


def half_bar(full_bar: Any, lower: bool) -> Any:
    """The transpose of `both_halves`."""
    rows, n = np.shape(full_bar)
    k = rows // 2
    z = [np.real(full_bar[k])]
    for j in range(1, k + 1):  # a[i + j, i] below, a[i, i + j] above
        below, above = full_bar[k + j, : max(n - j, 0)], full_bar[k - j, min(j, n) :]
        part = below + conj(above)
        z.append(np.concatenate([part, np.zeros(min(j, n), part.dtype)]))
    half = np.stack(z)
    return half if lower else upper_half(half)


def upper_half(half: Any) -> Any:
    """The upper half, in its storage, of a Hermitian matrix whose lower half is given."""
    rows, n = np.shape(half)
    z = []
    for j in range(rows - 1, -1, -1):
        row = half[j, : max(n - j, 0)]
        z.append(np.concatenate([np.zeros(min(j, n), row.dtype), conj(row)]))
    return np.stack(z)


@entered("solveh_banded", dims=(2, "1|2"))
def solveh_banded(f, ab, b, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True):
    """Half of the bands of a Hermitian positive definite A."""
    z = f(ab, b, lower=lower, check_finite=check_finite)
    k = np.shape(ab)[0] - 1

    def solveh_pullback(z_bar):
        b_bar = f(ab, z_bar, lower=lower, check_finite=False)

        def ab_bar():
            return half_bar(-outer_bands(as_columns(b_bar), as_columns(z), 2 * k + 1, k), lower)

        return Thunk(ab_bar), b_bar

    def solveh_pushforward(ab_dot, b_dot, *others):
        moved = b_dot
        if varies(ab_dot):
            product = bands_times(both_halves(ab_dot, lower), as_columns(z), k)
            moved = total(moved, -np.reshape(product, np.shape(z)))
        return f(ab, moved, lower=lower, check_finite=False)

    return z, solveh_pullback, solveh_pushforward


__all__ = ["banded", "inv", "solve", "solve_banded", "solve_triangular", "solveh_banded"]
