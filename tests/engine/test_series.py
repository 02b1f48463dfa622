"""Truncated power series against mpmath to high order, and their corners.

That is 40 with PLAINGRAD_TEST_ALL=1, else 24, and half of it for the gamma functions, for which mpmath needs seconds.
"""

import math

import mpmath
import numpy as np
import pytest
from tests.sampling import count

from plaingrad.engine.taylor import series

ORDER = count(24, 40)

# Name, numpy value (None: mpmath's), mpmath function, the points where the argument starts.
FUNCTIONS = [
    ("exp", mpmath.exp, (-2.3, 0.0, 1.7)),
    ("exp2", lambda t: mpmath.mpf(2) ** t, (-1.2, 2.5)),
    ("expm1", lambda t: mpmath.expm1(t), (-0.4, 1e-3)),
    ("log", mpmath.log, (0.3, 2.0)),
    ("log1p", lambda t: mpmath.log(1 + t), (-0.4, 1.5)),
    ("log2", lambda t: mpmath.log(t) / mpmath.log(2), (0.7, 3.0)),
    ("log10", mpmath.log10, (0.7, 3.0)),
    ("sqrt", mpmath.sqrt, (0.2, 4.0)),
    ("cbrt", lambda t: mpmath.cbrt(t) if t.real > 0 else -mpmath.cbrt(-t), (0.3, 2.0, -1.5)),
    ("sin", mpmath.sin, (-0.7, 3.0)),
    ("cos", mpmath.cos, (-0.7, 3.0)),
    ("tan", mpmath.tan, (-0.7, 0.9)),
    ("sinh", mpmath.sinh, (-0.7, 2.0)),
    ("cosh", mpmath.cosh, (-0.7, 2.0)),
    ("tanh", mpmath.tanh, (-0.7, 5.0)),
    ("asin", mpmath.asin, (-0.6, 0.3)),
    ("acos", mpmath.acos, (-0.6, 0.3)),
    ("atan", mpmath.atan, (-1.6, 0.3)),
    ("asinh", mpmath.asinh, (-1.6, 0.3)),
    ("acosh", mpmath.acosh, (1.3, 3.0)),
    ("atanh", mpmath.atanh, (-0.6, 0.3)),
    ("erf", mpmath.erf, (-0.6, 1.3)),
    ("erfc", mpmath.erfc, (-0.6, 1.3)),
    ("lgamma", lambda t: mpmath.log(abs(mpmath.gamma(t))) if t.imag == 0 else mpmath.loggamma(t), (0.7, 2.5)),
    ("gamma", mpmath.gamma, (0.7, 2.5, -0.5)),
]
CASES = [pytest.param(name, f, x0, id=f"{name} at {x0}") for name, f, points in FUNCTIONS for x0 in points]

# x(t) - x(0): a straight line, and a curve that mixes all orders
PATHS = {"line": [0.0, 1.0], "curve": [0.0, 0.5, -0.3, 0.125, 0.0625]}


def path(x0, name, order=ORDER):
    x = np.zeros(order + 1)
    steps = PATHS[name]
    x[: len(steps)] = steps
    x[0] = x0
    return x


def truth(f, *paths, order=ORDER):
    """Taylor coefficients of f(x(t), ...) at 0 by mpmath, to 20 digits."""
    with mpmath.workdps(20):
        polynomials = [[mpmath.mpmathify(complex(c) if isinstance(c, complex) else float(c)) for c in x] for x in paths]
        last = [max(k for k, c in enumerate(p) if c != 0 or k == 0) for p in polynomials]

        def along(t):
            return f(*[sum((c * t**k for k, c in enumerate(p[: n + 1]) if c), mpmath.mpf(0)) for p, n in zip(polynomials, last)])

        return [complex(c) if mpmath.im(c) else float(mpmath.re(c)) for c in mpmath.taylor(along, 0, order)]


def assert_close(got, want, tolerance=2e-12):
    """Every coefficient to `tolerance` of its own size, or of the growth of its neighbours where it nearly vanishes."""
    want = np.array(want)
    size = np.abs(want)
    scale = np.array([max(size[max(0, k - 2) : k + 3]) for k in range(len(size))])
    assert np.all(np.abs(got - want) <= tolerance * scale), np.max(np.abs(got - want) / scale)


