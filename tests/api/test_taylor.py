"""taylor: coefficients against mpmath to order 30 and more, of programs of every kind, and nested."""

import cmath
import math
import threading
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import plaingrad
from plaingrad import ArgumentError, MissingRuleError, Tangent, TangentError, grad, jvp, taylor, vjp


def truth(f, x, order, digits=30):
    """The coefficients of f at x by mpmath."""
    with mpmath.workdps(digits):
        return np.array([float(c) for c in mpmath.taylor(f, mpmath.mpf(x), order)])


def assert_close(got, want, tolerance=1e-12):
    """Every coefficient, relative to its own size or that of its neighbours where it nearly vanishes."""
    want = np.asarray(want)
    assert np.shape(got) == np.shape(want)
    size = np.abs(want)
    scale = np.stack([np.max(size[max(0, k - 2) : k + 3], axis=0) for k in range(len(size))])
    assert np.all(np.abs(got - want) <= tolerance * scale), np.max(np.abs(got - want) / scale)


# Elementary functions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f, mp_f, x",
    [
        (math.exp, mpmath.exp, 0.7),
        (math.tan, mpmath.tan, 0.7),
        (lambda x: x**2.5, lambda x: x ** mpmath.mpf(2.5), 0.7),
        (lambda x: x**x, lambda x: x**x, 1.3),
        (lambda x: x**-3, lambda x: x**-3, -1.3),
        (lambda x: 2.0**x, lambda x: mpmath.mpf(2) ** x, 0.7),
        (lambda x: math.log(x) / math.sqrt(x), lambda x: mpmath.log(x) / mpmath.sqrt(x), 1.7),
        (lambda x: math.sin(x) * math.cos(x * x), lambda x: mpmath.sin(x) * mpmath.cos(x * x), 0.7),
        (lambda x: math.atan2(x, 1.0 + x), lambda x: mpmath.atan(x / (1 + x)), 0.7),
        (lambda x: math.hypot(x, 2.0, x * x), lambda x: mpmath.sqrt(x * x + 4 + x**4), 0.7),
        (lambda x: math.dist((x, 1.0), (0.0, x * x)), lambda x: mpmath.sqrt(x * x + (1 - x * x) ** 2), 0.7),
        (lambda x: math.erf(x) - math.erfc(2 * x), lambda x: mpmath.erf(x) - mpmath.erfc(2 * x), 0.7),
        (lambda x: math.log(x, 3), lambda x: mpmath.log(x) / mpmath.log(3), 1.7),
        (lambda x: math.log(3, x), lambda x: mpmath.log(3) / mpmath.log(x), 1.7),
        (lambda x: math.log(x * x, x + 1), lambda x: mpmath.log(x * x) / mpmath.log(x + 1), 1.7),
        (lambda x: float(np.logaddexp(x, 1.0)), lambda x: mpmath.log(mpmath.exp(x) + mpmath.e), 0.7),
        (lambda x: abs(-x) % 0.5, lambda x: x - 0.5, 0.7),
        (lambda x: max(x, 0.1) + min(x * x, 5.0), lambda x: x + x * x, 0.7),
    ],
    ids="exp tan x^2.5 x^x x^-3 2^x log/sqrt sin*cos atan2 hypot dist erf log(x,3) log(3,x) log(x,x) logaddexp mod max".split(),
)
def test_thirty_coefficients_of_a_function_of_numbers(f, mp_f, x):
    assert_close(taylor(f, x, 30), truth(mp_f, x, 30), 1e-11)


def test_coefficients_of_the_gamma_function():
    want = truth(lambda x: mpmath.gamma(x) + mpmath.loggamma(x), 2.2, 14, digits=20)
    assert_close(taylor(lambda x: math.gamma(x) + math.lgamma(x), 2.2, 14), want, 1e-11)


def test_fifty_coefficients_do_not_overflow():
    c = taylor(np.exp, np.array([0.0, 1.0]), 50)
    np.testing.assert_allclose(c[50] * float(math.factorial(50)), [1.0, math.e], 1e-12)
    assert np.all(np.isfinite(taylor(lambda x: math.exp(30 * x), 0.0, 160)))


def test_coefficient_zero_is_the_value_to_the_last_bit():
    f = lambda x: math.sin(x) / (x * x + 0.1) + x**0.3
    assert taylor(f, 0.7, 5)[0] == f(0.7)


