"""Methods, properties and operators of instances of a `jitclass` are followed in plain code; their fields are constants."""

import math

import numpy as np
import pytest

import plaingrad
from plaingrad import explain, grad, jvp

numba = pytest.importorskip("numba")
from numba.experimental import jitclass  # noqa: E402


@jitclass([("k", numba.float64), ("weights", numba.float64[:])])
class Spring:
    def __init__(self, k):
        self.k = k
        self.weights = np.ones(2)

    @property
    def doubled(self):
        return 2.0 * self.k

    @staticmethod
    def square(x):
        return x * x

    def energy(self, x):
        return math.sqrt(self.k * x) + self.force(x)

    def force(self, x):
        return self.doubled * x + self.weights[1] * x

    def put(self, x):
        self.k = x

    def weigh(self, x):
        self.weights[0] = x

    def __add__(self, x):
        return self.k * x

    def __radd__(self, x):
        return self.k * x * x

    def __iadd__(self, x):
        return self.k + x

    def __pow__(self, x):
        return self.k**x

    def __matmul__(self, x):
        return self.k * x.sum()

    def __getitem__(self, x):
        return self.k / x

    def __setitem__(self, i, x):
        self.k = x


@pytest.fixture(scope="module")
def spring():
    return Spring(2.0)


def in_place(spring, x):
    total = spring
    total += x
    return total * x


CASES = {
    "a method that calls others": (lambda s, x: s.energy(x), 1.0 / math.sqrt(3.0) + 5.0),
    "a static method": (lambda s, x: s.square(x) + Spring.square(x), 6.0),
    "a property": (lambda s, x: s.doubled * x, 4.0),
    "an instance made on the way": (lambda s, x: Spring(2.0).force(x), 5.0),
    "an operator": (lambda s, x: s + x, 2.0),
    "a reflected operator": (lambda s, x: x + s, 6.0),
    "a number of NumPy first": (lambda s, x: np.float64(x) + s, 6.0),
    "an operator in place": (in_place, 5.0),
    "a power": (lambda s, x: s**x, 2.0**1.5 * math.log(2.0)),
    "an array": (lambda s, x: s @ (x * np.ones(2)), 4.0),
    "an index": (lambda s, x: s[x], -2.0 / 2.25),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_instance_does_with_a_number_is_followed(spring, name):
    f, slope = CASES[name]
    assert grad(lambda x: f(spring, x))(1.5) == pytest.approx(slope, rel=1e-14)
    y, y_dot = jvp(lambda x: f(spring, x), (1.5,), (1.0,))
    assert y == pytest.approx(f(spring, 1.5), rel=1e-14) and y_dot == pytest.approx(slope, rel=1e-14)


def test_derivatives_inside_of_others(spring):
    assert grad(lambda x: grad(lambda y: (y + spring) * x)(x))(1.5) == pytest.approx(12.0)
    assert grad(lambda x: grad(lambda y: y * (x + spring))(1.0))(1.5) == pytest.approx(6.0)


@pytest.mark.parametrize(
    "store",
    [lambda s, x: s.put(x), lambda s, x: s.weigh(x), lambda s, x: s.__setitem__(0, x), lambda s, x: setattr(s, "k", x)],
    ids=["put", "weigh", "setitem", "setattr"],
)
def test_what_would_be_kept_in_a_field_is_refused(spring, store):
    def f(x):
        store(spring, x)
        return spring.k * spring.weights[0]

    with pytest.raises((plaingrad.MissingRuleError, plaingrad.AliasError)) as caught:
        grad(f)(1.5)
    assert __file__ in str(caught.value)
    assert spring.k == 2.0 and spring.weights[0] == 1.0


def test_the_line_in_a_method_is_named(spring):
    place = explain(lambda x: spring.energy(x), 0.0).first.place
    assert (place.file, place.function, place.expression) == (__file__, "energy", "math.sqrt(self.k * x)")
