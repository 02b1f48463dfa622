"""Rules are released with their functions, and nothing but derivatives shows that a function has one."""

import copy
import functools
import gc
import pickle
import weakref

import numpy as np
import pytest

from plaingrad import (
    Dual,
    NoTangent,
    defined_as,
    frule,
    grad,
    jvp,
    linear_rule,
    nondifferentiable,
    remove_rule,
    rrule,
    rulebook,
    scalar_rule,
)


def with_both_halves(k):
    large = np.full(1000, k)

    def f(x):
        return large[0] * x * x

    @rrule(f)
    def f_rrule(x):
        return f(x), lambda y_bar: (y_bar * 2 * large[0] * x,)

    @frule(f)
    def f_frule(_, x):
        return Dual(f(x.primal), 2 * large[0] * x.primal * x.tangent)

    assert grad(f)(3.0) == jvp(f, (3.0,), (1.0,))[1] == 6 * k
    assert grad(grad(f))(3.0) == 2 * k
    return f


def lambda_with_a_row(k):
    f = lambda x: x * k  # noqa: E731
    scalar_rule(f, lambda x, z: z / x)
    assert grad(f)(2.0) == k
    return f


def method(k):
    class Line:
        def at(self, x):
            return x * k

    @rrule(Line.at)
    def at_rrule(self, x):
        return self.at(x), lambda y_bar: (NoTangent, y_bar * k)

    assert grad(lambda x: Line().at(x))(2.0) == k
    return Line.at


def class_method(k):
    class Box:
        @classmethod
        def constant(cls, x):
            return x * k

    nondifferentiable(Box.constant)
    assert grad(lambda x: x + Box.constant(x))(2.0) == 1.0
    return Box.constant.__func__


def linear_and_defined(k):
    def f(x):
        return x * k

    linear_rule(f, lambda y_bar, x: y_bar * k)
    assert grad(f)(1.0) == k
    defined_as(f)(lambda x: k * x)
    assert grad(f)(1.0) == k
    return f


def writing(k):
    def f(z, x):
        z[...] = x * k

    @rrule(f, mutates=(0,))
    def f_rrule(z, x):
        f(z, x)
        return z, lambda z_bar: (np.zeros_like(z_bar), k * z_bar)

    return f


def by_types(k):
    def f(x):
        return x * k

    @rrule(f)
    def of_numbers(x: float):
        return f(x), lambda y_bar: (y_bar * k,)

    @rrule(f)
    def of_arrays(x: np.ndarray):
        return f(x), lambda y_bar: (y_bar * k,)

    assert grad(f)(1.0) == k and grad(lambda x: f(x).sum())(np.ones(2)).tolist() == [k, k]
    return f


def removed(k):
    f = lambda_with_a_row(k)
    remove_rule(f)
    assert type(f.__dict__) is dict and grad(f)(2.0) == k
    return f


@pytest.mark.parametrize(
    "make",
    [with_both_halves, lambda_with_a_row, method, class_method, linear_and_defined, writing, by_types, removed],
)
def test_a_function_with_a_rule_that_refers_to_it_is_released(make):
    gc.collect()  # those of other tests are gone already
    before = len(list(rulebook.rules()))
    gone = [weakref.ref(make(float(k))) for k in range(1, 6)]
    gc.collect()
    assert [reference() for reference in gone] == [None] * 5
    assert len(list(rulebook.rules())) == before


def test_another_function_at_the_same_address_has_no_rule():
    def make(k, slope):
        def f(x):
            return x * k

        if slope:
            scalar_rule(f, slope)
        return f

    for k in range(100):
        assert grad(make(2.0, float(k) if k % 2 else None))(1.0) == (k if k % 2 else 2.0)


def named(x):
    """It can be imported."""
    return x * x


def test_attributes_copies_and_pickles_do_not_show_the_rule():
    named.unit = "m"
    before = dict(vars(named)), dir(named)
    scalar_rule(named, lambda x, z: 10.0)
    try:
        assert (dict(vars(named)), dir(named)) == before
        assert vars(named) == {"unit": "m"} and repr(vars(named)) == "{'unit': 'm'}"
        named.unit = "s"
        assert vars(named) == {"unit": "s"} and grad(named)(1.0) == 10.0
        for again in (copy.copy(vars(named)), copy.deepcopy(vars(named)), pickle.loads(pickle.dumps(vars(named)))):
            assert type(again) is dict and again == {"unit": "s"}
        assert pickle.loads(pickle.dumps(named)) is named

        @functools.wraps(named)
        def wrapper(x):
            return 3.0 * x

        assert type(vars(wrapper)) is dict and grad(wrapper)(1.0) == 3.0
    finally:
        remove_rule(named)
    assert grad(named)(1.0) == 2.0 and type(vars(named)) is dict
    del named.unit


def test_our_own_rule_of_a_python_function_comes_back():
    ours = next(rule for rule in rulebook.rules() if type(rule.function) is type(named) and not rule.users)
    scalar_rule(ours.function, 1.0)
    assert rulebook.find(ours.function).users
    remove_rule(ours.function)
    assert rulebook.find(ours.function) is ours
