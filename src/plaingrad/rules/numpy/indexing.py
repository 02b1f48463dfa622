"""Reading by index: gathers, scatters, selections, flat iterators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.names import array, both, functions, linear, methods, no_slope, refuse_out, written
from plaingrad.rules.numpy.shapes import reinterpreted
from plaingrad.rules.numpy.writing import cycled
from plaingrad.rules.pushforwards import (
    both_forms,
    dot_of,
    flattened,
    joined,
    lined_up,
    pushed,
    total,
    varies,
)
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

no_tangent(*functions(
    "digitize", "unravel_index", "ravel_multi_index", "indices", "diag_indices", "diag_indices_from",
    "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from", "mask_indices", "ndindex",
))  # fmt: skip


# ---------------------------------------------------------------------------------------------------------
# The transposes of gathers, as functions of their own, so that gathers and scatters are each other's rule


def summed(flat: Any, values: Any, n: int) -> Any:
    """A 1-D array of `n` elements, each the sum of the `values` whose entry in `flat` it is."""
    if values.dtype.kind != "f" or values.itemsize > 8 or flat.size == 0:
        z = np.zeros(n, values.dtype)
        np.add.at(z, flat, values)
        return z
    return np.bincount(flat, values, n).astype(values.dtype, copy=False)  # ten times as fast as np.add.at


def add_along_axis(values: Any, indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """An array of `shape` in which `values` are summed where np.take_along_axis(_, indices, axis) would read."""
    grid = list(np.ogrid[tuple(slice(0, n) for n in shape)])
    grid[axis % len(shape)] = np.where(indices < 0, np.add(indices, shape[axis]), indices)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    flat = sum(index * stride for index, stride in zip(grid, strides))
    values = np.asarray(values)
    return summed(np.broadcast_to(flat, values.shape).ravel(), values.ravel(), math.prod(shape)).reshape(shape)


def add_along_axis_push(values_dot, values, z, indices, axis, shape):
    """The same places in an array with the leading axis of a chunk."""
    if np.ndim(values_dot) == np.ndim(values):
        return add_along_axis(values_dot, indices, axis, shape)
    return add_along_axis(values_dot, indices[None], axis % len(shape) + 1, (len(values_dot), *shape))


linear(
    add_along_axis,
    lambda z_bar, values, indices, axis, shape: np.take_along_axis(z_bar, indices, axis),
    add_along_axis_push,
)


def add_at_indices(values: Any, indices: Any, axis: int, n: int) -> Any:
    """An array with `n` rows along `axis` in which `values` are summed where np.take(_, indices, axis) would read."""
    values, indices = np.asarray(values), np.asarray(indices)
    before, after = values.shape[:axis], values.shape[axis + indices.ndim :]
    rows = np.moveaxis(values.reshape((*before, indices.size, *after)), axis, 0)
    k = math.prod(before) * math.prod(after)
    flat = indices.reshape(-1, 1) * k + np.arange(k)
    return np.moveaxis(summed(flat.ravel(), rows.ravel(), n * k).reshape((n, *before, *after)), 0, axis)


linear(
    add_at_indices,
    lambda z_bar, values, indices, axis, n: np.take(z_bar, indices, axis),
    lambda values_dot, values, z, indices, axis, n: add_at_indices(
        values_dot, indices, axis + np.ndim(values_dot) - np.ndim(values), n
    ),
)


# ---------------------------------------------------------------------------------------------------------
# Gathers


def take_adjoint(z_bar, a, indices, axis=None, out=None, mode="raise"):
    """z_bar summed at the rows that were taken."""
    refuse_out("np.take", out)
    shape = np.shape(a)
    along = 0 if axis is None else axis % len(shape)
    n = np.size(a) if axis is None else shape[along]
    chosen = np.arange(n).take(indices, mode=mode)  # counted from the front, wrapped or clipped
    a_bar = add_at_indices(z_bar, chosen, along, n)
    return np.reshape(a_bar, shape) if axis is None else a_bar


def take_push(a_dot, a, z, indices, axis=None, out=None, mode="raise"):
    """The same rows."""
    if axis is None:
        return np.take(flattened(a_dot, a), indices, -1, mode=mode)
    return np.take(a_dot, indices, axis % np.ndim(a) - np.ndim(a), mode=mode)


for f in both("take"):
    linear(f, take_adjoint, take_push)


@rrule(np.take_along_axis)
def take_along_axis_rrule(arr, indices, axis=-1):
    z = np.take_along_axis(arr, indices, axis)
    arr = array(arr)

    def take_along_axis_pullback(z_bar):
        if axis is None:
            flat = add_at_indices(z_bar, np.arange(np.size(arr))[indices], 0, np.size(arr))
            return (np.reshape(flat, np.shape(arr)),)
        return (Thunk(lambda: add_along_axis(z_bar, indices, axis, np.shape(arr))),)

    return z, take_along_axis_pullback


@both_forms(np.take_along_axis, affine=True)
def take_along_axis_frule(arr, indices, axis=-1):
    z = np.take_along_axis(arr, indices, axis)
    return z, lambda dots: pushed(taken_along_axis, dots[0], arr, indices, axis)


def taken_along_axis(a_dot: Any, a: Any, indices: Any, axis: Any) -> Any:
    """np.take_along_axis, of tangents with a leading axis too."""
    a_dot = joined(a_dot, a)
    if axis is None:
        return np.take(flattened(a_dot, a), indices, -1)
    if np.ndim(a_dot) > np.ndim(a):
        indices = np.expand_dims(indices, 0)
    return np.take_along_axis(a_dot, indices, axis % np.ndim(a) - np.ndim(a))


def compress_adjoint(z_bar, a, condition, axis=None):
    """z_bar at the rows that were kept."""
    return take_adjoint(z_bar, a, np.flatnonzero(condition), axis)


@rrule(np.compress)
def compress_rrule(condition, a, axis=None, out=None):
    refuse_out("np.compress", out)
    z = np.compress(condition, a, axis)
    a, condition = array(a), array(condition)

    def compress_pullback(z_bar):
        return no_slope(condition), Thunk(lambda: compress_adjoint(z_bar, a, condition, axis))

    return z, compress_pullback


@both_forms(np.compress, affine=True)
def compress_frule(condition, a, axis=None, out=None):
    refuse_out("np.compress", out)
    z = np.compress(condition, a, axis)
    return z, lambda dots: pushed(compress_push, pushed(joined, dots[1], a), a, z, condition, axis)


def compress_push(a_dot, a, z, condition, axis=None, out=None):
    """The tangents of the rows that are kept."""
    return take_push(a_dot, a, z, np.flatnonzero(condition), axis)


def compress_method_adjoint(z_bar, a, condition, axis=None, out=None):
    """As for the function, with the array first."""
    refuse_out("compress", out)
    return compress_adjoint(z_bar, a, condition, axis)


for f in methods("compress"):
    linear(f, compress_method_adjoint, compress_push)


@rrule(np.extract)
def extract_rrule(condition, arr):
    arr, condition = array(arr), array(condition)

    def extract_pullback(z_bar):
        return no_slope(condition), Thunk(lambda: compress_adjoint(z_bar, arr, np.ravel(condition)))

    return np.extract(condition, arr), extract_pullback


@both_forms(np.extract, affine=True)
def extract_frule(condition, arr):
    z = np.extract(condition, arr)
    return z, lambda dots: pushed(compress_push, pushed(joined, dots[1], arr), arr, z, np.ravel(condition))


def choose(a, choices, out=None, mode="raise"):
    """The element of choices[a[i]] at i, by one np.where for each choice."""
    n = len(choices)
    a = np.asarray(a)
    if mode == "wrap":
        a = a % n
    elif mode == "clip":
        a = np.clip(a, 0, n - 1)
    elif np.any((a < 0) | (a >= n)):
        raise ValueError("invalid entry in choice array")
    z = choices[0]
    for k in range(1, n):
        z = np.where(a == k, choices[k], z)
    z = np.where(a == 0, choices[0], z)
    return written(z if z.ndim or out is not None else z[()], out, True)


composed(np.choose)(choose)


def choose_method(self, *choices, out=None, mode="raise"):
    """As the function; the choices may also come one by one."""
    return choose(self, choices[0] if len(choices) == 1 else choices, out, mode)


for f in methods("choose"):
    composed(f)(choose_method)


# ---------------------------------------------------------------------------------------------------------
# Selection


@rrule(np.where)
def where_rrule(condition, *branches):
    z = np.where(condition, *branches)
    condition = array(condition)

    def where_pullback(z_bar):
        if not branches:
            return (no_slope(condition),)
        return (
            no_slope(condition),
            Thunk(lambda: np.where(condition, z_bar, 0)),
            Thunk(lambda: np.where(condition, 0, z_bar)),
        )

    return z, where_pullback


@both_forms(np.where, affine=True)
def where_frule(condition, *branches):
    z = np.where(condition, *branches)

    def where_pushforward(dots):
        if not branches:
            return ZeroTangent
        x_dot, y_dot = [
            lined_up(joined(x_dot, x), x, np.ndim(z)) if varies(x_dot) else 0 for x_dot, x in zip(dots[1:], branches)
        ]
        return np.where(condition, x_dot, y_dot)

    return z, where_pushforward


def present(bound: Any) -> Any:
    """`bound`, or None where it was left out."""
    return None if bound is np._NoValue else bound


def clipped(function: Any, a: Any, low: Any, high: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """z = min(max(a, low), high), and z_bar -> (a_bar, low_bar, high_bar); at a bound the cotangent stays with `a`."""
    low, high = present(low), present(high)
    z = function(a, low, high, **options)
    a, low, high = array(a), array(low), array(high)

    def bars(z_bar):
        below = False if low is None else np.less(a, low)
        above = False if high is None else np.greater(a if low is None else np.maximum(a, low), high)
        raised = np.logical_and(below, np.logical_not(above))
        low_bar = NoTangent if low is None else Thunk(lambda: np.where(raised, z_bar, 0))
        high_bar = NoTangent if high is None else Thunk(lambda: np.where(above, z_bar, 0))
        return Thunk(lambda: np.where(np.logical_or(below, above), 0, z_bar)), low_bar, high_bar

    return z, bars


def clipped_dot(a_dot: Any, low_dot: Any, high_dot: Any, a: Any, low: Any, high: Any, z: Any) -> Any:
    """z_dot: the tangent of the argument that the result is, `a` where it is at a bound."""
    low, high = present(low), present(high)
    x, lower, upper, ndim = array(a), array(low), array(high), np.ndim(z)
    below = False if low is None else np.less(x, lower)
    above = False if high is None else np.greater(x if low is None else np.maximum(x, lower), upper)
    z_dot = ZeroTangent
    if varies(a_dot):
        z_dot = np.where(np.logical_or(below, above), 0, lined_up(joined(a_dot, a), x, ndim))
    if varies(low_dot):
        raised = np.logical_and(below, np.logical_not(above))
        z_dot = total(z_dot, np.where(raised, lined_up(joined(low_dot, low), lower, ndim), 0))
    if varies(high_dot):
        z_dot = total(z_dot, np.where(above, lined_up(joined(high_dot, high), upper, ndim), 0))
    return z_dot


@rrule(np.clip)
def clip_rrule(a, a_min=None, a_max=None, out=None, min=None, max=None, **options):
    refuse_out("np.clip", out)
    min_named, max_named = present(min) is not None, present(max) is not None
    z, bars = clipped(np.clip, a, min if min_named else a_min, max if max_named else a_max, options)

    def clip_pullback(z_bar):
        a_bar, low_bar, high_bar = bars(z_bar)
        low_bars = (NoTangent, low_bar) if min_named else (low_bar, NoTangent)
        high_bars = (NoTangent, high_bar) if max_named else (high_bar, NoTangent)
        return a_bar, low_bars[0], high_bars[0], NoTangent, low_bars[1], high_bars[1]

    return z, clip_pullback


@both_forms(np.clip, affine=True)
def clip_frule(a, a_min=None, a_max=None, out=None, min=None, max=None, **options):
    refuse_out("np.clip", out)
    min_named, max_named = present(min) is not None, present(max) is not None
    low, high = min if min_named else a_min, max if max_named else a_max
    z = np.clip(a, present(low), present(high), **options)

    def clip_pushforward(dots):
        low_dot, high_dot = dot_of(dots, 4 if min_named else 1), dot_of(dots, 5 if max_named else 2)
        return clipped_dot(dots[0], low_dot, high_dot, a, low, high, z)

    return z, clip_pushforward


def enter_clip(function: Any) -> None:
    """a.clip(min, max), and the ufunc behind it."""

    @rrule(function)
    def clip_method_rrule(a, min=None, max=None, out=None, **options):
        refuse_out("clip", out)
        return clipped(function, a, min, max, options)

    @both_forms(function, affine=True)
    def clip_method_frule(a, min=None, max=None, out=None, **options):
        refuse_out("clip", out)
        z = function(a, present(min), present(max), **options)
        return z, lambda dots: clipped_dot(dots[0], dot_of(dots, 1), dot_of(dots, 2), a, min, max, z)


umath = np._core.umath if hasattr(getattr(np, "_core", None), "umath") else np.core.umath
for f in (umath.clip, *methods("clip")):
    enter_clip(f)


# ---------------------------------------------------------------------------------------------------------
# a.flat


def flat_subscript(base: Any, key: Any) -> Any:
    """The subscript of `base` that reads what `base.flat[key]` reads."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if not -base.size <= key < base.size:
            raise IndexError(f"index {key} is out of bounds for size {base.size}")
        return np.unravel_index(key % base.size, base.shape)
    return np.unravel_index(np.arange(base.size)[key], base.shape)


