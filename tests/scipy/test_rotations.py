"""`scipy.spatial.transform` compared with differences, also at the identity and for matrices that are nearly rotations."""

import numpy as np
import pytest
from scipy.spatial import transform

import plaingrad

from tests.scipy.agreement import agrees

pytest.importorskip("scipy.spatial.transform._rotation_cy", reason="compiled classes before SciPy 1.17")

RNG = np.random.default_rng(0)
Rotation, Slerp, RotationSpline = transform.Rotation, transform.Slerp, transform.RotationSpline
RigidTransform = transform.RigidTransform
Q, R, V, ONE = (
    RNG.standard_normal((3, 4)),
    RNG.standard_normal((3, 3)),
    RNG.standard_normal((3, 3)),
    RNG.standard_normal(3),
)
MATRICES = Rotation.from_quat(Q).as_matrix()
TWISTS = RNG.standard_normal((3, 6))
LOWEST = np.tile(np.array([0.0, 0.0, 0.0, 1.0]), (3, 1, 1))


def changed(x):
    r = Rotation.from_rotvec(x)
    r[1] = Rotation.from_rotvec(x[0])
    return r.as_quat()


def both(found):
    return np.append(found[0].as_quat(), found[1])


CASES = {
    "quaternions": (lambda x: Rotation.from_quat(x).as_quat(), Q),
    "scalar first": (lambda x: Rotation.from_quat(x, scalar_first=True).as_quat(canonical=True, scalar_first=True), Q),
    "matrix": (lambda x: Rotation.from_quat(x).as_matrix(), Q[0]),
    "vector": (lambda x: Rotation.from_quat(x).as_rotvec(degrees=True), Q),
    "modified Rodrigues": (lambda x: Rotation.from_mrp(x).as_mrp(), R),
    "magnitude": (lambda x: Rotation.from_rotvec(x).magnitude(), R),
    "Euler": (lambda x: Rotation.from_quat(x).as_euler("ZYX", degrees=True), Q),
    "proper Euler": (lambda x: Rotation.from_quat(x).as_euler("zxz"), Q),
    "Davenport": (lambda x: Rotation.from_quat(x).as_davenport([[0, 0, 1], [1, 0, 0], [0, 1, 0]], "i"), Q),
    "from Euler": (lambda x: Rotation.from_euler("xyz", x, degrees=True).as_quat(), 30 * R),
    "from one angle": (lambda x: Rotation.from_euler("x", x[0]).as_quat(), ONE),
    "from two angles": (lambda x: Rotation.from_euler("XY", x[:, :2]).as_quat(), R),
    "from Davenport": (lambda x: Rotation.from_davenport(np.eye(3), "extrinsic", x).as_quat(), ONE),
    "from a matrix": (lambda x: Rotation.from_matrix(x).as_quat(), MATRICES),
    "from nearly a rotation": (lambda x: Rotation.from_matrix(x).as_quat(), MATRICES + 0.1 * RNG.random((3, 3, 3))),
    "from a matrix that is trusted": (lambda x: Rotation.from_matrix(x, assume_valid=True).as_quat(), MATRICES),
    "apply": (lambda x: Rotation.from_rotvec(x).apply(V), R),
    "apply inverse": (lambda x: Rotation.from_rotvec(ONE).apply(x, inverse=True), V),
    "product": (lambda x: (Rotation.from_rotvec(x) * Rotation.from_quat(Q).inv()).as_quat(), R),
    "power": (lambda x: (Rotation.from_rotvec(R) ** x[0]).as_quat(), [1.7]),
    "whole power": (lambda x: (Rotation.from_rotvec(x) ** -1).as_quat(), R),
    "mean": (lambda x: Rotation.from_rotvec(0.3 * x).mean([1, 2, 3]).as_quat(), R),
    "mean of two": (lambda x: Rotation.from_rotvec(0.3 * x).mean().as_quat(), R[:2]),  # equal eigenvalues besides
    "weights of a mean": (lambda w: Rotation.from_rotvec(0.3 * R).mean(w).as_quat(), [1.0, 2.0, 3.0]),
    "alignment": (lambda x: both(Rotation.align_vectors(x, V)), R),
    "weights of an alignment": (lambda w: both(Rotation.align_vectors(R, V, w)), [1.0, 2.0, 3.0]),
    "alignment of one": (lambda x: both(Rotation.align_vectors(R[0], x)), ONE),
    "assignment": (changed, R),
    "parts": (lambda x: np.concatenate([r.as_rotvec() for r in Rotation.from_rotvec(x)[1:]]), R),
    "concatenation": (lambda x: Rotation.concatenate([Rotation.from_rotvec(x), Rotation.identity()]).as_quat(), R),
    "reduction": (lambda x: Rotation.from_rotvec(x).reduce(Rotation.from_quat(Q)).as_quat(), R),
    "identity": (lambda x: Rotation.from_rotvec(x).as_matrix(), np.zeros(3)),
    "vector at the identity": (lambda x: Rotation.from_rotvec(x).as_rotvec(), np.zeros(3)),
    "slerp": (lambda x: Slerp([0, 1, 2], Rotation.from_rotvec(x))([0.5, 1.3]).as_quat(), R),
    "times of a slerp": (lambda t: Slerp([0, 1, 2], Rotation.from_rotvec(R))(t).as_quat(), [0.5, 1.3]),
    "spline": (lambda x: RotationSpline([0, 1, 2], Rotation.from_rotvec(x))([0.5, 1.3], 1), 0.5 * R),
    "exponential": (lambda x: RigidTransform.from_exp_coords(x).as_matrix(), TWISTS),
    "exponential at 0": (lambda x: RigidTransform.from_exp_coords(x).as_exp_coords(), np.zeros(6)),
    "motion": (
        lambda x: (RigidTransform.from_components(x, Rotation.from_rotvec(R)) * RigidTransform.from_exp_coords(TWISTS))
        .inv().apply(ONE),
        V,
    ),
    "matrix of a motion": (
        lambda x: RigidTransform.from_matrix(np.concatenate([x, LOWEST], 1)).as_matrix(),
        RigidTransform.from_exp_coords(TWISTS).as_matrix()[:, :3],
    ),
    "dual quaternion": (
        lambda x: RigidTransform.from_dual_quat(RigidTransform.from_exp_coords(x).as_dual_quat()).as_matrix(), TWISTS
    ),
    "power of a motion": (lambda x: (RigidTransform.from_exp_coords(x) ** 0.5).as_matrix(), TWISTS),
    "mean of motions": (lambda x: RigidTransform.from_exp_coords(0.3 * x).mean().as_matrix(), TWISTS),
}  # fmt: skip
NESTED = (
    "identity",
    "vector at the identity",
    "exponential at 0",
    "Euler",
    "apply",
    "alignment",
    "from a matrix",
)


@pytest.mark.parametrize("name", CASES)
def test_rotations_and_motions_are_right(name):
    agrees(*CASES[name], 1e-6, name in NESTED)


def test_angles_that_are_not_determined_are_nan():
    with pytest.warns(UserWarning, match="Gimbal"):
        gradient = plaingrad.grad(lambda r: Rotation.from_rotvec(r).as_euler("xyz")[0])(
            np.array([0.0, np.pi / 2, 0.0])
        )
    assert np.isnan(gradient).any()


def test_a_rotation_keeps_lengths():
    gradient = plaingrad.grad(lambda r: (Rotation.from_rotvec(r).apply(V) ** 2).sum())(ONE)
    np.testing.assert_allclose(gradient, 0, atol=1e-12)
