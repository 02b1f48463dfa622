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
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaingrad.engine.sparsity.index_sets import Ids, IndexSets
from plaingrad.rulebook import Rule
from plaingrad.rules.numpy import indexing, interpolation, norms, products, reductions, ufuncs
from plaingrad.rules.numpy.einsum import einsum_of_many
from plaingrad.rules.numpy.names import ABSENT, axes_of, both, functions
from plaingrad.tangents import NoTangent, ZeroTangent, unthunk

MANY = 20_000_000  # terms of a product beyond which the zeros of a constant are not looked at
LABELS = 1 << 24  # labels are whole numbers below this: exact in single precision

Handler = Callable[["Call"], Any]


@dataclass(frozen=True)
class Call:
    """One call of a function with a rule, some of whose arguments depend on the inputs.

    Attributes:
        rule: its rule.
        f: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        ids: the sets of the active arguments by position: a number, an array, a list for a sequence.
        y: the result.
        sets: what the numbers of sets mean.
        outside: calls a function one level out.
    """

    rule: Rule
    f: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    ids: dict[int, Any]
    y: Any
    sets: IndexSets
    outside: Callable[..., Any]

    @property
    def names(self) -> tuple[str, ...]:
        """What the rule calls its positional parameters."""
        code = getattr(self.rule.rrule or self.rule.frule, "__code__", None)
        return code.co_varnames[: code.co_argcount] if code is not None else ()

    def argument(self, name: str, default: Any = None, position: int | None = None) -> Any:
        """An argument by the name that the rule has for it; `position`: where it stands if the rule has no name."""
        if name in self.kwargs:
            return self.kwargs[name]
        names = self.names
        if name in names:
            position = names.index(name)
        return self.args[position] if position is not None and position < len(self.args) else default

    def at(self, position: int) -> Any:
        """An argument by its position."""
        return self.args[position] if position < len(self.args) else self.kwargs[self.names[position]]

    def array(self, position: int) -> Ids:
        """The sets of an argument as an array of its shape; empty ones for a constant."""
        ids = self.ids.get(position)
        if ids is None:
            return np.zeros(np.shape(self.at(position)), np.int64)
        return np.asarray(ids)

    def of_others(self, *positions: int) -> int:
        """The union of all sets of the arguments but those at `positions`."""
        found = 0
        for position, ids in self.ids.items():
            if position not in positions:
                found = self.sets.union_of_two(found, everything(self.sets, ids))
        return found


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


def everything(sets: IndexSets, ids: Any) -> int:
    """The union of all sets in an array or nested list."""
    flat = np.concatenate([np.ravel(part) for part in leaves(ids)] or [np.zeros(0, np.int64)])
    return int(sets.reduce(flat, (0,))) if flat.size else 0


def leaves(ids: Any) -> list[Any]:
    """The arrays and numbers of a nested list."""
    return [leaf for part in ids for leaf in leaves(part)] if isinstance(ids, list) else [ids]


def shaped(ids: Any, y: Any) -> Ids:
    """`ids`, repeated to the shape of `y`."""
    return np.broadcast_to(ids, np.shape(y))


# -- elementwise -----------------------------------------------------------------------------------------------------


def has_partial(rule: Rule, position: int) -> bool:
    """Whether a row has a derivative with respect to an argument that is not zero everywhere."""
    if not rule.partials:
        return True
    partial = rule.partials[position] if position < len(rule.partials) else None
    return callable(partial) or bool(partial)


def elementwise(call: Call) -> Any:
    """Each element depends on the elements that broadcast to it."""
    parts = [ids for position, ids in call.ids.items() if has_partial(call.rule, position)]
    found = call.sets.union(*parts) if parts else np.zeros((), np.int64)
    if isinstance(call.y, tuple):  # modf, divmod
        return [shaped(found, part) for part in call.y]
    return shaped(found, call.y)


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


# -- products --------------------------------------------------------------------------------------------------------


