"""The way back over programs with tasks: it goes side by side where it may, and is right and the same every time."""

import asyncio
import concurrent.futures
import functools
import math
import multiprocessing.pool
import queue
import sys
import threading
import time

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, hook, jvp
from plaingrad.engine.compiled import core
from plaingrad.engine.reverse import run, side_by_side

needs_core = pytest.mark.skipif(core is None, reason="the compiled core was not built")


@pytest.fixture
def hasty():
    """The interpreter changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def passes(monkeypatch):
    """What became of each reverse pass over a tape of several threads: (went side by side, its pieces)."""
    seen = []

    def looked_at(tape, shadow, undone):
        went = side_by_side.reverse_side_by_side(tape, shadow, undone)
        seen.append(went)
        return went

    monkeypatch.setattr(run, "reverse_side_by_side", looked_at)
    return seen


def work(a):
    """One task: sin(a) a, summed."""
    return (np.sin(a) * a).sum()


def parts(a, n):
    """Views of equal parts of `a`."""
    size = len(a) // n
    return [a[k * size : (k + 1) * size] for k in range(n)]


def by_map(a):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(work, parts(a, 4)))


def by_submit(a):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return sum([future.result() for future in [pool.submit(work, part) for part in parts(a, 4)]])


def by_completion(a):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = {pool.submit(work, part): k for k, part in enumerate(parts(a, 4))}
        found = {futures[future]: future.result() for future in concurrent.futures.as_completed(futures)}
    return sum(found[k] for k in sorted(found))


def by_thread_pool(a):
    with multiprocessing.pool.ThreadPool(2) as pool:
        return sum(pool.map(work, parts(a, 4)))


def by_apply(a):
    with multiprocessing.pool.ThreadPool(2) as pool:
        return sum([result.get() for result in [pool.apply_async(work, (part,)) for part in parts(a, 4)]])


def by_hand(a):
    found = [None] * 4

    def put(k, part):
        found[k] = work(part)

    threads = [threading.Thread(target=put, args=given) for given in enumerate(parts(a, 4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(found)


def by_queue(a):
    left, right = queue.Queue(), queue.Queue()

    def first():
        for part in parts(a, 4):
            left.put(np.sin(part) * part)
        left.put(None)

    def second():
        while (part := left.get()) is not None:
            right.put(part.sum())
        right.put(None)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    total = 0.0
    while (term := right.get()) is not None:
        total = total + term
    for thread in threads:
        thread.join()
    return total


def by_to_thread(a):
    async def main():
        return sum(await asyncio.gather(*[asyncio.to_thread(work, part) for part in parts(a, 4)]))

    return asyncio.run(main())


def by_run_in_executor(a):
    async def main():
        loop = asyncio.get_running_loop()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(await asyncio.gather(*[loop.run_in_executor(pool, work, part) for part in parts(a, 4)]))

    return asyncio.run(main())


def by_pools_in_pools(a):
    def half(part):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(work, parts(part, 2)))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(half, parts(a, 2)))


def by_chunks_copied(a):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(work, [part * 1.0 for part in parts(a, 4)]))


def with_a_failing_task(a):
    def fail(part):
        raise ValueError(float(part[0]))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lost = pool.submit(fail, a[:1])
        futures = [pool.submit(work, part) for part in parts(a, 4)]
        with pytest.raises(ValueError):
            lost.result()
        return sum(future.result() for future in futures)


PROGRAMS = [
    by_map,
    by_submit,
    by_completion,
    by_thread_pool,
    by_apply,
    by_hand,
    by_queue,
    by_to_thread,
    by_run_in_executor,
    by_pools_in_pools,
    by_chunks_copied,
    with_a_failing_task,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_with_tasks(program, passes, hasty):
    a = np.linspace(0.1, 2.0, 40)
    slope = np.cos(a) * a + np.sin(a)
    found = [grad(program)(a) for _ in range(8)]
    assert passes == ([] if core is None else [True] * 8)
    np.testing.assert_allclose(found[0], slope, rtol=1e-13)
    if core is not None:
        assert all(np.array_equal(other, found[0]) for other in found), "the same to the last bit"
    dots = np.ones(40)
    assert jvp(program, (a,), (dots,))[1] == pytest.approx(slope.sum(), rel=1e-12)
    curvature = 2 * np.cos(a) - np.sin(a) * a
    np.testing.assert_allclose(grad(lambda b: grad(program)(b) @ dots)(a), curvature, rtol=1e-12)
    np.testing.assert_allclose(jvp(grad(program), (a,), (dots,))[1], curvature, rtol=1e-12)


def test_numbers_that_all_tasks_use(passes, hasty):
    """Sums of many terms: their order is that of the program, not of the threads."""

    def f(x, a):
        scale = x * 1.5

        def task(part):
            y = scale * 0.1
            for v in part:
                y = y * 0.7 + v * scale / 3.0
            return y + x * scale

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            late = [pool.submit(task, part) for part in parts(a, 6)]
            here = task(a[:5].tolist())
            return sum([future.result() for future in late], here)

    a = np.linspace(0.1, 0.7, 36)
    found = [grad(f, argnums=(0, 1))(1.3, a) for _ in range(30)]
    for x_bar, a_bar in found:
        if core is None:  # one tape, in whatever order the threads ran
            assert x_bar == pytest.approx(found[0][0], rel=1e-13)
            np.testing.assert_allclose(a_bar, found[0][1], rtol=1e-13)
        else:
            assert x_bar == found[0][0] and np.array_equal(a_bar, found[0][1])
    for k in (0, 17):
        step = np.zeros(36)
        step[k] = 1e-6
        assert found[0][1][k] == pytest.approx((f(1.3, a + step) - f(1.3, a - step)) / 2e-6, rel=1e-7)
    assert found[0][0] == pytest.approx((f(1.3 + 1e-6, a) - f(1.3 - 1e-6, a)) / 2e-6, rel=1e-7)
    assert passes == ([] if core is None else [True] * 30)


def checked(f, a, turns=5):
    """The gradient of f at a, which several turns and finite differences agree on."""
    found = [grad(f)(a) for _ in range(turns)]
    steps = 1e-6 * np.eye(a.size)
    slope = [(f(a + step) - f(a - step)) / 2e-6 for step in steps]
    for one in found:
        np.testing.assert_allclose(one, slope, rtol=1e-6, atol=1e-8)
    return found[0]


def test_arrays_that_tasks_write(hasty):
    """Each task squares its part of an array that all share, and reads it again."""

    def f(a):
        out = a * 1.0

        def task(k):
            part = out[2 * k : 2 * k + 2]
            first = part * part
            part *= part
            part[0] = part[1] * a[k]
            return (first * part).sum()

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            total = sum(pool.map(task, range(3)))
        return total + (out * out).sum()

    checked(f, np.linspace(0.5, 1.5, 6))


def test_arrays_that_a_task_alone_writes(hasty):
    def f(a):
        def task(part):
            mine = part * 2.0
            held = mine * mine
            mine[0] = mine[1] * 3.0
            mine += part
            mine *= np.sin(part)
            return (held * mine).sum()

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(task, parts(a, 3)))

    checked(f, np.linspace(0.5, 1.5, 6))


def test_an_argument_that_tasks_write(hasty):
    def f(a):
        def task(k):
            a[k] = a[k] * a[(k + 3) % 6]

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(task, range(3)))
        return (a * a).sum()

    checked(lambda a: f(a.copy()), np.linspace(0.5, 1.5, 6))
    a = np.linspace(0.5, 1.5, 6)
    before = grad(lambda a: f(a * 1.0))(a)
    np.testing.assert_allclose(grad(f)(a.copy()), before, rtol=1e-13)


def test_an_argument_that_one_task_writes_alone(passes):
    def f(a, b):
        def task():
            a[0] = b[0] * b[1]

        thread = threading.Thread(target=task)
        thread.start()
        thread.join()
        return (a * a).sum()

    b = np.array([2.0, 3.0])
    a_bar, b_bar = grad(f, argnums=(0, 1))(np.array([5.0, 7.0]), b)
    assert a_bar.tolist() == [0.0, 14.0] and b_bar.tolist() == [36.0, 24.0]


def test_memory_that_is_no_input_but_written_and_read_by_tasks(hasty):
    """What a pullback of one task reads is overwritten by another: the way back is in the order of the tape."""

    def f(a):
        shared = np.array([2.0, 3.0])
        y = a * shared

        def task():
            shared[0] = 10.0
            return (a * shared).sum()

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            z = pool.submit(task).result()
            w = pool.submit(work, a).result()
        return y.sum() + z + w

    a = np.array([0.3, 0.4])
    expected = np.array([12.0, 6.0]) + np.cos(a) * a + np.sin(a)
    for _ in range(20):
        np.testing.assert_allclose(grad(f)(a), expected, rtol=1e-13)


def test_a_shared_sum_under_a_lock(hasty):
    def f(a):
        lock, total, held = threading.Lock(), np.zeros(2), [0.0]

        def task(part):
            term = work(part)
            with lock:
                total[0] += term
                held[0] = held[0] + term * 2.0

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(task, parts(a, 4)))
        return total[0] + held[0]

    a = np.linspace(0.1, 2.0, 40)
    for _ in range(10):
        np.testing.assert_allclose(grad(f)(a), 3 * (np.cos(a) * a + np.sin(a)), rtol=1e-13)


def test_a_hook_sees_what_it_always_sees(passes):
    seen = []

    def f(a):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda part: work(hook(lambda bar: seen.append(bar.copy()), part)), parts(a, 2)))

    a = np.linspace(0.1, 2.0, 8)
    np.testing.assert_allclose(grad(f)(a), np.cos(a) * a + np.sin(a), rtol=1e-13)
    assert len(seen) == 2
    assert True not in passes




@needs_core
def test_pullbacks_of_tasks_run_at_the_same_time():
    spans = []

    def rested(x):
        return x * x

    def rule(x):
        def pullback(y_bar):
            begun = time.perf_counter()
            time.sleep(0.05)
            spans.append((begun, time.perf_counter()))
            return (2.0 * x * y_bar,)

        return x * x, pullback

    plaingrad.rrule(rested)(rule)

    def f(x):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return sum([future.result() for future in [pool.submit(rested, x * k) for k in (1.0, 2.0, 3.0, 4.0)]])

    assert grad(f)(1.5) == 90.0
    spans.sort()
    assert len(spans) == 4
    assert spans[1][0] < spans[0][1], "the second begins before the first has ended"


@needs_core
def test_an_error_in_a_pullback_is_raised_where_the_gradient_is_asked_for():
    def odd(x):
        return x * x

    def rule(x):
        def pullback(y_bar):
            if x == 2.0:
                raise KeyError("two")
            return (2.0 * x * y_bar,)

        return x * x, pullback

    plaingrad.rrule(odd)(rule)

    def f(x):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(odd, [x, x * 2.0, x * 3.0]))

    with pytest.raises(KeyError, match="two"):
        grad(f)(1.0)
    y, pullback = plaingrad.vjp(f, 3.0)
    assert pullback(1.0) == (84.0,) and pullback(2.0) == (168.0,)


@needs_core
def test_where_no_thread_can_be_started_one_does_it_all(monkeypatch):
    def refuse(*args):
        raise RuntimeError("can't start new thread")

    a = np.linspace(0.1, 2.0, 40)
    before = grad(by_chunks_copied)(a)
    y, pullback = plaingrad.vjp(by_chunks_copied, a)
    monkeypatch.setattr(side_by_side._thread, "start_new_thread", refuse)
    assert np.array_equal(pullback(1.0)[0], before)


@needs_core
def test_the_way_back_does_not_change_error_handling_of_numpy():
    def f(a):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda part: np.sqrt(part).sum(), parts(a, 2)))

    with np.errstate(all="raise"):
        assert grad(f)(np.zeros(4)).tolist() == [np.inf] * 4
        assert np.geterr()["divide"] == "raise"


def test_a_level_that_is_used_again_forgets_its_tasks(passes):
    a = np.linspace(0.1, 2.0, 40)
    grad(by_map)(a)
    passes.clear()
    plain = functools.partial(lambda a: work(a))
    np.testing.assert_allclose(grad(plain)(a), np.cos(a) * a + np.sin(a), rtol=1e-13)
    assert passes == []


def test_a_thread_that_outlives_the_function_may_end_an_operation_on_the_way_back(monkeypatch):
    begun, go = threading.Event(), threading.Event()

    def late(x):
        return x * x

    def rule(x):
        begun.set()
        go.wait()
        return x * x, lambda z_bar: (2.0 * x * z_bar,)

    plaingrad.rrule(late)(rule)
    shadow_of = run.Shadow
    a = np.linspace(0.1, 2.0, 40)
    for program in (by_map, work):

        def f(a, program=program):
            threads.append(threading.Thread(target=late, args=(a * 2.0,)))
            threads[0].start()
            begun.wait()
            return program(a)

        def shadow(*given):  # once it is known how many indices there are
            found = shadow_of(*given)
            go.set()
            for thread in threads:
                thread.join()
            return found

        monkeypatch.setattr(run, "Shadow", shadow)
        threads = []
        np.testing.assert_allclose(grad(f)(a), np.cos(a) * a + np.sin(a), rtol=1e-13)
        begun.clear()
        go.clear()


NESTED = {
    "grad of grad": lambda f, a: grad(lambda a: grad(f)(a).sum())(a),
    "forward over reverse": lambda f, a: plaingrad.hvp(f, (a,), (np.ones_like(a),))[0],
    "forward over reverse over reverse": lambda f, a: jvp(
        lambda a: grad(lambda a: grad(f)(a).sum())(a), (a,), (np.ones_like(a),)
    )[0],
}


@pytest.mark.parametrize("way", NESTED)
@pytest.mark.parametrize("kind", ["arrays", "numbers"])
def test_a_thread_that_outlives_the_function_may_end_an_operation_while_a_nested_derivative_goes_back(
    way, kind, monkeypatch
):
    """What it records has an index that came after those of the way back."""
    begun, go = threading.Event(), threading.Event()
    threads = []

    def late(x):
        return x * x

    def rule(x):
        begun.set()
        go.wait()
        return x * x, lambda z_bar: (2.0 * x * z_bar,)

    def f(a):
        if not threads:
            threads.append(threading.Thread(target=late, args=(a * 2.0 if kind == "arrays" else a[0] * 2.0,)))
            threads[0].start()
            begun.wait()
        return work(a) if kind == "arrays" else sum(v * math.sin(v) for v in a)

    def shadow(*given):  # once it is known how many indices there are
        found = shadow_of(*given)
        go.set()
        for thread in threads:
            thread.join()
        return found

    shadow_of = run.Shadow
    monkeypatch.setattr(run, "Shadow", shadow)
    plaingrad.rrule(late)(rule)
    a = np.linspace(0.1, 2.0, 4)
    np.testing.assert_allclose(NESTED[way](f, a), 2.0 * np.cos(a) - a * np.sin(a), rtol=1e-12)
    assert len(threads) == 1


def test_a_pullback_that_undoes_writes_is_called_by_two_threads():
    """One thread is not told that memory was changed, because the other has undone writes just then."""
    found = []

    def middle(x):
        return x * x

    def rule(x):
        def pullback(z_bar):
            if not found:
                found.append(None)
                threads.append(threading.Thread(target=lambda: found.append(pull(1.0))))
                threads[0].start()
                threads[0].join(0.1)  # it waits for this one
            return (2.0 * x * z_bar,)

        return x * x, pullback

    plaingrad.rrule(middle)(rule)

    def f(a):
        held = np.ones(3)
        y = (a * held).sum()
        z = middle(y)
        held[0] = 5.0
        return z + (a * held).sum()

    threads = []
    _, pull = plaingrad.vjp(f, np.array([1.0, 2.0, 3.0]))
    assert pull(1.0)[0].tolist() == [17.0, 13.0, 13.0]
    threads[0].join()
    assert len(found) == 2 and found[1][0].tolist() == [17.0, 13.0, 13.0]


@needs_core
def test_an_interrupt_while_workers_are_started_stops_those_that_have_begun(monkeypatch):
    start = side_by_side._thread.start_new_thread
    begun, running, slow = threading.Event(), [], [False]

    def middle(x):
        return x * x

    def rule(x):
        def pullback(z_bar):
            if slow[0]:
                running.append(1)
                begun.set()
                time.sleep(0.02)
                running.pop()
            return (2.0 * x * z_bar,)

        return x * x, pullback

    plaingrad.rrule(middle)(rule)
    held = np.ones(3)

    def f(a):
        held[:] = 1.0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            total = sum(pool.map(lambda k: middle((a * held * k).sum()), (1.0, 2.0, 3.0)))
            held[0] = 5.0
            return total + sum(pool.map(lambda k: middle((a * held * k).sum()), (1.0, 2.0, 3.0)))

    def interrupted(*given):
        start(*given)
        if slow[0]:
            begun.wait()
            raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side._thread, "start_new_thread", interrupted)
    _, pull = plaingrad.vjp(f, np.array([1.0, 2.0, 3.0]))
    expected = pull(1.0)[0]
    slow[0] = True
    with pytest.raises(KeyboardInterrupt):
        pull(1.0)
    assert not running and held.tolist() == [5.0, 1.0, 1.0]
    slow[0] = False
    assert np.array_equal(pull(1.0)[0], expected)


@needs_core
def test_entries_of_indices_that_came_later_are_for_one_thread(monkeypatch):
    seen = []

    def looked_at(tape, shadow, undone):
        for size in (1, 3, len(shadow.bars) - 1):
            seen.append(core.Stretches(tape, size).scan(core.Bars(size), 64))
        return False

    monkeypatch.setattr(run, "reverse_side_by_side", looked_at)
    a = np.linspace(0.1, 2.0, 40)
    np.testing.assert_allclose(grad(by_map)(a), np.cos(a) * a + np.sin(a), rtol=1e-13)
    assert seen[:2] == [False, False]
