"""Linear filters. The array is continued beyond its ends as the mode says, by copies of its own rows; then the filter is
a correlation where all of its weights lie inside, whose adjoint is the correlation with the weights reversed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import _nd_image

from plaingrad.rules.pushforwards import dot_of, pushed, total
from plaingrad.rules.scipy.compiled import constant, definitions, each, enter
from plaingrad.tangents import NoTangent, Thunk

CONSTANT = (4, 6)  # `constant` and `grid-constant`: beyond the ends is cval
defined = definitions(_nd_image)


def outer_rows(n: int, left: int, right: int, mode: int) -> Any:
    """Which rows are repeated before the first and after the last: `nearest` 0, `wrap` 1 and 5, `reflect` 2, `mirror` 3."""
    places = np.concatenate([np.arange(-left, 0), np.arange(n, n + right)])
    if mode == 0:
        places = np.clip(places, 0, n - 1)
    elif mode in (1, 5):
        places = places % n
    elif mode == 2:
        places = places % (2 * n)
        places = np.where(places >= n, 2 * n - 1 - places, places)
    elif n == 1:
        places = places * 0
    else:
        places = places % (2 * n - 2)
        places = np.where(places >= n, 2 * n - 2 - places, places)
    return places[:left], places[left:]


constant(outer_rows)


def continued(x, axis, left, right, mode, cval):
    """`x` with rows added before and after it along one axis."""
    if left == 0 and right == 0:
        return x
    if mode in CONSTANT:
        sides = [np.full((*x.shape[:axis], n, *x.shape[axis + 1 :]), cval, x.dtype) for n in (left, right)]
    else:
        sides = [np.take(x, places, axis) for places in outer_rows(x.shape[axis], left, right, mode)]
    return np.concatenate([sides[0], x, sides[1]], axis)


def inside(n: int, size: int, axis: int, ndim: int) -> Any:
    """The part of n rows for which a filter of this size, with its centre at size // 2, lies inside."""
    first = size // 2
    return (*(slice(None),) * axis, slice(first, first + n - size + 1), *(slice(None),) * (ndim - axis - 1))


def precision(*arrays: Any) -> Any:
    """That of a result: the compiled code computes in double precision."""
    return np.result_type(*arrays, np.float32)


def line(x: Any, weights: Any, axis: int) -> Any:
    """z[n] = sum over k of x[n + k] weights[k] along one axis."""
    if np.iscomplexobj(x) or np.iscomplexobj(weights):
        parts = [line(part, weights.real, axis) + 1j * line(part, weights.imag, axis) for part in (x.real, x.imag)]
        return parts[0] + 1j * parts[1]
    z = np.zeros(x.shape, precision(x))
    _nd_image.correlate1d(x, weights.astype(np.float64), axis, z, 4, 0.0, 0)
    return z[inside(x.shape[axis], len(weights), axis, x.ndim)]


def between(z: Any, axis: int, count: int) -> Any:
    """`z` between so many rows of zeros."""
    zeros = np.zeros((*z.shape[:axis], count, *z.shape[axis + 1 :]), z.dtype)
    return np.concatenate([zeros, z, zeros], axis)


def line_rrule(x: Any, weights: Any, axis: int) -> Any:
    size, n = len(weights), x.shape[axis]

    def weight(z_bar: Any, k: int) -> Any:
        window = x[(slice(None),) * axis + (slice(k, k + n - size + 1),)]
        axes = list(range(x.ndim))
        return np.einsum(z_bar, axes, window, axes, [])

    def line_pullback(z_bar: Any) -> Any:
        x_bar = Thunk(lambda: line(between(z_bar, axis, size - 1), weights[::-1], axis))
        return x_bar, Thunk(lambda: np.stack([weight(z_bar, k) for k in range(size)])), NoTangent

    return line(x, weights, axis), line_pullback


def line_frule(x: Any, weights: Any, axis: int) -> Any:
    def line_pushforward(dots: Any) -> Any:
        return total(
            pushed(lambda x_dot: each(lambda part: line(part, weights, axis), x_dot, x), dots[0]),
            pushed(lambda w_dot: each(lambda part: line(x, part, axis), w_dot, weights), dot_of(dots, 1)),
        )

    return line(x, weights, axis), line_pushforward


enter(line, line_rrule, line_frule, "bilinear")


@defined("correlate1d", mutates=True)
def correlate1d(x, weights, axis, output, mode, cval, origin):
    """Weight number size // 2 + origin is that of the place itself."""
    axis = axis % x.ndim
    before = len(weights) // 2 + origin
    whole = continued(x, axis, before, len(weights) - 1 - before, mode, cval)
    output[...] = line(whole, weights, axis)


@defined("uniform_filter1d", mutates=True)
def uniform_filter1d(x, size, axis, output, mode, cval, origin):
    axis = axis % x.ndim
    before = size // 2 + origin
    whole = continued(x, axis, before, size - 1 - before, mode, cval)
    output[...] = box(whole, size, axis)


def box(x: Any, size: int, axis: int) -> Any:
    """z[n] = the mean of x[n], ..., x[n + size - 1] along one axis."""
    z = np.zeros(x.shape, precision(x))
    _nd_image.uniform_filter1d(x, size, axis, z, 4, 0.0, 0)
    return z[inside(x.shape[axis], size, axis, x.ndim)]


