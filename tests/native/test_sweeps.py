"""The two sweeps of a pullback: decisions are recorded, the reverse one runs as often as asked, memory goes back."""

import math
import threading
import warnings

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from tests.native.comparison import resident  # noqa: E402
from tests.native.test_arrays import CASES, IDS, copied, seed_of, uncompiled  # noqa: E402

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.runtime import workspace  # noqa: E402
from plaingrad.native.border.call import signature_of  # noqa: E402


def sweeps(f, *args, at=None):
    """The sweeps of the pullback of `f`."""
    at = tuple(range(len(args))) if at is None else at
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", numba.NumbaWarning)  # of the function itself
        return build.derived("pullback", f, signature_of(args), at)


def shadows(args):
    return [np.zeros_like(a) for a in args if isinstance(a, np.ndarray) and a.dtype.kind in "fc"]


@pytest.mark.parametrize("case", CASES[::4] + CASES[-7:], ids=IDS[::4] + IDS[-7:])
def test_a_pullback_gives_the_same_every_time(case):
    _, f, *args = case
    recorded = uncompiled(sweeps(f, *args).run).recorded(*copied(args))
    seed = seed_of(recorded.results[0])
    seed = seed if np.ndim(seed) else float(seed)
    first, second, third = shadows(args), shadows(args), shadows(args)
    bars = recorded.pulled(seed, *first)
    recorded.pulled(3.0 * seed, *second)
    assert recorded.pulled(seed, *third) == bars
    for a, b in zip(first, third, strict=True):
        np.testing.assert_array_equal(a, b)


def steps(u, c, n):
    """Buffers that change names, a view, an array made in every step, a row that is written."""
    total = 0.0
    v = np.zeros_like(u)
    for k in range(n):
        w = u * c
        row = w[1:]
        for i in range(row.size):
            v[i] = row[i] * u[i] + 0.1 * k
        u, v = v, u
        total += u[0] * u[-1]
    return total + u.sum()


def test_a_compiled_pullback_gives_the_same_every_time_also_with_arrays_made_in_loops():
    u = np.array([0.3, -0.2, 0.5])
    expected = plaingrad.grad(steps, (0, 1))(u.copy(), 0.7, 4)
    recorded = sweeps(steps, u, 0.7, 4, at=(0, 1)).run.recorded(u.copy(), 0.7, 4)
    for factor in (1.0, 2.0, 1.0):
        u_bar = np.zeros(3)
        (c_bar,) = recorded.pulled(factor, u_bar)
        np.testing.assert_allclose(u_bar, factor * expected[0], rtol=1e-12)
        assert c_bar == pytest.approx(factor * expected[1], rel=1e-12)


# -- decisions ---------------------------------------------------------------------------------------------------------


def kinks(x, y, n):
    """Every decision is taken on a number that is all rounding error: an exact zero only as the primal rounds it."""
    total = 0.0
    for k in range(1, n):
        a = x / k
        b = a * y - (a * y)
        c = (x + k) * (y - k) - (x * y - k * x + k * y - k * k)
        if c > 0.0:
            total += x * 2.0
        else:
            total -= y * 3.0
        total += abs(c) + max(c, b) * 5.0 + min(b, c) * 7.0 + 11.0 * math.copysign(1.0, c) * x
        if int(c * 1e16) % 2 == 0:
            total += x * y
        if c:
            total += y
    return total


def by_hand(x, y, n):
    """d kinks / d(x, y), every decision as CPython takes it."""
    dx, dy = 0.0, 0.0
    for k in range(1, n):
        a = x / k
        b = a * y - (a * y)
        c = (x + k) * (y - k) - (x * y - k * x + k * y - k * k)
        if c > 0.0:
            dx += 2.0
        else:
            dy -= 3.0
        dx += 11.0 * math.copysign(1.0, c)
        if int(c * 1e16) % 2 == 0:
            dx += y
            dy += x
        if c:
            dy += 1.0
    return dx, dy  # dc and db are zero


