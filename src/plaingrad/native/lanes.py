"""Chunks of tangents in compiled code: n numbers in one vector register, and arrays of such.

`Lanes(n)` is a Numba type of its own, an LLVM vector of n doubles: sums of lanes and products with a number are one
machine operation for all (or a few of) them. The tangent of an array is an array of lanes of the same shape, so that
every view of the one is the same view of the other. The functions below are what generated programs call; under
CPython (`Derived.python`) lanes are vectors of n floats and arrays of lanes are arrays of objects.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import box, intrinsic, lower_builtin, register_model, type_callable

from plaingrad.native.declare import overload, register_jitable

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
def _unit(context, k, n):  # type: ignore[no-untyped-def]
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
    return lambda k, n: _unit(k, width)


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


# -- memory ------------------------------------------------------------------------------------------------------------


@intrinsic(prefer_literal=True)
def _as_lanes(context, a, n):  # type: ignore[no-untyped-def]
    """A C-ordered array of floats whose last axis has length n, as an array of lanes in the same memory."""
    made = lanes_array(n.literal_value, a.ndim - 1)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _viewed(context, builder, sig, args[0], made, slice(None, -1), 8 * made.dtype.n)

    return made(a, n), generate


@intrinsic
def _as_floats(context, a):  # type: ignore[no-untyped-def]
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


def _objects(shape: Any) -> np.ndarray:
    return np.empty(shape, object)


def zero_lanes_like(a, n):  # type: ignore[no-untyped-def]
    """An array of lanes, all zero, of the shape of `a`."""
    out = _objects(a.shape)
    for place in np.ndindex(a.shape):
        out[place] = np.zeros(n)
    return out


@overload(zero_lanes_like, prefer_literal=True)
def _zero_lanes_like(a, n):  # type: ignore[no-untyped-def]
    if not isinstance(n, types.IntegerLiteral) or not isinstance(a, types.Array):
        return None
    width = n.literal_value

    def zeros(a, n):  # type: ignore[no-untyped-def]
        return _as_lanes(np.zeros(a.shape + (width,)), width)

    return zeros


def unit_lanes_like(a, k, n):  # type: ignore[no-untyped-def]
    """An array of lanes of the shape of `a`: element i, counted in C order, has 1.0 in lane k + i."""
    out = _objects(a.shape)
    for i, place in enumerate(np.ndindex(a.shape)):
        out[place] = unit_lanes(k + i, n)
    return out


@overload(unit_lanes_like, prefer_literal=True)
def _unit_lanes_like(a, k, n):  # type: ignore[no-untyped-def]
    if not isinstance(n, types.IntegerLiteral) or not isinstance(a, types.Array):
        return None
    width = n.literal_value

    def units(a, k, n):  # type: ignore[no-untyped-def]
        out = np.zeros(a.shape + (width,))
        flat = out.reshape(-1)
        for lane in range(width):
            i = lane - k
            if 0 <= i < a.size:
                flat[i * width + lane] = 1.0
        return _as_lanes(out, width)

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
    if isinstance(x_dot, Lanes):
        return lambda x_dot, z: x_dot
    if x_dot.layout == "C":
        return lambda x_dot, z: _as_floats(x_dot)
    width = x_dot.dtype.n

    def copied(x_dot, z):  # type: ignore[no-untyped-def]
        out = np.empty(x_dot.shape + (width,))
        lanes = _as_lanes(out, width)
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


@register_jitable
def _broadcast(x, shape):  # type: ignore[no-untyped-def]
    return np.broadcast_to(x, shape)


@register_jitable
def _as_it_is(x, shape):  # type: ignore[no-untyped-def]
    return x


@register_jitable
def _element(x, place):  # type: ignore[no-untyped-def]
    return x[place]


def _number(x, place):  # type: ignore[no-untyped-def]
    return x


@overload(_number)
def _the_number(x, place):  # type: ignore[no-untyped-def]
    if isinstance(x, types.Array):
        return lambda x, place: x[()]
    return lambda x, place: x


def add_scaled(target, slope, x_dot):  # type: ignore[no-untyped-def]
    """target += slope * x_dot, of arrays of lanes; slopes and tangents are broadcast to the shape of the target."""
    if not isinstance(x_dot, np.ndarray) or x_dot.dtype != object:
        x_dot = _filled(target.shape, x_dot)
    each = np.broadcast_to(x_dot, target.shape)
    slopes = np.broadcast_to(slope, target.shape)
    for place in np.ndindex(target.shape):
        target[place] = target[place] + slopes[place] * each[place]


def _filled(shape: Any, x: Any) -> np.ndarray:
    out = _objects(shape)
    for place in np.ndindex(shape):
        out[place] = x
    return out


@overload(add_scaled)
def _add_scaled(target, slope, x_dot):  # type: ignore[no-untyped-def]
    many_slopes = isinstance(slope, types.Array) and slope.ndim > 0
    many_dots = isinstance(x_dot, types.Array) and x_dot.ndim > 0
    ndim = target.ndim
    shape_of_slope, shape_of_dot = (_broadcast if many else _as_it_is for many in (many_slopes, many_dots))
    slope_at, dot_at = (_element if many else _number for many in (many_slopes, many_dots))
    if ndim == 1:

        def vector(target, slope, x_dot):  # type: ignore[no-untyped-def]
            slopes = shape_of_slope(slope, target.shape)
            each = shape_of_dot(x_dot, target.shape)
            for i in range(target.shape[0]):
                target[i] = target[i] + slope_at(slopes, i) * dot_at(each, i)

        return vector

    def general(target, slope, x_dot):  # type: ignore[no-untyped-def]
        slopes = shape_of_slope(slope, target.shape)
        each = shape_of_dot(x_dot, target.shape)
        for place in np.ndindex(target.shape):
            target[place] = target[place] + slope_at(slopes, place) * dot_at(each, place)

    return general


def scale(target, factor):  # type: ignore[no-untyped-def]
    """target *= factor, of an array of lanes; the factor is broadcast."""
    factors = np.broadcast_to(factor, target.shape)
    for place in np.ndindex(target.shape):
        target[place] = target[place] * factors[place]


@overload(scale)
def _scale(target, factor):  # type: ignore[no-untyped-def]
    many = isinstance(factor, types.Array) and factor.ndim > 0
    shaped, at = (_broadcast, _element) if many else (_as_it_is, _number)

    def scaled(target, factor):  # type: ignore[no-untyped-def]
        factors = shaped(factor, target.shape)
        for place in np.ndindex(target.shape):
            target[place] = target[place] * at(factors, place)

    return scaled


def blend(target, factor, slope, x_dot):  # type: ignore[no-untyped-def]
    """target = factor * target + slope * x_dot, of arrays of lanes; the others are broadcast."""
    if not isinstance(x_dot, np.ndarray) or x_dot.dtype != object:
        x_dot = _filled(target.shape, x_dot)
    factors, slopes, each = (np.broadcast_to(x, target.shape) for x in (factor, slope, x_dot))
    for place in np.ndindex(target.shape):
        target[place] = target[place] * factors[place] + slopes[place] * each[place]


@overload(blend)
def _blend(target, factor, slope, x_dot):  # type: ignore[no-untyped-def]
    many = [isinstance(t, types.Array) and t.ndim > 0 for t in (factor, slope, x_dot)]
    shaped_f, shaped_s, shaped_x = (_broadcast if each else _as_it_is for each in many)
    at_f, at_s, at_x = (_element if each else _number for each in many)

    def blended(target, factor, slope, x_dot):  # type: ignore[no-untyped-def]
        factors = shaped_f(factor, target.shape)
        slopes = shaped_s(slope, target.shape)
        each = shaped_x(x_dot, target.shape)
        for place in np.ndindex(target.shape):
            term = at_s(slopes, place) * at_x(each, place)
            target[place] = target[place] * at_f(factors, place) + term

    return blended


def left_product(a_dot, b):  # type: ignore[no-untyped-def]
    """a_dot @ b for an array of lanes a_dot; vectors or matrices."""
    return a_dot @ b.astype(object)


@overload(left_product)
def _left_product(a_dot, b):  # type: ignore[no-untyped-def]
    n = a_dot.dtype.n
    if a_dot.ndim == 1 and b.ndim == 1:

        def vectors(a_dot, b):  # type: ignore[no-untyped-def]
            out = zero_lanes(n)
            for i in range(b.shape[0]):
                out = out + b[i] * a_dot[i]
            return out

        return vectors
    if b.ndim == 1:

        def rows(a_dot, b):  # type: ignore[no-untyped-def]
            made = _as_lanes(np.zeros((a_dot.shape[0], n)), n)
            for i in range(a_dot.shape[0]):
                out = zero_lanes(n)
                for j in range(b.shape[0]):
                    out = out + b[j] * a_dot[i, j]
                made[i] = out
            return made

        return rows
    if a_dot.ndim == 1:

        def columns(a_dot, b):  # type: ignore[no-untyped-def]
            made = _as_lanes(np.zeros((b.shape[1], n)), n)
            for j in range(b.shape[0]):
                for k in range(b.shape[1]):
                    made[k] = made[k] + b[j, k] * a_dot[j]
            return made

        return columns

    def matrices(a_dot, b):  # type: ignore[no-untyped-def]
        made = _as_lanes(np.zeros((a_dot.shape[0], b.shape[1], n)), n)
        for i in range(a_dot.shape[0]):
            for j in range(b.shape[0]):
                for k in range(b.shape[1]):
                    made[i, k] = made[i, k] + b[j, k] * a_dot[i, j]
        return made

    return matrices


def right_product(b_dot, a):  # type: ignore[no-untyped-def]
    """a @ b_dot for an array of lanes b_dot; vectors or matrices."""
    return a.astype(object) @ b_dot


@overload(right_product)
def _right_product(b_dot, a):  # type: ignore[no-untyped-def]
    n = b_dot.dtype.n
    if a.ndim == 1 and b_dot.ndim == 1:
        return lambda b_dot, a: left_product(b_dot, a)
    if a.ndim == 1:
        return lambda b_dot, a: left_product(b_dot.T, a)
    if b_dot.ndim == 1 and b_dot.layout == "C" and a.layout in "CF" and a.dtype == types.float64:
        return lambda b_dot, a: _as_lanes(np.dot(a, _as_floats(b_dot)), n)
    if b_dot.ndim == 1:
        return lambda b_dot, a: left_product(b_dot, a.T)

    def matrices(b_dot, a):  # type: ignore[no-untyped-def]
        made = _as_lanes(np.zeros((a.shape[0], b_dot.shape[1], n)), n)
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                for k in range(b_dot.shape[1]):
                    made[i, k] = made[i, k] + a[i, j] * b_dot[j, k]
        return made

    return matrices


def fill(target, x_dot):  # type: ignore[no-untyped-def]
    """target[...] = x_dot, the lanes of a number for every element."""
    for place in np.ndindex(target.shape):
        target[place] = x_dot


@overload(fill)
def _fill(target, x_dot):  # type: ignore[no-untyped-def]
    def filled(target, x_dot):  # type: ignore[no-untyped-def]
        for place in np.ndindex(target.shape):
            target[place] = x_dot

    return filled


def copied(x_dot):  # type: ignore[no-untyped-def]
    """An array of lanes in new memory, in C order."""
    out = _objects(x_dot.shape)
    for place in np.ndindex(x_dot.shape):
        out[place] = x_dot[place].copy()
    return out


@overload(copied)
def _copied(x_dot):  # type: ignore[no-untyped-def]
    width = x_dot.dtype.n
    if x_dot.layout == "C":
        return lambda x_dot: _as_lanes(_as_floats(x_dot).copy(), width)

    def one_by_one(x_dot):  # type: ignore[no-untyped-def]
        out = _as_lanes(np.empty(x_dot.shape + (width,)), width)
        for place in np.ndindex(x_dot.shape):
            out[place] = x_dot[place]
        return out

    return one_by_one


def total(x_dot, n):  # type: ignore[no-untyped-def]
    """The sum of all elements of an array of lanes."""
    out = np.zeros(n)
    for place in np.ndindex(x_dot.shape):
        out = out + x_dot[place]
    return out


@overload(total)
def _total(x_dot, n):  # type: ignore[no-untyped-def]
    width = x_dot.dtype.n
    if x_dot.ndim == 1:

        def of_vector(x_dot, n):  # type: ignore[no-untyped-def]
            out = zero_lanes(width)
            for i in range(x_dot.shape[0]):
                out = out + x_dot[i]
            return out

        return of_vector

    def of_array(x_dot, n):  # type: ignore[no-untyped-def]
        out = zero_lanes(width)
        for place in np.ndindex(x_dot.shape):
            out = out + x_dot[place]
        return out

    return of_array


def unit_at(a, place, column, n):  # type: ignore[no-untyped-def]
    """The unit tangent of a[place], where the first element of `a` has 1.0 in lane `column`."""
    return unit_lanes(column + int(np.arange(a.size).reshape(a.shape)[place]), n)


@overload(unit_at, prefer_literal=True)
def _unit_at(a, place, column, n):  # type: ignore[no-untyped-def]
    if not isinstance(n, types.IntegerLiteral):
        return None
    width = n.literal_value
    if not isinstance(place, types.BaseTuple):

        def in_vector(a, place, column, n):  # type: ignore[no-untyped-def]
            k = np.int64(place)
            return _unit(column + (k if k >= 0 else k + a.shape[0]), width)

        return in_vector

    def in_array(a, place, column, n):  # type: ignore[no-untyped-def]
        at = 0
        for axis in range(len(place)):
            k = np.int64(place[axis])
            at = at * a.shape[axis] + (k if k >= 0 else k + a.shape[axis])
        return _unit(column + at, width)

    return in_array


def check_columns(out, columns):  # type: ignore[no-untyped-def]
    """Raise if `out` is no matrix with so many columns."""
    if out.shape[1] != columns:
        raise ValueError(
            "the matrix for a Jacobian has a column for each number of the differentiated arguments"
        )


@overload(check_columns)
def _check_columns(out, columns):  # type: ignore[no-untyped-def]
    def check(out, columns):  # type: ignore[no-untyped-def]
        if out.shape[1] != columns:
            raise ValueError(
                "the matrix for a Jacobian has a column for each number of the differentiated arguments"
            )

    return check


def put(out, row, first, x_dot):  # type: ignore[no-untyped-def]
    """out[row, first : first + n] = the tangents of a number, or of an array in so many rows; the next row."""
    if not isinstance(x_dot, np.ndarray) or x_dot.dtype != object:
        count = min(len(x_dot), out.shape[1] - first)
        out[row, first : first + count] = x_dot[:count]
        return row + 1
    for place in np.ndindex(x_dot.shape):
        row = put(out, row, first, x_dot[place])
    return row


@overload(put)
def _put(out, row, first, x_dot):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, Lanes):

        def one(out, row, first, x_dot):  # type: ignore[no-untyped-def]
            if row >= out.shape[0]:
                raise ValueError("the matrix for a Jacobian has a row for each number of the results")
            _put_lanes(out[row], first, x_dot)
            return row + 1

        return one

    def each(out, row, first, x_dot):  # type: ignore[no-untyped-def]
        for place in np.ndindex(x_dot.shape):
            if row >= out.shape[0]:
                raise ValueError("the matrix for a Jacobian has a row for each number of the results")
            _put_lanes(out[row], first, x_dot[place])
            row += 1
        return row

    return each


@intrinsic
def _put_lanes(context, row, first, x):  # type: ignore[no-untyped-def]
    """row[first : first + n] = x, as far as the vector `row` reaches."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[0])(context, builder, args[0])
        start = args[1]
        (size,) = cgutils.unpack_tuple(builder, array.shape)
        (stride,) = cgutils.unpack_tuple(builder, array.strides)
        if sig.args[0].layout == "C":
            stride = ir.Constant(ir.IntType(64), 8)
        room = builder.sub(size, start)
        begin = builder.add(builder.ptrtoint(array.data, ir.IntType(64)), builder.mul(start, stride))
        for k in range(x.n):
            lane = ir.Constant(ir.IntType(64), k)
            with builder.if_then(builder.icmp_signed("<", lane, room)):
                address = builder.add(begin, builder.mul(lane, stride))
                value = builder.extract_element(args[2], ir.Constant(ir.IntType(32), k))
                builder.store(value, builder.inttoptr(address, ir.DoubleType().as_pointer()))
        return context.get_dummy_value()

    return types.none(row, types.int64, x), generate


