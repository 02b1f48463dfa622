"""Several iterations of a loop at once: their numbers in one vector register, W doubles, a `Pack`.

Sums, products, quotients and comparisons of packs are those of the numbers, each rounded by itself, so every iteration
has the bits that it would have alone. A comparison gives a `Mask`. Arrays of packs are arrays of floats with an axis of
length W behind their own. Under CPython a pack is a vector of W floats and a mask one of W bools.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

from plaingrad.native import vecmath
from plaingrad.native.declare import njit, overload, register_jitable

WIDTH = 8
DOUBLE, INT, BIT, PLACE = ir.DoubleType(), ir.IntType(64), ir.IntType(1), ir.IntType(32)
DOUBLES, INTS, BITS = (ir.VectorType(t, WIDTH) for t in (DOUBLE, INT, BIT))


class PackType(types.Type):
    """The type of WIDTH doubles."""

    def __init__(self) -> None:
        super().__init__(name=f"Pack({WIDTH})")


class MaskType(types.Type):
    """The type of WIDTH bools."""

    def __init__(self) -> None:
        super().__init__(name=f"Mask({WIDTH})")


class RowsType(types.Type):
    """The type of WIDTH places along the first axis of an array: the first, and the distance of the next."""

    def __init__(self) -> None:
        super().__init__(name=f"Rows({WIDTH})")


pack, mask, places = PackType(), MaskType(), RowsType()


@register_model(PackType)
class _PackModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, DOUBLES)


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, BITS)


@register_model(RowsType)
class _RowsModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(INT, 2))


NUMBERS = (types.Float, types.Integer, types.Boolean)


def _place(k: int) -> Any:
    return ir.Constant(PLACE, k)


def _splat(builder: Any, x: Any, kind: Any) -> Any:
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, x, _place(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(PLACE, WIDTH), [0] * WIDTH))


def _vector(context: Any, builder: Any, value: Any, t: Any) -> Any:
    """A pack, mask or number as WIDTH doubles."""
    if isinstance(t, PackType):
        return value
    if isinstance(t, MaskType):
        return builder.uitofp(value, DOUBLES)
    return _splat(builder, context.cast(builder, value, t, types.float64), DOUBLES)


def _any(builder: Any, bits: Any) -> Any:
    """Whether any bit of a mask is set."""
    return builder.icmp_unsigned(
        "!=", builder.bitcast(bits, ir.IntType(WIDTH)), ir.Constant(ir.IntType(WIDTH), 0)
    )


# -- operators ---------------------------------------------------------------------------------------------------------


class _Arithmetic(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if any(isinstance(a, PackType) for a in args) or all(
            isinstance(a, (MaskType, *NUMBERS)) for a in args
        ):
            if any(isinstance(a, (PackType, MaskType)) for a in args):
                return signature(pack, *args)
        return None


class _Comparison(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(mask, *args) if any(isinstance(a, PackType) for a in args) else None


class _Logic(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(mask, *args) if any(isinstance(a, MaskType) for a in args) else None


def _define(function: Any, template: Any, generate: Any) -> None:
    infer_global(function)(type(template.__name__, (template,), {}))
    for a in (PackType, MaskType, *NUMBERS):
        for b in (PackType, MaskType, *NUMBERS):
            if {a, b} & {PackType, MaskType}:
                lower_builtin(function, a, b)(generate)


def _arithmetic(name: str) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (_vector(context, builder, x, t) for x, t in zip(args, sig.args, strict=True))
        if name == "fdiv":
            zero = builder.fcmp_ordered("==", b, ir.Constant(DOUBLES, [0.0] * WIDTH))
            with cgutils.if_unlikely(builder, _any(builder, zero)):
                context.error_model.fp_zero_division(builder, ("division by zero",))
        return getattr(builder, name)(a, b)

    return generate


def _comparison(symbol: str) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (_vector(context, builder, x, t) for x, t in zip(args, sig.args, strict=True))
        return (builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered)(symbol, a, b)

    return generate


def _logic(name: str) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = [
            x
            if isinstance(t, MaskType)
            else _splat(builder, context.cast(builder, x, t, types.boolean), BITS)
            for x, t in zip(args, sig.args, strict=True)
        ]
        return getattr(builder, name)(*bits)

    return generate


for _function, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_function, _Arithmetic, _arithmetic(_name))
for _symbol in ("<", "<=", ">", ">=", "==", "!="):
    _name = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}[_symbol]
    _define(getattr(operator, _name), _Comparison, _comparison(_symbol))
for _function, _name in ((operator.and_, "and_"), (operator.or_, "or_")):
    _define(_function, _Logic, _logic(_name))


@infer_global(operator.neg)
class _Negation(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(pack, *args) if isinstance(args[0], PackType) else None


@lower_builtin(operator.neg, PackType)
def _neg(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fneg(args[0])


# -- functions ---------------------------------------------------------------------------------------------------------


def _native(function: Any, typed: Any, generate: Any) -> None:
    """Let compiled code call `function`: `typed(*types)` is the type of its result, `generate` its code.

    Not by `overload`, which would compile a function of its own for every combination of types.
    """

    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            made = typed(*args)
            return None if made is None else signature(made, *args)

    infer_global(function)(Template)
    lower_builtin(function, types.VarArg(types.Any))(generate)


def _vectors(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    return [_vector(context, builder, x, t) for x, t in zip(args, sig.args, strict=True)]


def all_alike(x):  # type: ignore[no-untyped-def]
    """The pack of a number; a pack as it is."""
    return x if isinstance(x, np.ndarray) else np.full(WIDTH, x)


_native(
    all_alike, lambda x: pack, lambda context, builder, sig, args: _vectors(context, builder, sig, args)[0]
)


def choose(test, x, y):  # type: ignore[no-untyped-def]
    """x where a mask is set, y elsewhere."""
    return np.where(test, x, y)


def _type_of_choice(test: Any, x: Any, y: Any) -> Any:
    return mask if all(isinstance(t, (MaskType, types.Boolean)) for t in (x, y)) else pack


def _choose(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    if sig.return_type == mask:
        parts = [
            x
            if isinstance(t, MaskType)
            else _splat(builder, context.cast(builder, x, t, types.boolean), BITS)
            for x, t in zip(args[1:], sig.args[1:], strict=True)
        ]
    else:
        parts = [_vector(context, builder, x, t) for x, t in zip(args[1:], sig.args[1:], strict=True)]
    return builder.select(args[0], *parts)


_native(choose, _type_of_choice, _choose)


def negated(test):  # type: ignore[no-untyped-def]
    """The mask of what is not set."""
    return np.logical_not(test)


def _type_of_negated(test: Any) -> Any:
    return test if isinstance(test, (MaskType, types.Boolean)) else None


_native(negated, _type_of_negated, lambda context, builder, sig, args: builder.not_(args[0]))


def lanes_between(low, high):  # type: ignore[no-untyped-def]
    """1.0 in the lanes low, ..., high - 1, 0.0 in the others."""
    lanes = np.arange(WIDTH)
    return np.where((low <= lanes) & (lanes < high), 1.0, 0.0)


def _lanes_between(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    low, high = (
        _splat(builder, context.cast(builder, x, t, types.int64), INTS)
        for x, t in zip(args, sig.args, strict=True)
    )
    lanes = ir.Constant(INTS, list(range(WIDTH)))
    inside = builder.and_(builder.icmp_signed("<=", low, lanes), builder.icmp_signed("<", lanes, high))
    return builder.uitofp(inside, DOUBLES)


_native(lanes_between, lambda low, high: pack, _lanes_between)


@intrinsic
def _lane(typing, x, k):  # type: ignore[no-untyped-def]
    made = types.float64 if isinstance(x, PackType) else types.boolean

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], args[1])

    return made(x, types.int64), generate


@intrinsic
def _with_lane(typing, x, k, value):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.insert_element(args[0], args[2], args[1])

    return x(x, types.int64, types.float64), generate


def add_in_order(total, terms, test, low, high):  # type: ignore[no-untyped-def]
    """total + terms[low] + ... + terms[high - 1], in this order, without those not in the mask `test`."""
    for k in range(low, high):
        if test is True or test[k]:
            total = total + terms[k]
    return total


@overload(add_in_order)
def _add_in_order(total, terms, test, low, high):  # type: ignore[no-untyped-def]
    if isinstance(test, MaskType):

        def add_some(total, terms, test, low, high):  # type: ignore[no-untyped-def]
            for k in range(low, high):
                if _lane(test, k):
                    total = total + _lane(terms, k)
            return total

        return add_some

    def add_all(total, terms, test, low, high):  # type: ignore[no-untyped-def]
        for k in range(low, high):
            total = total + _lane(terms, k)
        return total

    return add_all


def total_of(x):  # type: ignore[no-untyped-def]
    """The sum of the numbers of a pack."""
    return np.sum(x)


@overload(total_of)
def _total_of(x):  # type: ignore[no-untyped-def]
    def total(x):  # type: ignore[no-untyped-def]
        found = 0.0
        for k in range(WIDTH):
            found += _lane(x, k)
        return found

    return total


# -- memory ------------------------------------------------------------------------------------------------------------


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


_native(take, lambda a, place: pack, _take)


def put(a, place, x):  # type: ignore[no-untyped-def]
    """Element `place` of an array of packs = x."""
    a[place] = x


def _put(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = _vector(context, builder, args[2], sig.args[2])
    done = builder.store(value, _address(context, builder, sig.args[0], args[0], sig.args[1], args[1]))
    done.align = 8
    return context.get_dummy_value()


_native(put, lambda a, place, x: types.none, _put)


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


_native(rows_from, lambda first, distance: places, _rows_from)


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
        found = builder.insert_element(found, element, _place(lane))
    return found


_native(
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
            builder.call(prefetch, [ahead, _place(0), _place(3), _place(1)])  # for reading, to be kept, data
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


# -- on the way back: may be contracted, and the sign of a zero does not matter ----------------------------------------

LOOSE = ("nsz", "contract")


def _loose(name: str) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, name)(*_vectors(context, builder, sig, args), flags=LOOSE)

    return generate


def plus(x, y):  # type: ignore[no-untyped-def]
    """x + y on the way back."""
    return x + y


def minus(x, y):  # type: ignore[no-untyped-def]
    """x - y on the way back."""
    return x - y


def times(x, y):  # type: ignore[no-untyped-def]
    """x * y on the way back."""
    return x * y


def quotient(x, y):  # type: ignore[no-untyped-def]
    """x / y, which does not raise."""
    return np.divide(x, y)


for _function, _name in ((plus, "fadd"), (minus, "fsub"), (times, "fmul"), (quotient, "fdiv")):
    _native(_function, lambda x, y: pack, _loose(_name))


# -- functions of packs: the C library's, number by number, but exp ----------------------------------------------------


@register_jitable
def no_packs():  # type: ignore[no-untyped-def]
    """A tape of packs without entries."""
    return np.empty((0, WIDTH))


def _of_vectors(name: str) -> Any:
    """LLVM's function of that name."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(DOUBLES, [DOUBLES])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
        return builder.call(function, args)

    return generate


