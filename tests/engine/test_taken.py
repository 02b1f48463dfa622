"""The pullback of a call over floats has the tape of its own; its level is used again, and both know nothing of each other."""

import gc
import math
import threading
import weakref

import numpy as np
import pytest

import plaingrad
from plaingrad.engine.compiled import core
from plaingrad.engine.reverse.taken import TakenRun, recorded

needs_core = pytest.mark.skipif(core is None, reason="tapes are taken from compiled levels")


def f(x, y):
    return math.sin(x) * y + x * x / y


def slopes(x, y):
    return math.cos(x) * y + 2 * x / y, math.sin(x) - x * x / y**2


def test_pullbacks_that_outlive_other_derivatives():
    points = [(0.1 * k + 0.2, 1.0 + 0.3 * k) for k in range(12)]
    pullbacks = [plaingrad.vjp(f, *p)[1] for p in points]
    plaingrad.grad(f)(3.0, 4.0)
    for _ in range(2):
        for p, pullback in zip(points, pullbacks, strict=True):
            assert pullback(1.0) == pytest.approx(slopes(*p), rel=1e-14)
            assert pullback(-2.5) == pytest.approx([-2.5 * s for s in slopes(*p)], rel=1e-14)


@needs_core
def test_the_level_is_used_again():
    for _ in range(3):
        assert type(recorded(f, (0.3, 0.7), (0, 1), {})) is TakenRun
        plaingrad.vjp(f, 0.3, 0.7)
    made = []
    before = plaingrad.engine.calls.level.Level.__init__
    plaingrad.engine.calls.level.Level.__init__ = lambda self, parent: (made.append(1), before(self, parent))[
        1
    ]
    try:
        pullbacks = [plaingrad.vjp(f, 0.3, 0.7)[1] for _ in range(5)]
    finally:
        plaingrad.engine.calls.level.Level.__init__ = before
    assert not made
    assert pullbacks[0](1.0) == pullbacks[4](1.0) == pytest.approx(slopes(0.3, 0.7), rel=1e-14)


@pytest.mark.parametrize(
    "y_bar", [2, True, 2.0, np.float64(2.0), np.float32(2.0), np.array(2.0), None, -0.0, math.inf, math.nan]
)
def test_cotangents_of_any_kind_are_as_after_any_other_call(y_bar):
    _, pullback = plaingrad.vjp(f, 0.3, 0.7)
    _, other = plaingrad.vjp(lambda x, y: f(x, y), np.float64(0.3), np.float64(0.7))
    expected, found = other(y_bar), pullback(y_bar)
    assert len(found) == 2
    for a, b in zip(found, expected, strict=True):
        assert type(a) is float
        assert a == pytest.approx(float(b), rel=1e-14, nan_ok=True)


def test_a_cotangent_that_does_not_fit():
    _, pullback = plaingrad.vjp(f, 0.3, 0.7)
    for wrong in ("1", [1.0], np.ones(2), 1j):
        with pytest.raises(plaingrad.CotangentError):
            pullback(wrong)


def test_structures():
    def g(p, k, rest):
        return p["a"] * p["b"][1] + rest[0] * p["b"][0] + k

    point = {"a": 2.0, "b": [3.0, 5.0], "n": 4, "s": "text"}
    plaingrad.grad(g)(point, 1, (7.0, "x"))
    y, pullback = plaingrad.vjp(g, point, 1.0, (7.0, "x"))
    point["b"].append(1.0)
    point["a"] = 100.0
    assert y == 32.0
    bars = {"a": 10.0, "b": [14.0, 4.0], "n": None, "s": None}, 2.0, (6.0, None)
    assert pullback(2.0) == bars
    assert pullback(np.float64(2.0)) == bars


def test_the_callers_own_float_comes_back_and_constants_have_no_influence():
    x = 0.1 + 0.2
    for _ in range(2):
        y, pullback = plaingrad.vjp(lambda x: x, x)
        assert y is x
        assert pullback(3.0) == (3.0,)
        y, pullback = plaingrad.vjp(lambda x: 4.0, x)
        assert (y, pullback(3.0)) == (4.0, (0.0,))


