"""The compiled layer of SciPy's own B-splines: matrices of their values, and splines of several variables."""

from __future__ import annotations

import numpy as np

from plaingrad.rules.scipy.compiled import constant, definitions
from plaingrad.rules.scipy.interpolate.basis import basis, places
from plaingrad.rules.scipy.interpolate.evaluation import spline
from plaingrad.rules.scipy.interpolate.piecewise import spans

try:
    from scipy.interpolate import _dierckx
except ImportError:  # before SciPy 1.15
    _dierckx = None

try:
    from scipy.interpolate import _bspl
except ImportError:  # since SciPy 1.15 it is _dierckx
    _bspl = None

compiled = _dierckx or _bspl
defined = definitions(compiled)

constant(*[getattr(compiled, name, None) for name in ("find_interval", "fpknot")])


def band(x, t, k, offset):
    """(columns, lines, values) of the basis functions at x[i] in row offset + i of a band matrix with kl = ku = k."""
    span, _ = spans(t, k, x, True)
    columns = places(span - k, k + 1)
    return columns, np.arange(len(x))[:, None] + offset - columns + 2 * k, basis(t, k, x, span)


@defined("_coloc", mutates=True)
def collocation(x, t, k, ab, offset=0):
    """SciPy gives the transpose of the band matrix."""
    columns, lines, values = band(x, t, k, offset)
    ab[columns, lines] = values


@defined("_colloc", mutates=True)
def collocation_before(x, t, k, ab, offset=0):
    """That of SciPy until 1.14, where ab is not transposed; of a periodic spline some rows end outside, and are not used."""
    columns, lines, values = band(x, t, k, offset)
    inside = lines < ab.shape[0]
    ab[lines[inside], columns[inside]] = values[inside]


if _dierckx is not None:

    @definitions(_dierckx)("evaluate_spline")
    def evaluate_spline_since_1_15(t, c, k, x, nu, extrapolate):
        return spline(t, c, k, x, nu, extrapolate)


if _bspl is not None:

    @definitions(_bspl)("evaluate_spline", mutates=True)
    def evaluate_spline(t, c, k, xp, nu, extrapolate, out):
        out[...] = spline(t, c, k, xp, nu, extrapolate)


def one_row(t, k, x, left, nu):
    """The k + 1 basis functions of one span at the number x."""
    return np.reshape(basis(t, k, np.reshape(x, (1,)), np.reshape(left, (1,)), nu), (-1,))


@defined("evaluate_all_bspl")
def evaluate_all_bspl(t, k, xval, m, nu=0):
    return one_row(t, k, np.asarray(xval), np.asarray(m), nu)


@defined("_handle_lhs_derivatives", mutates=True)
def conditions_at_end(t, k, xval, ab, kl, ku, deriv_ords, offset=0):
    """Rows of the derivatives that are given at an end, until SciPy 1.14."""
    span, _ = spans(t, k, np.reshape(xval, (1,)), True)
    for row in range(deriv_ords.shape[0]):
        values = one_row(t, k, np.asarray(xval), span, int(deriv_ords[row]))
        for a in range(k + 1):
            column = int(span[0]) - k + a
            ab[kl + ku + offset + row - column, column] = values[a]


@defined("data_matrix")
def data_matrix(x, t, k, w, extrapolate=False):
    """The weighted basis functions at each x, the columns of the first, and how many there are."""
    span, _ = spans(t, k, x, True)
    rows = basis(t, k, x, span) * w[:, None]
    return rows, (span - k).astype(np.int64), len(t) - k - 1


@defined("_make_design_matrix")
def make_design_matrix(x, t, k, extrapolate, indices):
    span, _ = spans(t, k, x, True)
    rows = basis(t, k, x, span)
    indices[...] = np.reshape(places(span - k, k + 1), (-1,))
    return np.reshape(rows, (-1,)), indices


# -- several variables -------------------------------------------------------------------------------------------------


def axes_of(xi, t, len_t, k, nu):
    """For each axis the basis functions at the queries, the numbers of the first, and which queries lie outside."""
    rows, firsts = [], []
    outside = np.zeros(len(xi), bool)
    for d in range(xi.shape[1]):
        line, degree, x = t[d][: int(len_t[d])], int(k[d]), xi[:, d]
        span, none = spans(line, degree, x, False)
        outside = outside | none
        rows.append(basis(line, degree, x, span, int(nu[d])) if nu[d] <= degree else np.zeros((len(x), degree + 1)))
        firsts.append(span - degree)
    return rows, firsts, outside


def tensor(rows):
    """The products of one entry of each axis, the last axis fastest: (m, product of widths)."""
    z = rows[0]
    for row in rows[1:]:
        z = np.reshape(z[:, :, None] * row[:, None, :], (len(z), -1))
    return z


def tensor_columns(firsts, widths, strides):
    """Where these products have their coefficients."""
    z = np.zeros((len(firsts[0]), 1), np.int64)
    for first, width, stride in zip(firsts, widths, strides):
        columns = (first[:, None] + np.arange(width)) * int(stride)
        z = np.reshape(z[:, :, None] + columns[:, None, :], (len(z), -1))
    return z


constant(tensor_columns)


@defined("evaluate_ndbspline")
def evaluate_ndbspline(xi, t, len_t, k, nu, extrapolate, c1r, num_c_tr, strides_c1, indices_k1d):
    rows, firsts, outside = axes_of(xi, t, len_t, k, nu)
    columns = tensor_columns(firsts, [row.shape[1] for row in rows], np.asarray(strides_c1)[: len(rows)] // num_c_tr)
    c = np.reshape(c1r, (-1, num_c_tr))
    z = np.sum(tensor(rows)[:, :, None] * c[columns], 1)
    none = np.any(np.isnan(xi), 1) | (outside & (not extrapolate))
    return np.where(none[:, None], np.nan, z)


@defined("_coloc_nd")
def colocation_nd(xvals, t, len_t, k, indices_k1d, cstrides):
    rows, firsts, _ = axes_of(xvals, t, len_t, k, np.zeros(xvals.shape[1], int))
    columns = tensor_columns(firsts, [row.shape[1] for row in rows], cstrides)
    width = columns.shape[1]
    return np.reshape(tensor(rows), (-1,)), np.reshape(columns, (-1,)), np.arange(0, len(xvals) * width + 1, width)
