"""Packs in memory: arrays of packs, which are arrays of floats with an axis of length WIDTH behind their own, and packs
gathered from the rows of an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from plaingrad.native.declare import njit, overload, register_jitable
from plaingrad.native.packs import native, pack, places, vector
from plaingrad.native.vector_code import DOUBLE, DOUBLES, INT, PLACE, WIDTH, lane_number


def _address(context: Any, builder: Any, t: Any, value: Any, place_type: Any, place: Any) -> Any:
    """Where element `place` of a C-ordered array of packs is."""
    array = context.make_array(t)(context, builder, value)
    shape = cgutils.unpack_tuple(builder, array.shape)
    kinds = list(place_type) if isinstance(place_type, types.BaseTuple) else [place_type]
    places = cgutils.unpack_tuple(builder, place) if isinstance(place_type, types.BaseTuple) else [place]
    at = ir.Constant(INT, 0)
    for length, kind, k in zip(shape, kinds, places, strict=False):
        k = context.cast(builder, k, kind, types.int64)
        if kind.signed:
            before = builder.icmp_signed("<", k, ir.Constant(INT, 0))
            k = builder.select(before, builder.add(k, length), k)
        at = builder.add(builder.mul(at, length), k)
    at = builder.mul(at, ir.Constant(INT, WIDTH))
    return builder.bitcast(builder.gep(array.data, [at]), DOUBLES.as_pointer())


def take(a, place):  # type: ignore[no-untyped-def]
    """Element `place` of an array of packs."""
    return a[place].copy()


def _take(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    found = builder.load(_address(context, builder, sig.args[0], args[0], sig.args[1], args[1]))
    found.align = 8
    return found


native(take, lambda a, place: pack, _take)


def put(a, place, x):  # type: ignore[no-untyped-def]
    """Element `place` of an array of packs = x."""
    a[place] = x


def _put(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = vector(context, builder, args[2], sig.args[2])
    done = builder.store(value, _address(context, builder, sig.args[0], args[0], sig.args[1], args[1]))
    done.align = 8
    return context.get_dummy_value()


native(put, lambda a, place, x: types.none, _put)


def pack_at(a, first):  # type: ignore[no-untyped-def]
    """The elements first, ..., first + WIDTH - 1 of a C-ordered vector of floats."""
    return a[first : first + WIDTH].copy()


def _place_in_vector(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array = context.make_array(sig.args[0])(context, builder, args[0])
    first = context.cast(builder, args[1], sig.args[1], types.int64)
    return builder.bitcast(builder.gep(array.data, [first]), DOUBLES.as_pointer())


def _pack_at(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    found = builder.load(_place_in_vector(context, builder, sig, args))
    found.align = 8
    return found


native(pack_at, lambda a, first: pack if _is_vector(a) else None, _pack_at)


def put_at(a, first, x):  # type: ignore[no-untyped-def]
    """The elements first, ..., first + WIDTH - 1 of a C-ordered vector of floats = a pack."""
    a[first : first + WIDTH] = x


def _put_at(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    done = builder.store(args[2], _place_in_vector(context, builder, sig, args))
    done.align = 8
    return context.get_dummy_value()


native(put_at, lambda a, first, x: types.none if _is_vector(a) else None, _put_at)


def _is_vector(a: Any) -> bool:
    return isinstance(a, types.Array) and (a.dtype, a.ndim, a.layout) == (types.float64, 1, "C")


def packs_like(a):  # type: ignore[no-untyped-def]
    """Zeros, a pack for every element of an array."""
    return np.zeros((*a.shape, WIDTH))


@overload(packs_like)
def _packs_like(a):  # type: ignore[no-untyped-def]
    return lambda a: np.zeros(a.shape + (WIDTH,))


@njit
def more_packs(tape, size):  # type: ignore[no-untyped-def]
    """A vector of packs of at least `size`, with what is in `tape`."""
    if size <= tape.shape[0]:
        return tape
    longer = np.empty((max(size, 2 * tape.shape[0]), tape.shape[1]))
    longer[: tape.shape[0]] = tape
    return longer


@register_jitable
def no_packs():  # type: ignore[no-untyped-def]
    """A tape of packs without entries."""
    return np.empty((0, WIDTH))


@register_jitable
def width_for(size):  # type: ignore[no-untyped-def]
    """How many iterations of a loop of `size` are done at once."""
    return WIDTH if size >= WIDTH else 1


@register_jitable
def distance_for(size):  # type: ignore[no-untyped-def]
    """How far the iterations of a block are from each other; 0 if there is only one, which fills all lanes."""
    return 1 if size >= WIDTH else 0


@register_jitable
def start_of(first, last, distance):  # type: ignore[no-untyped-def]
    """Where the block for `first` begins: no later than `last`, where blocks have several iterations."""
    return min(first, last) if distance else first


def rows_from(first, distance):  # type: ignore[no-untyped-def]
    """The places first, first + distance, ..."""
    return first, distance


def _rows_from(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    found = ir.Constant(ir.ArrayType(INT, 2), ir.Undefined)
    for k, (x, t) in enumerate(zip(args, sig.args, strict=True)):
        found = builder.insert_value(found, context.cast(builder, x, t, types.int64), k)
    return found


native(rows_from, lambda first, distance: places, _rows_from)


@intrinsic
def _row(typing, rows, k):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, distance = (builder.extract_value(args[0], at) for at in (0, 1))
        return builder.add(first, builder.mul(args[1], distance))

    return types.uint64(rows, types.int64), generate


def gather(a, rows, place):  # type: ignore[no-untyped-def]
    """The pack of a[row, place] for every row, or of a[row] of a vector."""
    first, distance = rows
    found = [first + k * distance for k in range(WIDTH)]
    return np.array([a[row] if a.ndim == 1 else a[row, place] for row in found])


def _gather(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array = context.make_array(sig.args[0])(context, builder, args[0])
    strides = cgutils.unpack_tuple(builder, array.strides)
    first, distance = (builder.extract_value(args[1], k) for k in (0, 1))
    shift = builder.mul(first, strides[0])
    distance = builder.mul(distance, strides[0])
    if sig.args[0].ndim == 2:
        column = context.cast(builder, args[2], sig.args[2], types.int64)
        length = builder.extract_value(array.shape, 1)
        before = builder.icmp_signed("<", column, ir.Constant(INT, 0))
        column = builder.select(before, builder.add(column, length), column)
        shift = builder.add(shift, builder.mul(column, strides[1]))
    start = builder.gep(builder.bitcast(array.data, ir.IntType(8).as_pointer()), [shift])
    found = ir.Constant(DOUBLES, ir.Undefined)
    for lane in range(WIDTH):
        at = builder.gep(start, [builder.mul(distance, ir.Constant(INT, lane))])
        element = builder.load(builder.bitcast(at, DOUBLE.as_pointer()))
        found = builder.insert_element(found, element, lane_number(lane))
    return found


native(
    gather, lambda a, rows, place: pack if a.ndim in (1, 2) and a.dtype == types.float64 else None, _gather
)


@register_jitable
def tile_for(a):  # type: ignore[no-untyped-def]
    """Room for the rows of a matrix as packs."""
    return np.empty((a.shape[1], WIDTH))


def gather_rows(a, rows, tile):  # type: ignore[no-untyped-def]
    """tile[j] = the pack of a[row, j]."""
    for j in range(a.shape[1]):
        tile[j] = gather(a, rows, j)


@intrinsic
def _turn(typing, a, rows, column, out):  # type: ignore[no-untyped-def]
    """out[column + j] = the pack of a[row, column + j], j < WIDTH, of a C-ordered matrix: turned in registers."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[0])(context, builder, args[0])
        made = context.make_array(sig.args[3])(context, builder, args[3])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        first, distance = (builder.extract_value(args[1], k) for k in (0, 1))
        bytes_ = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        start = builder.add(builder.mul(first, stride), builder.mul(args[2], ir.Constant(INT, 8)))
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), PLACE, PLACE, PLACE])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        square = []
        for lane in range(WIDTH):
            shift = builder.mul(builder.mul(distance, stride), ir.Constant(INT, lane))
            place = builder.gep(bytes_, [builder.add(start, shift)])
            ahead = builder.gep(place, [builder.mul(stride, ir.Constant(INT, WIDTH))])
            builder.call(
                prefetch, [ahead, lane_number(0), lane_number(3), lane_number(1)]
            )  # for reading, to be kept, data
            row = builder.bitcast(place, DOUBLES.as_pointer())
            square.append(builder.load(row))
            square[-1].align = 8
        step = 1
        while step < WIDTH:  # exchange the blocks beside the diagonal, of size 1, 2, 4
            upper = [k if not k & step else WIDTH + k - step for k in range(WIDTH)]
            lower = [k + step if not k & step else WIDTH + k for k in range(WIDTH)]
            for k in range(WIDTH):
                if not k & step:
                    a_, b_ = square[k], square[k + step]
                    square[k], square[k + step] = (
                        builder.shuffle_vector(a_, b_, ir.Constant(ir.VectorType(PLACE, WIDTH), lanes))
                        for lanes in (upper, lower)
                    )
            step *= 2
        for k, turned in enumerate(square):
            at = builder.mul(builder.add(args[2], ir.Constant(INT, k)), ir.Constant(INT, WIDTH))
            done = builder.store(turned, builder.bitcast(builder.gep(made.data, [at]), DOUBLES.as_pointer()))
            done.align = 8
        return context.get_dummy_value()

    return types.none(a, rows, types.int64, out), generate


@overload(gather_rows)
def _gather_rows(a, rows, tile):  # type: ignore[no-untyped-def]
    in_order = a.layout == "C"

    def turned(a, rows, tile):  # type: ignore[no-untyped-def]
        squares = a.shape[1] // WIDTH * WIDTH if in_order else 0
        for j in range(0, squares, WIDTH):
            _turn(a, rows, j, tile)
        for j in range(squares, a.shape[1]):
            put(tile, j, gather(a, rows, j))

    return turned


def collapsed(a):  # type: ignore[no-untyped-def]
    """The sum of the numbers of every pack of an array."""
    return a.sum(axis=-1)


@overload(collapsed)
def _collapsed(a):  # type: ignore[no-untyped-def]
    def sums(a):  # type: ignore[no-untyped-def]
        found = np.zeros(a.shape[:-1])
        flat, every = found.reshape(-1), a.reshape(-1, WIDTH)
        for k in range(flat.size):
            for j in range(WIDTH):
                flat[k] += every[k, j]
        return found

    return sums