def test_decisions_on_rounding_errors_are_those_of_the_primal():
    # contracting a*b - c into one rounding changes the sign of most of these numbers
    x, y, n = 1.1, 0.7, 400
    (value, *found) = sweeps(kinks, x, y, n, at=(0, 1)).run(x, y, n, 1.0)
    assert value == numba.njit(kinks)(x, y, n)
    np.testing.assert_allclose(found, by_hand(x, y, n), rtol=1e-9)


def test_the_cotangent_of_what_was_not_taken_is_zero_even_where_that_which_arrives_is_infinite():
    def f(x, y):
        return math.sqrt(max(x, y) - 2.0)

    assert sweeps(f, 1.0, 2.0).run(1.0, 2.0, 1.0) == (0.0, 0.0, math.inf)


def test_a_range_without_a_step_is_refused_as_by_the_primal():
    def f(x, step):
        for _ in range(0, 3, step):
            x = x * x
        return x

    with pytest.raises(ValueError, match="zero"):
        sweeps(f, 2.0, 0, at=(0,)).run(2.0, 0, 1.0)


# -- the value ---------------------------------------------------------------------------------------------------------


def recurrence(x, y, n):
    for k in range(n):
        x = x * y - k * (x - y) * 0.001
        while abs(x) > 1.0:
            x = x * 0.7 - y * 0.01
    return x


@pytest.mark.parametrize("options", [{}, {"error_model": "numpy"}, {"boundscheck": True}], ids=str)
def test_the_value_is_that_of_the_users_own_compiled_function_to_the_last_bit(options):
    f = numba.njit(**options)(recurrence)
    for x in np.random.default_rng(0).uniform(0.5, 2.0, 20):
        assert sweeps(f, x, 0.9, 30, at=(0, 1)).run(x, 0.9, 30, 1.0)[0] == f(x, 0.9, 30)


# -- loops -------------------------------------------------------------------------------------------------------------


def left_early(x, n):
    """What the iteration that is left has done is seen behind the loop."""
    y, z = x, 0.0
    for k in range(n):
        z = y * y + k
        if z > 3.0:
            y = y * z
            break
        y = y * 1.5
    return y + 2.0 * z


def two_exits(x, n):
    k, y = 0, x
    while k < n and y < 5.0:
        t = y * y
        if t > 30.0:
            return t * 2.0
        y = y + 0.3 * t
        k += 1
    return y * y + k


def writes_before_it_leaves(a, x):
    for k in range(a.size):
        a[k] = a[k] * x
        if a[k] > 1.0:
            break
        a[k] += x
    return a.sum() * x


def nested(x, n):
    total = x
    for i in range(n):
        for j in range(2, 8, 3):
            total = total * 0.5 + math.sin(total * j + i)
        for j in range(i, -1, -2):
            total = total * math.cos(total) + j * x
        k = 0
        while total * total > 0.1 and k < 3:
            total = total * 0.6
            k += 1
            for _ in range(k):
                total = total + 0.01 * total * total
    return total


LOOPS = [
    (left_early, 1.1, 5),
    (left_early, 0.1, 2),
    (left_early, 0.1, 0),
    (two_exits, 0.5, 9),
    (two_exits, 0.5, 2),
    (two_exits, 4.9, 9),
    (nested, 0.4, 4),
    (nested, 0.4, 0),
]


@pytest.mark.parametrize("case", LOOPS, ids=lambda case: f"{case[0].__name__}-{case[1]}-{case[2]}")
def test_loops_with_ways_out_agree_with_differences(case):
    f, x, n = case
    h = 1e-6
    slope = (f(x + h, n) - f(x - h, n)) / (2.0 * h)
    found = sweeps(f, x, n, at=(0,))
    assert found.python(x, n, 1.0) == pytest.approx((f(x, n), slope), rel=1e-7)


