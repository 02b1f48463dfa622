"""Toeplitz matrices, norms, balancing, and what has no tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.pushforwards import total, varies
from plaingrad.rules.scipy.linalg.entering import defined, entered, none, sl
from plaingrad.rules.scipy.linalg.matrices import as_columns
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero

none("bandwidth", "issymmetric", "ishermitian", "find_best_blas_type")
none("hilbert", "invhilbert", "hadamard", "helmert", "pascal", "invpascal", "dft")

# -- Norms -------------------------------------------------------------------------------------------------------------


@defined("norm")
def norm(a, ord=None, axis=None, keepdims=False, check_finite=True):
    """NumPy's, of numbers that are finite."""
    a = np.asarray_chkfinite(a) if check_finite else np.asarray(a)
    if a.size == 0 and axis is None:
        return np.sum(np.abs(a))
    return np.linalg.norm(a, ord, axis, keepdims)


# -- Toeplitz ------------------------------------------------------------------------------------------------------------


def diagonal_sums(y: Any, x: Any, first: int, count: int) -> Any:
    """For k = first ... the sums of y_i conj(x_j) with i - j = k, over all columns: by Fourier transforms."""
    m, n = len(y), len(x)
    size = m + n
    if np.iscomplexobj(x) or np.iscomplexobj(y):
        spectrum = np.sum(np.fft.fft(y, size, axis=0) * conj(np.fft.fft(x, size, axis=0)), axis=1)
        sums = np.fft.ifft(spectrum)
    else:
        spectrum = np.sum(np.fft.rfft(y, size, axis=0) * conj(np.fft.rfft(x, size, axis=0)), axis=1)
        sums = np.fft.irfft(spectrum, size)
    return sums[np.arange(first, first + count) % size]


def toeplitz_bars(y_bar: Any, x: Any, m: int, n: int) -> tuple[Any, Any]:
    """(c_bar, r_bar) of T (m, n) from T_bar = y_bar x^H; r[0] is not read."""
    left, right = as_columns(y_bar), as_columns(x)
    c_bar = diagonal_sums(left, right, 0, m)
    r_bar = diagonal_sums(left, right, -(n - 1), n)[::-1]
    return c_bar, np.where(np.arange(n) == 0, 0, r_bar)


def toeplitz_dot(c_dot: Any, r_dot: Any, c: Any, r: Any, x: Any) -> Any:
    """T_dot x."""
    c_dot = c_dot if varies(c_dot) else np.zeros_like(c)
    r_dot = r_dot if varies(r_dot) else np.zeros_like(r)
    return times_toeplitz(c_dot, np.concatenate([c_dot[:1], r_dot[1:]]), x, {})


def apart(c_or_cr: Any) -> tuple[Any, Any]:
    """The first column and the first row, flat."""
    if isinstance(c_or_cr, tuple):
        c, r = c_or_cr
        return np.ravel(np.asarray(c)), np.ravel(np.asarray(r))
    c = np.ravel(np.asarray(c_or_cr))
    return c, np.conjugate(c)


def solve_with_toeplitz(c: Any, r: Any, b: Any, options: Any) -> Any:
    """SciPy's, with column and row as arguments of their own."""
    return sl.solve_toeplitz((c, r), b, **options)


def is_batch(c_or_cr: Any) -> bool:
    """Whether SciPy takes a batch of these; old ones flatten c."""
    parts = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return any(np.ndim(part) > 1 for part in parts) and hasattr(sl.solve_triangular, "__wrapped__")


@defined("solve_toeplitz")
def solve_toeplitz(c_or_cr, b, check_finite=True):
    """A pair is taken apart."""
    options = {"check_finite": check_finite}
    if is_batch(c_or_cr):
        c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, np.conjugate(c_or_cr))
        return solve_with_toeplitz(c, r, b, options)
    return solve_with_toeplitz(*apart(c_or_cr), b, options)


