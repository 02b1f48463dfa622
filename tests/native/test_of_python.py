"""Python's own functions of arrays and tuples, as programs for Numba use them."""

import numpy as np
import pytest

import plaingrad
from tests.native.comparison import assert_close

numba = pytest.importorskip("numba")

V = np.array([0.3, 1.1, 0.7, 0.5])


@numba.njit
def line(x, a, b):
    return x * x * a - b


@numba.njit
def root(f, x, args=()):
    """A root by steps along chords."""
    for _ in range(30):
        y = f(x, *args)
        x = x - y * 1e-6 / (f(x + 1e-6, *args) - y)
    return x


@numba.njit
def sum_at(f, n, args):
    total = 0.0
    for k in range(n):
        total += f(k + 0.5, *args)
    return total


@numba.njit
def joined(x, y):
    both = (x * y, y) + (2.0 * x,)
    return line(both[0], both[1], both[2])


@numba.njit
def found(a, b):
    return root(line, 1.0, (a, b))


@numba.njit
def added(a, b):
    return sum_at(line, 5, (a * b, b))


@pytest.mark.parametrize(
    "f, wanted",
    [
        (found, lambda a, b: (-0.5 * b**0.5 * a**-1.5, 0.5 * (a * b) ** -0.5)),  # the root is sqrt(b / a)
        (added, lambda a, b: (41.25 * b, 41.25 * a - 5.0)),  # the sum of (k + 1/2)^2 is 41.25
        (joined, lambda a, b: (2 * a * b**3 - 2.0, 3 * a**2 * b**2)),
    ],
    ids=["root", "sum", "joined"],
)
def test_a_tuple_is_passed_on_to_a_function_with_a_star(f, wanted):
    x = (1.3, 2.1)
    for k, slope in enumerate(wanted(*x)):
        np.testing.assert_allclose(plaingrad.grad(f, k, tier="native")(*x), slope, rtol=1e-6)


@numba.njit
def extremes(x):
    return max(x) * min(x) + sum(x) * max(x)


def test_max_min_and_sum_of_an_array_are_those_of_python():
    low, high, total = V.min(), V.max(), V.sum()
    wanted = np.full(4, high)
    wanted[V.argmax()] += low + total
    wanted[V.argmin()] += high
    assert_close(plaingrad.grad(extremes, tier="native")(V), wanted, 1e-14, "gradient")
    first = plaingrad.grad(numba.njit(lambda x: max(x)), tier="native")(np.array([1.0, 2.0, 2.0]))
    assert_close(first, np.array([0.0, 1.0, 0.0]), 0, "of two that are equal it is the first")


def test_the_largest_of_nothing_is_an_error_as_it_is_for_numba():
    @numba.njit
    def largest(x):
        return max(x)

    with pytest.raises(StopIteration):
        largest(V[:0])
    with pytest.raises(StopIteration):
        plaingrad.grad(largest, tier="native")(V[:0])


def test_the_vector_product_with_integers():
    @numba.njit
    def moment(x):
        return np.sum(np.cross(x, np.array([1, 2, 3])) * np.array([0.5, 1.5, 2.5]))

    wanted = np.cross(np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, 2.5]))
    assert_close(plaingrad.grad(moment, tier="native")(V[:3]), wanted, 1e-14, "gradient")


@pytest.mark.parametrize("number", [1.7, np.float32(1.7)], ids=["float", "float32"])
def test_the_class_of_a_number_makes_numbers(number):
    @numba.njit
    def scaled(x):
        T = type(x)
        half = T(0.5)
        return half * x * x + T(2)

    assert scaled(number) == pytest.approx(0.5 * number**2 + 2.0)
    slope = plaingrad.grad(scaled, tier="native")(number)
    assert slope == pytest.approx(float(number), rel=1e-6)


def test_the_vector_product_of_lists_and_tuples():
    @numba.njit
    def moment(x):
        return np.cross([x[0], x[1] * x[2], 2.0], x)[0] + np.cross((0.0, 0.0, 1.0), x)[1] * np.cross(x, [1, 2, 3])[2]

    a, b, c = V[:3]
    wanted = np.array([(2 * a - b) + 2 * a, c * c - 2.0 - a, 2 * b * c])
    assert_close(plaingrad.grad(moment, tier="native")(V[:3]), wanted, 1e-14, "gradient")
    with pytest.raises(ValueError, match="Incompatible dimensions"):
        plaingrad.grad(moment, tier="native")(V)


def test_a_number_as_an_array():
    f = numba.njit(lambda x: (np.asarray(x * x) * x).sum() + np.asarray(x)[()])
    assert_close(plaingrad.grad(f)(0.7), 3 * 0.49 + 1.0, 1e-14, "slope")
