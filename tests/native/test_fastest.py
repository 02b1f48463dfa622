"""`tier="fastest"`: native where that gives what the plain tier gives, else plain; never an error of its own."""

import math
from dataclasses import dataclass

import numpy as np
import plaingrad
import pytest
from plaingrad.native.machine import floating_point

pytestmark = pytest.mark.skipif(not floating_point.MASK, reason="what the processor notes is not known here")


@dataclass
class Body:
    place: float
    speed: float


def moved(body, h, steps):
    p, s = body.place, body.speed
    for _ in range(steps):
        p, s = p + h * s, s - h * p
    return p * p + s


def chain(x):
    total = 0.0
    for i in range(1, x.size):
        total += math.cos(x[i] - x[i - 1])
    return total


def squares(x, out):
    for i in range(x.size):
        out[i] = x[i] ** 2
    return out.sum()


def polar(x):
    return np.array([x[0] * x[1], math.sin(x[0])])


X = np.linspace(0.5, 1.0, 5)
OPERATORS = {
    "grad": lambda tier: plaingrad.grad(chain, tier=tier)(X),
    "value_and_grad": lambda tier: plaingrad.value_and_grad(moved, (0, 1), tier=tier)(Body(1.0, 2.0), 0.1, 5),
    "jvp": lambda tier: plaingrad.jvp(chain, (X,), (X,), tier=tier),
    "vjp": lambda tier: (lambda y, pull: (y, pull(2.0)))(*plaingrad.vjp(chain, X, tier=tier)),
    "linearize": lambda tier: (lambda y, push: (y, push(X)))(*plaingrad.linearize(chain, X, tier=tier)),
    "jacobian": lambda tier: plaingrad.jacobian(polar, tier=tier)(X[:2]),
    "hessian": lambda tier: plaingrad.hessian(chain, tier=tier)(X),
    "hvp": lambda tier: plaingrad.hvp(chain, (X,), (X,), tier=tier),
    "vhp": lambda tier: plaingrad.vhp(chain, (X,), (X,), tier=tier),
    "derivative": lambda tier: plaingrad.derivative(lambda t: t * math.sin(t), tier=tier)(0.5),
}


def flat(x):
    if isinstance(x, plaingrad.Tangent):
        return [leaf for part in x.values() for leaf in flat(part)]
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in flat(part)]
    return [x]


@pytest.mark.parametrize("name", OPERATORS)
def test_the_result_is_that_of_the_plain_tier_at_the_first_call_and_later(name):
    expected = flat(OPERATORS[name]("plain"))
    for _ in range(2):
        found = flat(OPERATORS[name]("fastest"))
        assert list(map(type, found)) == list(map(type, expected))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_what_was_chosen_can_be_seen():
    def energy(x):
        return x * x

    def listed(x):
        return sum(sorted({x: x}.values()))

    assert plaingrad.tiers_chosen(energy) == []
    for f in (energy, listed):
        for _ in range(2):
            assert plaingrad.grad(f, tier="fastest")(3.0) == plaingrad.grad(f, tier="plain")(3.0)
    (choice,) = plaingrad.tiers_chosen(energy)
    assert (choice.tier, choice.why) == ("native", "")
    (choice,) = plaingrad.tiers_chosen(listed)
    assert choice.tier == "plain" and "a dictionary" in choice.why


# -- where compiled code does otherwise than Python: a good point first, so that the native tier is chosen -----------


def root(x):
    return max(0.0, math.sqrt(x - 5.0))


def logarithm(x):
    return max(-5.0, math.log(x - 1.0))


def exponential(x):
    return min(math.exp(1000.0 * x), 1.0)


def power(x):
    return min(x**1e6, 1.0)


def quotient(x):
    return x / (x - 1.0)


def last(x):
    return x[3]


def first_four(x):
    total = 0.0
    for i in range(4):
        total += x[i] * x[i]
    return total


