"""Kernels of `numba.guvectorize`, called in compiled code with the arrays that they fill."""

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")
from numba import float64  # noqa: E402


def compiled():
    """(smooth, of_other_lengths): compiled here, as a kernel of stated types takes two seconds where it is decorated."""

    @numba.guvectorize([(float64[:, :], float64[:, :])], "(i,j)->(i,j)")
    def without_jumps(q, out):
        out[0, :] = q[0, :]
        for i in range(1, q.shape[0]):
            if out[i - 1, 0] * q[i, 0] + out[i - 1, 1] * q[i, 1] < 0.0:
                out[i, :] = -q[i, :]
            else:
                out[i, :] = q[i, :]

    @numba.guvectorize("(n),(m),()->(m)", nopython=True)
    def weighed(x, t, scale, y):
        for k in range(t.shape[0]):
            y[k] = 0.0
            for i in range(x.shape[0]):
                y[k] += scale * x[i] ** 2 * np.sin(t[k])

    @numba.njit
    def smooth(q, x, scale):
        out, y = np.zeros_like(q), np.empty(3)
        without_jumps(q, out)
        weighed(x, out[:, 0].copy(), scale, y)
        return np.sum(y * out[:, 1])

    @numba.njit
    def of_other_lengths(q):
        out = np.empty((2, 2))
        without_jumps(q, out)
        return out[0, 0]

    return smooth, of_other_lengths


def in_numpy(q, x, scale):
    out = q.copy()
    out[1] = -q[1]  # as it turns out below
    return np.sum(scale * np.sum(x**2) * np.sin(out[:, 0]) * out[:, 1])


def test_a_kernel_that_fills_an_array_is_differentiated_with_what_calls_it():
    smooth, of_other_lengths = compiled()
    q, x = np.array([[1.0, 2.0], [-3.0, 1.0], [2.0, -1.0]]), np.array([0.3, 0.7])
    y, found = plaingrad.value_and_grad(smooth, argnums=(0, 1, 2), tier="native")(q, x, 1.3)
    assert y == pytest.approx(in_numpy(q, x, 1.3), rel=1e-14) == smooth(q, x, 1.3)
    for bar, expected in zip(found, plaingrad.grad(in_numpy, argnums=(0, 1, 2))(q, x, 1.3), strict=True):
        np.testing.assert_allclose(bar, expected, rtol=1e-13, atol=1e-15)
    with pytest.raises(ValueError, match="mismatch in one of its core dimensions"):
        plaingrad.grad(of_other_lengths, tier="native")(q)
