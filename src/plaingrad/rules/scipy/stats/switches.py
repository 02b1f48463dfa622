"""Distributions whose formula switches at one value of a shape parameter, where it is a limit: 0 * inf elsewhere.

SciPy computes the limit without the parameter, so that its derivative would be 0. There the derivative is that of

    log1p(c x) / c = x * integral of 1 / (1 + c x u),  expm1(c x) / c = x * integral of exp(c x u),  0 < u < 1

which Gauss's rule gives to every order at c = 0. Values are SciPy's; away from the switch its code is followed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active, refuse
from plaingrad.rules.scipy.stats.names import RULES, followed, method_of

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2
CLOSE = 0.1  # below this |c x| the rule is exact to rounding
GUMBEL = np.arange(-4.5, 75.0, 0.125)  # where the trapezoidal rule is exact to rounding, for moments up to |c| = CLOSE
MASSES = 0.125 * np.exp(-GUMBEL - np.exp(-GUMBEL))


def log1p_over(x: Any, c: Any) -> Any:
    """log1p(c x) / c."""
    near = np.abs(c * x) < CLOSE
    t = np.where(near, c * x, 0.0)
    series = x * (WEIGHTS / (1.0 + t[..., None] * NODES)).sum(-1)
    return np.where(near, series, np.log1p(np.where(near, 0.0, c * x)) / np.where(near, 1.0, c))


def expm1_over(x: Any, c: Any) -> Any:
    """expm1(c x) / c."""
    near = np.abs(c * x) < CLOSE
    t = np.where(near, c * x, 0.0)
    series = x * (WEIGHTS * np.exp(t[..., None] * NODES)).sum(-1)
    return np.where(near, series, np.expm1(np.where(near, 0.0, c * x)) / np.where(near, 1.0, c))


def at_switch(name: str, switches: Any, **formulas: Callable[..., Any]) -> None:
    """Enter formulas of methods of a distribution for where `switches(*shapes)`.

    Args:
        name: of the distribution.
        switches: whether shapes are where SciPy leaves a parameter out.
        formulas: by method, formula(x, *shapes).
    """
    instance = getattr(stats, name, None)
    for method, formula in formulas.items():
        function = method_of(instance, method)
        if function is not None:
            enter(function, switches, formula)


def enter(function: Any, switches: Any, formula: Any) -> None:
    """Enter one method."""
    plain = followed(function)

    @RULES.defined(function)
    def switching(function: Any, call: Any, given: dict[str, Any]) -> Any:
        _, x, *shapes = given.values()
        if not is_active(shapes) or not np.any(switches(*fresh_all(shapes))):
            args, kwargs = call
            return plain(*args, **kwargs)
        with np.errstate(all="ignore"):
            y = formula(np.asarray(x), *[np.asarray(shape) for shape in shapes])
        value = fresh(called(function, call))
        inside = np.isfinite(value) & np.isfinite(fresh(y)) | (np.asarray(x) * 0.0 != 0.0)
        return carrying(value, np.where(inside, y, 0.0))


def fresh_all(values: Any) -> list[Any]:
    """Constant copies."""
    return [fresh(np.asarray(value, float)) for value in values]


def refused_at(name: str, switches: Any, why: str, *names: str) -> None:
    """Enter methods that have no derivative in the shapes where `switches(*shapes)`."""

    def formula(x: Any, *shapes: Any) -> Any:
        refuse(getattr(stats, name).pdf, f"of `{name}`, {why}")

    at_switch(name, switches, **dict.fromkeys(names, formula))


def zero(c: Any) -> Any:
    """Where c is 0."""
    return np.asarray(c) == 0


# -- extreme values: cdf = exp(-y), y = (1 - c x)^(1/c) ------------------------------------------------------------------


def log_y(x: Any, c: Any) -> Any:
    """log(1 - c x) / c."""
    return -log1p_over(x, -c)


def extreme_logpdf(x: Any, c: Any) -> Any:
    return (1.0 - c) * log_y(x, c) - np.exp(log_y(x, c))


at_switch(
    "genextreme", zero,
    _logpdf=extreme_logpdf,
    _pdf=lambda x, c: np.exp(extreme_logpdf(x, c)),
    _logcdf=lambda x, c: -np.exp(log_y(x, c)),
    _cdf=lambda x, c: np.exp(-np.exp(log_y(x, c))),
    _sf=lambda x, c: -np.expm1(-np.exp(log_y(x, c))),
    _ppf=lambda q, c: -expm1_over(np.log(-np.log(q)), c),
    _isf=lambda q, c: -expm1_over(np.log(-np.log1p(-q)), c),
)  # fmt: skip
def mean_of_extremes(c: Any) -> Any:
    """(1 - gamma(1 + c)) / c, as an integral of its slope."""
    t = 1.0 + c[..., None] * NODES
    return -(WEIGHTS * special.gamma(t) * special.psi(t)).sum(-1)


def variance_of_extremes(c: Any) -> Any:
    """(gamma(1 + 2 c) - gamma(1 + c)^2) / c^2 = gamma(1 + c)^2 (exp(d) - 1) / c^2; d / c^2 is an integral of d''."""
    t = c[..., None] * NODES
    curvature = 4.0 * special.polygamma(1, 1.0 + 2.0 * t) - 2.0 * special.polygamma(1, 1.0 + t)
    over = (WEIGHTS * (1.0 - NODES) * curvature).sum(-1)  # d / c^2
    return special.gamma(1.0 + c) ** 2 * expm1_over(over, c * c)


def higher_moments_of_extremes(c: Any) -> tuple[Any, Any]:
    """Skewness and excess kurtosis: sums over nodes in g, which is Gumbel's, of powers of (1 - exp(-c g)) / c."""
    x = -expm1_over(-GUMBEL, c[..., None])
    off = x - (MASSES * x).sum(-1)[..., None]
    second, third, fourth = [(MASSES * off**k).sum(-1) for k in (2, 3, 4)]
    return third / second**1.5, fourth / second**2 - 3.0


