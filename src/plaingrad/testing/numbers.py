"""The numbers of a gradient against differences."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from plaingrad.testing.case import Case
from plaingrad.testing.differences import (
    Estimate,
    along,
    as_step,
    by_mpmath,
    complex_step,
    directions_in,
    size_of,
    unit_direction,
    widened,
)
from plaingrad.testing.fitting import wide_array
from plaingrad.testing.structures import copied, flat, leaf_inner, leaves_of, precision_of

FEW = (
    4  # numbers in an argument that are moved one at a time; more are moved together, along random directions
)
NAMED = 48  # entries that are looked at one by one to name the wrong ones


def look_at_differences(case: Case, y_bar: Any, bars: tuple[Any, ...]) -> None:
    """Each argument, along unit or random directions."""
    if not flat(y_bar, case.y):
        return
    leaves = [
        (n, leaf)
        for n, x in zip(case.positions, case.active, strict=True)
        for leaf in leaves_of(x, f"argument {n}")
    ]
    flats = flat(bars, case.active)
    for n in case.positions:
        mine = [k for k, (m, _) in enumerate(leaves) if m == n]
        count = sum(np.size(leaves[k][1].x) for k in mine)
        entries: list[Any] = []
        if count <= FEW:
            entries = [(k, at, way) for k in mine for at, way in directions_in(leaves[k][1].x)]
            chosen = [sized_direction(leaves, *entry) for entry in entries]
        else:
            chosen = [(f"argument {n}", random_direction(case, leaves, mine), 1.0) for _ in range(2)]
        wrong = [wrong_along(case, *direction, flats, y_bar) for direction in chosen]
        lines = [words for words in wrong if words]
        if lines and count > FEW:
            picked = entries = [(k, at, way) for k in mine for at, way in directions_in(leaves[k][1].x)]
            if len(entries) > NAMED:
                at = case.random.choice(len(entries), NAMED, replace=False)
                picked = [entries[k] for k in sorted(at.tolist())]
            named = [wrong_along(case, *sized_direction(leaves, *entry), flats, y_bar) for entry in picked]
            lines = [words for words in named if words] or lines
        case.report_all("differences", lines)


def sized_direction(leaves: list[Any], k: int, at: Any, way: complex) -> tuple[str, list[Any], float]:
    """(the path of one entry, the direction that moves it alone by its own size, that size)."""
    size = size_at(leaves[k][1].x, at)
    return *unit_direction([leaf for _, leaf in leaves], k, at, way, size), size


def random_direction(case: Case, leaves: list[Any], mine: list[int]) -> list[Any]:
    """A direction that moves every entry of some leaves, each by about its own size."""

    ways: list[Any] = [None] * len(leaves)
    for k in mine:
        x = leaves[k][1].x
        if isinstance(x, np.ndarray):
            t = case.random.uniform(0.3, 1.0, x.shape) * case.random.choice((-1.0, 1.0), x.shape)
            if x.dtype.kind == "c":
                t = t * np.exp(1j * case.random.uniform(0, 2 * math.pi, x.shape))
            ways[k] = np.asarray(t * size_of(x))
        else:
            t = float(case.random.uniform(0.3, 1.0))
            if isinstance(x, (complex, np.complexfloating)):
                t = t * complex(np.exp(1j * case.random.uniform(0, 2 * math.pi)))
            ways[k] = as_step(t * size_of(x), x)
    return ways


def wrong_along(
    case: Case, path: str, ways: list[Any], size: float, flats: list[Any], y_bar: Any
) -> str | None:
    """What is wrong with the gradient along one direction, in words; the numbers are those of a step of one."""
    with np.errstate(all="ignore"):
        ours = sum((leaf_inner(bar, d) for bar, d in zip(flats, ways, strict=True)), 0.0)
    low = case.unit > 1e-10
    args, rtol, unit = case.active, case.rtol, case.unit
    if low:  # differences of the same function in double precision, if it is made for that
        rtol = max(rtol, 200 * unit)
        with contextlib.suppress(Exception), np.errstate(all="ignore"):
            args = widened(case.active)
            unit = precision_of(args, case.plain(*copied(args)))
    found = along(case.plain, args, ways, y_bar, unit)
    if low and not math.isfinite(found.value):
        args, unit = case.active, case.unit
        found = along(case.plain, args, ways, y_bar, unit)
    terms = 0.0
    if low:
        terms = sum(
            (
                float(np.sum(np.abs(wide_array(bar)) * np.abs(wide_array(d))))
                for bar, d in zip(flats, ways, strict=True)
                if bar is not None and d is not None
            ),
            0.0,
        )
    if agrees(case, ours, found, rtol, terms):
        return None
    if not math.isfinite(ours) and not math.isfinite(found.value):
        return None
    found = along(case.plain, args, ways, y_bar, unit, thorough=True)
    scale = max(abs(ours), abs(found.value)) if math.isfinite(found.value) else abs(ours)
    if found.error + found.noise > 1e-3 * rtol * scale or found.value == 0:  # differences may not see it
        others = [complex_step(case.plain, args, ways, y_bar)]
        others.append(by_mpmath(case.f, args, ways, y_bar) if not case.kwargs else None)
        known = [other for other in others if other is not None]
        if any(abs(ours - other) <= max(rtol, 1e3 * case.unit) * abs(other) for other in known):
            return None
        if abs(ours - found.value) <= 10 * (found.error + found.noise) <= 1e-3 * scale:
            return None  # as far as they can tell
        if abs(ours - found.value) <= 4 * found.error <= 1e-5 * found.seen:
            return None  # nearly zero, beside what the function is nearby
        doubt = f" (known to {(found.error + found.noise) / size:.1g})"
        more = "".join(f", otherwise {other / size:.10g}" for other in known)
        return f"{path}: the gradient gives {ours / size:.10g}, differences {found.value / size:.10g}{doubt}{more}"
    return f"{path}: the gradient gives {ours / size:.10g}, differences {found.value / size:.10g}"


def agrees(case: Case, ours: float, found: Estimate, rtol: float, terms: float) -> bool:
    """Whether a derivative is that of the differences, up to what they can tell, and its own terms."""
    scale = max(abs(ours), abs(found.value), terms)
    return abs(ours - found.value) <= case.atol + rtol * scale + 4 * found.noise


def size_at(x: Any, at: Any) -> float:
    """The scale of one entry."""

    return float(size_of(x) if at is None else size_of(x)[at])
