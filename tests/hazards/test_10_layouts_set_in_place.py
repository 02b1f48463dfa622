"""Hazard 10: `a.shape = ...` and its like of an array that is differentiated, at any level, or that a pullback holds."""

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, hessian, jvp, linearize, vjp

Y = np.arange(1.0, 5.0).reshape(2, 2)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def product(x, y):
    a = x * y
    a.shape = (4,)
    return a[3] * a[1]


def other_factor(x, y):
    a = y * 1.0  # of an outer derivative only
    a.shape = (4,)
    return x * x * a[3]


def filled(x, y):
    a = np.zeros((2, 2))
    a[1, 0] = x * y[0, 0]
    a.shape = (4,)
    return a[2] * x


def row_of_filled(x, y):
    a = np.zeros((2, 2))
    row = a[0]
    a[1, 0] = x * y[0, 0]
    row.shape = (2, 1)
    return a[1, 0] * x + row[1, 0]


def view(x, y):
    a = x * y
    b = a[:]
    b.shape = (4,)
    return b[3] * b[1]


def reduction(x, y):
    a = (x * y).sum(axis=0)
    a.shape = (2, 1)
    return (a * a).sum()


def dtype(x, y):
    a = x * y
    a.dtype = np.int64
    return x * a[1, 1]


def strides(x, y):
    a = x * y
    a.strides = (8, 16)
    return a[1, 0] * a[0, 1]


def by_setattr(x, y):
    a = x * y
    setattr(a, "shape", 4)  # noqa: B010
    return a[3] * a[1]


def by_descriptor(x, y):
    a = x * y
    np.ndarray.shape.__set__(a, (4,))
    return a[3] * a[1]


def by_descriptor_in_a_variable(x, y):
    put = type(y).shape.__set__
    a = x * y
    put(a, (4,))
    return a[3] * a[1]


OUTER = {
    "grad": lambda f: grad(f)(2.0, Y),
    "jvp": lambda f: jvp(lambda x: f(x, Y), (2.0,), (1.0,)),
    "grad of grad": lambda f: grad(grad(f))(2.0, Y),
    "hessian": lambda f: hessian(f)(2.0, Y),
    "vjp": lambda f: vjp(f, 2.0, Y)[1](1.0),
}
NESTED = {
    "reverse over reverse": lambda f: grad(lambda y: grad(f)(2.0, y))(Y),
    "forward over reverse": lambda f: jvp(lambda y: grad(f)(2.0, y), (Y,), (Y,)),
    "reverse over forward": lambda f: grad(lambda y: derivative(lambda x: f(x, y))(2.0))(Y),
    "the other way": lambda f: derivative(lambda x: grad(lambda y: f(x, y))(Y).sum())(2.0),
}
REFUSED = [product, filled, row_of_filled, view, reduction, dtype, strides, by_setattr, by_descriptor,
           by_descriptor_in_a_variable]  # fmt: skip


@pytest.mark.parametrize("operator", [*OUTER.values(), *NESTED.values()], ids=[*OUTER, *NESTED])
@pytest.mark.parametrize("f", REFUSED)
def test_of_a_differentiated_array_it_is_refused(f, operator):
    before = Y.copy()
    f(2.0, Y.copy())
    with pytest.raises(plaingrad.MissingRuleError, match=r"is set in place, at .*test_10_layouts.*:\d+") as refused:
        operator(f)
    assert "reshape, view or a copy" in str(refused.value)
    assert np.array_equal(Y, before) and Y.shape == (2, 2)


@pytest.mark.parametrize("operator", NESTED.values(), ids=NESTED)
def test_of_an_array_that_is_differentiated_further_out_it_is_refused(operator):
    with pytest.raises(plaingrad.MissingRuleError, match=r"`.shape` of a differentiated array is set in place"):
        operator(other_factor)
    assert grad(other_factor)(2.0, Y) == derivative(lambda x: other_factor(x, Y))(2.0) == 16.0
    assert grad(grad(other_factor))(2.0, Y) == 8.0


def shape_of_a_factor(x):
    w = np.arange(4.0).reshape(2, 2).copy()
    s = x * x * w
    w.shape = (4,)
    return s.sum()


def numbers_of_a_factor(x):
    w = np.arange(4.0)
    s = x * x * w
    w.dtype = np.int64
    return s.sum()


def shape_of_a_matrix(x):
    w = np.arange(4.0).reshape(2, 2).copy()
    s = np.array([x, x]) @ w
    w.shape = (4, 1)
    return (s * s).sum()


def strides_of_a_factor(x):
    w = np.arange(4.0).reshape(2, 2).copy()
    s = x * w
    w.strides = (8, 16)
    return (s[0] * s[0]).sum()


@pytest.mark.parametrize("f", [shape_of_a_factor, numbers_of_a_factor, shape_of_a_matrix, strides_of_a_factor])
def test_of_a_constant_that_a_pullback_reads_again_it_is_refused(f):
    x, h = 2.0, 1e-6
    for slope in (grad, lambda f: grad(grad(f)), lambda f: derivative(grad(f))):
        with pytest.raises(plaingrad.MissingRuleError, match="that a pullback reads again is set in place"):
            slope(f)(x)
    assert derivative(f)(x) == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-6)  # nothing is read again


def test_of_a_constant_that_nobody_reads_again_it_is_free():
    def f(x):
        w = np.arange(4.0)
        w.shape = (2, 2)
        s = x * x * w
        unused = np.zeros(6)
        unused.shape = (3, 2)
        unused.dtype = np.int64
        return s[1, 1] + unused.sum()

    assert grad(f)(2.0) == derivative(f)(2.0) == 12.0
    assert grad(grad(f))(2.0) == 6.0


@pytest.mark.parametrize("take", [vjp, linearize])
@pytest.mark.parametrize("change", ["shape", "dtype"])
def test_a_map_notices_that_an_array_has_become_another(take, change):
    w = np.arange(1.0, 5.0)
    _, linear = take(lambda x: (x * x * w).sum(), 3.0)
    assert np.ravel(linear(1.0)) == [60.0]
    if change == "shape":
        w.shape = (2, 2)
    else:
        w.dtype = np.int64
    with pytest.raises(plaingrad.ChangedSinceError):
        linear(1.0)
    if change == "shape":
        w.shape = (4,)
    else:
        w.dtype = np.float64
    assert np.ravel(linear(1.0)) == [60.0]