def _type_of_pack(x: Any) -> Any:
    return pack if isinstance(x, PackType) else None


def absolute(x):  # type: ignore[no-untyped-def]
    """|x|."""
    return np.abs(x)


def sqrt(x):  # type: ignore[no-untyped-def]
    """The square root."""
    return np.sqrt(x)


_native(absolute, _type_of_pack, _of_vectors("fabs"))
_native(sqrt, _type_of_pack, _of_vectors("sqrt"))


def maximum(x, y):  # type: ignore[no-untyped-def]
    """max(x, y) of Python: x where neither is larger."""
    return np.where(y > x, y, x)


def minimum(x, y):  # type: ignore[no-untyped-def]
    """min(x, y) of Python: x where neither is smaller."""
    return np.where(y < x, y, x)


def _extreme(symbol: str) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x, y = _vectors(context, builder, sig, args)
        return builder.select(builder.fcmp_ordered(symbol, y, x), y, x)

    return generate


_native(maximum, lambda x, y: pack, _extreme(">"))
_native(minimum, lambda x, y: pack, _extreme("<"))


def _by_number(name: str) -> Any:
    library = getattr(math, name)
    vector = getattr(np, name)

    def function(x):  # type: ignore[no-untyped-def]
        return vector(x)

    function.__name__ = function.__qualname__ = name

    @overload(function)
    def _function(x):  # type: ignore[no-untyped-def]
        if not isinstance(x, PackType):
            return None

        def each(x):  # type: ignore[no-untyped-def]
            found = x
            for k in range(WIDTH):
                found = _with_lane(found, k, library(_lane(x, k)))
            return found

        return each

    return function


