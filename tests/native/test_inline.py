"""Functions of the user's in the place of their calls: every program against the plain tier and differences.

Numba compiles the asserts below as they stand: PYTEST_DONT_REWRITE.
"""

import math
from collections import namedtuple

import numpy as np
import pytest

import plaingrad
from tests.native.programs.entries import entering
from tests.native.uncompiled import check

numba = pytest.importorskip("numba")

from numba import types  # noqa: E402

from plaingrad.native.program import emit  # noqa: E402
from plaingrad.native.frontend import translation  # noqa: E402
from plaingrad.native.lowering import prepare  # noqa: E402

V = np.array([0.3, -0.8, 1.7, 0.6])
M = np.array([[0.2, -0.5, 0.9], [1.1, 0.4, -0.3], [0.7, 0.8, -1.2]])
Point = namedtuple("Point", "x y")

PROGRAMS = {}
program = entering(PROGRAMS, plain=True)


def scaled(v, x):
    return v * x


def squares(v):
    w = np.empty(v.size)
    for i in range(v.size):
        w[i] = v[i] * v[i]
    return w


@program(V, 1.2)
def a_callee_that_returns_an_array(v, x):
    return np.sum(scaled(v, x) * squares(v))


@program(V, 1.2, 3)
def an_array_from_a_callee_in_a_loop(v, x, n):
    for _ in range(n):
        v = scaled(v, x) + squares(v)
    return v.sum()


def same(v):
    return v


@program(V, 1.2)
def a_callee_that_hands_its_argument_back(v, x):
    w = same(v)
    w[0] = x * w[1]
    return v.sum() * v[0]


def a_part(v, n):
    return v[1:n]


@program(V, 1.2)
def a_callee_that_returns_a_view(v, x):
    w = a_part(v, 3)
    w *= x
    return (v * v).sum()


def polar(p):
    return math.hypot(p[0], p[1]), math.atan2(p[1], p[0])


@program(1.2, 0.7)
def a_callee_that_takes_and_returns_tuples(x, y):
    r, angle = polar((x * y, y))
    return r * angle


def mirrored(p):
    return Point(p.y, p.x * 2.0)


@program(1.2, 0.7)
def a_callee_that_takes_and_returns_named_tuples(x, y):
    p = mirrored(Point(x * y, y=y))
    q = mirrored(p)
    return p.x * q.x + q.y


@program(Point(1.2, V), 0.7)
def a_named_tuple_as_an_argument(p, x):
    return (p.y * p.x).sum() * x


def nested(v, p):
    return (v[0] * p, (v, p * v))


@program(V, 0.7)
def a_callee_that_returns_nested_tuples_of_arrays(v, x):
    a, (u, w) = nested(v, x)
    w[0] = a
    return (u * w).sum()


def swapped_rows(a, b):
    for i in range(a.size):
        a[i], b[i] = b[i] * 2.0, a[i] * b[i]


@program(M)
def two_rows_of_one_array_are_written(m):
    swapped_rows(m[0], m[1])
    swapped_rows(m[1], m[2])
    return (m * m).sum()


def copy_to_first(a, b):
    a[0] = b[1] * 2
    return a[0]


@program(V)
def an_array_given_twice(v):
    return copy_to_first(v, v) * v[0]


def noise(x):
    return x * np.random.random()


@program(1.2)
def a_callee_that_draws(x):
    return noise(x) * x + noise(x * x)


def walk(v, n):
    s = 0.0
    path = np.zeros(n)
    for i in range(n):
        z = np.random.normal()
        if z > 0.1:
            s += z * v[i % v.size]
        else:
            s *= np.random.uniform(0.5, 1.5) * v[0]
        path[i] = s
    return path


@program(V)
def a_random_walk_is_replayed(v):
    p = walk(v, 6)
    return (p * p).sum() + p[-1]


def first_above(v, limit):
    for i in range(v.size):
        if v[i] > limit:
            return v[i] * i
    return limit


@program(V, 0.5)
def early_return_from_the_loop_of_a_callee(v, x):
    return first_above(v, x) * first_above(v, x * 10.0) + first_above(v[::-1], x)


def search(m, x):
    for i in range(3):
        for j in range(3):
            if m[i, j] > x:
                return m[i, j] * x
            if m[i, j] < -1.0:
                return m[i, j] * m[i, 0]
    return x * x


@program(M, 0.3)
def returns_from_nested_loops_inside_a_loop(m, x):
    s = 0.0
    for k in range(3):
        s += search(m, x + 0.35 * k) * (k + 1)
    return s


def level_0(x):
    return math.sin(x) * x


