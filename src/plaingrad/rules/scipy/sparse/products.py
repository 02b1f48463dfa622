"""Products of sparse matrices and dense arrays, and their derivatives, which are such products again.

A matrix is a form ("csr", "csc" or "coo"), a shape, its index arrays p and j, and its numbers. Two maps are closed under
differentiation: z = A x, and the numbers w[n] = sum_k u[row n, k] v[column n, k] of u v^T at the places of A.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse._sparsetools as tools

from plaingrad.rules.numpy.indexing import summed
from plaingrad.rules.numpy.names import conj
from plaingrad.rules.pushforwards import pushed, total
from plaingrad.rules.scipy.sparse.facts import constant, defined, each, enter
from plaingrad.tangents import NoTangent, Thunk

AT_ONCE = 1 << 15  # places of a matrix: what is gathered for them stays in the cache


def turned(form: str, shape: Any, p: Any, j: Any) -> Any:
    """The structure of the transpose: the same arrays read the other way."""
    if form == "coo":
        return form, shape[::-1], j, p
    return ("csc" if form == "csr" else "csr"), shape[::-1], p, j


def places_of(p: Any, j: Any) -> Any:
    """The major index of every stored number of a compressed matrix."""
    major = np.zeros(len(j), j.dtype)
    tools.expandptr(len(p) - 1, p, major)
    return major


def rows_and_columns(form: str, p: Any, j: Any) -> Any:
    """The row and the column of every stored number."""
    if form == "coo":
        return p, j
    major = places_of(p, j)
    return (major, j) if form == "csr" else (j, major)


constant(turned, places_of, rows_and_columns)


def product(form: str, shape: Any, p: Any, j: Any, a: Any, x: Any) -> Any:
    """A x for a vector or the columns of a matrix."""
    rows, columns = shape
    z = np.zeros((rows, *x.shape[1:]), np.result_type(a, x))
    if form == "coo":
        if x.ndim == 1:
            tools.coo_matvec(len(a), p, j, a, x, z)
        else:
            for k in range(x.shape[1]):
                column = np.zeros(rows, z.dtype)
                tools.coo_matvec(len(a), p, j, a, np.ascontiguousarray(x[:, k]), column)
                z[:, k] = column
        return z
    if x.ndim == 1:
        (tools.csr_matvec if form == "csr" else tools.csc_matvec)(rows, columns, p, j, a, x, z)
    else:
        many = tools.csr_matvecs if form == "csr" else tools.csc_matvecs
        many(rows, columns, x.shape[1], p, j, a, x.ravel(), z.reshape(-1))
    return z


def product_rrule(form: str, shape: Any, p: Any, j: Any, a: Any, x: Any) -> Any:
    z = product(form, shape, p, j, a, x)

    def product_pullback(z_bar: Any) -> Any:
        return (
            *(NoTangent, NoTangent, NoTangent, NoTangent),
            Thunk(lambda: sampled(form, shape, p, j, z_bar, conj(x))),
            Thunk(lambda: product(*turned(form, shape, p, j), conj(a), z_bar)),
        )

    return z, product_pullback


def product_frule(form: str, shape: Any, p: Any, j: Any, a: Any, x: Any) -> Any:
    z = product(form, shape, p, j, a, x)

    def product_pushforward(dots: Any) -> Any:
        return total(
            pushed(lambda a_dot: each(lambda part: product(form, shape, p, j, part, x), a_dot, a), dots[4]),
            pushed(lambda x_dot: together(form, shape, p, j, a, x_dot, x), dots[5]),
        )

    return z, product_pushforward


def together(form: str, shape: Any, p: Any, j: Any, a: Any, x_dot: Any, x: Any) -> Any:
    """A x_dot; a chunk of vectors at once, as the columns of a matrix."""
    if np.ndim(x) == 1 and np.ndim(x_dot) == 2:
        return product(form, shape, p, j, a, x_dot.T).T
    return each(lambda part: product(form, shape, p, j, a, part), x_dot, x)


def sampled(form: str, shape: Any, p: Any, j: Any, u: Any, v: Any) -> Any:
    """u v^T at the places of A, where u and v are vectors or matrices."""
    dtype = np.result_type(u, v)
    if form == "coo":
        return u[p] * v[j] if u.ndim == 1 else np.einsum("nk,nk->n", u[p], v[j])
    rows, columns = shape
    if u.ndim == 1:
        if form == "csc":
            rows, columns, u, v = columns, rows, v, u
        w = np.repeat(u.astype(dtype, copy=False), np.diff(p))
        if len(w) < len(j):
            w = np.append(w, np.zeros(len(j) - len(w), dtype))
        tools.csr_scale_columns(rows, columns, p, j, w, v.astype(dtype, copy=False))
        return w
    row, column = rows_and_columns(form, p, j)
    w = np.zeros(len(j), dtype)
    for first in range(0, int(p[-1]), AT_ONCE):
        part = slice(first, min(first + AT_ONCE, int(p[-1])))
        w[part] = np.einsum("nk,nk->n", u[row[part]], v[column[part]])
    return w


def sampled_rrule(form: str, shape: Any, p: Any, j: Any, u: Any, v: Any) -> Any:
    w = sampled(form, shape, p, j, u, v)

    def sampled_pullback(w_bar: Any) -> Any:
        return (
            *(NoTangent, NoTangent, NoTangent, NoTangent),
            Thunk(lambda: product(form, shape, p, j, w_bar, conj(v))),
            Thunk(lambda: product(*turned(form, shape, p, j), w_bar, conj(u))),
        )

    return w, sampled_pullback


def sampled_frule(form: str, shape: Any, p: Any, j: Any, u: Any, v: Any) -> Any:
    w = sampled(form, shape, p, j, u, v)

    def sampled_pushforward(dots: Any) -> Any:
        return total(
            pushed(lambda u_dot: each(lambda part: sampled(form, shape, p, j, part, v), u_dot, u), dots[4]),
            pushed(lambda v_dot: each(lambda part: sampled(form, shape, p, j, u, part), v_dot, v), dots[5]),
        )

    return w, sampled_pushforward


enter(product, product_rrule, product_frule)
enter(sampled, sampled_rrule, sampled_frule)


# ---------------------------------------------------------------------------------------------------------
# The compiled functions add the product to what their last argument holds.


@defined("csr_matvec")
def csr_matvec(rows, columns, p, j, a, x, y):
    y += product("csr", (rows, columns), p, j, a, np.ravel(x)).reshape(y.shape)


@defined("csc_matvec")
def csc_matvec(rows, columns, p, j, a, x, y):
    y += product("csc", (rows, columns), p, j, a, np.ravel(x)).reshape(y.shape)


@defined("csr_matvecs")
def csr_matvecs(rows, columns, n, p, j, a, x, y):
    y += product("csr", (rows, columns), p, j, a, x.reshape(columns, n)).reshape(y.shape)


@defined("csc_matvecs")
def csc_matvecs(rows, columns, n, p, j, a, x, y):
    y += product("csc", (rows, columns), p, j, a, x.reshape(columns, n)).reshape(y.shape)


@defined("coo_matvec")
def coo_matvec(nnz, i, j, a, x, y):
    x = np.ravel(x)
    y += product("coo", (y.size, x.size), i, j, a, x).reshape(y.shape)


@defined("coo_matmat_dense")
def coo_matmat_dense(nnz, n, i, j, a, x, y):
    x = x.reshape(-1, n)
    y += product("coo", (y.size // n, len(x)), i, j, a, x).reshape(y.shape)


@defined("coo_matvec_nd")
def coo_matvec_nd(nnz, ndim, strides, coords, a, x, y):
    """Rows are numbered by `strides`, that of the first axis first; the last axis is that of the vector."""
    coords = coords.reshape(ndim, nnz)
    row = (np.asarray(strides)[: ndim - 1, None] * coords[: ndim - 1]).sum(0)
    y += product("coo", (y.size, x.size), row, coords[-1].astype(row.dtype), a, np.ravel(x)).reshape(y.shape)


@defined("dia_matvec")
def dia_matvec(rows, columns, n, length, offsets, a, x, y):
    dia_matvecs(rows, columns, n, length, offsets, a, 1, x, y)


@defined("dia_matvecs")
def dia_matvecs(rows, columns, n, length, offsets, a, many, x, y):
    """Number c of the diagonal k stands in row c - k and column c."""
    a, x = a.reshape(n, length), x.reshape(columns, many)
    z = np.zeros((rows, many), np.result_type(a, x))
    for d in range(n):
        k = int(offsets[d])
        first, last = max(0, k), min(rows + k, columns, length)
        if first < last:
            z[first - k : last - k] += a[d, first:last, None] * x[first:last]
    y += z.reshape(y.shape)


@defined("bsr_matvec")
def bsr_matvec(rows, columns, high, wide, p, j, a, x, y):
    bsr_matvecs(rows, columns, 1, high, wide, p, j, a, x, y)


@defined("bsr_matvecs")
def bsr_matvecs(rows, columns, many, high, wide, p, j, a, x, y):
    """The blocks' products, summed over each row of blocks."""
    n = int(p[-1])
    blocks = a.reshape(-1, high, wide)[:n] @ x.reshape(columns, wide, many)[j[:n]]
    y += row_sums(p, rows, blocks.reshape(n, high * many)).reshape(y.shape)


