"""Threads, timers, pools and other processes that the program itself uses, and hands its work to."""

import _thread
import concurrent.futures
import contextlib
import contextvars
import functools
import math
import multiprocessing
import multiprocessing.pool
import queue
import sys
import threading
import time

import numpy as np
import pytest
from cases_b import check

import plaingrad
from plaingrad.engine.memory import compiled_steps


@pytest.fixture
def hasty():
    """The interpreter changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works):
    """Runs the works in a thread each, and waits."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# How threads start.


def test_a_thread_is_left_as_plain_python_leaves_it():
    def f(x):
        box = []
        thread = threading.Thread(target=box.append, args=(x * x,), name="worker", daemon=True)
        thread.start()
        assert not {"run", "start", "_bootstrap"} & set(vars(thread))
        assert thread.run.__func__ is threading.Thread.run
        thread.join()
        assert not thread.is_alive()
        with pytest.raises(RuntimeError):
            thread.start()
        assert thread.name == "worker"
        return box[0]

    check(f, 1.5, 3.0)


def test_run_is_looked_up_as_python_does():
    class Worker(threading.Thread):
        def run(self):
            self.y = self.x * self.x
            super().run()

    def f(x):
        total = []
        worker = Worker(target=lambda k: total.append(x * k), kwargs={"k": 3.0})
        worker.x = x
        worker.start()
        worker.join()
        other = threading.Thread()
        other.run = lambda: total.append(x * 5.0)
        other.start()
        other.join()
        return worker.y + sum(total)

    check(f, 1.5, 3 + 8)


def test_timers():
    def f(x):
        box = []
        timer = threading.Timer(0.001, lambda k: box.append(x * k), args=(x,))
        dropped = threading.Timer(1000, box.append, args=(x * 1e9,))
        dropped.start()
        dropped.cancel()
        timer.start()
        timer.join()
        dropped.join()
        return box[0]

    check(f, 1.5, 3.0)


def test_threads_without_the_threading_module():
    def f(x):
        box, done = [], _thread.allocate_lock()
        done.acquire()

        def work(k, *, gain):
            box.append(x * k * gain)
            done.release()

        _thread.start_new_thread(work, (x,), {"gain": 3.0})
        with done:
            return box[0]

    check(f, 1.5, 9.0)


def test_a_thread_has_a_context_of_its_own():
    rate = contextvars.ContextVar("rate", default=2.0)

    def f(x):
        rate.set(x * 7.0)
        seen = []

        def look():
            seen.append(rate.get())
            rate.set(x)
            seen.append(rate.get() * x)

        together(look)
        context = contextvars.copy_context()
        together(lambda: context.run(look))
        assert context[rate] is x
        y = rate.get()
        rate.set(0.0)
        return sum(seen) + y

    if getattr(sys.flags, "thread_inherit_context", 0):
        pytest.skip("threads inherit the context in this build")
    # 2 + xx; 7x + xx; 7x
    check(f, 1.5, 14 + 4 * 1.5)


def test_thread_locals():
    local = threading.local()

    class Own(threading.local):
        def __init__(self, y):
            self.y = y * y

    def f(x):
        local.y = x
        own = Own(x)
        out = []

        def work():
            assert not hasattr(local, "y")
            local.y = x * 3.0
            own.y = own.y * 2.0
            out.append(local.y + own.y)

        together(work, work)
        return sum(out) + local.y + own.y

    # 2 (3x + 2xx) + x + xx
    check(f, 1.5, 7 + 10 * 1.5)


def test_errors_that_end_a_thread_go_to_the_hook():
    def f(x):
        seen = []

        def hook(details):
            seen.append(details.exc_value.args[0] * x)

        def fail():
            raise ValueError(x)

        before, threading.excepthook = threading.excepthook, hook
        try:
            together(fail)
        finally:
            threading.excepthook = before
        return seen[0]

    check(f, 1.5, 3.0)


def test_a_loop_that_began_in_a_thread_goes_on_plainly_after_the_level():
    work, done = queue.SimpleQueue(), queue.SimpleQueue()

    def f(x):
        def serve():
            while (y := work.get()) is not None:
                done.put(y * x)

        threading.Thread(target=serve).start()
        work.put(x)
        return done.get()

    try:
        assert plaingrad.grad(f)(3.0) == 6.0
        work.put(5.0)
        assert done.get() == 15.0
    finally:
        work.put(None)


def test_a_thread_that_outlives_two_levels_goes_on_as_plain_python():
    gate, out, threads = threading.Event(), [], []

    def f(x):
        def inner(y):
            z = x * y

            def work():
                gate.wait()
                out.append(int(z * 1e300) > 0)  # refused while a level is open
                out.append(z * 2.0)

            threads.append(threading.Thread(target=work))
            threads[0].start()
            return z

        return plaingrad.grad(inner)(x)

    try:
        assert plaingrad.grad(f)(3.0) == 1.0
    finally:
        gate.set()
        threads[0].join()
    assert out == [True, 18.0]


