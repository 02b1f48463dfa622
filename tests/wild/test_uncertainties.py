"""uncertainties: numbers with error bars, an automatic differentiation of its own inside ours."""

import math

import pytest

import plaingrad

uncertainties = pytest.importorskip("uncertainties")
from uncertainties import ufloat, umath  # noqa: E402


def test_the_error_of_a_product():
    """sd(xy) = sqrt((y sx)^2 + (x sy)^2)."""

    def error(x, sx, y, sy):
        return (ufloat(x, sx) * ufloat(y, sy)).std_dev

    x, sx, y, sy = 2.0, 0.1, 3.0, 0.2
    sd = math.hypot(y * sx, x * sy)
    expected = (x * sy**2 / sd, y**2 * sx / sd, y * sx**2 / sd, x**2 * sy / sd)
    assert plaingrad.grad(error, (0, 1, 2, 3))(x, sx, y, sy) == pytest.approx(expected)


def test_a_function_of_correlated_numbers(agrees):
    def error(x, sx, y, sy):
        a, b = ufloat(x, sx), ufloat(y, sy)
        c = umath.sin(a) * b + a**2 / umath.exp(b) - a
        return c.std_dev + c.nominal_value

    agrees(error, 0.7, 0.1, 1.2, 0.2)


def test_a_covariance_matrix(agrees):
    def covariance(x, sx, y, sy):
        a, b = ufloat(x, sx), ufloat(y, sy)
        return uncertainties.covariance_matrix([a * b, a + b])[0][1]

    agrees(covariance, 0.7, 0.1, 1.2, 0.2)


def test_a_measurement_may_be_printed_on_the_way(agrees):
    def printed(x, sx):
        y = ufloat(x, sx) ** 3
        assert "+/-" in f"{y:.3u}"
        return y.std_dev

    agrees(printed, 1.3, 0.1)
