"""`Rotation` before SciPy 1.17, a compiled class, compared with differences."""

import importlib.util

import numpy as np
import pytest
from scipy.spatial import transform

import plaingrad

from tests.scipy.agreement import agrees

if importlib.util.find_spec("scipy.spatial.transform._rotation_cy") is not None:
    pytest.skip("SciPy 1.17 has compiled functions instead", allow_module_level=True)

RNG = np.random.default_rng(0)
Rotation = transform.Rotation
Q, R, V = RNG.standard_normal((3, 4)), RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3))
ONE = RNG.standard_normal(3)
CONSTANT = Rotation.from_quat(Q)
MATRICES = CONSTANT.as_matrix()
CASES = {
    "quaternions": (lambda x: Rotation.from_quat(x).as_quat(), Q),
    "the class": (lambda x: Rotation(x).as_quat(), Q[0]),
    "matrix": (lambda x: Rotation.from_quat(x).as_matrix(), Q[0]),
    "vector": (lambda x: Rotation.from_quat(x).as_rotvec(degrees=True), Q),
    "modified Rodrigues": (lambda x: Rotation.from_mrp(x).as_mrp(), R),
    "magnitude": (lambda x: Rotation.from_rotvec(x).magnitude(), R),
    "magnitude of one": (lambda x: Rotation.from_rotvec(x).magnitude() ** 2, ONE),
    "Euler": (lambda x: Rotation.from_quat(x).as_euler("ZYX", degrees=True), Q),
    "proper Euler": (lambda x: Rotation.from_quat(x).as_euler("zxz"), Q),
    "from Euler": (lambda x: Rotation.from_euler("xyz", x, degrees=True).as_quat(), 30 * R),
    "from one angle": (lambda x: Rotation.from_euler("x", x[0]).as_quat(), ONE),
    "from two angles": (lambda x: Rotation.from_euler("XY", x[:, :2]).as_quat(), R),
    "from a matrix": (lambda x: Rotation.from_matrix(x).as_quat(), MATRICES),
    "from nearly a rotation": (lambda x: Rotation.from_matrix(x).as_quat(), MATRICES + 0.1 * RNG.random((3, 3, 3))),
    "apply": (lambda x: Rotation.from_rotvec(x).apply(V), R),
    "apply inverse": (lambda x: Rotation.from_rotvec(ONE).apply(x, inverse=True), V),
    "product": (lambda x: (Rotation.from_rotvec(x) * CONSTANT.inv()).as_quat(), R),
    "product from the left": (lambda x: (CONSTANT * Rotation.from_rotvec(x).inv()).as_quat(), ONE),
    "mean": (lambda x: Rotation.from_rotvec(0.3 * x).mean([1, 2, 3]).as_quat(), R),
    "parts": (lambda x: np.concatenate([r.as_rotvec() for r in Rotation.from_rotvec(x)[1:]]), R),
    "concatenation": (lambda x: Rotation.concatenate([Rotation.from_rotvec(x), CONSTANT]).as_quat(), R),
    "identity": (lambda x: Rotation.from_rotvec(x).as_matrix(), np.zeros(3)),
    "vector at the identity": (lambda x: Rotation.from_rotvec(x).as_rotvec(), np.zeros(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_compiled_rotations_are_right(name):
    agrees(*CASES[name], 1e-6, name in ("identity", "Euler", "apply", "from a matrix", "product"))


def test_a_rotation_of_an_outer_input_is_constant_inside():
    def f(x, y):
        turned = Rotation.from_rotvec(x)
        inner = plaingrad.grad(lambda y: (turned.apply(y) ** 2 * ONE).sum())(y)
        return (inner * V[0]).sum()

    def by_matrices(x, y):
        m = Rotation.from_rotvec(x).as_matrix()
        return (2.0 * m.T @ (ONE * (m @ y)) * V[0]).sum()

    for n in (0, 1):
        found, expected = (plaingrad.grad(g, argnums=n)(R[0], R[1]) for g in (f, by_matrices))
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("f", [lambda x: np.sum(Rotation.align_vectors(x, V)[1]),
                               lambda x: transform.Slerp([0, 1, 2], Rotation.from_rotvec(x))(0.5).magnitude(),
                               lambda x: Rotation.from_rotvec(x).reduce(CONSTANT).magnitude()[0]])  # fmt: skip
def test_what_has_no_formula_is_refused(f):
    with pytest.raises(plaingrad.MissingRuleError):
        plaingrad.grad(f)(R)
