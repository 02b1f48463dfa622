"""The rule author's door: derivatives of one's own, derived ones as rules, and functions that have none."""

from typing import Any

from plaingrad.critical import imported as _imported
from plaingrad.extend.contexts import primitives
from plaingrad.extend.derived import build_frule, build_rrule
from plaingrad.extend.doors import (
    defined_as,
    frule,
    linear_rule,
    nondifferentiable,
    remove_rule,
    rrule,
    scalar_rule,
    stop_gradient,
)
from plaingrad.extend.listing import rules
from plaingrad.extend.number_classes import number_class
from plaingrad.rules import derivatives as _derivatives


def _watched(f: Any, told: dict[str, Any]) -> Any:
    return _imported("plaingrad.rewrite.watching").watching_function(f, told)


def _has_effects(*args: Any) -> bool:
    return _imported("plaingrad.rewrite.effects").has_effects(*args)  # type: ignore[no-any-return]


def _imports(*args: Any) -> bool:
    return _imported("plaingrad.rewrite.effects").imports(*args)  # type: ignore[no-any-return]


_derivatives.OPERATORS.update(rrule=rrule, watched=_watched, has_effects=_has_effects, imports=_imports)

__all__ = [
    "build_frule",
    "build_rrule",
    "defined_as",
    "frule",
    "linear_rule",
    "nondifferentiable",
    "number_class",
    "primitives",
    "remove_rule",
    "rrule",
    "rules",
    "scalar_rule",
    "stop_gradient",
]
