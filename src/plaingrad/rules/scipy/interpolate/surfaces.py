"""Fits of surfaces: on grids (`RectBivariateSpline`) and of scattered points with knots that are given, or none inside."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.forms import find
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, refuse
from plaingrad.rules.scipy.interpolate.basis import basis, jumps, places, values_of
from plaingrad.rules.scipy.interpolate.bsplines import tensor, tensor_columns
from plaingrad.rules.scipy.interpolate.fitpack import OLD, compiled
from plaingrad.rules.scipy.interpolate.fitpack import on_grid as surface_on_grid
from plaingrad.rules.scipy.interpolate.fits import (
    SAME,
    Fit,
    Rows,
    coefficients,
    followed,
    line,
    misfit,
    root_of,
    smoothing,
    solved_like,
)
from plaingrad.rules.scipy.interpolate.piecewise import spans

RULES = Rules()


# -- grids -------------------------------------------------------------------------------------------------------------


def on_grid(along: Fit, across: Fit, z: Any, q: Any) -> Any:
    """C with (B^T B + q D^T D) of each axis on its two sides, and the data z, (mx, my)."""
    half = coefficients(along._replace(y=z), q if along.bends is not None else None)
    full = coefficients(across._replace(y=np.transpose(half)), q if across.bends is not None else None)
    return np.transpose(full)


def sampled(fit: Fit, c: Any) -> Any:
    """B c."""
    return values_of(fit.sites.columns, fit.sites.values, c)


def misfit_on(along: Fit, across: Fit, z: Any, c: Any) -> Any:
    """The sum of squares."""
    return np.sum((z - np.transpose(sampled(across, np.transpose(sampled(along, c))))) ** 2)


def matrices(fit: Fit) -> tuple[Any, Any]:
    """B^T B and D^T D."""
    both = []
    for rows in (fit.sites, fit.bends):
        full = np.zeros((1 if rows is None else len(rows.values), fit.n))
        if rows is not None:
            np.put_along_axis(full, rows.columns, rows.values, 1)
        both.append(full.T @ full)
    return both[0], both[1]


def kind_on_grid(along: Fit, across: Fit, z: Any, c: Any, s: Any) -> tuple[str, float]:
    """Which equations c solves, as `fits.kind_of`."""
    least = on_grid(along, across, z, None)
    if np.max(np.abs(least - c)) <= SAME * np.max(np.abs(c), initial=1e-300):
        return "least", 0.0
    (gram, rise), (other, fall) = matrices(along), matrices(across)
    g = gram @ (least - c) @ other
    first, second = rise @ c @ other + gram @ c @ fall, rise @ c @ fall
    a, b = np.sum(second * first), np.sum(first * first)
    q = np.sum(g * first) / b
    for _ in range(50):  # of q b + q^2 a = <g, first>
        q = q - (q * b + q * q * a - np.sum(g * first)) / (b + 2 * q * a)
    if not q > 0 or np.max(np.abs(g - q * first - q * q * second)) > 1e-4 * np.max(np.abs(g)):
        return "none", 0.0
    return smoothing(lambda u: misfit_on(along, across, z, on_grid(along, across, z, np.exp(u))) - s, np.log(q), s)


constant(kind_on_grid)


def fit_on_grid(function: Any, given: Any, found: Any) -> Any:
    """(tx, ty, c, fp) with derivatives; given: x, y, z, ends, kx, ky, s; found: the same as SciPy has them."""
    x, y, z, (xb, xe, yb, ye), kx, ky, s = given
    tx, ty, c, fp = found
    xb, xe = np.min(x) if xb is None else xb, np.max(x) if xe is None else xe
    yb, ye = np.min(y) if yb is None else yb, np.max(y) if ye is None else ye
    tx, ty = followed(tx, x, xb, xe, kx, False), followed(ty, y, yb, ye, ky, False)
    z = np.reshape(z, (len(x), len(y)))
    along, across = line(x, np.ones(len(x)), z, tx, kx), line(y, np.ones(len(y)), np.transpose(z), ty, ky)
    kind, u = kind_on_grid(along, across, z, np.reshape(c, (along.n, across.n)), s)
    if kind == "none":
        refuse(function, "what it returned is neither a least-squares nor a smoothing spline; has it converged?")
    q = None
    if kind == "smooth":
        q = np.exp(
            root_of(function, lambda u: misfit_on(along, across, z, on_grid(along, across, z, np.exp(u))) - s, u)
        )
    full = on_grid(along, across, z, q)
    return tx, ty, np.reshape(full, (-1,)), carrying(fresh(fp), misfit_on(along, across, z, full))


def with_zeros(found: Any, z: Any) -> Any:
    """SciPy's array, longer than what counts, with derivatives."""
    return carrying(fresh(found), np.concatenate([z, found[len(z) :]]))