# -- derivatives of derived programs -----------------------------------------------------------------------------------


def grown(tape, size):  # type: ignore[no-untyped-def]
    """A tape of lanes with room for `size` entries at least."""
    if size <= tape.size:
        return tape
    out = _objects(max(2 * tape.size, size))
    out[: tape.size] = tape
    return out


@overload(grown)
def _grown(tape, size):  # type: ignore[no-untyped-def]
    n = tape.dtype.n

    def longer(tape, size):  # type: ignore[no-untyped-def]
        if size <= tape.size:
            return tape
        out = _as_lanes(np.zeros((max(2 * tape.size, size), n)), n)
        for k in range(tape.size):
            out[k] = tape[k]
        return out

    return longer


def more(arena, tape, size):  # type: ignore[no-untyped-def]
    """`grown`, with the place where memory is taken from."""
    return grown(tape, size)


@overload(more)
def _more(arena, tape, size):  # type: ignore[no-untyped-def]
    return lambda arena, tape, size: grown(tape, size)


def add_to(target, term):  # type: ignore[no-untyped-def]
    """target += term of arrays of lanes, summed over the axes along which target was broadcast."""
    shape = term.shape if isinstance(term, np.ndarray) and term.dtype == object else ()
    for place in np.ndindex(shape):
        at = place[len(shape) - target.ndim :]
        at = tuple(0 if target.shape[k] == 1 else i for k, i in enumerate(at))
        target[at] = target[at] + (term[place] if shape else term)


