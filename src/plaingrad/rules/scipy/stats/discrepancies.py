"""Discrepancies of points in the unit cube (`scipy.stats.qmc`), and the slope by repeated medians, as NumPy would say them.

Zhou, Fang and Ning, Journal of Complexity 29 (2013), equations 9, 10 and 18; Warnock (1972) for the star discrepancy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import _qmc, _stats_pythran

from plaingrad.rules.scipy.compiled import definitions
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, without_rule

try:
    from scipy.stats import _correlation
except ImportError:  # before SciPy 1.15
    _correlation = None
defined = definitions(_qmc)


def pairs(x: Any) -> Any:
    """Each point with each, coordinate by coordinate."""
    return x[:, None, :], x[None, :, :]


def sums(singles: Any, doubles: Any, count: int) -> tuple[Any, Any]:
    """The sums of products over the coordinates, for points and for pairs of points, by their number."""
    return np.prod(singles, -1).sum() / count, np.prod(doubles, -1).sum() / count**2


def centred(x: Any, count: int) -> Any:
    off = np.abs(x - 0.5)
    (a, b), (x, y) = pairs(off), pairs(x)
    single, double = sums(1 + 0.5 * off - 0.5 * off * off, 1 + 0.5 * (a + b - np.abs(x - y)), count)
    return (13 / 12) ** off.shape[1] - 2 * single + double


def wrapped(x: Any, count: int) -> Any:
    a, b = pairs(x)
    apart = np.abs(a - b)
    return -((4 / 3) ** x.shape[1]) + np.prod(1.5 - apart * (1 - apart), -1).sum() / count**2


def mixed(x: Any, count: int) -> Any:
    off = np.abs(x - 0.5)
    (a, b), (x, y) = pairs(off), pairs(x)
    apart = np.abs(x - y)
    doubles = 15 / 8 - 0.25 * (a + b) - 0.75 * apart + 0.5 * apart * apart
    single, double = sums(5 / 3 - 0.25 * off - 0.25 * off * off, doubles, count)
    return (19 / 12) ** off.shape[1] - 2 * single + double


def star(x: Any, count: int) -> Any:
    single, double = sums(1 - x * x, 1 - np.maximum(*pairs(x)), count)
    return np.sqrt(3.0 ** -x.shape[1] - 2.0 ** (1 - x.shape[1]) * single + double)


def enter(name: str, formula: Any) -> None:
    """Enter one of the compiled functions."""

    def discrepancy(sample: Any, iterative: Any, workers: Any) -> Any:
        value = called(getattr(_qmc, name), ((sample, iterative, workers), {}))
        return carrying(fresh(value), formula(sample, len(sample) + bool(iterative)))

    defined(name)(discrepancy)


enter("_cy_wrapper_centered_discrepancy", centred)
enter("_cy_wrapper_wrap_around_discrepancy", wrapped)
enter("_cy_wrapper_mixture_discrepancy", mixed)
enter("_cy_wrapper_l2_star_discrepancy", star)


@defined("_cy_wrapper_update_discrepancy")
def update_discrepancy(x_new, sample_view, initial_disc):
    """What one more point adds to the centred discrepancy of n points, of which n + 1 were counted."""
    value = called(_qmc._cy_wrapper_update_discrepancy, ((x_new, sample_view, initial_disc), {}))
    n, off, others = len(sample_view) + 1, np.abs(x_new - 0.5), np.abs(sample_view - 0.5)
    with_others = np.prod(1 + 0.5 * (off + others - np.abs(x_new - sample_view)), -1).sum()
    added = -2 / n * np.prod(1 + 0.5 * off - 0.5 * off * off) + (2 * with_others + np.prod(1 + off)) / n**2
    return carrying(fresh(value), initial_disc + added)


def repeated_medians(y: Any, x: Any, method: str) -> tuple[Any, Any]:
    """(slope, intercept): the median of the median slope of the lines through each point (Siegel, Biometrika 69, 1982)."""
    (x_there, x_here), (y_there, y_here) = [(z[..., :, None], z[..., None, :]) for z in (x, y)]
    run, rise = x_there - x_here, y_there - y_here
    parts = run != 0
    run = np.where(parts, run, 1.0)
    middle = np.median(np.nanmedian(np.where(parts, rise / run, np.nan), -1), -1)
    if method == "separate":
        at_zero = np.where(parts, (x_there * y_here - y_there * x_here) / run, np.nan)
        return middle, np.median(np.nanmedian(at_zero, -1), -1)
    return middle, np.median(y - middle[..., None] * x, -1)


@definitions(_stats_pythran)("siegelslopes")
def siegelslopes(y, x, method):
    value = called(_stats_pythran.siegelslopes, ((y, x, method), {}))
    middle, start = repeated_medians(y, x, method)
    return carrying(fresh(value[0]), middle), carrying(fresh(value[1]), start)


@definitions(_correlation)("_robust_slopes")
def robust_slopes(y, *, x, alpha=None, method, pfun):
    """What SciPy 1.18 has instead, for many lines at once."""
    options = {"x": x, "alpha": alpha, "method": method, "pfun": pfun}
    if pfun != "siegelslopes" or type(y) is not np.ndarray:
        return without_rule(_correlation._robust_slopes)(y, **options)
    value = called(_correlation._robust_slopes, ((y,), options))
    x = np.arange(y.shape[-1], dtype=float) if x is None else np.asarray(x)
    middle, start = repeated_medians(*np.broadcast_arrays(y * 1.0, x * 1.0), method)
    return type(value)(carrying(fresh(value[0]), middle), carrying(fresh(value[1]), start))


for rule in Rules():
    keep(rule)
