"""Colouring of sparse matrices: which columns (rows) may share one sweep, and where each entry is then read off.

A pattern is given in compressed rows, `starts` and `columns`: the columns with an entry in row i are
`columns[starts[i]:starts[i + 1]]`, in ascending order. Four kinds of groups are made:

- columns: two of one colour have no row in common, so J v for v = the sum of their unit vectors shows every entry;
- rows: the same for the transpose, and v J;
- symmetric: for a symmetric matrix it is enough that every entry h_ij is alone in its colour in row i *or* in row j,
  which a star colouring gives: neighbours differ, and no path of four vertices has two colours only;
- both: groups of columns and groups of rows, for matrices with a few dense rows and a few dense columns.

Sources: T. F. Coleman and J. J. More, SIAM J. Numer. Anal. 20 (1983) 187-209, for columns; A. H. Gebremedhin,
A. Tarafdar, F. Manne and A. Pothen, SIAM J. Sci. Comput. 29 (2007) 1042-1072, algorithm 4.1, for stars. Sets of
colours are kept as the bits of Python's integers, so both take a few operations for each entry of the pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Literal

import numpy as np

from plaingrad.engine.sparsity.index_sets import distinct

Kind = Literal["columns", "rows", "symmetric"]

UNCOLOURED = -1  # of a column or row without entries: it needs no sweep
# Beyond so many pairs of columns that meet, the best of the greedy orders takes too long.
MANY_PAIRS = 300_000
TRIES = 6  # how many periods beyond the smallest possible are tried
ENOUGH = 6  # so few groups of columns, or of rows, need no mixture of both
MANY_ENTRIES = 1_000_000  # beyond so many no mixture is tried


@dataclass(frozen=True)
class Colouring:
    """Groups of columns or rows, and where the values of some entries of the pattern are found by them.

    Attributes:
        kind: what was grouped.
        colours: the group of each column (row); -1 where it is in none.
        count: how many groups there are, each of which takes one sweep.
        entries: the entries that are found, by their place in the pattern.
        sweep: for each of them, the group whose sweep shows it.
        place: for each of them, which element of that sweep's result it is.
    """

    kind: Kind
    colours: np.ndarray
    count: int
    entries: np.ndarray
    sweep: np.ndarray
    place: np.ndarray

    def seeds(self, first: int, last: int) -> np.ndarray:
        """The sums of unit vectors of groups `first` to `last` (excluded), one a row."""
        seeds = np.zeros((last - first, self.colours.size))
        members = np.flatnonzero((self.colours >= first) & (self.colours < last))
        seeds[self.colours[members] - first, members] = 1.0
        return seeds

    def chunks(self, size: int) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]]:
        """(seeds, entries, where) for `size` groups at a time: products of the seeds show `entries`, at `where`."""
        if 0 < self.count <= size:
            yield self.seeds(0, self.count), self.entries, (self.sweep, self.place)
            return
        order = np.argsort(self.sweep, kind="stable")
        bounds = np.searchsorted(self.sweep[order], np.arange(self.count + 1))
        for first in range(0, self.count, size):
            last = min(first + size, self.count)
            shown = order[bounds[first] : bounds[last]]
            yield self.seeds(first, last), self.entries[shown], (self.sweep[shown] - first, self.place[shown])


def made(kind: Kind, colours: np.ndarray, entries: np.ndarray, sweep: Any, place: Any) -> Colouring:
    """A colouring without the colours that show nothing."""
    needed = np.zeros(number_of(colours), bool)
    needed[sweep] = True
    renamed = np.append(np.where(needed, np.cumsum(needed) - 1, UNCOLOURED), UNCOLOURED)
    return Colouring(kind, renamed[colours], int(needed.sum()), entries, renamed[sweep], place)


def colour_columns(starts: np.ndarray, columns: np.ndarray, n: int) -> Colouring:
    """Groups of the `n` columns such that no row has two entries in one group."""
    colours = structurally_orthogonal(starts, columns, n)
    return made("columns", colours, np.arange(columns.size), colours[columns], rows_of(starts))


def colour_rows(starts: np.ndarray, columns: np.ndarray, n: int) -> Colouring:
    """Groups of the rows such that none of the `n` columns has two entries in one group."""
    colours = structurally_orthogonal(*transposed(starts, columns, n), starts.size - 1)
    return made("rows", colours, np.arange(columns.size), colours[rows_of(starts)], columns)


def colour_symmetric(starts: np.ndarray, columns: np.ndarray) -> Colouring:
    """Groups of the columns of a symmetric pattern such that each entry can be read, or its mirror image can."""
    colours = star_colours(starts, columns)
    rows = rows_of(starts)
    # The sweep of colour c shows the sum of row i over the columns of colour c. Entry (i, j) with i <= j is read in
    # row i where j is alone there, else in row j where i is alone; (j, i) is read at the same place, so that the
    # result is symmetric to the last bit.
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    alone = counts_of_colours(rows, columns, colours).of(low, colours[high]) == 1
    sweep, place = np.where(alone, colours[high], colours[low]), np.where(alone, low, high)
    return made("symmetric", colours, np.arange(columns.size), sweep, place)


def colour_both(starts: np.ndarray, columns: np.ndarray, n: int) -> tuple[Colouring, Colouring]:
    """Groups of columns and groups of rows such that each entry is alone in one of them.

    It is a star colouring of the graph whose vertices are the rows and the columns, and whose edges are the entries.
    """
    m = starts.size - 1
    rows = rows_of(starts)
    column_starts, rows_in_columns = transposed(starts, columns, n)
    colours = star_colours(
        np.concatenate([starts, starts[-1] + column_starts[1:]]),
        np.concatenate([columns + m, rows_in_columns]),
    )
    of_rows, of_columns = colours[:m], colours[m:]
    by_column = counts_of_colours(rows, columns, of_columns).of(rows, of_columns[columns]) == 1
    by_row = counts_of_colours(columns, rows, of_rows).of(columns, of_rows[rows]) == 1
    # Entries that both ways would show join a sweep that is made anyway.
    free = by_column & by_row
    column_needed = np.isin(of_columns[columns], of_columns[columns[~by_row]])
    row_needed = np.isin(of_rows[rows], of_rows[rows[~by_column]])
    by_column &= ~(free & row_needed & ~column_needed)
    there, here = np.flatnonzero(by_column), np.flatnonzero(~by_column)
    return (
        made("columns", of_columns, there, of_columns[columns[there]], rows[there]),
        made("rows", of_rows, here, of_rows[rows[here]], columns[here]),
    )


def cheapest(starts: np.ndarray, columns: np.ndarray, n: int) -> tuple[Colouring, ...]:
    """Groups of columns, or of rows, or of both, whichever are fewer."""
    one = fewer_of_two(starts, columns, n)
    if one.count <= ENOUGH or columns.size > MANY_ENTRIES:
        return (one,)
    # A mixture helps where nearly all rows and columns are short, and a few are long.
    usual = sum(
        np.quantile(lengths, 0.95) for lengths in (np.diff(starts), np.bincount(columns, minlength=n))
    )
    if usual >= one.count / 2:
        return (one,)
    both = colour_both(starts, columns, n)
    # A reverse sweep costs a few forward ones, and the function is run for both.
    return both if sum(part.count for part in both) < one.count / 2 else (one,)


def fewer_of_two(starts: np.ndarray, columns: np.ndarray, n: int) -> Colouring:
    """Columns or rows, whichever are fewer groups; columns if that is the same."""
    fewest_columns = int(np.diff(starts).max(initial=0))
    fewest_rows = int(np.bincount(columns, minlength=n).max(initial=0))
    if fewest_columns <= fewest_rows:
        first, second, bound = colour_columns, colour_rows, fewest_rows
    else:
        first, second, bound = colour_rows, colour_columns, fewest_columns
    one = first(starts, columns, n)
    if one.count < bound or (one.count == bound and one.kind == "columns"):
        return one
    other = second(starts, columns, n)
    if one.count == other.count:
        return one if one.kind == "columns" else other
    return one if one.count < other.count else other


# -- columns that have no row in common ------------------------------------------------------------------------------


def structurally_orthogonal(starts: np.ndarray, columns: np.ndarray, n: int) -> np.ndarray:
    """A colour for each column, such that no row has two of one colour; the best that a few orders find."""
    colours = np.full(n, UNCOLOURED)
    if columns.size == 0:
        return colours
    fewest = int(np.diff(starts).max())
    used = np.bincount(columns, minlength=n) > 0
    best = periodic_columns(starts, columns, n, fewest)
    if best is None or number_of(best) > fewest:
        for found in greedy_colourings(starts, columns, n):
            if best is None or number_of(found) < number_of(best):
                best = found
            if number_of(best) == fewest:
                break
    assert best is not None
    colours[used] = best[used]
    return colours


def periodic_columns(starts: np.ndarray, columns: np.ndarray, n: int, fewest: int) -> np.ndarray | None:
    """Colours j mod p, where a small p will do: bands, periodic bands, and many grids."""
    rows = rows_of(starts)
    for period in range(fewest, min(fewest + TRIES, n) + 1):
        if distinct(rows * period + columns % period).size == columns.size:
            return np.arange(n) % period
    return None


def greedy_columns(row_starts: np.ndarray, rows: np.ndarray, m: int, order: np.ndarray) -> np.ndarray:
    """In `order`, each column gets the first colour that none of its rows has seen."""
    colours = np.zeros(row_starts.size - 1, int)
    bounds, members = row_starts.tolist(), rows.tolist()
    seen = [0] * m  # for each row, the colours of its columns so far, as bits
    for j in order.tolist():
        mine = members[bounds[j] : bounds[j + 1]]
        forbidden = 0
        for i in mine:
            forbidden |= seen[i]
        bit = ~forbidden & (forbidden + 1)  # the lowest bit that is not set
        colours[j] = bit.bit_length() - 1
        for i in mine:
            seen[i] |= bit
    return colours


def greedy_colourings(starts: np.ndarray, columns: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Colourings of the columns as they come; those that meet most others first; the most constrained first."""
    row_starts, rows = transposed(starts, columns, n)
    yield greedy_columns(row_starts, rows, starts.size - 1, np.arange(n))
    lengths = np.diff(starts)
    meetings = np.bincount(columns, np.repeat(lengths - 1, lengths), n)
    yield greedy_columns(row_starts, rows, starts.size - 1, np.argsort(-meetings, kind="stable"))
    if meetings.sum() <= MANY_PAIRS:
        yield saturated_first(*columns_that_meet(starts, columns, n))