def test_a_loop_with_ways_out_that_writes_agrees_compiled():
    a, x = np.array([0.4, 0.9, 2.0, 0.1]), 0.8
    a_bar = np.zeros(4)
    value, x_bar = sweeps(writes_before_it_leaves, a, x).run(a.copy(), x, 1.0, a_bar)
    assert value == writes_before_it_leaves(a.copy(), x)
    expected = plaingrad.grad(writes_before_it_leaves, (0, 1))(a.copy(), x)
    np.testing.assert_allclose(a_bar, expected[0], rtol=1e-14)
    assert x_bar == pytest.approx(expected[1], rel=1e-14)


def test_tapes_of_a_nest_are_made_long_enough_before_it_begins():
    def f(x, n, m):
        for i in range(n):
            for j in range(m):
                x = x * math.sin(x + i * j)
        return x

    text = sweeps(f, 0.5, 3, 4, at=(0,)).text
    forward = text.split("\ndef ")[0]
    body = forward[forward.index("for ") :]
    assert "more(" in forward
    assert "more(" not in body


# -- memory ------------------------------------------------------------------------------------------------------------


def raises_late(x, n):
    keeps = np.zeros(n)
    for k in range(n):
        keeps[k] = x
        while x > 1.0:
            x = x * 0.9
        x = x * x + 0.5
    if n > 100:
        raise ValueError("too many")
    return x + keeps.sum()


def test_memory_of_tapes_goes_back_where_a_call_fails():
    workspace.clear()
    run = sweeps(raises_late, 0.5, 10, at=(0,)).run
    for _ in range(50):
        with pytest.raises(ValueError, match="too many"):
            run(0.5, 50_000, 1.0)
    freed = workspace.clear()
    assert 0 < freed < 20_000_000  # the tapes of one call, not of fifty
    assert workspace.clear() == 0


def squared_sines(x, n):
    for _ in range(n):
        x = x * math.sin(x) + 1.0
    return x


def test_memory_of_tapes_is_used_again_by_the_next_call():
    run = sweeps(squared_sines, 0.5, 2000, at=(0,)).run
    run(0.4, 300_000, 1.0)
    workspace.clear()
    run(0.4, 300_000, 1.0)
    run(0.4, 300_000, 1.0)
    once = plaingrad.free_workspace()
    for _ in range(20):
        run(0.4, 300_000, 1.0)
    assert 300_000 * 8 <= once <= plaingrad.free_workspace() <= 2 * once


def test_pullbacks_outlive_the_call_and_one_another():
    run = sweeps(squared_sines, 0.5, 2000, at=(0,)).run
    points = np.linspace(0.1, 0.9, 9)
    kept = [run.recorded(x, 2000) for x in points]
    expected = [run(x, 2000, 1.0)[1] for x in points]
    plaingrad.free_workspace()
    del kept[3]
    for _ in range(3):
        run(0.5, 4000, 1.0)
    assert [r.pulled(1.0)[0] for r in kept] == expected[:3] + expected[4:]


def test_threads_share_no_tape():
    run = sweeps(squared_sines, 0.5, 2000, at=(0,)).run
    run(0.5, 10, 1.0)
    points = np.linspace(0.1, 0.9, 4)
    expected = [run(x, 30_000, 1.0) for x in points]
    shared = run.recorded(0.3, 30_000)
    slope = shared.pulled(1.0)
    wrong = []

    def work(k):
        for _ in range(20):
            if run(points[k], 30_000, 1.0) != expected[k] or shared.pulled(1.0) != slope:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_over_the_limit_is_not_kept(monkeypatch):
    run = sweeps(squared_sines, 0.5, 2000, at=(0,)).run
    plaingrad.free_workspace()
    monkeypatch.setattr(workspace._pool, "limit", 1000)
    run(0.4, 3000, 1.0)
    assert plaingrad.free_workspace() == 0


def test_arrays_kept_by_reference_are_let_go():
    def f(a, n):
        u = a
        for k in range(n):
            u = np.sin(u) * u + k
            u = u * (u > 0.0)
        return u.sum()

    a = np.full(10_000, 0.3)
    run = sweeps(f, a, 40, at=(0,)).run
    run(a, 40, 1.0, np.zeros_like(a))
    before = resident()
    for _ in range(10):
        run(a, 40, 1.0, np.zeros_like(a))
    assert resident() - before < 20_000_000  # ten times as much would be kept in all


