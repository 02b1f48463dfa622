"""Checked mode: derivatives that do something else than a plain call, or whose modes disagree, are told of."""

import ctypes
import math
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import plaingrad
from plaingrad import (
    CheckError,
    Dual,
    derivative,
    frule,
    grad,
    hessian,
    hook,
    hvp,
    jacobian,
    jvp,
    linearize,
    nestlevel,
    remove_rule,
    rrule,
    taylor,
    value_and_grad,
    vjp,
)
from plaingrad.engine.refusals import watch
from plaingrad.testing import checked

X = np.array([0.5, -1.5, 2.0])


def test_right_derivatives_pass_and_are_the_same():
    def f(x):
        return np.sum(np.sin(x) * x) + x[0] ** 3

    def results():
        return [
            grad(f)(X),
            value_and_grad(f)(X),
            jvp(f, (X,), (X,)),
            vjp(f, X)[1](2.0),
            jacobian(np.sin)(X),
            hessian(f)(X),
            hvp(f, (X,), (X,)),
            linearize(f, X)[1](X),
            derivative(lambda t: t**5, order=3)(2.0),
            taylor(math.sin, 0.3, 4),
            grad(lambda p: p["a"] * p["b"][0])({"a": 2.0, "b": [3]}),
            grad(lambda z: abs(z) ** 2)(1.0 + 2.0j),
            grad(lambda x: x * x)(3),
            grad(lambda x: np.sum(x * x))(X.astype(np.float32)),
        ]

    plain = results()
    with checked() as checks:
        found = results()
    assert str(found) == str(plain)
    assert checks.compared >= 14 and checks.passed_by == 0
    assert watch.observer is None


def doubled(x):
    return 2.0 * x


@pytest.fixture
def wrong_rules():
    """A function whose two rules disagree."""

    @rrule(doubled)
    def doubled_rrule(x):
        return 2.0 * x, lambda y_bar: (3.0 * y_bar,)

    @frule(doubled)
    def doubled_frule(f, x):
        return Dual(2.0 * x.primal, 2.0 * x.tangent)

    yield
    remove_rule(doubled)


@pytest.mark.usefixtures("wrong_rules")
def test_modes_that_disagree():
    with checked():
        for take in (
            lambda: grad(lambda x: doubled(x) * x)(1.5),
            lambda: jvp(lambda x: [doubled(x), x], (1.5,), (1.0,)),
            lambda: jacobian(lambda x: np.array([doubled(t) for t in x]), mode="forward")(X),
            lambda: hessian(lambda x: doubled(x[0]) ** 2)(X),
            lambda: taylor(doubled, 1.5, 3),
        ):
            with pytest.raises(CheckError, match=r"(?s)lambda.*modes disagree.*See docs|doubled.*modes"):
                take()
        assert grad(lambda x: x * x)(1.5) == 3.0
    assert grad(doubled)(1.5) == 3.0  # nobody looks on


def test_another_value_type_exception_or_state_than_by_a_plain_call():
    def by_level(x):
        return x * (1.0 + nestlevel())

    def by_type(x):
        return np.float64(x) if nestlevel() else x * 1.0

    def raising(x):
        if nestlevel():
            raise ValueError("only in derivatives")
        return x

    def raising_something_else(x):
        raise (KeyError if nestlevel() else ValueError)("this")

    def other_words(x):
        raise ValueError("derived" if nestlevel() else "plain")

    def writing(x):
        x[0] = 1.0 + nestlevel()
        return x[1] ** 2

    kept = {"n": 0}

    def keeping(x):
        kept["n"] = nestlevel()
        return x * x

    with checked():
        for f, x, words in (
            (by_level, 1.5, "the result is 3.0; a plain call"),
            (by_type, 1.5, "float64"),
            (raising, 1.5, "it raises ValueError.*a plain call returns 1.5"),
            (raising_something_else, 1.5, "raises KeyError.*a plain call raises ValueError"),
            (other_words, 1.5, "derived.*plain"),
            (writing, X.copy(), "argument 0"),
            (keeping, 1.5, "kept"),
        ):
            for take in (lambda f, x: grad(f)(x), lambda f, x: jvp(f, (x,), (x,))):
                with pytest.raises(CheckError, match=rf"(?s){f.__name__}.*{words}"):
                    take(f, x.copy() if isinstance(x, np.ndarray) else x)


def test_exceptions_that_a_plain_call_raises_too_are_raised():
    def f(x):
        raise OverflowError("too large", x)

    with checked() as checks:
        with pytest.raises(OverflowError) as caught:
            grad(f)(1.5)
        assert caught.value.args == ("too large", 1.5)
        with pytest.raises(plaingrad.MissingRuleError):  # refused: nothing to compare
            grad(lambda x: ctypes.c_double(x).value)(1.5)
    assert checks.compared == 1


