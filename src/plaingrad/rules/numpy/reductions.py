"""Sums, products, extremes and moments along axes.

In a rule `a` is the array, `z` the result; `where` selects the elements that take part. The versions that leave
nan out are the plain ones with `where=~isnan(a)`.
"""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.indexing import add_along_axis, order_of
from plaingrad.rules.numpy.names import (
    ABSENT,
    array,
    at_axis,
    axes_of,
    both,
    conj,
    count,
    functions,
    given,
    linear_rrule,
    methods,
    refuse,
    refuse_out,
    restored,
    spread,
    write_results,
    written,
)
from plaingrad.rules.pushforwards import (
    both_forms,
    dot_of,
    filled,
    flattened,
    from_back,
    joined,
    lead_of,
    lined_up,
    pushed,
    total,
    varies,
)
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

no_tangent(*both(
    "argmax", "argmin", "argsort", "argpartition", "nonzero", "searchsorted", "count_nonzero",
    "nanargmax", "nanargmin", "alltrue", "sometrue", "argwhere", "flatnonzero", "lexsort",
    "isclose", "allclose", "array_equal", "array_equiv", "isin", "in1d",
    "iscomplex", "isreal",
))  # fmt: skip
for f in functions("fix", "isneginf", "isposinf"):
    write_results(f, 1)
for f in (*functions("any", "all"), *both("round", "around", "round_")):
    write_results(f, 2)
for f in methods("any", "all"):  # they take a dtype first
    write_results(f, 3)


def masked(x: Any, where: Any) -> Any:
    """`x` where selected, else zero; `x` itself if everything is."""
    return x if where is True or where is ABSENT else np.where(where, x, 0)


# ---------------------------------------------------------------------------------------------------------
# Sum and mean


def enter_sum(function: Any, skip_nan: bool = False) -> None:
    """a_bar: z_bar repeated along the summed axes."""

    def primal(a, axis, dtype, out, keepdims, initial, where):
        refuse_out("np.sum", out)
        if isinstance(a, types.GeneratorType):
            raise refuse("np.sum of a generator", "hides its elements", "builtins.sum(...), or np.sum([...]) of a list")
        options = given(keepdims=keepdims, initial=initial)
        if where is not True:
            options["where"] = where
        return function(a, axis, dtype, None, **options)

    @rrule(function)
    def sum_rrule(a, axis=None, dtype=None, out=None, keepdims=ABSENT, initial=ABSENT, where=True):
        z = primal(a, axis, dtype, out, keepdims, initial, where)
        shape = np.shape(a)  # all that the pullback needs to know of a, which may be written later
        mask = with_numbers(where, array(a)) if skip_nan else where

        def sum_pullback(z_bar):
            def a_bar():
                return masked(spread(z_bar, shape, axis), mask)

            return Thunk(a_bar), NoTangent, NoTangent, NoTangent, NoTangent, z_bar

        return z, sum_pullback

    @both_forms(function, affine=True)
    def sum_frule(a, axis=None, dtype=None, out=None, keepdims=ABSENT, initial=ABSENT, where=True):
        z = primal(a, axis, dtype, out, keepdims, initial, where)

        def sum_pushforward(dots):
            initial_dot = dot_of(dots, 5)
            if varies(initial_dot):
                initial_dot = lined_up(initial_dot, initial, np.ndim(z))
            if not varies(dots[0]):
                return initial_dot
            a_dot = joined(dots[0], a)
            mask = with_numbers(where, array(a)) if skip_nan else where
            return total(summed(masked(a_dot, mask), from_back(axis, np.ndim(a)), keepdims, dtype), initial_dot)

        return z, sum_pushforward


def summed(x: Any, axes: Any, keepdims: Any, dtype: Any = None) -> Any:
    """np.sum over `axes`, with NumPy's mark for options not given."""
    return np.sum(x, axis=axes, dtype=dtype, keepdims=keepdims is not ABSENT and bool(keepdims))


def with_numbers(where: Any, a: Any) -> Any:
    """`where`, but not at nan."""
    numbers = ~np.isnan(a)
    return numbers if where is True or where is ABSENT else numbers & where


