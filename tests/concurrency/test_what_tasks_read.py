"""What a task of another process takes along unseen: globals, what objects in C hold, and exceptions that it raises."""

import asyncio
import concurrent.futures
import functools
import multiprocessing
import operator
import os
from collections import defaultdict

import process_reading as tasks
import pytest

import plaingrad
from plaingrad.engine.communication.carried import carried

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
fork = multiprocessing.get_context("fork") if hasattr(os, "fork") else multiprocessing


@pytest.fixture(scope="module")
def executor():
    """A pool that stays open."""
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as pool:
        yield pool


@pytest.mark.parametrize("task", tasks.READERS, ids=lambda task: task.__qualname__)
def test_a_task_that_reads_a_differentiated_value_is_refused(executor, task):
    def f(x):
        tasks.set_all(x)
        try:
            return executor.submit(task, 3).result() + x
        finally:
            tasks.set_all(1.0)

    for derivative in (plaingrad.grad, plaingrad.derivative):
        with pytest.raises(plaingrad.RoundTripError, match="reads the global"):
            derivative(f)(0.7)


def test_a_task_that_reads_other_things_is_not(executor):
    def f(x):
        tasks.set_all(x)
        try:
            return executor.submit(tasks.unrelated, x).result()
        finally:
            tasks.set_all(1.0)

    assert plaingrad.grad(f)(0.7) == 2.0


@pytest.mark.parametrize("kind", ["partial", "lambda", "global", "arguments"])
def test_initializers_with_differentiated_values_are_refused(kind):
    def f(x, make):
        begin, given = {
            "partial": (functools.partial(tasks.begin, x), ()),
            "lambda": (lambda: tasks.begin(x), ()),
            "global": (tasks.begin_with_global, ()),
            "arguments": (tasks.begin, (x,)),
        }[kind]
        tasks.set_all(x)
        try:
            with make(begin, given) as pool:
                begun = getattr(pool, "submit", None) or (lambda task, k: pool.apply_async(task, (k,)))
                found = begun(tasks.of_initial, 3)
                return found.result() if hasattr(found, "result") else found.get()
        finally:
            tasks.set_all(1.0)

    def executor(begin, given):
        return concurrent.futures.ProcessPoolExecutor(1, fork, begin, given)

    def pool(begin, given):
        return fork.Pool(1, begin, given)

    for make in (executor, pool):
        with pytest.raises(plaingrad.RoundTripError):
            plaingrad.grad(f)(0.7, make)


def test_numbers_in_slices_and_operators(executor):
    def f(x):
        task = executor.submit(tasks.product_of_ends, slice(x, x * x))
        return task.result() * executor.submit(tasks.called_with, operator.methodcaller("__mul__", x), 3.0).result()

    assert f(0.7) == pytest.approx(3.0 * 0.7**4)
    assert plaingrad.grad(f)(0.7) == pytest.approx(12.0 * 0.7**3)
    assert plaingrad.derivative(f)(0.7) == pytest.approx(12.0 * 0.7**3)


def test_numbers_in_classes_and_attributes_of_functions_that_go_by_value():
    def made(x):
        class Own:
            scale = x

            @staticmethod
            def cubed(k):
                return x * k

            @property
            def squared(self):
                return x * x

        return Own

    def run(k):
        return k

    x = 0.7
    run.by = x
    for held in (run, made(x), made(x)(), [made(x)], functools.partial(made(x)), defaultdict(lambda: x)):
        assert any(part is x for part in carried(held))
    assert not any(part is x for part in carried([tasks.Settings, lambda: run, slice(1.0, 2.0)][::2]))


def caught(begin):
    """What the exception that begin() raises holds."""
    try:
        begin()
    except tasks.Failed as error:
        return error.args[1] * error.cube
    raise AssertionError


async def gathered(executor, x):
    """The same in an event loop."""
    loop = asyncio.get_running_loop()
    every = [loop.run_in_executor(executor, tasks.failing_with, x, odd) for odd in (0, 1)]
    first, error = await asyncio.gather(*every, return_exceptions=True)
    return first / x * error.args[1] * error.cube


def by_callback(executor, x):
    """The same in a callback."""
    found = []
    with concurrent.futures.ProcessPoolExecutor(1, fork) as pool:
        future = pool.submit(tasks.failing_with, x)
        future.add_done_callback(lambda future: found.append(future.exception().args[1]))
    return found[0] * future.exception().cube


def by_pool(executor, x):
    """The same of a pool of multiprocessing."""
    found = []
    with fork.Pool(1) as pool:
        running = pool.apply_async(tasks.failing_with, (x,), error_callback=found.append)
        return caught(running.get)


FAILING = [
    lambda executor, x: caught(executor.submit(tasks.failing_with, x).result),
    lambda executor, x: caught(lambda: list(executor.map(tasks.failing_with, [x, x], [0, 1]))),
    lambda executor, x: asyncio.run(gathered(executor, x)),
    by_callback,
    by_pool,
]


@pytest.mark.parametrize("way", range(len(FAILING)))
def test_exceptions_carry_derivatives(executor, way):
    def f(x):
        return FAILING[way](executor, x)

    x = 0.7  # x^2 (x^2)^3
    assert plaingrad.value_and_grad(f)(x) == pytest.approx((x**8, 8.0 * x**7))
    assert plaingrad.derivative(f)(x) == pytest.approx(8.0 * x**7)
    if way < 2:
        assert plaingrad.derivative(plaingrad.grad(f))(x) == pytest.approx(56.0 * x**6)
        assert plaingrad.grad(plaingrad.derivative(f))(x) == pytest.approx(56.0 * x**6)


def test_exceptions_that_cannot_be_followed(executor, tmp_path):
    def as_text(x):
        try:
            return executor.submit(tasks.failing_with, x).result()
        except tasks.Failed as error:
            return float(error.args[0].split()[0])

    def of_one_among_several(x):
        with fork.Pool(1) as pool:
            return caught(lambda: pool.starmap(tasks.failing_with, [(x, 1), (x, 3)]))

    for f in (as_text, of_one_among_several):
        for derivative in (plaingrad.grad, plaingrad.derivative):
            with pytest.raises(plaingrad.RoundTripError):
                derivative(f)(0.7)

    def another(x, path):
        try:
            return executor.submit(tasks.fails_again, path, x).result()
        except ValueError as error:
            return error.args[0]

    with pytest.raises(plaingrad.CheckpointError):
        plaingrad.grad(another)(0.7, str(tmp_path / "begun"))
