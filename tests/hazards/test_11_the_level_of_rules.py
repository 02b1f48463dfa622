"""Hazard 11: while a rule or the engine runs, the context shows the parent level, also when there is none."""

import math

import numpy as np
import pytest
from cases_b import check

import plaingrad
from plaingrad import grad
from plaingrad.rewrite import CURRENT, PLAIN


def make_square(record):
    def square(x):
        return x * x

    @plaingrad.rrule(square)
    def square_rrule(x):
        record.append(CURRENT.get())

        def square_pullback(y_bar):
            record.append(CURRENT.get())
            return (2.0 * x * y_bar,)

        return x * x, square_pullback

    return square


def test_a_rule_at_the_outermost_level_runs_plainly():
    record = []
    square = make_square(record)
    assert grad(lambda x: square(x) * x)(3.0) == 27.0
    assert record == [PLAIN, PLAIN]
    assert CURRENT.get() is PLAIN


def test_a_rule_at_an_inner_level_runs_at_the_outer_one():
    record = []
    square = make_square(record)

    def f(x):
        here = CURRENT.get()
        assert here is not PLAIN
        record.clear()
        slope = grad(square)(x)
        assert CURRENT.get() is here
        assert record[0] is not PLAIN and len({id(level) for level in record}) == 1
        return slope

    assert grad(f)(3.0) == 2.0


def test_a_rule_that_calls_python_and_numpy_is_differentiated_again():
    def smooth(x):
        return np.log1p(np.exp(x))

    @plaingrad.rrule(smooth)
    def smooth_rrule(x):
        y = np.log1p(np.exp(x))

        def smooth_pullback(y_bar):
            return (y_bar / (1.0 + np.exp(-x)),)

        return y, smooth_pullback

    s = 1 / (1 + math.exp(-0.3))
    assert grad(smooth)(0.3) == pytest.approx(s, rel=1e-13)
    assert grad(grad(smooth))(0.3) == pytest.approx(s * (1 - s), rel=1e-12)
    assert grad(grad(grad(smooth)))(0.3) == pytest.approx(s * (1 - s) * (1 - 2 * s), rel=1e-12)


def test_a_rule_that_takes_a_gradient_itself():
    def energy(x):
        return math.cosh(x)

    @plaingrad.rrule(energy)
    def energy_rrule(x):
        value, slope = plaingrad.value_and_grad(lambda t: (math.exp(t) + math.exp(-t)) / 2)(x)
        return value, lambda y_bar: (slope * y_bar,)

    assert grad(energy)(0.4) == pytest.approx(math.sinh(0.4), rel=1e-13)
    assert grad(grad(energy))(0.4) == pytest.approx(math.cosh(0.4), rel=1e-13)
    assert grad(lambda x: energy(x * x))(0.4) == pytest.approx(math.sinh(0.16) * 0.8, rel=1e-13)


def test_a_rule_that_calls_its_own_function_again_does_not_recurse_for_ever():
    def f(x):
        return x**3

    @plaingrad.rrule(f)
    def f_rrule(x):
        return f(x), lambda y_bar: (3.0 * x * x * y_bar,)

    assert grad(f)(2.0) == 12.0
    assert grad(lambda x: f(x) + f(f(x)))(1.1) == pytest.approx(3 * 1.1**2 + 9 * 1.1**8, rel=1e-12)


def test_a_rule_that_raises_leaves_the_level_as_it_was():
    def f(x):
        return x

    @plaingrad.rrule(f)
    def f_rrule(x):
        if x > 1.0:
            raise ValueError("too large")
        return x, lambda y_bar: (y_bar,)

    def g(x):
        try:
            return f(x) * 1.0
        except ValueError:
            return f(x * 0.5) * x

    # the rule fails where the function does not: 0.5 x x
    assert plaingrad.value_and_grad(g)(1.5) == (1.125, 1.5)
    with pytest.raises(ValueError, match="too large"):
        grad(f)(2.0)
    assert CURRENT.get() is PLAIN


def test_a_pullback_that_raises_leaves_the_level_as_it_was():
    def f(x):
        return x

    @plaingrad.rrule(f)
    def f_rrule(x):
        def f_pullback(y_bar):
            raise ZeroDivisionError("in the pullback")

        return x * 1.0, f_pullback

    with pytest.raises(ZeroDivisionError, match="in the pullback"):
        grad(lambda x: f(x) * x)(2.0)
    assert CURRENT.get() is PLAIN
    assert grad(lambda x: x * x)(2.0) == 4.0


def test_a_rule_that_mutates_active_state_of_the_outer_level():
    def step(state, x):
        state.append(x * x)
        return state[-1] * 2.0

    record = []

    @plaingrad.rrule(step)
    def step_rrule(state, x):
        from plaingrad.tangents import NoTangent

        record.append(CURRENT.get())
        return x * x * 2.0, lambda y_bar: (NoTangent, 4.0 * x * y_bar)

    assert grad(lambda x: step([], x) * x)(1.5) == pytest.approx(6 * 1.5**2, rel=1e-13)
    assert record == [PLAIN]


def test_user_code_called_back_by_a_rule_of_ours_is_at_the_level_again():
    record = []

    def key(v):
        record.append(CURRENT.get())
        return -v

    def f(x):
        here = CURRENT.get()
        y = sorted([x, x * x, 3.0], key=key)[0] * sum(map(key, [x]))
        assert all(level is here for level in record), record
        record.clear()
        return y

    # sorted by -v: 3.0 is first at x = 1.5
    check(f, 1.5, -3.0)


def test_hooks_of_a_closed_level_do_what_the_parent_does():
    kept = []

    def f(x):
        kept.append(lambda y: y * x + y)
        return x

    assert grad(f)(2.0) == 1.0
    assert kept[0](3.0) == 9.0
    check(lambda y: kept[0](y), 3.0, 3.0)