def mean_bar(z_bar: Any, a: Any, axis: Any, where: Any) -> Any:
    """z_bar / n, repeated along the averaged axes."""
    shape = np.shape(a)
    if where is True or where is ABSENT:
        n = count(shape, axis)
        return spread(z_bar / n if n else z_bar, shape, axis)
    slope = restored(z_bar, shape, axis)
    n = np.sum(np.broadcast_to(where, shape), axis=axes_of(axis, len(shape)), keepdims=True)
    return masked(slope / n.astype(slope.dtype), where)


def enter_mean(function: Any, skip_nan: bool = False) -> None:
    """a_bar = z_bar / n."""

    @rrule(function)
    def mean_rrule(a, axis=None, dtype=None, out=None, keepdims=ABSENT, where=ABSENT):
        refuse_out("np.mean", out)
        z = function(a, axis, dtype, None, **given(keepdims=keepdims, where=where))
        a = array(a)

        def mean_pullback(z_bar):
            return (Thunk(lambda: mean_bar(z_bar, a, axis, with_numbers(where, a) if skip_nan else where)),)

        return z, mean_pullback

    @both_forms(function, affine=True)
    def mean_frule(a, axis=None, dtype=None, out=None, keepdims=ABSENT, where=ABSENT):
        refuse_out("np.mean", out)
        z = function(a, axis, dtype, None, **given(keepdims=keepdims, where=where))

        def mean_pushforward(dots):
            if not varies(dots[0]):
                return ZeroTangent
            mask = with_numbers(where, array(a)) if skip_nan else where
            a_dot = summed(masked(joined(dots[0], a), mask), from_back(axis, np.ndim(a)), keepdims, dtype)
            shape = np.shape(a)
            if mask is True or mask is ABSENT:
                return a_dot / max(count(shape, axis), 1)
            n = np.sum(np.broadcast_to(mask, shape), axis=axes_of(axis, len(shape)))
            return a_dot / np.reshape(n, np.shape(z)).astype(a_dot.dtype)

        return z, mean_pushforward


def enter_cumsum(function: Any, skip_nan: bool = False) -> None:
    """a_bar: the cumulative sum of z_bar from the other end."""

    @(rrule if skip_nan else linear_rrule)(function)
    def cumsum_rrule(a, axis=None, dtype=None, out=None):
        refuse_out("np.cumsum", out)
        z = function(a, axis, dtype)
        shape, nan, along = np.shape(a), np.isnan(a) if skip_nan else None, 0 if axis is None else axis

        def cumsum_pullback(z_bar):
            a_bar = np.flip(np.cumsum(np.flip(z_bar, along), along), along)
            if axis is None:
                a_bar = np.reshape(a_bar, shape)
            return (np.where(nan, 0, a_bar) if skip_nan else a_bar,)

        return z, cumsum_pullback

    @both_forms(function, affine=True)
    def cumsum_frule(a, axis=None, dtype=None, out=None):
        refuse_out("np.cumsum", out)

        def cumsum_pushforward(dots):
            if not varies(dots[0]):
                return ZeroTangent
            a_dot = joined(dots[0], a)
            if skip_nan:
                a_dot = np.where(np.isnan(a), 0, a_dot)
            if axis is None or np.ndim(a) == 0:
                return np.cumsum(flattened(a_dot, a), -1, dtype)
            return np.cumsum(a_dot, axis % np.ndim(a) - np.ndim(a), dtype)

        return function(a, axis, dtype), cumsum_pushforward


for f in both("sum"):
    enter_sum(f)
for f in both("mean"):
    enter_mean(f)
for f in both("cumsum"):
    enter_cumsum(f)
enter_sum(np.nansum, skip_nan=True)
enter_mean(np.nanmean, skip_nan=True)
enter_cumsum(np.nancumsum, skip_nan=True)


# ---------------------------------------------------------------------------------------------------------
# Variance and standard deviation


def deviations(a: Any, axis: Any, where: Any, mean: Any) -> tuple[Any, Any]:
    """a - mean, zero where not selected; and how many were."""
    shape = np.shape(a)
    axes = axes_of(axis, len(shape))
    everything = where is True or where is ABSENT
    n = count(shape, axis)
    if not everything:
        n = np.sum(np.broadcast_to(where, shape), axis=axes, keepdims=True).astype(np.asarray(a).real.dtype)
    selected = a if everything else np.where(where, a, 0)
    centre = np.sum(selected, axis=axes, keepdims=True) / n if mean is ABSENT else mean
    return masked(selected - centre, where), n


