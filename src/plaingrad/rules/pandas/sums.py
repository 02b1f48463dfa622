"""Sums and means over windows and groups: linear in the numbers that are not missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.compiled import each
from plaingrad.tangents import NoTangent


def over_windows(function: Any, is_mean: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Both halves of the rule of a sum, or mean, of values[start[n]:end[n]] for every n."""

    def shares(values: Any, start: Any, end: Any, z: Any) -> Any:
        """What one number counts in each window: nothing where the result is missing."""
        counts = differences(~np.isnan(values), start, end) if is_mean else 1
        return np.where(np.isnan(z), 0.0, 1.0 / np.maximum(counts, 1))

    def differences(x: Any, start: Any, end: Any) -> Any:
        sums = np.concatenate([[0], np.cumsum(x)])
        return sums[np.maximum(end, start)] - sums[start]

    def windows_rrule(values: Any, start: Any, end: Any, minp: Any) -> Any:
        z = function(values, start, end, minp)
        share = shares(values, start, end, z)

        def windows_pullback(z_bar: Any) -> Any:
            steps = np.zeros(len(values) + 1, z_bar.dtype)
            v = np.where(share > 0.0, z_bar, 0.0) * share
            np.add.at(steps, start, v)
            np.add.at(steps, np.maximum(end, start), -v)
            x_bar = np.where(np.isnan(values), 0.0, np.cumsum(steps)[:-1])
            return x_bar, NoTangent, NoTangent, NoTangent

        return z, windows_pullback

    def windows_frule(values: Any, start: Any, end: Any, minp: Any) -> Any:
        z = function(values, start, end, minp)
        share = shares(values, start, end, z)

        def along(x_dot: Any) -> Any:
            return differences(np.where(np.isnan(values), 0.0, x_dot), start, end) * share

        return z, lambda dots: each(along, dots[0], values)

    return windows_rrule, windows_frule


def rules() -> Iterable[Rule]:
    """Of `pandas._libs.window.aggregations`."""
    windows: Any = sys.modules.get("pandas._libs.window.aggregations")
    for name, is_mean in (("roll_sum", False), ("roll_mean", True)):
        function = getattr(windows, name, None)
        if function is not None:
            rrule, frule = over_windows(function, is_mean)
            yield Rule(function, "full", rrule, frule=frule, chunked_frule=frule, source=f"{__file__}:1")
