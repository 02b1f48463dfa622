"""Derivatives of orders 1 to 4 at points where a formula of NumPy, or of a rule, has a branch or a quotient 0/0.

Order 1 is computed in every way, order 2 in every other one, orders 3 and 4 in one of six, chosen by function, point
and way; in all with PLAINGRAD_TEST_ALL=1.
"""

import math

import mpmath
import numpy as np
import pytest
from tests.sampling import is_in_sample

from plaingrad import derivative, grad, hessian, taylor
from plaingrad.rules.numpy.entire import i0_derivative, sinc_derivative


def beside(x):
    return np.array([x, 1.5])


def in_place(a, b):
    a **= b
    return a


def log_sum_exp(v):
    m = v.max()
    return m + np.log(np.exp(v - m).sum())


def bessel_i0(x):
    return mpmath.besseli(0, x)


# name: (the function, the same for mpmath)
FUNCTIONS = {
    "x**2.0": (lambda x: x**2.0, lambda x: x**2),
    "x**3": (lambda x: x**3, lambda x: x**3),
    "x**5.0": (lambda x: x**5.0, lambda x: x**5),
    "math.pow": (lambda x: math.pow(x, 3), lambda x: x**3),
    "number ** 0-d": (lambda x: x ** np.array(3.0), lambda x: x**3),
    "0-d ** 0-d": (lambda x: np.array(x) ** np.array(3.0), lambda x: x**3),
    "0-d ** array": (lambda x: (np.array(x) ** np.array([3.0, 2.0]))[0], lambda x: x**3),
    "array ** number": (lambda x: (beside(x) ** 3.0)[0], lambda x: x**3),
    "array ** ints": (lambda x: (beside(x) ** np.array([3, 2]))[0], lambda x: x**3),
    "array ** floats": (lambda x: (beside(x) ** np.array([3.0, 0.5]))[0], lambda x: x**3),
    "array ** ones": (lambda x: (beside(x) ** np.array([1.0, 2.0]))[0], lambda x: x),
    "array ** zeros": (lambda x: (beside(x) ** np.array([0.0, 2.0]))[0], lambda x: mpmath.mpf(1) + 0 * x),
    "array **= array": (lambda x: in_place(beside(x), np.array([4.0, 2.0]))[0], lambda x: x**4),
    "array ** list": (lambda x: (beside(x)[:, None] ** [0.0, 1.0, 2.0, 3.0])[0].sum(), lambda x: 1 + x + x**2 + x**3),
    "np.power": (lambda x: np.power(beside(x), np.array([3.0, 2.0]))[0], lambda x: x**3),
    "np.power of ints": (lambda x: np.power(beside(x), np.array([4, 2]))[0], lambda x: x**4),
    "np.float_power": (lambda x: np.float_power(beside(x), np.array([3.0, 2.0]))[0], lambda x: x**3),
    "np.power.outer": (lambda x: np.power.outer(beside(x), np.array([2.0, 3.0]))[0].sum(), lambda x: x**2 + x**3),
    "np.power.reduce": (lambda x: np.power.reduce(np.array([x, 2.0, 2.0])), lambda x: x**4),
    "complex array ** array": (lambda x: (np.array([x + 0j]) ** np.array([3.0]))[0].real, lambda x: x**3),
    "array ** array that varies": (lambda x: (beside(x) ** (np.array([2.0, 3.0]) + 0 * x))[0], lambda x: x**2),
    "(x - 2)**-2.0": (lambda x: (x - 2) ** -2.0, lambda x: (x - 2) ** -2),
    "negative array ** array": (lambda x: ((beside(x) - 2) ** np.array([3.0, 1.0]))[0], lambda x: (x - 2) ** 3),
    "np.sinc": (lambda x: np.sinc(x), mpmath.sincpi),
    "np.sinc of an array": (lambda x: np.sinc(beside(x))[0], mpmath.sincpi),
    "np.sinc of a list": (lambda x: np.sinc([x, 1.0])[0], mpmath.sincpi),
    "np.sinc(x**2)": (lambda x: np.sinc(x * x + x), lambda x: mpmath.sincpi(x * x + x)),
    "np.i0": (lambda x: np.i0(x), bessel_i0),
    "np.i0 of an array": (lambda x: np.i0(beside(x))[0], bessel_i0),
    "np.kaiser": (lambda x: np.kaiser(5, x)[1], lambda x: bessel_i0(x * mpmath.sqrt(0.75)) / bessel_i0(x)),
    "np.logaddexp": (lambda x: np.logaddexp(x, x * x), lambda x: mpmath.log(mpmath.exp(x) + mpmath.exp(x * x))),
    "np.logaddexp2": (lambda x: np.logaddexp2(x, 2 * x), lambda x: mpmath.log(2**x + 4**x, 2)),
    "np.logaddexp.reduce": (
        lambda x: np.logaddexp.reduce(np.array([x, 2 * x, 3 * x])),
        lambda x: mpmath.log(mpmath.exp(x) + mpmath.exp(2 * x) + mpmath.exp(3 * x)),
    ),
    "log sum exp": (lambda x: log_sum_exp(np.array([x, 2 * x])), lambda x: mpmath.log(mpmath.exp(x) + mpmath.exp(2 * x))),
    "norm of order 4": (lambda x: np.linalg.norm(np.array([x, 1.0, 2 * x]), 4), lambda x: (17 * x**4 + 1) ** mpmath.mpf(0.25)),
    "norm of order 6": (
        lambda x: np.linalg.norm(np.array([[x, 1.0]]), 6, axis=1)[0],
        lambda x: (x**6 + 1) ** (mpmath.mpf(1) / 6),
    ),
    "norm": (lambda x: np.linalg.norm(np.array([x, 1.0])), lambda x: mpmath.sqrt(x * x + 1)),
    "abs of a complex number": (lambda x: abs(complex(x, 1.0)), lambda x: mpmath.sqrt(x * x + 1)),
    "np.prod": (lambda x: np.prod(np.array([x, x, x])), lambda x: x**3),
    "np.cumprod": (lambda x: np.cumprod(np.array([x, x, 2 * x])).sum(), lambda x: x + x**2 + 2 * x**3),
    "np.unwrap": (lambda x: np.unwrap(np.array([0.0, x**3]))[1], lambda x: x**3),
    "np.heaviside": (lambda x: np.heaviside(0.0, x**3), lambda x: x**3),
    "det": (lambda x: np.linalg.det(x * np.eye(3)), lambda x: x**3),
}  # fmt: skip


