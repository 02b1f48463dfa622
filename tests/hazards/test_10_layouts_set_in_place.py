"""Hazard 10: `a.shape = ...` is followed, its like refused, of an array that is differentiated or that a pullback holds."""

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, hessian, jvp, linearize, vjp

Y = np.arange(1.0, 5.0).reshape(2, 2)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def dtype(x, y):
    a = x * y
    a.dtype = np.int64
    return x * a[1, 1]


def strides(x, y):
    a = x * y
    a.strides = (8, 16)
    return a[1, 0] * a[0, 1]


def shape_of_an_argument(x, y):
    y.shape = (4,)
    return x * x * y[3]


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
# -- strides and types -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", [*OUTER.values(), *NESTED.values()], ids=[*OUTER, *NESTED])
@pytest.mark.parametrize("f", [dtype, strides])
def test_of_a_differentiated_array_they_are_refused(f, operator):
    before = Y.copy()
    f(2.0, Y.copy())
    with pytest.raises(plaingrad.MissingRuleError, match=r"is set in place, at .*test_10_layouts.*:\d+") as refused:
        operator(f)
    assert "reshape, view or a copy" in str(refused.value)
    assert np.array_equal(Y, before) and Y.shape == (2, 2)


@pytest.mark.parametrize("operator", NESTED.values(), ids=NESTED)
def test_the_shape_of_an_argument_is_the_callers_and_refused(operator):
    with pytest.raises(plaingrad.MissingRuleError, match=r"`.shape` of a differentiated array is set in place"):
        operator(shape_of_an_argument)
    with pytest.raises(plaingrad.MissingRuleError, match=r"`.shape` of a differentiated array is set in place"):
        grad(shape_of_an_argument, 1)(2.0, Y.copy())
    assert grad(shape_of_an_argument)(2.0, Y.copy()) == 16.0  # of a constant one it is free


def numbers_of_a_factor(x):
    w = np.arange(4.0)
    s = x * x * w
    w.dtype = np.int64
    return s.sum()


def strides_of_a_factor(x):
    w = np.arange(4.0).reshape(2, 2).copy()
    s = x * w
    w.strides = (8, 16)
    return (s[0] * s[0]).sum()


@pytest.mark.parametrize("f", [numbers_of_a_factor, strides_of_a_factor])
def test_of_a_constant_that_a_pullback_reads_again_they_are_refused(f):
    x, h = 2.0, 1e-6
    for slope in (grad, lambda f: grad(grad(f)), lambda f: derivative(grad(f))):
        with pytest.raises(plaingrad.MissingRuleError, match="that a pullback reads again is set in place"):
            slope(f)(x)
    assert derivative(f)(x) == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-6)  # nothing is read again


def test_of_a_constant_that_nobody_reads_again_all_is_free():
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


# -- shapes ------------------------------------------------------------------------------------------------------------


def reshaped(a, shape):
    """What the functions below do instead of setting a shape, where `SET` is False: a view of the same memory."""
    if SET:
        a.shape = shape
        return a
    return a.reshape(shape)


SET = True


def product(x):
    a = x * x
    b = a * a
    a = reshaped(a, (2, 2))
    return (a @ a)[0, 1] * (b * a.ravel()).sum()


def there_and_back(x):
    a = x * x
    b = a * a
    a = reshaped(a, (2, 2))
    c = a @ a
    a = reshaped(a, (4,))
    b += a * np.sin(a)
    a, b = reshaped(a, (2, 2)), reshaped(b, (2, 2))
    return (b * c * a).sum()


def view(x):
    b = reshaped(x[:], (2, 2))
    return (b @ b)[1, 0] * x[0]


def view_and_owner(x):
    a = np.zeros((2, 4))
    a[1] = x * x
    row = reshaped(a[1], (2, 2))
    row[0, 0] *= x[1]
    a = reshaped(a, (8,))
    return (row @ row)[0, 1] * a[4] * a[5:].sum()


def filled(x):
    a = np.empty(4)
    for i in range(4):
        a[i] = x[i] * x[i - 1]
    a = reshaped(a, (-1, 1))
    a *= x[0]
    return (a.T @ a)[0, 0] * a[2, 0]


def constant(x):
    w = np.arange(4.0) + 1
    s = x * w
    w = reshaped(w, (2, 2))
    w *= 2
    t = x.reshape(2, 2) @ w
    w = reshaped(w, (1, 4))
    w += x
    return s.sum() * t.sum() * (w**2).sum()


