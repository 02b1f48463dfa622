"""Numbers with arithmetic of their own: their derivatives have all the digits that they have."""

import copy
import math
import subprocess
import sys
import textwrap
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import plaingrad
from plaingrad import MissingRuleError, RoundTripError, grad, hessian, jacobian, jvp, number_class, taylor, vjp

mpmath = pytest.importorskip("mpmath")
mp = mpmath.mp
mpf, mpc = mp.mpf, mp.mpc
DIGITS = 50


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(DIGITS):
        yield


def agrees(a, b, digits=DIGITS - 3):
    return abs(a - b) <= mpf(10) ** -digits * max(1, abs(b))


def newton(x):
    y = mpf(1)
    for _ in range(9):
        y = (y + x / y) / 2
    return y


def branches(x):
    total = 0
    for k in range(5):
        total = total + (x**k if x > k else -k * x)
    return total


def by_dictionary(x):
    held = {"a": [x, 2 * x], "b": (x * x,)}
    return sum(held["a"]) + held["b"][0]


def horner(x):
    return mp.polyval([1, -2, mpf("0.1"), 4], x)


def determinant(x):
    return mp.det(mp.matrix([[x, 1, 0], [2, x, x], [0, 1, 3]]))


# the program, its derivative
PROGRAMS = {
    "polynomial": (lambda x: 3 * x * x + x, lambda x: 6 * x + 1),
    "quotient": (lambda x: (x + 1) / (x - 5), lambda x: -6 / (x - 5) ** 2),
    "reflected": (lambda x: 1 / x - (2 - x), lambda x: 1 - 1 / x**2),
    "power": (lambda x: x**5 + x ** mpf("-0.5"), lambda x: 5 * x**4 - x ** mpf("-1.5") / 2),
    "exponent": (lambda x: 2**x, lambda x: mp.ln(2) * 2**x),
    "x to the x": (lambda x: x**x, lambda x: x**x * (1 + mp.ln(x))),
    "remainder": (lambda x: (5 * x) % 2 + (-x), lambda x: mpf(4)),
    "modulus": (lambda x: abs(-x) * x, lambda x: 2 * x),
    "trigonometry": (lambda x: mp.sin(x) * mp.cos(x) + mp.tan(x), lambda x: mp.cos(2 * x) + mp.sec(x) ** 2),
    "inverse": (lambda x: mp.atan(x) + mp.asinh(x), lambda x: 1 / (1 + x * x) + 1 / mp.sqrt(1 + x * x)),
    "hyperbolic": (lambda x: mp.tanh(x) + mp.cosh(x), lambda x: mp.sech(x) ** 2 + mp.sinh(x)),
    "logarithms": (lambda x: mp.log(x, 3) + mp.log10(x), lambda x: 1 / (x * mp.ln(3)) + 1 / (x * mp.ln(10))),
    "exponential": (lambda x: mp.exp(-x * x) + mp.expm1(x), lambda x: -2 * x * mp.exp(-x * x) + mp.exp(x)),
    "roots": (lambda x: mp.sqrt(x) + mp.cbrt(x), lambda x: 1 / (2 * mp.sqrt(x)) + mp.cbrt(x) / (3 * x)),
    "atan2": (lambda x: mp.atan2(x, 2) + mp.hypot(x, 2), lambda x: 2 / (4 + x * x) + x / mp.hypot(x, 2)),
    "erf": (mp.erf, lambda x: 2 * mp.exp(-x * x) / mp.sqrt(mp.pi)),
    "gamma": (mp.gamma, lambda x: mp.gamma(x) * mp.psi(0, x)),
    "bessel": (lambda x: mp.besselj(0, x), lambda x: -mp.besselj(1, x)),
    "zeta": (lambda x: mp.zeta(x + 1), lambda x: mp.zeta(x + 1, derivative=1)),
    "lambertw": (mp.lambertw, lambda x: mp.lambertw(x) / (x * (1 + mp.lambertw(x)))),
    "pi": (lambda x: mp.pi * x + mp.e, lambda x: +mp.pi),
    "newton": (newton, lambda x: 1 / (2 * mp.sqrt(x))),
    "branches": (branches, lambda x: sum(k * x ** (k - 1) if x > k else -k for k in range(5))),
    "containers": (by_dictionary, lambda x: 3 + 2 * x),
    "horner": (horner, lambda x: 3 * x * x - 4 * x + mpf("0.1")),
    "determinant": (determinant, lambda x: 6 * x - 2 * x - 0 * x if False else mp.diff(determinant, x)),
    "quadrature": (lambda x: mp.quad(lambda s: s * mp.exp(s * x), [0, 1]), None),
    "root finding": (lambda x: mp.findroot(lambda s: s * s - x, 1), lambda x: 1 / (2 * mp.sqrt(x))),
    "differences": (lambda x: mp.diff(lambda s: s * s * x, 2), lambda x: mpf(4)),
    "series": (lambda x: mp.nsum(lambda k: x / k**2, [1, mp.inf]), lambda x: mp.pi**2 / 6),
    "sum": (lambda x: mp.fsum([x, x * x, 1]) + mp.fdot([x, 2], [x, x]), lambda x: 4 * x + 3),
    "conversion": (lambda x: mpf(x) * mp.convert(x), lambda x: 2 * x),
    "complex": (lambda x: abs(mpc(x, 2)) + (mpc(x, 1) ** 2).real, lambda x: x / abs(mpc(x, 2)) + 2 * x),
    "higher precision": (lambda x: mp.workdps(90)(lambda: (1 + x * mpf(10) ** -60 - 1) * mpf(10) ** 60)(), lambda x: mpf(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_over_mpf_have_all_their_digits_in_both_modes(name):
    f, slope = PROGRAMS[name]
    x = mpf("1.3")
    expected = mp.diff(f, x) if slope is None else slope(x)
    digits = DIGITS - 15 if slope is None or name in ("differences", "series", "determinant") else DIGITS - 3
    value, pullback = vjp(f, x)
    assert value == f(x)
    (x_bar,) = pullback(mpf(1))
    assert type(x_bar) is mpf and agrees(x_bar, expected, digits)
    _, y_dot = jvp(f, (x,), (mpf(1),))
    assert agrees(y_dot, expected, digits)


@pytest.mark.parametrize("f", [mp.sin, mp.loggamma, lambda x: x**x, lambda x: mp.sqrt(1 + x * x)])
def test_second_derivatives_and_taylor_coefficients_of_mpf(f):
    x = mpf("0.7")
    truth = mp.diff(f, x, 2)
    assert agrees(grad(grad(f))(x), truth, 40)
    assert agrees(jvp(grad(f), (x,), (mpf(1),))[1], truth, 40)
    assert agrees(grad(lambda x: jvp(f, (x,), (mpf(1),))[1])(x), truth, 40)
    assert agrees(taylor(lambda x: x * x * x + 1 / x, x, 3)[3], 1 - x**-4)


def test_jacobians_and_hessians_of_mpf():
    x = [mpf("1.5"), mpf(2)]
    assert hessian(lambda l: l[0] * l[1] * l[0])(x) == [[4, 3], [3, 0]]
    rows = jacobian(lambda l: [l[0] * l[1], mp.sin(l[0])])(x)
    assert agrees(rows[1][0], mp.cos(x[0])) and rows[0] == [2, mpf("1.5")]


def test_complex_numbers_of_mpmath_follow_those_of_python():
    def g(z):
        return (z * z + 1 / z).real + abs(z) + (z * z.imag).imag

    assert abs(complex(grad(g)(mpc(1, 2))) - grad(g)(1 + 2j)) < 1e-14
    assert jvp(lambda z: z * z, (mpc(1, 2),), (mpc(1),))[1] == mpc(2, 4)


def test_floats_may_become_mpf_and_mpf_floats():
    tenth = mpf("0.1")
    assert grad(lambda x: float(mpf(x) * tenth))(1.5) == 0.1
    assert grad(lambda x: x * tenth)(1.5) == 0.1
    assert agrees(grad(lambda x: math.sin(x))(mpf(1)), mp.cos(1), 15)
    assert grad(lambda x: complex(x).real * 2)(mpf(1)) == 2
    assert grad(lambda x: (x * np.ones(2)).sum())(mpf(3)) == 2


def test_arrays_of_mpf_are_containers():
    a = np.array([mpf(1), mpf(2)])
    held = list(a)
    for f in (lambda a: (a * a).sum(), lambda a: np.sum(a**2), lambda a: a @ a):
        assert list(grad(f)(a)) == [2, 4]
    assert jvp(lambda a: (a * a).sum(), (a,), (a,)) == (5, 10)
    assert list(grad(lambda b: (grad(lambda a: (a**3).sum())(b) * b).sum())(a)) == [9, 36]
    assert all(x is y for x, y in zip(a, held, strict=True))
    assert list(grad(lambda a: (a * a).prod())(np.array([Fraction(1, 2), Fraction(3)]))) == [9, Fraction(3, 2)]
    assert grad(lambda l: np.cumsum(l)[1] + np.dot(l, l))([mpf(1), mpf(2)]) == [3, 5]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mp.make_mpf(x._mpf_),
        lambda x: copy.deepcopy(x),
        lambda x: mp.hyp2f1(1, 2, 3, x / 4),
        lambda x: np.sin(x),
        lambda x: np.where(True, x, x),
        lambda x: mp.zeta(x, derivative=1),
        lambda x: mpmath.iv.mpf(x).mid,
    ],
)
def test_what_takes_a_number_apart_is_refused(f):
    with pytest.raises(MissingRuleError):
        grad(f)(mpf("1.25"))


def test_a_number_that_went_through_text_is_refused():
    with pytest.raises(RoundTripError):
        grad(lambda x: mpf(str(x)))(mpf("1.234567"))


def test_tangent_spaces_of_mpf():
    x = mpf("1.5")
    assert plaingrad.tangent_type(x) is plaingrad.tangent_type(mpf) is mpf
    assert plaingrad.zero_tangent([x]) == [0]
    assert type(plaingrad.project_to(1.0)(x)) is float and type(plaingrad.project_to(x)(2.0)) is mpf


GMPY2 = {
    "polynomial": (lambda g, x: 3 * x * x + x - 1 / x, lambda g, x: 6 * x + 1 + 1 / x**2),
    "functions": (lambda g, x: g.sin(x) * g.exp(x), lambda g, x: g.exp(x) * (g.sin(x) + g.cos(x))),
    "powers": (lambda g, x: 2**x + x**3, lambda g, x: g.log(g.mpfr(2)) * 2**x + 3 * x**2),
    "roots": (lambda g, x: g.sqrt(x) + g.log2(x), lambda g, x: 1 / (2 * g.sqrt(x)) + 1 / (x * g.log(g.mpfr(2)))),
    "atan2": (lambda g, x: g.atan2(x, g.mpfr(2)), lambda g, x: 2 / (4 + x * x)),
    "gamma": (lambda g, x: g.gamma(x), lambda g, x: g.gamma(x) * g.digamma(x)),
    "erf": (lambda g, x: g.erf(x), lambda g, x: 2 * g.exp(-x * x) / g.sqrt(g.const_pi())),
    "made": (lambda g, x: g.mpfr(x) * x, lambda g, x: 2 * x),
    "choice": (lambda g, x: max(x, g.mpfr(1)) * x if x > 0 else -x, lambda g, x: 2 * x),
}


@pytest.mark.parametrize("name", GMPY2)
def test_programs_over_gmpy2(name):
    g = pytest.importorskip("gmpy2")
    f, slope = GMPY2[name]
    with g.context(g.get_context(), precision=170):
        x = g.mpfr("1.3")
        d = grad(lambda x: f(g, x))(x)
        assert d.precision == 170 and abs(d - slope(g, x)) < g.mpfr("1e-48")
        assert abs(jvp(lambda x: f(g, x), (x,), (g.mpfr(1),))[1] - slope(g, x)) < g.mpfr("1e-48")
        assert abs(grad(grad(lambda x: g.exp(2 * x)))(x) - 4 * g.exp(2 * x)) < g.mpfr("1e-47")


def test_fractions_and_complex_numbers_of_gmpy2():
    g = pytest.importorskip("gmpy2")
    third = g.mpq(1, 3)
    assert grad(lambda x: 3 * x**3 - 1 / x)(third) == 10
    assert grad(grad(lambda x: x**3))(third) == 2
    assert list(taylor(lambda x: x * x, third, 2)) == [g.mpq(1, 9), g.mpq(2, 3), 1]
    assert grad(lambda x: float(g.mpq(x) / 3))(1.5) == 1 / 3
    assert grad(lambda z: (z * z).real)(g.mpc(3, 4)) == g.mpc(6, -8)
    with pytest.raises(MissingRuleError):
        grad(lambda q: g.mpq(q.numerator, 3))(third)


class Pair:
    """a + b sqrt(2), exactly."""

    def __init__(self, a, b=0):
        self.a, self.b = (a.a, a.b) if isinstance(a, Pair) else (Fraction(a), Fraction(b))

    def __add__(self, other):
        other = Pair(other)
        return Pair(self.a + other.a, self.b + other.b)

    def __mul__(self, other):
        other = Pair(other)
        return Pair(self.a * other.a + 2 * self.b * other.b, self.a * other.b + self.b * other.a)

    def __neg__(self):
        return Pair(-self.a, -self.b)

    def __sub__(self, other):
        return self + -Pair(other)

    def __rsub__(self, other):
        return Pair(other) - self

    def __truediv__(self, other):
        other = Pair(other)
        norm = other.a**2 - 2 * other.b**2
        return self * Pair(other.a / norm, -other.b / norm)

    def __rtruediv__(self, other):
        return Pair(other) / self

    def __eq__(self, other):
        other = Pair(other)
        return (self.a, self.b) == (other.a, other.b)

    __radd__, __rmul__ = __add__, __mul__


def squared(x):
    return x * x


FUNCTIONS = SimpleNamespace(square=squared)


def test_a_class_of_the_program_may_be_declared_a_number():
    x = Pair(1, 2)
    as_object = grad(lambda x: (x * x).a)(Pair(1, 2))
    assert as_object.a == 2 and as_object.b == 8  # of what it holds
    number_class(Pair, functions=FUNCTIONS)
    assert grad(lambda x: 3 * x * x + x)(x) == Pair(7, 12)
    assert jvp(lambda x: 1 / x, (x,), (Pair(1),))[1] == -1 / (x * x)
    assert grad(grad(lambda x: x * x * x))(x) == 6 * x
    assert grad(squared)(x) == 2 * x and grad(lambda l: l[0] - l[1] * l[0])([x, x]) == [1 - x, -x]


def test_a_float_is_no_class_to_be_declared():
    class Own(float):
        pass

    with pytest.raises(plaingrad.RuleError, match="whose arithmetic is known"):
        number_class(Own)


def in_a_new_process(program):
    """Run a program whose declarations, or first meetings with classes, would stay in this process."""
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)


