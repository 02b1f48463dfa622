"""New arrays: from numbers, nested lists, other arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed, mover, no_tangent, rrule
from plaingrad.rules.numpy.names import functions, linear, linear_rrule, methods
from plaingrad.rules.pushforwards import (
    both_forms,
    dot_of,
    joined,
    lined_up,
    of_each,
    pushed,
    real_if,
    reshaped,
    total,
    varies,
)
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero

no_tangent(*functions(
    "empty", "zeros", "ones", "empty_like", "zeros_like", "ones_like", "eye", "identity", "tri", "fromfile",
    "bartlett", "blackman", "hamming", "hanning",
))  # fmt: skip
mover(np.frombuffer, np.ndarray, np.ndarray.__new__)  # over given memory, or over none


def imported(x, options):
    """An array over the memory of another library."""
    return np.from_dlpack(x, **options)


mover(imported)


@composed(np.from_dlpack)
def from_dlpack(x, /, **options):
    """The memory of another array; of one of NumPy's own a view, so that it is known whose it is."""
    return x[...] if isinstance(x, np.ndarray) else imported(x, options)


no_tangent(np.broadcast)  # its shape; iterated over, it is refused by the engine


# ---------------------------------------------------------------------------------------------------------
# From something like an array: a result that is a view, or the argument itself, is dealt with by the engine


def enter_same_elements(function: Any) -> None:
    """a_bar = z_bar; without the axes that `ndmin` put in front."""

    def same_elements_rrule(a, *options, ndmin=0, **more):
        z = function(a, *options, ndmin=ndmin, **more) if ndmin else function(a, *options, **more)
        extra = np.ndim(z) - np.ndim(a) if ndmin else 0
        return z, lambda z_bar: (z_bar[(0,) * extra] if extra else z_bar,)

    @linear_rrule(function)
    def named_rrule(a, *options, **more):
        return same_elements_rrule(a, *options, **more)

    def same_elements_frule(a, *options, **more):
        z = function(a, *options, **more)

        def same_elements_pushforward(dots):
            if not varies(dots[0]):
                return dots[0]
            if isinstance(z, np.ndarray) and z.dtype.kind == "V":  # records
                return of_each(lambda a_dot: function(a_dot, *options, **more), dots[0], a)
            a_dot = real_if(z, joined(dots[0], a))
            return a_dot if np.ndim(z) == np.ndim(a) else reshaped(a_dot, a, np.shape(z))

        return z, same_elements_pushforward

    @both_forms(function)
    def named_frule(a, *options, **more):
        return same_elements_frule(a, *options, **more)

    name = "object" if function is np.array else "a"
    for half in (named_rrule, named_frule):
        half.__code__ = half.__code__.replace(co_varnames=(name, "options", "more"))


for f in functions(
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "copy", "require", "asfarray",
):  # fmt: skip
    enter_same_elements(f)
for f in methods("copy", "__copy__", "__array__"):
    enter_same_elements(f)


def enter_deepcopy(function: Any) -> None:
    """a_bar = z_bar; what else was copied before does not matter."""

    @linear_rrule(function)
    def deepcopy_rrule(a, memo=None):
        return function(a, memo), lambda z_bar: (z_bar, ZeroTangent)

    @both_forms(function)
    def deepcopy_frule(a, memo=None):
        return function(a, memo), lambda dots: dots[0]


for f in methods("__deepcopy__"):
    enter_deepcopy(f)


def wrapped(a: Any, array: Any, options: Any) -> Any:
    """a.__array_wrap__(array, ...), past what a subclass makes of it."""
    return (np.ndarray if isinstance(a, np.ndarray) else np.generic).__array_wrap__(a, array, *options)


@linear_rrule(*methods("__array_wrap__", "__array_prepare__"))
def array_wrap_rrule(self, array, *options):
    return wrapped(self, array, options), lambda z_bar: (ZeroTangent, z_bar)


@both_forms(*methods("__array_wrap__", "__array_prepare__"))
def array_wrap_frule(self, array, *options):
    return wrapped(self, array, options), lambda dots: dots[1]


def cast_adjoint(z_bar, a, *options, **more):
    """z_bar: the projection onto the argument's own precision and realness follows."""
    return z_bar


for f in (*methods("astype"), *functions("astype")):
    linear(f, cast_adjoint, lambda x_dot, x, z, *options, **more: real_if(z, x_dot))


# The types of array scalars, called: np.float64(x), np.complex128(re, im).
for t in functions("float16", "float32", "float64", "longdouble"):
    linear(t, lambda z_bar, x=0.0, *options: z_bar, lambda x_dot, x, z, *options: real_if(z, x_dot))