def regridded(function: Any, outcome: Any, given: Any) -> Any:
    """(nx, tx, ny, ty, c, fp, code) with derivatives."""
    nx, tx, ny, ty, c, fp, code = outcome
    _, _, _, _, kx, ky, _ = given
    if code not in (0, -1, -2) or not is_active(given):
        return outcome
    count = (nx - kx - 1) * (ny - ky - 1)
    u, v, z, fp = fit_on_grid(function, given, (tx[:nx], ty[:ny], c[:count], fp))
    return nx, with_zeros(tx, u), ny, with_zeros(ty, v), with_zeros(c, z), fp, code


@compiled("regrid_smth")
def regrid_smth(function, x, y, z, xb=None, xe=None, yb=None, ye=None, kx=3, ky=3, s=0.0, *maxit):
    given = (x, y, z, (xb, xe, yb, ye), int(kx), int(ky), s)
    return regridded(function, called(function, ((x, y, z, xb, xe, yb, ye, kx, ky, s, *maxit), {})), given)


@RULES.defined(find("_regrid_smth", ("scipy.interpolate._fitpack2",)))
def regrid_since_1_18(function: Any, call: Any, given: dict[str, Any]) -> Any:
    ends = tuple([given[name] for name in ("xb", "xe", "yb", "ye")])
    facts = (*[np.asarray(given[name]) for name in "xyz"], ends, given["kx"], given["ky"], given["s"])
    return regridded(function, called(function, call), facts)


# -- scattered points --------------------------------------------------------------------------------------------------


def plane(x: Any, y: Any, z: Any, w: Any, tx: Any, ty: Any, kx: int, ky: int) -> Fit:
    """The fit of a surface to points."""
    nx, ny = len(tx) - kx - 1, len(ty) - ky - 1
    at, _ = spans(tx, kx, x, True)
    on, _ = spans(ty, ky, y, True)
    rows = tensor([basis(tx, kx, x, at), basis(ty, ky, y, on)]) * w[:, None]
    columns = tensor_columns([at - kx, on - ky], [kx + 1, ky + 1], [ny, 1])
    parts, where = [], []
    width = max(kx, ky) + 2
    if nx > kx + 1:
        rise = jumps(tx, kx)
        parts.append(np.concatenate([np.repeat(rise, ny, 0), np.zeros((len(rise) * ny, width - kx - 2))], 1))
        where.append(strips(len(rise), ny, width, ny, 1, nx * ny))
    if ny > ky + 1:
        fall = jumps(ty, ky)
        parts.append(np.concatenate([np.repeat(fall, nx, 0), np.zeros((len(fall) * nx, width - ky - 2))], 1))
        where.append(strips(len(fall), nx, width, 1, ny, nx * ny))
    bends = Rows(np.concatenate(where), np.concatenate(parts)) if parts else None
    return Fit(nx * ny, Rows(columns, rows), bends, (z * w)[:, None])


def strips(rows: int, copies: int, width: int, step: int, aside: int, size: int) -> Any:
    """The columns of the jumps across one axis, for each coefficient of the other."""
    first = places(np.arange(rows), width) * step
    columns = first[:, None, :] + (np.arange(copies) * aside)[None, :, None]
    return np.minimum(np.reshape(columns, (-1, width)), size - 1)


constant(strips)


