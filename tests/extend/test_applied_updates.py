"""`frule` applied to functions that change their arguments: the tangents are those of the new contents."""

import copy
import math
from collections import deque

import numpy as np
import pytest

from plaingrad import Dual, NoTangent, Tangent, TangentError, derivative, frule, rrule, zero_tangent
from plaingrad.tangents import Thunk
from plaingrad.testing import check_rule


class Model:
    def __init__(self, a, b):
        self.a = a
        self.b = b


class Counter:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        self.n = self.n * x
        return self.n

    def scale(self, x):
        self.n = self.n * x


class Slotted:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v


def by_difference(f, x, x_dot, y, y_dot, seen):
    """What `seen` says of x after f(x, y), along the tangents, by central differences."""
    h = 1e-6

    def at(t):
        moved = shifted(x, x_dot, t)
        f(moved, y + t * y_dot)
        return np.array(seen(moved), float)

    return (at(h) - at(-h)) / (2 * h)


def shifted(x, x_dot, t):
    if isinstance(x, (list, deque)):
        return type(x)(shifted(p, d, t) for p, d in zip(x, x_dot))
    if isinstance(x, dict):
        return {k: shifted(x[k], x_dot[k], t) for k in x}
    if isinstance(x, (float, np.ndarray)):
        return x + t * x_dot
    made = copy.copy(x)
    for name in x_dot:
        setattr(made, name, shifted(getattr(x, name), x_dot[name], t))
    return made


def set_item(p, y):
    p[0] = p[0] * y
    p[1] = p[0] + p[1]


def append(p, y):
    p.append(p[0] * y)
    p.insert(0, y)


def pop(p, y):
    p.pop(0)
    p[0] = p[0] * y


def reverse(p, y):
    p.reverse()
    p[0] *= y


def nested_append(p, y):
    p[0].append(p[1][0] * y)
    p[1][0] = y


def put(p, y):
    p["a"] = p["a"] * y
    p["c"] = p["b"] * y
    del p["b"]


def set_fields(m, y):
    m.a = m.a * y
    m.b[1] = m.b[0] * m.a
    m.c = m.a * 2


def set_slot(s, y):
    s.v = s.v * y


def swap(p, y):
    p[0], p[1] = p[1], p[0]


