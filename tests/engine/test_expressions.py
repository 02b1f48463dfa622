"""Several operations evaluated in one call: values, derivatives, exceptions and references are those of one by one."""

import gc
import math
import sys
import threading
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import plaingrad
import pytest


@dataclass
class Point:
    x: float
    y: float

    @property
    def area(self):
        return self.x * self.y + 0.5 * self.x

    @property
    def slope(self):  # takes a derivative itself, in the middle of an expression
        return plaingrad.grad(lambda t: t * t * self.x + t)(self.y)

    def __add__(self, other):
        return Point(self.x + other.x * 2, self.y * other.y - 1)


class Real(float):
    """A float of another class."""


RATE = 0.7
TABLE = {"a": 1.5, "b": [2.0, 3.0]}


def attributes(x, y):
    p = Point(x, y)
    p.x += p.y * p.x * 0.5
    p.y = p.x * p.x - p.area / (p.y + 3)
    return p.x * p.area - p.slope * p.y


def items(x, y):
    a = [[x, y], [x * y, 2.0]]
    a[1][0] += a[0][1] * a[1][1] - x
    a[0][1] = -a[1][0] * TABLE["b"][1] + TABLE["a"] ** 2
    d = {"k": x * y + 1, 3: y}
    d["k"] *= a[0][1] / d[3] - 2
    return d["k"] * a[1][0] + sum(v[0] * v[1] for v in a)


def whole(x, y):
    n, m = 3, 2
    k = (n * m + 1) % 4 - 2 * n // m
    return x * n**m + k * y - (n - 2) * x / m + x * True + (1 << n) * y - (7 & n) * x * x


def powers(x, y):
    return x**2 * y**3 - y**-2 + x**y * 2.0 - 2.0**x * y + (x * y) ** 0.5 + x**0 * y + x**1 * y**65 * 1e-3


def functions(x, y):
    a = math.sin(x) * math.cos(y) + math.exp(x * y) - math.tanh(x)
    a -= math.log(x) * math.sqrt(y) + math.atan(x / y) * math.tan(y * 0.1)
    return a * math.log10(y) + math.erf(x) * math.expm1(y) - math.log(x, 2) * abs(-x) * math.fabs(y)


def choices(x, y):
    p = Point(x, y)
    if (
        p.x * p.y < p.y + 10
        and x * 2 <= 7
        and not p.y * 3 == x
        and p.x - 1 != 0
        and y * y > 0
        and 5 >= x * x - y
    ):
        return p.x * 3 - p.y
    return p.y * p.x


def numpys(x, y):
    a = np.array([x, y, x * y])
    b = a * a[0] + 2 * a[::-1] - a.T / (a[1] + 3)
    b[1:] += a[:2] * x - 1
    b[0] *= a[2] * y - a.size
    a **= 2
    a /= 1 + b * b
    z = np.float64(2.0) * x + np.float64(y) * a[1]
    return (a * b).sum() * z + np.dot(a, b) - (a @ b) * y


def complexes(x, y):
    z = complex(x, y) * 2j + x
    w = z * z / (z - 1) + y * z
    return (w * w.conjugate()).real * x - w.imag * 2 + abs(w) * 0.1


def closures(x, y):
    total = 0.0

    def add(v):
        nonlocal total
        total += v * x - total * y
        return total * RATE + v

    def twice(v):
        return v * (lambda t: t * y + x)(v) * 2

    return add(y) * twice(x) + add(2.0) * total + max(x * 2, y * 3) - min(x * x, y * 9) * len([x, y])


def others(x, y):
    p = Point(x, y) + Point(y, x) + Point(1.0, 2.0)
    text = "ab" * 2 + "c"
    return p.x * p.y * len(text) + Real(2.0) * x + x * Real(3.0) * y + float(Fraction(1, 2) * 3) * x


