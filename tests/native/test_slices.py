"""Arrays assigned to slices: where shapes do not fit, NumPy's own error, from every derivative."""

import numpy as np
import pytest

import plaingrad

pytest.importorskip("numba")


def assigned(x, n, m):
    """Squares of elements of x moved by one, and x in a block of a matrix whose lengths depend on m."""
    y = np.zeros(5)
    y[1:] = x[:n] ** 2
    rows = np.ones((2, m))
    rows[:, m - 4 :] = x
    return y.sum() + rows.prod()


def message_of(call):
    """The exception's type and text."""
    with pytest.raises(ValueError) as caught:
        call()
    return type(caught.value), str(caught.value)


@pytest.mark.usefixtures("machine_code")
def test_shapes_that_do_not_fit():
    x, gradient = np.array([1.0, 2.0, 3.0, 4.0]), plaingrad.grad(assigned, tier="native")
    wanted = 2.0 * x + 2.0 * 24.0**2 / x
    np.testing.assert_allclose(gradient(x, 4, 6), wanted, rtol=1e-14)
    for sizes in [(3, 6), (2, 6), (4, 3)] * 2:
        assert message_of(lambda: gradient(x, *sizes)) == message_of(lambda: assigned(x, *sizes))
    np.testing.assert_allclose(gradient(x, 4, 5), wanted, rtol=1e-14)


def test_what_is_repeated_or_empty():
    def f(x, a):
        y = np.zeros((3, 2))
        y[1:] = x
        y[:0] = a
        y[:, 1:] = x[:1] * 3.0
        return (y * y * y).sum()

    x, a = np.array([1.5, -2.0]), np.zeros((0, 2))
    found = plaingrad.grad(f, argnums=(0, 1), tier="native")(x, a)
    wanted = plaingrad.grad(f, argnums=(0, 1))(x, a)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-14)
    assert found[1].shape == (0, 2)
    np.testing.assert_allclose(found[0], [2 * 3 * 1.5**2 + 3 * 81 * 1.5**2, 0.0], rtol=1e-14)
