"""Patterns that are known to make cotangents nan, and what to do about each."""

from __future__ import annotations

from typing import Any

from plaingrad.diagnosis.back import Back, Event
from plaingrad.diagnosis.finite import element, is_number

ZERO_TIMES_INFINITY = (
    "A branch that counts for nothing (of a `where`, or in a product with 0) has an infinite slope, and 0 * inf is nan."
    " Make its argument harmless where it does not count."
)
HINT = (
    "The branch that `{name}` did not take is computed all the same: its cotangent is 0, its slope there is not finite,"
    " and 0 * inf is nan. Make its argument harmless first (the double where):\n"
    "      safe = np.where(condition, x, 1.0); y = np.where(condition, f(safe), other)"
)
HINT_ZERO = (
    "A product with 0 does not undo an infinite slope: 0 * inf is nan. Choose by a branch, or make the argument of"
    " `{name}` harmless where it does not count."
)
HINT_INFINITE = (
    "0 times an infinite value is nan, and so are its slopes. For x * log(y) there is scipy.special.xlogy(x, y), which"
    " is 0 where x is. Else keep infinite values from being computed: np.where(condition, x, 1.0) before the function."
)


def hint_of(back: Back, tape: Any) -> tuple[str, Event | None]:
    """What a cotangent that is not finite comes from, the first for which it is a known pattern, and that cotangent."""
    for event in back.events:
        if (
            event.what == "cotangent"
            and event.step.name == "*"
            and has_zero(event.step.operands, event.bad.index)
        ):
            if any(is_number(x) and is_infinite(element(x, event.bad.index)) for x in event.step.operands):
                return HINT_INFINITE, event
        if (
            event.what != "cotangent"
            or event.incoming is None
            or event.incoming != 0
            or event.bad.word != "nan"
        ):
            continue
        seen = set(event.output)
        name = event.step.name
        for step, (inputs, outputs) in zip(tape.steps, tape.edges, strict=True):
            if seen.isdisjoint(inputs):
                continue
            short = step.name.rpartition(".")[2]
            if short in ("where", "select", "choose", "piecewise"):
                return HINT.format(name=step.name), event
            if step.name == "*" and has_zero(step.operands, event.bad.index):
                return HINT_ZERO.format(name=name), event
            seen |= set(outputs)
        return "", None
    return "", None


def is_infinite(value: Any) -> bool:
    """Whether a number is infinite."""
    return value is not None and abs(value) == float("inf")


def has_zero(operands: Any, index: tuple[int, ...]) -> bool:
    """Whether an operand is 0 at an element."""
    for x in operands:
        if is_number(x):
            value = element(x, index)
            if value is not None and value == 0:
                return True
    return False
