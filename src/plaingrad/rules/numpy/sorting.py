"""Sorting, partitioning, and what is found by sorting.

`order` says where each result came from; elements that tie keep their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.indexing import add_along_axis, add_at_indices, taken_along_axis
from plaingrad.rules.numpy.names import array, at_axis, functions
from plaingrad.rules.pushforwards import both_forms, pushed


def ordered(a: Any, order: Any, axis: Any) -> Any:
    """`a` rearranged along `axis`, where `order` came from argsort or argpartition."""
    return np.take_along_axis(a, order, axis)


def order_of(a: Any, z: Any, axis: Any) -> Any:
    """Where the elements of z, which is `a` sorted, came from. A stable sort takes ten times as long: only if some tie."""
    along = -1 if axis is None else axis
    below = z[at_axis(slice(None, -1), along, z.ndim)]
    ties = (below == z[at_axis(slice(1, None), along, z.ndim)]) | np.isnan(below)
    return np.argsort(a, axis, "stable" if np.any(ties) else None)


no_tangent(order_of)


def sorting_pullback(a: Any, order: Any, axis: Any) -> Any:
    """z_bar put back in the order of `a`."""

    def sort_pullback(z_bar):
        if axis is None:
            return (np.reshape(add_at_indices(z_bar, order, 0, np.size(a)), np.shape(a)),)
        return (add_along_axis(z_bar, order, axis, np.shape(a)),)

    return sort_pullback


@rrule(np.sort)
def sort_rrule(a, axis=-1, kind=None, order=None, **options):
    a = array(a)
    z = np.sort(a, axis, kind, order, **options)
    return z, sorting_pullback(a, order_of(a, z, axis), axis)


@both_forms(np.sort, affine=True)
def sort_frule(a, axis=-1, kind=None, order=None, **options):
    z = np.sort(a, axis, kind, order, **options)
    return z, lambda dots: pushed(taken_along_axis, dots[0], a, order_of(a, z, axis), axis)


@rrule(np.partition)
def partition_rrule(a, kth, axis=-1, kind="introselect", order=None):
    a = array(a)
    places = np.argpartition(a, kth, axis, kind, order)
    line = np.ravel(a) if axis is None else a
    return np.take_along_axis(line, places, -1 if axis is None else axis), sorting_pullback(a, places, axis)


@both_forms(np.partition, affine=True)
def partition_frule(a, kth, axis=-1, kind="introselect", order=None):
    places = np.argpartition(a, kth, axis, kind, order)
    line = np.ravel(a) if axis is None else np.asarray(a)
    z = np.take_along_axis(line, places, -1 if axis is None else axis)
    return z, lambda dots: pushed(taken_along_axis, dots[0], a, places, axis)


@composed(np.sort_complex)
def sort_complex(a):
    """The rows, sorted, in complex numbers: of double precision but for small integers and long doubles."""
    z = np.sort(a)
    if np.iscomplexobj(z):
        return z
    return z.astype("F" if z.dtype.char in "bhBH" else "G" if z.dtype.char == "g" else "D")


for f in functions("msort"):
    composed(f)(lambda a: np.sort(a, axis=0))


def first_places(ar: Any, axis: Any, options: dict[str, Any]) -> Any:
    """Where each unique element is first met, in the order in which np.unique gives them."""
    unique, places = np.unique(ar, return_index=True, axis=axis, **{k: v for k, v in options.items() if k != "sorted"})
    if options.get("sorted", True):
        return places
    return places[np.searchsorted(unique, np.unique(ar, axis=axis, **options))]


def other_results(ar: Any, wanted: tuple[bool, bool, bool], axis: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """The indices, inverse and counts that were asked for."""
    results = np.unique(ar, *wanted, axis=axis, **options)
    return results[1:] if any(wanted) else ()


no_tangent(first_places, other_results)


@composed(np.unique)
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, **options):
    """The elements at their first places."""
    ar = np.asanyarray(ar)
    z = np.take(ar, first_places(ar, axis, options), axis)
    others = other_results(ar, (return_index, return_inverse, return_counts), axis, options)
    return (z, *others) if others else z
