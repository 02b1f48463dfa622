"""numpy.linalg. `A` is (a stack of) matrices, `H` conjugate transposition; z_bar is the cotangent x_bar + i y_bar."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.names import ABSENT, adjoint, array, axes_of, conj, functions, given, refuse
from plaingrad.rules.pushforwards import (
    both_forms,
    dot_of,
    from_back,
    joined,
    lined_up,
    pushed,
    total,
    varies,
)
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero

la = np.linalg
no_tangent(la.matrix_rank)


def columns(x: Any) -> Any:
    """The numbers of `x` as factors of the columns of a matrix."""
    return np.expand_dims(x, -2)


def diagonal_of(x: Any) -> Any:
    """The diagonals of a stack of matrices."""
    return np.diagonal(x, axis1=-2, axis2=-1)


def inverse_or_nan(x: Any) -> Any:
    """The inverse; all nan where one of the matrices has none."""
    try:
        return la.inv(x)
    except la.LinAlgError:
        if x.shape[-1] != x.shape[-2]:
            raise
        return np.full_like(x, np.nan)


def solution_or_nan(a: Any, b: Any) -> Any:
    """A^-1 b; all nan where one of the matrices is singular."""
    try:
        return solved(a, b)
    except la.LinAlgError:
        return np.full_like(b, np.nan)


def identity(x: Any) -> Any:
    """The identity matrix with as many columns as `x`."""
    return np.eye(np.shape(x)[-1], dtype=np.asarray(x).dtype)


def quotients(x: Any, y: Any) -> Any:
    """x / y, but 0 where both are 0."""
    return np.where((x == 0) & (y == 0), 0, x / np.where((x == 0) & (y == 0), 1, y))


# ---------------------------------------------------------------------------------------------------------
# Equations, inverses, determinants


@rrule(la.inv)
def inv_rrule(a):
    a = array(a)
    z = la.inv(a)
    return z, lambda z_bar: (-adjoint(z) @ z_bar @ adjoint(z),)


@both_forms(la.inv)
def inv_frule(a):
    z = la.inv(a)
    return z, lambda dots: pushed(lambda a_dot: -z @ joined(a_dot, a) @ z, dots[0])


@rrule(la.solve)
def solve_rrule(a, b):
    a, b = array(a), array(b)
    z = la.solve(a, b)
    vectors = np.ndim(z) == np.ndim(a) - 1

    def solve_pullback(z_bar):
        if vectors:
            b_bar = la.solve(adjoint(a), np.expand_dims(z_bar, -1))
            return -b_bar @ np.expand_dims(conj(z), -2), b_bar[..., 0]
        b_bar = la.solve(adjoint(a), z_bar)
        return Thunk(lambda: -b_bar @ adjoint(z)), b_bar

    return z, solve_pullback


@both_forms(la.solve)
def solve_frule(a, b):
    z = la.solve(a, b)

    def solve_pushforward(dots):  # A z_dot = b_dot - A_dot z
        m, y, vectors = array(a), z, np.ndim(z) == np.ndim(a) - 1
        b_dot = pushed(joined, dots[1], b)
        if vectors:
            y, b_dot = np.expand_dims(z, -1), pushed(np.expand_dims, b_dot, -1)
        elif varies(b_dot):
            b_dot = lined_up(b_dot, b, np.ndim(z))
        a_dot = lined_up(joined(dots[0], a), a, np.ndim(y)) if varies(dots[0]) else dots[0]
        right = total(b_dot, -(a_dot @ y) if varies(a_dot) else a_dot)
        z_dot = solved(m, right)
        return z_dot[..., 0] if vectors else z_dot

    return z, solve_pushforward


def solved(a: Any, b: Any) -> Any:
    """A^-1 b of matrices b, in a stack or not; one matrix A is factored once only."""
    if np.ndim(a) > 2 or np.ndim(b) == 2:
        return la.solve(a, b)
    columns_of_b = np.moveaxis(b, -2, 0)
    z = la.solve(a, np.reshape(columns_of_b, (len(columns_of_b), -1 if np.size(b) else 0)))
    return np.moveaxis(np.reshape(z, np.shape(columns_of_b)), 0, -2)


LARGE = 12  # rows: beyond, all minors at once take too much memory


def cofactors(a: Any, z: Any = 0.0) -> Any:
    """d det / dA: z A^-T, or, where A is nearly singular, what has the derivatives of a polynomial to every order."""
    if np.all(z != 0) and np.all(np.isfinite(z)):
        inverse = la.inv(a)
        if are_well_conditioned(a, inverse):
            return np.expand_dims(z, (-2, -1)) * np.swapaxes(inverse, -1, -2)
    n = np.shape(a)[-1]
    if n > LARGE:
        return cofactors_of_large(a)
    if n < 2:
        return np.ones_like(a)
    others = np.array([[k for k in range(n) if k != i] for i in range(n)])
    minors = np.take(np.take(a, others, -2), others, -1)  # (..., row, kept rows, column, kept columns)
    signs = np.where((np.arange(n)[:, None] + np.arange(n)) % 2, -1, 1)
    return signs * determinant(np.swapaxes(minors, -3, -2))


def determinant(a: Any) -> Any:
    """The determinant; of few rows as the polynomial that it is, so that no small number is divided by."""
    n = np.shape(a)[-1]
    if n == 1:
        return a[..., 0, 0]
    if n > 3:
        return la.det(a)
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    return sum(a[..., 0, i] * (a[..., 1, j] * a[..., 2, k] - a[..., 1, k] * a[..., 2, j]) for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)))


def are_well_conditioned(a: Any, inverse: Any) -> bool:
    """Whether differences of products of entries of the inverses, which second derivatives are, keep some digits."""
    sizes = [np.abs(x).sum(axis=-2).max(axis=-1, initial=0) for x in (a, inverse)]
    return bool(np.all(sizes[0] * sizes[1] < 1e7))


def cofactors_of_large(a: Any) -> Any:
    """By det A = c det B det(E - D B^-1 C), where c A = [B C; D E] in fixed bases in which only the small corner is singular."""
    u, vh, factor, k = bases_of(a)
    if k is None:
        return np.zeros_like(a)  # so singular that many derivatives of the determinant vanish
    rotated = adjoint(u) @ a @ adjoint(vh)
    b, c, d, e = rotated[..., :k, :k], rotated[..., :k, k:], rotated[..., k:, :k], rotated[..., k:, k:]
    inverse, size = la.inv(b), np.expand_dims(la.det(b), (-2, -1))
    left, right = d @ inverse, inverse @ c
    rest = e - d @ right
    corner = size * cofactors(rest)
    transposed = np.swapaxes(left, -1, -2) @ corner
    back = np.swapaxes(right, -1, -2)
    whole = size * np.expand_dims(determinant(rest), (-2, -1)) * np.swapaxes(inverse, -1, -2) + transposed @ back
    slopes = np.concatenate(
        [np.concatenate([whole, -transposed], -1), np.concatenate([-corner @ back, corner], -1)], -2
    )
    return np.expand_dims(factor, (-2, -1)) * (conj(u) @ slopes @ conj(vh))


def bases_of(a: Any) -> Any:
    """Singular vectors, the product of their determinants, and how many singular values are not small (None: too few)."""
    u, s, vh = la.svd(a)
    top = s[..., :1]
    small = np.sum(s <= 1e-6 * top, axis=-1).max(initial=0)
    null = np.sum(s <= np.finfo(s.dtype).eps * s.shape[-1] * top, axis=-1).max(initial=0)
    k = s.shape[-1] - min(small, LARGE) if null <= LARGE else None
    return u, vh, la.det(u) * la.det(vh), k


no_tangent(are_well_conditioned, bases_of)


@rrule(la.det)
def det_rrule(a):
    a = array(a)
    z = la.det(a)
    return z, lambda z_bar: (np.expand_dims(z_bar, (-2, -1)) * conj(cofactors(a, z)),)


@both_forms(la.det)
def det_frule(a):
    z = la.det(a)

    def det_pushforward(dots):
        if not varies(dots[0]):
            return ZeroTangent
        return np.sum(cofactors(np.asarray(a), z) * joined(dots[0], a), axis=(-2, -1))

    return z, det_pushforward


@rrule(la.slogdet)
def slogdet_rrule(a):
    a = array(a)
    z = la.slogdet(a)

    def slogdet_pullback(z_bar):  # d log det = tr(A^-1 dA): the real part is logabsdet, i times the imaginary turns the sign
        sign_bar, log_bar = z_bar
        trace_bar = 0.0 if is_zero(log_bar) else np.real(log_bar)
        if not is_zero(sign_bar) and np.iscomplexobj(a):
            trace_bar = trace_bar + 1j * np.imag(sign_bar * conj(z[0]))
        return (np.expand_dims(trace_bar, (-2, -1)) * adjoint(inverse_or_nan(np.asarray(a))),)

    return z, slogdet_pullback


@both_forms(la.slogdet)
def slogdet_frule(a):
    z = la.slogdet(a)

    def slogdet_pushforward(dots):
        if not varies(dots[0]):
            return ZeroTangent
        inverse = inverse_or_nan(np.asarray(a))
        trace_dot = np.sum(np.swapaxes(inverse, -1, -2) * joined(dots[0], a), axis=(-2, -1))
        sign_dot = z[0] * (1j * np.imag(trace_dot)) if np.iscomplexobj(a) else ZeroTangent
        return sign_dot, np.real(trace_dot)

    return z, slogdet_pushforward


def pinv_bar(p_bar: Any, a: Any, p: Any) -> Any:
    """a_bar for P = pinv(A) of constant rank (Golub and Pereyra, SIAM J. Numer. Anal. 10, 1973)."""
    ah, ph, bh = adjoint(a), adjoint(p), adjoint(p_bar)
    rows, cols = identity(ah) - a @ p, identity(a) - p @ a
    del ah
    return -ph @ p_bar @ ph + rows @ bh @ (p @ ph) + (ph @ p) @ bh @ cols


@rrule(la.pinv)
def pinv_rrule(a, rcond=None, hermitian=False, **options):
    a = array(a)
    if hermitian:
        raise refuse("np.linalg.pinv with hermitian=True", "has no rule", "np.linalg.pinv(a)")
    z = la.pinv(a, **options) if rcond is None else la.pinv(a, rcond, **options)
    return z, lambda z_bar: (pinv_bar(z_bar, a, z),)


@both_forms(la.pinv)
def pinv_frule(a, rcond=None, hermitian=False, **options):
    if hermitian:
        raise refuse("np.linalg.pinv with hermitian=True", "has no rule", "np.linalg.pinv(a)")
    z = la.pinv(a, **options) if rcond is None else la.pinv(a, rcond, **options)

    def pinv_pushforward(dots):  # the transpose of pinv_bar
        if not varies(dots[0]):
            return ZeroTangent
        m, a_dot = array(a), joined(dots[0], a)
        rows, cols = identity(adjoint(m)) - m @ z, identity(m) - z @ m
        back = adjoint(a_dot)
        return -z @ a_dot @ z + (z @ adjoint(z)) @ back @ rows + cols @ back @ (adjoint(z) @ z)

    return z, pinv_pushforward


@rrule(la.lstsq)
def lstsq_rrule(a, b, rcond=ABSENT):
    z = la.lstsq(a, b, **given(rcond=rcond))
    a, b = array(a), array(b)
    x, residuals, rank, _ = z

    def lstsq_pullback(z_bar):
        x_bar, residuals_bar, _, s_bar = z_bar
        one = np.ndim(b) == 1
        target = np.expand_dims(b, -1) if one else b
        solution = np.expand_dims(x, -1) if one else x
        a_bar = np.zeros_like(a)
        b_bar = np.zeros_like(target)
        if not is_zero(x_bar):
            x_bar = np.reshape(x_bar, np.shape(solution))
            u, sigma, vh = la.svd(a, full_matrices=False)
            p = (adjoint(vh)[:, :rank] / sigma[:rank]) @ adjoint(u[:, :rank])
            a_bar = a_bar + pinv_bar(x_bar @ adjoint(target), a, p)
            b_bar = b_bar + adjoint(p) @ x_bar
        if not is_zero(residuals_bar) and np.size(residuals):  # |b - A x|^2, where x is best
            lost = 2 * (target - a @ solution) * residuals_bar
            a_bar = a_bar - lost @ adjoint(solution)
            b_bar = b_bar + lost
        if not is_zero(s_bar):
            u, _, vh = la.svd(a, full_matrices=False)
            a_bar = a_bar + (u * s_bar) @ vh
        return a_bar, b_bar[:, 0] if one else b_bar

    return z, lstsq_pullback


@both_forms(la.lstsq)
def lstsq_frule(a, b, rcond=ABSENT):
    z = la.lstsq(a, b, **given(rcond=rcond))
    x, residuals, rank, _ = z

    def lstsq_pushforward(dots):
        m, target, solution = array(a), array(b), x
        a_dot, b_dot = pushed(joined, dots[0], a), pushed(joined, dots[1], b)
        one = np.ndim(target) == 1
        if one:
            target, solution = np.expand_dims(target, -1), np.expand_dims(x, -1)
            b_dot = pushed(np.expand_dims, b_dot, -1)
        u, sigma, vh = la.svd(m, full_matrices=False)
        p = (adjoint(vh)[:, :rank] / sigma[:rank]) @ adjoint(u[:, :rank])
        lost = target - m @ solution
        moved = total(b_dot, -(a_dot @ solution) if varies(a_dot) else a_dot)
        x_dot, s_dot = p @ moved, ZeroTangent
        if varies(a_dot):
            back = adjoint(a_dot)
            x_dot = x_dot + (p @ adjoint(p)) @ (back @ lost) + (identity(m) - p @ m) @ (back @ (adjoint(p) @ solution))
            s_dot = np.real(np.sum(conj(u) * (a_dot @ adjoint(vh)), axis=-2))
        residuals_dot = 2 * np.sum(np.real(conj(lost) * moved), axis=-2) if np.size(residuals) else ZeroTangent
        return x_dot[..., 0] if one else x_dot, residuals_dot, NoTangent, s_dot

    return z, lstsq_pushforward


@composed(la.tensorsolve)
def tensorsolve(a, b, axes=None):
    """One square system of equations."""
    a, b = np.asarray(a), np.asarray(b)
    if axes is not None:
        a = np.moveaxis(a, axes, range(a.ndim - len(axes), a.ndim))
    shape = a.shape[b.ndim :]
    n = math.prod(shape)
    if a.size != n**2:
        raise la.LinAlgError(
            "Input arrays must satisfy the requirement             prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return np.reshape(la.solve(np.reshape(a, (n, n)), np.ravel(b)), shape)


# ---------------------------------------------------------------------------------------------------------
# Factorizations. LAPACK reads one triangle of a symmetric matrix: the other has a zero derivative


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


def eigh_bar(w: Any, v: Any, w_bar: Any, v_bar: Any, upper: bool) -> Any:
    """V (diag(w_bar) + F o (V^H v_bar)) V^H with F_ij = 1 / (w_j - w_i); 0 where eigenvalues and numerators both agree."""
    core = 0.0
    if not is_zero(v_bar):
        m = adjoint(v) @ v_bar
        m = (m - adjoint(m)) / 2
        gaps = np.expand_dims(w, -2) - np.expand_dims(w, -1)
        core = quotients(m * (1 - np.eye(np.shape(m)[-1], dtype=w.dtype)), gaps)
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
        gaps = np.expand_dims(w, -2) - np.expand_dims(w, -1)
        return np.real(diagonal_of(m)), v @ quotients(m * (1 - np.eye(np.shape(v)[-1], dtype=w.dtype)), gaps)

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
    if not is_zero(vh_bar):
        v_bar = adjoint(vh_bar)
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


# ---------------------------------------------------------------------------------------------------------
# Norms


def euclidean_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """The root of the sum of squares over `axis`."""
    return la.norm(x, ord, axis, keepdims)


@rrule(euclidean_norm)
def euclidean_norm_rrule(x, ord, axis, keepdims):
    z = la.norm(x, ord, axis, keepdims)

    def norm_pullback(z_bar):  # at x = 0 a kink's minimum: 0
        axes = axes_of(axis, np.ndim(x))
        kept = tuple(1 if i in axes else n for i, n in enumerate(np.shape(x)))
        near, size = scaled_if_extreme(euclidean_norm, x, z, ord, axis, keepdims)
        size, slope = np.reshape(size, kept), np.reshape(z_bar, kept)
        x_bar = quotients(slope * (size != 0), size) * near
        varying = isinstance(ord, (float, np.floating))
        return x_bar, Thunk(lambda: np.sum(z_bar * slope_in_order(x, z, ord, axis, keepdims))) if varying else NoTangent

    return z, norm_pullback


@both_forms(euclidean_norm)
def euclidean_norm_frule(x, ord, axis, keepdims):
    z = la.norm(x, ord, axis, keepdims)

    def norm_pushforward(dots):
        z_dot, ord_dot = ZeroTangent, dot_of(dots, 1)
        if varies(dots[0]):
            near, size = scaled_if_extreme(euclidean_norm, x, z, ord, axis, keepdims)
            products = np.real(conj(near) * dots[0])
            sums = np.sum(products, axis=from_back(axis, np.ndim(x)), keepdims=bool(keepdims))
            z_dot = quotients(sums * (size != 0), size)
        if varies(ord_dot):
            z_dot = total(z_dot, lined_up(ord_dot, ord, np.ndim(z)) * slope_in_order(x, z, ord, axis, keepdims))
        return z_dot

    return z, norm_pushforward


@composed(la.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Vector norms over one axis, matrix norms over two."""
    x = np.asarray(x)
    if x.dtype.kind not in "fc":
        x = x.astype(float)
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        return euclidean_norm(x, ord, None, keepdims)
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if axes[0] == axes[1]:
        raise ValueError("Duplicate axes given.")
    return matrix_norm(x, ord, axes, keepdims)


