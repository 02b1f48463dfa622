"""Eigenvalues and eigenvectors of Hermitian matrices: also generalised, in bands, tridiagonal, some of them only.

Where eigenvalues are equal, their eigenvectors are no function of the matrix: what passes through one of them is nan, and
what does not touch them is right. The slope of one of several equal eigenvalues is one of those that the function has
near by, as at a tie of `max`; that of a symmetric function of them is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import adjoint
from plaingrad.rules.pushforwards import varies
from plaingrad.rules.scipy.linalg.entering import entered, sl
from plaingrad.rules.scipy.linalg.equations import both_halves, half_bar
from plaingrad.rules.scipy.linalg.matrices import (
    bands_times,
    diagonal,
    folded,
    near,
    on_diagonal,
    outer_bands,
    symmetrised,
    turned_bar,
    turned_dot,
    unit,
)
from plaingrad.tangents import ZeroTangent, is_zero

# -- Vectors of equal eigenvalues ----------------------------------------------------------------------------------------


def by_gaps(m: Any, w: Any, known: Any) -> Any:
    """m_ij / (w_j - w_i) off the diagonal; where eigenvalues are equal 0 if the pair is `known` not to matter, else nan."""
    same = near(w[:, None], w[None, :], w)
    gaps = np.where(same, 1, w[None, :] - w[:, None])
    return np.where(np.eye(len(w), dtype=bool), 0, np.where(same, np.where(known, 0, np.nan), m / gaps))


def untouched(v_bar: Any, w_bar: Any, w: Any) -> Any:
    """Pairs of eigenvectors that do not matter: neither is used, not even times an eigenvalue that happens to be 0."""
    unused = np.all(v_bar == 0, axis=0)
    if not is_zero(w_bar):
        unused = unused & ((w_bar == 0) | ~near(w, 0, w))
    return unused[:, None] & unused[None, :]


def inner_bar(w: Any, v: Any, w_bar: Any, v_bar: Any) -> Any:
    """The cotangent of V^H A V: diag(w_bar) + F o (V^H v_bar), F_ij = 1 / (w_j - w_i)."""
    core: Any = 0.0
    if not is_zero(v_bar):
        m = adjoint(v) @ v_bar
        core = by_gaps(m, w, untouched(v_bar, w_bar, w))
    return core if is_zero(w_bar) else core + on_diagonal(np.real(w_bar))


def inner_dot(m: Any, w: Any) -> Any:
    """F o M; 0 where M is 0."""
    return by_gaps(m, w, m == 0)


def completed(w: Any, v: Any, every: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any, int]:
    """Some eigenvalues and vectors in a row, with all others around them, and how many are before."""
    every_w, every_v = every()
    n = len(w)
    places = [np.max(np.abs(every_w[k : k + n] - w)) for k in range(len(every_w) - n + 1)] if n else [0.0]
    first = int(np.argmin(np.asarray(places)))
    whole_w = np.concatenate([every_w[:first], w, every_w[first + n :]])
    return whole_w, np.concatenate([every_v[:, :first], v, every_v[:, first + n :]], 1), first


def among(part: Any, first: int, n: int) -> Any:
    """`part`, some columns, among n of which the others are 0."""
    if is_zero(part):
        return part
    lead = np.shape(part)[:-1]
    rest = n - first - np.shape(part)[-1]
    return np.concatenate([np.zeros((*lead, first)), part, np.zeros((*lead, rest))], -1)


def spectrum(
    z: Any,
    values_only: bool,
    n: int,
    selected: Callable[[], tuple[Any, Any]],
    every: Callable[[], tuple[Any, Any]],
    back: Callable[[Any, Any, Any, Any], Any],
    forth: Callable[[Any, Any, Any], tuple[Any, Any]],
    form: Callable[[Any], tuple[Any, Any]],
) -> Any:
    """Result and linear maps of a Hermitian eigenproblem.

    Args:
        z: what was found.
        values_only: it has no vectors.
        n: how many eigenvalues there are.
        selected: gives those that were found, with their vectors.
        every: gives all of them.
        back: the arguments' cotangents, of w, v, w_bar and v_bar.
        forth: (V^H A_dot V in place of A_dot, V^H B_dot V or None), of w, v and the tangents.
        form: the linear form of a vector that is real, and its tangent, of the tangents.
    """
    w = z if values_only else z[0]
    partial = len(w) < n

    def spectrum_pullback(z_bar):
        w_bar, v_bar = (z_bar, ZeroTangent) if values_only else z_bar
        if is_zero(v_bar):
            return back(*(selected() if values_only else z), w_bar, v_bar)
        if not partial:
            return back(*z, w_bar, v_bar)
        whole_w, whole_v, first = completed(*z, every)
        return back(whole_w, whole_v, among(w_bar, first, n), among(v_bar, first, n))

    def spectrum_pushforward(*dots):
        if values_only:
            return np.real(diagonal(forth(*selected(), dots)[0]))
        whole_w, whole_v, first = completed(*z, every) if partial else (*z, 0)
        m, k = forth(whole_w, whole_v, dots)
        x = inner_dot(m, whole_w)
        if k is not None:  # V^H B V = 1
            x = x - on_diagonal(np.real(diagonal(k)) / 2)
        chosen = slice(first, first + len(w))
        return np.real(diagonal(m))[chosen], turned_dot(whole_v, whole_v @ x, *form(dots))[:, chosen]

    return z, spectrum_pullback, spectrum_pushforward


# -- Full matrices -----------------------------------------------------------------------------------------------------


@entered("eigh", "eigvalsh", dims=(2, 2))
def eigh(f, a, b=None, **options):
    """One triangle is read. With B: A v = w B v (1), A B v = w v (2) or B A v = w v (3)."""
    z = f(a, b, **options)
    values_only = options.get("eigvals_only", False) or not isinstance(z, tuple)
    lower, kind = options.get("lower", True), options.get("type", 1)
    n = np.shape(a)[0]
    if n == 0:
        return z, lambda z_bar: (np.zeros(np.shape(a)),), lambda *dots: z
    plain = {"lower": lower, "type": kind, "check_finite": False}
    chosen = {name: options[name] for name in ("subset_by_index", "subset_by_value") if name in options}

    def back(w, v, w_bar, v_bar):
        if b is None:
            v_bar, _ = turned_bar(v, v_bar, unit(n, 0 if lower else -1))
            return (folded(v @ inner_bar(w, v, w_bar, v_bar) @ adjoint(v), lower),)
        a_bar, b_bar = generalised_bar(w, v, symmetrised(b, lower), lower, kind, w_bar, v_bar)
        return folded(a_bar, lower), folded(b_bar, lower)

    def forth(w, v, dots):
        a_dot, b_dot = dots[:2]
        m = adjoint(v) @ symmetrised(a_dot, lower) @ v if varies(a_dot) else np.zeros((len(w), len(w)))
        if not varies(b_dot):
            return m, None
        k = adjoint(v) @ symmetrised(b_dot, lower) @ v
        return m - k * w[None, :], k

    def selected():
        return sl.eigh(a, b, **plain, **chosen)

    def every():
        return sl.eigh(a, b, **plain)

    def form(dots):
        if b is None or not lower:
            return unit(n, 0 if lower else -1), 0.0
        return symmetrised(b, lower)[0], symmetrised(dots[1], lower)[0] if varies(dots[1]) else 0.0

    rule = spectrum(z, values_only, n, selected, every, back, forth, form)
    if b is None or kind == 1:
        return rule
    return (*rule[:2], lambda a_dot, b_dot: inverted_pushforward(a, b, lower, kind, options, values_only, a_dot, b_dot))


def generalised_bar(w: Any, v: Any, b: Any, lower: bool, kind: int, w_bar: Any, v_bar: Any) -> tuple[Any, Any]:
    """(a_bar, b_bar). The second and third kind are A u = w B^-1 u, where v = B^-1 u or v = u."""
    if kind == 1:
        return first_kind_bar(w, v, b, real_form(b, lower, kind), w_bar, v_bar)
    inverse = sl.inv(b)
    u = b @ v if kind == 2 else v
    u_bar = inverse @ v_bar if kind == 2 and not is_zero(v_bar) else v_bar
    a_bar, inverse_bar = first_kind_bar(w, u, inverse, real_form(inverse, lower, kind), w_bar, u_bar)
    if kind == 2 and not is_zero(v_bar):
        inverse_bar = inverse_bar + v_bar @ adjoint(u)
    return a_bar, -inverse @ inverse_bar @ inverse


def real_form(b: Any, lower: bool, kind: int) -> tuple[int, bool]:
    """Which entry of u, or of B u (True), is real: Cholesky's factor turns the vectors of the reduced problem."""
    return 0 if lower else -1, bool(lower) == (kind == 1)


