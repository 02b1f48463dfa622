"""Arrays put together from arrays: concatenation, stacking, repetition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad.define import composed, rrule
from plaingrad.rules.numpy.indexing import add_at_indices
from plaingrad.rules.numpy.names import at_axis, both, functions, linear, linear_rrule, refuse_out
from plaingrad.rules.pushforwards import both_forms, filled, flattened, joined, lead_of, lined_up, reshaped

# ---------------------------------------------------------------------------------------------------------
# Put together: z_bar is taken apart again


def pieces(z_bar: Any, shapes: list[Any], axis: int, promoted: Any) -> list[Any]:
    """z_bar cut along `axis`, for arrays of `shapes` that took part with the shapes promoted(shape)."""
    parts = []
    start = 0
    for shape in shapes:
        n = promoted(shape)[axis]
        part = z_bar[at_axis(slice(start, start + n), axis, np.ndim(z_bar))]
        parts.append(part if np.shape(part) == shape else np.reshape(part, shape))
        start += n
    return parts


def flat_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the flattened array."""
    return (math.prod(shape),)


def same_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape itself."""
    return shape


def shapes_of(arrays: Any) -> list[Any]:
    """The shape of each, now: the list may be changed before the pullback."""
    return [np.shape(a) for a in arrays]


def of_rows(parts: list[Any], is_array: bool) -> Any:
    """The parts as the cotangent of arrays that were put together: a list, or one array where it was one."""
    return np.stack(parts) if is_array and parts else parts


def dots_of(a_dot: Any, arrays: Any) -> list[Any]:
    """The tangent of each of the arrays that are put together."""
    if isinstance(a_dot, (list, tuple)):
        return [joined(x_dot, x) for x_dot, x in zip(a_dot, arrays)]
    return list(np.moveaxis(a_dot, np.ndim(a_dot) - np.ndim(arrays), 0))


@linear_rrule(*functions("concatenate", "concat"))
def concatenate_rrule(arrays, axis=0, out=None, **options):
    refuse_out("np.concatenate", out)
    z = np.concatenate(arrays, axis, **options)
    shapes, is_array = shapes_of(arrays), isinstance(arrays, np.ndarray)
    along, promoted = (0, flat_shape) if axis is None else (axis, same_shape)
    return z, lambda z_bar: (of_rows(pieces(z_bar, shapes, along, promoted), is_array),)


@both_forms(*functions("concatenate", "concat"))
def concatenate_frule(arrays, axis=0, out=None, **options):
    refuse_out("np.concatenate", out)
    z = np.concatenate(arrays, axis, **options)

    def concatenate_pushforward(dots):
        parts = dots_of(dots[0], arrays)
        if axis is None:
            return np.concatenate([flattened(x_dot, x) for x_dot, x in zip(parts, arrays)], -1)
        return np.concatenate(parts, axis % np.ndim(z) - np.ndim(z))

    return z, concatenate_pushforward


def enter_stacking(function: Any, axis_for: Any, promoted: Any) -> None:
    """np.vstack and its kin: concatenation of arrays that get axes first."""

    @linear_rrule(function)
    def stacking_rrule(tup, **options):
        z = function(tup, **options)
        shapes, axis, is_array = shapes_of(tup), axis_for(z), isinstance(tup, np.ndarray)
        return z, lambda z_bar: (of_rows(pieces(z_bar, shapes, axis, promoted), is_array),)

    @both_forms(function)
    def stacking_frule(tup, **options):
        z = function(tup, **options)

        def stacking_pushforward(dots):
            pairs = zip(dots_of(dots[0], tup), tup)
            parts = [reshaped(x_dot, x, promoted(np.shape(x))) for x_dot, x in pairs]
            return np.concatenate(parts, axis_for(z) - np.ndim(z))

        return z, stacking_pushforward


def at_least_2d(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that np.atleast_2d gives."""
    return shape if len(shape) >= 2 else (1,) * (2 - len(shape)) + shape


