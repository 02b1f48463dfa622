"""Checkpoints: the same value and the same gradient, with the tape made again; how often, and what is refused."""

import collections
import contextvars
import dataclasses
import decimal
import functools
import gc
import math
import random
import threading
import tracemalloc

import numpy as np
import pytest

import plaingrad
from plaingrad import (
    ArgumentError,
    CheckpointError,
    ChangedSinceError,
    checkpoint,
    checkpoint_sequence,
    checkpointed,
    derivative,
    grad,
    hook,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
)
from plaingrad.rewrite import CURRENT

pytestmark = pytest.mark.usefixtures("collections_as_usual")

X = np.array([0.3, -1.2, 0.8, 2.0])


def entries():
    """How many entries the tape of the level in force has."""
    return len(CURRENT.get().tape) // 3


def wave(x):
    for _ in range(5):
        x = math.sin(x) * 1.5 + 0.1
    return x


def wave_slope(x):
    slope = 1.0
    for _ in range(5):
        slope *= 1.5 * math.cos(x)
        x = math.sin(x) * 1.5 + 0.1
    return slope


# -- value and gradient --------------------------------------------------------------------------------------------------


def test_outside_of_derivatives_a_checkpoint_is_a_call():
    assert checkpoint(wave, 0.3) == wave(0.3)
    assert checkpoint(dict, a=1) == {"a": 1}
    assert checkpointed(wave)(0.3) == wave(0.3)


def test_value_and_gradient_of_a_number():
    y, x_bar = value_and_grad(lambda x: checkpoint(wave, x))(0.7)
    assert y == wave(0.7)
    assert x_bar == pytest.approx(wave_slope(0.7), rel=1e-14)


def test_the_body_runs_once_forward_and_once_in_the_reverse_pass():
    calls = []

    def body(x):
        calls.append("call")
        return x * x

    y, pullback = vjp(lambda x: checkpoint(body, x) * 3.0, 2.0)
    assert (y, len(calls)) == (12.0, 1)
    assert pullback(1.0) == (12.0,)
    assert len(calls) == 2
    assert pullback(2.0) == (24.0,)
    assert len(calls) == 3


def test_a_result_that_receives_no_cotangent_is_not_made_again():
    calls = []

    def body(x):
        calls.append("call")
        return x * x

    def f(x):
        checkpoint(body, x)
        return 3.0 * x

    assert grad(f)(2.0) == 3.0
    assert len(calls) == 1


def test_the_tape_holds_one_entry_for_the_whole_call():
    seen = []

    def f(x):
        before = entries()
        y = checkpoint(wave, x)
        seen.append(entries() - before)
        return y

    grad(f)(0.4)
    assert seen == [1]


def test_arrays_and_several_results_in_containers():
    def body(u, scale):
        v = np.sin(u) * scale
        return {"v": v, "pair": (v.sum(), [v[0], "text", 3])}

    def f(u, scale):
        out = checkpoint(body, u, scale=scale)
        return (out["v"] * out["v"]).sum() + out["pair"][0] * out["pair"][1][0]

    u_bar, scale_bar = grad(f, (0, 1))(X, 1.5)
    s, c = np.sin(X), np.cos(X)
    expected = 2 * 1.5**2 * s * c + 1.5**2 * c * s[0]
    expected[0] += 1.5**2 * s.sum() * c[0]
    assert u_bar == pytest.approx(expected, rel=1e-13)
    assert scale_bar == pytest.approx(2 * 1.5 * ((s * s).sum() + s.sum() * s[0]), rel=1e-13)


def test_what_is_captured_gets_its_cotangent():
    def f(x, w):
        return checkpoint(lambda v: math.sin(v) * w * v, 2.0 * x) + w

    x_bar, w_bar = grad(f, (0, 1))(0.3, 1.7)
    assert x_bar == pytest.approx(2 * 1.7 * (math.cos(0.6) * 0.6 + math.sin(0.6)), rel=1e-14)
    assert w_bar == pytest.approx(math.sin(0.6) * 0.6 + 1.0, rel=1e-14)


class Layer:
    def __init__(self, w, b):
        self.w = w
        self.b = b

    def __call__(self, x):
        return np.tanh(self.w @ x + self.b)

    @checkpointed
    def forward(self, x):
        """Doc."""
        return self(x)


def test_parameters_of_an_object_get_their_cotangents_and_the_object_is_as_before():
    rng = np.random.default_rng(0)
    layers = [Layer(rng.normal(size=(4, 4)), rng.normal(size=4)) for _ in range(3)]
    kept = [(layer.w, layer.b) for layer in layers]

    def loss(layers, x, forward):
        for layer in layers:
            x = forward(layer, x)
        return (x * x).sum()

    expected = grad(loss, (0, 1))(layers, X, lambda layer, x: layer(x))
    for forward in (
        lambda layer, x: checkpoint(layer, x),
        lambda layer, x: checkpoint(layer.__call__, x),
        lambda layer, x: checkpoint(lambda v: layer(v), x),
        lambda layer, x: layer.forward(x),
    ):
        got = grad(loss, (0, 1))(layers, X, forward)
        for a, b in zip(got[0], expected[0], strict=True):
            assert (a.w == b.w).all() and (a.b == b.b).all()
        assert (got[1] == expected[1]).all()
    assert all(layer.w is w and layer.b is b for layer, (w, b) in zip(layers, kept, strict=True))


def test_the_gradient_is_the_same_to_the_last_bit():
    def body(u, w):
        for _ in range(3):
            u = np.cos(w * u) + u @ u * 0.1
        return u

    def f(u, w, call):
        for _ in range(4):
            u = call(body, u, w)
        return u.sum()

    plain = grad(f, (0, 1))(X, 0.3, lambda g, *args: g(*args))
    again = grad(f, (0, 1))(X, 0.3, checkpoint)
    assert plain[0].tobytes() == again[0].tobytes() and plain[1] == again[1]