def test_a_number_with_an_uncertainty_has_a_derivative_with_one():
    pytest.importorskip("uncertainties")
    in_a_new_process("""
        import uncertainties
        from uncertainties import umath
        from plaingrad import grad, number_class

        kind = uncertainties.core.AffineScalarFunc
        number_class(
            kind,
            functions=umath,
            copy=lambda u: u * 1.0,
            made=lambda x, n: n if isinstance(n, kind) else x * 0.0 + n,
        )
        u = uncertainties.ufloat(3.67, 0.02)
        slope = grad(lambda x: 3 * x**2 + umath.sin(x))(u)
        difference = slope - (6 * u + umath.cos(u))  # correlated: no uncertainty is left
        assert abs(difference.n) < 1e-13 and difference.s < 1e-15
        assert abs(grad(grad(lambda x: x**3))(u).s - 0.12) < 1e-12
    """)


def test_a_class_may_first_be_met_in_a_derivative():
    in_a_new_process("""
        from mpmath import mpf
        from plaingrad import grad

        assert grad(lambda x: float(mpf(x)) * x)(1.5) == 3.0
    """)


def test_fractions_to_fractional_powers_are_floats():
    third = Fraction(1, 3)
    assert math.isclose(grad(lambda x: third**x)(Fraction(2)), math.log(third) / 9)
    assert grad(lambda x: x**-2)(third) == -54
