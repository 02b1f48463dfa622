"""Rules applied and rules derived: the tangent of the function itself first, in both modes."""

import functools
import gc
import inspect
import math
import struct
import threading
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

import plaingrad
from plaingrad import (
    ArgumentError,
    ChangedSinceError,
    CotangentError,
    Dual,
    MissingRuleError,
    NoTangent,
    RuleError,
    Tangent,
    TangentError,
    Thunk,
    ZeroTangent,
    build_frule,
    build_rrule,
    frule,
    grad,
    jvp,
    nondifferentiable,
    rrule,
    unthunk,
)


@dataclass
class Line:
    slope: float
    name: str = "line"

    def __call__(self, x):
        return self.slope * x + 1.0

    def at(self, x, scale=1.0):
        return scale * (self.slope * x + 1.0)

    @classmethod
    def twice(cls, x):
        return 2.0 * x


WEIGHTS = np.ones(2)


def product(x, y):
    return x * y * y


def make(a, w, n=2):
    def f(x):
        return a * (w * x).sum() * n

    return f


# -- rrule(f, *args) ---------------------------------------------------------------------------------------------------


def test_a_plain_function_has_no_tangent_of_its_own():
    y, pullback = rrule(product, 3.0, 2.0)
    assert y == 12.0 and pullback(1.0) == pullback(1.0) == (NoTangent, 4.0, 12.0)
    assert pullback(2.0) == (NoTangent, 8.0, 24.0)


def test_a_closure_has_a_tangent_with_a_field_for_each_captured_variable():
    w = np.array([1.0, 2.0])
    y, pullback = rrule(make(3.0, w), 5.0)
    f_bar, x_bar = pullback(1.0)
    assert y == 90.0 and x_bar == 18.0
    assert type(f_bar) is Tangent and f_bar.a == 30.0 and f_bar.w.tolist() == [30.0, 30.0] and f_bar.n is NoTangent


def test_a_closure_over_closures_over_shared_variables():
    a = 2.0

    def inner(x):
        return a * x

    def outer(x):
        return inner(x) * a  # a^2 x

    f_bar, x_bar = rrule(outer, 3.0)[1](1.0)
    assert x_bar == 4.0 and f_bar.a == 12.0 and f_bar.inner.a == 12.0  # one variable, by two names

    def factorial(n, x):
        return a if n == 0 else x * factorial(n - 1, x)

    f_bar, n_bar, x_bar = rrule(factorial, 3, 2.0)[1](1.0)
    assert (f_bar.a, n_bar, x_bar) == (8.0, NoTangent, 24.0)


def test_the_variables_of_a_closure_are_afterwards_as_a_plain_call_leaves_them():
    def counter():
        total, seen = 1.0, np.zeros(2)

        def add(x):
            nonlocal total
            total = total * x
            seen[0] += x
            return total

        return add, lambda: (total, seen)

    add, state = counter()
    before = state()[1]
    y, pullback = rrule(add, 3.0)
    assert y == 3.0 and state()[0] == 3.0 and state()[1] is before and before.tolist() == [3.0, 0.0]
    f_bar, x_bar = pullback(1.0)
    assert f_bar.total == 3.0 and x_bar == 1.0

    a = object.__new__(Line)
    a.slope = 2.0
    kept = lambda x: a.slope * x
    rrule(kept, 1.0)
    assert a.slope == 2.0 and kept.__closure__[0].cell_contents is a


def test_a_callable_object_has_the_tangent_of_its_fields_and_a_bound_method_that_of_its_object():
    line = Line(2.0)
    assert rrule(line, 3.0)[1](1.0) == (Tangent(Line, slope=3.0, name=NoTangent), 2.0)
    f_bar, x_bar = rrule(line.at, 3.0, scale=10.0)[1](1.0)
    assert f_bar["__self__"] == Tangent(Line, slope=30.0) and x_bar == 20.0
    assert rrule(Line.at, line, 3.0)[1](1.0) == (NoTangent, Tangent(Line, slope=3.0), 2.0)
    assert rrule(Line.twice, 3.0)[1](1.0) == (NoTangent, 2.0)


def test_a_partial_has_the_tangents_of_what_it_holds():
    f = functools.partial(make(3.0, np.ones(2)), 5.0)
    y, pullback = rrule(functools.partial(product, 3.0), 2.0)
    f_bar, y_bar = pullback(1.0)
    assert y == 12.0 and f_bar.args == (4.0,) and f_bar.func is NoTangent and y_bar == 12.0
    with pytest.raises(TypeError):
        rrule(f, 1.0)  # as a plain call
    f_bar, _ = rrule(functools.partial(lambda x, k: x * k, k=4.0), 3.0)[1](1.0)
    assert f_bar.keywords == {"k": 3.0}


