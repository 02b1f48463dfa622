"""Forward against reverse mode, chunks against one tangent, and second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.api import jvp, vjp
from plaingrad.engine.forward.push import push
from plaingrad.testing.case import Case
from plaingrad.testing.differences import along
from plaingrad.testing.fitting import exactly, near
from plaingrad.testing.structures import copied, flat, inner, leaves_of, magnitude, random_like, tangent_like
from plaingrad.testing.words import short


def look_at_modes(case: Case, y_bar: Any, bars: tuple[Any, ...], chunks: bool) -> None:
    """<y_bar, y_dot> = <x_bar, x_dot>; types of y_dot; chunks."""
    dots = tangent_like(case.active, random_like(case.random))
    with case.part("forward mode"), np.errstate(all="ignore"):
        y_dot = case.pushed(dots)
        misfits = exactly(y_dot, case.y, "the result", optional=True)
        case.report_all("tangent type", misfits)
        if misfits:
            return
        there, back = inner(y_bar, y_dot, case.y), inner(bars, dots, case.active)
        scale = magnitude(y_bar, y_dot, case.y) + magnitude(bars, dots, case.active)
        if not abs(there - back) <= 10 * case.exact * scale and (there == there or back == back):
            case.report(
                "modes",
                f"forward and reverse mode disagree: <y_bar, y_dot> = {there:.10g}, <x_bar, x_dot> = {back:.10g}"
                + guilty(case, y_bar, bars, dots),
            )
        if not chunks:
            return
        others = tangent_like(case.active, random_like(case.random))
        call, active, _ = case.bound(case.positions)
        ts, us = iter(flat(dots, case.active)), iter(flat(others, case.active))
        stacked = tangent_like(case.active, lambda _: np.stack([np.asarray(next(ts)), np.asarray(next(us))]))
        _, y_dots = push(call, active, stacked, {}, chunk=2)
        looped = [flat(y_dot, case.y), flat(case.pushed(others), case.y)]
        for k, (t, leaf) in enumerate(
            zip(flat(y_dots, case.y), leaves_of(case.y, "the result"), strict=True)
        ):
            for c in range(2):
                if not near(None if t is None else t[c], looped[c][k], case.exact):
                    case.report(
                        "chunk",
                        f"{leaf.path}: tangent {c} of a chunk is {short(None if t is None else t[c])}, alone "
                        f"{short(looped[c][k])}",
                    )


def guilty(case: Case, y_bar: Any, bars: tuple[Any, ...], dots: Any) -> str:
    """Which arguments the modes disagree about."""
    names = []
    for k, n in enumerate(case.positions):
        there = inner(y_bar, case.pushed((dots[k],), (n,)), case.y)
        back = inner(bars[k], dots[k], case.active[k])
        scale = magnitude(bars[k], dots[k], case.active[k]) + abs(there)
        if not abs(there - back) <= 10 * case.exact * scale:
            names.append(f"argument {n} ({there:.10g} forward, {back:.10g} in reverse)")
    return "; " + ", ".join(names) if names else ""


def look_at_second_order(case: Case, y_bar: Any, forward: bool, differences: bool) -> None:
    """The derivative of the gradient, in both modes, against differences of the gradient."""
    if not flat(y_bar, case.y) or not any(np.size(leaf.x) for leaf in leaves_of(case.active, "")):
        return
    x = case.active

    ways = tangent_like(x, random_like(case.random))
    ours = forwards = None
    weights: Any = None
    with case.part("second order"), np.errstate(all="ignore"):
        bars, pullback = vjp(case.gradient(y_bar), *[copied(part) for part in x])
        weights = tangent_like(bars, random_like(case.random))
        gradient = pullback(copied(weights))
        ours = inner(gradient, ways, x)
        scale = max(magnitude(gradient, ways, x), magnitude(weights, bars, bars))
    if weights is None:
        return
    if forward:
        with case.part("second order"), np.errstate(all="ignore"):
            _, bars_dot = jvp(case.gradient(y_bar), tuple(copied(part) for part in x), ways)
            forwards = inner(weights, bars_dot, bars)
            scale = max(scale, magnitude(weights, bars_dot, bars))
            if not abs(ours - forwards) <= 100 * case.exact * scale and (
                ours == ours or forwards == forwards
            ):
                case.report(
                    "second order",
                    f"forward over reverse gives {forwards:.10g}, reverse over reverse {ours:.10g}",
                )
        with case.part("second order"), np.errstate(all="ignore"):
            look_at_pushed(case, y_bar, ours, weights, ways, scale)
    if not differences or case.unit > 1e-10:
        return
    with case.part("second order"), np.errstate(all="ignore"):
        rtol = max(1e-5, case.rtol)
        found = along(
            lambda *given: case.gradient(copied(y_bar))(*given),
            x,
            flat(ways, x),
            weights,
            case.unit,
            expected=ours,
            within=0.01 * (case.atol + rtol * scale),
        )
        tolerance = case.atol + rtol * max(scale, abs(found.value)) + 4 * found.noise
        if abs(ours - found.value) <= tolerance + 10 * found.error or ours != ours:
            return
        if found.value == found.value:
            case.report(
                "second order",
                f"reverse over reverse gives {ours:.10g}, differences of the gradient {found.value:.10g}",
            )


def look_at_pushed(case: Case, y_bar: Any, ours: float, weights: list[Any], ways: Any, scale: float) -> None:
    """Reverse over forward: the gradient of <y_bar, f'(x) weights>, along `ways`."""
    x = case.active
    parts = iter(weights)
    along_weights = tangent_like(x, lambda leaf: next(parts))
    call, _, _ = case.bound(case.positions)

    def pushed(*given: Any) -> Any:
        return flat(jvp(call, given, along_weights)[1], case.y)

    _, pullback = vjp(pushed, *[copied(part) for part in x])
    backwards = inner(pullback(flat(copied(y_bar), case.y)), ways, x)
    if not abs(ours - backwards) <= 100 * case.exact * scale and (ours == ours or backwards == backwards):
        case.report(
            "second order", f"reverse over forward gives {backwards:.10g}, reverse over reverse {ours:.10g}"
        )
