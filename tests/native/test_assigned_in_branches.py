"""Variables that a branch inside a loop gives their first value, and that the next iteration reads.

Before the loop they have none, so that nothing outside says that an iteration starts from the one before.
"""

import numpy as np
import pytest

import plaingrad
from tests.native.comparison import assert_close

numba = pytest.importorskip("numba")

V = np.array([0.3, 0.7, 1.1, 0.5])


def powers(x):
    for i in range(3):
        if i == 0:
            y = x * x
        else:
            y = y * x
    return np.sum(y)


def three_arms(x):
    n = 0
    while n < 4:
        if n == 0:
            y = x * x
        elif n == 2:
            y = y + 1.0
            y = y * y
        else:
            y = y * x
        n += 1
    return np.sum(y)


def in_two_loops(x):
    s = 0.0
    for j in range(2):
        for i in range(3):
            if i == 0:
                y = x * x + s
            else:
                y = y * x
            s += np.sum(y * y)
    return s


def two_of_them_with_break(x):
    s = 0.0
    for i in range(5):
        if i == 0:
            y = x * x
            z = x
        else:
            y, z = z * x, y * x
        if np.sum(y) > 100.0:
            break
        s += np.sum(y * z)
    return s


def written_into(x):
    for i in range(3):
        if i == 0:
            y = x * x
        else:
            y[0] = y[1] * x[2]
            y = y * y
            y[1] += y[0]
    return np.sum(y * y)


def numbers(x):
    s = 0.0
    for j in range(2):
        for i in range(3):
            if i == 0:
                y = s * x[0] + x[1] * x[1]
            else:
                z = y * x[2]
                y = z * y
        s += y
    return s


def differences(f, x, h=1e-6):
    """The gradient by central differences."""
    found = np.empty_like(x)
    for k in range(x.size):
        step = np.zeros_like(x)
        step[k] = h
        found[k] = (f(x + step) - f(x - step)) / (2 * h)
    return found


@pytest.mark.parametrize(
    "f",
    [powers, three_arms, in_two_loops, two_of_them_with_break, written_into, numbers],
    ids=lambda f: f.__name__,
)
def test_a_value_that_a_branch_of_a_loop_gives_first_is_that_of_the_iteration_before(f):
    compiled = numba.njit(f)
    found = plaingrad.grad(compiled, tier="native")(V)
    assert_close(found, plaingrad.grad(f, tier="plain")(V), 1e-12, "gradient")
    assert_close(found, differences(f, V), 1e-6, "differences")
    direction = np.cos(np.arange(4.0))
    (product,) = plaingrad.hvp(compiled, (V,), (direction,), tier="native")
    assert_close(
        product, plaingrad.hvp(f, (V,), (direction,), tier="plain")[0], 1e-10, "product with the Hessian"
    )


def test_a_parallel_function_that_has_been_called_before_is_differentiated():
    @numba.njit(parallel=True)
    def squares(x):
        s = 0.0
        for i in numba.prange(x.size):
            s += x[i] ** 2
        return s

    squares(V)  # what it was compiled with is read; the compiled IR of a parallel loop is no assignment
    assert_close(plaingrad.grad(squares, tier="native")(V), 2 * V, 1e-12, "gradient")