def test_functions_among_the_arguments_have_tangents_too():
    def apply(f, x):
        return f(x) + f(x)

    f_bar, g_bar, x_bar = rrule(apply, make(3.0, np.ones(2)), 5.0)[1](1.0)
    assert f_bar is NoTangent and g_bar.a == 40.0 and g_bar.w.tolist() == [60.0, 60.0] and x_bar == 24.0
    _, g_bar, x_bar = rrule(apply, functools.partial(product, 3.0), 2.0)[1](1.0)
    assert g_bar.args == (8.0,) and x_bar == 24.0
    _, g_bar, x_bar = rrule(apply, Line(2.0).at, 3.0)[1](1.0)
    assert g_bar["__self__"] == Tangent(Line, slope=6.0) and x_bar == 4.0
    assert rrule(apply, Line(2.0), 3.0)[1](1.0) == (NoTangent, Tangent(Line, slope=6.0), 4.0)
    g = make(3.0, np.ones(2))
    assert frule(Dual(apply), Dual(g, {"a": 1.0}), Dual(5.0, 1.0)) == Dual(120.0, 40.0 + 24.0)
    assert frule(Dual(apply), Dual(math.sin), Dual(0.0, 1.0)) == Dual(0.0, 2.0)
    assert grad(lambda a: rrule(apply, make(a, np.ones(2)), 5.0)[1](a)[2])(3.0) == 2 * 4 * 2 * 3.0


def test_methods_that_a_closure_has_captured():
    method = Line(2.0).at
    f_bar, x_bar = rrule(lambda x: method(x) ** 2, 3.0)[1](1.0)
    assert f_bar.method["__self__"].slope == 2 * 7.0 * 3.0 and x_bar == 2 * 7.0 * 2.0


@pytest.mark.parametrize("hidden", [functools.partial(product, 3.0), [make(1.0, np.ones(1))], {"f": Line(1.0).at}], ids=range(3))
def test_functions_that_lie_where_their_tangents_cannot_be_told_are_refused(hidden):
    def captures(x):
        return x if hidden else 0.0

    with pytest.raises(ArgumentError, match="with functions in it|partial"):
        rrule(captures, 2.0)
    if not isinstance(hidden, functools.partial):
        with pytest.raises(ArgumentError, match="argument 0 is a .* with functions in it"):
            rrule(lambda h, x: x, hidden, 2.0)


def test_an_object_that_holds_its_own_methods_is_an_argument_like_any():
    line = Line(2.0)
    line.again, line.later, line.plain = line.at, lambda x: line.slope * x, math.sin
    f_bar, line_bar = rrule(lambda line: line.again(3.0), line)[1](1.0)
    assert line_bar.slope == 3.0 and line_bar.again is NoTangent
    assert rrule(line, 3.0)[1](1.0)[0].slope == 3.0


def test_what_has_no_tangent_is_said_so_at_every_depth():
    def f(o, n, xs, text):
        return o.slope * xs[0] * n

    bars = rrule(f, Line(2.0), 3, [5.0, "a", (1.0, 2)], "text")[1](1.0)
    assert bars == (NoTangent, Tangent(Line, slope=15.0, name=NoTangent), NoTangent, [6.0, NoTangent, (0.0, NoTangent)], NoTangent)
    assert bars[1].name is NoTangent and bars[3][1] is NoTangent and bars[3][2][1] is NoTangent
    assert rrule(lambda n: n * 2, 3)[1](1.0) == (NoTangent, NoTangent)


def test_written_rules_are_used_and_their_cotangents_lie_in_the_tangent_spaces():
    calls = []

    def f(x, y):
        return (x * y).sum()

    @rrule(f)
    def rule(x, y):
        def pullback(z_bar):
            return Thunk(lambda: calls.append(1) or 10 * z_bar * y), ZeroTangent

        return f(x, y), pullback

    z, pullback = rrule(f, np.ones(2), np.array([3.0, 4.0]))
    f_bar, x_bar, y_bar = pullback(1.0)
    assert z == 7.0 and f_bar is NoTangent and y_bar is ZeroTangent and calls == [1]
    assert x_bar.tolist() == [30.0, 40.0]
    _, x_bar, y_bar = rrule(np.multiply, np.float32(2.0), np.ones((2, 3)))[1](np.ones((2, 3)))
    assert type(x_bar) is np.float32 and x_bar == 6.0 and y_bar.shape == (2, 3)
    assert tuple(map(unthunk, rrule(math.pow, 3.0, 2)[1](1.0))) == (NoTangent, 6.0, NoTangent)
    assert unthunk(rrule(math.sin, 0.0)[1](Thunk(lambda: 2.0))[1]) == 2.0
    plaingrad.remove_rule(f)


