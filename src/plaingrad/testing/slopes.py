"""Differences of a function of one number, to both sides: they tell a kink from a mistake."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
EPS = float(np.finfo(float).eps)
SUMMARY = {"agrees": "agree", "kink": "on a kink", "unclear": "unclear", "DISAGREES": "DISAGREE"}


@dataclass(frozen=True)
class Comparison:
    """One number's derivative beside the best central difference; `verdict` is a key of SUMMARY."""

    path: str
    ours: float
    difference: float
    verdict: str

    @property
    def error(self) -> float:
        """|ours - difference| relative to the larger of the two."""
        if self.ours == self.difference:
            return 0.0
        return abs(self.ours - self.difference) / max(abs(self.ours), abs(self.difference))


def compare(f: Callable[[float], float], x: float, ours: float, path: str, tolerance: float) -> Comparison:
    """Judge `ours` as the derivative of `f` at `x`.

    Of the central differences at several steps the best is the one that changed least from the step before
    it, not the one nearest to us. Where the differences do not settle, they cannot judge (`unclear`); where the
    slopes to the left and to the right settle on two numbers and ours is not outside them, `x` sits on a kink,
    and ours is one of the answers.
    """
    x = float(x)
    at = value_or_nan(f, x)
    sides = [slopes(f, x, at, step) for step in steps_for(x)]
    sides = [s for s in sides if all(map(math.isfinite, s))]
    if len(sides) < 2:
        return Comparison(path, ours, math.nan, "unclear")
    central = [((left + right) / 2, noise) for left, right, noise in sides]
    centre, spread, noise = settled(central)
    if not math.isfinite(ours):
        is_clear = spread <= tolerance * abs(centre) + 10 * noise
        return Comparison(path, ours, centre, "DISAGREES" if is_clear else "unclear")
    truncation = min(
        2 * spread, tolerance * max(abs(slope) for slope, _ in central)
    )  # where the derivative is zero
    allowed = tolerance * max(abs(ours), abs(centre)) + 10 * noise + truncation
    if abs(ours - centre) <= allowed:
        return Comparison(path, ours, centre, "agrees")
    left, left_spread, _ = settled([(left, noise) for left, _, noise in sides])
    right, right_spread, _ = settled([(right, noise) for _, right, noise in sides])
    gap, blur = abs(right - left), 10 * (left_spread + right_spread) + allowed
    if gap > blur and min(left, right) - blur <= ours <= max(left, right) + blur:
        return Comparison(path, ours, centre, "kink")
    return Comparison(path, ours, centre, "unclear" if spread > abs(ours - centre) / 10 else "DISAGREES")


def steps_for(x: float) -> list[float]:
    """Absolute steps, largest first: relative to max(|x|, 1), and to |x| where that is much smaller."""
    scales = [max(abs(x), 1.0)] + ([abs(x)] if 0 < abs(x) < 0.1 else [])
    return sorted({step * scale for step in STEPS for scale in scales}, reverse=True)


def slopes(f: Callable[[float], float], x: float, at: float, step: float) -> tuple[float, float, float]:
    """The slope to the left, the slope to the right, and the size of rounding noise in them."""
    above, below = x + step, x - step
    f_above, f_below = value_or_nan(f, above), value_or_nan(f, below)
    noise = EPS * max(abs(f_above), abs(f_below), abs(at)) / step
    return (at - f_below) / (x - below), (f_above - at) / (above - x), noise


def settled(estimates: list[tuple[float, float]]) -> tuple[float, float, float]:
    """The estimate that differs least from the one before it, by how much, and its noise."""
    pairs = [(abs(b - a) + noise, b, noise) for (a, _), (b, noise) in itertools.pairwise(estimates)]
    spread, value, noise = min(pairs)
    return value, spread, noise


def value_or_nan(f: Callable[[float], float], x: float) -> float:
    """f(x), or nan where it is not defined: a step may leave the domain."""
    try:
        return f(x)
    except (ArithmeticError, ValueError):
        return math.nan