def test_the_first_two_coefficients_are_those_of_jvp():
    f = lambda x: math.exp(math.sin(x)) / x
    y, y_dot = jvp(f, (0.7,), (1.0,))
    np.testing.assert_allclose(taylor(f, 0.7, 1), [y, y_dot], 1e-15)


def test_orders_zero_one_and_ints():
    np.testing.assert_array_equal(taylor(lambda x: x * x, 3, 0), [9.0])
    np.testing.assert_array_equal(taylor(lambda x: x * x, 3, 1), [9.0, 6.0])
    np.testing.assert_array_equal(taylor(lambda x: x * x, 3, 4), [9.0, 6.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(taylor(lambda x: x * x, np.array([3]), 2), [[9.0], [6.0], [1.0]])


def test_a_constant_has_no_further_coefficients():
    np.testing.assert_array_equal(taylor(lambda x: 4.0, 1.0, 2), [4.0, 0.0, 0.0])
    np.testing.assert_array_equal(taylor(lambda x: float(int(x)) * x**0, 1.5, 2), [1.0, 0.0, 0.0])


def test_kinks_and_poles_are_as_ieee_arithmetic_has_them():
    np.testing.assert_array_equal(taylor(abs, 0.0, 3), [0, 0, 0, 0])
    np.testing.assert_array_equal(taylor(abs, -2.0, 2), [2, -1, 0])
    np.testing.assert_array_equal(taylor(lambda x: x**0, 0.0, 2), [1, 0, 0])
    np.testing.assert_array_equal(taylor(lambda x: x**3, 0.0, 4), [0, 0, 0, 1, 0])
    np.testing.assert_array_equal(taylor(math.sqrt, 0.0, 2), [0, np.inf, -np.inf])
    np.testing.assert_array_equal(taylor(lambda x: math.hypot(x, x), 0.0, 2), [0, 0, 0])
    with pytest.raises(ZeroDivisionError):
        taylor(lambda x: 1.0 / x, 0.0, 2)
    with pytest.raises(ValueError):
        taylor(math.log, -1.0, 2)


# Differential equations: the classic use -----------------------------------------------------------------------


def lotka_volterra(x, y, a):
    return a * x - x * y, x * y - y


def integrated(x, y, a, steps=5, h=0.1):
    """Runge and Kutta's method, as anyone writes it."""
    for _ in range(steps):
        k1 = lotka_volterra(x, y, a)
        k2 = lotka_volterra(x + h / 2 * k1[0], y + h / 2 * k1[1], a)
        k3 = lotka_volterra(x + h / 2 * k2[0], y + h / 2 * k2[1], a)
        k4 = lotka_volterra(x + h * k3[0], y + h * k3[1], a)
        x = x + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        y = y + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
    return x


def polynomial_truth(f, x, order):
    """The coefficients of a polynomial program by mpmath numbers that are truncated series."""

    class Series:
        def __init__(self, c):
            self.c = (list(c) + [mpmath.mpf(0)] * (order + 1))[: order + 1]

        def __add__(self, other):
            other = other if isinstance(other, Series) else Series([other])
            return Series([a + b for a, b in zip(self.c, other.c)])

        __radd__ = __add__

        def __mul__(self, other):
            if not isinstance(other, Series):
                return Series([a * other for a in self.c])
            return Series([sum(self.c[i] * other.c[k - i] for i in range(k + 1)) for k in range(order + 1)])

        __rmul__ = __mul__

        def __sub__(self, other):
            return self + other * -1

        def __rsub__(self, other):
            return self * -1 + other

    with mpmath.workdps(40):
        return np.array([float(c) for c in f(Series([mpmath.mpf(x), mpmath.mpf(1)])).c])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: integrated(x, 0.5, 1.1),
        lambda a: integrated(1.2, 0.5, a),
        lambda y: integrated(1.2, y, 1.1),
    ],
    ids="prey growth hunters".split(),
)
def test_a_lotka_volterra_solution_to_order_thirty(f):
    assert_close(taylor(f, 1.3, 30), polynomial_truth(f, 1.3, 30), 1e-11)


