"""Loops that rules of arrays call from generated code."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def total(x):  # type: ignore[no-untyped-def]
    """The sum of all elements of an array; of a number the number."""
    return np.sum(np.asarray(x))


@numba.njit
def expanded(z_bar, like, axis):  # type: ignore[no-untyped-def]
    """`z_bar`, the cotangent of a sum along `axis`, with that axis back, broadcast to the shape of `like`."""
    return np.broadcast_to(np.expand_dims(z_bar, axis if axis >= 0 else like.ndim + axis), like.shape)


@numba.njit
def dot_bar_a(z_bar, a, b):  # type: ignore[no-untyped-def]
    """The cotangent of `a` in a @ b."""
    if a.ndim == 1 and b.ndim == 1:
        return z_bar * np.conj(b)
    if a.ndim == 1:
        return np.dot(np.conj(b), z_bar)
    if b.ndim == 1:
        return np.outer(z_bar, np.conj(b))
    return np.dot(z_bar, np.conj(b).T)


@numba.njit
def dot_bar_b(z_bar, a, b):  # type: ignore[no-untyped-def]
    """The cotangent of `b` in a @ b."""
    if a.ndim == 1 and b.ndim == 1:
        return z_bar * np.conj(a)
    if a.ndim == 1:
        return np.outer(np.conj(a), z_bar)
    return np.dot(np.conj(a).T, z_bar)
