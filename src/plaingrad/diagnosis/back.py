"""The reverse pass, one step after the other: which cotangent becomes nan or inf, and which slope is zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plaingrad.diagnosis.finite import Bad, bad_in, element, is_array, is_number, written
from plaingrad.diagnosis.observed import Step
from plaingrad.diagnosis.places import Place
from plaingrad.engine.memory.memory import Shadow
from plaingrad.engine.memory.structure import gradients, seed
from plaingrad.engine.memory.tape import CALLED, STEP, ArraySlot, NumberSlot, elementwise_back, redo

MOST = 50  # events that are kept


class Bars(list[Any]):
    """Cotangents by index, which notes what is put in."""

    def __init__(self, size: int) -> None:
        super().__init__([None] * size)
        self.touched: set[int] = set()

    def __setitem__(self, index: Any, bar: Any) -> None:
        self.touched.add(index)
        super().__setitem__(index, bar)


class SeenShadow(Shadow):
    """A shadow that notes which cotangents are added to."""

    __slots__ = ()

    def add_array(self, index: int, x: np.ndarray, x_bar: Any) -> None:
        """Add to the cotangent of an array."""
        self.bars.touched.add(index)
        super().add_array(index, x, x_bar)

    def view(self, index: int, x: np.ndarray) -> np.ndarray:
        """A part of it, which may be written."""
        self.bars.touched.add(index)
        return super().view(index, x)

    def writable(self, index: int, x: np.ndarray) -> np.ndarray:
        """The cotangent as memory that may be written."""
        self.bars.touched.add(index)
        return super().writable(index, x)


@dataclass
class Event:
    """Something becomes nan or infinite where what it was computed from was finite.

    Attributes:
        what: "value", "tangent" or "cotangent".
        bad: the element.
        step: the operation.
        incoming: the cotangent that came to it (of that element, where it is known), for a cotangent.
        slope: the slope that it was multiplied with; None: not known.
        index: of what became so, in the table of the level.
    """

    what: str
    bad: Bad
    step: Step
    incoming: Any = None
    slope: Any = None
    index: Any = None
    output: tuple[int, ...] = ()

    @property
    def place(self) -> Place | None:
        """The line of the program."""
        return self.step.place

    @property
    def operands(self) -> str:
        """The numbers that the operation was given, at that element, in words."""
        shape = None
        for x in (self.step.result, *self.step.operands):
            if is_array(x) and len(self.bad.index) == x.ndim:
                shape = x.shape
                break
        found = []
        for x in self.step.operands:
            if x is self.step.result and is_array(x):
                found.append("what was there before")  # it has been written over
            elif is_number(x):
                value = element(x, self.bad.index if self.bad.index else (), shape)
                found.append("an array" if value is None else written(value))
        return ", ".join(found)

    def sentence(self) -> str:
        """What became of what, in one line."""
        given = f" of {self.operands}" if self.operands else ""
        head = f"a {self.what} becomes {self.bad.word}{self.bad.where} in `{self.step.name}`{given}"
        if self.what == "cotangent":
            if self.slope is not None and self.incoming is not None:
                head += f": cotangent {written(self.incoming)} times slope {written(self.slope)}"
            elif self.incoming is not None:
                head += f": the cotangent that comes in is {written(self.incoming)}"
        elif self.what == "tangent" and self.slope is not None:
            head += f": slope {written(self.slope)}"
        return head


@dataclass
class Back:
    """What a reverse pass has shown.

    Attributes:
        gradients: of the arguments.
        events: cotangents that became nan or inf, in the order in which that happened.
        zeros: steps at which a cotangent that is not zero met slopes that are all zero, with the index behind them.
        reached: the indices to which a cotangent came.
        leaves: the gradients of the numbers and arrays among the arguments, by index.
        warnings: what NumPy would have warned of, with the step.
    """

    gradients: tuple[Any, ...] = ()
    events: list[Event] = field(default_factory=list)
    zeros: list[tuple[Step, int]] = field(default_factory=list)
    reached: set[int] = field(default_factory=set)
    leaves: dict[int, Any] = field(default_factory=dict)
    warnings: list[tuple[str, Step | None]] = field(default_factory=list)


def pulled(
    level: Any, slots: Any, y_bar: Any, nodes: list[Any], leaves: Any = (), watcher: Any = None
) -> Back:
    """The reverse pass of an observed level.

    Args:
        level: the level.
        slots: the places of the numbers and arrays of the result.
        y_bar: its cotangent; None: one for each number.
        nodes: those of the arguments.
        leaves: the nodes of numbers and arrays whose gradients are noted.
        watcher: is told of each event.
    """
    size = level.new_index()
    shadow = SeenShadow(size, Bars(size))
    undone: list[Any] = []
    found = Back()
    running: list[Step | None] = [None]

    def warned(kind: str, flag: int) -> None:
        if len(found.warnings) < MOST:
            found.warnings.append((kind, running[0]))

    try:
        with np.errstate(all="call", call=warned):
            if y_bar is None:
                seed_ones(shadow, slots)
            else:
                seed(shadow, slots, y_bar)
            found.reached |= shadow.bars.touched
            if (bad := bad_in(y_bar)) is not None:
                found.events.append(
                    Event("cotangent", bad, Step("the cotangent of the result", "seed", None, ()))
                )
            _reverse(level.tape, shadow, undone, found, running, watcher)
            for leaf in leaves:
                bar = shadow.bars[leaf.index]
                found.leaves[leaf.index] = leaf.gradient(shadow, {})
                shadow.bars[leaf.index] = bar  # which an array hands over
            found.gradients = gradients(nodes, shadow)
    finally:
        redo(undone)
    return found


def seed_ones(shadow: Shadow, slots: Any) -> None:
    """The cotangent of each number of the result becomes 1."""
    if type(slots) is NumberSlot:
        shadow.add_number(slots.index, 1.0)
    elif type(slots) is ArraySlot:
        shadow.add_array(slots.index, slots.x, np.ones_like(slots.x))
        shadow.writable(slots.index, slots.x)
    elif slots is not None:
        for inner in slots.slots.values():
            seed_ones(shadow, inner)


def _reverse(
    tape: Any, shadow: SeenShadow, undone: list[Any], found: Back, running: list[Step | None], watcher: Any
) -> None:
    bars = shadow.bars
    wrong: set[int] = set()
    for k in range(len(tape) // 3 - 1, -1, -1):
        o, i, partial = tape[3 * k : 3 * k + 3]
        step = running[0] = tape.steps[k]
        inputs, outputs = tape.edges[k]
        incoming = {n: bars[n] for n in outputs if n < len(bars)}
        bars.touched.clear()
        if i >= 0:
            z_bar = bars[o]
            if z_bar is not None:
                term = z_bar * partial
                bars[i] = term if bars[i] is None else bars[i] + term
        elif i == CALLED:
            partial(shadow, *o)
        elif i == STEP:
            partial.back(shadow, undone)
        else:
            paired = partial.paired
            paired.plain(shadow, *o[: paired.count])
        touched = bars.touched - set(outputs) if inputs else set(bars.touched)
        found.reached |= touched
        for n in touched:
            bad = bad_in(bars[n])
            if bad is not None and n not in wrong:
                wrong.add(n)
                if wrong.isdisjoint(outputs) and len(found.events) < MOST:
                    event = Event("cotangent", bad, step, index=n, output=outputs)
                    with np.errstate(all="ignore"):
                        slope_of(event, o, i, partial, incoming)
                    found.events.append(event)
                    if watcher is not None:
                        watcher(event)
            elif (
                bad is None
                and is_zero(bars[n])
                and any(bar is not None and not is_zero(bar) for bar in incoming.values())
            ):
                found.zeros.append((step, n))


def slope_of(event: Event, o: Any, i: int, partial: Any, incoming: dict[int, Any]) -> None:
    """Note the cotangent and the slope that made an event."""
    place = event.bad.index
    if i >= 0:
        event.incoming, event.slope = incoming.get(o), partial
        return
    for bar in incoming.values():
        if bar is not None:
            event.incoming = element(bar, place)
            break
    if i == CALLED and partial is elementwise_back:
        _, z, _, _, slope, args = o
        slopes = slope(np, *args, z)
        event.slope = element(np.asarray(slopes), place)
    elif i == STEP and (rule := getattr(partial, "rule", None)) is not None and rule.kind == "scalar":
        event.slope = slope_by_row(event, rule)


def slope_by_row(event: Event, rule: Any) -> Any:
    """The slope of an elementwise function at the element, by its row; None where that is not known."""
    step = event.step
    shape = getattr(step.result, "shape", ())
    values = [element(x, event.bad.index, shape) for x in step.operands]
    z = element(step.result, event.bad.index, shape)
    active = [k for k, x in enumerate(step.operands) if is_number(x) and not issubclass(type(x), int)]
    if None in values or z is None or len(rule.partials) != len(values):
        return None
    for k in active:
        partial = rule.partials[k]
        slope = partial(np, *values, z) if callable(partial) else partial
        if slope is not None and not np.isfinite(slope):
            return slope
    return None


def is_zero(bar: Any) -> bool:
    """Whether a cotangent is zero in every element."""
    if isinstance(bar, np.ndarray):
        return bar.dtype.kind in "fc" and not bar.any()
    return isinstance(bar, (float, complex, np.number)) and bar == 0