def test_a_result_that_is_an_argument_or_captured_passes_its_cotangent_by():
    def f(x, w):
        a, b, c = checkpoint(lambda x: (x, w, x * w), x)
        return a * 2.0 + b * 3.0 + c * 5.0

    assert grad(f, (0, 1))(7.0, 11.0) == (2.0 + 55.0, 3.0 + 35.0)


def test_views_as_results():
    def body(u):
        v = u * u
        return v[1:], v.reshape(2, 2).T

    def f(u):
        a, b = checkpoint(body, u)
        return a.sum() + (b * b).sum()

    assert grad(f)(X) == pytest.approx(2 * X * np.array([0, 1, 1, 1]) + 4 * X**3, rel=1e-14)


def test_complex_numbers():
    def f(z):
        w = checkpoint(lambda z: z * z * 1j, z)
        return abs(w) ** 2

    z = 0.4 + 0.7j
    assert grad(f)(z) == pytest.approx(4 * abs(z) ** 2 * z, rel=1e-14)


def test_functions_of_c_ufuncs_methods_classes_and_partials():
    assert grad(lambda x: checkpoint(math.sin, x))(0.4) == math.cos(0.4)
    assert (grad(lambda u: checkpoint(np.sin, u).sum())(X) == np.cos(X)).all()
    assert (grad(lambda u: checkpoint(u.dot, u))(X) == 2 * X).all()
    assert grad(lambda x: checkpoint(functools.partial(math.hypot, 3.0), x))(4.0) == pytest.approx(0.8)

    class Pair:
        def __init__(self, x):
            self.square = x * x

    assert grad(lambda x: checkpoint(Pair, x).square)(3.0) == 6.0


def test_a_users_rule_holds_inside():
    def clipped(x):
        return x

    @plaingrad.rrule(clipped)
    def clipped_rrule(x):
        return x * 1.0, lambda y_bar: (max(-1.0, min(1.0, y_bar)),)

    assert grad(lambda x: checkpoint(lambda x: 10.0 * clipped(x * x), x))(3.0) == 6.0
    assert grad(lambda x: checkpoint(clipped, x) * 5.0)(3.0) == 1.0


def test_a_hook_inside_sees_its_cotangent_once():
    seen = []
    assert grad(lambda x: checkpoint(lambda x: plaingrad.hook(seen.append, x) * 3.0, x) * 2.0)(1.0) == 6.0
    assert seen == [6.0]


def test_checkpointed_keeps_name_and_documentation_and_binds_to_objects():
    assert Layer.forward.__name__ == "forward" and Layer.forward.__doc__ == "Doc."
    assert checkpointed(wave).__name__ == "wave"


# -- how often -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_nested_checkpoints_run_their_bodies_once_more_for_each_one_around(depth):
    calls = collections.Counter()

    def body(k, x):
        calls[k] += 1
        x = x * math.sin(x)
        return checkpoint(body, k + 1, x) * x if k < depth else x

    def plain(k, x):
        x = x * math.sin(x)
        return plain(k + 1, x) * x if k < depth else x

    got = grad(lambda x: checkpoint(body, 1, x))(0.6)
    assert calls == {k: k + 1 for k in range(1, depth + 1)}
    assert got == pytest.approx(grad(lambda x: plain(1, x))(0.6), rel=1e-13)


def test_checkpoints_one_after_another_in_a_checkpoint_run_three_times_each():
    calls = collections.Counter()

    def leaf(k, x):
        calls[k] += 1
        return math.sin(x) + x

    def body(x):
        for k in range(4):
            x = checkpoint(leaf, k, x)
        return x

    got = grad(lambda x: checkpoint(body, x))(0.3)
    assert set(calls.values()) == {3}
    x, slope = 0.3, 1.0
    for _ in range(4):
        slope *= math.cos(x) + 1.0
        x = math.sin(x) + x
    assert got == pytest.approx(slope, rel=1e-14)


# -- memory --------------------------------------------------------------------------------------------------------------


