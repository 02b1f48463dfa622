"""geographiclib: geodesics of the ellipsoid in pure Python, by Newton's method over series in several classes."""

import math

import pytest

import plaingrad

geodesic = pytest.importorskip("geographiclib.geodesic")
WGS84 = geodesic.Geodesic.WGS84


def test_the_distance_between_two_points(agrees):
    agrees(lambda a, b, c, d: WGS84.Inverse(a, b, c, d)["s12"], 41.32, 174.81, 40.96, -5.5)


def test_a_derivative_of_the_distance_is_the_azimuth():
    """First variation of length: ds/d(lat2) = M(lat2) cos(azi2), M the meridional radius of curvature."""
    lat1, lon1, lat2, lon2 = 10.0, 20.0, 35.0, 60.0
    slope = plaingrad.grad(lambda lat: WGS84.Inverse(lat1, lon1, lat, lon2)["s12"])(lat2)
    e2 = WGS84.f * (2 - WGS84.f)
    radius = WGS84.a * (1 - e2) / (1 - e2 * math.sin(math.radians(lat2)) ** 2) ** 1.5
    azimuth = math.radians(WGS84.Inverse(lat1, lon1, lat2, lon2)["azi2"])
    assert slope == pytest.approx(radius * math.cos(azimuth) * math.pi / 180, rel=1e-7)


def test_where_a_geodesic_ends(agrees):
    def end(latitude, longitude, azimuth, distance):
        there = WGS84.Direct(latitude, longitude, azimuth, distance)
        return there["lat2"] + 0.3 * there["lon2"] + 0.1 * there["azi2"]

    agrees(end, 40.0, 10.0, 30.0, 1.0e6)


def test_points_along_a_line(agrees):
    def climb(azimuth, step):
        line = WGS84.Line(40.0, 10.0, azimuth)
        return sum(line.Position(step * k)["lat2"] ** 2 for k in range(1, 5))

    agrees(climb, 75.0, 2.0e5)


def test_the_area_of_a_polygon(agrees):
    def area(corners):
        polygon = WGS84.Polygon()
        for latitude, longitude in corners:
            polygon.AddPoint(latitude, longitude)
        return polygon.Compute()[2] / 1e6

    agrees(area, [[10.0, 10.0], [11.0, 30.0], [25.0, 28.0], [22.0, 12.0]], rtol=1e-5)
