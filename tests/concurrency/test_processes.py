"""Work for other processes: derivatives of tasks, in every mode, against the same task run here."""

import asyncio
import concurrent.futures
import functools
import gc
import itertools
import math
import multiprocessing
import os
import sys
import threading
import time
import types

import numpy as np
import pytest
from process_tasks import (
    Own,
    Spring,
    as_bytes,
    as_decimal,
    as_text,
    called,
    count,
    double,
    drawn,
    ends_a_second_time,
    failing,
    first_called,
    hangs_a_second_time,
    held_called,
    in_place,
    layer,
    mixed,
    of_own,
    reason,
    single,
    stretched,
    times,
    total,
    turned,
    twice,
)

import plaingrad

# CPython 3.12 and 3.13 warn of a fork while threads are running, which those of a pool are.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(scope="module")
def executor():
    """A pool that stays open."""
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def pool():
    """A pool of multiprocessing."""
    made = multiprocessing.get_context("fork").Pool(2)
    yield made
    made.terminate()
    made.join()


def agrees(f, plain, x=0.7, rel=1e-12):
    """The derivatives of f, in every mode, are those of `plain`, which does the same in this process."""
    assert f(x) == pytest.approx(plain(x), rel=1e-15)
    y, slope = plaingrad.value_and_grad(f)(x)
    assert y == f(x)
    assert slope == pytest.approx(plaingrad.grad(plain)(x), rel=rel)
    assert plaingrad.jvp(f, (x,), (1.0,)) == pytest.approx(plaingrad.jvp(plain, (x,), (1.0,)), rel=rel)
    second = plaingrad.derivative(plaingrad.grad(plain))(x)
    assert plaingrad.derivative(plaingrad.grad(f))(x) == pytest.approx(second, rel=rel)
    assert plaingrad.grad(plaingrad.grad(f))(x) == pytest.approx(second, rel=rel)


def test_tasks_of_a_pool_that_is_closed_before_the_way_back():
    def f(x):
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            a, b = pool.submit(double, x), pool.submit(mixed, x, k=2.0)
            return a.result() * b.result()["a"] + b.result()["b"][0]

    agrees(f, lambda x: double(x) * mixed(x, k=2.0)["a"] + mixed(x)["b"][0])


def test_closed_form_of_a_task(executor):
    found = plaingrad.grad(lambda x: executor.submit(mixed, x, 3.0).result()["a"] * x)(0.4)
    assert found == pytest.approx(3 * 0.4 * math.cos(1.2) + math.sin(1.2), rel=1e-14)


def test_map_with_several_arguments_and_chunks(executor):
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])
    inputs = [np.array([0.1 * k, 0.2]) for k in range(5)]

    def f(w):
        return sum(
            np.sum(y) * s for y, s in executor.map(layer, [w] * 3 + [w * 2.0] * 2, inputs, chunksize=2)
        )

    def plain(w):
        return sum(np.sum(y) * s for y, s in map(layer, [w] * 3 + [w * 2.0] * 2, inputs))

    np.testing.assert_allclose(plaingrad.grad(f)(weights), plaingrad.grad(plain)(weights), rtol=1e-13)
    flat = [lambda p, g=g: g(p.reshape(2, 2)) for g in (f, plain)]
    found, expected = (plaingrad.hessian(g)(weights.ravel()) for g in flat)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    found = plaingrad.jacobian(flat[0], mode="forward")(weights.ravel())
    np.testing.assert_allclose(found, plaingrad.grad(plain)(weights).ravel(), rtol=1e-13)


def test_a_pullback_through_tasks_may_be_called_many_times(executor):
    def f(x):
        return np.concatenate([executor.submit(double, x * k).result() for k in (1.0, 2.0)])

    found = plaingrad.jacobian(f, mode="reverse")(np.array([0.5, 0.25]))
    np.testing.assert_array_equal(found, np.vstack([2 * np.eye(2), 4 * np.eye(2)]))


