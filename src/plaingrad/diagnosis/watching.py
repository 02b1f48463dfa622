"""What is looked for while a function runs at an observed level: values and tangents that are not finite, and cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.diagnosis.back import Event
from plaingrad.diagnosis.finite import Bad, bad_in, is_array, is_number
from plaingrad.diagnosis.influence import why_cut
from plaingrad.diagnosis.observed import ObservedForward, ObservedReverse, Step
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.reverse.inputs import Inputs, with_fresh

MOST = 50  # events that are kept


class Watch:
    """A watcher of an observed level.

    Attributes:
        events: values and tangents that are not finite although what they were made of is, each line once.
        cuts: steps at which derivatives end, and why.
    """

    def __init__(self, told: Callable[[Event], None] | None = None) -> None:
        self.events: list[Event] = []
        self.cuts: list[tuple[Step, str]] = []
        self.seen: set[Any] = set()
        self.told = told

    def __call__(self, level: Any, step: Step) -> None:
        """Look at a step."""
        if step.kind != "comparison":
            bad = bad_in(step.result) if any(map(is_number, step.operands)) else None
            if step.had_bad and bad is not None and not self.is_first_nan(bad, step):
                bad = None
            if bad is not None:
                self.note(Event("value", bad, step, output=step.produced))
            elif isinstance(level, ObservedForward) and step.produced:
                self.look_at_tangent(level, step)
        if step.consumed and (why := why_cut(step)) is not None:
            self.cuts.append((step, why))

    def is_first_nan(self, bad: Bad, step: Step) -> bool:
        """Whether a nan comes of an infinite constant, as in 0 * inf, and nothing became infinite before."""
        if bad.word != "nan" or any(event.what == "value" for event in self.events):
            return False
        return not any((found := bad_in(x)) is not None and found.word == "nan" for x in step.operands)

    def look_at_tangent(self, level: Any, step: Step) -> None:
        """Note the tangent of a result that is not finite, unless one of an operand is not."""
        bad = bad_in(tangent_at(level, step.result))
        if bad is not None and not any(
            bad_in(tangent_at(level, x)) is not None for x in step.operands if x is not step.result
        ):
            if not step.had_bad:
                self.note(Event("tangent", bad, step, output=step.produced))

    def note(self, event: Event) -> None:
        """Keep an event, and tell of it."""
        at = event.what, event.step.at
        if at in self.seen or len(self.events) >= MOST:
            return
        self.seen.add(at)
        self.events.append(event)
        if self.told is not None:
            self.told(event)


def tangent_at(level: Any, x: Any) -> Any:
    """The tangent that a forward level has of a number or array, or None."""
    if is_array(x):
        region = level.index.get(id(owner_of(x)))
        return None if region is None or type(region) is int else region.read(x)
    return level.index.get(id(x)) if is_number(x) else None


class Recorded:
    """A call that was recorded at an observed level."""

    def __init__(
        self, f: Any, args: Any, argnums: tuple[int, ...], kwargs: Any, watch: Watch, outer: Any
    ) -> None:
        self.level = ObservedReverse(outer)
        self.level.observe(watch)
        self.slots: Any = None
        self.result: Callable[[Any], Any] = lambda value: value
        inputs, value = with_fresh(self.level, args, argnums, self._run, f, kwargs)
        self.nodes = inputs.nodes
        self.value = inputs.own(value)

    def _run(self, inputs: Inputs, f: Any, kwargs: Any) -> tuple[Inputs, Any]:
        level = self.level
        level.inputs = len(level.numbers()) + len(level.arrays)
        value = level.run(f, inputs.args, kwargs)
        self.slots = level.slot_of(self.result(value))
        return inputs, value
