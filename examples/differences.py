"""Central differences: what the examples compare their derivatives with."""

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = (1e-3, 1e-4, 1e-5, 1e-6)  # long ones leave curvature, short ones lose digits: the best counts


def central(f: Callable[[np.ndarray], Any], x: np.ndarray, along: np.ndarray, step: float) -> Any:
    """d f(x + t along) / dt by four evaluations."""
    near = f(x + step * along) - f(x - step * along)
    far = f(x + 2 * step * along) - f(x - 2 * step * along)
    return (8 * near - far) / (12 * step)


def gap(f: Callable[[np.ndarray], Any], x: np.ndarray, slopes: np.ndarray, directions: np.ndarray) -> float:
    """How far slopes of f along directions (a row each) are from differences, relative to the largest slope.

    Examples:
        >>> round(gap(np.sum, np.ones(3), np.ones(3), np.eye(3)), 6)
        0.0
    """
    best = np.inf
    for step in STEPS:
        rough = np.array([central(f, x, along, step) for along in directions])
        best = min(best, np.max(np.abs(slopes - rough)) / np.max(np.abs(rough)))
    return float(best)


def gap_of_gradient(f: Callable[[np.ndarray], Any], x: np.ndarray, gradient: np.ndarray) -> float:
    """The gap of a gradient: in every direction where there are a dozen or fewer, else in four random ones."""
    if x.size <= 12:
        directions = np.eye(x.size)
    else:
        directions = np.random.default_rng(0).normal(size=(4, x.size))
    directions *= np.sqrt(np.mean(x * x)) or 1.0  # steps in proportion to x
    return gap(f, x, directions @ gradient, directions)
