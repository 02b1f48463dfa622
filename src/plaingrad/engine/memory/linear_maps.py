"""The maps that `transpose` differentiates, and structures of tangents: ordinary Python, rewritten when nested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.errors import MissingRuleError, RuleError
from plaingrad.misfits import misfit
from plaingrad.tangents import NoTangent, Tangent, ZeroTangent, has_tangent_space, project, unthunk
from plaingrad.tangents.fields import parts_of


def pulled(
    pullback: Callable[[Any], Any],
    positions: list[int],
    xs: list[Any],
    name: str,
    y: Any,
    strict: bool,
    y_bar: Any,
) -> list[Any]:
    """The cotangents of the arguments at `positions`, whose primals are `xs`."""
    cotangents = pullback(structured(y_bar, y))
    if type(cotangents) is not tuple:
        raise RuleError(
            f"the pullback of the rule for {name} returned {type(cotangents).__name__}; it must return a tuple with "
            "one cotangent per argument.\n  See docs: errors#rule"
        )
    found: list[Any] = []
    for position, x in zip(positions, xs, strict=True):
        x_bar = unthunk(cotangents[position]) if position < len(cotangents) else NoTangent
        if x_bar is NoTangent:
            raise MissingRuleError(
                f"the rule for {name} gives no derivative for its argument {position}, which depends on the "
                "differentiated inputs.\n  If that derivative is zero, the rule should say ZeroTangent.\n"
                "  See docs: errors#missing-rule"
            )
        problem = misfit(x_bar, x) if strict else None
        if problem:
            raise RuleError(
                f"the rule for {name} gives {problem} as cotangent of its argument {position}.\n  See docs: errors#rule"
            )
        found.append(fitted(x_bar, x))
    return found


def fitted(x_bar: Any, x: Any) -> Any:
    """`x_bar` in the form of `x`."""
    x_bar = unthunk(x_bar)
    if x_bar is None or x_bar is ZeroTangent or x_bar is NoTangent:
        return ZeroTangent
    if isinstance(x, (list, tuple)):
        return [fitted(x_bar[k], part) for k, part in enumerate(x)]
    if isinstance(x, dict):
        return {key: fitted(x_bar[key], part) for key, part in x.items()}
    if isinstance(x, (np.ndarray, np.generic, float, complex)):
        return project(x_bar, x)
    if isinstance(x_bar, dict) or type(x_bar) is Tangent:
        parts = parts_of(x)
        return {name: fitted(x_bar[name], parts[name]) for name in x_bar}
    return x_bar


def structured(unit: Any, x: Any) -> Any:
    """A tangent of `x` with the structure that rules expect, from one with dictionaries for objects."""
    if isinstance(x, (list, tuple)) and isinstance(unit, (list, tuple)):
        parts = [structured(part, of) for part, of in zip(unit, x, strict=True)]
        if isinstance(x, tuple):
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        return parts
    if isinstance(unit, dict):
        if isinstance(x, dict):
            return {key: structured(part, x[key]) for key, part in unit.items()}
        parts = parts_of(x)
        return Tangent(type(x), {name: structured(part, parts[name]) for name, part in unit.items()})
    return NoTangent if unit is ZeroTangent and not has_tangent_space(x) else unit


def pushed(push: Callable[[Any], Any], positions: list[int], xs: list[Any], count: int, *dots: Any) -> Any:
    """y_dot for tangents at `positions`, the other arguments being constant."""
    every: list[Any] = [ZeroTangent] * count
    for position, x, x_dot in zip(positions, xs, dots, strict=True):
        every[position] = structured(x_dot, x)
    return opened(push(tuple(every)))


def opened(y_dot: Any) -> Any:
    """`y_dot` with dictionaries of fields for the tangents of objects: the engine finds entries by the same keys."""
    y_dot = unthunk(y_dot)
    if isinstance(y_dot, dict) or type(y_dot) is Tangent:
        return {name: opened(y_dot[name]) for name in y_dot}
    if isinstance(y_dot, (list, tuple)):
        return [opened(part) for part in y_dot]
    return y_dot


def attribute(name: str, o: Any) -> Any:
    """o.name, with the name first: what a rule for a computed attribute is applied to."""
    return getattr(o, name)
