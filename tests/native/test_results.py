"""Results of functions that have no derivative, or are no number: as in the plain tier."""

import numpy as np
import pytest

import plaingrad
from plaingrad import (
    NonScalarOutputError,
    derivative,
    grad,
    hessian,
    jacobian,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)

numba = pytest.importorskip("numba")

A = np.array([1.0, 2.5])


def whole(a):
    return int(a[0] * 3.0)


def truth(a):
    return a[0] > a[1]


def counted(a):
    a[0] = 2.0
    return len(a)


def constant(a):
    return np.arange(3)


@pytest.mark.parametrize("tier", ["native", "plain"])
@pytest.mark.parametrize("f", [whole, counted])
def test_whole_numbers_have_gradients_of_zeros(f, tier):
    a, left = A.copy(), A.copy()
    y, a_bar = value_and_grad(f, tier=tier)(a)
    assert y == f(left)
    np.testing.assert_array_equal(a, left)
    np.testing.assert_array_equal(a_bar, np.zeros(2))
    many = np.arange(20.0)  # by reverse mode
    np.testing.assert_array_equal(grad(f, tier=tier)(many), np.zeros(20))


@pytest.mark.parametrize("tier", ["native", "plain"])
@pytest.mark.parametrize("derive", [grad, value_and_grad])
def test_truth_values_have_no_gradients(derive, tier):
    for x in (A.copy(), np.arange(20.0)):  # by forward mode, and by reverse mode
        with pytest.raises(NonScalarOutputError, match="bool"):
            derive(truth, tier=tier)(x)


@pytest.mark.parametrize("tier", ["native", "plain"])
def test_whole_numbers_beside_other_results_have_gradients_of_zeros(tier):
    def f(a):
        return int(a[0] * 3.0), (np.sum(a * a), a * 2.0)

    (y, (more, twice)), a_bar = value_and_grad(f, has_aux=True, tier=tier)(A)
    assert (y, more) == (3, 7.25)
    np.testing.assert_array_equal(twice, 2.0 * A)
    np.testing.assert_array_equal(a_bar, np.zeros(2))


@pytest.mark.parametrize("tier", ["native", "plain"])
def test_whole_numbers_have_jacobians_and_tangents_of_zeros(tier):
    np.testing.assert_array_equal(jacobian(whole, tier=tier)(A), np.zeros(2))
    np.testing.assert_array_equal(jacobian(whole, tier=tier, mode="reverse")(A), np.zeros(2))
    np.testing.assert_array_equal(jacobian(constant, tier=tier)(A), np.zeros((3, 2)))
    assert linearize(whole, A, tier=tier)[1](A) == 0.0
    np.testing.assert_array_equal(linearize(constant, A, tier=tier)[1](A), np.zeros(3))
    assert derivative(lambda x: int(x), tier=tier)(2.5) == 0.0
    assert jvp(whole, (A,), (A,), tier=tier) == (3, 0.0)
    assert vjp(whole, A, tier=tier)[0] == 3


def test_second_derivatives_of_whole_numbers_are_the_plain_tiers():
    f = numba.njit(whole)
    np.testing.assert_array_equal(hessian(f)(A), np.zeros((2, 2)))
    with pytest.raises(plaingrad.NativeError, match="no second derivative natively"):
        hessian(f, tier="native")(A)


@pytest.mark.parametrize("tier", ["native", "plain"])
@pytest.mark.parametrize(
    "f", [constant, lambda a: None, lambda a: (1, 2), lambda a: (a[0], a[1]), lambda a: a * 2.0]
)
def test_a_gradient_of_what_is_no_number_is_refused(f, tier):
    with pytest.raises(plaingrad.NonScalarOutputError, match="needs one real number"):
        grad(f, tier=tier)(A)


@pytest.mark.parametrize("tier", ["native", "plain"])
def test_an_array_without_axes_is_a_number(tier):
    def f(a):
        z = np.zeros(())
        z[()] = np.sum(a * a)
        return z

    for a in (A, np.arange(20.0)):
        y, a_bar = value_and_grad(f, tier=tier)(a)
        assert y == np.sum(a * a)
        np.testing.assert_array_equal(a_bar, 2.0 * a)


def test_products_that_numba_truncates_are_refused():
    def f(a):
        return np.sum(np.kron(np.array([1, 2]), a))

    with pytest.raises(plaingrad.NativeError, match="whole numbers"):
        grad(f, tier="native")(A)
    np.testing.assert_array_equal(grad(f)(A), [3.0, 3.0])


def overwritten(a):
    a[0] = a[1] * 2.0
    return a[0] * a[1] * a[2]


@pytest.mark.parametrize("tier", ["native", "plain"])
def test_second_derivatives_leave_the_arguments_as_the_function_does(tier):
    for take in (
        lambda a: plaingrad.hvp(overwritten, (a,), (np.ones(3),), tier=tier)[0],
        lambda a: hessian(overwritten, tier=tier)(a) @ np.ones(3),
    ):
        a = np.array([1.0, 2.0, 3.0])
        np.testing.assert_allclose(take(a), [0.0, 4.0 * 3.0 + 4.0 * 2.0, 4.0 * 2.0], rtol=1e-14)
        np.testing.assert_array_equal(a, [4.0, 2.0, 3.0])


def test_arrays_of_whole_numbers_that_a_function_writes_into_are_the_plain_tiers():
    def gradient(a, tier):
        return value_and_grad(overwritten, tier=tier)(a)

    def tangent(a, tier):
        return jvp(overwritten, (a,), (np.ones(3),), tier=tier)

    for take in (gradient, tangent, lambda a, tier: jacobian(overwritten, tier=tier)(a)):
        a = np.array([1, 2, 3])
        with pytest.raises(plaingrad.NativeError, match="whole numbers"):
            take(a, "native")
        np.testing.assert_array_equal(a, [1, 2, 3])
        take(a, "plain")
        np.testing.assert_array_equal(a, [4, 2, 3])


class Doubling(np.ndarray):
    """Arrays whose products are twice those of others."""

    def __mul__(self, other):
        return 2.0 * np.asarray(self) * np.asarray(other)


@pytest.mark.parametrize(
    "x",
    [np.array([1.0, 2.0]).view(Doubling), np.ma.array([1.0, 2.0]), np.array([1.0, 2.0], ">f8")],
    ids=["of a subclass", "masked", "big-endian"],
)
def test_arrays_that_numba_takes_for_others_or_not_at_all_are_refused(x):
    def f(x):
        return np.sum(x * x)

    with pytest.raises(plaingrad.NativeError, match="nothing that Numba takes"):
        grad(f, tier="native")(x)
    np.testing.assert_allclose(grad(f)(x), grad(f, tier="plain")(x))