def test_the_solution_of_lotka_volterra_as_a_series_in_time():
    # x' = f(x): coefficient k + 1 of x is coefficient k of f(x) over k + 1, order by order
    order = 30
    x, y = np.zeros(order + 1), np.zeros(order + 1)
    x[0], y[0] = 1.2, 0.5

    def along(f, k):
        return lambda t: f(
            sum(x[j] * t**j for j in range(k + 1)) + 0.0 * t, sum(y[j] * t**j for j in range(k + 1)) + 0.0 * t, 1.1
        )

    for k in range(order):
        right = taylor(along(lotka_volterra, k), 0.0, k)
        x[k + 1], y[k + 1] = right[0][k] / (k + 1), right[1][k] / (k + 1)
    # mpmath integrates by Taylor's method too, but in 30 digits and to a point in time
    with mpmath.workdps(30):
        solution = mpmath.odefun(lambda t, v: [mpmath.mpf(1.1) * v[0] - v[0] * v[1], v[0] * v[1] - v[1]], 0, [1.2, 0.5])
        expected = solution(0.25)
    got = [np.polynomial.polynomial.polyval(0.25, c) for c in (x, y)]
    np.testing.assert_allclose(got, [float(v) for v in expected], 1e-13)


# Programs -------------------------------------------------------------------------------------------------------


def test_loops_branches_lists_and_exceptions():
    def f(x):
        history = [x]
        for k in range(6):
            x = x * x / 2.0 if k % 2 else 1.0 / (1.0 + x)
            history.append(x)
        try:
            math.sqrt(-x)
        except ValueError:
            history.append(x * history[0])
        return sum(history) if history[1] < history[0] else 0.0

    def mp_f(x):
        history = [x]
        for k in range(6):
            x = x * x / 2 if k % 2 else 1 / (1 + x)
            history.append(x)
        return sum(history) + x * history[0]

    assert_close(taylor(f, 0.9, 20), truth(mp_f, 0.9, 20))


def test_generators_closures_and_objects():
    class Model:
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, t):
            return math.exp(-self.rate * t)

    def f(rate):
        model = Model(rate)
        return sum(model(t) * t for t in (0.5, 1.0, 2.0))

    assert_close(taylor(f, 0.8, 20), truth(lambda r: sum(mpmath.exp(-r * t) * t for t in (0.5, 1.0, 2.0)), 0.8, 20))