def peak_of(f, *args):
    gc.collect()
    tracemalloc.start()
    try:
        f(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_arrays_on_the_way_are_not_kept():
    def body(u):
        for _ in range(10):
            u = np.sin(u) * u
        return u

    def f(u, call):
        for _ in range(6):
            u = call(body, u)
        return u.sum()

    u = np.linspace(0.1, 1.0, 20_000)  # 160 kB
    plain = peak_of(grad(f), u, lambda g, u: g(u))
    again = peak_of(grad(f), u, checkpoint)
    assert plain > 100 * u.nbytes
    assert again < 65 * u.nbytes


def test_numbers_on_the_way_are_not_kept():
    def body(x):
        for _ in range(1500):
            x = math.sin(x) + 0.5 * x
        return x

    def f(x, call):
        for _ in range(30):
            x = call(body, x)
        return x

    plain = peak_of(grad(f), 0.3, lambda g, x: g(x))
    again = peak_of(grad(f), 0.3, checkpoint)
    assert again < 0.35 * plain


def test_garbage_in_cycles_does_not_keep_the_tape():
    seen = []

    def body(x):
        def loop(k, x):
            return loop(k - 1, x * x) if k else x  # refers to itself: a cycle

        cycle = [x * 2.0]
        cycle.append(cycle)
        return loop(2, x) + cycle[0]

    def f(x):
        before = entries()
        y = checkpoint(body, x)
        seen.append(entries() - before)
        return y

    assert grad(f)(1.5) == pytest.approx(4 * 1.5**3 + 2.0)
    assert seen == [1]


# -- values that are known elsewhere ---------------------------------------------------------------------------------------


def test_values_that_escape_keep_their_derivative_and_the_body_is_not_run_again():
    log = []

    def body(x):
        y = x * x
        log.append(y)
        return y * x

    assert grad(lambda x: checkpoint(body, x) + log[-1])(2.0) == 12.0 + 4.0
    assert log == [4.0]


def test_values_that_escape_around_a_checkpoint_inside():
    log = []

    def body(x):
        y = x * x
        log.append(y)
        z = checkpoint(math.sin, y)
        log.append(z)
        return checkpoint(lambda z: z * y, z)

    def f(x):
        return checkpoint(body, x) + log[-2] * 10.0 + log[-1] * 100.0

    y = 0.49
    assert grad(f)(0.7) == pytest.approx((math.cos(y) * y + math.sin(y) + 10.0 + 100.0 * math.cos(y)) * 1.4)
    assert len(log) == 2

    def of_arrays(u):
        v = u * u
        log.append(v)
        return checkpoint(lambda v: np.sin(v) * v, v).sum()

    got = grad(lambda u: checkpoint(of_arrays, u) + (log[-1] * log[-1]).sum())(X)
    assert got == pytest.approx((np.cos(X * X) * X * X + np.sin(X * X) + 2 * X * X) * 2 * X)


def test_values_that_escape_in_a_derivative_of_a_derivative():
    def f(x):
        log = []

        def body(y):
            z = y * y * x
            log.append(z)
            return z

        return grad(lambda y: checkpoint(body, y) * y + log[-1])(x)  # d/dy (x y^3 + x y^2) at y = x

    assert f(2.0) == 3 * 8.0 + 2 * 4.0
    assert grad(f)(2.0) == 9 * 4.0 + 4 * 2.0


def test_arrays_and_views_that_escape():
    log = []

    def body(u):
        v = u * u
        log.append(v[1:])
        return v.sum()

    assert grad(lambda u: checkpoint(body, u) + (log[-1] * log[-1]).sum())(X) == pytest.approx(
        2 * X + 4 * X**3 * np.array([0, 1, 1, 1])
    )


def test_an_attribute_or_a_cached_property_that_is_set_inside():
    class Model:
        def __init__(self, w):
            self.w = w

        @functools.cached_property
        def square(self):
            return self.w * self.w

        def run(self, x):
            self.hidden = self.square * x
            return self.hidden * x

    def f(w, x):
        model = Model(w)
        a = checkpoint(model.run, x)
        b = checkpoint(model.run, 2.0 * x)  # reads what the first call has cached
        return a + b + model.hidden

    # w^2 x^2 + w^2 4x^2 + w^2 2x
    w_bar, x_bar = grad(f, (0, 1))(3.0, 0.5)
    assert w_bar == pytest.approx(2 * 3.0 * (5 * 0.25 + 1.0))
    assert x_bar == pytest.approx(9.0 * (10 * 0.5 + 2.0))


@pytest.mark.parametrize(
    "call", [lambda cell, x: checkpoint(cell.step, x), lambda cell, x: checkpoint(Cell.step, cell, x)]
)
def test_an_object_that_keeps_its_last_result_and_goes_on_from_it(call):
    def f(w, x, call):
        cell = Cell(w)
        total = 0.0
        for k in range(4):
            total = total + call(cell, x * k).sum()
        return total

    expected = grad(f, (0, 1))(0.4, X, lambda cell, x: cell.step(x))
    got = grad(f, (0, 1))(0.4, X, call)
    assert got[0] == pytest.approx(expected[0], rel=1e-14)
    assert got[1] == pytest.approx(expected[1], rel=1e-14)


class Cell:
    def __init__(self, w):
        self.w = w
        self.h = np.zeros(4)

    def step(self, x):
        self.h = np.tanh(self.w * self.h + x)
        return self.h


def test_a_number_that_a_closure_goes_on_from():
    def f(x):
        total = [0.0]

        def add(x):
            total[0] = total[0] * 2.0 + x * x
            return total[0]

        return checkpoint(add, x) + checkpoint(add, 3.0 * x)  # x^2 + 2 x^2 + 9 x^2

    assert grad(f)(1.5) == pytest.approx(24.0 * 1.5)


def test_an_exception_that_carries_a_value():
    class Done(Exception):
        pass

    def body(x):
        raise Done(x * x)

    def f(x):
        try:
            checkpoint(body, x)
        except Done as done:
            return done.args[0] * x

    assert grad(f)(2.0) == 12.0


def test_a_generator_that_is_made_inside():
    def body(x):
        y = x * x
        return (y * k for k in range(1, 4))

    assert grad(lambda x: sum(checkpoint(body, x)))(1.5) == 6 * 2 * 1.5


def test_a_lazy_iterator_over_a_function_of_c_is_right_or_refused():
    for make in (lambda x: map(math.sin, [x * x, x]), lambda x: map(wave, [x * x, x])):
        try:
            got = grad(lambda x: sum(checkpoint(make, x)))(0.4)
        except CheckpointError:
            continue
        assert got == pytest.approx(grad(lambda x: sum(list(make(x))))(0.4), rel=1e-13)


def test_arrays_that_are_written_inside():
    def scale(a, w):
        a *= w
        return a.sum()

    def f(u, w):
        a = u * 1.0
        s = checkpoint(scale, a, w)
        return s + (a * a).sum()

    u_bar, w_bar = grad(f, (0, 1))(X, 3.0)
    assert u_bar == pytest.approx(3.0 + 18.0 * X)
    assert w_bar == pytest.approx(X.sum() + 6.0 * (X * X).sum())


def test_an_array_of_the_caller_that_is_filled_inside():
    def fill(out, x):
        out[1] = x * x
        return out[1]

    def f(x):
        out = np.zeros(3)
        y = checkpoint(fill, out, x)
        return y + (out * out).sum()

    assert grad(f)(2.0) == 4.0 + 4 * 8.0


def test_an_inactive_array_that_is_written_inside():
    def body(x, work):
        y = x * work  # work is read again in the reverse pass
        work += 1.0
        return (y * y).sum()

    def f(x):
        work = np.array([1.0, 2.0])
        return checkpoint(body, x, work) + (x * work).sum()

    assert grad(f)(3.0) == 2 * 3.0 * 5.0 + 5.0


# -- the second run sees what the first one saw ----------------------------------------------------------------------------


def test_containers_that_change_afterwards():
    def body(values, names):
        return values[0] * values[1] * len(names["all"])

    def f(x):
        values, names = [x, 2.0], {"all": ["a", "b"]}
        y = checkpoint(body, values, names)
        values[0] = x * x
        values.append(1.0)
        names["all"].clear()
        return y + values[0]

    assert grad(f)(3.0) == 4.0 + 6.0


def test_a_dataclass_that_changes_afterwards():
    @dataclasses.dataclass
    class Point:
        x: float
        y: float

    def f(x):
        p = Point(x, 2.0)
        r = checkpoint(lambda p: p.x * p.x * p.y, p)
        p.x = p.x * 10.0
        return r + p.x

    assert grad(f)(3.0) == 12.0 + 10.0


def test_arrays_that_change_afterwards():
    def f(u):
        a = u * 1.0
        c = np.array([1.0, 2.0, 3.0, 4.0])
        y = checkpoint(lambda a, c: (np.sin(a) * c).sum(), a, c)
        a *= 0.0
        c[:] = 7.0
        return y + a.sum()

    assert grad(f)(X) == pytest.approx(np.cos(X) * [1, 2, 3, 4])


def test_a_loop_variable_in_a_closure_goes_on_afterwards():
    def f(x):
        for k in range(1, 4):
            dt = 0.5 * k
            x = checkpoint(lambda x: x + dt * x * k, x)
        return x

    assert grad(f)(0.0) == pytest.approx(1.5 * 3.0 * 5.5)


def test_random_numbers_are_drawn_again():
    rng = np.random.default_rng(5)

    def noisy(x):
        return x * (random.random() + np.random.rand() + rng.normal())

    random.seed(3), np.random.seed(4)
    slope = noisy(1.0)
    after = random.random(), np.random.rand(), rng.normal()
    random.seed(3), np.random.seed(4)
    rng.bit_generator.state = np.random.default_rng(5).bit_generator.state
    assert grad(lambda x: checkpoint(noisy, x))(2.0) == pytest.approx(slope, rel=1e-15)
    assert (random.random(), np.random.rand(), rng.normal()) == after


def test_context_variables_are_as_they_were():
    factor = contextvars.ContextVar("factor", default=1.0)

    def f(x):
        factor.set(3.0)
        with decimal.localcontext() as context:
            context.prec = 5
            y = checkpoint(lambda x: x * factor.get() * float(decimal.Decimal(1) / 3), x)
        factor.set(5.0)
        return y

    assert contextvars.copy_context().run(grad(f), 2.0) == float("0.33333") * 3.0


def test_warnings_of_numpy_are_given_once():
    with pytest.warns(RuntimeWarning) as seen:
        grad(lambda u: checkpoint(lambda u: (u / 0.0)[0], u))(X)
    assert len(seen) == 1


def test_what_depends_on_changed_state_is_refused():
    state = {"k": 2.0}

    def f(x):
        y = checkpoint(lambda x: x * state["k"], x)
        state["k"] = 3.0
        return y

    with pytest.raises(CheckpointError, match="run again"):
        grad(f)(1.0)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, k: x * k,
        lambda x, k: x**k,
        lambda x, k: np.sum(np.roll(np.array([x, 0.0]), k)[:1]),
        lambda x, k: (np.array([x, 0.0]) * (np.arange(2) < k - 1)).sum(),
    ],
    ids=["factor", "exponent", "shift", "mask"],
)
def test_another_derivative_at_the_same_value_is_refused(use):
    class Clock:
        time = 1

    def f(x):
        y = checkpoint(lambda x: use(x, Clock.time), x)
        Clock.time += 1
        return y

    with pytest.raises(CheckpointError):
        grad(f)(0.0)


