"""Chunks of tangents in compiled code: n numbers in one vector register, and arrays of such.

`Lanes(n)` is a Numba type of its own, an LLVM vector of n doubles: sums of lanes and products with a number are one
machine operation for all (or a few of) them. The tangent of an array is an array of lanes of the same shape, so that
every view of the one is the same view of the other. The functions here, in `chunk_arrays`, `chunk_rows` and
`chunk_tapes` are what generated programs call; under CPython (`Derived.python`) lanes are vectors of n floats and
arrays of lanes are arrays of objects.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import box, intrinsic, lower_builtin, register_model, type_callable

from plaingrad.native.runtime.declare import overload

CONTRACT = ("contract",)  # tangents may be contracted: they decide no branch


class Lanes(types.Type):
    """The type of n tangents of a number."""

    def __init__(self, n: int) -> None:
        self.n = n
        super().__init__(name=f"Lanes({n})")


def lanes_array(n: int, ndim: int, layout: str = "C") -> Any:
    """The type of arrays of lanes."""
    return types.Array(Lanes(n), ndim, layout)


@register_model(Lanes)
class _LanesModel(models.DataModel):
    """A vector in registers, n doubles in arrays: their memory is aligned for doubles, not for vectors."""

    def get_value_type(self) -> Any:
        return ir.VectorType(ir.DoubleType(), self.fe_type.n)

    def get_data_type(self) -> Any:
        return ir.ArrayType(ir.DoubleType(), self.fe_type.n)

    def as_data(self, builder: Any, value: Any) -> Any:
        found = ir.Constant(self.get_data_type(), ir.Undefined)
        for k in range(self.fe_type.n):
            each = builder.extract_element(value, ir.Constant(ir.IntType(32), k))
            found = builder.insert_value(found, each, k)
        return found

    def from_data(self, builder: Any, value: Any) -> Any:
        found = ir.Constant(self.get_value_type(), ir.Undefined)
        for k in range(self.fe_type.n):
            each = builder.extract_value(value, k)
            found = builder.insert_element(found, each, ir.Constant(ir.IntType(32), k))
        return found

    def load_from_data_pointer(self, builder: Any, ptr: Any, align: Any = None) -> Any:
        found = builder.load(builder.bitcast(ptr, self.get_value_type().as_pointer()))
        found.align = 8
        return found

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    def as_return(self, builder: Any, value: Any) -> Any:
        return value

    def from_argument(self, builder: Any, value: Any) -> Any:
        return value

    def from_return(self, builder: Any, value: Any) -> Any:
        return value


@box(Lanes)
def _box(t: Any, value: Any, c: Any) -> Any:
    """Lanes leave compiled code as a tuple of floats."""
    indices = [ir.Constant(ir.IntType(32), k) for k in range(t.n)]
    return c.pyapi.tuple_pack(
        [c.pyapi.float_from_double(c.builder.extract_element(value, k)) for k in indices]
    )


# -- arithmetic --------------------------------------------------------------------------------------------------------

NUMBERS = (types.Float, types.Integer, types.Boolean)


class _Sum(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        a, b = args
        return signature(a, a, b) if isinstance(a, Lanes) and a == b else None


infer_global(operator.add)(_Sum)
infer_global(operator.sub)(_Sum)


@infer_global(operator.mul)
class _Product(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        a, b = args
        if isinstance(a, Lanes) and isinstance(b, NUMBERS):
            return signature(a, a, types.float64)
        if isinstance(b, Lanes) and isinstance(a, NUMBERS):
            return signature(b, types.float64, b)
        return None


@infer_global(operator.neg)
class _Negation(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(args[0], args[0]) if isinstance(args[0], Lanes) else None


def _splat(builder: Any, x: Any, n: int) -> Any:
    kind = ir.VectorType(ir.DoubleType(), n)
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, x, ir.Constant(ir.IntType(32), 0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), n), [0] * n)
    return builder.shuffle_vector(first, nothing, everywhere)


@lower_builtin(operator.add, Lanes, Lanes)
def _add(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fadd(*args, flags=CONTRACT)


@lower_builtin(operator.sub, Lanes, Lanes)
def _sub(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fsub(*args, flags=CONTRACT)


@lower_builtin(operator.mul, Lanes, types.Float)
def _times_number(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fmul(args[0], _splat(builder, args[1], sig.return_type.n), flags=CONTRACT)


@lower_builtin(operator.mul, types.Float, Lanes)
def _number_times(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fmul(_splat(builder, args[0], sig.return_type.n), args[1], flags=CONTRACT)


@lower_builtin(operator.neg, Lanes)
def _neg(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fneg(args[0])


# -- single values -----------------------------------------------------------------------------------------------------


def zero_lanes(n):  # type: ignore[no-untyped-def]
    """n zeros; n is a literal."""
    return np.zeros(n)


@type_callable(zero_lanes)
def _type_zero(context: Any) -> Any:
    return lambda n: Lanes(n.literal_value) if isinstance(n, types.IntegerLiteral) else None


@lower_builtin(zero_lanes, types.IntegerLiteral)
def _zero(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    n = sig.return_type.n
    return ir.Constant(ir.VectorType(ir.DoubleType(), n), [0.0] * n)


def unit_lanes(k, n):  # type: ignore[no-untyped-def]
    """1.0 in lane k, zeros in the others; all zeros if there is no lane k."""
    return np.where(np.arange(n) == k, 1.0, 0.0)


@intrinsic(prefer_literal=True)
def unit(context, k, n):  # type: ignore[no-untyped-def]
    """`unit_lanes`, in compiled code."""
    width = n.literal_value

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = context.cast(builder, args[0], sig.args[0], types.int64)
        found = ir.Constant(ir.VectorType(ir.DoubleType(), width), [0.0] * width)
        for lane in range(width):
            here = builder.icmp_signed("==", place, ir.Constant(ir.IntType(64), lane))
            value = builder.uitofp(here, ir.DoubleType())
            found = builder.insert_element(found, value, ir.Constant(ir.IntType(32), lane))
        return found

    return signature(Lanes(width), types.unliteral(k), n), generate


@overload(unit_lanes, prefer_literal=True)
def _unit_lanes(k, n):  # type: ignore[no-untyped-def]
    if not isinstance(n, types.IntegerLiteral):
        return None
    width = n.literal_value
    return lambda k, n: unit(k, width)


@intrinsic(prefer_literal=True)
def _lane_of(context, x, k):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], args[1])

    return types.float64(x, types.int64), generate


@intrinsic(prefer_literal=True)
def _with_lane(context, x, k, value):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.insert_element(args[0], args[2], args[1])

    return x(x, types.int64, types.float64), generate


def chosen(taken, x_dot):  # type: ignore[no-untyped-def]
    """Lanes, or one number, if they are taken, else zeros."""
    return x_dot if taken else np.zeros_like(x_dot)


@intrinsic
def _select(context, taken, x):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], ir.Constant(args[1].type, None))

    return signature(x, types.boolean, x), generate


@overload(chosen)
def _chosen(taken, x_dot):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, Lanes):
        return lambda taken, x_dot: _select(bool(taken), x_dot)
    return lambda taken, x_dot: x_dot if taken else 0.0


def if_moving(x_dot, term):  # type: ignore[no-untyped-def]
    """`term`, the product of a slope and `x_dot`, where this is not 0: what stands still may have an infinite slope."""
    return np.where(x_dot != 0.0, term, 0.0)[()]


@intrinsic
def _where_moving(context, x, term):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zero = ir.Constant(args[0].type, None)
        moves = builder.fcmp_unordered("!=", args[0], zero)
        return builder.select(moves, args[1], zero)

    return signature(term, x, term), generate


@overload(if_moving)
def _if_moving(x_dot, term):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, Lanes) and isinstance(term, Lanes):
        return lambda x_dot, term: _where_moving(x_dot, term)
    if isinstance(x_dot, (types.Number, types.Boolean)):
        return lambda x_dot, term: term if x_dot != 0.0 else 0.0
    return None  # complex lanes are declared where they are


# -- memory ------------------------------------------------------------------------------------------------------------


@intrinsic(prefer_literal=True)
def as_lanes(context, a, n):  # type: ignore[no-untyped-def]
    """A C-ordered array of floats whose last axis has length n, as an array of lanes in the same memory."""
    made = lanes_array(n.literal_value, a.ndim - 1)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _viewed(context, builder, sig, args[0], made, slice(None, -1), 8 * made.dtype.n)

    return made(a, n), generate


@intrinsic
def as_floats(context, a):  # type: ignore[no-untyped-def]
    """A C-ordered array of lanes as an array of floats with one axis more."""
    made = types.Array(types.float64, a.ndim + 1, "C")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _viewed(context, builder, sig, args[0], made, slice(None), 8)

    return made(a), generate


def _viewed(context: Any, builder: Any, sig: Any, value: Any, made: Any, axes: slice, itemsize: int) -> Any:
    whole = sig.args[0]
    source = context.make_array(whole)(context, builder, value)
    view = context.make_array(made)(context, builder)
    one = ir.Constant(ir.IntType(64), 1)
    shape = cgutils.unpack_tuple(builder, source.shape)[axes]
    strides = cgutils.unpack_tuple(builder, source.strides)[axes]
    if isinstance(whole.dtype, Lanes):
        shape = [*shape, ir.Constant(ir.IntType(64), whole.dtype.n)]
        strides = [*strides, ir.Constant(ir.IntType(64), 8)]
    count = one
    for extent in shape:
        count = builder.mul(count, extent)
    view.data = builder.bitcast(source.data, view.data.type)
    view.nitems = count
    view.itemsize = ir.Constant(ir.IntType(64), itemsize)
    if shape:
        view.shape = cgutils.pack_array(builder, shape)
        view.strides = cgutils.pack_array(builder, strides)
    view.meminfo = source.meminfo
    view.parent = source.parent
    context.nrt.incref(builder, whole, value)
    return view._getvalue()


def objects(shape: Any, in_fortran_order: bool = False) -> np.ndarray:
    """New memory for lanes under CPython."""
    return np.empty(shape, object, "F" if in_fortran_order else "C")


def zero_lanes_like(a, n):  # type: ignore[no-untyped-def]
    """An array of lanes, all zero, of the shape of `a`, and in Fortran order if `a` is: as its views its views are."""
    out = objects(a.shape, a.flags.fnc)
    for place in np.ndindex(a.shape):
        out[place] = np.zeros(n)
    return out


@overload(zero_lanes_like, prefer_literal=True)
def _zero_lanes_like(a, n):  # type: ignore[no-untyped-def]
    if not isinstance(n, types.IntegerLiteral) or not isinstance(a, types.Array):
        return None
    width = n.literal_value

    if a.layout == "F" and a.ndim > 1:
        return lambda a, n: as_lanes(np.zeros(a.shape[::-1] + (width,)), width).T

    def zeros(a, n):  # type: ignore[no-untyped-def]
        return as_lanes(np.zeros(a.shape + (width,)), width)

    return zeros


def unit_lanes_like(a, k, n):  # type: ignore[no-untyped-def]
    """An array of lanes as `zero_lanes_like` makes it: element i, counted in C order, has 1.0 in lane k + i."""
    out = objects(a.shape, a.flags.fnc)
    for i, place in enumerate(np.ndindex(a.shape)):
        out[place] = unit_lanes(k + i, n)
    return out


@overload(unit_lanes_like, prefer_literal=True)
def _unit_lanes_like(a, k, n):  # type: ignore[no-untyped-def]
    if not isinstance(n, types.IntegerLiteral) or not isinstance(a, types.Array):
        return None
    width, ndim = n.literal_value, a.ndim
    if a.layout == "F" and ndim > 1:

        def units_in_fortran_order(a, k, n):  # type: ignore[no-untyped-def]
            out = np.zeros(a.shape[::-1] + (width,))
            flat = out.reshape(-1)
            for lane in range(width):
                i = lane - k
                if 0 <= i < a.size:
                    offset, stride = 0, a.size
                    for m in range(ndim):  # from the last axis, along which `i` counts first
                        length = a.shape[ndim - 1 - m]
                        stride //= length
                        offset += (i % length) * stride
                        i //= length
                    flat[offset * width + lane] = 1.0
            return as_lanes(out, width).T

        return units_in_fortran_order

    def units(a, k, n):  # type: ignore[no-untyped-def]
        out = np.zeros(a.shape + (width,))
        flat = out.reshape(-1)
        for lane in range(width):
            i = lane - k
            if 0 <= i < a.size:
                flat[i * width + lane] = 1.0
        return as_lanes(out, width)

    return units


def floats_of(x_dot, z):  # type: ignore[no-untyped-def]
    """The tangents of `z` as they leave a program: of an array with an axis for the lanes behind its own."""
    if not isinstance(z, np.ndarray):
        return tuple(x_dot)
    out = np.zeros((*z.shape, len(x_dot.flat[0]) if z.size else 1))
    for place in np.ndindex(z.shape):
        out[place] = x_dot[place]
    return out


@overload(floats_of)
def _floats_of(x_dot, z):  # type: ignore[no-untyped-def]
    if not isinstance(x_dot, types.Array):
        return lambda x_dot, z: x_dot
    if x_dot.layout == "C":
        return lambda x_dot, z: as_floats(x_dot)
    width = x_dot.dtype.n

    def copied(x_dot, z):  # type: ignore[no-untyped-def]
        out = np.empty(x_dot.shape + (width,))
        lanes = as_lanes(out, width)
        for place in np.ndindex(x_dot.shape):
            lanes[place] = x_dot[place]
        return out

    return copied


def lane(x_dot, k):  # type: ignore[no-untyped-def]
    """Tangent number k of a chunk: a number of a number, an array of an array."""
    if not isinstance(x_dot, np.ndarray) or x_dot.dtype != object:
        return x_dot[k]
    out = np.empty(x_dot.shape)
    for place in np.ndindex(x_dot.shape):
        out[place] = x_dot[place][k]
    return out


@overload(lane)
def _lane(x_dot, k):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, Lanes):
        return lambda x_dot, k: _lane_of(x_dot, k)

    def taken(x_dot, k):  # type: ignore[no-untyped-def]
        out = np.empty(x_dot.shape)
        for place in np.ndindex(x_dot.shape):
            out[place] = _lane_of(x_dot[place], k)
        return out

    return taken


def with_lane(x_dot, k, part):  # type: ignore[no-untyped-def]
    """A chunk of tangents with number k replaced; an array is changed in place."""
    if not isinstance(x_dot, np.ndarray) or x_dot.dtype != object:
        x_dot = np.array(x_dot)
        x_dot[k] = part
        return x_dot
    for place in np.ndindex(x_dot.shape):
        x_dot[place][k] = part[place]
    return x_dot


@overload(with_lane)
def _with(x_dot, k, part):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, Lanes):
        return lambda x_dot, k, part: _with_lane(x_dot, k, part)

    def array(x_dot, k, part):  # type: ignore[no-untyped-def]
        for place in np.ndindex(x_dot.shape):
            x_dot[place] = _with_lane(x_dot[place], k, part[place])
        return x_dot

    return array
