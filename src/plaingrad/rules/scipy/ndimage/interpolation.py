"""Spline interpolation of images at coordinates: map_coordinates, affine_transform, shift, zoom, rotate.

z = sum over the neighbours of w(coordinates) c, with the weights of B-splines: linear in the coefficients c, and a piecewise
polynomial in the coordinates, whose derivative has the same form with derivatives of the weights.
"""

from __future__ import annotations

import math
from functools import cache, reduce
from itertools import product as combinations
from typing import Any

import numpy as np
from scipy.ndimage import _nd_image

from plaingrad.rules.pushforwards import dot_of, pushed, total
from plaingrad.rules.scipy.compiled import constant, each, enter
from plaingrad.rules.scipy.ndimage.filters import defined, outer_rows
from plaingrad.tangents import NoTangent, Thunk

NEAREST, WRAP, REFLECT, MIRROR, CONSTANT, GRID_WRAP, GRID_CONSTANT = range(7)


def folded(x: Any, n: int, mode: int) -> Any:
    """Coordinates brought into the array of n points, their slope (1, -1 or 0), and which are outside."""
    one, none = np.ones_like(x), np.zeros(x.shape, bool)
    low, high = x < 0, x > n - 1
    out = low | high
    if mode == CONSTANT:
        return np.where(out, 0.0, x), one, out
    if mode in (GRID_CONSTANT, NEAREST):  # of these the neighbours are folded, not the coordinates
        return x, one, none
    if n <= 1 and mode != GRID_WRAP:
        return x * 0, one * 0, none
    if mode == WRAP:
        inside = np.where(low, x + (n - 1) * (np.floor(-x / (n - 1)) + 1), np.where(high, np.mod(x, n - 1), x))
        return inside, one, none
    if mode == GRID_WRAP:
        return np.where(out, np.mod(x, n), x), one, none
    if mode == MIRROR:
        y = np.mod(x, 2 * n - 2)
        back = out & (y > n - 1)
        return np.where(back, 2 * n - 2 - y, np.where(out, y, x)), np.where(back, -1.0, 1.0), none
    y = np.mod(x, 2 * n)
    back = out & (y >= n)
    y = np.where(back, 2 * n - 1 - y, np.where(out, y, x))
    return y, np.where(back, -1.0, 1.0), none


@cache
def pieces(order: int, nu: int) -> tuple[tuple[float, ...], ...]:
    """The B-spline of an order at t + order // 2 - k, differentiated nu times, as polynomials in t, highest power first.

    t is between 0 and 1, or -1/2 and 1/2 where the order is even: there the truncated powers that make up the spline
    are powers or nothing.
    """
    found = []
    for k in range(order + 1):
        total = np.poly1d([0.0])
        for j in range(order + 2):
            shift = order // 2 - k + (order + 1) / 2 - j
            if shift >= 0:
                total += (-1) ** j * math.comb(order + 1, j) * np.poly1d([1.0, shift]) ** order
        found.append(tuple((total.deriv(nu) if nu else total).coeffs / math.factorial(order)))
    return tuple(found)


def basis(t: Any, order: int, nu: int) -> Any:
    """The weights of the order + 1 neighbours, differentiated nu times; t is the distance from the first of them."""
    weights = np.empty((order + 1, *t.shape))
    for weight, (highest, *rest) in zip(weights, pieces(order, nu)):
        weight[...] = highest
        for coefficient in rest:  # Horner
            weight *= t
            weight += coefficient
    return weights


