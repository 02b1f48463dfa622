"""Loops that only add up: which are differentiated in one pass, and that the gradients are those of the plain tier."""

import math

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from tests.native.uncompiled import check  # noqa: E402

RANDOM = np.random.default_rng(7)


def logistic(w, data, labels):
    total = 0.0
    for i in range(data.shape[0]):
        s = 0.0
        for j in range(data.shape[1]):
            s += data[i, j] * w[j]
        total += (s if s > 0.0 else 0.0) + math.log1p(math.exp(-abs(s))) - labels[i] * s
    return total / data.shape[0]


def asian(theta, z):
    n, m = z.shape
    dt = theta[4] / m
    drift = (theta[2] - 0.5 * theta[3] * theta[3]) * dt
    spread = theta[3] * math.sqrt(dt)
    total = 0.0
    for i in range(n):
        price, mean = theta[0], 0.0
        for t in range(m):
            price *= math.exp(drift + spread * z[i, t])
            mean += price
        mean = mean / m - theta[1]
        if mean > 0.0:
            total += mean
    return math.exp(-theta[2] * theta[4]) * total / n


def two_sums(x, data):
    first, second = x, 0.0
    for i in range(data.size):
        first -= data[i] * x
        second += math.sin(first_of(data, i) * x)
    return first * second


def first_of(data, i):
    return data[i] * data[0]


def counters_change(x, data):
    total, time, step = 0.0, 0.5, 1
    for i in range(data.size):
        term = x * time * data[i % step]
        if data[i] > 0.0:
            total += math.sin(term)
            step = step + 1
        else:
            total = total - term * term
        time = time * 1.1
    return total


def a_sum_that_is_read(x, data):
    total, product = 0.0, 0.0
    for i in range(data.size):
        total += x * data[i]
        product += total * x
    return product


def a_sum_that_may_be_dropped(x, data):
    total = x
    for i in range(data.size):
        more = total + x * data[i] * x
        if data[i] > 0.0:
            total = more
    return total


def a_sum_that_starts_again(x, data):
    total = 0.0
    for i in range(data.size):
        if data[i] > 1.0:
            total = 0.0
        total += x * data[i] * x
    return total


def a_sum_that_doubles(x, data):
    total = x
    for i in range(data.size):
        total += total
        total += x * data[i]
    return total


def last_value_is_used(x, data):
    total, y = 0.0, x
    for i in range(data.size):
        y = math.sin(x * data[i])
        total += y * y
    return total + y


def leaves_early(x, data):
    total = 0.0
    for i in range(data.size):
        if data[i] > 1.0:
            break
        total += math.sin(x * data[i])
    return total


def backwards(x, data):
    total = 0.0
    for i in range(data.size - 1, -1, -2):
        total += math.exp(x * data[i]) * x
    return total