def at_least_3d(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that np.atleast_3d gives."""
    return shape if len(shape) >= 3 else ((1, 1, 1), (1, *shape, 1), (*shape, 1))[len(shape)]


for f in functions("vstack", "row_stack"):
    enter_stacking(f, lambda z: 0, at_least_2d)
enter_stacking(np.hstack, lambda z: 0 if np.ndim(z) == 1 else 1, lambda shape: shape or (1,))
enter_stacking(np.dstack, lambda z: 2, at_least_3d)
enter_stacking(np.column_stack, lambda z: 1, lambda shape: (*(shape or (1,)), 1) if len(shape) < 2 else shape)


@linear_rrule(np.stack)
def stack_rrule(arrays, axis=0, out=None, **options):
    refuse_out("np.stack", out)
    return np.stack(arrays, axis, **options), lambda z_bar: (z_bar if axis == 0 else np.moveaxis(z_bar, axis, 0),)


@both_forms(np.stack)
def stack_frule(arrays, axis=0, out=None, **options):
    refuse_out("np.stack", out)
    z = np.stack(arrays, axis, **options)
    return z, lambda dots: np.stack(dots_of(dots[0], arrays), axis % np.ndim(z) - np.ndim(z))


@rrule(np.append)
def append_rrule(arr, values, axis=None):
    z = np.append(arr, values, axis)

    shapes = shapes_of((arr, values))
    along, promoted = (0, flat_shape) if axis is None else (axis, same_shape)

    def append_pullback(z_bar):
        return tuple(pieces(z_bar, shapes, along, promoted))

    return z, append_pullback


@both_forms(np.append, affine=True)
def append_frule(arr, values, axis=None):
    def append_pushforward(dots):
        pairs = [(dots[0], arr), (dots[1], values)]
        lead = lead_of(*pairs)
        parts = [filled(x_dot, x, lead) for x_dot, x in pairs]
        if axis is None:
            return np.concatenate([flattened(part, x) for part, (_, x) in zip(parts, pairs)], -1)
        return np.concatenate(parts, axis % np.ndim(arr) - np.ndim(arr))

    return np.append(arr, values, axis), append_pushforward


# ---------------------------------------------------------------------------------------------------------
# Repeated


def repeat_adjoint(z_bar, a, repeats, axis=None):
    """z_bar summed over the copies of each element."""
    shape = np.shape(a)
    along = 0 if axis is None else axis % len(shape)
    n = np.size(a) if axis is None else shape[along]
    if np.ndim(repeats) == 0:
        split = np.reshape(z_bar, (*np.shape(z_bar)[:along], n, int(repeats), *np.shape(z_bar)[along + 1 :]))
        a_bar = np.sum(split, axis=along + 1)
    else:
        a_bar = add_at_indices(z_bar, np.repeat(np.arange(n), repeats), along, n)
    return np.reshape(a_bar, shape)


def repeat_push(a_dot, a, z, repeats, axis=None):
    """The tangent of each copy."""
    if axis is None:
        return np.repeat(flattened(a_dot, a), repeats, -1)
    return np.repeat(a_dot, repeats, axis % np.ndim(a) - np.ndim(a))


for f in both("repeat"):
    linear(f, repeat_adjoint, repeat_push)


def tile_adjoint(z_bar, A, reps):
    """z_bar summed over the copies."""
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    shape = np.shape(A)
    d = max(len(shape), len(reps))
    padded = (1,) * (d - len(shape)) + shape
    reps = (1,) * (d - len(reps)) + reps
    split = np.reshape(z_bar, tuple(n for pair in zip(reps, padded) for n in pair))
    return np.reshape(np.sum(split, axis=tuple(range(0, 2 * d, 2))), shape)


def tile_push(a_dot, A, z, reps):
    """The tangent of each copy."""
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    lead = np.ndim(a_dot) - np.ndim(A)
    a_dot = lined_up(a_dot, A, np.ndim(z))
    return np.tile(a_dot, (*(1,) * (lead + np.ndim(z) - len(reps)), *reps) if lead else reps)


linear(np.tile, tile_adjoint, tile_push)


def resized(a, new_shape):
    """The elements of `a`, again and again, in the new shape."""
    shape = (new_shape,) if np.ndim(new_shape) == 0 else tuple(new_shape)
    n = int(np.prod(shape))
    flat = np.ravel(a)
    if n == 0 or flat.size == 0:
        return np.zeros(shape, flat.dtype)
    again = np.concatenate((flat,)) if flat.size == n else np.take(flat, np.arange(n) % flat.size)  # a copy in any case
    return np.reshape(again, shape)


composed(np.resize)(resized)
