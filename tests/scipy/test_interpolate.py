"""Interpolators in values, knots and queries."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

interpolate = pytest.importorskip("scipy.interpolate")
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.arange(12.0) + 0.3 * np.sin(np.arange(12.0))
Y = np.cos(X)
QUERIES = np.array([0.5, 3.3, 7.1, 9.2])
VALUES = np.cos(np.outer(np.arange(1.0, 7.0), np.arange(1.0, 8.0)) * 0.7) + 0.1 * np.arange(7.0) ** 2
GRID = (np.arange(6.0), np.arange(7.0) ** 1.1)
POINTS = np.array([[0.4, 0.6], [2.2, 3.3], [4.4, 5.5]])
PIECEWISE = {
    "cubic": interpolate.CubicSpline,
    "natural": lambda x, y: interpolate.CubicSpline(x, y, bc_type="natural"),
    "clamped": lambda x, y: interpolate.CubicSpline(x, y, bc_type="clamped"),
    "pchip": interpolate.PchipInterpolator,
    "akima": interpolate.Akima1DInterpolator,
    "hermite": lambda x, y: interpolate.CubicHermiteSpline(x, y, y * 2),
    "linear": interpolate.interp1d,
    "barycentric": interpolate.BarycentricInterpolator,
    "grid": lambda x, y: interpolate.RegularGridInterpolator((x,), y),
}


@pytest.mark.parametrize("name", PIECEWISE)
def test_interpolators_in_values_queries_and_knots(name):
    make = PIECEWISE[name]
    agrees(lambda y: make(X, y)(QUERIES), Y)
    agrees(lambda q: make(X, Y)(q), QUERIES, tolerance=1e-6)
    agrees(lambda x: make(x, Y)(QUERIES), X, tolerance=1e-6, nested=False)


@pytest.mark.parametrize("k", [3, 5])
def test_interpolating_b_splines(k):
    agrees(lambda y: interpolate.make_interp_spline(X, y, k=k)(QUERIES), Y)
    agrees(lambda q: interpolate.make_interp_spline(X, Y, k=k)(q), QUERIES, tolerance=1e-6)
    agrees(lambda y: interpolate.make_interp_spline(X, y, k=k).derivative()(QUERIES), Y, nested=False)


def test_b_splines_in_coefficients_knots_and_queries():
    knots = np.arange(16.0) + 0.2 * np.cos(np.arange(16.0))
    at = QUERIES + 3
    agrees(lambda c: interpolate.BSpline(knots, c, 3)(at), Y)
    agrees(lambda t: interpolate.BSpline(t, Y, 3)(at), knots, nested=False)
    agrees(lambda q: interpolate.BSpline(knots, Y, 3)(q, nu=1), at, tolerance=1e-6)
    agrees(lambda c: interpolate.splev(at, (knots, np.append(c, np.zeros(4)), 3)), Y, nested=False)
    agrees(lambda q: interpolate.splev(q, interpolate.splrep(X, Y)), QUERIES, nested=False)


OF_CUBIC = {
    "derivatives": lambda s: s.derivative()(QUERIES) + s(QUERIES, 2),
    "integral": lambda s: s.integrate(0.5, 7.0) - s.integrate(9.0, 2.0),
    "antiderivative": lambda s: s.antiderivative(2)(QUERIES),
    "beyond the ends": lambda s: s(np.array([-1.0, 12.5])),
}


@pytest.mark.parametrize("name", OF_CUBIC)
def test_what_is_made_of_a_cubic_spline(name):
    agrees(lambda y: OF_CUBIC[name](interpolate.CubicSpline(X, y)), Y)


def test_an_integral_in_its_ends():
    spline = interpolate.CubicSpline(X, Y)
    agrees(lambda q: spline.integrate(q[0], q[2]), QUERIES)


def test_polynomials_given_by_coefficients_with_descending_breaks():
    breaks = np.arange(7.0)[::-1].copy()
    agrees(lambda c: interpolate.PPoly(c.reshape(2, 6), breaks)(np.array([0.3, 2.2, 5.9])), Y)


@pytest.mark.parametrize("method", ["linear", "nearest", "pchip"])
def test_regular_grids(method):
    agrees(lambda v: interpolate.RegularGridInterpolator(GRID, v, method=method)(POINTS), VALUES)
    agrees(lambda p: interpolate.RegularGridInterpolator(GRID, VALUES, method=method)(p), POINTS, tolerance=1e-6)
    agrees(lambda v: interpolate.interpn(GRID, v, POINTS), VALUES, nested=False)


def test_queries_outside_are_nan_and_have_no_slope():
    spline = interpolate.CubicSpline(X, Y)
    value, slope = plaingrad.jvp(lambda q: spline(q, extrapolate=False), (np.array([-1.0, 2.0]),), (np.ones(2),))
    assert np.isnan(value[0]) and np.isclose(slope[1], spline(2.0, 1))
