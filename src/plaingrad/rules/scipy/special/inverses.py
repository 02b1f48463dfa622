"""Inverses of distribution functions, by the inverse function theorem: dz/dy = 1 / F', dz/dp = -F_p / F'."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.forms import find, row
from plaingrad.rules.scipy.special import noncentral
from plaingrad.rules.scipy.special.distributions import kolmogorov_slope
from plaingrad.rules.scipy.special.incomplete import (
    beta_density,
    betainc_in_a,
    betainc_in_b,
    gamma_density,
    gammainc_in_a,
)

ROWS = noncentral  # imported before: its rows are inverted here
SOLVED: dict[Any, Any] = {}  # slope of an inverse -> what it is made of, for who cannot call it with any arguments
Z = -1  # in the arguments of the function that is inverted: what is solved for


def inverse(name: str, domain: Any, forward: Any, arguments: tuple[int, ...], value: int) -> None:
    """Enter z(...) with forward(arguments) = argument `value`.

    Args:
        name: the inverse.
        domain: sample points where it is smooth.
        forward: the name of the function that is inverted, or its partials.
        arguments: which argument of the inverse each of its arguments is; `Z` for the result.
        value: the place of the function's value among the arguments of the inverse.
    """
    if isinstance(forward, str):
        function = find(forward)
        if function is None:
            return
        forward = forms.RULES[id(function)].partials

    def partial(place: int) -> Any:
        wanted = arguments.index(place) if place != value else None
        if wanted is not None and forward[wanted] is None:
            return None

        def slope(m: Any, *args_and_z: Any) -> Any:
            args, z = args_and_z[:-1], args_and_z[-1]
            given = [z if k == Z else args[k] for k in arguments]
            rise = forward[arguments.index(Z)](m, *given, args[value])
            if wanted is None:
                return np.true_divide(1, rise)
            part = forward[wanted]
            return -np.true_divide(part(m, *given, args[value]) if callable(part) else part, rise)

        SOLVED[slope] = forward, arguments, value, place
        return slope

    row(name, domain, *[partial(k) for k in range(len(arguments))])


P = (0.3, 0.8, 0.55)
A, B = (0.6, 2.3, 5.1), (1.4, 0.9, 3.3)
inverse("gammaincinv", (A, P), "gammainc", (0, Z), 1)
inverse("gammainccinv", (A, P), "gammaincc", (0, Z), 1)
inverse("betaincinv", (A, B, P), "betainc", (0, 1, Z), 2)
inverse("betainccinv", (A, B, P), "betaincc", (0, 1, Z), 2)
inverse("btdtri", (A, B, P), "betainc", (0, 1, Z), 2)
inverse("btdtria", (P, B, (0.4, 0.7, 0.5)), "betainc", (Z, 1, 2), 0)
inverse("btdtrib", (A, P, (0.4, 0.7, 0.5)), "betainc", (0, Z, 2), 1)
inverse("chdtri", (A, P), "chdtrc", (0, Z), 1)
inverse("chdtriv", (P, A), "chdtr", (Z, 1), 0)
inverse("gdtria", (P, B, A), "gdtr", (Z, 1, 2), 0)
inverse("gdtrib", (B, P, A), "gdtr", (0, Z, 2), 1)
inverse("gdtrix", (A, B, P), "gdtr", (0, 1, Z), 2)
inverse("fdtri", (A, B, P), "fdtr", (0, 1, Z), 2)
inverse("fdtridfd", ((0.6, 2.3), (0.3, 0.55), (0.8, 1.1)), "fdtr", (0, Z, 2), 1)
inverse("bdtri", ((1, 0, 3), (4, 2, 7), P), "bdtr", (0, 1, Z), 2)
inverse("nbdtri", ((1, 0, 3), (4, 2, 7), P), "nbdtr", (0, 1, Z), 2)
inverse("pdtri", ((1, 0, 3), P), "pdtr", (0, Z), 1)
inverse("stdtrit", (A, P), "stdtr", (0, Z), 1)
inverse("stdtridf", ((0.8, 0.9, 0.7), (1.2, 1.6, 0.6)), "stdtr", (Z, 1), 0)
inverse("chndtrix", (P, B, A), "chndtr", (Z, 1, 2), 0)
inverse("chndtridf", (A, (0.2, 0.1, 0.4), B), "chndtr", (0, Z, 2), 1)
inverse("chndtrinc", ((1.6, 2.3, 5.1), B, (0.2, 0.1, 0.4)), "chndtr", (0, 1, Z), 2)
inverse("ncfdtri", (A, B, (0.4, 1.7, 2.0), P), "ncfdtr", (0, 1, 2, Z), 3)
inverse("ncfdtridfn", ((0.2, 0.1), (2.4, 3.9), (0.4, 1.7), (0.5, 0.4)), "ncfdtr", (Z, 1, 2, 3), 0)
inverse("ncfdtridfd", ((2.4, 3.9), (0.3, 0.35), (0.4, 1.7), (0.8, 1.1)), "ncfdtr", (0, Z, 2, 3), 1)
inverse("ncfdtrinc", ((2.4, 3.9), (3.3, 4.5), (0.3, 0.35), (1.8, 2.1)), "ncfdtr", (0, 1, Z, 3), 2)
inverse("nctdtrit", (A, (1.4, -0.9, 0.3), P), "nctdtr", (0, 1, Z), 2)
inverse("nctdtridf", ((0.8, 0.9), (0.4, 0.3), (1.6, 1.9)), "nctdtr", (Z, 1, 2), 0)
inverse("nctdtrinc", (A, P, (0.4, 1.7, 2.0)), "nctdtr", (0, Z, 2), 1)
inverse("_beta_ppf", (P, A, B), "betainc", (1, 2, Z), 0)
inverse("_ncx2_isf", (P, B, A), "_ncx2_sf", (Z, 1, 2), 0)
inverse("_ncf_isf", ((0.3, 0.8), (2.4, 3.9), (3.3, 4.5), (0.4, 1.7)), "_ncf_sf", (Z, 1, 2, 3), 0)
inverse("_nct_isf", (P, A, (1.4, -0.9, 0.3)), "_nct_sf", (Z, 1, 2), 0)
inverse("smirnovi", ((4, 7), (0.3, 0.47)), "smirnov", (0, Z), 1)
inverse("_smirnovci", ((4, 7), (0.3, 0.47)), "_smirnovc", (0, Z), 1)
row("kolmogi", ((0.3, 0.8, 0.95),), lambda m, p, z: np.true_divide(1, kolmogorov_slope(z)))
row("_kolmogci", ((0.3, 0.8, 0.01),), lambda m, p, z: np.true_divide(-1, kolmogorov_slope(z)))

# Counts as real numbers: bdtr = I(1 - p; n - k, k + 1), nbdtr = I(p; n, k + 1), pdtr = Q(k + 1, m).
BINOMIAL = (
    lambda m, k, n, p, z: betainc_in_b(n - k, k + 1, 1 - p) - betainc_in_a(n - k, k + 1, 1 - p),
    lambda m, k, n, p, z: betainc_in_a(n - k, k + 1, 1 - p),
    lambda m, k, n, p, z: -beta_density(k + 1, n - k, p),
)
NEGATIVE_BINOMIAL = (
    lambda m, k, n, p, z: betainc_in_b(n, k + 1, p), lambda m, k, n, p, z: betainc_in_a(n, k + 1, p),
    lambda m, k, n, p, z: beta_density(n, k + 1, p),
)  # fmt: skip
POISSON = (lambda m, k, x, z: -gammainc_in_a(k + 1, x), lambda m, k, x, z: -gamma_density(k + 1, x))
inverse("bdtrik", ((0.6, 0.8), (7.3, 4.0), (0.3, 0.5)), BINOMIAL, (Z, 1, 2), 0)
inverse("bdtrin", ((1.6, 2.0), (0.3, 0.6), (0.3, 0.5)), BINOMIAL, (0, Z, 2), 1)
inverse("nbdtrik", ((0.6, 0.8), (7.3, 4.0), (0.3, 0.5)), NEGATIVE_BINOMIAL, (Z, 1, 2), 0)
inverse("nbdtrin", ((1.6, 2.0), (0.3, 0.6), (0.3, 0.5)), NEGATIVE_BINOMIAL, (0, Z, 2), 1)
inverse("pdtrik", ((0.6, 0.8), (7.3, 4.0)), POISSON, (Z, 1), 0)

# Closed forms ------------------------------------------------------------------------------------------------------------


def cauchy_slope(p: Any, scale: Any) -> Any:
    """Of scale tan(pi (p - 1/2)) in p."""
    return np.pi * np.true_divide(scale, np.sin(np.pi * p) ** 2)


def wald(mean: Any, size: Any, x: Any) -> tuple[Any, Any, Any]:
    """The slopes of the inverse Gaussian distribution function in x, mean and size."""
    root = np.sqrt(np.true_divide(size, x))
    beyond = np.exp(2 * size / mean + sc.log_ndtr(-root * (x / mean + 1)))
    q = root * (x / mean - 1)
    bell = np.exp(-q * q / 2) / np.sqrt(2 * np.pi)
    return bell * root / x, -2 * size / mean**2 * beyond, 2 / mean * beyond - bell * root / size


def skewed(x: Any, place: Any, scale: Any, shape: Any) -> tuple[Any, Any, Any, Any]:
    """The slopes of the skew normal distribution function."""
    u = (x - place) / scale
    density = 2 * np.exp(-u * u / 2) / np.sqrt(2 * np.pi) * sc.ndtr(shape * u) / scale
    return density, -density, -u * density, -np.exp(-u * u * (1 + shape**2) / 2) / (np.pi * (1 + shape**2))


SKEWED = tuple([lambda m, x, at, s, h, z, k=k: skewed(x, at, s, h)[k] for k in range(4)])
SKEWED_SF = tuple([lambda m, x, at, s, h, z, k=k: -skewed(x, at, s, h)[k] for k in range(4)])
WALD = tuple([lambda m, x, mu, s, z, k=k: wald(mu, s, x)[k] for k in range(3)])
WALD_SF = tuple([lambda m, x, mu, s, z, k=k: -wald(mu, s, x)[k] for k in range(3)])
SKEW_SAMPLES = ((0.3, 0.8), (0.1, -0.4), (1.3, 0.7), (0.9, -1.6))
row("_cauchy_ppf", (P, A, B), lambda m, p, at, s, z: cauchy_slope(p, s), 1, lambda m, p, at, s, z: np.true_divide(z - at, s))
row("_cauchy_isf", (P, A, B), lambda m, p, at, s, z: -cauchy_slope(p, s), 1, lambda m, p, at, s, z: np.true_divide(z - at, s))
row("_skewnorm_cdf", SKEW_SAMPLES, *SKEWED)
inverse("_skewnorm_ppf", SKEW_SAMPLES, SKEWED, (Z, 1, 2, 3), 0)
inverse("_skewnorm_isf", SKEW_SAMPLES, SKEWED_SF, (Z, 1, 2, 3), 0)
inverse("_invgauss_ppf", (P, A, B), WALD, (Z, 1, 2), 0)
inverse("_invgauss_isf", (P, A, B), WALD_SF, (Z, 1, 2), 0)
