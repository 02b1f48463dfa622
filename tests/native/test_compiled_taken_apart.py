"""Functions that Numba compiles, with what reverse mode has no memory for, taken apart: beside differences of theirs."""

import math
import sys

import numba
import numpy as np
import plaingrad
import pytest
from numba import typed, types
from numba.experimental import jitclass


@jitclass([("stiffness", types.float64), ("place", types.float64)])
class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness
        self.place = 1

    @property
    def force(self):
        return -self.stiffness * self.place

    def step(self, h):
        self.place += h * self.force


@numba.njit
def containers(x):
    known = {"a": x, "b": x * x}
    known["a"] = known["a"] * 2.0
    numbers = [x, 2.0 * x, 1.0]
    numbers[1:2] = [x**3, math.sin(x)]
    grown = typed.List()
    for k in range(4):
        grown.append(x * k)
    squares = typed.Dict.empty(types.int64, types.float64)
    for k in range(3):
        squares[k] = x * x * k
    total = known["a"] * known["b"] + numbers[1] * numbers[2]
    for value in grown:
        total += value * value
    for k in squares:
        total += squares[k] * k
    spring = Spring(x)
    for _ in range(4):
        spring.step(0.1)
    return total + spring.place


@numba.njit
def best(x, n):
    found = None
    for k in range(n):
        value = math.sin(x * (k + 1))
        if found is None or value > found:
            found = value
    return found


@numba.njit
def powers(x, n):
    for k in range(n):
        yield x * k


def growing(x):
    term = x
    while True:
        yield term
        term = term * x + 1.0


def generated(x):
    total = 0.0
    for value in powers(x, 4):
        total += value * value
    for k, value in enumerate(growing(x)):
        total += value * k
        if k >= 3 or value > 50.0:
            break
    return total + sum(powers(x * x, 3))


def without_forms(a):
    with np.errstate(all="ignore"):
        b = np.maximum.accumulate(a) - np.max(a.reshape(2, 2), axis=1, keepdims=True).sum()
    return np.sum(np.select([a < 0.4, a < 0.8], [a * a, a**3], default=1.0) * b)


def difference(f, x, *rest):
    return (f(x + 1e-6, *rest) - f(x - 1e-6, *rest)) / 2e-6


def test_containers_classes_and_none_inside_of_compiled_functions():
    assert plaingrad.grad(containers)(0.7) == pytest.approx(difference(containers, 0.7), rel=1e-8)
    assert plaingrad.grad(best)(0.7, 4) == pytest.approx(difference(best, 0.7, 4), rel=1e-8)
    assert plaingrad.grad(lambda x: 2.0 * best(x, 3), tier="native")(0.7) == pytest.approx(
        2.0 * difference(best, 0.7, 3), rel=1e-8
    )
    with pytest.raises(TypeError):
        plaingrad.grad(best)(0.7, 0)


RATE = 2.0


@numba.njit
def rated(x):
    return {"a": x}["a"] * RATE


def test_an_array_that_may_be_none_is_followed():
    def f(a, x):
        weights = None
        if x > 0.1:
            weights = a * x
        return float(np.sum(weights)) if weights is not None else 0.0

    a = np.array([0.5, 1.5])
    assert [plaingrad.grad(f, 1, tier="native")(a, x) for x in (0.7, 0.0)] == [2.0, 0.0]


def test_a_compiled_function_is_not_followed_with_another_global_than_its_own(monkeypatch):
    assert rated(3.0) == 6.0
    assert plaingrad.grad(rated)(3.0) == 2.0
    monkeypatch.setattr(sys.modules[__name__], "RATE", 5.0)
    with pytest.raises(plaingrad.NativeError, match="RATE"):
        plaingrad.grad(rated, tier="native")(3.0)


def test_generators_are_followed_in_the_place_of_loops():
    expected = difference(generated, 0.7)
    assert plaingrad.grad(generated, tier="native")(0.7) == pytest.approx(expected, rel=1e-8)


def test_forms_of_numpy_that_numba_lacks():
    a = np.array([0.3, 0.7, 1.1, 0.5])
    np.testing.assert_allclose(
        plaingrad.grad(without_forms, tier="native")(a), plaingrad.grad(without_forms, tier="plain")(a), rtol=1e-12
    )


def test_a_whole_number_of_a_declared_function_counts():
    declared = numba.njit("float64(float64[:], int64)")(lambda x, n: np.sum(x**2) * n)
    _, pull = plaingrad.vjp(declared, np.array([1.0, 2.0]), 3, tier="native")
    x_bar, n_bar = pull(1.0)
    np.testing.assert_array_equal(x_bar, [6.0, 12.0])
    assert n_bar is None
