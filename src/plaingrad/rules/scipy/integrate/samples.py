"""Integrals of samples: sums with weights, which the places or their distance say. SciPy's value is kept."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import integrate

from plaingrad.rules.scipy.implicit import (
    Rules,
    called,
    carrying,
    fresh,
    is_active,
    mover,
    plainly,
    without_rule,
)

RULES = Rules()


@mover
def is_usual(y: Any, x: Any, dx: Any) -> bool:
    """Whether samples are arrays of numbers, or lists of them, and their distance is a number."""
    usual = (np.ndarray, list, tuple)
    return type(y) in usual and (x is None or type(x) in usual) and np.ndim(dx) == 0


def along_last(y: Any, x: Any, axis: Any) -> tuple[Any, Any]:
    """Samples and places along their last axis; None for places whose shape is another."""
    y = np.asarray(y)
    if y.ndim == 0:
        return None, None
    if x is not None:
        x = np.asarray(x)
        if x.shape not in (y.shape, (y.shape[axis],)):
            return None, None
        x = x if x.ndim == 1 else np.moveaxis(x, axis, -1)
    return np.moveaxis(y, axis, -1) if y.ndim > 1 else y, x


@plainly
def has_gaps(x: Any) -> bool:
    """Whether no two neighbours are equal."""
    return bool(np.all(np.diff(x, axis=-1) != 0))


def weighted(value: Any, y: Any, w: Any, dx: Any) -> Any:
    """`value`, which is the sum of y w along the last axis, times dx; w: a vector, or an array like y."""
    if not is_active(w):
        w = fresh(w)
    z = np.dot(y, w) if w.ndim == 1 else np.sum(y * w, -1)
    return carrying(fresh(value), z if dx is None else z * dx)


# -- trapezoids --------------------------------------------------------------------------------------------------------


def trapezoid_weights(x: Any) -> Any:
    """Half of the distance between the neighbours."""
    first, last = x[..., 1:2] - x[..., :1], x[..., -1:] - x[..., -2:-1]
    return np.concatenate([first, x[..., 2:] - x[..., :-2], last], -1) * 0.5


@plainly
def equal_trapezoids(count: int) -> Any:
    """The same at distance 1."""
    w = np.ones(count)
    w[0] = w[-1] = 0.5
    return w


@RULES.defined(integrate.trapezoid)
def trapezoid(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The sum of d (y0 + y1) / 2."""
    args, kwargs = call
    y, x = along_last(given["y"], given["x"], given["axis"]) if is_usual(*three(given)) else (None, None)
    if y is None:
        return trapezoid_followed(*args, **kwargs)
    value = called(function, call)
    if y.shape[-1] < 2:
        return value
    if x is None:
        return weighted(value, y, equal_trapezoids(y.shape[-1]), given["dx"])
    return weighted(value, y, trapezoid_weights(x), None)


trapezoid_followed = without_rule(integrate.trapezoid)


