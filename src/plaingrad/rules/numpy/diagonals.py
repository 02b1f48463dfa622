"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed
from plaingrad.rules.numpy.names import both, linear, refuse_out
from plaingrad.rules.numpy.writing import cycled
from plaingrad.rules.pushforwards import flattened, from_back, lead_of


def add_on_diagonal(values: Any, shape: tuple[int, ...], offset: int, axis1: int, axis2: int) -> Any:
    """Zeros of `shape` with `values` where np.diagonal(_, offset, axis1, axis2) would read."""
    z = np.zeros(shape, np.asarray(values).dtype)
    n = np.shape(values)[-1]
    rows = np.arange(n) + max(-offset, 0)
    z_last = np.moveaxis(z, (axis1, axis2), (-2, -1))
    z_last[..., rows, rows + offset] = values
    return z


linear(
    add_on_diagonal,
    lambda z_bar, values, shape, offset, axis1, axis2: np.diagonal(z_bar, offset, axis1, axis2),
    lambda values_dot, values, z, shape, offset, axis1, axis2: add_on_diagonal(
        values_dot, (*lead_of((values_dot, values)), *shape), offset, *from_back((axis1, axis2), len(shape))
    ),
)


def diagonal_adjoint(z_bar, a, offset=0, axis1=0, axis2=1):
    """z_bar on the diagonal."""
    return add_on_diagonal(z_bar, np.shape(a), offset, axis1, axis2)


def trace_adjoint(z_bar, a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """z_bar on the diagonal, the same everywhere on it."""
    refuse_out("np.trace", out)
    n = np.shape(np.diagonal(a, offset, axis1, axis2))[-1]
    return add_on_diagonal(np.broadcast_to(np.expand_dims(z_bar, -1), (*np.shape(z_bar), n)), np.shape(a), offset, axis1, axis2)


def diag_adjoint(z_bar, v, k=0):
    """Diagonal and matrix change places."""
    return np.diagonal(z_bar, k) if np.ndim(v) == 1 else add_on_diagonal(z_bar, np.shape(v), k, 0, 1)


def trace_push(a_dot, a, z, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The trace of each tangent."""
    return np.trace(a_dot, offset, *from_back((axis1, axis2), np.ndim(a)), dtype)


def diagonal_push(a_dot, a, z, offset=0, axis1=0, axis2=1):
    """The diagonal of each tangent."""
    return np.diagonal(a_dot, offset, *from_back((axis1, axis2), np.ndim(a)))


def diag_push(v_dot, v, z, k=0):
    """The diagonal, or the diagonal matrix, of each tangent."""
    if np.ndim(v) > 1:
        return np.diagonal(v_dot, k, -2, -1)
    return add_on_diagonal(v_dot, (*np.shape(v_dot)[:-1], *np.shape(z)), k, -2, -1)


def as_rows(m_dot: Any, m: Any, z: Any) -> Any:
    """A vector as every row of a matrix, which it is to np.tril and np.triu."""
    if np.ndim(m) > 1:
        return m_dot
    return np.broadcast_to(np.expand_dims(m_dot, -2), (*np.shape(m_dot)[:-1], *np.shape(z)))


for f in both("trace"):
    linear(f, trace_adjoint, trace_push)
for f in both("diagonal"):
    linear(f, diagonal_adjoint, diagonal_push)
linear(np.diag, diag_adjoint, diag_push)
linear(np.diagflat, lambda z_bar, v, k=0: np.reshape(np.diagonal(z_bar, k), np.shape(v)),
       lambda v_dot, v, z, k=0: diag_push(flattened(v_dot, v), np.ravel(v), z, k))  # fmt: skip
linear(np.tril, lambda z_bar, m, k=0: np.tril(z_bar, k) if np.ndim(m) > 1 else np.sum(np.tril(z_bar, k), axis=0),
       lambda m_dot, m, z, k=0: np.tril(as_rows(m_dot, m, z), k))  # fmt: skip
linear(np.triu, lambda z_bar, m, k=0: np.triu(z_bar, k) if np.ndim(m) > 1 else np.sum(np.triu(z_bar, k), axis=0),
       lambda m_dot, m, z, k=0: np.triu(as_rows(m_dot, m, z), k))  # fmt: skip


@composed(np.fill_diagonal, mutates=True)
def fill_diagonal(a, val, wrap=False):
    """The main diagonal is overwritten, with the values repeated as needed."""
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim == 2:
        step = a.shape[1] + 1
        places = np.arange(0, a.size if wrap else min(a.size, a.shape[1] * a.shape[1]), step)
    else:
        if not np.all(np.diff(a.shape) == 0):
            raise ValueError("All dimensions of input must be of equal length")
        places = np.arange(0, a.size, 1 + int(np.sum(np.cumprod(a.shape[:-1]))))
    a[np.unravel_index(places, a.shape)] = cycled(val, len(places))
