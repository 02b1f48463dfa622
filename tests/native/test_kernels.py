"""What `numba.vectorize` and `numba.stencil` make, differentiated natively, called by themselves and from functions."""

import math

import numpy as np
import pytest

import plaingrad
from plaingrad import grad

numba = pytest.importorskip("numba")

X = np.array([0.3, 0.7, 1.1, 0.5])
A = np.arange(12.0).reshape(3, 4) ** 1.5
SCALE = 0.3


@numba.vectorize
def wave(x):
    return x * x + math.sin(x)


@numba.vectorize(["float64(float64, float64)"])
def piecewise(x, y):
    if x > y:
        return x * y
    return x - y * y


@numba.vectorize
def ratio(x, y):
    return x / y


@numba.stencil
def around(a, w, k):
    return k * (a[0, 1] + a[0, -1] - 2 * a[1, 0]) * w[0, 0] + a[0, 0] * SCALE


@numba.stencil(neighborhood=((-2, 2),), cval=1.5)
def weighed(a, w):
    s = w
    for i in range(-2, 3):
        s += a[i] * i * a[0]
    return s


def test_a_vectorized_function_of_numbers_and_arrays():
    f = numba.njit(lambda x, y: (wave(x) * x).sum() + wave(y))
    found = grad(f, (0, 1))(X, 0.4)
    np.testing.assert_allclose(found[0], 3 * X**2 + np.sin(X) + X * np.cos(X), rtol=1e-14)
    assert found[1] == pytest.approx(0.8 + math.cos(0.4), rel=1e-14)
    assert grad(wave, tier="native")(0.4) == pytest.approx(0.8 + math.cos(0.4), rel=1e-14)
    y, pullback = plaingrad.vjp(wave, X, tier="native")
    assert y.tobytes() == wave(X).tobytes()
    np.testing.assert_allclose(pullback(X)[0], X * (2 * X + np.cos(X)), rtol=1e-14)
    np.testing.assert_allclose(plaingrad.hessian(lambda x: wave(x).sum(), tier="native")(X), np.diag(2 - np.sin(X)))


def test_a_vectorized_function_broadcasts():
    def f(x, m):
        return (piecewise(x, m) * 2).sum() + (piecewise(x, x * 2) * x).sum()

    m = X[:3].reshape(3, 1) + 0.05
    found = grad(f, (0, 1), tier="native")(X, m)
    above = X > m
    np.testing.assert_allclose(found[0], 2 * np.where(above, m, 1.0).sum(0) + 2 * X - 12 * X**2, rtol=1e-13)
    np.testing.assert_allclose(found[1], 2 * np.where(above, X, -2 * m).sum(1, keepdims=True), rtol=1e-13)
    with pytest.raises(ValueError):
        grad(f, tier="native")(X, np.ones((2, 3)))


def test_a_vectorized_function_divides_as_numpy_does():
    f = numba.njit(lambda x, y: (ratio(x, y) * y).sum() + ratio(y, x[1]))
    assert math.isinf(f(np.array([1.0, 0.0]), 2.0))
    with np.errstate(all="ignore"):
        found = plaingrad.value_and_grad(f)(np.array([1.0, 0.0]), 2.0)
    assert math.isinf(found[0])
    np.testing.assert_allclose(grad(f, 1)(np.array([1.0, 4.0]), 2.0), 0.25, atol=1e-15)


def differences(f, x):
    found = np.empty_like(x)
    for at in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[at] = 1e-6
        found[at] = (f(x + e) - f(x - e)) / 2e-6
    return found


def test_a_stencil_has_the_derivative_of_loops_around_its_kernel():
    f = numba.njit(lambda a, w, k: (around(a, w, k) * a).sum())  # a stencil by itself is compiled at every call
    w = np.cos(A)
    found = grad(f, (0, 1, 2))(A, w, 0.3)
    np.testing.assert_allclose(found[0], differences(lambda a: f(a, w, 0.3), A), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found[1], differences(lambda w: f(A, w, 0.3), w), rtol=1e-6, atol=1e-7)
    assert found[2] == pytest.approx((f(A, w, 1.3) - f(A, w, 0.3)), rel=1e-10)
    with pytest.raises(ValueError, match="Secondary stencil array"):
        f(A, w[:2], 0.3)
    with pytest.raises(ValueError, match="Secondary stencil array"):
        grad(f, (0, 1, 2))(A, w[:2], 0.3)


def test_a_stencil_called_by_itself_with_a_neighbourhood_and_a_border():
    a = np.arange(7.0) ** 1.5
    y, pullback = plaingrad.vjp(weighed, a, 2.0, tier="native")
    assert y.tobytes() == weighed(a, 2.0).tobytes()
    found = pullback(a)
    wanted = np.zeros(7)
    for p in range(2, 5):  # y[p] = w + a[p] * sum of i * a[p + i]
        i = np.arange(-2, 3)
        wanted[p - 2 : p + 3] += a[p] * a[p] * i
        wanted[p] += a[p] * (i * a[p - 2 : p + 3]).sum()
    np.testing.assert_allclose(found[0], wanted, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found[1], a[2:-2].sum(), rtol=1e-14)


def test_a_stencil_in_another_form_is_refused_by_name():
    kernel = numba.stencil(lambda a: a[-1] * a[1])
    with pytest.raises(plaingrad.NativeError, match="stencil.*test_kernels.py:"):
        grad(lambda x: kernel(x).sum(), tier="native")(X)


def test_a_vectorized_function_with_a_rule_goes_by_the_rule():
    @numba.vectorize(["float64(float64)"])
    def known(x):
        return x * x

    plaingrad.scalar_rule(known, 10.0)
    assert grad(numba.njit(lambda x: known(x) * 1.0), tier="native")(2.0) == 10.0


@numba.vectorize
def cubed(x):
    return wave(x) * x


@numba.vectorize
def halved(x):
    return x * 0.5


def test_two_of_them_in_one_function_are_two():
    f = numba.njit(lambda x: (cubed(x) - halved(x) + halved(halved(x))).sum())
    np.testing.assert_allclose(grad(f)(X), 3 * X**2 + np.sin(X) + X * np.cos(X) - 0.25, rtol=1e-13)
