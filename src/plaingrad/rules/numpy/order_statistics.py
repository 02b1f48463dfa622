"""Extremes, quantiles and medians along axes.

In a rule `a` is the array, `z` the result; `where` selects the elements that take part.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad.define import composed, rrule
from plaingrad.rules.numpy.factors import merged, unmerged
from plaingrad.rules.numpy.indexing import add_along_axis
from plaingrad.rules.numpy.names import (
    ABSENT,
    array,
    axes_of,
    both,
    functions,
    given,
    refuse,
    refuse_out,
    restored,
    written,
)
from plaingrad.rules.numpy.reductions import summed, with_numbers
from plaingrad.rules.numpy.sorting import order_of
from plaingrad.rules.pushforwards import both_forms, dot_of, from_back, joined, lined_up, total, varies
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

# ---------------------------------------------------------------------------------------------------------
# Extremes: elements that tie share the cotangent equally


def winners_of(a: Any, z: Any, axis: Any, where: Any, initial: Any) -> tuple[Any, Any, Any]:
    """Which elements are the extreme, whether `initial` is, and how many they are (at least 1), in axes of length 1."""
    shape = np.shape(a)
    top = restored(z, shape, axis)
    winners = a == top
    if np.isnan(z).any():  # only nans can have made it one
        winners = winners | np.isnan(a)
    if where is not True and where is not ABSENT:
        winners = winners & where
    n = winners.sum(axis=axes_of(axis, len(shape)), keepdims=True)
    if initial is ABSENT or initial is None:
        return winners, None, np.maximum(n, 1)
    tie = (top == initial) | (np.isnan(top) & np.isnan(initial))
    return winners, tie, np.maximum(n + tie, 1)


def extreme_bar(z_bar: Any, a: Any, z: Any, axis: Any, where: Any, initial: Any) -> tuple[Any, Any]:
    """(a_bar, initial_bar)."""
    winners, tie, n = winners_of(a, z, axis, where, initial)
    slope = restored(z_bar, np.shape(a), axis)
    share = slope / n.astype(slope.dtype)
    return np.where(winners, share, 0), NoTangent if tie is None else np.where(tie, share, 0)


def extreme_dot(a_dot: Any, initial_dot: Any, a: Any, z: Any, axis: Any, keepdims: Any, where: Any, initial: Any) -> Any:
    """z_dot: the mean over the winners."""
    winners, tie, n = winners_of(a, z, axis, where, initial)
    n = np.reshape(n, np.shape(z))
    z_dot = ZeroTangent
    if varies(a_dot):
        sums = summed(np.where(winners, a_dot, 0), from_back(axis, np.ndim(a)), keepdims)
        z_dot = sums / n.astype(sums.dtype)
    if varies(initial_dot) and tie is not None:
        z_dot = total(z_dot, np.reshape(tie, np.shape(z)) * lined_up(initial_dot, initial, np.ndim(z)) / n)
    return z_dot


def enter_extreme(function: Any, skip_nan: bool = False) -> None:
    """a_bar = z_bar / (how many are equal to z) at those, else 0."""

    @rrule(function)
    def extreme_rrule(a, axis=None, out=None, keepdims=ABSENT, initial=ABSENT, where=True):
        refuse_out(function.__name__, out)
        options = given(keepdims=keepdims, initial=initial)
        if where is not True:
            options["where"] = where
        z = function(a, axis, None, **options)
        a = array(a)

        def extreme_pullback(z_bar):
            mask = where
            if skip_nan:  # a slice of nans only gives nan, with no element behind it
                mask = with_numbers(where, a)
            a_bar, initial_bar = extreme_bar(z_bar, np.asarray(a), z, axis, mask, initial)
            return a_bar, NoTangent, NoTangent, NoTangent, initial_bar

        return z, extreme_pullback

    @both_forms(function, affine=True)
    def extreme_frule(a, axis=None, out=None, keepdims=ABSENT, initial=ABSENT, where=True):
        refuse_out(function.__name__, out)
        options = given(keepdims=keepdims, initial=initial)
        if where is not True:
            options["where"] = where
        z = function(a, axis, None, **options)

        def extreme_pushforward(dots):
            x = np.asarray(a)
            mask = with_numbers(where, x) if skip_nan else where
            return extreme_dot(joined(dots[0], a), dot_of(dots, 4), x, z, axis, keepdims, mask, initial)

        return z, extreme_pushforward


for f in both("max", "min", "amax", "amin"):
    enter_extreme(f)
enter_extreme(np.nanmax, skip_nan=True)
enter_extreme(np.nanmin, skip_nan=True)


def spread_between_extremes(a, axis=None, out=None, keepdims=ABSENT):
    """Max - min."""
    z = np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims)
    return written(z, out, True)


for f in both("ptp"):
    composed(f)(spread_between_extremes)


# ---------------------------------------------------------------------------------------------------------
# Order statistics: between two neighbours in sorted order, z = (1 - t) s[k] + t s[k + 1]

# dposition/dq for n elements: the methods of np.quantile whose result moves with q; the others jump.
SPEEDS: dict[str, Any] = {
    "linear": lambda n: n - 1,
    "weibull": lambda n: n + 1,
    "hazen": lambda n: n,
    "interpolated_inverted_cdf": lambda n: n,
    "median_unbiased": lambda n: n + 1 / 3,
    "normal_unbiased": lambda n: n + 1 / 4,
}


def neighbours(a: Any, axis: Any, locate: Any) -> tuple[Any, ...]:
    """Where the order statistics of `a` came from.

    Returns: the elements taken together as last axis, for each statistic (last axis) the indices there of its two
    neighbours, the weight t of the upper one, and its position in sorted order. `locate(ramp, order)` applies
    the NumPy function itself to the ramp 0, 1, ..., n - 1 of sorted order: the result *is* the position.
    """
    elements = merged(a, axes_of(axis, np.ndim(a)))
    n = np.shape(elements)[-1]
    order = order_of(elements, np.sort(elements, -1), -1)
    nan = np.isnan(np.take_along_axis(elements, order, -1))
    ramp = np.where(nan, np.nan, np.arange(float(n)))
    position = np.asarray(locate(ramp, order))
    extra = position.ndim - (ramp.ndim - 1)  # axes that q had
    position = np.moveaxis(np.reshape(position, (math.prod(position.shape[:extra]), *position.shape[extra:])), 0, -1)
    below = np.where(np.isnan(position), n - 1, np.floor(position)).astype(np.intp)  # a nan result is a nan element
    t = np.where(np.isnan(position), 0, position - below).astype(np.real(elements).dtype)
    above = np.minimum(below + 1, n - 1)
    return elements, np.take_along_axis(order, below, -1), np.take_along_axis(order, above, -1), t, position


def order_statistic_bar(z_bar: Any, a: Any, axis: Any, found: tuple[Any, ...]) -> Any:
    """a_bar: (1 - t) z_bar and t z_bar at the two neighbours."""
    elements, lower, upper, t, _ = found
    axes = axes_of(axis, np.ndim(a))
    slope = np.moveaxis(np.reshape(z_bar, (np.shape(t)[-1], *np.shape(elements)[:-1])), 0, -1)
    shape = np.shape(elements)
    a_bar = add_along_axis(slope * (1 - t), lower, -1, shape) + add_along_axis(slope * t, upper, -1, shape)
    return unmerged(a_bar, np.shape(a), axes)


def order_statistic_dot(a_dot: Any, a: Any, z: Any, axis: Any, found: tuple[Any, ...]) -> Any:
    """z_dot: (1 - t) a_dot and t a_dot of the two neighbours."""
    _, lower, upper, t, _ = found
    lead = np.ndim(a_dot) - np.ndim(a)
    elements_dot = merged(a_dot, tuple([i + lead for i in axes_of(axis, np.ndim(a))]))
    if lead:
        lower, upper = lower[None], upper[None]
    below, above = np.take_along_axis(elements_dot, lower, -1), np.take_along_axis(elements_dot, upper, -1)
    return statistics_first(below * (1 - t) + above * t, z, lead)


def statistics_first(z_dot: Any, z: Any, lead: int) -> Any:
    """`z_dot`, whose last axis runs over the statistics, in the shape of z."""
    return np.reshape(np.moveaxis(z_dot, -1, lead), (*np.shape(z_dot)[:lead], *np.shape(z)))


def quantile_speed(method: str, elements: Any, scale: float) -> Any:
    """dposition/dq."""
    n = np.sum(~np.isnan(elements), axis=-1, keepdims=True)
    return SPEEDS.get(method, lambda n: 0)(n) / scale


def quantile_of(function: Any, a, q, axis, out, method, keepdims, others) -> tuple[Any, Any, Any, Any]:
    """The result, the arguments as arrays, and what finds the positions."""
    refuse_out(function.__name__, out)
    if np.ndim(q) > 1 and function in functions("nanquantile", "nanpercentile"):  # NumPy misplaces the axes of q
        raise refuse(f"np.{function.__name__} of a matrix q", "has no rule", "np.ravel(q)")
    z = function(a, q, axis, None, False, method, **given(keepdims=keepdims), **others)
    a = array(a)
    q = array(q)
    weights = others.get("weights")

    def locate(ramp, order):
        if weights is None:
            return function(ramp, q, ramp.ndim - 1, method=method)
        full = np.asarray(weights)
        if full.shape == np.shape(a):
            full = merged(full, axes_of(axis, np.ndim(a)))
        sorted_weights = np.take_along_axis(np.broadcast_to(full, order.shape), order, -1)
        return function(ramp, q, ramp.ndim - 1, method=method, weights=sorted_weights)

    return z, a, q, locate


def slope_in_q(found: tuple[Any, ...], method: str, scale: float) -> Any:
    """dz/dq, where the order statistics are."""
    elements, lower, upper, _, position = found
    moves = (position > 0) | (method == "linear")
    gap = np.take_along_axis(elements, upper, -1) - np.take_along_axis(elements, lower, -1)
    return np.where(moves, gap * quantile_speed(method, elements, scale), 0)


def enter_quantile(function: Any, scale: float) -> None:
    """Quantiles and percentiles; q_bar = z_bar (s[k + 1] - s[k]) dposition/dq."""

    @rrule(function)
    def quantile_rrule(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=ABSENT, **others):
        z, a, q, locate = quantile_of(function, a, q, axis, out, method, keepdims, others)

        def quantile_pullback(z_bar):
            array = np.asarray(a)
            found = neighbours(array, axis, locate)

            def q_bar():
                elements, _, _, _, position = found
                bars = np.moveaxis(np.reshape(z_bar, (np.shape(position)[-1], *np.shape(elements)[:-1])), 0, -1)
                bars = bars * slope_in_q(found, method, scale)
                return np.reshape(np.sum(bars, axis=tuple(range(np.ndim(bars) - 1))), np.shape(q))

            return Thunk(lambda: order_statistic_bar(z_bar, array, axis, found)), Thunk(q_bar)

        return z, quantile_pullback

    @both_forms(function)
    def quantile_frule(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=ABSENT, **others):
        given_a, given_q = a, q
        z, a, q, locate = quantile_of(function, a, q, axis, out, method, keepdims, others)

        def quantile_pushforward(dots):
            x = np.asarray(a)
            found = neighbours(x, axis, locate)
            z_dot = ZeroTangent
            if varies(dots[0]):
                z_dot = order_statistic_dot(joined(dots[0], given_a), x, z, axis, found)
            if varies(dots[1]):
                q_dot = joined(dots[1], given_q)
                lead = np.ndim(q_dot) - np.ndim(q)
                slope = slope_in_q(found, method, scale)
                rows = (*np.shape(q_dot)[:lead], *(1,) * (np.ndim(slope) - 1), np.size(q))
                z_dot = total(z_dot, statistics_first(np.reshape(q_dot, rows) * slope, z, lead))
            return z_dot

        return z, quantile_pushforward


def enter_median(function: Any) -> None:
    """a_bar: z_bar at the middle element, or half of it at each of the two."""

    @rrule(function)
    def median_rrule(a, axis=None, out=None, overwrite_input=False, keepdims=ABSENT):
        refuse_out(function.__name__, out)
        z = function(a, axis, None, False, **given(keepdims=keepdims))
        a = array(a)

        def median_pullback(z_bar):
            array = np.asarray(a)
            found = neighbours(array, axis, lambda ramp, order: function(ramp, -1))
            return (order_statistic_bar(z_bar, array, axis, found),)

        return z, median_pullback

    @both_forms(function, affine=True)
    def median_frule(a, axis=None, out=None, overwrite_input=False, keepdims=ABSENT):
        refuse_out(function.__name__, out)
        z = function(a, axis, None, False, **given(keepdims=keepdims))

        def median_pushforward(dots):
            if not varies(dots[0]):
                return ZeroTangent
            x = np.asarray(a)
            found = neighbours(x, axis, lambda ramp, order: function(ramp, -1))
            return order_statistic_dot(joined(dots[0], a), x, z, axis, found)

        return z, median_pushforward


for f in functions("quantile", "nanquantile"):
    enter_quantile(f, 1)
for f in functions("percentile", "nanpercentile"):
    enter_quantile(f, 100)
enter_median(np.median)
enter_median(np.nanmedian)
