"""Processes that spawn or a fork server starts inside a differentiated function, as `multiprocessing` does from 3.14 on."""

import concurrent.futures
import contextlib
import math
import multiprocessing
import os
import signal

import numpy as np
import pytest

import plaingrad
from tests.concurrency import started_programs as programs

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

if hasattr(os, "fork"):
    server, spawn = programs.SERVER, multiprocessing.get_context("spawn")
    server.set_forkserver_preload(["plaingrad", programs.__name__])  # so that a process starts at once


@contextlib.contextmanager
def started(context, target, *args, **kwargs):
    """A process, which has ended well when the block has."""
    process = context.Process(target=target, args=args, kwargs=kwargs)
    process.start()
    yield process
    process.join(60)
    assert process.exitcode == 0


def agrees(f, plain, x=0.7):
    """The derivatives of f, in every mode, are those of `plain`."""
    slope = plaingrad.grad(plain)(x)
    assert plaingrad.value_and_grad(f)(x) == pytest.approx((plain(x), slope), rel=1e-12)
    assert plaingrad.jvp(f, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-12)
    second = plaingrad.derivative(plaingrad.grad(plain))(x)
    for nested in (
        plaingrad.derivative(plaingrad.grad(f)),
        plaingrad.grad(plaingrad.grad(f)),
        plaingrad.grad(plaingrad.derivative(f)),
        plaingrad.derivative(plaingrad.derivative(f)),
    ):
        assert nested(x) == pytest.approx(second, rel=1e-11)


def conversation(context, x):
    """An exchange by a pipe, with numbers among the arguments of the process."""
    here, there = context.Pipe()
    s = x
    with started(context, programs.answers, there, x, weights={"w": np.array([x * x, 1.0])}):
        for _ in range(3):
            here.send([s])
            s = here.recv()["u"] + math.sin(s)
    return s


def the_same_here(x):
    """`conversation` without a process."""
    s = x
    for _ in range(3):
        s = s * x + (x * x + 1.0) + math.sin(s)
    return s


def test_every_mode_with_a_pipe_and_arguments():
    agrees(lambda x: conversation(server, x), the_same_here)


def test_spawned_processes():
    f = lambda x: conversation(spawn, x)
    assert plaingrad.grad(f)(0.7) == pytest.approx(plaingrad.grad(the_same_here)(0.7), rel=1e-12)


def test_a_worker_between_two_queues_and_chunks_of_tangents():
    def f(x):
        taken, given = server.Queue(), server.SimpleQueue()
        with started(server, programs.squares, taken, given, w=x[1]):
            taken.put(x[0])
            taken.put(2.0 * x)
            taken.put(None)
            return given.get() + given.get() * x

    def plain(x):
        return x[0] ** 2 * x[1] + 4.0 * x**3 * x[1]

    x = np.array([0.5, 0.75, 1.5])
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(
            plaingrad.jacobian(f, mode=mode)(x), plaingrad.jacobian(plain)(x), rtol=1e-13
        )


def test_classes_and_methods_as_targets():
    def f(x, own):
        here, there = server.Pipe()
        process = own(x, there)
        process.start()
        y = here.recv()
        assert process.x is x  # as it was
        process.join()
        with started(server, programs.Holder(x * x).work, there):
            return here.recv() + y * x

    expected = plaingrad.grad(lambda x: x**4 + 4.0 + (x**3 + math.sin(x)) * x)(0.7)
    assert plaingrad.grad(f)(0.7, programs.ServerOwn) == pytest.approx(expected, rel=1e-12)


def test_arrays_that_are_one_and_a_global_of_the_process():
    def f(x):
        here, there = server.Pipe()
        a = np.array([x, x * x])
        programs.WEIGHT = x  # not where the process is
        with started(server, programs.reads_a_global, there, x):
            y = here.recv()
        with started(server, programs.writes_an_array, there, a, a):
            return here.recv() * y + a[0]

    before = programs.WEIGHT
    try:
        slope = plaingrad.grad(f)(0.5)
    finally:
        programs.WEIGHT = before
    assert slope == pytest.approx(plaingrad.grad(lambda x: 4.0 * (x**2 + x**4) * 2.0 * x + x)(0.5), rel=1e-13)