def in_the_order_of_fortran(x):
    b = reshaped(np.array(np.outer(x, x), order="F"), (4, 1, 4))
    return (b[:, 0] @ x).sum() * b[1, 0, 2]


def in_a_loop(x):
    a = x.copy()
    for _ in range(3):
        a = reshaped(a, (2, 2))
        a = a @ a
        a = reshaped(a, 4)
        a = a * x
    return a.sum()


def overwritten(x):
    a = x * x
    b = a.reshape(2, 2)
    s = np.exp(a)
    a = reshaped(a, (2, 2))
    a[0] = x[:2]
    t = a * a
    b[1] = 0.0
    a = reshaped(a, (4, 1))
    return (s * a[:, 0]).sum() + t.sum() * b.sum()


def by_setattr(x):
    a = x * x
    if SET:
        setattr(a, "shape", (2, 2))  # noqa: B010
    return a.ravel()[3] * a.reshape(2, 2)[0, 1]


def by_descriptor(x):
    put = np.ndarray.shape.__set__
    a = x * x
    if SET:
        put(a, (2, 2))
    return a.ravel()[3] * a.reshape(2, 2)[0, 1]


def one_that_does_not_fit(x):
    a = x * x
    try:
        reshaped(a, (3,))
    except (AttributeError, ValueError):
        return a @ x
    return 0.0


X, V = np.array([0.5, 1.2, 2.0, 0.7]), np.array([1.0, -0.5, 0.3, 2.0])
FOLLOWED = [product, there_and_back, view, view_and_owner, filled, constant, in_the_order_of_fortran, in_a_loop,
            overwritten, by_setattr, by_descriptor, one_that_does_not_fit]  # fmt: skip
DERIVATIVES = {
    "grad": lambda f: grad(f)(X),
    "jvp": lambda f: jvp(f, (X,), (V,))[1],
    "a pullback called twice": lambda f: (lambda pull: pull(1.0)[0] + pull(1.0)[0])(vjp(f, X)[1]),
    "hessian": lambda f: hessian(f)(X),
    "hvp": lambda f: plaingrad.hvp(f, (X,), (V,)),
    "reverse over reverse": lambda f: grad(lambda x: grad(f)(x) @ V)(X),
    "reverse over forward": lambda f: grad(lambda x: jvp(f, (x,), (V,))[1])(X),
    "forward over forward": lambda f: derivative(lambda s: jvp(f, (X + s * V,), (V,))[1])(0.0),
    "taylor": lambda f: plaingrad.taylor(lambda s: f(X + s * V), 0.0, 3),
    "three times": lambda f: hessian(lambda x: jvp(f, (x,), (V,))[1])(X),
}


@pytest.mark.parametrize("operator", DERIVATIVES.values(), ids=DERIVATIVES)
@pytest.mark.parametrize("f", FOLLOWED)
def test_a_shape_that_is_set_is_a_view_of_that_shape(f, operator, monkeypatch):
    got = operator(f)
    monkeypatch.setitem(globals(), "SET", False)
    np.testing.assert_allclose(got, operator(f), rtol=1e-12)
    assert X.shape == (4,)


def test_a_result_has_the_shape_that_was_set():
    def f(x):
        a = np.sin(x)
        a.shape = (2, 2)
        return a

    y, pullback = vjp(f, X)
    assert y.shape == (2, 2)
    np.testing.assert_allclose(pullback(np.ones((2, 2)))[0], np.cos(X))
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(plaingrad.jacobian(f, mode=mode)(X).reshape(4, 4), np.diag(np.cos(X)))


def test_what_the_program_has_keeps_its_shape_after_a_derivative():
    kept = []

    def f(x):
        w = np.arange(4.0)
        a = x * w
        w.shape = (2, 2)
        a.shape = (4, 1)
        kept.append((w, a))
        return (a * a).sum()

    for operator in (lambda: grad(f)(X), lambda: plaingrad.hvp(f, (X,), (V,)), lambda: jvp(f, (X,), (V,))):
        operator()
        assert [a.shape for a in kept.pop()] == [(2, 2), (4, 1)]


def test_in_a_checkpoint_it_is_refused():
    with pytest.raises(plaingrad.MissingRuleError, match="is set in place"):
        grad(lambda x: plaingrad.checkpoint(product, x * x))(X)


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
