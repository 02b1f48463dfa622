"""C = A B of sparse matrices: a sum over triples (c, a, b) of stored numbers, of which each is linear in the two others.

With T = sum of C[i, j] A[i, k] B[k, j], the derivatives of T by C, A and B are one function, closed under differentiation.
They cost what the product costs, whatever the structures: the full matrices C_bar B^T and A^T C_bar are never made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse._sparsetools as tools

from plaingrad.rules.numpy.names import conj
from plaingrad.rules.pushforwards import pushed, total
from plaingrad.rules.scipy.sparse.facts import constant, defined, each, enter
from plaingrad.rules.scipy.sparse.products import AT_ONCE, places_of
from plaingrad.rules.scipy.sparse.structure import sorted_positions
from plaingrad.tangents import NoTangent, Thunk

KEPT = 2  # triples that are kept, for each number of the three matrices


class Triples:
    """The structure of C = A B: which numbers of C, A and B meet.

    Attributes:
        shape: rows and columns of C.
        a: the index pointer and the indices of A.
        b: those of B.
        c: those of C, in the order in which it is computed.
        lengths: how many numbers C, A and B have.
    """

    def __init__(self, shape: Any, a: Any, b: Any, c: Any) -> None:
        self.shape, self.a, self.b, self.c = shape, a, b, c
        self.lengths = len(c[1]), len(a[1]), len(b[1])
        self._kept: Any = None

    def parts(self) -> Any:
        """Positions (in C, in A, in B), for so many numbers of A at a time that they stay in the cache.

        Where the triples are no more than a few for each number of the matrices, they are kept for the next sum.
        """
        if self._kept is not None:
            return self._kept
        (p, j), (q, _) = self.a, self.b
        count = int(np.sum(np.diff(q)[j[: int(p[-1])]], dtype=np.intp))
        if count <= KEPT * sum(self.lengths):
            self._kept = list(self.found())
            return self._kept
        return self.found()

    def found(self) -> Any:
        """The same, found anew."""
        (p, j), (q, k), (new_p, new_j) = self.a, self.b, self.c
        order = sorted_positions(new_p, new_j)
        sorted_j, row, n = new_j[order], places_of(p, j), int(p[-1])
        count = np.diff(q)[j[:n]].astype(np.intp)
        ends, first = np.cumsum(count), 0
        while first < n:
            done = int(ends[first - 1]) if first else 0
            last = min(n, max(first + 1, int(np.searchsorted(ends, done + AT_ONCE))))
            lengths = count[first:last]
            at_a = np.repeat(np.arange(first, last), lengths)
            at_b = np.arange(len(at_a)) + np.repeat(q[j[first:last]] - (ends[first:last] - lengths - done), lengths)
            at_c = np.empty(len(at_a), sorted_j.dtype)
            i, column = row[at_a].astype(sorted_j.dtype), k[at_b].astype(sorted_j.dtype)
            tools.csr_sample_offsets(*self.shape, new_p, sorted_j, len(at_a), i, column, at_c)
            yield order[at_c], at_a, at_b
            first = last


def computed(shape: Any, a: Any, b: Any, values: Any, capacity: int) -> Any:
    """The index arrays of A B, its numbers, and whether all are there that the structures allow."""
    p, j = np.empty(len(a[0]), a[1].dtype), np.empty(capacity, a[1].dtype)
    z = np.empty(capacity, np.result_type(*values))
    tools.csr_matmat(*shape, *a, values[0], *b, values[1], p, j, z)
    n = int(p[-1])
    return (p, j[:n]), z[:n], n == capacity


def structure_of(shape: Any, a: Any, b: Any, values: Any, capacity: int) -> Triples:
    """The triples of A B, with the places where its numbers happen to be 0."""
    c, _, whole = computed(shape, a, b, values, capacity)
    if not whole:
        ones = [np.ones(len(part[1])) for part in (a, b)]
        c, _, _ = computed(shape, a, b, ones, capacity)
    return Triples(shape, a, b, c)


constant(computed, structure_of)


def contracted(which: int, triples: Triples, u: Any, v: Any) -> Any:
    """C (0), A (1) or B (2) as the sum of the products of the numbers of the two others, given in this order."""
    dtype = np.result_type(u, v)
    if which == 0:
        _, z, whole = computed(triples.shape, triples.a, triples.b, (u, v), triples.lengths[0])
        if whole:
            return z
    z = np.zeros(triples.lengths[which], dtype)
    for at in triples.parts():
        if len(at[0]):
            first, second = (at[n] for n in range(3) if n != which)
            low = int(at[which].min())
            part = summed(at[which] - low, u[first] * v[second])
            z[low : low + len(part)] += part.astype(dtype, copy=False)
    return z


def summed(places: Any, values: Any) -> Any:
    """The sums of the values with the same place."""
    if np.iscomplexobj(values):
        return np.bincount(places, values.real) + 1j * np.bincount(places, values.imag)
    return np.bincount(places, values)


def contracted_rrule(which: int, triples: Triples, u: Any, v: Any) -> Any:
    z = contracted(which, triples, u, v)
    of_u, of_v = (n for n in range(3) if n != which)

    def bar(n: int, other: Any, z_bar: Any) -> Any:
        """Arguments come in the order C, A, B."""
        other, z_bar = conj(other), z_bar
        place = {which: z_bar, (of_v if n == of_u else of_u): other}
        first, second = [place[key] for key in sorted(place)]
        return contracted(n, triples, first, second)

    def contracted_pullback(z_bar: Any) -> Any:
        return NoTangent, NoTangent, Thunk(lambda: bar(of_u, v, z_bar)), Thunk(lambda: bar(of_v, u, z_bar))

    return z, contracted_pullback


def contracted_frule(which: int, triples: Triples, u: Any, v: Any) -> Any:
    z = contracted(which, triples, u, v)

    def contracted_pushforward(dots: Any) -> Any:
        return total(
            pushed(lambda u_dot: each(lambda part: contracted(which, triples, part, v), u_dot, u), dots[2]),
            pushed(lambda v_dot: each(lambda part: contracted(which, triples, u, part), v_dot, v), dots[3]),
        )

    return z, contracted_pushforward


enter(contracted, contracted_rrule, contracted_frule)


@defined("csr_matmat")
def csr_matmat(rows, columns, p, j, a, q, k, b, new_p, new_j, out):
    triples = structure_of((rows, columns), (p, j), (q, k), (a, b), len(out))
    new_p[...] = triples.c[0]
    n = triples.lengths[0]
    new_j[:n] = triples.c[1]
    out[:n] = contracted(0, triples, a, b)


@defined("csc_matmat")
def csc_matmat(rows, columns, p, j, a, q, k, b, new_p, new_j, out):
    """In columns the factors change places."""
    csr_matmat(columns, rows, q, k, b, p, j, a, new_p, new_j, out)


@defined("bsr_matmat")
def bsr_matmat(most, rows, columns, high, wide, inner, p, j, a, q, k, b, new_p, new_j, out):
    """Blocks: the structure is that of the blocks, and of each triple a product of small matrices is summed."""
    ones = np.ones(len(j)), np.ones(len(k))
    triples = structure_of((rows, columns), (p, j), (q, k), ones, most)
    new_p[...] = triples.c[0]
    n = triples.lengths[0]
    new_j[:n] = triples.c[1]
    a, b = a.reshape(-1, high, inner), b.reshape(-1, inner, wide)
    z = out.reshape(-1, high, wide)
    z[...] = 0
    for r in range(high):
        for c in range(wide):
            for i in range(inner):
                z[:n, r, c] += contracted(0, triples, a[:, r, i], b[:, i, c])


@defined("dia_matmat")
def dia_matmat(rows, columns, n, length, offsets, a, b_columns, m, b_length, b_offsets, b):
    """Diagonals k and l meet on the diagonal k + l: C[c - k - l, c] += A[c - k - l, c - l] B[c - l, c]."""
    found = sum_offsets(rows, b_columns, offsets, b_offsets)
    wide = min(rows + int(found[-1]), b_columns)
    z = np.zeros((len(found), wide), np.result_type(a, b))
    a, b = a.reshape(n, length), b.reshape(m, b_length)
    for d in range(n):
        for e in range(m):
            k, shift = int(offsets[d]), int(b_offsets[e])
            first = max(0, shift, k + shift)
            last = min(b_length, b_columns, columns + shift, rows + k + shift, length + shift)
            if first < last:
                row = int(np.searchsorted(found, k + shift))
                z[row, first:last] += a[d, first - shift : last - shift] * b[e, first:last]
    return found, z.reshape(-1)


def sum_offsets(rows: Any, columns: Any, offsets: Any, b_offsets: Any) -> Any:
    """The diagonals of the product, in ascending order."""
    found = np.unique(np.add.outer(offsets, b_offsets))
    inside = found[(found > -rows) & (found < columns)]
    return inside.astype(offsets.dtype) if len(inside) else np.zeros(1, offsets.dtype)


constant(sum_offsets)
