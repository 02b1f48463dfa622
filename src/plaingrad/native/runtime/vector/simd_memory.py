"""Packs in memory: arrays of packs, which are arrays of floats with an axis of length WIDTH behind their own, and packs
gathered from the rows of an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from plaingrad.native.runtime.declare import overload, register_jitable
from plaingrad.native.runtime.vector.code import DOUBLE, DOUBLES, INT, PLACE, WIDTH, lane_number
from plaingrad.native.runtime.vector.simd import native, pack, places, vector
from plaingrad.native.runtime.workspace import address_of, array_at

SQUARE, HALF = 8, 4  # rows and columns turned at once
ROW, BYTES = ir.VectorType(DOUBLE, SQUARE), ir.IntType(8).as_pointer()


def _place_of_pack(context: Any, builder: Any, t: Any, value: Any, place_type: Any, place: Any) -> Any:
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
    found = builder.load(_place_of_pack(context, builder, sig.args[0], args[0], sig.args[1], args[1]))
    found.align = 8
    return found


native(take, lambda a, place: pack, _take)


def put(a, place, x):  # type: ignore[no-untyped-def]
    """Element `place` of an array of packs = x."""
    a[place] = x


def _put(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = vector(context, builder, args[2], sig.args[2])
    done = builder.store(value, _place_of_pack(context, builder, sig.args[0], args[0], sig.args[1], args[1]))
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


@overload(packs_like, moves=True)
def _packs_like(a):  # type: ignore[no-untyped-def]
    return lambda a: np.zeros(a.shape + (WIDTH,))


@register_jitable(moves=True)
def more_packs(tape, size):  # type: ignore[no-untyped-def]
    """A vector of packs of at least `size`, with what is in `tape`."""
    if size <= tape.shape[0]:
        return tape
    room = size if size > 2 * tape.shape[0] else 2 * tape.shape[0]
    longer = np.empty((room, tape.shape[1]))
    for k in range(tape.shape[0]):  # Numba takes seconds to compile an assignment to a slice
        for j in range(tape.shape[1]):
            longer[k, j] = tape[k, j]
    return longer


@register_jitable(moves=True)
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
    start = builder.gep(builder.bitcast(array.data, BYTES), [shift])
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
    """out[column + j] = the pack of a[row, column + j], j < SQUARE, of a C-ordered matrix: turned in registers."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[0])(context, builder, args[0])
        made = context.make_array(sig.args[3])(context, builder, args[3])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        first, distance = (builder.extract_value(args[1], k) for k in (0, 1))
        bytes_ = builder.bitcast(array.data, BYTES)
        start = builder.add(builder.mul(first, stride), builder.mul(args[2], ir.Constant(INT, 8)))
        for part in range(0, WIDTH, SQUARE):
            places = []
            for k in range(SQUARE):
                shift = builder.mul(builder.mul(distance, stride), ir.Constant(INT, part + k))
                places.append(builder.gep(bytes_, [builder.add(start, shift)]))
            for k, turned in enumerate(_columns(builder, places)):
                at = builder.mul(builder.add(args[2], ir.Constant(INT, k)), ir.Constant(INT, WIDTH))
                to = builder.gep(made.data, [builder.add(at, ir.Constant(INT, part))])
                builder.store(turned, builder.bitcast(to, ROW.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.none(a, rows, types.int64, out), generate


def _columns(builder: Any, places: list[Any]) -> list[Any]:
    """The columns of the SQUARE numbers at each of SQUARE places, as vectors.

    Halves of two rows are put into one vector when they are loaded, which takes no step of its own; then the blocks
    beside the diagonal, of size 1 and 2, are exchanged.
    """
    found = []
    for first in range(0, SQUARE, HALF):
        square = []
        for k in range(HALF):
            halves = []
            for place in (places[k], places[k + HALF]):
                at = builder.gep(builder.bitcast(place, DOUBLE.as_pointer()), [ir.Constant(INT, first)])
                halves.append(builder.load(builder.bitcast(at, ir.VectorType(DOUBLE, HALF).as_pointer())))
                halves[-1].align = 8
            square.append(_shuffled(builder, *halves, list(range(SQUARE))))
        for step in (1, 2):
            upper = [k if not k & step else SQUARE + k - step for k in range(SQUARE)]
            lower = [k + step if not k & step else SQUARE + k for k in range(SQUARE)]
            for k in range(HALF):
                if not k & step:
                    a, b = square[k], square[k + step]
                    square[k], square[k + step] = (_shuffled(builder, a, b, x) for x in (upper, lower))
        found += square
    return found


def _shuffled(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    """The numbers `lanes` of two vectors behind each other."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(PLACE, len(lanes)), lanes))


@overload(gather_rows)
def _gather_rows(a, rows, tile):  # type: ignore[no-untyped-def]
    in_order = a.layout == "C"

    def turned(a, rows, tile):  # type: ignore[no-untyped-def]
        squares = a.shape[1] // SQUARE * SQUARE if in_order else 0
        for j in range(0, squares, SQUARE):
            _turn(a, rows, j, tile)
        if squares and squares < a.shape[1]:  # the last ones, some of them once more
            _turn(a, rows, a.shape[1] - SQUARE, tile)
            squares = a.shape[1]
        for j in range(squares, a.shape[1]):
            put(tile, j, gather(a, rows, j))

    return turned


def take_ahead(tile, column, a, rows):  # type: ignore[no-untyped-def]
    """Element `column` of a tile; compiled, a piece of the rows that come two blocks later is fetched meanwhile.

    A C-ordered block of rows is as many pieces of WIDTH floats as it has columns, so a loop over the columns fetches it
    all, at the pace at which it is used. Without it the processor waits for memory where each row is read once.
    """
    return tile[column].copy()


def _take_ahead(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array = context.make_array(sig.args[2])(context, builder, args[2])
    stride = cgutils.unpack_tuple(builder, array.strides)[0]
    row = builder.add(builder.extract_value(args[3], 0), ir.Constant(INT, 2 * WIDTH))
    column = context.cast(builder, args[1], sig.args[1], types.int64)
    piece = builder.mul(column, ir.Constant(INT, 8 * WIDTH))
    place = builder.gep(builder.bitcast(array.data, BYTES), [builder.add(builder.mul(row, stride), piece)])
    kind = ir.FunctionType(ir.VoidType(), [BYTES, PLACE, PLACE, PLACE])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    reading, kept, data = lane_number(0), lane_number(3), lane_number(1)
    builder.call(prefetch, [place, reading, kept, data])
    return _take(context, builder, sig, args)


native(take_ahead, lambda tile, column, a, rows: pack, _take_ahead)


def collapsed(a):  # type: ignore[no-untyped-def]
    """The sum of the numbers of every pack of an array."""
    return a.sum(axis=-1)


@overload(collapsed)
def _collapsed(a):  # type: ignore[no-untyped-def]
    if a.layout != "C":
        return None

    def sums(a):  # type: ignore[no-untyped-def]
        found = np.zeros(a.shape[:-1])
        flat = array_at(address_of(found), found.size, np.float64)
        every = array_at(address_of(a), (found.size, WIDTH), np.float64)
        for k in range(flat.size):
            for j in range(WIDTH):
                flat[k] += every[k, j]
        return found

    return sums
