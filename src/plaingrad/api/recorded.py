"""The parts of the public door that compute with derivatives. They are ordinary Python over numbers and arrays.

Where a derivative is being taken around the call they run rewritten, one level out, and are recorded there like any
other code. They know nothing of levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule


def element(a: np.ndarray) -> Any:
    """The number in a 0-d array."""
    return a[()]


def as_array(x: Any) -> np.ndarray:
    """A number as a 0-d array."""
    return np.array(x)


def copies(leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    """`leaves` with arrays in memory of their own."""
    return tuple([np.array(x) if isinstance(x, np.ndarray) else x for x in leaves])


def copied(a: np.ndarray) -> np.ndarray:
    """A copy of an array."""
    return np.array(a)


def overwrite(a: np.ndarray, b: np.ndarray) -> None:
    """a[...] = b."""
    a[...] = b


def as_dtype(d: Any, dtype: Any) -> np.ndarray:
    """An array, or a number, as an array of this dtype."""
    return np.array(d).astype(dtype)


def in_type(d: Any, cls: Any) -> Any:
    """A number as one of this type."""
    return cls(d)


def python_number(d: Any) -> Any:
    """A NumPy scalar as a float or complex."""
    return complex(d) if isinstance(d, np.complexfloating) else float(d)


def chosen(dot: np.ndarray, k: int, leaf: Any) -> Any:
    """Entry `k` of a chunk of tangents: a number for a number, an array for an array."""
    if leaf.is_array:
        return dot[k : k + 1].reshape(leaf.shape)
    return dot.tolist()[k] if type(leaf.x) is float or type(leaf.x) is complex else dot[k]


def nth_from_taylor(coefficients: np.ndarray, order: int, leaf: Any) -> Any:
    """n! times coefficient n of those from 1 on."""
    return chosen(coefficients, order - 1, leaf) * float(math.factorial(order))


# -- whole derivatives -------------------------------------------------------------------------------------------------


def numbers_in(y_dot: Any) -> list[Any]:
    """The tangents of a number as a list of numbers."""
    return y_dot.tolist() if y_dot.dtype == float or y_dot.dtype == complex else list(y_dot)


def joined(columns: list[Any]) -> Any:
    """The tangents of one leaf of y along all directions: a list of numbers, or an array with a leading axis."""
    if len(columns) == 1:
        return columns[0]
    return (
        np.concatenate(columns)
        if isinstance(columns[0], np.ndarray)
        else [d for part in columns for d in part]
    )


def pair_of_columns(whole: Any, start: int, y: Any, x: Any) -> tuple[Any, Any]:
    """(dy/dx along 1, along i or None) from tangents of y: those from `start` on belong to x."""
    along_1 = block_of_columns(whole, start, y, x)
    return along_1, block_of_columns(whole, start + x.size, y, x) if x.is_complex else None


def block_of_columns(whole: Any, start: int, y: Any, x: Any) -> Any:
    """Tangents of y, one for each element of x, as an array of shape y.shape + x.shape."""
    if not x.is_array:
        return whole[start]
    part = whole[start : start + x.size]
    if not y.is_array:
        return np.array(part).reshape(x.shape)
    first = len(x.shape)
    axes = (*range(first, first + len(y.shape)), *range(first))
    return part.reshape(x.shape + y.shape).transpose(axes)


def pair_of_rows(rows: list[Any], y: Any, x: Any) -> tuple[Any, Any]:
    """(dy/dx along 1, along i or None) from cotangents of x: for weight 1 on each element of y, then for weight i."""
    of_real = block_of_rows(rows[: y.size], y, x)
    if not y.is_complex:
        return (of_real.real, of_real.imag) if x.is_complex else (of_real, None)
    of_imag = block_of_rows(rows[y.size :], y, x)
    if not x.is_complex:
        return of_real + 1j * of_imag, None
    return of_real.real + 1j * of_imag.real, of_real.imag + 1j * of_imag.imag


def block_of_rows(rows: list[Any], y: Any, x: Any) -> Any:
    """Cotangents of x, one for each element of y, as an array of shape y.shape + x.shape."""
    if not y.is_array:
        return rows[0]
    return np.array(rows).reshape(y.shape + x.shape)


def along_both(along_1: Any, along_i: Any) -> Any:
    """d/du + i d/dv."""
    return along_1 + 1j * along_i


def half_difference(along_1: Any, along_i: Any) -> Any:
    """(d/du - i d/dv) / 2, the derivative by z."""
    return (along_1 - 1j * along_i) / 2


def half_sum(along_1: Any, along_i: Any) -> Any:
    """(d/du + i d/dv) / 2, the derivative by the conjugate of z."""
    return (along_1 + 1j * along_i) / 2


# -- rules of our own functions ----------------------------------------------------------------------------------------


def hook_rule(on_leaves: Callable[[Any], Any], further_out: Callable[[Any], Any]) -> Rule:
    """The rule of one hook, on a tuple of leaves: the identity, whose cotangents go through `on_leaves`.

    Args:
        further_out: the same hook for the levels further out. In reverse mode the hook is done with: they do not meet
            it. In forward mode it has nothing to do, and waits for them.
    """

    def hook_rrule(leaves: tuple[Any, ...]) -> Any:
        def hook_pullback(bars: Any) -> tuple[Any, ...]:
            return (on_leaves(bars),)

        return copies(leaves), hook_pullback

    def hook_frule(leaves: tuple[Any, ...]) -> Any:
        def hook_pushforward(dots: Any) -> Any:
            return dots[0]

        return further_out(leaves), hook_pushforward

    return Rule(copies, "full", hook_rrule, hook_frule, hook_frule, affine=True)


def hook_on_leaves(fn: Any, spread: Any, gather: Any) -> Callable[[Any], Any]:
    """The user's hook as a function of a tuple of leaves' cotangents."""

    def on_leaves(bars: Any) -> Any:
        x_bar = spread(bars)
        changed = fn(x_bar)
        return gather(x_bar if changed is None else changed)

    return on_leaves


def pull_by_tangents(x_leaves: list[Any], dots: list[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """The pullback to the tuple of leaves of x, from the tangents of values along every direction of x."""

    def pull(bars: Any) -> tuple[Any, ...]:
        along: Any = None
        for bar, dot in zip(bars, dots, strict=True):
            part = np.real(np.reshape(dot, (len(dot), -1)) @ np.reshape(np.conj(bar), -1))
            along = part if along is None else along + part
        found = []
        start = 0
        for x in x_leaves:
            x_bar = along[start : start + x.size]
            if x.is_complex:
                x_bar = x_bar + 1j * along[start + x.size : start + x.directions]
            found.append(x_bar.reshape(x.shape) if x.is_array else x_bar[0])
            start += x.directions
        return (tuple(found),)

    return pull


def of_some(
    f: Callable[..., Any], moving: list[int], args: tuple[Any, ...], kwargs: Any
) -> Callable[[Any], Any]:
    """`f` as a function of the tuple of some of its arguments."""

    def of_moving(xs: tuple[Any, ...]) -> Any:
        every = list(args)
        for n, x in zip(moving, xs, strict=True):
            every[n] = x
        return f(*every, **kwargs)

    return of_moving


# -- parameters in structures ------------------------------------------------------------------------------------------


def mapped(f: Callable[..., Any], columns: list[Any]) -> list[Any]:
    """f(leaf, ...) for each leaf."""
    return [f(*row) for row in zip(*columns, strict=True)]


def as_vector(leaves: list[Any]) -> Any:
    """Numbers and arrays, one after the other, as one vector."""
    return np.concatenate([np.reshape(x, (-1,)) for x in leaves])


def parted(vector: Any, leaves: list[Any]) -> list[Any]:
    """The parts of a vector that belong to each of `leaves`, in their shapes and types; of a matrix, blocks."""
    parts: list[Any] = []
    start = 0
    for leaf in leaves:
        part = vector[start : start + leaf.size]
        start += leaf.size
        if part.dtype.kind == "c" and not leaf.is_complex:
            part = part.real
        if leaf.is_array:
            part = np.reshape(part, leaf.shape + vector.shape[1:])
            parts.append(part if part.dtype == leaf.x.dtype else part.astype(leaf.x.dtype))
        else:
            parts.append(part[0] if vector.ndim > 1 else type(leaf.x)(part[0]))
    return parts


def stepped(values: list[Any], steps: list[Any], scale: Any) -> list[Any]:
    """x + scale * x_dot for each, in the type of x."""
    found: list[Any] = []
    for x, x_dot in zip(values, steps, strict=True):
        new = x + scale * x_dot
        if isinstance(x, np.ndarray):
            found.append(new if new.dtype == x.dtype else new.astype(x.dtype))
        else:
            found.append(new if type(new) is type(x) else type(x)(new))
    return found


# -- batches -----------------------------------------------------------------------------------------------------------


def of_each(f: Callable[..., Any], rows: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """f(*row) for each row."""
    return [of_one(f, row, kwargs) for row in rows]


def of_one(f: Callable[..., Any], row: list[Any], kwargs: dict[str, Any]) -> Any:
    """f(*row), in memory of its own: a function may return an array that it writes into again in its next call."""
    return apart(f(*row, **kwargs))


def apart(y: Any) -> Any:
    """`y`, with copies of its arrays."""
    if isinstance(y, np.ndarray):
        return np.array(y) if type(y) is np.ndarray else y.copy()
    if type(y) is tuple or type(y) is list:
        return type(y)([apart(part) for part in y])
    if isinstance(y, tuple) and hasattr(y, "_fields"):
        return type(y)(*[apart(part) for part in y])
    if type(y) is dict:
        return {key: apart(part) for key, part in y.items()}
    return y


def entries_of_arrays(arrays: list[Any], k: int) -> list[Any]:
    """Entry `k` of each array."""
    return [array[k] for array in arrays]


def axis_in_front(x: Any, axis: int) -> Any:
    """`x` with this axis before the others."""
    return np.moveaxis(x, axis, 0)


def moved_axis(x: Any, axis: int) -> Any:
    """`x` with its first axis moved."""
    return np.moveaxis(x, 0, axis) if axis else x


def stacked_along(results: list[Any], axis: int) -> Any:
    """Numbers as an array, arrays as one with one more axis."""
    return np.stack([np.asarray(x) for x in results], axis)


def with_first(first: Any, rest: Any) -> Any:
    """An array with one entry more, before the others."""
    return np.concatenate([np.reshape(np.asarray(first), (1, *np.shape(first))), rest])


def rest_of(loop: Any, first: Any, mapped: tuple[bool, ...], arrays: list[Any]) -> Any:
    """What a compiled loop gives for all examples but the first."""
    return loop(first, *[x[1:] if is_mapped else x for x, is_mapped in zip(arrays, mapped, strict=True)])
