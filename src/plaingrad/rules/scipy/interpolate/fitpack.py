"""FITPACK's functions of splines that are given by knots and coefficients: in these, and in queries.

They are in `dfitpack` or `_dfitpack`, since SciPy 1.18 all in `_fitpack`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.define import _source_of
from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import at_roots, called, carrying, fresh, is_active, refuse
from plaingrad.rules.scipy.interpolate.basis import basis, places
from plaingrad.rules.scipy.interpolate.evaluation import spline
from plaingrad.rules.scipy.interpolate.piecewise import spans


def module(name: str) -> Any:
    """A compiled module of `scipy.interpolate`, or None; Python ones of these names are deprecated and warn."""
    try:
        found = importlib.import_module(f"scipy.interpolate.{name}")
    except ImportError:
        return None
    return None if str(found.__file__).endswith(".py") else found


OLD = module("_dfitpack") or module("dfitpack")  # by f2py, until SciPy 1.17
NEW = module("_fitpack")
IS_NEW = hasattr(NEW, "splev")


def compiled(*names: str) -> Callable[[Any], Any]:
    """Decorate a definition of a function of FITPACK's: definition(function, *args, **kwargs)."""

    def enter(definition: Any) -> Any:
        for name in names:
            for where in (OLD, NEW):
                function = getattr(where, name, None)
                if function is not None:
                    keep(
                        Rule(function, "composed", definition=partial_of(definition, function), source=_source_of(definition))
                    )
        return definition

    return enter


def partial_of(definition: Any, function: Any) -> Any:
    """A Python function that calls definition(function, ...)."""

    def defined(*args: Any, **kwargs: Any) -> Any:
        return definition(function, *args, **kwargs)

    return defined


def ends(t: Any, k: int) -> tuple[Any, Any]:
    """Where the spline begins and ends."""
    return t[k], t[len(t) - k - 1]


def values(t: Any, c: Any, k: int, x: Any, nu: int, e: int) -> tuple[Any, int]:
    """Beyond the ends e=0 extrapolates, 1 is zero, 3 is the value at the end; 2 is an error."""
    low, high = ends(t, k)
    if e == 2 and np.any((x < low) | (x > high)):
        return np.zeros(len(x)), 1
    if e == 3:
        x = np.clip(x, low, high)
    z = spline(t, np.reshape(c[: len(t) - k - 1], (-1, 1)), k, x, nu, True)[:, 0]
    if e == 1:
        z = np.where((x < low) | (x > high), 0.0, z)
    return z, 0


@compiled("splev")
def splev(function, t, c, k, x, e=0):
    return values(t, c, k, x, 0, e)


@compiled("splder")
def splder(function, t, c, k, x, nu=1, e=0):
    """The order of the derivative comes before the queries in SciPy 1.18."""
    return values(t, c, k, nu, int(x), e) if IS_NEW else values(t, c, k, x, int(nu), e)


def integral(t: Any, c: Any, k: int, a: Any, b: Any) -> Any:
    """The integral from a to b of splines that are zero beyond their ends; c: (n, ...)."""
    n = len(t) - k - 1
    weights = integrals(t, k, np.stack([a, b]))
    return np.tensordot(weights[1] - weights[0], c[:n], 1)


def integrals(t: Any, k: int, x: Any) -> Any:
    """The integrals of all basis functions up to x: (len(x), n)."""
    n = len(t) - k - 1
    low, high = ends(t, k)
    x = np.clip(x, low, high)
    longer = np.concatenate([t[:1], t, t[-1:]])
    span, _ = spans(longer, k + 1, x, True)
    rows = basis(longer, k + 1, x, span)
    columns = places(span - k - 1, k + 2)
    # The integral of B_j is the sum of the basis functions of one degree more from j + 1 on, times its area.
    above = (columns[:, None, :] >= np.arange(1, n + 1)[None, :, None]) * rows[:, None, :]
    before = (x[:, None] * 0.0) + np.sum(above, 2)
    return before * ((t[k + 1 : k + 1 + n] - t[:n]) / (k + 1))


@compiled("splint")
def splint(function, t, c, k, a, b):
    z = integral(t, c, k, np.asarray(a), np.asarray(b))
    return z if IS_NEW else (z, called(function, ((t, c, k, a, b), {}))[1])


@compiled("sproot")
def sproot(function, t, c, mest=10, **options):
    """Roots by the implicit function theorem."""
    found, count, code = called(function, ((t, c, mest), options))
    if not is_active((t, c)) or not count:
        return found, count, code
    roots = fresh(np.asarray(found)[: int(count)])
    return at_roots(function, lambda x: values(t, c, 3, x, 0, 0)[0], roots), count, code


@compiled("spalde")
def spalde(function, t, c, k1, x):
    """The spline and all its derivatives at one place."""
    _, code = called(function, ((t, c, k1, x), {}))
    at = np.reshape(x, (1,))
    return np.stack([values(t, c, k1 - 1, at, nu, 0)[0][0] for nu in range(k1)]), code