def test_the_primal_runs_once_for_a_value_and_any_number_of_pullbacks():
    @numba.njit
    def f(x, count):
        count[0] += 1.0
        return x * x * count[0]

    count = np.zeros(1)
    found = sweeps(f, 3.0, count, at=(0,)).run.recorded(3.0, count)
    seen = [found.pulled(1.0), found.pulled(2.0)]
    assert (found.results[0], seen, count[0]) == (9.0, [(6.0,), (12.0,)], 1.0)


# -- functions that call themselves ------------------------------------------------------------------------------------


@numba.njit
def descent(n, x, seen):
    seen[0] += 1.0
    if n == 0:
        return x
    s = x
    for _ in range(3):
        s = s * math.sin(s) + 0.5
    return descent(n - 1, s, seen) * math.cos(s)


@numba.njit
def products(a, low, high, out):
    if high - low == 1:
        out[low] = a[low] * a[low]
        return a[low]
    middle = (low + high) // 2
    s = 0.0
    for _ in range(2):
        s += products(a, low, middle, out) * products(a, middle, high, out)
    return s


def total_of_products(a):
    out = np.zeros_like(a)
    return products(a, 0, a.size, out) + out.sum()


def test_a_function_that_calls_itself_runs_once_at_every_depth():
    def f(x, seen):
        return descent(7, x, seen)

    seen = np.zeros(1)
    recorded = sweeps(f, 0.7, seen, at=(0,)).run.recorded(0.7, seen)
    first, second = recorded.pulled(1.0), recorded.pulled(2.0)
    assert seen[0] == 8.0
    expected = plaingrad.grad(lambda x: descent.py_func(7, x, np.zeros(1)), tier="plain")(0.7)
    np.testing.assert_allclose([first[0], second[0]], [expected, 2.0 * expected], rtol=1e-12)


def test_a_function_that_calls_itself_in_a_loop_and_writes_arrays_agrees_with_differences():
    a = np.array([0.5, 1.2, 0.7, 0.3, 0.9])
    found = sweeps(total_of_products, a)
    for run in (found.run, found.python):
        a_bar = np.zeros(5)
        (value,) = run(a, 1.0, a_bar)
        assert value == total_of_products(a)
        for k, h in zip(range(5), 1e-6 * np.eye(5), strict=True):
            slope = (total_of_products(a + h) - total_of_products(a - h)) / 2e-6
            assert a_bar[k] == pytest.approx(slope, rel=1e-8)


# -- messages ----------------------------------------------------------------------------------------------------------


def test_numba_warns_of_no_derived_code():
    def f(a, b):
        return np.sum(a[:, ::2] @ b[::2])

    a, b = np.ones((3, 6)), np.ones(6)
    run = sweeps(f, a, b).run
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(a, b, 1.0, np.zeros_like(a), np.zeros_like(b))[0] == 9.0
    assert run.__name__ == "f"


def test_views_of_every_layout_are_kept_in_loops():
    def f(a, n):
        u = a[::2]
        total = 0.0
        for k in range(n):
            for v in (u * 1.5, u.T[::-1].T * k):
                total += v[0, 0] * v[1, 1]
            w = a[:4:2] if k % 2 == 0 else u[::-1]
            total += (w * w).sum()
            u = w
        return total

    a = np.arange(12.0).reshape(4, 3) * 0.1 + 0.2
    a_bar = np.zeros((4, 3))
    value, *_ = sweeps(f, a, 3, at=(0,)).run(a, 3, 1.0, a_bar)
    assert value == pytest.approx(f(a, 3), rel=1e-14)
    expected = plaingrad.grad(f, tier="plain")(a, 3)
    np.testing.assert_allclose(a_bar, expected, rtol=1e-13)