def value(name, x0):
    return float(np.real(truth(dict((n, f) for n, f, _ in FUNCTIONS)[name], np.array([x0]), order=0)[0]))


@pytest.mark.parametrize("along", PATHS)
@pytest.mark.parametrize("name, f, x0", CASES)
def test_a_function_has_the_coefficients_that_mpmath_finds(name, f, x0, along):
    x = path(x0, along)
    order = count(ORDER // 2, ORDER) if "gamma" in name else ORDER
    assert_close(getattr(series, name)(x, value(name, x0))[: order + 1], truth(f, x, order=order))


@pytest.mark.parametrize("name, f, x0", [case for case in CASES if "gamma" not in case.values[0]])
def test_an_array_of_series_is_every_series_by_itself(name, f, x0):
    both = np.stack([path(x0, "line"), path(x0, "curve")], 1).reshape(ORDER + 1, 2, 1)
    got = getattr(series, name)(both, np.full((2, 1), value(name, x0)))
    assert got.shape == both.shape
    for n, along in enumerate(PATHS):
        want = getattr(series, name)(path(x0, along), value(name, x0))
        assert_close(got[:, n, 0], want, 1e-11)


COMPLEX = [
    *["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"],
    *["asin", "acos", "atan", "asinh", "acosh", "atanh"],
]


@pytest.mark.parametrize("z0", [0.4 + 0.3j, -0.7 + 0.2j, 1.3 - 0.8j, -1.5 - 0.1j])
@pytest.mark.parametrize("name", COMPLEX)
def test_a_function_of_complex_numbers_stays_on_its_branch(name, z0):
    x = path(z0.real, "curve") + 0j
    x[:3] += [1j * z0.imag, 0.2j, -0.1j]
    f = getattr(mpmath, name)
    got = getattr(series, name)(x, complex(f(z0)))
    # Nearest singularity: the coefficients grow geometrically, and so may errors.
    want = truth(f, x, order=20)
    assert_close(got[:21], want, 1e-9)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name, f, x0", CASES)
def test_short_series_are_the_beginnings_of_long_ones(name, f, x0, n):
    x = path(x0, "line")
    z = value(name, x0)
    got = getattr(series, name)(x[:n], z)
    assert got.shape == (n,)
    np.testing.assert_allclose(got, getattr(series, name)(x, z)[:n], 1e-13, 1e-300)


@pytest.mark.parametrize("name, f, x0", [case for case in CASES if "gamma" not in case.values[0]])
def test_float32_stays_float32(name, f, x0):
    x = path(x0, "line").astype(np.float32)[:6]
    got = getattr(series, name)(np.stack([x, x], 1), np.full(2, value(name, x0), np.float32))
    assert got.dtype == np.float32
    alone = getattr(series, name)(x, np.float32(value(name, x0)))
    assert alone.dtype == np.float32
    np.testing.assert_allclose(got[:, 0], alone, 1e-4, 1e-5)


# Two arguments -----------------------------------------------------------------------------------------------

X = np.concatenate(([1.3, 0.5, -0.2, 0.1], np.zeros(ORDER - 3)))
Y = np.concatenate(([-0.8, 1.0, 0.3], np.zeros(ORDER - 2)))


@pytest.mark.parametrize(
    "got, f",
    [
        (series.multiply(X, Y), lambda x, y: x * y),
        (series.divide(X, Y), lambda x, y: x / y),
        (series.divide(Y, X), lambda x, y: y / x),
        (series.reciprocal(Y), lambda x, y: 1 / y),
        (series.square(Y), lambda x, y: y * y),
        (series.atan2(X, Y, math.atan2(1.3, -0.8)), lambda x, y: mpmath.atan2(x, y) if x.imag == y.imag == 0 else mpmath.atan(y / -x) + mpmath.pi / 2),
        (series.hypot(X, Y, math.hypot(1.3, -0.8)), lambda x, y: mpmath.sqrt(x * x + y * y)),
        (series.power_of_series(X, Y, 1.3**-0.8), lambda x, y: x**y),
        (series.power_of_constant(1.7, Y, 1.7**-0.8), lambda x, y: mpmath.mpf(1.7) ** y),
        (series.logaddexp(X, Y, np.logaddexp(1.3, -0.8)), lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y))),
        (series.logaddexp2(X, Y, np.logaddexp2(1.3, -0.8)), lambda x, y: mpmath.log(mpmath.mpf(2) ** x + mpmath.mpf(2) ** y) / mpmath.log(2)),
    ],
    ids="multiply divide1 divide2 reciprocal square atan2 hypot power_of_series power_of_constant logaddexp logaddexp2".split(),
)
def test_two_series_combine(got, f):
    assert_close(got, truth(f, X, Y))


