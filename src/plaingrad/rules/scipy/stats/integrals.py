"""Moments, entropies and probabilities that SciPy integrates: the derivative under the integral sign, on arrays of nodes.

SciPy's value is kept. The derivative is that of a trapezoidal sum in t, where x is a double exponential function of t
(Takahasi and Mori, Publ. RIMS 9, 1974): densities with singular ends or heavy tails need no more nodes than others.
Where the sum with half of the nodes is not the same, or SciPy's value another, its Python code is followed instead:
densities with a kink inside are integrated there on panels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special, stats
from scipy.stats import rv_continuous

from plaingrad.errors import PlaingradError
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active, ordered, plainly
from plaingrad.rules.scipy.integrate.planning import flat
from plaingrad.rules.scipy.stats.names import RULES, followed

SIZES = (64, 128, 256, 512, 1024, 2048)  # nodes that are tried
NEGLIGIBLE = 1e-24  # terms below this part of the largest one are left out: beyond them densities are 0 / 0


def unit_nodes(size: int, low: float, high: float) -> tuple[Any, Any]:
    """(s, ds): x is low + s, high - s or s between infinite ends; between finite ones low + (high - low) s."""
    finite = np.isfinite(low) and np.isfinite(high)
    edge = 3.3 if finite else 3.9
    t, h = np.linspace(-edge, edge, size, retstep=True)
    u, u_dot = np.pi / 2 * np.sinh(t), np.pi / 2 * np.cosh(t)
    if finite:
        s = special.expit(2 * u)
        return s, 2 * u_dot * s * special.expit(-2 * u) * h
    if np.isfinite(low) or np.isfinite(high):
        return np.exp(u), np.exp(u) * u_dot * h
    return np.sinh(u), np.cosh(u) * u_dot * h


def placed(s: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """(x, dx/ds) for ends that may move."""
    down, up = np.isfinite(fresh(low)), np.isfinite(fresh(high))
    if down and up:
        return low + (high - low) * s, (high - low) * np.ones_like(s)
    if down:
        return low + s, np.ones_like(s)
    return (high - s, np.ones_like(s)) if up else (s, np.ones_like(s))


def sums(f: Any, args: tuple[Any, ...], x: Any, full: Any, coarse: Any) -> Any:
    """The sums of f(x) with both weights."""
    z = f(x, *args)
    return (full * z).sum(), (coarse * z).sum()


@plainly
def planned(f: Any, args: tuple[Any, ...], low: Any, high: Any, value: Any) -> Any:
    """(s, weights) of a sum that is SciPy's value, and whose derivative has converged; or None."""
    low, high, value = float(low), float(high), float(value)
    if not (np.isfinite(value) and low < high):
        return None
    with np.errstate(all="ignore"):
        for size in SIZES:
            s, weights = unit_nodes(size, low, high)
            x, x_dot = placed(s, low, high)
            terms = weights * x_dot * f(x, *args)
            large = np.abs(terms) > NEGLIGIBLE * np.max(np.abs(terms[np.isfinite(terms)]), initial=0.0)
            inside = np.isfinite(terms) & large & (low < x) & (x < high)
            coarse = np.where(np.arange(size) % 2 == 0, 2 * weights, 0.0)
            keep = s[inside], weights[inside], coarse[inside], x[inside], x_dot[inside]
            if is_good(f, args, keep, value):
                return keep[:2]
    return None


def is_good(f: Any, args: tuple[Any, ...], keep: Any, value: float) -> bool:
    """Whether the sum agrees with SciPy's, and it and its derivative with those of half of the nodes."""
    _, full, coarse, x, x_dot = keep
    if not x.size:
        return False
    try:
        (fine, rough), pullback = derivatives.pulled(sums, f, args, x, full * x_dot, coarse * x_dot)
        one, other = flat(pullback((1.0, 0.0))[1:3]), flat(pullback((0.0, 1.0))[1:3])
    except PlaingradError:
        return False
    near = abs(fine - value) <= 1e-6 * abs(value) + 1e-8 and abs(fine - rough) <= 1e-8 * (abs(fine) + 1e-8)
    size = np.max(np.abs(one), initial=0.0)
    return bool(near and one.shape == other.shape and np.all(np.abs(one - other) <= 1e-7 * size + 1e-9 * abs(fine)))


