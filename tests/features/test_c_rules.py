"""Section C of the features: rules, and rules derived (ChainRules), a test a row."""

from __future__ import annotations

import math

import numpy as np
import pytest

import plaingrad
from plaingrad import Dual, NoTangent, Tangent, Thunk, ZeroTangent, build_frule, build_rrule, grad, rrule


class Line:
    def __init__(self, a, b):
        self.a, self.b = a, b


def product(x, y):
    return x * y


def test_c1_rules_are_chosen_by_type_and_can_be_listed():
    def area(x):
        return x * x

    @rrule(area)
    def of_number(x: float):
        return x * x, lambda y_bar: (10 * y_bar * x,)

    @rrule(area)
    def of_array(x: np.ndarray):
        return x * x, lambda y_bar: (100 * y_bar * x,)

    assert grad(area)(3.0) == 30.0
    assert grad(lambda x: area(x).sum())(np.ones(1))[0] == 100.0
    y, pullback = rrule(area, 3.0)
    assert (y, pullback(1.0)) == (9.0, (NoTangent, 30.0))
    assert [row.types for row in plaingrad.rules(area)] == ["(x: float)", "(x: numpy.ndarray)"]


def test_c2_types_of_tangents():
    computed = []

    def value(line, x):
        return line.a * x + line.b

    @rrule(value)
    def value_rrule(line, x):
        def pullback(y_bar):
            return Tangent(Line, a=Thunk(lambda: computed.append(1) or y_bar * x), b=ZeroTangent), y_bar * line.a

        return value(line, x), pullback

    bar = grad(value)(Line(2.0, 1.0), 3.0)
    assert (bar.a, bar.b, computed) == (3.0, 0.0, [1])
    assert ZeroTangent + 2.0 == 2.0 and NoTangent + ZeroTangent is NoTangent
    assert plaingrad.project_to("text")(1.0) is NoTangent
    assert plaingrad.accumulate({"a": 1.0}, {"a": 2.0}) == {"a": 3.0}


def test_c3_derived_rules_look_like_written_ones_are_cached_and_serve_as_rules():
    rule = build_rrule(product)
    y, pullback = rule(3.0, 4.0)
    assert (y, pullback(1.0)) == (12.0, (NoTangent, 4.0, 3.0))
    assert build_rrule(product) is rule
    assert build_frule(product)(Dual(product, NoTangent), Dual(3.0, 1.0), Dual(4.0, 0.0)) == Dual(12.0, 4.0)

    def other(x, y):
        return x * y

    rrule(other)(rule)
    assert grad(other, argnums=(0, 1))(3.0, 4.0) == (4.0, 3.0)


def wave(x):
    total = 0.0
    for k in range(x.size):
        total += math.sin(x[k]) * x[k]
    return total


def test_c4_natively_from_typed_ir_compiled_and_printed_stage_by_stage(capsys):
    pytest.importorskip("numba")
    x = np.array([0.3, 0.7])
    np.testing.assert_allclose(grad(wave, tier="native")(x), np.sin(x) + x * np.cos(x), rtol=1e-14)
    plaingrad.show(wave, x, tier="native")
    shown = capsys.readouterr().out
    assert "typed IR" in shown and "slope(math" in shown


def test_c5_rules_for_stability_memory_speed_and_approximate_gradients():
    def log1pexp(x):
        return math.log1p(math.exp(x))

    plaingrad.scalar_rule(log1pexp, lambda x, z: 1 / (1 + math.exp(-x)))
    assert math.isclose(grad(log1pexp)(30.0), 1 / (1 + math.exp(-30.0)), rel_tol=1e-15)

    def step(x):
        return float(round(x))

    @rrule(step)
    def straight_through(x):
        return step(x), lambda y_bar: (y_bar,)

    assert grad(lambda x: step(x) ** 2)(2.7) == 6.0
