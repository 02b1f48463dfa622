"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.linalg import inverse_or_nan, quotients
from plaingrad.rules.numpy.names import axes_of, conj
from plaingrad.rules.pushforwards import both_forms, dot_of, from_back, lined_up, total, varies
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

la = np.linalg


def euclidean_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """The root of the sum of squares over `axis`."""
    return la.norm(x, ord, axis, keepdims)


@rrule(euclidean_norm)
def euclidean_norm_rrule(x, ord, axis, keepdims):
    z = la.norm(x, ord, axis, keepdims)

    def norm_pullback(z_bar):  # at x = 0 a kink's minimum: 0
        axes = axes_of(axis, np.ndim(x))
        kept = tuple(1 if i in axes else n for i, n in enumerate(np.shape(x)))
        near, size = scaled_if_extreme(euclidean_norm, x, z, ord, axis, keepdims)
        size, slope = np.reshape(size, kept), np.reshape(z_bar, kept)
        x_bar = quotients(slope * (size != 0), size) * near
        varying = isinstance(ord, (float, np.floating))
        return x_bar, Thunk(lambda: np.sum(z_bar * slope_in_order(x, z, ord, axis, keepdims))) if varying else NoTangent

    return z, norm_pullback


@both_forms(euclidean_norm)
def euclidean_norm_frule(x, ord, axis, keepdims):
    z = la.norm(x, ord, axis, keepdims)

    def norm_pushforward(dots):
        z_dot, ord_dot = ZeroTangent, dot_of(dots, 1)
        if varies(dots[0]):
            near, size = scaled_if_extreme(euclidean_norm, x, z, ord, axis, keepdims)
            products = np.real(conj(near) * dots[0])
            sums = np.sum(products, axis=from_back(axis, np.ndim(x)), keepdims=bool(keepdims))
            z_dot = quotients(sums * (size != 0), size)
        if varies(ord_dot):
            z_dot = total(z_dot, lined_up(ord_dot, ord, np.ndim(z)) * slope_in_order(x, z, ord, axis, keepdims))
        return z_dot

    return z, norm_pushforward