def test_another_input_with_the_same_value_is_refused():
    state = {}

    def f(x, y):
        state["p"] = x * 1.0
        z = checkpoint(lambda: state["p"] * state["p"])
        state["p"] = y * 1.0
        return z

    with pytest.raises(CheckpointError):
        grad(f, (0, 1))(2.0, 2.0)


def test_a_second_run_that_fails_is_refused_and_says_why():
    left = [1.0, 2.0]

    def f(x):
        return checkpoint(lambda x: x * left.pop() * left.pop(), x)

    with pytest.raises(CheckpointError, match="IndexError") as caught:
        grad(f)(1.0)
    assert isinstance(caught.value.__cause__, IndexError)


def test_arrays_that_change_between_call_and_pullback_are_noticed():
    c = np.array([1.0, 2.0, 3.0, 4.0])
    _, pullback = vjp(lambda u: checkpoint(lambda u, c: (u * c).sum(), u, c), X)
    assert (pullback(1.0)[0] == c).all()
    c[0] = 9.0
    with pytest.raises((ChangedSinceError, CheckpointError)):
        pullback(1.0)


# -- other levels and threads ----------------------------------------------------------------------------------------------


def cube(x):
    return x * x * x


def test_derivatives_of_higher_order():
    f = lambda x: checkpoint(cube, x) * x  # x^4
    assert grad(grad(f))(2.0) == 48.0
    assert grad(grad(grad(f)))(2.0) == 48.0
    assert grad(lambda x: checkpoint(grad(f), x))(2.0) == 48.0
    assert grad(lambda x: checkpoint(lambda x: grad(f)(x), x) * x)(2.0) == 32.0 + 96.0