def saturated_first(bounds: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """The first free colour, always for the vertex whose neighbours have most colours (D. Brelaz, CACM 22, 1979)."""
    at, members, degrees = bounds.tolist(), neighbours.tolist(), np.diff(bounds).tolist()
    n = len(degrees)
    colours = [UNCOLOURED] * n
    forbidden = [0] * n
    heap = [(0, -degree, v) for v, degree in enumerate(degrees)]  # (-colours beside it, -degree, vertex)
    heapify(heap)
    while heap:
        _, _, v = heappop(heap)
        if colours[v] != UNCOLOURED:
            continue
        bit = ~forbidden[v] & (forbidden[v] + 1)
        colours[v] = bit.bit_length() - 1
        for w in members[at[v] : at[v + 1]]:
            if colours[w] == UNCOLOURED and not forbidden[w] & bit:
                forbidden[w] |= bit
                heappush(heap, (-forbidden[w].bit_count(), -degrees[w], w))
    return np.array(colours, int)


def columns_that_meet(starts: np.ndarray, columns: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The graph in which two columns are neighbours if some row has both."""
    lengths = np.diff(starts)
    left = np.repeat(columns, np.repeat(lengths, lengths))
    # for each entry, the whole of its row
    ends = np.cumsum(np.repeat(lengths, lengths))
    begins = ends - np.repeat(lengths, lengths)
    within = np.arange(ends[-1] if ends.size else 0) - np.repeat(begins, np.repeat(lengths, lengths))
    right = columns[np.repeat(np.repeat(starts[:-1], lengths), np.repeat(lengths, lengths)) + within]
    pairs = distinct(left[left != right] * n + right[left != right])
    return np.searchsorted(pairs // n, np.arange(n + 1)), pairs % n


# -- stars -----------------------------------------------------------------------------------------------------------


def star_colours(starts: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A colour for each row and column of a symmetric pattern; the best that a few orders find."""
    n = starts.size - 1
    colours = np.full(n, UNCOLOURED)
    if columns.size == 0:
        return colours
    rows = rows_of(starts)
    used = np.diff(starts) > 0
    beside = rows != columns
    neighbours = columns[beside]
    bounds = np.searchsorted(rows[beside], np.arange(n + 1))
    degrees = np.diff(bounds)
    best = np.zeros(n, int)
    if neighbours.size:
        best = greedy_stars(bounds, neighbours, np.argsort(-degrees, kind="stable"), n + 1)
        assert best is not None
        for better in (
            greedy_stars(bounds, neighbours, np.arange(n), number_of(best)),
            periodic_stars(rows, columns, n, number_of(best)),
        ):
            if better is not None and number_of(better) < number_of(best):
                best = better
    colours[used] = best[used]
    return colours


def greedy_stars(
    bounds: np.ndarray, neighbours: np.ndarray, order: np.ndarray, below: int
) -> np.ndarray | None:
    """In `order`, each vertex gets the first colour that leaves no path of four vertices with two colours only.

    None, if that takes `below` colours or more.

    Vertex v may not have the colour of a neighbour w; nor, where w has no colour yet, that of another neighbour of w
    (w would join two alike, and could not be told from the fourth vertex later); nor, where w has colour c, that of a
    neighbour x of w which has a second neighbour of colour c.
    """
    n = bounds.size - 1
    at, members = bounds.tolist(), neighbours.tolist()
    bits = [0] * n  # the colour of each vertex, as a bit; 0: none yet
    around = [0] * n  # the colours of the coloured neighbours
    joined = [
        0
    ] * n  # of coloured w: the colours of its neighbours that have a second neighbour coloured as w
    first: dict[tuple[int, int], int] = {}  # (x, bit) -> the first neighbour of x so coloured
    for v in order.tolist():
        mine = members[at[v] : at[v + 1]]
        forbidden = around[v]
        for w in mine:
            forbidden |= joined[w] if bits[w] else around[w]
        bit = ~forbidden & (forbidden + 1)
        if bit.bit_length() >= below:
            return None
        bits[v] = bit
        for x in mine:
            if around[x] & bit:
                if bits[x]:
                    joined[v] |= bits[x]
                    joined[first[x, bit]] |= bits[x]
            else:
                around[x] |= bit
                first[x, bit] = v
    return np.array([bit.bit_length() - 1 for bit in bits])


def periodic_stars(rows: np.ndarray, columns: np.ndarray, n: int, below: int) -> np.ndarray | None:
    """Colours j mod p for the least p < `below` that will do, if any."""
    for period in range(2, min(below, 16)):
        colours = np.arange(n) % period
        if is_star_colouring(rows, columns, colours):
            return colours
    return None


def is_star_colouring(rows: np.ndarray, columns: np.ndarray, colours: np.ndarray) -> bool:
    """Whether neighbours differ, and every entry is alone in its colour in its row, or its mirror image is."""
    beside = rows != columns
    if np.any(colours[rows[beside]] == colours[columns[beside]]):
        return False
    counts = counts_of_colours(rows, columns, colours)
    return bool(np.all((counts.of(rows, colours[columns]) == 1) | (counts.of(columns, colours[rows]) == 1)))


class counts_of_colours:
    """How many columns of each colour each row has."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, colours: np.ndarray) -> None:
        self.width = number_of(colours)
        self.keys, self.counts = np.unique(rows * self.width + colours[columns], return_counts=True)

    def of(self, rows: np.ndarray, colours: np.ndarray) -> np.ndarray:
        """The number of columns of each of `colours` in each of `rows`, all of which occur."""
        return self.counts[np.searchsorted(self.keys, rows * self.width + colours)]


# -- small pieces ----------------------------------------------------------------------------------------------------


def rows_of(starts: np.ndarray) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(starts.size - 1), np.diff(starts))


def transposed(starts: np.ndarray, columns: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The same pattern with rows and columns exchanged, for a matrix with `n` columns."""
    order = np.argsort(columns, kind="stable")
    column_starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=n))])
    return column_starts, rows_of(starts)[order]


def number_of(colours: np.ndarray) -> int:
    """How many colours there are."""
    return int(colours.max(initial=UNCOLOURED)) + 1