def box_rrule(x: Any, size: int, axis: int) -> Any:
    def box_pullback(z_bar: Any) -> Any:
        return box(between(z_bar, axis, size - 1), size, axis), NoTangent, NoTangent

    return box(x, size, axis), box_pullback


def box_frule(x: Any, size: int, axis: int) -> Any:
    def box_pushforward(dots: Any) -> Any:
        return pushed(lambda x_dot: each(lambda part: box(part, size, axis), x_dot, x), dots[0])

    return box(x, size, axis), box_pushforward


enter(box, box_rrule, box_frule, "linear")


def plane(x: Any, weights: Any) -> Any:
    """z[n] = sum over k of x[n + k] weights[k], n and k with as many numbers as there are axes."""
    if np.iscomplexobj(x) or np.iscomplexobj(weights):
        parts = [plane(part, weights.real) + 1j * plane(part, weights.imag) for part in (x.real, x.imag)]
        return parts[0] + 1j * parts[1]
    z = np.zeros(x.shape, precision(x))
    _nd_image.correlate(x, weights.astype(np.float64), z, 4, 0.0, [0] * x.ndim)
    return z[tuple([slice(m // 2, m // 2 + n - m + 1) for n, m in zip(x.shape, weights.shape, strict=True)])]


def plane_rrule(x: Any, weights: Any) -> Any:
    def weight(z_bar: Any, k: Any) -> Any:
        return (z_bar * x[tuple([slice(i, i + n) for i, n in zip(k, z_bar.shape, strict=True)])]).sum()

    def x_cotangent(z_bar: Any) -> Any:
        for axis, n in enumerate(weights.shape):
            z_bar = between(z_bar, axis, n - 1)
        return plane(z_bar, np.flip(weights))

    def plane_pullback(z_bar: Any) -> Any:
        w_bar = Thunk(
            lambda: np.stack([weight(z_bar, k) for k in np.ndindex(weights.shape)]).reshape(weights.shape)
        )
        return Thunk(lambda: x_cotangent(z_bar)), w_bar

    return plane(x, weights), plane_pullback


def plane_frule(x: Any, weights: Any) -> Any:
    def plane_pushforward(dots: Any) -> Any:
        return total(
            pushed(lambda x_dot: each(lambda part: plane(part, weights), x_dot, x), dots[0]),
            pushed(lambda w_dot: each(lambda part: plane(x, part), w_dot, weights), dot_of(dots, 1)),
        )

    return plane(x, weights), plane_pushforward


enter(plane, plane_rrule, plane_frule, "bilinear")


@defined("correlate", mutates=True)
def correlate(x, weights, output, mode, cval, origins):
    for axis in range(x.ndim):
        n = weights.shape[axis]
        before = n // 2 + int(origins[axis])
        x = continued(x, axis, before, n - 1 - before, mode, cval)
    output[...] = plane(x, weights)


# ---------------------------------------------------------------------------------------------------------
# Splines' coefficients c solve B c = x, where B is the matrix of the spline's values, continued as the mode says


SHORT = 40  # rows: below, SciPy's start of the recursion for `reflect` is not exact, nor then is its matrix symmetric


def coefficients(x: Any, order: int, axis: int, mode: int) -> Any:
    """c along one axis."""
    z = np.zeros(x.shape, precision(x))
    _nd_image.spline_filter1d(x, order, axis, z, mode)
    return z


def end_weights(n: int, mode: int, ndim: int, axis: int) -> Any:
    """D, for which D B is symmetric: rows at the ends count half where these are mirrored at themselves."""
    weights = np.ones(n)
    if mode in (1, 3, 4, 6) and n > 1:
        weights[0] = weights[-1] = 0.5
    return weights.reshape([n if k == axis else 1 for k in range(ndim)])


def coefficients_rrule(x: Any, order: int, axis: int, mode: int) -> Any:
    def coefficients_pullback(z_bar: Any) -> Any:
        if mode in (0, 2) and x.shape[axis] < SHORT:
            matrix = coefficients(np.eye(x.shape[axis]), order, 0, mode)
            x_bar = np.moveaxis(np.tensordot(matrix, z_bar, (0, axis)), 0, axis)
            return x_bar, NoTangent, NoTangent, NoTangent
        ends = end_weights(x.shape[axis], mode, x.ndim, axis)
        return ends * coefficients(z_bar / ends, order, axis, mode), NoTangent, NoTangent, NoTangent

    return coefficients(x, order, axis, mode), coefficients_pullback


def coefficients_frule(x: Any, order: int, axis: int, mode: int) -> Any:
    def coefficients_pushforward(dots: Any) -> Any:
        return pushed(lambda x_dot: each(lambda part: coefficients(part, order, axis, mode), x_dot, x), dots[0])

    return coefficients(x, order, axis, mode), coefficients_pushforward


enter(coefficients, coefficients_rrule, coefficients_frule, "linear")


@defined("spline_filter1d", mutates=True)
def spline_filter1d(x, order, axis, output, mode):
    output[...] = coefficients(x, order, axis % x.ndim, mode)
