"""The tape and the reverse pass.

The tape is one flat list of triples `(output index, input index, partial)` in execution order. A triple whose
input index is -1 carries a step instead of a partial: an array operation, a write, a call of a rule. Reversing
walks the list backwards, so it needs no knowledge of control flow and does not recurse.

Everything here is ordinary Python over numbers, lists and arrays: under a nested derivative the reverse pass
runs rewritten, at the next level out, and is recorded there like any other code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from plaingrad.class_keys import is_instance
from plaingrad.engine.memory.blocks import product_in_blocks
from plaingrad.engine.memory.memory import Shadow
from plaingrad.engine.refusals.rule_faults import here, name_rule
from plaingrad.errors import MissingRuleError, RuleError
from plaingrad.misfits import keys_misfit, misfit
from plaingrad.rulebook import Rule
from plaingrad.tangents import NoTangent, Tangent, ZeroTangent, project, unbroadcast, unthunk
from plaingrad.tangents.fields import parts_of

STEP = -1  # the input index of a triple that carries a step
CALLED = -2  # of a triple (arguments, CALLED, f): the reverse pass calls f(shadow, *arguments)
PAIRED = -3  # of one that holds tangents, too; see `engine.fusion.fused.Paired`

# A slot says where the cotangent of one argument goes: None (inactive), an int (a number's index),
# (index, array) for an array or view, or a `Tree` for a container with active leaves.


class Tree:
    """The slots of a container's entries, by key."""

    __slots__ = ("count", "slots", "x")

    def __init__(self, slots: dict[Any, Any], x: Any = (), count: int = 0) -> None:
        self.slots = slots
        self.x = x  # the container: a cotangent has its structure
        self.count = count  # of its entries, then


class NumberSlot:
    """The place of a number: its index, and the number itself (a cotangent is projected to its type)."""

    __slots__ = ("index", "x")

    def __init__(self, index: int, x: Any) -> None:
        self.index = index
        self.x = x


class ArraySlot:
    """The place of an array or view: the index of its memory region, and the array itself."""

    __slots__ = ("index", "x")

    def __init__(self, index: int, x: np.ndarray) -> None:
        self.index = index
        self.x = x


def reverse(tape: list[Any], shadow: Shadow, undone: list[Any]) -> None:
    """Carry the cotangents in `shadow` back over `tape`; writes that were undone on the way are listed in `undone`."""
    bars = shadow.bars
    back = reversed(tape)
    for partial, i, o in zip(back, back, back, strict=True):
        if i >= 0:
            z_bar = bars[o]
            if z_bar is not None:
                x_bar = bars[i]
                bars[i] = z_bar * partial if x_bar is None else x_bar + z_bar * partial
        elif i == CALLED:
            partial(shadow, *o)
        elif i == STEP:
            partial.back(shadow, undone)
        else:
            paired = partial.paired
            paired.plain(shadow, *o[: paired.count])


def redo(undone: list[Any]) -> None:
    """Make the undone writes again, so that memory is as the function left it."""
    while undone:
        undone[-1].again()
        undone.pop()  # only now: a write may be made twice, if an exception comes in between


def add_to(shadow: Shadow, slot: Any, x_bar: Any) -> None:
    """Add a cotangent, possibly postponed or structured, to the place that `slot` names."""
    if slot is None:
        return
    x_bar = unthunk(x_bar)
    if x_bar is None or x_bar is NoTangent or x_bar is ZeroTangent:
        return
    kind = type(slot)
    if kind is NumberSlot:
        if type(x_bar) is not float or type(slot.x) is not float:
            x_bar = number_cotangent(x_bar, slot.x)
        shadow.add_number(slot.index, x_bar)
    elif kind is ArraySlot:
        shadow.add_array(slot.index, slot.x, project(x_bar, slot.x))
    else:
        for key, inner in slot.slots.items():
            add_to(shadow, inner, entry_of(x_bar, key))


def number_cotangent(x_bar: Any, x: Any) -> Any:
    """`x_bar` as a cotangent of the number `x`; for a Python float a Python float."""
    x_bar = project(x_bar, x)
    if type(x) is float or type(x) is np.float64:
        if isinstance(x_bar, (np.floating, np.integer)):
            return float(x_bar)
    elif type(x) is complex and isinstance(x_bar, np.complexfloating):
        return complex(x_bar)
    return x_bar


