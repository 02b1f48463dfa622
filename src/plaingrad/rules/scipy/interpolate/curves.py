"""Fits of curves: `splrep`, `splprep`, `UnivariateSpline` and its kind, `make_lsq_spline`, `make_splrep`, `make_splprep`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.forms import find
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, mover
from plaingrad.rules.scipy.interpolate.fitpack import compiled
from plaingrad.rules.scipy.interpolate.fits import (
    coefficients,
    followed,
    line,
    misfit,
    opened,
    solved_like,
)

RULES = Rules()
FITPACK = ("scipy.interpolate._fitpack_py",)
MODERN = ("scipy.interpolate._bsplines", "scipy.interpolate._fitpack_repro")


def columns_of(c: Any, n: int) -> Any:
    """Coefficients, padded or not, as one column."""
    return np.reshape(c[:n], (-1, 1))


def fit_like(function: Any, x: Any, y: Any, w: Any, t: Any, k: int, c: Any, s: Any, closed: bool) -> tuple[Any, Any]:
    """(all coefficients, the sum of squares) with derivatives; y and c: (m, d), (n, d)."""
    fit = line(x, w, y, t, k, closed)
    z = solved_like(function, fit, c[: fit.n], s)
    return opened(fit, z), misfit(fit, z)


def padded(found: Any, z: Any) -> Any:
    """SciPy's array with the derivatives of its first entries; what follows is none of the spline's."""
    return carrying(fresh(found), np.concatenate([z, found[len(z) :]]))


@RULES.defined(find("splrep", FITPACK))
def splrep(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(t, c, k), and with `full_output` more."""
    outcome = called(function, call)
    x, y, k, closed = np.atleast_1d(given["x"]), np.atleast_1d(given["y"]), given["k"], bool(given["per"])
    ends = [x[0] if given["xb"] is None or closed else given["xb"], x[-1] if given["xe"] is None or closed else given["xe"]]
    if not is_active((x, y, given["w"], given["t"], given["s"], *ends)):
        return outcome
    t, c, _ = outcome[0] if given["full_output"] else outcome
    w = np.ones(len(x)) if given["w"] is None else np.atleast_1d(given["w"])
    s = given["s"]
    if s is None:
        s = 0.0 if given["w"] is None else len(x) - np.sqrt(2 * len(x))
    if closed:
        y = np.concatenate([y[:-1], y[:1]])
    moved = knots_given(t, given["t"], x, ends, k, closed)
    n = len(t) - k - 1
    z, fp = fit_like(function, x, y[:, None], w, moved, k, columns_of(c, n), s, closed)
    tck = (carrying(fresh(t), moved), padded(c, z[:, 0]), k)
    if not given["full_output"]:
        return tck
    return tck, carrying(fresh(outcome[1]), fp), *outcome[2:]


def knots_given(t: Any, inside: Any, x: Any, ends: Any, k: int, closed: bool) -> Any:
    """The knots: those that the user gives inside, or what FITPACK chose."""
    if inside is None:
        return followed(t, x, ends[0], ends[1], k, closed)
    inside = np.atleast_1d(inside)
    if closed:
        return followed(t, np.concatenate([x[:1] * 0 + ends[0], inside, x[:1] * 0 + ends[1]]), *ends, k, True)
    low, high = np.reshape(ends[0], (1,)), np.reshape(ends[1], (1,))
    return np.concatenate([np.repeat(low, k + 1), inside, np.repeat(high, k + 1)])


def lengths(x: Any) -> Any:
    """The share of the polygon's length up to each point, x: (d, m)."""
    steps = np.sqrt(np.sum((x[:, 1:] - x[:, :-1]) ** 2, 0))
    total = np.concatenate([np.zeros(1), np.cumsum(steps)])
    u = total / total[-1]
    return np.concatenate([u[:-1], np.ones(1)])


