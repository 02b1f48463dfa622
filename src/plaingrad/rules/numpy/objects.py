"""Arrays of Python objects are containers: what computes with their elements does so one by one, as Python would.

`DEFINITIONS` says how, function by function; they run as user code. What is in `MOVES` (and every function whose rule
stands in the modules about shapes, indexing and creation) only moves references, so it is called natively.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import axes_of, refuse

OPERATORS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.power: operator.pow,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.absolute: abs,
    np.maximum: max,
    np.minimum: min,
    np.square: lambda x: x * x,
    np.reciprocal: lambda x: 1 / x,
    np.sqrt: lambda x: x.sqrt(),  # NumPy calls methods of these names
    np.exp: lambda x: x.exp(),
    np.log10: lambda x: x.log10(),
    abs: abs,
    **{op: op for op in (operator.neg, operator.pos, operator.abs)},
}

MOVES = frozenset(
    (np.sort, np.argsort, np.max, np.min, np.amax, np.amin, np.argmax, np.argmin, np.ndarray.sort, np.ndarray.argsort)
    + (np.ndarray.max, np.ndarray.min, np.ndarray.argmax, np.ndarray.argmin, np.partition, np.ndarray.partition)
)
JOINING = (np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, np.append)
MOVES |= frozenset(JOINING)
MOVING_MODULES = ("shapes.py", "indexing.py", "creation.py", "sorting.py")


def elementwise(op: Callable[..., Any], *operands: Any) -> Any:
    """op of each tuple of elements, broadcast; one object if no operand has a dimension."""
    arrays = np.broadcast_arrays(*[as_objects(x) for x in operands])
    result = np.empty(arrays[0].shape, object)
    for place in np.ndindex(result.shape):
        result[place] = op(*[a[place] for a in arrays])
    return result if result.ndim else result[()]


def as_objects(x: Any) -> Any:
    """`x`, an array or a list, as an array of objects; a number as one element."""
    if isinstance(x, (list, tuple)):
        return np.array(x, object)
    if isinstance(x, np.ndarray):
        return x if x.dtype.kind == "O" else x.astype(object)
    box = np.empty((), object)
    box[()] = x
    return box


def reduced(op: Callable[[Any, Any], Any], a: Any, axis: Any, keepdims: Any = False) -> Any:
    """op over all elements, or along some axes, from left to right."""
    if axis is None:
        items = list(a.ravel())
        total = items[0]
        for item in items[1:]:
            total = op(total, item)
        if keepdims is not True:
            return total
        result = np.empty((1,) * a.ndim, object)
        result[...] = as_objects(total)
        return result
    axes = axes_of(axis, a.ndim)
    moved = np.moveaxis(a, axes, tuple(range(len(axes))))
    moved = moved.reshape((-1, *moved.shape[len(axes) :]))
    total = moved[0]
    for part in moved[1:]:
        total = elementwise(op, total, part)
    return np.expand_dims(total, axes) if keepdims is True else total


def refuse_options(name: str, **options: Any) -> None:
    """Sums and products of objects take axes and `keepdims`: other options are for arrays of numbers."""
    for option, value in options.items():
        if value is not None and value is not np._NoValue and value is not True:
            raise refuse(f"{name} of an array of objects", f"was given {option}", "leave it out, or write a loop")


def sum_of_objects(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """The sum, by the elements' own addition."""
    refuse_options("sum", dtype=dtype, out=out, initial=initial, where=where)
    return reduced(operator.add, a, axis, keepdims)


def product_of_objects(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Any:
    """The product, by the elements' own multiplication."""
    refuse_options("prod", dtype=dtype, out=out, initial=initial, where=where)
    return reduced(operator.mul, a, axis, keepdims)


def mean_of_objects(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, where: Any = True
) -> Any:
    """The sum over the number of elements."""
    refuse_options("mean", dtype=dtype, out=out, where=where)
    count = a.size if axis is None else math.prod(a.shape[k] for k in axes_of(axis, a.ndim))
    return reduced(operator.add, a, axis, keepdims) / count


def running(op: Callable[[Any, Any], Any], a: Any, axis: Any) -> Any:
    """op over the first 1, 2, ... elements along an axis; of the flat array without one."""
    result = a.ravel() if axis is None else np.moveaxis(a, axis, 0)
    result = np.array(result)  # references, in memory of its own
    for k in range(1, len(result)):
        result[k] = elementwise(op, result[k - 1], result[k])
    return result if axis is None else np.moveaxis(result, 0, axis)


def running_sum_of_objects(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the first 1, 2, ... elements."""
    refuse_options("cumsum", dtype=dtype, out=out)
    return running(operator.add, a, axis)


def running_product_of_objects(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Products of the first 1, 2, ... elements."""
    refuse_options("cumprod", dtype=dtype, out=out)
    return running(operator.mul, a, axis)


def outer_of_objects(a: Any, b: Any, out: Any = None) -> Any:
    """Products of every element of `a` with every one of `b`."""
    refuse_options("outer", out=out)
    return elementwise(operator.mul, as_objects(a).ravel()[:, None], as_objects(b).ravel()[None, :])


def dot_of_objects(a: Any, b: Any) -> Any:
    """Sums of products of elements: vectors and matrices."""
    a, b = as_objects(a), as_objects(b)
    if a.ndim == 1 and b.ndim == 1:
        return reduced(operator.add, elementwise(operator.mul, a, b), None)
    if a.ndim == 2 and b.ndim == 1:
        return reduced(operator.add, elementwise(operator.mul, a, b), 1)
    if a.ndim == 1 and b.ndim == 2:
        return reduced(operator.add, elementwise(operator.mul, a[:, None], b), 0)
    if a.ndim == 2 and b.ndim == 2:
        return reduced(operator.add, elementwise(operator.mul, a[:, :, None], b[None, :, :]), 1)
    raise refuse("a product of arrays of objects", "has more than two dimensions", "write it as a sum over one")


DEFINITIONS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((np.sum, np.ndarray.sum), sum_of_objects),
    **dict.fromkeys((np.prod, np.ndarray.prod), product_of_objects),
    **dict.fromkeys((np.mean, np.ndarray.mean), mean_of_objects),
    **dict.fromkeys((np.cumsum, np.ndarray.cumsum), running_sum_of_objects),
    **dict.fromkeys((np.cumprod, np.ndarray.cumprod), running_product_of_objects),
    np.outer: outer_of_objects,
    **dict.fromkeys((np.dot, np.ndarray.dot, np.matmul, operator.matmul, np.inner), dot_of_objects),
}
