"""Threads: many gradients at once, threads inside a gradient, and arguments that threads share."""

import concurrent.futures
import contextvars
import math
import queue
import sys
import threading

import numpy as np
import pytest
from cases_b import check

import plaingrad
from plaingrad import grad


def in_threads(work, n=8):
    """The results of work(0), ..., work(n - 1), each in a thread of its own, all started at once."""
    results, barrier = [None] * n, threading.Barrier(n)

    def run(i):
        barrier.wait()
        try:
            results[i] = work(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # switch as often as can be, in the middle of everything
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(old)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_eight_threads_of_fifty_nested_gradients_give_four_hundred_right_answers():
    def f(x):
        y = x
        for k in range(1, 6):
            y = y + grad(lambda t: math.sin(t * x) * t)(0.1 * k)
        return y * x

    def slope(x):
        # d/dt [t sin(t x)] = sin(tx) + t x cos(tx); its derivative by x: 2 t cos(tx) - t t x sin(tx)
        ts = [0.1 * k for k in range(1, 6)]
        s = x + sum(math.sin(t * x) + t * x * math.cos(t * x) for t in ts)
        return s + x * (1 + sum(2 * t * math.cos(t * x) - t * t * x * math.sin(t * x) for t in ts))

    points = [[0.3 + 0.01 * i + 0.001 * j for j in range(50)] for i in range(8)]
    results = in_threads(lambda i: [grad(f)(x) for x in points[i]])
    right = sum(
        math.isclose(ours, slope(x), rel_tol=1e-12)
        for row, xs in zip(results, points, strict=True)
        for ours, x in zip(row, xs, strict=True)
    )
    assert right == 400


def test_eight_threads_of_second_derivatives_of_one_shared_gradient_function():
    second = grad(grad(lambda x: x**4 + math.exp(x)))
    results = in_threads(lambda i: [second(0.1 * i + 0.01 * j) for j in range(25)])
    for i, row in enumerate(results):
        for j, ours in enumerate(row):
            x = 0.1 * i + 0.01 * j
            assert ours == pytest.approx(12 * x * x + math.exp(x), rel=1e-12)


def test_eight_threads_of_array_gradients():
    matrix = np.arange(9.0).reshape(3, 3)

    def f(w):
        a = w.copy()
        for k in range(3):
            a[k] = a @ matrix[k] * 0.1
        return (a * w).sum() + (w**3).sum()

    def once(w):
        a, jacobian = w.copy(), np.eye(3)
        for k in range(3):
            jacobian[k] = 0.1 * matrix[k] @ jacobian
            a[k] = a @ matrix[k] * 0.1
        return a + jacobian.T @ w + 3 * w**2

    rng = np.random.default_rng(3)
    points = rng.normal(size=(8, 10, 3))
    results = in_threads(lambda i: [grad(f)(w) for w in points[i]])
    np.testing.assert_allclose(results, [[once(w) for w in row] for row in points], rtol=1e-12)


def test_threads_that_join_and_leave_user_classes_with_their_own_code():
    class Card:
        def __init__(self, v):
            self.v = v

        def __lt__(self, other):
            return self.v < other.v

        def __add__(self, other):
            return Card(self.v * other.v)

    before = [vars(Card)[name].__code__ for name in ("__init__", "__lt__", "__add__")]

    def f(x):
        cards = sorted([Card(x * x), Card(x), Card(2.0 * x)])
        return (cards[0] + cards[1] + cards[2]).v

    # x * 2x * xx in some order: 2 x^4
    results = in_threads(lambda i: [grad(f)(1.5) for _ in range(20)])
    assert results == [[pytest.approx(8 * 1.5**3, rel=1e-13)] * 20] * 8
    assert [vars(Card)[name].__code__ for name in ("__init__", "__lt__", "__add__")] == before


def test_threads_that_meet_a_new_class_at_the_same_moment():
    def fresh():
        class Base:
            def __init__(self, v):
                self.v = v

            def __add__(self, other):
                return type(self)(self.v * other.v)

        class Card(Base):
            def __lt__(self, other):
                return self.v < other.v

        def f(x):
            cards = sorted([Card(x * x), Card(x), Card(2.0 * x)])
            return (cards[0] + cards[1] + cards[2]).v

        return f

    for _ in range(60):
        f = fresh()
        assert in_threads(lambda i: grad(f)(1.5)) == [pytest.approx(8 * 1.5**3, rel=1e-13)] * 8


def test_a_plain_call_in_one_thread_while_another_takes_a_gradient():
    class Box:
        total = 0.0

        def __init__(self, v):
            self.v = v

        def __eq__(self, other):
            return self.v == other.v

        def __hash__(self):
            return 1

    def f(x):
        y = x
        for _ in range(200):
            y = y * 1.001 if Box(y) != Box(x) else y + x
        return y

    plain, slope = f(1.5), grad(f)(1.5)
    results = in_threads(lambda i: [f(1.5) if i % 2 else plaingrad.value_and_grad(f)(1.5) for _ in range(10)])
    for i, row in enumerate(results):
        assert row == [plain if i % 2 else (plain, slope)] * 10
    assert all(type(v) is float for row in results[1::2] for v in row)


# Threads inside a differentiated function.


def test_a_thread_started_inside_computes_a_part_of_the_result():
    def f(x):
        out = {}

        def part(name, k):
            out[name] = x * x * k

        threads = [threading.Thread(target=part, args=(i, float(i)), daemon=bool(i % 2)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(out.values()) * x

    check(f, 1.5, 18 * 1.5**2)


def test_a_thread_class_with_its_own_run_method():
    class Worker(threading.Thread):
        def __init__(self, x):
            super().__init__()
            self.x = x
            self.result = None

        def run(self):
            self.result = math.sin(self.x) * self.x

    def f(x):
        workers = [Worker(x), Worker(2.0 * x)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sum(worker.result for worker in workers)

    x = 0.7
    slope = math.cos(x) * x + math.sin(x) + 2 * (math.cos(2 * x) * 2 * x + math.sin(2 * x))
    check(f, x, slope)


def test_a_thread_pool_made_inside_maps_and_submits():
    def f(x):
        with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
            squares = list(pool.map(lambda k: x * k * k, [1.0, 2.0, 3.0]))
            futures = {pool.submit(pow, x, k): k for k in (2, 3)}
            powers = sum(
                future.result() * futures[future] for future in concurrent.futures.as_completed(futures)
            )
            failed = pool.submit(lambda: 1 / 0)
            assert isinstance(failed.exception(), ZeroDivisionError)
        return sum(squares) + powers

    # 14 x + 2 xx + 3 x^3
    x = 1.5
    check(f, x, 14 + 4 * x + 9 * x * x)


def test_producer_and_consumer_pass_active_numbers_through_a_queue():
    def f(x):
        work, total = queue.Queue(maxsize=2), []

        def produce():
            for i in range(10):
                work.put(x * i)
            work.put(None)

        def consume():
            y = 0.0
            while (v := work.get()) is not None:
                y = y + v * v
            total.append(y)

        threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return total[0]

    check(f, 1.5, 2 * 285 * 1.5)


def test_locks_events_and_conditions_around_shared_state():
    def f(x):
        lock, ready, total = threading.Lock(), threading.Event(), [0.0]

        def add(k):
            ready.wait()
            for _ in range(50):
                with lock:
                    total[0] = total[0] + x * k

        threads = [threading.Thread(target=add, args=(float(k),)) for k in range(4)]
        for thread in threads:
            thread.start()
        ready.set()
        for thread in threads:
            thread.join()
        return total[0] * x

    # the order of additions varies by rounding, so the value is only close: x is chosen so that sums are exact
    check(f, 1.5, 2 * 300 * 1.5)


def test_threads_write_parts_of_one_array():
    def f(x):
        y = np.zeros(40)

        def fill(i):
            for k in range(10):
                y[10 * i + k] = x[i] * x[i] * k

        threads = [threading.Thread(target=fill, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return y.sum()

    x = np.array([1.5, -0.5, 2.0, 3.0])
    check(f, x, 2 * 45 * x)


def test_an_exception_in_a_worker_carries_active_numbers_to_the_caller():
    def f(x):
        def fail(k):
            raise ValueError(x * k)

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(fail, 3.0).result()
            except ValueError as error:
                return error.args[0] * x

    check(f, 1.5, 18 * 0.5)


class Cell:
    def __init__(self, value):
        self.value = value

    def grown(self, by):
        self.value = self.value * by + 0.5
        return self.value


def test_eight_threads_work_at_one_level_and_switch_at_every_step():
    def part(x, k, table, shared, a):
        own, cell = [], Cell(x * k)
        for j in range(30):
            table[k, j] = shared[0] * j + math.sin(x) * k
            own.append((lambda v, j=j: v * v + j * x)(table[k, j]))
            a[k] = a[k] + np.float64(x) * j
            cell.grown(0.5)
            if j % 10 == 0:
                own.append(float(np.sum(np.array([x, x * k]))))
        return sum(own) + cell.value + max(own) * 0.0

    def f(x, in_threads):
        table, shared, a, found = {}, [x], np.zeros(8) * x, [None] * 8

        def work(k):
            found[k] = part(x, k, table, shared, a)

        if in_threads:
            threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        else:
            for k in range(8):
                work(k)
        return sum(found) + sum(table.values()) + float(a.sum())

    def slope(x):
        z = x + 1e-30j
        total = 0
        for k in range(8):
            for j in range(30):
                t = z * j + np.sin(z) * k
                total += t * t + j * z + t + z * j
            total += 3 * (z + z * k) + z * k * 0.5**30
        return total.imag / 1e-30

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(2):
            assert grad(f)(0.7, True) == pytest.approx(slope(0.7), rel=1e-12)
            assert plaingrad.jvp(lambda x: f(x, True), (0.7,), (1.0,))[1] == pytest.approx(
                slope(0.7), rel=1e-12
            )
    finally:
        sys.setswitchinterval(old)
    assert grad(f)(0.7, False) == pytest.approx(slope(0.7), rel=1e-12)
    bend = plaingrad.hvp(lambda x: f(x, True), (0.7,), (1.0,))[0]
    assert bend == pytest.approx(plaingrad.hvp(lambda x: f(x, False), (0.7,), (1.0,))[0], rel=1e-10)


def test_nested_threads_and_gradients_inside_threads():
    def f(x):
        out = []

        def outer():
            inner = threading.Thread(target=lambda: out.append(grad(lambda t: t**3 * x)(x)))
            inner.start()
            inner.join()
            out.append(x * x)

        thread = threading.Thread(target=outer)
        thread.start()
        thread.join()
        return out[0] * out[1]

    # 3 x^2 x * x^2 = 3 x^5
    check(f, 1.2, 15 * 1.2**4)


def test_a_thread_that_outlives_the_gradient_goes_on_plainly():
    go, out, threads = threading.Event(), [], []

    def f(x):
        def late():
            go.wait(30)
            out.append(x * x)

        thread = threading.Thread(target=late)
        thread.start()
        threads.append(thread)
        return x * 3.0

    assert grad(f)(1.5) == 3.0
    go.set()
    threads[0].join()
    assert out == [2.25] and type(out[0]) is float


def test_thread_locals_and_context_variables_carry_active_numbers():
    local, variable = threading.local(), contextvars.ContextVar("k", default=0.0)

    def f(x):
        local.k = x * 2.0
        variable.set(x * 3.0)
        out = []

        def work(context):
            assert not hasattr(local, "k")
            local.k = x * 5.0
            out.append(local.k + context.run(variable.get))

        thread = threading.Thread(target=work, args=(contextvars.copy_context(),))
        thread.start()
        thread.join()
        return local.k * variable.get() + out[0]

    check(f, 1.5, 12 * 1.5 + 8)


# Arguments that two threads share.


def test_a_list_shared_by_threads_that_take_gradients_of_it():
    shared = [1.5, 2.5, 3.5]

    def f(p):
        y = 1.0
        for _ in range(30):
            for v in p:
                y = y + v * p[0] * 0.01
        return y

    # y = 1 + 0.3 p0 (p0 + p1 + p2)
    expected = [0.3 * (2 * 1.5 + 2.5 + 3.5), 0.3 * 1.5, 0.3 * 1.5]
    for row in in_threads(lambda i: [grad(f)(shared) for _ in range(20)]):
        for ours in row:
            assert ours == pytest.approx(expected, rel=1e-12)
    assert shared == [1.5, 2.5, 3.5]
    assert all(type(v) is float for v in shared)


def test_a_dict_and_an_object_shared_by_threads():
    class Model:
        def __init__(self):
            self.rate = 2.0
            self.weights = {"a": 0.5, "b": [1.0, 3.0]}

    model = Model()

    def f(m):
        y = m.rate
        for _ in range(20):
            y = y * m.weights["a"] + m.rate * m.weights["b"][1]
        return y

    # y_n = r a^n + 3 r (1 - a^n) / (1 - a)
    a, r, b, n = 0.5, 2.0, 3.0, 20
    s = (1 - a**n) / (1 - a)
    ds = (-n * a ** (n - 1) * (1 - a) + (1 - a**n)) / (1 - a) ** 2
    for row in in_threads(lambda i: [grad(f)(model) for _ in range(20)]):
        for ours in row:
            assert ours.rate == pytest.approx(a**n + b * s, rel=1e-12)
            assert ours.weights["a"] == pytest.approx(r * n * a ** (n - 1) + b * r * ds, rel=1e-12)
            assert ours.weights["b"] == pytest.approx([0.0, r * s], rel=1e-12)
    assert vars(model) == {"rate": 2.0, "weights": {"a": 0.5, "b": [1.0, 3.0]}}


def test_an_array_shared_by_threads_of_which_none_writes():
    w = np.linspace(0.1, 1.0, 50)

    def f(w):
        return (np.sin(w) * w).sum()

    for row in in_threads(lambda i: [grad(f)(w) for _ in range(20)]):
        for ours in row:
            np.testing.assert_allclose(ours, np.cos(w) * w + np.sin(w), rtol=1e-12)


def test_one_object_differentiated_in_one_thread_and_read_plainly_in_another():
    shared = {"x": 1.5, "list": [2.5]}

    def f(p):
        y = p["x"]
        for _ in range(100):
            y = y + p["list"][0] * 0.01
        return y * p["x"]

    def plainly(p):
        return p["x"] * p["list"][0]

    def work(i):
        return [plainly(shared) if i % 2 else grad(f)(shared) for _ in range(50)]

    for i, row in enumerate(in_threads(work)):
        for ours in row:
            if i % 2:
                assert ours == 1.5 * 2.5
            else:
                assert ours["x"] == pytest.approx(2 * 1.5 + 2.5, rel=1e-12)
                assert ours["list"] == pytest.approx([1.5], rel=1e-12)
    assert shared == {"x": 1.5, "list": [2.5]}


def test_one_bound_method_differentiated_by_many_threads():
    class Spring:
        def __init__(self, k):
            self.k = k
            self.calls = 0

        def energy(self, q):
            return 0.5 * self.k * q * q

    spring = Spring(3.0)
    for row in in_threads(lambda i: [grad(spring.energy)(float(i)) for _ in range(30)]):
        assert len(set(row)) == 1
    assert [grad(spring.energy)(float(i)) for i in range(4)] == [0.0, 3.0, 6.0, 9.0]


def test_one_pullback_called_by_many_threads():
    def f(x):
        a = x.copy()
        for k in range(5):
            a[k] = a[k - 1] * x[k]  # writes that the reverse pass has to undo
        return a

    x = np.array([1.5, 0.5, 2.0, 0.25, 3.0])
    y, pullback = plaingrad.vjp(f, x)
    seeds = np.eye(5)
    # a0 = x4 x0, then a_k = a_(k-1) x_k: a_k = x4 x0 x1 ... x_k
    expected = []
    for k in range(4):
        g = np.zeros(5)
        for j in [*range(k + 1), 4]:
            g[j] = y[k] / x[j]
        expected.append(g)
    expected.append(y[4] / x * np.array([1, 1, 1, 1, 2]))
    for row in in_threads(lambda i: [pullback(seeds[(i + j) % 5])[0] for j in range(10)]):
        assert len(row) == 10
    results = in_threads(lambda i: [pullback(seeds[(i + j) % 5])[0] for j in range(10)])
    for i, row in enumerate(results):
        for j, ours in enumerate(row):
            np.testing.assert_allclose(ours, expected[(i + j) % 5], rtol=1e-12)
    np.testing.assert_array_equal(y, f(x))


def test_rules_registered_while_other_threads_differentiate():
    def f(x):
        return math.exp(x) * x

    def work(i):
        out = []
        for j in range(20):
            if i == 0:

                def g(x, j=j):
                    return x * j

                plaingrad.nondifferentiable(g)
                out.append(grad(lambda x: g(x) * x)(2.0) == 2.0 * j)
            else:
                out.append(math.isclose(grad(f)(0.5), 1.5 * math.exp(0.5), rel_tol=1e-13))
        return all(out)

    assert in_threads(work) == [True] * 8
