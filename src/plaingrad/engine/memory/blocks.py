"""Slopes of elementwise functions of large arrays, a block at a time, so that what a row computes stays in the cache.

A row of some operations on arrays of a million numbers writes every intermediate result to memory and reads it again;
in blocks only the arguments are read, and the product with the cotangent is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

LARGE = 2**15  # numbers from which blocks are taken
BLOCK = 2**13  # numbers; one array of them is half of a first-level cache
FLOAT64 = np.dtype(float)
NUMBERS = (float, int, np.float64, type(None))
OWN = "plaingrad.rules."  # rows here are elementwise; a user's partial may look at all of an array


def product_in_blocks(z_bar: Any, partial: Any, args: tuple[Any, ...], z: Any) -> Any:
    """z_bar * partial(np, *args, z), a new array; None for what is small, not in order, or not all float64."""
    blocks = slopes_in_blocks(z_bar, partial, args, z)
    if blocks is None:
        return None
    bar = in_a_row(z_bar, z_bar.shape)
    x_bar = np.empty(z_bar.shape)
    flat = x_bar.reshape(-1)
    for first, slope in blocks:
        end = first + slope.size
        np.multiply(bar[first:end] if type(bar) is np.ndarray else bar, slope, out=flat[first:end])
    return x_bar


def slopes_in_blocks(
    z_bar: Any, partial: Any, args: tuple[Any, ...], z: Any
) -> Iterator[tuple[int, np.ndarray]] | None:
    """partial(np, *args, z) in blocks, each with the place of its first element; None as above.

    The first block is computed at once: if it is an array of float64, so are the others, for a row is one formula.
    """
    if type(z_bar) is not np.ndarray or z_bar.size < LARGE or not is_own(partial):
        return None
    count = z_bar.size
    bar, *parts = [in_a_row(x, z_bar.shape) for x in (z_bar, *args, z)]
    if bar is NotImplemented or any(part is NotImplemented for part in parts):
        return None
    step = -(
        -count // -(-count // BLOCK)
    )  # blocks of one size, so that none is so small that rows take another way

    def slope_at(first: int) -> Any:
        return partial(np, *[x[first : first + step] if type(x) is np.ndarray else x for x in parts])

    slope = slope_at(0)
    if not is_block(slope, step):
        return None
    return rest_of(slope_at, slope, step, count)


def rest_of(slope_at: Any, slope: np.ndarray, step: int, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """All blocks, of which the first is `slope`."""
    yield 0, slope
    for first in range(step, count, step):
        slope = slope_at(first)
        if not is_block(slope, min(step, count - first)):
            raise TypeError("a slope is an array of float64 in one block, and something else in another")
        yield first, slope


def is_block(slope: Any, size: int) -> bool:
    """Whether this is a vector of so many float64, side by side."""
    return (
        type(slope) is np.ndarray
        and slope.dtype is FLOAT64
        and slope.shape == (size,)
        and slope.flags.c_contiguous
        and slope.flags.aligned
    )


def is_own(partial: Any) -> bool:
    """Whether this is a row of plaingrad's own."""
    return (getattr(partial, "__module__", None) or "").startswith(OWN)


def in_a_row(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` as a vector or number without copying it; NotImplemented where that cannot be."""
    if type(x) in NUMBERS:
        return x
    if type(x) is not np.ndarray or x.dtype is not FLOAT64 or x.shape != shape:
        return NotImplemented
    if x.flags.c_contiguous:
        return x.reshape(-1)
    return NotImplemented if any(x.strides) else float(x[(0,) * x.ndim])  # one number, broadcast: of a sum
