"""Matrices as lists of rows ("lil"): the compiled functions on lists, in Python that the engine can follow."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from scipy.sparse import _csparsetools as tools

from plaingrad.define import _source_of
from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.sparse.facts import constant


def entry(rows: Any, values: Any, i: Any, j: Any) -> Any:
    """The stored value at (i, j), or 0."""
    k = bisect_left(rows[i], j)
    return values[i][k] if k < len(rows[i]) and rows[i][k] == j else 0


def within(index: Any, n: int, what: str) -> int:
    """A row or column number, counted from the front."""
    index = int(index)
    if index < -n or index >= n:
        raise IndexError(f"{what} index ({index}) out of bounds")
    return index + n if index < 0 else index


def lil_get1(M, N, rows, datas, i, j):
    return entry(rows, datas, within(i, M, "row"), within(j, N, "column"))


def lil_insert(M, N, rows, datas, i, j, x):
    """A differentiated 0 is stored as it is; the plain function takes the place away."""
    i, j = within(i, M, "row"), within(j, N, "column")
    row, values = rows[i], datas[i]
    k = bisect_left(row, j)
    if k < len(row) and row[k] == j:
        values[k] = x
    else:
        row.insert(k, j)
        values.insert(k, x)


def lil_flatten_to_array(input, output):
    position = 0
    for values in input:
        for value in values:
            output[position] = value
            position += 1


def lil_get_row_ranges(M, N, rows, datas, new_rows, new_datas, irows, j_start, j_stop, j_stride, nj):
    columns = range(j_start, j_stop, j_stride)
    for k, i in enumerate(irows):
        i = within(i, M, "row")
        found = [(columns.index(j), n) for n, j in enumerate(rows[i]) if j in columns]
        found.sort()
        values = datas[i]
        new_rows[k] = [place for place, _ in found]
        new_datas[k] = [values[n] for _, n in found]


def lil_fancy_get(M, N, rows, datas, new_rows, new_datas, i_idx, j_idx):
    for x in range(i_idx.shape[0]):
        places, values = [], []
        for y in range(i_idx.shape[1]):
            i, j = within(i_idx[x, y], M, "row"), within(j_idx[x, y], N, "column")
            k = bisect_left(rows[i], j)
            if k < len(rows[i]) and rows[i][k] == j:
                places.append(y)
                values.append(datas[i][k])
        new_rows[x] = places
        new_datas[x] = values


def lil_fancy_set(M, N, rows, data, i_idx, j_idx, values):
    for x in range(i_idx.shape[0]):
        for y in range(i_idx.shape[1]):
            lil_insert(M, N, rows, data, i_idx[x, y], j_idx[x, y], values[x, y])


DEFINITIONS = (lil_get1, lil_insert, lil_flatten_to_array, lil_get_row_ranges, lil_fancy_get, lil_fancy_set)
for definition in DEFINITIONS:
    function = getattr(tools, definition.__name__, None)
    if function is not None:
        keep(Rule(function, "composed", definition=definition, source=_source_of(definition)))
constant(getattr(tools, "lil_get_lengths", None), within)
