"""Hooks on cotangents, and how deep in derivatives a call is."""

import dataclasses
import math
import threading

import numpy as np
import pytest

import plaingrad
from plaingrad import ArgumentError, CotangentError, grad, hook, nestlevel, value_and_grad, vjp


def test_a_hook_is_the_identity_in_a_plain_call():
    def never(x_bar):
        raise AssertionError("there is no reverse pass")

    assert hook(never, 3.0) == 3.0
    assert hook(never, "text") == "text"
    a = np.arange(3.0)
    b = hook(never, a)
    assert (b == a).all() and not np.may_share_memory(a, b)
    assert hook(never, {"a": [1.0, "b"]}) == {"a": [1.0, "b"]}


def test_a_hook_changes_the_cotangent_and_nothing_else():
    clip = lambda x_bar: max(-1.0, min(1.0, x_bar))
    f = lambda x: 100.0 * hook(clip, x) + math.sin(x)
    y, x_bar = value_and_grad(f)(0.5)
    assert y == 100.0 * 0.5 + math.sin(0.5)
    assert x_bar == pytest.approx(1.0 + math.cos(0.5), rel=1e-15)


def test_a_hook_that_returns_nothing_only_looks():
    seen = []
    assert grad(lambda x: hook(seen.append, x) ** 2)(3.0) == 6.0
    assert seen == [6.0]


def test_a_hook_gets_the_sum_of_all_contributions():
    seen = []

    def f(x):
        x = hook(seen.append, x)
        return x * x + 3.0 * x

    grad(f)(2.0)
    assert seen == [7.0]


def test_a_hook_on_a_value_without_influence_is_not_called():
    seen = []
    assert grad(lambda x: (hook(seen.append, x * x), 2.0 * x)[1])(3.0) == 2.0
    assert seen == []


def test_a_hook_sees_arrays_and_structures_as_they_are():
    seen = []

    def f(x):
        d = hook(seen.append, {"a": x[0], "b": [x[1:], "text", 7], "c": (2.0,)})
        return d["a"] * (d["b"][0] ** 2).sum() * d["c"][0]

    x = np.array([2.0, 3.0, 4.0])
    assert (grad(f)(x) == [50.0, 24.0, 32.0]).all()
    (tree,) = seen
    assert tree["a"] == 50.0 and (tree["b"][0] == [24.0, 32.0]).all()
    assert tree["b"][1:] == [None, None] and tree["c"] == (50.0,)


def test_a_hook_may_change_one_part_of_a_structure():
    f = lambda x: (lambda d: d["a"] * d["b"])(hook(lambda bar: {**bar, "a": 0.0}, {"a": x, "b": x}))
    assert grad(f)(3.0) == 3.0


def test_a_hook_on_an_array_keeps_writes_apart():
    def f(x):
        y = hook(lambda x_bar: 2.0 * x_bar, x)
        y[0] = 5.0
        return (x * y).sum()

    # y0 is 5: x0_bar = 5; x1 * y1 with y1 = x1: x1 + 2 x1
    assert (grad(f)(np.array([3.0, 4.0])) == [5.0, 12.0]).all()


@pytest.mark.parametrize("wrong", ["text", np.ones(2), 1j, [1.0]])
def test_a_hook_that_returns_no_cotangent_is_named(wrong):
    with pytest.raises(CotangentError, match="what the hook returned"):
        grad(lambda x: hook(lambda x_bar: wrong, x) ** 2)(3.0)


def test_a_hook_on_an_object_is_refused():
    class Model:
        def __init__(self, x):
            self.x = x

    with pytest.raises(ArgumentError, match="hook takes numbers.* its attributes one by one"):
        grad(lambda x: hook(print, Model(x)).x)(3.0)
    with pytest.raises(ArgumentError, match="needs a function first"):
        hook(3.0, print)


def test_the_hook_of_a_gradient_is_differentiated_with_it():
    squared = grad(lambda x: hook(lambda x_bar: x_bar * x_bar, x) ** 2)  # (2 x) ** 2
    assert squared(3.0) == 36.0
    assert grad(squared)(3.0) == 24.0
    assert grad(grad(squared))(3.0) == 8.0
    # the hook closes over a value that is differentiated further out
    assert grad(lambda s: grad(lambda x: hook(lambda x_bar: s * x_bar, x) ** 2)(3.0))(2.0) == 6.0


