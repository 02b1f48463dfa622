"""Right-hand sides that are called with all times at once, and those that may not be."""

import math

import numpy as np
import plaingrad
import pytest

si = pytest.importorskip("scipy.integrate")
pytestmark = pytest.mark.filterwarnings("ignore")
TIMES = np.linspace(0.0, 2.0, 5)


def last(rate, x):
    """Of y' = rate(y, t, x) from 1."""
    return si.odeint(rate, [1.0], TIMES, args=(x,), rtol=1e-10, atol=1e-10)[-1, 0]


def test_what_takes_columns_is_evaluated_a_few_times():
    kinds = []

    class Law:
        def __call__(self, y, t, x):
            kind = np.ndim(y) - 1
            note(kind)
            return np.array([-x * y[0] * np.cos(t)])

    note = kinds.append  # C code, which does not say what it changes
    found = plaingrad.grad(lambda x: last(Law(), x))(0.7)
    exact = -math.sin(2.0) * math.exp(-0.7 * math.sin(2.0))
    assert found == pytest.approx(exact, rel=1e-7)
    assert 0 < kinds.count(1) < 10
    slope = plaingrad.grad(lambda x: last(Law(), x))
    assert plaingrad.grad(slope)(0.7) == pytest.approx(-math.sin(2.0) * exact, rel=1e-6)


def test_what_depends_on_other_columns_is_not_called_with_them():
    def spread(y, t, x):  # x is 0, so that values are the same
        return np.array([-y[0] + x * np.std(y)])

    assert plaingrad.grad(lambda x: last(spread, x))(0.0) == pytest.approx(0.0, abs=1e-12)

    def counted(y, t, x):
        return np.array([-y[0] * x * np.size(t)])

    assert plaingrad.grad(lambda x: last(counted, x))(0.7) == pytest.approx(-2.0 * math.exp(-1.4), rel=1e-7)

    def branching(y, t, x):
        return np.array([-x * y[0]]) if y[0] > 0.0 else np.array([0.0])

    assert plaingrad.grad(lambda x: last(branching, x))(0.7) == pytest.approx(-2.0 * math.exp(-1.4), rel=1e-7)


def test_what_keeps_its_arguments_sees_vectors_only():
    seen = []

    def keeping(y, t, x):
        seen.append((np.ndim(y), np.ndim(t)))
        return -x * y

    assert plaingrad.grad(lambda x: last(keeping, x))(0.7) == pytest.approx(-2.0 * math.exp(-1.4), rel=1e-7)
    assert {*seen} == {(1, 0)}


def test_backwards_and_a_transient_that_is_too_short_for_a_grid():
    back = lambda x: si.odeint(lambda y, t, x: -x * y, [1.0], TIMES[::-1], args=(x,), rtol=1e-10, atol=1e-10)[
        -1, 0
    ]
    assert plaingrad.grad(back)(0.7) == pytest.approx(2.0 * math.exp(1.4), rel=1e-7)
    stiff = lambda x: si.odeint(
        lambda y, t: [-1e5 * (y[0] - x), y[0] - y[1]], [0.0, 0.0], TIMES, rtol=1e-9, atol=1e-9
    )[-1, 1]
    assert plaingrad.grad(stiff)(0.7) == pytest.approx(1.0 - math.exp(-2.0), rel=1e-4)
    few = lambda x: si.odeint(lambda y, t: -x * y, 1.0, [0.0, 1.0, 1.0], full_output=True)[0][-1, 0]
    assert plaingrad.grad(few)(0.7) == pytest.approx(-math.exp(-0.7), rel=1e-6)


def test_a_right_side_that_jumps_at_a_time_of_the_solution():
    def level(y, t, x):
        return [-y[0] + (x if t < 1.0 else 0.0)]

    found = plaingrad.grad(lambda x: last(level, x))(0.7)
    assert found == pytest.approx(math.exp(-1.0) - math.exp(-2.0), rel=1e-7)

    def stairs(y, t, x):
        return [x * [1.0, 3.0, 7.0, 2.0, 5.0, 4.0][min(int(t), 5)]]

    assert plaingrad.grad(lambda x: last(stairs, x))(0.7) == pytest.approx(4.0, rel=1e-6)
