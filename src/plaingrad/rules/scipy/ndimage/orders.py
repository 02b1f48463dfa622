"""Filters that choose: minima, maxima, ranks. Each result is one of the array's numbers, and has its derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import _nd_image

from plaingrad.rules.scipy.compiled import constant, definitions
from plaingrad.rules.scipy.ndimage.filters import continued, defined


def chosen_places(whole: Any, z: Any, offsets: Any) -> Any:
    """For each result the place in `whole`, flat, of the first number among its neighbours that it is equal to."""
    found = np.zeros(z.shape, np.intp)
    missing = np.ones(z.shape, bool)
    places = np.arange(whole.size).reshape(whole.shape)
    for offset in offsets:
        part = tuple([slice(i, i + n) for i, n in zip(offset, z.shape, strict=True)])
        here = missing & ((whole[part] == z) | (np.isnan(whole[part]) & np.isnan(z)))
        found[here] = places[part][here]
        missing &= ~here
    return found


def result_of(function: Any, x: Any, args: Any, place: int) -> Any:
    """What the compiled function writes."""
    z = np.zeros(x.shape, x.dtype)
    args = list(args)
    args[place] = z
    function(x, *args)
    return z


constant(chosen_places, result_of)


def chosen(function, x, args, place, footprint, mode, cval, origins):
    """Those numbers, gathered."""
    z = result_of(function, x, args, place)
    whole = x
    for axis in range(x.ndim):
        n = footprint.shape[axis]
        before = n // 2 + int(origins[axis])
        whole = continued(whole, axis, before, n - 1 - before, mode, cval)
    return whole.reshape(-1)[chosen_places(whole, z, np.argwhere(footprint))]


@defined("min_or_max_filter1d", mutates=True)
def min_or_max_filter1d(x, size, axis, output, mode, cval, origin, minimum):
    axis = axis % x.ndim
    shape, origins = [1] * x.ndim, [0] * x.ndim
    shape[axis], origins[axis] = size, origin
    args = (size, axis, None, mode, cval, origin, minimum)
    output[...] = chosen(_nd_image.min_or_max_filter1d, x, args, 2, np.ones(shape, bool), mode, cval, origins)


def best_places(whole: Any, structure: Any, offsets: Any, shape: Any) -> Any:
    """For each result the place in `whole`, flat, of the largest sum with the structure, of equal ones the first, and which."""
    best, found, which = None, np.zeros(shape, np.intp), np.zeros(shape, np.intp)
    places = np.arange(whole.size).reshape(whole.shape)
    for k, offset in enumerate(offsets):
        part = tuple([slice(i, i + n) for i, n in zip(offset, shape, strict=True)])
        value = whole[part] + structure[tuple(offset)]
        better = np.ones(shape, bool) if best is None else value > best
        best = value if best is None else np.where(better, value, best)
        found, which = np.where(better, places[part], found), np.where(better, k, which)
    return found, which


constant(best_places)


@defined("min_or_max_filter", mutates=True)
def min_or_max_filter(x, footprint, structure, output, mode, cval, origins, minimum):
    if structure is None:
        args = (footprint, None, None, mode, cval, origins, minimum)
        output[...] = chosen(_nd_image.min_or_max_filter, x, args, 2, footprint, mode, cval, origins)
        return
    whole, sign = x * 1.0, -1.0 if minimum else 1.0  # an erosion is the dilation of the negative
    for axis in range(x.ndim):
        n = footprint.shape[axis]
        before = n // 2 + int(origins[axis])
        whole = continued(whole, axis, before, n - 1 - before, mode, cval)
    offsets = np.argwhere(footprint)
    places, which = best_places(sign * whole, structure * 1.0, offsets, x.shape)
    output[...] = whole.reshape(-1)[places] + sign * structure[tuple(offsets.T)][which]


@defined("rank_filter", mutates=True)
def rank_filter(x, rank, footprint, output, mode, cval, origins):
    args = (rank, footprint, None, mode, cval, origins)
    output[...] = chosen(_nd_image.rank_filter, x, args, 2, footprint, mode, cval, origins)


try:
    from scipy.ndimage import _rank_filter_1d
except ImportError:  # before SciPy 1.15
    _rank_filter_1d = None


if _rank_filter_1d is not None:

    @definitions(_rank_filter_1d)("rank_filter", mutates=True)
    def rank_filter_1d(x, rank, size, output, mode, cval, origin):
        args = (rank, size, None, mode, cval, origin)
        function = _rank_filter_1d.rank_filter
        output[...] = chosen(function, x, args, 2, np.ones(size, bool), mode, cval, [origin])


constant(
    *[
        getattr(_nd_image, name, None)
        for name in (
            "binary_erosion", "binary_erosion2", "distance_transform_bf", "distance_transform_op", "find_objects",
            "euclidean_feature_transform", "value_indices", "watershed_ift",
        )
    ]
)  # fmt: skip

__all__ = ["chosen"]
