"""Tasks of a pool that are recorded where they run, whose tapes stay there until the way back asks for them."""

import concurrent.futures
import functools
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from process_tasks import (
    calls_late,
    double,
    drawn,
    failing,
    forks,
    in_place,
    kept_here,
    large,
    noted,
    overwrites,
    refused_part,
    with_process,
)

import plaingrad
from plaingrad.rules.processes.lines import ARE_POSSIBLE

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.skipif(not ARE_POSSIBLE, reason="tapes stay with workers on Linux only"),
]


@pytest.fixture(scope="module")
def executor():
    """A pool that stays open."""
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        yield pool


def in_pool(f, *args):
    """f(*args) by a pool that is closed before the way back."""
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        return pool.submit(f, *args).result()


def runs(path):
    """How often a task that notes it has run."""
    return len(path.read_text().splitlines())


def test_a_task_runs_once(executor, tmp_path):
    opened, closed = tmp_path / "opened", tmp_path / "closed"
    assert plaingrad.grad(lambda x: executor.submit(noted, x, str(opened)).result())(3.0) == 6.0
    assert plaingrad.grad(lambda x: in_pool(noted, x, str(closed)))(3.0) == 6.0
    assert runs(opened) == runs(closed) == 1


def test_and_twice_where_nothing_is_to_be_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAINGRAD_TASK_TAPES", "0")
    path = tmp_path / "runs"
    assert plaingrad.grad(lambda x: in_pool(noted, x, str(path)))(3.0) == 6.0
    assert runs(path) == 2


@pytest.mark.parametrize("wrong", ["much", "-1", "1.5"])
def test_how_much_is_to_be_kept_is_a_number(wrong, monkeypatch):
    monkeypatch.setenv("PLAINGRAD_TASK_TAPES", wrong)
    with pytest.raises(plaingrad.ArgumentError, match="PLAINGRAD_TASK_TAPES"):
        plaingrad.grad(lambda x: in_pool(double, x))(3.0)


def test_random_numbers_are_those_of_the_value(executor):
    value, slope = plaingrad.value_and_grad(lambda x: sum(executor.map(drawn, [x, x, x])))(2.0)
    assert value == pytest.approx(2.0 * slope, rel=1e-14)


def test_a_pullback_may_be_called_again_and_in_another_thread(executor):
    _, pullback = plaingrad.vjp(lambda x: executor.submit(with_process, x).result()[0], 2.0)
    found = [pullback(1.0)[0], pullback(2.0)[0]]
    thread = threading.Thread(target=lambda: found.append(pullback(3.0)[0]))
    thread.start()
    thread.join()
    assert found == [12.0, 24.0, 36.0]


def test_a_pullback_that_is_differentiated_itself_is_not_a_constant(executor):
    _, pullback = plaingrad.vjp(lambda x: executor.submit(with_process, x).result()[0], 2.0)
    assert pullback(1.0) == (12.0,)
    assert plaingrad.grad(lambda bar: pullback(bar)[0] ** 2)(3.0) == 2.0 * 12.0 * 12.0 * 3.0
    assert plaingrad.jvp(lambda bar: pullback(bar)[0] ** 2, (3.0,), (1.0,))[1] == 864.0


def test_every_nesting(executor):
    def f(x):
        return executor.submit(with_process, x).result()[0]

    assert plaingrad.grad(plaingrad.grad(f))(2.0) == pytest.approx(12.0, rel=1e-14)
    assert plaingrad.grad(plaingrad.grad(plaingrad.grad(f)))(2.0) == pytest.approx(6.0, rel=1e-14)
    assert plaingrad.jvp(plaingrad.grad(f), (2.0,), (1.0,))[1] == pytest.approx(12.0, rel=1e-14)
    assert plaingrad.grad(lambda x: plaingrad.jvp(f, (x,), (1.0,))[1])(2.0) == pytest.approx(12.0, rel=1e-14)
    assert plaingrad.grad(lambda x: plaingrad.checkpoint(f, x))(2.0) == pytest.approx(12.0, rel=1e-14)
    assert plaingrad.grad(plaingrad.grad(lambda x: in_pool(with_process, x)[0]))(2.0) == pytest.approx(12.0)


def test_a_worker_that_has_ended_costs_another_run(tmp_path):
    path = tmp_path / "runs"

    def f(x):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            y = pool.submit(noted, x, str(path)).result()
            os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
            return y * x

    assert plaingrad.grad(f)(3.0) == 27.0
    assert runs(path) == 2


