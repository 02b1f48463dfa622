"""Formulas of array rules: products of vectors and matrices."""

from __future__ import annotations

import numpy as np

from plaingrad.native.runtime.array_helpers import conj_of
from plaingrad.native.runtime.declare import register_jitable


@register_jitable
def dot_bar_a(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """The cotangent of `a` in a @ b."""
    if a.ndim == 1 and b.ndim == 1:
        return z_bar * conj_of(b)
    if a.ndim == 1:
        return np.dot(conj_of(np.ascontiguousarray(b)), np.ascontiguousarray(z_bar))
    if b.ndim == 1:
        return np.outer(z_bar, conj_of(b))
    return np.dot(np.ascontiguousarray(z_bar), conj_of(np.ascontiguousarray(b)).T)


@register_jitable
def dot_bar_b(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """The cotangent of `b` in a @ b."""
    if a.ndim == 1 and b.ndim == 1:
        return z_bar * conj_of(a)
    if a.ndim == 1:
        return np.outer(conj_of(a), z_bar)
    return np.dot(conj_of(np.ascontiguousarray(a)).T, np.ascontiguousarray(z_bar))


@register_jitable
def vdot_bar_a(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.vdot(a, b) = sum(conj(a) b) in a."""
    return (conj_of(z_bar) * b.flatten()).reshape(a.shape)


@register_jitable
def vdot_bar_b(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.vdot(a, b) in b."""
    return (z_bar * a.flatten()).reshape(b.shape)


@register_jitable
def outer_bar_a(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.outer(a, b) in a."""
    y = conj_of(b.flatten())
    out = np.zeros(a.size, z_bar.dtype)
    for i in range(z_bar.shape[0]):
        for j in range(z_bar.shape[1]):
            out[i] += z_bar[i, j] * y[j]
    return out.reshape(a.shape)


@register_jitable
def outer_bar_b(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.outer(a, b) in b."""
    x = conj_of(a.flatten())
    out = np.zeros(b.size, z_bar.dtype)
    for i in range(z_bar.shape[0]):
        for j in range(z_bar.shape[1]):
            out[j] += z_bar[i, j] * x[i]
    return out.reshape(b.shape)


@register_jitable
def kron_bar_a(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.kron(a, b) of matrices in a."""
    m, n = b.shape
    out = np.zeros(a.shape, z_bar.dtype)
    for i in range(z_bar.shape[0]):
        for j in range(z_bar.shape[1]):
            out[i // m, j // n] += z_bar[i, j] * conj_of(b[i % m, j % n])
    return out


@register_jitable
def kron_bar_b(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.kron(a, b) of matrices in b."""
    m, n = b.shape
    out = np.zeros(b.shape, z_bar.dtype)
    for i in range(z_bar.shape[0]):
        for j in range(z_bar.shape[1]):
            out[i % m, j % n] += z_bar[i, j] * conj_of(a[i // m, j // n])
    return out


@register_jitable
def cross_bar_a(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.cross(a, b) in a."""
    return np.cross(conj_of(b), z_bar)[..., : a.shape[-1]]  # vectors of two numbers have a third, which is 0


@register_jitable
def cross_bar_b(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.cross(a, b) in b."""
    return np.cross(z_bar, conj_of(a))[..., : b.shape[-1]]
