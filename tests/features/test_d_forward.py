"""Section D of the features: forward mode by rules (Mooncake), a test a row."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import plaingrad
from plaingrad import Dual, NoTangent, Tangent, build_frule, derivative, frule, grad, hessian, hvp, jvp, tangent_type
from plaingrad.testing import check_rule

DOCS = Path(__file__).parents[2] / "docs"


def line(slope):
    return lambda x: slope * x


class Counter:
    def __init__(self, rate):
        self.rate = rate
        self.total = 0.0

    def __call__(self, x):
        self.total += self.rate * x
        return self.total


def test_d1_rules_over_pairs_with_a_tangent_for_the_function_itself():
    f = line(3.0)
    assert frule(Dual(f, {"slope": 1.0}), Dual(2.0, 10.0)) == Dual(6.0, 32.0)
    counter = Counter(2.0)
    y = build_frule(counter)(Dual(counter, Tangent(Counter, rate=1.0, total=0.0)), Dual(3.0, 0.0))
    assert y == Dual(6.0, 3.0)


def test_d2_after_the_rule_the_state_is_that_of_the_primal_and_tangents_are_updated():
    def scale(x, by):
        x *= by
        return x.sum()

    x, x_dot = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    y = frule(Dual(scale, NoTangent), Dual(x, x_dot), Dual(3.0, 0.0))
    assert (y.primal, y.tangent) == (9.0, 3.0)
    assert x.tolist() == [3.0, 6.0] and x_dot.tolist() == [3.0, 0.0]
    out = np.empty(2)
    y, y_dot = jvp(lambda a: np.multiply(a, a, out=out).sum(), (x,), (np.ones(2),))
    assert (y, y_dot) == (45.0, 18.0) and out.tolist() == [9.0, 36.0]


def test_d3_one_type_of_tangent_for_each_type_of_value():
    values = [1.5, 1j, np.ones(2, np.float32), np.ones(2), [1.0], (1.0, 2), {"a": 1.0}, Counter(1.0), "text", 3]
    types = [tangent_type(x) for x in values]
    assert len(set(types)) == len(types) - 1  # the text and the int have none
    assert all(isinstance(plaingrad.zero_tangent(x), t) for x, t in zip(values, types, strict=True))


def test_d4_check_rule_compares_with_the_function_itself():
    def cube(x):
        return x**3

    @plaingrad.rrule(cube)
    def cube_rrule(x):
        return x**3, lambda y_bar: (3 * x * x * y_bar,)

    check_rule(cube, 0.7)

    @plaingrad.rrule(cube)
    def wrong(x):
        return x**3, lambda y_bar: (2 * x * x * y_bar,)

    with pytest.raises(AssertionError):
        check_rule(cube, 0.7)


def test_d5_primitives_by_context_and_rules_for_methods():
    class Disc:
        def __init__(self, r):
            self.r = r

        def area(self):
            return math.pi * self.r**2

    rough = plaingrad.primitives("rough")

    @rough.rrule(Disc.area)
    def area_rrule(self):
        return self.area(), lambda y_bar: (Tangent(Disc, r=6.0 * self.r * y_bar),)

    f = lambda r: Disc(r).area()
    assert math.isclose(grad(f)(1.0), 2 * math.pi)
    with rough:
        assert grad(f)(1.0) == 6.0
    assert math.isclose(grad(f)(1.0), 2 * math.pi)


def test_d6_statement_by_statement_natively_and_derived_when_met():
    pages = [(DOCS / "explanation" / name).read_text() for name in ("native-tier.md", "native-loops.md")]
    assert all("|" in page for page in pages)  # the table of statements, and that of loops

    def chosen(kind):  # dispatch is dynamic: what is called is known when it runs
        return {"a": math.sin, "b": lambda x: x * x}[kind]

    assert grad(lambda x: chosen("a")(x) + chosen("b")(x))(0.5) == math.cos(0.5) + 1.0


def test_d7_batches_of_tangents_and_higher_orders_by_composition():
    f = lambda x: (np.sin(x) * x[::-1]).sum()
    x = np.array([0.3, 0.7, 1.1])
    columns = plaingrad.jacobian(lambda x: np.sin(x) * x[::-1], mode="forward", chunk_size=2)(x)
    np.testing.assert_allclose(columns.sum(0), grad(f)(x), rtol=1e-14)
    assert math.isclose(derivative(math.sin, order=5)(0.4), math.cos(0.4), rel_tol=1e-12)
    v = np.array([1.0, -2.0, 0.5])
    expected = hessian(f)(x) @ v
    np.testing.assert_allclose(hvp(f, (x,), (v,))[0], expected, rtol=1e-13)  # forward over reverse
    np.testing.assert_allclose(grad(lambda x: jvp(f, (x,), (v,))[1])(x), expected, rtol=1e-13)  # reverse over forward


def test_d8_any_number_and_type_of_arguments():
    def f(*xs, scale=2.0, **named):
        return sum(xs) * scale + named["last"][0]["deep"][1] * xs[0]

    slope = grad(lambda *xs: f(*xs, last=[{"deep": ("text", 3.0)}]), argnums=(0, 1, 2))(1.0, 2.0, 3.0)
    assert slope == (5.0, 2.0, 2.0)
    assert jvp(lambda d: d["a"][0] * d["b"].x, ({"a": [2.0], "b": Dot(3.0)},), ({"a": [1.0], "b": Tangent(Dot, x=0.0)},))[1] == 3.0


class Dot:
    def __init__(self, x):
        self.x = x
