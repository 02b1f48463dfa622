"""Ordinary Python data natively: classes, dataclasses, lists, dictionaries, closures; against the plain tier."""

import textwrap
import dataclasses
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import plaingrad
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass
class Spring:
    stiffness: float
    length: float


class Point(NamedTuple):
    x: float
    y: float


class Vector:
    def __init__(self, x, y, z=0.0):
        self.x = x
        self.y = y
        self.z = z

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    __rmul__ = __mul__

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    @property
    def norm(self):
        return math.sqrt(self.dot(self))


class Account:
    rate = 0.02

    def __init__(self, balance):
        self.balance = balance

    def grow(self, years=1):
        for _ in range(years):
            self.balance = self.balance * (1.0 + self.rate)


class Shape:
    def twice(self):
        return 2.0 * self.area()


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2


class Disc(Shape):
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pi * self.radius**2


def leaves(x):
    if x is None:
        return []
    if isinstance(x, plaingrad.Tangent):
        return [v for part in x.values() for v in leaves(part)]
    if isinstance(x, dict):
        return [v for part in x.values() for v in leaves(part)]
    if isinstance(x, (list, tuple)):
        return [v for part in x for v in leaves(part)]
    return list(np.ravel(x))


def check(f, *args):
    y, native = plaingrad.value_and_grad(f, tier="native")(*args)
    expected, plain = plaingrad.value_and_grad(f, tier="plain")(*args)
    assert type(native) is type(plain)
    np.testing.assert_allclose(y, expected, rtol=1e-13)
    np.testing.assert_allclose(leaves(native), leaves(plain), rtol=1e-11, atol=1e-13)
    return native


def orbit(x, steps):
    place, speed = Vector(x, 0.0), Vector(0.0, 1.0)
    for _ in range(steps):
        speed = speed + place * (-1.0 / place.norm**3) * 0.01
        place = place + speed * 0.01
    return place.dot(place) + speed.x


def operators(x):
    a, b = Vector(x, 2.0, 1.0), Vector(1.0, x, x)
    return ((a + b) * 2.0 - 3.0 * b).dot(a)


def changed(x):
    account = Account(x)
    account.balance += 10.0
    account.grow(3)
    return account.balance * account.balance


def two_names(x):
    account = Account(x)
    other = account
    other.grow()
    return account.balance * other.balance


def inherited(x):
    return sum(shape.twice() for shape in [Square(x), Disc(x), Square(2.0 * x)])


def pairs(x):
    bodies = [Vector(x, 1.0), Vector(2.0, x), Vector(0.5, 0.1)]
    total = 0.0
    for i in range(3):
        for j in range(i):
            total += 1.0 / (bodies[i] - bodies[j]).norm
    return total


def path(x):
    places, place = [], Vector(x, 0.0)
    for _ in range(30):
        place = place + Vector(0.1, place.x * 0.1)
        places.append(place)
    return sum(p.norm for p in places)


def states(x):
    found = [[x, 1.0]]
    for _ in range(20):
        a, b = found[-1]
        found.append([a + 0.1 * b, b - 0.1 * a])
    return sum(a * b for a, b in found)


def simpson(f, a, b, n):
    h = (b - a) / n
    total = f(a) + f(b)
    for i in range(1, n):
        total += f(a + i * h) * (4.0 if i % 2 else 2.0)
    return total * h / 3.0


def integral(x):
    return simpson(lambda t: math.exp(-x * t * t), 0.0, 1.0, 10)


def keywords(x):
    def g(y, k=2.0, *, scale=1.0):
        return y * k * scale

    return g(x) + g(x, scale=3.0) + g(k=x, y=4.0)


def dictionary(x):
    d = {"a": x, "b": x * x}
    d["a"] += 1.0
    return sum(v for _, v in d.items()) * max(d.values())


def early(x):
    def root(a):
        y = a
        for _ in range(50):
            new = 0.5 * (y + a / y)
            if abs(new - y) < 1e-12:
                return Spring(new, y)
            y = new
        return Spring(y, y)

    found = root(x)
    return found.stiffness * found.length


def counter(x):
    count = 0

    def squared(y):
        nonlocal count
        count += 1
        return y * y * count

    return squared(x) + squared(x) + squared(x)


def in_order(x):
    a, b, c = sorted([x, 1.0, 3.0 - x])
    return a + 2.0 * b * c