@compiled("insert", "_insert")
def insert(function, per, t, c, k, x, m):
    """Boehm's rule: one more knot at x, m times."""
    tt, cc, code = called(function, ((per, t, c, k, x, m), {}))
    if code or not is_active((t, c, x)):
        return tt, cc, code
    if per:
        refuse(function, "the spline is periodic")
    at = np.asarray(x)
    t, c = t * 1.0, c[: len(t) - k - 1]
    for _ in range(m):
        span = int(spans(t, k, np.reshape(at, (1,)), True)[0][0])
        share = np.reshape((at - t[span - k + 1 : span + 1]) / (t[span + 1 : span + k + 1] - t[span - k + 1 : span + 1]), (-1,))
        middle = share * c[span - k + 1 : span + 1] + (1 - share) * c[span - k : span]
        c = np.concatenate([c[: span - k + 1], middle, c[span:]])
        t = np.concatenate([t[: span + 1], np.reshape(at, (1,)), t[span + 1 :]])
    full = np.concatenate([c, np.zeros(len(cc) - len(c))]) if len(cc) > len(c) else c[: len(cc)]
    return carrying(fresh(tt), t), carrying(fresh(cc), full), code


# -- surfaces ----------------------------------------------------------------------------------------------------------


def axis_rows(t: Any, k: int, x: Any, nu: int) -> tuple[Any, Any]:
    """Basis functions at x, moved to the ends as FITPACK does, and their columns."""
    x = np.clip(x, *ends(t, k))
    span, _ = spans(t, k, x, True)
    return basis(t, k, x, span, nu), places(span - k, k + 1)


def coefficients(tx: Any, ty: Any, c: Any, kx: int, ky: int) -> Any:
    """As a matrix."""
    nx, ny = len(tx) - kx - 1, len(ty) - ky - 1
    return np.reshape(c[: nx * ny], (nx, ny))


def on_grid(tx: Any, ty: Any, c: Any, kx: int, ky: int, nux: int, nuy: int, x: Any, y: Any) -> tuple[Any, int]:
    """(len(x), len(y)) values: first along x, then along y."""
    c = coefficients(tx, ty, c, kx, ky)
    u, at = axis_rows(tx, kx, x, nux)
    v, on = axis_rows(ty, ky, y, nuy)
    half = np.sum(u[:, :, None] * c[at], 1)
    return np.sum(half[:, on] * v, 2), 0


def at_points(tx: Any, ty: Any, c: Any, kx: int, ky: int, nux: int, nuy: int, x: Any, y: Any) -> tuple[Any, int]:
    """One value for each (x, y)."""
    c = coefficients(tx, ty, c, kx, ky)
    u, at = axis_rows(tx, kx, x, nux)
    v, on = axis_rows(ty, ky, y, nuy)
    return np.sum(np.sum(c[at[:, :, None], on[:, None, :]] * v[:, None, :], 2) * u, 1), 0


def evaluated(form: Any, ordered: bool) -> Any:
    """The definition of one of four functions; where SciPy reports an error, so does this."""

    def surface(function, tx, ty, c, kx, ky, *rest):
        nux, nuy, x, y = rest if ordered else (0, 0, *rest)
        z, code = called(function, ((tx, ty, c, kx, ky, *rest), {}))
        return (z, code) if code else form(tx, ty, c, kx, ky, int(nux), int(nuy), np.atleast_1d(x), np.atleast_1d(y))

    return surface


compiled("bispev")(evaluated(on_grid, False))
compiled("parder")(evaluated(on_grid, True))
compiled("bispeu")(evaluated(at_points, False))
compiled("pardeu")(evaluated(at_points, True))


@compiled("pardtc")
def pardtc(function, tx, ty, c, kx, ky, nux, nuy):
    """The coefficients of a partial derivative."""
    found, code = called(function, ((tx, ty, c, kx, ky, nux, nuy), {}))
    if code:
        return found, code
    z = derived(tx, kx, coefficients(tx, ty, c, kx, ky), nux)
    z = np.transpose(derived(ty, ky, np.transpose(z), nuy))
    flat = np.reshape(z, (-1,))
    return np.concatenate([flat, np.zeros(len(found) - len(flat))]) if len(found) > len(flat) else flat, code


def derived(t: Any, k: int, c: Any, order: int) -> Any:
    """The coefficients along the first axis of the derivative of that order."""
    for m in range(order):
        q = k - m
        n = len(t) - q - 1
        c = q * (c[1:] - c[:-1]) / np.reshape(t[q + 1 : q + n] - t[1:n], (-1, 1))
        t = t[1:-1]
    return c


@compiled("dblint")
def dblint(function, tx, ty, c, kx, ky, xb, xe, yb, ye):
    """The integral over a rectangle."""
    half = integral(tx, coefficients(tx, ty, c, kx, ky), kx, np.asarray(xb), np.asarray(xe))
    return integral(ty, half, ky, np.asarray(yb), np.asarray(ye))


@compiled("fpchec")
def fpchec(function, *args):
    """Whether knots fit sites: a code."""
    return called(function, (args, {}))


__all__ = ["NEW", "OLD", "compiled"]