def arrays_of_an_iteration(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        row = data[i] - w
        row *= w[0]
        total += np.sum(row * row) + np.dot(w, data[i])
    return total


def rows_of_an_active_matrix(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        for k in range(data.shape[1]):
            row = w[k]
            s = 0.0
            for j in range(row.size):
                s += row[j] * data[i, j]
            total += math.tanh(s)
    return total


def elements(x, scale):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i] * scale
    return total


def two_arrays(x, y):
    s = 0.0
    for i in range(x.size):
        for j in range(y.size):
            s += x[i] * y[j] * x[j] / (1.0 + abs(y[i]))
    return s * s


def a_while_inside(x, data):
    total = 0.0
    for i in range(data.size):
        y = abs(data[i]) + 1.0
        while y * y > x:
            y = 0.5 * (y + x / y) - 0.01
        total += y * x
    return total


def kept_results(x, data, out):
    total = 0.0
    for i in range(data.size):
        out[i] = data[i] * 2.0
        total += x * out[i] * x
    return total


def writes_with_a_derivative(x, data):
    out = np.zeros(data.size)
    total = 0.0
    for i in range(data.size):
        out[i] = data[i] * x
        total += out[i] * x
    return total + out[0]


def scratch_array(w, data):
    terms = np.empty(w.size)
    total = 0.0
    for i in range(data.shape[0]):
        for k in range(w.size):
            terms[k] = w[k] * data[i, 0] - 0.5 * w[0]
        highest = terms[0]
        for k in range(1, terms.size):
            highest = max(highest, terms[k])
        s = 0.0
        for k in range(terms.size):
            s += math.exp(terms[k] - highest)
        total += highest + math.log(s)
    return total


def scratch_matrix(w, data):
    n, m = w.size, data.shape[1]
    table = np.zeros((n, m))
    total = 0.0
    for i in range(data.shape[0]):
        for k in range(n):
            for j in range(m):
                table[k, j] = w[k] * data[i, j]
        for j in range(m):
            total += table[0, j] * table[n - 1, j]
    return total


def scratch_that_is_filled_in_part(w, data):
    terms = np.zeros(w.size)
    total = 0.0
    for i in range(data.shape[0]):
        for k in range(1, w.size):
            terms[k] = w[k] * data[i, 0] + terms[0]
        terms[0] = terms[1] * w[0]
        total += terms[0] * terms[2]
    return total


def scratch_that_is_read_first(w, data):
    terms = np.ones(w.size)
    total = 0.0
    for i in range(data.shape[0]):
        total += terms[1]
        for k in range(w.size):
            terms[k] = w[k] * data[i, 0]
    return total


def scratch_that_is_read_behind_the_loop(w, data):
    terms = np.empty(w.size)
    total = 0.0
    for i in range(data.shape[0]):
        for k in range(w.size):
            terms[k] = w[k] * data[i, 0]
        total += terms[0] * terms[1]
    return total + terms[2]


DATA = RANDOM.normal(size=9)
MATRIX = RANDOM.normal(size=(6, 3))
THETA = np.array([100.0, 101.0, 0.03, 0.2, 1.0])
LABELS = (RANDOM.random(6) < 0.5).astype(float)
PROGRAMS = [
    (logistic, (RANDOM.normal(size=3), MATRIX, LABELS), (0,)),
    (asian, (THETA, MATRIX), (0,)),
    (two_sums, (0.7, DATA), (0,)),
    (counters_change, (0.7, DATA), (0,)),
    (a_sum_that_is_read, (0.7, DATA), (0,)),
    (a_sum_that_may_be_dropped, (0.7, DATA), (0,)),
    (a_sum_that_starts_again, (0.7, DATA), (0,)),
    (a_sum_that_doubles, (0.7, DATA), (0,)),
    (last_value_is_used, (0.7, DATA), (0,)),
    (leaves_early, (0.7, DATA), (0,)),
    (backwards, (0.7, DATA), (0, 1)),
    (arrays_of_an_iteration, (RANDOM.normal(size=3), MATRIX), (0,)),
    (rows_of_an_active_matrix, (RANDOM.normal(size=(3, 3)), MATRIX), (0,)),
    (elements, (DATA, 0.3), (0, 1)),
    (two_arrays, (DATA, DATA[::-1].copy()), (0, 1)),
    (a_while_inside, (0.7, DATA), (0,)),
    (kept_results, (0.7, DATA, np.zeros(9)), (0,)),
    (writes_with_a_derivative, (0.7, DATA), (0,)),
    *[
        (f, (RANDOM.normal(size=3), MATRIX), (0,))
        for f in (
            scratch_array,
            scratch_matrix,
            scratch_that_is_filled_in_part,
            scratch_that_is_read_first,
            scratch_that_is_read_behind_the_loop,
        )
    ],
]
IN_ONE_PASS = {
    logistic, asian, counters_change, arrays_of_an_iteration, rows_of_an_active_matrix, a_while_inside,
    kept_results, two_sums, a_sum_that_may_be_dropped, scratch_array, scratch_matrix,
}  # fmt: skip


def derived(f, args, positions):
    """The pullback of `f`, not yet compiled."""
    return build.derived("pullback", f, tuple(numba.typeof(x) for x in args), positions)


def gradient(f, args, positions, seed=1.0, run=None):
    """(value, cotangents) from the pullback, uncompiled unless `run` says otherwise."""
    run = run or derived(f, args, positions).python
    shadows = {k: np.zeros_like(args[k]) for k in positions if isinstance(args[k], np.ndarray)}
    value, *numbers = run(*args, seed, *shadows.values())
    return value, [shadows[k] if k in shadows else numbers.pop(0) for k in positions]


def copied(args):
    return tuple(x.copy() if isinstance(x, np.ndarray) else x for x in args)


@pytest.mark.parametrize(("f", "args", "positions"), PROGRAMS, ids=lambda x: getattr(x, "__name__", None))
def test_the_gradient_is_that_of_the_plain_tier(f, args, positions):
    value, found = gradient(f, copied(args), positions)
    expected_value, expected = plaingrad.value_and_grad(f, positions, tier="plain")(*copied(args))
    assert value == expected_value
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("f", "args", "positions"), PROGRAMS, ids=lambda x: getattr(x, "__name__", None))
def test_one_pass_is_taken_where_nothing_but_sums_is_carried(f, args, positions):
    assert ("_factor_" in derived(f, args, positions).text) == (f in IN_ONE_PASS)


