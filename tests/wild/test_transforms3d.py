"""transforms3d: rotations in NumPy, small arrays that are written element by element."""

import numpy as np
import pytest

pytest.importorskip("transforms3d")
from transforms3d import affines, axangles, euler, quaternions  # noqa: E402

WEIGHTS = np.random.default_rng(0).normal(size=(3, 3))


def test_euler_angles_to_a_matrix(agrees):
    agrees(lambda a, b, c: (WEIGHTS * euler.euler2mat(a, b, c, "sxyz")).sum(), 0.3, 0.5, -0.7)


def test_a_matrix_back_to_euler_angles(agrees):
    def angle(a, b, c):
        return euler.mat2euler(euler.euler2mat(a, b, c, "rzyx"), "rzyx")[1]

    _, gradients = agrees(angle, 0.3, 0.5, -0.7)
    assert gradients == pytest.approx((0.0, 1.0, 0.0), abs=1e-12)


def test_quaternions(agrees):
    def f(q, v):
        q = q / np.sqrt(np.dot(q, q))
        r = quaternions.qmult(q, quaternions.qconjugate(quaternions.axangle2quat([1.0, 2.0, 3.0], 0.4)))
        return quaternions.rotate_vector(v, r)[1] + (WEIGHTS * quaternions.quat2mat(r)).sum()

    agrees(f, np.array([0.8, 0.1, -0.3, 0.4]), np.array([1.0, -2.0, 0.5]))


def test_an_axis_and_an_angle(agrees):
    agrees(lambda axis, angle: (WEIGHTS * axangles.axangle2mat(axis, angle)).sum(), [0.2, 0.5, -0.4], 0.6)


def test_a_composed_affine_map(agrees):
    def f(translation, zooms):
        m = affines.compose(translation, np.eye(3), zooms)
        return (m[:3] @ np.array([1.0, 2.0, 3.0, 1.0])).sum()

    agrees(f, np.array([0.1, 0.2, 0.3]), np.array([1.1, 0.9, 1.3]))
