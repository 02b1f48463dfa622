"""Functions and methods that write into an array, in terms of `a[...] = `, which the engine sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent
from plaingrad.rules.numpy.names import methods


def sort_in_place(self, axis=-1, kind=None, order=None, **options):
    """self[...] = sorted."""
    if axis is None:
        raise TypeError("an array cannot be sorted in place over all its axes")
    self[...] = np.sort(self, axis, kind, order)


def partition_in_place(self, kth, axis=-1, kind="introselect", order=None):
    """self[...] = partitioned."""
    self[...] = np.partition(self, kth, axis, kind, order)


def fill(self, value):
    """self[...] = value."""
    self[...] = value


def flat_places(a: Any, ind: Any, mode: str) -> tuple[Any, ...]:
    """The subscript of `a` for positions `ind` in the flattened array."""
    return np.unravel_index(np.arange(a.size).take(np.ravel(ind), mode=mode), a.shape)


def cycled(v: Any, n: int) -> Any:
    """The elements of `v`, again and again, `n` in all."""
    v = np.ravel(v)
    return v if v.size == n else v[np.arange(n) % v.size] if n else v[:0]


def put(a, ind, v, mode="raise"):
    """a.flat[ind] = v, with `v` repeated as needed."""
    if np.size(ind):
        a[flat_places(a, ind, mode)] = cycled(v, np.size(ind))


def put_method(self, indices, values, mode="raise"):
    """As the function."""
    put(self, indices, values, mode)


def place(arr, mask, vals):
    """The first N values of `vals` at the N places where `mask` holds."""
    chosen = np.flatnonzero(mask)
    if chosen.size:
        if np.size(vals) == 0:
            raise ValueError("Cannot insert from an empty array!")
        if arr.ndim == 0:
            arr[()] = np.ravel(vals)[0]
            return
        arr[np.unravel_index(chosen, arr.shape)] = cycled(vals, chosen.size)


def putmask(a, mask, values):
    """a.flat[i] = values[i % len(values)] for every i where `mask` holds."""
    chosen = np.flatnonzero(mask)
    if chosen.size and np.size(values):
        v = np.ravel(values)
        if a.ndim == 0:
            a[()] = v[0]
            return
        a[np.unravel_index(chosen, a.shape)] = v[chosen % v.size]


def copyto(dst, src, casting="same_kind", where=True):
    """dst[where] = src."""
    if where is True:
        dst[...] = src
        return
    where = np.broadcast_to(where, dst.shape)
    dst[where] = np.broadcast_to(src, dst.shape)[where]


for f in methods("sort", types=(np.ndarray,)):
    composed(f, mutates=True)(sort_in_place)
for f in methods("partition", types=(np.ndarray,)):
    composed(f, mutates=True)(partition_in_place)
for f in methods("fill", types=(np.ndarray,)):
    composed(f, mutates=True)(fill)
for f in methods("put", types=(np.ndarray,)):
    composed(f, mutates=True)(put_method)
no_tangent(*methods("sort", "partition", "fill", "put", types=(np.generic,)))  # of a copy that nobody sees
composed(np.put, mutates=True)(put)
composed(np.place, mutates=True)(place)
composed(np.putmask, mutates=True)(putmask)
composed(np.copyto, mutates=True)(copyto)