def test_arrays_written_in_place_through_views():
    def f(x):
        a = np.zeros((3, 4))
        a[0] = x
        a[1, 1:] = x * x
        a[:, 2] *= x
        a += a[::-1]
        v = a.reshape(-1)[::3]
        v -= x
        a.T[1] **= 2
        a /= 1 + x
        a[a > 0.5] = x**3
        return float((a * np.arange(12.0).reshape(3, 4)).sum())

    def mp_f(x):
        a = [[x] * 4, [mpmath.mpf(0)] + [x * x] * 3, [mpmath.mpf(0)] * 4]
        for row in a:
            row[2] *= x
        a = [[a[i][j] + a[2 - i][j] for j in range(4)] for i in range(3)]
        for n in range(0, 12, 3):
            a[n // 4][n % 4] -= x
        for row in a:
            row[1] = row[1] ** 2
        a = [[c / (1 + x) for c in row] for row in a]
        mid = f_mask(0.7)
        return sum((x**3 if mid[i][j] else a[i][j]) * (4 * i + j) for i in range(3) for j in range(4))

    def f_mask(x):
        a = np.zeros((3, 4))
        a[0], a[1, 1:] = x, x * x
        a[:, 2] *= x
        a = a + a[::-1]
        a.reshape(-1)[::3] -= x
        a.T[1] **= 2
        return a / (1 + x) > 0.5

    assert_close(taylor(f, 0.7, 15), truth(mp_f, 0.7, 15))


def matrix(x, exp=math.exp, array=np.array):
    return array([[2 + x, x * x, 1.0], [exp(x), 3.0, x], [0.5, 1 / (1 + x), 4 - x]])


def mp_matrix(x):
    return matrix(x, mpmath.exp, mpmath.matrix)


def mp_vector(x):
    return mpmath.matrix([1, x, x * x])


@pytest.mark.parametrize(
    "f, mp_f",
    [
        (lambda a, b: a @ a @ b, lambda a, b: a * a * b),
        (lambda a, b: np.linalg.solve(a, b), lambda a, b: mpmath.lu_solve(a, b)),
        (lambda a, b: np.linalg.solve(a, np.stack([b, b * b], 1))[:, 0], lambda a, b: mpmath.lu_solve(a, b)),
        (lambda a, b: np.linalg.inv(a) @ b, lambda a, b: mpmath.lu_solve(a, b)),
        (lambda a, b: np.linalg.det(a) * b, lambda a, b: mpmath.det(a) * b),
        (lambda a, b: np.linalg.slogdet(a)[1] * b, lambda a, b: mpmath.log(mpmath.det(a)) * b),
        (lambda a, b: np.linalg.cholesky(a @ a.T) @ b, lambda a, b: mpmath.cholesky(a * a.T) * b),
        (lambda a, b: np.einsum("ij,kj,k->i", a, a, b), lambda a, b: a * a.T * b),
        (lambda a, b: np.linalg.norm(a) * b, lambda a, b: mpmath.mnorm(a, "f") * b),
        (lambda a, b: np.dot(b, a) * np.sum(a) + np.trace(a), lambda a, b: (b.T * a).T * sum(a) + mpmath.matrix([1, 1, 1]) * (a[0, 0] + a[1, 1] + a[2, 2])),
        (lambda a, b: np.prod(a[:, 1:], axis=1) + np.cumsum(b), lambda a, b: mpmath.matrix([a[i, 1] * a[i, 2] + sum(b[: i + 1]) for i in range(3)])),
        (lambda a, b: np.sort(b)[::-1] + np.max(a) - np.min(a, axis=0), None),
    ],
    ids="matmul solve solve_many inv det slogdet cholesky einsum norm dot prod sort".split(),
)
def test_linear_algebra_and_reductions(f, mp_f):
    x = 0.6
    got = taylor(lambda x: f(matrix(x), np.array([1.0, x, x * x])), x, 12)
    if mp_f is None:  # piecewise linear
        want = [truth(lambda t, n=n: sorted([1, t, t * t])[::-1][n] + (4 - t), x, 12) for n in range(3)]
        low = [lambda t: mpmath.mpf(0.5), lambda t: t * t, lambda t: t]
        want = [w - truth(g, x, 12) for w, g in zip(want, low)]
    else:
        want = [truth(lambda t, n=n: mp_f(mp_matrix(t), mp_vector(t))[n], x, 12) for n in range(3)]
    assert_close(got, np.stack(want, 1), 1e-10)


def test_eigenvalues_to_a_high_order():
    got = taylor(lambda x: np.linalg.eigvalsh(matrix(x) @ matrix(x).T), 0.6, 8)
    total = taylor(lambda x: np.trace(matrix(x) @ matrix(x).T), 0.6, 8)
    logs = taylor(lambda x: np.sum(np.log(np.linalg.eigvalsh(matrix(x) @ matrix(x).T))), 0.6, 8)
    np.testing.assert_allclose(got.sum(1), total, 1e-10)
    np.testing.assert_allclose(logs, 2 * truth(lambda x: mpmath.log(mpmath.det(mp_matrix(x))), 0.6, 8), 1e-9, 1e-11)


def test_an_elementwise_function_is_expanded_at_every_element():
    x = np.array([[0.3, 0.7], [1.1, -0.4]])
    got = taylor(lambda x: np.sin(x) * np.exp(-x) / (1 + x * x), x, 12)
    for place in np.ndindex(2, 2):
        want = truth(lambda t: mpmath.sin(t) * mpmath.exp(-t) / (1 + t * t), x[place], 12)
        assert_close(got[(slice(None), *place)], want, 1e-11)


def test_a_function_of_an_array_along_a_direction():
    x, d = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 0.25])
    got = taylor(lambda x: np.sum(np.outer(x, x) ** 2) + np.cumprod(x)[-1], x, 6, d)
    want = truth(lambda t: sum((a + t * b) ** 2 for a, b in zip(x, d)) ** 2 + mpmath.fprod(a + t * b for a, b in zip(x, d)), 0.0, 6)
    np.testing.assert_allclose(got, want, 1e-13, 1e-13)


def test_float32_and_fractions_keep_their_type():
    assert taylor(np.exp, np.array([0.5], np.float32), 3).dtype == np.float32
    assert taylor(np.exp, np.float32(0.5), 3).dtype == np.float32
    exact = taylor(lambda x: x * x / (1 + x), Fraction(1, 3), 3)
    assert list(exact) == [Fraction(1, 12), Fraction(7, 16), Fraction(27, 64), Fraction(-81, 256)]
    assert taylor(lambda x: x * x, Decimal("1.5"), 2).tolist() == [Decimal("2.25"), Decimal("3.0"), Decimal(1)]
    for name in ("sqrt", "exp", "ln", "log10"):
        got = taylor(lambda x: getattr(x * x, name)(), Decimal("1.5"), 6)
        assert all(isinstance(c, Decimal) for c in got)
        f = {"sqrt": mpmath.sqrt, "exp": mpmath.exp, "ln": mpmath.log, "log10": mpmath.log10}[name]
        np.testing.assert_allclose([float(c) for c in got], truth(lambda x: f(x * x), 1.5, 6), 1e-14, 1e-20)