def test_a_pullback_after_one_that_was_broken_off(executor):
    fails = [True]

    def look(bar):
        if fails.pop() if fails else False:
            raise ValueError("broken off")
        return bar

    def f(x):
        future = executor.submit(double, x)
        beside = plaingrad.hook(look, x * x)  # on the way back between the result and the task
        return future.result() * beside

    _, pullback = plaingrad.vjp(f, 2.0)
    with pytest.raises(ValueError, match="broken off"):
        pullback(1.0)
    assert pullback(3.0) == (72.0,)  # 3 d/dx of 2 x^3


def squared_with(x, f):
    return x * x


def test_a_function_of_the_standard_library_among_the_arguments_goes_by_name(executor):
    def f(x):
        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.kept = x  # which the globals of `threading` lead to
        thread.start()
        try:
            return executor.submit(squared_with, x, threading.current_thread).result()
        finally:
            done.set()
            thread.join()

    assert plaingrad.grad(f)(3.0) == 6.0


def test_objects_methods_and_partial_calls(executor):
    def f(x):
        spring = Spring(x, 2.0)
        period = executor.submit(spring.period, x).result()
        other = executor.submit(stretched, spring, x * x).result()
        assert type(other) is Spring
        return period * other.stiffness + executor.submit(functools.partial(mixed, k=x), 2.0).result()["a"]

    def plain(x):
        spring = Spring(x, 2.0)
        return spring.period(x) * stretched(spring, x * x).stiffness + mixed(2.0, k=x)["a"]

    agrees(f, plain)


def test_numbers_that_functions_keep_among_the_arguments(executor):
    holder = types.SimpleNamespace
    of = functools.partial
    programs = [
        lambda x: (called, of(times, x), 2.0),
        lambda x: (called, of(called, of(times, x)), 2.0),
        lambda x: (first_called, [of(times, x)], 2.0),
        lambda x: (first_called, {0: of(times, x)}, 2.0),
        lambda x: (held_called, holder(f=of(times, x)), 2.0),
        lambda x: (called, x.__mul__, 2.0),
        lambda x: (times, of(times, x).args[0], 2.0),
        lambda x: (total, iter([x])),
        lambda x: (total, itertools.repeat(x, 1)),
        lambda x: (total, {x}),
        lambda x: (total, {x: 1}),
        lambda x: (reason, ValueError(x)),
    ]
    if sys.version_info >= (3, 12):  # pickle warns of iterators of itertools, and takes none on 3.14
        del programs[8]
    for n, program in enumerate(programs):
        assert plaingrad.value_and_grad(lambda x, p=program: executor.submit(*p(x)).result())(3.0) == (6.0, 2.0), n
        assert plaingrad.derivative(lambda x, p=program: executor.submit(*p(x)).result())(3.0) == 2.0, n

    def mapped(x):
        return sum(executor.map(called, [of(times, x), of(times, x * x)], [2.0, 3.0]))

    agrees(mapped, lambda x: 2.0 * x + 3.0 * x * x)


def test_functions_by_value_among_the_arguments():
    joblib = pytest.importorskip("joblib")
    for program in (
        lambda x: (lambda y: x * y, 2.0),
        lambda x: (called, lambda y: x * y, 2.0),
        lambda x: (first_called, [lambda y, z=x: z * y], 2.0),
    ):

        def f(x, program=program):
            g, *args = program(x)
            return joblib.Parallel(n_jobs=2)([joblib.delayed(g)(*args)])[0]

        assert plaingrad.value_and_grad(f)(3.0) == (6.0, 2.0)
        assert plaingrad.derivative(f)(3.0) == 2.0


def test_one_number_at_several_places_of_a_result(executor):
    def f(x):
        a, b, c = executor.submit(twice, x).result()
        return a * b * c["y"]

    agrees(f, lambda x: math.sin(x) ** 3)
    # cotangents are such a result, too
    agrees(lambda x: executor.submit(np.add, x * x, x * 3.0).result(), lambda x: x * x + x * 3.0)


def test_the_result_is_one_object(executor):
    def f(x):
        future = executor.submit(mixed, x)
        first = future.result()
        assert future.result() is first
        assert first["n"] == 7 and type(first["b"][1]) is int
        return first["a"] + future.result()["b"][0]

    agrees(f, lambda x: mixed(x)["a"] + mixed(x)["b"][0])


