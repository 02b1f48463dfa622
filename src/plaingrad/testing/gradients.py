"""`check_grads`: a gradient against finite differences, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaingrad.api import vjp
from plaingrad.api.leaves import active_positions, check_callable, described
from plaingrad.copying import deep_copy
from plaingrad.diagnosis import explain
from plaingrad.errors import ArgumentError
from plaingrad.testing.case import as_real
from plaingrad.testing.differences import central, directions_in, refined, unit_direction
from plaingrad.testing.structures import flat, leaf_inner, leaves_of, random_like, tangent_like
from plaingrad.testing.suspects import suspects

STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # relative to the size of the entry
ENTRIES = 64  # arguments with more numbers are compared along random directions as well as at some entries


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    *,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    steps: Sequence[float] = STEPS,
    seed: int = 0,
) -> None:
    """Compare the pullback of `f` at `args` with central differences at several steps.

    For a random cotangent y_bar and each entry of each argument, <y_bar, df/d(entry)> by differences (extrapolated
    from two steps, after Richardson) must agree with the pullback at one step at least. `f` may return any structure
    of real or complex numbers and arrays; it is called on deep copies of `args`.

    Args:
        f: the function.
        args: its positional arguments.
        rtol: relative tolerance.
        atol: absolute tolerance.
        steps: steps of the differences, relative to the size of the entry.
        seed: of the random cotangent.

    Raises:
        AssertionError: they disagree; the message has a line for each entry that does.

    Examples:
        >>> import math
        >>> check_grads(lambda x, y: math.sin(x) * y, (0.5, 2.0))
    """
    check_callable(f, "check_grads")
    if not isinstance(args, (tuple, list)):
        raise ArgumentError(
            f"check_grads takes the arguments of the function in a tuple, not {described(args)}.\n"
            "  To go on: check_grads(f, (x,)).\n  See docs: errors#argument"
        )
    args = tuple([as_real(x) for x in args])
    random = np.random.default_rng(seed)
    y, pullback = vjp(f, *deep_copy(args))
    y_bar = tangent_like(y, random_like(random))
    places = places_in(args, pullback(y_bar))
    if len(places) > ENTRIES:
        chosen = random.choice(len(places), ENTRIES, replace=False)
        places = [places[k] for k in sorted(chosen.tolist())]
    wrong = {
        place.path: (place.of, line)
        for place in places
        if (line := disagreement(f, args, place, y_bar, steps, rtol, atol))
    }
    if wrong:
        name = getattr(f, "__qualname__", repr(f))
        lines = [
            f"the gradient of {name} disagrees with finite differences:",
            *[line for _, line in wrong.values()],
        ]
        raise AssertionError("\n".join([*lines, *causes(f, args, y, {of for of, _ in wrong.values()})]))


def causes(f: Callable[..., Any], args: tuple[Any, ...], y: Any, wrong: set[str]) -> list[str]:
    """Lines that say which operation a wrong gradient comes from, as far as that can be seen."""
    positions = active_positions(args)
    found = [f"  {text}" for text in suspects(f, args, positions, wrong)]
    if any(np.asarray(leaf.x).dtype in (np.float32, np.complex64) for leaf in leaves_of(y, "")):
        found.append(
            "  The result is in single precision, whose differences are right to some 1e-3: rtol=1e-2."
        )
    event = explain(f, *deep_copy(args)).first
    if event is not None:
        found.append(f"  {event.place}: {event.sentence()}")
    return found


@dataclass(frozen=True)
class Place:
    """One real direction at one entry of the arguments."""

    path: str
    x: Any  # the entry
    of: str  # the path of the number or array that it is in
    ways: list[Any]  # the direction, as `differences` takes it
    expected: float  # the derivative along it, by the pullback


def places_in(args: tuple[Any, ...], bars: Sequence[Any]) -> list[Place]:
    """Every entry of the arguments that has a gradient; a complex one in both its directions."""
    leaves = [leaf for n, x in enumerate(args) for leaf in leaves_of(x, f"argument {n}")]
    flats = [bar for x, x_bar in zip(args, bars, strict=True) for bar in flat(x_bar, x)]
    found = []
    for k, (leaf, bar) in enumerate(zip(leaves, flats, strict=True)):
        if bar is None:
            continue
        for at, way in directions_in(leaf.x):
            path, ways = unit_direction(leaves, k, at, way)
            found.append(
                Place(path, leaf.x if at is None else leaf.x[at], leaf.path, ways, leaf_inner(bar, ways[k]))
            )
    return found


def disagreement(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    place: Place,
    y_bar: Any,
    steps: Sequence[float],
    rtol: float,
    atol: float,
) -> str | None:
    """A line that says how the pullback and differences disagree at `place`; None if they agree at one step."""
    ours = place.expected
    found = [difference_at(f, args, place, y_bar, step) for step in steps]
    error = min((abs(ours - d) for d in found if d == d), default=float("nan"))
    scale = max(abs(ours), min((abs(d) for d in found if d == d), default=0.0))
    if error <= atol + rtol * scale or (ours != ours and all(d != d for d in found)):
        return None
    best = min(found, key=lambda d: abs(ours - d) if d == d else float("inf"))
    return f"  {place.path}: the pullback gives {ours:.10g}, differences {best:.10g}"


def difference_at(
    f: Callable[..., Any], args: tuple[Any, ...], place: Place, y_bar: Any, step: float
) -> float:
    """<y_bar, df> along `place` by central differences at `step` and half of it, extrapolated."""
    size = max(abs(place.x), 1e-3) if place.x == place.x and abs(place.x) < 1e300 else 1.0
    if isinstance(place.x, (np.float32, np.complex64)):
        step = max(step, 1e-3)
    h = step * float(size)
    try:
        coarse, fine = (central(f, args, place.ways, y_bar, part)[0] for part in (h, h / 2))
    except (ArithmeticError, ValueError):
        return float("nan")
    return refined(coarse, fine, 2.0)