def integral(f: Any, args: tuple[Any, ...], low: Any, high: Any, value: Any) -> Any:
    """The integral of f(x, *args), f of arrays, with its derivative in args and the ends; None if nobody knows nodes."""
    live = [n for n in range(len(args)) if is_active(args[n])]
    held = [fresh(arg) if n not in live else 0.0 for n, arg in enumerate(args)]

    def of_live(x: Any, *parts: Any) -> Any:
        whole = list(held)
        for n, part in zip(live, parts, strict=True):
            whole[n] = part
        return f(x, *whole)

    nodes = planned(of_live, tuple([args[n] for n in live]), low, high, value)
    if nodes is None:
        return None
    s, weights = nodes
    x, x_dot = placed(s, low, high)
    with np.errstate(all="ignore"):
        return (weights * x_dot * f(x, *args)).sum()


def probability(f: Any, args: tuple[Any, ...], low: Any, high: Any, value: Any) -> Any:
    """The same with the density itself at ends that are arguments, not ends of a support."""
    if ordered() > 1:
        return integral(f, args, low, high, value)
    at, end = fresh(low), fresh(high)
    z = integral(f, args, at, end, value)
    if z is None:
        return None
    for place, x, sign in ((at, low, -1.0), (end, high, 1.0)):
        if is_active(x) and np.isfinite(place):
            z = z + sign * f(np.asarray(x), *args) * (x - place)
    return z


def entering(name: str, definition: Any) -> None:
    """Enter definition(self, call, given) of a method of `rv_continuous`; where it gives None the code is followed."""
    function = vars(rv_continuous).get(name)
    if function is None:
        return
    plain = followed(function)

    @RULES.defined(function)
    def integrated(function: Any, call: Any, given: dict[str, Any]) -> Any:
        args, kwargs = call
        if not is_active(args[1:]):
            return plain(*args, **kwargs)
        value = fresh(called(function, call))
        y = definition(given, value)
        return plain(*args, **kwargs) if y is None else carrying(value, y)


def raw_moment(given: dict[str, Any], value: Any) -> Any:
    """The integral of x^m times the density."""
    self, m, shapes = given["self"], given["m"], given["args"]
    low, high = self._get_support(*shapes)
    return integral(lambda x, *shapes: x**m * self._pdf(x, *shapes), shapes, low, high, value)


def quantile_moment(given: dict[str, Any], value: Any) -> Any:
    """The integral of the quantile function to the power m. Pareto's, b / (b - m), is too singular for sums over nodes."""
    self, m, shapes = given["self"], given["m"], given["args"]
    if type(self) is type(stats.pareto):
        exists = shapes[0] > m
        return np.where(exists, shapes[0] / np.where(exists, shapes[0] - m, 1.0), np.nan)[()]
    return integral(lambda q, *shapes: self._ppf(q, *shapes) ** m, shapes, 0.0, 1.0, value)


def entropy(given: dict[str, Any], value: Any) -> Any:
    """The integral of -f log f."""
    self, shapes = given["self"], given["args"]
    low, high = self._get_support(*shapes)
    return integral(lambda x, *shapes: special.entr(self._pdf(x, *shapes)), shapes, low, high, value)


def cdf_single(given: dict[str, Any], value: Any) -> Any:
    """The integral of the density up to x."""
    self, shapes = given["self"], given["args"]
    low, _ = self._get_support(*shapes)
    if is_active(low):
        return None
    return probability(self._pdf, shapes, low, given["x"], value)


entering("_mom0_sc", raw_moment)
entering("_mom1_sc", quantile_moment)
entering("_entropy", entropy)
entering("_cdf_single", cdf_single)
