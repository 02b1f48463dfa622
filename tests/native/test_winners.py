"""Loops that keep the best of what they compute: one iteration is done again, and the gradients are the plain tier's."""

import math

import numpy as np
import pytest

numba = pytest.importorskip("numba")

import plaingrad
from plaingrad.native.border import call
from plaingrad.native.compile import build
from tests.native import uncompiled
from tests.native.uncompiled import check

X = np.array([0.6, -0.8, 1.1, 0.3, -0.4, 0.9])
C = np.array([[0.3, 0.2], [0.1, -0.4], [0.5, 0.9], [0.15, -0.35]])


def nearest(x, c, n):
    t = 0.0
    for a in range(n):
        best = np.inf
        for k in range(c.shape[0]):
            d = 0.0
            for j in range(2):
                d += (x[a + j] - c[k, j]) ** 2
            best = min(best, d)
        t += math.sqrt(best)
    return t


def with_its_place(x, c, n):
    t = 0.0
    for a in range(n):
        best = np.inf
        place = -1
        for k in range(c.shape[0] - 1, -1, -1):
            d = x[a] * c[k, 0] + c[k, 1]
            if d < best:
                best = d
                place = k
        if place >= 0:
            t = t * 0.5 + best * best * c[place, 0]
    return t


def smallest_and_largest(x, c, n):
    low = 1e9
    high = c[0, 0]
    for a in range(n):
        v = math.exp(x[a]) * x[a - 1]
        if v < low:
            low = v
        high = max(v * 2.0, high)
    return low * high


def with_what_belongs_to_it(x, c, n):
    b = x[0] * x[1]
    w = x[2]
    u = 0.5
    for a in range(n):
        v = x[a] * c[0, 0]
        if not v < b:
            b = v
            w = math.sin(x[a]) * c[1, 1]
            u = v * w
    return b * w + u


def of_columns_that_are_shared(x, c, n):
    t = 0.0
    for a in range(n):
        m = -9.0
        for k in range(4):
            m = max(m, x[k] * c[k, a % 2])
        t += m * m
    return t


def under_a_branch(x, c, n):
    t = 0.0
    for a in range(n):
        if x[a] > 0.0:
            b = 9.0
            for k in range(4):
                v = (x[a] - c[k, 0]) ** 2
                if b > v:
                    b = v
            t += b * t + b
    return t


def is_replayed(f):
    """Whether the reverse sweep of `f` does one iteration again."""
    with uncompiled.typing_only():
        text = build.derived("pullback", f, call.signature_of((X, C, 4)), (0, 1)).text
    return "winner" in text


WINNERS = [
    nearest,
    with_its_place,
    smallest_and_largest,
    with_what_belongs_to_it,
    of_columns_that_are_shared,
    under_a_branch,
]


@pytest.mark.parametrize("f", WINNERS, ids=lambda f: f.__name__)
def test_the_iteration_that_was_kept_last_is_done_again(f):
    assert is_replayed(f)
    for n in (5, 0):
        check(f, X, C, n)
    if f is nearest:
        check(f, X[::-1], C[::-1, ::-1], 4)


def from_what_was_kept(x, c, n):
    b = x[0]
    for a in range(n):
        v = x[a] * b
        if v < b:
            b = v
    return b


def from_where_it_was(x, c, n):
    b = x[0]
    place = 0
    for a in range(n):
        v = x[a] * x[place] * c[place % 4, 1]
        if v < b:
            b = v
            place = a
    return b * c[place % 4, 0]


def with_a_sum_beside(x, c, n):
    b = x[0]
    s = 0.0
    for a in range(n):
        v = x[a] * c[a % 4, 0]
        s += v * v
        if v < b:
            b = v
    return b * s


def with_the_value_before(x, c, n):
    b = x[0]
    p = x[1]
    old = x[2]
    for a in range(n):
        v = x[a] * c[1, 1]
        old = b
        if v < b:
            b = v
        if b < p:
            p = b
    return b * p + old


def from_memory_that_changes(x, c, n):
    y = x * 2.0
    t = 0.0
    for a in range(n):
        b = 9.0
        for k in range(4):
            v = (y[a] - c[k, 0]) ** 2
            if v < b:
                b = v
        y[(a + 1) % 5] = b * x[a]
        t += b
    return t


def with_the_last_one(x, c, n):
    b = x[0]
    v = 0.0
    for a in range(n):
        v = x[a] * c[a % 4, 0]
        if v < b:
            b = v
    return b + v


def left_early(x, c, n):
    b = x[0]
    for a in range(n):
        v = x[a] * c[a % 4, 0]
        if v < b:
            b = v
        if b < -0.3:
            break
    return b * b


def by_what_another_test_decides(x, c, n):
    b = p = 5.0
    for a in range(n):
        u = x[a] * c[0, 0]
        if u < p:
            p = u
            m = 1
        else:
            m = 3
        v = x[m] * x[a] * c[m, 1]
        if v < b:
            b = v
    return b * b + p


OTHERS = [
    by_what_another_test_decides,
    from_what_was_kept,
    from_where_it_was,
    with_a_sum_beside,
    with_the_value_before,
    from_memory_that_changes,
    with_the_last_one,
    left_early,
]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_other_loops_are_not(f):
    assert not is_replayed(f)
    check(f, X, C, 5)


def test_of_equals_and_of_what_is_no_number_the_one_counts_that_python_keeps():
    equal = np.full(6, 0.5)
    missing = X.copy()
    missing[1] = math.nan
    for x in (equal, missing, -equal):
        for f in (smallest_and_largest, nearest, with_its_place):
            args = x.copy(), C.copy(), 4
            _, found = uncompiled.gradient(f, args)
            expected = plaingrad.grad(f, (0, 1), tier="plain")(x.copy(), C.copy(), 4)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_compiled_it_is_called_again_narrow_and_differentiated_twice():
    value, pullback = plaingrad.vjp(smallest_and_largest, X, C, 5, tier="native")
    expected = plaingrad.grad(smallest_and_largest, (0, 1), tier="plain")(X, C, 5)
    for factor in (1.0, -2.0, 1.0):
        for mine, theirs in zip(pullback(factor)[:2], expected, strict=True):
            np.testing.assert_allclose(mine, factor * theirs, rtol=1e-11, atol=1e-14)
    dots = np.ones_like(X), np.full_like(C, 0.3), None
    both = [plaingrad.hvp(nearest, (X, C, 4), dots, tier=tier) for tier in ("native", "plain")]
    for a, b in zip(both[0][:2], both[1][:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)