def test_a_written_rule_of_a_method_gives_the_tangent_of_the_bound_method():
    class Sensor:
        def __init__(self):
            self.gain = 2.0

        def read(self, x):
            return self.gain * x

        def __call__(self, x):
            return self.gain * x

    for method in (Sensor.read, Sensor.__call__):
        rrule(method)(lambda self, x: (self.gain * x, lambda y_bar: ({"gain": 10 * y_bar}, 100 * y_bar)))
    s = Sensor()
    f_bar, x_bar = rrule(s.read, 3.0)[1](1.0)
    assert f_bar["__self__"] == Tangent(Sensor, gain=10.0) and x_bar == 100.0
    assert rrule(s, 3.0)[1](1.0) == (Tangent(Sensor, gain=10.0), 100.0)


def test_rules_of_every_kind_can_be_applied():
    for f, args, expected in [
        (np.argmax, (np.ones(2),), [0.0, 0.0]),
        (sorted, ([2.0, 1.0],), [0.0, 1.0]),
        (np.hstack, ([np.ones(1), 2.0],), None),
        (abs, (-2.0,), -1.0),
        (np.sin, ([0.0, math.pi],), [1.0, -1.0]),
    ]:
        y, pullback = rrule(f, *args)
        y_bar = [1.0, 0.0] if isinstance(y, list) else np.ones_like(y) if isinstance(y, np.ndarray) else 1.0
        f_bar, x_bar = pullback(y_bar)
        assert f_bar is NoTangent
        if expected is not None:
            assert np.allclose(unthunk(x_bar), expected), f
    z = np.zeros(2)
    assert rrule(np.multiply, np.ones(2), 3.0, out=z)[0] is z and z.tolist() == [3.0, 3.0]


def test_the_pullback_of_an_applied_rule_refuses_what_does_not_fit():
    _, pullback = rrule(lambda x: x * 2.0, np.ones(2))
    for wrong in (1.0, np.ones(3), [1.0, 2.0]):
        with pytest.raises(CotangentError):
            pullback(wrong)
    assert pullback(None)[1].tolist() == pullback(ZeroTangent)[1].tolist() == [0.0, 0.0]


def test_arrays_changed_before_the_pullback_are_noticed():
    WEIGHTS[:] = 1.0, 2.0
    _, pullback = rrule(lambda x: x * WEIGHTS, np.ones(2))
    WEIGHTS[0] = 5.0
    with pytest.raises(ChangedSinceError):
        pullback(np.ones(2))
    w = np.array([1.0, 2.0])
    _, pullback = rrule(lambda x: x * w, np.ones(2))
    w[0] = 5.0  # what a closure has captured is an argument, of which the engine has a copy
    assert pullback(np.ones(2))[1].tolist() == [1.0, 2.0]


def test_applied_rules_inside_derivatives_and_derivatives_inside_them():
    cube = lambda x: x**3

    def slope(x):
        return rrule(cube, x)[1](1.0)[1]

    assert grad(slope)(2.0) == jvp(slope, (2.0,), (1.0,))[1] == 12.0
    assert grad(grad(slope))(2.0) == 6.0
    assert rrule(grad(cube), 2.0)[1](1.0)[1] == 12.0
    assert rrule(rrule(cube, 2.0)[1], 3.0)[0][1] == 36.0
    assert grad(lambda a: rrule(make(a, np.ones(2)), 3.0)[0])(2.0) == 12.0
    assert grad(lambda a: rrule(make(a, np.ones(2)), 3.0)[1](a)[0].a)(2.0) == 12.0
    assert grad(lambda x: unthunk(rrule(math.sin, x)[1](x)[1]))(2.0) == pytest.approx(math.cos(2) - 2 * math.sin(2))
    assert grad(lambda x: unthunk(rrule(np.sin, np.array([x]))[1](np.array([x]))[1])[0])(2.0) == pytest.approx(
        math.cos(2) - 2 * math.sin(2)
    )


def test_exceptions_are_those_of_a_plain_call():
    line = Line(2.0)

    def fail(x):
        line.slope = x
        raise LookupError("as before")

    with pytest.raises(LookupError, match="as before"):
        rrule(fail, 3.0)
    assert line.slope == 3.0
    with pytest.raises(MissingRuleError):
        rrule(lambda x: struct.pack("d", x), 2.0)


