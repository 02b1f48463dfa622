"""Schur's and Hessenberg's forms: A = Z T Z^H, moved by a skew-Hermitian X = Z^H Z_dot that keeps the form of T.

Real forms are determined but for signs. The phases of a complex Schur form are not: what depends on them is refused
backwards, and nan forwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import adjoint
from plaingrad.rules.pushforwards import varies
from plaingrad.rules.scipy.linalg.entering import entered, refusal, sl
from plaingrad.rules.scipy.linalg.matrices import diagonal, on_diagonal
from plaingrad.rules.scipy.linalg.orthogonal import asked
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero

# -- Schur -------------------------------------------------------------------------------------------------------------


def lower_solution(t: Any, c: Any) -> Any:
    """The strictly lower X with (T X - X T) equal to C below the diagonal; T is upper triangular."""
    n = np.shape(t)[0]
    if n < 2:
        return np.zeros((n, n), np.result_type(t, c))
    columns: list[Any] = []
    for j in range(n - 1):
        right = c[j + 1 :, j]
        if j:
            right = right + np.stack(columns, 1)[j + 1 :] @ t[:j, j]
        columns.append(np.concatenate([np.zeros(j + 1), shifted_solution(t[j + 1 :, j + 1 :], t[j, j], right, 0)]))
    return np.stack([*columns, np.zeros(n)], 1)


def lower_solution_adjoint(t: Any, c: Any) -> Any:
    """The transpose of `lower_solution`: (T^H Y - Y T^H) is C below the diagonal."""
    n = np.shape(t)[0]
    if n < 2:
        return np.zeros((n, n), np.result_type(t, c))
    columns: list[Any] = [np.zeros(n)]
    for j in range(n - 2, -1, -1):
        right = c[j + 1 :, j] + np.stack(columns[::-1], 1)[j + 1 :] @ np.conjugate(t[j, j + 1 :])
        columns.append(np.concatenate([np.zeros(j + 1), shifted_solution(t[j + 1 :, j + 1 :], t[j, j], right, 2)]))
    return np.stack(columns[::-1], 1)


def shifted_solution(t: Any, shift: Any, b: Any, trans: int) -> Any:
    """(T - shift)^-1 b, or of its adjoint; nan where an eigenvalue is equal to the shift, unless b is 0."""
    if not np.any(b != 0):
        return b
    m = t - shift * np.eye(np.shape(t)[0])
    size = np.max(np.abs(t), initial=0.0) * np.finfo(np.asarray(t).real.dtype).eps
    if np.any(np.abs(diagonal(m)) <= size):
        return np.full_like(b, np.nan)
    return sl.solve_triangular(m, b, trans=trans, check_finite=False)


def complex_bar(t: Any, z: Any, t_bar: Any, z_bar: Any) -> Any:
    """The cotangent of Z^H A Z, whose strictly lower part moves Z."""
    m_bar: Any = 0.0
    x_bar: Any = 0.0
    if not is_zero(t_bar):
        m_bar = np.triu(t_bar)
        x_bar = adjoint(t) @ m_bar - m_bar @ adjoint(t)
    if not is_zero(z_bar):
        x_bar = x_bar + adjoint(z) @ z_bar
    return m_bar - lower_solution_adjoint(t, np.tril(x_bar - adjoint(x_bar), -1)), x_bar


def complex_dot(t: Any, m: Any) -> tuple[Any, Any]:
    """(T_dot, X) of M = Z^H A_dot Z; the phases stand still."""
    x = lower_solution(t, -np.tril(m, -1))
    x = x - adjoint(x)
    return np.triu(m + t @ x - x @ t), x


def complex_schur(a: Any) -> tuple[Any, Any]:
    """SciPy's complex form, for what does not depend on the phases."""
    return sl.schur(a, output="complex")


@entered(complex_schur, dims=(2,))
def complex_schur_core(f, a):
    """With phases that stand still."""
    t, z = f(a)

    def schur_pullback(bars):
        m_bar, _ = complex_bar(t, z, *bars)
        return (z @ m_bar @ adjoint(z),)

    def schur_pushforward(a_dot):
        t_dot, x = complex_dot(t, adjoint(z) @ a_dot @ z)
        return t_dot, z @ x

    return (t, z), schur_pullback, schur_pushforward


def blocks_of(t: Any) -> Any:
    """Where the blocks of two rows begin in a real form, what is in or above the blocks, and the complex form of T."""
    n = np.shape(t)[0]
    starts = np.flatnonzero(diagonal(t[1:, :-1]) != 0) if n > 1 else np.zeros(0, int)
    upper = np.triu(np.ones((n, n), bool))
    upper[starts + 1, starts] = True
    triangular, turn = sl.rsf2csf(t, np.eye(n)) if len(starts) else (t, np.eye(n))
    return starts, upper, np.triu(triangular), turn


