"""Processes that a differentiated function starts, with queues and pipes: every mode, against the same done here."""

import contextlib
import functools
import gc
import math
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
import time
from multiprocessing import connection

import numpy as np
import pytest

import plaingrad
from plaingrad.rules.processes import members

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

mp = multiprocessing.get_context("fork") if hasattr(os, "fork") else multiprocessing


def agrees(f, plain, x=0.7, nested=True):
    """The derivatives of f, in every mode, are those of `plain`."""
    assert f(x) == pytest.approx(plain(x), rel=1e-15)
    value, slope = plaingrad.value_and_grad(f)(x)
    assert value == f(x)
    assert slope == pytest.approx(plaingrad.grad(plain)(x), rel=1e-12)
    assert plaingrad.jvp(f, (x,), (1.0,)) == pytest.approx(plaingrad.jvp(plain, (x,), (1.0,)), rel=1e-12)
    if nested:
        second = plaingrad.derivative(plaingrad.grad(plain))(x)
        assert plaingrad.derivative(plaingrad.grad(f))(x) == pytest.approx(second, rel=1e-11)
        assert plaingrad.grad(plaingrad.grad(f))(x) == pytest.approx(second, rel=1e-11)
        assert plaingrad.grad(plaingrad.derivative(f))(x) == pytest.approx(second, rel=1e-11)


@contextlib.contextmanager
def started(target, *args, **kwargs):
    """A process, which has ended well when the block has."""
    process = mp.Process(target=target, args=args, kwargs=kwargs)
    process.start()
    yield process
    process.join(30)
    assert process.exitcode == 0


def squares(taken, given):
    """Squares of what comes, until None does."""
    for x in iter(taken.get, None):
        given.put(x * x)


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "JoinableQueue"])
def test_a_worker_between_two_queues(kind):
    def f(x):
        taken, given = getattr(mp, kind)(), getattr(mp, kind)()
        with started(squares, taken, given):
            taken.put(x)
            taken.put(2.0 * x)
            taken.put(None)
            return given.get() + given.get() * x

    agrees(f, lambda x: x * x + 4.0 * x * x * x, nested=False)


def test_a_pipe_and_what_the_target_holds():
    def f(x):
        here, there = mp.Pipe()
        weights = {"w": x * x}

        def target():
            for got in iter(there.recv, None):
                there.send({"u": got[0] * x + weights["w"], "n": 3})

        with started(target):
            s = x
            for _ in range(3):
                here.send([s])
                s = here.recv()["u"] + math.sin(s)
            here.send(None)
        return s

    def plain(x):
        s = x
        for _ in range(3):
            s = s * x + x * x + math.sin(s)
        return s

    agrees(f, plain)


def test_arguments_of_a_process_and_a_class_of_ones_own():
    class Own(multiprocessing.get_context("fork").Process):
        def __init__(self, x, out):
            super().__init__()
            self.x, self.out = x, out

        def run(self):
            self.out.send(self.x**3)

    def f(x):
        a, b = mp.Pipe()
        own = Own(x, b)
        own.start()
        found = a.recv()
        own.join()
        with started(functools.partial(b.send, x * found)):
            return a.recv() + found

    agrees(f, lambda x: x**4 + x**3, nested=False)


def test_arrays_views_and_writes():
    def target(here, a, row):
        for _ in range(2):
            b = here.recv()
            b *= a[::-1]
            a[1:] += b[:-1]
            here.send((b, a * row))

    def f(a):
        m = np.outer(a, a)
        here, there = mp.Pipe()
        with started(target, there, a, m[1]):
            here.send(a * 2.0)
            b, c = here.recv()
            here.send(b + c)
            m *= 2.0  # the child has a copy
            b, c = here.recv()
        return np.sum(b * c) + np.sum(m * a)

    def plain(a):
        m = np.outer(a, a)
        mine, row = a.copy(), m[1].copy()
        b = a * 2.0
        for k in range(2):
            b = b * mine[::-1]
            mine[1:] += b[:-1]
            c = mine * row
            last, b = b, b + c
        m *= 2.0
        return np.sum(last * c) + np.sum(m * a)

    a = np.array([0.5, -0.3, 0.8, 1.1])
    assert f(a.copy()) == pytest.approx(plain(a.copy()), rel=1e-14)
    np.testing.assert_allclose(plaingrad.grad(f)(a), plaingrad.grad(plain)(a), rtol=1e-12)
    v = np.array([0.1, 0.2, -0.4, 0.3])
    expected = plaingrad.jvp(plaingrad.grad(plain), (a,), (v,))[1]
    np.testing.assert_allclose(plaingrad.jvp(plaingrad.grad(f), (a,), (v,))[1], expected, rtol=1e-10)
    found = plaingrad.grad(lambda a: np.sum(plaingrad.grad(f)(a) * v))(a)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_large_messages_both_ways_do_not_wait_for_each_other():
    def target(pipe):
        for _ in range(3):
            pipe.send(pipe.recv() * 2.0)

    def f(a):
        pairs = [mp.Pipe() for _ in range(2)]
        with started(target, pairs[0][1]), started(target, pairs[1][1]):
            b = [a, a * 3.0]
            for _ in range(3):
                for k in range(2):
                    pairs[k][0].send(b[k])
                b = [pairs[k][0].recv() for k in (1, 0)]
        return np.sum(b[0] * b[1])

    a = np.linspace(0.0, 1.0, 200_000)
    np.testing.assert_allclose(plaingrad.grad(f)(a), 2.0 * 192.0 * a, rtol=1e-13)


