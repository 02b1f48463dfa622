"""Derivative operators made at one level and used at another: pullbacks, linear maps, rules and checkpoints.

A compact form of the hunt `tests.hunts.operators`, whose programs and operators these are: every program under
compositions in which what one operator made is used inside, outside or after another. Each program is
tried under the first of them and one in three of the others; under all with PLAINGRAD_TEST_ALL=1.
"""

import math

import mpmath
import numpy as np
import pytest
from tests.sampling import sample_of

from plaingrad import (
    Dual,
    NoTangent,
    Thunk,
    build_frule,
    build_rrule,
    derivative,
    frule,
    grad,
    jacobian,
    jvp,
    linearize,
    rrule,
    taylor,
    vjp,
)
from tests.hunts.operators import STEPS, composed, is_close, program

COMPOSITIONS = [
    ("map by linearize", "derivative"),
    ("map by linearize", "grad"),
    ("map by linearize", "map by linearize"),
    ("map by vjp", "jvp"),
    ("map by build_rrule", "derivative"),
    ("map by twice transposed", "derivative"),
    ("map by map of a map", "grad"),
    ("map by map of an array", "derivative"),
    ("map by vjp of an array", "derivative"),
    ("vjp used inside forward", "derivative"),
    ("linearize used inside reverse", "derivative"),
    ("linearize made inside forward", "grad"),
    ("vjp made inside reverse", "derivative"),
    ("linearize at both, forward", "derivative"),
    ("vjp at both, reverse", "grad"),
    ("jvp at both, forward", "grad"),
    ("build_frule", "map by linearize"),
    ("checkpoint", "map by linearize", "derivative"),
    ("forwarddiff", "map by linearize", "derivative"),
    ("taylor 1", "grad"),
    ("taylor 2", "derivative"),
    ("jacobian of arrays", "grad"),
    ("rows of arrays", "derivative"),
    ("hvp of a dict", "derivative"),
    ("grad of an object", "map of grad"),
    ("grad that changes its argument", "map by linearize"),
    ("wirtinger", "map by linearize"),
]


@pytest.mark.parametrize("step", [name for name, *_ in STEPS])
def test_what_one_operator_made_is_differentiated_by_another(step):
    p = program([step])
    x = 0.7
    wrong = []
    for operators in sample_of(COMPOSITIONS, step, 3):
        order, g = composed(list(operators), p.f)
        truth = float(mpmath.re(mpmath.diff(p.meaning, mpmath.mpf(x), order)))
        found = g(x)
        if not is_close(found, truth, 1.0):
            wrong.append((operators, found, truth))
    assert not wrong, p.source


# -- the map of linearize, from which it was found ------------------------------------------------------------------------


class Held:
    def __init__(self, x):
        self.x = x

    def cube(self):
        return self.x * self.x * self.x


CUBES = {
    "a list": lambda x: [x][0] * x * x,
    "a dict": lambda x: {"x": x}["x"] * x * x,
    "an object": lambda x: Held(x).cube(),
    "hypot": lambda x: math.hypot(x, 0.0) * x * x,
    "an array": lambda x: np.array([x, x, x]).prod(),
    "matmul": lambda x: np.array([x, 0.0]) @ np.array([x, 1.0]) * x,
    "a power": lambda x: x**3,
    "a generator": lambda x: math.prod(t for t in (x, x, x)),
}


@pytest.mark.parametrize("outer", [derivative, grad], ids=["forward", "reverse"])
@pytest.mark.parametrize("f", CUBES.values(), ids=CUBES)
def test_the_map_of_linearize_inside_another_derivative(f, outer):
    def slope(x):
        return linearize(f, x)[1](1.0)

    assert slope(0.7) == pytest.approx(3 * 0.7**2)
    assert outer(slope)(0.7) == pytest.approx(6 * 0.7)
    assert jvp(slope, (0.7,), (1.0,)) == pytest.approx((3 * 0.7**2, 6 * 0.7))
    assert outer(outer(slope))(0.7) == pytest.approx(6.0)


def test_a_rule_of_ours_that_engine_code_calls_does_not_depend_on_what_ran_before():
    from plaingrad.engine.calls import calls
    from plaingrad.engine.fusion.reverse_in_forward_steps import plain_slope_back

    f = CUBES["a list"]
    grad(lambda x: vjp(f, x)[1](1.0)[0])(0.7)
    assert not calls.is_own(plain_slope_back)
    before = dict(calls._ours)
    calls._ours.clear()
    try:
        assert derivative(lambda x: linearize(f, x)[1](1.0))(0.7) == pytest.approx(6 * 0.7)
    finally:
        calls._ours.update(before)


# -- rules that call what operators made -----------------------------------------------------------------------------------


def steep(x):
    return [x][0] ** 3 * x


def first(x):
    return steep(x)


def second(x):
    return steep(x)


def third(x):
    return steep(x)


rrule(first)(build_rrule(steep))


@rrule(second)
def second_rrule(x):
    y, pullback = build_rrule(steep)(x)

    def second_pullback(y_bar):
        return (Thunk(lambda: pullback(y_bar)[1]),)

    return y, second_pullback


@frule(third)
def third_frule(f, x):
    dual = build_frule(steep)(Dual(steep, NoTangent), x)
    return Dual(dual.primal, Thunk(lambda: dual.tangent * 1.0))


@pytest.mark.parametrize("f", [first, second, third])
@pytest.mark.parametrize("third_order", [derivative, grad])
@pytest.mark.parametrize("outer", [derivative, grad])
@pytest.mark.parametrize("inner", [derivative, grad])
def test_rules_made_of_derived_ones_have_derivatives_of_any_order(f, inner, outer, third_order):
    x = 0.7
    assert inner(f)(x) == pytest.approx(4 * x**3)
    assert outer(inner(f))(x) == pytest.approx(12 * x**2)
    assert third_order(outer(inner(f)))(x) == pytest.approx(24 * x)


def halves(a, b):
    return a + b, a * b


@rrule(halves)
def halves_rrule(a, b):
    def halves_pullback(y_bar):
        s, p = y_bar
        return s + p * b, s + p * a

    return halves(a, b), halves_pullback


def test_chunks_of_tangents_of_a_rule_in_one_mode_are_differentiated_further():
    def f(v):  # (a + b) a b with b = a**2
        s, p = halves(v[0], v[0] * v[0])
        return np.array([s * p, v[1]])

    def slope(x):
        return jacobian(f, mode="forward")(np.array([x, 0.5]))[0, 0]

    x = 0.6
    for outer in (derivative, grad):
        assert outer(slope)(x) == pytest.approx(12 * x**2 + 20 * x**3)
        assert outer(lambda x: taylor(lambda x: f([x, 0.0]), x, 1)[1][0])(x) == pytest.approx(12 * x**2 + 20 * x**3)
        assert outer(lambda x: taylor(lambda x: f([x, 0.0]), x, 3)[2][0])(x) == pytest.approx(
            (24 * x + 60 * x**2) / 2
        )


def test_a_map_by_an_object_takes_and_gives_tangents():
    def f(held):
        return held.x**3 * 2.0

    held = Held(0.5)
    assert linearize(f, held)[1]({"x": 1.0}) == pytest.approx(6 * 0.25)
    found = linearize(grad(f), held)[1]({"x": 1.0})
    assert found.x == pytest.approx(12 * 0.5)
    assert jvp(grad(f), (held,), ({"x": 1.0},))[1].x == pytest.approx(12 * 0.5)
    assert vjp(grad(f), held)[1](found)[0].x == pytest.approx(12 * 0.5 * found.x)
