"""Polynomials in Bernstein's basis, in several variables, and roots of piecewise polynomials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.interpolate import _ppoly

from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.implicit import at_roots, called, fresh, is_active, refuse
from plaingrad.rules.scipy.interpolate.piecewise import pieces, polynomials, rising


@polynomials("evaluate_bernstein", mutates=True)
def evaluate_bernstein(c, x, xp, nu, extrapolate, out):
    """sum c[a] binomial(k, a) s^a (1 - s)^(k - a), s from 0 to 1 in each piece; derivatives by differences of c."""
    piece, none = pieces(x, xp, extrapolate)
    width = (x[piece + 1] - x[piece])[:, None]
    s = (xp - x[piece])[:, None] / width
    degree = c.shape[0] - 1
    z = np.zeros((len(xp), c.shape[2]), c.dtype)
    if nu <= degree:
        d = [c[a][piece] for a in range(degree + 1)]
        for _ in range(nu):
            d = [d[a + 1] - d[a] for a in range(len(d) - 1)]
        q = degree - nu
        for a in range(q + 1):
            z = z + math.comb(q, a) * d[a] * s**a * (1 - s) ** (q - a)
        z = z * (rising(q + 1, nu) / width**nu)
    out[...] = np.where(none[:, None], np.nan, z)


def places_of(cells: Any, counts: Any) -> Any:
    """Cells of several axes as places in a flat array, the last axis fastest."""
    return np.ravel_multi_index(tuple(cells), tuple(counts))


constant(places_of)


@polynomials("evaluate_nd", mutates=True)
def evaluate_nd(c, xs, ks, xp, dx, extrapolate, out):
    """The tensor product: powers of the distances from the breaks of each axis."""
    cells, powers, outside = [], [], np.zeros(len(xp), bool)
    for axis in range(len(xs)):
        piece, none = pieces(xs[axis], xp[:, axis], extrapolate)
        outside = outside | none
        cells.append(piece)
        powers.append(slopes_of_powers(xp[:, axis] - xs[axis][piece], int(ks[axis]) - 1, int(dx[axis])))
    place = places_of(cells, [len(line) - 1 for line in xs])
    factor = powers[0]
    for power in powers[1:]:
        factor = np.reshape(factor[:, :, None] * power[:, None, :], (len(xp), -1))
    z = np.sum(np.moveaxis(c[:, place], 0, 1) * factor[:, :, None], 1)
    out[...] = np.where(outside[:, None], np.nan, z)


def slopes_of_powers(s: Any, degree: int, order: int) -> Any:
    """The derivatives of s^degree, ..., s, 1."""
    columns = []
    for power in range(degree, -1, -1):
        columns.append(rising(power - order + 1, order) * s ** (power - order) if power >= order else np.zeros(s.shape))
    return np.stack(columns, -1)


def where_roots_lie(c: Any, x: Any, y: Any, n: int, roots: Any) -> tuple[Any, Any]:
    """The piece of each root, and for roots that are jumps at a break its number, otherwise -1."""
    piece, _ = pieces(x, roots, True)
    jump = np.full(len(roots), -1)
    for k in range(len(roots)):
        i = int(piece[k])
        if roots[k] == x[i] and i > 0:
            left = np.polyval(c[:, i - 1, n], x[i] - x[i - 1]) - y
            right = c[-1, i, n] - y
            jump[k] = i if left * right < 0 else -1
    return piece, jump


constant(where_roots_lie)


@polynomials("real_roots")
def real_roots(c, x, y, report_discont, extrapolate):
    """Each root by the implicit function theorem in its piece; where the polynomial jumps over y, the break."""
    found = called(_ppoly.real_roots, ((c, x, y, report_discont, extrapolate), {}))
    if not is_active((c, x, y)):
        return found
    return [followed(c, x, y, n, found[n]) for n in range(len(found))]


def followed(c: Any, x: Any, y: Any, n: int, roots: Any) -> Any:
    """The roots of column n with their derivatives."""
    roots = np.asarray(roots)
    if not roots.size:
        return roots
    if np.any(np.isnan(roots)):
        refuse(_ppoly.real_roots, "a piece of the polynomial is constant and all of it is a root")
    roots = fresh(roots)
    piece, jump = where_roots_lie(c, x, y, n, roots)
    smooth = np.flatnonzero(jump < 0)
    z = np.where(jump < 0, roots, x[jump])
    if not smooth.size:
        return z
    part = piece[smooth]

    def equation(at: Any) -> Any:
        s = at - x[part]
        value = c[0, part, n]
        for k in range(1, c.shape[0]):
            value = value * s + c[k, part, n]
        return value - y

    z[smooth] = at_roots(_ppoly.real_roots, equation, roots[smooth])
    return z