def enter_var(function: Any, root: bool, skip_nan: bool = False) -> None:
    """a_bar = 2 z_bar (a - mean) / (n - ddof); for std divided by 2 z, and 0 where z is 0 (a kink's minimum)."""

    @rrule(function)
    def var_rrule(
        a, axis=None, dtype=None, out=None, ddof=0, keepdims=ABSENT, where=ABSENT, mean=ABSENT, correction=ABSENT
    ):
        refuse_out(function.__name__, out)
        options = given(keepdims=keepdims, where=where, mean=mean, correction=correction)
        z = function(a, axis, dtype, None, ddof, **options)
        a = array(a)

        def var_pullback(z_bar):
            lost = ddof if correction is ABSENT else correction
            difference, n = deviations(a, axis, with_numbers(where, a) if skip_nan else where, mean)
            slope = restored(z_bar, np.shape(a), axis)
            if root:
                deviation = restored(z, np.shape(a), axis)
                flat = deviation == 0
                slope = np.where(flat, 0, slope / np.where(flat, 1, deviation))
                a_bar = (slope / (n - lost)) * difference
            else:
                a_bar = (slope * 2 / (n - lost)) * difference
            mean_bar = NoTangent if mean is ABSENT else -a_bar

            def lost_bar():  # z = (...) / (n - lost), or its root
                many = np.reshape(n, np.shape(z)) if np.ndim(n) else n
                return z_bar * z / ((many - lost) * (2 if root else 1))

            ddof_bar, correction_bar = Thunk(lost_bar), Thunk(lost_bar)
            return a_bar, NoTangent, NoTangent, NoTangent, ddof_bar, NoTangent, NoTangent, mean_bar, correction_bar

        return z, var_pullback

    @both_forms(function)
    def var_frule(
        a, axis=None, dtype=None, out=None, ddof=0, keepdims=ABSENT, where=ABSENT, mean=ABSENT, correction=ABSENT
    ):
        refuse_out(function.__name__, out)
        options = given(keepdims=keepdims, where=where, mean=mean, correction=correction)
        z = function(a, axis, dtype, None, ddof, **options)

        def var_pushforward(dots):
            x = array(a)
            lost = ddof if correction is ABSENT else correction
            difference, n = deviations(x, axis, with_numbers(where, x) if skip_nan else where, mean)
            free = (np.reshape(n, np.shape(z)) if np.ndim(n) else n) - lost
            mean_dot = dot_of(dots, 7)
            if varies(mean_dot):  # the mean that is not given is where the sum of squares is least
                mean_dot = -lined_up(mean_dot, mean, np.ndim(x))
            x_dot = total(pushed(joined, dots[0], a), mean_dot)
            z_dot = ZeroTangent
            if varies(x_dot):
                products = np.real(conj(difference) * masked(x_dot, with_numbers(where, x) if skip_nan else where))
                z_dot = 2 / free * summed(products, from_back(axis, np.ndim(x)), keepdims)
                if root:
                    flat = z == 0
                    z_dot = np.where(flat, 0, z_dot / np.where(flat, 1, 2 * z))
            lost_dot = dot_of(dots, 4 if correction is ABSENT else 8)
            if varies(lost_dot):  # z = (...) / (n - lost), or its root
                z_dot = total(z_dot, lined_up(lost_dot, lost, np.ndim(z)) * (z / (free * (2 if root else 1))))
            return z_dot

        return z, var_pushforward


for name, root in (("var", False), ("std", True)):
    for f in both(name):
        enter_var(f, root)
enter_var(np.nanvar, root=False, skip_nan=True)
enter_var(np.nanstd, root=True, skip_nan=True)


# ---------------------------------------------------------------------------------------------------------
# Products, right at zeros: nothing is divided by an element that may be 0


def merged(x: Any, axes: tuple[int, ...]) -> Any:
    """`x` with `axes` taken together as its last axis."""
    rest = tuple(i for i in range(np.ndim(x)) if i not in axes)
    shape = np.shape(x)
    n = 1
    for i in axes:
        n *= shape[i]
    return np.reshape(np.transpose(x, rest + axes), tuple(shape[i] for i in rest) + (n,))