def test_arguments_that_are_overwritten_after_the_task_began(executor):
    def f(x):
        a = np.array([x, x * x])
        future = executor.submit(in_place, a)
        again = executor.submit(double, a)
        before = again.result()[1]
        a *= 10.0
        return future.result()[0] + before + a[0]

    agrees(f, lambda x: 3 * x * x + 2 * x * x + 10.0 * x, rel=1e-11)


def test_numbers_of_other_kinds(executor):
    found = plaingrad.grad(lambda x: executor.submit(single, x).result())(np.float32(0.5))
    assert type(found) is np.float32 and found == 2.0
    z = 0.3 + 0.4j
    found = plaingrad.grad(lambda z: executor.submit(turned, z).result().imag)(z)
    assert found == pytest.approx(plaingrad.grad(lambda z: turned(z).imag)(z), rel=1e-14)
    assert plaingrad.grad(lambda x: x * executor.submit(count, x).result()[0])(0.75) == 7.0
    found = plaingrad.grad(lambda a: np.sum(executor.submit(double, a[::-2]).result()))(np.arange(5.0))
    np.testing.assert_array_equal(found, [2.0, 0.0, 2.0, 0.0, 2.0])
    assert plaingrad.grad(lambda a: executor.submit(double, a).result().sum())(np.empty((0, 2))).shape == (
        0,
        2,
    )


def test_completion_callbacks_and_event_loops(executor):
    def completed(x):
        futures = [executor.submit(double, x * k) for k in (1.0, 2.0, 3.0)]
        return math.fsum(future.result() ** 2 for future in concurrent.futures.as_completed(futures))

    agrees(completed, lambda x: 4 * x * x + 16 * x * x + 36 * x * x)

    def called(x):
        found = []
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            pool.submit(double, x).add_done_callback(lambda future: found.append(future.result() * x))
        return found[0]

    agrees(called, lambda x: 2.0 * x * x)

    def awaited(x):
        async def main():
            loop = asyncio.get_running_loop()
            a, b = await asyncio.gather(
                loop.run_in_executor(executor, double, x), loop.run_in_executor(executor, mixed, x)
            )
            return a * b["a"]

        return asyncio.run(main())

    agrees(awaited, lambda x: double(x) * mixed(x)["a"])


