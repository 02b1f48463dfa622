"""Gradients whose kept arrays are brought near before they are read: more than the caches hold, in odd shapes."""

import threading

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.loops import prefetch  # noqa: E402
from plaingrad.native.runtime import workspace  # noqa: E402
from tests.sampling import some  # noqa: E402


def one_axis(u0, c, k, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            v[i] = u[i] + c * (u[i - 1] + u[i + 1] - 2 * u[i]) + k * u[i] * (1 - u[i])
        u = v
    return np.sum(u * u)


def two_axes(u0, c, k, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                spread = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
                v[i, j] = u[i, j] + c * spread + k * u[i, j] * (1 - u[i, j])
        u = v
    return np.sum(u * u)


def three_axes(u0, c, k, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for m in range(1, u.shape[2] - 1):
                    spread = (
                        u[i - 1, j, m] + u[i + 1, j, m] + u[i, j - 1, m] + u[i, j + 1, m] - 6 * u[i, j, m]
                    )
                    spread = spread + u[i, j, m - 1] + u[i, j, m + 1]
                    v[i, j, m] = u[i, j, m] + c * spread + k * u[i, j, m] * (1 - u[i, j, m])
        u = v
    return np.sum(u * u)


BY_RANK = {1: numba.njit(one_axis), 2: numba.njit(two_axes), 3: numba.njit(three_axes)}


def shifted(rank, axis, by):
    """The interior of an array, moved along an axis."""
    return tuple(slice(1 + by * (k == axis), -1 + by * (k == axis) or None) for k in range(rank))


def by_hand(u0, c, k, steps):
    """The gradient in u0, in operations of whole arrays."""
    states, rank = [u0], u0.ndim
    inside = shifted(rank, -1, 0)
    for _ in range(steps):
        u = states[-1]
        v = u.copy()
        around = sum(u[shifted(rank, axis, by)] for axis in range(rank) for by in (-1, 1))
        v[inside] += c * (around - 2 * rank * u[inside]) + k * u[inside] * (1 - u[inside])
        states.append(v)
    bar = 2 * states.pop()
    for u in reversed(states):
        part = bar[inside].copy()
        bar[inside] += part * (k * (1 - 2 * u[inside]) - 2 * rank * c)
        for axis in range(rank):
            for by in (-1, 1):
                bar[shifted(rank, axis, by)] += c * part
    return bar


@pytest.mark.parametrize(
    "shape", some([(70_001,), (50_000, 3), (13, 150, 71)], [(3, 50_000), (301, 293), (70, 5, 251)])
)
def test_arrays_that_no_cache_holds_have_the_gradient_by_hand_whatever_their_shape(shape):
    f = BY_RANK[len(shape)]
    u0 = np.random.default_rng(0).random(shape)
    for steps in (1 + prefetch.LEAST // u0.nbytes, 2, 0):
        value, (found,) = plaingrad.value_and_grad(f, (0,))(u0, 0.1, 0.05, steps)
        assert value == f(u0, 0.1, 0.05, steps)
        np.testing.assert_allclose(found, by_hand(u0, 0.1, 0.05, steps), rtol=1e-11, atol=1e-12)


def test_the_second_gradient_is_in_one_block_and_the_same():
    f = numba.njit(two_axes)
    u0 = np.random.default_rng(0).random((301, 293)).astype(np.float32)
    u0, steps = u0[::-1], 2 + 2 * prefetch.LEAST // u0.nbytes
    first, again = (plaingrad.grad(f)(u0, 0.1, 0.05, steps) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first, by_hand(u0.astype(float), 0.1, 0.05, steps), rtol=1e-3, atol=1e-4)


def test_threads_do_not_share_what_is_brought_near():
    f = BY_RANK[2]
    fields = np.random.default_rng(0).random((2, 257, 259))
    steps = 1 + prefetch.LEAST // fields[0].nbytes
    found = {}

    def work(k):
        for _ in range(3):
            found[k] = plaingrad.grad(f)(fields[k], 0.1, 0.05, steps)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        np.testing.assert_allclose(found[k], by_hand(fields[k], 0.1, 0.05, steps), rtol=1e-11, atol=1e-12)


@numba.njit
def bring(arena, x, first, last):
    prefetch.bring_near(arena, x, first, last)


def test_parts_are_entries_of_the_first_axis_and_at_least_one():
    header = np.zeros(workspace.TABLE, np.int64)  # of an arena that holds nothing, then much
    rows, wide = np.zeros((1000, 128)), np.zeros((2, 1 << 18))
    assert prefetch.rows_at_once(header, rows) == 1000
    header[workspace.CAPACITY] = prefetch.LEAST
    assert prefetch.rows_at_once(header, rows) == prefetch.AT_ONCE // 1024
    assert prefetch.rows_at_once(header, wide) == 1
    for empty in (np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(0, np.float32)):
        assert prefetch.rows_at_once(header, empty) >= 1
        bring(header, empty, 0, 3)
    bring(header, rows, -5, 2000)  # no more than there is
    rows[999, 127] = 2.0
    bring(header, rows, 999, 1000)
    assert header[workspace.SEEN] == np.float64(2.0).view(np.int64)  # it was read


def test_the_program_for_a_debugger_takes_an_arena_that_compiled_code_has_filled():
    u0 = np.random.default_rng(0).random((257, 259))
    steps = 1 + prefetch.LEAST // u0.nbytes
    plaingrad.grad(BY_RANK[2])(u0, 0.1, 0.05, steps)
    small = u0[:7, :6].copy()
    signature = (numba.typeof(small), numba.float64, numba.float64, numba.int64)
    bar = np.zeros_like(small)
    build.derived("pullback", BY_RANK[2], signature, (0,)).python(small, 0.1, 0.05, 2, 1.0, bar)
    np.testing.assert_allclose(bar, by_hand(small, 0.1, 0.05, 2), rtol=1e-11)
