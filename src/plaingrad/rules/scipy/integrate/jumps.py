"""Where an integrand branches at a place that moves with the inputs: the integral is split there.

At a jump the sum over nodes has narrow panels, and an error. The two floats beside it are found by bisection. There the
integrand runs as code that tells what it compares: the first comparison that comes out differently, between a and b say,
gives the jump as the root of a - b, which is differentiated like any root. A jump that no comparison explains is refused,
unless the user has split the interval there. Second derivatives need kinks, too: then it is seen at every node what is
compared.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from plaingrad.rule_data import Rule
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import (
    each_solved,
    helpers,
    is_active,
    mover,
    number,
    outside,
    plainly,
    refuse,
    source_of,
    stepped,
)
from plaingrad.rules.scipy.integrate.apart import move_apart
from plaingrad.rules.scipy.integrate.following import comparisons
from plaingrad.rules.scipy.integrate.nodes import NODES, way_between
from plaingrad.rules.scipy.integrate.told import (
    Reason,
    deciding,
    equal_beside,
    gap_of,
    is_unknown,
    pattern,
    why,
)

SMALL = 1e-7  # a jump that is smaller, beside the largest value, is none
LARGE = 1e2  # values beyond it, beside those at nodes, are of a pole
NOISE = 1e-5  # the same for one that no comparison explains: integrals of integrals are as rough as this
ROUGH = (
    1e-9  # of the polynomial through the values at a panel's nodes: coefficients that may come from a jump
)
COEFFICIENTS = np.linalg.inv(
    np.polynomial.legendre.legvander(2 * NODES - 1, NODES.size - 1)
)  # of values at nodes
PANELS = 12  # on which an integrand is looked at that is not that of `quad`
STEEP = 1.3  # how much more a function changes where it may jump than on one of the sides
HALVED = (
    0.8  # by how much, at the least, differences shrink from one halving to the next where there is no jump
)
FLAT = 0.05  # of the least jump: what says so little is no part of it
ALIKE = 3  # halvings that say so, one after the other
LAST = COEFFICIENTS[-4:]
ENDS = np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), NODES.size - 1) @ COEFFICIENTS


# -- where it jumps ----------------------------------------------------------------------------------------------------


def at_level() -> bool:
    """Whether a derivative is being taken here."""
    return False


helpers(Rule(at_level, "outside", definition=lambda order: True, source=source_of(at_level)))


@outside
def is_nested(order: int) -> bool:
    """Whether this derivative is differentiated in turn."""
    return at_level() or order > 1


@plainly
def branches(f: Any, args: Any, panels: Any, way: Any, closely: bool) -> list[tuple[float, float, Reason]]:
    """(x, the next float, which comparison is why) where f jumps; closely: wherever it branches."""
    places = {}
    for (low, high), is_large in jumps_in(f, args, panels, way, not closely):
        reason = why(comparisons(f, args, low), comparisons(f, args, high))
        if reason is not None or is_large:
            places[low] = high, reason
    if closely:
        for low, high in flips(f, args, np.concatenate([panel.x for panel in panels])):
            places[low] = high, why(comparisons(f, args, low), comparisons(f, args, high))
    found = [(low, *places[low]) for low in sorted(places)]
    return [here for n, here in enumerate(found) if not n or not is_near(found[n - 1][0], here[0])]


def is_near(a: float, b: float) -> bool:
    """Whether rounding decides between two places."""
    return abs(b - a) <= 16.0 * float(np.spacing(max(abs(a), abs(b))))


def jumps_in(
    f: Any, args: Any, panels: Any, way: Any, compares: bool
) -> list[tuple[tuple[float, float], bool]]:
    """(adjacent floats between which f jumps, whether by more than noise): between nodes of panels on which it is no
    polynomial, and between panels; compares: also where f only compares differently, for jumps beside steep slopes."""
    of = functools.partial(value_at, f, args)
    scale = float(np.max(np.abs(np.concatenate([p.heights for p in panels])), initial=0.0))
    scale = scale if 0.0 < scale < np.inf else 1.0
    ends = [*(p.low for p in panels), panels[-1].high]
    with np.errstate(all="ignore"):
        edges = [[(x, of(x)) for x in beside(end, way)] for end in ends]
    found = set()
    for pair in edges[1:-1]:
        found |= narrowed_steps(sorted(pair), of, SMALL * scale)
    for k, p in enumerate(panels):
        points = [*zip(p.x.tolist(), p.heights.tolist(), strict=True), *edges[k][-1:], *edges[k + 1][:1]]
        if is_rough(p.heights, edges[k][-1:], edges[k + 1][:1], scale):
            found |= narrowed_steps(sorted(points), of, SMALL * scale)
            compares = compares and bool(comparisons(f, args, float(p.x[0])))
            found |= set(steps_at_flips(f, args, np.array([x for x, _ in points]), of)) if compares else set()
    return [(pair, is_jump(of, *pair, scale, NOISE)) for pair in found if is_jump(of, *pair, scale, SMALL)]


def beside(t: float, way: Any) -> list[float]:
    """Two floats, one on each side of the place at t, in the order of t; at an end the one that is inside; none at
    infinity."""
    x = float(way.points(np.array([t]))[0][0])
    if not math.isfinite(x):
        return []
    gap = 2.0 * float(np.spacing(abs(x)))
    sides = [x + gap, x - gap] if way.kind == "up" else [x - gap, x + gap]
    return sides[1:] if t == 0.0 else sides[:1] if t == 1.0 else sides


def is_rough(heights: Any, before: Any, after: Any, scale: float) -> bool:
    """Whether values at the nodes of a panel, and at its ends, are not those of a polynomial of low degree."""
    if heights.size != LAST.shape[1]:  # it is not finite at some
        return True
    if not np.max(np.abs(LAST @ heights)) <= ROUGH * scale:
        return True
    expected = ENDS @ heights
    sides = [abs(side[1] - z) for found, z in zip((before, after), expected, strict=True) for side in found]
    return bool(sides) and not max(sides) <= SMALL * scale


def narrowed_steps(points: list[Any], of: Any, least: float) -> set[tuple[float, float]]:
    """Adjacent floats where f differs most, for the three largest steps between points (x, f(x))."""
    steps = [(abs(b[1] - a[1]), a, b) for a, b in zip(points[:-1], points[1:], strict=True)]
    steps = sorted([step for step in steps if step[0] > least], key=lambda step: -step[0])
    pairs = [step_within(a, b, of, least) for _, a, b in steps[:3]]
    return {pair for pair in pairs if pair is not None}


def step_within(a: Any, b: Any, of: Any, least: float) -> tuple[float, float] | None:
    """Adjacent floats where f differs most, between two points (x, f(x)); None where it is seen before that it does not
    jump: what a halving leaves of the difference beyond a half of it is that of a jump, and of the curvature, which
    goes down to a quarter each time."""
    (low, below), (high, above) = a, b
    smooth, left = 0, math.inf
    while (middle := low + (high - low) / 2) not in (low, high):
        m, before = of(middle), above - below
        if distance(below, m) >= distance(m, above):
            high, above = middle, m
        else:
            low, below = middle, m
        left, last = abs(2.0 * (above - below) - before), left
        smooth = smooth + 1 if left <= FLAT * least and left <= last else 0
        if smooth == ALIKE:
            return None
    return low, high


def value_at(f: Any, args: Any, x: float) -> float:
    """f(x), or nan."""
    try:
        return float(number(np.asarray(f(x, *args))))
    except Exception:  # beside a singular place
        return math.nan


def distance(a: float, b: float) -> float:
    """How far values are apart."""
    return abs(b - a)


def narrowed(low: float, high: float, a: Any, b: Any, of: Any, apart: Any) -> tuple[float, float]:
    """Adjacent floats between `low` and `high`, where `of` is a and b, such that it differs there; the first of two kinds."""
    while (middle := low + (high - low) / 2) not in (low, high):
        m = of(middle)
        if apart(a, m) >= apart(m, b):
            high, b = middle, m
        else:
            low, a = middle, m
    return low, high


def is_jump(of: Any, low: float, high: float, scale: float, least: float) -> bool:
    """Whether f differs as much between adjacent floats as between floats further apart: a root's slope, or what grows
    without bound, does not."""
    a, b, far = of(low), of(high), 1000.0 * (high - low)
    step = abs(b - a)
    if not least * scale < step <= LARGE * scale or max(abs(a), abs(b)) > LARGE * scale:
        return False
    return bool(step > 0.3 * abs(of(high + far) - of(low - far)))


def flips(f: Any, args: Any, x: Any) -> list[tuple[float, float]]:
    """Adjacent floats between which f compares differently."""
    of = lambda x: pattern(comparisons(f, args, x))
    places = sorted(x.tolist())
    seen = [of(place) for place in places]
    pairs = zip(places[:-1], places[1:], seen[:-1], seen[1:], strict=True)
    unlike = lambda a, b: a != b
    return [narrowed(low, high, a, b, of, unlike) for low, high, a, b in pairs if a != b]


def steps_at_flips(f: Any, args: Any, x: Any, of: Any) -> list[tuple[float, float]]:
    """Adjacent floats between which f changes most, for each place between nodes where it compares differently: at the
    very place what it compares may be equal, and the step is on either side."""
    found = []
    for low, high in flips(f, args, x):
        low, high = low - 4.0 * float(np.spacing(abs(low))), high + 4.0 * float(np.spacing(abs(high)))
        found.append(narrowed(low, high, of(low), of(high), of, distance))
    return found


# -- whether it moves --------------------------------------------------------------------------------------------------


def moving(
    function: Any, f: Any, args: Any, found: list[tuple[float, float, Reason]], points: Any
) -> list[Any]:
    """The places that move with the inputs, which have their derivatives."""
    marks = []
    for x, above, reason in found:
        if reason is None:
            if not is_split_at(x, points) and may_move(f, args, x, above):
                refuse(function, unknown(x))
            continue
        place = crossing(function, f, args, x, reason)
        check_alone(function, f, args, (x, above), reason, is_active(place))
        if is_active(place):
            marks.append(place)
    return marks


def check_alone(
    function: Any, f: Any, args: Any, place: tuple[float, float], reason: Any, moves: bool
) -> None:
    """Refuse a place where f branches for two reasons of which one moves and the other not, or otherwise."""
    others = others_at(f, args, *place, reason)
    if not others:
        return
    told = comparisons(f, args, place[0])
    if (moves or is_active([gap_of(told, other) for other in others])) and move_apart(
        f, args, place[0], (), [reason, *others]
    ):
        refuse(function, f"its integrand branches at {place[0]:.6g} for two reasons, which move apart")


@plainly
def others_at(f: Any, args: Any, low: float, high: float, reason: Any) -> list[Any]:
    """What else f compares that is equal there."""
    return equal_beside(lambda x: comparisons(f, args, x), low, high, reason)


def may_move(f: Any, args: Any, low: float, high: float) -> bool:
    """Whether what decides why f branches may depend on the inputs."""
    reasons = deciding(comparisons(f, args, low), comparisons(f, args, high), SMALL)
    return reasons is None or is_active(reasons)


@plainly
def is_split_at(x: Any, points: Any) -> bool:
    """Whether the user has split the interval at x."""
    return any(abs(x - p) <= 1e-9 * (1.0 + abs(x)) for p in (() if points is None else points))


@mover
def unknown(x: Any) -> str:
    """Why a jump at x is refused."""
    return (
        f"its integrand jumps at {float(x):.6g}, and whether that place moves with the inputs is not known; "
        "split the interval there by `points`"
    )


def crossing(function: Any, f: Any, args: Any, x: float, reason: Any) -> Any:
    """The place x where the two numbers that a comparison of f compares are equal, with its derivative."""
    x = crossing_outside(function, f, args, x, reason)

    def gap(x: Any) -> Any:
        return gap_of(comparisons(f, args, x), reason)

    r = gap(x)
    if not is_active(r):
        return x
    return stepped(each_solved, gap, x, r, slope_at(function, gap, x))


@outside
def crossing_outside(order: int, function: Any, f: Any, args: Any, x: float, reason: Any) -> Any:
    """The same one level out, and a constant at this level."""
    return crossing(function, f, args, x, reason) if at_level() else x * 1.0


@outside
def slope_at(order: int, function: Any, gap: Any, x: Any) -> Any:
    """The slope of what is compared, which must not be zero."""
    slope = derivatives.along(gap, x, 1.0)
    if not np.isfinite(slope) or slope == 0.0:
        refuse(function, unknown(x))
    return slope


# -- integrands of other functions -------------------------------------------------------------------------------------


def moving_jumps(function: Any, f: Any, args: Any, low: Any, high: Any, points: Any = None) -> list[Any]:
    """The places between two constant ends where f, of any values, jumps, if they move with the inputs."""
    found = jumps_at_nodes(f, args, low, high)
    return moving(function, f, args, found, points) if found else []


@plainly
def jumps_at_nodes(f: Any, args: Any, low: float, high: float) -> list[tuple[float, float, Reason]]:
    """(x, the next float, which comparison is why) where f jumps, as far as nodes tell; none where it cannot branch."""
    low, high = min(low, high), max(low, high)
    way = way_between(low, high, None)
    t = np.sort(((np.arange(PANELS)[:, None] + NODES) / PANELS).ravel())
    x = way.points(t)[0]
    x = x[np.isfinite(x) & (x > low) & (x < high)]
    told = comparisons(f, args, float(x[x.size // 2])) if x.size else []
    if not told:
        return []
    value = lambda place: np.asarray(f(place, *args))
    with np.errstate(all="ignore"):
        scale = float(np.max(np.abs(value(float(x[x.size // 2]))), initial=0.0)) or 1.0
        pairs = [
            (a - 4.0 * float(np.spacing(abs(a))), b + 4.0 * float(np.spacing(abs(b))))
            for a, b in flips(f, args, x)
        ]
        steps = [farthest(value(a), value(b)) for a, b in pairs]
        jumps = [pair for pair, step in zip(pairs, steps, strict=True) if step > SMALL * scale]
        if is_unknown(told):
            jumps = sorted(
                {
                    *jumps,
                    *steps_between(x.tolist(), [value(place) for place in x.tolist()], value, SMALL * scale),
                }
            )
    found = [(a, b, why(comparisons(f, args, a), comparisons(f, args, b))) for a, b in jumps]
    return [
        here for n, here in enumerate(found) if not n or here[0] - found[n - 1][1] > 4.0 * (here[1] - here[0])
    ]


def farthest(a: Any, b: Any) -> float:
    """How far two values of any shape are apart; that they are not finite counts, too."""
    if np.shape(a) != np.shape(b):
        return math.inf
    gap = np.abs(np.subtract(b, a))
    return float(np.max(np.where(np.isfinite(gap), gap, np.isfinite(a) ^ np.isfinite(b)), initial=0.0))


def steps_between(places: list[float], values: list[Any], of: Any, least: float) -> list[tuple[float, float]]:
    """Floats side by side between which a function jumps, by more than `least`, found where values at places change by
    more than beside: halved until the difference shrinks with the distance, as it does where there is no jump."""
    gaps = np.array([farthest(a, b) for a, b in zip(values[:-1], values[1:], strict=True)])
    lengths = np.abs(np.diff(places))
    slopes = gaps / np.where(lengths > 0, lengths, np.inf)
    found = []
    for k in np.flatnonzero(gaps > least).tolist():
        beside = [slopes[j] for j in (k - 2, k - 1, k + 1, k + 2) if 0 <= j < len(slopes)]
        if slopes[k] >= STEEP * max(min(beside, default=0.0), 1e-300) or len(slopes) < 3:
            pair = stepped_to(places[k], places[k + 1], values[k], values[k + 1], of)
            found += [pair] if pair is not None else []
    return found


def stepped_to(low: float, high: float, a: Any, b: Any, of: Any) -> tuple[float, float] | None:
    """Floats side by side between which a function jumps; None if it does not."""
    height = farthest(a, b)
    for k in range(1, 80):
        middle = low + (high - low) / 2
        if middle in (low, high):
            return low, high
        m = of(middle)
        if farthest(a, m) >= farthest(m, b):
            high, b = middle, m
        else:
            low, a = middle, m
        if farthest(a, b) < height * HALVED**k:
            return None
    return low, high
