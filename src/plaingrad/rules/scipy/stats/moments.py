"""Moments of distributions that SciPy has compiled functions for, and what only older ones have. The values are its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import find, keep
from plaingrad.rules.scipy.implicit import carrying, fresh, outside

NAMES = ("mean", "variance", "skewness", "kurtosis_excess")


@outside
def plain(order: int, function: Any, args: Any) -> Any:
    """SciPy's value, a constant."""
    return function(*args)


def standard(raw: Callable[..., Any], name: str, *args: Any) -> Any:
    """One of NAMES from the first four moments about 0."""
    m1, m2, m3, m4 = raw(*[np.asarray(arg) * 1.0 for arg in args])
    if name == "mean":
        return m1
    v = m2 - m1**2
    if name == "variance":
        return v
    if name == "skewness":
        return (m3 - 3 * m1 * m2 + 2 * m1**3) / v**1.5
    return (m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / v**2


def of_cumulants(k1: Any, k2: Any, k3: Any, k4: Any) -> tuple[Any, Any, Any, Any]:
    """Moments about 0."""
    m2, m3 = k2 + k1**2, k3 + 3 * k2 * k1 + k1**3
    return k1, m2, m3, k4 + 4 * k3 * k1 + 3 * k2**2 + 6 * k2 * k1**2 + k1**4


def chi_squared(df: Any, nc: Any) -> tuple[Any, Any, Any, Any]:
    """Cumulants 2^(n - 1) (n - 1)! (df + n nc)."""
    return of_cumulants(df + nc, 2 * (df + 2 * nc), 8 * (df + 3 * nc), 48 * (df + 4 * nc))


def ratio(dfn: Any, dfd: Any, nc: Any) -> tuple[Any, ...]:
    """The moments of the numerator times those of the inverse denominator, where these exist."""
    part, moments = 1.0, []
    for k, m in enumerate(chi_squared(dfn, nc), 1):
        part = part * dfd / (dfn * (dfd - 2 * k))
        moments.append(m * part)
    return tuple(moments)


def student(df: Any, nc: Any) -> tuple[Any, ...]:
    """(df/2)^(k/2) gamma((df - k)/2) / gamma(df/2) times the moments of a normal variable with mean nc."""
    h = df / 2
    scale = [h ** (k / 2) * special.poch(h, -k / 2) for k in (1, 2, 3, 4)]
    normal = (nc, 1 + nc**2, nc**3 + 3 * nc, nc**4 + 6 * nc**2 + 3)
    return tuple([a * b for a, b in zip(scale, normal, strict=True)])


def beta(a: Any, b: Any) -> tuple[Any, ...]:
    """Products of (a + k) / (a + b + k)."""
    part, moments = 1.0, []
    for k in range(4):
        part = part * (a + k) / (a + b + k)
        moments.append(part)
    return tuple(moments)


def binomial(n: Any, p: Any) -> tuple[Any, ...]:
    """By cumulants."""
    v = n * p * (1 - p)
    return of_cumulants(n * p, v, v * (1 - 2 * p), v * (1 - 6 * p * (1 - p)))


def negative_binomial(n: Any, p: Any) -> tuple[Any, ...]:
    """By cumulants, with the odds q = (1 - p) / p."""
    q = (1 - p) / p
    v = n * q * (1 + q)
    return of_cumulants(n * q, v, v * (1 + 2 * q), v * (1 + 6 * q * (1 + q)))


def enter(distribution: str, raw: Callable[..., Any]) -> None:
    """Enter its compiled moments."""
    for name in NAMES:
        function = find(f"_{distribution}_{name}")
        if function is None:
            continue

        def moment(*args: Any, function: Any = function, name: str = name) -> Any:
            value = fresh(plain(function, args))
            exists = np.where(np.isfinite(value), 1.0, np.nan)  # the formula goes on where there is no moment
            return carrying(value, (standard(raw, name, *args) * exists)[()])

        keep(Rule(function, "composed", definition=moment, source=f"{__file__}:1"))


enter("ncx2", chi_squared)
enter("ncf", ratio)
enter("nct", student)
enter("beta", beta)
enter("binom", binomial)
enter("nbinom", negative_binomial)


# -- probabilities that SciPy before 1.15 has to itself -------------------------------------------------------------------


def older(name: str, formula: Callable[..., Any]) -> None:
    """Enter a compiled function by another one of `scipy.special`."""
    function = find(name)
    if function is not None:

        def definition(*args: Any) -> Any:
            return carrying(fresh(plain(function, args)), formula(*args))

        keep(Rule(function, "composed", definition=definition, source=f"{__file__}:1"))


older("_beta_cdf", lambda x, a, b: special.betainc(a, b, x))
older("_beta_sf", lambda x, a, b: special.betainc(b, a, 1.0 - np.asarray(x)))
older("_beta_isf", lambda q, a, b: 1.0 - special.betaincinv(b, a, q))
older("_ncx2_cdf", lambda x, df, nc: special.chndtr(x, df, nc))
older("_ncx2_ppf", lambda p, df, nc: special.chndtrix(p, df, nc))
older("_nct_ppf", lambda q, df, nc: special.nctdtrit(df, nc, q))
older("_ncf_ppf", lambda q, dfn, dfd, nc: special.ncfdtri(dfn, dfd, nc, q))
