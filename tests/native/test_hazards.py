"""Where a native derivative could be wrong in silence, or leave something behind: corners of numbers, memory, threads.

Numba compiles the asserts below as they stand: PYTEST_DONT_REWRITE.
"""

import gc
import math
import threading

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from tests.native import comparison  # noqa: E402
from tests.native.comparison import bits, resident  # noqa: E402
from tests.sampling import count  # noqa: E402


def native(f, *args, argnums=None):
    """(value, gradient) of all arguments with a tangent, natively."""
    return plaingrad.value_and_grad(f, comparison.differentiable(args) if argnums is None else argnums, tier="native")(*args)


def plain(f, *args):
    return plaingrad.value_and_grad(getattr(f, "py_func", f), comparison.differentiable(args), tier="plain")(*args)


# -- nan, inf and zeros --------------------------------------------------------------------------------------------------


def products_and_sums(x, y):
    s = 0.0
    for k in range(3):
        s += x * y * (k + 1)
    return s + math.exp(x) * y


def a_guard(x, y):
    if math.isnan(x) or math.isinf(y):
        return x * 2.0 + y
    return x * y


def a_sum_over(v, x):
    s = 0.0
    for k in range(v.size):
        s += v[k] * x + math.tanh(v[k])
    return s


def a_mean_of_exponentials(v, x):
    return np.sum(np.exp(v) * x) / v.size + np.max(v)


def a_recurrence(x, y):
    for _ in range(4):
        x = x * 0.5 + y
    return x


NAN, INF = math.nan, math.inf
CORNERS = [
    (products_and_sums, (NAN, 1.0)), (products_and_sums, (1.0, INF)), (products_and_sums, (-INF, 2.0)),
    (products_and_sums, (INF, 0.0)), (products_and_sums, (0.0, -0.0)), (a_guard, (NAN, 1.0)), (a_guard, (1.0, -INF)),
    (a_guard, (2.0, 3.0)), (a_sum_over, (np.array([1.0, NAN, 2.0]), 0.5)), (a_sum_over, (np.array([1.0, INF]), 0.5)),
    (a_sum_over, (np.array([1.0, 2.0]), INF)), (a_sum_over, (np.array([-0.0, 0.0]), -0.0)), (a_sum_over, (np.zeros(0), NAN)),
    (a_mean_of_exponentials, (np.array([1.0, 800.0]), 0.5)), (a_mean_of_exponentials, (np.array([-800.0, -INF]), 2.0)),
    (a_recurrence, (INF, 1.0)), (a_recurrence, (1.0, NAN)),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(CORNERS)))
