"""The maps that `transpose` differentiates, and structures of tangents: ordinary Python, rewritten when nested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.errors import MissingRuleError
from plaingrad.tangents import NoTangent, ZeroTangent, project, unthunk


def pulled(
    pullback: Callable[[Any], Any], positions: list[int], xs: list[Any], name: str, y_bar: Any
) -> list[Any]:
    """The cotangents of the arguments at `positions`, whose primals are `xs`."""
    cotangents = pullback(y_bar)
    found: list[Any] = []
    for position, x in zip(positions, xs, strict=True):
        x_bar = unthunk(cotangents[position]) if position < len(cotangents) else NoTangent
        if x_bar is NoTangent:
            raise MissingRuleError(
                f"the rule for {name} gives no derivative for its argument {position}, which depends on the "
                "differentiated inputs.\n  If that derivative is zero, the rule should say ZeroTangent.\n"
                "  See docs: errors#missing-rule"
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
    return x_bar


def pushed(push: Callable[[Any], Any], positions: list[int], count: int, *dots: Any) -> Any:
    """y_dot for tangents at `positions`, the other arguments being constant."""
    every: list[Any] = [ZeroTangent] * count
    for position, x_dot in zip(positions, dots, strict=True):
        every[position] = x_dot
    return push(tuple(every))