def test_a_cotangent_of_zero_adds_nothing_even_where_a_slope_is_infinite():
    def of_no_weight(x, w):
        total = 0.0
        for i in range(w.size):
            total += math.sqrt(x) * w[i]
        return total, x

    run = derived(of_no_weight, (0.0, DATA), (0,)).run
    assert run(0.0, DATA, 0.0, 1.0)[-1] == 1.0
    assert not math.isfinite(run(0.0, DATA, 1.0, 1.0)[-1])


def test_the_cotangent_scales_the_gradient():
    args = (RANDOM.normal(size=3), MATRIX, LABELS)
    _, [once] = gradient(logistic, args, (0,))
    _, [thrice] = gradient(logistic, args, (0,), seed=-3.0)
    np.testing.assert_allclose(thrice, -3.0 * once, rtol=1e-15)


@pytest.mark.parametrize("seed", [math.inf, math.nan])
def test_a_cotangent_that_is_not_finite_stays_so(seed):
    _, [found] = gradient(logistic, (RANDOM.normal(size=3), MATRIX, LABELS), (0,), seed=seed)
    assert not np.isfinite(found).any()


def test_nan_in_the_data_gives_nan_where_the_plain_tier_does():
    data = MATRIX.copy()
    data[2, 1] = math.nan
    args = (np.ones(3), data, LABELS)
    _, [found] = gradient(logistic, args, (0,))
    expected = plaingrad.grad(logistic, tier="plain")(*args)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


@pytest.mark.optimised
@pytest.mark.parametrize("f", [logistic, asian])
def test_the_compiled_value_is_that_of_the_compiled_primal_to_the_last_bit(f):
    data = RANDOM.normal(size=(500, 7))
    args = (THETA, data) if f is asian else (RANDOM.normal(size=7), data, (data[:, 0] > 0.3).astype(float))
    value, [found] = gradient(f, args, (0,), run=derived(f, args, (0,)).run)
    assert value == numba.njit(f)(*args)
    np.testing.assert_allclose(found, plaingrad.grad(f, tier="plain")(*args), rtol=1e-11, atol=1e-13)


def test_a_loop_that_runs_zero_times_gives_a_gradient_of_zero():
    assert gradient(counters_change, (0.7, np.zeros(0)), (0,)) == (0.0, [0.0])


def test_a_loop_of_the_smallest_floats_keeps_their_type():
    args = (np.ones(3, np.float32), MATRIX.astype(np.float32), LABELS.astype(np.float32))
    _, [found] = gradient(logistic, args, (0,), run=derived(logistic, args, (0,)).run)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, gradient(logistic, (np.ones(3), MATRIX, LABELS), (0,))[1][0], rtol=1e-5)


def as_it_was_in_the_end(x, n):
    s = x[0]
    for _ in range(n):
        s = s - x[1]
        t = s
    return t


def as_it_was_before(x, n):
    s = x[0]
    t = 0.0
    for _ in range(n):
        t = s
        s = s - x[1]
    return t


def as_it_was_once(x, n):
    t = 0.0
    s = 0.0
    i = 0
    while i < n:
        if i < 2:
            t = s
        s = s + x[1] * x[2]
        i += 1
    return t + s * t


def as_it_was_in_a_nest(x, n):
    t = 0.0
    for j in range(3):
        s = x[0]
        for i in range(n):
            t = s
            s = s - x[1] * x[i] * j
    return t + s


@pytest.mark.parametrize("f", [as_it_was_in_the_end, as_it_was_before, as_it_was_once, as_it_was_in_a_nest])
def test_a_sum_that_is_also_read_as_it_was_at_some_time_has_two_cotangents(f):
    for n in (1, 2, 4):
        check(f, np.array([0.6, -0.8, 1.1, 0.3]), n)
