"""Results written to `out`: shapes that NumPy refuses are refused, with nothing written."""

import numpy as np
import pytest

from plaingrad import grad, value_and_grad

X = np.arange(6.0).reshape(2, 3) + 0.5
ROWS = (1, 3)
WRITERS = {
    "a ufunc": (lambda x, out: np.exp(x[:1], out=out), (3,)),
    "a ufunc, by position": (lambda x, out: np.multiply(x[:1], x[1:], out), (3,)),
    "where": (lambda x, out: np.add(x[:1], 1.0, out=out, where=True), (3,)),
    "clip": (lambda x, out: np.clip(x[:1], 0, 1, out=out), (3,)),
    "sum": (lambda x, out: np.sum(x, axis=0, out=out), ROWS),
    "sum, wider": (lambda x, out: np.sum(x, axis=0, out=out), (2, 3)),
    "sum, a method": (lambda x, out: x.sum(0, out=out), ROWS),
    "mean": (lambda x, out: np.mean(x, axis=0, out=out), ROWS),
    "max": (lambda x, out: np.max(x, axis=0, out=out), ROWS),
    "reduce": (lambda x, out: np.add.reduce(x, axis=0, out=out), ROWS),
    "reduce, a loop": (lambda x, out: np.hypot.reduce(x, axis=0, out=out), ROWS),
    "accumulate": (lambda x, out: np.add.accumulate(x, axis=0, out=out), (3, 3)),
    "reduceat": (lambda x, out: np.add.reduceat(x[0], [0, 1], out=out), (1, 2)),
    "var": (lambda x, out: np.var(x, 0, out=out), ROWS),
    "ptp": (lambda x, out: np.ptp(x, 0, out=out), ROWS),
    "take": (lambda x, out: np.take(x, [0], out=out), (1, 1)),
    "dot": (lambda x, out: np.dot(x, x.T, out=out), (1, 2, 2)),
    "matmul": (lambda x, out: np.matmul(x, x.T, out=out), (2, 1)),
    "trace": (lambda x, out: np.trace(x, out=out), (2,)),
    "compress": (lambda x, out: np.compress([True, False], x, axis=0, out=out), (3,)),
    "any": (lambda x, out: np.any(x > 1.0, axis=0, out=out), ROWS),
}


@pytest.mark.parametrize("name", WRITERS)
def test_an_out_of_another_shape_raises_as_without_a_derivative(name):
    write, shape = WRITERS[name]

    def f(x):
        out = np.ones(shape)
        try:
            write(x, out)
        except (TypeError, ValueError) as error:
            return np.sum(x) + 0.0 * np.sum(out), type(error), out
        return np.sum(out), None, out

    _, raised, out = f(X)
    assert raised is ValueError
    (_, (found, left)), _ = value_and_grad(lambda x: (f(x)[0], f(x)[1:]), has_aux=True)(X)
    assert found is ValueError
    np.testing.assert_array_equal(left, out)


def test_ufuncs_broadcast_into_a_larger_out():
    def f(x):
        out = np.ones((2, 3))
        np.multiply(x, x, out=out)
        return np.sum(out)

    np.testing.assert_array_equal(grad(f)(np.array([1.0, 2.0, 3.0])), [4.0, 8.0, 12.0])


def test_matmul_writes_into_an_out_with_an_axis_of_length_1_in_front():
    def f(x):
        out = np.ones((1, 2, 2))
        np.matmul(x, x.T, out=out)
        return np.sum(out)

    np.testing.assert_allclose(grad(f)(X), 2.0 * np.tile(X.sum(0), (2, 1)))


@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 3), (1, 3)])
def test_arrays_with_more_axes_are_stored_where_numpy_does_so(shape):
    def f(a, x):
        a = a + 0.0
        a[:] = x
        return np.sum(a * np.array([1.0, 2.0, 4.0]))

    x = np.full(shape, 0.5)
    to_a, to_x = grad(f, argnums=(0, 1))(np.ones(3), x)
    np.testing.assert_array_equal(to_a, np.zeros(3))
    expected = np.array([1.0, 2.0, 4.0]) if shape[-1] == 3 else np.array([7.0])
    np.testing.assert_array_equal(to_x, expected.reshape(shape))


def test_an_empty_array_does_not_overlap_itself():
    def f(a, x):
        a += x
        return np.sum(a) + np.sum(x)

    to_a, to_x = grad(f, argnums=(0, 1))(np.zeros((2, 0)), np.ones(1))
    assert to_a.shape == (2, 0)
    np.testing.assert_array_equal(to_x, [1.0])