def test_closures_of_several_threads_do_not_meet():
    f = make(3.0, np.ones(2))
    wrong = []

    def ask():
        for _ in range(50):
            f_bar, x_bar = rrule(f, 5.0)[1](1.0)
            if (f_bar.a, x_bar) != (20.0, 12.0):
                wrong.append((f_bar, x_bar))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# -- frule(Dual(f, df), Dual(x, dx), ...) ------------------------------------------------------------------------------


def test_tangents_are_pushed_through_functions_closures_methods_objects_and_partials():
    assert frule(Dual(product, NoTangent), Dual(3.0, 1.0), Dual(2.0, 10.0)) == Dual(12.0, 4.0 + 120.0)
    assert frule(Dual(product), Dual(3.0, ZeroTangent), Dual(2.0, 1.0)) == Dual(12.0, 12.0)
    f = make(3.0, np.array([1.0, 2.0]))
    assert frule(Dual(f, Tangent(type(f), a=1.0)), Dual(5.0, 0.0)).tangent == 30.0
    assert frule(Dual(f, {"w": np.array([1.0, 0.0])}), Dual(5.0, 1.0)).tangent == 30.0 + 18.0
    line = Line(2.0)
    assert frule(Dual(line, Tangent(Line, slope=1.0)), Dual(3.0, 1.0)) == Dual(7.0, 3.0 + 2.0)
    assert frule(Dual(line.at, {"__self__": {"slope": 1.0}}), Dual(3.0, 0.0), scale=10.0) == Dual(70.0, 30.0)
    p = functools.partial(product, 3.0)
    assert frule(Dual(p, {"args": (1.0,)}), Dual(2.0, 0.0)) == Dual(12.0, 4.0)
    assert frule(Dual(math.sin), Dual(0.0, 2.0)) == Dual(0.0, 2.0)


def test_the_tangent_of_a_result_is_written_out():
    y, y_dot = frule(Dual(lambda x: {"a": x, "b": [2.0, "text"], "n": 3}), Dual(1.5, 1.0))
    assert y_dot == {"a": 1.0, "b": [0.0, NoTangent], "n": NoTangent} and y_dot["n"] is NoTangent
    assert frule(Dual(lambda x: 3), Dual(1.5, 1.0)) == Dual(3, NoTangent)
    assert frule(Dual(lambda x: x), Dual(3, NoTangent)) == Dual(3, NoTangent)


def test_tangents_of_arrays_that_are_written_are_updated():
    def accumulate_into(z, xs):
        z += xs[0] * xs[0]
        xs[1][...] = z
        return None

    z, z_dot = np.ones(2), np.array([1.0, 0.0])
    x, x_dot = np.array([2.0, 3.0]), np.array([1.0, 1.0])
    w, w_dot = np.zeros(2), np.full(2, 9.0)
    assert frule(Dual(accumulate_into), Dual(z, z_dot), Dual([x, w], [x_dot, w_dot])) == Dual(None, NoTangent)
    assert z.tolist() == w.tolist() == [5.0, 10.0]
    assert z_dot.tolist() == w_dot.tolist() == [5.0, 6.0] and x_dot.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("error", "duals"),
    [
        (ArgumentError, (Dual(product), 3.0, Dual(1.0, 1.0))),
        (TangentError, (Dual(product), Dual(3.0, np.ones(2)), Dual(1.0, 1.0))),
        (TangentError, (Dual(product), Dual(3, 1.0), Dual(1.0, 1.0))),
        (ArgumentError, (Dual(product, 1.0), Dual(3.0, 1.0), Dual(1.0, 1.0))),
        (RuleError, (Dual(make(1.0, np.ones(2)), {"b": 1.0}), Dual(3.0, 1.0))),
        (RuleError, (Dual(make(1.0, np.ones(2)), 1.0), Dual(3.0, 1.0))),
    ],
    ids=range(6),
)
def test_pairs_that_do_not_fit_are_refused(error, duals):
    with pytest.raises(error):
        frule(*duals)


def test_pushing_tangents_inside_derivatives():
    def slope(x):
        return frule(Dual(lambda t: t**3), Dual(x, 1.0)).tangent

    assert grad(slope)(2.0) == 12.0 and jvp(slope, (2.0,), (1.0,))[1] == 12.0
    assert frule(Dual(grad(lambda t: t**3)), Dual(2.0, 1.0)) == Dual(12.0, 12.0)
    assert grad(lambda a: frule(Dual(make(a, np.ones(2)), {"a": a}), Dual(3.0, 0.0)).tangent)(2.0) == 12.0


# -- build_rrule, build_frule ------------------------------------------------------------------------------------------


