"""The zeta functions of Riemann and Hurwitz, in both arguments, and generalised harmonic numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rules.scipy.forms import find, row
from plaingrad.rules.scipy.special.quadrature import kind_of
from plaingrad.rules.special import BERNOULLI

RIEMANN = find("_riemann_zeta")
AWAY = 20  # an argument is moved to the right as far, and by |s|, before the sum is replaced by an integral
MOST = 400  # steps to the right


def hurwitz(n: int, s: Any, q: Any) -> Any:
    """The sum over k >= 0 of log(q + k)^n (q + k)^-s, and its continuation to s != 1, by Euler and Maclaurin.

    That is (-1)^n times the n-th derivative of zeta(s, q) in s. For q > 0, s, or its real part, from -0.5 to 380.
    """
    kind = kind_of(s, q)
    s, q = np.broadcast_arrays(np.asarray(s, np.result_type(s, float)), np.asarray(q, float))
    good = (q > 0) & np.isfinite(s) & (np.abs(s) < MOST - AWAY) & (np.real(s) > -0.5) & (s != 1)
    s, q = np.where(good, s, 2.0), np.where(good, q, 1.0)
    total = np.zeros_like(s)
    goal = AWAY + np.abs(s)
    for _ in range(min(MOST, AWAY + 2 + int(np.max(np.abs(s), initial=0.0)))):
        near = q < goal
        log = np.log(q)
        total = total + np.where(near, log**n * np.exp(-s * log), 0.0)
        q = q + near
    log = np.log(q)
    tail: Any = 0.0
    for j in range(n + 1):  # the integral, by parts
        tail = tail + math.factorial(n) / math.factorial(j) * log**j / (s - 1) ** (n - j + 1)
    power = [0.0 * s] * n + [1.0 + 0.0 * s]  # the polynomial in log q beside q^-s, from the constant term on
    tail = tail * q + log**n / 2
    for k, b in enumerate(BERNOULLI, 1):
        for step in range(max(0, 2 * k - 3), 2 * k - 1):  # up to the derivative of order 2 k - 1
            power = differentiated(power, s + step)
        value = sum(c * log**j for j, c in enumerate(power))
        tail = tail - b / math.factorial(2 * k) * value * q ** (1 - 2 * k)
    z = total + tail * np.exp(-s * log)
    return np.where(good, z, np.nan).astype(kind)[()]


def differentiated(power: list[Any], s: Any) -> list[Any]:
    """P' - s P: the derivative of P(log q) q^-s is that times q^(-s - 1)."""
    rest = [(j + 1) * c for j, c in enumerate(power[1:])] + [0.0]
    return [a - s * c for a, c in zip(rest, power)]


row("hurwitz", ((0, 2, 1), (2.2, 1.4, 0.3), (0.7, 3.2, 1.1)), None, lambda m, n, s, q, z: -hurwitz(n + 1, s, q),
    lambda m, n, s, q, z: (n * hurwitz(n - 1, s + 1, q) if n else 0.0) - s * hurwitz(n, s + 1, q), functions=(hurwitz,))


def zeta_slope(s: Any) -> Any:
    """The derivative of Riemann's zeta function; to the left of 0 by reflection (DLMF 25.4.1)."""
    left = np.less(np.real(s), 0)
    right = -hurwitz(1, np.where(left, 2.0, s), 1.0)
    t = 1 - np.where(left, s, -1.0)
    half = np.pi / 2 * (1 - t)
    size = np.power(2 * np.pi, -t) * 2 * sc.gamma(t)
    inner = sc.zeta(t) * (np.sin(half) * (math.log(2 * math.pi) - sc.psi(t)) + np.pi / 2 * np.cos(half))
    return np.where(left, size * (inner + np.sin(half) * hurwitz(1, t, 1.0)), right)[()]


def harmonic_slope(n: Any, a: Any) -> Any:
    """The derivative of the sum of k^-a for k = 1 ... n."""
    return hurwitz(1, a, np.add(n, 1.0)) - hurwitz(1, a, 1.0)


def share_slope(j: Any, k: Any, n: Any, a: Any, z: Any) -> Any:
    """The derivative of the sum of i^-a for i = j ... k over that for i = 1 ... n."""
    part = hurwitz(1, a, np.add(k, 1.0)) - hurwitz(1, a, np.multiply(j, 1.0))
    whole = hurwitz(0, a, 1.0) - hurwitz(0, a, np.add(n, 1.0))
    return (part - z * harmonic_slope(n, a)) / whole


row("_zeta", ((2.2, 1.4, 7.3), (0.7, 3.2, 1.1)), lambda m, s, q, z: -hurwitz(1, s, q),
    lambda m, s, q, z: -s * sc.zeta(s + 1, q) if not np.iscomplexobj(s) else -s * hurwitz(0, s + 1, q))
row("_riemann_zeta", ((2.2, -1.4, 0.3),), lambda m, s, z: zeta_slope(s))
row("zetac", ((2.2, 1.4, 7.3),), lambda m, s, z: zeta_slope(s))
row("_gen_harmonic", ((3, 12), (1.4, 2.1)), None, lambda m, n, a, z: harmonic_slope(n, a))
row("_normalized_gen_harmonic", ((2, 1), (3, 5), (7, 12), (1.4, 2.1)), None, None, None,
    lambda m, j, k, n, a, z: share_slope(j, k, n, a, z))