def enter_complex(t: Any) -> None:
    """re + i im."""

    @rrule(t)
    def complex_rrule(real=0.0, imag=None):
        z = t(real) if imag is None else t(real, imag)
        return z, lambda z_bar: (z_bar, NoTangent if imag is None else Thunk(lambda: -1j * z_bar))

    @both_forms(t, affine=True)
    def complex_frule(real=0.0, imag=None):
        def complex_pushforward(dots):
            imag_dot = dot_of(dots, 1)
            return total(pushed(joined, dots[0], real), 1j * imag_dot if varies(imag_dot) else imag_dot)

        return t(real) if imag is None else t(real, imag), complex_pushforward


for t in functions("complex64", "complex128", "clongdouble"):
    enter_complex(t)

no_tangent(*functions(
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intc", "uintc", "intp", "uintp",
    "longlong", "ulonglong", "long", "ulong", "int_", "uint", "byte", "ubyte", "short", "ushort",
))  # fmt: skip


# ---------------------------------------------------------------------------------------------------------
# Filled and spaced


@rrule(np.full)
def full_rrule(shape, fill_value, dtype=None, order="C", **options):
    z = np.full(shape, fill_value, dtype, order, **options)
    return z, lambda z_bar: (NoTangent, z_bar)


@both_forms(np.full, affine=True)
def full_frule(shape, fill_value, dtype=None, order="C", **options):
    z = np.full(shape, fill_value, dtype, order, **options)
    return z, lambda dots: pushed(filling, dots[1], fill_value, z)


def filling(x_dot: Any, x: Any, z: Any) -> Any:
    """The tangent of an array `z` that was filled with `x`."""
    return real_if(z, lined_up(joined(x_dot, x), x, np.ndim(z)))


@rrule(np.full_like)
def full_like_rrule(a, fill_value, dtype=None, order="K", subok=True, shape=None, **options):
    z = np.full_like(a, fill_value, dtype, order, subok, shape, **options)
    return z, lambda z_bar: (ZeroTangent, z_bar)


@both_forms(np.full_like, affine=True)
def full_like_frule(a, fill_value, dtype=None, order="K", subok=True, shape=None, **options):
    z = np.full_like(a, fill_value, dtype, order, subok, shape, **options)
    return z, lambda dots: pushed(filling, dots[1], fill_value, z)


@rrule(np.arange)
def arange_rrule(start=None, stop=None, step=None, dtype=None, **options):
    named = {name: x for name, x in (("stop", stop), ("step", step)) if x is not None}
    z = np.arange(dtype=dtype, **named, **options) if start is None else np.arange(start, dtype=dtype, **named, **options)

    def arange_pullback(z_bar):  # z_i = start + i step; how many there are does not vary
        start_bar = ZeroTangent if stop is None or start is None else np.sum(z_bar)
        step_bar = NoTangent if step is None else Thunk(lambda: np.sum(z_bar * np.arange(len(z))))
        return start_bar, ZeroTangent, step_bar

    return z, arange_pullback


@both_forms(np.arange, affine=True)
def arange_frule(start=None, stop=None, step=None, dtype=None, **options):
    named = {name: x for name, x in (("stop", stop), ("step", step)) if x is not None}
    z = np.arange(dtype=dtype, **named, **options) if start is None else np.arange(start, dtype=dtype, **named, **options)

    def arange_pushforward(dots):
        start_dot = ZeroTangent if stop is None or start is None else pushed(np.expand_dims, dots[0], -1)
        step_dot = pushed(np.expand_dims, dot_of(dots, 2), -1)
        return total(start_dot, step_dot * np.arange(len(z)) if varies(step_dot) else step_dot)

    return z, arange_pushforward


@rrule(np.linspace)
def linspace_rrule(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, **options):
    z = np.linspace(start, stop, num, endpoint, retstep, dtype, axis, **options)
    intervals = num - 1 if endpoint else num

    def linspace_pullback(z_bar):  # z_i = (1 - t_i) start + t_i stop
        z_bar, step_bar = z_bar if retstep else (z_bar, ZeroTangent)
        start_bar = stop_bar = 0.0
        if not is_zero(z_bar):
            rows = np.moveaxis(z_bar, axis, -1)
            t = np.arange(num) / max(intervals, 1)
            start_bar, stop_bar = rows @ (1 - t).astype(rows.dtype), rows @ t.astype(rows.dtype)
        if not is_zero(step_bar):
            start_bar, stop_bar = start_bar - step_bar / intervals, stop_bar + step_bar / intervals
        return start_bar, stop_bar

    return z, linspace_pullback


