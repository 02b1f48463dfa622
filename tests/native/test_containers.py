"""Containers that are arguments, or hold arrays inside of programs: differentiated, or refused with a way on."""

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, value_and_grad, vjp

numba = pytest.importorskip("numba")

from numba.experimental import jitclass  # noqa: E402

X = np.array([1.0, 2.0, 3.0])


# -- lists of arrays -------------------------------------------------------------------------------------------------------


def over_list(arrays, c):
    total = 0.0
    for a in arrays:
        total += np.sum(a * a) * c
    return total + arrays[1][0]


@pytest.mark.parametrize("arrays", [[X, X * 2.0], [X[:0], np.array([2.0]), X]])
def test_a_list_of_arrays_is_an_argument(arrays, in_python):
    found, c_bar = grad(over_list, (0, 1), tier="native")(arrays, 0.5)
    expected, c_expected = grad(over_list, (0, 1), tier="plain")(arrays, 0.5)
    assert type(found) is list
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    np.testing.assert_allclose(c_bar, c_expected, rtol=1e-14)


def appended(x):
    states = [x]
    for k in range(3):
        states.append(np.sin(states[k]))
    return np.sum(states[3])


def listed(x):
    both = [x * 2.0, x * x]
    return np.sum(both[0] * both[1])


def comprehended(x):
    return np.sum([x * k for k in range(3)][2])


@pytest.mark.parametrize("f", [appended, listed, comprehended], ids=lambda f: f.__name__)
def test_a_list_of_arrays_inside_a_program_is_followed(f, in_python):
    np.testing.assert_allclose(grad(f, tier="native")(X), grad(f, tier="plain")(X), rtol=1e-14)


def test_a_list_of_numbas_own_is_told_what_to_be():
    with pytest.raises(plaingrad.ArgumentError, match="pass a list"):
        grad(over_list, tier="native")(numba.typed.List([X, X]), 0.5)


# -- classes compiled by Numba -----------------------------------------------------------------------------------------------


@jitclass([("gain", numba.float64), ("values", numba.float64[:]), ("count", numba.int64)])
class Box:
    def __init__(self, gain, values, count):
        self.gain = gain
        self.values = values
        self.count = count

    def total(self):
        return self.gain * np.sum(self.values)


@jitclass([("box", Box.class_type.instance_type), ("weight", numba.float64)])
class Parcel:
    def __init__(self, box, weight):
        self.box = box
        self.weight = weight


def of_fields(box, x):
    total = 0.0
    for k in range(box.count):
        total += box.gain * box.values[k] ** 2 * x
    return total


def test_an_instance_of_a_jitclass_has_a_gradient_with_its_fields():
    for f in (of_fields, numba.njit(of_fields)):
        y, (found, x_bar) = value_and_grad(f, (0, 1), tier="native")(Box(2.0, X, 3), 0.5)
        assert y == 14.0
        assert found.gain == 7.0
        np.testing.assert_array_equal(found.values, 2.0 * X)
        assert found["count"] is None
        assert x_bar == 28.0


def of_parcel(parcel):
    return parcel.weight * parcel.box.gain * parcel.box.values[1]


def test_an_instance_inside_an_instance_is_followed(in_python):
    found = grad(of_parcel, tier="native")(Parcel(Box(2.0, X, 3), 0.5))
    assert found.weight == 4.0
    assert found.box.gain == 1.0
    np.testing.assert_array_equal(found.box.values, [0.0, 1.0, 0.0])


def by_method(x, box):
    return x * x * box.total()


def test_an_instance_that_is_not_differentiated_keeps_its_methods():
    box = Box(2.0, X, 3)
    assert grad(by_method, tier="native")(3.0, box) == 72.0
    assert vjp(by_method, 3.0, box, tier="native")[1](1.0) == (72.0, None)


def test_methods_of_a_differentiated_instance_are_refused():
    with pytest.raises(plaingrad.NativeError, match="total"):
        grad(by_method, 1, tier="native")(3.0, Box(2.0, X, 3))


def made_inside(x):
    return Box(x[0], x, 1).gain


def changed(box, x):
    box.gain = x
    return box.gain


def test_instances_made_inside_are_taken_apart_and_given_ones_not_changed():
    np.testing.assert_array_equal(grad(made_inside, tier="native")(X), np.eye(X.size)[0])
    for argnums in (0, 1):
        with pytest.raises(plaingrad.NativeError, match=r"test_containers.py:\d+"):
            grad(changed, argnums, tier="native")(Box(2.0, X, 3), 0.5)
