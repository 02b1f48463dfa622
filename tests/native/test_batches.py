"""`vmap` of functions that Numba compiles: the loop is compiled, and derived, too."""

import numba
import numpy as np
import pytest
from plaingrad import grad, vmap
from plaingrad.native.border import batches
from plaingrad.native.border.batches import loop_over

X = np.arange(6.0).reshape(3, 2)
w = np.array([0.5, -1.0])


@numba.njit
def loss(w, x, y):
    return (w[0] * x[0] + w[1] * x[1] - y) ** 2


def test_a_compiled_function_may_return_an_array_that_it_writes_into_again():
    @numba.njit
    def in_a_buffer(x, buffer):
        buffer[0] = x
        return buffer

    np.testing.assert_array_equal(vmap(in_a_buffer, (0, None))(np.arange(3.0), np.ones(1)), [[0.0], [1.0], [2.0]])


def test_a_compiled_function_runs_in_a_compiled_loop():
    batched = vmap(loss, in_axes=(None, 0, None))
    np.testing.assert_allclose(batched(w, X, 1.0), (X @ w - 1.0) ** 2)
    expected = np.sum(2.0 * (X @ w - 1.0)[:, None] * X, 0)
    np.testing.assert_allclose(grad(lambda w: np.sum(batched(w, X, 1.0)))(w), expected)


def test_results_of_different_shapes_are_refused_there_too():
    loop = loop_over(ones, (True,), None)
    np.testing.assert_array_equal(loop.py_func(np.ones(2), np.array([2, 2])), np.ones((2, 2)))
    with pytest.raises(ValueError, match="different shapes"):
        loop.py_func(np.ones(2), np.array([2, 1]))  # which would be spread over two


def ones(n):
    """Runs in CPython: what is tested is the text of the loop."""
    return np.ones(n)


@numba.njit
def scaled(x, k):
    if k < 0:
        raise ValueError(k)
    return x * k


def test_examples_run_in_threads_and_the_first_that_fails_says_so(monkeypatch):
    monkeypatch.setattr(batches, "WORTH_THREADS", 0.0)
    monkeypatch.setattr(batches.numba, "get_num_threads", lambda: 3)
    pools = []
    pool_of = batches.ThreadPoolExecutor
    monkeypatch.setattr(batches, "ThreadPoolExecutor", lambda n: pools.append(n) or pool_of(n))
    x, k = np.random.default_rng(0).normal(size=(101, 2)), np.arange(101)
    np.testing.assert_array_equal(vmap(scaled)(x, k), x * k[:, None])
    assert pools == [3]
    k[[60, 90]] = -60, -90
    with pytest.raises(ValueError) as caught:
        vmap(scaled)(x, k)
    assert caught.value.args == (-60,)


@numba.njit
def written(x):
    x[0] += 1.0
    return x[0]


@numba.njit
def drawn(x):
    return x[0] * np.random.random()


@numba.njit
def inside(x):
    return written(x) + 1.0


@pytest.mark.parametrize("f", [written, drawn, inside])
def test_what_writes_or_draws_runs_in_order(f):
    assert not batches.only_computes(f, (w,))
    assert batches.only_computes(loss, (w, w, 1.0))
