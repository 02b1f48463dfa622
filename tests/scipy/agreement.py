"""Derivatives of a function of one array compared with differences, in every mode and once nested.

`make test` tries one of the three ways of nesting for each function, chosen by the name of the test and how many
comparisons it has made, and chunks of tangents for one in three. With PLAINGRAD_TEST_ALL=1 all are tried.
"""

import collections
import os

import numpy as np
from tests.sampling import ALL, number_of

import plaingrad

MADE = collections.Counter()  # comparisons, by test


def weighted(f, seed=0):
    """A number from whatever array f returns, in which every entry counts differently."""

    def total(x):
        y = np.ravel(f(x))
        weights = np.cos(1.0 + seed + np.arange(y.size))
        return (y * weights).sum() if np.isrealobj(y) else (y.real * weights + y.imag * weights[::-1]).sum()

    return total


def slope(f, x, v):
    """df/dx along v by differences of fourth order."""
    h = 2e-4
    return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / (12 * h)


def agrees(f, x, tolerance=1e-7, nested=True):
    """Assert that gradient, tangent, chunk and second derivatives of f at x are those that differences say."""
    x = np.array(x, float)
    total = weighted(f)
    v = np.sin(2.0 + np.arange(x.size)).reshape(x.shape)
    expected = slope(total, x, v)
    scale = 1 + abs(expected)
    gradient = plaingrad.grad(total)(x)
    assert abs((gradient * v).sum() - expected) <= tolerance * scale
    value, tangent = plaingrad.jvp(total, (x,), (v,))
    assert abs(value - total(x)) <= 1e-11 * (1 + abs(value)) and abs(tangent - expected) <= tolerance * scale
    if not nested:
        return

    def curved(x):
        return total(x + 0.01 * x * x)

    def slopes(x):
        return plaingrad.grad(curved)(x)

    nestings = (
        lambda: plaingrad.jvp(slopes, (x,), (v,))[1],
        lambda: plaingrad.grad(lambda x: (slopes(x) * v).sum())(x),
        lambda: plaingrad.grad(lambda x: plaingrad.jvp(curved, (x,), (v,))[1])(x),
    )
    twice = slope(slopes, x, v)
    size = 1 + np.abs(twice).max()
    turn = own_turn()
    for k, nested_derivative in enumerate(nestings):
        if ALL or turn % 3 == k:
            assert np.abs(nested_derivative() - twice).max() <= 10 * tolerance * size
    if ALL or turn // 3 % 3 == 0:
        chunks = plaingrad.jacobian(curved, mode="forward")(x)
        assert np.abs(chunks - slopes(x)).max() <= 1e-9 * (1 + np.abs(chunks).max())


def own_turn():
    """A number that is the same in every run: by the name of the test that runs, and the comparisons it has made."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]  # without the phase
    MADE[test] += 1
    return number_of(test) + MADE[test]