def test_derived_rules_look_like_written_ones():
    rule = build_rrule(product)
    assert rule.__name__ == "product_rrule" and "cotangents of product" in rule.__doc__
    assert inspect.signature(rule) == inspect.signature(product) and rule.__wrapped__ is product
    assert repr(rule).startswith("<rrule of product, derived at ") and repr(rule).endswith(
        f"test_derived.py:{product.__code__.co_firstlineno}>"
    )
    y, pullback = rule(3.0, 2.0)
    assert (y, pullback(1.0)) == (12.0, (NoTangent, 4.0, 12.0))
    assert pullback.__name__ == "derived_pullback" and pullback.__doc__
    push = build_frule(product)
    assert push.__name__ == "product_frule"
    assert push(Dual(product), Dual(3.0, 1.0), Dual(2.0, 0.0)) == Dual(12.0, 4.0)


def test_derived_rules_are_kept_until_the_code_or_the_rulebook_changes():
    def f(x):
        return x * x

    rule = build_rrule(f)
    assert build_rrule(f) is rule and build_frule(f) is build_frule(f) is not rule
    f.__code__ = (lambda x: x**3).__code__
    assert build_rrule(f) is not rule and rule(2.0)[1](1.0)[1] == 12.0  # never stale
    again = build_rrule(f)
    nondifferentiable(len)
    assert build_rrule(f) is not again
    plaingrad.remove_rule(len)


def test_derived_rules_are_let_go():
    def f(x):
        return x

    gone = weakref.ref(f)
    build_rrule(f)
    for _ in range(1100):
        build_rrule(lambda x: x)
    del f
    gc.collect()
    assert gone() is None


def test_a_derived_rule_passes_the_rule_of_its_function_by_and_can_become_it():
    calls = []

    def power(x, n):
        calls.append(n)
        return 1.0 if n == 0 else x * power(x, n - 1)

    rrule(power)(lambda x, n: (x**n, lambda y_bar: (1000.0 * y_bar, NoTangent)))
    assert grad(power)(2.0, 3) == 1000.0 and calls == []
    assert build_rrule(power)(2.0, 1)[1](1.0) == (NoTangent, 2001.0, NoTangent)  # inside, the rule holds
    rrule(power)(build_rrule(power))
    assert grad(power)(2.0, 3) == 12.0 and grad(grad(power))(2.0, 3) == 12.0
    assert jvp(lambda x: power(x, 3), (2.0,), (1.0,))[1] == 12.0


def test_a_derived_rule_serves_another_function():
    def slow(x, w):
        return sum(v * v for v in (x * w).tolist())

    def fast(x, w):
        return ((x * w) ** 2).sum()

    rrule(slow)(build_rrule(fast))
    frule(slow)(build_frule(fast))
    x, w = np.array([1.0, 2.0]), np.array([3.0, 0.5])
    assert np.allclose(grad(slow)(x, w), 2 * x * w * w) and jvp(slow, (x, w), (x, 0 * w))[1] == pytest.approx(20.0)
    assert np.allclose(grad(lambda x: (grad(slow)(x, w) * x).sum())(x), 4 * x * w * w)
    info = plaingrad.rules(slow)[0]
    assert info.modes == ("reverse", "forward") and info.source.endswith(f":{fast.__code__.co_firstlineno}")


def test_a_derived_rule_as_a_rule_when_its_arrays_are_written_before_the_pullback():
    def square(x):
        return x * x

    def own_square(x):
        return x * x

    rrule(own_square)(build_rrule(square))

    def f(x):
        z = x * 1.0
        y = own_square(z)
        z[:] = 100.0
        return y.sum()

    assert grad(f)(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_derived_rules_that_would_lose_a_derivative_are_not_entered():
    def g(x):
        return x

    with pytest.raises(RuleError, match="pass them as arguments"):
        rrule(g)(build_rrule(make(1.0, np.ones(2))))
    with pytest.raises(RuleError, match="cannot be entered by rrule"):
        rrule(g)(build_frule(product))
    with pytest.raises(RuleError, match="it is a rule for product"):
        build_frule(product)(Dual(g), Dual(1.0, 1.0))
    with pytest.raises(RuleError, match="about a callable"):
        build_rrule(3)


def test_a_derived_forward_rule_takes_every_closure_of_its_code():
    rule = build_frule(make(1.0, np.ones(2)))
    f = make(3.0, np.ones(2))
    assert build_frule(f)(Dual(f, {"a": 1.0}), Dual(5.0, 0.0)) == Dual(60.0, 20.0)
    assert rule.__name__ == "f_frule"
