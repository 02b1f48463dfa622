"""Probabilities of boxes under normal distributions of several variables, and their derivatives.

The slope in an end is the density there times the probability of the rest given it; in an off-diagonal entry of the
covariance it is that of two ends (Plackett, Biometrika 41, 1954); in a diagonal entry what scaling leaves over. So a
derivative costs probabilities with one and two variables fewer, which are as exact as SciPy's.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from scipy import special, stats
from scipy.stats import _multivariate

from plaingrad.rules.pushforwards import dot_of, varies
from plaingrad.rules.scipy.compiled import each, enter
from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active, outside, refuse
from plaingrad.rules.scipy.stats.names import RULES
from plaingrad.tangents import Thunk, ZeroTangent

MOST_POINTS = 1_000_000
CDF_OPTIONS = signature(stats.multivariate_normal.cdf).parameters


@outside
def probability(order: int, low: Any, high: Any, cov: Any) -> Any:
    """SciPy's probability, a constant."""
    options = {"rng": np.random.default_rng(0)} if "rng" in CDF_OPTIONS else {}
    mean = np.zeros(len(low))
    return stats.multivariate_normal.cdf(high, mean, cov, allow_singular=True, maxpts=MOST_POINTS, lower_limit=low, **options)


def box(low: Any, high: Any, cov: Any) -> Any:
    """The probability that a normal vector of mean zero is between `low` and `high`, one point."""
    n = len(low)
    if n == 0:
        return 1.0
    if n == 1:
        s = np.sqrt(cov[0, 0])
        sign = -1.0 if fresh(low[0]) > 0 else 1.0  # differences of small numbers
        return sign * (below(high[0], s, sign) - below(low[0], s, sign))
    return several(low, high, cov)


def below(x: Any, s: Any, sign: float) -> Any:
    """The probability of less than x, or more where sign is -1; infinite ends do not depend on anything."""
    end = fresh(x)
    return special.ndtr(sign * x / s) if np.isfinite(end) else float(sign * end > 0)


def several(low: Any, high: Any, cov: Any) -> Any:
    """The same of two or more variables."""
    return fresh(probability(low, high, cov))


def given_ends(low: Any, high: Any, cov: Any, places: list[int], ends: Any) -> Any:
    """The density of the variables at `places` where they are `ends`, times the probability of the others' box."""
    rest = [k for k in range(len(low)) if k not in places]
    part = cov[np.ix_(places, places)]
    gain = np.linalg.solve(part, np.concatenate([ends[:, None], cov[np.ix_(places, rest)]], axis=1))
    density = np.exp(-(ends @ gain[:, 0]) / 2) / np.sqrt((2 * np.pi) ** len(places) * np.linalg.det(part))
    if not rest:
        return density
    across = cov[np.ix_(rest, places)]
    mean = across @ gain[:, 0]
    left = cov[np.ix_(rest, rest)] - across @ gain[:, 1:]
    return density * box(low[rest] - mean, high[rest] - mean, (left + left.T) / 2)


def end_slope(low: Any, high: Any, cov: Any, i: int, ends: Any) -> Any:
    """That for one variable at its end; 0 at infinity."""
    return given_ends(low, high, cov, [i], ends[i : i + 1]) if np.isfinite(fresh(ends[i])) else 0.0


def slopes(low: Any, high: Any, cov: Any) -> tuple[Any, Any, Any]:
    """The derivatives in low, high and cov (entry by entry, symmetric)."""
    n = len(low)
    down = [-end_slope(low, high, cov, i, low) for i in range(n)]
    up = [end_slope(low, high, cov, i, high) for i in range(n)]
    in_cov = [[0.0 for _ in range(n)] for _ in range(n)]
    for i in range(n):
        for j in range(i):
            z = 0.0
            for p, q, sign in ((low, low, 1.0), (low, high, -1.0), (high, low, -1.0), (high, high, 1.0)):
                if np.isfinite(fresh(p[i])) and np.isfinite(fresh(q[j])):
                    z = z + sign * given_ends(low, high, cov, [i, j], np.stack([p[i], q[j]]))
            in_cov[i][j] = in_cov[j][i] = z / 2
    for i in range(n):  # scaling variable i, its ends, and its row and column changes nothing
        z = sum([in_cov[i][j] * cov[i, j] * 2 for j in range(n) if j != i], 0.0)
        for end, slope in ((low, down), (high, up)):
            if np.isfinite(fresh(end[i])):
                z = z + slope[i] * end[i]
        in_cov[i][i] = -z / (2 * cov[i, i])
    return np.array(down), np.array(up), np.array(in_cov)


def several_rrule(low: Any, high: Any, cov: Any) -> Any:
    z = several(low, high, cov)

    def several_pullback(z_bar: Any) -> tuple[Any, ...]:
        down, up, in_cov = slopes(low, high, cov)
        return Thunk(lambda: z_bar * down), Thunk(lambda: z_bar * up), Thunk(lambda: z_bar * in_cov)

    return z, several_pullback


def several_frule(low: Any, high: Any, cov: Any) -> Any:
    z = several(low, high, cov)

    def several_pushforward(dots: Any) -> Any:
        parts = []
        for n, (slope, x) in enumerate(zip(slopes(low, high, cov), (low, high, cov), strict=True)):
            if varies(dot_of(dots, n)):
                parts.append(each(lambda part, slope=slope: (slope * part).sum(), dot_of(dots, n), x))
        return sum(parts[1:], parts[0]) if parts else ZeroTangent

    return z, several_pushforward


enter(several, several_rrule, several_frule)


@RULES.defined(_multivariate.multivariate_normal_gen._cdf)
def normal_cdf(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Of many points, one after the other; ends that are exchanged change the sign."""
    value = fresh(np.asarray(called(function, call)))
    x, mean, cov, low = given["x"], given["mean"], given["cov"], given["lower_limit"]
    if not is_active((x, mean, cov, low)):
        return value if value.ndim else value[()]
    cov = np.asarray(getattr(cov, "covariance", cov))
    if value.size and np.min(np.linalg.eigvalsh(fresh(cov))) <= 1e-12 * np.max(np.abs(fresh(cov))):
        refuse(stats.multivariate_normal.cdf, "its covariance is singular")
    x = np.asarray(x) - mean
    low = np.full(x.shape, -np.inf) if low is None else np.asarray(low) - mean
    x, low = np.broadcast_arrays(x, low)
    parts = [one_point(low[index], x[index], cov) for index in np.ndindex(x.shape[:-1])]
    z = np.reshape(np.stack(parts), value.shape) if parts else value
    return carrying(value, z) if value.ndim else carrying(value[()], z[()])


def one_point(low: Any, high: Any, cov: Any) -> Any:
    """The signed probability of one box."""
    swapped = fresh(high) < fresh(low)
    sign = (-1.0) ** int(swapped.sum())
    return box(np.where(swapped, high, low), np.where(swapped, low, high), cov) * sign
