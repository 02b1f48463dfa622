"""Functions of Numba that are given lists: met by Python code that is differentiated, or differentiated themselves."""

import warnings

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, hessian, hvp, jacobian, jvp, linearize, vjp

numba = pytest.importorskip("numba")

pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


@numba.njit
def squares(xs):
    s = 0.0
    for x in xs:
        s += x * x
    return s


@numba.njit
def of_first(groups):
    s = 0.0
    for x in groups[0]:
        s += x * x
    return s


@numba.njit
def weighted(xs, w):
    return xs[0] * w[0] + xs[1] * w[1] ** 2


@numba.njit
def growing(a, xs):
    xs.append(3.0)
    return a * xs[0]


@numba.njit
def counted(a, xs):
    return a * a * len(xs)


X = 1.5
PROGRAMS = {
    "a list": (lambda t: squares([t, 2.0]), 2 * X, 2.0),
    "twice in it": (lambda t: squares([t, t, 1.0]), 4 * X, 4.0),
    "a tuple with a list": (lambda t: of_first(([t, 2.0],)), 2 * X, 2.0),
    "a list with a tuple": (lambda t: of_first([(t, 2.0)]), 2 * X, 2.0),
    "a list of arrays": (lambda t: of_first([np.array([t, 2.0]), np.array([5.0])]), 2 * X, 2.0),
    "a list and an array": (lambda t: squares([t, 2.0]) + squares(np.array([t, 1.0])), 4 * X, 4.0),
    "two lists, one constant": (lambda t: weighted([t, t * t], [2.0, 3.0]), 2.0 + 18 * X, 18.0),
    "two lists": (lambda t: weighted([t, 1.0], [t, 2.0]), 2 * X, 2.0),
    "a constant list": (lambda t: t * squares([1.0, 2.0]), 5.0, 0.0),
    "a list of ints": (lambda t: counted(t, [1, 2]), 4 * X, 4.0),
    "one that grows": (lambda t: t * growing(t, [2.0]), 4 * X, 4.0),
}


@pytest.mark.parametrize("f, first, second", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_that_gives_a_list_to_a_function_of_numbas(f, first, second):
    assert grad(f)(X) == pytest.approx(first)
    assert derivative(f)(X) == pytest.approx(first)
    assert jvp(f, (X,), (2.0,)) == pytest.approx((f(X), 2 * first))
    assert linearize(f, X)[1](1.0) == pytest.approx(first)
    for twice in (grad(grad(f)), derivative(grad(f)), grad(derivative(f)), derivative(f, order=2)):
        assert twice(X) == pytest.approx(second)


@pytest.mark.parametrize("tier", ["auto", "native", "plain"])
def test_a_compiled_function_of_a_list_in_every_operator(tier):
    xs, dots = [1.0, 2.0], [1.0, 0.5]
    assert jvp(squares, (xs,), (dots,), tier=tier) == (5.0, 4.0)
    assert linearize(squares, xs, tier=tier)[1](dots) == 4.0
    assert vjp(squares, xs, tier=tier)[1](1.0) == ([2.0, 4.0],)
    assert grad(squares, tier=tier)(xs) == [2.0, 4.0]
    assert hvp(squares, (xs,), (dots,), tier=tier) == ([2.0, 1.0],)
    assert hessian(squares, tier=tier)(xs) == [[2.0, 0.0], [0.0, 2.0]]
    assert jacobian(squares, tier=tier, mode="forward")(xs) == [2.0, 4.0]
    assert xs == [1.0, 2.0] and dots == [1.0, 0.5]


def test_a_list_that_the_compiled_function_extends_is_extended_once():
    for slope in (grad, derivative):
        xs = [2.0]
        assert slope(lambda t, xs=xs: growing(t, xs))(X) == 2.0
        assert xs == [2.0, 3.0]


def test_part_of_a_list_is_differentiated():
    assert jvp(weighted, ([1.0, 2.0], [3.0, 4.0]), ([1.0, 0.0], None)) == (35.0, 3.0)
    assert jvp(weighted, ([1.0, 2.0], [3.0, 4.0]), (None, [0.0, 1.0])) == (35.0, 16.0)
    nans = jvp(squares, ([np.nan, 2.0],), ([0.0, 1.0],))
    assert np.isnan(nans[0]) and np.isnan(nans[1])


def test_single_precision_in_a_list():
    f = np.float32
    y, y_dot = jvp(squares, ([f(1.0), f(2.0)],), ([f(1.0), f(0.0)],))
    assert (float(y), float(y_dot)) == (5.0, 2.0)


def test_an_empty_list_has_no_tangent():
    with warnings.catch_warnings(), pytest.raises(plaingrad.ArgumentError, match="no real or complex number"):
        jvp(squares, ([],), ([],))