# Structures --------------------------------------------------------------------------------------------------------


@dataclass
class Point:
    x: float
    y: float


def test_arguments_and_results_of_any_structure():
    def f(p):
        point, array, names = p
        return {"product": point.x * array, "point": Point(point.x**2, 3.0), "list": [point.y, names["n"], "text"]}

    direction = (Point(1.0, 0.0), np.array([0.0, 1.0]), {"n": 2.0})
    direction = ({"x": 1.0, "y": 0.0}, np.array([0.0, 1.0]), {"n": 2.0})
    got = taylor(f, (Point(2.0, 5.0), np.array([1.0, 3.0]), {"n": 7.0}), 2, direction)
    np.testing.assert_array_equal(got["product"], [[2.0, 6.0], [1.0, 5.0], [0.0, 1.0]])
    assert isinstance(got["point"], Tangent)
    np.testing.assert_array_equal(got["point"].x, [4.0, 4.0, 1.0])
    np.testing.assert_array_equal(got["point"].y, [3.0, 0.0, 0.0])
    np.testing.assert_array_equal(got["list"][0], [5.0, 0.0, 0.0])
    np.testing.assert_array_equal(got["list"][1], [7.0, 2.0, 0.0])
    assert got["list"][2] is None


def test_what_stays_put_may_be_left_out_of_a_direction():
    got = taylor(lambda p: p["a"] * p["b"], {"a": 3.0, "b": 4.0}, 2, {"b": 1.0})
    np.testing.assert_array_equal(got, [12.0, 3.0, 0.0])
    got = taylor(lambda p: p[0] * p[1], [3.0, 4.0], 2, [None, 1.0])
    np.testing.assert_array_equal(got, [12.0, 3.0, 0.0])


def test_an_argument_written_in_place_is_left_as_by_a_plain_call():
    x = np.array([1.0, 2.0])

    def f(a):
        a *= 3.0
        return a.sum()

    np.testing.assert_array_equal(taylor(f, x, 2, np.array([1.0, 0.0])), [9.0, 3.0, 0.0])
    np.testing.assert_array_equal(x, [3.0, 6.0])


@pytest.mark.parametrize("order", [-1, 1.5, "2", True, None])
def test_an_order_is_a_natural_number(order):
    with pytest.raises(ArgumentError, match="order"):
        taylor(math.exp, 0.0, order)


def test_a_structure_needs_a_direction_that_fits():
    with pytest.raises(ArgumentError, match="direction"):
        taylor(lambda p: p[0], [1.0], 2)
    with pytest.raises(TangentError, match="direction"):
        taylor(lambda p: p[0], [1.0], 2, [1.0, 2.0])
    with pytest.raises(TangentError, match="direction"):
        taylor(np.sum, np.ones(3), 2, np.ones(2))
    with pytest.raises(TangentError, match="complex"):
        taylor(math.exp, 1.0, 2, 1j)


# Complex numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["exp", "sin", "tan", "log", "sqrt", "asin", "acosh", "atanh", "tanh"])
def test_holomorphic_functions_of_complex_numbers(name):
    z = 0.4 + 0.7j
    with mpmath.workdps(30):
        want = np.array([complex(c) for c in mpmath.taylor(getattr(mpmath, name), z, 20)])
    assert_close(taylor(getattr(cmath, name), z, 20), want, 1e-11)
    assert_close(taylor(getattr(np, {"asin": "arcsin", "acosh": "arccosh", "atanh": "arctanh"}.get(name, name)), np.array([z]), 20)[:, 0], want, 1e-11)


def test_a_real_function_of_a_complex_path():
    # t -> |z + t d|^2 and its angle
    z, d = 0.4 + 0.7j, 1 - 2j
    got = taylor(lambda z: [abs(z), cmath.phase(z), (z * z.conjugate()).real], z, 8, d)
    path = lambda t: mpmath.mpc(z) + t * mpmath.mpc(d)
    assert_close(got[0], truth(lambda t: mpmath.sqrt((0.4 + t) ** 2 + (0.7 - 2 * t) ** 2), 0.0, 8))
    assert_close(got[1], truth(lambda t: mpmath.atan2(0.7 - 2 * t, 0.4 + t), 0.0, 8))
    np.testing.assert_allclose(got[2][:3], [abs(z) ** 2, 2 * (z.conjugate() * d).real, abs(d) ** 2], 1e-14)
    assert path(0) == z