RAISING = [
    (root, 7.0, 1.0, ValueError),
    (logarithm, 2.0, 1.0, ValueError),
    (exponential, -1.0, 1.0, OverflowError),
    (power, 0.5, 2.0, OverflowError),
    (quotient, 3.0, 1.0, ZeroDivisionError),
    (last, np.ones(5), np.ones(3), IndexError),
    (first_four, np.ones(4), np.ones(3), IndexError),
]


@pytest.mark.parametrize("program", RAISING, ids=lambda p: p[0].__name__)
def test_what_python_raises_compiled_code_raises(program, machine_code):
    f, good, bad, error = program
    gradient = plaingrad.grad(f, tier="fastest")
    np.testing.assert_allclose(gradient(good), plaingrad.grad(f)(good))
    assert plaingrad.tiers_chosen(f)[-1].tier == "native"
    with pytest.raises(error) as ours:
        gradient(bad)
    with pytest.raises(error) as its:
        f(bad)
    assert str(ours.value) == str(its.value)
    np.testing.assert_allclose(gradient(good), plaingrad.grad(f)(good))


def factorial_times(x):
    k = 1
    for i in range(30):
        k *= i + 1
    return x * k


def doubled(x, n):
    k = 1
    for _ in range(n):
        k = k + k
    return x * k


def times_powers(x, n):
    return x * 10**n


def products(x, n):
    return x * (n * n * n * n)


def squared_count(x, n):
    return x * (n * n)


@pytest.mark.parametrize("program", [
    (factorial_times,), (doubled, 70), (times_powers, 25), (products, 10**5), (squared_count, 10**10),
], ids=lambda p: p[0].__name__)  # fmt: skip
def test_whole_numbers_are_as_large_as_in_python(program):
    f, *counts = program
    assert plaingrad.grad(f, tier="fastest")(1.5, *[3 for _ in counts]) == f(1.0, *[3 for _ in counts])
    for _ in range(2):
        assert plaingrad.grad(f, tier="fastest")(1.5, *counts) == f(1.0, *counts)


def written_until(x, n, out):
    for i in range(x.size):
        out[i] += x[i] * (6 // (n - i))
    return out.sum()


def test_arguments_that_were_written_are_left_as_python_leaves_them():
    x = np.array([1.0, 2.0])
    left = []
    for tier in ("plain", "fastest", "fastest"):
        out = np.zeros(2)
        gradient = plaingrad.grad(written_until, tier=tier)
        np.testing.assert_array_equal(gradient(x, 3, out), [2.0, 3.0])
        with pytest.raises(ZeroDivisionError, match="zero"):
            gradient(x, 1, out)
        left.append(out)
    assert plaingrad.tiers_chosen(written_until)[-1].tier == "native"
    np.testing.assert_array_equal(left, [left[0]] * 3)
    np.testing.assert_array_equal(left[0], [8.0, 6.0])


def drawn(x):
    return x * np.random.random()


def test_random_numbers_are_those_of_numpy():
    for _ in range(2):
        np.random.seed(3)
        expected = np.random.random()
        np.random.seed(3)
        assert plaingrad.grad(drawn, tier="fastest")(2.0) == expected


def test_captured_variables_that_change_are_seen():
    count = 3

    def f(x):
        return x**count

    gradient = plaingrad.grad(f, tier="fastest")
    for count in (3, 3, 4, 2, 2):
        assert gradient(2.0) == count * 2.0 ** (count - 1)


def test_inside_of_other_derivatives_and_for_anything_else_it_is_plain():
    inner = lambda u: plaingrad.grad(lambda v: v * v * v, tier="fastest")(u)
    assert plaingrad.grad(inner, tier="fastest")(2.0) == 12.0
    assert plaingrad.grad(abs, tier="fastest")(-2.0) == -1.0
    assert plaingrad.grad(lambda p: p["a"] * len(p["names"]), tier="fastest")({"a": 2.0, "names": {"x"}})["a"] == 1.0
    with pytest.raises(plaingrad.ArgumentError):
        plaingrad.grad(moved, tier="quickest")
