"""Hazard 2: `ndarray.__new__(cls, shape, dtype, buffer)` is a view, whoever calls it."""

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jvp

X = np.array([0.5, 1.2, 2.0, 0.7])


class Frame(np.ndarray):
    pass


class Over(np.ndarray):
    def __new__(cls, a, name="over"):
        made = np.ndarray.__new__(cls, a.shape, a.dtype, buffer=a)
        made.name = name
        return made


class ByPosition(np.ndarray):
    def __new__(cls, a):
        return super().__new__(cls, (2, 2), float, a, 0, (8, 16))


def of_a_subclass(x):
    b = np.ndarray.__new__(Frame, shape=(2, 2), dtype=float, buffer=x * 2)
    return np.asarray(b @ b)[0, 1]


def of_a_class_with_new(x):
    b = Over(x * x)
    assert b.name == "over" and type(b) is Over
    return np.asarray((b * x).sum())[()]


def of_a_class_that_gives_strides(x):
    b = ByPosition(x * x)
    return float(b[0, 1]) * x[0]


def of_a_part(x):
    return (np.ndarray.__new__(np.ndarray, 2, float, x * x, 8) * x[1:3]).sum()


def of_a_view_of_memory(x):
    return (np.ndarray.__new__(Frame, (4,), float, (x * 2).data) * x).sum().item()


def written(x):
    a = np.zeros(4)
    np.ndarray.__new__(np.ndarray, (2, 2), float, a)[1] = x[:2] * x[2:]
    return a @ x


@pytest.mark.parametrize("f", [of_a_subclass, of_a_class_with_new, of_a_class_that_gives_strides, of_a_part,
                               of_a_view_of_memory, written])  # fmt: skip
def test_it_is_a_view(f):
    def slopes(f, x):
        return np.array([(f(x + h) - f(x - h)) / 2e-5 for h in 1e-5 * np.eye(4)])

    g = grad(f)
    np.testing.assert_allclose(g(X), slopes(f, X), rtol=1e-7, atol=1e-8)
    assert jvp(f, (X,), (X,))[1] == pytest.approx(g(X) @ X)
    second = slopes(lambda x: g(x) @ X, X)
    np.testing.assert_allclose(grad(lambda x: g(x) @ X)(X), second, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(jvp(g, (X,), (X,))[1], second, rtol=1e-6, atol=1e-6)


def test_as_whole_numbers_it_is_refused():
    with pytest.raises(plaingrad.MissingRuleError):
        grad(lambda x: np.ndarray.__new__(np.ndarray, 4, np.int64, x * 2).sum() * x[0])(X)
