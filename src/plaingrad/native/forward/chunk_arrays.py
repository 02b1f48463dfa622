"""Arithmetic of arrays of lanes, in loops over their elements; slopes and tangents are broadcast.

Each function has a twin for CPython, where lanes are vectors of floats and arrays of lanes are arrays of objects.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.forward.chunks import as_floats, as_lanes, objects, unit, unit_lanes, zero_lanes
from plaingrad.native.runtime.declare import overload, register_jitable


@register_jitable
def _broadcast(x, shape):  # type: ignore[no-untyped-def]
    return np.broadcast_to(x, shape)


@register_jitable
def _as_it_is(x, shape):  # type: ignore[no-untyped-def]
    return x


@register_jitable
def _element(x, place):  # type: ignore[no-untyped-def]
    return x[place]


def _number(x, place):  # type: ignore[no-untyped-def]
    return x


@overload(_number)
def _the_number(x, place):  # type: ignore[no-untyped-def]
    if isinstance(x, types.Array):
        return lambda x, place: x[()]
    return lambda x, place: x


def add_scaled(target, slope, x_dot):  # type: ignore[no-untyped-def]
    """target += slope * x_dot, of arrays of lanes; slopes and tangents are broadcast to the shape of the target."""
    if not isinstance(x_dot, np.ndarray) or x_dot.dtype != object:
        x_dot = filled(target.shape, x_dot)
    each = np.broadcast_to(x_dot, target.shape)
    slopes = np.broadcast_to(slope, target.shape)
    for place in np.ndindex(target.shape):
        target[place] = target[place] + slopes[place] * each[place]


def filled(shape: Any, x: Any) -> np.ndarray:
    """`x` for every element, under CPython."""
    out = objects(shape)
    for place in np.ndindex(shape):
        out[place] = x
    return out


@overload(add_scaled)
def _add_scaled(target, slope, x_dot):  # type: ignore[no-untyped-def]
    many_slopes = isinstance(slope, types.Array) and slope.ndim > 0
    many_dots = isinstance(x_dot, types.Array) and x_dot.ndim > 0
    ndim = target.ndim
    shape_of_slope, shape_of_dot = (_broadcast if many else _as_it_is for many in (many_slopes, many_dots))
    slope_at, dot_at = (_element if many else _number for many in (many_slopes, many_dots))
    if ndim == 1:

        def vector(target, slope, x_dot):  # type: ignore[no-untyped-def]
            slopes = shape_of_slope(slope, target.shape)
            each = shape_of_dot(x_dot, target.shape)
            for i in range(target.shape[0]):
                target[i] = target[i] + slope_at(slopes, i) * dot_at(each, i)

        return vector

    def general(target, slope, x_dot):  # type: ignore[no-untyped-def]
        slopes = shape_of_slope(slope, target.shape)
        each = shape_of_dot(x_dot, target.shape)
        for place in np.ndindex(target.shape):
            target[place] = target[place] + slope_at(slopes, place) * dot_at(each, place)

    return general


def scale(target, factor):  # type: ignore[no-untyped-def]
    """target *= factor, of an array of lanes; the factor is broadcast."""
    factors = np.broadcast_to(factor, target.shape)
    for place in np.ndindex(target.shape):
        target[place] = target[place] * factors[place]


@overload(scale)
def _scale(target, factor):  # type: ignore[no-untyped-def]
    many = isinstance(factor, types.Array) and factor.ndim > 0
    shaped, at = (_broadcast, _element) if many else (_as_it_is, _number)

    def scaled(target, factor):  # type: ignore[no-untyped-def]
        factors = shaped(factor, target.shape)
        for place in np.ndindex(target.shape):
            target[place] = target[place] * at(factors, place)

    return scaled


def blend(target, factor, slope, x_dot):  # type: ignore[no-untyped-def]
    """target = factor * target + slope * x_dot, of arrays of lanes; the others are broadcast."""
    if not isinstance(x_dot, np.ndarray) or x_dot.dtype != object:
        x_dot = filled(target.shape, x_dot)
    factors, slopes, each = (np.broadcast_to(x, target.shape) for x in (factor, slope, x_dot))
    for place in np.ndindex(target.shape):
        target[place] = target[place] * factors[place] + slopes[place] * each[place]


@overload(blend)
def _blend(target, factor, slope, x_dot):  # type: ignore[no-untyped-def]
    many = [isinstance(t, types.Array) and t.ndim > 0 for t in (factor, slope, x_dot)]
    shaped_f, shaped_s, shaped_x = (_broadcast if each else _as_it_is for each in many)
    at_f, at_s, at_x = (_element if each else _number for each in many)

    def blended(target, factor, slope, x_dot):  # type: ignore[no-untyped-def]
        factors = shaped_f(factor, target.shape)
        slopes = shaped_s(slope, target.shape)
        each = shaped_x(x_dot, target.shape)
        for place in np.ndindex(target.shape):
            term = at_s(slopes, place) * at_x(each, place)
            target[place] = target[place] * at_f(factors, place) + term

    return blended


def left_product(a_dot, b):  # type: ignore[no-untyped-def]
    """a_dot @ b for an array of lanes a_dot; vectors or matrices."""
    return a_dot @ b.astype(object)


@overload(left_product)
def _left_product(a_dot, b):  # type: ignore[no-untyped-def]
    n = a_dot.dtype.n
    if a_dot.ndim == 1 and b.ndim == 1:

        def vectors(a_dot, b):  # type: ignore[no-untyped-def]
            out = zero_lanes(n)
            for i in range(b.shape[0]):
                out = out + b[i] * a_dot[i]
            return out

        return vectors
    if b.ndim == 1:

        def rows(a_dot, b):  # type: ignore[no-untyped-def]
            made = as_lanes(np.zeros((a_dot.shape[0], n)), n)
            for i in range(a_dot.shape[0]):
                out = zero_lanes(n)
                for j in range(b.shape[0]):
                    out = out + b[j] * a_dot[i, j]
                made[i] = out
            return made

        return rows
    if a_dot.ndim == 1:

        def columns(a_dot, b):  # type: ignore[no-untyped-def]
            made = as_lanes(np.zeros((b.shape[1], n)), n)
            for j in range(b.shape[0]):
                for k in range(b.shape[1]):
                    made[k] = made[k] + b[j, k] * a_dot[j]
            return made

        return columns

    def matrices(a_dot, b):  # type: ignore[no-untyped-def]
        made = as_lanes(np.zeros((a_dot.shape[0], b.shape[1], n)), n)
        for i in range(a_dot.shape[0]):
            for j in range(b.shape[0]):
                for k in range(b.shape[1]):
                    made[i, k] = made[i, k] + b[j, k] * a_dot[i, j]
        return made

    return matrices


def right_product(b_dot, a):  # type: ignore[no-untyped-def]
    """a @ b_dot for an array of lanes b_dot; vectors or matrices."""
    return a.astype(object) @ b_dot


@overload(right_product)
def _right_product(b_dot, a):  # type: ignore[no-untyped-def]
    n = b_dot.dtype.n
    if a.ndim == 1 and b_dot.ndim == 1:
        return lambda b_dot, a: left_product(b_dot, a)
    if a.ndim == 1:
        return lambda b_dot, a: left_product(b_dot.T, a)
    if b_dot.ndim == 1 and b_dot.layout == "C" and a.layout in "CF" and a.dtype == types.float64:
        return lambda b_dot, a: as_lanes(np.dot(a, as_floats(b_dot)), n)
    if b_dot.ndim == 1:
        return lambda b_dot, a: left_product(b_dot, a.T)

    def matrices(b_dot, a):  # type: ignore[no-untyped-def]
        made = as_lanes(np.zeros((a.shape[0], b_dot.shape[1], n)), n)
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                for k in range(b_dot.shape[1]):
                    made[i, k] = made[i, k] + a[i, j] * b_dot[j, k]
        return made

    return matrices


def fill(target, x_dot):  # type: ignore[no-untyped-def]
    """target[...] = x_dot, the lanes of a number for every element."""
    for place in np.ndindex(target.shape):
        target[place] = x_dot


@overload(fill)
def _fill(target, x_dot):  # type: ignore[no-untyped-def]
    def filled(target, x_dot):  # type: ignore[no-untyped-def]
        for place in np.ndindex(target.shape):
            target[place] = x_dot

    return filled


def copied(x_dot):  # type: ignore[no-untyped-def]
    """An array of lanes in new memory, in C order."""
    out = objects(x_dot.shape)
    for place in np.ndindex(x_dot.shape):
        out[place] = x_dot[place].copy()
    return out


@overload(copied)
def _copied(x_dot):  # type: ignore[no-untyped-def]
    width = x_dot.dtype.n
    if x_dot.layout == "C":
        return lambda x_dot: as_lanes(as_floats(x_dot).copy(), width)

    def one_by_one(x_dot):  # type: ignore[no-untyped-def]
        out = as_lanes(np.empty(x_dot.shape + (width,)), width)
        for place in np.ndindex(x_dot.shape):
            out[place] = x_dot[place]
        return out

    return one_by_one


def total(x_dot, n):  # type: ignore[no-untyped-def]
    """The sum of all elements of an array of lanes."""
    out = np.zeros(n)
    for place in np.ndindex(x_dot.shape):
        out = out + x_dot[place]
    return out


@overload(total)
def _total(x_dot, n):  # type: ignore[no-untyped-def]
    width = x_dot.dtype.n
    if x_dot.ndim == 1:

        def of_vector(x_dot, n):  # type: ignore[no-untyped-def]
            out = zero_lanes(width)
            for i in range(x_dot.shape[0]):
                out = out + x_dot[i]
            return out

        return of_vector

    def of_array(x_dot, n):  # type: ignore[no-untyped-def]
        out = zero_lanes(width)
        for place in np.ndindex(x_dot.shape):
            out = out + x_dot[place]
        return out

    return of_array


def unit_at(a, place, column, n):  # type: ignore[no-untyped-def]
    """The unit tangent of a[place], where the first element of `a` has 1.0 in lane `column`."""
    return unit_lanes(column + int(np.arange(a.size).reshape(a.shape)[place]), n)


@overload(unit_at, prefer_literal=True)
def _unit_at(a, place, column, n):  # type: ignore[no-untyped-def]
    if not isinstance(n, types.IntegerLiteral):
        return None
    width = n.literal_value
    if not isinstance(place, types.BaseTuple):

        def in_vector(a, place, column, n):  # type: ignore[no-untyped-def]
            k = np.int64(place)
            return unit(column + (k if k >= 0 else k + a.shape[0]), width)

        return in_vector

    if not len(place):
        return lambda a, place, column, n: unit(column, width)

    def in_array(a, place, column, n):  # type: ignore[no-untyped-def]
        at = 0
        for axis in range(len(place)):
            k = np.int64(place[axis])
            at = at * a.shape[axis] + (k if k >= 0 else k + a.shape[axis])
        return unit(column + at, width)

    return in_array
