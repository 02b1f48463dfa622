"""Slopes of elementwise functions of large arrays, a block at a time, so that what a row computes stays in the cache.

A row of some operations on arrays of a million numbers writes every intermediate result to memory and reads it again;
in blocks only the arguments are read, and the product with the cotangent is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LARGE = 2**15  # numbers from which blocks are taken
BLOCK = 2**13  # numbers; one array of them is half of a first-level cache
FLOAT64 = np.dtype(float)
NUMBERS = (float, int, np.float64, type(None))
OWN = "plaingrad.rules."  # rows here are elementwise; a user's partial may look at all of an array


def product_in_blocks(z_bar: Any, partial: Any, args: tuple[Any, ...], z: Any) -> Any:
    """z_bar * partial(np, *args, z), a new array; None for what is small, not in order, or not all float64."""
    if type(z_bar) is not np.ndarray or z_bar.size < LARGE or not is_own(partial):
        return None
    count = z_bar.size
    parts = [in_a_row(x, z_bar.shape) for x in (z_bar, *args, z)]
    if any(part is NotImplemented for part in parts):
        return None
    x_bar = np.empty(z_bar.shape)
    flat = x_bar.reshape(-1)
    step = -(
        -count // -(-count // BLOCK)
    )  # blocks of one size, so that none is so small that rows take another way
    for k in range(0, count, step):
        end = min(k + step, count)
        bar, *rest = [x[k:end] if type(x) is np.ndarray else x for x in parts]
        slope = partial(np, *rest)
        if type(slope) is not np.ndarray or slope.dtype is not FLOAT64 or slope.shape != (end - k,):
            return None
        np.multiply(bar, slope, out=flat[k:end])
    return x_bar


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
