"""Decompositions of matrices: Cholesky, eigenvalues, singular values, QR.

LAPACK reads one triangle of a symmetric matrix: the other has a zero derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import rrule
from plaingrad.rules.numpy.linalg import (
    columns,
    diagonal_of,
    identity,
    inverse_or_nan,
    quotients,
    solution_or_nan,
)
from plaingrad.rules.numpy.names import adjoint, array, conj, functions, refuse
from plaingrad.rules.pushforwards import both_forms, joined, pushed, varies
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero

la = np.linalg


def folded_triangle(h: Any, upper: bool) -> Any:
    """The cotangent `h` of a Hermitian matrix, as one of the triangle that was read."""
    h = (h + adjoint(h)) / 2
    half = np.triu if upper else np.tril
    off = half(h, 1 if upper else -1)
    return 2 * off + np.real(diagonal_of(h))[..., None, :] * identity(h)


def hermitian_dot(a_dot: Any, upper: bool) -> Any:
    """The tangent of the Hermitian matrix that LAPACK reads off one triangle."""
    off = np.triu(a_dot, 1) if upper else np.tril(a_dot, -1)
    return off + adjoint(off) + np.real(diagonal_of(a_dot))[..., None, :] * identity(a_dot)


@rrule(la.cholesky)
def cholesky_rrule(a, upper=False):
    a = array(a)
    z = la.cholesky(a, upper=True) if upper else la.cholesky(a)

    def cholesky_pullback(z_bar):
        lower, lower_bar = (adjoint(z), adjoint(z_bar)) if upper else (z, z_bar)
        p = np.tril(adjoint(lower) @ lower_bar)
        p = p - np.tril(np.triu(p)) / 2
        inverse = la.inv(lower)
        return (folded_triangle(adjoint(inverse) @ p @ inverse, upper),)

    return z, cholesky_pullback


@both_forms(la.cholesky)
def cholesky_frule(a, upper=False):
    z = la.cholesky(a, upper=True) if upper else la.cholesky(a)

    def cholesky_pushforward(dots):  # L^-1 L_dot is the lower triangle of L^-1 A_dot L^-H, with half the diagonal
        if not varies(dots[0]):
            return ZeroTangent
        lower = adjoint(z) if upper else z
        inverse = la.inv(lower)
        core = np.tril(inverse @ hermitian_dot(joined(dots[0], a), upper) @ adjoint(inverse))
        lower_dot = lower @ (core - np.expand_dims(diagonal_of(core) / 2, -2) * identity(core))
        return adjoint(lower_dot) if upper else lower_dot

    return z, cholesky_pushforward


def by_gaps(m: Any, w: Any, unused: Any = False) -> Any:
    """m_ij / (w_j - w_i) off the diagonal; where eigenvalues are equal, 0 if m_ij is 0 or the pair `unused`, else nan.

    Their vectors are no function of the matrix, and how a function of them and of the eigenvalues together changes is
    not seen in m: that of exp(A) does, that of a projector does not.
    """
    n = np.shape(w)[-1]
    gaps = np.expand_dims(w, -2) - np.expand_dims(w, -1)
    size = np.max(np.abs(w), axis=-1, initial=0.0)[..., None, None]
    apart = np.abs(gaps) > np.finfo(w.dtype).eps * 8 * n * size
    unknown = np.where((m == 0) | unused | np.eye(n, dtype=bool), 0, np.nan)
    return np.where(apart, m / np.where(apart, gaps, 1), unknown)


def phased_bar(v: Any, v_bar: Any, k: int) -> Any:
    """v_bar of eigenvectors that are any vectors of their lines, where LAPACK gives those whose component k is real."""
    if not np.iscomplexobj(v) or not np.shape(v)[-1]:
        return v_bar
    turn = turning(np.sum(conj(v) * v_bar, -2), v, k)
    return v_bar - 1j * turn[..., None, :] * np.eye(np.shape(v)[-1])[k][:, None]


def phased_dot(v: Any, v_dot: Any, k: int) -> Any:
    """The tangent of eigenvectors, turned so that component k of each stays real."""
    if not np.iscomplexobj(v) or not np.shape(v)[-1]:
        return v_dot
    return v_dot - 1j * v * turning(v_dot[..., k, :], v, k)[..., None, :]


def turning(moved: Any, v: Any, k: int) -> Any:
    """Im(moved) / v_k; nan where v_k vanishes, or is not real, so that nobody knows the phase, unless it does not matter."""
    eps = 1e3 * np.finfo(np.real(v).dtype).eps
    here, moved = v[..., k, :], np.imag(moved)
    known = (np.abs(here) > eps) & (np.abs(np.imag(here)) <= eps)
    return np.where(known, moved / np.where(known, np.real(here), 1), np.where(np.abs(moved) <= eps, 0, np.nan))


def eigh_bar(w: Any, v: Any, w_bar: Any, v_bar: Any, upper: bool) -> Any:
    """V (diag(w_bar) + F o (V^H v_bar)) V^H with F_ij = 1 / (w_j - w_i)."""
    core = 0.0
    if not is_zero(v_bar):
        v_bar = phased_bar(v, v_bar, -1 if upper else 0)
        m = adjoint(v) @ v_bar
        unused = (m == 0) & (adjoint(m) == 0)
        core = by_gaps((m - adjoint(m)) / 2, w, unused)
        core = np.where(np.isnan(by_gaps(m, w)), np.nan, core)
    if not is_zero(w_bar):
        core = core + np.expand_dims(np.real(w_bar), -2) * np.eye(np.shape(w)[-1], dtype=w.dtype)
    return folded_triangle(v @ core @ adjoint(v), upper)


@rrule(la.eigh)
def eigh_rrule(a, UPLO="L"):
    a = array(a)
    z = la.eigh(a, UPLO)
    w, v = z
    return z, lambda z_bar: (eigh_bar(w, v, z_bar[0], z_bar[1], UPLO.upper() == "U"),)


@both_forms(la.eigh)
def eigh_frule(a, UPLO="L"):
    z = la.eigh(a, UPLO)
    w, v = z

    def eigh_pushforward(dots):  # diag(V^H A_dot V), V (F o V^H A_dot V)
        if not varies(dots[0]):
            return ZeroTangent
        m = adjoint(v) @ hermitian_dot(joined(dots[0], a), UPLO.upper() == "U") @ v
        v_dot = phased_dot(v, v @ by_gaps(m, w), -1 if UPLO.upper() == "U" else 0)
        return np.real(diagonal_of(m)), v_dot

    return z, eigh_pushforward


@rrule(la.eigvalsh)
def eigvalsh_rrule(a, UPLO="L"):
    a = array(a)
    z = la.eigvalsh(a, UPLO)

    def eigvalsh_pullback(z_bar):
        _, v = la.eigh(a, UPLO)
        return (folded_triangle((v * columns(np.real(z_bar))) @ adjoint(v), UPLO.upper() == "U"),)

    return z, eigvalsh_pullback


@both_forms(la.eigvalsh)
def eigvalsh_frule(a, UPLO="L"):
    def eigvalsh_pushforward(dots):
        if not varies(dots[0]):
            return ZeroTangent
        _, v = la.eigh(a, UPLO)
        return np.real(np.sum(conj(v) * (hermitian_dot(joined(dots[0], a), UPLO.upper() == "U") @ v), axis=-2))

    return la.eigvalsh(a, UPLO), eigvalsh_pushforward


def eig_bar(w: Any, v: Any, w_bar: Any, v_bar: Any) -> Any:
    """V^-H (diag(w_bar) + conj(F) o (V^H u_bar)) V^H, F_ij = 1 / (w_j - w_i).

    LAPACK scales each eigenvector to length 1 with its largest component real; u_bar is v_bar without what those
    two conditions take away from it.
    """
    inverse_h = adjoint(inverse_or_nan(v))
    core = 0.0
    if not is_zero(v_bar):
        along = np.sum(conj(v) * v_bar, axis=-2, keepdims=True)  # dv = u + c v: c_bar = v^H v_bar
        u_bar = v_bar - v * np.real(along)
        if np.iscomplexobj(v):
            largest = np.argmax(np.abs(v), axis=-2)[..., None, :]
            size = np.real(np.take_along_axis(v, largest, -2))
            real_vector = np.all(np.imag(v) == 0, axis=-2, keepdims=True)
            turn = np.where(real_vector, 0, np.imag(along) / size)
            here = np.expand_dims(np.arange(np.shape(v)[-2]), -1) == largest
            u_bar = u_bar - np.where(here, 1j * turn, 0)
        gaps = conj(np.expand_dims(w, -2) - np.expand_dims(w, -1))
        m = adjoint(v) @ u_bar * (1 - np.eye(np.shape(v)[-1], dtype=w.real.dtype))
        core = quotients(m, gaps)
    if not is_zero(w_bar):
        core = core + np.expand_dims(w_bar, -2) * np.eye(np.shape(w)[-1], dtype=w.real.dtype)
    return inverse_h @ core @ adjoint(v)


@rrule(la.eig)
def eig_rrule(a):
    a = array(a)
    z = la.eig(a)
    w, v = z
    return z, lambda z_bar: (eig_bar(w, v, z_bar[0], z_bar[1]),)


@both_forms(la.eig)
def eig_frule(a):
    z = la.eig(a)
    w, v = z

    def eig_pushforward(dots):  # diag(M), V (F o M), M = V^-1 A_dot V; then length 1 and a real largest component
        if not varies(dots[0]):
            return ZeroTangent
        m = inverse_or_nan(v) @ joined(dots[0], a) @ v
        gaps = np.expand_dims(w, -2) - np.expand_dims(w, -1)
        u = v @ quotients(m * (1 - np.eye(np.shape(v)[-1], dtype=w.real.dtype)), gaps)
        along = np.real(np.sum(conj(v) * u, axis=-2, keepdims=True))
        if np.iscomplexobj(v):
            largest = np.argmax(np.abs(v), axis=-2)[..., None, :]
            here = np.expand_dims(np.arange(np.shape(v)[-2]), -1) == largest
            size = np.real(np.sum(np.where(here, v, 0), axis=-2, keepdims=True))
            real_vector = np.all(np.imag(v) == 0, axis=-2, keepdims=True)
            turn = np.imag(np.sum(np.where(here, u, 0), axis=-2, keepdims=True)) / size
            along = along + 1j * np.where(real_vector, 0, turn)
        return diagonal_of(m), u - v * along

    return z, eig_pushforward


@rrule(la.eigvals)
def eigvals_rrule(a):
    a = array(a)
    z = la.eigvals(a)

    def eigvals_pullback(z_bar):
        w, v = la.eig(a)  # in its own order, and differently rounded
        distance = np.abs(np.expand_dims(w, -1) - np.expand_dims(z, -2))
        w_bar = np.take_along_axis(z_bar, np.argmin(distance, -1), -1)
        return (eig_bar(w, v, w_bar, NoTangent),)

    return z, eigvals_pullback


@both_forms(la.eigvals)
def eigvals_frule(a):
    z = la.eigvals(a)

    def eigvals_pushforward(dots):
        if not varies(dots[0]):
            return ZeroTangent
        w, v = la.eig(a)  # in its own order, and differently rounded
        w_dot = np.sum(np.swapaxes(inverse_or_nan(v), -1, -2) * (joined(dots[0], a) @ v), axis=-2)
        nearest = np.argmin(np.abs(np.expand_dims(z, -1) - np.expand_dims(w, -2)), -1)
        if np.ndim(w_dot) > np.ndim(nearest):
            nearest = np.expand_dims(nearest, 0)
        return np.take_along_axis(w_dot, nearest, -1)

    return z, eigvals_pushforward


def svd_bar(a: Any, u: Any, s: Any, vh: Any, u_bar: Any, s_bar: Any, vh_bar: Any) -> Any:
    """a_bar of the thin factors (Townsend, "Differentiating the singular value decomposition", 2016; complex too)."""
    v = adjoint(vh)
    u_bar, v_bar = common_phase_bar(u, v, u_bar, vh_bar if is_zero(vh_bar) else adjoint(vh_bar))
    core = 0.0
    outside = 0.0
    eye = np.eye(np.shape(s)[-1], dtype=s.dtype)
    gaps = np.expand_dims(s, -2) ** 2 - np.expand_dims(s, -1) ** 2
    row, column = np.expand_dims(s, -2), np.expand_dims(s, -1)
    if not is_zero(u_bar):
        m = adjoint(u) @ u_bar
        j = quotients(m * (1 - eye), gaps)
        core = core + (j + adjoint(j)) * row
        if np.shape(u)[-2] > np.shape(u)[-1]:
            outside = outside + ((u_bar - u @ m) / row) @ vh
    if not is_zero(v_bar):
        m = vh @ v_bar
        k = quotients(m * (1 - eye), gaps)
        core = core + column * (k + adjoint(k))
        if np.iscomplexobj(a):
            phases = 1j * np.imag(diagonal_of(m))
            core = core - quotients(np.expand_dims(phases, -2) * eye, row * np.ones_like(eye))
        if np.shape(v)[-2] > np.shape(v)[-1]:
            outside = outside + (u / row) @ (adjoint(v_bar) - adjoint(m) @ vh)
    if not is_zero(s_bar):  # at s = 0 a kink's minimum
        core = core + np.expand_dims(np.where(s == 0, 0, np.real(s_bar)), -2) * eye
    return u @ core @ vh + outside


def common_phase_bar(u: Any, v: Any, u_bar: Any, v_bar: Any) -> tuple[Any, Any]:
    """u_bar and v_bar where LAPACK keeps the first row of V real, or that of U if the matrix is wide."""
    if not np.iscomplexobj(u) or not np.size(u) or (is_zero(u_bar) and is_zero(v_bar)):
        return u_bar, v_bar
    u_bar = np.zeros_like(u) if is_zero(u_bar) else u_bar
    v_bar = np.zeros_like(v) if is_zero(v_bar) else v_bar
    wide = np.shape(u)[-2] < np.shape(v)[-2]
    fixed = u if wide else v
    turn = turning(np.sum(conj(u) * u_bar, -2) + np.sum(conj(v) * v_bar, -2), fixed, 0)
    extra = -1j * turn[..., None, :] * np.eye(np.shape(fixed)[-2])[0][:, None]
    return (u_bar + extra, v_bar) if wide else (u_bar, v_bar + extra)


def common_phase_dot(u: Any, v: Any, u_dot: Any, v_dot: Any) -> tuple[Any, Any]:
    """The tangents, turned together so that this row stays real."""
    if not np.iscomplexobj(u) or not np.size(u):
        return u_dot, v_dot
    fixed, fixed_dot = (u, u_dot) if np.shape(u)[-2] < np.shape(v)[-2] else (v, v_dot)
    turn = 1j * turning(fixed_dot[..., 0, :], fixed, 0)[..., None, :]
    return u_dot - u * turn, v_dot - v * turn


@rrule(la.svd)
def svd_rrule(a, full_matrices=True, compute_uv=True, hermitian=False):
    a = array(a)
    if hermitian:
        raise refuse("np.linalg.svd with hermitian=True", "has no rule", "np.linalg.eigh(a), or hermitian=False")
    z = la.svd(a, full_matrices, compute_uv)
    k = min(np.shape(a)[-2:])

    def thin(x_bar, axis):
        if is_zero(x_bar) or np.shape(x_bar)[axis] == k:
            return x_bar
        x_bar = np.moveaxis(x_bar, axis, -1)
        if np.any(x_bar[..., k:] != 0):
            raise refuse(
                "np.linalg.svd with full_matrices=True", "has columns that are no function of the matrix", "full_matrices=False"
            )
        return np.moveaxis(x_bar[..., :k], -1, axis)

    def svd_pullback(z_bar):
        if not compute_uv:
            return (singular_values_bar(a, z_bar),)
        u, s, vh = z
        return (svd_bar(a, u[..., :, :k], s, vh[..., :k, :], thin(z_bar[0], -1), z_bar[1], thin(z_bar[2], -2)),)

    return z, svd_pullback


def svd_dot(a_dot: Any, u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    """(u_dot, s_dot, vh_dot) of the thin factors: the transpose of `svd_bar`."""
    v = adjoint(vh)
    image = a_dot @ v
    m = adjoint(u) @ image
    row, column = np.expand_dims(s, -2), np.expand_dims(s, -1)
    eye = np.eye(np.shape(s)[-1], dtype=s.dtype)
    gaps = row**2 - column**2
    u_dot = u @ quotients((m * row + column * adjoint(m)) * (1 - eye), gaps)
    if np.shape(u)[-2] > np.shape(u)[-1]:
        u_dot = u_dot + (image - u @ m) / row
    inner = quotients((column * m + adjoint(m) * row) * (1 - eye), gaps)
    if np.iscomplexobj(m):  # the phase that u does not take
        inner = inner - quotients(np.expand_dims(1j * np.imag(diagonal_of(m)), -2) * eye, row * np.ones_like(eye))
    v_dot = v @ inner
    if np.shape(v)[-2] > np.shape(v)[-1]:
        v_dot = v_dot + (adjoint(a_dot) @ u - v @ adjoint(m)) / row
    u_dot, v_dot = common_phase_dot(u, v, u_dot, v_dot)
    return u_dot, np.where(s == 0, 0, np.real(diagonal_of(m))), adjoint(v_dot)


@both_forms(la.svd)
def svd_frule(a, full_matrices=True, compute_uv=True, hermitian=False):
    if hermitian:
        raise refuse("np.linalg.svd with hermitian=True", "has no rule", "np.linalg.eigh(a), or hermitian=False")
    z = la.svd(a, full_matrices, compute_uv)
    k = min(np.shape(a)[-2:])

    def svd_pushforward(dots):
        if not varies(dots[0]):
            return ZeroTangent
        a_dot = joined(dots[0], a)
        if not compute_uv:
            return singular_values_dot(array(a), a_dot)
        u, s, vh = z
        u_dot, s_dot, vh_dot = svd_dot(a_dot, u[..., :, :k], s, vh[..., :k, :])
        return with_unknown(u_dot, np.shape(u)[-1], -1), s_dot, with_unknown(vh_dot, np.shape(vh)[-2], -2)

    return z, svd_pushforward


def with_unknown(x_dot: Any, n: int, axis: int) -> Any:
    """`x_dot` with nan up to `n` columns (or rows): what those hold is no function of the matrix."""
    shape = list(np.shape(x_dot))
    if shape[axis] == n:
        return x_dot
    shape[axis] = n - shape[axis]
    return np.concatenate([x_dot, np.full(shape, np.nan, x_dot.dtype)], axis)


def singular_values_dot(a: Any, a_dot: Any) -> Any:
    """The real part of the diagonal of U^H A_dot V."""
    u, s, vh = la.svd(a, full_matrices=False)
    return np.where(s == 0, 0, np.real(np.sum(conj(u) * (a_dot @ adjoint(vh)), axis=-2)))


def singular_values_bar(a: Any, s_bar: Any) -> Any:
    """U diag(s_bar) V^H."""
    u, s, vh = la.svd(a, full_matrices=False)
    return (u * columns(np.where(s == 0, 0, np.real(s_bar)))) @ vh


for f in functions("svdvals", where=la):

    @rrule(f)
    def svdvals_rrule(x):
        x = array(x)
        return np.linalg.svdvals(x), lambda z_bar: (singular_values_bar(x, z_bar),)

    @both_forms(f)
    def svdvals_frule(x):
        def svdvals_pushforward(dots):
            return pushed(lambda x_dot: singular_values_dot(array(x), joined(x_dot, x)), dots[0])

        return np.linalg.svdvals(x), svdvals_pushforward


def qr_bar(q: Any, r: Any, q_bar: Any, r_bar: Any) -> Any:
    """a_bar of A = Q R with square R: (q_bar + Q copyltu(M)) R^-H, M = R r_bar^H - q_bar^H Q."""
    m = 0.0
    if not is_zero(r_bar):
        m = m + r @ adjoint(r_bar)
    if not is_zero(q_bar):
        m = m - adjoint(q_bar) @ q
    low = np.tril(m, -1)
    c = q @ (low + adjoint(low) + np.real(diagonal_of(m))[..., None, :] * np.eye(r.shape[-2], dtype=r.real.dtype))
    total = c if is_zero(q_bar) else q_bar + c
    return adjoint(solution_or_nan(r, adjoint(total)))


@rrule(la.qr)
def qr_rrule(a, mode="reduced"):
    a = array(a)
    if mode not in ("reduced", "complete", "r"):
        raise refuse(f"np.linalg.qr with mode={mode!r}", "gives the internals of LAPACK", 'mode="reduced"')
    z = la.qr(a, mode)
    m, n = np.shape(a)[-2:]
    k = min(m, n)

    def qr_pullback(z_bar):
        q_bar, r_bar = (NoTangent, z_bar) if mode == "r" else z_bar
        q, r = la.qr(a) if mode == "r" else z
        if mode == "complete" and m > n:
            if not is_zero(q_bar):
                if np.any(q_bar[..., :, n:] != 0):
                    raise refuse(
                        'np.linalg.qr with mode="complete"', "has columns that are no function of the matrix", 'mode="reduced"'
                    )
                q_bar = q_bar[..., :, :n]
            q, r = q[..., :, :n], r[..., :n, :]
            r_bar = r_bar if is_zero(r_bar) else r_bar[..., :n, :]
        if n <= k:
            return (qr_bar(q, r, q_bar, r_bar),)
        # A = [X Y], R = [U V]: X = Q U and V = Q^H Y
        y = np.asarray(a)[..., :, k:]
        if is_zero(r_bar):
            x_bar = qr_bar(q, r[..., :, :k], q_bar, r_bar)
            return (np.concatenate([x_bar, np.zeros_like(y)], -1),)
        v_bar = r_bar[..., :, k:]
        through_q = y @ adjoint(v_bar)
        x_bar = qr_bar(q, r[..., :, :k], through_q if is_zero(q_bar) else q_bar + through_q, r_bar[..., :, :k])
        return (np.concatenate([x_bar, q @ v_bar], -1),)

    return z, qr_pullback


def qr_dot(a_dot: Any, q: Any, r: Any) -> tuple[Any, Any]:
    """(q_dot, r_dot) of A = Q R with square R: Q^H A_dot R^-1 is skew-Hermitian plus upper triangular with a real diagonal."""
    image = adjoint(solution_or_nan(adjoint(r), adjoint(a_dot)))
    m = adjoint(q) @ image
    low = np.tril(m, -1)
    turn = low - adjoint(low)
    if np.iscomplexobj(m):
        turn = turn + np.expand_dims(1j * np.imag(diagonal_of(m)), -2) * np.eye(np.shape(r)[-2], dtype=r.real.dtype)
    return image - q @ (m - turn), (m - turn) @ r


@both_forms(la.qr)
def qr_frule(a, mode="reduced"):
    if mode not in ("reduced", "complete", "r"):
        raise refuse(f"np.linalg.qr with mode={mode!r}", "gives the internals of LAPACK", 'mode="reduced"')
    z = la.qr(a, mode)
    m, n = np.shape(a)[-2:]
    k = min(m, n)

    def qr_pushforward(dots):
        if not varies(dots[0]):
            return ZeroTangent
        a_dot = joined(dots[0], a)
        q, r = la.qr(a) if mode == "r" else z
        q, r = q[..., :, :k], r[..., :k, :]
        q_dot, r_dot = qr_dot(a_dot[..., :, :k], q, r[..., :, :k])
        if n > k:  # A = [X Y], R = [U V]: V = Q^H Y
            v_dot = adjoint(q_dot) @ np.asarray(a)[..., :, k:] + adjoint(q) @ a_dot[..., :, k:]
            r_dot = np.concatenate([r_dot, v_dot], -1)
        if mode == "r":
            return r_dot
        if mode == "complete" and m > n:
            below = np.zeros((*np.shape(r_dot)[:-2], m - n, n), r_dot.dtype)
            return with_unknown(q_dot, m, -1), np.concatenate([r_dot, below], -2)
        return q_dot, r_dot

    return z, qr_pushforward
