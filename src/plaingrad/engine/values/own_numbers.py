"""Numbers with arithmetic of their own: their constructors, parts, and functions that know nothing of them."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import number_classes
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.values import texts
from plaingrad.rules import numbers
from plaingrad.rules.numbers import PARTS

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level
    from plaingrad.rule_data import Rule

__all__ = ["PARTS", "constructor", "part", "rule_for"]
FOREIGN = (
    "numpy",
    "scipy",
    "cmath",
    "statistics",
)  # their functions make floats of numbers, or call their methods


def constructor(level: Level, cls: type) -> Any:
    """What is called instead of a class of such numbers: the new number is the given one."""
    known = number_classes.find(cls)
    assert known is not None

    def construct(*args: Any, **kwargs: Any) -> Any:
        if any(map(level.is_active, kwargs.values())):
            missing_rule(cls, "A differentiated number is given to it by keyword.")
        if not any(map(level.is_active, args)):
            y = level.native(cls, args, kwargs)
            if level.texts and any(map(texts.holds_text, args)):
                texts.check_conversion(level, args, y)
            return y
        if any(level.is_active(x) for x in args if isinstance(x, (tuple, list))):
            missing_rule(cls, "A differentiated number is given to it inside a tuple.")
        rule = numbers.constructor(cls, known.is_complex, kwargs)
        return level.apply(rule, rule.function, args, {})

    return construct


def part(level: Level, known: number_classes.NumberClass, x: Any, name: str) -> Any:
    """x.real or x.imag."""
    if not known.is_complex:
        return x if name == "real" else x.imag
    f = PARTS[name]
    return level.calls.prep(f)(x)


def rule_for(rule: Rule, f: Any) -> Rule:
    """The rule of `f` for such a number, which depends on the inputs; a rule for floats is not taken instead."""
    found = numbers.OPERATORS.get(f) if type(f) is np.ufunc or type(f) is not FunctionType else None
    if found is not None:
        return found
    if is_foreign(rule, f) and rule.kind != "linear":
        missing_rule(f, "It is a function of floats and arrays, and is given a number of another library.")
    return rule


def is_foreign(rule: Rule, f: Any) -> bool:
    """Whether `f` is a function of floats and arrays by a rule of plaingrad's own."""
    module = getattr(f, "__module__", None) or ""
    return rule.own and (type(f) is np.ufunc or module.partition(".")[0] in FOREIGN)


def holds_own(x: Any) -> bool:
    """Whether a number with arithmetic of its own is in a list or tuple."""
    return any(
        holds_own(part) if isinstance(part, (list, tuple)) else number_classes.is_own(part) for part in x
    )
