"""SIMD values: W consecutive iterations of a loop held in one vector register, W doubles, a `Pack`.

Sums, products, quotients and comparisons of packs are those of the numbers, each rounded by itself, so every iteration
has the bits that it would have alone. A comparison gives a `Mask`. Under CPython a pack is a vector of W floats and a
mask one of W bools. Their memory is in `simd_memory`, functions like exp are in `simd_functions`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

from plaingrad.native.runtime.declare import overload
from plaingrad.native.runtime.vector.code import BITS, DOUBLES, INT, INTS, PLACE, WIDTH, any_set, lane_number


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


def _splat(builder: Any, x: Any, kind: Any) -> Any:
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, x, lane_number(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(PLACE, WIDTH), [0] * WIDTH))


def vector(context: Any, builder: Any, value: Any, t: Any) -> Any:
    """A pack, mask or number as WIDTH doubles."""
    if isinstance(t, PackType):
        return value
    if isinstance(t, MaskType):
        return builder.uitofp(value, DOUBLES)
    return _splat(builder, context.cast(builder, value, t, types.float64), DOUBLES)


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
        a, b = (vector(context, builder, x, t) for x, t in zip(args, sig.args, strict=True))
        if name == "fdiv":
            zero = builder.fcmp_ordered("==", b, ir.Constant(DOUBLES, [0.0] * WIDTH))
            with cgutils.if_unlikely(builder, any_set(builder, zero)):
                context.error_model.fp_zero_division(builder, ("division by zero",))
        return getattr(builder, name)(a, b)

    return generate


def _comparison(symbol: str) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (vector(context, builder, x, t) for x, t in zip(args, sig.args, strict=True))
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


def native(function: Any, typed: Any, generate: Any) -> None:
    """Let compiled code call `function`: `typed(*types)` is the type of its result, `generate` its code.

    Not by `overload`, which would compile a function of its own for every combination of types.
    """

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            made = typed(*args)
            return None if made is None else signature(made, *args)

    infer_global(function, types.Function(Template))
    lower_builtin(function, types.VarArg(types.Any))(generate)


def vectors(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    """The arguments as vectors of WIDTH doubles."""
    return [vector(context, builder, x, t) for x, t in zip(args, sig.args, strict=True)]


def all_alike(x):  # type: ignore[no-untyped-def]
    """The pack of a number; a pack as it is."""
    return x if isinstance(x, np.ndarray) else np.full(WIDTH, x)


native(all_alike, lambda x: pack, lambda context, builder, sig, args: vectors(context, builder, sig, args)[0])


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
        parts = [vector(context, builder, x, t) for x, t in zip(args[1:], sig.args[1:], strict=True)]
    return builder.select(args[0], *parts)


native(choose, _type_of_choice, _choose)


def negated(test):  # type: ignore[no-untyped-def]
    """The mask of what is not set."""
    return np.logical_not(test)


def _type_of_negated(test: Any) -> Any:
    return test if isinstance(test, (MaskType, types.Boolean)) else None


native(negated, _type_of_negated, lambda context, builder, sig, args: builder.not_(args[0]))


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


native(lanes_between, lambda low, high: pack, _lanes_between)


@intrinsic
def lane(typing, x, k):  # type: ignore[no-untyped-def]
    """Number k of a pack or mask."""
    made = types.float64 if isinstance(x, PackType) else types.boolean

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], args[1])

    return made(x, types.int64), generate


@intrinsic
def with_lane(typing, x, k, value):  # type: ignore[no-untyped-def]
    """The pack with `value` for its number k."""

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
                if lane(test, k):
                    total = total + lane(terms, k)
            return total

        return add_some

    def add_all(total, terms, test, low, high):  # type: ignore[no-untyped-def]
        for k in range(low, high):
            total = total + lane(terms, k)
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
            found += lane(x, k)
        return found

    return total


# -- on the way back: may be contracted, and the sign of a zero does not matter ----------------------------------------

LOOSE = ("nsz", "contract")


def _loose(name: str) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, name)(*vectors(context, builder, sig, args), flags=LOOSE)

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
    native(_function, lambda x, y: pack, _loose(_name))


# -- functions that a processor has ------------------------------------------------------------------------------------


def _ofvectors(name: str) -> Any:
    """LLVM's function of that name."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(DOUBLES, [DOUBLES])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
        return builder.call(function, args)

    return generate


def type_of_pack(x: Any) -> Any:
    """The type of a function of `x`: a pack of a pack, nothing else."""
    return pack if isinstance(x, PackType) else None


def absolute(x):  # type: ignore[no-untyped-def]
    """|x|."""
    return np.abs(x)


def sqrt(x):  # type: ignore[no-untyped-def]
    """The square root."""
    return np.sqrt(x)


native(absolute, type_of_pack, _ofvectors("fabs"))
native(sqrt, type_of_pack, _ofvectors("sqrt"))


def maximum(x, y):  # type: ignore[no-untyped-def]
    """max(x, y) of Python: x where neither is larger."""
    return np.where(y > x, y, x)


def minimum(x, y):  # type: ignore[no-untyped-def]
    """min(x, y) of Python: x where neither is smaller."""
    return np.where(y < x, y, x)


def _extreme(symbol: str) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x, y = vectors(context, builder, sig, args)
        return builder.select(builder.fcmp_ordered(symbol, y, x), y, x)

    return generate


native(maximum, lambda x, y: pack, _extreme(">"))
native(minimum, lambda x, y: pack, _extreme("<"))


def sign(x):  # type: ignore[no-untyped-def]
    """-1, 0 or 1."""
    return np.sign(x)


def _sign(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    zero, one, less = (ir.Constant(DOUBLES, [value] * WIDTH) for value in (0.0, 1.0, -1.0))
    below = builder.select(builder.fcmp_ordered("<", args[0], zero), less, args[0])
    return builder.select(builder.fcmp_ordered(">", args[0], zero), one, below)


native(sign, type_of_pack, _sign)