def test_pools_of_multiprocessing(pool):
    agrees(lambda x: pool.apply(double, (x,)) * x, lambda x: double(x) * x)
    agrees(lambda x: pool.apply(mixed, (2.0,), {"k": x})["a"], lambda x: mixed(2.0, k=x)["a"])
    agrees(
        lambda x: sum(pool.map(double, (x * k for k in range(9)))),
        lambda x: sum(double(x * k) for k in range(9)),
    )
    pairs = [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    agrees(
        lambda x: sum(d["a"] for d in pool.starmap(mixed, [(a, x * b) for a, b in pairs], chunksize=2)),
        lambda x: sum(mixed(a, x * b)["a"] for a, b in pairs),
    )
    agrees(
        lambda x: sum(pool.map_async(double, [x, 1.0, x * x]).get()),
        lambda x: sum(map(double, [x, 1.0, x * x])),
    )
    assert plaingrad.grad(lambda x: x * len(pool.map(double, [])))(2.0) == 0.0

    def called(x):
        found = []
        results = [pool.apply_async(double, (x,), callback=found.append)]
        results.append(pool.map_async(double, [x * x, 1.0], callback=found.extend))
        y = results[0].get() + results[1].get()[0]
        results[1].wait()
        while len(found) < 3:
            pass
        return y * sum(found)

    def made_inside(x):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return sum(pool.map(double, [x, x * x]))

    agrees(made_inside, lambda x: 2 * x + 2 * x * x)
    agrees(called, lambda x: (2 * x + 2 * x * x) * (2 * x + 2 * x * x + 2.0), rel=1e-11)


def test_results_in_turn(pool):
    for method, size in [("imap", 1), ("imap", 4), ("imap_unordered", 1), ("imap_unordered", 2)]:

        def f(x, method=method, size=size):
            results = getattr(pool, method)(double, (x * k for k in range(11)), chunksize=size)
            return math.fsum(y * y for y in results) * x

        agrees(f, lambda x: 4.0 * 385.0 * x * x * x, rel=1e-11)

    def ordered(x):
        results = pool.imap(double, [x, x * x, 5.0])
        first = results.next(timeout=30)
        return [first, *results][1] * first

    agrees(ordered, lambda x: 4.0 * x * x * x)

    def endless(x):
        results = pool.imap(double, (x * k for k in itertools.count(1)))
        return next(results) * next(results)

    assert plaingrad.grad(endless)(3.0) == pytest.approx(48.0, rel=1e-14)

    def failing_items(x):
        yield x
        raise ValueError("no more")

    def broken(x, begin):
        results = begin(double, failing_items(x))
        y = next(results)
        with pytest.raises(ValueError, match="no more"):
            next(results)
        with pytest.raises(StopIteration):
            next(results)
        return y * y

    assert plaingrad.grad(broken)(3.0, pool.imap) == pytest.approx(24.0, rel=1e-14)

    def failing_task(x):
        results = pool.imap(failing, [x, x])
        for _ in range(2):
            with pytest.raises(ValueError, match="not True"):
                next(results)
        return x * x

    assert plaingrad.grad(failing_task)(3.0) == 6.0
    with pytest.raises(ValueError, match="Chunksize"):
        plaingrad.grad(lambda x: sum(pool.imap(double, [x], chunksize=0)))(1.0)


SCALE = 1.0


def scaled(x):
    """x by a global."""
    return x * SCALE


def test_a_global_that_depends_on_the_inputs_is_refused(executor, pool):
    def f(x, begin):
        global SCALE
        SCALE = x * 2.0
        try:
            return begin(scaled, x)
        finally:
            SCALE = 1.0

    for begin in (
        lambda task, x: executor.submit(task, 1.0).result() * x,
        lambda task, x: pool.apply(task, (x,)),
    ):
        with pytest.raises(plaingrad.RoundTripError, match="the global `SCALE`"):
            plaingrad.grad(f)(2.0, begin)


@pytest.mark.slow
def test_joblib_with_every_backend():
    joblib = pytest.importorskip("joblib")

    def f(x, backend):
        parallel = joblib.Parallel(n_jobs=2, backend=backend)
        return sum(parallel(joblib.delayed(double)(x * k) for k in range(4))) * x

    for backend in ("multiprocessing", "threading"):
        assert plaingrad.grad(f)(2.0, backend) == pytest.approx(48.0, rel=1e-14)

    def by_value(x):
        return sum(joblib.Parallel(n_jobs=2)(joblib.delayed(lambda y: y * x)(x * k) for k in range(3)))

    assert plaingrad.grad(by_value)(2.0) == 12.0


@pytest.mark.slow
def test_multiprocess_and_pathos():
    multiprocess, pathos = pytest.importorskip("multiprocess"), pytest.importorskip("pathos.pools")
    kept = pathos.ProcessPool(2)
    kept.map(double, [1.0])  # its threads know nothing of the derivative
    with multiprocess.Pool(2) as pool:
        for pool_map in (kept.map, pool.map):
            assert plaingrad.grad(lambda x, m=pool_map: sum(m(lambda y: y * y * x, [x, 2.0])))(3.0) == 31.0


@pytest.mark.parametrize("kind", ["executor", "pool"])
def test_a_worker_that_hangs_on_the_way_back_is_a_timeout_with_its_name(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAINGRAD_TASK_TIMEOUT", "0.3")
    monkeypatch.setenv("PLAINGRAD_TASK_TAPES", "0")
    with (
        concurrent.futures.ProcessPoolExecutor(1)
        if kind == "executor"
        else multiprocessing.get_context("fork").Pool(1)
    ) as made:
        marker = str(tmp_path / "begun")

        def f(x):
            if kind == "executor":
                return made.submit(hangs_a_second_time, x, marker).result()
            return made.apply(hangs_a_second_time, (x, marker))

        with pytest.raises((TimeoutError, multiprocessing.TimeoutError)) as late:
            plaingrad.grad(f)(2.0)
        assert "the task `hangs_a_second_time`, begun at " in " ".join(late.value.__notes__)
        if kind == "executor":
            for process in made._processes.values():
                process.terminate()


def test_a_timeout_that_is_no_number(monkeypatch):
    for wrong in ("soon", "nan", "-1", "0"):
        monkeypatch.setenv("PLAINGRAD_TASK_TIMEOUT", wrong)
        with concurrent.futures.ProcessPoolExecutor(1) as made:
            with pytest.raises(plaingrad.ArgumentError, match=f"'{wrong}'"):
                plaingrad.grad(lambda x, made=made: made.submit(double, x).result())(2.0)
    monkeypatch.setenv("PLAINGRAD_TASK_TIMEOUT", "inf")
    with concurrent.futures.ProcessPoolExecutor(1) as made:
        assert plaingrad.grad(lambda x: made.submit(double, x).result() ** 2)(2.0) == 16.0


def test_exceptions_and_timeouts_are_those_of_the_task(executor):
    def f(x):
        future = executor.submit(failing, x)
        try:
            return future.result()
        except ValueError as error:
            assert error.args == ("not True",)
            return x * x

    assert plaingrad.grad(f)(3.0) == 6.0

    def unpicklable(x):
        return executor.submit(lambda y: y * x, x).result()

    with pytest.raises(Exception) as plain:
        unpicklable(2.0)
    with pytest.raises(type(plain.value)):
        plaingrad.grad(unpicklable)(2.0)

    def cancelled(x):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            futures = [pool.submit(double, x) for _ in range(20)]
            gone = [future for future in futures if future.cancel()]
            return sum(future.result() for future in futures if future not in gone) / (20 - len(gone))

    assert plaingrad.grad(cancelled)(3.0) == pytest.approx(2.0, rel=1e-12)


def test_results_that_may_hide_numbers_are_refused(executor):
    for task, x in [(as_decimal, 0.5), (as_text, 0.5), (as_bytes, np.ones(2))]:

        def f(x, task=task):
            return executor.submit(task, x).result() and np.sum(x)

        with pytest.raises(plaingrad.MissingRuleError, match=f"`{task.__name__}`"):
            plaingrad.grad(f)(x)


def test_objects_that_pickle_in_their_own_way_are_refused(executor):
    with pytest.raises(plaingrad.RoundTripError, match="Own"):
        plaingrad.grad(lambda x: executor.submit(of_own, Own(x)).result())(2.0)
    assert plaingrad.grad(lambda x: x * executor.submit(of_own, Own(2.0)).result())(3.0) == pytest.approx(4.0)


def test_a_task_with_random_numbers_is_refused_where_it_runs_again(monkeypatch):
    monkeypatch.setenv("PLAINGRAD_TASK_TAPES", "0")
    with concurrent.futures.ProcessPoolExecutor(1) as executor:
        with pytest.raises(plaingrad.CheckpointError, match="run again") as refusal:
            plaingrad.grad(lambda x: executor.submit(drawn, x).result())(2.0)
    assert any("`drawn`" in note and "test_processes.py" in note for note in refusal.value.__notes__)


def test_an_error_on_the_way_back_names_the_task(monkeypatch):
    monkeypatch.setenv("PLAINGRAD_TASK_TAPES", "0")

    def f(x):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            return pool.submit(ends_a_second_time, x, marker).result()

    marker = f"/tmp/plaingrad-{os.getpid()}"
    try:
        with pytest.raises(concurrent.futures.process.BrokenProcessPool) as broken:
            plaingrad.grad(f)(0.5)
    finally:
        os.unlink(marker)
    assert any(
        "`ends_a_second_time`" in note and "test_processes.py" in note for note in broken.value.__notes__
    )


def test_no_process_is_left_behind():
    def f(x):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            return pool.submit(double, x).result()

    before = set(multiprocessing.active_children())
    assert plaingrad.grad(f)(3.0) == 2.0
    gc.collect()  # the tape may be in a circle
    end = time.monotonic() + 10.0
    while (left := set(multiprocessing.active_children()) - before) and time.monotonic() < end:
        for process in left:
            process.join(0.1)
    assert not left
