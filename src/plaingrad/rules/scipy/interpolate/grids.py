"""Interpolation on regular grids."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import _rgi_cython

from plaingrad.rules.scipy.compiled import constant, definitions

try:
    from scipy.interpolate import _interpnd as points_of
except ImportError:  # before SciPy 1.15
    from scipy.interpolate import interpnd as points_of

defined = definitions(_rgi_cython)


def cells(grid: Any, xi: Any) -> Any:
    """For each axis the number of the cell in which each query lies."""
    return np.stack(
        [np.clip(np.searchsorted(line, x, "right") - 1, 0, max(0, len(line) - 2)) for line, x in zip(grid, xi, strict=True)]
    )


constant(cells)


@defined("find_indices")
def find_indices(grid, xi):
    """Cells, and the share of its width at which each query lies in it."""
    indices = cells(grid, xi)
    shares = []
    for axis in range(len(grid)):
        line, i = grid[axis], indices[axis]
        if len(line) == 1:
            shares.append(np.zeros(len(i)))
        else:
            shares.append((xi[axis] - line[i]) / (line[i + 1] - line[i]))
    return indices, np.stack(shares)


@defined("evaluate_linear_2d")
def evaluate_linear_2d(values, indices, norm_distances, grid, out):
    """The means of four corners."""
    i, j = indices[0], indices[1]
    u, v = norm_distances[0], norm_distances[1]
    ii = i + 1 if values.shape[0] > 1 else i
    jj = j + 1 if values.shape[1] > 1 else j
    lower = values[i, j] * (1 - v) + values[i, jj] * v
    upper = values[ii, j] * (1 - v) + values[ii, jj] * v
    out[...] = lower * (1 - u) + upper * u
    return out


@definitions(points_of)("_ndim_coords_from_arrays")
def coordinates(points, ndim=None):
    """Points as rows of coordinates."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return np.stack(np.broadcast_arrays(*points), -1)
    points = np.asanyarray(points)
    if points.ndim == 1:
        points = points.reshape(-1, 1) if ndim is None else points.reshape(-1, ndim)
    return points