def entry_of(x_bar: Any, key: Any) -> Any:
    """The cotangent of one entry of a container; one that a mapping leaves out is zero."""
    if isinstance(x_bar, dict) or type(x_bar) is Tangent:
        return x_bar[key] if key in x_bar else ZeroTangent  # noqa: SIM401 - a field may be named `get`
    try:
        return x_bar[key]
    except (TypeError, IndexError, KeyError):
        raise RuleError(
            f"a pullback returned {type(x_bar).__name__} for a container argument; it must give one cotangent "
            f"for each entry (no entry {key!r})"
        ) from None


class RuleStep:
    """One call with a rule: outputs, inputs and the pullback between them."""

    __slots__ = ("inputs", "outputs", "pullback", "rule", "where")

    def __init__(self, outputs: Any, inputs: tuple[Any, ...], pullback: Any, rule: Rule) -> None:
        self.outputs = outputs  # a slot, or a Tree of slots
        self.inputs = inputs  # (position, slot) pairs
        self.pullback = pullback
        self.rule = rule
        self.where = here() if rule.users else None  # of the call

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """Pull the cotangent of the outputs back to the inputs."""
        y_bar = cotangent_at(shadow, self.outputs)
        if y_bar is None:
            return
        try:
            cotangents = self.pullback(y_bar)
            if type(cotangents) is not tuple:
                raise RuleError(
                    f"the pullback of the rule for {self.rule.name} returned {type(cotangents).__name__}; it must "
                    "return a tuple with one cotangent per argument"
                )
            count = len(cotangents)
            for position, slot in self.inputs:
                x_bar = cotangents[position] if position < count else NoTangent
                if x_bar is NoTangent and self.rule.kind != "no_tangent":
                    raise MissingRuleError(
                        f"the rule for {self.rule.name} gives no derivative for its argument {position}, which "
                        "depends on the differentiated inputs.\n"
                        "  If that derivative is zero, the rule should say ZeroTangent.\n"
                        "  See docs: errors#missing-rule"
                    )
                if self.rule.users:
                    x_bar = unthunk(x_bar)
                    check_cotangent(slot, x_bar, self.rule, position)
                add_to(shadow, slot, x_bar)
            if type(self.outputs) is ArraySlot:
                shadow.let_go(self.outputs.index)
        except Exception as error:
            if self.rule.users:
                name_rule(error, self.rule, "pullback", self.where)
            raise


def check_cotangent(slot: Any, x_bar: Any, rule: Rule, position: int, of: str = "") -> None:
    """Refuse what a user's rule gives for an argument where it is no cotangent of it, or says that there is none."""
    if x_bar is ZeroTangent:
        return
    if x_bar is None:
        raise RuleError(
            f"the rule for {rule.name} gives None as cotangent of {of}its argument {position}, which depends on the "
            "differentiated inputs; a derivative that is zero is ZeroTangent.\n  See docs: errors#rule"
        )
    if x_bar is NoTangent:
        raise MissingRuleError(
            f"the rule for {rule.name} gives no derivative for {of}its argument {position}, which depends on the "
            "differentiated inputs.\n  If that derivative is zero, the rule should say ZeroTangent.\n"
            "  See docs: errors#missing-rule"
        )
    if type(slot) is not Tree:
        problem = misfit(x_bar, slot.x)
    elif isinstance(slot.x, (list, tuple, deque)):
        is_sequence = isinstance(x_bar, (list, tuple, deque)) or (
            isinstance(x_bar, np.ndarray) and x_bar.ndim > 0
        )
        problem = None
        if not is_sequence or len(x_bar) != slot.count:
            problem = f"a {type(x_bar).__name__} for a {type(slot.x).__name__} of {slot.count}"
    elif isinstance(slot.x, np.ndarray):
        problem = None  # of objects
    else:
        known = {*slot.slots, *(slot.x if isinstance(slot.x, dict) else parts_of(slot.x))}
        problem = keys_misfit(x_bar, slot.x, known)
    if problem:
        raise RuleError(
            f"the rule for {rule.name} gives {problem} as cotangent of {of}its argument {position}.\n"
            "  See docs: errors#rule"
        )
    if type(slot) is Tree:
        for key, inner in slot.slots.items():
            if inner is not None:
                check_cotangent(
                    inner, unthunk(entry_of(x_bar, key)), rule, position, f"the entry {key!r} of {of}"
                )