def test_a_captured_value_of_an_outer_derivative():
    def f(x):
        return grad(lambda y: checkpoint(lambda y: x * y * y, y))(3.0)  # 6 x

    assert grad(f)(5.0) == 6.0


def test_a_pullback_that_is_differentiated_afterwards():
    _, pullback = vjp(lambda x: checkpoint(cube, x), 2.0)
    assert grad(lambda v: pullback(v)[0] * v)(1.5) == 2 * 1.5 * 12.0


def test_forward_mode_calls_the_function_once():
    calls = []

    def body(x):
        calls.append("call")
        return cube(x)

    assert jvp(lambda x: checkpoint(body, x), (2.0,), (1.0,)) == (8.0, 12.0)
    assert len(calls) == 1


def test_forward_over_reverse_and_reverse_over_forward():
    f = lambda x: checkpoint(cube, x) * x
    assert jvp(grad(f), (2.0,), (1.0,)) == (32.0, 48.0)
    assert grad(lambda x: jvp(f, (x,), (1.0,))[1])(2.0) == 48.0
    u, u_dot = jvp(grad(lambda u: checkpoint(lambda u: (np.sin(u) * u).sum(), u)), (X,), (np.ones(4),))
    assert u == pytest.approx(np.cos(X) * X + np.sin(X))
    assert u_dot == pytest.approx(2 * np.cos(X) - np.sin(X) * X)


