"""Second derivatives of powers of views whose owner lies in neither order of memory, as NumPy makes them of moved axes."""

import numpy as np
import pytest

import plaingrad


@pytest.mark.parametrize("power", [2.0, 3, 4, 3.0, -1])
@pytest.mark.parametrize("key", [(..., slice(-1, None)), (..., slice(0, 2)), (slice(None), 1)])
def test_the_slope_of_a_power_of_a_slice_has_its_own_tangent(power, key):
    x = np.random.default_rng(1).uniform(1.0, 2.0, (2, 4, 3))
    v = np.cos(np.arange(24.0)).reshape(x.shape)

    def f(x):
        return np.sum((np.moveaxis(x, 1, -1) * 2.0)[key] ** power)

    expected = np.zeros((2, 3, 4))
    expected[key] = 4.0 * power * (power - 1) * (np.moveaxis(x, 1, -1) * 2.0)[key] ** (power - 2.0)
    expected = np.moveaxis(expected, -1, 1) * v
    np.testing.assert_allclose(plaingrad.jvp(plaingrad.grad(f), (x,), (v,))[1], expected, rtol=1e-13)
    np.testing.assert_allclose(
        plaingrad.grad(lambda x: np.sum(plaingrad.grad(f)(x) * v))(x), expected, rtol=1e-13
    )
