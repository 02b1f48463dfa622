"""Conversions, slices and sums of compressed matrices, which move stored numbers or add some of them.

Where the numbers go depends on the structure alone. So the compiled function is called with the numbers' positions in
the place of the numbers; a gather then does the same to differentiated numbers, in every mode.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse._sparsetools as tools
from scipy.sparse import _dia

from plaingrad.rules.scipy.compiled import definitions
from plaingrad.rules.scipy.sparse.facts import constant, defined
from plaingrad.rules.scipy.sparse.products import gathered, places_of, row_sums, scattered


def moved(function: Any, args: Any, source: int, target: int) -> Any:
    """For each place of args[target] the position in args[source] that `function` moves there; indices are written."""
    args = list(args)
    positions = np.zeros(np.shape(args[target]), np.int64)
    args[source] = np.arange(np.size(args[source]), dtype=np.int64).reshape(np.shape(args[source]))
    args[target] = positions
    function(*args)
    return positions.reshape(-1)


constant(moved)
constant(
    *[
        getattr(tools, name, None)
        for name in (
            "csr_count_blocks", "csr_has_canonical_format", "csr_has_sorted_indices", "csr_matmat_maxnnz",
            "csr_column_index1", "csr_sample_offsets", "expandptr", "cs_graph_components",
            "csc_matmat_maxnnz",
            *[f"{form}_{test}_{form}" for form in ("csr", "csc", "bsr") for test in ("ne", "lt", "gt", "le", "ge")],
        )
    ]
)  # fmt: skip

# Functions that move numbers: the places of their source and target among the arguments, and whether a number may be
# moved to several places.
MOVING = {
    "csr_tocsc": (4, 7, False), "csc_tocsr": (4, 7, False), "coo_tocsr": (5, 8, False), "csr_row_index": (4, 6, True),
    "csr_row_slice": (5, 7, False), "csr_column_index2": (4, 6, True), "csr_hstack": (5, 8, False),
    "bsr_tocsr": (6, 9, False), "bsr_transpose": (6, 9, False),
}  # fmt: skip


def enter_moving(name: str, source: int, target: int, repeated: bool) -> None:
    """The definition target[...] = source[positions]."""
    function = getattr(tools, name, None)
    if function is None:
        return

    @defined(name)
    def moving(*args: Any) -> None:
        positions = moved(function, args, source, target)
        args[target].reshape(-1)[...] = gathered(args[source].reshape(-1), positions, not repeated)


for moving_name, facts_of_moving in MOVING.items():
    enter_moving(moving_name, *facts_of_moving)


def submatrix_positions(rows: Any, columns: Any, p: Any, j: Any, limits: Any) -> Any:
    """The index arrays of a submatrix, and where its numbers come from."""
    return tools.get_csr_submatrix(rows, columns, p, j, np.arange(len(j)), *limits)


constant(submatrix_positions)


@defined("get_csr_submatrix")
def get_csr_submatrix(rows, columns, p, j, a, *limits):
    new_p, new_j, positions = submatrix_positions(rows, columns, p, j, limits)
    return new_p, new_j, gathered(a, positions, True)


# ---------------------------------------------------------------------------------------------------------
# In place. Index arrays are written by assignments, too: pullbacks of what was computed before refer to them.


def sorted_positions(p: Any, j: Any) -> Any:
    """The order of the stored numbers in which the minor indices of every row ascend."""
    order = np.arange(int(p[-1]))
    tools.csr_sort_indices(len(p) - 1, p, j[: len(order)].copy(), order)
    return order


def segments(p: Any, j: Any) -> Any:
    """Where the runs of equal places begin, the new index pointer, and the indices without repetitions."""
    n = int(p[-1])
    major = places_of(p, j)[:n]
    first = np.ones(n, bool)
    first[1:] = (major[1:] != major[:-1]) | (j[1:n] != j[: n - 1])
    starts = np.append(np.flatnonzero(first), n).astype(p.dtype)
    new_p = np.append(0, np.cumsum(np.bincount(major[first], minlength=len(p) - 1))).astype(p.dtype)
    return starts, new_p, j[:n][first]


constant(sorted_positions, segments)


@defined("csr_sort_indices", mutates=True)
def csr_sort_indices(rows, p, j, a):
    order = sorted_positions(p, j)
    n = len(order)
    a[:n] = gathered(a, order, True)
    j[:n] = j[order]


@defined("bsr_sort_indices", mutates=True)
def bsr_sort_indices(rows, columns, high, wide, p, j, a):
    order = sorted_positions(p, j)
    n = len(order)
    blocks = a.reshape(-1, high * wide)
    blocks[:n] = gathered(blocks, order, True)
    j[:n] = j[order]


@defined("csr_sum_duplicates", mutates=True)
def csr_sum_duplicates(rows, columns, p, j, a):
    starts, new_p, new_j = segments(p, j)
    n = int(starts[-1])
    a[: len(new_j)] = row_sums(starts, len(new_j), a[:n, None])[:, 0].astype(a.dtype)
    j[: len(new_j)] = new_j
    p[...] = new_p


@defined("csr_eliminate_zeros")
def csr_eliminate_zeros(rows, columns, p, j, a):
    """Differentiated numbers keep their places: one that is 0 now has a derivative all the same."""


@defined("csr_scale_rows", mutates=True)
def csr_scale_rows(rows, columns, p, j, a, x):
    n = int(p[-1])
    a[:n] *= x[places_of(p, j)[:n]]


@defined("csr_scale_columns", mutates=True)
def csr_scale_columns(rows, columns, p, j, a, x):
    n = int(p[-1])
    a[:n] *= x[j[:n]]


@defined("bsr_scale_rows", mutates=True)
def bsr_scale_rows(rows, columns, high, wide, p, j, a, x):
    n = int(p[-1])
    blocks = a.reshape(-1, high, wide)
    blocks[:n] *= x.reshape(rows, high)[places_of(p, j)[:n]][:, :, None]


@defined("bsr_scale_columns", mutates=True)
def bsr_scale_columns(rows, columns, high, wide, p, j, a, x):
    n = int(p[-1])
    blocks = a.reshape(-1, high, wide)
    blocks[:n] *= x.reshape(columns, wide)[j[:n]][:, None, :]


# ---------------------------------------------------------------------------------------------------------
# Into dense memory, to which stored numbers are added


def flat_places(p: Any, j: Any, columns: int) -> Any:
    """Where each stored number stands in a dense matrix, counted by rows."""
    n = int(p[-1])
    return places_of(p, j)[:n].astype(np.intp) * columns + j[:n]


def flat_of(rows: Any, columns: Any, i: Any, j: Any, fortran: Any) -> Any:
    """The same from two index arrays, counted by columns if `fortran`."""
    i, j = i.astype(np.intp), j.astype(np.intp)
    return i + j * rows if fortran else i * columns + j


def block_places(rows: Any, columns: Any, high: Any, wide: Any, p: Any, j: Any, new_p: Any, new_j: Any) -> Any:
    """Where each stored number stands among the numbers of blocks."""
    n = int(p[-1])
    i, j = places_of(p, j)[:n], j[:n]
    block = np.empty(n, new_j.dtype)
    major, minor = (i // high).astype(new_j.dtype), (j // wide).astype(new_j.dtype)
    tools.csr_sample_offsets(rows // high, columns // wide, new_p, new_j, n, major, minor, block)
    return (block.astype(np.intp) * high + i % high) * wide + j % wide


def diagonal_places(k: Any, rows: Any, columns: Any, p: Any, j: Any) -> Any:
    """Which stored numbers are on the diagonal k, and where on it."""
    n = int(p[-1])
    i, j = places_of(p, j)[:n].astype(np.intp), j[:n].astype(np.intp)
    chosen = np.flatnonzero(j - i == k)
    return chosen, i[chosen] - max(0, -k)


constant(flat_places, flat_of, block_places, diagonal_places)


@defined("csr_todense", mutates=True)
def csr_todense(rows, columns, p, j, a, out):
    """`out` is a matrix, or (for arrays with one axis) a vector."""
    out += scattered(a[: int(p[-1])], flat_places(p, j, columns), False, out.size).reshape(out.shape)


@defined("coo_todense", mutates=True)
def coo_todense(rows, columns, nnz, i, j, a, out, fortran):
    out += scattered(a, flat_of(rows, columns, i, j, fortran), False, out.size).reshape(out.shape)


@defined("coo_todense_nd", mutates=True)
def coo_todense_nd(strides, nnz, ndim, coords, a, out, fortran):
    places = (np.asarray(strides, np.intp)[:, None] * coords.reshape(ndim, nnz)).sum(0)
    out += scattered(a, places, False, out.size).reshape(out.shape)


@defined("csr_tobsr")
def csr_tobsr(rows, columns, high, wide, p, j, a, new_p, new_j, out):
    tools.csr_tobsr(rows, columns, high, wide, p, j, np.zeros(len(j)), new_p, new_j, np.zeros(out.size))
    places = block_places(rows, columns, high, wide, p, j, new_p, new_j)
    out += scattered(a[: int(p[-1])], places, False, out.size).reshape(out.shape)


@defined("csr_diagonal")
def csr_diagonal(k, rows, columns, p, j, a, out):
    chosen, places = diagonal_places(k, rows, columns, p, j)
    out[...] = scattered(gathered(a, chosen, True), places, False, out.size)


@defined("csc_diagonal")
def csc_diagonal(k, rows, columns, p, j, a, out):
    """Of SciPy before 1.12, like the other functions of matrices in columns."""
    csr_diagonal(-k, columns, rows, p, j, a, out)


@defined("bsr_diagonal")
def bsr_diagonal(k, rows, columns, high, wide, p, j, a, out):
    row, column = block_entries(high, wide, p, j)
    chosen = np.flatnonzero(column - row == k)
    out[...] = scattered(gathered(a.reshape(-1), chosen, True), row[chosen] - max(0, -k), False, out.size)


def block_entries(high: Any, wide: Any, p: Any, j: Any) -> Any:
    """The row and column of every number of every block."""
    n = int(p[-1])
    shape = (n, high, wide)
    row = places_of(p, j)[:n].astype(np.intp)[:, None, None] * high + np.arange(high)[:, None]
    column = j[:n].astype(np.intp)[:, None, None] * wide + np.arange(wide)
    return np.broadcast_to(row, shape).ravel(), np.broadcast_to(column, shape).ravel()


def samples(rows: Any, columns: Any, p: Any, j: Any, n: Any, at_i: Any, at_j: Any) -> Any:
    """Which stored numbers are asked for, by which sample: duplicates are added."""
    offsets = np.empty(n, j.dtype)
    at_i, at_j = at_i.astype(j.dtype, copy=False), at_j.astype(j.dtype, copy=False)
    if tools.csr_sample_offsets(rows, columns, p, j, n, at_i, at_j, offsets) == 0:
        found = np.flatnonzero(offsets >= 0)
        return offsets[found], found
    flat = flat_places(p, j, columns)
    order = np.argsort(flat, kind="stable")
    wanted = (at_i.astype(np.intp) % rows) * columns + at_j.astype(np.intp) % columns
    first, last = (np.searchsorted(flat[order], wanted, side) for side in ("left", "right"))
    count = last - first
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return order[np.repeat(first, count) + within], np.repeat(np.arange(n), count)


constant(block_entries, samples)


@defined("csr_sample_values")
def csr_sample_values(rows, columns, p, j, a, n, at_i, at_j, out):
    positions, found = samples(rows, columns, p, j, n, at_i, at_j)
    out[...] = scattered(gathered(a, positions, False), found, False, n)


def diagonals_as_rows(rows: Any, columns: Any, n: Any, length: Any, offsets: Any, order: Any, p: Any) -> Any:
    """The columns, row by row, of the numbers on diagonals in ascending order, and where they stand in the table."""
    row = np.arange(rows, dtype=np.intp)[:, None]
    k = np.asarray(offsets, np.intp)[order]
    column = row + k
    inside = (column >= 0) & (column < min(columns, length))
    p[...] = np.append(0, np.cumsum(inside.sum(1)))
    table = np.asarray(order, np.intp)[None, :] * length + column
    return column[inside], table[inside]


constant(diagonals_as_rows)


@defined("dia_tocsr")
def dia_tocsr(rows, columns, n, length, offsets, data, order, a, j, p):
    """Numbers that are 0 keep their places; the plain function leaves them out."""
    new_j, places = diagonals_as_rows(rows, columns, n, length, offsets, order, p)
    a[: len(places)] = gathered(data.reshape(-1), places, True)
    j[: len(places)] = new_j
    return len(places)


own_methods = definitions(SimpleNamespace(**vars(getattr(_dia, "_dia_base", object))))  # not those that it inherits


@own_methods("tocoo")
def dia_tocoo(self, copy=False):
    """Of SciPy whose own drops places by their numbers; here those that are 0 stay."""
    rows, columns = self.shape
    n, length = self.data.shape
    column = np.arange(length)
    row = column - self.offsets[:, None]
    inside = (row >= 0) & (row < rows) & (column < columns)
    row, column = row[inside], np.tile(column, n)[inside.ravel()]
    return self._coo_container((self.data[inside], (row, column)), shape=self.shape, dtype=self.dtype)


@own_methods("tocsc")
def dia_tocsc(self, copy=False):
    return self.tocoo().tocsc()
