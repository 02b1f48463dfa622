"""Right-hand sides that switch, along a solution: it is put together of pieces, between which its derivative jumps.

Where f jumps from f- to f+ when g(t, y) crosses zero at the time s, what follows is a solution from there on:

    ds = -(dg/dp + dg/dy dy-) / (dg/dt + dg/dy f-),   dy+ = dy- + (f- - f+) ds

Crossings are found in the solution by what f compares at the solver's steps, then by bisection to adjacent floats. A time
that is only compared with constants stays where it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import carrying, each_solved, is_active, outside, plainly, refuse
from plaingrad.rules.scipy.integrate.apart import move_apart
from plaingrad.rules.scipy.integrate.following import comparisons
from plaingrad.rules.scipy.integrate.jumps import is_nested, narrowed, steps_between
from plaingrad.rules.scipy.integrate.told import Reason, deciding, equal_beside, gap_of, pattern, why
from plaingrad.rules.scipy.integrate.variational import Steps

SMALL = 1e-7  # a jump that is smaller, beside the largest slope, is none
APART = 1e-13  # how far from a switch, beside times, pieces end, so that rounding of states does not decide
MOST = 60  # pieces of one solution


class Switch(NamedTuple):
    """Where f branches.

    Attributes:
        low: the last time before.
        high: the first time after.
        reason: which comparison it is.
        is_jump: whether f jumps there.
        by_time: whether it would, too, if only time went on.
    """

    low: float
    high: float
    reason: Reason
    is_jump: bool
    by_time: bool


@plainly
def compares(f: Any, t: Any, y: Any) -> bool:
    """Whether f branches at all, as far as a call at the start says."""
    return bool(comparisons(f, (y,), t))


@plainly
def switches_of(function: Any, f: Any, steps: Steps, nested: bool, closely: bool) -> list[Switch]:
    """Where f jumps along a solution; closely: wherever it branches, if that is not too often."""
    times = steps.times
    places = np.concatenate(
        [times[:-1, None], (times[:-1, None] + np.diff(times)[:, None] * [0.34, 0.71])], 1
    ).ravel()
    places = np.concatenate([places, times[-1:]])
    y = steps.at(places)
    told = lambda t, y: comparisons(f, (y,), t)
    seen = [pattern(told(float(t), row)) for t, row in zip(places, y, strict=True)]
    heights = [np.asarray(f(float(t), row)) for t, row in zip(places, y, strict=True)]
    scale = float(np.max(np.abs(heights), initial=0.0)) or 1.0
    found = (
        unexplained(f, steps, places, heights, SMALL * scale) if any(() in signs for signs in seen) else []
    )
    for k in np.flatnonzero([a != b for a, b in zip(seen[:-1], seen[1:], strict=True)]).tolist():
        if len(found) >= MOST and closely and not nested:  # bends only make panels smaller
            closely, found = False, [switch for switch in found if switch.is_jump]
        if len(found) >= MOST:
            refuse(
                function,
                f"its right-hand side branches at more than {MOST} times, which may move with the inputs",
            )
        ends = float(places[k]), float(places[k + 1])
        found += between(f, steps, ends, (seen[k], seen[k + 1]), SMALL * scale, nested or closely)
    sign = 1.0 if times[-1] >= times[0] else -1.0
    found.sort(
        key=lambda switch: sign * switch.low
    )  # one at a place that is looked at is found from both sides
    return [switch for n, switch in enumerate(found) if not n or sign * switch.low > sign * found[n - 1].high]


def between(f: Any, steps: Steps, ends: Any, seen: Any, least: float, closely: bool) -> list[Switch]:
    """Those between two places at which f compares differently: the first, then those after it."""
    found: list[Switch] = []
    (low, end), (below, last) = ends, seen
    at = lambda t: steps.at(np.array([t]))[0]
    of = lambda t: pattern(comparisons(f, (at(t),), t))
    unlike = lambda a, b: a != b
    sign = 1.0 if end >= low else -1.0
    while below != last and sign * low < sign * end and len(found) < MOST:
        low, high = narrowed(low, end, below, last, of, unlike)
        switch = switch_at(f, steps, low, high, least)
        if switch.is_jump or (closely and switch.reason is not None):
            found.append(switch)
        low, below = switch.high, of(switch.high)
    return found


def switch_at(f: Any, steps: Steps, low: float, high: float, least: float) -> Switch:
    """What happens between two adjacent floats."""
    length = float(steps.times[-1] - steps.times[0])
    gap = float(APART * (abs(low) + abs(length)) * np.sign(length))
    low, high = low - gap, high + gap
    y, z = steps.at(np.array([low]))[0], steps.at(np.array([high]))[0]
    slopes = [np.asarray(f(t, x)) for t, x in ((low, y), (high, z), (low, z), (high, y))]
    is_jump = bool(np.max(np.abs(slopes[1] - slopes[0]), initial=0.0) > least)
    reason = why(comparisons(f, (y,), low), comparisons(f, (z,), high))
    stays = all(np.all(np.abs(slopes[k] - slopes[k - 2]) <= least) for k in (2, 3))
    return Switch(low, high, reason, is_jump, is_jump and bool(stays))


def unexplained(f: Any, steps: Steps, places: Any, heights: Any, least: float) -> list[Switch]:
    """Jumps that no comparison may explain."""
    of = lambda t: np.asarray(f(t, steps.at(np.array([t]))[0]))
    pairs = steps_between(places.tolist(), heights, of, least)
    found = [switch_at(f, steps, *pair, least) for pair in pairs]
    return [switch for switch in found if switch.is_jump and switch.reason is None]


def moving(function: Any, f: Any, steps: Steps, found: list[Switch]) -> list[Switch]:
    """The switches whose times move with the inputs; refused is one of which that is not known."""
    moved = []
    for switch in found:
        t, y = switch.low, state_at(steps, switch.low)
        below = comparisons(f, (y,), t)
        if switch.reason is None:
            reasons = deciding(below, comparisons(f, (y,), switch.high), SMALL) if switch.by_time else None
            if reasons is None or is_active(reasons):
                refuse(
                    function,
                    f"its right-hand side jumps at t = {t:.6g}, and whether that moves with the inputs is not known",
                )
        else:
            moves = not switch.by_time or is_active(gap_of(below, switch.reason))
            check_alone(function, f, steps, switch, below, moves)
            moved += [switch] if moves else []
    return moved


def check_alone(function: Any, f: Any, steps: Steps, switch: Switch, below: list[Any], moves: bool) -> None:
    """Refuse a time at which f branches for two reasons of which one moves and the other not, or otherwise."""
    others = others_at(f, steps, switch)
    if others and (moves or is_active([gap_of(below, other) for other in others])):
        y = state_at(steps, switch.low)
        if move_apart(f, (y,), switch.low, slope_at(f, switch.low, y), [switch.reason, *others]):
            refuse(
                function,
                f"its right-hand side branches at t = {switch.low:.6g} for two reasons, which move apart",
            )


@plainly
def others_at(f: Any, steps: Steps, switch: Switch) -> list[Any]:
    """What else f compares that is equal there."""
    return equal_beside(
        lambda t: comparisons(f, (state_at(steps, t),), t), switch.low, switch.high, switch.reason
    )


@plainly
def slope_at(f: Any, t: Any, y: Any) -> Any:
    """dy/dt."""
    return np.asarray(f(t, y)) * 1.0


@plainly
def state_at(steps: Steps, t: Any) -> Any:
    """y at one time."""
    return steps.at(np.array([t]))[0]


@plainly
def part_of(steps: Steps, low: Any, high: Any) -> Steps:
    """The same solution between two times."""
    sign = 1.0 if high >= low else -1.0
    inside = (sign * steps.times > sign * low) & (sign * steps.times < sign * high)
    return Steps(np.concatenate([[low], steps.times[inside], [high]]), steps.at, True, 4)


class Pieces:
    """A solution that is put together, with derivatives.

    Attributes:
        f: the right-hand side.
        found: the switches.
        parts: the pieces, solutions of their own.
    """

    def __init__(
        self,
        piece: Any,
        problem: Any,
        f: Any,
        t0: Any,
        y0: Any,
        start: Any,
        steps: Steps,
        found: list[Switch],
    ) -> None:
        function, options = problem
        self.function, self.f, self.found, self.parts = function, f, found, []
        self.sign = 1.0 if steps.times[-1] >= t0 else -1.0
        for switch in found:
            low = np.array([switch.low])
            part = piece(
                function,
                f,
                t0,
                y0,
                start,
                np.array([t0, switch.low]),
                options,
                part_of(steps, t0, switch.low),
            )
            self.parts.append(part)
            part.only_once()
            start, y = switched(function, f, carrying(state_at(steps, switch.low), part.at(low)[0]), switch)
            t0, y0 = switch.high, carrying(state_at(steps, switch.high), y)
        last = float(steps.times[-1])
        self.parts.append(
            piece(function, f, t0, y0, start, np.array([t0, last]), options, part_of(steps, t0, last))
        )

    def only_once(self) -> None:
        """Refuse higher Taylor coefficients."""
        self.parts[0].only_once()

    def at(self, times: Any) -> Any:
        """y at constant times, one row each."""
        starts = self.sign * np.array([switch.high for switch in self.found])
        places = np.searchsorted(starts, self.sign * times, side="right")
        rows = []
        for k in range(len(times)):
            rows.append(self.parts[int(places[k])].at(times[k : k + 1])[0])
        return np.stack(rows)


def switched(function: Any, f: Any, y: Any, switch: Switch) -> tuple[Any, Any]:
    """(the time of a switch, the state then), near the last time before."""
    t = switch.low
    g = gap_of(comparisons(f, (y,), t), switch.reason)
    if not is_active(g) or not switch.is_jump:
        return switch.high, y
    slope, rate = slope_along(function, f, t, y, switch.reason)
    return each_solved(switch.high, g, slope), y + rate * (each_solved(t, g, slope) - t)


@outside
def slope_along(order: int, function: Any, f: Any, t: Any, y: Any, reason: Any) -> tuple[Any, Any]:
    """(the slope of what is compared along the solution, dy/dt), constants of this level."""
    rate = np.asarray(f(t, y)) * 1.0
    slope = derivatives.along(lambda s: gap_of(comparisons(f, (y + s * rate,), t + s), reason), 0.0, 1.0)
    if not np.isfinite(slope) or slope == 0:
        refuse(
            function, f"its right-hand side branches at t = {t:.6g} where a border is touched, not crossed"
        )
    return slope, rate


def pieces(
    piece: Any, problem: Any, f: Any, t0: Any, y0: Any, start: Any, solve: Any, closely: bool
) -> Pieces | None:
    """The solution in pieces; None where f has no switch that moves; closely: switches count that are bends, too."""
    if not compares(f, t0, y0):
        return None
    steps, function = solve(), problem[0]
    found = moving(function, f, steps, switches_of(function, f, steps, is_nested(), closely))
    if found and is_nested():
        refuse(
            function,
            f"its right-hand side branches at t = {found[0].low:.6g}, of which only first derivatives are known",
        )
    return Pieces(piece, problem, f, t0, y0, start, steps, found) if found else None
