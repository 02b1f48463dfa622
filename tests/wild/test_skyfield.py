"""skyfield: angles, distances and places on Earth, without any ephemeris file."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("skyfield")
    from skyfield import functions
    from skyfield.api import Angle, Distance, load, wgs84

TIMES = load.timescale(builtin=True)


def test_units(agrees):
    agrees(lambda a: Angle(degrees=a).radians, 30.0)
    agrees(lambda a: Distance(au=a).km, 1.5)


def test_places_on_earth(agrees):
    agrees(lambda a: wgs84.latlon(a, -75.0).itrs_xyz.km[0], 40.0)
    agrees(lambda a: wgs84.latlon(a, -75.0).at(TIMES.tt_jd(2451545.3)).position.km[0], 40.0)


def test_vectors(agrees):
    agrees(lambda a: functions.rot_x(a).sum(), 0.4)
    agrees(lambda v: functions.length_of(v), np.array([1.0, 2.0, 3.5]))
    agrees(lambda v: functions.angle_between(v, np.array([1.0, 2.0, 3.0])), np.array([3.0, 1.0, 2.0]))
