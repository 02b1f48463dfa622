"""A program's gradient, `jvp` and `hvp` beside central differences, before anything is timed."""

from collections.abc import Callable
from typing import Any

import numpy as np

import plaingrad
from benchmarks.ordinary.program import Program

STEPS = (1e-4, 1e-5, 1e-6, 1e-3, 1e-7)  # long ones cross kinks, short ones lose digits: the best counts
MOST = 64  # of more inputs than that, the differences go along a few directions


def numbers(value: Any) -> np.ndarray:
    """A float, a list or an array as an array of one axis."""
    return np.array(value, dtype=float).ravel()


def like(x: Any, flat: np.ndarray) -> Any:
    """The numbers in the form of x."""
    if isinstance(x, np.ndarray):
        return flat.reshape(x.shape)
    return flat.tolist() if isinstance(x, list) else float(flat[0])


def direction(x: Any) -> Any:
    """A tangent of x, no number of it like another."""
    return like(x, np.linspace(1.0, 0.5, numbers(x).size))


def slope(f: Callable[[np.ndarray], Any], x: np.ndarray, v: np.ndarray, step: float) -> Any:
    """d f(x + t v) / dt by four evaluations."""
    near, far = f(x + step * v) - f(x - step * v), f(x + 2 * step * v) - f(x - 2 * step * v)
    return (8 * near - far) / (12 * step)


def gap(
    ours: np.ndarray, f: Callable[[np.ndarray], Any], x: np.ndarray, directions: np.ndarray, least: float
) -> float:
    """The least distance of slopes along directions from ours, relative to the largest, or to `least`."""
    best = np.inf
    for step in STEPS:
        by_differences = np.array([slope(f, x, v, step) for v in directions])
        size = max(np.max(np.abs(by_differences)), least)
        best = min(best, np.max(np.abs(ours - by_differences)) / size)
        if best < 1e-9:
            break
    return float(best)


def errors(p: Program) -> dict[str, float]:
    """Relative errors of the gradient, of `jvp` and of `hvp`."""
    x, v = numbers(p.x), numbers(direction(p.x))
    gradient = plaingrad.grad(p.f)
    found = numbers(gradient(p.x))
    if x.size <= MOST:
        directions = np.eye(x.size)
    else:
        directions = np.random.default_rng(0).normal(size=(4, x.size))
    along = plaingrad.jvp(p.f, (p.x,), (direction(p.x),))[1]
    product = numbers(plaingrad.hvp(p.f, (p.x,), (direction(p.x),)))
    least = 1e-7 * abs(p.f(p.x))  # a slope that is next to nothing has no digits in differences
    return {
        "gradient": gap(directions @ found, lambda y: p.f(like(p.x, y)), x, directions, least),
        "jvp": abs(along - found @ v) / max(np.max(np.abs(found * v)), least),
        "hvp": gap(product, lambda y: numbers(gradient(like(p.x, y))), x, v[None], least),
    }


def check(p: Program) -> None:
    """Raise unless the derivatives agree with differences."""
    for name, error in errors(p).items():
        if not error < {"gradient": 1e-7, "jvp": 1e-10, "hvp": 1e-6}[name]:
            raise AssertionError(f"{p.name}: the {name} is off by {error:.1e}")
