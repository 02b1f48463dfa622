"""Fits of splines whose knots are known: in data, sites, weights, knots and the smoothing factor.

With B the values of the basis functions at the sites, W the weights and D the jumps of the highest derivative at the knots
inside (Dierckx, Curve and Surface Fitting with Splines, chapters 4 and 5) the coefficients solve

    (B^T W^2 B + q D^T D) c = B^T W^2 y

q is 0 for least squares; for smoothing it is the number with which sum (W (y - B c))^2 = s. FITPACK stops when that holds to
a thousandth, so q is found exactly first: derivatives are those of the exact fit. Which of the two was solved, and whether
it was, is read off what SciPy returns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.implicit import at_roots, is_active, outside, refuse
from plaingrad.rules.scipy.interpolate.basis import (
    basis,
    jumps,
    onto,
    pairs,
    places,
    sparsely,
    squares,
    values_of,
)
from plaingrad.rules.scipy.interpolate.piecewise import spans

SAME = 1e-6  # how near our coefficients are to SciPy's, of their size
STOPS = 2e-3  # how near FITPACK comes to s


class Rows(NamedTuple):
    """A sparse matrix: the columns of the entries of each row, and their values."""

    columns: Any
    values: Any


class Fit(NamedTuple):
    """One fit.

    Attributes:
        n: how many coefficients there are.
        sites: the weighted basis functions at the sites.
        bends: the rows whose squares are added with the factor q, or None.
        y: the weighted data, (m, d).
        size: how many equal coefficients close a periodic spline; 0 if it is not.
    """

    n: int
    sites: Rows
    bends: Rows | None
    y: Any
    closed: int = 0


# -- knots -------------------------------------------------------------------------------------------------------------


def data_at(t: Any, x: Any) -> tuple[Any, Any, Any]:
    """For each knot two sites whose mean it is, often one site twice, and whether there are such."""
    order = np.argsort(x, kind="stable")
    sites = x[order]
    right = np.clip(np.searchsorted(sites, t), 0, len(x) - 1)
    left = np.clip(right - 1, 0, None)
    exact = sites[right] == t
    middle = 0.5 * (sites[left] + sites[right]) == t
    return order[np.where(exact, right, left)], order[right], exact | middle


constant(data_at)


def followed(t: Any, x: Any, low: Any, high: Any, k: int, closed: bool) -> Any:
    """The knots t that FITPACK chose, as they move with the sites x and the ends: where they lie is structure."""
    n = len(t) - k - 1
    one, other, found = data_at(t[k + 1 : n], x)
    middle = np.where(found, 0.5 * (x[one] + x[other]), t[k + 1 : n])
    low, high = np.reshape(low, (1,)), np.reshape(high, (1,))
    if not closed:
        return np.concatenate([np.repeat(low, k + 1), middle, np.repeat(high, k + 1)])
    inner, period = np.concatenate([low, middle, high]), high - low
    count = len(inner) - 1
    before = [inner[count - 1 - (j % count)] - period * (1 + j // count) for j in range(k)][::-1]
    after = [inner[1 + (j % count)] + period * (1 + j // count) for j in range(k)]
    return np.concatenate([*before, inner, *after])


# -- equations ---------------------------------------------------------------------------------------------------------


def line(x: Any, w: Any, y: Any, t: Any, k: int, closed: bool = False) -> Fit:
    """The fit of a curve, y: (m, d). A periodic one has its last k coefficients equal to the first, and no last site."""
    if closed:
        x, w, y = x[:-1], w[:-1], y[:-1]
    n = len(t) - k - 1
    size = n - k if closed else n
    span, _ = spans(t, k, x, True)
    rows = basis(t, k, x, span) * w[:, None]
    bends = None
    if n > k + 1:
        rise = jumps(t, k)
        bends = Rows(wrapped(places(np.arange(len(rise)), k + 2), size), rise)
    return Fit(size, Rows(wrapped(places(span - k, k + 1), size), rows), bends, y * w[:, None], k if closed else 0)


def wrapped(columns: Any, size: int) -> Any:
    """Columns of a periodic spline."""
    return columns % size


constant(wrapped)


def coefficients(fit: Fit, q: Any = None) -> Any:
    """The c of the equations above, (n, d); an interpolation is solved as such, its squares are not formed."""
    sites = fit.sites
    if q is None and len(sites.values) == fit.n:
        i = np.repeat(np.arange(fit.n), sites.columns.shape[1])
        return sparsely(fit.n, i, np.reshape(sites.columns, (-1,)), np.reshape(sites.values, (-1,)), fit.y)
    i, j = pairs(sites.columns)
    entries = squares(sites.values)
    if q is not None:
        more_i, more_j = pairs(fit.bends.columns)
        i, j = np.concatenate([i, more_i]), np.concatenate([j, more_j])
        entries = np.concatenate([entries, q * squares(fit.bends.values)])
    return sparsely(fit.n, i, j, entries, onto(fit.n, sites.columns, sites.values, fit.y))


def misfit(fit: Fit, c: Any) -> Any:
    """sum (W (y - B c))^2."""
    return np.sum((fit.y - values_of(fit.sites.columns, fit.sites.values, c)) ** 2)


def opened(fit: Fit, c: Any) -> Any:
    """All coefficients of a periodic spline."""
    return np.concatenate([c, c[: fit.closed]]) if fit.closed else c


# -- what was solved ---------------------------------------------------------------------------------------------------


def kind_of(fit: Fit, c: Any, s: Any) -> tuple[str, float]:
    """("least", 0) if c are least squares, ("smooth", log q) if they smooth with fp = s, otherwise ("none", 0)."""
    r = fit.y - values_of(fit.sites.columns, fit.sites.values, c)
    g = onto(fit.n, fit.sites.columns, fit.sites.values, r)
    size = np.sqrt(np.sum(fit.sites.values**2)) * np.sqrt(np.sum(fit.y**2)) + 1e-300
    if len(fit.sites.values) == fit.n:
        return ("least", 0.0) if np.max(np.abs(r)) <= SAME * np.max(np.abs(fit.y), initial=1e-300) else ("none", 0.0)
    if np.max(np.abs(g)) <= 1e-9 * size:
        return "least", 0.0
    if fit.bends is None or s is None:
        return "none", 0.0
    bends = fit.bends
    h = onto(fit.n, bends.columns, bends.values, values_of(bends.columns, bends.values, c))
    q = np.sum(g * h) / np.sum(h * h)
    if not q > 0 or np.max(np.abs(g - q * h)) > 1e-5 * np.max(np.abs(g)) + 1e-9 * size:
        return "none", 0.0
    return smoothing(lambda u: misfit(fit, coefficients(fit, np.exp(u))) - s, np.log(q), s)


def smoothing(equation: Any, u: float, s: float) -> tuple[str, float]:
    """("smooth", u) with equation(u) = fp - s = 0 near FITPACK's u = log q, by secants; ("none", 0) if it is not near."""
    r = equation(u)
    if not abs(r) <= STOPS * s:
        return "none", 0.0
    before, u = u, u + 1e-4
    for _ in range(20):
        last, r = r, equation(u)
        if r == last:
            break
        step = r * (u - before) / (r - last)
        before, u = u, u - step
        if not abs(step) > 1e-12 * (1 + abs(u)):
            break
    return "smooth", float(u)


