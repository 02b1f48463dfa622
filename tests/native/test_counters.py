"""`while` loops that count, and counters in nests: which become formulas, and that all keep their values and slopes."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

import plaingrad
from plaingrad.native.frontend.translation import program
from plaingrad.native.lowering.counted_loops import counted_loops
from plaingrad.native.lowering.counters import counters_as_formulas
from plaingrad.native.program.ir import Const, For, Let, Loop, carried_reads, statements
from tests.native.uncompiled import check

X = np.array([0.6, -0.8, 1.1, 0.3, -0.4, 0.9, 0.7, -0.2])
COUNTS = (5, 0, 1, 8, -2)


def lowered(f, *args):
    p = program(f, tuple(map(numba.typeof, args)))
    return counters_as_formulas(counted_loops(p))


def loops(f, *args):
    return [s for s in statements(lowered(f, *args).body) if isinstance(s, (For, Loop))]


# -- while loops that count --------------------------------------------------------------------------------------------


def upwards(x, n):
    t = 0.0
    i = 0
    while i < n:
        t += x[i] * x[i] * (i + 1)
        i += 1
    return t + i * t


def downwards_in_twos(x, n):
    t = 1.0
    i = n - 1
    while i >= 0:
        t = t * 0.5 + x[i] * x[i] * t
        i -= 2
    return t * (i + 3)


def asking_at_the_top(x, n):
    t = x[0]
    i = 3
    s = 0.0
    while True:
        if i >= n:
            break
        s = t
        t += x[i] ** 2 + s
        i += 3
    return t * i + s


def with_the_value_before(x, n):
    t = x[0]
    before = 0.0
    i = 0
    while i < n:
        before = t
        t = t * x[i] + before * before
        i += 1
    return t * before + t


def with_the_last_value(x, n):
    t = 0.0
    v, p = x[1], x[2]
    i = 0
    while i < n:
        p = v
        v = x[i] * x[i] + p
        t += v * v
        i += 1
    return t * v + p * v


def changing_places(x, n):
    a, b = x[0], x[1]
    i = 0
    while n > i:
        a, b = b, a * b + x[i]
        i = 1 + i
    return a - b * i


def nests_of_triangles(x, n):
    t = 0.0
    i = 0
    while i < len(x):
        j = i
        while j > 0:
            k = 0
            while k <= j:
                t += x[i] * x[j] * x[k] * n
                k += 1
            j -= 1
        i += 1
        t += j * t
    return t


def bound_computed_inside(x, n):
    t = 0.0
    i = 0
    while i < x.shape[0] - n * n:
        t += x[i] * x[i - 1]
        i += 1
    return t


def counter_of_an_argument(x, n):
    t = 0.0
    while n > 0:
        t = t * 1.1 + x[n - 1] ** 3
        n -= 1
    return t * n + t


COUNTED = [
    upwards,
    downwards_in_twos,
    asking_at_the_top,
    with_the_value_before,
    with_the_last_value,
    changing_places,
    nests_of_triangles,
    bound_computed_inside,
    counter_of_an_argument,
]


@pytest.mark.parametrize("f", COUNTED, ids=lambda f: f.__name__)
def test_a_while_loop_that_counts_is_a_counted_loop(f):
    found = loops(f, X, 5)
    assert found and all(isinstance(s, For) for s in found)
    for n in COUNTS:
        check(f, X, n)


def bound_moved(x, n):
    t = 0.0
    i = 0
    while i < n:
        t += x[i] * x[i]
        i += 1
        if t > 0.9:
            n -= 1
    return t


def left_early(x, n):
    t = 0.0
    i = 0
    while i < n:
        if x[i] < -0.5:
            break
        t += x[i] * x[i]
        i += 1
    return t + i * t


def counted_on_one_way_only(x, n):
    t = x[0]
    i = 0
    k = 0
    while i < n:
        k += 1
        if x[i] > 0.0 or k > 2 * i:
            i += 1
        t = t * 0.9 + x[k % 8]
    return t


def asking_after_one_iteration(x, n):
    t = 0.0
    i = 0
    while True:
        t += x[i] * x[i]
        i += 1
        if i >= n:
            break
    return t * i


def over_a_list_that_shrinks(x, n):
    t = 0.0
    i = 0
    y = x
    while i < len(y):
        t += y[i] ** 2 * n
        i += 1
        y = y[:-1]
    return t


def counted_in_floats(x, n):
    t = 0.0
    h = 0.0
    while h < 1.0:
        t += x[0] * h * x[1] + n
        h += 0.125
    return t


OTHERS = [
    bound_moved,
    left_early,
    counted_on_one_way_only,
    asking_after_one_iteration,
    over_a_list_that_shrinks,
    counted_in_floats,
]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_other_while_loops_stay_as_they_are(f):
    assert any(isinstance(s, Loop) for s in loops(f, X, 5))
    for n in (5, 0, 1):
        check(f, X, n)


# -- counters ----------------------------------------------------------------------------------------------------------


def in_a_nest(x, n):
    t = 0.0
    o = 0
    for i in range(n):
        for j in range(2):
            t += x[o % 8] * x[i % 8] * (j + 1)
            o += 1
        t *= 1.0 + 0.1 * o
    return t * o + t


def backwards(x, n):
    t = 0.0
    o = n
    for i in range(n, 0, -1):
        o = o - 2
        t += x[o % 8] * x[i - 1]
        o = o + n + 1
    return t + o * x[0]


def begun_in_a_while_loop(x, n):
    t = 0.0
    o = 2
    i = 0
    while i < n:
        j = 1
        while j < 4:
            t += x[o % 8] * x[j]
            o += 3
            j += 1
        i += 1
    return t * o + t


def two_at_once(x, n):
    t = 0.0
    o = 0
    p = 1
    for i in range(n):
        for j in range(2):
            o += 1
            p += 3
            t += x[o % 8] * x[p % 8] * (j + 1)
        p -= 1
    return t * o + p * t


FORMULAS = [in_a_nest, backwards, begun_in_a_while_loop, two_at_once]


@pytest.mark.parametrize("f", FORMULAS, ids=lambda f: f.__name__)
def test_what_is_added_in_every_iteration_is_a_formula(f):
    p = lowered(f, X, 5)
    moved = [s for s in statements(p.body) if isinstance(s, For)]
    assert moved
    for s in moved:
        copies = [x for x in s.body if isinstance(x, Let) and x.op == "copy" and x.args[0] != Const(0)]
        assert not [x for x in copies if x.target in carried_reads(s.body) and x.target[0] in "op"]
    for n in COUNTS:
        check(f, X, n)


def on_one_way_only(x, n):
    t = 0.0
    o = 0
    for i in range(n):
        if x[i] > 0.0:
            t += x[o] * x[i]
            o += 1
    return t * o


def by_what_grows(x, n):
    t = 0.0
    o = 0
    for i in range(n):
        o += i
        t += x[o % 8] * x[i]
    return t * o


def left_in_the_middle(x, n):
    t = 0.0
    o = 0
    for i in range(n):
        t += x[o % 8] * x[i]
        if t < -0.3:
            break
        o += 3
    return t * o


def kept_as_it_was(x, n):
    t = 0.0
    o = 0
    last = 0
    for i in range(n):
        last = o
        o += 2
        t += x[o % 8] * x[last % 8] * x[i]
    return t * (last + 1)


@pytest.mark.parametrize("f", [on_one_way_only, by_what_grows, left_in_the_middle, kept_as_it_was])
def test_other_counters_keep_their_values(f):
    for n in (5, 0, 1):
        check(f, X, n)


# -- compiled ----------------------------------------------------------------------------------------------------------


def every_form(x, y, n):
    t = 0.0
    o = 0
    i = 0
    while i < n:
        s = y[i] * 0
        j = 0
        while j < x.size:
            s += x[j] * y[o]
            o += 1
            j += 1
        y[i] = s
        t += s * s
        i += 1
    return t * (o + 1)


def test_arrays_that_are_one_backwards_or_narrow_have_the_gradients_of_the_plain_tier():
    both = [plaingrad.grad(every_form, (0, 1), tier=tier) for tier in ("native", "plain")]
    big = np.linspace(-0.9, 0.8, 24)
    cases = [
        (X[:3].copy(), big.copy(), 3),
        (X[:4][::-1], big[::-1], 2),
        (X[::3], big[::2], 3),
        (np.zeros(0), big.copy(), 3),
        (X[:3].copy(), big.copy(), 0),
    ]
    for x, y, n in cases:
        mine, theirs = [gradient(x.copy() if x.base is None else x, y.copy(), n) for gradient in both]
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    narrow = [gradient(X[:3].astype("f4"), big.astype("f4"), 3) for gradient in both]
    for a, b in zip(*narrow, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    again = plaingrad.hessian(upwards, tier="native")(X, 4)
    np.testing.assert_allclose(again, np.diag([10.0, 20, 30, 40, 0, 0, 0, 0]), rtol=1e-12)