def contracted(call: Call, at: tuple[int, int], in_a: tuple[int, ...], in_b: tuple[int, ...]) -> Any:
    """Products of `a` and `b` summed over pairs of axes; the axes of the result are the others of a, then of b."""
    a, b = (call.at(k) for k in at)
    free_a = tuple(k for k in range(np.ndim(a)) if k not in in_a)
    free_b = tuple(k for k in range(np.ndim(b)) if k not in in_b)
    shape = tuple(np.shape(a)[k] for k in free_a) + tuple(np.shape(b)[k] for k in free_b)
    parts = []
    for mine, other, my_axes, its_axes, mine_free, its_free in (
        (at[0], b, in_a, in_b, free_a, free_b),
        (at[1], a, in_b, in_a, free_b, free_a),
    ):
        if mine not in call.ids:
            continue
        ids = call.array(mine)
        table = np.transpose(ids, my_axes + mine_free)
        rows = math.prod(table.shape[: len(my_axes)])
        own = math.prod(table.shape[len(my_axes) :])
        factor = np.transpose(np.asarray(other), its_axes + its_free)
        table = table.reshape(rows, own)  # (summed, own)
        factor = factor.reshape(rows, math.prod(factor.shape[len(its_axes) :]))  # (summed, the other's)
        if at[0] in call.ids and at[1] in call.ids:
            at_which, which = None, None
        else:
            at_which, which = np.nonzero(factor)
        if at_which is None or at_which.size == factor.size or at_which.size * own > MANY:
            found = np.broadcast_to(call.sets.reduce(table, (0,)), (factor.shape[1], own))
        else:
            groups = which[:, None] * own + np.arange(own)
            found = call.sets.union_of_groups(groups.ravel(), table[at_which].ravel(), factor.shape[1] * own)
        found = found.reshape(factor.shape[1], own)
        parts.append((found.T if mine == at[0] else found).reshape(shape))
    return call.sets.union(*parts)


def matmul(call: Call) -> Any:
    """a @ b, stacks included."""
    a, b = np.ndim(call.at(0)), np.ndim(call.at(1))
    if a <= 2 and b <= 2:
        return contracted(call, (0, 1), (a - 1,), (max(b - 2, 0),))
    row = call.sets.reduce(call.array(0), (a - 1,))
    column = call.sets.reduce(call.array(1), (max(b - 2, 0),))
    if a > 1 and b > 1:
        row, column = row[..., None], column[..., None, :]
    return call.sets.union(shaped(row, call.y), shaped(column, call.y))


def dot(call: Call) -> Any:
    """np.dot: the last axis of a with the last but one of b."""
    a, b = np.ndim(call.at(0)), np.ndim(call.at(1))
    if a == 0 or b == 0:
        return elementwise(call)
    return contracted(call, (0, 1), (a - 1,), (max(b - 2, 0),))


def inner(call: Call) -> Any:
    """np.inner: the last axes."""
    a, b = np.ndim(call.at(0)), np.ndim(call.at(1))
    return elementwise(call) if a == 0 or b == 0 else contracted(call, (0, 1), (a - 1,), (b - 1,))


def outer(call: Call) -> Any:
    """All pairs."""
    return call.sets.union(call.array(0).reshape(-1, 1), call.array(1).reshape(1, -1))


def tensordot(call: Call) -> Any:
    """The axes that are named."""
    in_a, in_b = products.contracted_axes(call.at(0), call.at(1), call.argument("axes", 2, 2))
    return contracted(call, (0, 1), tuple(in_a), tuple(in_b))


def of_vectors(call: Call) -> Any:
    """np.vecdot, np.matvec, np.vecmat: sums over the last axis, in a matrix on the left over the last but one."""
    if call.kwargs or len(call.args) != 2:
        return None
    name = call.rule.function.__name__
    a, b = call.array(0), call.array(1)
    a = call.sets.reduce(a, (a.ndim - 1,))
    b = call.sets.reduce(b, (b.ndim - (2 if name == "vecmat" else 1),))
    a = a[..., None] if name == "vecmat" else a
    b = b[..., None] if name == "matvec" else b
    return shaped(call.sets.union(a, b), call.y)


