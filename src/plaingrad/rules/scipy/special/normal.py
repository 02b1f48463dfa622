"""The error function and its relatives: Dawson's, Faddeeva's, Voigt's, the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.define import REAL
from plaingrad.rules.scipy.forms import row

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
ROOT_HALF_PI = math.sqrt(math.pi / 2)
FAR = 7.0  # from there on differences of erfcx have lost two digits, and the expansion at infinity has all
TERMS = 26
PROBABILITIES = ((0.1, 0.4, 0.6, 0.95),)


def erfcx_slope(x: Any, z: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi); far out by its expansion at infinity, of which that difference would leave nothing."""
    far = np.abs(x) > FAR
    if not np.any(far):
        return 2 * x * z - TWO_OVER_ROOT_PI
    left = far & (np.real(x) < 0)
    y = np.where(left, -x, x)
    r = 1 / np.where(far, y, FAR)
    s = r * r
    total: Any = 1.0
    for k in range(TERMS, 0, -1):  # the derivative of (1 - 1/(2 x^2) + 1 3/(2 x^2)^2 - ...) / (x sqrt(pi))
        total = 1 - (k + 0.5) * s * total
    expanded = -total * s / math.sqrt(math.pi)
    expanded = expanded + np.where(left, 4 * x * np.exp(np.where(left, x, 0.0) ** 2), 0.0)
    return np.where(far, expanded, 2 * np.where(far, 0.0, x) * np.where(far, 0.0, z) - TWO_OVER_ROOT_PI)[()]


def wofz_slope(x: Any, z: Any) -> Any:
    """w(x) = erfcx(-i x)."""
    return -1j * erfcx_slope(-1j * x, z)


def real_dawsn_slope(x: Any, z: Any) -> Any:
    """1 - 2 x dawsn(x) for real x, far out by the expansion at infinity."""
    far = np.abs(x) > FAR
    w = np.where(far, x, FAR)
    s = 1 / (2 * w * w)
    total: Any = 1.0
    for k in range(TERMS, 1, -1):  # the sum of 1 3 5 ... (2k - 1) s^k
        total = 1 + (2 * k - 1) * s * total
    y = np.where(far, 0.0, x)
    return np.where(far, -s * total, 1 - 2 * y * np.where(far, 0.0, z))[()]


def dawsn_slope(x: Any, z: Any) -> Any:
    """1 - 2 x dawsn(x), far out from w = exp(-x^2) + 2i dawsn / sqrt(pi)."""
    if not np.iscomplexobj(x):
        return real_dawsn_slope(x, z)
    far = np.abs(x) > FAR
    y = np.where(np.imag(x) < 0, -x, x)  # dawsn is odd
    y = np.where(far, y, FAR)
    through = 0.5j * math.sqrt(math.pi) * (-2 * y * np.exp(-y * y) - wofz_slope(y, sc.wofz(y)))
    return np.where(far, through, 1 - 2 * x * z)[()]


def voigt_slopes(x: Any, sigma: Any, gamma: Any, z: Any) -> tuple[Any, Any, Any]:
    """z = Re w((x + i gamma) / (sqrt(2) sigma)) / (sqrt(2 pi) sigma), and at sigma = 0 Cauchy's density."""
    narrow = np.equal(sigma, 0)
    s = np.where(narrow, 1.0, sigma)
    zeta = (x + 1j * gamma) / (math.sqrt(2) * s)
    slope = wofz_slope(zeta, sc.wofz(zeta)) / (2 * math.sqrt(math.pi) * s * s)
    q = np.where(narrow, x * x + gamma * gamma, 1.0)
    return (
        np.where(narrow, -2 * x * gamma / (np.pi * q * q), np.real(slope))[()],
        np.where(narrow, 0.0, -z / s - np.real(slope * zeta) * math.sqrt(2))[()],
        np.where(narrow, (x * x - gamma * gamma) / (np.pi * q * q), -np.imag(slope))[()],
    )


def log_ndtr_slope(x: Any) -> Any:
    """phi(x) / Phi(x)."""
    return 1 / (ROOT_HALF_PI * sc.erfcx(-x / math.sqrt(2)))


