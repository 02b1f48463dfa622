"""Sparse Jacobians and Hessians of compiled functions: the sweeps are native, the pattern is found by Python."""

import numpy as np
import pytest

import plaingrad
from plaingrad import sparse_hessian, sparse_jacobian

numba = pytest.importorskip("numba")
pytest.importorskip("scipy")

X = np.linspace(0.3, 1.0, 9)


def neighbours(x):
    y = np.zeros(x.size)
    for i in range(1, x.size - 1):
        y[i] = x[i] ** 3 - x[i - 1] * x[i + 1]
    return y


def chained(x):
    s = 0.0
    for i in range(1, x.size):
        s += (x[i] - x[i - 1] ** 2) ** 2
    return s


def of_structure(p):
    return p["a"] * p["b"] * p["b"]


@pytest.fixture
def no_plain_sweeps(monkeypatch):
    """What is compiled is not run by the plain tier."""

    def refused(*args, **kwargs):
        raise AssertionError("the plain tier was taken")

    monkeypatch.setattr("plaingrad.api.sparse_task.push", refused)


@pytest.mark.parametrize("f", [neighbours, numba.njit(neighbours)], ids=["python", "compiled"])
def test_groups_of_columns_are_native_sweeps(f, no_plain_sweeps, in_python):
    found = sparse_jacobian(f, X, mode="forward", tier="native").toarray()
    expected = np.zeros((9, 9))
    for i in range(1, 8):
        expected[i, i - 1 : i + 2] = -X[i + 1], 3.0 * X[i] ** 2, -X[i - 1]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_allclose(sparse_jacobian(f, X, mode="reverse", tier="native").toarray(), expected, rtol=1e-14)


def test_a_numba_function_is_taken_natively_without_being_asked_for(no_plain_sweeps, in_python):
    found = sparse_jacobian(numba.njit(neighbours), X, mode="forward").toarray()
    np.testing.assert_allclose(found, sparse_jacobian(neighbours, X, mode="reverse").toarray(), rtol=1e-14)


def test_the_plain_tier_may_be_asked_for():
    found = sparse_jacobian(numba.njit(neighbours), X, tier="plain").toarray()
    np.testing.assert_allclose(found, plaingrad.jacobian(neighbours)(X), rtol=1e-14)


def test_products_with_a_hessian_are_native(no_plain_sweeps, in_python):
    found = sparse_hessian(chained, X, tier="native").toarray()
    np.testing.assert_allclose(found, plaingrad.hessian(chained)(X), rtol=1e-12)
    checked = sparse_hessian(chained, X, pattern=found != 0, check=True, tier="native").toarray()
    np.testing.assert_allclose(checked, found, rtol=1e-14)


def test_structures_are_taken_apart_natively_too(no_plain_sweeps, in_python):
    p = {"a": X, "b": 2.0}
    for mode in ("forward", "reverse"):
        found = sparse_jacobian(of_structure, p, mode=mode, tier="native").toarray()
        np.testing.assert_allclose(found, np.column_stack([np.diag(np.full(9, 4.0)), 4.0 * X]), rtol=1e-14)


def test_a_pattern_that_leaves_out_entries_is_found_out(in_python):
    pattern = np.eye(9, dtype=bool)
    for tier in ("native", "plain"):
        with pytest.raises(plaingrad.PatternError):
            sparse_jacobian(neighbours, X, pattern=pattern, tier=tier)


def test_what_numba_does_not_take_goes_to_the_plain_tier_unless_native_is_asked_for():
    def with_a_set(x):
        return np.array([x[0], x[1]]) * len({"a", "a"})

    np.testing.assert_allclose(sparse_jacobian(with_a_set, X[:2]).toarray(), np.eye(2))
    with pytest.raises(plaingrad.NativeError):
        sparse_jacobian(with_a_set, X[:2], tier="native")
