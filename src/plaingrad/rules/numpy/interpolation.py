"""Piecewise linear interpolation, and functions of NumPy's that are elementwise without being ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.indexing import add_at_indices
from plaingrad.rules.numpy.names import array
from plaingrad.rules.pushforwards import both_forms, dot_of, joined, lined_up, pushed, total, varies
from plaingrad.tangents import NoTangent, Thunk

multiarray = np._core.multiarray if hasattr(getattr(np, "_core", None), "multiarray") else np.core.multiarray


def enter_interp(function: Any) -> None:
    """The C code behind np.interp: z = fp_k + s (x - xp_k) with s the slope of the interval that x is in."""

    @rrule(function)
    def interp_rrule(x, xp, fp, left=None, right=None):
        z = function(x, xp, fp, left, right)
        x, xp, fp = array(x), array(xp), array(fp)

        def interp_pullback(z_bar):
            n = len(xp)
            before, after, k, upper, t, slope = intervals_of(x, xp, fp)
            inside = ~(before | after)
            z_inside = np.where(inside, z_bar, 0)

            def spread(lower, higher):
                return add_at_indices(lower, k, 0, n) + add_at_indices(higher, upper, 0, n)

            def fp_bar():
                bar = spread(z_inside * (1 - t), z_inside * t)
                ends = [0 if left is not None else np.sum(np.where(before, z_bar, 0))]
                ends.append(0 if right is not None else np.sum(np.where(after, z_bar, 0)))
                return bar + ends[0] * (np.arange(n) == 0) + ends[1] * (np.arange(n) == n - 1)

            def xp_bar():
                pull = np.real(z_inside * np.conjugate(slope))
                return -spread(pull * (1 - t), pull * t)

            return (
                Thunk(lambda: np.real(z_inside * np.conjugate(slope))),
                Thunk(xp_bar),
                Thunk(fp_bar),
                NoTangent if left is None else Thunk(lambda: np.sum(np.where(before, z_bar, 0))),
                NoTangent if right is None else Thunk(lambda: np.sum(np.where(after, z_bar, 0))),
            )

        return z, interp_pullback

    @both_forms(function)
    def interp_frule(x, xp, fp, left=None, right=None):
        z = function(x, xp, fp, left, right)

        def interp_pushforward(dots):
            x_dot, xp_dot, fp_dot = [pushed(joined, x_dot, p) for x_dot, p in zip(dots, (x, xp, fp))]
            before, after, k, upper, t, slope = intervals_of(array(x), array(xp), array(fp))

            def between(p_dot):
                return np.take(p_dot, k, -1) * (1 - t) + np.take(p_dot, upper, -1) * t

            moved = total(x_dot, -between(xp_dot) if varies(xp_dot) else xp_dot)
            z_dot = total(moved * slope if varies(moved) else moved, pushed(between, fp_dot))
            z_dot = np.where(before | after, 0, z_dot) if varies(z_dot) else z_dot
            ends = ((before, 0, left, dot_of(dots, 3)), (after, -1, right, dot_of(dots, 4)))
            for beyond, end, given, end_dot in ends:
                if given is None and varies(fp_dot):
                    end_dot, given = fp_dot[..., end], 0.0
                if varies(end_dot):
                    z_dot = total(z_dot, np.where(beyond, lined_up(end_dot, given, np.ndim(z)), 0))
            return z_dot

        return z, interp_pushforward


def intervals_of(x: Any, xp: Any, fp: Any) -> tuple[Any, ...]:
    """Which points lie before and after, between which neighbours each lies, how far, and how steep it is there."""
    points, xs, values = np.asarray(x), np.asarray(xp), np.asarray(fp)
    n = len(xs)
    k = np.clip(np.searchsorted(xs, points, "right") - 1, 0, max(n - 2, 0))
    upper = np.minimum(k + 1, n - 1)
    width = xs[upper] - xs[k]
    width = np.where(width == 0, 1, width)
    return points < xs[0], points > xs[-1], k, upper, (points - xs[k]) / width, (values[upper] - values[k]) / width


enter_interp(multiarray.interp)
enter_interp(multiarray.interp_complex)


def finite_numbers(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    """`x` with numbers in place of nan and infinities."""
    return np.nan_to_num(x, True, nan, posinf, neginf)


@rrule(finite_numbers)
def finite_numbers_rrule(x, nan, posinf, neginf):
    z = finite_numbers(x, nan, posinf, neginf)
    x = array(x)

    def finite_numbers_pullback(z_bar):
        def part(chosen):
            return Thunk(lambda: np.where(chosen, z_bar, 0))

        infinite = np.isinf(x)
        return (
            part(np.isfinite(x)),
            part(np.isnan(x)),
            NoTangent if posinf is None else part(infinite & (np.real(x) > 0)),
            NoTangent if neginf is None else part(infinite & (np.real(x) < 0)),
        )

    return z, finite_numbers_pullback


@both_forms(finite_numbers, affine=True)
def finite_numbers_frule(x, nan, posinf, neginf):
    z = finite_numbers(x, nan, posinf, neginf)

    def finite_numbers_pushforward(dots):
        infinite = np.isinf(x)
        chosen = (np.isfinite(x), np.isnan(x), infinite & (np.real(x) > 0), infinite & (np.real(x) < 0))
        parts = []
        for here, x_dot, primal in zip(chosen, dots, (x, nan, posinf, neginf)):
            if varies(x_dot):
                parts.append(np.where(here, lined_up(joined(x_dot, primal), primal, np.ndim(z)), 0))
        return total(*parts)

    return z, finite_numbers_pushforward


@composed(np.nan_to_num, mutates=True)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """The finite numbers, in new memory or in their place."""
    z = finite_numbers(x, nan, posinf, neginf)
    if copy or not isinstance(x, np.ndarray):
        return z
    x[...] = z
    return x


@rrule(np.bincount)
def bincount_rrule(x, weights=None, minlength=0):
    z = np.bincount(x, weights, minlength)
    places = np.asarray(x, np.intp)  # a boolean array would select
    return z, lambda z_bar: (NoTangent, NoTangent if weights is None else z_bar[places])


@both_forms(np.bincount, affine=True)
def bincount_frule(x, weights=None, minlength=0):
    z = np.bincount(x, weights, minlength)

    def bincount_pushforward(dots):
        weights_dot = pushed(joined, dot_of(dots, 1), weights)
        if not varies(weights_dot):
            return weights_dot
        return add_at_indices(weights_dot, np.asarray(x, np.intp), np.ndim(weights_dot) - 1, len(z))

    return z, bincount_pushforward


# ---------------------------------------------------------------------------------------------------------
# A Python function, element by element


def element_types(vectorized: Any, first: tuple[Any, ...]) -> list[Any]:
    """The types of the results, from the first of them where `otypes` does not say."""
    if vectorized.otypes is not None:
        return list(vectorized.otypes)
    return [np.asarray(x).dtype.char for x in first]


def has_nested(elements: Any) -> bool:
    """Whether there are sequences or arrays among the results, which no element of a number's type can hold."""
    return any(isinstance(z, (list, tuple)) or (isinstance(z, np.ndarray) and z.ndim > 0) for z in elements)