def test_a_child_of_a_child_and_pullbacks_called_twice():
    def f(x):
        here, there = server.Pipe()
        with started(server, programs.starts_another, server, there, x):
            return here.recv()

    value, pullback = plaingrad.vjp(f, 3.0)
    assert value == 54.0
    assert pullback(1.0) == pullback(1.0) == (54.0,)


@pytest.mark.parametrize("context", ["fork", "forkserver"])
def test_threads_that_go_on_when_the_function_has_ended(context):
    context = multiprocessing.get_context(context)

    def f(x, daemon):
        here, there = context.Pipe()
        with started(context, programs.goes_on, there, x, daemon):
            return here.recv() * x

    assert plaingrad.grad(f)(2.0, False) == 12.0
    assert plaingrad.derivative(f)(2.0, False) == 12.0


def test_what_goes_wrong_in_a_child():
    def f(x, target, send=True):
        here, there = server.Pipe()
        process = server.Process(target=target, args=(there,) if target is programs.rounds else (there, x))
        process.start()
        if send:
            here.send(x)
        y = here.recv()
        if send:
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        return y

    told = r"started at .*test_started_anew.py:\d+"
    with pytest.raises(ChildProcessError, match=told):
        plaingrad.grad(f)(3.0, programs.sends_and_sleeps)
    with pytest.raises(ChildProcessError, match=told):
        plaingrad.grad(f)(3.0, programs.kills_itself, False)
    with pytest.raises(plaingrad.RoundTripError, match="came back from text"):
        plaingrad.grad(f)(3.0, programs.rounds)


def test_a_child_that_hangs_on_the_way_back_is_named(monkeypatch):
    def f(x):
        here, there = server.Pipe()
        with started(server, programs.hangs_on_the_way_back, there, x):
            return here.recv()

    monkeypatch.setenv("PLAINGRAD_TASK_TIMEOUT", "0.5")
    with pytest.raises(TimeoutError, match=r"no answer within 0\.5 s .* started at .*test_started_anew"):
        plaingrad.grad(f)(3.0)


def test_what_cannot_be_started():
    def f(x, target):
        process = server.Process(target=target, args=(x,))
        try:
            process.start()
        except Exception as error:
            kinds.append(type(error))
            assert process._args == (x,)
            assert "run" not in vars(process)
            return x * x
        raise AssertionError

    kinds = []
    assert f(3.0, lambda x: x) == 9.0  # a function without a name cannot be pickled
    assert plaingrad.grad(f)(3.0, lambda x: x) == 6.0
    assert kinds[0] is kinds[1]
    plaingrad.taylor(lambda x: f(x, print), 3.0, 2)
    assert kinds[2] is plaingrad.RoundTripError


def test_rules_that_another_process_does_not_know_are_refused():
    """Its derivative would be that of the function's code, and not of the rule."""

    def by_process(x):
        here, there = server.Pipe()
        process = server.Process(target=programs.sends_a_cube, args=(there, x))
        process.start()
        return here.recv()

    def by_pool(x):
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=server) as pool:
            return pool.submit(programs.cube, x).result()

    def doubled(x):
        return 2.0 * x

    def by_value(x):
        return joblib.Parallel(2, backend="loky")([joblib.delayed(lambda y: doubled(y))(x)] * 2)[1]

    joblib = pytest.importorskip("joblib")
    for f in (programs.cube, doubled):
        plaingrad.rrule(f)(lambda x: (x**3, lambda bar: (100.0 * bar,)))
    try:
        for f in (by_process, by_pool):
            with pytest.raises(plaingrad.MissingRuleError, match=r"a rule for .*cube.*does not know it"):
                plaingrad.grad(f)(2.0)
        with pytest.raises(plaingrad.MissingRuleError, match="reaches .*doubled.*for which the program has a rule"):
            plaingrad.grad(by_value)(2.0)
    finally:
        for f in (programs.cube, doubled):
            plaingrad.remove_rule(f)
    assert plaingrad.grad(by_process)(2.0) == plaingrad.grad(by_pool)(2.0) == 12.0
