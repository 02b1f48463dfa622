"""The steps of the compiled recorder as entries of a tape in Python's form, for whoever reads such a tape in Python.

In come the fields of a compiled `ArrayStep`: the index `n` of what it made, the operands `a` and `b` with their indices
`i` and `j` (None where one is not active), the number `c`, the code `slope`, and `more`; an array that the way back
does without is None. Out goes a triple as `memory.tape` describes. Called when a level that was recorded by itself is
pulled back under another derivative, and for arrays that the compiled way back leaves to NumPy.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.engine.memory.bends import BENDS
from plaingrad.engine.memory.blocks import LARGE, product_in_blocks, slopes_in_blocks
from plaingrad.engine.memory.curvatures import curvature_of_two, curvatures
from plaingrad.engine.memory.indices import frozen_key, winners
from plaingrad.engine.memory.memory import (
    WHOLE,
    Shadow,
    owner_of,
    whole_multiple_back,
    whole_sum_back,
)
from plaingrad.engine.memory.met import CALLS_MEET, met_by, span_of
from plaingrad.engine.memory.regions import Region
from plaingrad.engine.memory.tape import (
    ARRAY_ARITHMETIC,
    CALLED,
    STEP,
    ArraySlot,
    InPlaceRule,
    InPlaceSum,
    NumberSlot,
    ReadArray,
    RuleStep,
    Tree,
    WriteCotangent,
    add_to,
    elementwise_back,
    number_cotangent,
    read_number_back,
    write_number_back,
)
from plaingrad.rewrite import locals_read
from plaingrad.rules.numpy.kernels import KERNELS, MULTILINEAR, PARTS
from plaingrad.rules.numpy.names import PLACES_OF_OUT
from plaingrad.tangents import project, unbroadcast

__all__ = [
    "BENDS",
    "FLAT_ROWS",
    "JOINING",
    "KERNELS",
    "MULTILINEAR",
    "NEGATIVE",
    "PARTS",
    "PLACES_OF_OUT",
    "TRIPLES",
    "UNFIT",
    "WHOLE",
    "PowerSlope",
    "Region",
    "add_projected",
    "curvature_of_two",
    "curvatures",
    "frozen_key",
    "met_by",
    "nothing",
    "nothing_here",
    "number_cotangent",
    "owner_of",
    "product_in_blocks",
    "project",
    "quiet",
    "quiet_slope",
    "read_number_back",
    "real_part_back",
    "rule_of",
    "slopes_in_blocks",
    "span_of",
    "square_slope",
    "unbroadcast",
    "what_is_read",
    "winners",
    "write_number_back",
]


def real_part_back(shadow: Shadow, n: int, i: int, factor: Any) -> None:
    """z = a complex function of a real number: the real part of z_bar times `factor`, the slope's conjugate."""
    z_bar = shadow.bars[n]
    if z_bar is not None:
        shadow.add_number(i, (z_bar * factor).real)


CALLS_MEET[real_part_back] = lambda n, i, factor: (n, None, [(i, None)])


def nothing(shadow: Shadow) -> None:
    """An entry that belongs to the one before it."""


def quiet() -> Any:
    """No warnings: the primal has warned, if there was anything to warn of."""
    return np.errstate(all="ignore")


def quiet_slope(partial: Any, x: Any, z: Any) -> Any:
    """The slope of an elementwise function with value `z` at `x`."""
    with quiet():
        if np.size(x) < LARGE:
            return partial(np, x, z)
        slope = product_in_blocks(np.broadcast_to(1.0, np.shape(x)), partial, (x,), z)
        return partial(np, x, z) if slope is None else slope


class PowerSlope:
    """The slope of x ** p for a number p, by the row of powers."""

    __slots__ = ("p",)

    def __init__(self, p: float) -> None:
        self.p = p

    def __call__(self, m: Any, x: Any, z: Any) -> Any:
        """The slope at x."""
        return self.row()(m, x, self.p, z)

    @staticmethod
    def row() -> Any:
        """The slope in the base: a function of m, base, exponent and power."""
        rule = rulebook.find(operator.pow)
        assert rule is not None
        return rule.partials[0]

    def curvature(self, x: Any, z: Any, s: Any) -> Any:
        """The slope's slope."""
        p = self.p
        return p * (p - 1) * x ** float(p - 2) if p not in (0, 1) else np.zeros_like(x)