def cross(call: Call) -> Any:
    """The vectors along the last axes."""
    if call.kwargs or len(call.args) != 2:
        return None
    parts = [call.sets.reduce(call.array(k), (np.ndim(call.at(k)) - 1,)) for k in (0, 1)]
    found = call.sets.union(*parts)
    return shaped(found[..., None] if np.ndim(call.y) > found.ndim else found, call.y)


def convolution(call: Call) -> Any:
    """Sums along a window; zeros of a constant window pass nothing."""
    mode = call.argument("mode", "full" if call.f is np.convolve else "valid", 2)
    mode = {0: "v", 1: "s", 2: "f"}.get(mode, str(mode)[:1])
    size = [np.size(call.at(k)) for k in (0, 1)]
    turn = -1 if call.f is np.correlate else 1
    total = size[0] + size[1] - 1
    parts = []
    for mine in call.ids:
        other = np.ravel(call.at(1 - mine))
        reach = np.arange(other.size) if 1 - mine in call.ids else np.flatnonzero(other)
        ids = call.array(mine).ravel()
        if turn < 0:  # a convolution with the window read backwards
            ids, reach = (ids, other.size - 1 - reach) if mine == 0 else (ids[::-1], reach)
        groups = np.arange(ids.size)[:, None] + reach
        parts.append(call.sets.union_of_groups(groups.ravel(), np.repeat(ids, reach.size), total))
    full = call.sets.union(*parts)
    small = min(size)
    if mode == "v":
        return full[small - 1 : total - small + 1]
    if mode == "s":
        start = small // 2 if turn < 0 and size[0] < size[1] else (small - 1) // 2
        return full[start : start + max(size)]
    return full


def einsum(call: Call) -> Any:
    """Each operand is summed over what the result does not name; zeros of one constant operand pass nothing."""
    labels, result = call.at(0), call.at(1)
    arrays = call.args[3:]
    sizes = {label: n for a, word in zip(arrays, labels) for label, n in zip(word, np.shape(a)) if n != 1}
    if len(arrays) == 2 and len(call.ids) == 1 and all(len(set(word)) == len(word) for word in labels):
        (mine,) = call.ids
        other = 7 - mine  # positions 3 and 4
        shared = [x for x in labels[mine - 3] if x in labels[other - 3] and x not in result]
        plain = not set(labels[3 - 3]) & set(labels[4 - 3]) & set(result)
        alone = [x for word in labels for x in word if x not in result and x not in shared]
        if plain and not alone and result == [x for word in labels for x in word if x not in shared]:
            axes = [tuple(word.index(x) for x in shared) for word in labels]
            return contracted(call, (3, 4), *axes)
    parts = []
    for position, ids in call.ids.items():
        word = labels[position - 3]
        if len(set(word)) < len(word):
            return None
        found = call.sets.reduce(ids, tuple(k for k, x in enumerate(word) if x not in result))
        kept = [x for x in word if x in result]
        order = sorted(range(len(kept)), key=lambda k: result.index(kept[k]))
        found = np.transpose(found, order)
        kept = [kept[k] for k in order]
        shape = [found.shape[kept.index(x)] if x in kept else 1 for x in result]
        parts.append(np.broadcast_to(found.reshape(shape), [sizes.get(x, 1) for x in result]))
    return shaped(call.sets.union(*parts), call.y)


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


# -- linear functions, asked with labels -----------------------------------------------------------------------------