no_tangent(element_types, has_nested)


def array_of(elements: Any, t: Any, shape: Any) -> Any:
    """The results as an array of type `t`."""
    if t == "O":
        z = np.empty(len(elements), object)
        for k, element in enumerate(elements):
            z[k] = element
        return np.reshape(z, shape)
    if has_nested(elements):
        raise ValueError("setting an array element with a sequence.")
    return np.reshape(np.array(list(elements), dtype=t), shape)


@composed(np.vectorize._vectorize_call)
def vectorized_call(self, func, args):
    """func of every tuple of elements, Python's numbers.

    Without `otypes` a first call, of NumPy's numbers, says of which types the results are; with a cache it is not
    made again.
    """
    if self.signature is not None:
        return self._vectorize_call_with_signature(func, args)
    if not args:
        return func()
    arrays = np.broadcast_arrays(*args)
    shape = arrays[0].shape
    rows = list(zip(*[np.ravel(a).tolist() for a in arrays]))
    results = []
    if self.otypes is None:
        own = [np.asarray(a) for a in args]
        if min(a.size for a in own) == 0:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        z = func(*[np.ravel(a)[0] for a in own])
        first = z if isinstance(z, tuple) else (z,)
        types = element_types(self, first)
        if self.cache:
            results.append(first)
    else:
        types = element_types(self, ())
    count = len(types)
    for row in rows[len(results) :]:
        z = func(*row)
        if count == 1:
            results.append((z,))
        else:
            results.append(z if isinstance(z, tuple) and len(z) == count else (None,) * count)
    every = list(zip(*results)) if results else [()] * count
    columns = [array_of(column, t, shape) for column, t in zip(every, types)]
    return columns[0] if len(columns) == 1 else tuple(columns)