def first_kind_bar(w: Any, v: Any, b: Any, form: tuple[int, bool], w_bar: Any, v_bar: Any) -> tuple[Any, Any]:
    """V_dot = V (F o (V^H A_dot V - V^H B_dot V diag(w)) - diag(V^H B_dot V) / 2), where V^H B V = 1."""
    place, of_b = form
    row = unit(len(b), place)
    v_bar, row_bar = turned_bar(v, v_bar, b[place] if of_b else row)
    core, vh = inner_bar(w, v, w_bar, v_bar), adjoint(v)
    half = 0.0 if is_zero(v_bar) else on_diagonal(np.real(diagonal(vh @ v_bar)) / 2)
    b_bar = -v @ (core * w[None, :] + half) @ vh
    return v @ core @ vh, b_bar + row[:, None] * row_bar if of_b and np.ndim(row_bar) else b_bar


def inverted_pushforward(a: Any, b: Any, lower: bool, kind: int, options: Any, values_only: bool, a_dot: Any, b_dot: Any) -> Any:
    """The second and third kind of problem, forwards, by the first."""
    full = symmetrised(b, lower)
    inverse = sl.inv(full)
    inverse_dot = -inverse @ symmetrised(b_dot, lower) @ inverse if varies(b_dot) else np.zeros_like(inverse)
    w, v = sl.eigh(a, b, **{**options, "eigvals_only": False})
    u = full @ v if kind == 2 else v

    def every():
        every_w, every_v = sl.eigh(a, b, lower=lower, type=kind)
        return every_w, full @ every_v if kind == 2 else every_v

    whole_w, whole_u, first = completed(w, u, every)
    k = adjoint(whole_u) @ inverse_dot @ whole_u
    m = -k * whole_w[None, :]
    if varies(a_dot):
        m = m + adjoint(whole_u) @ symmetrised(a_dot, lower) @ whole_u
    chosen = slice(first, first + len(w))
    w_dot = np.real(diagonal(m))[chosen]
    if values_only:
        return w_dot
    place, of_b = real_form(b, lower, kind)
    form = (inverse[place], inverse_dot[place]) if of_b else (unit(len(full), place), 0.0)
    moved = whole_u @ (inner_dot(m, whole_w) - on_diagonal(np.real(diagonal(k)) / 2))
    u_dot = turned_dot(whole_u, moved, *form)[:, chosen]
    return w_dot, inverse_dot @ u + inverse @ u_dot if kind == 2 else u_dot