def neighbours(x: Any, n: int, order: int, mode: int) -> Any:
    """Where to count from, and the places of the order + 1 coefficients that count, folded; -1 where there is none."""
    first = np.floor(x + 0.5) if order % 2 == 0 else np.floor(x)
    places = first.astype(np.intp)[None] + (np.arange(order + 1) - order // 2).reshape(-1, *(1,) * x.ndim)
    if mode == GRID_CONSTANT:
        return first, np.where((places >= 0) & (places < n), places, -1)
    if mode == NEAREST:
        return first, np.clip(places, 0, n - 1)
    far = max(0, -int(places.min(initial=0)), int(places.max(initial=0)) - n + 1)
    how = {GRID_WRAP: GRID_WRAP, REFLECT: REFLECT}.get(mode, MIRROR)
    before, after = outer_rows(n, far, far, how)
    table = np.concatenate([before, np.arange(n), after])
    return first, table[places + far]


def taps(coords: Any, shape: Any, order: int, mode: int, nu: Any) -> Any:
    """For every combination of neighbours: flat places, and weights, which are 0 where nothing is interpolated."""
    per_axis, outside = [], np.zeros(coords.shape[1:], bool)
    for axis, n in enumerate(shape):
        x, slope, out = folded(coords[axis], n, mode)
        outside |= out
        first, found = neighbours(x, n, order, mode)
        weights = basis(x - first, order, nu[axis])
        for _ in range(nu[axis]):
            weights *= slope[None]
        weights[found < 0] = 0.0
        per_axis.append((np.maximum(found, 0) * math.prod(shape[axis + 1 :]), weights))
    per_axis[0][1][:, outside] = 0.0
    for which in combinations(range(order + 1), repeat=len(shape)):
        found, weights = zip(*((found[k], weights[k]) for k, (found, weights) in zip(which, per_axis)))
        yield reduce(np.add, found), reduce(np.multiply, weights)


constant(folded, basis, neighbours)


def interpolated(c: Any, coords: Any, order: int, mode: int, nu: Any) -> Any:
    """z at coordinates (axis, ...), differentiated nu[axis] times along each axis; nothing is added outside."""
    z, flat = np.zeros(coords.shape[1:]), c.reshape(-1)
    if not any(nu):
        _nd_image.geometric_transform(c, None, coords, None, None, z, order, mode, 0.0, 0, None, None)
        return z
    for place, weight in taps(coords, c.shape, order, mode, nu):
        z += flat[place] * weight
    return z


def spread(z: Any, coords: Any, shape: Any, order: int, mode: int, nu: Any) -> Any:
    """The transpose in c: numbers at coordinates, put to the neighbours of these."""
    c = np.zeros(math.prod(shape))
    for place, weight in taps(coords, shape, order, mode, nu):
        c += np.bincount(np.ravel(place), np.ravel(z * weight), len(c))
    return c.reshape(shape)


def once_more(nu: Any, axis: int) -> Any:
    """`nu` with one derivative more along an axis."""
    return tuple([count + (k == axis) for k, count in enumerate(nu)])


constant(once_more)


def interpolated_rrule(c: Any, coords: Any, order: int, mode: int, nu: Any) -> Any:
    def interpolated_pullback(z_bar: Any) -> Any:
        def coords_bar() -> Any:
            axes = range(coords.shape[0])
            return np.stack([z_bar * interpolated(c, coords, order, mode, once_more(nu, axis)) for axis in axes])

        c_bar = Thunk(lambda: spread(z_bar, coords, c.shape, order, mode, nu))
        return c_bar, Thunk(coords_bar), NoTangent, NoTangent, NoTangent

    return interpolated(c, coords, order, mode, nu), interpolated_pullback


def interpolated_frule(c: Any, coords: Any, order: int, mode: int, nu: Any) -> Any:
    def interpolated_pushforward(dots: Any) -> Any:
        def along(coords_dot: Any) -> Any:
            slopes = [interpolated(c, coords, order, mode, once_more(nu, axis)) for axis in range(coords.shape[0])]
            return each(lambda part: sum(slope * part[axis] for axis, slope in enumerate(slopes)), coords_dot, coords)

        return total(
            pushed(lambda d: each(lambda part: interpolated(part, coords, order, mode, nu), d, c), dots[0]),
            pushed(along, dot_of(dots, 1)),
        )

    return interpolated(c, coords, order, mode, nu), interpolated_pushforward


def spread_rrule(z: Any, coords: Any, shape: Any, order: int, mode: int, nu: Any) -> Any:
    def spread_pullback(c_bar: Any) -> Any:
        def coords_bar() -> Any:
            axes = range(coords.shape[0])
            return np.stack([z * interpolated(c_bar, coords, order, mode, once_more(nu, axis)) for axis in axes])

        z_bar = Thunk(lambda: interpolated(c_bar, coords, order, mode, nu))
        return z_bar, Thunk(coords_bar), NoTangent, NoTangent, NoTangent, NoTangent

    return spread(z, coords, shape, order, mode, nu), spread_pullback


def spread_frule(z: Any, coords: Any, shape: Any, order: int, mode: int, nu: Any) -> Any:
    def spread_pushforward(dots: Any) -> Any:
        def along(part: Any) -> Any:
            axes = range(coords.shape[0])
            return sum(spread(z * part[axis], coords, shape, order, mode, once_more(nu, axis)) for axis in axes)

        return total(
            pushed(lambda d: each(lambda part: spread(part, coords, shape, order, mode, nu), d, z), dots[0]),
            pushed(lambda d: each(along, d, coords), dot_of(dots, 1)),
        )

    return spread(z, coords, shape, order, mode, nu), spread_pushforward


enter(interpolated, interpolated_rrule, interpolated_frule)
enter(spread, spread_rrule, spread_frule)


def missing(coords: Any, shape: Any, mode: int) -> Any:
    """Where the value is cval, and where neighbours are: shares are what the weights of those add up to."""
    out = np.zeros(coords.shape[1:], bool)
    for axis, n in enumerate(shape):
        out |= folded(coords[axis], n, mode)[2]
    return out


constant(missing)


def at(c, coords, output, order, mode, cval):
    """Write what is interpolated; outside is cval."""
    nu = (0,) * c.ndim
    z = interpolated(c, coords, order, mode, nu)
    if mode == CONSTANT:
        z = np.where(missing(coords, c.shape, mode), cval, z)
    elif mode == GRID_CONSTANT:
        z = z + cval * (1.0 - interpolated(np.ones(c.shape), coords, order, mode, nu))
    output[...] = z


@defined("geometric_transform", mutates=True)
def geometric_transform(c, mapping, coordinates, matrix, offset, output, order, mode, cval, npad, args, kwargs):
    """Coordinates are given, or a matrix and an offset, or a function of the output's indices."""
    if mapping is not None:
        found = [np.stack(mapping(place, *args, **kwargs)) * 1.0 for place in np.ndindex(*output.shape)]
        coordinates = np.moveaxis(np.stack(found).reshape(*output.shape, c.ndim), -1, 0)
    if coordinates is None:
        places = np.indices(output.shape).reshape(output.ndim, -1)
        coordinates = (matrix @ places + offset[:, None]).reshape(len(matrix), *output.shape)
    at(c, coordinates + float(npad), output, order, mode, cval)


@defined("zoom_shift", mutates=True)
def zoom_shift(c, zoom, shift, output, order, mode, cval, npad, grid_mode):
    """Coordinate zoom (i + shift); in grid mode that of pixels' edges."""
    lines = []
    for axis in range(c.ndim):
        line = np.arange(output.shape[axis]) * 1.0
        if shift is not None:
            line = line + shift[axis]
        if zoom is not None:
            line = (line + 0.5) * zoom[axis] - 0.5 if grid_mode else line * zoom[axis]
        lines.append(line + float(npad))
    grid = [np.broadcast_to(x.reshape([-1 if k == n else 1 for k in range(c.ndim)]), output.shape) for n, x in enumerate(lines)]
    at(c, np.stack(grid), output, order, mode, cval)
