"""Loops over `numba.prange` in functions with `parallel=True`: which run in threads, and that nothing is lost there."""

import math
import threading

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from numba import prange, types  # noqa: E402

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.runtime import threads, workspace  # noqa: E402

KINDS = (types.Array(types.float64, 2, "C"), types.Array(types.float64, 1, "C"))
RNG = np.random.default_rng(5)
X, W = RNG.random((13, 4)) + 0.2, RNG.random(4) + 0.3


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    monkeypatch.setattr(workspace, "_threads", lambda: 3)


def parallel(f):
    return numba.njit(parallel=True)(f)


def loops_in_threads(f):
    """How many loops the gradient of `f` runs in threads; nothing is compiled."""
    return build.derived("pullback", parallel(f), KINDS, (0, 1)).text.count(" = forward_in_parts(")


def scratch_and_sums(x, w):
    a, out, count, total, y = w[1] * 2, np.zeros(x.shape[0]), 0, 1.5, x * 1.0
    for i in prange(x.shape[0]):
        tmp = np.empty(x.shape[1])
        for j in range(x.shape[1]):
            tmp[j] = y[i, j] * w[j] + w[0]
        t = 0.0
        for j in range(x.shape[1]):
            t += tmp[j] * tmp[j] / w[3]
        out[i] = t * a
        if t > 1.0:
            total -= math.sin(t) * x[x.shape[0] - 1 - i, 0]
            count += 1
    y[:] = 3.0 * total  # what the parts have read is overwritten
    return total * out.sum() + count + y[0, 0] * w[0]


def steps_in_time(x, w):
    u, v = x[:, 0].copy(), np.zeros(x.shape[0])
    for _ in range(3):
        for i in prange(u.size):
            pull = 0.0
            for j in range(u.size):
                pull += math.sin(u[j] - u[i]) * w[j % 4]
            v[i] = u[i] + 0.1 * pull
        u, v = v, u
    return (u * u).sum()


@pytest.mark.parametrize("f", [scratch_and_sums, steps_in_time])
def test_a_gradient_in_threads_is_that_of_the_plain_tier(f):
    assert loops_in_threads(f) == 1
    run = plaingrad.value_and_grad(parallel(f), argnums=(0, 1), tier="native")
    value, expected = plaingrad.value_and_grad(f, argnums=(0, 1), tier="plain")(X, W)
    results = [run(X, W)]
    callers = [threading.Thread(target=lambda: results.append(run(X, W))) for _ in range(2)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    for found, slopes in [*results, run(X, W)]:
        np.testing.assert_allclose(found, value, rtol=1e-12)
        for a, b in zip(slopes, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    if f is scratch_and_sums:
        with pytest.raises(ZeroDivisionError):
            run(X, W * [1.0, 1.0, 1.0, 0.0])
    for rows in (2, 1) if f is scratch_and_sums else ():  # fewer iterations than threads
        few = np.ascontiguousarray(X[:rows])
        expected = plaingrad.grad(f, argnums=(0, 1), tier="plain")(few, W)
        for a, b in zip(run(few, W)[1], expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


def transposed(x, w):
    y, s = x.T, 0.0
    for i in prange(4):
        for j in range(4):
            s += x[i, j] * y[i, j] * w[0]
    return s


def prefix(x, w):
    s, last = 0.0, 0.0
    for i in prange(x.shape[0]):
        s += x[i, 0]
        last = s * s
    return s + last * w[0]


def swapped_sums(x, w):
    p, q = 0.0, 0.0
    for i in prange(x.shape[0]):
        p, q = q, p + x[i, 0] * w[0]
    return p - 2 * q


def product(x, w):
    p = 1.0
    for i in prange(x.shape[0]):
        p *= x[i, 0] + w[0]
    return p


def at_a_place_that_is_computed(x, w):
    out = np.zeros(x.shape[0])
    for i in prange(x.shape[0]):
        out[(3 * i) % x.shape[0]] = x[i, 0] * w[0]
    return (out * out).sum()


def neighbour_of_what_is_written(x, w):
    y = x * w[0]
    for i in prange(y.shape[0] - 1):
        y[i, 0] = y[i, 0] + y[i + 1, 1]
    return (y * y).sum()


def stencil(x, w):
    v = np.zeros(x.shape[0])
    for i in prange(x.shape[0] - 1):
        v[i] = x[i, 0] + w[0] * (x[i + 1, 0] - x[i, 0]) * x[i, 0]
    return (v * v).sum()


def counter_below_zero(x, w):
    s = 0.0
    for i in prange(-2, 3):
        s += x[i, 0] * w[0]
    return s


def random_numbers(x, w):
    s = 0.0
    for i in prange(x.shape[0]):
        s += x[i, 0] * np.random.random() * w[0]
    return s


@pytest.mark.parametrize(
    "f",
    [
        transposed,
        prefix,
        swapped_sums,
        product,
        at_a_place_that_is_computed,
        neighbour_of_what_is_written,
        stencil,
        counter_below_zero,
        random_numbers,
    ],
)
def test_other_loops_stay_in_one_thread(f):
    assert loops_in_threads(f) == 0


def test_without_parallel_a_prange_is_a_range():
    text = build.derived("pullback", numba.njit(scratch_and_sums), KINDS, (0, 1)).text
    assert "forward_in_parts" not in text


@numba.njit
def failing(k, given):
    given[k] = 1.0
    if k % 2:
        raise ValueError("odd")


each_in_a_thread = threads.side_by_side_of(failing)


@numba.njit
def in_threads(parts):
    done = np.zeros(parts)
    return each_in_a_thread(parts, done), done


def test_failures_in_threads_are_counted():
    failed, done = in_threads(5)
    assert failed == 2 and done.tolist() == [1.0] * 5
