"""utm: map projections by series, with branches on the zone."""

import pytest

import plaingrad

utm = pytest.importorskip("utm")


def test_a_position_on_the_map(agrees):
    agrees(lambda lat, lon: utm.from_latlon(lat, lon)[0], 51.2, 7.5)
    agrees(lambda lat, lon: utm.from_latlon(lat, lon)[1], -33.9, 18.4)


def test_there_and_back_is_the_identity():
    def there_and_back(lat, lon):
        return utm.to_latlon(*utm.from_latlon(lat, lon))[0]

    assert plaingrad.grad(there_and_back, (0, 1))(51.2, 7.5) == pytest.approx((1.0, 0.0), abs=1e-6)
