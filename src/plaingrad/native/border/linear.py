"""Linear maps of native derivatives, pullbacks and pushforwards, as steps that other derivatives may be taken of.

Compiled code sees no tangents of what it is given. A pullback that was made in a plain call may be called inside of a
derivative, though (`linearize` does): there it is one step, whose derivative is the map itself, or its transpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.rewrite import CURRENT, PLAIN, in_force
from plaingrad.rulebook import Rule
from plaingrad.tangents import is_zero

Map = Callable[[Any], Any]


def applied(run: Map, transposed: Map, x: Any) -> Any:
    """run(x), as a step of the derivative that is being taken, if there is one.

    Args:
        run: a linear map of numbers, arrays and tuples of these, `ZeroTangent` among them for zeros.
        transposed: its transpose: from what has the structure of run(x) to what has that of `x`.
        x: what it is applied to.
    """
    level = CURRENT.get()
    return run(x) if level is PLAIN else level.apply(rule_of(level, run, transposed), run, (x,), {})


def rule_of(level: Any, run: Map, transposed: Map) -> Rule:
    """The rule of a linear map, in both modes, for one level."""

    def further_out(first: Map, second: Map, x: Any) -> Any:
        """`applied` where the derivative of `level` is not being taken."""
        if CURRENT.get() is not level:
            return applied(first, second, x)
        return in_force(level.parent, applied, first, second, x)

    def linear_rrule(x: Any) -> Any:
        def linear_pullback(z_bar: Any) -> tuple[Any]:
            return (further_out(transposed, run, z_bar),)

        return further_out(run, transposed, x), linear_pullback

    def linear_frule(x: Any) -> Any:
        def linear_pushforward(dots: tuple[Any]) -> Any:
            return further_out(run, transposed, dots[0])

        return further_out(run, transposed, x), linear_pushforward

    return Rule(run, "full", linear_rrule, linear_frule, source="native:linear")


def is_nothing(dot: Any) -> bool:
    """Whether a tangent or cotangent stands for zero."""
    return dot is None or is_zero(dot)


__all__ = ["applied", "is_nothing"]
