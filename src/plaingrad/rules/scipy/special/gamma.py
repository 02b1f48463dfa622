"""The gamma function and its relatives: psi, beta, binomial coefficients, the Pochhammer symbol."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.define import POSITIVE, POSITIVE_PAIR, UNIT
from plaingrad.rules.scipy.forms import none, row
from plaingrad.rules.scipy.special.quadrature import kind_of
from plaingrad.rules.special import BERNOULLI

SAMPLES = ((-2.3, -0.7, 0.4, 1.9),)
STEPS = 14  # an argument is moved to the right until its real part is as large, before it is expanded


def sinpi(x: Any) -> Any:
    """sin(pi x), the argument reduced exactly."""
    n = np.rint(np.real(x))
    return np.where(n % 2 == 0, 1.0, -1.0) * np.sin(np.pi * (x - n))


def cospi(x: Any) -> Any:
    """cos(pi x), the argument reduced exactly."""
    n = np.rint(np.real(x))
    return np.where(n % 2 == 0, 1.0, -1.0) * np.cos(np.pi * (x - n))


def rgamma_slope(x: Any, z: Any) -> Any:
    """The derivative of 1 / gamma, also where gamma has poles: by reflection, sin(pi x) gamma(1 - x) / pi."""
    left = (np.real(x) < 0.5) & (np.abs(np.imag(x)) < 1)
    y = 1 - np.where(left, x, 0.0)
    reflected = sc.gamma(y) * (cospi(x) - sinpi(x) * sc.psi(y) / np.pi)
    return np.where(left, reflected, -z * sc.psi(np.where(left, 1.0, x)))[()]


def trigamma(x: Any) -> Any:
    """The derivative of psi."""
    return polygamma(1, x)


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of psi, n >= 1, of real and complex x.

    To the right by the recurrence and the asymptotic expansion (DLMF 5.15.5, 5.15.8), to the left of 0 by reflection.
    """
    kind = kind_of(x)
    x = np.asarray(x)
    x = x.astype(np.result_type(x, float))
    left = np.real(x) < 0
    right = polygamma_right(n, np.where(left, 1 - x, x))
    if not left.any():
        return right.astype(kind)[()]
    reflected = (-1) ** n * right - np.pi * cotangent_slope(n, np.where(left, x, 0.5))
    return np.where(left, reflected, right).astype(kind)[()]


def polygamma_right(n: int, x: Any) -> Any:
    """polygamma(n, x) where the real part of x is not negative; of real x it is Hurwitz's zeta function."""
    if x.dtype.kind == "f" and n == 1:
        return trigamma_right(x)
    if x.dtype.kind == "f":
        return (-1.0) ** (n + 1) * math.factorial(n) * sc.zeta(n + 1.0, x)
    total = np.zeros_like(x)
    for _ in range(STEPS + n):
        near = np.real(x) < STEPS + n
        total += np.where(near, np.power(np.where(near, x, 1), -n - 1), 0) * math.factorial(n)
        x = x + near
    r = 1 / x
    total += math.factorial(n - 1) * r**n + math.factorial(n) / 2 * r ** (n + 1)
    for k, b in enumerate(BERNOULLI, 1):
        total += b * (math.factorial(2 * k + n - 1) / math.factorial(2 * k)) * r ** (2 * k + n)
    return -((-1.0) ** n) * total


def trigamma_right(x: Any) -> Any:
    """The same for n = 1 and real x, in whole arrays: eight steps of the recurrence, then the expansion."""
    total = np.zeros_like(x)
    for _ in range(8):
        total += 1 / (x * x)
        x = x + 1
    r = 1 / x
    s = r * r
    rest = np.zeros_like(x)
    for b in reversed(BERNOULLI):
        rest = b + s * rest
    return total + r + s / 2 + r * s * rest


def cotangent_slope(n: int, x: Any) -> Any:
    """d^n/dx^n of cot(pi x): polynomials in the cotangent, each -pi (1 + c^2) times the derivative of the last."""
    p = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        p = -np.pi * p.deriv() * np.polynomial.Polynomial([1.0, 0.0, 1.0])
    r = x - np.rint(np.real(x))
    c = np.cos(np.pi * r) / np.sin(np.pi * r)
    away = np.imag(x) != 0
    return p(np.where(np.abs(np.imag(x)) > 50, -1j * np.sign(np.imag(x)), c) if np.any(away) else c)


row("polygamma", ((1, 2, 3), (-1.3, 0.4, 5.2)), None, lambda m, n, x, z: polygamma(n + 1, x), functions=(polygamma,))


