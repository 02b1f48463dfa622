"""What an operation does to index sets: on which elements of its arguments each element of its result depends.

In this order: an entry of the tables below; for elementwise functions the union of the arguments, with broadcasting;
for linear functions, which are asked: a function whose results are single elements of its argument, or whose
arguments reach single elements of its result, is found out with labels for elements. What is neither depends on
everything.

What counts is the function, not its slope at the point: `max`, `sort`, `where` and `x * 0.0` depend on all that they
might have read. The one exception is a matrix product with a constant: a zero of the constant passes nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.engine.sparsity.by_labels import by_labels
from plaingrad.engine.sparsity.contractions import (
    convolution,
    cross,
    dot,
    einsum,
    inner,
    matmul,
    of_vectors,
    outer,
    tensordot,
)
from plaingrad.engine.sparsity.dependent_calls import Call, Handler, elementwise, everything, leaves, shaped
from plaingrad.rules.numpy import indexing, interpolation, norms, reductions, ufuncs
from plaingrad.rules.numpy.einsum import einsum_of_many
from plaingrad.rules.numpy.names import ABSENT, axes_of, both, functions


def of(call: Call) -> Any:
    """The sets of the result, with its structure; None if every entry depends on everything."""
    rule = call.rule
    if rule.own:
        handler = HANDLERS.get(rule.function)
        if handler is not None:
            found = handler(call)
            if isinstance(found, np.ndarray) and found.shape != np.shape(call.y):
                raise AssertionError(
                    f"the sets of {rule.name} have shape {found.shape}, not {np.shape(call.y)}"
                )
            return found
    if rule.kind == "scalar":
        return elementwise(call)
    if rule.kind == "linear" and isinstance(call.y, (np.ndarray, np.generic)) and set(call.ids) == {0}:
        return by_labels(call)
    return None


def filled(call: Call) -> Any:
    """np.full, np.full_like: the value, with broadcasting."""
    return shaped(call.array(1), call.y)


def interpolated(call: Call) -> Any:
    """np.interp: its point, and all of the table."""
    return call.sets.union(shaped(call.array(0), call.y), call.of_others(0))


# -- along axes ------------------------------------------------------------------------------------------------------


def reduction(call: Call, position: int = 0) -> Any:
    """Each element depends on what was taken together, and on the other arguments."""
    ids = call.array(position)
    axes = axes_of(call.argument("axis"), ids.ndim)
    found = call.sets.reduce(ids, axes)
    if call.argument("keepdims") is True:
        found = found.reshape([1 if axis in axes else n for axis, n in enumerate(ids.shape)])
    return call.sets.union(shaped(found, call.y), call.of_others(position))


def running(call: Call) -> Any:
    """Each element depends on itself and those before it."""
    axis = call.argument("axis")
    ids = call.array(0)
    return shaped(call.sets.running(ids.ravel() if axis is None else ids, axis or 0), call.y)


def whole_axis(call: Call) -> Any:
    """Each element depends on all along one axis, the length of which may change."""
    ids = call.array(0)
    axis = call.argument("axis", -1, 2)
    if axis is None:  # np.sort of all elements
        return shaped(everything(call.sets, ids), call.y)
    return along(call, axes_of(axis, ids.ndim))


def whole_axes(call: Call, default: tuple[int, ...] | None) -> Any:
    """As `whole_axis`, for several; with `s`, on everything."""
    if call.argument("s", None, 1) is not None:
        return None
    axes = call.argument("axes", default, 2)
    return along(call, axes_of(axes if axes is None else tuple(axes), call.array(0).ndim))


def along(call: Call, axes: tuple[int, ...]) -> Any:
    """The union along `axes`, at all places along them."""
    ids = call.array(0)
    found = call.sets.reduce(ids, axes)
    return shaped(found.reshape([1 if axis in axes else n for axis, n in enumerate(ids.shape)]), call.y)


def differences(call: Call) -> Any:
    """np.diff: n + 1 neighbours, of what is put before and after too."""
    n, axis = call.at(1), call.at(2)
    whole = call.array(0)
    parts = []
    for position in (3, 0, 4):
        if call.at(position) is not ABSENT:
            ids = call.array(position)
            parts.append(ids if ids.ndim else np.full_like(np.take(whole, [0], axis), ids))
    ids = np.moveaxis(np.concatenate(parts, axis), axis, 0)
    for _ in range(n):
        ids = call.sets.union(ids[1:], ids[:-1])
    return np.moveaxis(ids, 0, axis)


# -- moving ----------------------------------------------------------------------------------------------------------


def copied(call: Call) -> Any:
    """np.array and its like: nested lists become axes."""
    if set(call.ids) != {0}:
        return None
    flat = [np.ravel(part) for part in leaves(call.ids[0])]
    if len(flat) == 1:  # an array, in its own order whatever the result's memory is
        return np.reshape(call.ids[0], np.shape(call.y))
    found = np.concatenate(flat)
    return found.reshape(np.shape(call.y)) if found.size == np.size(call.y) else None


def moved_as(f: Callable[..., Any]) -> Handler:
    """The sets go where f(call) takes them."""

    def handler(call: Call) -> Any:
        found = f(call)
        return found if found is None or np.shape(found) == np.shape(call.y) else None

    return handler


def scattered(positions_of: Callable[[Call, np.ndarray], np.ndarray]) -> Handler:
    """Sums of the elements of argument 0 that land at one place."""

    def handler(call: Call) -> Any:
        shape = np.shape(call.y)
        places = np.arange(math.prod(shape)).reshape(shape)
        groups = np.broadcast_to(positions_of(call, places), call.array(0).shape)
        return call.sets.union_of_groups(groups.ravel(), call.array(0).ravel(), places.size).reshape(shape)

    return handler


def counted(call: Call) -> Any:
    """np.bincount: the weights of each bin."""
    if set(call.ids) != {1}:
        return None
    return call.sets.union_of_groups(np.ravel(call.at(0)), call.array(1).ravel(), len(call.y))


def added_at(call: Call) -> Any:
    """np.add.at: what was there, and all that was added."""
    a, indices = call.at(0), call.at(1)
    groups = np.arange(a.size).reshape(a.shape)[indices]
    added = call.sets.union_of_groups(groups.ravel(), shaped(call.array(2), groups).ravel(), a.size)
    return call.sets.union(call.array(0), added.reshape(a.shape))


def batched(call: Call) -> Any:
    """Linear algebra on stacks of matrices: each result depends on its own matrices."""
    found: Any = np.zeros((), np.int64)
    for position in call.ids:
        ids = call.array(position)
        found = call.sets.union(found, call.sets.reduce(ids, tuple(range(max(ids.ndim - 2, 0), ids.ndim))))

    def part(y: Any) -> Any:
        if isinstance(y, tuple):
            return [part(each) for each in y]
        if np.shape(y)[: found.ndim] != found.shape:
            return shaped(everything(call.sets, found), y)
        return shaped(found.reshape(found.shape + (1,) * (np.ndim(y) - found.ndim)), y)

    return part(call.y)


# -- the tables ------------------------------------------------------------------------------------------------------


HANDLERS: dict[Any, Handler] = {
    **dict.fromkeys(both("clip", "where"), elementwise),
    **dict.fromkeys(
        (np.sign, np.modf, np.frexp, np.divmod, indexing.umath.clip, interpolation.finite_numbers),
        elementwise,
    ),
    **dict.fromkeys(functions("complex64", "complex128", "clongdouble"), elementwise),
    **dict.fromkeys(functions("full", "full_like"), filled),
    **dict.fromkeys(
        both("sum", "mean", "prod", "var", "std", "max", "min", "amax", "amin", "product"), reduction
    ),
    **dict.fromkeys(
        functions(
            "nansum", "nanmean", "nanprod", "nanvar", "nanstd", "nanmax", "nanmin", "median", "nanmedian"
        ),
        reduction,
    ),
    **dict.fromkeys(functions("quantile", "nanquantile", "percentile", "nanpercentile"), reduction),
    **dict.fromkeys((norms.euclidean_norm, norms.power_norm), reduction),
    ufuncs.reduced: lambda call: reduction(call, 1),
    **dict.fromkeys(both("cumsum", "cumprod", "cumproduct"), running),
    **dict.fromkeys(functions("nancumsum", "nancumprod"), running),
    **dict.fromkeys((np.sort, np.partition), whole_axis),
    **dict.fromkeys(functions("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", where=np.fft), whole_axis),
    **dict.fromkeys(functions("fftn", "ifftn", where=np.fft), lambda call: whole_axes(call, None)),
    **dict.fromkeys(functions("fft2", "ifft2", where=np.fft), lambda call: whole_axes(call, (-2, -1))),
    reductions.differences: differences,
    **dict.fromkeys(
        functions(
            "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite"
        ),
        copied,
    ),
    **dict.fromkeys(both("copy", "astype"), copied),
    np.append: moved_as(lambda call: np.append(call.array(0), call.array(1), call.argument("axis"))),
    np.take_along_axis: moved_as(
        lambda call: np.take_along_axis(call.array(0), call.at(1), call.argument("axis", -1))
    ),
    np.compress: moved_as(lambda call: np.compress(call.at(0), call.array(1), call.argument("axis"))),
    np.extract: moved_as(lambda call: np.extract(call.at(0), call.array(1))),
    indexing.add_at_indices: scattered(lambda call, places: np.take(places, call.at(1), call.at(2))),
    indexing.add_along_axis: scattered(
        lambda call, places: np.take_along_axis(places, call.at(1), call.at(2))
    ),
    np.bincount: counted,
    ufuncs.added_at: added_at,
    **dict.fromkeys(
        functions(
            "inv",
            "solve",
            "det",
            "slogdet",
            "pinv",
            "cholesky",
            "eigh",
            "eigvalsh",
            "eig",
            "eigvals",
            where=np.linalg,
        ),
        batched,
    ),
    **dict.fromkeys(functions("svd", "svdvals", "qr", where=np.linalg), batched),
    einsum_of_many: einsum,
    **dict.fromkeys(functions("outer"), outer),
    **dict.fromkeys(functions("outer", where=np.linalg), outer),
    **dict.fromkeys((*functions("tensordot"), *functions("tensordot", where=np.linalg)), tensordot),
    **dict.fromkeys(
        (*functions("vecdot", "matvec", "vecmat"), *functions("vecdot", where=np.linalg)), of_vectors
    ),
    **dict.fromkeys((*functions("cross"), *functions("cross", where=np.linalg)), cross),
    **dict.fromkeys((np.convolve, np.correlate), convolution),
    **dict.fromkeys(both("dot"), dot),
    np.inner: inner,
    **dict.fromkeys((np.matmul, operator.matmul, *functions("matmul", where=np.linalg)), matmul),
    **dict.fromkeys(functions("interp", "interp_complex", where=interpolation.multiarray), interpolated),
}
for _function, _handler in list(HANDLERS.items()):  # NumPy's own code calls what is behind its dispatchers
    if type(_function) is type(np.sum) and hasattr(_function, "__wrapped__"):
        HANDLERS.setdefault(_function.__wrapped__, _handler)
