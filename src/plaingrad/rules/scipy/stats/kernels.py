"""Kernel density estimates: the compiled sums over all pairs of a data point and a point of evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.stats import _stats

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep

BLOCK = 200_000  # pairs at a time: they fit into the cache


def whitened(points: Any, factor: Any) -> Any:
    """Points as columns, for a covariance of factor @ factor.T."""
    return linalg.solve_triangular(factor, points.T, lower=True)


def energies(data: Any, points: Any) -> Any:
    """Half of the squared distances, a row for each point."""
    total = 0.0
    for k in range(data.shape[0]):
        gap = points[k][:, None] - data[k][None, :]
        total = total + gap * gap
    return total / 2


def in_blocks(points: Any, values: Any, xi: Any, factor: Any, of_block: Any) -> Any:
    """of_block(energies, log of the norm, values) for blocks of points, one under the other."""
    if xi.shape[1] != points.shape[1] or factor.shape != (xi.shape[1],) * 2:
        raise ValueError("points and xi must have same trailing dim")
    data, places = whitened(points, factor), whitened(xi, factor)
    log_norm = -points.shape[1] / 2 * np.log(2 * np.pi) - np.log(np.diagonal(factor)).sum()
    step = max(1, BLOCK // max(1, points.shape[0]))
    parts = [
        of_block(energies(data, places[:, k : k + step]), log_norm, values) for k in range(0, xi.shape[0], step)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, values.shape[1]))


def estimate(points, values, xi, cho_cov, dtype, _=0):
    """The sum of values times normal densities around the data points."""

    def of_block(energy, log_norm, values):
        return np.exp(log_norm - energy) @ values

    return in_blocks(points, values, xi, cho_cov, of_block).astype(dtype, copy=False)


def estimate_log(points, values, xi, cho_cov, dtype, _=0):
    """Its logarithm."""

    def of_block(energy, log_norm, values):
        low = np.min(energy, axis=1, keepdims=True)
        return np.log(np.exp(low - energy) @ values) + log_norm - low

    return in_blocks(points, values, xi, cho_cov, of_block).astype(dtype, copy=False)


for _name, _definition in (("gaussian_kernel_estimate", estimate), ("gaussian_kernel_estimate_log", estimate_log)):
    _fused = getattr(_stats, _name, None)
    for _spec in getattr(_fused, "__signatures__", ()) or ():
        keep(Rule(_fused[_spec], "composed", definition=_definition, source=f"{__file__}:1"))
