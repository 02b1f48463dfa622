"""Steps on whole batches, as NumPy over arrays with the examples along the first axis.

`x` is such an array where `of_x`, or the entry of `mapped` in its place, says so, else it is the same for all examples.
This is ordinary Python over arrays: under an outer derivative, or batch, it runs rewritten, one level out.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def aligned(x: Any, ndim: int) -> Any:
    """`x` with room after its first axis, so that one example broadcasts against an array of `ndim` axes."""
    missing = ndim + 1 - x.ndim
    return x if missing <= 0 else np.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))


def elementwise(f: Any, xs: Any, mapped: Any, ndim: int) -> Any:
    """f(*xs), which broadcasts."""
    return f(*[aligned(x, ndim) if is_mapped else x for x, is_mapped in zip(xs, mapped, strict=True)])


def spread(x: Any, n: int) -> Any:
    """`x` once for each example."""
    return np.repeat(np.reshape(np.asarray(x), (1, *np.shape(x))), n, 0)


def stacked(xs: Any, mapped: Any, n: int, axis: int) -> Any:
    """np.stack(xs, axis)."""
    parts = [x if is_mapped else spread(x, n) for x, is_mapped in zip(xs, mapped, strict=True)]
    return np.stack(parts, axis + 1)


def joined(xs: Any, mapped: Any, n: int, axis: int) -> Any:
    """np.concatenate(xs, axis)."""
    parts = [x if is_mapped else spread(x, n) for x, is_mapped in zip(xs, mapped, strict=True)]
    return np.concatenate(parts, axis + 1)


def reduced(f: Any, x: Any, axis: Any, options: Any) -> Any:
    """f(x, axis=axis), where `axis` counts the axis of examples."""
    return f(x, axis=axis, **options)


def flat(x: Any) -> Any:
    """Each example as a vector."""
    return np.reshape(x, (x.shape[0], -1))


def reshaped(x: Any, shape: Any) -> Any:
    """Each example in this shape."""
    return np.reshape(x, (x.shape[0], *shape))


def item(x: Any, key: Any) -> Any:
    """x[key], with the axis of examples in the key."""
    return x[key]


def taken(x: Any, k: Any) -> Any:
    """x[k] of what is the same for all examples, by indices of each."""
    return x[k]


def taken_of_each(x: Any, k: Any, n: int) -> Any:
    """x[k], an entry along the first axis of each example, by an index of each."""
    return x[np.arange(n), k]


def times(a: Any, b: Any, of_a: bool, of_b: bool) -> Any:
    """a @ b, of vectors and matrices."""
    if of_a and of_b:
        if a.ndim == 2 and b.ndim == 2:
            return np.sum(a * b, -1)
        if a.ndim == 2:
            return np.matmul(a[:, None, :], b)[:, 0]
        if b.ndim == 2:
            return np.matmul(a, b[:, :, None])[:, :, 0]
        return np.matmul(a, b)
    if of_a:
        if a.ndim == 2:
            return a @ b
        rows = np.reshape(a, (-1, a.shape[2])) @ b
        return np.reshape(rows, (*a.shape[:2], *rows.shape[1:]))
    if b.ndim == 2:
        return b @ a if a.ndim == 1 else b @ a.T
    return np.matmul(a, b)


def outer(a: Any, b: Any, of_a: bool, of_b: bool) -> Any:
    """np.outer(a, b) of vectors."""
    return (a[:, :, None] if of_a else a[None, :, None]) * (b[:, None, :] if of_b else b[None, None, :])


def summed(subscripts: str, xs: Any) -> Any:
    """np.einsum."""
    return np.einsum(subscripts, *xs)


def solved(a: Any, b: Any, of_b: bool) -> Any:
    """np.linalg.solve(a, b) of a matrix of each, and a vector or matrix."""
    if of_b and b.ndim == 2:
        return np.linalg.solve(a, b[:, :, None])[:, :, 0]
    return np.linalg.solve(a, b) if of_b else np.linalg.solve(a, spread(b, a.shape[0]))


def solved_at_once(a: Any, b: Any) -> Any:
    """np.linalg.solve(a, b) of one matrix and a vector of each."""
    return np.linalg.solve(a, b.T).T


def called(f: Any, args: Any, kwargs: Any) -> Any:
    """f(*args, **kwargs)."""
    return f(*args, **kwargs)


def larger(x: Any, y: Any) -> Any:
    """max(x, y) of Python: the first of equal ones, and where one is nan."""
    return np.where(y > x, y, x)


def smaller(x: Any, y: Any) -> Any:
    """min(x, y)."""
    return np.where(y < x, y, x)


def total(x: Any) -> Any:
    """The sum over examples, whose derivatives are those of each by itself."""
    return np.sum(x)


def copied(x: Any, axis: int) -> Any:
    """`x`, with its examples along this axis, in memory of its own."""
    return np.array(np.moveaxis(x, 0, axis), order="C")


def blocks_joined(blocks: Any, axis: int) -> Any:
    """Results of several blocks of examples as one, with the examples along this axis."""
    return np.concatenate([np.moveaxis(block, 0, axis) for block in blocks], axis)
