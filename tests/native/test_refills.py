"""Scratch arrays that every iteration of a loop fills: filled again on the way back where that is cheap, and right."""

import math
import re

import numpy as np
import pytest

numba = pytest.importorskip("numba")

import plaingrad
from plaingrad.native.border import call
from tests.native import uncompiled
from tests.native.uncompiled import check

X = np.array([[0.6, -0.8, 1.1], [0.3, -0.4, 0.9], [0.7, -0.2, 0.5], [-0.6, 0.1, 0.4]])
M = np.array([0.2, -0.5, 0.9])


def of_triangles(x, m):
    t = 1.0
    d = np.empty(x.shape[1])
    for n in range(x.shape[0]):
        for j in range(x.shape[1]):
            d[j] = (x[n, j] - m[j]) * m[j]
        for i in range(x.shape[1]):
            s = 0.0
            for j in range(i + 1):
                s += d[j] * d[i]
            t = t * 0.7 + s * s
    return t


def by_what_is_carried(x, m):
    t = 1.0
    d = np.empty(m.size)
    for n in range(x.shape[0]):
        for j in range(m.size):
            d[j] = x[n, j] * t + m[j]
        for i in range(m.size):
            t = t * 0.5 + d[i] * d[(i + n) % 3] * t
    return t


def one_from_another(x, m):
    t = 0.3
    d = np.zeros(m.size)
    e = np.zeros(m.size)
    for n in range(x.shape[0]):
        for j in range(m.size):
            d[j] = x[n, j] * m[j]
        top = d[0] * d[1]
        for j in range(m.size):
            e[j] = d[j] * top + x[n, j]
        for j in range(m.size):
            if e[j] > d[0]:
                t = t * e[j] + d[j]
            else:
                t = t + e[j] * d[2] * t
    return t + top


def made_in_a_loop(x, m):
    t = 1.0
    for k in range(2):
        d = np.empty((2, m.size))
        for n in range(x.shape[0]):
            for i in range(2):
                for j in range(m.size):
                    d[i, j] = x[n, j] * m[j] + i * m[j] + k
            w = 0
            while w < n:
                for j in range(m.size):
                    t = t * 0.9 + d[w % 2, j] * d[0, j] * 0.1
                w += 1
    return t


REFILLED = [of_triangles, by_what_is_carried, one_from_another, made_in_a_loop]


def refills(f):
    """How many stores into elements of the scratch array `d` there are in the reverse sweep."""
    with uncompiled.typing_only():
        text = uncompiled.build.derived("pullback", f, call.signature_of((X, M)), (0, 1)).text
    backward = text[text.index("_backward(") :]
    return len(re.findall(r"^\s+d(?:_\d+)?\[.*\] = ", backward, re.MULTILINE))


@pytest.mark.parametrize("f", REFILLED, ids=lambda f: f.__name__)
def test_an_array_that_is_cheap_to_fill_is_filled_again(f):
    assert refills(f) == 1
    for x in (X, X[:1], X[::-2]):
        check(f, x, M)
    if f is of_triangles:
        check(f, X[:0], M)
        check(f, X[:, :0], M[:0])


def changed_behind(x, m):
    t = 1.0
    d = np.empty(m.size)
    for n in range(x.shape[0]):
        for j in range(m.size):
            d[j] = x[n, j] * m[j]
        d[1] = d[0] * t
        for j in range(m.size):
            t = t * 0.5 + d[j] * d[1] * t
    return t


def filled_in_part(x, m):
    t = 1.0
    d = np.zeros(m.size)
    for n in range(x.shape[0]):
        for j in range(1, m.size):
            d[j] = x[n, j] * m[j] + t
        for j in range(m.size):
            t = t * 0.5 + d[j] * d[j - 1] * t
    return t


def from_memory_that_changes(x, m):
    t = 1.0
    y = m.copy()
    d = np.empty(m.size)
    for n in range(x.shape[0]):
        for j in range(m.size):
            d[j] = x[n, j] * y[j]
        for j in range(m.size):
            t = t * 0.5 + d[j] * d[0] * t
            y[j] = y[j] * 0.5 + t
    return t


def by_functions(x, m):
    t = 1.0
    d = np.empty(m.size)
    for n in range(x.shape[0]):
        for j in range(m.size):
            d[j] = math.exp(x[n, j] * m[j])
        for j in range(m.size):
            t = t * 0.5 + d[j] * d[0] * t
    return t


def left_in_the_middle(x, m):
    t = 1.0
    d = np.empty(m.size)
    for n in range(x.shape[0]):
        for j in range(m.size):
            d[j] = x[n, j] * m[j]
        for j in range(m.size):
            t = t * 0.5 + d[j] * d[0] * t
        if t < 0.3:
            break
        t = t * d[1] + d[2]
    return t


def with_a_sum_inside(x, m):
    t = 1.0
    s = 0.0
    d = np.empty(m.size)
    for n in range(x.shape[0]):
        for j in range(m.size):
            s = s * 0.5 + x[n, j]
            d[j] = s * m[j]
        for j in range(m.size):
            t = t * 0.5 + d[j] * d[0] * t
    return t * s


OTHERS = [
    changed_behind,
    filled_in_part,
    from_memory_that_changes,
    by_functions,
    left_in_the_middle,
    with_a_sum_inside,
]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_other_scratch_arrays_are_not(f):
    assert refills(f) == 0
    check(f, X, M)


def test_a_pullback_may_be_called_again_and_second_derivatives_are_right():
    _, pullback = plaingrad.vjp(one_from_another, X, M, tier="native")
    expected = plaingrad.grad(one_from_another, (0, 1), tier="plain")(X, M)
    for factor in (1.0, -2.0, 1.0):
        for mine, theirs in zip(pullback(factor), expected, strict=True):
            np.testing.assert_allclose(mine, factor * theirs, rtol=1e-12)
    dots = np.ones_like(X), np.array([1.0, -2.0, 0.5])
    mine, theirs = [
        plaingrad.hvp(by_what_is_carried, (X, M), dots, tier=tier) for tier in ("native", "plain")
    ]
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