def test_two_arrays_of_series_combine_like_their_elements():
    a = np.stack([X, Y, -X], 1)
    b = np.stack([Y, X, X], 1)
    for f in (series.multiply, series.divide):
        together = f(a, b)
        for n in range(3):
            np.testing.assert_allclose(together[:, n], f(a[:, n], b[:, n]), 1e-11, 1e-14)


def test_a_row_and_a_column_broadcast_after_the_leading_axis():
    row = series.aligned(np.stack([X, Y], 1), 2)
    column = np.stack([X, Y, -X], 1).reshape(-1, 3, 1)
    product = series.multiply(column, row)
    assert product.shape == (ORDER + 1, 3, 2)
    np.testing.assert_allclose(product[:, 2, 1], series.multiply(-X, Y), 1e-12, 1e-14)


# Powers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("r", [0.5, -1.5, 2.7, -1, -3, 1 / 3, 1, 2, 3, 7, 39, 40, 41, 60])
@pytest.mark.parametrize("along", PATHS)
def test_a_constant_power(r, along):
    x = path(0.9, along)
    assert_close(series.power(x, r, 0.9**r), truth(lambda t: t ** mpmath.mpf(r), x), 1e-11)


@pytest.mark.parametrize("r", [2, 3, -1, -4, 9, 50])
def test_a_negative_base_with_a_whole_exponent(r):
    x = path(-1.2, "curve")
    assert_close(series.power(x, r, (-1.2) ** r), truth(lambda t: t**r, x), 1e-10)
    assert_close(series.power(x, float(r), (-1.2) ** r), truth(lambda t: t**r, x), 1e-10)


def test_a_negative_base_with_a_broken_exponent_is_complex():
    x = path(-1.2, "line", 10)
    assert_close(series.power(x, 0.5, (-1.2) ** 0.5), truth(lambda t: mpmath.mpc(t) ** 0.5, x + 0j, order=10))