def nested(f, operators):
    for operator in operators:
        f = operator(f)
    return f


def ways(f, order):
    """Every way to a derivative of this order, each with other recurrences and rules."""
    found = {
        "reverse in reverse": nested(f, [grad] * order),
        "forward in forward": nested(f, [derivative] * order),
        "forward over reverse": nested(f, ([grad, derivative] * order)[:order]),
        "reverse over forward": nested(f, ([derivative, grad] * order)[:order]),
        "order=": lambda x: derivative(f, order=order)(x),
        "taylor": lambda x: taylor(f, x, order)[order] * math.factorial(order),
    }
    if order > 1:
        less = order - 1
        found["reverse over order="] = grad(derivative(f, order=less))
        found["forward over order="] = derivative(derivative(f, order=less))
        found["reverse over taylor"] = grad(lambda x: taylor(f, x, less)[less] * math.factorial(less))
        found["order= of reverse"] = derivative(grad(f), order=less)
    if order == 2:
        found["hessian"] = hessian(f)
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("x", [0.0, 1e-4, -0.3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_order_is_right_at_a_branch_and_beside_it(name, x):
    f, exact = FUNCTIONS[name]
    with mpmath.workdps(60):
        truth = [float(mpmath.diff(exact, mpmath.mpf(x), order)) for order in range(5)]
    for order in range(1, 5):
        # What cancels when several factors are nearly 0 is lost in any formula.
        tolerance = 1e-9 * max(1.0, abs(truth[order])) if x != 1e-4 else 1e-3
        for way, g in ways(f, order).items():
            if order > 1 and not is_in_sample(f"{name} {x} {way} {order}", 2 if order == 2 else 6):
                continue
            assert abs(float(g(x)) - truth[order]) <= tolerance, (name, way, order)


@pytest.mark.parametrize("x", [0.0, 1e-300, -1e-9, 0.01, 0.6366, -0.7, 1.0, 2.5, -10.25])
@pytest.mark.parametrize("n", range(9))
def test_derivatives_of_sinc_keep_their_digits(n, x):
    with mpmath.workdps(120):
        u, exact, k = mpmath.pi * mpmath.mpf(x), mpmath.mpf(0), (n + 1) // 2
        while k < 100:
            exact += (-1) ** k * u ** (2 * k - n) / ((2 * k + 1) * mpmath.factorial(2 * k - n))
            k += 1
        exact *= mpmath.pi**n
        size = mpmath.pi**n / max(1, abs(u))
    assert abs(sinc_derivative(n, x) - exact) <= 1e-14 * max(abs(exact), size)


@pytest.mark.parametrize("x", [0.0, 1e-300, -1e-9, 0.01, -0.7, 2.5, -9.0, 60.0, 700.0])
@pytest.mark.parametrize("n", range(9))
def test_derivatives_of_i0_keep_their_digits(n, x):
    with mpmath.workdps(40):
        exact = sum(mpmath.binomial(n, k) * mpmath.besseli(abs(n - 2 * k), x) for k in range(n + 1)) / 2**n
    assert abs(i0_derivative(n, x) - exact) <= 1e-14 * abs(exact)


@pytest.mark.parametrize("f", [np.sinc, np.i0])
def test_sinc_and_i0_give_what_the_plain_call_gives(f):
    for x in (0.0, 0.7, np.float32(0.3), np.array([0.0, 2.0], np.float32), np.array(0.5), np.zeros((0, 2))):
        found = []
        grad(lambda x, f=f, found=found: found.append(f(x)) or np.sum(f(x)))(x)
        assert type(found[0]) is type(f(x))
        assert found[0].dtype == f(x).dtype and np.array_equal(found[0], f(x))
        assert np.asarray(grad(lambda x, f=f: np.sum(f(x)))(x)).dtype == np.asarray(x).dtype


def test_complex_arguments_of_sinc_have_the_holomorphic_derivative():
    z = np.array([0.0, 0.4 + 0.3j])
    found = derivative(np.sinc)(0.4 + 0.3j)
    with mpmath.workdps(30):
        exact = complex(mpmath.diff(mpmath.sincpi, mpmath.mpc(0.4, 0.3)))
    assert found == pytest.approx(exact, rel=1e-13)
    assert derivative(np.sinc)(z[0] * 1) == 0


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e-310, 1e-160, 1e307])
@pytest.mark.parametrize("order", [None, 2, 3, 4, 2.5, 1.5, -2, 10])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_norms_of_extreme_vectors_have_the_slope_of_a_small_one(order, scale):
    x, x_dot = np.array([3.0, -4.0, 0.5]), np.array([1.0, 0.3, -2.0])

    def f(x):
        return np.linalg.norm(x, order)

    tolerance = 1e-9 if scale > 1e-300 else 1e-6
    np.testing.assert_allclose(grad(f)(x * scale), grad(f)(x), rtol=tolerance)
    np.testing.assert_allclose(plain_jvp(f, x * scale, x_dot), grad(f)(x) @ x_dot, rtol=tolerance)


def plain_jvp(f, x, x_dot):
    return derivative(lambda t: f(x + t * x_dot))(0.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_each_row_has_its_own_scale():
    x = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0], [3.0, 4.0]])
    expected = [[0.6, 0.8], [0.6, 0.8], [0.0, 0.0], [0.6, 0.8]]
    np.testing.assert_allclose(grad(lambda x: np.linalg.norm(x, axis=1).sum())(x), expected)
    tiny = np.array([3e-22, 4e-22], np.float32)
    np.testing.assert_allclose(grad(np.linalg.norm)(tiny), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(hessian(np.linalg.norm)(x[0]) * 1e200, [[0.128, -0.096], [-0.096, 0.072]])