def test_a_pullback_that_is_differentiated():
    for _ in range(2):
        _, pullback = plaingrad.vjp(f, 0.3, 0.7)
        dx, dy = slopes(0.3, 0.7)
        assert plaingrad.grad(lambda c: pullback(c * c)[0])(1.5) == pytest.approx(3.0 * dx, rel=1e-14)
        assert plaingrad.jvp(lambda c: pullback(c)[1], (1.5,), (2.0,)) == pytest.approx((1.5 * dy, 2.0 * dy))
        inner = lambda x: plaingrad.vjp(f, x, 0.7)[1](x)[0]
        slope = plaingrad.grad(inner)(0.3)
        assert slope == pytest.approx(dx + 0.3 * (-math.sin(0.3) * 0.7 + 2 / 0.7), rel=1e-13)
        assert plaingrad.jvp(inner, (0.3,), (1.0,))[1] == pytest.approx(slope, rel=1e-14)
        hessian = plaingrad.derivative(plaingrad.derivative(lambda x: plaingrad.vjp(f, x, 0.7)[1](1.0)[0]))
        assert hessian(0.3) == pytest.approx(-math.cos(0.3) * 0.7, rel=1e-13)


def test_what_is_no_tape_of_numbers_goes_another_way():
    array = np.array([1.0, 2.0])
    for _ in range(2):
        assert plaingrad.vjp(lambda x: float(np.sum(array * x)), 2.0)[1](1.0) == (3.0,)
        assert plaingrad.vjp(lambda x: abs(x * 1j + 3.0), 4.0)[1](1.0) == (0.8,)
        assert plaingrad.vjp(lambda x: (x, x * x), 3.0)[1]((1.0, 2.0)) == (13.0,)
        assert plaingrad.vjp(lambda a: float(a[0] * a[1]), array)[1](1.0)[0].tolist() == [2.0, 1.0]


def test_exceptions_leave_nothing_behind():
    def fails(x, y):
        return f(x, y) / (x - x)

    values = [0.3]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            plaingrad.vjp(fails, 0.3, 0.7)
        with pytest.raises(ZeroDivisionError):
            plaingrad.vjp(lambda v: fails(v[0], 2.0), values)
        assert values == [0.3]
        assert plaingrad.vjp(f, 0.3, 0.7)[1](1.0) == pytest.approx(slopes(0.3, 0.7), rel=1e-14)


def test_long_tapes_and_short_ones_in_turns():
    def long(x, n):
        s = x
        for _ in range(n):
            s = s * 1.0000001 + 0.0 * x
        return s

    pullbacks = [(n, plaingrad.vjp(lambda x, n=n: long(x, n), 1.0)[1]) for n in (0, 3, 50_000, 1, 60_000, 10)]
    for n, pullback in pullbacks:
        assert pullback(2.0)[0] == pytest.approx(2.0 * 1.0000001**n, rel=1e-9)


def test_pullbacks_in_several_threads():
    _, shared = plaingrad.vjp(lambda v: sum(a * a * math.sin(a) for a in v), [0.1 * k for k in range(200)])
    expected = shared(1.0)
    wrong = []

    def work(k):
        for n in range(40):
            if shared(1.0) != expected:
                wrong.append(k)
            x = 0.1 + k + 0.01 * n
            if plaingrad.vjp(f, x, 2.0)[1](1.0) != pytest.approx(slopes(x, 2.0), rel=1e-13):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_pullback_keeps_nothing_that_the_function_made():
    class Held:
        pass

    held = []

    def g(x):
        one = Held()
        one.x = x * x
        held.append(weakref.ref(one))
        return one.x * x

    for _ in range(2):
        _, pullback = plaingrad.vjp(g, 2.0)
    gc.collect()
    assert held[-1]() is None
    assert pullback(1.0) == (12.0,)