@RULES.defined(find("splprep", FITPACK))
def splprep(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """((t, [c, ...], k), u), and with `full_output` more."""
    outcome = called(function, call)
    x, u, k, closed, s = np.atleast_1d(given["x"]), given["u"], given["k"], bool(given["per"]), given["s"]
    if not is_active((x, u, given["w"], given["t"], s, given["ub"], given["ue"])):
        return outcome
    m = x.shape[1]
    (t, c, _), at = outcome[0] if given["full_output"] else outcome
    if closed:
        x = np.concatenate([x[:, :-1], x[:, :1]], 1)
    sites = lengths(x) if u is None else np.asarray(u)
    w = np.ones(m) if given["w"] is None else np.atleast_1d(given["w"])
    s = m - np.sqrt(2 * m) if s is None else s
    ends = [sites[0], sites[-1]]
    if u is not None and not closed:
        ends = [e if given[name] is None else given[name] for e, name in zip(ends, ("ub", "ue"))]
    inside = given["t"]
    if inside is not None:
        inside = np.atleast_1d(inside)[k + 1 : len(t) - k - 1]
    moved = knots_given(t, inside, sites, ends, k, closed)
    z, fp = fit_like(function, sites, np.transpose(x), w, moved, k, np.transpose(np.stack(c)), s, closed)
    n = len(t) - k - 1
    tck = [carrying(fresh(t), moved), [carrying(fresh(c[d]), z[:n, d]) for d in range(len(c))], k]
    found = tck, carrying(fresh(at), sites)
    return (found, carrying(fresh(outcome[1]), fp), *outcome[2:]) if given["full_output"] else found


# -- UnivariateSpline --------------------------------------------------------------------------------------------------


@mover
def replaced(data: Any, facts: dict[int, Any]) -> Any:
    """`_data` of a spline with other entries."""
    return tuple([facts.get(k, entry) for k, entry in enumerate(data)])


def refit(function: Any, data: Any, x: Any, y: Any, w: Any, ends: Any, t: Any, s: Any) -> Any:
    """`_data` = x, y, w, xb, xe, k, s, n, t, c, fp, fpint, nrdata, ier with derivatives; t: knots if they were given."""
    k, n = int(data[5]), int(data[7])
    found, c = data[8], data[9]
    x, y = np.asarray(x), np.asarray(y)
    w = np.ones(len(x)) if w is None else np.asarray(w)
    low, high = [end if given is None else given for end, given in zip((x[0], x[-1]), ends)]
    moved = followed(found[:n], x, low, high, k, False) if t is None else t
    s = float(len(x)) if s is None else s
    z, fp = fit_like(function, x, y[:, None], w, moved, k, columns_of(c, n - k - 1), s, False)
    facts = {0: x, 1: y, 2: w, 3: low, 4: high, 6: data[6] if t is not None else s}
    facts |= {8: padded(found, moved), 9: padded(c, z[:, 0]), 10: carrying(fresh(data[10]), fp)}
    return replaced(data, facts)


@compiled("fpcurf0")
def fpcurf0(function, x, y, k, w=None, xb=None, xe=None, s=None, **options):
    options = {"w": w, "xb": xb, "xe": xe, "s": s, **options}
    data = called(function, ((x, y, k), options))
    return refit(function, data, x, y, w, (xb, xe), None, s) if is_active((x, y, w, xb, xe, s)) else data


@compiled("fpcurf1")
def fpcurf1(function, x, y, w, xb, xe, k, s, *rest):
    """The fit continued."""
    data = called(function, ((x, y, w, xb, xe, k, s, *rest), {}))
    return refit(function, data, x, y, w, (xb, xe), None, s) if is_active((x, y, w, xb, xe, s)) else data


@compiled("fpcurfm1")
def fpcurfm1(function, x, y, k, t, w=None, xb=None, xe=None):
    """The fit with knots that are given."""
    data = called(function, ((x, y, k, t), {"w": w, "xb": xb, "xe": xe}))
    return refit(function, data, x, y, w, (xb, xe), np.asarray(t), None) if is_active((x, y, w, t, xb, xe)) else data


@RULES.defined(find("_curfit", ("scipy.interpolate._fitpack2",)))
def curfit(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """All three, since SciPy 1.18."""
    data = called(function, call)
    x, y, w, t, s, ends = [given[name] for name in ("x", "y", "w", "t", "s")] + [(given["xb"], given["xe"])]
    if not is_active((x, y, w, t, s, ends)):
        return data
    return refit(function, data, x, y, w, ends, np.asarray(t) if given["iopt"] == -1 else None, s)


# -- SciPy's own -------------------------------------------------------------------------------------------------------


def spline_like(spline: Any, t: Any, z: Any) -> Any:
    """The spline with other knots and coefficients, z: (n, d)."""
    n = len(t) - spline.k - 1
    c = np.reshape(z, (n, *spline.c.shape[1:]))
    return type(spline).construct_fast(
        carrying(fresh(spline.t), t), carrying(fresh(spline.c), c), spline.k, spline.extrapolate, spline.axis
    )


def as_columns(y: Any, axis: int) -> Any:
    """Data with the axis of the sites first, as a matrix."""
    y = np.moveaxis(np.asarray(y), axis, 0)
    return np.reshape(y, (y.shape[0], -1))


@RULES.defined(find("make_lsq_spline", MODERN))
def make_lsq_spline(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Least squares with knots that are given; complex data, too."""
    spline = called(function, call)
    x, t, w = np.asarray(given["x"]), np.asarray(given["t"]), given["w"]
    y = as_columns(given["y"], given["axis"])
    if not is_active((x, y, t, w)):
        return spline
    w = np.ones(len(x)) if w is None else np.asarray(w)
    if np.iscomplexobj(y):
        z = coefficients(line(x, w, y.real, t, given["k"])) + 1j * coefficients(line(x, w, y.imag, t, given["k"]))
    else:
        z = coefficients(line(x, w, y, t, given["k"]))
    return spline_like(spline, t, z)


@RULES.defined(find("make_splrep", MODERN))
def make_splrep(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """What `splrep` is, in SciPy's own words."""
    spline = called(function, call)
    x, y, t, s = np.asarray(given["x"]), np.asarray(given["y"]), given["t"], given["s"]
    if not is_active((x, y, given["w"], t, s, given["xb"], given["xe"])):
        return spline
    ends = [x[0] if given["xb"] is None else given["xb"], x[-1] if given["xe"] is None else given["xe"]]
    closed = given.get("bc_type") == "periodic"
    return respline(function, spline, x, y[:, None], given["w"], t, s, ends, closed)


def respline(function: Any, spline: Any, x: Any, y: Any, w: Any, t: Any, s: Any, ends: Any, closed: bool) -> Any:
    """`spline` with derivatives; y: (m, d)."""
    k = spline.k
    found = np.asarray(spline.t)
    w = np.ones(len(x)) if w is None else np.asarray(w)
    moved = followed(found, x, *ends, k, closed) if t is None else np.asarray(t)
    c = np.reshape(spline.c, (len(found) - k - 1, -1))
    z, _ = fit_like(function, x, y, w, moved, k, c, s, closed)
    return spline_like(spline, moved, z)


@RULES.defined(find("make_splprep", MODERN))
def make_splprep(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(spline, u)."""
    spline, at = called(function, call)
    x, u, t, s = np.stack([np.asarray(part) for part in given["x"]]), given["u"], given["t"], given["s"]
    if not is_active((x, u, given["w"], t, s, given["ub"], given["ue"])):
        return spline, at
    sites = lengths(x) if u is None else np.asarray(u)
    ends = [e if given[name] is None else given[name] for e, name in zip((sites[0], sites[-1]), ("ub", "ue"))]
    closed = given.get("bc_type") == "periodic"
    made = respline(function, spline, sites, np.transpose(x), given["w"], t, s, ends, closed)
    return made, carrying(fresh(at), sites)