def level_1(x):
    return level_0(x) + level_0(x * 0.5)


def level_2(x):
    return level_1(x) * level_1(x - 0.2)


def level_3(x):
    return level_2(x) + level_2(x * x)


@program(0.8)
def a_chain_of_callees(x):
    return level_3(level_3(x))


def helper(x, power=2, scale=1.5):
    return x**power * scale


@program(1.3)
def keywords_and_defaults(x):
    return helper(x) + helper(x, scale=x) + helper(scale=x * x, x=2.0 * x) + helper(x, 3)


def summed(x, *rest):
    for y in rest:
        x = x * y + 1.0
    return x


def spread(v, *rest):
    return v * rest[0] + len(rest)


@program(1.3, 0.4)
def a_callee_with_any_number_of_arguments(x, y):
    pair = (y, x * y)
    return summed(x, 2) + summed(x, y, x) * summed(*pair) + spread(x, y, 3)


def applied(g, x):
    return g(g(x))


@program(1.3)
def a_function_given_to_a_function(x):
    return applied(level_0, x) * applied(helper, x)


@program(1.3)
def a_function_inside(x):
    def inner(y):
        return y * x

    return inner(x) + inner(2.0)


def counted_down(x, n):
    while n > 0:
        x = x * 1.1 + n
        n -= 1
    return x


@program(1.3)
def a_callee_that_changes_its_parameter(x):
    return counted_down(x, 3) * counted_down(x, 2)


def shift(x, v):
    x += v[0]
    v[0] = x
    return x


@program(0.4, V, 3)
def a_callee_that_writes_in_a_loop(x, v, n):
    for _ in range(n):
        x = shift(x, v) * 0.5
    return x * v[0]


def set_all(v, x):
    for i in range(v.size):
        v[i] = x * v[i]


@program(V, 1.2)
def a_callee_that_returns_nothing(v, x):
    set_all(v, x)
    set_all(v[:2], x)
    return (v * v).sum()


def of_two_kinds(x, positive):
    if positive:
        return x * x
    return 0


@program(1.2)
def results_of_several_types(x):
    return of_two_kinds(x, True) * 2 + of_two_kinds(x, False)


@program(1.2, 3)
def the_target_of_a_call_is_its_argument(x, n):
    for _ in range(n):
        x = level_0(x)
    return x


def recursive(n, x):
    if n < 2:
        return x * x
    return recursive(n - 1, x) * 0.5 + recursive(n - 2, x) * math.sin(x)


@program(5, 1.2)
def a_callee_that_calls_itself(n, x):
    return recursive(n, x) * x + recursive(n - 1, x * 0.5)


def even(n, x):
    if n == 0:
        return x
    return odd(n - 1, x * 1.1) * x


def odd(n, x):
    if n == 0:
        return x * x
    return even(n - 1, x - 0.3) + x


@program(5, 1.2)
def callees_that_call_each_other(n, x):
    return even(n, x) * odd(n, x)


def exchanged(n, x, y):
    if n == 0:
        return x * x
    return exchanged(n - 1, y * 2.0, x) + y


@program(4, 1.2)
def a_recursion_that_exchanges_what_is_differentiated(n, x):
    return exchanged(n, x, 3.0)


def w(b, d):
    seed = b * d
    p0 = seed + b
    b = p0 * p0
    return b * seed


@program(V, 0.4)
def a_callee_with_the_name_of_a_variable_and_variables_named_as_endings(v, x):
    g = w
    w_1 = v * x
    s = 0.0
    for k in range(3):
        s += g(w_1[k], x) * w_1[k + 1]
        w_1[k] = s
    return s * (w_1 * w_1).sum()


@pytest.mark.parametrize("name", PROGRAMS)
def test_callees_are_differentiated_as_if_they_stood_in_the_caller(name):
    f, args, plain = PROGRAMS[name]
    check(f, *args, plain=plain)


def test_the_compiled_gradient_of_callees_of_many_kinds():
    @numba.njit
    def both(v, m, x):
        swapped_in = numba_swapped(m[0], m[1])
        return (numba_walk(v, 4) * x).sum() + m[1, 2] * swapped_in

    native = plaingrad.value_and_grad(both, (0, 1, 2), tier="native")
    plain = plaingrad.value_and_grad(both, (0, 1, 2), tier="plain")
    seeded(3)
    y, bars = native(V.copy(), M.copy(), 1.3)
    np.random.seed(3)
    expected, expected_bars = plain(V.copy(), M.copy(), 1.3)
    assert math.isclose(y, expected, rel_tol=1e-13)
    for bar, other in zip(bars, expected_bars, strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-12)


