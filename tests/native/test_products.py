"""Cotangents of the operands of products are added in place, whatever the shapes, layouts and types."""

import numba
import numpy as np
import pytest

from plaingrad.native.runtime import products
from plaingrad.native.runtime.product_formulas import dot_bar_a, dot_bar_b


@numba.njit
def both(a_bar, b_bar, z_bar, a, b):
    products.add_dot_a(a_bar, z_bar, a, b)
    products.add_dot_b(b_bar, z_bar, a, b)


MATRICES = [((3, 4), (4, 2)), ((3, 0), (0, 2)), ((0, 4), (4, 2)), ((3, 4), (4, 0))]
CASES = [(shapes, order, np.float64) for order in ("CC", "FC", "CF") for shapes in MATRICES]
CASES += [(shapes, "CC", np.complex128) for shapes in MATRICES]
CASES += [(((3, 4), (4,)), "CC", np.float64), (((4,), (4, 2)), "CC", np.float64)]


@pytest.mark.parametrize("shapes, order, dtype", CASES, ids=str)
def test_the_cotangents_of_both_operands_are_added(shapes, order, dtype):
    random = np.random.default_rng(0)

    def some(shape, layout="C"):
        x = random.normal(size=shape) + (1j * random.normal(size=shape) if dtype is np.complex128 else 0.0)
        return np.asarray(x, order=layout)

    a, b = some(shapes[0], order[0]), some(shapes[1], order[1])
    z_bar = some((a @ b).shape, order[0])
    a_bar, b_bar = some(shapes[0]), some(shapes[1])
    wanted = a_bar.copy(), b_bar.copy()
    wanted[0][...] += dot_bar_a(z_bar, None, a, b)
    wanted[1][...] += dot_bar_b(z_bar, None, a, b)
    uncompiled = a_bar.copy(), b_bar.copy()
    both.py_func(*uncompiled, z_bar, a, b)
    both(a_bar, b_bar, z_bar, a, b)
    for found in (uncompiled, (a_bar, b_bar)):
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-13)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-13)


def test_arrays_with_gaps_and_mixed_types_are_added_too():
    random = np.random.default_rng(1)
    a, b = random.normal(size=(6, 8))[::2, ::2], random.normal(size=(4, 2)).astype(np.float32).astype(float)
    z_bar = random.normal(size=(3, 2))
    a_bar, b_bar = np.zeros((3, 4)), np.zeros((4, 2))
    both(a_bar, b_bar, z_bar, a, b)
    np.testing.assert_allclose(a_bar, z_bar @ b.T, rtol=1e-13)
    np.testing.assert_allclose(b_bar, a.T @ z_bar, rtol=1e-13)
    b_bar[:] = 0.0
    products.add_dot_b(b_bar, z_bar + 1j, a + 2j, b)
    np.testing.assert_allclose(b_bar, (np.conj(a + 2j).T @ (z_bar + 1j)).real, rtol=1e-13)


def test_a_nan_or_infinity_in_a_product_stays_one():
    a, b = np.array([[1.0, np.inf]]), np.array([[2.0], [3.0]])
    a_bar, b_bar = np.zeros((1, 2)), np.zeros((2, 1))
    both(a_bar, b_bar, np.array([[0.0]]), a, b)
    assert np.isnan(b_bar[1, 0]) and b_bar[0, 0] == 0.0