def opaque(x):
    return math.erf(x)


@pytest.mark.parametrize("factor", [1.0, 1.1], ids=["right", "wrong"])
def test_where_a_mode_refuses_differences_stand_in(factor):
    def slope(x):
        return factor * 2.0 / math.sqrt(math.pi) * math.exp(-x * x)

    @rrule(opaque)
    def opaque_rrule(x):
        return opaque(x), lambda y_bar: (ctypes.c_double(y_bar).value * slope(x),)  # cannot be turned round

    try:
        with checked():
            if factor == 1.0:
                assert grad(lambda x: opaque(x) * x)(0.5) == pytest.approx(opaque(0.5) + 0.5 * slope(0.5))
            else:
                with pytest.raises(CheckError, match="finite differences disagree"):
                    grad(lambda x: opaque(x) * x)(0.5)
    finally:
        remove_rule(opaque)


total = 0.0


def test_what_a_function_changes_is_changed_once():
    log = []
    counts = {"calls": 0}

    class Model:
        seen = 0

        def __init__(self):
            self.last = None

        def __call__(self, x):
            Model.seen += 1
            self.last = float(x)
            return x * x

    model = Model()

    def f(x):
        global total
        total += 1.0
        log.append(1)
        counts["calls"] += 1
        return model(x) * (1.0 + random.random() + np.random.random())

    before = total
    random.seed(3)
    np.random.seed(3)
    expected = f(1.5)
    after = random.getstate(), np.random.get_state()[1].tolist()
    random.seed(3)
    np.random.seed(3)
    with checked():
        y, _ = value_and_grad(f)(1.5)
    assert y == expected
    assert (random.getstate(), np.random.get_state()[1].tolist()) == after
    assert (total - before, len(log), counts["calls"], Model.seen, model.last) == (2.0, 2, 2, 2, 1.5)


def test_arguments_are_changed_once_and_results_are_the_callers_own():
    def f(p):
        p["k"].append(p["x"] * 2.0)
        p["u"] *= 2.0
        return p["k"][-1] * p["u"].sum()

    p = {"k": [], "x": 1.5, "u": X.copy()}
    with checked():
        found = grad(f)(p)
    assert p["k"] == [3.0] and (p["u"] == 2 * X).all()
    assert found["x"] == 2.0 * (2 * X).sum()
    x = X.copy()
    with checked():
        assert vjp(lambda x: x, x)[0] is x


def test_what_cannot_be_copied_or_is_read_elsewhere_is_passed_by():
    shared = X.copy()
    with checked() as checks:
        assert grad(lambda x, more: x * sum(more))(2.0, (t for t in (1.0, 2.0))) == 3.0
        np.testing.assert_array_equal(grad(lambda x: (x * shared).sum())(shared), shared)
    assert (checks.compared, checks.passed_by) == (0, 2)


def test_a_hook_is_no_disagreement():
    with checked() as checks:
        assert grad(lambda x: hook(lambda bar: 10.0 * bar, x) * 2.0)(1.0) == 20.0
    assert checks.compared == 1


def test_derivatives_inside_others_are_not_looked_at_one_by_one():
    with checked() as checks:
        assert grad(lambda x: grad(lambda y: x * y * y)(x))(3.0) == pytest.approx(12.0)
        assert derivative(lambda x: linearize(lambda y: y**3, x)[1](1.0))(2.0) == pytest.approx(12.0)
    assert checks.compared == 2


def test_threads_are_looked_at_and_contexts_may_be_nested():
    with checked() as outer:
        with checked() as inner:
            found = []
            thread = threading.Thread(target=lambda: found.append(grad(lambda x: x * x)(2.0)))
            thread.start()
            thread.join()
        assert found == [4.0] and (outer.compared, inner.compared) == (0, 1)
        grad(lambda x: x * x)(2.0)
    assert outer.compared == 1 and watch.observer is None


def test_numbers_near_the_limits_are_no_disagreement():
    def f(x):
        return math.sin(x * 1e12) * math.sqrt(abs(x - 1.5) + 1e-30)

    with checked():
        grad(f)(1.5)
        jvp(lambda x: np.sqrt(x), (np.zeros(2),), (np.ones(2),))
        grad(lambda x: x**0.5 if x else 0.0)(0.0)


@pytest.mark.parametrize(("value", "is_on"), [("1", True), ("0", False), ("", False)])
def test_the_environment_asks_for_it(value, is_on):
    code = """
import plaingrad
from plaingrad.engine.refusals import watch
def f(x): return x * plaingrad.nestlevel()
try:
    plaingrad.grad(f)(2.0)
    print("unchecked")
except plaingrad.CheckError as error:
    print("checked")
"""
    environment = {**os.environ, "PLAINGRAD_CHECK": value}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ("checked" if is_on else "unchecked")