def test_children_that_send_to_each_other_and_have_children():
    def first(x, chain, out):
        chain.put([x * x, x])
        with started(lambda: out.put(chain.get(timeout=30)[1] * 3.0 * x)):
            chain.put((2.0, x))

    def second(x, chain, out):
        a, b = chain.get()
        out.put(a * b * x)

    def f(x):
        chain, out = mp.Queue(), mp.Queue()
        with started(second, x * 2.0, chain, out):
            with started(first, x, chain, out):
                found = [out.get(), out.get()]
            return found[0] * found[1]

    # whichever gets which: [x^2, x] or (2, x) at `second`
    value, slope = plaingrad.value_and_grad(f)(0.5)
    options = [(2.0 * 0.5**4 * 3.0 * 0.25, lambda x: 6.0 * x**6), (2.0 * 2.0 * 0.25 * 0.75, lambda x: 12.0 * x**4)]
    plain = next(g for v, g in options if v == pytest.approx(value, rel=1e-12))
    assert slope == pytest.approx(plaingrad.grad(plain)(0.5), rel=1e-12)


def test_several_workers_at_one_queue():
    def f(x):
        tasks, results = mp.Queue(), mp.Queue()
        workers = [mp.Process(target=squares, args=(tasks, results)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for k in range(12):
            tasks.put(x * k)
        for _ in workers:
            tasks.put(None)
        total = math.fsum(results.get() for _ in range(12))
        for worker in workers:
            worker.join()
        return total

    for _ in range(3):
        assert plaingrad.value_and_grad(f)(0.75) == pytest.approx((506.0 * 0.75**2, 1012.0 * 0.75), rel=1e-14)


def test_workers_that_never_end_or_are_ended():
    def f(x, end):
        taken, given = mp.Queue(), mp.SimpleQueue()
        worker = mp.Process(target=squares, args=(taken, given), daemon=True)
        worker.start()
        workers.append(worker)
        taken.put(x)
        y = given.get()
        taken.put(y)
        y = given.get()
        if end is not None:
            getattr(worker, end)()
            worker.join()
            assert worker.exitcode == -(signal.SIGTERM if end == "terminate" else signal.SIGKILL)
        return y * x

    workers = []
    for end in (None, "terminate", "kill"):
        assert plaingrad.value_and_grad(f)(0.5, end) == (0.5**5, 5.0 * 0.5**4)
    assert plaingrad.derivative(plaingrad.grad(f))(0.5, "terminate") == pytest.approx(20.0 * 0.125)
    assert workers[0].is_alive()
    workers[0].terminate()


def test_a_message_that_nobody_takes_is_a_constant():
    def f(x):
        taken, given = mp.SimpleQueue(), mp.SimpleQueue()
        with started(lambda: given.put(taken.get() * x)):
            taken.put(x)
            taken.put(x * x)  # too late
        return given.get() + (taken.get() if not taken.empty() else 0.0)

    agrees(f, lambda x: 2.0 * x * x, nested=False)


def test_pullbacks_are_called_twice_and_after_errors():
    fails = []

    def look(bar):
        if fails:
            raise ValueError(fails.pop())
        return bar

    def f(x):
        here, there = mp.Pipe()
        with started(lambda: [there.send(there.recv() * x) for _ in range(2)]):
            here.send(x)
            y = plaingrad.hook(look, here.recv())
            here.send(y)
            return np.array([here.recv(), y])

    _, pullback = plaingrad.vjp(f, 0.5)
    assert pullback(np.array([1.0, 0.0])) == (pytest.approx(0.75),)
    fails.append("broken off")
    with pytest.raises(ValueError, match="broken off"):
        pullback(np.array([1.0, 0.0]))
    assert pullback(np.array([0.0, 2.0])) == (pytest.approx(2.0),)
    assert plaingrad.jacobian(f, mode="reverse")(0.5) == pytest.approx([0.75, 1.0])


def test_a_child_that_is_killed_from_outside_is_an_error_with_its_line():
    def f(x, sends):
        here, there = mp.Pipe()

        def target():
            y = there.recv()
            there.send(y * x if sends else 2.0)
            time.sleep(60)

        process = mp.Process(target=target, name="victim")
        process.start()
        here.send(x)
        y = here.recv()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        return y * x

    with pytest.raises(ChildProcessError, match=r"`victim`, started at .*test_started_processes.py:\d+.* SIGKILL"):
        plaingrad.grad(f)(0.5, True)
    assert plaingrad.grad(f)(0.5, False) == 2.0  # nothing that it has sent depends on x


def test_errors_in_a_child():
    def raising(pipe):
        pipe.send(pipe.recv() * 2.0)
        raise ValueError("in the child")

    def f(x):
        here, there = mp.Pipe()
        process = mp.Process(target=raising, args=(there,))
        process.start()
        here.send(x)
        y = here.recv()
        process.join()
        assert process.exitcode == 1
        return y * x

    assert plaingrad.grad(f)(3.0) == 12.0

    @plaingrad.rrule(abs_of := lambda x: abs(x))
    def rule(x):
        def pullback(bar):
            raise ZeroDivisionError("on the way back")

        return abs_of(x), pullback

    def g(x):
        here, there = mp.Pipe()
        with started(lambda: there.send(abs_of(there.recv()))):
            here.send(x)
            return here.recv()

    with pytest.raises(ZeroDivisionError, match="on the way back") as failed:
        plaingrad.grad(g)(2.0)
    assert "a process that the differentiated function has started" in " ".join(failed.value.__notes__)


def test_a_refusal_in_a_child_is_raised_here():
    def f(x):
        here, there = mp.Pipe()
        process = mp.Process(target=lambda: there.send(float(str(there.recv()))))
        process.start()
        here.send(x)
        return here.recv()  # never arrives

    with pytest.raises(plaingrad.RoundTripError):
        plaingrad.grad(f)(0.7)


def waits(kind, x):
    """Wait for a child, which is refused, in one of many ways."""
    event, semaphore, barrier, tasks = mp.Event(), mp.Semaphore(0), mp.Barrier(2), mp.JoinableQueue()
    here, there = mp.Pipe()

    def target():
        float(repr(x * 1.234567))
        event.set()
        semaphore.release()
        barrier.wait()
        there.send(x)
        tasks.task_done()

    tasks.put(1)
    process = mp.Process(target=target)
    process.start()
    {
        "event": event.wait,
        "semaphore": semaphore.acquire,
        "barrier": barrier.wait,
        "poll": lambda: here.poll(None),
        "ends": lambda: multiprocessing.connection.wait([here]),
        "tasks": tasks.join,
    }[kind]()
    process.join()
    return x


@pytest.mark.parametrize("kind", ["event", "semaphore", "barrier", "poll", "ends", "tasks"])
def test_who_waits_for_a_child_that_is_refused_is_told(kind):
    with pytest.raises(plaingrad.RoundTripError, match="came back from text"):
        plaingrad.grad(functools.partial(waits, kind))(0.7)


def test_processes_that_take_no_part():
    with contextlib.closing(mp.SimpleQueue()) as queue:
        with pytest.raises(plaingrad.RoundTripError, match=r"SimpleQueue\.put"):
            plaingrad.grad(lambda x: queue.put(x))(1.0)

        def older(x):
            taken, given = mp.SimpleQueue(), mp.SimpleQueue()
            process = mp.Process(target=squares, args=(taken, given))
            process.start()
            try:
                return plaingrad.grad(lambda z: [taken.put(z), given.get()][1])(x)
            finally:
                process.kill()

        with pytest.raises(plaingrad.RoundTripError, match=r"SimpleQueue\.put"):
            older(1.0)
        with pytest.raises(plaingrad.RoundTripError, match=r"SimpleQueue\.put"):
            plaingrad.grad(older)(1.0)


def test_two_threads_and_nothing_is_left(tmp_path):
    def f(x):
        here, there = mp.Pipe()
        with started(lambda: there.send(there.recv() ** 2 * x)):
            here.send(x)
            return here.recv()

    found = []
    threads = [
        threading.Thread(target=lambda k=k: found.append((k, plaingrad.grad(f)(k + 1.0)))) for k in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(0, pytest.approx(3.0)), (1, pytest.approx(12.0))]

    def of_threads(x):
        def one(k):
            here, there = mp.Pipe()
            with started(lambda: there.send(there.recv() * x)):
                here.send(x * k)
                results.append(here.recv())

        results = []
        threads = [threading.Thread(target=one, args=(k,)) for k in (1.0, 2.0, 3.0)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(results)

    assert plaingrad.grad(of_threads)(2.0) == 24.0

    def pids(x):
        here, there = mp.Pipe()
        with started(lambda: there.send((there.recv() ** 2, os.getpid()))):
            here.send(x)
            y, pid = here.recv()
            assert pid != os.getpid()
            return y

    before = set(multiprocessing.active_children())
    plaingrad.grad(pids)(1.0)
    assert set(multiprocessing.active_children()) <= before


def test_a_worker_that_goes_on_does_not_take_its_copys_messages():
    def worker(taken, given, x):
        here, there = mp.Pipe()
        mp.Process(target=lambda: [there.send(there.recv() * x) for _ in range(2)]).start()
        for y in iter(taken.get, None):
            here.send(y)
            given.put(here.recv() * y)

    def f(x):
        taken, given = mp.Queue(), mp.Queue()
        process = mp.Process(target=worker, args=(taken, given, x))
        process.start()
        begun.append((process, taken))
        taken.put(x)
        taken.put(given.get())
        return given.get()

    begun = []
    assert plaingrad.grad(f)(1.5) == pytest.approx(7.0 * 1.5**6, rel=1e-13)
    process, taken = begun.pop()
    taken.put(None)
    process.join(30)
    assert process.exitcode == 0


def test_a_child_that_ends_its_own_child():
    def worker(pipe, x):
        here, there = mp.Pipe()
        own = mp.Process(target=lambda: [there.send(there.recv() * x) for _ in range(2)])
        own.start()
        y = pipe.recv()
        here.send(y)
        pipe.send(here.recv() * y)
        own.terminate()
        own.join()

    def f(x):
        here, there = mp.Pipe()
        with started(worker, there, x):
            here.send(x)
            return here.recv()

    agrees(f, lambda x: x**3)


def test_an_error_on_the_way_back_is_raised_in_its_own_thread():
    @plaingrad.rrule(fails := lambda x: x * 1.0)
    def rule(x):
        def pullback(bar):
            raise ZeroDivisionError("on the way back")

        return fails(x), pullback

    def f(x, g):
        here, there = mp.Pipe()
        with started(lambda: there.send(g(there.recv()) * x)):
            here.send(x)
            y = here.recv()
        barrier.wait(30)  # both ways back begin now
        return y

    def one(k):
        try:
            found[k] = plaingrad.grad(f)(3.0, [fails, math.sin][k])
        except ZeroDivisionError:
            found[k] = "failed"

    for _ in range(3):
        barrier = threading.Barrier(2)
        found = {}
        threads = [threading.Thread(target=one, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {0: "failed", 1: pytest.approx(math.sin(3.0) + 3.0 * math.cos(3.0))}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not show open files")
def test_no_copy_and_no_open_file_is_left():
    def f(x):
        here, there = mp.Pipe()
        with started(lambda: there.send((there.recv() * x, os.getpid()))):
            here.send(x)
            return here.recv()[0]

    def is_left():
        gc.collect()
        return len(members.own().down), len(os.listdir("/proc/self/fd"))

    plaingrad.grad(f)(1.0)
    before = is_left()
    _, pullback = plaingrad.vjp(f, 2.0)
    assert is_left()[0] == before[0] + 1
    assert pullback(1.0) == (4.0,)
    del pullback
    for k in range(3):
        plaingrad.grad(f)(k + 1.0)
    assert is_left() == before


def test_a_value_in_shared_memory_is_refused():
    def f(x):
        value = mp.Value("d", 0.0)
        value.value = x
        return value.value

    with pytest.raises(plaingrad.PlaingradError):
        plaingrad.grad(f)(2.0)


def test_messages_are_taken_where_another_thread_lets_go_of_a_child_meanwhile(monkeypatch):
    member = members.Member((), None)
    monkeypatch.setattr(members, "here", member)
    gone, stays = members.Child("gone", "here"), members.Child("stays", "here")
    stays.end.send_bytes(pickle.dumps(((), "about", "what")))
    wait = connection.wait

    def wait_when_one_has_been_closed(ends, seconds):
        gone.wire.end.close()
        return wait(ends, seconds)

    monkeypatch.setattr(connection, "wait", wait_when_one_has_been_closed)
    member.take()
    assert member.arrived == {"about": "what"}