def test_nan_and_inf_are_those_of_the_plain_tier(k):
    f, args = CORNERS[k]
    with np.errstate(all="ignore"):
        value, gradient = plain(f, *comparison.copied(args))
        found, mine = comparison.gradient(f, comparison.copied(args), comparison.differentiable(args))
    np.testing.assert_array_equal(found, value)
    for a, b in zip(comparison.leaves(mine), comparison.leaves(gradient), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_compiled_sums_keep_nan_and_inf():
    f = numba.njit(a_sum_over)
    for args in [(np.array([1.0, NAN, 2.0]), 0.5), (np.array([1.0, INF]), 0.5), (np.zeros(0), NAN), (np.array([1.0, 2.0]), INF)]:
        value, (v_bar, x_bar) = native(f, *args)
        expected, (v_plain, x_plain) = plain(f, *args)
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_allclose(v_bar, v_plain)
        np.testing.assert_allclose(x_bar, x_plain)


# -- the value is that of the user's own compiled function ---------------------------------------------------------------


def cancelling(x, y):
    s = 0.0
    for k in range(1, 40):
        t = (x * k + y) * (x * k - y) - x * k * x * k
        if t + y * y > 0.0:
            s += x * y * k
        else:
            s -= t * k + x
    return s


def test_a_branch_on_a_cancelled_value_is_replayed_as_it_was_taken():
    f = numba.njit(cancelling)
    random = np.random.default_rng(3)
    for x, y in random.uniform(0.1, 2.0, size=(300, 2)):
        value, (x_bar, y_bar) = native(f, x, y)
        expected, (x_plain, y_plain) = plain(f, x, y)
        assert bits(value) == bits(f(x, y))
        if abs(value - expected) <= 1e-9 * abs(expected):  # else Numba takes other branches than CPython
            np.testing.assert_allclose((x_bar, y_bar), (x_plain, y_plain), rtol=1e-9)


@numba.njit(fastmath=True)
def with_fastmath(v, x):
    s = 0.0
    for k in range(v.size):
        s += v[k] * x * 0.1 + v[k] / 3.0
    return s


@numba.njit(fastmath={"contract"})
def with_contract(v, x):
    s = x
    for k in range(v.size):
        s = s * v[k] + x
    return s


@numba.njit
def without_flags(v, x):
    s = x
    for k in range(v.size):
        s = s * v[k] * 0.3 + x * v[k]
    return s


@pytest.mark.parametrize("f", [with_fastmath, with_contract, without_flags], ids=["fastmath", "contract", "none"])
def test_the_value_keeps_the_flags_of_the_users_function(f):
    v = np.random.default_rng(0).normal(size=101)
    value, gradient = native(f, v, 0.7)
    if f is not with_fastmath:  # reassociation may fall out otherwise in another program
        assert bits(value) == bits(f(v, 0.7))
    expected, plain_gradient = plain(f, v, 0.7)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    comparison.assert_close(gradient, plain_gradient, 1e-11, "gradient")


# -- exceptions ----------------------------------------------------------------------------------------------------------


def divided(x, y):
    s = 0.0
    for k in range(3):
        s += x / (y - k)
    return s


def test_division_by_zero_raises_as_in_the_primal():
    f, g = numba.njit(divided), numba.njit(error_model="numpy")(divided)
    with pytest.raises(ZeroDivisionError):
        native(f, 1.0, 2.0)
    with pytest.raises(ZeroDivisionError):
        native(divided, 1.0, 2.0)
    value, (x_bar, y_bar) = native(g, 1.0, 2.0)
    assert value == g(1.0, 2.0) == math.inf
    assert x_bar == math.inf
    assert native(f, 1.0, 5.0)[0] == f(1.0, 5.0)  # nothing is left of the failed calls


def squared_ratio(x, y):
    if y == 0.0:
        return x
    return x / y


def test_a_guarded_division_does_not_raise_on_the_way_back():
    assert native(numba.njit(squared_ratio), 3.0, 0.0) == (3.0, (1.0, 0.0))


def picked(v, k):
    return v[k] * v[k]


def test_bounds_are_checked_where_the_primal_checks_them():
    f = numba.njit(boundscheck=True)(picked)
    with pytest.raises(IndexError):
        native(f, np.ones(3), 7)
    assert native(f, np.arange(3.0), 2)[1][0].tolist() == [0.0, 0.0, 4.0]


def raises_in_the_middle(v, limit):
    s = 0.0
    for k in range(v.size):
        w = v * s
        if v[k] > limit:
            raise ValueError("too large")
        s += math.sin(v[k]) * s + w[0] + 1.0
    return s


def test_an_exception_in_the_middle_is_that_of_the_primal_and_the_next_call_is_right():
    f = numba.njit(raises_in_the_middle)
    v = np.linspace(0.1, 1.0, 8)
    _, expected = plain(f, v, 2.0)
    for _ in range(3):
        with pytest.raises(ValueError, match="too large"):
            native(f, v, 0.5)
        comparison.assert_close(native(f, v, 2.0)[1], expected, 1e-12, "gradient")


# -- memory --------------------------------------------------------------------------------------------------------------


def stepped(v, n):
    u = v.copy()
    s = 0.0
    for k in range(n):
        w = np.empty(v.size)
        for i in range(v.size):
            w[i] = u[i] * 0.5 + math.sin(u[i - 1])
        if w[0] > 5.0:
            raise ValueError("too large")
        u = w
        while s < k:
            s += 0.3 + abs(w[0])
    return s + np.sum(u * u)


STEPPED = numba.njit(stepped)  # compiled once for the tests of memory and of calls again
CALLS = count(600, 4000)


@pytest.mark.parametrize("how", ["native", "raising", "inside plain code", "pullbacks kept and dropped"])
def test_many_calls_leave_no_memory_behind(how):
    f = STEPPED
    v = np.linspace(0.1, 1.0, 800)
    if how == "raising":
        v = v + 20.0

    def call():
        if how == "inside plain code":
            plaingrad.grad(lambda x: f(x * 2.0, 3) * 1.5)(v)
        elif how == "pullbacks kept and dropped":
            plaingrad.vjp(f, v, 3)[1](1.0)
        elif how == "native":
            plaingrad.grad(f, tier="native")(v, 3)
        else:
            with pytest.raises(ValueError):
                plaingrad.grad(f, tier="native")(v, 3)

    for _ in range(100):
        call()
    gc.collect()
    before = resident()
    for _ in range(CALLS):
        call()
    gc.collect()
    assert resident() - before < CALLS * 3200  # a leak of one array a call would be twice as much


# -- the same memory twice, and odd layouts ------------------------------------------------------------------------------


def reads_both(a, b):
    return np.sum(a * b) + a[0] * b[1]


def writes_one(a, b):
    a[0] = b[1] * 2.0
    return a[0] * b[0]


def test_the_same_array_given_twice():
    v = np.array([1.0, 2.0, 3.0])
    a_bar, b_bar = native(numba.njit(reads_both), v, v)[1]
    np.testing.assert_allclose(a_bar, v + [2.0, 0.0, 0.0])
    np.testing.assert_allclose(b_bar, v + [0.0, 1.0, 0.0])
    with pytest.raises(plaingrad.AliasError):
        native(numba.njit(writes_one), v, v)
    w = np.arange(6.0)
    with pytest.raises(plaingrad.AliasError):
        native(numba.njit(writes_one), w[:4], w[2:])
    assert native(numba.njit(writes_one), w[:3], w[3:].copy())[0] == 8.0 * 3.0


def strided(m):
    s = 0.0
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            s += m[i, j] * m[i, 0] * (i + 2 * j)
    return s


@pytest.mark.parametrize("view", ["[::-1]", "[:, ::-1]", "[::2, 1:]", ".T", "[1:, ::-2]", "[:0]", "[:, :0]"])
def test_arguments_of_any_layout(view):
    m = eval("m" + view, {"m": np.arange(20.0).reshape(4, 5) / 7})
    value, (m_bar,) = comparison.gradient(strided, (m,), (0,))
    expected, (plain_bar,) = plain(strided, m)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(m_bar, plain_bar, rtol=1e-13)
    assert m_bar.shape == m.shape


def windows(v):
    w = np.lib.stride_tricks.as_strided(v, (2, 2), (8, 8))
    w[0] = w[0] * 2.0
    return np.sum(v)


def test_memory_laid_out_anew_is_refused():
    with pytest.raises(plaingrad.NativeError, match="share memory"):
        native(windows, np.ones(3))


def down(n, pair):
    if n == 0:
        return 0.0
    return down(n - 1, pair) + pair[0] * pair[1]


def hands_its_tuple_on(pair):
    return down(3, pair)


def test_a_tuple_handed_on_whole_loses_no_derivative():
    try:
        _, (bar,) = native(hands_its_tuple_on, (1.5, 2.5))
    except plaingrad.NativeError:
        return
    assert bar == (7.5, 4.5)


def constant(x):
    return x * x


def uses_a_constant(x):
    return constant(x) * x


def test_a_function_with_a_rule_of_its_own_is_not_differentiated_as_it_stands():
    assert native(uses_a_constant, 3.0)[1] == (27.0,)
    plaingrad.nondifferentiable(constant)
    with pytest.raises(plaingrad.NativeError, match="rule of its own"):
        native(uses_a_constant, 3.0)
    assert plaingrad.grad(uses_a_constant)(3.0) == 9.0


# -- calls again, inside and at once ---------------------------------------------------------------------------------------


def test_a_pullback_may_be_called_many_times():
    f = STEPPED
    v = np.linspace(0.1, 1.0, 20)
    _, first = plaingrad.vjp(f, v, 5)
    _, second = plaingrad.vjp(f, v * 1.1, 7)
    one = first(1.0)[0].copy()
    other = second(2.0)[0].copy()
    np.testing.assert_array_equal(first(1.0)[0], one)
    np.testing.assert_array_equal(first(2.0)[0], 2 * one)
    np.testing.assert_array_equal(second(2.0)[0], other)


def test_a_numba_function_called_twice_inside_plain_code():
    f = STEPPED
    v = np.linspace(0.1, 1.0, 20)

    def total(x):
        return f(x, 3) * f(x * 0.5, 4) + sum(f(x * k, 2) for k in range(3))

    def spelled_out(x):
        return stepped(x, 3) * stepped(x * 0.5, 4) + sum(stepped(x * k, 2) for k in range(3))

    np.testing.assert_allclose(plaingrad.grad(total)(v), plaingrad.grad(spelled_out)(v), rtol=1e-12)


def test_threads_derive_compile_and_run_at_once():
    v = np.linspace(0.1, 1.0, 50)

    def made(c):
        def f(u, n):
            s = 0.0
            for k in range(n):
                s += math.sin(u[k] * c + s) * u[k - 1]
            return s

        return f

    functions = [made(1.0 + k) for k in range(2)]
    expected = [plaingrad.grad(f, tier="plain")(v, 50) for f in functions]
    shared = numba.njit(made(0.5))
    shared_expected = plaingrad.grad(shared.py_func, tier="plain")(v, 50)
    wrong = []

    def work(k):
        try:
            for _ in range(20):
                np.testing.assert_allclose(plaingrad.grad(functions[k % 2], tier="native")(v, 50), expected[k % 2], rtol=1e-11)
                np.testing.assert_allclose(plaingrad.grad(shared, tier="native")(v, 50), shared_expected, rtol=1e-11)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# -- order of memory -----------------------------------------------------------------------------------------------------


def exchanged_in_fortran_order(m):
    a = np.asfortranarray(m)
    b = np.asfortranarray(m * 2.0)
    total = 0.0
    for _ in range(3):
        total += a[0, 1] * b[1, 0] ** 2 + a[2, 1] * np.sum(np.sin(a))
        a, b = b, a
    return total


def test_shadows_in_fortran_order_are_kept_as_they_lie():
    """On a tape of references they were read in C order: a transposed gradient."""
    m = np.array([[1.5, -0.4, 0.3], [0.2, 2.0, -0.7], [-0.5, 0.1, 1.1]])
    _, found = native(exchanged_in_fortran_order, m)
    _, expected = plain(exchanged_in_fortran_order, m)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_numbers_drawn_and_not_read_are_drawn_beside_closures_too():
    """Numba's inlining of closures takes the draw for nothing; the numbers that follow are other ones then."""

    def f(x):
        np.random.seed(7)

        def scaled(t):
            unread = np.random.random()  # noqa: F841
            return math.tanh(t * x)

        y = scaled(x)
        s = 0.0
        for _ in range(3):
            s += np.random.random()
            unread = 2.0 * np.random.uniform(0.2, 1.0)  # noqa: F841
        return s * y

    expected, slope = f(0.5), (f(0.5 + 1e-6) - f(0.5 - 1e-6)) / 2e-6
    for tier in ("native", "plain"):
        value, found = plaingrad.value_and_grad(f, tier=tier)(0.5)
        np.testing.assert_allclose(value, expected, rtol=1e-15)
        np.testing.assert_allclose(found, slope, rtol=1e-8)


# -- what was not assigned ------------------------------------------------------------------------------------------


def read_before_it_is_assigned(v, x):
    s = x
    for k in range(v.size):
        if v[k] > 0.0:
            y = v[k] * x
        s += (y + 1.0) ** 2
    return s


def test_a_number_that_was_not_assigned_is_what_numba_finds_there():
    v, x = np.array([-1.0, 2.0, -3.0]), 0.7
    value, (of_v, of_x) = native(read_before_it_is_assigned, v, x)
    y = v[1] * x
    assert bits(value) == bits(numba.njit(read_before_it_is_assigned)(v, x))
    assert value == pytest.approx(x + 1.0 + 2 * (y + 1.0) ** 2, rel=1e-15)
    np.testing.assert_allclose(of_v, [0.0, 4 * (y + 1.0) * x, 0.0], rtol=1e-14)
    assert of_x == pytest.approx(1.0 + 4 * (y + 1.0) * v[1], rel=1e-14)
    with pytest.raises(UnboundLocalError):
        plain(read_before_it_is_assigned, v, x)