def fit_of_points(function: Any, given: Any, found: Any, code: int, chosen: bool) -> Any:
    """(tx, ty, c, fp) with derivatives; given: x, y, z, w, ends, kx, ky, s and the knots inside; `chosen` by FITPACK."""
    x, y, z, w, (xb, xe, yb, ye), kx, ky, s, inside = given
    tx, ty, c, fp = found
    if code == 10:
        refuse(function, "FITPACK has not accepted its input")
    if chosen and (len(tx) > 2 * kx + 2 or len(ty) > 2 * ky + 2):
        refuse(
            function,
            "FITPACK puts knots at weighted means of the points, which move with all of them; "
            "give the knots that it found (get_knots) to LSQBivariateSpline, or to bisplrep with task=-1",
        )
    x, y, z = np.asarray(x), np.asarray(y), np.asarray(z)
    w = np.ones(len(x)) if w is None else np.asarray(w)
    tx = bordered(inside[0], np.min(x) if xb is None else xb, np.max(x) if xe is None else xe, kx)
    ty = bordered(inside[1], np.min(y) if yb is None else yb, np.max(y) if ye is None else ye, ky)
    fit = plane(x, y, z, w, tx, ty, kx, ky)
    full = solved_like(function, fit, np.reshape(c, (-1, 1)), s)
    return tx, ty, full[:, 0], carrying(fresh(fp), misfit(fit, full))


def bordered(inside: Any, low: Any, high: Any, k: int) -> Any:
    """The knots inside, with the ends k + 1 times."""
    ends = [np.repeat(np.reshape(end, (1,)), k + 1) for end in (low, high)]
    return np.concatenate([ends[0], inside, ends[1]])


@compiled("surfit_smth")
def surfit_smth(function, x, y, z, w, xb, xe, yb, ye, kx, ky, s=None, eps=None, lwrk2=None, *rest):
    if function is not getattr(OLD, "surfit_smth", None):
        refuse(function, "it is called by itself")
    outcome = called(function, ((x, y, z, w, xb, xe, yb, ye, kx, ky), {"s": s, "eps": eps, "lwrk2": lwrk2}))
    given = (x, y, z, w, (xb, xe, yb, ye), int(kx), int(ky), s, (np.zeros(0), np.zeros(0)))
    return smoothed(function, outcome, given)


def smoothed(function: Any, outcome: Any, given: Any) -> Any:
    """(nx, tx, ny, ty, c, fp, ..., code) with derivatives."""
    nx, tx, ny, ty, c, fp = outcome[:6]
    kx, ky = given[5], given[6]
    if outcome[-1] > 10 or not is_active(given):  # SciPy calls it once more with more memory
        return outcome
    count = (nx - kx - 1) * (ny - ky - 1)
    u, v, z, fp = fit_of_points(function, given, (tx[:nx], ty[:ny], c[:count], fp), outcome[-1], True)
    return nx, with_zeros(tx, u), ny, with_zeros(ty, v), with_zeros(c, z), fp, *outcome[6:]


@RULES.defined(find("_surfit_smth", ("scipy.interpolate._fitpack2",)))
def surfit_smth_since_1_18(function: Any, call: Any, given: dict[str, Any]) -> Any:
    ends = tuple([given[name] for name in ("xb", "xe", "yb", "ye")])
    data = [given[name] for name in ("x", "y", "z", "w")]
    return smoothed(
        function, called(function, call),
        (*data, ends, given["kx"], given["ky"], given["s"], (np.zeros(0), np.zeros(0))),
    )  # fmt: skip


@compiled("surfit_lsq")
def surfit_lsq(function, x, y, z, nx, tx, ny, ty, w, xb, xe, yb, ye, kx, ky, eps, **options):
    if function is not getattr(OLD, "surfit_lsq", None):
        refuse(function, "it is called by itself")
    outcome = called(function, ((x, y, z, nx, tx, ny, ty, w, xb, xe, yb, ye, kx, ky, eps), options))
    return least(function, outcome, (x, y, z, w, (xb, xe, yb, ye), int(kx), int(ky)), nx, tx, ny, ty)


