"""NumPy's functions and operators on mapped values: which form computes each, over which axes.

Every step takes the level, the function, and its arguments as the program gives them. An argument that has no place
here is a TypeError, and the run is given up.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from plaingrad.engine.batches import forms
from plaingrad.engine.batches.elementwise_steps import broadcast, clip, where
from plaingrad.engine.batches.mapped import Mapped, any_mapped, raw
from plaingrad.engine.batches.product_steps import dot, einsum, inner, matmul, of_matrices, outer, solve
from plaingrad.engine.batches.shape_steps import (
    array,
    astype,
    batch_axes,
    broadcast_to,
    concatenate,
    expand_dims,
    hstack,
    like_type,
    mapped_array,
    moved_axes,
    one_axis,
    ravel,
    repeat,
    reshape,
    squeeze,
    stack,
    swapaxes,
    transpose,
    view,
    vstack,
    zero_d,
)
from plaingrad.engine.batches.steps import PYTHON_OF, WIDE, Steps, is_python_number

Step = Callable[..., Any]


# Operators ------------------------------------------------------------------------------------------------------


def operation(level: Steps, f: Any, *xs: Any) -> Any:
    """An operator."""
    if f is operator.matmul:
        return matmul(level, f, *xs)
    if f is operator.pow and type(xs[1]) is not Mapped and not xs[0].shape and np.any(raw(xs[0]) == 0.0):
        level.give_up("a power of zero", True)  # 0.5 of -0.0 is 0.0 for numbers, and -0.0 in arrays
    z = broadcast(level, f, xs, all(map(is_python_number, xs)))
    if all(type(x) is Mapped and x.cls is None or is_python_number(x) for x in xs) and not z.is_python:
        z.cls = None  # as unknown as that of an operand
    return z


def in_place(level: Steps, f: Any, a: Mapped, b: Any) -> Any:
    """a op= b by the operator `f`: of a number another number, of an array of this run the same array."""
    if a.cls is not np.ndarray:
        return operation(level, f, a, b)
    if not a.is_fresh or not a.shape or a.batch is not level.batch or f is operator.matmul:
        level.give_up("an array is changed in place")
    new = operation(level, f, a, b)
    if new.shape != a.shape or new.dtype != a.dtype:
        level.give_up("an array is changed in place")
    a.value = new.value  # nobody else has the memory of the old one
    return a


# Reductions -------------------------------------------------------------------------------------------------------


def reduction(level: Steps, f: Any, a: Any, axis: Any = None, **options: Any) -> Any:
    """A function of one array, over all axes of an example or some."""
    unknown = options.keys() - {"keepdims", "ddof"}
    x = mapped_array(level, a)
    if unknown or (options.get("keepdims") and axis is None):
        level.give_up(f"the options of {f.__name__}")
    reduced = [x.shape[k - 1] for k in np.atleast_1d(batch_axes(x, axis)).astype(int)]
    if prod(reduced) <= options.get("ddof", 0):
        level.give_up("nothing to reduce")  # of which NumPy warns
    if axis is None and f in FLATTENING:
        return level.made(level.outside(forms.reduced, f, level.outside(forms.flat, x.value), 1, options))
    return level.made(level.outside(forms.reduced, f, x.value, batch_axes(x, axis), options))


def cumulation(level: Steps, f: Any, a: Any, axis: Any = None) -> Any:
    """A function of one array along one axis, or of all elements."""
    x = mapped_array(level, a)
    if axis is not None and not x.shape:
        level.give_up("an axis of a number")
    if axis is None:
        return level.made(level.outside(forms.reduced, f, level.outside(forms.flat, x.value), 1, {}))
    return level.made(level.outside(forms.reduced, f, x.value, one_axis(x, axis), {}))


def along_last(level: Steps, f: Any, a: Any, axis: Any = -1) -> Any:
    """sort, argsort, flip: along one axis, the last one unless another is given."""
    x = mapped_array(level, a)
    return level.made(level.outside(forms.reduced, f, x.value, one_axis(x, axis), {}))


def norm(level: Steps, f: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """np.linalg.norm of vectors, or of all elements."""
    x = mapped_array(level, x)
    if keepdims or (axis is None and x.ndim != 1 and ord is not None) or isinstance(axis, tuple):
        level.give_up("norms of matrices")
    if axis is None:
        return level.made(
            level.outside(forms.reduced, f, level.outside(forms.flat, x.value), 1, {"ord": ord})
        )
    return level.made(level.outside(forms.reduced, f, x.value, one_axis(x, axis), {"ord": ord}))


def like(level: Steps, f: Any, a: Any, *more: Any) -> Any:
    """zeros_like and the like: the same for all examples."""
    x = mapped_array(level, a)
    if any_mapped(more) or x.is_python:
        level.give_up("an array of mapped values")
    return level.plainly(LIKE[f], x.shape, *more, dtype=x.dtype)


# Items ------------------------------------------------------------------------------------------------------------


def getitem(level: Steps, o: Any, k: Any) -> Any:
    """o[k], of a mapped array or by mapped indices."""
    if type(o) is not Mapped:
        if type(o) is not np.ndarray or type(k) is not Mapped or k.dtype.kind not in "iu":
            level.give_up("a mapped index")
        return level.made(level.outside(forms.taken, o, level.value(k)), is_fresh=False)  # a row is a view
    if o.cls is not np.ndarray:
        level.give_up("an item of a number")
    x = level.value(o)
    if type(k) is Mapped:
        if k.shape or k.dtype.kind not in "iu":
            level.give_up("a mapped index")
        return view(level, o, level.outside(forms.taken_of_each, x, level.value(k), level.batch.size))
    parts = k if type(k) is tuple else (k,)
    if any_mapped(list(parts)) or not keeps_place(parts):
        level.give_up("an index of several arrays, or of mapped ones")
    key = slice(None), *[np.asarray(part) if isinstance(part, list) else part for part in parts]
    value = level.outside(forms.item, x, key)
    z = view(level, o, value)
    if not z.shape and any(part is Ellipsis for part in parts):
        zero_d(z)
    return z


def keeps_place(parts: Any) -> bool:
    """Whether an index means the same behind one more slice: arrays of indices, and ints with them, stand together."""
    kinds = []
    for part in parts:
        if isinstance(part, (np.ndarray, list)):
            kinds.append("array")
        elif part is None or part is Ellipsis or isinstance(part, slice):
            kinds.append("slice")
        elif isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)):
            kinds.append("int")
        else:
            return False
    if "array" not in kinds:
        return True
    advanced = [n for n, kind in enumerate(kinds) if kind != "slice"]
    return advanced[-1] - advanced[0] == len(advanced) - 1


def take(level: Steps, f: Any, a: Any, indices: Any, axis: Any = None) -> Any:
    """np.take along one axis."""
    x = mapped_array(level, a)
    if any_mapped(indices) or (axis is None and x.ndim != 1):
        level.give_up("mapped indices")
    return level.made(level.outside(forms.called, np.take, (x.value, indices, one_axis(x, axis or 0)), {}))


def attribute(level: Steps, x: Mapped, name: str) -> Any:
    """An attribute of a mapped array or number."""
    if x.is_python or x.cls is None:
        level.give_up(f"the attribute {name!r} of a number")
    if name in ("shape", "ndim", "dtype"):
        return getattr(x, name)
    if name == "size":
        return prod(x.shape)
    if name == "T":
        return transpose(level, None, x)
    if name == "nbytes":
        return prod(x.shape) * x.dtype.itemsize
    if name in ("real", "imag") and x.dtype.kind == "c":
        return view(level, x, level.outside(forms.called, getattr, (level.value(x), name), {}))
    level.give_up(f"the attribute {name!r}")


def shape_of(level: Steps, f: Any, a: Any) -> Any:
    """np.shape, np.ndim, np.size."""
    return f(np.broadcast_to(0.0, mapped_array(level, a).shape))


def length(level: Steps, f: Any, x: Any) -> Any:
    """len(x)."""
    if type(x) is not Mapped:
        return len(x)
    if not x.shape:
        level.give_up("the length of a number")
    return x.shape[0]


def copy(level: Steps, f: Any, a: Any) -> Any:
    """The method of this name."""
    x = mapped_array(level, a)
    return like_type(x, level.made(level.outside(forms.copied, level.value(x), 0)))


def item(level: Steps, f: Any, a: Any) -> Any:
    """The method of this name, of arrays of one element."""
    x = mapped_array(level, a)
    if prod(x.shape) != 1 or x.is_python:
        level.give_up("item of several")
    value = level.outside(forms.reshaped, x.value, ())
    if x.dtype not in WIDE:
        wide = PYTHON_OF.get(x.dtype.kind)
        if wide is None or x.dtype.itemsize > 8 or x.dtype == np.uint64:
            level.give_up("an item that is no number of Python")
        value = level.outside(forms.called, np.ndarray.astype, (value, wide), {})
    return level.made(value, True, False)


FLATTENING = frozenset((np.argmax, np.argmin, np.cumsum, np.cumprod))
LIKE = {np.zeros_like: np.zeros, np.ones_like: np.ones, np.empty_like: np.empty, np.full_like: np.full}
REDUCTIONS = "sum mean prod max min amax amin std var any all argmax argmin".split()
STEPS: dict[Any, Step] = {getattr(np, name): reduction for name in REDUCTIONS}
STEPS |= {np.cumsum: cumulation, np.cumprod: cumulation, np.sort: along_last, np.argsort: along_last}
STEPS |= {np.where: where, np.clip: clip, np.reshape: reshape, np.ravel: ravel, np.transpose: transpose}
STEPS |= {np.swapaxes: swapaxes, np.moveaxis: moved_axes, np.expand_dims: expand_dims, np.squeeze: squeeze}
STEPS |= {np.broadcast_to: broadcast_to, np.array: array, np.asarray: array, np.stack: stack}
STEPS |= {np.concatenate: concatenate, np.hstack: hstack, np.vstack: vstack, np.take: take}
STEPS |= dict.fromkeys(LIKE, like) | {np.matmul: matmul, np.dot: dot, np.inner: inner, np.vdot: inner}
STEPS |= {np.outer: outer, np.einsum: einsum, np.linalg.norm: norm, np.linalg.inv: of_matrices}
STEPS |= {np.linalg.det: of_matrices, np.linalg.solve: solve, len: length}
STEPS |= {np.shape: shape_of, np.ndim: shape_of, np.size: shape_of}
STEPS |= {np.ndarray.astype: astype, np.repeat: repeat}


def _by_name(step: Step, f: Any) -> Step:
    return lambda level, _, *args, **kwargs: step(level, f, *args, **kwargs)


METHODS: dict[str, Step] = {
    name: _by_name(STEPS[getattr(np, name)], getattr(np, name))
    for name in "sum mean prod max min std var any all argmax argmin cumsum cumprod clip reshape ravel transpose "
    "swapaxes squeeze take dot".split()
}
METHODS |= {"flatten": _by_name(ravel, np.ravel), "astype": astype, "copy": copy, "item": item}