@pytest.mark.parametrize("r", range(1, 8))
def test_a_whole_power_is_a_polynomial_also_at_zero(r):
    x = np.array([0.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    want = np.zeros(6)
    coefficients = np.polynomial.polynomial.polypow([0.0, 2.0, 1.0], r)[:6]
    want[: len(coefficients)] = coefficients
    np.testing.assert_array_equal(series.power(x, r, 0.0), want)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(series.power(x[:, None], np.array([r]), np.zeros(1))[:, 0], want)


def test_the_power_zero_is_constant_also_at_zero():
    for x0 in (0.0, 1.5, -2.0):
        np.testing.assert_array_equal(series.power(path(x0, "line", 4), 0, 1.0), [1.0, 0.0, 0.0, 0.0, 0.0])


def test_each_element_of_an_array_has_its_own_exponent():
    bases = np.array([0.0, 0.0, 2.0, -1.5, 0.0])
    exponents = np.array([0.0, 2.0, 0.5, 3.0, 9.0])
    x = np.stack([path(b, "curve", 6) for b in bases], 1)
    with np.errstate(all="ignore"):
        got = series.power(x, exponents, bases**exponents)
    for n, (b, r) in enumerate(zip(bases, exponents)):
        whole = int(r) if r == int(r) else r
        np.testing.assert_allclose(got[:, n], series.power(x[:, n], whole, b**r), 1e-12, 1e-14)


@pytest.mark.parametrize(
    "got, want",
    [
        (lambda x: series.sqrt(x, 0.0), [0, np.inf, -np.inf, np.inf]),
        (lambda x: series.power(x, 0.5, 0.0), [0, np.inf, -np.inf, np.inf]),
        (lambda x: series.power(x, 1.5, 0.0), [0, 0, np.inf, -np.inf]),
        (lambda x: series.power(x, 2.5, 0.0), [0, 0, 0, np.inf]),
        (lambda x: series.cbrt(x, 0.0), [0, np.inf, -np.inf, np.inf]),
        (lambda x: series.log(x, -np.inf), [-np.inf, np.inf, -np.inf]),
        (lambda x: series.reciprocal(x), [np.inf, -np.inf]),
        (lambda x: series.power(x, -1, np.inf), [np.inf, -np.inf, np.inf, -np.inf]),
    ],
    ids="sqrt power0.5 power1.5 power2.5 cbrt log reciprocal power-1".split(),
)
def test_a_pole_is_the_limit_from_the_right_as_ieee_arithmetic_has_it(got, want):
    x = np.array([0.0, 2.0, 0.0, 0.0])
    with np.errstate(all="ignore"):
        n = len(want)
        np.testing.assert_array_equal(got(x[:n]), want)
        np.testing.assert_array_equal(got(np.stack([x, x], 1)[:n])[:, 1], want)


def test_a_pole_in_one_element_leaves_the_others_alone():
    x = np.stack([path(0.0, "line", 5), path(2.0, "line", 5)], 1)
    with np.errstate(all="ignore"):
        for f, z in ((series.sqrt, np.sqrt), (series.log, np.log), (lambda x, z: series.power(x, 0.3, z), lambda x: x**0.3)):
            np.testing.assert_allclose(f(x, z(x[0]))[:, 1], f(x[:, 1], z(2.0)), 1e-13)


def test_kinks_are_flat():
    x = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(series.absolute(x, 0.0), [0, 0, 0])
    np.testing.assert_array_equal(series.absolute(x - 3.0 * (np.arange(3) == 0), 3.0), [3, -1, -2])
    np.testing.assert_array_equal(series.hypot(x, x, 0.0), [0, 0, 0])


def test_a_modulus_is_that_of_real_and_imaginary_part():
    z = path(0.3, "curve", 12) + 1j * path(-0.7, "line", 12)
    got = series.absolute(z, abs(z[0]))
    assert got.dtype == float
    assert_close(got, truth(lambda x, y: mpmath.sqrt(x * x + y * y), z.real, z.imag, order=12))


def test_large_and_small_legs_neither_overflow_nor_vanish():
    for size in (1e300, 1e-300):
        x = size * np.array([3.0, 1.0, 0.0])
        y = size * np.array([4.0, 2.0, 0.0])
        np.testing.assert_allclose(series.hypot(x, y, 5 * size) / size, [5, 11 / 5, 2 / 125], 1e-12)
        np.testing.assert_allclose(series.atan2(y, x, math.atan2(4, 3))[1], (3 * 2 - 4 * 1) / 25, 1e-12)


def test_the_slope_of_tanh_does_not_cancel_far_out():
    got = series.tanh(np.array([20.0, 1.0, 0.0]), math.tanh(20.0))
    np.testing.assert_allclose(got[1:], [math.cosh(20.0) ** -2, -math.cosh(20.0) ** -2], 1e-12)


def test_fifty_orders_do_not_overflow():
    x = path(1.0, "line", 170)
    z = series.exp(x, math.e)
    np.testing.assert_allclose(z[50], math.e / math.factorial(50), 1e-12)
    assert np.all(np.isfinite(z)) and z[170] > 0


@pytest.mark.parametrize("x", [0.3, 2.5, 40.0, -0.7, -3.2])
def test_hurwitz_zeta(x):
    for s in (2, 3, 10, 50, 200):
        want = sum(mpmath.power(x + k, -s) for k in range(12)) + mpmath.zeta(s, x + 12)
        assert float(series.zeta(s, x)) == pytest.approx(float(want), rel=1e-12)


def test_the_gamma_function_to_order_200():
    x = path(2.5, "line", 200)
    want = [-mpmath.psi(0, 2.5), *[(-1) ** k * mpmath.zeta(k, 2.5) / k for k in range(2, 201)]]
    got = series.lgamma(x, math.lgamma(2.5))[1:]
    np.testing.assert_allclose(got, [-float(want[0]), *map(float, want[1:])], 1e-12)


def test_compose_of_a_polynomial_is_exact():
    np.testing.assert_array_equal(series.compose([1.0, 2.0, 3.0], np.array([5.0, 1.0, 1.0, 0.0])), [1, 2, 5, 6])


def test_whole_powers_of_fractions_are_exact():
    from fractions import Fraction

    x = np.array([Fraction(1, 3), Fraction(1), Fraction(0)], object)
    assert list(series.power(x, 2, Fraction(1, 9))) == [Fraction(1, 9), Fraction(2, 3), Fraction(1)]