def merged(x):
    best = Vector(0.0, 0.0)
    for k in range(5):
        each = Vector(x * k, math.sin(x * k))
        if each.y > best.y:
            best = each
    return best.x * best.y


MADE = [
    (orbit, 1.5, 50),
    (operators, 1.5),
    (changed, 100.0),
    (two_names, 2.0),
    (inherited, 1.5),
    (pairs, 1.5),
    (path, 1.5),
    (states, 1.5),
    (integral, 1.5),
    (keywords, 1.5),
    (dictionary, 1.5),
    (early, 1.5),
    (counter, 1.5),
    (in_order, 1.2),
    (merged, 0.7),
]


@pytest.mark.parametrize("program", MADE, ids=lambda p: p[0].__name__)
def test_objects_made_read_and_changed_inside_have_the_derivative_of_the_plain_tier(program):
    f, *args = program
    slope = check(f, *args)
    h = 1e-6
    rough = (f(args[0] + h, *args[1:]) - f(args[0] - h, *args[1:])) / (2 * h)
    assert math.isclose(slope, rough, rel_tol=1e-6)


def of_object(v):
    return v.dot(v) + v.norm


def of_springs(springs, x):
    return sum(s.stiffness * (x - s.length) ** 2 for s in springs)


def of_numbers(xs):
    total = 0.0
    for k, x in enumerate(xs):
        total += x * x * k
    return total / len(xs) + xs[3]


def of_nested(d):
    return d["p"].x * d["v"].norm + sum(d["w"]) * d["p"].y


def test_gradients_have_the_structure_of_arguments_that_are_objects():
    gradient = check(of_object, Vector(1.0, 2.0, 2.0))
    assert gradient.primal_type is Vector
    check(of_springs, [Spring(1.0 * k, 0.5) for k in range(40)], 2.0)
    assert check(of_numbers, [0.1 * k for k in range(200)])[3] == pytest.approx(1.0 + 2 * 0.3 * 3 / 200)
    check(of_nested, {"p": Point(1.0, 2.0), "v": Vector(1.0, 3.0), "w": [1.0, 2.0]})


def test_the_model_of_the_demo_runs_as_it_is(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import lotka_volterra

    record = lotka_volterra.read_record(EXAMPLES / "data" / "lynx_hare.csv")
    guess = lotka_volterra.Parameters(0.5, 0.05, 0.5, 0.05, 30.0, 4.0)
    check(lotka_volterra.misfit, guess, record)
    check(lotka_volterra.misfit, dataclasses.replace(guess, hare_growth=0.6), record[:15])
    del sys.modules["lotka_volterra"]


SCALE = 2.0


def scaled(x):
    return Spring(x, SCALE).stiffness * SCALE


def test_globals_and_classes_that_change_are_seen(monkeypatch):
    gradient = plaingrad.grad(scaled, tier="native")
    assert gradient(1.5) == 2.0
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5.0)
    assert gradient(1.5) == 5.0
    native = plaingrad.grad(lambda x: changed(x), tier="native")
    before = native(1.0)
    monkeypatch.setattr(Account, "rate", 0.5)
    assert native(1.0) != before
    assert native(1.0) == pytest.approx(plaingrad.grad(changed)(1.0))


def of_negative(x):
    v = Vector(x, 1.0)
    if v.x < 0.0:
        raise ValueError(f"negative: {v.x}")
    return math.sqrt(v.x)


def test_an_exception_says_what_it_says_in_python():
    assert plaingrad.grad(of_negative, tier="native")(4.0) == 0.25
    with pytest.raises(ValueError, match=r"negative: -2\.5"):
        plaingrad.grad(of_negative, tier="native")(-2.5)


def at_place(xs, k):
    return xs[k] * Spring(xs[0], 1.0).stiffness


def test_an_index_out_of_range_of_a_list_raises():
    xs = [0.5 * k + 1.0 for k in range(20)]
    gradient = plaingrad.grad(at_place, tier="native")
    assert gradient(xs, -1)[19] == 1.0
    with pytest.raises(IndexError):
        gradient(xs, 20)


def one_of_two(x, n):
    a, b = Account(x), Account(2.0 * x)
    c = a if n > 1 else b
    c.grow()
    return a.balance * b.balance


def iterator_twice(x):
    numbers = (k * x for k in [1.0, 2.0])
    return sum(numbers) + sum(numbers) + Spring(x, x).length