def block_turns(t: Any, starts: Any) -> Any:
    """For T = [[a, b], [c, a]] in a block: -1 / (2 (b + c)), by which LAPACK keeps the diagonal equal."""
    total = t[starts, starts + 1] + t[starts + 1, starts]
    return -0.5 / np.where(total == 0, np.nan, total)


def turning(x: Any, starts: Any, n: int) -> Any:
    """The skew matrix that turns each block by x."""
    if len(starts) == 0:
        return np.zeros((n, n))
    place = np.zeros((len(starts), n, n))
    place[np.arange(len(starts)), starts + 1, starts] = 1.0
    place[np.arange(len(starts)), starts, starts + 1] = -1.0
    return np.tensordot(x, place, 1)


def differences(starts: Any, n: int) -> Any:
    """Of a diagonal, in each block the first less the second."""
    rows = np.zeros((len(starts), n))
    rows[np.arange(len(starts)), starts] = 1.0
    rows[np.arange(len(starts)), starts + 1] = -1.0
    return rows


def real_bar(t: Any, z: Any, t_bar: Any, z_bar: Any) -> Any:
    """As `complex_bar`, by the complex form of T; then each block of two is turned until its diagonal is equal."""
    starts, upper, triangular, turn = blocks_of(t)
    n = np.shape(t)[0]
    m_bar = np.zeros((n, n)) if is_zero(t_bar) else np.where(upper, t_bar, 0)
    x_bar = np.transpose(t) @ m_bar - m_bar @ np.transpose(t)
    if not is_zero(z_bar):
        x_bar = x_bar + np.transpose(z) @ z_bar
    if len(starts):
        turned = (x_bar[starts + 1, starts] - x_bar[starts, starts + 1]) * block_turns(t, starts)
        extra = on_diagonal(turned @ differences(starts, n))
        m_bar = m_bar + extra
        x_bar = x_bar + np.transpose(t) @ extra - extra @ np.transpose(t)
    below = np.where(upper, 0, x_bar - np.transpose(x_bar))
    inner = lower_solution_adjoint(triangular, np.tril(adjoint(turn) @ below @ turn, -1))
    return m_bar - np.real(turn @ inner @ adjoint(turn))


def real_dot(t: Any, m: Any) -> tuple[Any, Any]:
    """(T_dot, X) of M = Z^T A_dot Z."""
    starts, upper, triangular, turn = blocks_of(t)
    n = np.shape(t)[0]
    inner = lower_solution(triangular, -np.tril(adjoint(turn) @ m @ turn, -1))
    x = np.where(upper, 0, np.real(turn @ inner @ adjoint(turn)))
    x = x - np.transpose(x)
    moved = m + t @ x - x @ t
    if len(starts):
        angle = (differences(starts, n) @ diagonal(moved)) * block_turns(t, starts)
        k = turning(angle, starts, n)
        x, moved = x + k, moved + t @ k - k @ t
    return np.where(upper, moved, 0), x


PHASES = "the phases of a complex Schur form are not determined, and the result depends on them"


@entered("schur", dims=(2,))
def schur(f, a, output="real", lwork=None, overwrite_a=False, sort=None, check_finite=True, **options):
    """The order of the eigenvalues is constant."""
    found = f(a, output, sort=sort, check_finite=check_finite, **asked(lwork), **options)
    t, z = found[:2]
    is_complex = np.iscomplexobj(t)

    fixed = (NoTangent, NoTangent, NoTangent, ZeroTangent)  # the last is that of `sort`, whose order is constant

    def schur_pullback(bars):
        if np.size(a) == 0:
            return np.zeros(np.shape(a)), *fixed
        t_bar, z_bar = bars[:2]
        if not is_complex:
            return z @ real_bar(t, z, t_bar, z_bar) @ adjoint(z), *fixed
        m_bar, x_bar = complex_bar(t, z, t_bar, z_bar)
        turned = np.imag(diagonal(x_bar))
        if np.any(np.abs(turned) > 1e4 * np.finfo(t.real.dtype).eps * np.max(np.abs(x_bar), initial=0.0)):
            raise refusal("schur", PHASES, "scipy.linalg.eigvals, or output='real'")
        return z @ m_bar @ adjoint(z), *fixed

    def schur_pushforward(a_dot, *others):
        if np.size(a) == 0 or not varies(a_dot):
            return tuple([np.zeros_like(part) for part in found[:2]]) + (NoTangent,) * (len(found) - 2)
        m = adjoint(z) @ a_dot @ z
        t_dot, x = complex_dot(t, m) if is_complex else real_dot(t, m)
        z_dot = z @ x
        if is_complex:
            unknown = np.where(np.eye(np.shape(t)[0], dtype=bool), 0, np.nan)
            t_dot, z_dot = t_dot + np.triu(unknown), z_dot + np.nan
        return (t_dot, z_dot) + (NoTangent,) * (len(found) - 2)

    return found, schur_pullback, schur_pushforward


