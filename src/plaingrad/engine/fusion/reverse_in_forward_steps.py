"""Steps of single operations on a tape whose numbers have tangents: how cotangents go back through them.

`engine.paired` makes them, in reverse mode inside forward mode, and its reverse pass calls them. Any other level that
pulls back through such a tape (a derivative taken of the pullback) runs their plain forms, rewritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.engine.memory.memory import Shadow


def slope_back(
    bars: Any, dots: Any, dot_of: Any, o: int, i: int, slope: float, slope_dot: float | None
) -> None:
    """z = f(x): x_bar += z_bar slope, with tangents. `bars` are cotangents by index, `dots` their tangents.

    A cotangent that has none there may have one in the table of the forward level, where `dot_of` finds it.
    """
    z_bar = bars[o]
    if z_bar is None:
        return
    z_dot = dots.get(o)
    if z_dot is None:
        z_dot = dot_of(id(z_bar))
    term = z_bar * slope
    term_dot = None if z_dot is None else z_dot * slope
    if slope_dot is not None:
        term_dot = z_bar * slope_dot if term_dot is None else term_dot + z_bar * slope_dot
    x_bar = bars[i]
    if x_bar is not None:
        x_dot = dots.get(i)
        if x_dot is None:
            x_dot = dot_of(id(x_bar))
        if x_dot is not None:
            term_dot = x_dot if term_dot is None else x_dot + term_dot
        term = x_bar + term
    bars[i] = term
    if term_dot is not None:
        dots[i] = term_dot


def slopes_back(
    bars: Any, dots: Any, dot_of: Any, o: int, i: int, p: float, j: int, q: float, p_dot: float, q_dot: float
) -> None:
    """z = f(x, y): the same for both arguments."""
    slope_back(bars, dots, dot_of, o, i, p, p_dot)
    slope_back(bars, dots, dot_of, o, j, q, q_dot)


def plain_slope_back(shadow: Shadow, o: int, i: int, slope: float) -> None:
    """`slope_back` without tangents."""
    z_bar = shadow.bars[o]
    if z_bar is not None:
        shadow.add_number(i, z_bar * slope)


def plain_slopes_back(shadow: Shadow, o: int, i: int, p: float, j: int, q: float) -> None:
    """`slopes_back` without tangents."""
    plain_slope_back(shadow, o, i, p)
    plain_slope_back(shadow, o, j, q)


class Form:
    """What else is to be known of a step with tangents; see `engine.fusion.fused.Paired`."""

    def __init__(self, plain: Callable[..., None], count: int, dotted: list[tuple[int, int]]) -> None:
        self.plain = plain
        self.count = count
        self.dotted = dotted


slope_back.paired = Form(plain_slope_back, 3, [(2, 3)])  # type: ignore[attr-defined]
slopes_back.paired = Form(plain_slopes_back, 5, [(2, 5), (4, 6)])  # type: ignore[attr-defined]
