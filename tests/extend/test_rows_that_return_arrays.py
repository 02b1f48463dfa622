"""A user's `scalar_rule` of a function that makes an array, also of shape (), of a number."""

import numpy as np
import pytest

from plaingrad import derivative, grad, jvp, remove_rule, scalar_rule, taylor


def doubled(x):
    return np.asarray(x * 2.0)


def powers(x):
    return np.array([x**2, x])


def product(x, y):
    return np.asarray(x * y)


@pytest.fixture(autouse=True)
def rows():
    scalar_rule(doubled, lambda x, z: 2.0)
    scalar_rule(powers, lambda x, z: np.array([2 * x, 1.0]))
    scalar_rule(product, lambda x, y, z: y, lambda x, y, z: x)
    yield
    for f in (doubled, powers, product):
        remove_rule(f)


@pytest.mark.parametrize("slope", [grad, derivative, lambda f: derivative(f, order=1)])
def test_its_derivative_is_not_lost(slope):
    assert slope(lambda x: doubled(x) ** 2)(3.0) == 24.0
    assert slope(lambda x: (powers(x) * np.array([1.0, 5.0])).sum())(3.0) == 11.0
    assert slope(lambda x: product(x, x))(3.0) == 6.0


@pytest.mark.parametrize("second", [lambda f: grad(grad(f)), lambda f: derivative(derivative(f)), lambda f: grad(derivative(f))])
def test_nor_its_second_derivative(second):
    assert second(lambda x: doubled(x) ** 2)(3.0) == 8.0
    assert second(lambda x: product(x, x))(3.0) == 2.0


def test_nor_its_series():
    assert taylor(lambda x: product(x, x), 3.0, 2).tolist() == [9.0, 6.0, 1.0]
    y, y_dot = jvp(doubled, (3.0,), (1.0,))
    assert type(y) is type(y_dot) is np.ndarray and (y, y_dot) == (6.0, 2.0)
