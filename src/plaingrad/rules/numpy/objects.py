"""Arrays of Python objects are containers: what computes with their elements does so one by one, as Python would.

`DEFINITIONS` says how, function by function; they run as user code. What is in `MOVES` (and every function whose rule
stands in the modules about shapes, indexing and creation) only moves references, so it is called natively.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

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
    """`x` as an array of objects; a number as one element."""
    if isinstance(x, np.ndarray):
        return x if x.dtype.kind == "O" else x.astype(object)
    box = np.empty((), object)
    box[()] = x
    return box


def reduced(op: Callable[[Any, Any], Any], a: Any, axis: Any, start: Any = None) -> Any:
    """op over all elements, or along one axis, from left to right."""
    if axis is None:
        items = list(a.ravel())
        total = items[0] if start is None else start
        for item in items[1:] if start is None else items:
            total = op(total, item)
        return total
    moved = np.moveaxis(a, axis, 0)
    total = moved[0]
    for part in moved[1:]:
        total = elementwise(op, total, part)
    return total


def refuse_options(options: tuple[Any, ...]) -> None:
    """Only what stands for an option not given may follow the axis."""
    if not all(option is None or option is np._NoValue or option is True or option is False for option in options):
        raise NotImplementedError("sums and products of object arrays take an axis only")


def sum_of_objects(a: Any, axis: Any = None, *defaults: Any) -> Any:
    """The sum, by the elements' own addition."""
    refuse_options(defaults)
    return reduced(operator.add, a, axis)


def product_of_objects(a: Any, axis: Any = None, *defaults: Any) -> Any:
    """The product, by the elements' own multiplication."""
    refuse_options(defaults)
    return reduced(operator.mul, a, axis)


def mean_of_objects(a: Any, axis: Any = None) -> Any:
    """The sum over the number of elements."""
    return sum_of_objects(a, axis) / (a.size if axis is None else a.shape[axis])


def running_sum_of_objects(a: Any, axis: Any = None) -> Any:
    """The sums of the first 1, 2, ... elements of a flat array."""
    items = list(a.ravel())
    for k in range(1, len(items)):
        items[k] = items[k - 1] + items[k]
    result = np.empty(len(items), object)
    for k, item in enumerate(items):
        result[k] = item
    return result


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
    raise NotImplementedError("products of object arrays of more than two dimensions")


DEFINITIONS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((np.sum, np.ndarray.sum), sum_of_objects),
    **dict.fromkeys((np.prod, np.ndarray.prod), product_of_objects),
    **dict.fromkeys((np.mean, np.ndarray.mean), mean_of_objects),
    **dict.fromkeys((np.cumsum, np.ndarray.cumsum), running_sum_of_objects),
    **dict.fromkeys((np.dot, np.ndarray.dot, np.matmul, operator.matmul, np.inner), dot_of_objects),
}
