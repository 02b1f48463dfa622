"""Hazard 7, where a special method is no function: what its `__get__` gives, or its `__call__`, is entered by C code."""

import functools
import operator
import sys
from unittest import mock

import numpy as np
import pytest
from cases_b import check

import plaingrad

LOG = []


def logged(work):
    """The sum of what `work` logs."""

    def f(x):
        LOG.clear()
        work(x)
        return sum(LOG)

    return f


class Gives:
    """A descriptor that gives a function which it makes."""

    def __init__(self, k):
        self.k = k

    def __get__(self, instance, owner=None):
        return lambda t: instance.v * t * self.k


class Bound:
    """What another descriptor gives."""

    def __init__(self, v):
        self.v = v

    def __call__(self, t):
        return self.v * t


class OnlyOfInstances:
    """A descriptor that cannot be asked without an instance."""

    def __get__(self, instance, owner=None):
        return Bound(instance.v * 2.0)


class Called:
    """An object that is called without the instance."""

    def __call__(self, t):
        return t * t


def scaled(self, k, *args):
    return self.v * k


class Number:
    """Its special methods are descriptors of the standard library."""

    def __init__(self, v):
        self.v = v

    @functools.singledispatchmethod
    def __mul__(self, other):
        return self.v * other

    @__mul__.register(list)
    def times_list(self, other):
        return self.v * other[0]

    @functools.singledispatchmethod
    def __eq__(self, other):
        LOG.append(self.v * other)
        return False

    @functools.singledispatchmethod
    def __lt__(self, other):
        LOG.append(self.v * other.v)
        return False

    @functools.singledispatchmethod
    def __getitem__(self, k):
        return self.v * k

    @functools.singledispatchmethod
    def __radd__(self, other):
        return other + self.v * self.v

    __hash__ = None
    __call__ = functools.partialmethod(lambda self, k, t: self.v * k * t, 2.0)
    __neg__ = functools.partialmethod(scaled, 3.0)
    __float__ = functools.partialmethod(scaled, 3.0)
    __enter__ = functools.partialmethod(scaled, 3.0)
    __exit__ = functools.partialmethod(lambda self, k, *args: LOG.append(self.v * k), 4.0)
    __iter__ = functools.partialmethod(lambda self, k: iter([self.v * k]), 3.0)
    __getattr__ = functools.partialmethod(lambda self, k, name: self.v * k, 3.0)
    __format__ = functools.partialmethod(lambda self, k, spec: (LOG.append(self.v * k), "")[1], 3.0)
    twice = functools.partialmethod(lambda self, k, t: self.v * k * t, 2.0)


class Given:
    """Its special methods are descriptors of the program, and objects."""

    def __init__(self, v):
        self.v = v

    __call__ = Gives(2.0)
    __mul__ = Gives(2.0)
    plain = Gives(2.0)
    __pow__ = Called()
    __neg__ = functools.partial(lambda *bound: LOG[-1] * (2.0 + len(bound)))

    def times(self, other):
        return self.v * other.v


def product(k, *factors):
    """`k` times what was noted last, times the factors, of which the object that a special method is of may be one."""
    y = k * LOG[-1]
    for factor in factors:
        y = y * getattr(factor, "v", factor)
    return y


class Halved(functools.partial):
    """A partial whose class has its own call."""

    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs) / 2.0


class Subclassed(functools.partial):
    """A partial of another class."""


SUBCLASSED, HALVED = Subclassed(lambda k, a=1.0, b=1.0: k * a * b, 2.0), Halved(lambda k, a=1.0, b=1.0: k * a * b, 2.0)


class Static(staticmethod):
    """A static method of another class."""


class Partly:
    """Its special methods are partials, which are bound to it since Python 3.14; its properties are no functions."""

    def __init__(self, v):
        self.v = v
        LOG.append(v)

    __neg__ = functools.partial(product, 2.0)
    __getitem__ = functools.partial(functools.partial(product), 2.0)
    __call__ = functools.partial(product, 2.0)
    __mul__ = functools.partial(product, 2.0)
    __pos__ = staticmethod(functools.partial(product, 2.0))
    partly = property(functools.partial(product, 2.0))
    by_method = property(Given(2.0).times)
    cached = property(functools.partial(functools.lru_cache(product), 2.0))

    def __hash__(self):
        return hash(self.v)

    def __eq__(self, other):
        return self.v == other.v