# Pools of threads.


def test_a_pool_from_before_the_level():
    pool = concurrent.futures.ThreadPoolExecutor(2)
    assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]  # workers exist

    def f(x):
        submitted = [pool.submit(lambda k: x * k, k) for k in (1.0, 2.0)]
        done, _ = concurrent.futures.wait(submitted)
        total = sum(future.result() for future in done)
        total = total + sum(pool.map(math.sin, [x]))
        total = total + sum(pool.map(lambda a, b: a * b, [x, 2.0], [x, x]))
        total = total + pool.submit(functools.partial(np.multiply, x), x * 5.0).result()
        return total + sum(future.result() for future in concurrent.futures.as_completed([pool.submit(pow, x, 3)]))

    with pool:
        # 3x + sin x + xx + 2x + 5xx + xxx
        x = 1.5
        check(f, x, 5 + math.cos(x) + 12 * x + 3 * x * x)


def test_a_generator_that_feeds_a_pool():
    def f(x):
        def numbers():
            for k in range(4):
                yield x * k

        with concurrent.futures.ThreadPoolExecutor(2) as pool, contextlib.closing(numbers()) as feed:
            return sum(pool.map(lambda y: y * y, feed))

    check(f, 1.5, 2 * 14 * 1.5)


def test_the_initializer_of_a_pool():
    local = threading.local()

    def f(x):
        def prepare(k):
            local.gain = x * k

        with concurrent.futures.ThreadPoolExecutor(2, initializer=prepare, initargs=(x,)) as pool:
            return sum(pool.map(lambda k: local.gain * k, [1.0, 2.0]))

    # 3xx
    check(f, 1.5, 9.0)


def test_a_pool_class_with_an_initializer_of_its_own():
    local = threading.local()

    class Prepared(concurrent.futures.ThreadPoolExecutor):
        def __init__(self, gain):
            super().__init__(2, "prepared", self.prepare, (gain,))
            self.gain = gain

        def prepare(self, gain):
            local.gain = gain * 5.0

        def submit(self, f, *args):
            return super().submit(lambda: f(*args) * local.gain * self.gain)

    def f(x):
        with Prepared(x) as pool:
            return sum(pool.map(lambda k: x * k, [1.0, 2.0]))

    # 15xxx
    check(f, 1.5, 45 * 1.5**2)


def test_work_that_ends_after_the_level():
    pool = concurrent.futures.ThreadPoolExecutor(1)
    gate, futures = threading.Event(), []

    def f(x):
        def late():
            gate.wait()
            return math.sin(x) + x * 2.0

        futures.append(pool.submit(late))
        return x * x

    with pool:
        assert plaingrad.grad(f)(3.0) == 6.0
        gate.set()
        assert futures[0].result() == math.sin(3.0) + 6.0


def test_work_of_an_outer_level_in_a_thread_that_an_inner_one_started():
    pool = concurrent.futures.ThreadPoolExecutor(1)

    def inner(y, x):
        return pool.submit(lambda: y * y * x).result()

    def f(x):
        slope = plaingrad.grad(inner)(x, x)  # 2xx
        return slope + pool.submit(lambda: x * 3.0).result()

    with pool:
        check(f, 1.5, 4 * 1.5 + 3)


def test_done_callbacks_of_futures():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:

        def f(x):
            seen = []
            future = pool.submit(lambda: x * x)
            future.add_done_callback(lambda future: seen.append(future.result() * x))
            future.result()
            future.add_done_callback(lambda future: seen.append(future.result()))
            made = concurrent.futures.Future()
            made.add_done_callback(lambda made: seen.append(made.result()))
            made.set_result(x * 5.0)
            while len(seen) < 3:
                time.sleep(0)
            return sum(seen)

        # xxx + xx + 5x
        check(f, 1.5, 3 * 1.5**2 + 3 + 5)


def test_thread_pools_of_multiprocessing():
    before = multiprocessing.pool.ThreadPool(2)

    def f(x):
        total = 0.0
        with multiprocessing.pool.ThreadPool(2) as inside:
            for pool in (before, inside):
                seen = []
                total = total + sum(pool.map(lambda k: x * k, [1.0, 2.0]))
                total = total + pool.apply(lambda k: x * k, (x,))
                total = total + sum(pool.starmap(lambda a, b: a * b, [(x, 3.0)]))
                total = total + sum(pool.imap(lambda y: y * x, (x * k for k in (1.0, 2.0))))
                total = total + sum(pool.imap_unordered(lambda y: y, [x], chunksize=1))
                pool.apply_async(lambda: x, callback=lambda y: seen.append(y * 5.0)).wait()
                while not seen:
                    time.sleep(0)
                total = total + seen[0]
        return total

    try:
        # twice: 3x + xx + 3x + 3xx + x + 5x
        check(f, 1.5, 2 * (12 + 8 * 1.5))
    finally:
        before.terminate()
        before.join()


