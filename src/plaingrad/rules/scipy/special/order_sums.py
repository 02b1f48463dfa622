"""Derivatives of Bessel functions of real arguments in their order by sums in whole arrays, where these have all digits.

Power series (DLMF 10.2, 10.25) carry a truncated Taylor series in the order along, so that all derivatives come at once.
That of J cancels for large arguments: it is summed at a higher order, from where the recurrence, also of Taylor series,
goes down, which is stable. The integral of K over the real axis is a sum of trapezoids, whose error is exponentially small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

LARGEST = 40.0  # arguments of power series
MOST_TERMS = 200
LOSS = 12.0  # the series of J is summed at orders from x^2 / 12: it loses three digits there at most
KEEPING = 300.0  # the series of dI/dv loses the digits of this at most
DEEP = 42.0
LEAST_ORDER = -0.5
LEAST_ARGUMENT = 1e-200  # of K; nodes reach to where cosh(t) is its inverse
SORTED = 2048


def start_of_series(n: int, v: Any, x: Any, scale: Any) -> list[Any]:
    """Taylor coefficients 0 to n in the order of exp(scale) (x/2)^v / Gamma(v + 1)."""
    logarithm = [np.log(x / 2) - sc.digamma(v + 1)] if n else []
    logarithm += [-sc.polygamma(k, v + 1) / math.factorial(k + 1) for k in range(1, n)]
    coefficients = [np.exp(v * np.log(x / 2) - sc.gammaln(v + 1) + scale)]
    for k in range(1, n + 1):  # of the exponential of a series
        coefficients.append(sum((j + 1) * logarithm[j] * coefficients[k - 1 - j] for j in range(k)) / k)
    return coefficients


def power_series(n: int, v: Any, x: Any, sign: float, scale: Any = 0.0) -> list[Any]:
    """Taylor coefficients 0 to n in the order of J (sign -1) or I (sign 1), times exp(scale)."""
    term = start_of_series(n, v, x, scale)
    total = [part.copy() for part in term]
    q = sign * x * x / 4
    for k in range(1, MOST_TERMS):
        rise = v + k
        factor = q / k
        before: Any = None
        for j in range(n + 1):  # divided by the series rise + e
            part = term[j] * factor if before is None else term[j] * factor - before
            before = term[j] = part / rise
            total[j] += before
        if k % 4 == 0 and all(np.all(np.abs(a) <= 1e-17 * np.abs(b)) for a, b in zip(term, total)):
            break
    return total


def series_holds_j(v: Any, x: Any) -> Any:
    """Where `summed_j` has all digits."""
    return (x <= LARGEST) & (v >= LEAST_ORDER)


def summed_j(n: int, v: Any, x: Any) -> Any:
    """The n-th derivative of J in v: the series at an order that is high enough, and the recurrence down from there."""
    steps = np.maximum(np.ceil(x * x / LOSS - 1 - v), 0.0).astype(int)
    order = np.argsort(-steps, kind="stable")
    steps, v, x = steps[order], v[order], x[order]
    top = v + steps
    lower = power_series(n, top, x, -1.0)
    moving = int(np.count_nonzero(steps))
    if moving:
        lower = descended(n, lower, steps, top[:moving], x[:moving])
    z = np.empty(v.size)
    z[order] = lower[n] * math.factorial(n)
    return z


def descended(n: int, lower: list[Any], steps: Any, top: Any, x: Any) -> list[Any]:
    """The Taylor coefficients `lower` of J at orders `top`, taken down by `steps`, which do not grow along the array."""
    upper = power_series(n, top + 1.0, x, -1.0)
    twice = 2.0 / x
    starts = np.searchsorted(-steps, -np.arange(1, int(steps[0]) + 1), side="right")
    mu = top.copy()
    for left in range(int(steps[0]), 0, -1):  # how many steps those have to go that have gone the fewest
        count = int(starts[left - 1])
        a = twice[:count] * mu[:count]
        for j in range(n, -1, -1):
            found = a * lower[j][:count] - upper[j][:count]
            if j:
                found += twice[:count] * lower[j - 1][:count]
            upper[j][:count] = lower[j][:count]
            lower[j][:count] = found
        mu[:count] -= 1.0
    return lower


def series_holds_i(v: Any, x: Any) -> Any:
    """Where `summed_ie` has all digits: for large x the derivative is v / x of the function, and 0 for v = 0."""
    return (x <= LARGEST) & (v >= LEAST_ORDER) & ((x <= 2.0) | (x * np.log(x) <= KEEPING * v))


def summed_ie(n: int, v: Any, x: Any) -> Any:
    """exp(-x) times the n-th derivative of I in v."""
    return power_series(n, v, x, 1.0, -x)[n] * math.factorial(n)


def trapezoids_hold(v: Any, x: Any) -> Any:
    """Where `trapezoids_ke` has an end."""
    return x >= LEAST_ARGUMENT


def trapezoids_ke(n: int, v: Any, x: Any) -> Any:
    """exp(x) times the n-th derivative of K: half the integral of t^n exp(v t - x (cosh(t) - 1)) over all t."""
    size = np.abs(v)
    end = np.arccosh(1 + DEEP / x)
    for _ in range(4):
        end = np.arccosh(1 + (DEEP + size * end) / x)
    count = np.ceil(end * 4 * (1 + 0.35 * np.sqrt(np.hypot(v, x))))
    z = np.empty(v.size)
    for part in np.array_split(np.argsort(count), -(-v.size // SORTED)):  # those that need as many nodes together
        z[part] = trapezoids(n, size[part], x[part], end[part], int(np.max(count[part])))
    return z if n % 2 == 0 else np.copysign(z, v)


def trapezoids(n: int, v: Any, x: Any, end: Any, count: int) -> Any:
    """The sum over `count` nodes from 0 to `end` and as many below 0, v >= 0."""
    h = end / count
    rise, grown = np.exp(h), np.ones_like(x)
    fall, fallen = np.exp(-2 * v * h), np.ones_like(x)
    odd = -1.0 if n % 2 else 1.0
    total = np.full(x.shape, 1.0 if n == 0 else 0.0)
    for k in range(1, count + 1):
        grown *= rise
        fallen *= fall
        t = k * h
        total += t**n * (1 + odd * fallen) * np.exp(v * t - x * (0.5 * (grown + 1 / grown) - 1))
    return total * h / 2
