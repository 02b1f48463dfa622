"""Ufuncs called with keywords, and their methods reduce, accumulate, reduceat, outer and at.

All are composed: the plain call `ufunc(x, ...)` has its own rule, and writing is `out[...] = `, which the engine sees.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.define import composed, frule, no_tangent, rrule
from plaingrad.rules.numpy.indexing import add_at_indices
from plaingrad.rules.numpy.names import ABSENT, at_axis, axes_of, given, linear, refuse, restored, written
from plaingrad.rules.pushforwards import both_forms, from_back, varies
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

# Ufuncs whose reduction is a function with a rule of its own; the others are applied element after element.
REDUCTIONS: dict[Any, Any] = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
ACCUMULATIONS: dict[Any, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}


def without_rule(ufunc: Any, *args: Any) -> Any:
    """ufunc(*args) for a ufunc that has no rule."""
    return ufunc(*args)


@rrule(without_rule)
def without_rule_rrule(ufunc, *args):
    raise refuse(f"The ufunc {ufunc.__name__}", "has no derivative rule", "plaingrad.rrule or plaingrad.nondifferentiable")


def plain(ufunc: Any, args: Any) -> Any:
    """The plain call, by the ufunc's own rule."""
    return ufunc(*args) if rulebook.find(ufunc) is not None else without_rule(ufunc, *args)


# ---------------------------------------------------------------------------------------------------------
# ufunc(x, ..., out=, where=, dtype=, casting=, order=, subok=, axis=, axes=, keepdims=)


@composed(np.ufunc.__call__, mutates=True)
def ufunc_call(
    ufunc, *args, out=None, where=True, dtype=None, casting="same_kind", order="K", subok=True, signature=None, sig=None,
    **options,
):  # fmt: skip
    """The plain call, of the selected elements only, its results written where they belong."""
    if len(args) > ufunc.nin:
        args, out = args[: ufunc.nin], args[ufunc.nin :]
    as_arrays = out is Ellipsis
    outs = out if isinstance(out, tuple) else (None if as_arrays else out,)
    if len(outs) < ufunc.nout:
        outs = outs + (None,) * (ufunc.nout - len(outs))
    if any(o is not None and not isinstance(o, np.ndarray) for o in outs):
        raise TypeError("return arrays must be of ArrayType")
    if ufunc.signature is not None:
        return gufunc_call(ufunc, args, outs, dtype, options)
    if options:
        raise TypeError(f"{ufunc.__name__}() got an unexpected keyword argument {next(iter(options))!r}")
    if signature is not None or sig is not None:
        raise refuse(f"np.{ufunc.__name__} with a signature", "chooses a loop by type", "dtype=, or x.astype(...) before it")
    if dtype is not None:
        args = tuple([np.asarray(x).astype(dtype)[()] for x in args])
    if where is True or where is ABSENT:
        z = plain(ufunc, args)
        parts = (z,) if ufunc.nout == 1 else z
        if as_arrays:
            parts = tuple([np.asarray(part) for part in parts])
        results = tuple([written(part, o) for part, o in zip(parts, outs)])
        return results[0] if ufunc.nout == 1 else results
    return ufunc_where(ufunc, args, outs, where)