@entered(solve_with_toeplitz, dims=(1, 1, "1|2"))
def solve_toeplitz_core(f, c, r, b, options):
    """T^H has the column conj(r) and the row conj(c)."""
    z = f(c, r, b, options)
    n = len(c)

    def toeplitz_pullback(z_bar):
        row = np.concatenate([c[:1], r[1:]])
        b_bar = f(conj(row), conj(c), z_bar, {})
        c_bar, r_bar = toeplitz_bars(-b_bar, z, n, n)
        return c_bar, r_bar, b_bar

    def toeplitz_pushforward(c_dot, r_dot, b_dot, *others):
        moved = b_dot
        if varies(c_dot) or varies(r_dot):
            moved = total(moved, -toeplitz_dot(c_dot, r_dot, c, r, z))
        return f(c, r, moved, {})

    return z, toeplitz_pullback, toeplitz_pushforward


def times_toeplitz(c: Any, r: Any, x: Any, options: Any) -> Any:
    """SciPy's, with column and row as arguments of their own."""
    return sl.matmul_toeplitz((c, r), x, **options)


@defined("matmul_toeplitz")
def matmul_toeplitz(c_or_cr, x, check_finite=False, workers=None):
    """A pair is taken apart."""
    options = {"check_finite": check_finite, "workers": workers}
    if is_batch(c_or_cr):
        c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, np.conjugate(c_or_cr))
        return times_toeplitz(c, r, x, options)
    return times_toeplitz(*apart(c_or_cr), x, options)


@entered(times_toeplitz, dims=(1, 1, "1|2"))
def matmul_toeplitz_core(f, c, r, x, options):
    """Bilinear."""
    z = f(c, r, x, options)

    def matmul_pullback(z_bar):
        row = np.concatenate([c[:1], r[1:]])
        bars = toeplitz_bars(z_bar, x, len(c), len(r))
        return bars[0], bars[1], Thunk(lambda: f(conj(row), conj(c), z_bar, {}))

    def matmul_pushforward(c_dot, r_dot, x_dot, *others):
        z_dot: Any = toeplitz_dot(c_dot, r_dot, c, r, x) if varies(c_dot) or varies(r_dot) else ZeroTangent
        return total(z_dot, f(c, r, x_dot, {})) if varies(x_dot) else z_dot

    return z, matmul_pullback, matmul_pushforward


# -- Balancing -----------------------------------------------------------------------------------------------------------


@entered("matrix_balance", dims=(2,))
def matrix_balance(f, A, permute=True, scale=True, separate=False, overwrite_a=False):
    """B = T^-1 A T, where T has powers of 2 in some order: it is constant between its steps."""
    z = f(A, permute, scale, separate)

    def transform():
        t = f(A, permute, scale, False)[1]
        return t, np.linalg.inv(t)

    def balance_pullback(z_bar):
        if is_zero(z_bar[0]):
            return (ZeroTangent,)
        t, inverse = transform()
        return (adjoint(inverse) @ z_bar[0] @ adjoint(t),)

    def balance_pushforward(a_dot, *others):
        t, inverse = transform()
        rest = (NoTangent, NoTangent) if separate else np.zeros_like(z[1])
        return inverse @ a_dot @ t, rest

    return z, balance_pullback, balance_pushforward


# -- Interpolative decompositions ----------------------------------------------------------------------------------------

none("estimate_rank", modules=("scipy.linalg.interpolative",))


@defined("reconstruct_matrix_from_id", modules=("scipy.linalg.interpolative",))
def reconstruct_matrix_from_id(B, idx, proj):
    """[B, B P] with its columns in their places."""
    whole = np.hstack([B, np.dot(B, proj)])
    return whole[:, np.argsort(idx)]


@defined("reconstruct_skel_matrix", modules=("scipy.linalg.interpolative",))
def reconstruct_skel_matrix(A, k, idx):
    """The columns that were chosen."""
    return A[:, idx[:k]]


__all__ = ["matrix_balance", "norm"]