# -- Hessenberg --------------------------------------------------------------------------------------------------------


def hessenberg_turn(h: Any, m: Any) -> Any:
    """X column by column: the entries of M + H X - X H below the subdiagonal vanish, and that is real."""
    n = np.shape(h)[0]
    dtype = np.result_type(h, m)
    columns = [np.zeros(n, dtype)]
    for j in range(n - 1):
        known = np.stack(columns, 1)
        column = m[:, j] + h @ columns[j] - known @ h[: j + 1, j]
        pivot = np.real(h[j + 1, j])
        below = column[j + 2 :] / np.where(pivot == 0, np.nan, pivot)
        own = 1j * np.imag(column[j + 1 : j + 2]) / pivot if np.iscomplexobj(m) or np.iscomplexobj(h) else np.zeros(1)
        above = -np.conjugate(known[j + 1])
        columns.append(np.concatenate([above, own, below]))
    return np.stack(columns, 1) if n else np.zeros((0, 0), dtype)


@entered("hessenberg", dims=(2,))
def hessenberg(f, a, calc_q=False, overwrite_a=False, check_finite=True):
    """The first basis vector stays where it is; it determines the others."""
    h, q = f(a, True, check_finite=check_finite)
    if np.shape(a)[0] <= 2:  # such a matrix has that form already
        return small_hessenberg(a, (h, q) if calc_q else h, calc_q)
    z = (h, q) if calc_q else f(a, False, check_finite=check_finite)

    def hessenberg_pushforward(a_dot, *others):
        m = adjoint(q) @ a_dot @ q
        x = hessenberg_turn(h, m)
        h_dot = np.triu(m + h @ x - x @ h, -1)
        return (h_dot, q @ x) if calc_q else h_dot

    def hessenberg_pullback(bars):
        h_bar, q_bar = bars if calc_q else (bars, NoTangent)
        return (q @ hessenberg_bar(h, q, h_bar, q_bar) @ adjoint(q),)

    return z, hessenberg_pullback, hessenberg_pushforward


def small_hessenberg(a: Any, z: Any, calc_q: bool) -> Any:
    """H = A, Q = 1."""

    def small_pullback(bars):
        return (bars[0] if calc_q else bars,)

    def small_pushforward(a_dot, *others):
        return (a_dot, np.zeros_like(z[1])) if calc_q else a_dot

    return z, small_pullback, small_pushforward


def hessenberg_bar(h: Any, q: Any, h_bar: Any, q_bar: Any) -> Any:
    """The transpose of `hessenberg_turn`, from the last column to the first."""
    n = np.shape(h)[0]
    dtype = np.result_type(h, float)
    m_bar = np.zeros((n, n), dtype) if is_zero(h_bar) else np.triu(h_bar, -1) + np.zeros((n, n), dtype)
    x_bar = adjoint(h) @ m_bar - m_bar @ adjoint(h)
    if not is_zero(q_bar):
        x_bar = x_bar + adjoint(q) @ q_bar
    bars = [x_bar[:, j] for j in range(n)]
    extra: list[Any] = [np.zeros(n, dtype)]
    for j in range(n - 2, -1, -1):
        bar = bars[j + 1]
        pivot = np.real(h[j + 1, j])
        own = 1j * np.imag(bar[j + 1 : j + 2]) / pivot if np.iscomplexobj(h) else np.zeros(1)
        column_bar = np.concatenate([np.zeros(j + 1), own, bar[j + 2 :] / np.where(pivot == 0, np.nan, pivot)])
        for k in range(j + 1):  # above: X[k, j+1] = -conj(X[j+1, k])
            change = -np.conjugate(h[k, j]) * column_bar
            at = np.where(np.arange(n) == j + 1, -np.conjugate(bar[k]), 0)
            bars[k] = bars[k] + change + at
        bars[j] = bars[j] + adjoint(h) @ column_bar
        extra.append(column_bar)
    return m_bar + np.stack(extra[::-1], 1)


__all__ = ["complex_schur", "hessenberg", "schur"]
