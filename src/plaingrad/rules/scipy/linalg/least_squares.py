"""Determinants, pseudoinverses, least squares, and the nearest matrix with orthonormal columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.linalg import cofactors, identity, pinv_bar, solution_or_nan
from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.pushforwards import total, varies
from plaingrad.rules.scipy.linalg.entering import defined, entered, no_pushforward, sl
from plaingrad.rules.scipy.linalg.matrices import folded, symmetrised
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero


@entered("det", dims=(2,), batches=False)
def det(f, a, *rest, **options):
    """By cofactors, which exist for singular matrices, too."""
    a = np.asarray(a)
    z = f(a, *([False, *rest[1:]] if rest else []), **options)

    def det_pullback(z_bar):
        if np.size(a) == 0:
            return (np.zeros(np.shape(a)),)
        return (np.expand_dims(z_bar, (-2, -1)) * conj(cofactors(a, np.asarray(z))),)

    def det_pushforward(a_dot):
        if np.size(a) == 0:
            return np.zeros_like(z)
        return np.sum(cofactors(a, np.asarray(z)) * a_dot, axis=(-2, -1))

    return z, det_pullback, det_pushforward


# -- Pseudoinverses ----------------------------------------------------------------------------------------------------


def cuts_off(s: Any, rank: Any, shape: tuple[int, ...]) -> bool:
    """Whether more than rounding errors is cut off: then the result is no function of the rank alone."""
    small = 1e3 * np.finfo(s.dtype).eps * max(shape) * np.max(np.abs(s), initial=0.0)
    dropped = np.sort(np.abs(s))[: len(s) - int(rank)]
    return bool(np.any(dropped > small))


def pinv_dot(a: Any, p: Any, a_dot: Any) -> Any:
    """Golub and Pereyra, SIAM J. Numer. Anal. 10, 1973: of constant rank."""
    back = adjoint(a_dot)
    z_dot = -p @ a_dot @ p + (p @ adjoint(p)) @ (back @ (identity(adjoint(a)) - a @ p))
    return z_dot + (identity(a) - p @ a) @ (back @ (adjoint(p) @ p))


def pseudoinverse(a: Any, rank: Any) -> Any:
    """A^+ at a rank that is known."""
    u, sigma, vh = sl.svd(a, full_matrices=False, check_finite=False)
    return (adjoint(vh)[:, :rank] / sigma[:rank]) @ adjoint(u[:, :rank])


@entered(pseudoinverse, dims=(2, None))
def pseudoinverse_core(f, a, rank):
    """Without singular vectors, so that equal singular values do not matter."""
    p = f(a, rank)
    return p, lambda p_bar: (pinv_bar(p_bar, a, p),), lambda a_dot, *others: pinv_dot(a, p, a_dot)


def truncated_dot(a: Any, rank: Any, e: Any) -> Any:
    """The derivative of W diag(1/s of the `rank` largest, else 0) V^H along `e`: divided differences; its own transpose."""
    w, s, vh = sl.svd(a, full_matrices=False)
    kept = np.arange(len(s)) < rank
    f = np.where(kept, 1 / np.where(kept, s, 1), 0)
    row, column, f_row, f_column = s[None, :], s[:, None], f[None, :], f[:, None]
    same = kept[None, :] == kept[:, None]
    odd = np.where(same, -f_row * f_column, (f_row - f_column) / np.where(same, 1, row - column))
    even = (f_row + f_column) / np.where(row + column == 0, 1, row + column)
    m = adjoint(w) @ e @ adjoint(vh)
    core = odd * (m + adjoint(m)) / 2 + even * (m - adjoint(m)) / 2
    ratio = np.where(kept, f / np.where(kept, s, 1), 0)
    image, back = e @ adjoint(vh), adjoint(w) @ e
    above = (image - w @ m) * ratio @ vh
    beside = (w * ratio) @ (back - m @ vh)
    return w @ core @ vh + above + beside


@entered("pinv", dims=(2,))
def pinv(f, a, **options):
    """Where `atol` or `rtol` cut off what is not small, the space that is kept moves with A."""
    z = f(a, **options)
    p = z[0] if isinstance(z, tuple) else z
    limited = options.get("atol") is not None or options.get("rtol") is not None
    cut = False
    if limited:
        rank = f(a, **{**options, "return_rank": True})[1]
        cut = cuts_off(sl.svdvals(a), rank, np.shape(a))

    def pinv_pullback(z_bar):
        p_bar = z_bar[0] if isinstance(z, tuple) else z_bar
        if is_zero(p_bar):
            return (ZeroTangent,)
        return (truncated_dot(a, rank, adjoint(p_bar)) if cut else pinv_bar(p_bar, a, p),)

    def pinv_pushforward(a_dot):
        p_dot = adjoint(truncated_dot(a, rank, a_dot)) if cut else pinv_dot(a, p, a_dot)
        return (p_dot, NoTangent) if isinstance(z, tuple) else p_dot

    return z, pinv_pullback, pinv_pushforward


@entered("pinvh", dims=(2,))
def pinvh(f, a, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True):
    """One triangle is read."""
    p, rank = f(a, atol, rtol, lower, True, check_finite)
    h = symmetrised(a, lower)
    cut = False
    if atol is not None or rtol is not None:
        cut = cuts_off(sl.eigvalsh(h), rank, np.shape(a))

    def cut_dot(e):  # 1/w or 0: divided differences
        w, v = sl.eigh(h)
        smallest = np.sort(np.abs(w))[::-1][: int(rank)].min(initial=np.inf)
        kept = np.abs(w) >= smallest
        values = np.where(kept, 1 / np.where(kept, w, 1), 0)
        row, column = values[None, :], values[:, None]
        same = kept[None, :] == kept[:, None]
        slopes = np.where(same, -row * column, (row - column) / np.where(same, 1, w[None, :] - w[:, None]))
        return v @ (slopes * (adjoint(v) @ e @ v)) @ adjoint(v)

    def pinvh_pullback(z_bar):
        p_bar = z_bar[0] if return_rank else z_bar
        if is_zero(p_bar):
            return (ZeroTangent,)
        h_bar = (p_bar + adjoint(p_bar)) / 2
        return (folded(cut_dot(h_bar) if cut else pinv_bar(h_bar, h, p), lower),)

    def pinvh_pushforward(a_dot, *others):
        h_dot = symmetrised(a_dot, lower)
        p_dot = cut_dot(h_dot) if cut else pinv_dot(h, p, h_dot)
        return (p_dot, NoTangent) if return_rank else p_dot

    return (p, rank) if return_rank else p, pinvh_pullback, pinvh_pushforward


# -- Least squares -----------------------------------------------------------------------------------------------------


@entered("lstsq", dims=(2, "1|2"))
def lstsq(f, a, b, cond=None, overwrite_a=False, overwrite_b=False, check_finite=True, lapack_driver=None):
    """x = A^+ b. The residues are |b - A x|^2 where x is best; gelsy gives no singular values."""
    z = f(a, b, cond, check_finite=check_finite, lapack_driver=lapack_driver)
    x, residues, rank, _ = z
    one = np.ndim(b) == 1
    has_residues = np.size(residues) > 0

    def parts():
        target, solution = (np.expand_dims(b, -1), np.expand_dims(x, -1)) if one else (b, x)
        cut = cond is not None and cuts_off(sl.svdvals(a), rank, np.shape(a))
        return target, solution, pseudoinverse(a, rank), cut

    def lstsq_pullback(z_bar):
        x_bar, residues_bar, _, s_bar = z_bar
        if np.size(a) == 0:
            return np.zeros(np.shape(a)), np.zeros(np.shape(b))
        target, solution, p, cut = parts()
        a_bar, b_bar = np.zeros_like(a), np.zeros_like(target)
        if not is_zero(x_bar):
            x_bar = np.reshape(x_bar, np.shape(solution))
            p_bar = x_bar @ adjoint(target)
            a_bar = a_bar + (truncated_dot(a, rank, adjoint(p_bar)) if cut else solution_bar(a, p, x_bar, target, solution))
            b_bar = b_bar + adjoint(p) @ x_bar
        if not is_zero(residues_bar) and has_residues:
            lost = 2 * (target - a @ solution) * np.real(residues_bar)  # SciPy 1.18 gives them as complex numbers
            a_bar = a_bar - lost @ adjoint(solution)
            b_bar = b_bar + lost
        if s_bar is not None and not is_zero(s_bar) and np.any(s_bar != 0):
            u, _, vh = sl.svd(a, full_matrices=False, check_finite=False)
            a_bar = a_bar + (u * s_bar) @ vh
        return a_bar, b_bar[:, 0] if one else b_bar

    def lstsq_pushforward(a_dot, b_dot, *others):
        if np.size(a) == 0:
            return np.zeros_like(x), np.zeros_like(residues), NoTangent, None if z[3] is None else np.zeros_like(z[3])
        target, solution, p, cut = parts()
        b_dot = np.expand_dims(b_dot, -1) if one and varies(b_dot) else b_dot
        moved = total(b_dot, -(a_dot @ solution) if varies(a_dot) else a_dot)
        lost = target - a @ solution
        s_dot: Any = ZeroTangent
        if cut:
            x_dot = p @ b_dot if varies(b_dot) else np.zeros_like(solution)
            x_dot = x_dot + adjoint(truncated_dot(a, rank, a_dot)) @ target if varies(a_dot) else x_dot
        else:
            x_dot = p @ moved
        if varies(a_dot):
            back = adjoint(a_dot)
            if not cut:
                x_dot = x_dot + (p @ adjoint(p)) @ (back @ lost)
                inner = back @ (adjoint(p) @ solution)
                x_dot = x_dot + inner - p @ (a @ inner)
            u, _, vh = sl.svd(a, full_matrices=False, check_finite=False)
            s_dot = np.real(np.sum(conj(u) * (a_dot @ adjoint(vh)), axis=-2))
        residues_dot: Any = ZeroTangent
        if has_residues:
            residues_dot = 2 * np.sum(np.real(conj(lost) * moved), axis=-2)
            residues_dot = np.reshape(residues_dot, np.shape(residues)).astype(np.asarray(residues).dtype)
        return x_dot[..., 0] if one else x_dot, residues_dot, NoTangent, NoTangent if z[3] is None else s_dot

    return z, lstsq_pullback, lstsq_pushforward


def solution_bar(a: Any, p: Any, x_bar: Any, b: Any, x: Any) -> Any:
    """a_bar of x = A^+ b at constant rank, as products with few columns."""
    image = adjoint(p) @ x_bar
    a_bar = -image @ adjoint(x) + (b - a @ x) @ adjoint(p @ image)
    left = adjoint(p) @ x
    return a_bar + left @ adjoint(x_bar - adjoint(a) @ image)


# -- The nearest matrix with orthonormal columns -------------------------------------------------------------------------


def lyapunov(p: Any, c: Any) -> Any:
    """X with P X + X P = C, for a Hermitian P without negative eigenvalues."""
    w, v = sl.eigh(p)
    sums = w[None, :] + w[:, None]
    inner = adjoint(v) @ c @ v
    return v @ np.where(sums == 0, np.where(inner == 0, 0, np.nan), inner / np.where(sums == 0, 1, sums)) @ adjoint(v)


@entered(lyapunov, dims=(2, 2))
def lyapunov_core(f, p, c):
    """Written in itself: no eigenvectors are differentiated, so equal eigenvalues do not matter."""
    z = f(p, c)

    def lyapunov_pullback(z_bar):
        c_bar = lyapunov(p, z_bar)
        p_bar = -(c_bar @ adjoint(z) + adjoint(z) @ c_bar)
        return Thunk(lambda: (p_bar + adjoint(p_bar)) / 2), c_bar

    def lyapunov_pushforward(p_dot, c_dot):
        moved = c_dot
        if varies(p_dot):
            moved = total(moved, -(p_dot @ z + z @ p_dot))
        return lyapunov(p, moved)

    return z, lyapunov_pullback, lyapunov_pushforward


def factor_bar(a: Any, u: Any, p: Any, u_bar: Any) -> Any:
    """a_bar of A = U P, U with orthonormal columns: dU = U X + (dA - U U^H dA) P^-1, P X + X P = U^H dA - dA^H U."""
    if np.shape(a)[0] < np.shape(a)[1]:  # A^H = U^H (U P U^H)
        return adjoint(factor_bar(adjoint(a), adjoint(u), u @ p @ adjoint(u), adjoint(u_bar)))
    n = adjoint(u) @ u_bar
    a_bar = u @ lyapunov(p, n - adjoint(n))
    if np.shape(a)[0] > np.shape(a)[1]:
        a_bar = a_bar + adjoint(solution_or_nan(p, adjoint(u_bar - u @ n)))
    return a_bar


@entered("polar", dims=(2,))
def polar(f, a, side="right"):
    """A = U P or P U. U has a derivative where no singular value is 0; P = U^H A, or A U^H."""
    z = f(a, side)
    u, p = z

    def right():
        if side == "right":
            return p
        return adjoint(u) @ p @ u

    def polar_pullback(z_bar):
        if np.size(a) == 0:
            return (np.zeros(np.shape(a)),)
        u_bar, p_bar = z_bar
        a_bar, through = np.zeros_like(a), u_bar
        if not is_zero(p_bar):
            p_bar = (p_bar + adjoint(p_bar)) / 2
            through = a @ p_bar if side == "right" else p_bar @ a
            through = through if is_zero(u_bar) else u_bar + through
            a_bar = u @ p_bar if side == "right" else p_bar @ u
        if not is_zero(through):
            a_bar = a_bar + factor_bar(a, u, right(), through)
        return (a_bar,)

    return z, polar_pullback, no_pushforward


def rotation_and_sizes(m: Any) -> tuple[Any, Any]:
    """U V^H and the sum of the singular values of M = U S V^H."""
    u, w, vh = sl.svd(m)
    return u @ vh, np.sum(w)


@entered(rotation_and_sizes, dims=(2,))
def rotation_core(f, m):
    """The slope of the sum is the rotation."""
    z = f(m)
    rotation = z[0]

    def rotation_pullback(z_bar):
        m_bar = np.zeros_like(m)
        if not is_zero(z_bar[0]):
            m_bar = m_bar + factor_bar(m, rotation, adjoint(rotation) @ m, z_bar[0])
        if not is_zero(z_bar[1]):
            m_bar = m_bar + np.real(z_bar[1]) * rotation
        return (m_bar,)

    return z, rotation_pullback, no_pushforward


# Whether SciPy takes A^H B of complex matrices, as it should, or A^T B, as it did before 1.15.
CONJUGATES = sl.orthogonal_procrustes(np.array([[1j]]), np.array([[1.0]]))[0][0, 0].imag < 0


def procrustes_of_one(A: Any, B: Any) -> tuple[Any, Any]:
    """As SciPy computes it."""
    return rotation_and_sizes(np.transpose(np.transpose(B) @ (np.conjugate(A) if CONJUGATES else A)))


@defined("orthogonal_procrustes")
def orthogonal_procrustes(A, B, check_finite=True):
    """The rotation that takes A nearest to B."""
    A, B = (np.asarray_chkfinite(A), np.asarray_chkfinite(B)) if check_finite else (np.asarray(A), np.asarray(B))
    if A.ndim == 2 and A.shape == B.shape:
        return procrustes_of_one(A, B)
    if A.shape[-2:] != B.shape[-2:] or A.ndim < 2:
        sl.orthogonal_procrustes(A, B)  # it says what is wrong
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    left = np.reshape(np.broadcast_to(A, batch + A.shape[-2:]), (-1, *A.shape[-2:]))
    right = np.reshape(np.broadcast_to(B, batch + B.shape[-2:]), (-1, *B.shape[-2:]))
    found = [procrustes_of_one(left[k], right[k]) for k in range(len(left))]
    rotations, sizes = np.stack([r for r, _ in found]), np.stack([s for _, s in found])
    return np.reshape(rotations, batch + rotations.shape[1:]), np.reshape(sizes, batch)


__all__ = ["det", "factor_bar", "lstsq", "lyapunov", "orthogonal_procrustes", "pinv", "pinvh", "polar"]