def moments_of_extremes() -> None:
    """Enter moments near c = 0, where SciPy's are constants, or differences that cancel."""
    function = method_of(stats.genextreme, "_stats")
    if function is None:
        return
    plain = followed(function)

    @RULES.defined(function)
    def moments(function: Any, call: Any, given: dict[str, Any]) -> Any:
        distribution, c = given.values()
        if not is_active(c) or not np.any(np.abs(fresh_all([c])[0]) < CLOSE):
            args, kwargs = call
            return plain(*args, **kwargs)
        values = called(function, call)
        c = np.asarray(c) * 1.0
        near = np.abs(fresh(c)) < CLOSE
        small = np.where(near, c, 0.0)
        far = plain(distribution, np.where(near, 0.25, c))  # at 0 some SciPy divides by it
        close = mean_of_extremes(small), variance_of_extremes(small), *higher_moments_of_extremes(small)
        return tuple(
            carrying(fresh(value), np.where(near, one, other))
            for value, one, other in zip(values, close, far, strict=True)
        )


def moment_of_excess(n: Any, c: Any) -> Any:
    """n! / ((1 - c) (1 - 2 c) ... (1 - n c))."""
    result = c * 0.0 + 1.0
    for k in range(1, int(n) + 1):
        result = result * k / (1.0 - k * c)
    return result


moments_of_extremes()
at_switch(
    "genpareto", zero,
    _logpdf=lambda x, c: -(c + 1.0) * log1p_over(x, c),
    _pdf=lambda x, c: np.exp(-(c + 1.0) * log1p_over(x, c)),
    _cdf=lambda x, c: -np.expm1(-log1p_over(x, c)),
    _sf=lambda x, c: np.exp(-log1p_over(x, c)),
    _logsf=lambda x, c: -log1p_over(x, c),
    _ppf=lambda q, c: expm1_over(-np.log1p(-q), c),
    _isf=lambda q, c: expm1_over(-np.log(q), c),
    _munp=moment_of_excess,
)  # fmt: skip


def kappa_logcdf(x: Any, h: Any, k: Any) -> Any:
    """log(1 - h y) / h, y = (1 - k x)^(1/k)."""
    return -log1p_over(np.exp(log_y(x, k)), -h)


def kappa_logpdf(x: Any, h: Any, k: Any) -> Any:
    return (1.0 - h) * kappa_logcdf(x, h, k) + (1.0 - k) * log_y(x, k)


at_switch(
    "kappa4", lambda h, k: zero(h) | zero(k),
    _logpdf=kappa_logpdf,
    _pdf=lambda x, h, k: np.exp(kappa_logpdf(x, h, k)),
    _logcdf=kappa_logcdf,
    _cdf=lambda x, h, k: np.exp(kappa_logcdf(x, h, k)),
    _ppf=lambda q, h, k: -expm1_over(np.log(-expm1_over(np.log(q), h)), k),
)  # fmt: skip

# -- others ------------------------------------------------------------------------------------------------------------


def skew_logpdf(x: Any, a: Any) -> Any:
    return np.log(2.0) - x * x / 2 - np.log(2 * np.pi) / 2 + special.log_ndtr(a * x)


at_switch("skewnorm", zero, _logpdf=skew_logpdf, _pdf=lambda x, a: np.exp(skew_logpdf(x, a)))


def ring_logpdf(x: Any, kappa: Any) -> Any:
    return kappa * np.cos(x) - np.log(2 * np.pi * special.i0(kappa))


at_switch(
    "vonmises", zero, _logpdf=ring_logpdf, _pdf=lambda x, kappa: np.exp(ring_logpdf(x, kappa))
)
METHODS = ("_pdf", "_logpdf", "_cdf", "_logcdf", "_sf", "_logsf", "_ppf", "_isf")
refused_at("pearson3", zero, "SciPy leaves its skewness out of the formula where that is 0", *METHODS)
refused_at(
    "ncx2", lambda df, nc: zero(nc), "SciPy leaves its noncentrality out of the formula where that is 0", *METHODS
)