def test_gradients_in_several_threads():
    layer = Layer(np.eye(4) * 0.5, np.zeros(4))
    found = {}

    def work(k):
        found[k] = [grad(lambda layer, x: checkpoint(layer, x).sum())(layer, X * k).b for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, bars in found.items():
        for b in bars:
            assert b == pytest.approx(1 - np.tanh(0.5 * X * k) ** 2)


def test_threads_inside_the_function_and_checkpoints_in_threads():
    def body(x):
        out = {}
        threads = [threading.Thread(target=lambda k=k: out.__setitem__(k, x**k)) for k in (2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return out[2] + out[3]

    assert grad(lambda x: checkpoint(body, x))(2.0) == 4.0 + 12.0

    def f(x):
        out = {}
        threads = [
            threading.Thread(target=lambda k=k: out.__setitem__(k, checkpoint(cube, k * x)))
            for k in (1, 2, 3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(out.values())

    assert grad(f)(2.0) == 3 * 4.0 * (1 + 8 + 27)


def test_long_runs_of_numbers_are_swept_inside_and_around():
    def body(x):
        for k in range(12_000):
            x = x + (k % 3 - 1) * 1e-3 * x
        return x

    def f(x):
        for _ in range(3):
            x = checkpoint(body, x)
            for _ in range(9000):
                x = x * 1.0
        return x

    def slope():
        return math.prod(1.0 + (k % 3 - 1) * 1e-3 for k in range(12_000)) ** 3

    assert grad(f)(1.0) == pytest.approx(slope(), rel=1e-10)


# -- sequences -------------------------------------------------------------------------------------------------------------


def counted(step):
    calls = [0]

    @functools.wraps(step)
    def counting(state):
        calls[0] += 1
        return step(state)

    return counting, calls


def logistic(x):
    return 3.7 * x * (1.0 - x)


def logistic_slope(x, n):
    slope = 1.0
    for _ in range(n):
        slope *= 3.7 * (1.0 - 2.0 * x)
        x = logistic(x)
    return slope


@functools.cache
def fewest(n, budget):
    """By dynamic programming: calls of the step that are not recorded."""
    if n <= 1:
        return 0
    if budget == 1:
        return n * (n - 1) // 2
    return min(m + fewest(n - m, budget - 1) + fewest(m, budget) for m in range(1, n))


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 7, 40])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 23, 37])
def test_a_sequence_calls_its_step_as_rarely_as_can_be(n, budget):
    step, calls = counted(logistic)
    y, x_bar = value_and_grad(lambda x: checkpoint_sequence(step, x, n, budget))(0.3)
    assert calls[0] == n + fewest(n, budget)
    assert x_bar == pytest.approx(logistic_slope(0.3, n), rel=1e-10)
    for _ in range(n):
        step(0.0)
    x = 0.3
    for _ in range(n):
        x = logistic(x)
    assert y == x


def test_a_sequence_outside_of_derivatives_in_forward_mode_and_of_no_steps():
    step, calls = counted(logistic)
    assert checkpoint_sequence(step, 0.3, 3, 1) == logistic(logistic(logistic(0.3)))
    state = [0.3]
    assert checkpoint_sequence(step, state, 0, 1) is state
    assert calls[0] == 3
    y, y_dot = jvp(lambda x: checkpoint_sequence(step, x, 4, 2), (0.3,), (1.0,))
    assert y_dot == pytest.approx(logistic_slope(0.3, 4))
    assert calls[0] == 7
    assert grad(lambda x: checkpoint_sequence(step, x, 0, 2) * 2.0)(0.3) == 2.0


def test_no_more_states_are_in_memory_than_the_budget():
    size = 50_000

    def step(u):
        return np.sin(u) + u

    def f(u, budget):
        return checkpoint_sequence(step, u, 60, budget).sum()

    u = np.linspace(0.0, 1.0, size)
    peaks = {budget: peak_of(grad(f), u, budget) / u.nbytes for budget in (2, 5, 20)}
    assert 2 <= peaks[5] - peaks[2] <= 4.5
    assert 13 <= peaks[20] - peaks[5] <= 17


def test_states_of_all_kinds():
    @dataclasses.dataclass
    class Body:
        q: np.ndarray
        p: list
        extra: dict

    def step(state):
        k, body = state
        q = body.q + 0.1 * body.p[0] * body.extra["rate"]
        p = body.p[0] - 0.1 * np.sin(q)
        return k + 1, Body(
            q, [p, body.p[1] * 1.1], {"rate": body.extra["rate"] * (1.0 + 0.01 * k), "name": "b"}
        )

    def f(q, p, rate, run):
        k, body = run(step, (0, Body(q, [p, 2.0], {"rate": rate, "name": "b"})))
        assert k == 13
        return (body.q * body.p[0]).sum() + body.p[1] * body.extra["rate"]

    def plainly(step, state):
        for _ in range(13):
            state = step(state)
        return state

    expected = grad(f, (0, 1, 2))(X, 0.5 * X, 0.8, plainly)
    for budget in (1, 3, 20):
        got = grad(f, (0, 1, 2))(X, 0.5 * X, 0.8, lambda step, s: checkpoint_sequence(step, s, 13, budget))
        assert got[0] == pytest.approx(expected[0], rel=1e-12)
        assert got[1] == pytest.approx(expected[1], rel=1e-12)
        assert got[2] == pytest.approx(expected[2], rel=1e-12)


def test_what_the_step_captures_gets_its_cotangent():
    class Decay:
        def __init__(self, rate):
            self.rate = rate

        def step(self, x):
            return x - self.rate * x

    def f(model, x, c):
        return checkpoint_sequence(lambda x: model.step(x) * c, x, 9, 3)

    model_bar, x_bar, c_bar = grad(f, (0, 1, 2))(Decay(0.1), 2.0, 1.1)
    assert x_bar == pytest.approx((0.9 * 1.1) ** 9)
    assert model_bar.rate == pytest.approx(-9 * 0.9**8 * 1.1**9 * 2.0)
    assert c_bar == pytest.approx(9 * 1.1**8 * 0.9**9 * 2.0)


def test_one_value_in_two_places_of_the_state():
    def step(state):
        a, b, c = state
        s = math.sin(a) + b
        return s, s, c

    def plainly(x):
        a, b = x, 2.0
        for _ in range(6):
            a = b = math.sin(a) + b
        return a * b * x

    def f(x):
        a, b, c = checkpoint_sequence(step, (x, 2.0, x), 6, 2)
        return a * b * c

    assert grad(f)(0.4) == pytest.approx(grad(plainly)(0.4), rel=1e-13)

    def twice(state):
        u, v = state
        w = u + 0.1 * v
        return w, w

    def g(u):
        a, b = checkpoint_sequence(twice, (u, u), 5, 2)
        return (a * b).sum()

    assert grad(g)(X) == pytest.approx(2 * 1.1**10 * X)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_steps_in_place_change_the_callers_state_as_in_a_plain_loop(n):
    def step(u):
        u[1:] += 0.1 * u[:-1]
        u *= 1.2
        return u

    def f(u, run):
        v = u * 1.0
        r = run(v)
        assert r is v
        return (r * v * np.arange(1.0, 5.0)).sum()

    def plainly(v):
        for _ in range(n):
            v = step(v)
        return v

    y, u_bar = value_and_grad(f)(X, plainly)
    z, again = value_and_grad(f)(X, lambda v: checkpoint_sequence(step, v, n, 3))
    assert y == z
    assert again == pytest.approx(u_bar, rel=1e-13)


def test_steps_in_place_that_happen_to_change_no_value():
    def diffuse(u):
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        return u

    def f(u, n):
        v = u.copy()
        checkpoint_sequence(diffuse, v, n, 2)
        return v[2]

    step = np.eye(5)
    for k in (1, 2, 3):
        step[k, k - 1 : k + 2] += [0.1, -0.2, 0.1]
    for n in (1, 2, 7):
        u_bar = grad(f)(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), n)  # a straight line stays one
        assert u_bar == pytest.approx(np.linalg.matrix_power(step, n)[2], rel=1e-14)

    def again(pair):
        pair[0] = pair[0] * 1.0
        return pair

    def g(x):
        pair = [x, 2.0]
        checkpoint_sequence(again, pair, 3, 2)
        return pair[0] * pair[1]

    assert grad(g)(5.0) == 2.0


def test_steps_of_which_only_some_are_in_place_are_refused():
    def step(state, when):
        k, u = state
        if k in when:
            u *= 2.0
        else:
            u = u * 2.0
        return k + 1, u

    for when in ([0], [1], [2], [3], [0, 1, 2], [1, 2, 3]):
        with pytest.raises(CheckpointError, match="in place"):
            grad(lambda u: checkpoint_sequence(lambda s: step(s, when), (0, u * 1.0), 4, 2)[1].sum())(X)


def test_steps_in_place_of_containers_and_objects():
    class System:
        def __init__(self, x):
            self.x = x
            self.path = [x, 1.0]

    def step(system):
        system.x = system.x * 1.5
        system.path[0] = system.path[0] + system.x
        return system

    def f(x):
        system = System(x)
        assert checkpoint_sequence(step, system, 4, 2) is system
        return system.x + system.path[0]

    powers = [1.5**k for k in range(5)]
    assert grad(f)(2.0) == pytest.approx(powers[4] + sum(powers))


