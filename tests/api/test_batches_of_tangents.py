"""Several directions at once in forward mode: against one direction at a time."""

import numpy as np
import pytest

from plaingrad import Dual, NoTangent, TangentError, frule, grad, jvp, linearize, vmap


def f(x, p):
    return {"a": np.sin(x) * p["w"], "n": 3, "b": (x * x).sum() * p["w"] + p["c"][0]}


X = np.array([[0.3, 0.7], [1.1, -0.4]])
P = {"w": 2.0, "c": [1.5, "text"]}


def test_every_direction_is_that_of_a_call_of_its_own():
    rng = np.random.default_rng(0)
    x_dots, w_dots, c_dots = rng.normal(size=(3, 2, 2)), rng.normal(size=3), rng.normal(size=3)
    y, y_dot = jvp(f, (X, P), (x_dots, {"w": w_dots, "c": [c_dots, None]}), batch=True)
    assert y["n"] == 3 and y_dot["n"] is None
    for k in range(3):
        one, dot = jvp(f, (X, P), (x_dots[k], {"w": w_dots[k], "c": [c_dots[k], None]}))
        np.testing.assert_array_equal(y["a"], one["a"])
        np.testing.assert_allclose(y_dot["a"][k], dot["a"], rtol=1e-14)
        np.testing.assert_allclose(y_dot["b"][k], dot["b"], rtol=1e-14)


def test_arguments_held_fixed_numbers_lists_and_whole_numbers():
    y, y_dot = jvp(lambda x, y: x * y, (3.0, 4), ([1.0, 2.0], None), batch=True)
    assert y == 12.0 and y_dot.tolist() == [4.0, 8.0]
    y, y_dot = jvp(lambda x: [x.sum(), 1.0], (np.ones(2, np.float32),), (np.eye(2),), batch=True)
    assert y_dot[0].tolist() == [1.0, 1.0] and y_dot[1].tolist() == [0.0, 0.0] and y_dot[0].dtype == np.float32
    y, y_dot, aux = jvp(lambda z: (z * z, "aux"), (1j,), (np.array([1.0, 1j]),), has_aux=True, batch=True)
    assert aux == "aux" and y_dot.tolist() == [2j, -2.0]
    assert jvp(lambda x: x * 2, (np.ones((0,)),), (np.ones((3, 0)),), batch=True)[1].shape == (3, 0)
    assert jvp(lambda x: x * 2, (np.ones(()),), (np.ones(3)[::-1],), batch=True)[1].tolist() == [2.0, 2.0, 2.0]


def test_a_batch_inside_of_a_gradient():
    def total(x):
        _, dots = jvp(lambda x: x * x * x, (x,), (np.eye(2),), batch=True)
        return dots.sum()  # 3 x0^2 + 3 x1^2

    np.testing.assert_allclose(grad(total)(np.array([1.0, 2.0])), [6.0, 12.0])
    assert grad(lambda x: jvp(lambda t: t**3, (x,), ([1.0, 10.0],), batch=True)[1].sum())(2.0) == 11 * 12.0


@pytest.mark.parametrize(
    "tangents",
    [(np.ones(2),), (np.ones((0, 2)),), (1.0,), (np.ones((2, 3)),), (np.ones((2, 2)) * 1j,), ([[1.0, 1.0]], 2.0), (None,)],
)
def test_what_is_no_batch_is_said_so(tangents):
    with pytest.raises(TangentError):
        jvp(np.sin, (np.ones(2),), tangents, batch=True)


def test_linear_maps_and_applied_rules_of_batches_by_vmap():
    _, f_jvp = linearize(np.sin, np.array([0.3, 0.7]))
    np.testing.assert_allclose(vmap(f_jvp)(np.eye(2)), np.diag(np.cos([0.3, 0.7])))
    push = vmap(lambda x_dot: frule(Dual(np.sin, NoTangent), Dual(np.array([0.3, 0.7]), x_dot)).tangent)
    np.testing.assert_allclose(push(np.eye(2)), np.diag(np.cos([0.3, 0.7])))
