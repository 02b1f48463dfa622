"""Objects that programs make and call again and again: named tuples, getters, partials, lambdas, generators."""

import collections
import functools
import itertools
import operator
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import plaingrad


class Point(NamedTuple):
    a: float
    b: float = 2.0


Record = collections.namedtuple("Record", "name value")


class Compared(tuple):
    """A tuple with Python code that C code enters."""

    def __lt__(self, other):
        return self[0] * 2.0 < other[0] * 2.0

    @property
    def doubled(self):
        return self[0] * 2.0


def named_tuples(x):
    p = Point(x)._replace(b=x * x)
    q = Point._make(v * 2 for v in p)
    r = Record("r", q)
    s = tuple.__new__(Compared, [x, 1.0])
    t = tuple.__new__(Compared, np.array([0.5, x]))
    return q.a * q.b + r.value.a * min(s, t).doubled + Point(*q)[1] + t[1] * sum(p._asdict().values())


def getters(x):
    rows = [{"v": x * k, "k": k} for k in range(4)]
    points = [Point(x, k * x) for k in range(3)]
    best = max(points, key=operator.attrgetter("b"))
    first, last = operator.itemgetter(0, -1)(points)
    y = sum(map(operator.itemgetter("v"), rows)) + operator.attrgetter("a.real")(best) * last.b + first.a
    return y + operator.itemgetter(1)(np.array([1.0, x])) * operator.methodcaller("_replace", a=3 * x)(best).a


def partials(x):
    double = functools.partial(lambda u, v, w=1.0: u * v * w, x)
    nested = functools.partial(double, w=x)
    return double(3.0) + nested(2.0) + functools.partial(max, x)(0.1) + functools.partial(operator.mul, x)(x)


def lambdas_without_closures(x):
    total = 0.0
    for k in range(5):
        total = functools.reduce(lambda s, v: s + 0.5 * v * v, [x, x * k, total])
        total += sorted([(k, x), (0.5, x * x)], key=lambda row: row[0])[0][1]
        total = list(itertools.accumulate([total, x], lambda s, v, w=0.1: s + w * v))[-1]
    return total


def generators_sent_to(x):
    def scaled(rate):
        while True:
            given = yield rate * x
            rate = rate if given is None else given

    g = scaled(2.0)
    return next(g) + g.send(x) + next(g) * next(scaled(x * x))


PROGRAMS = [named_tuples, getters, partials, lambdas_without_closures, generators_sent_to]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_their_derivatives_are_those_of_differences(f):
    x, h = 0.7, 1e-4
    slope = (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)
    gradient = plaingrad.grad(f)
    for _ in range(3):
        assert gradient(x) == pytest.approx(slope, rel=1e-9)
    y, y_dot = plaingrad.jvp(f, (x,), (1.0,))
    assert (y, y_dot) == (f(x), pytest.approx(slope, rel=1e-9))
    bent = (gradient(x + h) - gradient(x - h)) / (2 * h)
    assert plaingrad.hvp(f, (x,), (1.0,))[0] == pytest.approx(bent, rel=1e-5)
    assert plaingrad.grad(gradient)(x) == pytest.approx(bent, rel=1e-5)


def test_a_partial_with_a_rule_of_its_own_is_differentiated_by_that():
    cube = functools.partial(pow, exp=3)

    def f(x):
        return cube(x)

    assert plaingrad.grad(f)(2.0) == pytest.approx(12.0)

    @plaingrad.rrule(cube)
    def cube_rrule(x):
        return x**3, lambda z_bar: (100.0 * z_bar,)

    try:
        assert plaingrad.grad(f)(2.0) == 100.0
    finally:
        plaingrad.remove_rule(cube)
    assert plaingrad.grad(f)(2.0) == pytest.approx(12.0)


def test_tuples_are_made_as_without_a_derivative():
    def f(x, make):
        made = make(x)
        return x * 2.0 if made is not None else x

    for make in (
        lambda x: tuple.__new__(int, (x,)),
        lambda x: tuple.__new__(Point, 5),
        lambda x: tuple.__new__(),
        lambda x: tuple.__new__(Point, (x,), 3),
    ):
        with pytest.raises(TypeError) as plain:
            f(1.0, make)
        with pytest.raises(TypeError) as derived:
            plaingrad.grad(f)(1.0, make)
        assert str(derived.value) == str(plain.value)
    kept = (1.0, 2.0)
    same = []
    plaingrad.grad(lambda x: same.append(tuple.__new__(tuple, kept) is kept) or x)(1.0)
    assert same == [True]


def test_getters_and_lambdas_are_let_go():
    held = []

    def f(x):
        g = functools.partial(lambda a: a * x)
        held.append(weakref.ref(g.func))
        held.append(weakref.ref(g))
        y = g(2.0)
        h = lambda a: a * 2.0  # noqa: E731
        held.append(weakref.ref(h))
        return h(y)

    assert plaingrad.grad(f)(3.0) == 4.0
    assert [r() for r in held] == [None] * 3
