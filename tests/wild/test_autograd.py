"""autograd: somebody else's automatic differentiation, itself differentiated: its boxes, tapes and wrapped NumPy."""

import warnings

import numpy as np
import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    autograd = pytest.importorskip("autograd")
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp


def test_our_derivative_of_its_derivative():
    """(sin(x) x^3)'' by theirs twice and by ours over theirs."""

    def f(x):
        return anp.sin(x) * x**3

    assert plaingrad.grad(autograd.grad(f))(1.2) == pytest.approx(autograd.grad(autograd.grad(f))(1.2), rel=1e-12)


def test_a_hessian_row_by_row():
    def f(x):
        return logsumexp(anp.dot(WEIGHTS, anp.tanh(x))) + anp.sum(x[1:] * x[:-1])

    x = np.array([0.3, -0.5, 0.8])
    rows = [plaingrad.grad(lambda v, i=i: autograd.grad(f)(v)[i])(x) for i in range(3)]
    np.testing.assert_allclose(rows, autograd.hessian(f)(x), rtol=1e-10)


def test_a_step_of_gradient_descent_that_is_learnt(agrees):
    """How the loss after ten steps depends on the step size and the momentum."""

    def loss(x):
        return anp.sum((x - TARGET) ** 2 * anp.array([1.0, 3.0, 0.5]))

    def trained(step, momentum):
        x, velocity = np.zeros(3), np.zeros(3)
        for _ in range(10):
            velocity = momentum * velocity - step * autograd.grad(loss)(x)
            x = x + velocity
        return loss(x)

    agrees(trained, 0.05, 0.6)


WEIGHTS = np.array([[0.2, -1.0, 0.4], [1.3, 0.1, -0.6]])
TARGET = np.array([1.0, -2.0, 0.5])