def bell(x: Any) -> Any:
    """The density of the normal distribution."""
    return np.exp(-np.multiply(x, x) / 2) / ROOT_TWO_PI


row("erf", REAL, lambda m, x, z: TWO_OVER_ROOT_PI * np.exp(-np.multiply(x, x)))
row("erfc", REAL, lambda m, x, z: -TWO_OVER_ROOT_PI * np.exp(-np.multiply(x, x)))
row("erfcx", REAL, lambda m, x, z: erfcx_slope(x, z))
row("erfi", REAL, lambda m, x, z: TWO_OVER_ROOT_PI * np.exp(np.multiply(x, x)))
row("dawsn", REAL, lambda m, x, z: dawsn_slope(x, z))
row("wofz", REAL, lambda m, x, z: wofz_slope(x, z))
row("ndtr", REAL, lambda m, x, z: bell(x))
row("log_ndtr", REAL, lambda m, x, z: log_ndtr_slope(x))
row("erfinv", ((-0.8, -0.3, 0.2, 0.7),), lambda m, x, z: np.exp(z * z) / TWO_OVER_ROOT_PI)
row("erfcinv", ((1.8, 1.3, 0.2, 0.7),), lambda m, x, z: -np.exp(z * z) / TWO_OVER_ROOT_PI)
row("ndtri", PROBABILITIES, lambda m, x, z: ROOT_TWO_PI * np.exp(z * z / 2))
row("ndtri_exp", ((-0.1, -0.7, -3.4, -21.0),), lambda m, x, z: ROOT_HALF_PI * sc.erfcx(-z / math.sqrt(2)))
row("owens_t", ((-1.2, 0.6, 2.1), (0.7, 1.9, -0.4)),
    lambda m, h, a, z: -bell(h) * sc.erf(h * a / math.sqrt(2)) / 2,
    lambda m, h, a, z: np.exp(-np.multiply(h, h) * (1 + a * a) / 2) / (2 * np.pi * (1 + np.multiply(a, a))))
row("voigt_profile", ((-1.2, 0.6, 2.1), (0.7, 1.9, 0.4), (0.8, 0.1, 1.5)),
    lambda m, x, sigma, gamma, z: voigt_slopes(x, sigma, gamma, z)[0],
    lambda m, x, sigma, gamma, z: voigt_slopes(x, sigma, gamma, z)[1],
    lambda m, x, sigma, gamma, z: voigt_slopes(x, sigma, gamma, z)[2])
# The quantile of the normal distribution, asked for its mean and for its width.
row("nrdtrimn", ((0.1, 0.4, 0.8), (0.7, 1.9, 0.4), (-1.2, 0.6, 2.1)),
    lambda m, p, std, x, z: -std / bell(sc.ndtri(p)), lambda m, p, std, x, z: -sc.ndtri(p), 1)
row("nrdtrisd", ((-2.2, -0.6, 1.1), (0.7, 0.9, 0.8), (-1.2, 0.6, 2.1)),
    lambda m, mn, p, x, z: -1 / sc.ndtri(p), lambda m, mn, p, x, z: -z / (sc.ndtri(p) * bell(sc.ndtri(p))),
    lambda m, mn, p, x, z: 1 / sc.ndtri(p))


def beyond(h: Any, k: Any, r: Any) -> Any:
    """Minus the slope in h of the probability of X > h and Y > k, two normal variables with correlation r."""
    return bell(h) * sc.ndtr((np.multiply(r, h) - k) / np.sqrt(1 - np.multiply(r, r)))


def joint_density(h: Any, k: Any, r: Any) -> Any:
    """Of both, which is the slope of that probability in r."""
    rest = 1 - np.multiply(r, r)
    square = np.multiply(h, h) - 2 * np.multiply(h, k) * r + np.multiply(k, k)
    return np.exp(-square / (2 * rest)) / (2 * np.pi * np.sqrt(rest))


# Since SciPy 1.18.
row("_bivariate_normal_cdf", ((-1.2, 0.6, 2.1), (0.7, 1.9, -0.4), (0.3, -0.6, 0.8)),
    lambda m, h, k, r, z: -beyond(h, k, r), lambda m, h, k, r, z: -beyond(k, h, r),
    lambda m, h, k, r, z: joint_density(h, k, r))  # fmt: skip
