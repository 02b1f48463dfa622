"""Programs in the ways in which users write them, with plain classes, lists and dictionaries, natively."""

import functools
import math
import operator
from dataclasses import dataclass, field

import numpy as np
import plaingrad
import pytest

from tests.sampling import ALL, is_in_sample

G = 9.81
LIMITS = {"low": 0.1, "high": 2.0}
NAMES = ["mass", "drag"]
COEFFICIENTS = [1.0, -0.5, 0.25]


@dataclass
class Layer:
    weights: np.ndarray
    bias: np.ndarray

    def __call__(self, x):
        return np.tanh(self.weights @ x + self.bias)


@dataclass
class Network:
    layers: list
    scale: float = 2.0
    tags: dict = field(default_factory=dict)


@dataclass
class Body:
    mass: float
    drag: float = 0.1

    @property
    def weight(self):
        return self.mass * G

    @classmethod
    def heavy(cls, mass):
        return cls(2.0 * mass, drag=0.2)

    @staticmethod
    def square(x):
        return x * x


class Complexish:
    __slots__ = ("re", "im")

    def __init__(self, re, im=0.0):
        self.re, self.im = re, im

    def __mul__(self, other):
        return Complexish(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __neg__(self):
        return Complexish(-self.re, -self.im)

    def __abs__(self):
        return math.hypot(self.re, self.im)

    def __eq__(self, other):
        return self.re == other.re and self.im == other.im

    def __lt__(self, other):
        return abs(self) < abs(other)

    def __getitem__(self, k):
        return (self.re, self.im)[k]

    def __len__(self):
        return 2


def network():
    return Network([Layer(np.eye(2) * k, np.ones(2) * 0.1) for k in (0.5, 1.5)])


def forward(net, x):
    for layer in net.layers:
        x = layer(x)
    return net.scale * np.sum(x**2)


def properties(b):
    return b.weight * Body.square(b.drag) + Body.heavy(b.mass).drag * b.mass


def special_methods(x):
    z = Complexish(x, 1.0) * Complexish(2.0, x)
    return abs(-z) + z[0] * len(z)


def zipped(xs, ys):
    return sum(x * y for x, y in zip(xs, ys))


def enumerated(xs):
    total = 0.0
    for k, x in enumerate(xs, start=1):
        total += k * x**2
    return total


def keyword_arguments(x):
    def weighted(a, b=2.0, *, c=1.0, **rest):
        return a * b + c + rest.get("d", 0.0)

    return weighted(x, c=x * x) + weighted(x, 3.0, d=x)


def star_arguments(x):
    def total(*parts):
        return sum(parts)

    return total(*[x, x * x, 3.0]) + max(*[x, 1.0])


def by_key(p):
    return p["mass"] * p["drag"] if "mass" in p else 0.0


def over_items(p):
    return sum(value * (2.0 if key == "mass" else 1.0) for key, value in p.items())


def filtered(xs):
    return sum(x for x in xs if x > 1.0)


def nested_comprehension(xs):
    return sum(a * b for a in xs for b in xs if a != b)


def lists_of_lists(xs):
    rows = [[x * k for k in range(3)] for x in xs]
    return sum(rows[i][2] * rows[i][1] for i in range(len(rows)))


def matrix_rows(m):
    total = 0.0
    for i, row in enumerate(m):
        for j, value in enumerate(row):
            total += value * (i + 1) * (j + 2)
    return total


def transposed(m):
    return sum(math.prod(column) for column in zip(*m))


def raises_with_text(x):
    if x < 0.0:
        raise ValueError(f"x is {x:.2f}, below {LIMITS['low']}")
    return math.sqrt(x)


def global_dictionary(x):
    return min(max(x, LIMITS["low"]), LIMITS["high"]) * x


def global_list(x):
    return sum(c * x**k for k, c in enumerate(COEFFICIENTS))


def names_of_fields(b):
    return sum(getattr(b, name) ** 2 for name in NAMES)


def lambdas(x):
    scale = x * x
    steps = [lambda y: y * scale, lambda y: y + scale]
    for step in steps:
        x = step(x)
    return x


def composed(x):
    def compose(f, g):
        return lambda y: f(g(y))

    return compose(math.sin, compose(math.exp, lambda y: y * 0.5))(x)


def reduced(xs):
    return functools.reduce(operator.mul, xs)


def reduced_by_lambda(xs):
    return functools.reduce(lambda a, b: a + b * b, xs, 0.0)


def array_of_list(x):
    a = np.array([x, x * x, 1.0])
    return np.dot(a, a)


def stacked(x):
    a = np.stack([np.array([x, 1.0]), np.array([x * x, 2.0])])
    return np.sum(a @ a.T)


def concatenated(v):
    parts = [v * k for k in (1, 2, 3)]
    return np.sum(np.concatenate(parts) ** 2)


def softmax(m):
    e = np.exp(m - m.max(axis=1, keepdims=True))
    return np.sum((e / e.sum(axis=1, keepdims=True))[:, 0])


def along_axes(m):
    return np.sum(m.mean(axis=0) * m.min(axis=-1, keepdims=True)) + m.std(axis=1)[0] + m.sum(axis=0, keepdims=True)[0, 1]


def as_integers(v):
    k = v.astype(int)
    return np.sum(v * k)


def sorted_numbers(xs):
    return sum(k * x for k, x in enumerate(sorted(xs)))


def smallest_by_key(bodies):
    return min(bodies, key=lambda b: b.mass).drag * max(b.mass for b in bodies)


def all_and_any(xs):
    return sum(xs) if all(x > 0.0 for x in xs) and any(x > 1.0 for x in xs) else 0.0


def counted_by_while(x):
    k = 0
    while x > 0.1 and k < 20:
        x, k = x * 0.7, k + 1
    else:
        x = x * 2.0
    return x


def searched(xs):
    for x in xs:
        if x > 1.5:
            break
    else:
        x = xs[0]
    return x * x


def appended(x, n):
    states = [Body(x)]
    for _ in range(n):
        last = states[-1]
        states.append(Body(last.mass * 0.9, last.drag + 0.01 * last.mass))
    return sum(s.drag for s in states)


def slices(xs):
    return sum(xs[1:]) - sum(xs[:-1]) + sum(xs[::2])


def inner_class_variable(b):
    table = {"a": b.mass, "b": b.drag}
    table["c"] = table["a"] * table["b"]
    del table["a"]
    return sum(table.values())


def tuple_swaps(xs):
    a, *rest = xs
    rest[0], rest[-1] = rest[-1], rest[0]
    return a * rest[0]


def chained(x):
    return x if 0.0 < x < abs(x) + 1.0 else -x


def walrus(x):
    if (y := x * x) > 1.0:
        return y * x
    return y


def lookup(x, kind):
    return {"linear": lambda u: u, "square": lambda u: u * u}[kind](x)


def joined_text(x):
    return x * len(", ".join(["a", "b"]))


XS = [0.7, 1.3, 2.1]
M = [[0.7, 1.3], [2.1, 0.4]]
PROGRAMS = [
    (forward, network(), np.array([0.3, -0.4])), (properties, Body(1.5)), (special_methods, 1.2),
    (zipped, XS, XS[::-1]), (enumerated, XS), (keyword_arguments, 1.2), (star_arguments, 1.2),
    (by_key, {"mass": 1.5, "drag": 0.3}), (over_items, {"mass": 1.5, "drag": 0.3}), (filtered, XS),
    (nested_comprehension, XS), (lists_of_lists, XS), (matrix_rows, M), (transposed, M), (raises_with_text, 1.2),
    (global_dictionary, 1.2), (global_list, 1.2), (names_of_fields, Body(1.5)), (lambdas, 1.2), (composed, 1.2),
    (reduced, XS), (reduced_by_lambda, XS), (array_of_list, 1.2), (stacked, 1.2), (concatenated, np.array(XS)),
    (softmax, np.array(M)), (along_axes, np.array(M)), (as_integers, np.array(XS)), (sorted_numbers, XS),
    (smallest_by_key, [Body(1.5, 0.2), Body(1.2, 0.3)]), (all_and_any, XS), (counted_by_while, 1.2), (searched, XS),
    (appended, 1.2, 5), (slices, XS), (inner_class_variable, Body(1.5)), (tuple_swaps, XS), (chained, 1.2),
    (walrus, 1.2), (lookup, 1.2, "square"), (joined_text, 1.2),
]  # fmt: skip


def leaves(x):
    if isinstance(x, dict | plaingrad.Tangent):
        x = list(x.values())
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, list | tuple) else [] if x is None else [x]


