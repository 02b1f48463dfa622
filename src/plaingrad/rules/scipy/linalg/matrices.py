"""What the rules of `scipy.linalg` share: triangles, bands, quotients of gaps, systems that may be singular."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.tangents import is_zero


def as_columns(b: Any) -> Any:
    """A vector as one column; matrices as they are."""
    return np.expand_dims(b, -1) if np.ndim(b) == 1 else b


def transposed(a: Any) -> Any:
    """The transpose of (a stack of) matrices."""
    return np.swapaxes(a, -1, -2)


def eye(n: int, like: Any) -> Any:
    """The identity in the real precision of `like`."""
    return np.eye(n, dtype=np.real(like).dtype if np.asarray(like).dtype.kind in "fc" else float)


def diagonal(a: Any) -> Any:
    """The diagonals of a stack of matrices."""
    return np.diagonal(a, axis1=-2, axis2=-1)


def on_diagonal(d: Any) -> Any:
    """A stack of diagonal matrices."""
    return np.expand_dims(d, -2) * eye(np.shape(d)[-1], d)


def symmetrised(a: Any, lower: bool, hermitian: bool = True) -> Any:
    """The matrix that LAPACK reads off one triangle."""
    off = np.tril(a, -1) if lower else np.triu(a, 1)
    if hermitian:
        return off + adjoint(off) + on_diagonal(np.real(diagonal(a)))
    return off + transposed(off) + on_diagonal(diagonal(a))


def folded(a_bar: Any, lower: bool, hermitian: bool = True) -> Any:
    """The transpose of `symmetrised`."""
    half = np.tril if lower else np.triu
    off = half(a_bar + (adjoint(a_bar) if hermitian else transposed(a_bar)), -1 if lower else 1)
    return off + on_diagonal(np.real(diagonal(a_bar)) if hermitian else diagonal(a_bar))


def band_places(rows: int, upper: int, n: int) -> tuple[Any, Any, Any]:
    """In LAPACK's band storage a[i, j] stands in ab[upper + i - j, j]: the row i of each place, the column, and whether it exists."""
    k, column = np.indices((rows, n))
    row = k - upper + column
    return np.clip(row, 0, max(n - 1, 0)), column, (row >= 0) & (row < n)


def in_bands(a_bar: Any, rows: int, upper: int) -> Any:
    """The bands of a matrix, 0 where there is none."""
    row, column, there = band_places(rows, upper, np.shape(a_bar)[-1])
    return np.where(there, a_bar[row, column], 0)


def from_bands(ab: Any, upper: int) -> Any:
    """The matrix whose bands are given; what stands outside of it is not read."""
    rows, n = np.shape(ab)
    row, column, there = band_places(rows, upper, n)
    a = np.zeros((n, n), np.asarray(ab).dtype)
    a[row[there], column[there]] = ab[there]
    return a


def outer_bands(left: Any, right: Any, rows: int, upper: int) -> Any:
    """The bands of left @ right^H without the rest: left and right have few columns."""
    row, column, there = band_places(rows, upper, np.shape(left)[0])
    return np.where(there, np.sum(left[row] * conj(right[column]), axis=-1), 0)


def bands_times(ab: Any, x: Any, upper: int) -> Any:
    """The matrix in bands, times x."""
    rows, n = np.shape(ab)
    z: Any = 0.0
    for k in range(rows):
        shift = k - upper  # row i = column + shift
        first, last = max(0, -shift), min(n, n - shift)
        if first >= last:
            continue
        part = np.expand_dims(ab[k, first:last], -1) * x[first:last]
        before = np.zeros((first + shift, np.shape(x)[-1]))
        after = np.zeros((n - last - shift, np.shape(x)[-1]))
        z = z + np.concatenate([before, part, after], 0)
    return z


def plus(*parts: Any) -> Any:
    """The sum of cotangents or tangents, where some may be known zeros; 0.0 if all are."""
    z: Any = 0.0
    for part in parts:
        if not is_zero(part):
            z = part if isinstance(z, float) else z + part
    return z


def near(x: Any, y: Any, scale: Any) -> Any:
    """Whether x and y are the same but for rounding."""
    size = np.max(np.abs(scale), initial=0.0)
    resolution = np.finfo(np.asarray(scale).real.dtype).eps * 8 * max(np.shape(scale)[-1], 1)
    return np.abs(x - y) <= resolution * size


def by_gaps(m: Any, w: Any, same: Any) -> Any:
    """m_ij / (w_j - w_i) off the diagonal; where they are the `same`, 0 if m_ij is 0, or nan: it is not determined."""
    gaps = np.expand_dims(w, -2) - np.expand_dims(w, -1)
    here = np.eye(np.shape(w)[-1], dtype=bool)
    apart = ~(same | here)
    quotient = np.where(apart, m, 0) / np.where(apart, gaps, 1)
    return np.where(same & ~here & (m != 0), np.nan, quotient)


def is_invariant(q: Any, q_bar: Any) -> bool:
    """Whether what has the cotangent `q_bar` of the orthonormal columns `q` is a function of their span only."""
    m = adjoint(q) @ q_bar
    tolerance = 1e3 * np.finfo(np.asarray(q).real.dtype).eps * np.sqrt(np.size(q) + 1.0)
    return bool(np.all(np.abs(m - adjoint(m)) <= tolerance * np.max(np.abs(q_bar), initial=0.0)))


# -- Phases of complex vectors -----------------------------------------------------------------------------------------
# LAPACK reduces by reflections that leave one basis vector as it is: some linear form g of each vector it finds is real.


def turned_bar(v: Any, v_bar: Any, g: Any) -> tuple[Any, Any]:
    """(v_bar, g_bar) for v = exp(i t) u where t keeps g v real: dt = -Im(g du + dg u) / (g u)."""
    if not np.iscomplexobj(v) or is_zero(v_bar):
        return v_bar, 0.0
    turn = turning(np.sum(conj(v) * v_bar, axis=0), v, g, np.max(np.abs(v_bar), initial=0.0))
    return v_bar - 1j * np.expand_dims(conj(g), -1) * turn, -1j * (conj(v) @ turn)


def turned_dot(v: Any, v_dot: Any, g: Any, g_dot: Any = 0.0) -> Any:
    """The tangent of v, turned so that g v stays real."""
    if not np.iscomplexobj(v):
        return v_dot
    moved = g @ v_dot + (g_dot @ v if np.ndim(g_dot) else 0.0)
    return v_dot - 1j * v * turning(moved, v, g, np.max(np.abs(np.where(np.isnan(v_dot), 0, v_dot)), initial=0.0))


def turning(moved: Any, v: Any, g: Any, scale: Any) -> Any:
    """Im(moved) / (g v); nan where g v is 0 but for rounding, and leaves the phase undetermined."""
    size, moved = np.real(g @ v), np.imag(moved)
    eps = 1e3 * np.finfo(size.dtype).eps
    vanishes = np.abs(size) <= eps * np.max(np.abs(g), initial=0.0) * np.max(np.abs(v), initial=0.0)
    unknown = np.where(np.abs(moved) <= eps * scale, 0, np.nan)
    return np.where(vanishes, unknown, moved / np.where(vanishes, 1, size))


def unit(n: int, k: int) -> Any:
    """Row k of the identity."""
    return np.eye(n)[k]
