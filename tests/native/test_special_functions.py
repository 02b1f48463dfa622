"""Slopes that no library function of Numba computes: those of the gamma function."""

import math

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")
mpmath = pytest.importorskip("mpmath")

from tests.native.uncompiled import check  # noqa: E402


def gammas(x):
    return math.lgamma(x)


@pytest.mark.parametrize("x", [0.3, 1.46, 5.5, -0.2, -1.3, -3.7, 40.0, 171.0, 1e-8])
def test_compiled_derivatives_of_lgamma_are_polygamma_functions(x):
    slope = plaingrad.grad(gammas, tier="native")(x)
    curvature = plaingrad.hessian(gammas, tier="native")(x)
    np.testing.assert_allclose(slope, float(mpmath.digamma(x)), rtol=1e-12)
    np.testing.assert_allclose(curvature, float(mpmath.polygamma(1, x)), rtol=1e-12)


def test_compiled_the_gamma_function_has_the_slope_of_the_plain_tier():
    for x in (0.7, 3.2, -1.5):
        found = plaingrad.grad(lambda x: math.gamma(x) * x, tier="native")(x)
        np.testing.assert_allclose(
            found, plaingrad.grad(lambda x: math.gamma(x) * x, tier="plain")(x), rtol=1e-12
        )


def counted(x, places):
    weighted = np.bincount(places, weights=x, minlength=6)
    return np.sum(weighted**2) + np.bincount(places, x, 3)[1] * np.bincount(places, weights=x)[0]


def test_weights_of_bincount_by_keyword():
    check(counted, np.array([0.3, -1.2, 2.0, 0.7]), np.array([0, 2, 1, 0]))


def third_power(m):
    return np.sum(np.linalg.matrix_power(m, 3)[1])


def test_compiled_powers_of_matrices_have_the_bits_of_the_compiled_function():
    compiled = numba.njit(third_power)
    found = plaingrad.value_and_grad(third_power, tier="native")
    for k in range(10):
        m = np.random.default_rng(k).normal(size=(4, 4))
        value, gradient = found(m)
        assert value == compiled(m)
        np.testing.assert_allclose(gradient, plaingrad.grad(third_power, tier="plain")(m), rtol=1e-11)