def test_of_nested_passes_a_hook_belongs_to_the_one_that_its_value_depends_on():
    seen = []
    outer = lambda x: grad(lambda y: y * y * hook(seen.append, x))(3.0)
    assert grad(outer)(2.0) == 6.0
    assert seen == [6.0]


def test_forward_mode_passes_a_hook_by():
    seen = []
    f = lambda x: hook(seen.append, x) ** 3
    assert plaingrad.jvp(f, (2.0,), (1.0,)) == (8.0, 12.0)
    assert plaingrad.derivative(f, order=2)(2.0) == 12.0
    assert plaingrad.jacobian(lambda x: hook(seen.append, x) ** 2, mode="forward")(np.arange(3.0)).shape == (
        3,
        3,
    )
    assert seen == []


def test_a_hook_is_run_by_the_reverse_pass_around_forward_mode():
    seen = []
    f = lambda x: plaingrad.derivative(lambda y: hook(seen.append, y * x) * y)(
        x
    )  # d/dy (x y^2) = 2 x y at y = x
    assert grad(f)(3.0) == 12.0
    assert len(seen) == 1
    tripled = lambda x: plaingrad.derivative(lambda y: hook(lambda bar: 3.0 * bar, x) * y)(1.0)  # x, hooked
    assert grad(tripled)(2.0) == 3.0


def test_a_pullback_runs_its_hooks_each_time():
    seen = []
    _, pullback = vjp(lambda x: hook(seen.append, x) * 2.0, 3.0)
    assert pullback(1.0) == (2.0,) and pullback(3.0) == (6.0,)
    assert seen == [2.0, 6.0]


def test_nestlevel_counts_the_derivatives_around_a_call():
    seen = []

    def f(x):
        seen.append(nestlevel())
        return x * x

    f(1.0)
    grad(f)(1.0)
    grad(grad(f))(1.0)
    grad(lambda x: f(x) + grad(f)(x))(1.0)
    assert seen == [0, 1, 2, 1, 2]
    assert nestlevel() == 0


def test_nestlevel_is_0_again_after_an_exception_and_in_another_thread():
    def fails(x):
        raise KeyError(nestlevel())

    with pytest.raises(KeyError, match="1"):
        grad(fails)(1.0)
    assert nestlevel() == 0
    seen = []
    thread = threading.Thread(target=lambda: seen.append(nestlevel()))
    thread.start()
    thread.join()
    assert seen == [0]


def test_nestlevel_in_a_rule_counts_the_levels_outside_it():
    def tripled(x):
        return 3.0 * x

    seen = []

    @plaingrad.rrule(tripled)
    def tripled_rrule(x):
        seen.append(nestlevel())
        return 3.0 * x, lambda y_bar: (3.0 * y_bar,)

    grad(tripled)(1.0)
    grad(grad(lambda x: tripled(x) * x))(1.0)
    assert seen == [0, 1]


def test_a_notebook_and_a_prompt_do_not_print_again_what_show_has_printed(capsys):
    text = plaingrad.show(lambda x: x + 1.0)
    printed = capsys.readouterr().out
    assert text + "\n" == printed and isinstance(text, str)
    assert text._ipython_display_() is None and capsys.readouterr().out == ""
    assert repr(text) == f"<{len(printed.splitlines())} lines of text, as printed>"


@dataclasses.dataclass
class Point:
    x: float
    at: list
    name: str = "p"


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: float
    inner: Point


def test_hooks_on_dataclasses_get_and_give_tangents():
    seen = []

    def doubled(bar):
        seen.append(bar)
        return {"x": 2 * bar.x, "inner": bar.inner}

    def f(p):
        q = plaingrad.hook(doubled, p)
        assert type(q) is Frozen and q.x == p.x and q is not p and q.inner.name == "p"
        return q.x * q.inner.x * q.inner.at[0].sum()

    p = Frozen(2.0, Point(3.0, [np.array([1.0, 4.0])]))
    bar = plaingrad.grad(f)(p)
    assert (bar.x, bar.inner.x) == (30.0, 10.0) and bar.inner.at[0].tolist() == [6.0, 6.0]
    assert (seen[0].x, seen[0].inner.x) == (15.0, 10.0)
    assert f(p) == 30.0 and plaingrad.jvp(f, (p,), (plaingrad.Tangent(Frozen, x=1.0),))[1] == 15.0

    class Other:
        x = 1.0

        def __init__(self):
            self.y = 2.0

    with pytest.raises(plaingrad.ArgumentError, match="attributes one by one"):
        plaingrad.hook(print, Other())