def by_labels(call: Call) -> Any:
    """A linear function that only moves elements, or adds them up each in one place; None for any other."""
    ids = call.ids[0]
    flat = np.concatenate([np.zeros(1, np.int64), *[np.ravel(part) for part in leaves(ids)]])
    random = np.random.default_rng(flat.size)
    if flat.size >= LABELS:
        return None
    forward = found_by(lambda labels: pushed(call, labels), flat.size - 1, random)
    if forward is not None:  # the tangent of a result need only broadcast to its shape
        return shaped(flat[forward], call.y)
    if isinstance(ids, list) or call.rule.rrule is None:
        return None
    back = found_by(lambda labels: pulled(call, labels), np.size(call.y), random)
    if back is not None and back.shape == np.shape(ids):
        groups = back.ravel()
        count = np.size(call.y) + 1  # place 0 is for elements that reach nothing
        return call.sets.union_of_groups(groups, np.ravel(ids), count)[1:].reshape(np.shape(call.y))
    return None


def found_by(linear_map: Callable[[np.ndarray], Any], n: int, random: np.random.Generator) -> Any:
    """For each element of the result which of the n elements it is, counted from 1 (0: none); None if it is neither.

    The map is tried with the places themselves and twice with random labels: a result that mixes two elements would
    have to be right by chance three times.
    """
    try:
        places = quietly(linear_map, np.arange(n + 1))
        if places.dtype.kind not in "fciu":
            return None
        found = whole(places)
        if found is None or found.max(initial=0) > n:
            return None
        for _ in range(2):
            labels = random.integers(1, LABELS, n + 1)
            labels[0] = 0
            seen = quietly(linear_map, labels)
            for part in ("real", "imag"):
                expected = np.where(getattr(places, part) != 0, labels[found], 0)
                if not np.array_equal(np.abs(getattr(seen, part)), expected):
                    return None
    except (TypeError, ValueError, IndexError):
        return None
    return found


def quietly(linear_map: Callable[[np.ndarray], Any], labels: np.ndarray) -> np.ndarray:
    """What the map makes of labels: they may be too large for the dtype it gives."""
    with np.errstate(all="ignore"):
        return np.asarray(linear_map(labels))


def whole(places: np.ndarray) -> Any:
    """|places| as whole numbers, the same in the real and imaginary parts that are not zero; else None."""
    real, imaginary = np.abs(places.real), np.abs(places.imag)
    top = np.maximum(real, imaginary)
    if not np.all(np.isfinite(top)) or not np.all(top < 2.0**53):
        return None
    found = top.astype(np.int64)
    if not np.array_equal(found, top):
        return None
    if not np.all(((real == top) | (real == 0)) & ((imaginary == top) | (imaginary == 0))):
        return None
    return found


def pushed(call: Call, labels: np.ndarray) -> Any:
    """The function, or its pushforward, on labels for the elements of its argument."""
    x = call.args[0]
    if isinstance(x, (list, tuple)):
        parts, first = [], 1
        for entry in x:
            n = np.size(entry)
            parts.append(labelled(labels[first : first + n], entry))
            first += n
        x_dot: Any = parts
    else:
        x_dot = labelled(labels[1:], x)
    if call.rule.frule is not None:
        _, push = call.outside(call.rule.frule, *call.args, **call.kwargs)
        dots = [ZeroTangent] * len(call.args)
        dots[0] = x_dot
        return unthunk(push(tuple(dots)))
    return call.f(x_dot, *call.args[1:], **call.kwargs)


def pulled(call: Call, labels: np.ndarray) -> Any:
    """The pullback of labels for the elements of the result."""
    _, pullback = call.outside(call.rule.rrule, *call.args, **call.kwargs)
    x_bar = unthunk(pullback(labelled(labels[1:], call.y))[0])
    return np.zeros(np.shape(call.ids[0])) if x_bar is ZeroTangent or x_bar is NoTangent else x_bar


def labelled(labels: np.ndarray, x: Any) -> Any:
    """Labels in the shape of `x`, in both parts of complex numbers."""
    is_complex = np.iscomplexobj(x)
    return (labels * (1.0 + 1.0j) if is_complex else labels * 1.0).reshape(np.shape(x))


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
