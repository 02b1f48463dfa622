"""Eigenvalues and eigenvectors of general matrices, and of pairs of them.

LAPACK scales each eigenvector to length 1, and turns that of one complex matrix so that its largest component is real. Of
a pair of matrices the turn is anything: then only what does not depend on it has a derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.linalg import inverse_or_nan
from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.pushforwards import varies
from plaingrad.rules.scipy.linalg.entering import entered, refusal, sl
from plaingrad.rules.scipy.linalg.matrices import diagonal, on_diagonal
from plaingrad.rules.scipy.linalg.spectra import by_gaps
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero

TURN = "the phase of an eigenvector of two matrices is not determined, and the result depends on it"


def largest(v: Any) -> Any:
    """Of each column, where the largest component is."""
    return np.arange(np.shape(v)[0])[:, None] == np.argmax(np.abs(v), axis=0)[None, :]


def are_real(v: Any) -> Any:
    """The columns that are real."""
    return np.all(np.imag(v) == 0, axis=0, keepdims=True)


def free_bar(v: Any, v_bar: Any, fixed: bool, any_turn: bool = False) -> Any:
    """`v_bar` without what the length and the turn of each vector take from it."""
    along = np.sum(conj(v) * v_bar, axis=0, keepdims=True)
    u_bar = v_bar - v * np.real(along)
    if not np.iscomplexobj(v):
        return u_bar
    if not fixed:
        limit = 1e4 * np.finfo(v.real.dtype).eps * np.max(np.abs(v_bar), initial=0.0)
        if not any_turn and np.any(np.abs(np.where(are_real(v), 0, np.imag(along))) > limit):
            raise refusal("eig", TURN, "a function of the eigenvalues, or of v[:, k] / v[j, k]")
        return u_bar - v * np.where(are_real(v), 0, 1j * np.imag(along))
    here = largest(v)
    size = np.sum(np.where(here, np.real(v), 0), axis=0, keepdims=True)
    turn = np.where(are_real(v), 0, np.imag(along) / size)
    return u_bar - np.where(here, 1j * turn, 0)


def free_dot(v: Any, u: Any, fixed: bool, any_turn: bool = False) -> Any:
    """The tangent of each vector, of length 1 and turned as LAPACK does it; nan where the turn is not determined."""
    along: Any = np.real(np.sum(conj(v) * u, axis=0, keepdims=True))
    if np.iscomplexobj(v) and any_turn:
        along = along + 1j * np.imag(np.sum(conj(v) * u, axis=0, keepdims=True))
    elif np.iscomplexobj(v):
        here = largest(v)
        size = np.sum(np.where(here, np.real(v), 0), axis=0, keepdims=True)
        turn = np.imag(np.sum(np.where(here, u, 0), axis=0, keepdims=True)) / size
        along = along + 1j * np.where(are_real(v), 0, turn if fixed else np.nan)
    return u - v * along


def unused(v_bar: Any) -> Any:
    """Pairs of vectors that are not used."""
    none = np.all(v_bar == 0, axis=0)
    return none[:, None] & none[None, :]


def general_bar(w: Any, v: Any, b: Any, w_bar: Any, v_bar: Any, any_turn: bool = False) -> tuple[Any, Any]:
    """(a_bar, b_bar): with W^H B V = 1, w_dot = diag(W^H (A_dot - B_dot w) V), V_dot = V (F o ...)."""
    left = adjoint(inverse_or_nan(v if b is None else b @ v))
    core: Any = 0.0
    if not is_zero(v_bar):
        u_bar = free_bar(v, v_bar, b is None, any_turn)
        core = by_gaps(adjoint(v) @ u_bar, conj(w), unused(v_bar))
    if not is_zero(w_bar):
        core = core + on_complex_diagonal(w_bar)
    vh = adjoint(v)
    return left @ core @ vh, NoTangent if b is None else -left @ (core * conj(w)[None, :]) @ vh


def on_complex_diagonal(w: Any) -> Any:
    """A diagonal matrix, complex or real."""
    return on_diagonal(np.real(w)) + 1j * on_diagonal(np.imag(w)) if np.iscomplexobj(w) else on_diagonal(w)


def general_dot(w: Any, v: Any, b: Any, a_dot: Any, b_dot: Any, any_turn: bool = False) -> tuple[Any, Any]:
    """(w_dot, v_dot)."""
    left = inverse_or_nan(v if b is None else b @ v)
    m: Any = 0.0
    if varies(a_dot):
        m = m + left @ (a_dot @ v)
    if varies(b_dot):
        m = m - left @ (b_dot @ v) * w[None, :]
    return diagonal(m), free_dot(v, v @ by_gaps(m, w, m == 0), b is None, any_turn)


@entered("eig", dims=(2, 2))
def eig(f, a, b=None, left=False, right=True, overwrite_a=False, overwrite_b=False, check_finite=True, homogeneous_eigvals=False):
    """Left vectors are right ones of A^H and B^H."""
    z = f(a, b, left, right, check_finite=check_finite, homogeneous_eigvals=homogeneous_eigvals)
    if np.size(a) == 0:
        return z, lambda z_bar: (np.zeros(np.shape(a)),), lambda *dots: z
    if homogeneous_eigvals and b is not None:
        return z, homogeneous, homogeneous
    parts: Any = z if isinstance(z, tuple) else (z,)
    w = parts[0][0] if homogeneous_eigvals else parts[0]

    def vectors(used=True):  # of the eigenvalues that were found
        if b is not None and not used:
            return matched(pair_vectors(a, b), w)
        if right:
            return w, parts[-1]
        if left:
            return f(a, b)
        return matched(f(a, b), w)

    def eig_pullback(z_bar):
        bars: Any = z_bar if isinstance(z, tuple) else (z_bar,)
        w_bar = bars[0] if not homogeneous_eigvals or is_zero(bars[0]) else bars[0][0]
        v_bar = bars[-1] if right and len(bars) > 1 else ZeroTangent
        found = general_bar(*vectors(not is_zero(v_bar) and bool(np.any(v_bar != 0))), b, w_bar, v_bar) if not (is_zero(w_bar) and is_zero(v_bar)) else (0.0, 0.0)
        if not left or is_zero(bars[1]):
            return found
        if b is not None and not right and np.any(bars[1] != 0):
            raise refusal("eig", "left eigenvectors of two matrices without the right ones have no determined length", "left=True, right=True")
        other = general_bar(conj(w), parts[1], None if b is None else adjoint(b), ZeroTangent, bars[1])
        a_bar = found[0] + adjoint(other[0])
        return a_bar, NoTangent if b is None else found[1] + adjoint(other[1])

    def eig_pushforward(a_dot, b_dot, *others):
        w_dot, v_dot = general_dot(*vectors(), b, a_dot, b_dot)
        if homogeneous_eigvals:
            w_dot = np.stack([w_dot, np.zeros_like(w_dot)])
        if not isinstance(z, tuple):
            return w_dot
        if not left:
            return w_dot, v_dot
        turned = [adjoint(x_dot) if varies(x_dot) else x_dot for x_dot in (a_dot, b_dot)]
        left_dot = general_dot(conj(w), parts[1], None if b is None else adjoint(b), *turned)[1]
        return (w_dot, left_dot, v_dot) if right else (w_dot, left_dot if b is None else left_dot + np.nan)

    return z, eig_pullback, eig_pushforward


def pair_vectors(a: Any, b: Any) -> tuple[Any, Any]:
    """SciPy's `eig`, for what does not depend on the turn of the vectors: so it may stand still as they move."""
    return sl.eig(a, b)