# State that threads share.


def test_barriers_semaphores_and_conditions():
    def f(x):
        total, turns = [0.0], []
        barrier = threading.Barrier(3, action=lambda: turns.append(x))
        semaphore, condition = threading.BoundedSemaphore(1), threading.Condition()

        def add(k):
            with semaphore:
                total[0] = total[0] + x * k
            barrier.wait()
            with condition:
                condition.wait_for(lambda: len(turns) == 2)
                total[0] = total[0] + x

        def release():
            barrier.wait()
            with condition:
                turns.append(x * x)
                condition.notify_all()

        together(lambda: add(1.0), lambda: add(2.0), release)
        return total[0] + sum(turns)

    # 3x + 2x + x + xx
    check(f, 1.5, 6 + 3.0)


def test_queues_of_every_kind():
    def f(x):
        total = 0.0
        for made in (queue.Queue(2), queue.LifoQueue(2), queue.PriorityQueue(2), queue.SimpleQueue()):

            def produce(made=made):
                for k in range(5):
                    made.put(x * k)

            thread = threading.Thread(target=produce)
            thread.start()
            total = total + sum([made.get() for _ in range(5)])
            thread.join()
        with pytest.raises(queue.Empty):
            made.get(timeout=x * 1e-4)
        return total * x

    # 40 xx
    check(f, 1.5, 80 * 1.5)


def test_many_threads_record_at_one_level_without_losing_a_term(hasty):
    def f(x):
        out = [0.0] * 4

        def work(n):
            y = x * 1.0
            for k in range(300):
                y = y + x * k
                y = math.sqrt(y * y)
                y = -(-y)
            out[n] = y

        together(*(functools.partial(work, n) for n in range(4)))
        return sum(out)

    for _ in range(3):
        value, slope = plaingrad.value_and_grad(f)(2.0)
        assert value == pytest.approx(4 * 2.0 * (1 + 299 * 150), rel=1e-12)
        assert slope == pytest.approx(4 * (1 + 299 * 150), rel=1e-12)


def test_numbers_die_and_are_swept_while_other_threads_make_them(hasty):
    def f(x):
        out = [0.0] * 3

        def work(n):
            y = x
            for _ in range(4000):
                y = y * 0.5 + x
            out[n] = y

        together(*(functools.partial(work, n) for n in range(3)))
        return sum(out)

    value, slope = plaingrad.value_and_grad(f)(2.0)
    assert value == pytest.approx(12.0)
    assert slope == pytest.approx(6.0)


def test_many_threads_fill_one_array(hasty):
    def f(x):
        for _ in range(10):
            y = np.zeros(8)
            together(*(functools.partial(y.__setitem__, slice(2 * n, 2 * n + 2), x * n) for n in range(4)))
            z = np.zeros(4)

            def fill(n, y=y, z=z):
                z[n] = y[2 * n] * x

            together(*(functools.partial(fill, n) for n in range(4)))
        return z.sum()

    # 6xx
    check(f, 1.5, 12 * 1.5)


def test_levels_open_in_threads_inside_a_level(hasty):
    def f(x):
        out = [0.0] * 4

        def work(n):
            for _ in range(5):
                out[n] = plaingrad.grad(lambda y: y * y * y * x)(x * n)  # 3 n n x^3

        together(*(functools.partial(work, n) for n in range(4)))
        return sum(out)

    check(f, 1.5, 3 * 14 * 3 * 1.5**2)


def test_derivatives_of_any_order_through_threads_and_pools():
    pool = concurrent.futures.ThreadPoolExecutor(2)

    def f(x):
        out = []
        together(lambda: out.append(math.sin(x) * x))
        return pool.submit(lambda: x * x * x).result() + out[0] + sum(pool.map(np.exp, [x]))

    x = 1.3
    with pool:
        check(f, x, 3 * x * x + math.sin(x) + x * math.cos(x) + math.exp(x))
        check(plaingrad.grad(f), x, 6 * x + 2 * math.cos(x) - x * math.sin(x) + math.exp(x))
        check(plaingrad.grad(plaingrad.grad(f)), x, 6 - 3 * math.sin(x) - x * math.cos(x) + math.exp(x))


# Refusals are not swallowed by a thread.


def test_a_refusal_in_a_thread_is_raised_where_the_level_ends():
    def f(x):
        box = [0.0]

        def work():
            box[0] = float(int(x * 1e300))

        together(work)
        return x + box[0]

    before, threading.excepthook = threading.excepthook, lambda details: None
    try:
        with pytest.raises(plaingrad.RoundTripError):
            plaingrad.grad(f)(1.5)
    finally:
        threading.excepthook = before


