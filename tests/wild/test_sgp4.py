"""sgp4: satellites in pure Python, thousands of scalar operations on one mutable record."""

import pytest

import plaingrad

model = pytest.importorskip("sgp4.model")

SPACE_STATION = (
    "1 25544U 98067A   19343.69339541  .00001764  00000-0  38792-4 0  9991",
    "2 25544  51.6439 211.2001 0007417  17.6667  85.6398 15.50103472202482",
)


def test_where_a_satellite_is_depends_on_the_time(agrees):
    satellite = model.Satrec.twoline2rv(*SPACE_STATION)

    def height(minutes):
        error, r, v = satellite.sgp4_tsince(minutes)
        return (r[0] ** 2 + r[1] ** 2 + r[2] ** 2) ** 0.5

    agrees(height, 100.0, rtol=1e-5)


def test_the_velocity_is_the_derivative_of_the_position():
    """The model's velocity leaves small terms out: it agrees with its position to about one part in a thousand."""
    satellite = model.Satrec.twoline2rv(*SPACE_STATION)
    for axis in range(3):
        slope = plaingrad.grad(lambda minutes: satellite.sgp4_tsince(minutes)[1][axis])(40.0)
        velocity = satellite.sgp4_tsince(40.0)[2][axis]
        assert slope / 60 == pytest.approx(velocity, rel=5e-3, abs=5e-3)


def launched(drag, eccentricity, perigee, inclination, anomaly, motion, node):
    satellite = model.Satrec()
    satellite.sgp4init(
        model.WGS72, "i", 5, 18441.785, drag, 6.969196665e-13, 0.0, eccentricity, perigee, inclination,
        anomaly, motion, node,
    )
    return satellite


def test_orbital_elements_of_a_new_record(agrees):
    def seen(*elements):
        error, r, v = launched(2.8098e-5, *elements).sgp4_tsince(90.0)
        assert error == 0
        return r[0] + 2 * r[1] - r[2] + 100 * v[0]

    agrees(seen, 0.1859667, 5.7904, 0.5980929, 0.3373093, 0.0472294, 6.0863854, rtol=1e-5, step=1e-5)


def test_the_drag_tells_after_three_days(agrees):
    def seen(drag):
        satellite = launched(1e-5 * drag, 0.1859667, 5.7904, 0.5980929, 0.3373093, 0.0472294, 6.0863854)
        error, r, v = satellite.sgp4_tsince(4320.0)
        return r[0] + 2 * r[1] - r[2]

    agrees(seen, 2.8098, rtol=1e-4, step=1e-2)


def test_a_deep_space_orbit_with_resonances(agrees):
    """A Molniya orbit: lunar and solar terms, and an integrator inside."""

    def seen(eccentricity, inclination, anomaly):
        satellite = launched(1e-4, eccentricity, 4.7, inclination, anomaly, 0.00875, 2.0)
        assert satellite.method == "d"
        error, r, v = satellite.sgp4_tsince(1500.0)
        assert error == 0
        return r[0] + 2 * r[1] - r[2]

    agrees(seen, 0.68, 1.1, 0.4, rtol=1e-5)