def test_a_step_that_changes_its_argument_and_returns_another_is_refused():
    def step(u):
        u += 1.0
        return u * 2.0

    for n in (1, 4):
        with pytest.raises(CheckpointError, match="in place"):
            grad(lambda u: checkpoint_sequence(step, u * 1.0, n, 2).sum())(X)

    def late(state):
        k, u = state
        if k == 2:
            u += 1.0
        return k + 1, u * 2.0

    with pytest.raises(CheckpointError, match="in place"):
        grad(lambda u: checkpoint_sequence(late, (0, u * 1.0), 5, 2)[1].sum())(X)


@pytest.mark.parametrize("when", [0, 3, 4])
def test_values_kept_elsewhere_than_in_the_state_are_refused(when):
    log = []

    def step(state):
        k, x = state
        x = x * 0.5
        if k == when:
            log.append(x)
        return k + 1, x

    def f(x):
        k, y = checkpoint_sequence(step, (0, x), 6, 2)
        return log[-1] * 2.0

    with pytest.raises(CheckpointError, match="kept elsewhere"):
        grad(f)(1.0)


def test_values_kept_without_their_derivative_are_fine():
    log = []

    def step(x):
        log.append(stop_gradient(x))
        print("", end="")
        return x * 0.5

    assert grad(lambda x: checkpoint_sequence(step, x, 4, 2))(1.0) == 0.5**4


def test_a_step_that_writes_to_an_older_array_is_refused():
    def f(u):
        total = u * 0.0
        checkpoint_sequence(lambda x: total.__iadd__(x) * 0.5, u, 4, 2)
        return total.sum()

    with pytest.raises((CheckpointError, plaingrad.MissingRuleError)):
        grad(f)(X)

    def g(u):
        total = u * 0.0

        def step(x):
            nonlocal total
            total += x
            return x * 0.5

        return checkpoint_sequence(step, u, 4, 2).sum() + total.sum()

    with pytest.raises(CheckpointError):
        grad(g)(X)


def test_a_step_that_does_something_else_the_next_time_is_refused():
    clock = [0.0]

    def step(x):
        clock[0] += 1.0
        return x * clock[0]

    with pytest.raises(CheckpointError, match="run again"):
        grad(lambda x: checkpoint_sequence(step, x, 5, 2))(1.0)


def test_random_numbers_of_a_sequence_are_drawn_again():
    rng = np.random.default_rng(1)
    expected = math.prod(np.random.default_rng(1).normal(size=11))
    assert grad(lambda x: checkpoint_sequence(lambda x: x * rng.normal(), x, 11, 3))(1.0) == pytest.approx(
        expected
    )
    following = np.random.default_rng(1)
    following.normal(size=11)
    assert rng.normal() == following.normal()
    random.seed(8)
    factors = [random.random() for _ in range(7)]
    random.seed(8)
    got = grad(lambda x: checkpoint_sequence(lambda x: x * random.random(), x, 7, 2))(1.0)
    assert got == pytest.approx(math.prod(factors))


def test_several_pullbacks_of_one_sequence():
    step, calls = counted(lambda s: (s[0] + 0.1 * s[1], s[1] - 0.1 * s[0]))
    y, pullback = vjp(lambda a, b: checkpoint_sequence(step, (a, b), 12, 3), 1.0, 2.0)
    rows = [pullback(seed) for seed in ((1.0, 0.0), (0.0, 1.0), (1.0, 0.0))]
    matrix = np.linalg.matrix_power(np.array([[1.0, 0.1], [-0.1, 1.0]]), 12)
    assert rows[0] == pytest.approx(tuple(matrix[0])) and rows[1] == pytest.approx(tuple(matrix[1]))
    assert rows[2] == rows[0]
    assert calls[0] <= 12 + fewest(12, 3) + 2 * (12 + fewest(12, 3))


def test_sequences_in_checkpoints_checkpoints_in_steps_and_sequences_in_steps():
    def inner(x):
        return checkpoint(math.sin, x) * 1.1

    def outer(x):
        return checkpoint_sequence(inner, x, 3, 1)

    def slope(x):
        s = 1.0
        for _ in range(12):
            s *= math.cos(x) * 1.1
            x = math.sin(x) * 1.1
        return s

    got = grad(lambda x: checkpoint(lambda x: checkpoint_sequence(outer, x, 4, 2), x))(0.9)
    assert got == pytest.approx(slope(0.9), rel=1e-13)


def test_second_derivatives_of_sequences():
    def f(x):
        return checkpoint_sequence(lambda s: (s[0] * s[0] * 0.9, s[1]), (x, 1.0), 3, 2)[0]  # c x^8

    c = 0.9**7
    assert grad(f)(1.1) == pytest.approx(8 * c * 1.1**7)
    assert grad(grad(f))(1.1) == pytest.approx(56 * c * 1.1**6)
    assert jvp(grad(f), (1.1,), (1.0,))[1] == pytest.approx(56 * c * 1.1**6)
    assert grad(lambda x: jvp(f, (x,), (1.0,))[1])(1.1) == pytest.approx(56 * c * 1.1**6)
    hessian = [
        vjp(grad(lambda u: (checkpoint_sequence(np.sin, u, 2, 1)).sum()), X)[1](v)[0] for v in np.eye(4)
    ]
    s, k = np.sin(X), np.cos(X)
    expected = -np.sin(s) * k * k - np.cos(s) * s
    assert np.array(hessian) == pytest.approx(np.diag(expected), abs=1e-13)


