"""`enumerate`, `zip` and `range`, one inside of the other."""

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.native.uncompiled import check  # noqa: E402

RNG = np.random.default_rng(3)


def pairs_counted(x, y):
    total = 0.0
    for k, (u, v) in enumerate(zip(x, y)):
        total += k * u * v
    return total


def counted_beside(x, y):
    total = 0.0
    for (k, u), v in zip(enumerate(x, 3), y):
        total += k * u * v
    return total


def ranges_beside(x, y):
    total = 0.0
    for k, u, v in zip(range(3, 0, -1), x, y[::-1]):
        total += k * u * v
    for k, j in enumerate(range(1, 5, 2)):
        total += k * x[j] ** 2
    return total


def pairs_of_pairs(x, y):
    total = 0.0
    for (u, v), (k, z) in zip(zip(x, y), enumerate(y, 1)):
        total += u * v * k * z
    return total


def left_early(x, y):
    total = 0.0
    for k, (u, v) in enumerate(zip(x, y)):
        if k > 1 and u > v:
            break
        total += u * v
    else:
        total *= x[0]
    return total * total


@pytest.mark.parametrize("f", [pairs_counted, counted_beside, ranges_beside, pairs_of_pairs, left_early])
@pytest.mark.parametrize("n", [5, 0])
def test_nested_iterations_are_counted_loops(f, n):
    x = RNG.normal(size=6)
    check(f, x, RNG.normal(size=n))