def generators(x, y):
    def values():
        for k in range(3):
            got = yield x * k + y
            assert got is None or got > k * 0.5 - 1

    v = values()
    return next(v) * 2 + v.send(1.0) * x - sum(t * t * y for t in values()) * 0.1


class Holder:
    """What is found under the name of a method: functions, class methods, values kept in the object, others' methods."""

    def __init__(self, inner, rate):
        self.inner, self.rate = inner, rate
        self.kept = inner.weight  # a method of another object
        self.own = lambda v: v * rate

    def weight(self, v, power=2):
        return self.rate * v**power

    @classmethod
    def made(cls, v):
        return v * v + 1

    @staticmethod
    def still(v):
        return v * 3

    def __getattr__(self, name):
        return getattr(self.inner, name[:-1]) if name.endswith("_") else super().__getattribute__(name)


class Weight:
    def __init__(self, scale):
        self.scale = scale

    def weight(self, v, power=3):
        return self.scale * v * power


def methods(x, y):
    h = Holder(Weight(y), x)
    outer = Holder(h, y)
    total = outer.inner.weight(y) + outer.inner.inner.weight(x, power=2) * outer.inner.kept(x)
    total -= outer.inner.own(y) * outer.inner.made(x) + outer.inner.still(y) * [h][0].inner.weight(2.0)
    total *= outer.inner.weight_(x) + {"h": h}["h"].rate.conjugate() - (outer.inner.rate * y).real
    return total + outer.inner.weight(*[x], **{"power": 3}) * RATE.real


def of_two(x, y):
    a = math.atan2(x * 2, y) * 3 + math.hypot(x, y * y) / (1 + math.hypot(x, 2)) - math.pow(x, y) * 2
    a += math.fmod(x * 3, 0.5) * y - math.copysign(x * y, -1.0) + math.log(x * 3, 2.0 + y)
    return a * math.degrees(math.radians(x * y) * 0.1) + math.fabs(-x) * abs(x - 9) * y


def still_powers(x, y):
    n = -3
    return (
        (x * y) ** 2.4
        + x ** (1 / 3) * (y + 1) ** -1.5
        + (x + y) ** -2 * x**n
        - (x * 2.0) ** 0.0
        + (-x) ** 3 * (-y) ** 2.0
    )


PROGRAMS = [
    methods,
    of_two,
    still_powers,
    attributes,
    items,
    whole,
    powers,
    functions,
    choices,
    numpys,
    complexes,
    closures,
    others,
    generators,
]
POINTS = [(0.7, 1.3), (1.9, 0.6)]


def differences(f, x, d):
    """The derivative of f at x along d, by Richardson's extrapolation."""
    h = 2e-3
    first, second, third = (
        (f(*(np.add(x, h / k * np.array(d)))) - f(*(np.subtract(x, h / k * np.array(d))))) / (2 * h / k)
        for k in (1, 2, 4)
    )
    a, b = (4 * second - first) / 3, (4 * third - second) / 3
    return (16 * b - a) / 15


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("at", POINTS)
def test_values_and_derivatives(f, at):
    d = (0.6, -0.8)
    expected = differences(lambda *v: float(f(*map(float, v))), at, d)
    value, gradient = plaingrad.value_and_grad(f, (0, 1))(*at)
    assert type(value) is type(f(*at)) and value == f(*at)
    assert gradient[0] * d[0] + gradient[1] * d[1] == pytest.approx(expected, rel=1e-7, abs=1e-7)
    pushed = plaingrad.jvp(f, at, d)
    assert pushed[0] == value and pushed[1] == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    at, d = POINTS[0], (0.6, -0.8)

    def along(*v):
        return np.dot(plaingrad.grad(f, (0, 1))(*map(float, v)), d)

    expected = differences(along, at, d)
    product = plaingrad.hvp(f, at, d)
    assert np.dot(product, d) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    twice = plaingrad.grad(lambda x, y: np.dot(plaingrad.grad(f, (0, 1))(x, y), d), (0, 1))(*at)
    assert twice == pytest.approx(product, rel=1e-8, abs=1e-8)
    nested = plaingrad.jvp(
        lambda t: plaingrad.jvp(f, (at[0] + t * d[0], at[1] + t * d[1]), d)[1], (0.0,), (1.0,)
    )[1]
    assert nested == pytest.approx(np.dot(product, d), rel=1e-8, abs=1e-8)


