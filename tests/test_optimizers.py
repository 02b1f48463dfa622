"""Optimizers do what their papers say, for parameters in any structure, and can be differentiated."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from plaingrad import ArgumentError, TangentError, derivative, grad, optimizers
from plaingrad.optimizers import SGD, Adam, AdamW, clipped, cosine, exponential, warmup


@dataclass
class Model:
    W: np.ndarray
    b: float
    name: str = "model"


def loss(m):
    return np.sum((m.W - 2.0) ** 2) + 3.0 * m.b**2


def run(optimizer, x, gradient, steps):
    state = optimizer.init(x)
    for _ in range(steps):
        x, state = optimizer.step(x, gradient(x), state)
    return x


def test_adam_is_the_algorithm_of_the_paper():
    """Algorithm 1 of Kingma and Ba, number by number."""
    x, m, v = 1.0, 0.0, 0.0
    for t in range(1, 6):
        g = 2.0 * x
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        x -= 0.05 * (m / (1 - 0.8**t)) / (math.sqrt(v / (1 - 0.9**t)) + 1e-6)
    found = run(Adam(learning_rate=0.05, b1=0.8, b2=0.9, eps=1e-6), [1.0], grad(lambda x: x[0] ** 2), 5)
    assert found[0] == pytest.approx(x, rel=1e-14)


def test_adamw_decays_beside_the_gradient():
    """Its first step is that of Adam, the sign of the gradient, and rate * decay * x."""
    (found,) = run(AdamW(learning_rate=0.1, decay=0.5, eps=0.0), [4.0], grad(lambda x: x[0] ** 2), 1)
    assert found == pytest.approx(4.0 - 0.1 * (1.0 + 0.5 * 4.0))


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(nesterov):
    x, u = 1.0, 0.0
    for _ in range(4):
        g = 2.0 * x
        u = 0.9 * u + g
        x -= 0.1 * (g + 0.9 * u if nesterov else u)
    found = run(SGD(learning_rate=0.1, momentum=0.9, nesterov=nesterov), 1.0, grad(lambda x: x**2), 4)
    assert found == pytest.approx(x, rel=1e-14)


def test_models_are_replaced_and_not_changed():
    model = Model(np.zeros((2, 2), np.float32), 1.0)
    found = run(Adam(learning_rate=0.1), model, grad(loss), 300)
    assert type(found) is Model and found.W.dtype == np.float32 and found.name == "model"
    np.testing.assert_allclose(found.W, 2.0, atol=1e-2)
    assert abs(found.b) < 1e-2
    assert model.b == 1.0 and not model.W.any()


def test_a_complex_parameter_moves_by_the_size_of_its_gradient():
    found = run(Adam(learning_rate=0.1, eps=0.0), [3.0 + 4.0j, 1.0], grad(lambda z: abs(z[0]) ** 2 + z[1] ** 2), 1)
    assert found[0] == pytest.approx(3.0 + 4.0j - 0.1 * (0.6 + 0.8j))
    assert found[1] == pytest.approx(0.9)


def test_training_is_differentiated_by_the_learning_rate():
    def after(rate):
        return run(SGD(learning_rate=rate, momentum=0.5), 1.0, grad(lambda x: x**2), 2)

    # x1 = 1 - 2r, u2 = 1 + 2 x1, x2 = x1 - r u2 = 1 - 5r + 4r^2
    assert after(0.1) == pytest.approx(0.54)
    assert grad(after)(0.1) == pytest.approx(-5.0 + 0.8)
    assert derivative(after, order=2)(0.1) == pytest.approx(8.0)
    by_adam = lambda rate: run(Adam(learning_rate=rate), 1.0, grad(lambda x: x**2), 3)
    h = 1e-6
    assert grad(by_adam)(0.1) == pytest.approx((by_adam(0.1 + h) - by_adam(0.1 - h)) / (2 * h), rel=1e-7)
    still = lambda rate: run(Adam(learning_rate=rate, eps_root=1e-12), [1.0, 0.0], grad(lambda x: x[0] ** 2 + x[1] ** 2), 2)[1]
    assert grad(still)(0.1) == 0.0


def test_schedules_say_the_rate_of_each_step():
    halving = exponential(1.0, 0.5)
    assert run(SGD(learning_rate=halving), 0.0, lambda x: 1.0, 3) == -1.75
    ramp = warmup(cosine(1.0, 4), 2)
    assert [round(ramp(n), 12) for n in range(7)] == [0.5, 1.0, 1.0, round(0.5 + math.sqrt(0.125), 12), 0.5, round(0.5 - math.sqrt(0.125), 12), 0.0]


def test_gradients_are_clipped_together():
    g = {"a": np.array([3.0]), "b": 4.0}
    assert clipped(g, 5.0) is g
    small = clipped(g, 1.0)
    np.testing.assert_allclose([small["a"][0], small["b"]], [0.6, 0.8])


def test_zeros_that_are_left_out_are_zeros():
    found = run(SGD(learning_rate=0.1), {"a": 1.0, "b": np.ones(2)}, lambda x: {"a": 1.0, "b": None}, 1)
    assert found["a"] == 0.9 and found["b"].tolist() == [1.0, 1.0]


def test_what_does_not_fit_is_refused():
    with pytest.raises(TangentError, match="gradient"):
        run(SGD(learning_rate=0.1), [1.0], lambda x: [1.0, 2.0], 1)
    adam = Adam()
    with pytest.raises(ArgumentError, match="other parameters"):
        adam.step([1.0], [1.0], adam.init([1.0, 2.0]))
    with pytest.raises(TypeError):
        SGD()
    assert {"SGD", "Adam", "AdamW"} <= set(optimizers.__all__)