def ufunc_where(ufunc: Any, args: Any, outs: Any, where: Any) -> Any:
    """Only selected elements are computed: elsewhere the derivative may not even exist (np.divide, where=b != 0)."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in args], np.shape(where), *[o.shape for o in outs if o is not None])
    mask = np.broadcast_to(where, shape)
    z = plain(ufunc, [np.broadcast_to(x, shape)[mask] for x in args])
    results = []
    for part, o in zip(z if ufunc.nout > 1 else (z,), outs):
        target = np.zeros(shape, part.dtype) if o is None else o  # NumPy leaves it uninitialised
        target[mask] = part
        results.append(target)
    return tuple(results) if ufunc.nout > 1 else results[0]


def gufunc_call(ufunc: Any, args: Any, outs: Any, dtype: Any, options: Any) -> Any:
    """matmul, vecdot, matvec, vecmat: the core axes are moved to the end."""
    axis, axes = options.get("axis"), options.get("axes")
    if options.get("keepdims") or any(name not in ("axis", "axes", "keepdims") for name in options):
        raise refuse(f"np.{ufunc.__name__} with {', '.join(options)}", "has no rule", "np.moveaxis before the plain call")
    if dtype is not None:
        args = tuple([np.asarray(x).astype(dtype) for x in args])
    if axis is not None:
        axes = [(axis,), (axis,), ()]
    if axes is None:
        return of_shape(plain(ufunc, args), outs[0])
    places = [(x,) if isinstance(x, int) else tuple(x) for x in axes]
    args = [np.moveaxis(x, place, range(-len(place), 0)) for x, place in zip(args, places)]
    z = plain(ufunc, args)
    if len(places) > len(args) and places[-1]:
        z = np.moveaxis(z, range(-len(places[-1]), 0), places[-1])
    return of_shape(z, outs[0])


def of_shape(z: Any, out: Any) -> Any:
    """`z`, or `out` after `z` was written to it; one may have more axes of length 1 in front."""
    if out is None or np.shape(z) == out.shape:
        return written(z, out)
    axes = max(np.ndim(z), out.ndim)
    if (1,) * (axes - np.ndim(z)) + np.shape(z) != (1,) * (axes - out.ndim) + out.shape:
        raise ValueError(f"non-broadcastable output operand with shape {out.shape} doesn't match the shape {np.shape(z)}")
    out[...] = z
    return out


# ---------------------------------------------------------------------------------------------------------
# reduce


def of_two(ufunc: Any, method: str) -> None:
    """Raise where NumPy would: only ufuncs of two numbers with one result have these methods."""
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise ValueError(f"{method} only supported for binary functions")
    if ufunc.signature is not None:
        raise RuntimeError(f"{method} is not defined on ufuncs with signatures")


@composed(np.ufunc.reduce, mutates=True)
def ufunc_reduce(ufunc, array, axis=0, dtype=None, out=None, keepdims=False, initial=ABSENT, where=True):
    """ufunc(...ufunc(ufunc(a0, a1), a2)..., an)."""
    of_two(ufunc, "reduce")
    out = out[0] if isinstance(out, tuple) else out
    if ufunc in REDUCTIONS:
        options = given(initial=initial)
        if initial is None:
            options = {}
        if where is not True:
            options["where"] = where
        if ufunc is np.add or ufunc is np.multiply:
            return written(REDUCTIONS[ufunc](array, axis, dtype, None, keepdims, **options), out, True)
        z = REDUCTIONS[ufunc](array if dtype is None else np.asarray(array).astype(dtype), axis, None, keepdims, **options)
        return written(z, out, True)
    if where is not True:
        raise refuse(f"np.{ufunc.__name__}.reduce with where=", "has no rule", "select the elements before it")
    array = np.asarray(array) if dtype is None else np.asarray(array).astype(dtype)
    if ufunc in WEIGHTS and initial is ABSENT and array.dtype.kind == "f":
        return written(reduced(ufunc, array, axis, keepdims), out, True)
    axes = axes_of(axis, array.ndim)
    z = folded(ufunc, array, axes, initial)
    return written(np.expand_dims(z, axes) if keepdims and axes else z, out, True)


# dz/da for reductions that are not loops: the share that each element has in the result.
WEIGHTS: dict[Any, Any] = {
    np.logaddexp: lambda a, z: np.exp(a - z),
    np.logaddexp2: lambda a, z: np.exp2(a - z),
    np.fmax: lambda a, z: a == z,
    np.fmin: lambda a, z: a == z,
}


def reduced(ufunc: Any, array: Any, axis: Any, keepdims: bool) -> Any:
    """ufunc.reduce, for the ufuncs in `WEIGHTS`."""
    return ufunc.reduce(array, axis, keepdims=keepdims)


def shares(ufunc: Any, array: Any, z: Any, axis: Any) -> tuple[Any, Any]:
    """What each element weighs in the result, and what that is to be divided by."""
    top = restored(z, array.shape, axis)
    ties = (array == top) | (np.isnan(top) & np.isnan(array))
    weight = np.where(np.isfinite(top), WEIGHTS[ufunc](array, top), ties)  # infinities that tie share equally
    total = np.sum(weight, axis=axes_of(axis, array.ndim), keepdims=True)
    smooth = np.isfinite(top) & (ufunc is np.logaddexp or ufunc is np.logaddexp2)  # there they add up to 1 by themselves
    return weight, np.where(smooth | (total == 0), 1, total).astype(array.dtype)


@rrule(reduced)
def reduced_rrule(ufunc, array, axis, keepdims):
    z = ufunc.reduce(array, axis, keepdims=keepdims)

    def reduced_pullback(z_bar):
        weight, total = shares(ufunc, array, z, axis)
        return NoTangent, restored(z_bar, array.shape, axis) / total * weight

    return z, reduced_pullback


@both_forms(reduced)
def reduced_frule(ufunc, array, axis, keepdims):
    z = ufunc.reduce(array, axis, keepdims=keepdims)

    def reduced_pushforward(dots):
        if not varies(dots[1]):
            return ZeroTangent
        weight, total = shares(ufunc, array, z, axis)
        return np.sum(dots[1] / total * weight, axis=from_back(axis, array.ndim), keepdims=keepdims)

    return z, reduced_pushforward


def folded(ufunc: Any, array: Any, axes: tuple[int, ...], initial: Any) -> Any:
    """The elements along `axes` put together one after the other."""
    rest = tuple(i for i in range(array.ndim) if i not in axes)
    shape = tuple(array.shape[i] for i in rest)
    count = math.prod([array.shape[i] for i in axes])
    rows = np.reshape(np.transpose(array, axes + rest), (count, *shape))
    if initial is ABSENT or initial is None:
        if len(rows) == 0:
            if ufunc.identity is None:
                raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
            return np.full(shape, ufunc.identity, rows.dtype)[()]
        z, rows = rows[0], rows[1:]
    else:
        z = np.broadcast_to(initial, shape)
    for row in rows:
        z = ufunc(z, row)
    return z


# ---------------------------------------------------------------------------------------------------------
# accumulate


@composed(np.ufunc.accumulate, mutates=True)
def ufunc_accumulate(ufunc, array, axis=0, dtype=None, out=None):
    """a0, ufunc(a0, a1), ufunc(ufunc(a0, a1), a2), ..."""
    of_two(ufunc, "accumulate")
    out = out[0] if isinstance(out, tuple) else out
    if ufunc in ACCUMULATIONS:
        return written(ACCUMULATIONS[ufunc](array, axis, dtype), out, True)
    array = np.asarray(array) if dtype is None else np.asarray(array).astype(dtype)
    if ufunc is np.maximum or ufunc is np.minimum:
        return written(np.take_along_axis(array, record_places(ufunc, array, axis), axis), out, True)
    rows = np.moveaxis(array, axis, 0)
    if len(rows) == 0:
        return written(np.array(array), out, True)
    z = [rows[0]]
    for row in rows[1:]:
        z.append(ufunc(z[-1], row))
    return written(np.stack(z, axis), out, True)


def record_places(ufunc: Any, array: Any, axis: int) -> Any:
    """For each position along `axis`, where the greatest (or least) element so far was first met."""
    z = ufunc.accumulate(array, axis)
    z, x = np.moveaxis(z, axis, -1), np.moveaxis(array, axis, -1)
    same = (z[..., 1:] == z[..., :-1]) | (np.isnan(z[..., 1:]) & np.isnan(z[..., :-1]))
    new = np.concatenate([np.ones_like(x[..., :1], dtype=bool), ~same], -1)
    places = np.maximum.accumulate(np.where(new, np.arange(x.shape[-1]), 0), -1)
    return np.moveaxis(places, -1, axis)


no_tangent(record_places)


# ---------------------------------------------------------------------------------------------------------
# reduceat


def segments(indices: Any, n: int) -> list[tuple[int, int]]:
    """What each index of reduceat takes together: start and stop."""
    starts = [int(i) for i in np.asarray(indices)]
    return [(i, j) if i < j else (i, i + 1) for i, j in zip(starts, [*starts[1:], n])]


def sums_of_segments(array: Any, indices: Any, axis: int, dtype: Any) -> Any:
    """np.add.reduceat."""
    return np.add.reduceat(array, indices, axis, dtype)


def sums_of_segments_adjoint(z_bar, array, indices, axis, dtype):
    """z_bar of a segment at each of its elements."""
    n = np.shape(array)[axis]
    pairs = [(k, i) for k, (start, stop) in enumerate(segments(indices, n)) for i in range(start, stop)]
    rows = np.take(z_bar, [k for k, _ in pairs], axis)
    return add_at_indices(rows, [i for _, i in pairs], axis % np.ndim(array), n)


linear(
    sums_of_segments,
    sums_of_segments_adjoint,
    lambda a_dot, a, z, indices, axis, dtype: sums_of_segments(a_dot, indices, axis % np.ndim(a) - np.ndim(a), dtype),
)


@composed(np.ufunc.reduceat, mutates=True)
def ufunc_reduceat(ufunc, array, indices, axis=0, dtype=None, out=None):
    """The reduction of each segment between neighbouring indices."""
    of_two(ufunc, "reduceat")
    out = out[0] if isinstance(out, tuple) else out
    if ufunc is np.add:
        return written(sums_of_segments(np.asarray(array), indices, axis, dtype), out, True)
    array = np.asarray(array) if dtype is None else np.asarray(array).astype(dtype)
    parts = [
        ufunc_reduce(ufunc, array[at_axis(slice(start, stop), axis, array.ndim)], axis)
        for start, stop in segments(indices, array.shape[axis])
    ]
    return written(np.stack(parts, axis), out, True)


# ---------------------------------------------------------------------------------------------------------
# outer, at


@composed(np.ufunc.outer, mutates=True)
def ufunc_outer(ufunc, A, B, **options):
    """ufunc(A[..., None], B)."""
    of_two(ufunc, "outer")
    return ufunc(np.reshape(A, (*np.shape(A), *(1,) * np.ndim(B))), B, **options)


def added_at(a: Any, indices: Any, b: Any) -> Any:
    """A copy of `a` after np.add.at(a, indices, b)."""
    z = a.copy()
    np.add.at(z, indices, b)
    return z


@rrule(added_at)
def added_at_rrule(a, indices, b):
    return added_at(a, indices, b), lambda z_bar: (z_bar, NoTangent, Thunk(lambda: z_bar[indices]))


@frule(added_at, affine=True)
def added_at_frule(a, indices, b):
    def added_at_pushforward(dots):
        if not varies(dots[2]):
            return dots[0]
        return added_at(dots[0] if varies(dots[0]) else np.zeros_like(a), indices, dots[2])

    return added_at(a, indices, b), added_at_pushforward


@composed(np.ufunc.at, mutates=True)
def ufunc_at(ufunc, a, indices, b=ABSENT, /):
    """a[i] = ufunc(a[i], b) for one index after the other, also where they repeat."""
    if (ufunc is np.add or ufunc is np.subtract) and not overlaps_itself(a):
        a[...] = added_at(a, indices, b if ufunc is np.add else np.negative(b))
        return
    places = np.arange(a.size).reshape(a.shape)[indices]
    values = None if b is ABSENT else np.ravel(np.broadcast_to(b, np.shape(places)))
    for chosen in rounds(np.ravel(memory_places(a)[indices])):
        where = np.unravel_index(np.ravel(places)[chosen], a.shape)
        a[where] = ufunc(a[where]) if values is None else ufunc(a[where], values[chosen])


def overlaps_itself(a: Any) -> bool:
    """Whether two elements may lie at the same bytes: sorted by stride, an axis does not step beyond the smaller ones."""
    if a.size == 0:
        return False
    reach = a.itemsize
    for stride, n in sorted((abs(stride), n) for stride, n in zip(a.strides, a.shape) if n > 1):
        if stride < reach:
            return True
        reach += stride * (n - 1)
    return False


def memory_places(a: Any) -> Any:
    """For every element a number that says where in memory it lies."""
    offsets = np.zeros(a.shape, np.intp)
    for axis, (n, stride) in enumerate(zip(a.shape, a.strides)):
        offsets += (np.arange(n) * stride).reshape((n,) + (1,) * (a.ndim - axis - 1))
    return offsets


def rounds(places: Any) -> list[Any]:
    """Positions in `places`, in groups that meet no place twice; a place's own positions come in order."""
    order = np.argsort(places, kind="stable")
    position = np.arange(places.size)
    first = np.concatenate([[True], np.diff(places[order]) != 0])[: places.size]
    rank = position - np.maximum.accumulate(np.where(first, position, 0))  # how often the place was met before
    return [order[rank == r] for r in range(int(np.max(rank, initial=-1)) + 1)]


no_tangent(overlaps_itself, memory_places, rounds)
