"""pyquaternion: a class with operators, properties and caches of its norm."""

import numpy as np
import pytest

pytest.importorskip("pyquaternion")
from pyquaternion import Quaternion  # noqa: E402


def test_rotations(agrees):
    agrees(lambda a: Quaternion(axis=[1.0, 0.0, 0.0], angle=a).rotate(np.array([0.0, 1.0, 0.0]))[1], 0.3)
    agrees(lambda a: Quaternion(axis=[1.0, 0.2, 0.0], angle=a).rotation_matrix.sum(), 0.3)


def test_products_norms_and_angles(agrees):
    agrees(lambda a: (Quaternion(a, 0.2, 0.3, 0.4) * Quaternion(0.1, 0.2, 0.3, a)).w, 0.3)
    agrees(lambda a: Quaternion(a, 0.2, 0.3, 0.4).normalised.x, 0.3)
    agrees(lambda a: Quaternion(a, 0.2, 0.3, 0.4).angle, 0.3)
    agrees(lambda a: Quaternion.log(Quaternion(a, 0.2, 0.3, 0.4)).x, 0.3)


def test_interpolation_between_rotations(agrees):
    end = Quaternion(axis=[0, 1, 0], angle=1.0)
    agrees(lambda a: Quaternion.slerp(Quaternion(axis=[1, 0, 0], angle=a), end, 0.3).w, 0.3)
