"""Sets that are written where a program asks whether something is in them."""

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")


@numba.njit
def chosen(x, k):
    """Numbers among constants, among variables, and not among them."""
    total = 0.0
    for i in range(x.size):
        if k + i in {2, 3}:
            total += x[i] ** 2
        elif k not in {1, i}:
            total += x[i]
        if x[i] in {1.0, x[0] * 2.0}:
            total *= x[i]
    return total


@numba.njit
def counted(x, k):
    some = {2, k}
    return x * len(some) if k in some else x


def test_what_is_asked_of_a_literal_set_is_a_branch_and_other_sets_are_refused():
    x = np.arange(1.0, 5.0)
    for k in (0, 1):
        expected = plaingrad.grad(chosen.py_func, tier="plain")(x, k)
        np.testing.assert_allclose(plaingrad.grad(chosen, tier="native")(x, k), expected, rtol=1e-14)
    with pytest.raises(plaingrad.NativeError, match="a set"):
        plaingrad.grad(counted, tier="native")(2.0, 1)