@overload(add_to)
def _add_to(target, term):  # type: ignore[no-untyped-def]
    if isinstance(term, Lanes):
        return lambda target, term: add_scaled(target, 1.0, term)
    if term.ndim > target.ndim:

        def add_each(target, term):  # type: ignore[no-untyped-def]
            for k in range(term.shape[0]):
                add_to(target, term[k])

        return add_each
    ndim = target.ndim

    def add_alike(target, term):  # type: ignore[no-untyped-def]
        for place in np.ndindex(term.shape):
            at = place
            for k in range(ndim):
                if target.shape[k] == 1:
                    at = tuple_setitem(at, k, 0)
            target[at] = target[at] + term[place]

    return add_alike


def fitted(z, term):  # type: ignore[no-untyped-def]
    """Lanes in new memory, of the shape of `z`."""
    out = zero_lanes_like(z, 1)
    for place in np.ndindex(z.shape):
        out[place] = np.broadcast_to(term, z.shape)[place]
    return out


@overload(fitted)
def _fitted(z, term):  # type: ignore[no-untyped-def]
    n = term.dtype.n if isinstance(term, types.Array) else term.n

    def placed(z, term):  # type: ignore[no-untyped-def]
        out = _as_lanes(np.zeros(z.shape + (n,)), n)
        add_scaled(out, 1.0, term)
        return out

    return placed


def conj_of(x_dot):  # type: ignore[no-untyped-def]
    """conj(x): lanes are real."""
    return x_dot


@overload(conj_of)
def _conj_of(x_dot):  # type: ignore[no-untyped-def]
    return lambda x_dot: x_dot


def keep_array(tape, at, x):  # type: ignore[no-untyped-def]
    """tape[at + 1] = x of a list of arrays of lanes; entries in between are filled."""
    while len(tape) < at + 2:
        tape.append(x)
    tape[at + 1] = x


@overload(keep_array)
def _keep_array(tape, at, x):  # type: ignore[no-untyped-def]
    def keep(tape, at, x):  # type: ignore[no-untyped-def]
        while len(tape) < at + 2:
            tape.append(x)
        tape[at + 1] = x

    return keep


def kept_array(tape, at):  # type: ignore[no-untyped-def]
    """What `keep_array` put at `at`."""
    return tape[min(at + 1, len(tape) - 1)]


@overload(kept_array)
def _kept_array(tape, at):  # type: ignore[no-untyped-def]
    return lambda tape, at: tape[min(at + 1, len(tape) - 1)]
