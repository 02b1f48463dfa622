"""Shapes and arrangements of mapped arrays, and arrays made of mapped values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from plaingrad.engine.batches import forms
from plaingrad.engine.batches.mapped import Mapped, any_mapped
from plaingrad.engine.batches.steps import Steps, ndim_of


def as_one(level: Steps, x: Any) -> Any:
    """A list with mapped values as an array of them."""
    return array(level, np.array, x) if isinstance(x, (list, tuple)) else x


def mapped_array(level: Steps, a: Any) -> Mapped:
    """An argument that is one mapped array or number."""
    a = as_one(level, a)
    if type(a) is not Mapped:
        level.give_up("an argument that is not mapped")
    return a if a.batch is level.batch else Mapped(level.batch, level.value(a), a.cls)


def batch_axes(x: Mapped, axis: Any) -> Any:
    """`axis` of an example as axes of the batch."""
    if axis is None:
        return tuple(range(1, x.ndim + 1))
    if isinstance(axis, tuple):
        return tuple([one_axis(x, k) for k in axis])
    return one_axis(x, axis)


def one_axis(x: Mapped, axis: Any, more: int = 0) -> int:
    """One axis of an example as that of the batch; `more`: among so many more than `x` has."""
    ndim = x.ndim + more
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim) if hasattr(np, "exceptions") else ValueError(axis)
    return axis % ndim + 1


def view(level: Steps, x: Mapped, value: Any) -> Mapped:
    """A result that may be a view of `x`."""
    x.is_fresh = False
    return level.made(value, is_fresh=False)


def zero_d(z: Mapped) -> Mapped:
    """A result that is an array, also where it has no axes."""
    z.cls = np.ndarray
    return z


def check_no_scalar(level: Steps, x: Mapped) -> None:
    """Leave numbers of NumPy to the loop, of which some functions of shapes make numbers, and of Python's arrays."""
    if x.cls is not np.ndarray and not x.is_python:
        level.give_up("the shape of a number")


def like_type(x: Mapped, z: Mapped) -> Mapped:
    """A result that is an array where `x` is, also where it has no axes."""
    return zero_d(z) if x.cls is np.ndarray else z