def vector_norm(x, ord, axis, keepdims):
    """The norm of order `ord` along one axis."""
    if ord is None or ord == 2:
        return euclidean_norm(x, ord, axis, keepdims)
    if ord == np.inf:
        return np.max(np.abs(x), axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(np.abs(x), axis, keepdims=keepdims)
    if ord == 0:
        return np.sum((x != 0).astype(x.real.dtype), axis, keepdims=keepdims)
    if ord == 1 and isinstance(ord, int):  # an order that varies is none
        return np.sum(np.abs(x), axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return power_norm(x, ord, axis, keepdims)


def power_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """(sum |x|^p)^(1/p)."""
    return la.norm(x, ord, axis, keepdims)


@rrule(power_norm)
def power_norm_rrule(x, ord, axis, keepdims):
    z = la.norm(x, ord, axis, keepdims)

    def power_norm_pullback(z_bar):
        kept = tuple(1 if i == axis else n for i, n in enumerate(np.shape(x)))
        near, size = scaled_if_extreme(power_norm, x, z, ord, axis, keepdims)
        x_bar = np.reshape(z_bar, kept) * slope_in_x(near, np.reshape(size, kept), ord)
        return x_bar, Thunk(lambda: np.sum(z_bar * slope_in_order(x, z, ord, axis, keepdims)))

    return z, power_norm_pullback


def slope_in_x(x: Any, size: Any, p: Any) -> Any:
    """dz/dx = (|x| / z)^(p - 1) x / |x|; 0 at x = 0, where it is a kink or 0. For whole p it is a polynomial there."""
    if p % 1 == 0 and p >= 2 and np.asarray(x).dtype.kind == "f":
        ratio = x / np.where(size == 0, 1, size)
        return ratio ** (p - 1) if p % 2 == 0 else np.abs(ratio) * ratio ** (p - 2)
    length = np.abs(x)
    ratio = np.where((length == 0) | (size == 0), 0, length / np.where(size == 0, 1, size))
    base = np.where(ratio == 0, 1, ratio)
    unit = x / np.where(length == 0, 1, length)
    return np.where(ratio == 0, 0, base ** (p - 1)) * unit


def scaled_if_extreme(norm: Any, x: Any, z: Any, ord: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """x and z, or x and its norm in units in which no power overflows or vanishes: the slopes are the same."""
    if (ord is None or ord == 2) and isinstance(z, np.floating) and 1e-9 < z < 1e9:
        return x, z  # in any precision
    p = 2.0 if ord is None or isinstance(ord, str) else abs(ord)
    least = 2.0 ** (0.8 * np.finfo(np.asarray(z).dtype).minexp / max(p, 2.0))
    if (np.min(z, initial=1.0) > least) & (np.max(z, initial=1.0) < 1 / least):
        return x, z
    x = x / unit_of(x, axis)
    return x, norm(x, ord, axis, keepdims)


def unit_of(x: Any, axis: Any) -> Any:
    """A power of 2 near the largest element along `axis`; 1 where that is 0 or no finite number."""
    largest = np.max(np.abs(x), axis=axis, keepdims=True, initial=0)
    exponent = np.frexp(largest)[1] - 1
    return np.where((largest > 0) & np.isfinite(largest), np.ldexp(np.ones_like(largest), exponent), 1)


no_tangent(unit_of)


def slope_in_order(x: Any, z: Any, p: Any, axis: Any, keepdims: bool) -> Any:
    """dz/dp = z (sum |x|^p log|x| / (p sum |x|^p) - log(sum |x|^p) / p^2)."""
    length = np.where(x == 0, 1, np.abs(x))
    powers = np.where(x == 0, 0, length**p)
    sums = np.sum(powers, axis, keepdims=keepdims)
    slope = np.sum(powers * np.log(length), axis, keepdims=keepdims) / (p * sums) - np.log(sums) / p**2
    return np.where(sums == 0, 0, z * slope)


@both_forms(power_norm)
def power_norm_frule(x, ord, axis, keepdims):
    z = la.norm(x, ord, axis, keepdims)

    def power_norm_pushforward(dots):
        z_dot, ord_dot = ZeroTangent, dot_of(dots, 1)
        if varies(dots[0]):
            kept = tuple(1 if i == axis else n for i, n in enumerate(np.shape(x)))
            near, size = scaled_if_extreme(power_norm, x, z, ord, axis, keepdims)
            products = np.real(conj(slope_in_x(near, np.reshape(size, kept), ord)) * dots[0])
            z_dot = np.sum(products, axis=from_back(axis, np.ndim(x)), keepdims=bool(keepdims))
        if varies(ord_dot):
            z_dot = total(z_dot, lined_up(ord_dot, ord, np.ndim(z)) * slope_in_order(x, z, ord, axis, keepdims))
        return z_dot

    return z, power_norm_pushforward


def matrix_norm(x, ord, axes, keepdims):
    """The norm of order `ord` of matrices that lie in two axes."""
    if ord is None or ord in ("f", "fro"):
        return euclidean_norm(x, ord, axes, keepdims)
    matrices = np.moveaxis(x, axes, (-2, -1))
    if ord in (2, -2, "nuc"):
        s = la.svd(matrices, compute_uv=False)
        z = np.sum(s, axis=-1) if ord == "nuc" else np.max(s, axis=-1) if ord == 2 else np.min(s, axis=-1)
    elif ord in (1, -1, np.inf, -np.inf):
        sums = np.sum(np.abs(matrices), axis=-2 if abs(ord) == 1 else -1)
        z = np.max(sums, axis=-1) if ord > 0 else np.min(sums, axis=-1)
    else:
        raise ValueError("Invalid norm order for matrices.")
    return np.expand_dims(z, tuple(sorted(axes))) if keepdims else z


@composed(la.cond)
def cond(x, p=None):
    """norm(x) norm(x^-1)."""
    x = np.asarray(x)
    if x.size == 0 and 0 in x.shape[-2:]:
        raise la.LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        s = la.svd(x, compute_uv=False)
        z = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        z = la.norm(x, p, axis=(-2, -1)) * la.norm(inverse_or_nan(x), p, axis=(-2, -1))
    return np.where(np.isnan(z) & ~np.isnan(x).any(axis=(-2, -1)), np.inf, z)[()]


