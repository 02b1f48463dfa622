"""Steps of the reverse pass under another derivative.

Such a step runs rewritten at the level outside, which is right for anything that it may do. What the commonest steps on
whole arrays do besides arithmetic, though, is to move references: here that is done as it is, and the level's hooks are
called for the arithmetic.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from plaingrad.engine.memory.memory import (
    WHOLE,
    Shadow,
    add_into,
    overlaps_itself,
    whole_multiple_back,
    whole_sum_back,
)
from plaingrad.engine.memory.tape import (
    ArraySlot,
    InPlaceSum,
    RuleStep,
    Tree,
    WriteCotangent,
    add_real,
    add_to,
    array_difference_back,
    array_product_back,
    array_quotient_back,
    array_sum_back,
    elementwise_back,
)
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, unthunk


def reversed_from(tape: Any, end: int) -> Iterator[Any]:
    """The list of triples before place `end`, last first: a thread that outlives the function may add more."""
    if type(tape) is not list:
        return tape.reversed_from(end)  # type: ignore[no-any-return]
    back = reversed(tape)
    later = operator.length_hint(back) - end
    return islice(back, later, None) if later else back


def called_back(outer: Any, f: Callable[..., None], shadow: Shadow, arguments: tuple[Any, ...]) -> None:
    """f(shadow, *arguments), a step of the tape, at level `outer`."""
    short = _SHORT.get(f)
    if short is None:
        outer.calls.inside(f)(shadow, *arguments)
    elif shadow.bars[arguments[0]] is not None:
        short(outer, shadow, *arguments)


def step_back(outer: Any, step: Any, shadow: Shadow, undone: list[Any]) -> None:
    """step.back(shadow, undone) at level `outer`."""
    if type(step) is InPlaceSum and added_back(outer, step, shadow):
        return
    if type(step) is WriteCotangent and written_back(outer, step, shadow):
        return
    if type(step) is not RuleStep or not is_whole(step):
        outer.calls.inside(type(step).back)(step, shadow, undone)
        return
    y_bar = shadow.bars[step.outputs.index]
    if y_bar is None:
        return
    cotangents = outer.calls.inside(step.pullback)(y_bar)
    for position, slot in step.inputs:
        x_bar = cotangents[position] if position < len(cotangents) else NoTangent
        if type(x_bar) is Thunk:
            x_bar = outer.calls.inside(unthunk)(x_bar)
        if x_bar is NoTangent:
            outer.calls.inside(RuleStep.back)(step, shadow, undone)  # it explains what is wrong
        elif x_bar is not ZeroTangent:
            x = slot.x
            if type(x_bar) is np.ndarray and x_bar.shape == x.shape and x_bar.dtype == x.dtype:
                add_array(outer, shadow, slot.index, x, x_bar)
            else:
                outer.calls.inside(add_to)(shadow, slot, x_bar)


def cotangent_of(shadow: Shadow, slot: ArraySlot) -> Any:
    """The cotangent at `slot` as memory to read and write; None where it would have to be made, or copied, first."""
    if slot.index not in shadow.owned:
        return None
    if slot.x.base is None:
        return shadow.bars[slot.index]
    return shadow.view(slot.index, slot.x) if slot.index in shadow.laid and slot.x.size else None


def added_back(outer: Any, step: InPlaceSum, shadow: Shadow) -> bool:
    """a += b or a -= b; False where that is not for here."""
    b = step.b_slot
    if b is None or shadow.bars[step.slot.index] is None:
        return True
    a_bar = cotangent_of(shadow, step.slot)
    if a_bar is None or type(b) is Tree:
        return False
    add_operand(outer, shadow, b.index, b.x, outer.mul(a_bar, 1.0 if step.sign > 0 else -1.0))
    return True


def written_back(outer: Any, step: WriteCotangent, shadow: Shadow) -> bool:
    """a[...] = v; False where that is not for here."""
    v = step.v_slot
    if shadow.bars[step.slot.index] is None:
        return True
    if step.key is not Ellipsis or step.winners is not None or type(v) is Tree:
        return False
    a_bar = cotangent_of(shadow, step.slot)
    if a_bar is None:
        return False
    if v is not None:
        add_operand(outer, shadow, v.index, v.x, outer.mul(a_bar, 1.0))
    outer.setitem(0.0, a_bar, Ellipsis)
    return True


def is_whole(step: RuleStep) -> bool:
    """Whether a rule of plaingrad's own was called on plain arrays and gave one that owns its memory."""
    y = step.outputs
    return (
        step.rule.own
        and type(y) is ArraySlot
        and y.x.base is None
        and all(type(slot) is ArraySlot and type(slot.x) is np.ndarray for _, slot in step.inputs)
    )


