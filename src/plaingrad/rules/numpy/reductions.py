"""Sums, means, variances and differences along axes.

In a rule `a` is the array, `z` the result; `where` selects the elements that take part. The versions that leave
nan out are the plain ones with `where=~isnan(a)`.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
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

    enter_var_forward(function, root, skip_nan)


def enter_var_forward(function: Any, root: bool, skip_nan: bool) -> None:
    """z_dot = 2 <a - mean, a_dot> / (n - ddof), as `enter_var` has it backwards."""

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
