"""Tuples of numbers, and what arrays of indices name, written into arrays: first and second derivatives."""

import numpy as np
import pytest

import plaingrad

pytest.importorskip("numba")


def tuples_in_rows(x):
    """One tuple is stored in two places; another one in its place where a branch says so."""
    rows = np.zeros((3, 4))
    rows[0] = (1.0, 2.0, 3.0, x[2])
    for i in range(3):
        t = (x[i], x[i] * x[i + 1])
        rows[i, 1:3] = t
        if x[i] > 1.5:
            t = (x[3], x[0])
        rows[i, ::-2] = t
        rows[np.array([0, 2]), 0] = t
    return np.sum(rows * rows)


def places_by_index(x):
    """What is overwritten through indices, of which two are equal, passes nothing on."""
    y = np.zeros((2, 3))
    at = np.array([0, 1, 0])
    for k in range(2):
        y[k] = x[:3] * x[1:]
        y[at, 1] = x[:3] * y[0]
    return np.sum(y**3)


def test_a_tuple_that_is_stored_has_first_and_second_derivatives():
    x, v = np.arange(1.0, 5.0), np.array([0.3, -1.0, 0.5, 2.0])
    expected = plaingrad.grad(tuples_in_rows, tier="plain")(x)
    np.testing.assert_allclose(plaingrad.grad(tuples_in_rows, tier="native")(x), expected, rtol=1e-13)
    expected = plaingrad.hvp(tuples_in_rows, (x,), (v,), tier="plain")[0]
    np.testing.assert_allclose(plaingrad.hvp(tuples_in_rows, (x,), (v,), tier="native")[0], expected, rtol=1e-13)


def test_a_hessian_passes_chunks_through_places_of_an_index():
    x = np.arange(1.0, 5.0)
    expected = plaingrad.hessian(places_by_index, tier="plain")(x)
    np.testing.assert_allclose(plaingrad.hessian(places_by_index, tier="native")(x), expected, rtol=1e-13)