def add_array(outer: Any, shadow: Shadow, index: int, x: np.ndarray, x_bar: Any) -> None:
    """shadow.add_array(index, x, x_bar) at level `outer`."""
    if x.base is None:
        if shadow.bars[index] is None:
            shadow.bars[index] = x_bar
            return
    elif index in shadow.laid or shadow.bars[index] is None:  # else what is there would have to be copied
        if not x.size:
            return
        target = shadow.view(index, x)
        if overlaps_itself(target):
            outer.calls.inside(add_into)(target, x_bar)
        else:
            outer.iadd(target, x_bar)
        return
    outer.calls.inside(Shadow.add_array)(shadow, index, x, x_bar)


def add_operand(outer: Any, shadow: Shadow, index: int, x: Any, x_bar: Any) -> None:
    """add_real(shadow, index, x, x_bar) at level `outer`."""
    if type(x) is np.ndarray and x_bar.shape == x.shape:
        add_array(outer, shadow, index, x, x_bar)
    elif type(x) is float or type(x) is np.float64:
        total = outer.prep(np.sum)(x_bar) if type(x_bar) is np.ndarray else x_bar
        before = shadow.bars[index]
        total = total if before is None else outer.add(before, total)
        if type(total) is np.float64 and hasattr(shadow.bars, "put_number"):
            shadow.bars.put_number(index, total)
        else:
            shadow.bars[index] = total
    else:
        outer.calls.inside(add_real)(shadow, index, x, x_bar)


def sum_back(outer: Any, shadow: Shadow, n: int, z: Any, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = a + b."""
    z_bar = shadow.bars[n]
    if i is not None:
        add_operand(outer, shadow, i, a, z_bar)
    if j is not None:
        add_operand(outer, shadow, j, b, z_bar)


def difference_back(outer: Any, shadow: Shadow, n: int, z: Any, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = a - b."""
    z_bar = shadow.bars[n]
    if i is not None:
        add_operand(outer, shadow, i, a, z_bar)
    if j is not None:
        add_operand(outer, shadow, j, b, outer.neg(z_bar))


def product_back(outer: Any, shadow: Shadow, n: int, z: Any, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = a * b."""
    z_bar = shadow.bars[n]
    if i is not None:
        add_operand(outer, shadow, i, a, outer.mul(z_bar, b))
    if j is not None:
        add_operand(outer, shadow, j, b, outer.mul(z_bar, a))


def quotient_back(outer: Any, shadow: Shadow, n: int, z: Any, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = a / b."""
    z_bar = shadow.bars[n]
    if i is not None:
        add_operand(outer, shadow, i, a, outer.truediv(z_bar, b))
    if j is not None:
        add_operand(outer, shadow, j, b, outer.mul(outer.neg(z_bar), outer.truediv(z, b)))


def row_back(outer: Any, shadow: Shadow, n: int, z: Any, x: Any, i: int, partial: Any, args: Any) -> None:
    """z = f(*args), elementwise in x."""
    slope = outer.calls.inside(partial)(np, *args, z)
    add_operand(outer, shadow, i, x, outer.mul(shadow.bars[n], slope))


def same_sum_back(outer: Any, shadow: Shadow, n: int, i: int | None, j: int | None, negative: bool) -> None:
    """z = a + b or a - b of whole arrays of one shape, or of one and a number."""
    z_bar = shadow.bars[n]
    if i is not None:
        add_array(outer, shadow, i, WHOLE, z_bar)
    if j is not None:
        add_array(outer, shadow, j, WHOLE, outer.neg(z_bar) if negative else z_bar)


def multiple_back(outer: Any, shadow: Shadow, n: int, i: int, factor: float, divided: bool) -> None:
    """z = a * factor or a / factor of a whole array."""
    z_bar = shadow.bars[n]
    add_array(outer, shadow, i, WHOLE, outer.truediv(z_bar, factor) if divided else outer.mul(z_bar, factor))


_SHORT: dict[Callable[..., None], Callable[..., None]] = {
    array_sum_back: sum_back,
    array_difference_back: difference_back,
    array_product_back: product_back,
    array_quotient_back: quotient_back,
    elementwise_back: row_back,
    whole_sum_back: same_sum_back,
    whole_multiple_back: multiple_back,
}