CASES = {
    "items of a list": (set_item, [2.0, 3.0], [1.0, 0.5], list, list),
    "append and insert": (append, [2.0, 3.0], [1.0, 0.5], list, list),
    "pop": (pop, [2.0, 3.0, 4.0], [1.0, 0.5, 0.25], list, list),
    "reverse": (reverse, [2.0, 3.0, 4.0], [1.0, 0.5, 0.25], list, list),
    "swap": (swap, [2.0, 3.0], [1.0, 0.5], list, list),
    "deque": (append, deque([2.0, 3.0]), [1.0, 0.5], list, list),
    "lists in a list": (nested_append, [[1.0], [2.0]], [[0.5], [0.25]], lambda p: [*p[0], *p[1]], lambda d: [*d[0], *d[1]]),
    "a dictionary": (put, {"a": 2.0, "b": 3.0}, {"a": 1.0, "b": 0.5}, lambda p: list(p.values()), lambda d: list(d.values())),
    "an object": (
        set_fields,
        Model(2.0, [1.0, 3.0]),
        Tangent(Model, {"a": 1.0, "b": [0.5, 0.25]}),
        lambda m: [m.a, *m.b, m.c],
        lambda t: [t["a"], *t["b"], t["c"]],
    ),
    "slots": (set_slot, Slotted(2.0), Tangent(Slotted, {"v": 0.5}), lambda s: [s.v], lambda t: [t["v"]]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_tangents_are_updated_with_what_they_belong_to(name):
    f, x, x_dot, seen, seen_dot = CASES[name]
    expected = by_difference(f, copy.deepcopy(x), x_dot, 1.5, 0.7, seen)
    plain, given = copy.deepcopy(x), copy.deepcopy(x)
    f(plain, 1.5)
    x_dot = copy.deepcopy(x_dot)
    frule(Dual(f, NoTangent), Dual(given, x_dot), Dual(1.5, 0.7))
    assert seen(given) == seen(plain)
    np.testing.assert_allclose(seen_dot(x_dot), expected, rtol=1e-7)


def test_inner_tangents_keep_their_identity():
    p, inner_dot = [[1.0], 2.0], [0.5]
    p_dot = [inner_dot, 1.0]
    frule(Dual(lambda p: p[0].append(p[1] * 3.0), NoTangent), Dual(p, p_dot))
    assert p_dot[0] is inner_dot and inner_dot == [0.5, 3.0]


def test_the_tangent_of_a_callable_object_and_of_its_method_is_updated():
    c, c_dot = Counter(2.0), Tangent(Counter, {"n": 1.0})
    assert frule(Dual(c, c_dot), Dual(3.0, 0.5)) == Dual(6.0, 4.0)
    assert (c.n, c_dot["n"]) == (6.0, 4.0)
    method = c.scale
    frule(Dual(method, Tangent(type(method), {"__self__": c_dot})), Dual(2.0, 1.0))
    assert (c.n, c_dot["n"]) == (12.0, 14.0)


def test_the_tangent_of_a_closure_is_updated():
    k = 2.0

    def f(x):
        nonlocal k
        k = k * x
        return k

    f_dot = Tangent(type(f), {"k": 1.0})
    assert frule(Dual(f, f_dot), Dual(3.0, 0.5)) == Dual(6.0, 4.0)
    assert (k, f_dot["k"]) == (6.0, 4.0)


def test_what_has_no_place_for_its_derivative_is_refused():
    def f(p, y):
        p.append(y * 2.0)

    with pytest.raises(TangentError, match="argument 0, a list"):
        frule(Dual(f, NoTangent), Dual([1.0], NoTangent), Dual(3.0, 1.0))
    p = [1.0]
    p_dot = zero_tangent(p)
    frule(Dual(f, NoTangent), Dual(p, p_dot), Dual(3.0, 1.0))
    assert list(p_dot) == [0.0, 2.0]
    frule(Dual(f, NoTangent), Dual([1.0], NoTangent), Dual(3.0, NoTangent))  # nothing varies: nothing is lost


def test_an_array_without_a_tangent_into_which_is_written_is_refused():
    def f(a, y):
        a[0] = y

    with pytest.raises(TangentError, match="argument 0, a ndarray"):
        frule(Dual(f, NoTangent), Dual(np.zeros(2), NoTangent), Dual(3.0, 1.0))


def test_an_exception_leaves_the_tangents_as_they_were():
    def f(p):
        p.append(p[0])
        raise KeyError("no")

    p_dot = [1.0]
    with pytest.raises(KeyError):
        frule(Dual(f, NoTangent), Dual([2.0], p_dot))
    assert p_dot == [1.0]


def test_under_an_outer_derivative_the_new_tangents_are_differentiated():
    def f(p):
        p.append(p[0] ** 3)

    def second(x):
        p_dot = [1.0]
        frule(Dual(f, NoTangent), Dual([x], p_dot))
        return p_dot[1]

    assert derivative(second)(2.0) == pytest.approx(12.0)


@pytest.mark.parametrize("f, x, y", [(set_item, [2.0, 3.0], 1.5), (append, [2.0], 1.5), (put, {"a": 2.0, "b": 3.0}, 1.5), (set_fields, Model(2.0, [1.0, 3.0]), 1.5)])
def test_check_rule_looks_at_the_tangents_of_what_is_changed(f, x, y):
    check_rule(f, x, y)


@pytest.mark.parametrize("f, args", [(math.exp, (1.0,)), (np.multiply, (np.ones(2), 2.0)), (np.sum, (np.ones(3),)), (math.hypot, (3.0, 4.0)), (np.linalg.inv, (np.eye(2),))])
def test_an_applied_pullback_gives_values(f, args):
    y, pullback = rrule(f, *args)
    bars = pullback(np.ones_like(y) if isinstance(y, np.ndarray) else 1.0)
    assert not any(isinstance(bar, Thunk) for bar in bars)
    assert all(np.shape(bar) == np.shape(x) for bar, x in zip(bars[1:], args))
