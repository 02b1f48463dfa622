"""haversine: distances on a sphere, over scalars and, with Numba, element by element."""

import numpy as np
import pytest

pytest.importorskip("haversine")
from haversine import Unit, haversine, haversine_vector, inverse_haversine  # noqa: E402


@pytest.mark.parametrize("unit", [Unit.KILOMETERS, Unit.METERS, Unit.MILES, Unit.RADIANS])
def test_distances_in_every_unit(agrees, unit):
    agrees(lambda a, b: haversine((a, b), (45.0, 5.0), unit=unit), 46.0, 4.0)


def test_a_point_at_a_distance(agrees):
    agrees(lambda d, direction: inverse_haversine((45.0, 5.0), d, direction)[0], 46.0, 0.4)


def test_many_distances_at_once(agrees):
    agrees(lambda a: haversine_vector(a, np.array([[45.0, 5.0], [40.0, 3.0]])).sum(), np.array([[46.0, 4.0], [41.0, 2.0]]))