def test_sequences_in_several_threads():
    found = {}

    def work(k):
        found[k] = [grad(lambda x: checkpoint_sequence(logistic, x, 20, 3))(0.1 * k) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, slopes in found.items():
        assert slopes == pytest.approx([logistic_slope(0.1 * k, 20)] * 5, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "budget"), [(-1, 3), (2.0, 3), (True, 3), (3, 0), (3, "2"), (3, None)], ids=str
)
def test_numbers_of_steps_and_states_must_be_whole(n, budget):
    with pytest.raises(ArgumentError, match=r"^(n|budget) must be a whole number"):
        checkpoint_sequence(logistic, 0.3, n, budget)


def test_a_state_that_cannot_be_copied_is_refused():
    with pytest.raises(ArgumentError, match="cannot copy the generator"):
        grad(lambda x: checkpoint_sequence(lambda s: s, (x, (k for k in range(3))), 3, 2)[0])(1.0)


# -- exceptions, hooks, and states without numbers in a sequence ---------------------------------------------------------


class Overflowed(Exception):
    def __init__(self, x, note=None):
        super().__init__(x)
        self.note = note


def squared_until_it_is_large(x):
    if x > 2.0:
        raise Overflowed(x, {"half": 0.5 * x})
    return x * x


def value_that_left(x, n, budget):
    try:
        return checkpoint_sequence(squared_until_it_is_large, x, n, budget)
    except Overflowed as error:
        return error.args[0] * error.note["half"]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 10])  # without an exception, in the last step, in an earlier one
@pytest.mark.parametrize("budget", [1, 2, 5])
def test_a_number_that_leaves_a_sequence_with_an_exception(n, budget):
    x = 1.2
    power = 2.0 if n == 1 else 4.0 if n == 2 else 8.0
    factor = 1.0 if n <= 2 else 0.5
    assert value_that_left(x, n, budget) == pytest.approx(factor * x**power)
    for mode in (grad, derivative):
        slope = mode(value_that_left)
        assert slope(x, n, budget) == pytest.approx(factor * power * x ** (power - 1))
        for outer in (grad, derivative):
            assert outer(slope)(x, n, budget) == pytest.approx(factor * power * (power - 1) * x ** (power - 2))


def test_a_state_changed_in_place_is_left_as_the_exception_left_it():
    def step(state):
        state["u"] *= state["u"]
        state["k"] += 1
        if state["k"] == 3:
            raise Overflowed(state["u"].sum())
        return state

    def f(u):
        state = {"u": u * 1.0, "k": 0}
        with pytest.raises(Overflowed) as caught:
            checkpoint_sequence(step, state, 5, 2)
        assert state["k"] == 3
        return caught.value.args[0] * state["u"][0]

    u = np.array([1.1, 0.9])
    expected = np.array([16 * u[0] ** 15 + 8 * u[0] ** 7 * u[1] ** 8, 8 * u[0] ** 8 * u[1] ** 7])
    np.testing.assert_allclose(grad(f)(u), expected)
    np.testing.assert_allclose(jvp(f, (u,), (np.array([1.0, 0.0]),))[1], expected[0])


def test_random_numbers_are_the_same_where_a_sequence_is_run_again_after_an_exception():
    def step(x):
        if x > 1.5:
            raise Overflowed(x)
        return x * (1.0 + random.random())

    def f(x):
        try:
            return checkpoint_sequence(step, x, 20, 3)
        except Overflowed as error:
            return error.args[0]

    random.seed(4)
    plain = f(0.7)
    after = random.getstate()
    random.seed(4)
    y, slope = value_and_grad(f)(0.7)
    assert y == plain and slope == pytest.approx(plain / 0.7)
    assert random.getstate() == after


def test_an_exception_of_the_first_run_only_is_refused():
    calls = []

    def step(x):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("once")
        return x * x

    with pytest.raises(CheckpointError, match="in the first run only"):
        grad(lambda x: checkpoint_sequence(step, x, 3, 2))(1.1)


@pytest.mark.parametrize("budget", [1, 2, 7])
@pytest.mark.parametrize("state", [("a", 3), [], {}, None, 0, {"k": [1, "text"]}], ids=repr)
def test_a_state_without_numbers(state, budget):
    def f(x):
        found = checkpoint_sequence(lambda s: s, state, 5, budget)
        assert found == state
        return x * x

    assert grad(f)(3.0) == 6.0 and derivative(f)(3.0) == 6.0


def test_a_state_that_is_a_count():
    assert grad(lambda x: checkpoint_sequence(lambda k: k + 1, 0, 5, 2) * x * x)(3.0) == 30.0


def test_a_hook_in_a_step_sees_the_cotangents_of_each():
    def with_hook(seen, hooked):
        def step(state):
            q, p = state
            q = hook(lambda bar: seen.append(bar) or bar * 0.5, q) if hooked else q
            return q * 0.9 + 0.1 * p, p - 0.1 * q

        return step

    def in_sequence(x, seen):
        return checkpoint_sequence(with_hook(seen, True), (x, 1.0), 5, 2)[0]

    def in_a_loop(x, seen):
        state = (x, 1.0)
        step = with_hook(seen, True)
        for _ in range(5):
            state = step(state)
        return state[0]

    of_sequence, of_loop = [], []
    assert grad(in_sequence)(0.7, of_sequence) == grad(in_a_loop)(0.7, of_loop)
    assert of_sequence == of_loop and len(of_loop) == 5
    u = np.array([0.7, 0.2])
    np.testing.assert_allclose(
        grad(lambda u: checkpoint_sequence(lambda v: hook(np.negative, v * v), u, 3, 2).sum())(u), -8 * u**7
    )
    kept = {}
    found = grad(lambda x: checkpoint(lambda x: hook(lambda bar: kept.update(bar), {"a": x, "b": [x * x]})["b"][0], x))
    assert found(3.0) == 6.0 and kept == {"a": 0.0, "b": [1.0]}
