"""shapely: geometry in a C++ library. Constants are free, active coordinates are refused by the class that takes them."""

import pytest

pytest.importorskip("shapely")
from shapely import geometry  # noqa: E402


def test_constant_geometry(agrees):
    triangle = geometry.Polygon([(0, 0), (2, 0), (0, 1)])
    agrees(lambda x: x * triangle.area + geometry.Point(3.0, 4.0).distance(geometry.Point(0, 0)) * x**2, 1.5)


def test_active_coordinates_are_refused(refuses):
    refuses(lambda x: geometry.Point(x, 1.0).distance(geometry.Point(0, 0)), 1.5, called="shapely.Point")
    refuses(lambda x: geometry.Polygon([(0, 0), (x, 0), (0, 1)]).area, 1.5, called="shapely.Polygon")
    refuses(lambda x: geometry.LineString([(0, 0), (x, 1)]).length, 1.5, called="shapely.LineString")
    refuses(lambda x: geometry.Point(1.0, 1.0).buffer(x).area, 1.5, called="shapely.")