def test_a_real_number_that_becomes_complex():
    got = taylor(lambda x: (x**0.5).imag + cmath.sqrt(x).imag, -2.0, 8)
    assert_close(got, 2 * truth(lambda x: mpmath.sqrt(-x), -2.0, 8))


# Nested -------------------------------------------------------------------------------------------------------------

PROGRAMS = {
    "sin": math.sin,
    "power": lambda x: x**2.5 + 2.0**x + x**x + x**3,
    "division": lambda x: math.log(x) / (1.0 + math.sqrt(x)) - 1 / x,
    "atan2": lambda x: math.atan2(x, 2.0) + math.hypot(x, 3.0) + abs(x),
    "gamma": lambda x: math.gamma(x) * math.erf(x),
    "dist": lambda x: math.dist((x, 2.0), (1.0, x * x)),
    "remainder": lambda x: x * x % 0.1,
    "arrays": lambda x: float(np.sum(np.exp(np.array([x, x * x, 2.0])) * np.tanh(np.array([1.0, x, x])))),
    "in place": lambda x: filled_in_place(x),
    "solve": lambda x: float(np.linalg.solve(matrix(x), np.array([1.0, x, x * x]))[1]),
    "det": lambda x: float(np.linalg.det(matrix(x))),
    "prod": lambda x: float(np.prod(matrix(x)) + np.max(matrix(x))),
}