def array_sum_back(shadow: Shadow, n: int, z: Any, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = a + b of float64 arrays and real numbers; an index is None where the operand is not active."""
    z_bar = shadow.read(n, z)
    if z_bar is not None:
        if i is not None:
            add_real(shadow, i, a, z_bar)
        if j is not None:
            add_real(shadow, j, b, z_bar)


def array_difference_back(shadow: Shadow, n: int, z: Any, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = a - b."""
    z_bar = shadow.read(n, z)
    if z_bar is not None:
        if i is not None:
            add_real(shadow, i, a, z_bar)
        if j is not None:
            add_real(shadow, j, b, -z_bar)


def array_product_back(shadow: Shadow, n: int, z: Any, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = a * b."""
    z_bar = shadow.read(n, z)
    if z_bar is not None:
        if i is not None:
            add_real(shadow, i, a, z_bar * b)
        if j is not None:
            add_real(shadow, j, b, z_bar * a)


def array_quotient_back(shadow: Shadow, n: int, z: Any, a: Any, i: Any, b: Any, j: Any) -> None:
    """z = a / b."""
    z_bar = shadow.read(n, z)
    if z_bar is not None:
        if i is not None:
            add_real(shadow, i, a, z_bar / b)
        if j is not None:
            add_real(shadow, j, b, -z_bar * (z / b))  # z_bar / b may overflow where the slope z / b does not


ARRAY_ARITHMETIC = {
    "add": array_sum_back,
    "sub": array_difference_back,
    "mul": array_product_back,
    "truediv": array_quotient_back,
}


def elementwise_back(shadow: Shadow, n: int, z: Any, x: Any, i: int, partial: Any, args: Any) -> None:
    """z = f(*args), elementwise in the float64 array x, one of args."""
    z_bar = shadow.read(n, z)
    if z_bar is not None:
        x_bar = product_in_blocks(z_bar, partial, args, z)
        shadow.add_array(i, x, z_bar * partial(np, *args, z) if x_bar is None else x_bar)


def read_number_back(shadow: Shadow, n: int, i: int, a: np.ndarray, k: Any) -> None:
    """z = a[k], one number out of a float64 array."""
    z_bar = shadow.bars[n]
    if z_bar is not None:
        a_bar = shadow.writable(i, a)
        a_bar[k] += z_bar


def write_number_back(shadow: Shadow, i: int, a: np.ndarray, k: Any, j: Any) -> None:
    """a[k] = v, one number into a float64 array; j is the index of v, None where v is not active."""
    if shadow.bars[i] is not None:
        a_bar = shadow.writable(i, a)
        if j is not None:
            shadow.add_number(j, float(a_bar[k]))
        a_bar[k] = 0.0


def add_real(shadow: Shadow, index: int, x: Any, x_bar: Any) -> None:
    """Add to the cotangent of a float64 array or a real number, summed over the axes of broadcasting."""
    if type(x) is np.ndarray:
        if x_bar.shape != x.shape:
            x_bar = np.asarray(unbroadcast(x_bar, x.shape))
        shadow.add_array(index, x, x_bar)
    else:
        shadow.add_number(index, number_cotangent(np.sum(x_bar), x))


def cotangent_at(shadow: Shadow, slot: Any) -> Any:
    """The cotangent that arrived at `slot`, or None. Several outputs: a tuple with zeros filled in, None if all are."""
    kind = type(slot)
    if kind is NumberSlot:
        return shadow.bars[slot.index]
    if kind is ArraySlot:
        return shadow.read(slot.index, slot.x)
    if slot is None:
        return None
    found = [cotangent_at(shadow, inner) for inner in slot.slots.values()]
    if all(bar is None for bar in found):
        return None
    bars = [
        zero_of(inner) if bar is None else bar for bar, inner in zip(found, slot.slots.values(), strict=True)
    ]
    return with_structure(bars, slot)


def with_structure(bars: list[Any], slot: Tree) -> Any:
    """The cotangents of the entries of a result as a cotangent of the result."""
    x = slot.x
    if isinstance(x, tuple):
        return type(x)(*bars) if hasattr(x, "_fields") else tuple(bars)
    if isinstance(x, (list, deque)):
        return bars
    fields = dict(zip(slot.slots, bars, strict=True))
    return fields if isinstance(x, dict) else Tangent(type(x), fields)


def zero_of(slot: Any) -> Any:
    """A zero cotangent for one of several outputs."""
    if type(slot) is NumberSlot:
        return 0.0 * slot.x if type(slot.x) is not float else 0.0
    if type(slot) is ArraySlot:
        return np.zeros_like(slot.x)
    if slot is None:
        return NoTangent
    return with_structure([zero_of(inner) for inner in slot.slots.values()], slot)


class ReadNumber:
    """z = a[key], one number out of an array."""

    __slots__ = ("index", "key", "slot")

    def __init__(self, index: int, slot: ArraySlot, key: Any) -> None:
        self.index = index
        self.slot = slot
        self.key = key

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """a_bar[key] += z_bar."""
        z_bar = shadow.bars[self.index]
        if z_bar is not None:
            a_bar = shadow.writable(self.slot.index, self.slot.x)
            a_bar[self.key] += project(z_bar, self.slot.x.dtype.type(0))


class ReadArray:
    """z = a[key] where NumPy copies: integer or boolean arrays in the key."""

    __slots__ = ("key", "output", "repeats", "slot")

    def __init__(self, output: ArraySlot, slot: ArraySlot, key: Any, repeats: bool) -> None:
        self.output = output
        self.slot = slot
        self.key = key
        self.repeats = repeats  # an element may have been read more than once

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """a_bar[key] += z_bar, with every term of a repeated index."""
        z_bar = shadow.read(self.output.index, self.output.x)
        if z_bar is not None:
            self._add(shadow.writable(self.slot.index, self.slot.x), z_bar)

    def _add(self, a_bar: np.ndarray, z_bar: Any) -> None:
        if a_bar.dtype.names is not None:  # records are added field by field
            for name in a_bar.dtype.names:
                self._add(a_bar[name], z_bar[name])
        elif self.repeats:
            np.add.at(a_bar, self.key, z_bar)
        else:
            a_bar[self.key] += z_bar


class Write:
    """Memory that was written: what it held before, so that the reverse pass sees the primal as it was."""

    __slots__ = ("key", "saved", "target", "written")

    def __init__(self, target: np.ndarray, key: Any, saved: Any) -> None:
        self.target = target
        self.key = key
        self.saved = saved
        self.written: Any = None

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """Undo the write."""
        self.written = np.array(self.target[self.key])
        undone.append(self)  # before it is done
        self.target[self.key] = self.saved

    def again(self) -> None:
        """Make it again."""
        self.target[self.key] = self.written


class WriteCotangent:
    """a[key] = v: the cotangent of what was overwritten ends here, that of v begins."""

    __slots__ = ("key", "slot", "v_slot", "winners")

    def __init__(self, slot: ArraySlot, key: Any, v_slot: Any, winners: Any) -> None:
        self.slot = slot
        self.key = key
        self.v_slot = v_slot
        self.winners = winners  # where indices repeat: which writes lasted

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """v_bar += a_bar[key]; a_bar[key] = 0."""
        slot = self.slot
        if shadow.bars[slot.index] is None:
            return
        a_bar = shadow.writable(slot.index, slot.x)
        if self.v_slot is not None:
            v_bar = np.array(a_bar[self.key])
            if self.winners is not None:
                v_bar = v_bar * self.winners
            add_to(shadow, self.v_slot, v_bar if v_bar.ndim else v_bar[()])
        a_bar[self.key] = 0


class InPlaceSum:
    """a += b or a -= b: the cotangent of a stays where it is."""

    __slots__ = ("b_slot", "sign", "slot")

    def __init__(self, slot: ArraySlot, b_slot: Any, sign: int) -> None:
        self.slot = slot
        self.b_slot = b_slot
        self.sign = sign

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """b_bar += sign * a_bar."""
        if self.b_slot is not None:
            a_bar = shadow.read(self.slot.index, self.slot.x)
            if a_bar is not None:
                add_to(shadow, self.b_slot, np.array(a_bar) if self.sign > 0 else np.negative(a_bar))


class InPlaceRule:
    """a op= b for any elementwise op: the pullback of z = op(a, b), with z written over a."""

    __slots__ = ("b_slot", "pullback", "slot")

    def __init__(self, slot: ArraySlot, b_slot: Any, pullback: Any) -> None:
        self.slot = slot
        self.b_slot = b_slot
        self.pullback = pullback

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """(a_bar, b_bar) = pullback(a_bar)."""
        slot = self.slot
        if shadow.bars[slot.index] is None:
            return
        a_bar = shadow.writable(slot.index, slot.x)
        z_bar = np.array(a_bar)
        cotangents = self.pullback(z_bar)
        a_bar[...] = 0
        add_to(shadow, slot, cotangents[0])
        if self.b_slot is not None:
            add_to(shadow, self.b_slot, cotangents[1])


def attach(tree: Tree, x: Any) -> None:
    """Note in the slots of a container what it is: the cotangents that a user's rule gives are compared with it."""
    if tree.x is x:
        return
    tree.x = x
    if isinstance(x, (list, tuple, deque)):
        tree.count = len(x)
        parts: Any = x
    elif isinstance(x, np.ndarray):
        return
    else:
        parts = x if is_instance(x, Mapping) else parts_of(x)
    for key, inner in tree.slots.items():
        if type(inner) is Tree:
            attach(inner, parts[key])