def psi_gap(x: Any, y: Any) -> Any:
    """psi(x) - psi(x + y); where x is large all digits of y are kept."""
    near = np.less(x, 20) | np.less(x + y, 20)
    if np.all(near):
        return sc.psi(x) - sc.psi(x + y)
    u, v = np.where(near, 20.0, x), np.where(near, 1.0, y)
    w = u + v
    far = -np.log1p(v / u) - v / (2 * u * w)
    for k, b in enumerate(BERNOULLI, 1):
        far = far + b / (2 * k) * (w ** (-2 * k) - u ** (-2 * k))
    return np.where(near, sc.psi(x) - sc.psi(np.where(near, x + y, 1.0)), far)[()]


def poch_slope(x: Any, y: Any, z: Any) -> Any:
    """The derivative of gamma(x + y) / gamma(x) in x, also where both have poles, or the second only."""
    whole = np.equal(y, np.rint(y)) & np.less(x, 0.5)
    both = whole & np.less(x + y, 0.5)  # the poles of psi cancel; after reflection there are none
    one = np.less(x, 0.5) & ~both & np.less(x + y, 150)
    if not np.any(both | one):
        return -z * psi_gap(x, y)
    u, v = np.where(both, x, 0.25), np.where(both, x + y, 0.25)
    s = np.where(one, x, 0.75)
    t = np.where(one, x + y, 0.75)
    direct = z * psi_gap(np.where(both | one, 0.75, x), np.where(both | one, 0.0, y))
    through = sc.gamma(t) * (rgamma_slope(s, sc.rgamma(s)) + sc.rgamma(s) * sc.psi(t))
    reflected = z * (sc.psi(1 - v) - sc.psi(1 - u))
    return np.where(both, reflected, np.where(one, through, -direct))[()]


def binom_slope_in_n(n: Any, k: Any, z: Any) -> Any:
    """The derivative of gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)) in n, also where the denominator has poles."""
    both = np.less(n, -0.5) & np.equal(k, np.rint(k))  # a polynomial in n: after reflection there are no poles
    one = ~both & np.less(n - k, -0.5) & np.less(n, 150)
    r = np.where(one, n - k + 1, 0.75)
    s = np.where(one, n, 0.75)
    direct = z * -psi_gap(np.where(both | one, 1.0, n - k + 1), np.where(both | one, 0.0, k))
    u, v = np.where(both, n, -0.75), np.where(both, n - k, -0.75)
    reflected = z * (sc.psi(-u) - sc.psi(-v))
    through = sc.gamma(s + 1) * sc.rgamma(k + 1) * (sc.psi(s + 1) * sc.rgamma(r) + rgamma_slope(r, sc.rgamma(r)))
    return np.where(both, reflected, np.where(one, through, direct))[()]


def binom_slope_in_k(n: Any, k: Any, z: Any) -> Any:
    """The same in k."""
    poles = (np.less(n - k, -0.5) | np.less(k, -0.5)) & np.greater(n, -1) & np.less(n, 150)
    s, r = np.where(poles, k + 1, 0.75), np.where(poles, n - k + 1, 0.75)
    rise = rgamma_slope(s, sc.rgamma(s)) * sc.rgamma(r) - sc.rgamma(s) * rgamma_slope(r, sc.rgamma(r))
    u, v = np.where(poles, 0.75, n - k + 1), np.where(poles, 0.75, k + 1)
    return np.where(poles, sc.gamma(np.where(poles, n, 0.0) + 1) * rise, z * (sc.psi(u) - sc.psi(v)))[()]


none("gammasgn")
row("gamma", SAMPLES, lambda m, x, z: z * sc.psi(x))
row("gammaln", SAMPLES, lambda m, x, z: sc.psi(x))
row("loggamma", POSITIVE, lambda m, x, z: sc.psi(x))
row("rgamma", SAMPLES, lambda m, x, z: rgamma_slope(x, z))
row("psi", SAMPLES, lambda m, x, z: trigamma(x))
row("digamma", SAMPLES, lambda m, x, z: trigamma(x))
row("beta", POSITIVE_PAIR, lambda m, x, y, z: z * psi_gap(x, y), lambda m, x, y, z: z * psi_gap(y, x))
row("betaln", POSITIVE_PAIR, lambda m, x, y, z: psi_gap(x, y), lambda m, x, y, z: psi_gap(y, x))
row("poch", POSITIVE_PAIR, lambda m, x, y, z: poch_slope(x, y, z), lambda m, x, y, z: z * sc.psi(x + y))
row("binom", ((5.3, 7.1, 2.4), (2.2, 3.4, 0.3)), lambda m, n, k, z: binom_slope_in_n(n, k, z),
    lambda m, n, k, z: binom_slope_in_k(n, k, z))
row("_factorial", POSITIVE, lambda m, x, z: z * sc.psi(x + 1))
row("_lgam1p", UNIT, lambda m, x, z: sc.psi(x + 1))
