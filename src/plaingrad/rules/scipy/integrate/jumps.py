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
from contextvars import ContextVar
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from plaingrad import rulebook
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
from plaingrad.rules.scipy.integrate.nodes import NODES

SMALL = 1e-7  # a jump that is smaller, beside the largest value, is none
LARGE = 1e2  # values beyond it, beside those at nodes, are of a pole
NOISE = 1e-5  # the same for one that no comparison explains: integrals of integrals are as rough as this
ROUGH = 1e-9  # of the polynomial through the values at a panel's nodes: coefficients that may come from a jump
COEFFICIENTS = np.linalg.inv(np.polynomial.legendre.legvander(2 * NODES - 1, NODES.size - 1))  # of values at nodes
LAST = COEFFICIENTS[-4:]
ENDS = np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), NODES.size - 1) @ COEFFICIENTS
MOST = 2000  # comparisons of one evaluation
TOLD: ContextVar[list[Any] | None] = ContextVar("TOLD", default=None)
NUMBERS = (float, int, np.floating, np.integer)

# -- what is told ------------------------------------------------------------------------------------------------------


@mover
def compared(a: Any, b: Any) -> None:
    """Note what is compared."""
    told = TOLD.get()
    if told is not None and len(told) < MOST:
        told.append((a, b) if isinstance(a, NUMBERS) and isinstance(b, NUMBERS) else None)


@mover
def whole(u: Any, shift: float = 0.0) -> None:
    """Note u and the whole number next to it, which a function of the kind of `floor` compares it with."""
    if isinstance(u, NUMBERS) and math.isfinite(u):
        compared(u, float(round(float(u) - shift)) + shift)


def divided(a: Any, b: Any) -> None:
    """Note a / b, whose whole part is taken."""
    if is_number(a) and is_number(b) and b != 0:
        whole(a / b)


@mover
def is_number(x: Any) -> bool:
    """Whether x is one number."""
    return isinstance(x, NUMBERS)


def choosing(f: Any) -> Any:
    """`max` and the like: told of two arguments."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2:
            compared(args[0], args[1])
        return f(*args, **kwargs)

    return told


def at_zero(f: Any) -> Any:
    """`abs` and the like."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if args:
            compared(args[0], 0.0)
        return f(*args, **kwargs)

    return told


def at_whole(f: Any, shift: float = 0.0) -> Any:
    """`floor` and the like."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if args:
            whole(args[0], shift)
        return f(*args, **kwargs)

    return told


def between(f: Any) -> Any:
    """`np.clip` and the like."""

    def told(x: Any, *args: Any, **kwargs: Any) -> Any:
        for bound in (*args[:2], *kwargs.values()):
            compared(x, bound)
        return f(x, *args, **kwargs)

    return told


def dividing(f: Any) -> Any:
    """`np.fmod` and the like."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2:
            divided(args[0], args[1])
        return f(*args, **kwargs)

    return told


SWITCHES: dict[Any, Any] = {
    **{f: choosing(f) for f in (max, min, np.maximum, np.minimum, np.fmax, np.fmin)},
    **{f: choosing(f) for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)},
    **{f: at_zero(f) for f in (abs, math.fabs, np.abs, np.fabs, np.sign, np.heaviside)},
    **{f: at_whole(f) for f in (math.floor, math.ceil, math.trunc, int, np.floor, np.ceil, np.trunc)},
    **{f: at_whole(f, 0.5) for f in (round, np.rint, np.round)},
    **{f: dividing(f) for f in (math.fmod, np.fmod, np.mod, np.remainder, np.floor_divide, divmod)},
    np.clip: between(np.clip),
}


@mover
def followed(f: Any) -> Any:
    """What to call instead of f: the same, which tells what it compares."""
    return watched(f, followed_function)


@mover
def followed_function(f: Any) -> Any:
    """The same of a Python function: not of those that are not the program's."""
    told = SWITCHES.get(f)
    module = f.__module__
    is_theirs = type(module) is str and module.startswith(("plaingrad.", "numpy"))
    if told is None and not is_theirs and rulebook.find(f) is None:
        return derivatives.watched(f, CALLED)
    return f if told is None else told


@mover
def integrand(f: Any) -> Any:
    """The integrand as code that tells what it compares."""
    return derivatives.watched(f, CALLED)


@mover
def watched(f: Any, of_function: Any = integrand) -> Any:
    """f with what `of_function` makes of the Python function behind it; itself where there is none."""
    t = type(f)
    if t is FunctionType:
        return of_function(f)
    if t is MethodType:
        return MethodType(watched(f.__func__, of_function), f.__self__)
    if t is functools.partial:
        return functools.partial(watched(f.func, of_function), *f.args, **f.keywords)
    if isinstance(f, type) or t.__module__.startswith(("plaingrad.", "numpy", "scipy")):
        return SWITCHES.get(f, f) if t.__hash__ is not None else f
    call = next((vars(cls)["__call__"] for cls in t.__mro__ if "__call__" in vars(cls)), None)
    if type(call) is FunctionType:
        return MethodType(followed_function(call), f)
    return SWITCHES.get(f, f) if t.__hash__ is not None else f


