"""The hooks of comparisons: native where both classes are known, else the classes are met first."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from plaingrad import number_classes
from plaingrad.class_keys import is_instance, is_own_key
from plaingrad.engine.calls.meeting import NEEDS_NOTHING, is_holder
from plaingrad.engine.fusion.hot_hooks import generated
from plaingrad.engine.memory.kinds import NUMBER, kind_of
from plaingrad.engine.users_code import adopt
from plaingrad.rewrite.hooks import COMPARE

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

OPERATORS = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}

_HOOK = """
    def {name}(a, b):
        try:
            if type(a) in known and type(b) in known and needs_nothing(a) and needs_nothing(b):
                return a {op} b
        except TypeError:  # a class without hash; else it is the comparison's
            if is_own_key(type(a)) and is_own_key(type(b)):
                raise
        return unknown({name}_of, a, b)
"""


def _build() -> Callable[..., tuple[Callable[[Any, Any], Any], ...]]:
    source = "def comparisons(known, unknown):" + "".join(
        _HOOK.format(name=name, op=OPERATORS[name]) for name in COMPARE
    )
    source += f"    return {', '.join(COMPARE)}\n"
    namespace: dict[str, Any] = {
        "__name__": __name__,
        "is_own_key": is_own_key,
        "needs_nothing": holds_nothing,
    }
    namespace.update({f"{name}_of": getattr(operator, name) for name in COMPARE})
    return generated("comparisons", source, "<plaingrad comparisons>", namespace)


def holds_nothing(o: Any) -> bool:
    """Whether no entries are compared where `o`, of a known class, is."""
    return NEEDS_NOTHING(o) or not is_holder(type(o))


_comparisons = _build()


def comparisons(level: Level) -> tuple[Callable[[Any, Any], Any], ...]:
    """The hooks of `COMPARE` for a level."""

    def unknown(f: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        if kind_of(type(a)) == NUMBER or kind_of(type(b)) == NUMBER:
            if any(is_instance(x, (Fraction, Decimal)) or number_classes.is_own(x) for x in (a, b)):
                return level.outside(f, a, b)  # they take each other apart to compare; no derivative is lost
        level.calls.meet_all(a)
        level.calls.meet_all(b)
        return f(a, b)

    return _comparisons(adopt.known, unknown)
