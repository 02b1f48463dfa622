"""Cholesky's factors of band matrices, and equations solved by them, in time proportional to the bands.

Columns are taken in blocks, which are dense matrices with at most k rows below them, for k bands below the diagonal:

    [[A1, A2^H], [A2, A3]] with D D^H = A1, C D^H = A2, and A3 - C C^H is factored further.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from plaingrad.rules.pushforwards import total, varies
from plaingrad.rules.scipy.linalg.entering import defined, entered, sl
from plaingrad.rules.scipy.linalg.equations import banded, banded_half, upper_half
from plaingrad.rules.scipy.linalg.factored import adjoint, cholesky_bar, cholesky_dot, triangular
from plaingrad.rules.scipy.linalg.matrices import as_columns, bands_times, folded, outer_bands, symmetrised
from plaingrad.tangents import Thunk

COLUMNS = 48  # of a block, at least


def blocks(rows: int, n: int) -> Iterator[tuple[int, int, int]]:
    """(first column, end, end of the rows below), of each block in order."""
    size = max(COLUMNS, rows - 1)
    for start in range(0, n, size):
        end = min(start + size, n)
        yield start, end, min(end + rows - 1, n)


def dense(bands: Any, start: int, end: int, last: int) -> Any:
    """The columns of a block as a matrix with the rows `start` to `last`; bands[i - j, j] is the entry i, j."""
    down = np.arange(last - start)[:, None] - np.arange(end - start)
    inside = (down >= 0) & (down < bands.shape[0])
    return np.where(inside, bands[np.where(inside, down, 0), np.arange(start, end)], 0.0)


def in_columns(block: Any, rows: int) -> Any:
    """The bands of a block's matrix."""
    high, wide = block.shape
    row = np.arange(rows)[:, None] + np.arange(wide)
    return np.where(row < high, block[np.minimum(row, high - 1), np.arange(wide)], 0.0)


def banded_cholesky_bar(c: Any, c_bar: Any) -> Any:
    """From the last block to the first: what was subtracted from the rows behind each comes back."""
    rows, n = np.shape(c)
    found = []
    behind: Any = None
    for start, end, last in [*blocks(rows, n)][::-1]:
        size = end - start
        factor, bar = dense(c, start, end, last), dense(c_bar, start, end, last)
        d, d_bar, below = factor[:size], bar[:size], bar[size:]
        if last > end:
            m = factor[size:]
            s = np.tril(behind[: last - end, : last - end])
            below = adjoint(triangular(d, adjoint(below - (s + adjoint(s)) @ m), 2))
            d_bar = d_bar - np.tril(adjoint(below) @ m)
        behind = folded(cholesky_bar(d, d_bar), True)
        found.append(in_columns(np.concatenate([behind, below]), rows))
    return np.concatenate(found[::-1], 1) if n else np.zeros_like(c)


def banded_cholesky_dot(c: Any, ab_dot: Any) -> Any:
    """From the first block to the last; what each takes from the rows behind it is carried along."""
    rows, n = np.shape(c)
    found = []
    taken: Any = None
    for start, end, last in blocks(rows, n):
        size = end - start
        factor, block_dot = dense(c, start, end, last), dense(ab_dot, start, end, last)
        d, m = factor[:size], factor[size:]
        a_dot = symmetrised(block_dot[:size], True)
        if taken is not None:
            short = size - len(taken)
            wide = np.concatenate([taken, np.zeros((len(taken), short))], 1)
            a_dot = a_dot - np.concatenate([wide, np.zeros((short, size))])
        d_dot = cholesky_dot(d, a_dot)
        m_dot = adjoint(triangular(d, adjoint(block_dot[size:] - m @ adjoint(d_dot))))
        product = m_dot @ adjoint(m)
        taken = product + adjoint(product)
        found.append(in_columns(np.concatenate([d_dot, m_dot]), rows))
    return np.concatenate(found, 1) if n else np.zeros_like(c)


@entered("cholesky_banded", dims=(2,))
def cholesky_banded(f, ab, overwrite_ab=False, lower=False, check_finite=True):
    """In time proportional to the bands."""
    z = f(ab, lower=lower, check_finite=check_finite)

    def banded_pullback(z_bar):
        if np.size(ab) == 0:
            return (np.zeros(np.shape(ab)),)
        if lower:
            return (banded_cholesky_bar(z, z_bar),)
        return (upper_half(banded_cholesky_bar(banded_half(z), banded_half(z_bar))),)

    def banded_pushforward(ab_dot, *others):
        if np.size(ab) == 0:
            return np.zeros_like(z)
        if lower:
            return banded_cholesky_dot(z, ab_dot)
        return upper_half(banded_cholesky_dot(banded_half(z), banded_half(ab_dot)))

    return z, banded_pullback, banded_pushforward


def solve_by_banded_cholesky(cb: Any, b: Any, lower: Any, check_finite: Any) -> Any:
    """SciPy's, with the factor as an argument of its own."""
    return sl.cho_solve_banded((cb, lower), b, check_finite=check_finite)


@defined("cho_solve_banded")
def cho_solve_banded(cb_and_lower, b, overwrite_b=False, check_finite=True):
    """A pair is taken apart."""
    cb, lower = cb_and_lower
    return solve_by_banded_cholesky(cb, b, lower, check_finite)


@entered(solve_by_banded_cholesky, dims=(2, "1|2"))
def cho_solve_banded_core(f, cb, b, lower, check_finite):
    """As `cho_solve_core`, in bands; U is L^H."""
    z = f(cb, b, lower, check_finite)
    k = np.shape(cb)[0] - 1

    def upper_times(bands, x):
        return bands_times(banded(bands, k, 0) if lower else bands, x, k)

    def lower_times(bands, x):
        return bands_times(bands, x, 0) if lower else bands_times(banded(bands, 0, k), x, 0)

    def banded_pullback(z_bar):
        b_bar = f(cb, z_bar, lower, False)

        def cb_bar():
            left, right = as_columns(b_bar), as_columns(z)
            through = (upper_times(cb, right), upper_times(cb, left))
            if lower:
                return -outer_bands(left, through[0], k + 1, 0) - outer_bands(right, through[1], k + 1, 0)
            return -outer_bands(through[1], right, k + 1, k) - outer_bands(through[0], left, k + 1, k)

        return Thunk(cb_bar), b_bar

    def banded_pushforward(cb_dot, b_dot, *others):
        moved = b_dot
        if varies(cb_dot):
            x = as_columns(z)
            product = lower_times(cb_dot, upper_times(cb, x)) + lower_times(cb, upper_times(cb_dot, x))
            moved = total(moved, -np.reshape(product, np.shape(z)))
        return f(cb, moved, lower, False)

    return z, banded_pullback, banded_pushforward


__all__ = ["cho_solve_banded", "cholesky_banded"]
