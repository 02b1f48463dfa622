"""Formulas of array rules: reductions, cumulative sums and products, sorting."""

from __future__ import annotations

import numpy as np

from plaingrad.native.runtime.declare import register_jitable


@register_jitable
def prod_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.prod(a): the product of the others, without division."""
    x = a.flatten()
    out = np.empty(x.size, x.dtype)
    before = np.ones(1, x.dtype)[0]
    after = before
    for k in range(x.size):
        out[k] = before
        before = before * x[k]
    for k in range(x.size - 1, -1, -1):
        out[k] *= after
        after = after * x[k]
    return (z_bar * np.conj(out)).reshape(a.shape)


@register_jitable
def extremes(z, a):  # type: ignore[no-untyped-def]
    """The shares of the elements that equal the extreme z of a; of the first nan if it is nan."""
    x = a.flatten()
    out = np.zeros(x.size, x.dtype)
    count = 0
    for k in range(x.size):
        if x[k] == z:
            count += 1
            out[k] = 1
        elif z != z and x[k] != x[k] and count == 0:
            count = 1
            out[k] = 1
    if count > 1:
        for k in range(x.size):
            out[k] /= count
    return out.reshape(a.shape)


@register_jitable
def weighted(weights, x):  # type: ignore[no-untyped-def]
    """weights * x, and 0 where a weight is 0, whatever `x` is."""
    return np.where(weights != 0.0, weights * x, 0.0 * weights)


@register_jitable
def extreme_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.max(a), np.min(a)."""
    return weighted(extremes(z, a), z_bar)


@register_jitable
def extreme_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.max(a), np.min(a)."""
    return np.sum(weighted(extremes(z, a), a_dot))


@register_jitable
def ptp_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.ptp(a)."""
    return weighted(extremes(np.max(a), a) - extremes(np.min(a), a), z_bar)


@register_jitable
def ptp_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.ptp(a)."""
    return np.sum(weighted(extremes(np.max(a), a) - extremes(np.min(a), a), a_dot))


@register_jitable
def prod_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.prod(a)."""
    return np.sum(a_dot * np.conj(prod_bar(1.0, z, a)))


@register_jitable
def var_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.var(a)."""
    return (a - np.mean(a)) * (2.0 * z_bar / max(a.size, 1))


@register_jitable
def var_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.var(a)."""
    return np.sum((np.conj(a - np.mean(a)) * a_dot).real) * (2.0 / max(a.size, 1))


@register_jitable
def std_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.std(a); 0 where all elements are equal."""
    return (a - np.mean(a)) * (z_bar / (max(a.size, 1) * z) if z != 0 else 0.0)


@register_jitable
def std_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.std(a); 0 where all elements are equal."""
    return np.sum((np.conj(a - np.mean(a)) * a_dot).real) * (1.0 / (max(a.size, 1) * z) if z != 0 else 0.0)


@register_jitable
def nansum_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.nansum(a)."""
    return np.where(np.isnan(a), np.zeros_like(a), np.full_like(a, z_bar))


@register_jitable
def nansum_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.nansum(a)."""
    return np.sum(np.where(np.isnan(a), np.zeros_like(a_dot), a_dot))


@register_jitable
def nanmean_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.nanmean(a)."""
    return nansum_bar(z_bar / max(np.sum(~np.isnan(a)), 1), z, a)


@register_jitable
def nanmean_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.nanmean(a)."""
    return nansum_dot(a_dot, z, a) / max(np.sum(~np.isnan(a)), 1)


@register_jitable
def cumsum_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.cumsum(a) of all elements."""
    out = np.empty(a.size, z_bar.dtype)
    carry = np.zeros(1, z_bar.dtype)[0]
    for k in range(a.size - 1, -1, -1):
        carry = carry + z_bar[k]
        out[k] = carry
    return out.reshape(a.shape)


@register_jitable
def cumprod_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.cumprod(a) of all elements, without division."""
    x = np.conj(a.flatten())
    out = np.empty(a.size, z_bar.dtype)
    carry = np.zeros(1, z_bar.dtype)[0]
    for k in range(a.size - 1, -1, -1):
        carry = carry + z_bar[k]
        out[k] = carry * np.conj(z[k - 1]) if k else carry
        carry = carry * x[k]
    return out.reshape(a.shape)


@register_jitable
def cumprod_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.cumprod(a) of all elements."""
    x = a.flatten()
    x_dot = a_dot.flatten()
    out = np.empty_like(z)
    carry = np.zeros(1, z.dtype)[0]
    for k in range(x.size):
        carry = carry * x[k] + (z[k - 1] * x_dot[k] if k else x_dot[k])
        out[k] = carry
    return out


@register_jitable
def sort_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.sort(a) of a vector; equal elements keep their order."""
    order = np.argsort(a, kind="mergesort")
    out = np.empty_like(a)
    for k in range(a.size):
        out[order[k]] = z_bar[k]
    return out


@register_jitable
def order_of(a):  # type: ignore[no-untyped-def]
    """The places from which sorting takes the elements of a vector."""
    return np.argsort(a, kind="mergesort")


@register_jitable
def unsort(bar, order):  # type: ignore[no-untyped-def]
    """Bring the cotangents of a vector that was sorted in place back to where they belong."""
    now = bar.copy()
    for k in range(bar.size):
        bar[order[k]] = now[k]


@register_jitable
def resort(a_dot, order):  # type: ignore[no-untyped-def]
    """Sort tangents as their vector was sorted."""
    now = a_dot.copy()
    for k in range(a_dot.size):
        a_dot[k] = now[order[k]]


@register_jitable
def sort_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.sort(a) of a vector."""
    return a_dot[np.argsort(a, kind="mergesort")]
