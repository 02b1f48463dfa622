"""Subclasses of float with operators of their own: where C code takes their value, so do the derivatives."""

import math

import numpy as np
import pytest

from plaingrad import derivative, grad


class Odd(float):
    """Every operator that rules might use on the way is another one."""

    def __neg__(self):
        return 100.0

    def __mul__(self, other):
        return 13.0

    def __rmul__(self, other):
        return 7.0

    def __radd__(self, other):
        return 9.0

    def __rsub__(self, other):
        return 11.0

    def __pow__(self, other):
        return 17.0

    def __rtruediv__(self, other):
        return 19.0


class OddScalar(np.float64):
    """The same, of NumPy's float."""

    def __neg__(self):
        return 100.0

    def __mul__(self, other):
        return 13.0

    __rmul__ = __mul__


PROGRAMS = {
    "over x": lambda c, x: c(2.0) / x,
    "power": lambda c, x: x ** c(2.0),
    "atan2": lambda c, x: math.atan2(c(2.0), x),
    "hypot": lambda c, x: math.hypot(c(2.0), x),
    "pow": lambda c, x: math.pow(x, c(2.0)),
    "ufunc": lambda c, x: np.multiply(c(2.0), x) + np.divide(x, c(4.0)) + np.arctan2(c(2.0), x),
    "array": lambda c, x: (np.array([x, 1.0]) / c(2.0)).sum() + (np.array([x, x]) ** c(3.0)).sum(),
    "copysign": lambda c, x: math.copysign(x, c(-2.0)),
    "of x": lambda c, x: math.log(c(x)) + math.sin(c(x)) + math.sqrt(c(x)) + c(x) / 3.0,
    "float32": lambda c, x: float((np.array([1.0], np.float32) / c(2.0))[0]) * x,
}


def difference(f, h=1e-3):
    return lambda x: (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("cls", [Odd, OddScalar])
def test_the_value_is_taken(cls, name):
    if name == "of x" and cls is OddScalar:
        pytest.skip("a scalar of NumPy is not made of a differentiated number")

    def f(x):
        return PROGRAMS[name](cls, x)

    slope, second = difference(f)(1.3), difference(difference(f))(1.3)
    for mode in (grad, derivative):
        assert mode(f)(1.3) == pytest.approx(slope, rel=1e-7)
    if name != "of x":  # at inner levels these operators are still met
        for inner in (grad, derivative):
            assert grad(inner(f))(1.3) == pytest.approx(second, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("mode", [grad, derivative])
def test_the_builtin_power_is_the_operator(mode):
    class Power(float):
        def __pow__(self, other):
            return 3.0 * other

        def __rpow__(self, other):
            return 5.0 * other

    q = Power(2.0)
    assert mode(lambda x: pow(q, x) * x)(1.5) == pytest.approx(9.0)
    assert mode(lambda x: pow(x, q) * x)(1.5) == pytest.approx(15.0)
    assert mode(lambda x: pow(base=x, exp=3))(1.5) == pytest.approx(3 * 1.5**2)
    assert mode(lambda x: pow(2.0, exp=x))(1.5) == pytest.approx(math.log(2.0) * 2.0**1.5)
    assert mode(lambda x: sum(map(pow, [x, x], [2, 3])) * pow(7, 2, 5))(1.5) == pytest.approx(4 * (3.0 + 6.75))
    assert mode(mode(lambda x: pow(x, 3)))(1.5) == pytest.approx(9.0)
    for bad in (lambda x: pow(x), lambda x: pow(x, 2, 5)):
        with pytest.raises(TypeError) as plain:
            bad(1.5)
        with pytest.raises(TypeError) as found:
            mode(bad)(1.5)
        assert str(found.value) == str(plain.value)


def test_the_operators_change_after_they_were_used():
    def f(x):
        class Later(float):
            pass

        two = Later(2.0)
        y = two * x
        Later.__mul__ = lambda self, other: other * other
        Later.__rmul__ = lambda self, other: other * other * other
        return y + two * x + x * two  # 2 x + x^2 + x^3

    for mode in (grad, derivative):
        assert mode(f)(1.5) == pytest.approx(2.0 + 3.0 + 3 * 1.5**2, rel=1e-12)


def test_numbers_of_a_class_keep_their_derivative_at_inner_levels():
    class Plain(float):
        pass

    def f(x):
        return math.sin(Plain(x)) * Plain(x) / 2.0

    expected = difference(difference(f))(1.3)
    for outer in (grad, derivative):
        for inner in (grad, derivative):
            assert outer(inner(f))(1.3) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("hashes", [True, False])
def test_a_metaclass_that_compares_is_not_asked(hashes):
    class Meta(type):
        def __eq__(cls, other):
            raise RuntimeError("asked")

        __hash__ = type.__hash__ if hashes else None

    class Compares(float, metaclass=Meta):
        pass

    def f(x):
        return math.atan2(Compares(2.0), x) + Compares(2.0) * x

    for mode in (grad, derivative):
        assert mode(f)(1.3) == pytest.approx(difference(f)(1.3), rel=1e-7)