@both_forms(np.linspace, affine=True)
def linspace_frule(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, **options):
    z = np.linspace(start, stop, num, endpoint, retstep, dtype, axis, **options)
    intervals = num - 1 if endpoint else num

    def linspace_pushforward(dots):
        ndim = max(np.ndim(start), np.ndim(stop))
        t = np.arange(num) / max(intervals, 1)
        ends = [lined_up(joined(x_dot, x), x, ndim) if varies(x_dot) else x_dot for x_dot, x in zip(dots, (start, stop))]
        weighted = [pushed(lambda x_dot, w: np.expand_dims(x_dot, -1) * w, *pair) for pair in zip(ends, (1 - t, t))]
        z_dot = np.moveaxis(total(*weighted), -1, axis % (ndim + 1) - ndim - 1)
        if not retstep:
            return z_dot
        step = 1 / intervals if intervals else np.nan
        return z_dot, total(*[pushed(lambda x_dot, w: x_dot * w, *pair) for pair in zip(ends, (-step, step))])

    return z, linspace_pushforward


@composed(np.kaiser)
def kaiser(M, beta):
    """A window. (NumPy puts 0, M and beta into one array, and so an infinite slope at 0 beside the slope in beta.)"""
    beta = np.array([0.0, beta])[1]
    if M == 1:
        return np.ones(1, beta.dtype)
    alpha = (M - 1) / 2.0
    return np.i0(beta * np.sqrt(1 - ((np.arange(0, M) - alpha) / alpha) ** 2.0)) / np.i0(beta)


Grids = type(np.meshgrid([0.0]))  # a list before NumPy 2


@composed(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Each array along an axis of its own. (NumPy's own code sets shapes in place.)"""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    ndim = len(xi)
    grids = []
    for i, x in enumerate(xi):
        axis = 1 - i if indexing == "xy" and ndim > 1 and i < 2 else i
        grids.append(np.reshape(x, tuple(-1 if k == axis else 1 for k in range(ndim))))
    if not sparse:
        grids = list(np.broadcast_arrays(*grids, subok=True))
    return Grids([grid.copy() for grid in grids] if copy else grids)


def numbers_in_text(string: str, dtype: Any, count: int, sep: str, options: dict[str, Any]) -> Any:
    """np.fromstring."""
    return np.fromstring(string, dtype, count, sep=sep, **options)


no_tangent(numbers_in_text)


@composed(np.fromstring, mutates=True)
def fromstring(string, dtype=float, count=-1, *, sep="", **options):
    """The numbers in a text, which are seen one by one: none may be one that was written out."""
    if sep:
        for part in string.split(sep if sep.strip() else None):
            try:
                float(part)
            except ValueError:
                break
    return numbers_in_text(string, dtype, count, sep, options)


def array_from_iterator(iterable, dtype, count=-1, **options):
    """A 1-D array of the elements."""
    elements = list(iterable) if count < 0 else [x for _, x in zip(range(count), iterable)]
    if len(elements) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(elements)} items.")
    return np.array(elements, dtype=dtype)


composed(np.fromiter, mutates=True)(array_from_iterator)  # always: an iterator hides what it will give


# ---------------------------------------------------------------------------------------------------------
# NumPy's own way in and out of functions of array-likes (C code, in NumPy 2)


class Converter:
    """What `_array_converter` is, in Python: arrays of the arguments, and results wrapped as they were."""

    def __init__(self, *array_likes):
        self.array_likes = array_likes
        self.scalar_input = tuple(not isinstance(a, np.ndarray) and np.ndim(a) == 0 for a in array_likes)

    def __len__(self):
        return len(self.array_likes)

    def __getitem__(self, i):
        return np.asanyarray(self.array_likes[i])

    def as_arrays(self, *, subok=True, pyscalars="convert_if_no_array"):
        """The arguments as a tuple of arrays; Python numbers stay beside arrays."""
        any_array = any(not isinstance(a, (int, float, complex)) for a in self.array_likes)
        keep = pyscalars == "preserve" or (pyscalars == "convert_if_no_array" and any_array)
        convert = np.asanyarray if subok else np.asarray
        return tuple([a if keep and type(a) in (int, float, complex) else convert(a) for a in self.array_likes])

    def result_type(self, extra_dtype=None, ensure_inexact=False):
        """The common dtype."""
        types = [a if type(a) in (int, float, complex) else np.asanyarray(a).dtype for a in self.array_likes]
        if extra_dtype is not None:
            types.append(extra_dtype)
        dtype = np.result_type(*types)
        return np.result_type(dtype, 1.0) if ensure_inexact and dtype.kind in "biu" else dtype

    def wrap(self, arr, /, to_scalar=None):
        """`arr` in the class of the arguments, or its element where all of these were numbers."""
        scalar = all(self.scalar_input) if to_scalar is None else to_scalar
        found = None
        for a in self.array_likes:
            if type(a) is not np.ndarray and isinstance(a, np.ndarray):
                if found is None or a.__array_priority__ > found.__array_priority__:
                    found = a
        if found is not None and type(arr) is not type(found):
            return found.__array_wrap__(np.asarray(arr), None, bool(scalar))
        return arr[()] if scalar and np.ndim(arr) == 0 else arr


if hasattr(getattr(getattr(np, "_core", None), "_multiarray_umath", None), "_array_converter"):
    composed(np._core._multiarray_umath._array_converter)(Converter)
