"""Slopes of the incomplete gamma and beta functions in their parameters: series and continued fractions, in blocks.

Below the mean and a little beyond it P(a, x) is summed as its power series (DLMF 8.7.1), farther out Q(a, x) is a
continued fraction (DLMF 8.9.2); I_x(a, b) below the mean is the continued fraction of Didonato and Morris (ACM TOMS 18,
1992), beyond it that of the mirrored distribution. Each is differentiated step by step. All terms have one sign there,
so that the slope has the digits of the function; what has lost some, or would take many steps, is left to the
integrals of `incomplete`. Arrays are treated in blocks that stay in the cache, with temporaries used again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rules.scipy.special.gamma import psi_gap

BLOCK = 4096
MOST = 1000.0  # parameters; larger ones would take hundreds of steps
LEAST = 1e-8
STRIDE = 8  # terms of a series between two looks whether it has converged
MOST_TERMS = 500
SMALL = 1e-18
KEPT = 1e-3  # of the sum of sizes must be left
FRACTION_STEPS = 40  # enough from x = a + 2 sqrt(a) + 2 on
LEVELS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192)  # steps of the other
A_FEW = 500


def in_blocks(slope: Callable[..., Any], *args: Any) -> Any:
    """`slope` of flat arrays, a block at a time."""
    z = np.empty(args[0].size)
    for k in range(0, z.size, BLOCK):
        z[k : k + BLOCK] = slope(*[y[k : k + BLOCK] for y in args])
    return z


# The gamma distribution ---------------------------------------------------------------------------------------


def gamma_series(a: Any, x: Any) -> tuple[Any, Any]:
    """S and -dS/da of S = 1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)); nan where it has not converged."""
    total, slope = np.full(a.size, np.nan), np.full(a.size, np.nan)
    place = None
    k, term, part, h = a + 1.0, np.ones_like(a), np.ones_like(a), np.zeros_like(a)
    sloping, r = np.zeros_like(a), np.empty_like(a)
    for _ in range(0, MOST_TERMS, STRIDE):
        for _ in range(STRIDE):
            np.reciprocal(k, r)
            h += r
            r *= x
            term *= r
            part += term
            np.multiply(term, h, r)
            sloping += r
            k += 1.0
        done = term * k < SMALL * part * (k - x)
        if done.all():
            break
        if place is None and np.count_nonzero(done) < a.size // 4:
            continue
        place = np.arange(a.size) if place is None else place
        total[place[done]], slope[place[done]] = part[done], sloping[done]
        rest = ~done
        place, x, k, term, part, h, sloping = [y[rest] for y in (place, x, k, term, part, h, sloping)]
        r = np.empty_like(k)
    else:
        return total, slope
    if place is None:
        return part, sloping
    total[place], slope[place] = part, sloping
    return total, slope


def gamma_fraction(a: Any, x: Any) -> tuple[Any, Any]:
    """F and dF/da of F = 1 / (x + 1 - a + (a - 1) / (x + 3 - a + 2 (a - 2) / (x + 5 - a + ...)))."""
    n = FRACTION_STEPS
    b = x - a
    b += 2.0 * n + 1.0
    f, f_dot = b.copy(), np.full(a.size, -1.0)
    r, q = np.empty_like(a), np.empty_like(a)
    for k in range(n, 0, -1):  # f = b + k (a - k) / f
        b -= 2.0
        np.reciprocal(f, r)
        np.subtract(a, k, q)
        q *= r
        f_dot *= q
        np.subtract(1.0, f_dot, f_dot)
        f_dot *= r
        f_dot *= k
        f_dot -= 1.0
        q *= k
        np.add(b, q, f)
    r = 1.0 / f
    return r, -f_dot * r * r


def gamma_slope(factor: Callable[..., Any], a: Any, x: Any) -> Any:
    """The derivative of P(a, x) in a for flat arrays of positive numbers; nan where it is left to others.

    Args:
        factor: of (a, x), x^a exp(-x) / gamma(a).
    """
    z = np.full(a.size, np.nan)
    middle = a + 2.0 * np.sqrt(a) + 2.0
    known = (a >= LEAST) & (a <= MOST)
    below = known & (x <= middle)
    for part, slope in ((below, gamma_slope_below), (known ^ below, gamma_slope_beyond)):
        if part.all():
            return in_blocks(partial(slope, factor), a, x)
        if part.any():
            z[part] = in_blocks(partial(slope, factor), a[part], x[part])
    return z


def gamma_slope_below(factor: Callable[..., Any], a: Any, x: Any) -> Any:
    """By the series, whose terms have one sign up to the mean."""
    log, mean = np.log(x), sc.psi(a + 1.0)
    total, sloping = gamma_series(a, x)
    z = (log - mean) * total
    z -= sloping
    size = (np.abs(log) + np.abs(mean)) * total + sloping
    z[np.abs(z) < KEPT * size] = np.nan
    z *= factor(a, x)
    z /= a
    return z


def gamma_slope_beyond(factor: Callable[..., Any], a: Any, x: Any) -> Any:
    """By the continued fraction of what is beyond x."""
    total, sloping = gamma_fraction(a, x)
    z = sc.psi(a)
    z -= np.log(x)
    z *= total
    z -= sloping
    z *= factor(a, x)
    return z


# The beta distribution ----------------------------------------------------------------------------------------


def beta_slope(density: Callable[..., Any], in_first: bool, a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) in a or in b for flat arrays, x below the mean; nan where it is left to others.

    Args:
        density: of (a, b, x), that of the beta distribution.
    """
    z = np.full(a.size, np.nan)
    root = np.sqrt(1.0 - x)
    steps = 20.0 / np.log((1.0 + root) / (1.0 - root))  # by how fast the tail of the fraction converges
    small = np.minimum(a, b)
    steps = np.where(small < 1.0, steps, np.minimum(steps, 40.0)) + 2.0 * np.sqrt(small) + 2.0
    known = (small >= LEAST) & (np.maximum(a, b) <= MOST) & (steps <= LEVELS[-1])
    level = np.where(known, np.searchsorted(LEVELS, steps), -1)
    highest = level.max(initial=-1)
    waiting = np.zeros(0, int)  # a few numbers take more steps than they must, together with others
    for k, n in enumerate(LEVELS[: highest + 1]):
        place = np.concatenate([waiting, np.flatnonzero(level == k)])
        waiting = place if place.size < A_FEW and k < highest else place[:0]
        if place.size > waiting.size:
            of_block = partial(beta_slope_of_block, density, n, in_first)
            z[place] = in_blocks(of_block, a[place], b[place], x[place])
    return z


