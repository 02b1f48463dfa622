"""Writes by arrays of indices, of which some name one element twice: the last one counts, however many there are."""

import numpy as np
import pytest

import plaingrad

RANDOM = np.random.default_rng(0)


def elements(v, rows, columns):
    """z[rows, columns] = v, one element after the other."""
    z = np.zeros((40, 30))
    for k in range(len(rows)):
        z[rows[k], columns[k]] = v[k]
    return z


@pytest.mark.parametrize("n", [5, 60, 300, 5000])
def test_the_last_write_to_an_element_has_the_cotangent(n):
    rows, columns = RANDOM.integers(-40, 40, n), RANDOM.integers(0, 30, n)
    weights, v = RANDOM.normal(size=(40, 30)), RANDOM.normal(size=n)

    def f(v):
        z = np.zeros((40, 30))
        z[rows, columns] = v
        return np.sum(weights * z**2)

    last = {(row % 40, column): k for k, (row, column) in enumerate(zip(rows.tolist(), columns.tolist()))}
    expected = np.zeros(n)
    for place, k in last.items():
        expected[k] = 2.0 * weights[place] * v[k]
    assert f(v) == pytest.approx(np.sum(weights * elements(v, rows, columns) ** 2))
    np.testing.assert_allclose(plaingrad.grad(f)(v), expected)


@pytest.mark.parametrize("n", [10, 400])
def test_all_writes_have_theirs_where_no_element_is_named_twice(n):
    places = RANDOM.permutation(1200)[:n]
    weights, v = RANDOM.normal(size=1200), RANDOM.normal(size=n)

    def f(v):
        z = np.zeros(1200)
        z[places] = v
        return np.sum(weights * z)

    np.testing.assert_allclose(plaingrad.grad(f)(v), weights[places])


def test_elements_that_share_memory_are_one():
    def f(v):
        z = np.zeros(200)
        windows = np.lib.stride_tricks.sliding_window_view(z, 100, writeable=True)
        windows[np.arange(2), :] = np.reshape(v, (2, 100))  # the second row is written over most of the first
        return np.sum(z * np.arange(200.0))

    expected = np.concatenate([[0.0], np.zeros(99), np.arange(1.0, 101.0)])
    np.testing.assert_allclose(plaingrad.grad(f)(RANDOM.normal(size=200)), expected)
