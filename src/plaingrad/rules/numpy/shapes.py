"""The same elements in another shape or order: movers where always a view, linear where the result may be fresh."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed, mover, no_tangent
from plaingrad.rules.numpy.names import both, functions, linear, linear_rrule, methods, refuse
from plaingrad.rules.pushforwards import (
    as_number,
    both_forms,
    flattened,
    from_back,
    joined,
    lined_up,
    reshaped,
    varies,
)
from plaingrad.tangents import Thunk, unbroadcast

no_tangent(*functions(
    "shape", "ndim", "size", "iscomplexobj", "isrealobj", "isscalar", "isfortran", "result_type", "can_cast", "common_type",
    "broadcast_shapes", "shares_memory", "may_share_memory", "min_scalar_type", "promote_types", "mintypecode",
))  # fmt: skip

# Methods that always give views, which the engine knows by their memory.
mover(np.lib.stride_tricks.as_strided)
mover(*methods("transpose", "swapaxes", "squeeze", "getfield", "setflags", types=(np.ndarray,)))
mover(*(vars(np.ndarray)[name] for name in (
    "T", "mT", "real", "imag", "base", "flat", "data", "__array_interface__", "__array_struct__",
) if name in vars(np.ndarray)))  # fmt: skip
no_tangent(*(vars(t)[name] for t in (np.ndarray, np.generic) for name in (
    "ndim", "flags", "shape", "strides", "itemsize", "size", "nbytes", "dtype", "device", "__array_priority__",
) if name in vars(t)))  # fmt: skip


# ---------------------------------------------------------------------------------------------------------
# Array scalars: each method makes a new number


def itself(x_dot, x, z, *options, **more):
    """The tangent itself."""
    return x_dot


def itself_at(x_dot, x, key):
    """The tangent, or each of a chunk, at the same key."""
    if np.ndim(x_dot) == np.ndim(x):
        return np.asarray(x_dot)[key][()]
    return np.stack([np.asarray(part)[key] for part in x_dot])


linear(vars(np.generic)["T"], lambda z_bar, x: z_bar, itself)
linear(vars(np.generic)["base"], lambda z_bar, x: z_bar, itself)
linear(vars(np.generic)["real"], lambda z_bar, x: z_bar, lambda x_dot, x, z: np.real(x_dot))
linear(vars(np.generic)["imag"], lambda z_bar, x: z_bar * 1j, lambda x_dot, x, z: np.imag(x_dot))
composed(vars(np.generic)["flat"])(lambda x: np.array(x).flat)
for f in methods("transpose", "swapaxes", "squeeze", types=(np.generic,)):
    linear(f, lambda z_bar, x, *options, **more: np.reshape(z_bar, ()), itself)
for f in methods("__getitem__", types=(np.generic,)):  # x[False] is empty
    linear(f, lambda z_bar, x, *options: np.sum(z_bar), lambda x_dot, x, z, *options: itself_at(x_dot, x, *options))
for f in methods("item", "tolist", types=(np.generic,)):
    linear(f, lambda z_bar, x, *options: z_bar, lambda x_dot, x, z, *options: as_number(z, x_dot))


# ---------------------------------------------------------------------------------------------------------
# Reshaping


def reshape_order(a: Any, order: Any) -> str:
    """`order` as "C" or "F"; "A" means "F" for an array that is Fortran contiguous only."""
    order = (order or "C").upper()
    if order != "A":
        return order
    return "F" if isinstance(a, np.ndarray) and np.isfortran(a) else "C"


def reshape_adjoint(z_bar, a, *shape, order="C", **options):
    """z_bar in the shape of `a`."""
    return np.reshape(z_bar, np.shape(a), order=reshape_order(a, order))


def reshape_function_adjoint(z_bar, a, shape=None, order="C", **options):
    """z_bar in the shape of `a`."""
    return np.reshape(z_bar, np.shape(a), order=reshape_order(a, order))


def ravel_adjoint(z_bar, a, order="C"):
    """z_bar in the shape of `a`; "K" read the elements as they lie in memory."""
    order = (order or "C").upper()
    shape = np.shape(a)
    if order == "K" and isinstance(a, np.ndarray) and not (a.flags.c_contiguous or a.ndim < 2):
        axes = sorted(range(a.ndim), key=lambda i: -abs(a.strides[i]))
        return np.transpose(np.reshape(z_bar, [shape[i] for i in axes]), np.argsort(axes))
    return np.reshape(z_bar, shape, order="C" if order == "K" else reshape_order(a, order))


def reordered(a_dot: Any, a: Any, shape: Any, order: str) -> Any:
    """`a_dot` for a.reshape(shape, order=order); the axis of a chunk stays in front."""
    if order == "C":
        return reshaped(a_dot, a, shape)
    if np.ndim(a_dot) == np.ndim(a):
        return np.reshape(a_dot, shape, order=order)
    return np.moveaxis(np.reshape(np.moveaxis(a_dot, 0, -1), (*shape, len(a_dot)), order=order), -1, 0)


def reshape_push(a_dot, a, z, *shape, order="C", **options):
    """a_dot in the shape of z."""
    return reordered(a_dot, a, np.shape(z), reshape_order(a, order))


def reshape_function_push(a_dot, a, z, shape=None, order="C", **options):
    """a_dot in the shape of z."""
    return reordered(a_dot, a, np.shape(z), reshape_order(a, order))


def ravel_push(a_dot, a, z, order="C"):
    """a_dot in the order that the elements of `a` were read in."""
    order = (order or "C").upper()
    if order == "K" and isinstance(a, np.ndarray) and not (a.flags.c_contiguous or a.ndim < 2):
        axes = sorted(range(-a.ndim, 0), key=lambda i: -abs(a.strides[i]))
        lead = np.ndim(a_dot) - a.ndim
        return reshaped(np.transpose(a_dot, (*range(lead), *[i + np.ndim(a_dot) for i in axes])), a, np.shape(z))
    return reordered(a_dot, a, np.shape(z), "C" if order == "K" else reshape_order(a, order))


linear(np.reshape, reshape_function_adjoint, reshape_function_push)
for f in methods("reshape"):
    linear(f, reshape_adjoint, reshape_push)
for f in both("ravel", "flatten"):
    linear(f, ravel_adjoint, ravel_push)


# ---------------------------------------------------------------------------------------------------------
# Functions that give a view of an array, but fresh memory for a number or a list


def transpose_adjoint(z_bar, a, axes=None):
    """The inverse permutation."""
    return np.transpose(z_bar) if axes is None else np.transpose(z_bar, np.argsort([i % len(axes) for i in axes]))


def rollaxis_adjoint(z_bar, a, axis, start=0):
    """The axis moved back."""
    n = np.ndim(a)
    axis, start = axis % n, start + n if start < 0 else start
    return np.moveaxis(z_bar, start - 1 if axis < start else start, axis)


def in_shape(z_bar, a, *options, **more):
    """z_bar in the shape of `a`."""
    return np.reshape(z_bar, np.shape(a))


def transpose_push(a_dot, a, z, axes=None):
    """The same permutation behind the leading axis."""
    ndim = np.ndim(a)
    axes = range(ndim)[::-1] if axes is None else axes
    lead = np.ndim(a_dot) - ndim
    return np.transpose(a_dot, (*range(lead), *[i % ndim + lead for i in axes]))


def moveaxis_push(a_dot, a, z, source, destination):
    """The same move behind the leading axis."""
    return np.moveaxis(a_dot, from_back(source, np.ndim(a)), from_back(destination, np.ndim(a)))


def rollaxis_push(a_dot, a, z, axis, start=0):
    """The same move behind the leading axis."""
    n = np.ndim(a)
    axis, start = axis % n, start + n if start < 0 else start
    return np.moveaxis(a_dot, axis - n, (start - 1 if axis < start else start) - n)


def swapaxes_push(a_dot, a, z, axis1, axis2):
    """The same exchange behind the leading axis."""
    return np.swapaxes(a_dot, *from_back((axis1, axis2), np.ndim(a)))


def in_shape_push(a_dot, a, z, *options, **more):
    """a_dot in the shape of z."""
    return reshaped(a_dot, a, np.shape(z))


def roll_push(a_dot, a, z, shift, axis=None):
    """The same shift behind the leading axis."""
    if axis is None:
        return np.reshape(np.roll(flattened(a_dot, a), np.sum(shift), -1), np.shape(a_dot))
    return np.roll(a_dot, shift, from_back(axis, np.ndim(a)))


for f in functions("transpose", "permute_dims"):
    linear(f, transpose_adjoint, transpose_push)
for f in (*functions("matrix_transpose"), *functions("matrix_transpose", where=np.linalg)):
    linear(f, lambda z_bar, x: np.swapaxes(z_bar, -1, -2), lambda x_dot, x, z: np.swapaxes(x_dot, -1, -2))
linear(np.swapaxes, lambda z_bar, a, axis1, axis2: np.swapaxes(z_bar, axis1, axis2), swapaxes_push)
linear(np.moveaxis, lambda z_bar, a, source, destination: np.moveaxis(z_bar, destination, source), moveaxis_push)
linear(np.rollaxis, rollaxis_adjoint, rollaxis_push)
linear(np.squeeze, in_shape, in_shape_push)
linear(np.expand_dims, in_shape, in_shape_push)
linear(np.flip, lambda z_bar, m, axis=None: np.flip(z_bar, axis),
       lambda m_dot, m, z, axis=None: np.flip(m_dot, from_back(axis, np.ndim(m))))  # fmt: skip
linear(np.fliplr, lambda z_bar, m: np.fliplr(z_bar), lambda m_dot, m, z: np.flip(m_dot, 1 - np.ndim(m)))
linear(np.flipud, lambda z_bar, m: np.flipud(z_bar), lambda m_dot, m, z: np.flip(m_dot, -np.ndim(m)))
stride_tricks = getattr(np.lib, "_stride_tricks_impl", np.lib.stride_tricks)


def enter_broadcast(function: Any) -> None:
    """array_bar: z_bar summed over the axes along which `array` was repeated."""

    @linear_rrule(function)
    def broadcast_rrule(array, *args, **options):
        z = function(array, *args, **options)
        if not isinstance(array, np.ndarray):
            z = z.copy()  # of a number or list there is no memory to view, and elements of fresh memory are not shared
        shape = np.shape(array)
        return z, lambda z_bar: (Thunk(lambda: unbroadcast(z_bar, shape)),)

    @both_forms(function)
    def broadcast_frule(array, *args, **options):
        z = function(array, *args, **options)
        if not isinstance(array, np.ndarray):
            z = z.copy()

        def broadcast_pushforward(dots):
            return lined_up(joined(dots[0], array), array, np.ndim(z)) if varies(dots[0]) else dots[0]

        return z, broadcast_pushforward


enter_broadcast(np.broadcast_to)
enter_broadcast(stride_tricks._broadcast_to)  # behind np.broadcast_arrays
linear(np.roll, lambda z_bar, a, shift, axis=None: np.roll(z_bar, np.negative(shift), axis), roll_push)
linear(np.rot90, lambda z_bar, m, k=1, axes=(0, 1): np.rot90(z_bar, -k, axes),
       lambda m_dot, m, z, k=1, axes=(0, 1): np.rot90(m_dot, k, from_back(axes, np.ndim(m))))  # fmt: skip
linear(np.real, lambda z_bar, val: z_bar, lambda x_dot, val, z: np.real(x_dot))
linear(np.imag, lambda z_bar, val: z_bar * 1j, lambda x_dot, val, z: np.imag(x_dot))


# ---------------------------------------------------------------------------------------------------------
# Bits, bytes, text


def reinterpreted(a: Any, *options: Any, **named: Any) -> Any:
    """a.view(...): the same memory."""
    return vars(np.ndarray)["view"](a, *options, **named)


mover(reinterpreted)


def view(self, *options, **named):
    """The same memory as another dtype, which must be one of real or complex numbers (or a record of them)."""
    z = reinterpreted(self, *options, **named)
    if z.dtype.kind not in "fcV" and z.dtype != self.dtype:
        raise refuse(
            f"ndarray.view as {z.dtype}", "reads the bits of numbers that depend on the inputs", "arithmetic on the numbers"
        )
    return z


def view_of_number(self, *options, **named):
    """A number: NumPy makes one again, also of an array of a subclass."""
    return np.asarray(self).view(*options, **named).view(np.ndarray)[()]


def item(self, *args):
    """One element as a Python number; of an array of objects the object."""
    if len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
    if not args:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        index = (0,) * self.ndim
    elif len(args) == 1 and self.ndim != 1:
        index = np.unravel_index(range(self.size)[args[0]], self.shape)
    else:
        index = args
    return self[index] if self.dtype.kind == "O" else self[index].item()


def tolist(self):
    """Nested lists of Python numbers."""
    if self.dtype.kind == "O":
        return list(self) if self.ndim == 1 else [tolist(x) for x in self] if self.ndim else self[()]
    return [x.tolist() for x in self] if self.ndim else self[()].item()


composed(np.ndarray.view)(view)
composed(np.generic.view)(view_of_number)
composed(np.ndarray.item)(item)
composed(np.ndarray.tolist)(tolist)


# ---------------------------------------------------------------------------------------------------------
# Writers


def resize_in_place(self, *new_shape, refcheck=True):
    """Repeats nothing: what is new is zero. Memory would move under its views, so an active array is refused."""
    raise refuse("ndarray.resize", "moves memory that depends on the inputs", "a = np.resize(a, shape), or a new array")


def setfield(self, val, dtype, offset=0):
    """The part of every element that `dtype` and `offset` name is overwritten."""
    self.getfield(dtype, offset)[...] = val


def byteswap(self, inplace=False):
    """The bytes of every element reversed."""
    raise refuse("ndarray.byteswap", "reverses the bytes of numbers that depend on the inputs", "a.astype(new dtype)")


composed(np.ndarray.resize)(resize_in_place)
composed(np.ndarray.setfield, mutates=True)(setfield)
composed(np.ndarray.byteswap)(byteswap)
composed(np.generic.byteswap)(byteswap)
no_tangent(*methods("itemset", types=(np.generic,)))
for f in methods("itemset", types=(np.ndarray,)):

    @composed(f, mutates=True)
    def itemset(self, *args):
        """self[index] = the last argument."""
        *index, value = args
        if len(index) == 1 and isinstance(index[0], tuple):
            index = index[0]
        if not index:
            self[...] = value
        elif len(index) == 1 and self.ndim != 1:
            self[np.unravel_index(range(self.size)[index[0]], self.shape)] = value
        else:
            self[tuple(index)] = value