def beta_slope_of_block(density: Callable[..., Any], n: int, in_first: bool, a: Any, b: Any, x: Any) -> Any:
    """The same where `n` steps are enough."""
    total, slope = beta_fraction(n, in_first, a, b, x)
    above, below = sc.psi(a + b), sc.psi(a + 1.0 if in_first else b)
    log = np.log(x) if in_first else np.log1p(-x)
    slope /= total
    size = np.abs(log) + np.abs(above) + np.abs(below) + np.abs(slope)
    gap = below - above
    large = (b if not in_first else a) >= 20.0
    if large.any():
        first, second = (a[large] + 1.0, b[large] - 1.0) if in_first else (b[large], a[large])
        gap[large] = psi_gap(first, second)
        size[large] = np.abs(log[large]) + np.abs(gap[large]) + np.abs(slope[large])
    z = log - gap
    z -= slope
    z[np.abs(z) < KEPT * size] = np.nan
    z *= density(a, b, x)
    z *= x * (1.0 - x)
    z /= total
    z /= a
    return z


def beta_fraction(n: int, in_first: bool, a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """F, and its derivative in a or in b, with I_x(a, b) = x^a (1 - x)^b / (a beta(a, b) F).

    a F is b_0 + a_1 / (b_1 + a_2 / (b_2 + ...)), with s = x / (a + 2k - 1):
    a_k = (a + k - 1) (a + b + k - 1) k (b - k) s^2,
    b_k = k + k (b - k) s + (a + k) (a - (a + b) x + 1 + k (2 - x)) / (a + 2k + 1).
    """
    fall = 2.0 - x
    rest = 1.0 - x if in_first else -x
    excess = a - (a + b) * x + 1.0
    f: Any = n * np.sqrt(1.0 - x)  # about what the tail tends to
    f_dot: Any = np.zeros_like(a)
    for k in range(n, 0, -1):  # f is b_k - k - k (b - k) s + a_(k + 1) / (b_(k + 1) + ...)
        s = np.reciprocal(a + (2.0 * k - 1.0))
        y = x * s
        y *= k
        part = (b - k) * y
        f += part
        f += k
        f_dot += -part * s if in_first else y
        r = np.reciprocal(f)
        f_dot *= r
        part *= x
        part *= r
        if in_first:
            f_dot += s
            f_dot *= -part
        else:
            y *= x
            y *= r
            f_dot = y - part * f_dot
        c = a + (k - 1.0)
        g = c * s if k > 1 else s
        c += b
        f_dot *= c
        f_dot += part
        f_dot += rest
        part *= c
        part += excess
        part += (k - 1.0) * fall
        f_dot *= g
        if in_first:
            f_dot += part * (s * (1.0 - g) if k > 1 else -s * s)
        f = part
        f *= g
    return f, f_dot