def list_times_number(xs, n):
    return sum(xs * n) * Spring(xs[0], 1.0).stiffness


REFUSED = [
    (one_of_two, "second name", 1.5, 3),
    (iterator_twice, "an iterator", 1.5),
    (list_times_number, "a list that is an argument", [1.0] * 20, 2),
]


@pytest.mark.parametrize("program", REFUSED, ids=lambda p: p[0].__name__)
def test_what_is_not_followed_is_refused_with_its_line(program):
    f, why, *args = program
    with pytest.raises(plaingrad.NativeError, match=why) as refused:
        plaingrad.grad(f, tier="native")(*args)
    assert "test_objects.py:" in str(refused.value)


@dataclass
class Item:
    price: float
    weight: float


def sorted_items(x):
    items = sorted([Item(3 - x, x), Item(x, x * x), Item(1.0, 2 * x)], key=lambda item: item.price)
    lightest = min([Item(3 - x, x), Item(x, x * x), Item(1.0, 2 * x)], key=lambda item: item.weight)
    return items[0].weight * 2 + items[1].weight * 3 + items[2].price * items[2].weight + 5 * lightest.price


def sorted_pairs(x):
    pairs = sorted([(x * x, 1.0), (x, 2.0), (1.0, x)], reverse=True)
    return pairs[0][0] * pairs[1][1] + pairs[2][0]


def key_with_a_branch(item):
    if item.price > 1.0:
        return Item(item.price, 0.0)
    return Item(2.0 - item.price, item.weight)


class Ranked:
    def __init__(self, rank, value):
        self.rank = rank
        self.value = value

    def __lt__(self, other):
        if self.rank > 2.0:
            return self.value < other.value
        return self.rank < other.rank

    def __gt__(self, other):
        return other < self


def ranked(item):
    key = key_with_a_branch(item)
    return Ranked(key.price, key.weight + item.weight)


def sorted_by_keys_that_branch(x):
    items = sorted([Item(3 - x, x), Item(x, x * x), Item(1.0, 2 * x)], key=lambda item: key_with_a_branch(item).price)
    least = min([Item(3 - x, x), Item(x, x * x), Item(1.0, 2 * x)], key=ranked)
    most = max([Item(3 - x, x), Item(x, x * x), Item(1.0, 2 * x)], key=ranked)
    return items[0].weight + 2 * items[1].weight + 3 * items[2].weight + 5 * least.price * least.weight + 7 * most.weight


@pytest.mark.parametrize("f", [sorted_items, sorted_pairs, sorted_by_keys_that_branch])
@pytest.mark.parametrize("x", [0.4, 1.3, 2.2, 5.0])
def test_objects_in_an_order_that_depends_on_numbers(f, x):
    check(f, x)
    assert plaingrad.grad(f, tier="native")(x) == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)


ON_ONE_LINE = [lambda x: Item(x, 1.0).price * 2.0, lambda x: Item(x, 2.0).price * x, lambda x: 1.0 + Item(x, x).weight]
WITH_A_CONSTANT = [lambda x: 1.0, lambda x: Item(x, 1.0).price * 3.0]  # CPython 3.12 does not say where a constant stands


def test_functions_that_begin_in_one_line_are_told_apart():
    for f, slope in zip(ON_ONE_LINE, (2.0, 3.0, 1.0), strict=True):
        assert plaingrad.grad(f, tier="native")(1.5) == slope
    try:
        assert plaingrad.grad(WITH_A_CONSTANT[1], tier="native")(1.5) == 3.0
    except plaingrad.NativeError:
        assert sys.version_info[:2] == (3, 12)


def test_a_method_in_a_page_that_is_not_python_as_a_whole_is_found_with_its_private_names(tmp_path):
    text = """
        class Spring:
            def __init__(self, stiffness):
                self.__stiffness = stiffness

            def energy(self, x):
                return self.__stiffness * x * x


        def stored(stiffness, x):
            return Spring(stiffness).energy(x)
        """
    page = tmp_path / "page.md"
    page.write_text("What follows is a class:\n" + textwrap.dedent(text))
    names = {"__name__": "page"}
    exec(compile("\n" + textwrap.dedent(text), str(page), "exec"), names)
    assert plaingrad.grad(names["stored"], argnums=(0, 1), tier="native")(2.0, 3.0) == (9.0, 12.0)
