"""Steps of the reverse pass under another derivative: second derivatives of array programs, in every pair of modes."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import plaingrad
from plaingrad.engine.forward.push import push

X = np.array([0.7, -1.2, 0.4, 1.9, -0.3])
V = np.array([1.0, 0.5, -0.25, 2.0, -1.5])


def neighbours(x):
    return np.sum((x[1:] - x[:-1]) ** 2 * x[1:] / (x[:-1] * x[:-1] + 2.0))


def one_number_and_many(x):
    a = x[0] * x + 3.0 * x - x / 2.0
    return np.sum(a * a - x[1] / (a * a + 1.0))


def broadcast(x):
    table = x[:, None] * x[None, :] - x
    return np.sum(table / (x * x + 1.0) + table * table)


def the_same_operand_twice(x):
    y = x + x
    z = y * y - y
    return np.sum(z / (y * y + 1.0) + (z - z * z))


def overlapping_windows(x):
    windows = sliding_window_view(x, 3)
    return np.sum(windows * windows[::-1] * 0.5 + windows / (1.0 + windows * windows))


def written_in_place(x):
    a = x * x
    a[1:] += a[:-1] * x[1:]
    a *= x
    a[::2] = a[1] - a[::2] * a[::2]
    return np.sum(a * x)


def transposed_and_reversed(x):
    a = np.outer(x, x * x)
    b = a.T[::-1] - a
    return np.sum(b[1:, ::2] * a[1:, ::2] + np.sin(b[1:, ::2]))


def functions_and_products(x):
    y = np.exp(-x * x) + np.sin(x) * x
    return np.dot(y[::-1], np.tanh(x)) + np.sum(np.where(y > 0, y * x, -y))


def scalars_in_between(x):
    total = 0.0
    for k in range(len(x)):
        a = x[k] * x[k - 1]
        total = total + float(np.sum(x * a)) * a + a / (x[k] * x[k] + 1.0)
    return total


def all_of_it_is_taken_once_and_parts_twice(x):
    whole = x * 2.0
    left, right = whole[:3], whole[2:]
    return np.sum(left * right) + np.sum(whole - whole * whole) - np.sum(left / (right * right + 1.0))


PROGRAMS = [
    value
    for value in list(globals().values())
    if getattr(value, "__module__", "") == __name__ and callable(value)
]


def gradient_pushed(f):
    return push(plaingrad.grad(f), (X,), (V,), {})[1]


def slope_reversed(f):
    return plaingrad.grad(lambda x: push(f, (x,), (V,), {})[1])(X)


def gradient_reversed(f):
    return plaingrad.grad(lambda x: np.sum(plaingrad.grad(f)(x) * V))(X)


def gradient_pushed_in_a_chunk(f):
    return push(plaingrad.grad(f), (X,), (np.stack([V, 2.0 * V]),), {}, 2)[1][0]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_products_with_a_hessian_are_differences_of_gradients(f):
    g, h = plaingrad.grad(f), 1e-3
    near = (g(X + h * V) - g(X - h * V)) / (2 * h)
    far = (g(X + 2 * h * V) - g(X - 2 * h * V)) / (4 * h)
    expected = (4 * near - far) / 3  # Richardson: the error is of order h**4
    found = gradient_pushed(f)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
    for product in (slope_reversed, gradient_reversed, gradient_pushed_in_a_chunk):
        np.testing.assert_allclose(product(f), found, rtol=1e-11, atol=1e-12 * np.abs(found).max())


@pytest.mark.parametrize("f", [neighbours, written_in_place, broadcast], ids=lambda f: f.__name__)
def test_third_derivatives_are_the_same_through_every_mode(f):
    def along(f):
        return lambda x: push(f, (x,), (V,), {})[1]

    found = along(along(plaingrad.grad(f)))(X)
    for other in (
        along(plaingrad.grad(along(f))),
        plaingrad.grad(along(along(f))),
        along(lambda x: plaingrad.grad(lambda y: np.sum(plaingrad.grad(f)(y) * V))(x)),
        plaingrad.grad(lambda x: np.sum(push(plaingrad.grad(f), (x,), (V,), {})[1] * V)),
    ):
        derivative = other(X) if callable(other) else other
        np.testing.assert_allclose(derivative, found, rtol=1e-10, atol=1e-11 * np.abs(found).max())
