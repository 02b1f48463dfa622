"""Statistics of NumPy taken apart: differences, averages, quantiles, and what leaves out nan."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.lowering.composition import COMPOSED, composed, is_number, is_real_array, is_vector
from plaingrad.native.runtime.declare import register_jitable


@composed(
    np.trapezoid if hasattr(np, "trapezoid") else None, lambda y, *rest: is_vector(y) and len(rest) == 0
)
def trapezoid(y):  # type: ignore[no-untyped-def]
    """The sum of the means of neighbours."""
    s = 0.0
    for i in range(len(y) - 1):
        s += (y[i] + y[i + 1]) / 2.0
    return s


@composed(np.ediff1d, lambda a, *rest: is_vector(a) and not rest)
def ediff1d(ary):  # type: ignore[no-untyped-def]
    """Differences of neighbours."""
    return ary[1:] - ary[:-1]


@composed(np.diff, lambda a, *rest: is_vector(a) and len(rest) == 1)
def diff(a, n=1):  # type: ignore[no-untyped-def]
    """Differences of neighbours, n times."""
    found = a.copy()
    for _ in range(n):
        found = found[1:] - found[:-1]
    return found


def average_of(a: Any, axis: Any = None, weights: Any = None) -> Any:
    """np.average(a) and np.average(a, weights=w)."""
    if not is_real_array(a) or not isinstance(axis, (type(None), types.NoneType, types.Omitted)):
        return None
    return weighted if isinstance(weights, types.Array) else plain_average


COMPOSED[np.average] = average_of


def weighted(a, axis=None, weights=None):  # type: ignore[no-untyped-def]
    """The sum of a w over the sum of w."""
    return np.sum(np.multiply(a, weights)) / np.sum(weights)


def plain_average(a, axis=None, weights=None):  # type: ignore[no-untyped-def]
    """The mean."""
    return np.mean(a)


@composed(np.median, is_real_array)
def median(a):  # type: ignore[no-untyped-def]
    """The element in the middle, or the mean of the two."""
    ordered = np.sort(a.flatten())
    n = ordered.size
    if n == 0 or np.isnan(ordered[-1]):
        return ordered[-1] if n else np.nan
    if n % 2 == 1:
        return ordered[n // 2]
    return np.mean(ordered[n // 2 - 1 : n // 2 + 1])


@register_jitable
def quantile_at(ordered, q):  # type: ignore[no-untyped-def]
    """The linear interpolation between neighbours in a sorted vector."""
    n = ordered.size
    if np.isnan(ordered[n - 1]):
        return np.nan * ordered[n - 1]
    rank = 1 + (n - 1) * q
    low = int(np.floor(rank))
    if n == 1 or low >= n:
        return ordered[n - 1]
    share = rank - low
    return ordered[low - 1] + share * (ordered[low] - ordered[low - 1])


@composed(np.quantile, lambda a, q: is_real_array(a) and is_number(q))
def quantile(a, q):  # type: ignore[no-untyped-def]
    """Where a part q of the numbers lies below."""
    if not 0 <= q <= 1:
        raise ValueError("Quantiles must be in the range [0, 1]")
    return quantile_at(np.sort(a.flatten()), q)


@composed(np.percentile, lambda a, q: is_real_array(a) and is_number(q))
def percentile(a, q):  # type: ignore[no-untyped-def]
    """Where q percent of the numbers lie below."""
    if not 0 <= q <= 100:
        raise ValueError("Percentiles must be in the range [0, 100]")
    return quantile_at(np.sort(a.flatten()), q / 100)


@composed(np.cov, lambda m, *rest: is_real_array(m) and m.ndim == 2 and not rest)
def cov(m):  # type: ignore[no-untyped-def]
    """Covariances of the rows."""
    centred = np.empty(m.shape)
    for i in range(m.shape[0]):
        centred[i] = m[i] - np.mean(m[i])
    return np.dot(centred, np.ascontiguousarray(centred.T)) / (m.shape[1] - 1)


@composed(np.corrcoef, lambda m, *rest: is_real_array(m) and m.ndim == 2 and not rest)
def corrcoef(x):  # type: ignore[no-untyped-def]
    """Covariances of the rows over their deviations."""
    c = np.cov(x)
    found = np.empty(c.shape)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            found[i, j] = c[i, j] / np.sqrt(c[i, i]) / np.sqrt(c[j, j])
    return np.clip(found, -1.0, 1.0)


@composed(np.nanmax, is_real_array)
def nanmax(a):  # type: ignore[no-untyped-def]
    """The greatest element that is a number."""
    flat = a.flatten()
    known = flat[~np.isnan(flat)]
    return known.max() if known.size else np.nan


@composed(np.nanmin, is_real_array)
def nanmin(a):  # type: ignore[no-untyped-def]
    """The least element that is a number."""
    flat = a.flatten()
    known = flat[~np.isnan(flat)]
    return known.min() if known.size else np.nan


@composed(np.nanprod, is_real_array)
def nanprod(a):  # type: ignore[no-untyped-def]
    """The product of the elements that are numbers."""
    s = 1.0
    for x in np.ascontiguousarray(a).ravel():
        if not np.isnan(x):
            s *= x
    return s


@composed(np.nanvar, is_real_array)
def nanvar(a):  # type: ignore[no-untyped-def]
    """The variance of the elements that are numbers."""
    mean = np.nanmean(a)
    s, n = 0.0, 0
    for x in np.ascontiguousarray(a).ravel():
        if not np.isnan(x):
            s += (x - mean) * (x - mean)
            n += 1
    return np.divide(s, n)


@composed(np.nanstd, is_real_array)
def nanstd(a):  # type: ignore[no-untyped-def]
    """The deviation of the elements that are numbers."""
    return np.nanvar(a) ** 0.5


@composed(np.nanmedian, is_real_array)
def nanmedian(a):  # type: ignore[no-untyped-def]
    """The median of the elements that are numbers."""
    flat = a.flatten()
    known = flat[~np.isnan(flat)]
    return np.median(known) if known.size else np.nan


@composed(np.nancumsum, is_real_array)
def nancumsum(a):  # type: ignore[no-untyped-def]
    """Running sums, nan counted as 0."""
    flat = a.flatten()
    found = np.empty(flat.size)
    s = 0.0
    for i in range(flat.size):
        if not np.isnan(flat[i]):
            s += flat[i]
        found[i] = s
    return found


@composed(np.nancumprod, is_real_array)
def nancumprod(a):  # type: ignore[no-untyped-def]
    """Running products, nan counted as 1."""
    flat = a.flatten()
    found = np.empty(flat.size)
    s = 1.0
    for i in range(flat.size):
        if not np.isnan(flat[i]):
            s *= flat[i]
        found[i] = s
    return found
