"""Values without their derivative: in every structure, at every level, and left as they are where nothing is lost."""

import math
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jvp, nondifferentiable, stop_gradient

Pair = namedtuple("Pair", "a b")


class Box:
    def __init__(self, x):
        self.x = x
        self.me = self


class Slim:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


def through(wrap, unwrap):
    return lambda x: x * unwrap(stop_gradient(wrap(x)))


STRUCTURES = {
    "number": (lambda x: x, lambda s: s),
    "array": (lambda x: np.array([x]), lambda s: s[0]),
    "list": (lambda x: [1, [x]], lambda s: s[1][0]),
    "tuple": (lambda x: (x, "a"), lambda s: s[0]),
    "namedtuple": (lambda x: Pair(1, x), lambda s: s.b),
    "dict": (lambda x: OrderedDict(a=x), lambda s: s["a"]),
    "set": (lambda x: {x}, lambda s: next(iter(s))),
    "object": (Box, lambda s: s.me.x),
    "slots": (Slim, lambda s: s.x),
}


def test_a_stopped_value_counts_as_a_constant_in_any_structure():
    for name, (wrap, unwrap) in STRUCTURES.items():
        f = through(wrap, unwrap)
        assert grad(f)(3.0) == 3.0, name
        assert jvp(f, (3.0,), (1.0,)) == (9.0, 3.0), name
        assert grad(grad(lambda x: x * f(x)))(3.0) == 6.0, name


def test_the_type_and_the_original_stay():
    def f(x):
        box = Box(x)
        stopped = stop_gradient(box)
        assert type(stopped) is Box and stopped is not box and stopped.me is stopped and box.x is x
        assert type(stop_gradient(OrderedDict(a=x))) is OrderedDict
        return box.x**2

    assert grad(f)(3.0) == 6.0


def test_an_object_that_depends_on_nothing_stays_itself():
    box, values = Box(1.0), [1.0]
    values.append(values)

    @nondifferentiable
    def lookup(x):
        return box

    assert grad(lambda x: x * (lookup(x) is box))(2.0) == 1.0
    assert stop_gradient(box) is box
    again = stop_gradient(values)
    assert again[1] is again and again is not values
    plaingrad.remove_rule(lookup)


def same(x):
    return x


def first(values):
    return values[0]


def test_what_is_nondifferentiable_may_return_its_argument():
    for f in (same, first):
        nondifferentiable(f)
    try:
        programs = {
            "number": lambda x: same(x) * x,
            "list": lambda x: same([x, 2.0])[0] * x,
            "entry": lambda x: first([x, x]) * x,
            "array": lambda x: (same(np.array([x, x])) * x)[1],
            "view": lambda x: first(np.array([[x, 1.0], [2.0, x]]))[0] * x,
            "by map": lambda x: next(iter(map(same, [x]))) * x,
        }
        for name, f in programs.items():
            assert f(3.0) == 9.0, name
            assert grad(f)(3.0) == 3.0, name
            assert jvp(f, (3.0,), (1.0,)) == (9.0, 3.0), name
            assert plaingrad.jacobian(lambda v, f=f: [f(v[0]), v[1]], mode="forward")([3.0, 1.0])[0] == [3.0, 0.0], name
            assert list(plaingrad.taylor(f, 3.0, 1)) == [9.0, 3.0], name
            assert grad(grad(lambda x, f=f: x * f(x)))(3.0) == 6.0, name  # x^2 times what was returned
    finally:
        for f in (same, first):
            plaingrad.remove_rule(f)


@pytest.mark.parametrize("function", [np.square, np.positive, np.add, np.sum, math.fabs, max], ids=lambda f: f.__name__)
def test_functions_of_others_are_nondifferentiable_by_declaration(function):
    def f(x):
        y = function(x, x) if function in (np.add, max) else function(x)
        return y * x

    value = f(3.0)
    nondifferentiable(function)
    try:
        assert grad(f)(3.0) == value / 3.0
        assert jvp(f, (3.0,), (1.0,)) == (value, value / 3.0)
    finally:
        plaingrad.remove_rule(function)
    assert grad(f)(3.0) != value / 3.0