@functools.cache
def what_is_read(partial: Any) -> int:
    """Whether a row's formula for the slope, partial(m, x, z), reads x (1), z (2), or both (3)."""
    code = getattr(partial, "__code__", None)
    if code is None or partial.__closure__ or code.co_argcount != 3 or code.co_cellvars:
        return 3
    read = locals_read(code)
    return (code.co_varnames[1] in read) + 2 * (code.co_varnames[2] in read)


NEGATIVE = None  # the slope of -x needs no function
MINUS, TIMES = 1, 2  # as in the compiled core


def square_slope(m: Any, x: Any, z: Any) -> Any:
    """The slope of x ** 2."""
    return 2.0 * x


def _sum(negative: bool) -> Callable[..., Any]:
    back = ARRAY_ARITHMETIC["sub" if negative else "add"]

    def triple(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
        if a is None and b is None:
            return (n, i, j, negative), CALLED, whole_sum_back
        return (n, WHOLE, a, i, b, j), CALLED, back

    return triple


def _product(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    if j is None and a is None:
        return (n, i, c if b is None else b, False), CALLED, whole_multiple_back
    if i is None and b is None:
        return (n, j, c if a is None else a, False), CALLED, whole_multiple_back
    return (n, WHOLE, c if a is None else a, i, c if b is None else b, j), CALLED, ARRAY_ARITHMETIC["mul"]


def _quotient(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    if a is None and j is None:
        return (n, i, c if b is None else b, True), CALLED, whole_multiple_back
    if a is None and i is not None:
        a = z  # of that shape, and all of its memory, too
    return (n, WHOLE if z is None else z, a, i, c if b is None else b, j), CALLED, ARRAY_ARITHMETIC["truediv"]


def _unary(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    if slope == MINUS:
        if a is None:
            return (n, i, -1.0, False), CALLED, whole_multiple_back
        return (n, WHOLE, a, i, -1.0, None), CALLED, ARRAY_ARITHMETIC["mul"]
    x = z if a is None else a  # of that shape, and the slope is said in `z`
    partial, args = (
        (more.row(), (x, more.p)) if type(more) is PowerSlope else (more, (x,))
    )  # a level around follows it
    return (n, WHOLE if z is None else z, x, i, partial, args), CALLED, elementwise_back


def _matrix_product(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    return (n, a, i, b, j, slope >> 8, slope & 255), CALLED, matrix_product_back


def matrix_product_back(
    shadow: Shadow, n: int, a: Any, i: Any, b: Any, j: Any, axes_a: int, axes_b: int
) -> None:
    """z = a @ b of vectors and matrices."""
    z_bar = shadow.bars[n]
    if z_bar is None:
        return
    if i is not None:
        if axes_b == 1:
            x_bar = z_bar * b if axes_a == 1 else z_bar[:, None] * b
        else:
            x_bar = b @ z_bar if axes_a == 1 else z_bar @ b.T
        shadow.add_array(i, WHOLE if a is None else a, x_bar)
    if j is not None:
        if axes_a == 1:
            x_bar = z_bar * a if axes_b == 1 else a[:, None] * z_bar
        else:
            x_bar = a.T @ z_bar
        shadow.add_array(j, WHOLE if b is None else b, x_bar)


def _sum_over_axis(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    return (n, a, i, more, None if slope < 0 else slope, c), CALLED, sum_over_axis_back


def sum_over_axis_back(
    shadow: Shadow, n: int, a: Any, i: int, shape: Any, axis: int | None, count: float
) -> None:
    """z = the sum of `a` over an axis or all of them, divided by `count` if that is not 0."""
    z_bar = shadow.bars[n]
    if z_bar is not None:
        if count:
            z_bar = z_bar / count
        if axis is not None and 1 <= np.ndim(z_bar) < len(shape):
            z_bar = np.expand_dims(z_bar, axis)
        shadow.add_array(i, WHOLE if a is None else a, np.broadcast_to(z_bar, shape))


def _added_to(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    return i, STEP, InPlaceSum(ArraySlot(i, a), slot_of(b, j), -1 if slope == MINUS else 1)


def _scaled_by(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    rule = rulebook.find(operator.mul)
    assert rule is not None
    assert rule.rrule is not None
    return i, STEP, InPlaceRule(ArraySlot(i, a), None, rule.rrule(a, c)[1])


def _written(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    return i, STEP, WriteCotangent(ArraySlot(i, a), Ellipsis, slot_of(b, j), None)


def slot_of(b: Any, j: Any) -> Any:
    """The place of a number or array of index `j`; None if it is not active."""
    if j is None:
        return None
    return ArraySlot(j, b) if type(b) is np.ndarray else NumberSlot(j, b)


def _gathered(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    return (n, more), CALLED, gathered_back


def gathered_back(shadow: Shadow, n: int, indices: tuple[int, ...]) -> None:
    """z = an array of numbers, whose indices are given; below 0 where one is not active."""
    z_bar = shadow.bars[n]
    if z_bar is not None:
        flat = np.ravel(z_bar)
        for k, j in enumerate(indices):
            if j >= 0:
                shadow.add_number(j, float(flat[k]))


def _crossed(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    return (n, a, i, b, j), CALLED, cross_back


def cross_back(shadow: Shadow, n: int, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = the cross product of two vectors of three."""
    z_bar = shadow.bars[n]
    if z_bar is not None:
        if i is not None:
            shadow.add_array(i, a, np.cross(b, z_bar))
        if j is not None:
            shadow.add_array(j, b, np.cross(z_bar, a))


def nothing_here(*args: Any) -> None:
    """What a rule asks that has no other way."""


rule_of = rulebook.find
#: Functions that give more than one array or number; what is here saves their evaluation by a rule in vain.
UNFIT = frozenset(
    getattr(m, name)
    for m in (np, np.linalg)
    for name in (
        "eig",
        "eigh",
        "svd",
        "qr",
        "lstsq",
        "modf",
        "frexp",
        "divmod",
        "unique",
        "histogram",
        "gradient",
    )
    if hasattr(m, name)
)

#: Functions of two arguments whose slopes are the same everywhere on a piece.
FLAT_ROWS = frozenset(
    (np.maximum, np.minimum, np.fmax, np.fmin, np.copysign, np.remainder, np.fmod, np.add, np.subtract)
)


JOINING = frozenset((np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack))


def _mapped(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    outputs: Any = NumberSlot(n, 1.0) if z is None else ArraySlot(n, z)
    inputs: dict[int, Any] = {}
    places = zip(more.positions, more.entries, more.indices, more.operands, strict=True)
    for position, entry, index, x in places:
        slot = slot_of(x, index)
        if entry < 0:
            inputs[position] = slot
        else:
            inputs.setdefault(position, Tree({})).slots[entry] = slot
    pullback = more.pullback
    if pullback is None:
        pullback = pullback_again(more.rule.rrule, more.args, more.kwargs)
    return n, STEP, RuleStep(outputs, tuple(inputs.items()), pullback, more.rule)


def pullback_again(rrule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
    """The pullback of a call whose rule is applied then: a level around follows all that is computed for it."""

    def pullback_of_call(z_bar: Any) -> Any:
        return rrule(*args, **kwargs)[1](z_bar)

    return pullback_of_call


def add_projected(shadow: Shadow, i: int, x: Any, x_bar: Any) -> None:
    """Add a cotangent, in the space of `x`, to that of array or number `x` of index `i`."""
    add_to(shadow, slot_of(x, i), x_bar)


def _chosen(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    return n, STEP, ReadArray(ArraySlot(n, WHOLE), ArraySlot(i, a), more, bool(slope))


def _changed(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    key, lasting = more
    return i, STEP, WriteCotangent(ArraySlot(i, a), key, slot_of(b, j), lasting)


def _multiplied(n: int, z: Any, a: Any, i: Any, b: Any, j: Any, c: float, slope: int, more: Any) -> Any:
    rule = rulebook.find(operator.mul if slope == TIMES else operator.truediv)
    assert rule is not None
    before = a if z is None else z  # where b is not active, only its shape matters
    return i, STEP, InPlaceRule(ArraySlot(i, a), slot_of(b, j), pullback_again(rule.rrule, (before, b), {}))


TRIPLES: list[Callable[..., Any]] = [  # by the codes of operations in the compiled core
    _sum(False),
    _sum(True),
    _product,
    _quotient,
    _unary,
    _matrix_product,
    _sum_over_axis,
    _added_to,
    _scaled_by,
    _written,
    _gathered,
    _crossed,
    _mapped,
    _chosen,
    _changed,
    _multiplied,
]