@numba.njit
def numba_walk(v, n):
    path = np.zeros(n)
    for i in range(n):
        path[i] = np.random.normal() * v[i]
    return path


@numba.njit
def numba_swapped(a, b):
    for i in range(a.size):
        a[i], b[i] = b[i] * 2.0, a[i] * b[i]
    return a[0]


@numba.njit
def seeded(n):
    np.random.seed(n)


def structured(f, *kinds):
    return emit.source(prepare.prepared(translation.program(f, kinds)))[0]


def test_statements_of_a_callee_keep_their_own_line():
    line = level_0.__code__.co_firstlineno + 1
    assert f"# line {line} of level_0" in structured(level_1, types.float64)


def wave(v):
    w = np.zeros(3)
    w[:] = np.unique(v)
    return w


def calls_wave(v):
    return wave(v).sum()


def test_a_refusal_inside_a_callee_names_the_line_of_the_callee():
    line = wave.__code__.co_firstlineno + 2
    with pytest.raises(plaingrad.NativeError, match=rf"test_inline.py:{line}, in `wave`"):
        plaingrad.grad(calls_wave, tier="native")(np.ones(3))


def long(x):
    y = x
    y = math.sin(y) * x + 0.1
    y = math.sin(y) * x + 0.2
    y = math.sin(y) * x + 0.3
    y = math.sin(y) * x + 0.4
    y = math.sin(y) * x + 0.5
    y = math.sin(y) * x + 0.6
    y = math.sin(y) * x + 0.7
    y = math.sin(y) * x + 0.8
    return y


def longer(x):
    return long(x) + long(x + 0.1) + long(x + 0.2) + long(x + 0.3) + long(x + 0.4) + long(0.5 * x)


def longest(x):
    return longer(x) + longer(x + 0.1) * longer(x * x) + longer(x + 0.3) + longer(x + 0.4) + longer(x + 0.5)


def test_a_program_does_not_grow_with_the_number_of_ways_through_its_callees():
    text = structured(longest, types.float64)
    assert text.count("\n") < 1000
    assert "longer(" in text.split("\n", 1)[1]
    check(longest, 0.3)


@numba.njit(fastmath=True)
def fast(x):
    return (x + 1e16) - 1e16


@numba.njit(error_model="numpy")
def divided(x, y):
    return x / y


def test_a_callee_keeps_the_options_that_it_was_compiled_with():
    def f(x):
        return divided(x, x - x) + fast(x)

    text = structured(f, types.float64)
    assert "divided(" in text
    assert "fast(" in text
    assert plaingrad.value_and_grad(f, tier="native")(2.0)[0] == math.inf


def test_an_exception_in_a_callee_comes_out_of_the_gradient():
    def positive(x):
        if x < 0:
            raise ValueError("negative number")
        assert x < 5, "too large"
        return math.sqrt(x)

    def f(x):
        return positive(x) + 1 / positive(x * 2)

    run = plaingrad.grad(f, tier="native")
    assert math.isclose(run(2.0), plaingrad.grad(f)(2.0), rel_tol=1e-13)
    with pytest.raises(ValueError, match="negative number"):
        run(-2.0)
    with pytest.raises(AssertionError, match="too large"):
        run(3.0)
    with pytest.raises(ZeroDivisionError):
        run(0.0)


@numba.njit("float64(float64)")
def declared(x):
    return x / 3 + x // 2


def test_an_argument_is_converted_as_the_declared_signature_says():
    def f(x, n):
        return declared(n) * declared(x)

    y, bar = plaingrad.value_and_grad(numba.njit(f), tier="native")(7.5, 3)
    assert (y, bar) == ((1.0 + 1.0) * (2.5 + 3.0), 2.0 / 3.0)


@numba.njit
def shifted(x, w):
    out = np.full_like(x, np.nan)
    for i in range(1, x.size):
        out[i] = x[i] * w + x[i - 1] ** 2
    return out


def test_a_function_with_fastmath_is_derived_without_it_where_what_it_calls_has_none():
    f = numba.njit(fastmath=True)(lambda x, w: np.sum(shifted(x, w)[1:] * x[1:]))
    x = np.array([0.3, 0.5, 0.7])
    found = plaingrad.grad(f, (0, 1), tier="native")(x, 2.0)
    np.testing.assert_allclose(found[0], [2 * x[0] * x[1], 4 * x[1] + x[0] ** 2 + 2 * x[1] * x[2], 4 * x[2] + x[1] ** 2])
    assert found[1] == pytest.approx(x[1] ** 2 + x[2] ** 2)
