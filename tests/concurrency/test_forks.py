"""Forked children work, whatever other threads were doing: no swapped class, no held lock, no patched argument."""

import math
import multiprocessing
import os
import struct
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, vjp
from plaingrad.engine.calls.level import Level
from plaingrad.engine.checkpoints.segment import Segment
from tests.hunts.injected import MODULE_LOCKS, State, free_locks

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # it says that threads are running
]


class Length:
    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return self.v < other.v

    @property
    def double(self):
        return self.v * 2.0


ORIGINAL = Length.__dict__["__lt__"].__code__


def f(p):
    longest = sorted([Length(p["a"]), Length(-1.0)])[-1]
    return longest.double * p["a"] + (p["w"] ** 2).sum()


def argument():
    return {"a": 1.5, "w": np.array([1.0, 2.0])}


def works():
    g = grad(f)(argument())
    assert g["a"] == 6.0 and g["w"].tolist() == [2.0, 4.0]
    assert grad(grad(lambda x: Length(x).double * x * x))(1.0) == 12.0


def in_child(work, seconds=60):
    """What work() says in a forked child: b"" if all is well."""
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.close(r)
            try:
                work()
                status = 0
            except BaseException:
                os.write(w, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(status)
    os.close(w)
    said: list[bytes] = []

    def read():
        with os.fdopen(r, "rb") as file:
            said.append(file.read())

    reader = threading.Thread(target=read)
    reader.start()
    reader.join(seconds)
    if reader.is_alive():
        os.kill(pid, 9)
        reader.join()
        said = [b"it did not end"]
    _, status = os.waitpid(pid, 0)
    return said[0] or (b"" if status == 0 else b"status %d" % status)


def clean(state):
    """Asserts that nothing is swapped, patched or held, and that derivatives can be taken."""
    found = state.differences()
    assert not found, found
    assert free_locks() and Length.__lt__.__code__ is ORIGINAL
    works()


class Busy:
    """A thread in the middle of a derivative, until the end of the `with` block."""

    def __init__(self, derivative):
        self.derivative, self.inside, self.go = derivative, threading.Event(), threading.Event()
        self.result = None

    def stop(self):
        self.inside.set()
        self.go.wait(60)

    def work(self):
        self.result = self.derivative(self.stop)

    def __enter__(self):
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        assert self.inside.wait(60)
        return self

    def __exit__(self, *_):
        self.go.set()
        self.thread.join()


SHARED = argument()


def in_the_function(stop):
    def g(p):
        y = f(p)
        stop()
        return y

    return grad(g)(SHARED)


def in_a_rule(stop):
    def waits(x):
        return x * 1.0

    @plaingrad.rrule(waits)
    def rule(x):
        def pullback(y_bar):
            return (y_bar,)

        stop()
        return x * 1.0, pullback

    return grad(lambda p: waits(f(p)))(SHARED)


def in_a_pullback(stop):
    def waits(x):
        return x * 1.0

    @plaingrad.rrule(waits)
    def rule(x):
        def pullback(y_bar):
            stop()
            return (y_bar,)

        return x * 1.0, pullback

    return grad(lambda p: waits(f(p)))(SHARED)


def in_a_checkpoint(stop):
    return grad(lambda p: plaingrad.checkpoint(lambda q: (f(q), stop())[0], p))(SHARED)


def in_forward_mode(stop):
    return plaingrad.jvp(lambda p: (f(p), stop())[0], (SHARED,), ({"a": 1.0, "w": np.zeros(2)},))[1]


def at_two_levels(stop):
    return grad(lambda x: grad(lambda y: (Length(x * y).double * y, stop())[0])(2.0))(1.5)


def with_a_lock(stop):
    from plaingrad.critical import exclusively

    for lock in MODULE_LOCKS[1:]:
        exclusively(lock, works)
    stop()


PLACES = [
    in_the_function,
    in_a_rule,
    in_a_pullback,
    in_a_checkpoint,
    in_forward_mode,
    at_two_levels,
    with_a_lock,
]


@pytest.mark.parametrize("place", PLACES)
def test_a_child_while_another_thread_differentiates(place):
    state = State((Length,), SHARED)
    with Busy(place) as busy:
        assert in_child(lambda: clean(state)) == b""
        works()
    if place in (in_the_function, in_a_rule, in_a_pullback, in_a_checkpoint):
        assert busy.result["a"] == 6.0 and busy.result["w"].tolist() == [2.0, 4.0]
    assert not state.differences()


def at_line(code, number):
    """A derivative that stops at the line event `number` of `code`; at its end, if there are not so many."""

    def derivative(stop):
        count = 0

        def follow(frame, event, arg):
            nonlocal count
            count += event == "line"
            if event == "line" and count == number:
                stop()
            return follow

        sys.settrace(lambda frame, event, arg: follow if frame.f_code is code else None)
        try:
            return grad(lambda p: plaingrad.checkpoint(f, p) * 1.0)(SHARED)
        finally:
            sys.settrace(None)
            if count < number:
                ended.append(number)
                stop()

    ended = []
    return derivative, ended


@pytest.mark.parametrize("function", [Level.run, Level.close, Segment._opened, Segment._end])
def test_a_child_while_another_thread_opens_or_closes(function):
    state = State((Length,), SHARED)
    for number in range(1, 40):
        derivative, ended = at_line(function.__code__, number)
        with Busy(derivative) as busy:
            if ended:
                break
            said = in_child(lambda: clean(state))
            assert said == b"", (number, said)
        assert busy.result["a"] == 6.0 and not state.differences()
    assert number > 2


def test_a_child_of_a_thread_beside_many_levels():
    state = State((Length,), SHARED)
    with (
        Busy(in_forward_mode),
        Busy(at_two_levels),
        Busy(lambda stop: grad(lambda x: (Length(x).double, stop())[0])(1.0)),
    ):
        assert in_child(lambda: clean(state)) == b""
        assert in_child(lambda: clean(state)) == b""


def test_a_child_begun_inside_of_a_derivative_goes_on_with_it():
    def g(p):
        y = f(p)
        said = in_child(lambda: works())
        assert said == b"", said
        return y * 2.0

    assert grad(g)(argument())["a"] == 12.0


def test_a_child_that_finishes_the_derivative_itself():

    def g(x):
        y = Length(x).double * x
        if not os.fork():
            kept.append(True)
        return y + Length(y).double

    kept = []
    try:
        slope = grad(g)(1.5)
        status = 0 if slope == 18.0 and Length.__lt__.__code__ is ORIGINAL else 1
        if kept:
            os._exit(status)
    except BaseException:
        if kept:
            os._exit(2)
        raise
    assert slope == 18.0 and os.wait()[1] == 0


def test_a_pullback_that_another_thread_is_in_works_in_the_child():
    stop = threading.Event()
    inside = threading.Event()

    def waits(x):
        return x * 1.0

    @plaingrad.rrule(waits)
    def rule(x):
        def pullback(y_bar):
            if threading.current_thread() is not threading.main_thread():
                inside.set()
                stop.wait(60)
            return (y_bar,)

        return x * 1.0, pullback

    _, pullback = vjp(lambda x: waits(x * x), 1.5)
    thread = threading.Thread(target=pullback, args=(1.0,))
    thread.start()
    inside.wait(60)
    try:
        assert in_child(lambda: pullback(1.0) == (3.0,) or os._exit(3)) == b""
    finally:
        stop.set()
        thread.join()


SENT = {
    "text": lambda w, y: os.write(w, str(y).encode()),
    "formatted": lambda w, y: os.write(w, f"{y:.17g}".encode()),
    "bytes of a number": lambda w, y: os.write(w, struct.pack("d", y)),
    "pickled": lambda w, y: os.write(w, __import__("pickle").dumps(y)),
    "an array's bytes": lambda w, y: os.write(w, np.array([y]).tobytes()),
    "a pipe": lambda w, y: os.fdopen(w, "w").write(repr(y)),
}


@pytest.mark.parametrize("name", SENT)
def test_what_a_child_computes_and_sends_back_is_refused_there(name):
    def g(x):
        r, w = os.pipe()
        y = math.sin(x) * 0.123456
        pid = os.fork()
        if not pid:
            try:
                SENT[name](w, y)
                os._exit(0)  # it went out
            except plaingrad.PlaingradError as error:
                os._exit(7 if len(str(error)) > 40 else 8)
            except BaseException:
                os._exit(9)
        os.close(w)
        refused.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os.close(r)
        return y

    refused = []
    grad(g)(0.7)
    assert refused == [7]


def test_multiprocessing_by_fork_inside_of_a_derivative():
    import multiprocessing

    context = multiprocessing.get_context("fork")

    def g(x):
        with context.Pool(1) as pool:
            factor = pool.apply(square, (3.0,))
        return x * factor

    assert grad(g)(2.0) == 9.0
    with context.Pool(1) as pool:
        assert grad(lambda x: pool.apply(square, (x,)))(2.0) == 4.0


def square(x):
    return x * x


def test_forks_all_the_time():
    state = State((Length,), SHARED)
    stop = threading.Event()
    wrong = []

    def work():
        while not stop.is_set():
            try:
                works()
            except BaseException as error:
                wrong.append(error)
                return

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            assert in_child(lambda: clean(state)) == b""
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not wrong


def test_a_fork_while_another_thread_rewrites(monkeypatch):
    from plaingrad.rewrite import transform

    forms, begun, end = transform.call_forms, threading.Event(), threading.Event()

    def slowly(*args):
        if threading.current_thread() is thread:
            begun.set()
            end.wait(30)
        return forms(*args)

    monkeypatch.setattr(transform, "call_forms", slowly)
    thread = threading.Thread(target=lambda: plaingrad.grad(lambda x: abs(x) * 2.0)(1.0))
    thread.start()
    assert begun.wait(30)
    process = multiprocessing.get_context("fork").Process(
        target=lambda: plaingrad.grad(lambda x: abs(x) * 3.0)(1.0)
    )
    process.start()
    process.join(20)
    ended = process.exitcode
    if ended is None:
        process.kill()
        process.join()
    end.set()
    thread.join()
    assert ended == 0


FACTORISED_IN_THE_MAIN_THREAD = """
import multiprocessing
import threading

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

import plaingrad

kept = splu(scipy.sparse.csc_matrix(np.array([[2.0, 1.0], [1.0, 3.0]])))  # SuperLU's memory is this thread's


def of_a_process(x):
    here, there = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=lambda: there.send(there.recv() ** 2 * x))
    process.start()
    here.send(x)
    result = here.recv()
    process.join(20)
    ended.append(process.exitcode)
    return result


ended = []
thread = threading.Thread(target=lambda: print(plaingrad.grad(of_a_process)(2.0), ended))
thread.start()
thread.join()
"""


def test_a_process_that_a_thread_starts_beside_a_factorised_sparse_matrix_ends():
    pytest.importorskip("scipy")
    ran = subprocess.run(
        [sys.executable, "-c", FACTORISED_IN_THE_MAIN_THREAD], capture_output=True, text=True, timeout=100
    )
    assert ran.stdout == "12.0 [0]\n", ran.stderr
