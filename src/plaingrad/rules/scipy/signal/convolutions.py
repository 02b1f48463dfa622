"""Direct convolutions and correlations, and medians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.signal import _peak_finding_utils, _sigtools

from plaingrad.rules.numpy.names import conj
from plaingrad.rules.pushforwards import dot_of, pushed, total
from plaingrad.rules.scipy.compiled import constant, definitions, each, enter
from plaingrad.tangents import Thunk

defined = definitions(_sigtools)
QUICK = "fdFD"  # types that every loop takes


def correlated(a: Any, v: Any) -> Any:
    """z[n] = sum over k of a[n + k] conj(v[k]) where all of v lies inside."""
    dtype = np.result_type(a, v)
    shape = [m - n + 1 for m, n in zip(a.shape, v.shape, strict=True)]
    if math.prod(shape) < v.size and dtype.char in QUICK:  # few long sums
        windows = np.lib.stride_tricks.sliding_window_view(a.astype(dtype, copy=False), v.shape)
        axes = list(range(2 * a.ndim))
        return np.einsum(windows, axes, conj(v.astype(dtype, copy=False)), axes[a.ndim :], axes[: a.ndim])
    if a.ndim == 2 and dtype.char in QUICK:  # several times as fast as the general loop
        return _sigtools._convolve2d(a.astype(dtype, copy=False), conj(v.astype(dtype, copy=False)), 0, 0, 0, 0)
    z = np.empty(shape, dtype)
    return _sigtools._correlateND(a.astype(dtype, copy=False), v.astype(dtype, copy=False), z, 0)


def around(z: Any, sizes: Any) -> Any:
    """`z` between zeros, so many on both sides of each axis."""
    inner = tuple([slice(n, n + m) for n, m in zip(sizes, z.shape, strict=True)])
    whole = np.zeros([m + 2 * n for n, m in zip(sizes, z.shape, strict=True)], z.dtype)
    whole[inner] = z
    return whole


def correlated_rrule(a: Any, v: Any) -> Any:
    def correlated_pullback(z_bar: Any) -> Any:
        sizes = [n - 1 for n in v.shape]
        a_bar = Thunk(lambda: correlated(around(z_bar, sizes), conj(np.flip(v))))
        return a_bar, Thunk(lambda: correlated(a, z_bar))

    return correlated(a, v), correlated_pullback


def correlated_frule(a: Any, v: Any) -> Any:
    def correlated_pushforward(dots: Any) -> Any:
        return total(
            pushed(lambda a_dot: each(lambda part: correlated(part, v), a_dot, a), dots[0]),
            pushed(lambda v_dot: each(lambda part: correlated(a, part), v_dot, v), dot_of(dots, 1)),
        )

    return correlated(a, v), correlated_pushforward


enter(correlated, correlated_rrule, correlated_frule)


@defined("_correlateND", mutates=True)
def correlate_nd(a, v, out=None, mode=2):
    """Mode 0: where all of v lies inside; 2: anywhere, where a has its zeros behind it; 1: the middle of that."""
    if mode != 0:
        sizes = [n - 1 for n in v.shape]
        whole = np.zeros([m + n for m, n in zip(a.shape, sizes, strict=True)], a.dtype)
        whole[tuple([slice(n, n + m) for n, m in zip(sizes, a.shape, strict=True)])] = a
        z = correlated(whole, v)
        if out is not None and mode == 1:
            starts = [(m - n) // 2 for m, n in zip(z.shape, out.shape, strict=True)]
            z = z[tuple([slice(start, start + n) for start, n in zip(starts, out.shape, strict=True)])]
    else:
        z = correlated(a, v)
    if out is None:
        return z
    out[...] = z
    return out


BOUNDARIES = {0: "constant", 4: "symmetric", 8: "wrap"}


@defined("_convolve2d")
def convolve2d(a, v, flip=1, mode=2, boundary=0, fillvalue=0):
    """The matrix is continued as the boundary says; `full` is 2, `same` 1 (its middle), `valid` 0."""
    kernel = v[::-1, ::-1] if flip else v
    if mode == 0:
        sizes = [(0, 0), (0, 0)]
    elif mode == 2:
        sizes = [(n - 1, n - 1) for n in v.shape]
    else:
        halves = [(n - 1) // 2 for n in v.shape]
        rest = [n - 1 - half for n, half in zip(v.shape, halves, strict=True)]
        sizes = list(zip(rest, halves, strict=True) if flip else zip(halves, rest, strict=True))
    how = BOUNDARIES[int(boundary) & 12]
    options = {"constant_values": fillvalue} if how == "constant" else {}
    return correlated(np.pad(a, sizes, how, **options), conj(kernel))


def medians_at(image: Any, size: Any) -> Any:
    """For each pixel the place of its median in the image with zeros around it, and how wide these are."""
    sizes = [int(n) // 2 for n in size]
    whole = np.pad(image, [(n, n) for n in sizes])
    windows = np.lib.stride_tricks.sliding_window_view(whole, tuple(size))
    places = np.lib.stride_tricks.sliding_window_view(np.arange(whole.size).reshape(whole.shape), tuple(size))
    shape, count = windows.shape[:2], windows.shape[2] * windows.shape[3]
    order = np.argpartition(windows.reshape(*shape, count), count // 2, -1)[..., count // 2]
    return np.take_along_axis(places.reshape(*shape, count), order[..., None], -1)[..., 0], sizes


constant(medians_at)


for place in ("_local_maxima_1d", "_select_by_peak_distance"):
    constant(getattr(_peak_finding_utils, place, None))


@definitions(_peak_finding_utils)("_peak_prominences")
def peak_prominences(x, peaks, wlen):
    """How far a peak stands above the higher one of its bases."""
    left, right = bases(x, peaks, wlen)
    return x[peaks] - np.maximum(x[left], x[right]), left, right


def bases(x: Any, peaks: Any, wlen: Any) -> Any:
    """Where the signal is lowest on both sides, before it is higher than the peak."""
    return _peak_finding_utils._peak_prominences(x, peaks, wlen)[1:]


constant(bases)


@defined("_medfilt2d")
def median_filter(image, size):
    places, sizes = medians_at(image, size)
    return np.pad(image, [(n, n) for n in sizes]).ravel()[places]
