"""Arithmetic of differentiated numbers and arrays with objects of the program's own classes."""

import operator

import numpy as np
import pytest

from plaingrad import derivative, grad, jvp
from plaingrad.errors import MissingRuleError

OPERATORS = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")},
    **{name.rstrip("_"): getattr(operator, name) for name in ("lshift", "rshift", "and_", "or_", "xor")},
    "divmod": divmod,
    **{name: getattr(operator, name) for name in ("lt", "le", "eq", "ne", "ge", "gt")},
    **{f"i{name}": getattr(operator, f"i{name}") for name in ("add", "mul", "matmul", "and", "or")},
}
ARITHMETIC = [name for name in OPERATORS if not name.startswith("i") and len(name) > 2]
V = np.array([1.0, 2.0, 3.0])


def total(self, other):
    """Twice the sum of squares, whatever the operator."""
    return 2.0 * np.sum(other * other)


Left = type("Left", (), {f"__{name}__": total for name in OPERATORS})
Right = type("Right", (), {f"__r{name}__": total for name in ARITHMETIC})


@pytest.mark.parametrize("name", OPERATORS)
def test_the_class_on_the_left_is_asked_first(name):
    op = OPERATORS[name]
    np.testing.assert_allclose(grad(lambda u: op(Left(), u))(V), 4 * V)
    assert jvp(lambda u: op(Left(), u), (V,), (np.ones(3),))[1] == 4 * V.sum()
    np.testing.assert_allclose(grad(lambda u: op(Left(), u[1]))(V), [0, 8, 0])  # a NumPy number
    np.testing.assert_allclose(grad(lambda u: op(Left(), u[::-1][:2]))(V), [0, 8, 12])
    assert derivative(lambda x: op(Left(), x))(1.5) == 6.0


@pytest.mark.parametrize("name", ARITHMETIC)
def test_the_class_on_the_right_gets_a_number_that_is_followed(name):
    op = OPERATORS[name]
    np.testing.assert_allclose(grad(lambda u: op(u[1], Right()))(V), [0, 8, 0])
    np.testing.assert_allclose(grad(lambda u: op(u[1], Right()))(V.astype(np.float32)), [0, 8, 0])
    assert derivative(lambda x: op(x, Right()))(np.float64(1.5)) == 6.0
    assert derivative(derivative(lambda x: op(x, Right())))(np.float64(1.5)) == 4.0
    if name != "divmod":  # complex numbers have none
        assert grad(lambda z: op(z, Right()).real)(np.complex128(1 + 2j)) == pytest.approx(4 - 8j)


class Number:
    """A user's number, as in many packages."""

    def __init__(self, v):
        self.v = v

    def __mul__(self, other):
        return Number(self.v * (other.v if isinstance(other, Number) else other))

    __rmul__ = __mul__

    def __add__(self, other):
        return Number(self.v + (other.v if isinstance(other, Number) else other))

    __radd__ = __add__


def test_numpys_numbers_from_the_left_and_from_the_right():
    for op, slopes in ((lambda a, b: a * b, (2.0, 1.0)), (lambda a, b: a + b, (1.0, 1.0))):
        for f in (lambda u, op=op: op(u[0], Number(u[1])).v, lambda u, op=op: op(Number(u[0]), u[1]).v):
            np.testing.assert_allclose(grad(f)(V), [*slopes, 0.0])
            assert jvp(f, (V,), (V,))[1] == pytest.approx(np.dot([*slopes, 0.0], V))
    found = jvp(lambda u: u[0] * Number(3.0), (V,), (V,))[0]
    assert type(found) is Number and type(found.v) is type((V[0] * Number(3.0)).v)


def test_arrays_of_objects_are_made_element_by_element():
    def f(u):
        products = u * Number(3.0)
        assert type(products) is np.ndarray and products.dtype == object
        return products[0].v * products[2].v

    assert f(V) == 27.0
    np.testing.assert_allclose(grad(f)(V), [27.0, 0.0, 9.0])
    np.testing.assert_allclose(jvp(f, (V,), (V,))[1], 54.0)


class OnlyFloats:
    """Declines arrays and small floats: NumPy then asks again with each number."""

    def __mul__(self, other):
        return 3.0 * other if isinstance(other, float) else NotImplemented

    __rmul__ = __mul__


class High:
    __array_priority__ = 10

    def __rmul__(self, other):
        return 3.0 * np.sum(other)


class Low(High):
    __array_priority__ = -10

    def __rmul__(self, other):
        return 3.0 * other


class NoUfuncs(High):
    __array_ufunc__ = None


class Ufuncs:
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return 3.0 * next(x for x in inputs if x is not self)


class LikeAnArray(Low):
    def __array__(self, dtype=None, copy=None):
        return np.ones(3)


@pytest.mark.parametrize("x", [V, np.float64(2.0), np.float32(2.0), 2.0], ids=["array", "64", "32", "float"])
@pytest.mark.parametrize("cls", [OnlyFloats, High, Low, NoUfuncs, Ufuncs])
def test_who_is_asked_is_as_in_a_plain_call(cls, x):
    def both(u):
        found = []
        for product in (lambda: u * cls(), lambda: cls() * u):
            try:
                found.append(np.sum(product()))
            except TypeError:
                found.append("refused")
        return found

    plain = both(x)
    y, y_dot = jvp(both, (x,), (np.ones_like(x) if isinstance(x, np.ndarray) else type(x)(1),))
    assert y == plain
    for value, dot in zip(plain, y_dot, strict=True):
        assert dot is None if value == "refused" else dot == pytest.approx(3.0 * np.size(x))


def test_what_numpy_would_take_for_an_array_is_refused():
    for f in (lambda u: (u * LikeAnArray()).sum(), lambda u: (LikeAnArray() * u).sum()):
        with pytest.raises(MissingRuleError, match="LikeAnArray"):
            grad(f)(V)


class Scaled:
    """In place of its own, and of any other kind."""

    def __init__(self, v):
        self.v = v

    def __imul__(self, other):
        self.v = self.v * other
        return self

    def __iadd__(self, other):
        return NotImplemented

    def __add__(self, other):
        return self.v + np.sum(other)


def test_writes_in_place_by_methods_of_the_class():
    def f(u):
        a = Scaled(2.0)
        a *= u
        a.v += 0.0
        b = Scaled(1.0)
        b += u * u
        return np.sum(a.v) + b

    np.testing.assert_allclose(grad(f)(V), 2 + 2 * V)
    assert jvp(f, (V,), (V,))[1] == pytest.approx((2 * V + 2 * V * V).sum())
