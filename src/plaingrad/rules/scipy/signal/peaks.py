"""`peak_widths`: which samples lie at a height is constant; where between two of them it is reached has a derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.signal import _peak_finding_utils

from plaingrad.rules.scipy.compiled import definitions
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, outside

defined = definitions(_peak_finding_utils)


@outside
def samples(order: int, x: Any, heights: Any, left: Any, right: Any) -> tuple[Any, ...]:
    """On both sides (the last sample at or below the height, the one next to it, whether there is a way between them)."""
    below, above = np.floor(left).astype(int), np.ceil(right).astype(int)
    last = len(x) - 1
    next_left, next_right = np.minimum(below + 1, last), np.maximum(above - 1, 0)
    crosses = (x[below] <= heights) & (heights < x[next_left])
    crosses_too = (x[above] <= heights) & (heights < x[next_right])
    return below, next_left, crosses, above, next_right, crosses_too


def way(x: Any, heights: Any, start: Any, end: Any, crosses: Any) -> Any:
    """Which part of the way from one sample to the next leads up to the height."""
    rise = np.where(crosses, x[end] - x[start], 1.0)
    return np.where(crosses, (heights - x[start]) / rise, 0.0)


@defined("_peak_widths")
def peak_widths(x, peaks, rel_height, prominences, left_bases, right_bases):
    """(widths, heights, where they begin, where they end)."""
    found = called(_peak_finding_utils._peak_widths, ((x, peaks, rel_height, prominences, left_bases, right_bases), {}))
    if not (is_active(x) or is_active(prominences) or is_active(rel_height)):
        return found
    heights = carrying(fresh(found[1]), x[peaks] - prominences * rel_height)
    below, next_left, crosses, above, next_right, crosses_too = samples(x, found[1], found[2], found[3])
    left = carrying(fresh(found[2]), below + way(x, heights, below, next_left, crosses))
    right = carrying(fresh(found[3]), above - way(x, heights, above, next_right, crosses_too))
    return carrying(fresh(found[0]), right - left), heights, left, right


for rule in Rules():
    keep(rule)