RAISING = {
    "division": lambda x, o: x * 2 / (x - x) + 1,
    "whole division": lambda x, o: x * (3 // (o.n - 2)),
    "zero to a negative power": lambda x, o: (x - x) ** -1 * 2,
    "overflow of a power": lambda x, o: (x * 1e200) ** 2 + 1,
    "overflow of a function": lambda x, o: math.exp(x * 1e4) * 2,
    "domain": lambda x, o: math.sqrt(-x * 2) + 1,
    "log of zero": lambda x, o: math.log(x - x) * 2,
    "infinite angle": lambda x, o: math.sin(x * math.inf) * 2,
    "whole numbers too large": lambda x, o: x * 2 + 10**400,
    "no attribute": lambda x, o: x * o.missing + 1,
    "no item": lambda x, o: x * o.list[7] - 1,
    "types": lambda x, o: x * 2 + "text",
    "property": lambda x, o: x * o.fails + 1,
    "assignment": lambda x, o: setattr(o, "n", 2) or o.list.__setitem__(9, x * 2),
    "comparison": lambda x, o: x * 2 < o,
    "not callable": lambda x, o: (lambda sin: sin(x) * 2 + 1)(3),
    "argument of a function": lambda x, o: math.cos(o) * 2,
    "zero to a fraction": lambda x, o: ((x - x) * 2) ** -0.5 + 1,
    "negative to a fraction": lambda x, o: ((x * 2) - 100) ** 0.5 < o,
    "overflow of a fraction": lambda x, o: (x * 1e200) ** 2.5 + 1,
    "no method": lambda x, o: x * o.list.missing(x),
    "no method of an attribute": lambda x, o: o.n.missing(x),
    "one argument too many": lambda x, o: math.hypot(x * 2, o) + 1,
    "negative of an object": lambda x, o: -o * x,
}


class Failing:
    n, list = 2, [1.0]

    @property
    def fails(self):
        raise KeyError("of the program's own")


@pytest.mark.parametrize("name", RAISING)
def test_exceptions_are_those_of_the_plain_call(name):
    f = RAISING[name]

    def raised(call):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            call()
        frames = [frame for frame in caught.traceback if str(frame.path) == __file__]
        return caught.type, str(caught.value), frames[-1].lineno

    expected = raised(lambda: f(1.5, Failing()))
    assert raised(lambda: plaingrad.grad(f)(1.5, Failing())) == expected
    assert raised(lambda: plaingrad.jvp(lambda x: f(x, Failing()), (1.5,), (1.0,))) == expected


def test_special_values_keep_their_bits():
    def f(x, y):
        return [x * y, x / y, -x * 1.0, x - y + 0.0, x * x**2, x * 0.0 - y, math.sqrt(x * x) * y]

    for x in (0.0, -0.0, math.inf, math.nan, 5e-324, 1e150, -3.0):
        for y in (1.0, -math.inf, math.nan, 1e-310):
            expected = f(x, y)
            got = plaingrad.vjp(f, x, y)[0]
            assert [v.hex() for v in got] == [v.hex() for v in expected]


def test_a_comparison_with_a_large_whole_number_is_exact():
    large = 2**53 + 1

    def f(x):
        return x * 2 if x * 1.0 < large else x * 3

    assert plaingrad.grad(f)(2.0**53) == 2.0
    assert plaingrad.grad(lambda x: x * 5 if x * 1.0 == large else x * 7)(2.0**53) == 7.0


def test_a_value_that_is_only_read_stays_the_same_object():
    p = Point(1.0, 2.0)
    seen = []

    def f(x):
        p.x, box = x, [[x, 3.0]]
        seen.append(p.x is box[0][0])
        return box[0][0] * p.x

    assert plaingrad.grad(f)(3.0) == 6.0 and seen == [True]


def test_nothing_is_held_and_nothing_is_released_twice():
    class Held:
        alive = 0

        def __init__(self, v):
            type(self).alive += 1
            self.v = v

        def __del__(self):
            type(self).alive -= 1

        def __mul__(self, other):
            return Held(self.v * other)

        def __add__(self, other):
            if other == 1:
                raise ValueError("of the program's own")
            return Held(self.v + other)

    def f(x, last):
        h = Held(x)
        try:
            return (h * 2 * x + last).v * h.v
        except ValueError:
            return h.v * x

    marker = object()
    count = sys.getrefcount(marker)
    for last in (0.0, 1):
        for _ in range(50):
            plaingrad.grad(f)(1.5, last)
            plaingrad.jvp(lambda x, last=last: f(x, last), (1.5,), (1.0,))
            plaingrad.grad(lambda x: [x * 2, marker][0] * x)(1.0)
    gc.collect()
    assert Held.alive == 0 and sys.getrefcount(marker) == count


def test_lookups_alone_hold_nothing_whether_they_succeed_or_fail():
    class Node:
        def __init__(self, **fields):
            self.__dict__.update(fields)

        def scaled(self, x):
            return self.factor * x

    leaf = Node(factor=2.0, parts=[[3.0, None], {"k": (4.0,)}])
    root, name = Node(next=Node(leaf=leaf)), "k"

    def f(x, k):
        y = root.next.leaf.scaled(x) * x
        try:
            return root.next.leaf.parts[1][name][k] * y
        except IndexError:
            pass
        try:
            return root.next.leaf.missing.scaled(x)
        except AttributeError:
            return leaf.parts[0][0] * root.next.leaf.factor * y

    watched = [root, root.next, leaf, leaf.parts, leaf.parts[1]]
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(60):
        assert plaingrad.grad(f)(1.5, 0) == 24.0
        assert plaingrad.grad(f)(1.5, 1) == 36.0
        assert plaingrad.jvp(lambda x: f(x, 1), (1.5,), (1.0,))[1] == 36.0
    gc.collect()
    assert [sys.getrefcount(x) for x in watched] == before


def test_operators_of_whole_numbers_inside_expressions():
    def f(x, n, m):
        rows = [x * k for k in range(9)]
        return (
            rows[n // m] * 2.0 + rows[n % m] * x + rows[n & m] + rows[n >> 1] * (n ^ m) + rows[(n | m) // 3]
        )

    def g(n, m):
        return plaingrad.grad(f)(0.5, n, m)

    assert g(7, 4) == 1 * 2.0 + 2 * 3 * 0.5 + 4 + 3 * 3 + 2
    with pytest.raises(ZeroDivisionError):
        g(7, 0)


def test_a_long_loop_over_attributes():
    def f(x):
        o = Point(x, 1.0)
        for _ in range(30_000):
            o.x = o.x * 1.0001 - o.y * 1e-5 + o.x * 1e-6
        return o.x

    step = 1.0001 + 1e-6
    assert plaingrad.jvp(f, (1.0,), (1.0,))[1] == pytest.approx(step**30_000, rel=1e-9)
    assert plaingrad.grad(f)(1.0) == pytest.approx(step**30_000, rel=1e-9)


def test_several_threads_on_one_level():
    def f(x):
        results = [0.0] * 4

        def work(k):
            o = Point(x, 1.0 + k)
            for _ in range(300):
                o.x += o.y * o.x * 1e-3 - o.x * 1e-4
            results[k] = o.x

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(results)

    expected = sum((1 + (1 + k) * 1e-3 - 1e-4) ** 300 for k in range(4))
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        assert plaingrad.grad(f)(1.3) == pytest.approx(expected, rel=1e-12)
    finally:
        sys.setswitchinterval(old)