@entered(pair_vectors, dims=(2, 2))
def pair_vectors_core(f, a, b):
    """With any smooth choice of the turn."""
    z = f(a, b)

    def pair_pullback(z_bar):
        return general_bar(*z, b, *z_bar, any_turn=b is not None)

    def pair_pushforward(a_dot, b_dot):
        return general_dot(*z, b, a_dot, b_dot, any_turn=b is not None)

    return z, pair_pullback, pair_pushforward


def homogeneous(*bars: Any) -> Any:
    """LAPACK scales the two as it likes."""
    raise refusal("eig", "homogeneous eigenvalues of two matrices have no determined scale", "homogeneous_eigvals=False")


def matched(found: tuple[Any, Any], w: Any) -> tuple[Any, Any]:
    """Eigenvalues and vectors in the order of `w`, which another algorithm has found."""
    rest = np.abs(found[0][:, None] - w[None, :])
    order = []
    for k in range(len(w)):
        best = int(np.argmin(rest[:, k]))
        order.append(best)
        rest = np.where(np.arange(len(w))[:, None] == best, np.inf, rest)
    return w, found[1][:, order]


@entered("eigvals", dims=(2, 2))
def eigvals(f, a, b=None, overwrite_a=False, check_finite=True, homogeneous_eigvals=False):
    """As `eig` without vectors."""
    z = f(a, b, check_finite=check_finite, homogeneous_eigvals=homogeneous_eigvals)
    if np.size(a) == 0:
        return z, lambda z_bar: (np.zeros(np.shape(a)),), lambda *dots: z
    if homogeneous_eigvals and b is not None:
        return z, homogeneous, homogeneous
    w = z[0] if homogeneous_eigvals else z

    def eigvals_pullback(z_bar):
        w_bar = z_bar[0] if homogeneous_eigvals else z_bar
        return general_bar(*matched(pair_vectors(a, b), w), b, w_bar, ZeroTangent)

    def eigvals_pushforward(a_dot, b_dot, *others):
        w_dot = general_dot(*matched(pair_vectors(a, b), w), b, a_dot, b_dot)[0]
        return np.stack([w_dot, np.zeros_like(w_dot)]) if homogeneous_eigvals else w_dot

    return z, eigvals_pullback, eigvals_pushforward


__all__ = ["eig", "eigvals", "general_bar", "general_dot"]