@composed(la.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Vector norms over one axis, matrix norms over two."""
    x = np.asarray(x)
    if x.dtype.kind not in "fc":
        x = x.astype(float)
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        return euclidean_norm(x, ord, None, keepdims)
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if axes[0] == axes[1]:
        raise ValueError("Duplicate axes given.")
    return matrix_norm(x, ord, axes, keepdims)


def vector_norm(x, ord, axis, keepdims):
    """The norm of order `ord` along one axis."""
    if ord is None or ord == 2:
        return euclidean_norm(x, ord, axis, keepdims)
    if ord == np.inf:
        return np.max(np.abs(x), axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(np.abs(x), axis, keepdims=keepdims)
    if ord == 0:
        return np.sum((x != 0).astype(x.real.dtype), axis, keepdims=keepdims)
    if ord == 1 and isinstance(ord, int):  # an order that varies is none
        return np.sum(np.abs(x), axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return power_norm(x, ord, axis, keepdims)


def power_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """(sum |x|^p)^(1/p)."""
    return la.norm(x, ord, axis, keepdims)


@rrule(power_norm)
def power_norm_rrule(x, ord, axis, keepdims):
    z = la.norm(x, ord, axis, keepdims)

    def power_norm_pullback(z_bar):
        kept = tuple(1 if i == axis else n for i, n in enumerate(np.shape(x)))
        near, size = scaled_if_extreme(power_norm, x, z, ord, axis, keepdims)
        x_bar = np.reshape(z_bar, kept) * slope_in_x(near, np.reshape(size, kept), ord)
        return x_bar, Thunk(lambda: np.sum(z_bar * slope_in_order(x, z, ord, axis, keepdims)))

    return z, power_norm_pullback


def slope_in_x(x: Any, size: Any, p: Any) -> Any:
    """dz/dx = (|x| / z)^(p - 1) x / |x|; 0 at x = 0, where it is a kink or 0. For whole p it is a polynomial there."""
    if p % 1 == 0 and p >= 2 and np.asarray(x).dtype.kind == "f":
        ratio = x / np.where(size == 0, 1, size)
        return ratio ** (p - 1) if p % 2 == 0 else np.abs(ratio) * ratio ** (p - 2)
    length = np.abs(x)
    ratio = np.where((length == 0) | (size == 0), 0, length / np.where(size == 0, 1, size))
    base = np.where(ratio == 0, 1, ratio)
    unit = x / np.where(length == 0, 1, length)
    return np.where(ratio == 0, 0, base ** (p - 1)) * unit


def scaled_if_extreme(norm: Any, x: Any, z: Any, ord: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """x and z, or x and its norm in units in which no power overflows or vanishes: the slopes are the same."""
    if (ord is None or ord == 2) and isinstance(z, np.floating) and 1e-9 < z < 1e9:
        return x, z  # in any precision
    p = 2.0 if ord is None or isinstance(ord, str) else abs(ord)
    least = 2.0 ** (0.8 * np.finfo(np.asarray(z).dtype).minexp / max(p, 2.0))
    if (np.min(z, initial=1.0) > least) & (np.max(z, initial=1.0) < 1 / least):
        return x, z
    x = x / unit_of(x, axis)
    return x, norm(x, ord, axis, keepdims)


def unit_of(x: Any, axis: Any) -> Any:
    """A power of 2 near the largest element along `axis`; 1 where that is 0 or no finite number."""
    largest = np.max(np.abs(x), axis=axis, keepdims=True, initial=0)
    exponent = np.frexp(largest)[1] - 1
    return np.where((largest > 0) & np.isfinite(largest), np.ldexp(np.ones_like(largest), exponent), 1)


no_tangent(unit_of)


def slope_in_order(x: Any, z: Any, p: Any, axis: Any, keepdims: bool) -> Any:
    """dz/dp = z (sum |x|^p log|x| / (p sum |x|^p) - log(sum |x|^p) / p^2)."""
    length = np.where(x == 0, 1, np.abs(x))
    powers = np.where(x == 0, 0, length**p)
    sums = np.sum(powers, axis, keepdims=keepdims)
    slope = np.sum(powers * np.log(length), axis, keepdims=keepdims) / (p * sums) - np.log(sums) / p**2
    return np.where(sums == 0, 0, z * slope)


@both_forms(power_norm)
def power_norm_frule(x, ord, axis, keepdims):
    z = la.norm(x, ord, axis, keepdims)

    def power_norm_pushforward(dots):
        z_dot, ord_dot = ZeroTangent, dot_of(dots, 1)
        if varies(dots[0]):
            kept = tuple(1 if i == axis else n for i, n in enumerate(np.shape(x)))
            near, size = scaled_if_extreme(power_norm, x, z, ord, axis, keepdims)
            products = np.real(conj(slope_in_x(near, np.reshape(size, kept), ord)) * dots[0])
            z_dot = np.sum(products, axis=from_back(axis, np.ndim(x)), keepdims=bool(keepdims))
        if varies(ord_dot):
            z_dot = total(z_dot, lined_up(ord_dot, ord, np.ndim(z)) * slope_in_order(x, z, ord, axis, keepdims))
        return z_dot

    return z, power_norm_pushforward


def matrix_norm(x, ord, axes, keepdims):
    """The norm of order `ord` of matrices that lie in two axes."""
    if ord is None or ord in ("f", "fro"):
        return euclidean_norm(x, ord, axes, keepdims)
    matrices = np.moveaxis(x, axes, (-2, -1))
    if ord in (2, -2, "nuc"):
        s = la.svd(matrices, compute_uv=False)
        z = np.sum(s, axis=-1) if ord == "nuc" else np.max(s, axis=-1) if ord == 2 else np.min(s, axis=-1)
    elif ord in (1, -1, np.inf, -np.inf):
        sums = np.sum(np.abs(matrices), axis=-2 if abs(ord) == 1 else -1)
        z = np.max(sums, axis=-1) if ord > 0 else np.min(sums, axis=-1)
    else:
        raise ValueError("Invalid norm order for matrices.")
    return np.expand_dims(z, tuple(sorted(axes))) if keepdims else z


@composed(la.cond)
def cond(x, p=None):
    """norm(x) norm(x^-1)."""
    x = np.asarray(x)
    if x.size == 0 and 0 in x.shape[-2:]:
        raise la.LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        s = la.svd(x, compute_uv=False)
        z = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        z = la.norm(x, p, axis=(-2, -1)) * la.norm(inverse_or_nan(x), p, axis=(-2, -1))
    return np.where(np.isnan(z) & ~np.isnan(x).any(axis=(-2, -1)), np.inf, z)[()]
