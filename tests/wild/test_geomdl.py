"""geomdl: NURBS curves and surfaces, lists of lists behind properties and caches."""

import math
import warnings

import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("geomdl")
    from geomdl import NURBS, BSpline, utilities

POINTS = [[0.0, 0.0], [1.0, 2.0], [2.5, 2.0], [4.0, -1.0], [5.0, 0.5]]


def curve(points):
    c = BSpline.Curve()
    c.degree = 3
    c.ctrlpts = points
    c.knotvector = utilities.generate_knot_vector(c.degree, len(points))
    return c


def test_a_point_of_a_curve_is_linear_in_the_control_points():
    """The basis functions are what multiplies the control points: they sum to one."""
    gradient = plaingrad.grad(lambda points: curve(points).evaluate_single(0.4)[0])(POINTS)
    basis = [row[0] for row in gradient]
    assert sum(basis) == pytest.approx(1.0)
    assert sum(b * p[0] for b, p in zip(basis, POINTS)) == pytest.approx(curve(POINTS).evaluate_single(0.4)[0])
    assert all(row[1] == 0.0 for row in gradient)


def test_the_speed_along_a_curve(agrees):
    def speed(points, u):
        dx, dy = curve(points).derivatives(u, 1)[1]
        return math.hypot(dx, dy)

    agrees(speed, POINTS, 0.4)


def test_the_weights_of_a_rational_curve(agrees):
    def height(points, weights, u):
        c = NURBS.Curve()
        c.degree = 2
        c.ctrlpts = points
        c.weights = weights
        c.knotvector = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
        x, y = c.evaluate_single(u)
        return y + 0.1 * x

    agrees(height, [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [1.0, 0.7071, 1.0], 0.3)
