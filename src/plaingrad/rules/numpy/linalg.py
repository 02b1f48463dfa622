"""Linear equations, inverses and determinants. `A` is (a stack of) matrices, `H` conjugate transposition; z_bar is the cotangent x_bar + i y_bar."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.names import ABSENT, adjoint, array, conj, given, refuse
from plaingrad.rules.pushforwards import both_forms, joined, lined_up, pushed, total, varies
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