def reshape(level: Steps, f: Any, a: Any, *shape: Any, order: str = "C") -> Any:
    """np.reshape, and the method."""
    x = mapped_array(level, a)
    if not shape:
        level.give_up("reshape without a shape")
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    shape = tuple(map(operator.index, shape))
    size = prod(x.shape)
    if -1 in shape:
        rest = prod([n for n in shape if n != -1])
        if shape.count(-1) > 1 or rest <= 0 or size % rest:
            level.give_up("a shape that does not fit")
        shape = tuple([size // rest if n == -1 else n for n in shape])
    if order != "C" or prod(shape) != size or min(shape, default=0) < 0:
        level.give_up("a shape that does not fit")
    z = view(level, x, level.outside(forms.reshaped, x.value, shape))
    return zero_d(z)


def ravel(level: Steps, f: Any, a: Any) -> Any:
    """np.ravel, flatten."""
    return reshape(level, f, a, -1)


def transpose(level: Steps, f: Any, a: Any, *axes: Any) -> Any:
    """np.transpose, and the method."""
    x = mapped_array(level, a)
    check_no_scalar(level, x)
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = tuple(axes[0] or ())
    order = [one_axis(x, k) for k in axes] if axes else list(range(x.ndim, 0, -1))
    return zero_d(view(level, x, level.outside(forms.called, np.transpose, (x.value, (0, *order)), {})))


def moved_axes(level: Steps, f: Any, a: Any, source: Any, destination: Any) -> Any:
    """np.swapaxes, np.moveaxis."""
    x = mapped_array(level, a)
    axes = batch_axes(x, source), batch_axes(x, destination)
    return view(level, x, level.outside(forms.called, f, (x.value, *axes), {}))


def swapaxes(level: Steps, f: Any, a: Any, axis1: Any, axis2: Any) -> Any:
    """np.swapaxes, and the method."""
    return moved_axes(level, np.swapaxes, a, axis1, axis2)


def expand_dims(level: Steps, f: Any, a: Any, axis: Any) -> Any:
    """np.expand_dims by one axis."""
    x = mapped_array(level, a)
    return view(level, x, level.outside(forms.called, f, (x.value, one_axis(x, axis, 1)), {}))


def squeeze(level: Steps, f: Any, a: Any, axis: Any = None) -> Any:
    """np.squeeze."""
    x = mapped_array(level, a)
    check_no_scalar(level, x)
    axes = [k for k, n in enumerate(x.shape) if n == 1] if axis is None else axis
    axes = [k % x.ndim for k in (axes if isinstance(axes, (list, tuple)) else [axes])]
    if any(x.shape[k] != 1 for k in axes):
        level.give_up("a shape that does not fit")
    return reshape(level, f, a, tuple([n for k, n in enumerate(x.shape) if k not in axes]))


def broadcast_to(level: Steps, f: Any, array: Any, shape: Any) -> Any:
    """np.broadcast_to."""
    x = mapped_array(level, array)
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    value = level.outside(forms.aligned, x.value, len(shape))
    full = (level.batch.size, *shape)
    return view(level, x, level.outside(forms.called, np.broadcast_to, (value, full), {}))


def array(level: Steps, f: Any, object: Any, dtype: Any = None, order: Any = "C") -> Any:
    """np.array, np.asarray of a mapped value, or of lists of them."""
    if order != "C":
        level.give_up("an order of memory")
    if any_mapped(dtype):
        level.give_up("a type of mapped values")
    if type(object) is not Mapped:
        if not any_mapped(object):
            return level.plainly(np.array, object)
        z = stack(level, f, [array(level, np.array, x) if not is_leaf(x) else x for x in object])
    elif f is np.array:
        value = level.outside(forms.copied, level.value(object), 0)
        z = zero_d(level.made(value))
    else:
        z = object if object.cls is np.ndarray else zero_d(view(level, object, level.value(object)))
    if dtype is None:
        return z
    if (
        getattr(object, "cls", None) is not np.ndarray
        and np.dtype(dtype).kind in "iu"
        and z.dtype.kind in "iu"
    ):
        if np.dtype(dtype) != z.dtype:
            level.give_up("integers made narrow")  # an error for those that do not fit
    return astype(level, f, z, dtype, False)


def is_leaf(x: Any) -> bool:
    """Whether an entry of a list is a number or array."""
    return not isinstance(x, (list, tuple))


def stack(level: Steps, f: Any, arrays: Any, axis: int = 0) -> Any:
    """np.stack."""
    xs = list(map(partly(level), arrays))
    shape = xs[0].shape if hasattr(xs[0], "shape") else ()
    if any(np.shape(x) != shape if type(x) is not Mapped else x.shape != shape for x in xs):
        level.give_up("arrays of different shapes")
    ndim = len(shape) + 1
    mapped = [type(x) is Mapped for x in xs]
    if not -ndim <= axis < ndim:
        level.give_up("an axis that does not exist")
    return level.made(
        level.outside(forms.stacked, list(map(level.value, xs)), mapped, level.batch.size, axis % ndim)
    )


def concatenate(level: Steps, f: Any, arrays: Any, axis: Any = 0) -> Any:
    """np.concatenate."""
    xs = list(map(partly(level), arrays))
    mapped = [type(x) is Mapped for x in xs]
    if axis is None:
        rows = [
            ravel(level, f, x) if m else level.plainly(np.ravel, x) for x, m in zip(xs, mapped, strict=True)
        ]
        xs, axis = rows, 0
    ndim = ndim_of(xs[0])
    if not ndim or any(ndim_of(x) != ndim for x in xs) or not -ndim <= axis < ndim:
        level.give_up("arrays of different numbers of axes")
    return level.made(
        level.outside(forms.joined, list(map(level.value, xs)), mapped, level.batch.size, axis % ndim)
    )


def partly(level: Steps) -> Callable[[Any], Any]:
    """An entry of a list of arrays: mapped, or an array."""

    def one(x: Any) -> Any:
        if any_mapped(x):
            return as_one(level, x)
        return x if isinstance(x, np.ndarray) else level.plainly(np.asarray, x)

    return one


def hstack(level: Steps, f: Any, tup: Any) -> Any:
    """np.hstack."""
    xs = [at_least_1d(level, x) for x in map(partly(level), tup)]
    return concatenate(level, f, xs, 0 if ndim_of(xs[0]) == 1 else 1)


def vstack(level: Steps, f: Any, tup: Any) -> Any:
    """np.vstack."""
    xs = [at_least_1d(level, x) for x in map(partly(level), tup)]
    rows = [
        x
        if ndim_of(x) > 1
        else reshape(level, f, x, (1, -1))
        if type(x) is Mapped
        else level.plainly(np.reshape, x, (1, -1))
        for x in xs
    ]
    return concatenate(level, f, rows, 0)


def at_least_1d(level: Steps, x: Any) -> Any:
    """A number as an array of one element."""
    if ndim_of(x):
        return x
    return reshape(level, None, x, (1,)) if type(x) is Mapped else level.plainly(np.reshape, x, (1,))


def repeat(level: Steps, f: Any, a: Any, repeats: Any, axis: Any) -> Any:
    """np.repeat of each entry along an axis as often."""
    x = mapped_array(level, a)
    args = x.value, operator.index(repeats), one_axis(x, axis)
    return level.made(level.outside(forms.called, f, args, {}))


def astype(level: Steps, f: Any, a: Any, dtype: Any, copy: bool = True) -> Any:
    """The method of this name."""
    x = mapped_array(level, a)
    if (
        x.is_python
        or np.dtype(dtype).kind not in "fciub"
        or (x.dtype.kind in "fc" and np.dtype(dtype).kind in "iu")
    ):
        level.give_up("a conversion")
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        level.give_up("a complex number made real")  # of which NumPy warns
    if not copy and np.dtype(dtype) == x.dtype:
        return x
    return like_type(x, level.made(level.outside(forms.called, np.ndarray.astype, (x.value, dtype), {})))