log, log1p, expm1, sin, cos, tan, tanh = map(
    _by_number, ("log", "log1p", "expm1", "sin", "cos", "tan", "tanh")
)


@intrinsic
def _exp_of_pack(typing, x):  # type: ignore[no-untyped-def]
    """exp of numbers that are not beyond `vecmath.LIMIT`; see there."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(DOUBLES, [DOUBLES] * 3)
        fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{WIDTH}f64")

        def number(value: float) -> Any:
            return ir.Constant(DOUBLES, [value] * WIDTH)

        def whole(value: int) -> Any:
            return ir.Constant(INTS, [value] * WIDTH)

        def looked_up(table: Any, kind: Any, vector: Any, places: Any) -> Any:
            found = ir.Constant(vector, ir.Undefined)
            zero = ir.Constant(PLACE, 0)
            for lane in range(WIDTH):
                at = builder.gep(table, [zero, builder.extract_element(places, _place(lane))])
                found = builder.insert_element(found, builder.load(at), _place(lane))
            return found

        heads = ir.Constant(ir.ArrayType(INT, vecmath.PIECES), [int(k) for k in vecmath.HEADS])
        tails = ir.Constant(ir.ArrayType(DOUBLE, vecmath.PIECES), [float(t) for t in vecmath.TAILS])
        shifted = builder.call(fma, [args[0], number(vecmath.PER_LOG2), number(vecmath.SHIFT)])
        k = builder.bitcast(shifted, INTS)
        n = builder.fsub(shifted, number(vecmath.SHIFT))
        r = builder.call(fma, [n, number(-vecmath.LOG2_HIGH), args[0]])
        r = builder.call(fma, [n, number(-vecmath.LOG2_LOW), r])
        j = builder.and_(k, whole(vecmath.PIECES - 1))
        tail = looked_up(cgutils.global_constant(builder, "exp_tails", tails), DOUBLE, DOUBLES, j)
        head = looked_up(cgutils.global_constant(builder, "exp_heads", heads), INT, INTS, j)
        head = builder.bitcast(builder.add(head, builder.shl(k, whole(45))), DOUBLES)
        square = builder.fmul(r, r)
        low = builder.call(fma, [r, number(vecmath.C3), number(vecmath.C2)])
        p = builder.call(fma, [square, low, builder.fadd(tail, r)])
        high = builder.call(fma, [r, number(vecmath.C5), number(vecmath.C4)])
        p = builder.call(fma, [builder.fmul(square, square), high, p])
        return builder.call(fma, [head, p, head])

    return pack(x), generate


@intrinsic
def _is_any(typing, test):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _any(builder, args[0])

    return types.boolean(test), generate


def exp(x):  # type: ignore[no-untyped-def]
    """e to the power x."""
    return np.exp(x)


@overload(exp)
def _exp(x):  # type: ignore[no-untyped-def]
    if not isinstance(x, PackType):
        return None
    exact = vecmath.exp_is_exact()

    def each(x):  # type: ignore[no-untyped-def]
        if exact and not _is_any(negated(absolute(x) <= vecmath.LIMIT)):
            return _exp_of_pack(x)
        found = x
        for k in range(WIDTH):
            found = _with_lane(found, k, math.exp(_lane(x, k)))
        return found

    return each


def exp_each(a, n):  # type: ignore[no-untyped-def]
    """The first n packs of a vector become their exp."""
    a[:n] = np.exp(a[:n])


@overload(exp_each)
def _exp_each(a, n):  # type: ignore[no-untyped-def]
    def each(a, n):  # type: ignore[no-untyped-def]
        for k in range(n):
            put(a, k, exp(take(a, k)))

    return each


def sign(x):  # type: ignore[no-untyped-def]
    """-1, 0 or 1."""
    return np.sign(x)


def _sign(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    zero, one, less = (ir.Constant(DOUBLES, [value] * WIDTH) for value in (0.0, 1.0, -1.0))
    below = builder.select(builder.fcmp_ordered("<", args[0], zero), less, args[0])
    return builder.select(builder.fcmp_ordered(">", args[0], zero), one, below)


_native(sign, _type_of_pack, _sign)