TRIED = [p for p in PROGRAMS if ALL or is_in_sample(p[0].__name__, 3)]


@pytest.mark.parametrize("program", TRIED, ids=lambda p: p[0].__name__)
def test_programs_as_users_write_them_have_the_derivative_of_the_plain_tier(program):
    f, *args = program
    value, gradient = plaingrad.value_and_grad(f, tier="native")(*args)
    expected, slope = plaingrad.value_and_grad(f, tier="plain")(*args)
    assert value == pytest.approx(expected, rel=1e-12)
    for a, b in zip(leaves(gradient), leaves(slope), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def changes_a_global(x):
    COEFFICIENTS.append(x)
    return COEFFICIENTS[0] * x


def largest_of_a_block(block):
    return np.sum(block.max(axis=0, keepdims=True))


@pytest.mark.parametrize("program", [(changes_a_global, "changed", 1.2), (largest_of_a_block, "3", np.ones((2, 2, 2)))])
def test_what_is_not_followed_is_refused(program, machine_code):
    f, why, *args = program
    with pytest.raises(plaingrad.NativeError, match=why):
        plaingrad.grad(f, tier="native")(*args)
    assert COEFFICIENTS == [1.0, -0.5, 0.25]


def test_global_lists_and_dictionaries_that_change_are_seen(monkeypatch):
    gradient = plaingrad.grad(global_list, tier="native")
    assert gradient(2.0) == pytest.approx(0.5)
    COEFFICIENTS[1] = 1.5
    try:
        assert gradient(2.0) == pytest.approx(2.5)
    finally:
        COEFFICIENTS[1] = -0.5
    monkeypatch.setitem(LIMITS, "high", 1.0)
    assert plaingrad.grad(global_dictionary, tier="native")(1.5) == 1.0
