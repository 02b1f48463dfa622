"""Size: millions of operations, no recursion, pullbacks that may be called again, memory that stays bounded.

The longest chain has two million operations, with PLAINGRAD_TEST_ALL=1 it has ten.
"""

import bisect
import collections
import gc
import heapq
import itertools
import math
import random
import time
import tracemalloc

import numpy as np
import pytest
from tests.sampling import count

import plaingrad

pytestmark = pytest.mark.usefixtures("collections_as_usual")


@pytest.mark.slow
def test_a_chain_of_millions_of_operations_reverses():
    n = count(2 * 10**6, 10**7)

    def f(x):
        y = x
        for _ in range(n):
            y = y * 1.0000001
        return y

    value, slope = plaingrad.value_and_grad(f)(3.0)
    assert value == f(3.0)
    # each pass rounds n times, by at most half a unit in the last place each time
    assert slope == pytest.approx(math.exp(n * math.log(1.0000001)), rel=1e-9)
    assert slope == pytest.approx(value / 3.0, rel=1e-9)


def test_a_long_chain_through_lists_objects_and_calls():
    class State:
        def __init__(self, q):
            self.q = q

    def step(state, x):
        return State(state.q * 0.999 + x)

    def f(x):
        state = State(0.0)
        for _ in range(50_000):
            state = step(state, x)
        return state.q

    # a geometric series: (1 - 0.999^n) / 0.001
    assert plaingrad.grad(f)(1.0) == pytest.approx((1 - 0.999**50_000) / (1 - 0.999), rel=1e-9)


def test_a_linked_list_of_a_hundred_thousand_closures_reverses():
    def f(x):
        chain = lambda: x
        for _ in range(100_000):
            value = chain()
            chain = lambda value=value: value + x * 1e-5
        return chain()

    assert plaingrad.grad(f)(2.0) == pytest.approx(2.0, rel=1e-9)


def test_the_pullback_of_a_long_call_may_be_called_many_times():
    def f(x):
        y = x
        for k in range(20_000):
            y = y + math.sin(y) * 1e-4 if k % 2 else y * 1.00001
        return y

    y, pullback = plaingrad.vjp(f, 0.7)
    h = 1e-6
    first = pullback(1.0)[0]
    assert first == pytest.approx((f(0.7 + h) - f(0.7 - h)) / (2 * h), rel=1e-7)
    for k in range(1, 20):
        assert pullback(float(k))[0] == pytest.approx(k * first, rel=1e-13)
    assert y == f(0.7)


def test_a_fan_of_a_hundred_thousand_inputs():
    weights = [float(k % 7) for k in range(100_000)]

    def f(p):
        return sum(w * v for w, v in zip(weights, p, strict=True))

    assert plaingrad.grad(f)([0.5] * 100_000) == weights


def test_one_number_used_a_million_times():
    def f(x):
        total = 0.0
        for _ in range(10**6):
            total = total + x
        return total

    assert plaingrad.grad(f)(0.5) == 10**6


def peak(call):
    """The most memory that call() held at any time, in bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_at_most_150_bytes_a_scalar_operation():
    def f(x, n):
        y = x
        for _ in range(n):
            y = y * 1.0001 + 0.5
        return y

    def cost(n):
        return peak(lambda: plaingrad.grad(f)(0.5, n))

    small, large = cost(10_000), cost(60_000)
    assert (large - small) / (2 * 50_000) <= 150


def test_inactive_loops_leave_nothing_behind():
    def f(x, n):
        k = 1.0
        for i in range(n):
            k = k * 0.999 + float(i) - math.sin(k)
        return x * (k * 0.0 + 1.0)

    small, large = (peak(lambda n=n: plaingrad.grad(f)(0.5, n)) for n in (2_000, 40_000))
    assert large < small + 40_000
    assert plaingrad.grad(f)(0.5, 1000) == 1.0


def test_dead_branches_of_active_numbers_are_let_go():
    def f(x, n):
        for i in range(n):
            y = x * i  # never used
            del y
        return x

    slope = plaingrad.grad(f)(0.5, 1000)
    assert slope == 1.0
    small, large = (peak(lambda n=n: plaingrad.grad(f)(0.5, n)) for n in (10_000, 60_000))
    assert (large - small) / 50_000 <= 150


def test_arrays_made_in_a_loop_and_dropped_do_not_pile_up_when_nothing_reads_them():
    def f(x, n):
        y = x * 1.0
        for _ in range(n):
            y = y + 1.0  # linear: no pullback reads y
        return y.sum()

    x = np.zeros(100_000)
    few, many = (peak(lambda n=n: plaingrad.grad(f)(x, n)) for n in (20, 200))
    assert many < few + 64e6 + 60 * x.nbytes  # 180 arrays of 0.8 MB would be 144 MB


def test_writing_an_array_element_by_element_costs_the_same_for_each_element():
    def f(x, n):
        a = np.zeros(n)
        for i in range(n):
            a[i] = x * i
        return a.sum()

    def seconds(n):
        best = math.inf
        for _ in range(3):
            start = time.process_time()
            assert plaingrad.grad(f)(0.5, n) == n * (n - 1) / 2
            best = min(best, time.process_time() - start)
        return best

    assert seconds(16_000) < 10 * seconds(4_000), "linear: four times the work; quadratic would be sixteen"


INACTIVE_WORK = {
    "accumulate": lambda d: list(itertools.accumulate(d)),
    "accumulate max": lambda d: list(itertools.accumulate(d, max)),
    "groupby": lambda d: [list(g) for _, g in itertools.groupby(d, type)],
    "choices": lambda d: random.Random(1).choices(d, weights=d, k=len(d)),
    "bisect": lambda d: [bisect.bisect(d, v) for v in d],
    "map": lambda d: sum(map(abs, d)),
    "heap": lambda d: [heapq.heappush(d, heapq.heappop(d)) for _ in range(len(d))],
    "deque": lambda d: (lambda q: [q.rotate(1) for _ in d])(collections.deque(d)),
    "dict": lambda d: (lambda t: [t[v] for v in d])(dict(zip(d, d))),
}


@pytest.mark.parametrize("name", INACTIVE_WORK)
def test_work_on_inactive_lists_keeps_its_order_of_growth(name):
    work = INACTIVE_WORK[name]

    def seconds(n):
        best = math.inf
        for _ in range(3):
            data = [float(i + 1) for i in range(n)]

            def f(x):
                work(data)
                return x * x

            start = time.process_time()
            assert plaingrad.grad(f)(3.0) == 6.0
            best = min(best, time.process_time() - start)
        return best

    seconds(100)
    small, large = seconds(500), seconds(4_000)
    assert large < 40 * small + 0.05, f"{small:.4f} s for 500, {large:.4f} s for 4000: quadratic would be 64 times"


def test_a_gradient_leaves_no_memory_behind():
    def f(x):
        y = x
        for _ in range(1000):
            y = y * 1.001
        return y

    def work(n):
        for _ in range(n):
            plaingrad.grad(f)(0.5)

    work(20)
    gc.collect()
    tracemalloc.start()
    try:
        work(20)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(100)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 50_000


def test_closures_and_lambdas_made_in_a_loop_do_not_fill_a_cache():
    def f(x):
        y = x
        for k in range(3000):
            y = y + (lambda v: v * 1e-3)(x)
        return y

    def work():
        plaingrad.grad(f)(0.5)

    assert plaingrad.grad(f)(0.5) == pytest.approx(4.0, rel=1e-12)
    work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work()
        work()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 300_000
