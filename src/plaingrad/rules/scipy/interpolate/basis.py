"""B-splines' basis functions, in knots and queries, and the sparse equations that fits with them solve."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from plaingrad.rules.pushforwards import dot_of, pushed, total
from plaingrad.rules.scipy.compiled import constant, each, enter
from plaingrad.rules.scipy.interpolate.banded import banded
from plaingrad.rules.scipy.interpolate.piecewise import spans
from plaingrad.tangents import NoTangent, Thunk

WIDEST = 24  # diagonals on one side for which a matrix is solved as a band


def basis(t: Any, k: int, x: Any, span: Any, nu: int = 0) -> Any:
    """The k + 1 basis functions that are not zero in [t[span], t[span + 1]], or their derivatives of order nu: (m, k + 1).

    The recurrence of Cox and de Boor; its last nu steps are those of the derivative.
    """
    values = [np.ones(x.shape)]
    for q in range(1, k + 1):
        following = [None] * (q + 1)
        for a in range(q):
            high, low = t[span + a + 1], t[span + a + 1 - q]
            share = values[a] / (high - low)
            if q <= k - nu:
                below, above = share * (high - x), share * (x - low)
            else:
                below, above = -q * share, q * share
            following[a] = below if following[a] is None else following[a] + below
            following[a + 1] = above
        values = following
    return np.stack(values, -1)


def jumps(t: Any, k: int) -> Any:
    """For each knot inside how the derivative of order k of the k + 2 basis functions around it jumps, in FITPACK's scale.

    Dierckx, Curve and Surface Fitting with Splines, section 5.2: (t[j + k + 1] - t[j]) / product of distances to the knot.
    """
    n = len(t) - k - 1
    count = n - k
    scale = count / (t[n] - t[k])
    knots = np.arange(k + 1, n)
    columns = []
    for j in range(k + 2):
        first = knots - k - 1 + j
        product = 1.0
        for i in range(k + 2):
            if first.size:
                other = first + i
                distance = np.where(other == knots, 1.0, (t[knots] - t[other]) * scale)
                product = product * distance
        columns.append((t[first + k + 1] - t[first]) * scale / product)
    return np.stack(columns, -1)


# -- equations ---------------------------------------------------------------------------------------------------------


def matrix_of(n: int, i: Any, j: Any, values: Any) -> Any:
    """The matrix with these entries; several at one place are added."""
    return csc_matrix((values, (i, j)), shape=(n, n))


def sparsely(n: int, i: Any, j: Any, values: Any, b: Any) -> Any:
    """A^-1 b with A[i, j] = values, n by n; a band is solved as such, anything else by SuperLU."""
    far = int(np.max(np.abs(i - j), initial=0))
    if far <= WIDEST:
        ab = np.bincount((far + i - j) * n + j, values, (2 * far + 1) * n)
        return banded(far, far, np.reshape(ab, (2 * far + 1, n)), b)
    return splu(matrix_of(n, i, j, values)).solve(np.ascontiguousarray(b))


def along(n: int, i: Any, j: Any, values: Any, z: Any) -> Any:
    """A z."""
    return matrix_of(n, i, j, values) @ z


def products(i: Any, j: Any, u: Any, v: Any) -> Any:
    """The entries (i, j) of u v^T."""
    return np.sum(np.reshape(u[i] * v[j], (len(i), -1)), 1)


def sparsely_rrule(n: int, i: Any, j: Any, values: Any, b: Any) -> Any:
    z = sparsely(n, i, j, values, b)

    def sparsely_pullback(z_bar: Any) -> Any:
        b_bar = sparsely(n, j, i, values, z_bar)
        return NoTangent, NoTangent, NoTangent, Thunk(lambda: -products(i, j, b_bar, z)), b_bar

    return z, sparsely_pullback


def sparsely_frule(n: int, i: Any, j: Any, values: Any, b: Any) -> Any:
    z = sparsely(n, i, j, values, b)

    def sparsely_pushforward(dots: Any) -> Any:
        right = total(
            pushed(lambda dot: -each(lambda part: along(n, i, j, part, z), dot, values), dots[3]), dot_of(dots, 4)
        )
        return pushed(lambda r: each(lambda part: sparsely(n, i, j, values, part), r, b), right)

    return z, sparsely_pushforward


enter(sparsely, sparsely_rrule, sparsely_frule)


def gathered(size: int, place: Any, values: Any) -> Any:
    """z with z[place] += values, one value for each place, or a row of them."""
    if np.ndim(values) == 1:
        return np.bincount(place, values, size)
    if np.shape(values)[1] == 1:
        return np.bincount(place, values[:, 0], size)[:, None]
    z = np.zeros((size, *np.shape(values)[1:]))
    np.add.at(z, place, values)
    return z


def gathered_rrule(size: int, place: Any, values: Any) -> Any:
    return gathered(size, place, values), lambda z_bar: (NoTangent, NoTangent, z_bar[place])


def gathered_frule(size: int, place: Any, values: Any) -> Any:
    def gathered_pushforward(dots: Any) -> Any:
        return pushed(lambda dot: each(lambda part: gathered(size, place, part), dot, values), dots[2])

    return gathered(size, place, values), gathered_pushforward


enter(gathered, gathered_rrule, gathered_frule)


def places(first: Any, width: int) -> Any:
    """The columns of the entries of rows whose first entries are in columns `first`: (m, width)."""
    return first[:, None] + np.arange(width)


def pairs(columns: Any) -> tuple[Any, Any]:
    """(i, j) of all products of two entries of one row, rows whose entries are in `columns`."""
    width = columns.shape[1]
    return np.repeat(columns, width, 1).reshape(-1), np.tile(columns, (1, width)).reshape(-1)


constant(places, pairs, spans)


def squares(rows: Any) -> Any:
    """The values for `pairs`: the products of two entries of one row."""
    return np.reshape(rows[:, :, None] * rows[:, None, :], (-1,))


def onto(n: int, columns: Any, rows: Any, y: Any) -> Any:
    """A^T y for the sparse matrix A of these rows; y: (m, d)."""
    values = rows[:, :, None] * y[:, None, :]
    return gathered(n, np.reshape(columns, (-1,)), np.reshape(values, (-1, y.shape[1])))


def values_of(columns: Any, rows: Any, c: Any) -> Any:
    """A c."""
    return np.sum(rows[:, :, None] * c[columns], 1)