def test_a_refusal_in_a_done_callback_is_raised_where_the_level_ends(caplog):
    def f(x):
        future = concurrent.futures.Future()
        future.add_done_callback(lambda future: int(future.result() * 1e300))
        future.set_result(x)
        return x

    with pytest.raises(plaingrad.RoundTripError):
        plaingrad.grad(f)(1.5)


# Other processes.


def double(y):
    """2 y; pickled by name."""
    return y * 2.0


def test_a_value_that_the_initializer_of_a_pool_of_processes_gets_is_refused():
    def prepared(x):
        with concurrent.futures.ProcessPoolExecutor(1, initializer=double, initargs=(x,)) as pool:
            return pool.submit(double, 1.0).result()

    with pytest.raises(plaingrad.PlaingradError, match="another process"):
        plaingrad.grad(prepared)(3.0)


@pytest.fixture(scope="module")
def processes():
    """One process of multiprocessing, that waits for work."""
    pool = multiprocessing.get_context("spawn").Pool(1)
    yield pool
    pool.terminate()
    pool.join()


def test_a_value_that_goes_to_a_multiprocessing_pool_by_iterators_comes_back(processes):
    def f(x):
        in_order = sum(processes.imap(double, (x * k for k in range(2))))
        return x * in_order + x * x * sum(processes.imap_unordered(double, [x]))  # 2 x^2 + 2 x^3

    value, pullback = plaingrad.vjp(f, 3.0)
    assert (value, pullback(1.0), pullback(1.0)) == (72.0, (66.0,), (66.0,))
    assert plaingrad.jvp(f, (3.0,), (1.0,)) == (72.0, 66.0)
    assert plaingrad.hvp(f, (3.0,), (1.0,)) == (40.0,)


def test_taylor_coefficients_do_not_go_to_other_processes(processes):
    """They would be taken for tangents, each of which is pushed by itself; and nothing hangs."""
    for f in (
        lambda x: sum(processes.imap(double, [x])),
        lambda x: processes.apply_async(double, (x,)).get(),
    ):
        with pytest.raises(plaingrad.MissingRuleError, match="Taylor coefficients"):
            plaingrad.taylor(f, 3.0, 2)
    check(lambda x: x * sum(processes.imap(double, [1.0])), 3.0, 2.0)


def test_other_values_go_to_other_processes_and_come_back(processes):
    def f(x):
        y = processes.apply(double, (3.0,)) + sum(processes.map(double, [1.0, 2.0]))
        return x * (y + sum(processes.imap(double, (float(k) for k in range(3)))))

    check(f, 1.5, 18.0)


@pytest.mark.skipif(not hasattr(concurrent.futures, "InterpreterPoolExecutor"), reason="needs interpreter pools")
def test_a_pool_of_interpreters_gets_no_differentiated_values():
    def f(x, y):
        with concurrent.futures.InterpreterPoolExecutor(1) as pool:
            return pool.submit(math.sqrt, y).result() * x

    assert plaingrad.grad(f)(3.0, 4.0) == 2.0
    with pytest.raises(plaingrad.PlaingradError, match="another process"):
        plaingrad.grad(f, argnums=1)(3.0, 4.0)


def test_pipes_and_queues_refuse_differentiated_values():
    def piped(x):
        here, there = multiprocessing.Pipe()
        with here, there:
            here.send(x)
            return there.recv()

    def queued(x):
        line = multiprocessing.Queue()
        try:
            line.put([x])
            return line.get()[0]
        finally:
            line.close()

    def simple(x):
        line = multiprocessing.SimpleQueue()
        line.put((x,))
        return line.get()[0]

    for f in (piped, queued, simple):
        with pytest.raises(plaingrad.PlaingradError, match="another process"):
            plaingrad.grad(f)(3.0)


def test_two_threads_that_begin_to_write_into_one_array_give_it_one_tangent(monkeypatch):
    """Another thread runs while the first one makes the memory of the tangent."""

    class Slow(compiled_steps.Region):
        __slots__ = ()

        def __init__(self, *args):
            time.sleep(0.02)
            super().__init__(*args)

    monkeypatch.setattr(compiled_steps, "Region", Slow)

    def f(x):
        out = np.zeros(4)
        begun = threading.Barrier(2)

        def write(part):
            begun.wait()
            part[...] = np.sin(x) * x

        threads = [threading.Thread(target=write, args=(part,)) for part in (out[:2], out[2:])]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return (out * np.array([1.0, 10.0, 100.0, 1000.0])).sum()

    x = np.array([0.5, 0.7])
    slope = np.sin(x) + x * np.cos(x)
    for _ in range(3):
        assert plaingrad.jvp(f, (x,), (np.ones(2),))[1] == pytest.approx(slope @ [101.0, 1010.0], rel=1e-14)