def filled_in_place(x):
    a = np.zeros(4)
    a[0] = x
    a[1:] = x * x
    a[::2] *= a[0]
    a += x
    return float(a @ a)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_derivative_of_a_coefficient_is_the_next_one(name):
    # d/dx c_k(x) = (k + 1) c_(k+1)(x), whatever mode takes the derivative
    f = PROGRAMS[name]
    next_one = 4 * taylor(f, 0.8, 4)[4]
    coefficient = lambda x: taylor(f, x, 3)[3]
    assert grad(coefficient)(0.8) == pytest.approx(next_one, rel=1e-10, abs=1e-12)
    assert jvp(coefficient, (0.8,), (1.0,))[1] == pytest.approx(next_one, rel=1e-10, abs=1e-12)
    assert vjp(lambda x: taylor(f, x, 3), 0.8)[1](np.array([0.0, 0.0, 0.0, 1.0]))[0] == pytest.approx(next_one, rel=1e-10, abs=1e-12)
    assert taylor(coefficient, 0.8, 1)[1] == pytest.approx(next_one, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_taylor_of_a_gradient_is_the_derivative_of_taylor(name):
    f = PROGRAMS[name]
    c = taylor(f, 0.8, 5)
    for slope in (grad(f), lambda x: jvp(f, (x,), (1.0,))[1]):
        np.testing.assert_allclose(taylor(slope, 0.8, 4), c[1:] * np.arange(1, 6), 1e-9, 1e-11)


def test_taylor_of_taylor_is_a_series_in_two_variables():
    # exp(s t) = sum s^k t^k / k!: coefficient j in s of coefficient k in t at (1, 1)
    got = taylor(lambda s: taylor(lambda t: math.exp(s * t), 1.0, 3)[3], 1.0, 2)
    want = truth(lambda s: s**3 * mpmath.exp(s) / 6, 1.0, 2)
    np.testing.assert_allclose(got, want, 1e-13)


def test_perturbations_are_not_confused():
    # d/dx [x * d/dy (x + y)] = 1
    assert taylor(lambda x: x * taylor(lambda y: x + y, 1.0, 1)[1], 1.0, 2).tolist() == [1.0, 1.0, 0.0]
    assert taylor(lambda x: x * taylor(lambda y: x * y * y, 1.0, 2)[2], 3.0, 2).tolist() == [9.0, 6.0, 1.0]
    assert grad(lambda x: x * taylor(lambda y: x + y, 1.0, 1)[1])(1.0) == 1.0
    assert taylor(lambda x: x * grad(lambda y: x + y)(1.0), 1.0, 1).tolist() == [1.0, 1.0]


def test_a_parameter_of_the_expanded_function_has_a_gradient():
    def third(a):
        return taylor(lambda t: math.sin(a * t), 0.3, 3)[3]  # -a^3 cos(a t) / 6

    want = (-3 * 1.7**2 * math.cos(0.51) + 1.7**3 * 0.3 * math.sin(0.51)) / 6
    assert grad(third)(1.7) == pytest.approx(want, rel=1e-13)
    weights = np.array([1.0, 2.0])
    got = grad(lambda w: taylor(lambda t: np.sum(np.exp(w * t) * w), 0.3, 3)[3])(weights)
    want = [float(mpmath.diff(lambda w: w**4 * mpmath.exp(0.3 * w) / 6, w)) for w in weights]
    np.testing.assert_allclose(got, want, 1e-12)


def test_a_hessian_along_a_direction_is_twice_a_coefficient():
    x, d = np.array([0.3, -1.2, 0.8]), np.array([1.0, 0.5, -2.0])
    f = lambda x: np.sum(x[1:] * x[:-1] ** 3) + np.exp(x[0] * x[2])
    along = jvp(lambda x: jvp(f, (x,), (d,))[1], (x,), (d,))[1]
    assert taylor(f, x, 2, d)[2] == pytest.approx(along / 2, rel=1e-13)


def test_threads_expand_independently():
    results = {}

    def work(n):
        for _ in range(20):
            results[n] = taylor(lambda x: math.exp(n * x) * integrated(x, 0.5, 1.1, 1), 0.3, 6)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(6):
        np.testing.assert_array_equal(results[n], taylor(lambda x: math.exp(n * x) * integrated(x, 0.5, 1.1, 1), 0.3, 6))


# Rules of users -----------------------------------------------------------------------------------------------------


def opaque_cube(x):
    """Stands for C code: its own derivative would be wrong, and its rule is right."""
    return float(np.float64(x) ** 3) + 0.0 * float(int(x))


def enter_partial(cube):
    plaingrad.scalar_rule(cube, lambda x, z: 3 * x * x)


def enter_partial_of_the_result(cube):
    plaingrad.scalar_rule(cube, lambda x, z: 3 * z / x)


def enter_pullback(cube):
    @plaingrad.rrule(cube)
    def cube_rrule(x):
        return opaque_cube(x), lambda z_bar: (z_bar * 3 * x * x,)


def enter_pullback_of_the_result(cube):
    @plaingrad.rrule(cube)
    def cube_rrule(x):
        z = cube(x)
        return z, lambda z_bar: (plaingrad.Thunk(lambda: z_bar * 3 * z / x),)


def enter_pairs(cube):
    @plaingrad.frule(cube)
    def cube_frule(f, x):
        return plaingrad.Dual(opaque_cube(x.primal), 3 * x.primal**2 * x.tangent)


def enter_pairs_of_the_result(cube):
    @plaingrad.frule(cube)
    def cube_frule(f, x):
        z = cube(x.primal)
        return plaingrad.Dual(z, 3 * z / x.primal * x.tangent)


def enter_typed_pullback(cube):
    @plaingrad.rrule(cube)
    def cube_rrule(x: float):
        z = cube(x)
        return z, lambda z_bar: (z_bar * 3 * z / x,)

    @plaingrad.rrule(cube)
    def cube_of_text_rrule(x: str):
        raise AssertionError


@pytest.mark.parametrize(
    "enter",
    [
        *[enter_partial, enter_partial_of_the_result, enter_pullback, enter_pullback_of_the_result],
        *[enter_pairs, enter_pairs_of_the_result, enter_typed_pullback],
    ],
)
def test_rules_of_users(enter):
    def cube(x):
        return opaque_cube(x)

    enter(cube)
    assert_close(taylor(lambda x: cube(x * x), 1.5, 8), truth(lambda x: x**6, 1.5, 8), 1e-11)
    assert taylor(lambda x: cube(x), 1.5, 1)[1] == pytest.approx(3 * 1.5**2)
    assert grad(lambda x: taylor(cube, x, 2)[2])(1.5) == pytest.approx(3.0)


def test_rules_of_users_for_structures():
    def norm_and_sum(xs, options):
        return opaque_norm(xs), {"sum": sum(xs)}

    def opaque_norm(xs):
        return float(str(math.sqrt(sum(float(x) ** 2 for x in xs))))

    @plaingrad.rrule(norm_and_sum)
    def norm_and_sum_rrule(xs, options):
        z, more = norm_and_sum(xs, options)

        def pullback(bars):
            z_bar, more_bar = bars
            s_bar = more_bar["sum"]
            return [z_bar * x / z + s_bar for x in xs], plaingrad.NoTangent

        return (z, more), pullback

    def f(x):
        z, more = norm_and_sum([x, x * x, 3.0], "plain")
        return z * more["sum"]

    want = truth(lambda x: mpmath.sqrt(x * x + x**4 + 9) * (x + x * x + 3), 0.7, 7)
    assert_close(taylor(f, 0.7, 7), want, 1e-11)


class Quadratic:
    def __init__(self, weight, name):
        self.weight, self.name = weight, name

    def __call__(self, x):
        return self.weight * x * x


def test_rules_of_users_for_objects_and_for_dictionaries_as_results():
    @plaingrad.rrule(Quadratic.__call__)
    def quadratic_rrule(self, x):
        return self.weight * x * x, lambda z_bar: ({"weight": z_bar * x * x}, z_bar * 2 * self.weight * x)

    def two(x, y):
        return {"product": x * y, "sum": [x + y, "text"]}

    @plaingrad.rrule(two)
    def two_rrule(x, y):
        return two(x, y), lambda bars: (bars["product"] * y + bars["sum"][0], bars["product"] * x + bars["sum"][0])

    def f(x):
        found = two(x, Quadratic(x, "a name")(x * x))  # x, x^5
        return found["product"] * found["sum"][0]

    assert_close(taylor(f, 1.5, 8), truth(lambda x: x**6 * (x + x**5), 1.5, 8), 1e-12)


def test_rules_of_users_that_write_into_an_argument():
    def add_multiple(a, x, out):
        out += a * x

    @plaingrad.rrule(add_multiple, mutates="out")
    def add_multiple_rrule(a, x, out):
        out += a * x
        return None, lambda y_bar, out_bar: (np.sum(out_bar * x), a * out_bar, out_bar)

    def f(t):
        out = np.array([t, 1.0])
        add_multiple(t * t, np.array([t, 2.0]), out)
        return out

    assert_close(taylor(f, 1.5, 4), taylor(lambda t: np.array([t + t**3, 1 + 2 * t * t]), 1.5, 4))


def test_rules_of_users_for_arrays_in_every_form():
    def soft_maximum(x):
        return np.log(np.sum(np.exp(x)))

    def pullback_rule(x):
        z = soft_maximum(x)
        return z, lambda z_bar: (z_bar * np.exp(x - z),)

    def pair_rule(f, x):
        z = soft_maximum(x.primal)
        return plaingrad.Dual(z, np.sum(np.exp(x.primal - z) * x.tangent))

    def f(t):
        return soft_maximum(np.array([t, t * t, 1.0]))

    want = taylor(f, 0.5, 10)
    for door, rule in [
        (plaingrad.rrule, pullback_rule),
        (plaingrad.frule, pair_rule),
        (plaingrad.rrule, plaingrad.build_rrule(soft_maximum)),
        (plaingrad.frule, plaingrad.build_frule(soft_maximum)),
    ]:
        door(soft_maximum)(rule)
        assert_close(taylor(f, 0.5, 10), want, 1e-11)
        plaingrad.remove_rule(soft_maximum)


def bessel(n, x):
    return float(mpmath.besselj(n, np.float64(x)))


def test_functions_whose_derivatives_are_others_of_their_kind_do_not_cost_powers_of_two():
    calls = []

    def slope(n, x, z):
        calls.append(n)
        return (bessel(n - 1, x) - bessel(n + 1, x)) / 2

    plaingrad.scalar_rule(bessel, None, slope)
    got = taylor(lambda x: bessel(2, x * x), 1.3, 12)
    assert_close(got, truth(lambda x: mpmath.besselj(2, x * x), 1.3, 12, digits=20), 1e-11)
    assert len(calls) < 1500
    arrays = np.vectorize(bessel)
    assert_close(taylor(lambda x: arrays(2, x), np.array([1.69]), 6)[:, 0], truth(lambda x: mpmath.besselj(2, x), 1.69, 6, digits=20), 1e-11)
    fourth = 4 * taylor(lambda x: bessel(1, x), 1.3, 4)[4]
    assert grad(lambda x: taylor(lambda x: bessel(1, x), x, 3)[3])(1.3) == pytest.approx(fourth, rel=1e-10)


def test_a_users_rule_for_a_shipped_function_is_followed():
    plaingrad.scalar_rule(math.sin, lambda x, z: 2.0 * math.cos(x))
    try:
        np.testing.assert_allclose(taylor(lambda x: math.sin(x), 0.3, 2), [math.sin(0.3), 2 * math.cos(0.3), -2 * math.sin(0.3) * 0.5], 1e-14)
    finally:
        plaingrad.rulebook.uncover(math.sin)


def test_a_function_without_a_rule_is_refused():
    import pickle

    with pytest.raises(MissingRuleError):
        taylor(lambda x: pickle.loads(pickle.dumps(x)) * x, 1.0, 3)
