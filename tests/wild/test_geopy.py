"""geopy: geodesics by geographiclib, great circles, points that validate and normalise."""

import pytest

pytest.importorskip("geopy")
from geopy import Point, distance  # noqa: E402


def test_distances_on_sphere_and_ellipsoid(agrees):
    agrees(lambda a: distance.great_circle((a, 4.0), (45.0, 5.0)).km, 46.0)
    agrees(lambda a: distance.geodesic((a, 4.0), (45.0, 5.0)).miles, 46.0)


def test_points_and_destinations(agrees):
    agrees(lambda a: Point(a, 4.0).latitude * 2.0, 46.0)
    agrees(lambda d: distance.distance(kilometers=d).destination((45.0, 5.0), 30.0).latitude, 46.0)


def test_a_path_over_several_points(agrees):
    agrees(lambda a: distance.great_circle((a, 4.0), (45.0, 5.0), (44.0, a / 8.0)).meters, 46.0)