# -- Bands -------------------------------------------------------------------------------------------------------------


@entered("eig_banded", dims=(2,))
def eig_banded(
    f, a_band, lower=False, eigvals_only=False, overwrite_a_band=False, select="a", select_range=None, max_ev=0, check_finite=True
):
    """Half of the bands is given."""
    z = f(a_band, lower, eigvals_only, False, select, select_range, max_ev, check_finite)
    return banded_spectrum(z, eigvals_only, a_band, lower, select, select_range, max_ev)


@entered("eigvals_banded", dims=(2,))
def eigvals_banded(f, a_band, lower=False, overwrite_a_band=False, select="a", select_range=None, check_finite=True):
    """As `eig_banded` without vectors."""
    z = f(a_band, lower, False, select, select_range, check_finite)
    return banded_spectrum(z, True, a_band, lower, select, select_range, 0)


def banded_spectrum(z: Any, values_only: bool, ab: Any, lower: bool, select: Any, select_range: Any, max_ev: int) -> Any:
    """Only the bands of V core V^H are computed."""
    rows, n = np.shape(ab)
    k = rows - 1
    if np.size(ab) == 0:
        return z, lambda z_bar: (np.zeros(np.shape(ab)),), lambda *dots: z

    def back(w, v, w_bar, v_bar):
        core = inner_bar(w, v, w_bar, turned_bar(v, v_bar, unit(n, 0))[0])
        return (half_bar(outer_bands(v @ core, v, 2 * k + 1, k), lower),)

    def forth(w, v, dots):
        return adjoint(v) @ bands_times(both_halves(dots[0], lower), v, k), None

    def selected():
        return sl.eig_banded(ab, lower, select=select, select_range=select_range, max_ev=max_ev)

    def every():
        return sl.eig_banded(ab, lower)

    return spectrum(z, values_only, n, selected, every, back, forth, lambda dots: (unit(n, 0), 0.0))


@entered("eigh_tridiagonal", dims=(1, 1))
def eigh_tridiagonal(f, d, e, eigvals_only=False, *rest, **options):
    """Real, with diagonal d and e beside it."""
    z = f(d, e, eigvals_only, *rest, **options)
    return tridiagonal_spectrum(z, eigvals_only, d, e, rest, options)


@entered("eigvalsh_tridiagonal", dims=(1, 1))
def eigvalsh_tridiagonal(f, d, e, *rest, **options):
    """As `eigh_tridiagonal` without vectors."""
    return tridiagonal_spectrum(f(d, e, *rest, **options), True, d, e, rest, options)


def tridiagonal_spectrum(z: Any, values_only: bool, d: Any, e: Any, rest: Any, options: Any) -> Any:
    """The diagonal of V core V^H, and twice what is beside it."""
    n = len(d)

    def back(w, v, w_bar, v_bar):
        left = v @ inner_bar(w, v, w_bar, v_bar)
        beside = np.sum(left[1:] * v[:-1], 1) + np.sum(left[:-1] * v[1:], 1)
        return np.sum(left * v, 1), beside

    def forth(w, v, dots):
        d_dot, e_dot = dots[:2]
        product = d_dot[:, None] * v if varies(d_dot) else np.zeros_like(v)
        if varies(e_dot):
            edge = np.zeros((1, np.shape(v)[1]))
            product = product + np.concatenate([e_dot[:, None] * v[1:], edge]) + np.concatenate([edge, e_dot[:, None] * v[:-1]])
        return np.transpose(v) @ product, None

    def selected():
        return sl.eigh_tridiagonal(d, e, False, *rest, **options)

    def every():
        return sl.eigh_tridiagonal(d, e)

    return spectrum(z, values_only, n, selected, every, back, forth, lambda dots: (unit(n, 0), 0.0))


__all__ = ["by_gaps", "eigh", "inner_bar", "inner_dot"]
