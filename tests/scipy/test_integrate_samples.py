"""Integrals of samples by what they are: sums with weights that the places say."""

import numpy as np
import pytest
from scipy import integrate

from plaingrad import grad, jvp, value_and_grad

RANDOM = np.random.default_rng(5)
SHAPES = [((7,), -1), ((8,), 0), ((3, 9), -1), ((4, 2), 0), ((2, 6, 3), 1), ((2,), 0), ((1,), 0)]


def curves(shape, axis):
    """Functionals of samples y and places x, and the places; those without places do not look at them."""
    places = np.cumsum(RANDOM.uniform(0.3, 1.0, shape), axis)
    yield lambda y, x: integrate.trapezoid(y, x, axis=axis), places
    yield lambda y, x: integrate.simpson(y, x=x, axis=axis), places
    yield lambda y, x: integrate.cumulative_trapezoid(y, x, axis=axis, initial=0), places
    one = np.sqrt(np.arange(1.0, shape[axis] + 1))
    yield lambda y, x: integrate.trapezoid(y, x, axis=axis), one
    yield lambda y, x: integrate.simpson(y, x=x, axis=axis), one
    yield lambda y, x: integrate.cumulative_trapezoid(y, x, axis=axis), one
    distance = np.array(0.3)
    yield lambda y, h: integrate.trapezoid(y, dx=h, axis=axis), distance
    yield lambda y, h: integrate.simpson(y, dx=h, axis=axis), distance
    yield lambda y, h: integrate.cumulative_trapezoid(y, dx=h, axis=axis), distance
    if shape[axis] in (2, 9):
        yield lambda y, h: integrate.romb(y, dx=h, axis=axis), distance


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_samples_places_and_distances_have_the_derivatives_of_differences(shape, axis):
    y, y_dot = RANDOM.normal(size=(2, *shape))
    for curve, x in curves(shape, axis):
        x_dot = 0.1 * RANDOM.normal(size=x.shape)

        def f(y, x, curve=curve):
            return np.sum(np.sin(curve(y, x)))

        def along(s, g):
            return g(y + s * y_dot, x + s * x_dot)

        value, bars = value_and_grad(f, argnums=(0, 1))(y, x)
        slope = (along(1e-5, f) - along(-1e-5, f)) / 2e-5
        assert value == f(y, x)
        assert np.sum(bars[0] * y_dot) + np.sum(bars[1] * x_dot) == pytest.approx(slope, rel=1e-6, abs=1e-8)
        assert jvp(f, (y, x), (y_dot, x_dot))[1] == pytest.approx(slope, rel=1e-6, abs=1e-8)
        for place in (0, 1):
            g = grad(f, argnums=place)
            bend = (np.asarray(along(1e-5, g)) - np.asarray(along(-1e-5, g))) / 2e-5
            np.testing.assert_allclose(jvp(g, (y, x), (y_dot, x_dot))[1], bend, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["trapezoid", "simpson", "romb"])
def test_the_precision_of_samples_is_that_of_their_gradient(name):
    y = np.ones(9, np.float32)
    found = grad(lambda y: getattr(integrate, name)(y))(y)
    assert found.dtype == np.float32
    assert found.sum() == pytest.approx(8.0)


def test_lists_complex_samples_and_broadcast_places():
    assert grad(lambda a: integrate.trapezoid([a, 2 * a, a]))(1.0) == 3.0
    assert grad(lambda a: integrate.simpson([a, 2 * a, a], dx=a))(1.0) == pytest.approx(20 / 3)
    y = np.arange(1.0, 6.0)
    assert grad(lambda a: abs(integrate.trapezoid(a * y * (3 + 4j))))(1.0) == pytest.approx(60.0)
    wide = grad(lambda x: integrate.trapezoid(y, x))(np.array([1.0, 3.0]))  # NumPy broadcasts the one gap
    np.testing.assert_allclose(wide, [-12.0, 12.0])


def test_what_scipy_does_not_take_raises_what_it_raises():
    for f in (lambda y: integrate.romb(y), lambda y: integrate.simpson(y, x=[1.0, 2.0])):
        with pytest.raises(ValueError):
            grad(f)(np.ones(6))