class Asked:
    """Called through an object that is made for each call."""

    def __init__(self, v):
        self.v = v

    __call__ = OnlyOfInstances()


def entered(x):
    LOG.clear()
    with Number(x) as y:
        pass
    return y + sum(LOG)


def negated(x):
    LOG.append(x)
    return -Given(x)


BOUND = sys.version_info >= (3, 14)


def slope_of_twice(n):
    """Of 2 x ** n at 1.5."""
    return 2.0 * n * 1.5 ** (n - 1)


PROGRAMS = {
    "mul": (lambda x: Number(x) * 3.0 + Number(x) * [2.0], 5.0),
    "mul of active": (lambda x: Number(x) * x, 3.0),
    "reduce": (lambda x: functools.reduce(operator.mul, [Number(x), x]), 3.0),
    "call": (lambda x: Number(x)(3.0) + Number(x)(x), 6.0 + 4.0 * 1.5),
    "map": (lambda x: sum(map(Number(x), [3.0, x])), 6.0 + 4.0 * 1.5),
    "count": (logged(lambda x: [Number(x)].count(2.0)), 2.0),
    "sorted": (logged(lambda x: sorted([Number(x), Number(3.0)])), 3.0),
    "item": (lambda x: Number(x)[2.0] + Number(x)[x], 5.0),
    "sum": (lambda x: sum([Number(x)]) + (x + Number(x)), 3.0 + 1.0 + 3.0),
    "neg": (lambda x: -Number(x), 3.0),
    "float": (lambda x: float(Number(x)), 3.0),
    "with": (entered, 7.0),
    "iter": (lambda x: sum(Number(x)), 3.0),
    "getattr": (lambda x: Number(x).missing, 3.0),
    "format": (logged(lambda x: f"{Number(x)}"), 3.0),
    "method": (lambda x: Number(x).twice(x), 6.0),
    "given call": (lambda x: Given(x)(3.0) + Given(x)(t=x), 6.0 + 6.0),
    "given map": (lambda x: sum(map(Given(x), [3.0, x])), 6.0 + 6.0),
    "given mul": (lambda x: Given(x) * 3.0 + Given(x) * x, 6.0 + 6.0),
    "given method": (lambda x: Given(x).plain(x), 6.0),
    "objects": (lambda x: (np.array([Given(x), Given(1.0)], object) * 3.0).sum(), 6.0),
    "an object called": (lambda x: Given(2.0) ** x, 3.0),
    "a partial": (negated, 2.0 + BOUND),
    "a partial neg": (lambda x: -Partly(x), slope_of_twice(1 + BOUND)),
    "a partial item": (lambda x: Partly(x)[x], slope_of_twice(2 + BOUND)),
    "a partial call": (lambda x: Partly(x)(x), slope_of_twice(2 + BOUND)),
    "a partial map": (lambda x: sum(map(Partly(x), [x])), slope_of_twice(2 + BOUND)),
    "a partial mul": (lambda x: Partly(x) * x, slope_of_twice(2 + BOUND)),
    "a static partial": (lambda x: +Partly(x), 2.0),
    "a property by a partial": (lambda x: Partly(x).partly, slope_of_twice(2)),
    "a property by a method": (lambda x: Partly(x).by_method, 2.0),
    "a subclass of partial": (lambda x: SUBCLASSED(b=x) * x + sum(map(SUBCLASSED, [3.0], [x])), 12.0),
    "a partial with its own call": (lambda x: HALVED(b=x) * x + sum(map(HALVED, [3.0], [x])), 6.0),
    "a subclass made there": (lambda x: Subclassed(pow, x)(3.0) * Halved(max, x)(1.0), 2 * 1.5**3),
    "a subclass in C": (lambda x: functools.reduce(Subclassed(pow), [x, 3.0]), 3 * 1.5**2),
    "a subclass of staticmethod": (lambda x: Static(lambda t: t * x)(x), 3.0),
    "a property by a cache": (lambda x: Partly(x).cached + Partly(x * 1.0).cached, 2.0 * slope_of_twice(2)),
    "a property by C": (lambda x: sum(map(operator.attrgetter("partly"), [Partly(x)])), slope_of_twice(2)),
    "of instances": (lambda x: Asked(x)(3.0) + sum(map(Asked(x), [x])), 6.0 + 6.0),
    "operator": (lambda x: operator.call(Number(x), x) if hasattr(operator, "call") else 2.0 * x * x, 6.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:functools.partial:FutureWarning")
def test_special_methods_that_are_no_functions(name):
    f, slope = PROGRAMS[name]
    check(f, 1.5, slope)
    assert plaingrad.derivative(f)(1.5) == pytest.approx(slope, rel=1e-12)
    second = plaingrad.grad(plaingrad.grad(f))(1.5)
    h = 1e-3
    assert second == pytest.approx((f(1.5 + h) + f(1.5 - h) - 2.0 * f(1.5)) / h**2, abs=1e-6)


@pytest.mark.parametrize("mode", [plaingrad.grad, plaingrad.derivative])
def test_special_methods_that_the_program_makes_objects(mode):
    def f(x):
        class Later:
            def __init__(self, v):
                self.v = v

            def __call__(self, t):
                return self.v * t

            def __mul__(self, t):
                return self.v * t

        later = Later(x)
        y = later(1.0) + later * 1.0
        Later.__call__ = functools.partialmethod(lambda self, k, t: self.v * k * t, x)
        Later.__mul__ = Gives(x)
        return y + later(2.0) + sum(map(later, [1.0])) + later * 1.0  # 2 x + 4 x^2

    assert mode(f)(1.5) == pytest.approx(2.0 + 8.0 * 1.5, rel=1e-12)


def test_everybody_sees_the_descriptors_as_they_are():
    partials = {name: value for name, value in vars(Number).items() if isinstance(value, functools.partialmethod)}

    def f(x):
        y = -Number(x)
        assert type(Number(1.0).twice) is functools.partial
        assert all(vars(Number)[name] is value for name, value in partials.items())
        return y

    before = functools.partialmethod.__get__.__code__
    assert plaingrad.grad(f)(1.5) == 3.0
    assert functools.partialmethod.__get__.__code__ is before and -Number(2.0) == 6.0


class E:
    """What is mocked."""

    def __init__(self, v):
        self.v = v

    def method(self, t):
        return self.v * t

    @property
    def half(self):
        return self.v / 2.0


def test_mocks_made_by_the_program():
    # A class gets its version when an attribute is looked up, which must not be one that a mock makes on the way.
    def f(x):
        e = E(x)
        with mock.patch.object(E, "method", side_effect=lambda t: t * x) as mocked:
            y = e.method(x)
        mocked.assert_called_once_with(x)
        with mock.patch.object(E, "method", autospec=True, side_effect=lambda self, t: self.v * t * x):
            y = y + e.method(2.0)
        with mock.patch.object(E, "half", new_callable=mock.PropertyMock, return_value=x * x):
            y = y + e.half
        with mock.patch.object(e, "method", wraps=e.method):
            y = y + e.method(x)
        magic = mock.MagicMock()
        magic.__mul__.side_effect = lambda other: other * x
        return y + magic * x + e.half  # (1 + 2 + 1 + 1 + 1) x^2 + x / 2

    check(f, 1.5, 12.0 * 1.5 + 0.5)
    assert plaingrad.derivative(f)(1.5) == pytest.approx(12.0 * 1.5 + 0.5, rel=1e-12)


@pytest.mark.parametrize("slope", [plaingrad.grad, plaingrad.derivative])
@pytest.mark.filterwarnings("ignore:functools.partial:FutureWarning")
def test_partials_fail_as_in_a_plain_call(slope):
    class Few:
        __neg__ = functools.partial(lambda: LOG[-1])
        __pos__ = functools.partial(lambda a: a.missing)
        few = property(functools.partial(lambda: LOG[-1]))

    def outcomes(x):
        seen = []
        LOG.append(x)
        for program in (lambda: -Few(), lambda: +Few(), lambda: Few().few, lambda: functools.reduce(Few.few, [])):
            try:
                seen.append(float(program()))
            except (TypeError, AttributeError) as error:
                seen.append((type(error), str(error)))
        return seen

    plain, seen = outcomes(1.5), []
    assert slope(lambda x: (seen.extend(outcomes(x)), x * x)[1])(1.5) == 3.0
    assert seen == plain and len(seen) == 4