@mover
def three(given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Samples, places, distance."""
    return given["y"], given.get("x"), given["dx"]


# -- parabolas ---------------------------------------------------------------------------------------------------------


def simpson_weights(x: Any) -> Any:
    """Of parabolas through three samples each; of an even number the last gap has one of its own (Cartwright 2017)."""
    n = x.shape[-1]
    h = x[..., 1:] - x[..., :-1]
    if n == 2:
        return np.concatenate([h, h], -1) * 0.5
    odd = n - 1 + n % 2  # samples that parabolas take
    h0, h1 = h[..., : odd - 1 : 2], h[..., 1 : odd - 1 : 2]
    both = (h0 + h1) / 6.0
    left, right = both * (2.0 - h1 / h0), both * (2.0 - h0 / h1)
    middle = 36.0 * both**3 / (h0 * h1)
    sides = np.concatenate([left[..., :1], left[..., 1:] + right[..., :-1]], -1)
    pairs = np.reshape(np.stack([sides, middle], -1), (*x.shape[:-1], odd - 1))
    if n % 2:
        return np.concatenate([pairs, right[..., -1:]], -1)
    a, b = h[..., -2:-1], h[..., -1:]
    alpha, beta = (2 * b**2 + 3 * a * b) / (6 * (a + b)), (b**2 + 3 * a * b) / (6 * a)
    eta = b**3 / (6 * a * (a + b))
    return np.concatenate([pairs[..., :-1], pairs[..., -1:] - eta, right[..., -1:] + beta, alpha], -1)


@plainly
def equal_parabolas(count: int) -> Any:
    """The same at distance 1."""
    w = np.empty(count)
    w[::2], w[1::2] = 2 / 3, 4 / 3
    short = min(count, 7)  # ends are those of few samples
    few = simpson_weights(np.arange(float(short + (count - short) % 2)))
    w[:3], w[-4:] = few[:3], few[-4:]
    return w


@RULES.defined(integrate.simpson)
def simpson(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Parabolas."""
    args, kwargs = call
    usual = is_usual(*three(given)) and given.get("even") is None
    y, x = along_last(given["y"], given["x"], given["axis"]) if usual else (None, None)
    if y is None or (x is not None and not has_gaps(fresh(x))):
        return simpson_followed(*args, **kwargs)
    value = called(function, call)
    if y.shape[-1] < 2:
        return value
    if x is None:
        return weighted(value, y, equal_parabolas(y.shape[-1]), given["dx"])
    return weighted(value, y, simpson_weights(x), None)


simpson_followed = without_rule(integrate.simpson)


# -- Romberg -----------------------------------------------------------------------------------------------------------


@plainly
def romberg_weights(count: int) -> Any:
    """Of 2**k + 1 samples at distance 1: trapezoids of all distances 2**i, extrapolated."""
    k = (count - 1).bit_length() - 1
    w = np.zeros(count)
    for share, step in zip(romberg_shares(k), 2 ** np.arange(k, -1, -1), strict=True):
        w[::step] += share * step
        w[[0, -1]] -= 0.5 * share * step
    return w


@lru_cache
def romberg_shares(k: int) -> Any:
    """How much each of the k + 1 sums of trapezoids, the coarsest first, is of the last extrapolation."""
    column = np.eye(k + 1)
    for j in range(1, k + 1):
        column = column[1:] + (column[1:] - column[:-1]) / (4**j - 1)
    return column[0]


@RULES.defined(integrate.romb)
def romb(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Trapezoids, extrapolated."""
    args, kwargs = call
    y, _ = along_last(given["y"], None, given["axis"]) if is_usual(*three(given)) else (None, None)
    if y is None:
        return romb_followed(*args, **kwargs)
    value = called(function, call)
    if y.shape[-1] < 2:
        return value
    return weighted(value, y, romberg_weights(y.shape[-1]), given["dx"])


romb_followed = without_rule(integrate.romb)


# -- running sums ------------------------------------------------------------------------------------------------------


@RULES.defined(integrate.cumulative_trapezoid)
def cumulative_trapezoid(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Sums of d (y0 + y1) / 2; with `initial` there is a constant before them."""
    args, kwargs = call
    y, x = along_last(given["y"], given["x"], given["axis"]) if is_usual(*three(given)) else (None, None)
    if y is None:
        return cumulative_followed(*args, **kwargs)
    value = called(function, call)
    if y.shape[-1] < 2:
        return value
    d = given["dx"] if x is None else x[..., 1:] - x[..., :-1]
    z = np.cumsum((y[..., 1:] + y[..., :-1]) * (d * 0.5), -1)
    if given["initial"] is not None:
        z = np.concatenate([np.zeros((*z.shape[:-1], 1)), z], -1)
    return carrying(fresh(value), np.moveaxis(z, -1, given["axis"]) if z.ndim > 1 else z)


cumulative_followed = without_rule(integrate.cumulative_trapezoid)