def test_a_worker_that_ends_while_it_goes_back_costs_another_run():
    at = []

    def f(x):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            at.append(pool.submit(os.getpid).result())
            return pool.submit(calls_late, x).result()

    def kill():
        while not at:
            time.sleep(0.01)
        time.sleep(0.7)
        os.kill(at[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert plaingrad.grad(f)(3.0) == 6.0
    killer.join()


def test_a_worker_that_does_not_answer_is_a_timeout_with_its_name(monkeypatch):
    monkeypatch.setenv("PLAINGRAD_TASK_TIMEOUT", "0.3")
    with pytest.raises(TimeoutError) as late:
        plaingrad.grad(lambda x: in_pool(calls_late, x))(3.0)
    assert any("calls_late" in note and "test_kept_tapes.py" in note for note in late.value.__notes__)


def test_a_tape_that_is_too_large_is_not_kept(monkeypatch):
    monkeypatch.setenv("PLAINGRAD_TASK_TAPES", "8")

    def f(a):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            y = pool.submit(large, a).result()
            assert pool.submit(kept_here).result() == 0
            return y

    a = np.linspace(0.1, 0.9, 100_000)
    np.testing.assert_allclose(plaingrad.grad(f)(a), plaingrad.grad(large)(a), rtol=1e-13)


def test_tapes_are_let_go_of_with_the_derivative():
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        y, pullback = plaingrad.vjp(lambda x: sum(pool.map(double, [x, x * x])), 3.0)
        assert pool.submit(kept_here).result() == 2
        assert pullback(1.0) == (14.0,)
        del pullback
        gc.collect()
        end = time.monotonic() + 10.0
        while (left := pool.submit(kept_here).result()) and time.monotonic() < end:
            time.sleep(0.01)
        assert left == 0


def test_what_cannot_be_recorded_has_its_value_and_is_refused_on_the_way_back(executor):
    def first(x):
        return executor.submit(refused_part, x).result()[0]

    with pytest.raises(plaingrad.PlaingradError):
        plaingrad.grad(first)(3.0)
    seen = []
    with pytest.raises(plaingrad.PlaingradError):
        plaingrad.grad(lambda a: seen.append(executor.submit(overwrites, a).result()) or seen[0])(np.array([1.5, 2.0]))
    assert seen == [3.0]


def test_exceptions_and_arguments_are_those_of_a_plain_call(executor):
    def f(x):
        with pytest.raises(ValueError, match="not True") as found:
            executor.submit(failing, x).result()
        return x * len(found.value.args)

    assert plaingrad.grad(f)(2.0) == 1.0
    a = np.array([1.0, 2.0])
    slope = plaingrad.grad(lambda a: executor.submit(in_place, a).result().sum() + a.sum())(a)
    assert slope.tolist() == [1.0, 5.0]
    assert a.tolist() == [1.0, 2.0]


def test_a_pool_is_closed_for_the_program_and_ends_with_the_derivative():
    done = []

    def f(x):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            future = pool.submit(double, x)
            future.add_done_callback(lambda future: (time.sleep(0.2), done.append(future)))
        assert len(done) == 1
        pool.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(double, x)
        return future.result()

    before = set(multiprocessing.active_children())
    assert plaingrad.grad(f)(2.0) == 2.0
    done.clear()
    gc.collect()
    end = time.monotonic() + 10.0
    while (left := set(multiprocessing.active_children()) - before) and time.monotonic() < end:
        for process in left:
            process.join(0.1)
    assert not left


def test_a_child_of_a_worker_that_outlives_it_lets_nobody_wait():
    def f(x):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            pid = pool.submit(os.getpid).result()
            y = pool.submit(double, x).result() + pool.submit(forks, x).result()
            os.kill(pid, signal.SIGKILL)
            while pool._broken is False:
                time.sleep(0.01)
        return y

    assert plaingrad.grad(f)(3.0) == 8.0


PROGRAM = """
import concurrent.futures, plaingrad
from process_tasks import double
def f(x):
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        return sum(pool.map(double, [x, x * x]))
if __name__ == "__main__":
    y, pullback = plaingrad.vjp(f, 3.0)
    print(pullback(1.0))
"""


def test_a_program_ends_that_still_holds_a_pullback(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    env = {**os.environ, "PYTHONPATH": os.path.dirname(sys.modules["process_tasks"].__file__)}
    ended = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("(14.0,)\n", 0), ended.stderr


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_workers_that_were_not_forked(way, tmp_path):
    path = tmp_path / "runs"

    def f(x):
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context(way)) as pool:
            return pool.submit(noted, x, str(path)).result()

    assert plaingrad.grad(f)(3.0) == 6.0
    assert runs(path) == 1


def test_gradients_in_two_threads_with_one_pool(executor):
    def slope(n):
        return plaingrad.grad(lambda x: sum(executor.map(functools.partial(pow_of, n), [x, 2.0 * x])))(1.5)

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        found = list(threads.map(slope, [2, 3] * 10))
    assert found == [pytest.approx(n * (1.5 ** (n - 1)) * (1 + 2.0**n)) for n in [2, 3] * 10]


def pow_of(n, x):
    return x**n
