"""Filters that call a function of the program for every point: `generic_filter`, `generic_filter1d`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.ndimage.filters import continued, defined


def offsets_of(footprint: Any) -> Any:
    """The places of a footprint, in order."""
    return np.argwhere(footprint)


constant(offsets_of)


@defined("generic_filter", mutates=True)
def generic_filter(x, function, footprint, output, mode, cval, origins, args, kwargs):
    """The function gets the neighbours of a point, those in the footprint."""
    whole = x * 1.0
    for axis in range(x.ndim):
        n = footprint.shape[axis]
        before = n // 2 + int(origins[axis])
        whole = continued(whole, axis, before, n - 1 - before, mode, cval)
    parts = [
        whole[tuple([slice(i, i + n) for i, n in zip(offset, x.shape, strict=True)])].reshape(-1)
        for offset in offsets_of(footprint)
    ]
    if x.size == 0 or not parts:
        return
    found = [np.asarray(function(window, *args, **kwargs)) * 1.0 for window in np.stack(parts, 1)]
    output[...] = np.stack(found).reshape(x.shape)


@defined("generic_filter1d", mutates=True)
def generic_filter1d(x, function, size, axis, output, mode, cval, origin, args, kwargs):
    """The function gets a line with what lies beyond its ends, and writes another."""
    axis = axis % x.ndim
    before = size // 2 + origin
    whole = np.moveaxis(continued(x * 1.0, axis, before, size - 1 - before, mode, cval), axis, -1)
    found = []
    for line in whole.reshape(-1, whole.shape[-1]):
        z = np.zeros(x.shape[axis])
        function(line * 1.0, z, *args, **kwargs)
        found.append(z)
    if found:
        output[...] = np.moveaxis(np.stack(found).reshape(*whole.shape[:-1], x.shape[axis]), -1, axis)
