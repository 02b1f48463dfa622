"""Hazard 9: arguments are made fresh, so two names of one array come apart: right, or an error that names both."""

import numpy as np
import pytest
from cases_b import check

import plaingrad

G = np.array([1.0, 2.0, 3.0])


def fresh():
    global G
    G = np.array([1.0, 2.0, 3.0])


def test_writing_the_argument_while_reading_a_global_that_is_the_same_array():
    def f(x):
        x[0] = 10.0
        return (x * G).sum()

    fresh()
    assert f(G) == 100.0 + 4.0 + 9.0
    fresh()
    with pytest.raises(plaingrad.AliasError, match="G"):
        plaingrad.grad(f)(G)


def test_writing_the_global_while_reading_the_argument():
    def f(x):
        G[1] = 7.0
        return (x * x).sum()

    fresh()
    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f)(G)


def test_reading_both_names_without_a_write_is_right():
    def f(x):
        return (x * G).sum()

    fresh()
    # G, read as a global, is a constant: only the argument is differentiated
    value, slope = plaingrad.value_and_grad(f)(G)
    assert value == 14.0
    assert slope.tolist() == [1.0, 2.0, 3.0]


def test_writing_only_one_name_that_is_never_met_again_is_right():
    def f(x):
        x *= 2.0
        return (x * x).sum()

    fresh()
    value, slope = plaingrad.value_and_grad(f)(G)
    assert value == 4 * 14.0 and slope.tolist() == [8.0, 16.0, 24.0]
    assert G.tolist() == [2.0, 4.0, 6.0], "the caller's array is as after a plain call"
    fresh()


def test_the_same_array_twice_as_arguments():
    def reads(a, b):
        return (a * b).sum()

    def writes(a, b):
        a[0] = 5.0
        return (a * b).sum()

    w = np.array([1.0, 2.0])
    a_bar, b_bar = plaingrad.grad(reads, argnums=(0, 1))(w, w)
    assert a_bar.tolist() == b_bar.tolist() == [1.0, 2.0]
    with pytest.raises(plaingrad.AliasError) as refused:
        plaingrad.grad(writes, argnums=(0, 1))(w, w)
    assert "argument" in str(refused.value)
    w = np.array([1.0, 2.0])
    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(writes)(w, w)


def test_overlapping_views_as_two_arguments():
    def f(a, b):
        a[0] = 5.0
        return (a * b).sum()

    w = np.array([1.0, 2.0, 3.0])
    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f, argnums=(0, 1))(w[:2], w[1:])
    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f)(w[1:], w[:2])


def test_an_argument_that_is_a_view_of_a_global():
    def f(x):
        x[0] = 10.0
        return x.sum() + G[1] * 100.0

    fresh()
    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f)(G[1:])
    fresh()


def test_the_same_array_inside_a_container_and_beside_it():
    def f(p):
        p["w"][0] = p["w"][1] * 3.0
        return (p["w"] * p["list"][0]).sum()

    w = np.array([1.0, 2.0])
    plain = {"w": w.copy()}
    plain["list"] = [plain["w"]]
    assert f(plain) == 40.0
    ours = {"w": w.copy()}
    ours["list"] = [ours["w"]]
    try:
        slope = plaingrad.grad(f)(ours)
    except plaingrad.AliasError as refused:
        assert "'w'" in str(refused) and "'list'" in str(refused)
    else:  # one leaf under two names: all of the derivative is under either, never twice
        assert (slope["w"] + slope["list"][0]).tolist() == [0.0, 40.0]


def test_a_closure_a_default_and_an_attribute_as_second_names():
    w = np.array([1.0, 2.0])

    def closure(x):
        x += 1.0
        return (x * w).sum()

    def default(x, k=w):
        x += 1.0
        return (x * k).sum()

    class Model:
        pass

    Model.k = w

    def attribute(x):
        x += 1.0
        return (x * Model.k).sum()

    table = {"w": [w]}

    def item(x):
        x += 1.0
        return (x * table["w"][0]).sum()

    for f in (closure, default, attribute, item):
        assert f(w.copy()) == 8.0, f.__name__
        with pytest.raises(plaingrad.AliasError):
            plaingrad.grad(f)(w)
        w[:] = 1.0, 2.0  # an exception leaves what was written before it, as in a plain call


def test_a_second_name_met_after_the_write_or_written_after_the_read():
    w = np.array([1.0, 2.0])

    def read_then_write(x):
        y = (w * w).sum()
        x[0] = 5.0
        return y + x.sum()

    def write_then_read(x):
        x[0] = 5.0
        return x.sum() + float(w[0]) * x[1]

    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(write_then_read)(w)
    w[:] = 1.0, 2.0
    # the read came first: its value is right either way
    try:
        value, slope = plaingrad.value_and_grad(read_then_write)(w)
    except plaingrad.AliasError:
        pass
    else:
        assert (value, slope.tolist()) == (5.0 + 7.0, [0.0, 1.0])


def test_results_that_are_inputs_come_back_as_the_callers_own_objects():
    w, other = np.array([1.0, 2.0]), [3.0]

    def f(x, k):
        return (x * x).sum(), {"x": x, "list": k, "view": [x]}

    _, aux = plaingrad.grad(f, has_aux=True)(w, other)
    assert aux["x"] is w and aux["list"] is other and aux["view"][0] is w


def test_an_argument_kept_outside_is_the_callers_own_object():
    kept = []

    def f(x):
        kept.append(x)
        x[0] = 9.0
        return (x * x).sum()

    w = np.array([1.0, 2.0])
    plaingrad.grad(f)(w)
    assert w.tolist() == [9.0, 2.0]
    assert kept[0].tolist() == [9.0, 2.0]


def test_equal_floats_in_two_places_are_two_leaves():
    one = 1.5
    check(lambda p: p[0] * p[0] * p[1], [one, one], [2 * 1.5**2, 1.5**2])
    check(lambda p: p["a"] * 3.0 + p["b"][0], {"a": one, "b": (one,)}, {"a": 3.0, "b": (1.0,)})


def test_a_list_argument_that_is_also_a_global_keeps_one_identity():
    items = [1.5, 2.5]

    def f(p):
        p[0] = p[1] * p[1]
        return items[0] + p[0]

    plain = items[:]
    assert plaingrad.value_and_grad(f)(items) == (12.5, [0.0, 10.0])
    assert items == [6.25, 2.5] != plain