@mover
def method(o: Any, name: str) -> Any:
    """An object with what is called instead of a method of o."""
    return SimpleNamespace(**{name: followed(getattr(o, name))})


CALLED = {"compared": compared, "divided": divided, "prep": followed, "method": method}


@mover
def begin() -> Any:
    """From now on it is noted what is compared."""
    return TOLD.set([])


@mover
def end(token: Any) -> list[Any]:
    """What was noted."""
    told = TOLD.get()
    TOLD.reset(token)
    return told or []


def comparisons(f: Any, args: Any, x: Any) -> list[Any]:
    """What f(x) compares."""
    token = begin()
    told = []
    try:
        watched(f)(x, *args)
    finally:
        told = end(token)
    return told


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
def branches(f: Any, args: Any, panels: Any, way: Any, closely: bool) -> list[tuple[float, int]]:
    """(x, which comparison is why) where f jumps, -1 for one that is not known; closely: wherever it branches."""
    places = {}
    for (low, high), is_large in jumps_in(f, args, panels, way):
        reason = why(f, args, low, high)
        if reason >= 0 or is_large:
            places[low] = reason
    if closely:
        for low, high in flips(f, args, np.concatenate([panel.x for panel in panels])):
            places[low] = why(f, args, low, high)
    found = sorted(places.items())
    return [here for n, here in enumerate(found) if not n or not is_near(found[n - 1][0], here[0])]


def is_near(a: float, b: float) -> bool:
    """Whether rounding decides between two places."""
    return abs(b - a) <= 16.0 * float(np.spacing(max(abs(a), abs(b))))


def jumps_in(f: Any, args: Any, panels: Any, way: Any) -> list[tuple[tuple[float, float], bool]]:
    """(adjacent floats between which f jumps, whether by more than noise): between nodes of panels on which it is no
    polynomial, and between panels."""
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
    return {narrowed(a[0], b[0], a[1], b[1], of, distance) for _, a, b in steps[:3]}


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
    """Adjacent floats between `low` and `high`, where `of` is a and b, such that it differs there."""
    while low < (middle := low + (high - low) / 2) < high:
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
    of = functools.partial(pattern, f, args)
    places = sorted(x.tolist())
    seen = [of(place) for place in places]
    pairs = zip(places[:-1], places[1:], seen[:-1], seen[1:], strict=True)
    unlike = lambda a, b: a != b
    return [narrowed(low, high, a, b, of, unlike) for low, high, a, b in pairs if a != b]


def pattern(f: Any, args: Any, x: float) -> tuple[int, ...]:
    """How all comparisons of f(x) come out."""
    return tuple([0 if pair is None else sign(*pair) for pair in comparisons(f, args, x)])


def sign(a: Any, b: Any) -> int:
    """-1, 0 or 1."""
    return int(a > b) - int(a < b)


def why(f: Any, args: Any, low: float, high: float) -> int:
    """Which comparison of f comes out differently at both, the first; -1: none."""
    below, above = comparisons(f, args, low), comparisons(f, args, high)
    for k, (a, b) in enumerate(zip(below, above, strict=False)):
        if a is not None and b is not None and sign(*a) != sign(*b):
            return k
        if (a is None) != (b is None):
            break
    return -1


# -- whether it moves --------------------------------------------------------------------------------------------------


def moving(function: Any, f: Any, args: Any, found: list[tuple[float, int]], points: Any) -> list[Any]:
    """The places that move with the inputs, which have their derivatives."""
    marks = []
    for x, k in found:
        if k < 0:
            if not is_split_at(x, points):
                refuse(function, unknown(x))
            continue
        place = crossing(function, f, args, x, k)
        if is_active(place):
            marks.append(place)
    return marks


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


def crossing(function: Any, f: Any, args: Any, x: float, k: int) -> Any:
    """The place x where the two numbers that comparison k of f compares are equal, with its derivative."""
    x = crossing_outside(function, f, args, x, k)

    def gap(x: Any) -> Any:
        a, b = comparisons(f, args, x)[k]
        return a - b

    r = gap(x)
    if not is_active(r):
        return x
    return stepped(each_solved, gap, x, r, slope_at(function, gap, x))


@outside
def crossing_outside(order: int, function: Any, f: Any, args: Any, x: float, k: int) -> Any:
    """The same one level out, and a constant at this level."""
    return crossing(function, f, args, x, k) if at_level() else x * 1.0


@outside
def slope_at(order: int, function: Any, gap: Any, x: Any) -> Any:
    """The slope of what is compared, which must not be zero."""
    slope = derivatives.along(gap, x, 1.0)
    if not np.isfinite(slope) or slope == 0.0:
        refuse(function, unknown(x))
    return slope