@RULES.defined(find("_surfit_lsq", ("scipy.interpolate._fitpack2",)))
def surfit_lsq_since_1_18(function: Any, call: Any, given: dict[str, Any]) -> Any:
    ends = tuple([given[name] for name in ("xb", "xe", "yb", "ye")])
    data = [given[name] for name in ("x", "y", "z", "w")]
    facts = (*data, ends, given["kx"], given["ky"])
    return least(function, called(function, call), facts, given["nx"], given["tx"], given["ny"], given["ty"])


def least(function: Any, outcome: Any, facts: Any, nx: int, tx: Any, ny: int, ty: Any) -> Any:
    """(tx, ty, c, fp, code) with derivatives. Without a box the ends are FITPACK's choice, and stay."""
    u, v, c, fp, code = outcome
    kx, ky = facts[5], facts[6]
    inside = np.asarray(tx)[kx + 1 : nx - kx - 1], np.asarray(ty)[ky + 1 : ny - ky - 1]
    if code > 10 or not is_active((facts, inside)):
        return outcome
    count = (nx - kx - 1) * (ny - ky - 1)
    box = boxed(facts, inside, (u[0], u[nx - 1], v[0], v[ny - 1]))
    given = (*facts[:4], box, kx, ky, None, inside)
    one, other, z, fp = fit_of_points(function, given, (u[:nx], v[:ny], c[:count], fp), code, False)
    return with_zeros(u, one), with_zeros(v, other), with_zeros(c, z), fp, code


def boxed(facts: Any, inside: Any, found: Any) -> Any:
    """The ends: those given, or the least and greatest site where SciPy took these, or constants."""
    x, y, ends = np.asarray(facts[0]), np.asarray(facts[1]), facts[4]
    extremes = np.min(x), np.max(x), np.min(y), np.max(y)
    return tuple(
        [
            given if given is not None else (extreme if extreme == end else end)
            for given, extreme, end in zip(ends, extremes, found)
        ]
    )


@RULES.defined(find("bisplrep", ("scipy.interpolate._fitpack_py",)))
def bisplrep(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """[tx, ty, c, kx, ky], and with `full_output` more."""
    outcome = called(function, call)
    names = ("x", "y", "z", "w", "xb", "xe", "yb", "ye", "s", "tx", "ty")
    if not is_active([given[name] for name in names]):
        return outcome
    x, y, z = [np.ravel(np.asarray(given[name])) for name in "xyz"]
    s, kx, ky = given["s"], given["kx"], given["ky"]
    if s is None:
        s = 0.0 if given["w"] is None else len(x) - np.sqrt(2 * len(x))
    tx, ty, c, _, _ = outcome[0] if given["full_output"] else outcome
    knots = given["tx"], given["ty"]
    own = given["task"] == -1 and knots[0] is not None and knots[1] is not None
    inside = (np.zeros(0), np.zeros(0))
    if own:
        inside = (np.asarray(knots[0])[kx + 1 : len(tx) - kx - 1], np.asarray(knots[1])[ky + 1 : len(ty) - ky - 1])
    box = tuple([given[name] for name in ("xb", "xe", "yb", "ye")])
    facts = (x, y, z, given["w"], box, kx, ky, None if own else s, inside)
    fp = outcome[1] if given["full_output"] else 0.0
    u, v, full, fp = fit_of_points(function, facts, (tx, ty, c, fp), 0, not own)
    tck = [carrying(fresh(tx), u), carrying(fresh(ty), v), with_zeros(c, full), kx, ky]
    return (tck, fp, *outcome[2:]) if given["full_output"] else tck


@RULES.defined(find("bisplev", ("scipy.interpolate._fitpack_py",)))
def bisplev(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """A matrix, or what is left of it where one of its sides is 1."""
    found = called(function, call)
    tx, ty, c, kx, ky = given["tck"]
    x, y = np.atleast_1d(given["x"]), np.atleast_1d(given["y"])
    if not is_active((tx, ty, c, x, y)):
        return found
    z, _ = surface_on_grid(np.asarray(tx), np.asarray(ty), np.asarray(c), kx, ky, given["dx"], given["dy"], x, y)
    return np.reshape(z, np.shape(found)) if np.ndim(found) else z[0, 0]