def row_sums(p, rows, x):
    """The sums of x[p[k] : p[k + 1]] for each k."""
    count, ones = counted(p, x.shape[0])
    return product("csr", (rows, x.shape[0]), p, count, ones, x)


def counted(p: Any, n: int) -> Any:
    """The indices and the numbers of a matrix that sums segments."""
    return np.arange(n, dtype=p.dtype), np.ones(n)


constant(counted)


# ---------------------------------------------------------------------------------------------------------
# Numbers, or rows of numbers, moved to other places. `once`: no place stands twice.


def gathered(x: Any, places: Any, once: bool) -> Any:
    """x[places]."""
    return x[places]


def scattered(x: Any, places: Any, once: bool, n: int) -> Any:
    """Zeros of length n, with x[k] added at places[k]."""
    z = np.zeros((n, *x.shape[1:]), x.dtype)
    if once:
        z[places] = x
    elif x.ndim == 1:
        z[:] = summed(places, x, n)
    else:
        np.add.at(z, places, x)
    return z


def gathered_rrule(x: Any, places: Any, once: bool) -> Any:
    return x[places], lambda z_bar: (scattered(z_bar, places, once, len(x)), NoTangent, NoTangent)


def scattered_rrule(x: Any, places: Any, once: bool, n: int) -> Any:
    def scattered_pullback(z_bar: Any) -> Any:
        return gathered(z_bar, places, once), NoTangent, NoTangent, NoTangent

    return scattered(x, places, once, n), scattered_pullback


def gathered_frule(x: Any, places: Any, once: bool) -> Any:
    def gathered_pushforward(dots: Any) -> Any:
        return pushed(lambda x_dot: each(lambda part: gathered(part, places, once), x_dot, x), dots[0])

    return x[places], gathered_pushforward


def scattered_frule(x: Any, places: Any, once: bool, n: int) -> Any:
    def scattered_pushforward(dots: Any) -> Any:
        return pushed(lambda x_dot: each(lambda part: scattered(part, places, once, n), x_dot, x), dots[0])

    return scattered(x, places, once, n), scattered_pushforward


enter(gathered, gathered_rrule, gathered_frule, "linear")
enter(scattered, scattered_rrule, scattered_frule, "linear")