constant(kind_of)


@outside
def further_out(order: int, function: Any, equation: Any, u: float) -> Any:
    """The same at the level that this one is inside of."""
    return root_of(function, equation, u)


def root_of(function: Any, equation: Any, u: float) -> Any:
    """The root of an equation, whose value u is, with its derivatives at every level."""
    return at_roots(function, equation, further_out(function, equation, u)) if is_active(equation(u)) else u


def solved(function: Any, fit: Fit, q: Any) -> Any:
    """`coefficients`, refused where the equations are singular."""
    try:
        return coefficients(fit, q)
    except (np.linalg.LinAlgError, RuntimeError):
        refuse(function, "its coefficients are not determined by the data: knots without data between them")


def solved_like(function: Any, fit: Fit, c: Any, s: Any = None) -> Any:
    """The coefficients of `fit`, which SciPy says are c, (n, d), with their derivatives."""
    kind, u = kind_of(fit, c, s)
    if kind == "none":
        refuse(function, "what it returned is neither a least-squares nor a smoothing spline; has it converged?")
    if kind == "smooth":
        return coefficients(fit, np.exp(root_of(function, lambda u: misfit(fit, coefficients(fit, np.exp(u))) - s, u)))
    z = solved(function, fit, None)
    if not is_close(z, c):
        refuse(function, "its coefficients are not determined by the data: knots without data between them")
    return z


def is_close(z: Any, c: Any) -> bool:
    """Whether our coefficients are SciPy's."""
    return bool(np.all(np.abs(z - c) <= SAME * np.max(np.abs(c), initial=1e-300)))


constant(is_close)