def unmerged(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """The inverse of `merged`, for an `x` that was of `shape`."""
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    order = rest + axes
    x = np.reshape(x, tuple(shape[i] for i in order))
    return np.transpose(x, tuple(order.index(i) for i in range(len(shape))))


def products_of_others(x: Any) -> Any:
    """For each element, the product of all others on the last axis, without division."""
    n = np.shape(x)[-1]
    one = np.ones_like(x[..., :1])
    if n < 2:
        return np.broadcast_to(one, np.shape(x))
    before = np.concatenate([one, np.cumprod(x[..., :-1], -1)], -1)
    after = np.concatenate([np.cumprod(x[..., :0:-1], -1)[..., ::-1], one], -1)
    return before * after


def prod_bar(z_bar: Any, a: Any, z: Any, axis: Any, where: Any) -> Any:
    """z_bar times the product of the others."""
    shape = np.shape(a)
    if np.size(a) == 0:
        return np.zeros(shape, np.asarray(a).dtype)
    axes = axes_of(axis, len(shape))
    everything = where is True or where is ABSENT
    factors = np.asarray(a) if everything else np.where(where, a, 1)
    if np.all(np.isfinite(z)) and np.all(z != 0):
        return masked(restored(z_bar * conj(z), shape, axis) / conj(factors), where)
    others = unmerged(products_of_others(merged(factors, axes)), shape, axes)
    return masked(restored(z_bar, shape, axis) * conj(others), where)


def enter_prod(function: Any, skip_nan: bool = False) -> None:
    """a_bar = z_bar * conj(product of the other elements)."""

    @rrule(function)
    def prod_rrule(a, axis=None, dtype=None, out=None, keepdims=ABSENT, initial=ABSENT, where=True):
        refuse_out("np.prod", out)
        options = given(keepdims=keepdims, initial=initial)
        if where is not True:
            options["where"] = where
        z = function(a, axis, dtype, None, **options)
        a = array(a)

        def prod_pullback(z_bar):
            selected = with_numbers(where, a) if skip_nan else where
            if initial is ABSENT:
                return (Thunk(lambda: prod_bar(z_bar, a, z, axis, selected)),)

            def initial_bar():
                factors = a if selected is True else np.where(selected, a, 1)
                return z_bar * conj(np.prod(factors, axis, **given(keepdims=keepdims)))

            def a_bar():  # z may be 0 only because `initial` is
                product = np.prod(a if selected is True else np.where(selected, a, 1), axis)
                return prod_bar(np.reshape(z_bar, np.shape(product)) * conj(initial), a, product, axis, selected)

            return Thunk(a_bar), NoTangent, NoTangent, NoTangent, NoTangent, Thunk(initial_bar)

        return z, prod_pullback

    @both_forms(function)
    def prod_frule(a, axis=None, dtype=None, out=None, keepdims=ABSENT, initial=ABSENT, where=True):
        refuse_out("np.prod", out)
        options = given(keepdims=keepdims, initial=initial)
        if where is not True:
            options["where"] = where
        z = function(a, axis, dtype, None, **options)

        def prod_pushforward(dots):
            x = array(a)
            selected = with_numbers(where, x) if skip_nan else where
            factors = np.asarray(x) if selected is True or selected is ABSENT else np.where(selected, x, 1)
            product = z if initial is ABSENT else np.prod(factors, axis, **given(keepdims=keepdims))
            a_dot, initial_dot = joined(dots[0], a), dot_of(dots, 5)
            z_dot = ZeroTangent
            if varies(a_dot):
                others = other_factors(factors, product, axis)
                z_dot = summed(others * masked(a_dot, selected), from_back(axis, np.ndim(x)), keepdims, dtype)
                if initial is not ABSENT:
                    z_dot = initial * z_dot
            if varies(initial_dot):
                z_dot = total(z_dot, lined_up(initial_dot, initial, np.ndim(z)) * product)
            return z_dot

        return z, prod_pushforward


def other_factors(x: Any, product: Any, axis: Any) -> Any:
    """For each element, the product of the others that are taken together with it over `axis`."""
    shape = np.shape(x)
    if np.size(x) == 0:
        return np.ones(shape, x.dtype)
    if np.all(np.isfinite(product)) and np.all(product != 0):
        return restored(product, shape, axis) / x
    axes = axes_of(axis, len(shape))
    return unmerged(products_of_others(merged(x, axes)), shape, axes)


def cumprod_bar(z_bar: Any, x: Any, z: Any) -> Any:
    """x_bar along the last axis for z_k = x_0 ... x_k."""
    if np.size(x) == 0:
        return z_bar
    if np.all(np.isfinite(z)) and np.all(z != 0):
        weighted = z_bar * conj(z)
        return np.cumsum(weighted[..., ::-1], -1)[..., ::-1] / conj(x)
    # x_bar_k = (x_0 ... x_(k-1)) s_k  with  s_k = z_bar_k + x_(k+1) s_(k+1)
    n = np.shape(x)[-1]
    before = np.concatenate([np.ones_like(x[..., :1]), z[..., :-1]], -1)
    s = [z_bar[..., n - 1]]
    for k in range(n - 2, -1, -1):
        s.append(z_bar[..., k] + conj(x[..., k + 1]) * s[-1])
    return conj(before) * np.stack(s[::-1], -1)


def enter_cumprod(function: Any, skip_nan: bool = False) -> None:
    """a_bar as in `cumprod_bar`."""

    @rrule(function)
    def cumprod_rrule(a, axis=None, dtype=None, out=None):
        refuse_out("np.cumprod", out)
        z = function(a, axis, dtype)
        a = array(a)

        def cumprod_pullback(z_bar):
            shape = np.shape(a)
            factors = np.where(np.isnan(a), 1, a) if skip_nan else np.asarray(a)
            if axis is None or len(shape) == 0:
                a_bar = np.reshape(cumprod_bar(z_bar, np.reshape(factors, (-1,)), z), shape)
            else:
                last = [np.moveaxis(x, axis, -1) for x in (z_bar, factors, z)]
                a_bar = np.moveaxis(cumprod_bar(*last), -1, axis)
            return (np.where(np.isnan(a), 0, a_bar) if skip_nan else a_bar,)

        return z, cumprod_pullback

    @both_forms(function)
    def cumprod_frule(a, axis=None, dtype=None, out=None):
        refuse_out("np.cumprod", out)
        z = function(a, axis, dtype)

        def cumprod_pushforward(dots):
            if not varies(dots[0]):
                return ZeroTangent
            a_dot, x = joined(dots[0], a), np.asarray(a)
            if skip_nan:
                a_dot, x = np.where(np.isnan(x), 0, a_dot), np.where(np.isnan(x), 1, x)
            if axis is None or np.ndim(x) == 0:
                return cumprod_dot(flattened(a_dot, x), np.ravel(x), z)
            back = axis % np.ndim(x) - np.ndim(x)
            last = [np.moveaxis(part, back, -1) for part in (a_dot, x, z)]
            return np.moveaxis(cumprod_dot(*last), -1, back)

        return z, cumprod_pushforward


def cumprod_dot(x_dot: Any, x: Any, z: Any) -> Any:
    """z_dot along the last axis for z_k = x_0 ... x_k."""
    if np.size(x) == 0:
        return x_dot
    if np.all(np.isfinite(z)) and np.all(z != 0):
        return z * np.cumsum(x_dot / x, -1)
    z_dot = [x_dot[..., 0]]
    for k in range(1, np.shape(x)[-1]):
        z_dot.append(z_dot[-1] * x[..., k] + z[..., k - 1] * x_dot[..., k])
    return np.stack(z_dot, -1)


for f in both("prod", "product"):
    enter_prod(f)
for f in both("cumprod", "cumproduct"):
    enter_cumprod(f)
enter_prod(np.nanprod, skip_nan=True)
enter_cumprod(np.nancumprod, skip_nan=True)


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


def enter_quantile(function: Any, scale: float) -> None:
    """Quantiles and percentiles; q_bar = z_bar (s[k + 1] - s[k]) dposition/dq."""

    def primal(a, q, axis, out, method, keepdims, others):
        """The result, and what finds the positions."""
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

    def slope_in_q(found, method):
        elements, lower, upper, _, position = found
        moves = (position > 0) | (method == "linear")
        gap = np.take_along_axis(elements, upper, -1) - np.take_along_axis(elements, lower, -1)
        return np.where(moves, gap * quantile_speed(method, elements, scale), 0)

    @rrule(function)
    def quantile_rrule(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=ABSENT, **others):
        z, a, q, locate = primal(a, q, axis, out, method, keepdims, others)

        def quantile_pullback(z_bar):
            array = np.asarray(a)
            found = neighbours(array, axis, locate)

            def q_bar():
                elements, _, _, _, position = found
                bars = np.moveaxis(np.reshape(z_bar, (np.shape(position)[-1], *np.shape(elements)[:-1])), 0, -1)
                bars = bars * slope_in_q(found, method)
                return np.reshape(np.sum(bars, axis=tuple(range(np.ndim(bars) - 1))), np.shape(q))

            return Thunk(lambda: order_statistic_bar(z_bar, array, axis, found)), Thunk(q_bar)

        return z, quantile_pullback

    @both_forms(function)
    def quantile_frule(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=ABSENT, **others):
        given_a, given_q = a, q
        z, a, q, locate = primal(a, q, axis, out, method, keepdims, others)

        def quantile_pushforward(dots):
            x = np.asarray(a)
            found = neighbours(x, axis, locate)
            z_dot = ZeroTangent
            if varies(dots[0]):
                z_dot = order_statistic_dot(joined(dots[0], given_a), x, z, axis, found)
            if varies(dots[1]):
                q_dot = joined(dots[1], given_q)
                lead = np.ndim(q_dot) - np.ndim(q)
                slope = slope_in_q(found, method)
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


# ---------------------------------------------------------------------------------------------------------
# Differences


def diff_adjoint(z_bar, n, axis):
    """The transpose of n differences along `axis`: each adds one element."""
    for _ in range(n):
        shape = list(np.shape(z_bar))
        shape[axis] = 1
        edge = np.zeros(shape, np.asarray(z_bar).dtype)
        z_bar = -np.diff(np.concatenate([edge, z_bar, edge], axis), axis=axis)
    return z_bar


@composed(np.diff)
def diff(a, n=1, axis=-1, prepend=ABSENT, append=ABSENT):
    """The argument itself where n is 0."""
    return a if n == 0 else differences(a, n, axis, prepend, append)


def differences(a: Any, n: int, axis: int, prepend: Any, append: Any) -> Any:
    """np.diff."""
    return np.diff(a, n, axis, **given(prepend=prepend, append=append))


@rrule(differences)
def differences_rrule(a, n, axis, prepend, append):
    z = differences(a, n, axis, prepend, append)

    def differences_pullback(z_bar):
        def length(end):
            return 0 if end is ABSENT else np.shape(end)[axis] if np.ndim(end) else 1

        extended = diff_adjoint(z_bar, n, axis % np.ndim(a))
        first, last = length(prepend), length(prepend) + np.shape(a)[axis]

        def part(start, stop):
            return extended[at_axis(slice(start, stop), axis, np.ndim(a))]

        prepend_bar = NoTangent if prepend is ABSENT else part(None, first)
        append_bar = NoTangent if append is ABSENT else part(last, None)
        return part(first, last), NoTangent, NoTangent, prepend_bar, append_bar

    return z, differences_pullback


@both_forms(differences, affine=True)
def differences_frule(a, n, axis, prepend, append):
    z = differences(a, n, axis, prepend, append)

    def differences_pushforward(dots):
        prepend_dot, append_dot = dot_of(dots, 3), dot_of(dots, 4)
        ndim = np.ndim(a)
        back = axis % ndim - ndim
        lead = lead_of((dots[0], a), (prepend_dot, prepend), (append_dot, append))
        a_dot = filled(dots[0], a, lead)

        def end(x_dot, x):
            if x is ABSENT:
                return []
            shape = list(np.shape(a_dot))
            shape[back] = np.shape(x)[axis] if np.ndim(x) else 1
            return [np.broadcast_to(lined_up(filled(x_dot, x, lead), x, ndim), shape)]

        parts = [*end(prepend_dot, prepend), a_dot, *end(append_dot, append)]
        return np.diff(np.concatenate(parts, back) if len(parts) > 1 else a_dot, n, back)

    return z, differences_pushforward
