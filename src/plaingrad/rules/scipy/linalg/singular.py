"""Singular values and vectors, and the spaces that they span.

What is read off them is determined where singular values differ; a basis of a space only up to a rotation of it: functions
of the space have derivatives backwards, and what depends on the basis is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.scipy.linalg.entering import entered, no_pushforward, refusal, sl
from plaingrad.rules.scipy.linalg.least_squares import pseudoinverse
from plaingrad.rules.scipy.linalg.matrices import diagonal, is_invariant, near, on_diagonal, turning, unit
from plaingrad.tangents import Thunk, ZeroTangent, is_zero

BASIS = "an orthonormal basis is not determined, and the result depends on which is taken"
FREE = "the columns that complete a basis are not determined, and the result depends on which are taken"


def pairs_of(s: Any, unused: Any) -> tuple[Any, Any]:
    """1 / (s_j^2 - s_i^2) off the diagonal: nan for equal singular values, but for pairs that are not used; and s_j as rows."""
    row, column = s[None, :], s[:, None]
    same = near(row, column, s)
    gaps = np.where(same, 1, (row - column) * (row + column))
    there = np.where(unused[None, :] & unused[:, None], 0, np.nan)
    return np.where(np.eye(len(s), dtype=bool), 0, np.where(same, there, 1 / gaps)), row


def reciprocal(s: Any, used: Any = True) -> Any:
    """1 / s; where s is 0, nan if it is used."""
    return np.where(s == 0, np.where(used, np.nan, 0), 1 / np.where(s == 0, 1, s))


def columns_bar(q: Any, q_bar: Any, k: int, name: str) -> Any:
    """What a function of the columns from `k` on has for the first k: they complete a basis, so only their span matters."""
    if is_zero(q_bar) or np.shape(q)[1] == k:
        return q_bar
    rest, rest_bar = q[:, k:], q_bar[:, k:]
    if not np.any(rest_bar != 0):
        return q_bar[:, :k]
    if not is_invariant(rest, rest_bar):
        raise refusal(name, FREE, "the projection on what is left, 1 - q @ q.conj().T of the thin factor")
    return q_bar[:, :k] - rest @ (adjoint(rest_bar) @ q[:, :k])  # dQ2 = -Q1 (dQ1^H Q2)


def svd_bar(u: Any, s: Any, vh: Any, u_bar: Any, s_bar: Any, vh_bar: Any) -> Any:
    """a_bar of the thin factors (Townsend, "Differentiating the singular value decomposition", 2016)."""
    v = adjoint(vh)
    v_bar = vh_bar if is_zero(vh_bar) else adjoint(vh_bar)
    unused = np.ones(len(s), bool)
    for x_bar in (u_bar, v_bar):
        if not is_zero(x_bar):
            unused = unused & np.all(x_bar == 0, axis=0)
    if not is_zero(s_bar):
        unused = unused & ((np.real(s_bar) == 0) | ~near(s, 0, s))
    f, row = pairs_of(s, unused)
    core: Any = np.zeros((len(s), len(s)))
    outside: Any = 0.0
    inverse = reciprocal(s, ~unused)
    if not is_zero(u_bar):
        m = adjoint(u) @ u_bar
        j = m * f
        core = core + (j + adjoint(j)) * row
        if np.shape(u)[0] > np.shape(u)[1]:
            outside = outside + ((u_bar - u @ m) * inverse) @ vh
    if not is_zero(v_bar):
        m = vh @ v_bar
        k = m * f
        core = core + s[:, None] * (k + adjoint(k))
        if np.iscomplexobj(v):
            core = core - 1j * on_diagonal(np.imag(diagonal(m)) * inverse)
        if np.shape(v)[0] > np.shape(v)[1]:
            outside = outside + (u * inverse) @ (adjoint(v_bar) - adjoint(m) @ vh)
    if not is_zero(s_bar):  # at s = 0 a kink's minimum
        core = core + on_diagonal(np.where(s == 0, 0, np.real(s_bar)))
    return u @ core @ vh + outside


def svd_dot(a_dot: Any, u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    """(u_dot, s_dot, vh_dot) of the thin factors: the transpose of `svd_bar`."""
    v = adjoint(vh)
    image = a_dot @ v
    m = adjoint(u) @ image
    f, row = pairs_of(s, np.zeros(len(s), bool))
    column, inverse = s[:, None], reciprocal(s)

    def quotients(x):
        return np.where(x == 0, 0, x * f)

    u_dot = u @ quotients(m * row + column * adjoint(m))
    if np.shape(u)[0] > np.shape(u)[1]:
        u_dot = u_dot + (image - u @ m) * inverse
    inner = quotients(column * m + adjoint(m) * row)
    if np.iscomplexobj(m):  # the phase that u does not take
        inner = inner - 1j * on_diagonal(np.imag(diagonal(m)) * inverse)
    v_dot = v @ inner
    if np.shape(v)[0] > np.shape(v)[1]:
        v_dot = v_dot + (adjoint(a_dot) @ u - v @ adjoint(m)) * inverse
    return u_dot, np.where(s == 0, 0, np.real(diagonal(m))), adjoint(v_dot)


# LAPACK's reduction leaves one basis vector where it is: the first row of V is real, or that of U if A is wide.


def phases_bar(u: Any, v: Any, u_bar: Any, v_bar: Any) -> tuple[Any, Any]:
    """The cotangents without what the common phase of u and v takes from them."""
    if not np.iscomplexobj(u) or is_zero(u_bar) and is_zero(v_bar):
        return u_bar, v_bar
    u_bar = np.zeros_like(u) if is_zero(u_bar) else u_bar
    v_bar = np.zeros_like(v) if is_zero(v_bar) else v_bar
    wide = np.shape(u)[0] < np.shape(v)[0]
    fixed = u if wide else v
    along = np.sum(conj(u) * u_bar, axis=0) + np.sum(conj(v) * v_bar, axis=0)
    scale = np.max(np.abs(u_bar), initial=0.0) + np.max(np.abs(v_bar), initial=0.0)
    first = unit(np.shape(fixed)[0], 0)
    extra = -1j * first[:, None] * turning(along, fixed, first, scale)
    return (u_bar + extra, v_bar) if wide else (u_bar, v_bar + extra)


def phases_dot(u: Any, vh: Any, u_dot: Any, vh_dot: Any) -> tuple[Any, Any]:
    """The tangents, turned together."""
    if not np.iscomplexobj(u):
        return u_dot, vh_dot
    v, v_dot = adjoint(vh), adjoint(vh_dot)
    fixed, fixed_dot = (u, u_dot) if np.shape(u)[0] < np.shape(v)[0] else (v, v_dot)
    first = unit(np.shape(fixed)[0], 0)
    scale = np.max(np.abs(np.where(np.isnan(fixed_dot), 0, fixed_dot)), initial=0.0)
    turn = 1j * turning(fixed_dot[0], fixed, first, scale)
    return u_dot - u * turn, adjoint(v_dot - v * turn)


@entered("svd", dims=(2,))
def svd(f, a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, lapack_driver="gesdd"):
    """A = U S V^H."""
    z = f(a, full_matrices, compute_uv, check_finite=check_finite, lapack_driver=lapack_driver)
    k = min(np.shape(a))
    if not compute_uv:
        return values_rule(a, z)

    def svd_pullback(z_bar):
        if np.size(a) == 0:
            return (np.zeros(np.shape(a)),)
        if all(is_zero(part) for part in z_bar):
            return (ZeroTangent,)
        u, s, vh = z
        u_bar = columns_bar(u, z_bar[0], k, "svd with full_matrices=True")
        v_bar = z_bar[2] if is_zero(z_bar[2]) else adjoint(z_bar[2])
        v_bar = columns_bar(adjoint(vh), v_bar, k, "svd with full_matrices=True")
        u_bar, v_bar = phases_bar(u[:, :k], adjoint(vh[:k]), u_bar, v_bar)
        vh_bar = v_bar if is_zero(v_bar) else adjoint(v_bar)
        return (svd_bar(u[:, :k], s, vh[:k], u_bar, z_bar[1], vh_bar),)

    def svd_pushforward(a_dot, *others):
        if np.size(a) == 0:
            return tuple([np.zeros_like(part) for part in z])
        u, s, vh = z
        u_dot, s_dot, vh_dot = svd_dot(a_dot, u[:, :k], s, vh[:k])
        u_dot, vh_dot = phases_dot(u[:, :k], vh[:k], u_dot, vh_dot)
        return with_unknown(u_dot, u), s_dot, adjoint(with_unknown(adjoint(vh_dot), adjoint(vh)))

    return z, svd_pullback, svd_pushforward


def with_unknown(x_dot: Any, x: Any) -> Any:
    """`x_dot`, of the first columns of the basis x, with those of the others: nan where they are no function of the matrix.

    A single real column is determined but for its sign: it stays orthogonal to the first ones.
    """
    (rows, k), n = np.shape(x_dot), np.shape(x)[1]
    if k == n:
        return x_dot
    if n == k + 1 and np.isrealobj(x):
        return np.concatenate([x_dot, -x[:, :k] @ (adjoint(x_dot) @ x[:, k:])], 1)
    return np.concatenate([x_dot, np.full((rows, n - k), np.nan)], 1)


def values_rule(a: Any, s: Any) -> Any:
    """U diag(s_bar) V^H, and the real part of the diagonal of U^H A_dot V."""

    def values_pullback(s_bar):
        if np.size(a) == 0:
            return (np.zeros(np.shape(a)),)
        u, w, vh = sl.svd(a, full_matrices=False, check_finite=False)
        return ((u * np.where(w == 0, 0, np.real(s_bar))) @ vh,)

    def values_pushforward(a_dot, *others):
        if np.size(a) == 0:
            return np.zeros_like(s)
        u, w, vh = sl.svd(a, full_matrices=False, check_finite=False)
        return np.where(w == 0, 0, np.real(np.sum(conj(u) * (a_dot @ adjoint(vh)), axis=0)))

    return s, values_pullback, values_pushforward


@entered("svdvals", dims=(2,))
def svdvals(f, a, overwrite_a=False, check_finite=True):
    """The singular values only."""
    return values_rule(a, f(a, check_finite=check_finite))


# -- Spaces ------------------------------------------------------------------------------------------------------------


@entered("null_space", dims=(2,))
def null_space(f, A, rcond=None, **options):
    """dN = -A^+ dA N, for functions of the space, and for the one vector of a real space of one dimension."""
    z = f(A, rcond, **{name: x for name, x in options.items() if not name.startswith("overwrite")})

    def null_space_pullback(z_bar):
        if np.size(z) == 0:
            return (np.zeros(np.shape(A)),)
        if not is_invariant(z, z_bar):
            raise refusal("null_space", BASIS, "1 - scipy.linalg.pinv(A) @ A, the projection")
        return (-adjoint(inverse_on_range(A, np.shape(z)[1])) @ z_bar @ adjoint(z),)

    def null_space_pushforward(a_dot, *others):
        if np.size(z) == 0:
            return np.zeros_like(z)
        if np.shape(z)[1] > 1 or np.iscomplexobj(z):
            raise forward_refusal("null_space", "1 - scipy.linalg.pinv(A) @ A, the projection")
        return -inverse_on_range(A, np.shape(z)[1]) @ a_dot @ z

    return z, null_space_pullback, null_space_pushforward


def forward_refusal(name: str, instead: str) -> Any:
    """The error for a basis pushed forward: what will be read off it is not known yet."""
    return refusal(f"{name} in forward mode", "an orthonormal basis is not determined", instead)


def inverse_on_range(a: Any, nullity: int) -> Any:
    """A^+ at the rank that leaves so many dimensions."""
    return pseudoinverse(a, np.shape(a)[1] - nullity)


@entered("orth", dims=(2,))
def orth(f, A, rcond=None):
    """Left singular vectors: each is determined where singular values differ, and their span anyway."""
    z = f(A, rcond)
    rank = np.shape(z)[1]

    def orth_pullback(z_bar):
        if np.size(z) == 0:
            return (np.zeros(np.shape(A)),)
        u, s, vh = sl.svd(A, full_matrices=False)
        if is_invariant(z, z_bar):  # dQ = (1 - Q Q^H) dA V S^-1
            outer = z_bar - z @ (adjoint(z) @ z_bar)
            return ((outer / s[:rank]) @ vh[:rank],)
        if np.iscomplexobj(z):
            raise refusal("orth", "complex singular vectors have no determined phase, and the result depends on it", "q @ q.conj().T")
        whole = np.concatenate([z_bar, np.zeros((np.shape(u)[0], len(s) - rank))], 1)
        return (svd_bar(u, s, vh, whole, ZeroTangent, ZeroTangent),)

    def orth_pushforward(a_dot, *others):
        if np.size(z) == 0:
            return np.zeros_like(z)
        u, s, vh = sl.svd(A, full_matrices=False)
        if np.iscomplexobj(z):
            raise forward_refusal("orth", "scipy.linalg.qr, or the projection A @ scipy.linalg.pinv(A)")
        return svd_dot(a_dot, u, s, vh)[0][:, :rank]

    return z, orth_pullback, orth_pushforward


def basis(a: Any) -> Any:
    """An orthonormal basis of the range, by QR where all columns count: it has a derivative in both modes."""
    return sl.qr(a, mode="economic")[0] if np.linalg.matrix_rank(a) == np.shape(a)[1] else sl.orth(a)


@entered("subspace_angles", dims=(2, 2))
def subspace_angles(f, A, B):
    """cos t_k = x_k^H y_k for the principal vectors x = Q_A u, y = Q_B v; a simple angle moves with the two spaces."""
    z = f(A, B)

    def parts():
        pinv_a, pinv_b = sl.pinv(A), sl.pinv(B)
        qa, qb = basis(A), basis(B)
        u, c, vh = sl.svd(adjoint(qa) @ qb, full_matrices=False)
        order = np.arange(len(z))[::-1]  # the smallest cosine belongs to the largest angle
        x, y = (qa @ u)[:, order], (qb @ adjoint(vh))[:, order]
        c = c[order]
        across = y - x * c, x - y * c  # of length sin t
        sines = np.sqrt(np.maximum(np.real(np.sum(conj(across[0]) * across[0], axis=0)), 0))
        return pinv_a, pinv_b, x, y, across, reciprocal(sines)

    def angles_pullback(z_bar):
        pinv_a, pinv_b, x, y, across, over = parts()
        scale = -np.real(z_bar) * over

        def side(pinv, mine, beside):
            return (beside * scale) @ adjoint(pinv @ mine)

        return Thunk(lambda: side(pinv_a, x, across[0])), Thunk(lambda: side(pinv_b, y, across[1]))

    return z, angles_pullback, no_pushforward


__all__ = ["columns_bar", "null_space", "orth", "subspace_angles", "svd", "svd_bar", "svd_dot", "with_unknown"]
