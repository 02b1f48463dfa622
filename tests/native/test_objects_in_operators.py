"""Operators besides gradients natively, of functions of objects and with objects as results; against the plain tier."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import plaingrad
import pytest
from plaingrad import NativeError, Tangent


class Vector:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    def dot(self, other):
        return self.x * other.x + self.y * other.y


class Pair(NamedTuple):
    a: float
    b: float


@dataclass
class Model:
    weights: np.ndarray
    speed: Vector
    count: int
    name: str


def model():
    return Model(np.array([1.0, 2.0]), Vector(0.5, -0.3), 3, "m")


def direction():
    return Tangent(Model, {"weights": np.array([0.1, 0.2]), "speed": Tangent(Vector, {"x": 1.0, "y": 2.0})})


def energy(m, x):
    v = m.speed + Vector(x, x * x) * m.speed.x
    return v.dot(m.speed) * np.sum(m.weights * x)


def everything(m, x):
    v = m.speed + Vector(x, x * x) * m.speed.x
    return {"v": v, "p": Pair(x * m.speed.y, 2.0), "l": [x, m.weights * x], "name": m.name, "none": None, "n": 3}


def totals(vectors):
    total = 0.0
    for v in vectors:
        total += v.dot(v)
    return Pair(total, vectors[0].x)


def vectors():
    return [Vector(float(k), 2.0) for k in range(10)]


def cotangent():
    return {"v": Tangent(Vector, {"x": 1.0}), "p": Pair(1.0, 1.0), "l": [1.0, np.ones(2)]}


def applied(pair, *given):
    y, f = pair
    return y, f(*given)


CASES = {
    "jvp": lambda t: plaingrad.jvp(energy, (model(), 2.0), (direction(), 1.0), tier=t),
    "jvp with one held fixed": lambda t: plaingrad.jvp(energy, (model(), 2.0), (None, 1.0), tier=t),
    "jvp of objects": lambda t: plaingrad.jvp(everything, (model(), 2.0), (direction(), 1.0), tier=t),
    "jvp of a list": lambda t: plaingrad.jvp(
        totals, (vectors(),), ([Tangent(Vector, {"x": 1.0 * k}) for k in range(10)],), tier=t
    ),
    "jvp of a method": lambda t: plaingrad.jvp(
        Vector(1.0, 2.0).dot, (Vector(3.0, 4.0),), (Tangent(Vector, {"x": 1.0}),), tier=t
    ),
    "vjp": lambda t: applied(plaingrad.vjp(energy, model(), 2.0, tier=t), 1.5),
    "vjp by a whole number": lambda t: applied(plaingrad.vjp(energy, model(), 2, tier=t), 1.5),
    "vjp of objects": lambda t: applied(plaingrad.vjp(everything, model(), 2.0, tier=t), cotangent()),
    "hvp": lambda t: plaingrad.hvp(energy, (model(), 2.0), (direction(), 1.0), tier=t),
    "hvp with one held fixed": lambda t: plaingrad.hvp(energy, (model(), 2.0), (direction(), None), tier=t),
    "vhp with one held fixed": lambda t: plaingrad.vhp(energy, (model(), 2.0), (None, 1.0), tier=t),
    "jacobian": lambda t: plaingrad.jacobian(everything, tier=t)(model(), 2.0),
    "jacobian by both": lambda t: plaingrad.jacobian(everything, (1, 0), tier=t)(model(), 2.0),
    "jacobian by a whole number": lambda t: plaingrad.jacobian(everything, 1, tier=t)(model(), 2),
    "jacobian by a list": lambda t: plaingrad.jacobian(totals, tier=t)(vectors()),
    "hessian": lambda t: plaingrad.hessian(energy, (0, 1), tier=t)(model(), 2.0),
    "linearize": lambda t: applied(plaingrad.linearize(everything, model(), 2.0, tier=t), direction(), 1.0),
    "derivative": lambda t: plaingrad.derivative(lambda x, m: everything(m, x * x), tier=t)(2.0, model()),
    "second derivative": lambda t: plaingrad.derivative(lambda x, m: energy(m, x), order=2, tier=t)(2.0, model()),
    "gradient of a field": lambda t: plaingrad.value_and_grad(lambda m: m.speed.x, tier=t)(model()),
}  # fmt: skip


def same(x, y):
    if isinstance(y, np.ndarray):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)
        return
    if isinstance(y, float):
        assert isinstance(x, float) and x == pytest.approx(y, rel=1e-12, abs=1e-15)
        return
    assert type(x) is type(y)
    if isinstance(y, Tangent):
        assert x.primal_type is y.primal_type
    if isinstance(y, Vector):
        x, y = vars(x), vars(y)
    if isinstance(y, (dict, Tangent)):
        assert list(x) == list(y)
        for key in y:
            same(x[key], y[key])
    elif isinstance(y, (list, tuple)):
        assert len(x) == len(y)
        for a, b in zip(x, y, strict=True):
            same(a, b)
    else:
        assert x == y


@pytest.mark.parametrize("name", CASES)
def test_operators_take_functions_of_objects_as_the_plain_tier_does(name):
    same(CASES[name]("native"), CASES[name]("plain"))


def grows(vectors, n):
    made = []
    for k in range(n):
        made.append(vectors[0].x * k)
    return made


def hands_back(m):
    return m


def twice(m):
    v = m.speed * 2.0
    return v, v


def makes_a_function(m):
    return lambda x: m.speed.x * x


@pytest.mark.parametrize("program", [
    (grows, "a list of unknown length is returned", vectors(), 100),
    (hands_back, "returned that is an argument", model()),
    (twice, "an object is returned twice", model()),
    (makes_a_function, "a function", model()),
], ids=lambda p: p[0].__name__)  # fmt: skip
def test_what_cannot_be_put_together_is_refused_with_its_place(program):
    f, why, *args = program
    with pytest.raises(NativeError, match=why) as refused:
        plaingrad.vjp(f, *args, tier="native")
    assert "test_objects_in_operators.py:" in str(refused.value)


def test_an_exception_says_what_it_says_in_python():
    def inverse(m):
        return Vector(1.0 / m.speed.x, m.speed.y)

    m = model()
    m.speed.x = 0.0
    for operator in (plaingrad.vjp, plaingrad.linearize):
        with pytest.raises(ZeroDivisionError, match="float division by zero"):
            operator(inverse, m, tier="native")
