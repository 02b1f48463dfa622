"""The functions of `statistics` that compute with exact fractions inside; the others are ordinary Python."""

from __future__ import annotations

import math
import statistics
from typing import Any

from plaingrad.define import composed, rrule, scalar
from plaingrad.rules.elementwise import over
from plaingrad.rules.pushforwards import both_forms, total, varies
from plaingrad.tangents import NoTangent

ROOT_TAU = math.sqrt(2 * math.pi)


def _mean(*items: Any) -> Any:
    return statistics.mean(items)


def _float_mean(*items: Any) -> Any:
    return statistics._mean_stdev(items)[0]


def mean_rrule(mean: Any) -> Any:
    """z = sum of x / n."""

    def rule(*items: Any) -> Any:
        def mean_pullback(z_bar: Any) -> Any:
            return (z_bar / len(items),) * len(items)

        return mean(*items), mean_pullback

    return rule


def mean_frule(mean: Any) -> Any:
    """z_dot = sum of x_dot / n."""

    def rule(*items: Any) -> Any:
        def mean_pushforward(dots: Any) -> Any:
            z_dot = total(*dots)
            return z_dot / len(items) if varies(z_dot) else z_dot

        return mean(*items), mean_pushforward

    return rule


for _f in (_mean, _float_mean):
    rrule(_f)(mean_rrule(_f))
    both_forms(_f, affine=True)(mean_frule(_f))


@composed(statistics.mean)
def mean(data: Any) -> Any:
    """The arithmetic mean."""
    return _mean(*data)


def _harmonic_mean(weights: Any, *items: Any) -> Any:
    return statistics.harmonic_mean(items) if weights is None else statistics.harmonic_mean(items, weights)


@rrule(_harmonic_mean)
def harmonic_mean_rrule(weights: Any, *items: Any) -> Any:
    """z sum of (w / x) = sum of w."""
    z = _harmonic_mean(weights, *items)

    def harmonic_mean_pullback(z_bar: Any) -> Any:
        if weights is None:
            return NoTangent, *[z_bar * over(over(z, x) * over(z, x), len(items)) for x in items]
        total = sum(weights)
        weights_bar = [z_bar * (z - over(z * z, x)) / total for x in items]
        return weights_bar, *[z_bar * over(z, x) * over(z, x) * w / total for x, w in zip(items, weights)]

    return z, harmonic_mean_pullback


@both_forms(_harmonic_mean)
def harmonic_mean_frule(weights: Any, *items: Any) -> Any:
    """z**2 sum of (w x_dot / x**2) / sum of w, and what the weights add."""
    z = _harmonic_mean(weights, *items)

    def harmonic_mean_pushforward(dots: Any) -> Any:
        w = [1] * len(items) if weights is None else weights
        whole = sum(w)
        shares = [over(z, x) * over(z, x) * weight / whole for x, weight in zip(items, w)]
        parts = [share * x_dot for share, x_dot in zip(shares, dots[1:]) if varies(x_dot)]
        if varies(dots[0]):
            parts += [(z - over(z * z, x)) / whole * w_dot for x, w_dot in zip(items, dots[0]) if varies(w_dot)]
        return total(*parts)

    return z, harmonic_mean_pushforward


@composed(statistics.harmonic_mean)
def harmonic_mean(data: Any, weights: Any = None) -> Any:
    """The reciprocal of the mean of the reciprocals."""
    return _harmonic_mean(weights if weights is None else list(weights), *data)


# The variances: z = sum of (x - c)**2 / d, where c is given or is the mean, which as a minimum has no slope -----


def _float_deviation(items: Any) -> Any:
    return statistics._mean_stdev(items)[1]


SPREADS = {f.__name__: f for f in (statistics.variance, statistics.pvariance, statistics.stdev, statistics.pstdev, _float_deviation)}


def _spread(name: str, c: Any, *items: Any) -> Any:
    return SPREADS[name](items) if c is None else SPREADS[name](items, c)


@rrule(_spread)
def spread_rrule(name: str, c: Any, *items: Any) -> Any:
    """A variance, or its root: 0 at the kink where all items are equal."""
    z = _spread(name, c, *items)

    def spread_pullback(z_bar: Any) -> Any:
        centre = _mean(*items) if c is None else c
        d = len(items) if name.startswith("p") else len(items) - 1
        if name.endswith("variance"):
            items_bar = [z_bar * (2 * (x - centre) / d) for x in items]
        elif z:
            items_bar = [z_bar * ((x - centre) / (d * z)) for x in items]
        else:
            items_bar = [0 * z_bar for _ in items]
        return NoTangent, NoTangent if c is None else -sum(items_bar), *items_bar

    return z, spread_pullback


@both_forms(_spread)
def spread_frule(name: str, c: Any, *items: Any) -> Any:
    """A variance, or its root: 0 at the kink where all items are equal."""
    z = _spread(name, c, *items)

    def spread_pushforward(dots: Any) -> Any:
        centre = _mean(*items) if c is None else c
        d = len(items) if name.startswith("p") else len(items) - 1
        moved = [(x - centre, x_dot) for x, x_dot in zip(items, dots[2:]) if varies(x_dot)]
        if varies(dots[1]):
            moved.append((sum(items) - centre * len(items), -dots[1]))
        if name.endswith("variance"):
            return total(*[2 * away / d * x_dot for away, x_dot in moved])
        return total(*[away / (d * z) * x_dot if z else 0 * x_dot for away, x_dot in moved])

    return z, spread_pushforward


@composed(statistics.variance)
def variance(data: Any, xbar: Any = None) -> Any:
    """The variance of a sample."""
    return _spread("variance", xbar, *data)


@composed(statistics.pvariance)
def pvariance(data: Any, mu: Any = None) -> Any:
    """The variance of a population."""
    return _spread("pvariance", mu, *data)


@composed(statistics.stdev)
def stdev(data: Any, xbar: Any = None) -> Any:
    """The standard deviation of a sample."""
    return _spread("stdev", xbar, *data)


@composed(statistics.pstdev)
def pstdev(data: Any, mu: Any = None) -> Any:
    """The standard deviation of a population."""
    return _spread("pstdev", mu, *data)


# Normal distributions ---------------------------------------------------------------------------------------


@composed(statistics._mean_stdev)
def mean_stdev(data: Any) -> Any:
    """What `NormalDist.from_samples` is made of."""
    items = list(data)
    return _float_mean(*items), _spread("_float_deviation", None, *items)


scalar("_normal_dist_inv_cdf", ((0.2, 0.5, 0.9), (-1.2, 0.4, 2.0), (0.7, 1.0, 2.5)),
       lambda m, p, mu, sigma, z: sigma * ROOT_TAU * math.exp(0.5 * ((z - mu) / sigma) ** 2), 1,
       lambda m, p, mu, sigma, z: (z - mu) / sigma, functions=(statistics._normal_dist_inv_cdf,))
