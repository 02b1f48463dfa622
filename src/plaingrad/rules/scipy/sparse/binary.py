"""Two sparse matrices, number by number: sums, products, quotients, maxima.

SciPy leaves out results that happen to be 0. Differentiated ones keep their places: A - B at A = B has a derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse._sparsetools as tools

from plaingrad.rules.scipy.sparse.facts import constant, defined
from plaingrad.rules.scipy.sparse.products import gathered, row_sums, scattered
from plaingrad.rules.scipy.sparse.structure import segments, sorted_positions


def is_canonical(p: Any, j: Any) -> bool:
    """Whether indices ascend, and none stands twice."""
    return bool(tools.csr_has_canonical_format(len(p) - 1, p, j))


def order_and_segments(p: Any, j: Any) -> Any:
    """The order that brings equal places together, where their runs begin, and the canonical structure."""
    order = sorted_positions(p, j)
    return order, *segments(p, np.append(j[order], j[len(order) :]))


def united(rows: Any, columns: Any, p: Any, j: Any, q: Any, k: Any) -> Any:
    """The union of two canonical structures, which of its places either has, and these as numbers."""
    numbers_a = np.arange(1, len(j) + 1, dtype=np.int64)
    numbers_b = np.arange(1, len(k) + 1, dtype=np.int64) << 32
    new_p, new_j = np.empty_like(p), np.empty(len(j) + len(k), j.dtype)
    both = np.empty(len(new_j), np.int64)
    tools.csr_plus_csr(rows, columns, p, j, numbers_a, q, k, numbers_b, new_p, new_j, both)
    both = both[: int(new_p[-1])]
    in_a, in_b = both & 0xFFFFFFFF != 0, both >> 32 != 0
    return new_p, new_j[: len(both)], in_a, in_b, np.flatnonzero(in_a), np.flatnonzero(in_b)


constant(is_canonical, order_and_segments, united)


def canonical(p, j, a):
    """The same matrix with ascending indices and without repetitions; `a` may have an axis for each block."""
    if is_canonical(p, j):
        return p, j, a
    order, starts, new_p, new_j = order_and_segments(p, j)
    flat = gathered(a, order, True).reshape(len(order), -1)
    return new_p, new_j, row_sums(starts, len(new_j), flat).reshape(len(new_j), *a.shape[1:])


def kept(name: Any, in_a: Any, in_b: Any, a: Any, b: Any, z: Any) -> Any:
    """Which places the result has, of a sum all: those that may have a derivative, and those that are not 0."""
    axes = tuple(range(1, np.ndim(z)))
    if name == "elmul":
        return in_a & in_b
    if name == "eldiv":
        return in_a | np.any(z != 0, axes)
    return np.any(z != 0, axes) | in_a & np.any(a == 0, axes) | in_b & np.any(b == 0, axes)


def counts(p: Any, keep: Any) -> Any:
    """The index pointer after only the places in `keep` stay."""
    return np.append(0, np.cumsum(keep))[p]


def places_kept(name: Any, in_a: Any, in_b: Any, a: Any, b: Any, z: Any) -> Any:
    """The numbers of the places that stay, and a mask of them."""
    keep = kept(name, in_a, in_b, a, b, z)
    return np.flatnonzero(keep), keep


constant(counts, places_kept)

OPERATIONS = {
    "plus": np.add, "minus": np.subtract, "elmul": np.multiply, "eldiv": np.divide, "maximum": np.maximum,
    "minimum": np.minimum,
}  # fmt: skip


def combine(name, rows, columns, p, j, a, q, k, b, new_p, new_j, out):
    """Write operation(A, B); the numbers in a and b are rows: of one number, or of the block's."""
    p, j, a = canonical(p, j, a[: int(p[-1])])
    q, k, b = canonical(q, k, b[: int(q[-1])])
    all_p, all_j, in_a, in_b, at_a, at_b = united(rows, columns, p, j[: len(a)], q, k[: len(b)])
    a, b = scattered(a, at_a, True, len(all_j)), scattered(b, at_b, True, len(all_j))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = OPERATIONS[name](a, b)
    if name in ("plus", "minus"):
        new_p[...], new_j[: len(all_j)], out[: len(all_j)] = all_p, all_j, z
        return
    chosen, keep = places_kept(name, in_a, in_b, a, b, z)
    new_p[...] = counts(all_p, keep)
    new_j[: len(chosen)] = all_j[chosen]
    out[: len(chosen)] = z if len(chosen) == len(z) else gathered(z, chosen, True)


def enter_binary(name: str) -> None:
    """The definitions of csr_NAME_csr and bsr_NAME_bsr."""

    @defined(f"csr_{name}_csr")
    def of_numbers(rows, columns, p, j, a, q, k, b, new_p, new_j, out):
        combine(name, rows, columns, p, j, a, q, k, b, new_p, new_j, out)

    @defined(f"csc_{name}_csc")
    def of_columns(rows, columns, p, j, a, q, k, b, new_p, new_j, out):
        combine(name, columns, rows, p, j, a, q, k, b, new_p, new_j, out)

    @defined(f"bsr_{name}_bsr")
    def of_blocks(rows, columns, high, wide, p, j, a, q, k, b, new_p, new_j, out):
        size = high * wide
        a, b, blocks = a.reshape(-1, size), b.reshape(-1, size), out.reshape(-1, size)
        combine(name, rows, columns, p, j[: len(a)], a, q, k[: len(b)], b, new_p, new_j, blocks)


for operation in OPERATIONS:
    enter_binary(operation)
