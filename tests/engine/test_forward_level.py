"""The forward level itself: memory follows what is alive, warnings are the primal's, threads, exceptions."""

import math
import threading
import warnings

import numpy as np
import pytest

import plaingrad
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.forward.push import push


def watched(sizes):
    """A class of levels that report how many active numbers they hold when they close."""

    class Watched(ForwardLevel):
        takes_native_rules = False

        def close(self):
            sizes.append(len(self.index))
            super().close()

    return Watched


def decay(x):
    y = x
    for _ in range(50_000):
        y = y * 0.9999 + 1e-6 * x
    return y


@pytest.mark.parametrize("chunk", [None, 3])
def test_a_long_loop_over_one_number_holds_few_numbers(chunk):
    sizes = []
    dot = 1.0 if chunk is None else np.ones(chunk)
    push(decay, (0.5,), (dot,), {}, chunk, watched(sizes))
    assert sizes[0] < 20_000


def test_a_long_loop_inside_another_level_holds_few_numbers():
    sizes = []
    inner = watched(sizes)
    plaingrad.jvp(lambda x: push(decay, (x,), (1.0,), {}, None, inner)[1], (0.5,), (1.0,))
    assert sizes[0] < 20_000


def overflowing(x):
    a = x * 1e200
    b = a * 1e150  # a float that becomes inf raises no warning; its tangent must not either
    return a + 0.0 * min(b, 1.0)


@pytest.mark.parametrize("chunk", [None, 2])
def test_tangents_that_overflow_warn_of_nothing(chunk):
    dot = 1e10 if chunk is None else np.full(chunk, 1e10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        push(overflowing, (2.0,), (dot,), {}, chunk)
        plaingrad.jvp(lambda x: push(overflowing, (x,), (dot,), {}, chunk)[1], (2.0,), (1.0,))


def test_an_exception_in_the_middle_leaves_arguments_as_a_plain_call_does():
    def f(p, a):
        a[0] = p["x"] * 2.0
        p["y"] = 7.0
        raise KeyError("here")

    p, a = {"x": 3.0}, np.zeros(2)
    x = p["x"]
    with pytest.raises(KeyError, match="here"):
        plaingrad.jvp(f, (p, a), ({"x": 1.0}, None))
    assert p["x"] is x and p["y"] == 7.0 and a[0] == 6.0


def test_threads_push_forward_at_once():
    found = {}

    def work(k):
        x = 0.1 * (k + 1)
        found[k] = [plaingrad.jvp(lambda v: math.sin(v) ** k, (x,), (1.0,))[1] for _ in range(30)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, every in found.items():
        x = 0.1 * (k + 1)
        expected = k * math.sin(x) ** (k - 1) * math.cos(x)
        assert all(math.isclose(value, expected, rel_tol=1e-12) for value in every)


def test_chunks_are_the_tangents_one_by_one():
    def f(x):
        a = np.zeros((2, 3))
        a[:, 1:] = np.outer(x[:2], x[1:])
        a[[0, 1], [1, 2]] *= x[0]
        return np.sort(a.T @ a, axis=0), float(a[0, 1]) * x[2]

    x = np.array([0.3, -0.7, 1.1])
    dots = np.random.default_rng(0).normal(size=(4, 3))
    _, together = push(f, (x,), (dots,), {}, 4)
    for k in range(4):
        _, alone = push(f, (x,), (dots[k],), {})
        np.testing.assert_allclose(together[0][k], alone[0], rtol=1e-13)
        np.testing.assert_allclose(together[1][k], alone[1], rtol=1e-13)
