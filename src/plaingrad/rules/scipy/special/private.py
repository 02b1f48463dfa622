"""Functions behind SciPy's distributions that are not public: probabilities of counts, moments, Landau's density."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rules.scipy.forms import find, none, refused, row
from plaingrad.rules.scipy.special.incomplete import beta_density, betainc_in_a

COUNTS = ((1, 0, 3), (4, 5, 7), (0.2, 0.8, 0.55))


def binomial_slope(k: Any, n: Any, p: Any, z: Any) -> Any:
    """Of C(n, k) p^k (1 - p)^(n - k) in p."""
    first = np.where(np.equal(k, 0), 0.0, np.true_divide(k, p))
    return z * (first - np.where(np.equal(k, n), 0.0, np.true_divide(n - k, 1 - p)))


row("_binom_pmf", COUNTS, None, None, lambda m, k, n, p, z: binomial_slope(k, n, p, z))
row("_binom_cdf", COUNTS, None, None, lambda m, k, n, p, z: -count_density(k, n, p))
row("_binom_sf", COUNTS, None, None, lambda m, k, n, p, z: count_density(k, n, p))
row("_nbinom_pmf", COUNTS, None, lambda m, k, n, p, z: z * (np.log(p) + sc.psi(k + n * 1.0) - sc.psi(n * 1.0)),
    lambda m, k, n, p, z: z * (np.true_divide(n, p) - np.true_divide(k, 1 - p)))
row("_nbinom_cdf", COUNTS, None, lambda m, k, n, p, z: betainc_in_a(n * 1.0, np.floor(k) + 1.0, p),
    lambda m, k, n, p, z: beta_density(n * 1.0, np.floor(k) + 1.0, p))
row("_nbinom_sf", COUNTS, None, lambda m, k, n, p, z: -betainc_in_a(n * 1.0, np.floor(k) + 1.0, p),
    lambda m, k, n, p, z: -beta_density(n * 1.0, np.floor(k) + 1.0, p))
row("_nbinom_mean", ((2.0, 4.5), (0.3, 0.6)), lambda m, n, p, z: np.true_divide(1 - p, p),
    lambda m, n, p, z: -np.true_divide(n, p * p))
row("_nbinom_variance", ((2.0, 4.5), (0.3, 0.6)), lambda m, n, p, z: np.true_divide(1 - p, p * p),
    lambda m, n, p, z: np.true_divide(n * (p - 2), p**3))
none("_binom_ppf", "_binom_isf", "_nbinom_ppf", "_nbinom_isf", "_hypergeom_pmf", "_hypergeom_cdf", "_hypergeom_sf",
     "_hypergeom_mean", "_hypergeom_variance", "_hypergeom_skewness", "_stirling2_inexact", "_sf_error_test_function")


def count_density(k: Any, n: Any, p: Any) -> Any:
    """The slope of the sum up to k, and 0 where all is summed."""
    inside = np.less(k, n) & np.greater_equal(k, 0)
    return np.where(inside, beta_density(np.where(inside, k + 1.0, 1.0), np.where(inside, n - k * 1.0, 1.0), p), 0.0)[()]


LANDAU_PDF = find("_landau_pdf")
SHIFT = 2 / np.pi  # the density is that of (x - place) / scale + 2 log(scale) / pi
LANDAU = ((0.3, 2.8), (0.1, -0.4), (1.3, 0.7))


def landau(x: Any, place: Any, scale: Any) -> Any:
    """SciPy's density."""
    return LANDAU_PDF(x, place, scale)


for _name, _sign in (("_landau_cdf", 1), ("_landau_sf", -1)):
    row(_name, LANDAU, lambda m, x, at, s, z, sign=_sign: sign * landau(x, at, s),
        lambda m, x, at, s, z, sign=_sign: -sign * landau(x, at, s),
        lambda m, x, at, s, z, sign=_sign: -sign * (np.true_divide(x - at, s) + SHIFT) * landau(x, at, s))
for _name, _sign in (("_landau_ppf", 1), ("_landau_isf", -1)):
    row(_name, ((0.3, 0.8), *LANDAU[1:]), lambda m, p, at, s, z, sign=_sign: np.true_divide(sign, landau(z, at, s)), 1,
        lambda m, p, at, s, z: np.true_divide(z - at, s) + SHIFT)
refused("the slope of Landau's density has no closed form", "_landau_pdf")
refused("a closed form has not been written", "_lanczos_sum_expg_scaled", "_struve_asymp_large_z",
        "_struve_bessel_series", "_struve_power_series")
