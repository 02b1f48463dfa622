"""Noncentral hypergeometric distributions, which SciPy computes in C++: their derivatives in the odds, by their formulas.

A. Fog, Communications in Statistics, Simulation and Computation 37, 2008: Fisher's is a binomial product with odds^x,
normalised; that of Wallenius an integral over the time at which a ball is drawn. The other parameters are counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special, stats

from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active, plainly, refuse
from plaingrad.rules.scipy.stats.integrals import integral
from plaingrad.rules.scipy.stats.names import RULES, followed

FISHER, WALLENIUS = getattr(stats, "nchypergeom_fisher", None), getattr(stats, "nchypergeom_wallenius", None)
SAME = 1e-7  # the most that a formula may be off SciPy's value


def log_choices(x: Any, M: Any, n: Any, N: Any) -> Any:
    """The logarithm of C(n, x) C(M - n, N - x)."""
    above, below = (n, M - n), (x, N - x)
    return sum(
        special.gammaln(a + 1.0) - special.gammaln(b + 1.0) - special.gammaln(a - b + 1.0)
        for a, b in zip(above, below, strict=True)
    )


@plainly
def numbers_drawn(M: Any, n: Any, N: Any) -> tuple[Any, Any]:
    """(x, logarithms of the choices) for all x that are possible."""
    x = np.arange(max(0, int(N - (M - n))), min(int(n), int(N)) + 1.0)
    return x, log_choices(x, M, n, N)


@plainly
def logarithm(x: Any, M: Any, n: Any, N: Any) -> float:
    """Of the choices for one x."""
    return float(log_choices(x, M, n, N))


def fisher(x: Any, M: Any, n: Any, N: Any, odds: Any, value: Any) -> Any:
    """C(n, x) C(M - n, N - x) odds^x over the sum of these."""
    every, logs = numbers_drawn(M, n, N)
    heights = logs + every * np.log(odds)
    top = np.max(fresh(heights))
    return np.exp(logarithm(x, M, n, N) + x * np.log(odds) - top) / np.exp(heights - top).sum()


def wallenius(x: Any, M: Any, n: Any, N: Any, odds: Any, value: Any) -> Any:
    """C(n, x) C(M - n, N - x) times the integral of (1 - e^(-odds s))^x (1 - e^-s)^(N - x) D e^(-D s)."""
    if N == M:  # all are drawn
        return value
    logs, rest = logarithm(x, M, n, N), N - x

    def rate(s: Any, odds: Any) -> Any:
        d = odds * (n - x) + (M - n - rest)
        powers = x * np.log(-np.expm1(-odds * s)) + rest * np.log(-np.expm1(-s))
        return np.exp(logs + powers - d * s) * d

    return integral(rate, (odds,), 0.0, np.inf, value)


def mass(self: Any, x: Any, M: Any, n: Any, N: Any, odds: Any, value: Any) -> Any:
    """The probability of x, checked against SciPy's."""
    formula = fisher if isinstance(self, type(FISHER)) else wallenius
    z = formula(x, M, n, N, odds, value)
    if z is None or not np.abs(fresh(z * 1.0) - value) <= SAME * (np.abs(value) + 1e-3):
        refuse(self.pmf, "its formula does not give SciPy's value")
    return z


def method(name: str) -> Any:
    """The method that both distributions share."""
    return vars(type(FISHER).__bases__[0]).get(name) if FISHER is not None else None


def counts_are_constant(self: Any, counts: Any) -> None:
    """Refuse derivatives in counts."""
    if is_active(counts):
        refuse(self.pmf, "M, n and N are counts")


@RULES.defined(method("_pmf"))
def pmf(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """One by one."""
    values = fresh(np.asarray(called(function, call)) * 1.0)
    self, parameters = given["self"], [np.asarray(given[name]) for name in ("x", "M", "n", "N", "odds")]
    if not is_active(parameters):
        return values
    counts_are_constant(self, parameters[1:4])
    arrays = np.broadcast_arrays(*parameters)
    parts = []
    for index in np.ndindex(values.shape):
        x, *shapes = [array[index] for array in arrays]
        is_zero = values[index] == 0.0 or np.isnan(values[index])
        parts.append(values[index] if is_zero else mass(self, x, *shapes, values[index]))
    return carrying(values, np.reshape(np.stack(parts), values.shape)) if parts else values


def enter_entropy() -> None:
    """The entropy of urns: numbers that are never drawn, or so seldom that SciPy's mass is 0, add nothing to it."""
    function = getattr(getattr(stats, "rv_discrete", None), "_entropy", None)
    if function is None or FISHER is None:
        return
    plain = followed(function)

    @RULES.defined(function)
    def entropy(function: Any, call: Any, given: dict[str, Any]) -> Any:
        args, kwargs = call
        self, *shapes = args
        if not isinstance(self, (type(FISHER), type(WALLENIUS))) or not is_active(shapes):
            return plain(*args, **kwargs)
        value = fresh(called(function, call))
        counts_are_constant(self, shapes[:3])
        x, _ = numbers_drawn(*[fresh(shape * 1.0) for shape in shapes[:3]])
        p = self._pmf(x, *shapes)
        some = fresh(p) > 0
        z = np.where(some, special.entr(np.where(some, p, 1.0)), 0.0).sum()
        if not np.allclose(fresh(z), value, rtol=1e-6):
            refuse(self.entropy, "its formula does not give SciPy's value")
        return carrying(value, z)


enter_entropy()


@RULES.defined(method("_stats"))
def moments(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(mean, variance, None, None) by sums over all numbers that can be drawn."""
    outcome = called(function, call)
    self, parameters = given["self"], [np.asarray(given[name]) for name in ("M", "n", "N", "odds")]
    if outcome[0] is None or not is_active(parameters):
        return outcome
    counts_are_constant(self, parameters[:3])
    first, second = [fresh(np.asarray(part) * 1.0) for part in outcome[:2]]
    arrays = np.broadcast_arrays(*parameters)
    means, variances = [], []
    for index in np.ndindex(first.shape):
        shapes = [array[index] for array in arrays]
        x, _ = numbers_drawn(*[fresh(shape * 1.0) for shape in shapes[:3]])
        p = self._pmf(x, *shapes)
        mean = (x * p).sum()
        means.append(mean)
        variances.append(((x - mean) ** 2 * p).sum())
    if not means:
        return outcome
    found = [np.reshape(np.stack(parts), first.shape) for parts in (means, variances)]
    if not np.allclose(fresh(found[0]), first, rtol=1e-6) or not np.allclose(fresh(found[1]), second, rtol=1e-5):
        refuse(self.stats, "its formula does not give SciPy's moments")
    return carrying(first, found[0]), carrying(second, found[1]), None, None