def plain_base(iterator: Any) -> Any:
    """The array of a flat iterator as a plain one: the iterator passes by what a subclass does with an index.

    One without axes as a vector of one element.
    """
    base = reinterpreted(iterator.base, np.ndarray)
    return base if base.ndim else base.reshape(1)


@composed(np.flatiter.__getitem__)
def flatiter_getitem(self, key):
    """The element, or a new 1-D array of the elements."""
    base = plain_base(self)
    z = base[flat_subscript(base, key)]
    return np.ndarray.__array_wrap__(self.base, z) if isinstance(z, np.ndarray) else z


@composed(np.flatiter.__setitem__, mutates=True)
def flatiter_setitem(self, key, value):
    """Write the elements, with the values repeated as needed."""
    base = plain_base(self)
    places = flat_subscript(base, key)
    base[places] = cycled(value, np.size(places[0])) if np.ndim(places[0]) else value


@composed(np.flatiter.__iter__)
def flatiter_iter(self):
    """The elements, in C order."""
    base = plain_base(self)
    return (base[place] for place in np.ndindex(base.shape))


def advanced(iterator: Any) -> tuple[int, ...]:
    """Where the next element is; the iterator moves on."""
    place = iterator.coords
    vars(np.flatiter)["__next__"](iterator)
    return place


no_tangent(advanced)


@composed(np.flatiter.__next__)
def flatiter_next(self):
    """The next element."""
    return plain_base(self)[advanced(self) or 0]  # without axes there are no coordinates


@composed(np.flatiter.copy)
def flatiter_copy(self):
    """A new 1-D array of the elements."""
    return self.base.flatten()


@composed(np.flatiter.__array__)
def flatiter_array(self, *options):
    """A 1-D array of the elements."""
    return self.base.reshape(-1)
