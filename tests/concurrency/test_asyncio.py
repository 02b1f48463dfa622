"""asyncio inside the program: tasks, futures, callbacks, queues, timeouts and locks hand references on.

Every program is an ordinary function that runs its own event loop; the slopes are worked out by hand.
"""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
import gc
import inspect
import signal
import threading
import types
import weakref

import pytest
from cases_b import check

import plaingrad


def runs(main, x, slope):
    """Asserts that `asyncio.run(main(x))` is differentiated, and is not changed by that."""
    check(lambda x: asyncio.run(main(x)), x, slope)


async def later(y, times=1):
    """y, after `times` turns of the loop."""
    for _ in range(times):
        await asyncio.sleep(0)
    return y


# Tasks and futures.


def test_await_chains_tasks_and_gather():
    async def square(x):
        return await later(x) * await later(x, 3)

    async def main(x):
        a = await square(x)
        b, c = await asyncio.gather(square(a), later(x * 7.0, 5))
        task = asyncio.create_task(square(x * 2.0), name="square")
        assert task.get_name() == "square"
        return a + b + c + await task

    # xx + x^4 + 7x + 4xx
    runs(main, 1.3, 2 * 1.3 + 4 * 1.3**3 + 7 + 8 * 1.3)


def test_the_result_of_a_task_is_the_very_object():
    async def main(x):
        y = x * x
        task = asyncio.create_task(later(y))
        assert await task is y
        assert task.result() is y
        assert await asyncio.shield(asyncio.ensure_future(later(y))) is y
        assert await asyncio.wait_for(later(y), 10) is y
        return y

    runs(main, 1.3, 2.6)


def test_futures_set_by_hand():
    async def main(x):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        assert not future.done()
        loop.call_soon(future.set_result, x * x)
        y = await future
        failing = asyncio.Future()
        failing.set_exception(ValueError(x * 3.0))
        try:
            await failing
        except ValueError as error:
            y = y + error.args[0]
        assert isinstance(failing.exception(), ValueError)
        cancelled = asyncio.Future()
        cancelled.cancel("enough")
        try:
            await cancelled
        except asyncio.CancelledError:
            y = y * x
        return y

    # (xx + 3x) x
    runs(main, 1.3, 3 * 1.3**2 + 6 * 1.3)


def test_done_callbacks_keep_their_identity_and_run_at_the_level():
    async def main(x):
        seen = []

        def callback(future):
            seen.append(future.result() * x)

        def removed(future):
            seen.append(1e9)

        def scaled(k, future):
            seen.append(future.result() * k)

        task = asyncio.create_task(later(x * 2.0))
        by_three = functools.partial(scaled, 3.0)
        task.add_done_callback(callback)
        task.add_done_callback(removed)
        task.add_done_callback(by_three)
        task.add_done_callback(seen.append)
        assert task.remove_done_callback(removed) == 1
        assert task.remove_done_callback(seen.append) == 1
        task.add_done_callback(removed)
        assert task.remove_done_callback(removed) == 1
        await task
        await asyncio.sleep(0)
        return sum(seen)

    # 2xx + 6x
    runs(main, 1.3, 4 * 1.3 + 6)


def test_wait_and_as_completed():
    async def main(x):
        tasks = [asyncio.create_task(later(x * k, k)) for k in range(1, 5)]
        done, pending = await asyncio.wait(tasks[:2])
        assert not pending
        total = sum(task.result() for task in done)
        for next_done in asyncio.as_completed(tasks[2:]):
            total = total + await next_done * x
        first, rest = await asyncio.wait(
            [asyncio.create_task(later(x, 1)), asyncio.create_task(later(x * 100.0, 50))],
            return_when=asyncio.FIRST_COMPLETED,
        )
        for task in rest:
            task.cancel()
        return total + sum(task.result() for task in first)

    # 3x + 7xx + x
    runs(main, 1.3, 4 + 14 * 1.3)


def test_gather_gives_exceptions_that_carry_values():
    async def fails(y):
        await asyncio.sleep(0)
        raise KeyError(y)

    async def main(x):
        good, bad = await asyncio.gather(later(x), fails(x * x), return_exceptions=True)
        return good + bad.args[0]

    runs(main, 1.3, 1 + 2.6)


def test_cancelled_tasks_clean_up():
    async def main(x):
        kept = []

        async def worker(y):
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                kept.append(y * y)
                raise
            finally:
                kept.append(y * 3.0)

        task = asyncio.create_task(worker(x))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        return sum(kept)

    runs(main, 1.3, 2.6 + 3)


@pytest.mark.skipif(not hasattr(asyncio, "TaskGroup"), reason="needs TaskGroup")
def test_task_groups_and_exception_groups():
    async def fails(y):
        raise ValueError(y)

    async def main(x):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(later(x * k)) for k in range(4)]
        total = sum(task.result() for task in tasks)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails(x * x))
                group.create_task(later(0.0, 10_000))
        except ExceptionGroup as several:
            total = total + several.exceptions[0].args[0]
        return total

    runs(main, 1.3, 6 + 2.6)


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="needs eager tasks")
def test_eager_tasks():
    async def main(x):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        ready = asyncio.create_task(later(x * x, 0))
        assert ready.done()
        return await ready + await asyncio.create_task(later(x * 3.0, 2))

    runs(main, 1.3, 2.6 + 3)


def test_a_task_class_of_the_user():
    class Counting(asyncio.Task):
        def __init__(self, coroutine, **options):
            super().__init__(coroutine, **options)
            self.gain = 1.0

        async def scaled(self):
            return await self * self.gain

    async def main(x):
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coroutine, **options: Counting(coroutine, loop=loop, **options))
        task = asyncio.create_task(later(x))
        assert type(task) is Counting
        task.gain = x * 5.0
        return await task.scaled()

    runs(main, 1.3, 13.0)


def test_tasks_and_futures_in_python_code():
    def f(x):
        loop = asyncio.new_event_loop()
        try:
            future = asyncio.futures._PyFuture(loop=loop)
            task = asyncio.tasks._PyTask(later(x * x), loop=loop)
            loop.call_soon(future.set_result, x * 3.0)
            return loop.run_until_complete(task) + loop.run_until_complete(future)
        finally:
            loop.close()

    check(f, 1.3, 2.6 + 3)


# Callbacks of the loop.


def test_callbacks_of_the_loop():
    async def main(x):
        loop = asyncio.get_running_loop()
        box, done = [], asyncio.Event()
        loop.call_soon(lambda k: box.append(x * k), 5.0)
        loop.call_soon(box.append, x)
        loop.call_at(loop.time(), functools.partial(box.append, x * 2.0))
        dropped = loop.call_later(1000, box.append, x * 1e9)
        dropped.cancel()
        loop.call_soon_threadsafe(lambda: box.append(x * x))
        loop.call_later(0.002, done.set)
        await done.wait()
        return sum(box)

    runs(main, 1.3, 5 + 1 + 2 + 2.6)


def test_how_long_is_nobodys_derivative():
    async def main(x):
        await asyncio.sleep(x * 1e-4)
        y = await asyncio.sleep(x * 1e-4, x * x)
        await asyncio.wait_for(later(None), x)
        return y

    runs(main, 1.3, 2.6)


def test_context_variables_of_tasks():
    rate = contextvars.ContextVar("rate", default=2.0)

    async def child(x):
        before = rate.get()
        rate.set(x * 5.0)
        await asyncio.sleep(0)
        return before * x + rate.get()

    async def main(x):
        rate.set(x)
        a = await asyncio.create_task(child(x))
        assert rate.get() is x, "a task changes its own context only"
        context = contextvars.copy_context()
        context.run(rate.set, x * 3.0)
        box = []
        asyncio.get_running_loop().call_soon(lambda: box.append(rate.get()), context=context)
        await asyncio.sleep(0)
        return a + box[0]

    # xx + 5x + 3x
    runs(main, 1.3, 2.6 + 8)


def test_the_interrupt_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    assert plaingrad.grad(lambda x: asyncio.run(later(x * x)))(1.5) == 3.0
    assert signal.getsignal(signal.SIGINT) is before


def test_debug_mode():
    async def main(x):
        return await asyncio.create_task(later(x * x))

    check(lambda x: asyncio.run(main(x), debug=True), 1.3, 2.6)


# Synchronisation.


def test_queues():
    async def main(x):
        queue, results = asyncio.Queue(maxsize=2), asyncio.PriorityQueue()

        async def produce():
            for k in range(5):
                await queue.put(x * k)
            await queue.put(None)

        async def consume():
            while (y := await queue.get()) is not None:
                results.put_nowait((-y, y * x))
                queue.task_done()
            queue.task_done()

        await asyncio.gather(produce(), consume())
        await queue.join()
        largest, last = results.get_nowait()
        stack = asyncio.LifoQueue()
        stack.put_nowait(1.0)
        stack.put_nowait(x * 3.0)
        return largest + last + await stack.get() * x

    # -4x + 4xx + 3xx
    runs(main, 1.3, -4 + 14 * 1.3)


def test_locks_events_conditions_semaphores():
    async def main(x):
        total = [0.0]
        lock, semaphore, condition, event = asyncio.Lock(), asyncio.Semaphore(2), asyncio.Condition(), asyncio.Event()

        async def add(y):
            async with semaphore, lock:
                before = total[0]
                await asyncio.sleep(0)
                total[0] = before + y

        async def wait():
            async with condition:
                await condition.wait_for(lambda: total[0] > 5.0 * x)
                event.set()
                return total[0] * x

        waiting = asyncio.create_task(wait())
        await asyncio.gather(*(add(x * k) for k in range(4)))
        async with condition:
            condition.notify_all()
        await event.wait()
        return await waiting

    # 6x x
    runs(main, 1.3, 12 * 1.3)


def test_timeouts():
    async def main(x):
        y = x
        try:
            await asyncio.wait_for(asyncio.sleep(1000), 0.001)
        except asyncio.TimeoutError:
            y = y * x
        if hasattr(asyncio, "timeout"):
            try:
                async with asyncio.timeout(0.001):
                    await asyncio.sleep(1000)
            except TimeoutError:
                y = y * x
        else:
            y = y * x
        return y

    runs(main, 1.3, 3 * 1.3**2)


# Generators and context managers.


def test_asynchronous_generators():
    async def numbers(x):
        k = 1.0
        try:
            while True:
                sent = yield x * k
                await asyncio.sleep(0)
                k = k + (sent or 1.0)
        finally:
            await asyncio.sleep(0)

    async def main(x):
        g = numbers(x)
        a = await anext(g)
        b = await g.asend(x)
        total = a + b
        async for y in g:
            total = total + y * y
            if total > 5.0:
                break
        await g.aclose()
        h = numbers(x)
        values = [y * x async for y in _first(h, 3)]
        with contextlib.suppress(KeyError):
            await h.athrow(KeyError(x))
        return total + sum(values) + sum([v async for v in _first(numbers(x), 2) if v]) + await anext(h, x)

    # x; k = 1 + x: (1 + x) x; k = 2 + x: ((2 + x) x)^2 = 18.4 ends it; 6xx; 3x; x
    x = 1.3
    slope = 1 + (1 + 2 * x) + 2 * (2 * x + x * x) * (2 + 2 * x) + 12 * x + 3 + 1
    runs(main, x, slope)


async def _first(g, n):
    for _ in range(n):
        yield await g.__anext__()


def test_asynchronous_context_managers():
    class Gate:
        def __init__(self, k):
            self.k = k

        async def __aenter__(self):
            await asyncio.sleep(0)
            return self.k * self.k

        async def __aexit__(self, *error):
            await asyncio.sleep(0)
            self.k = self.k * 2.0
            return error[0] is KeyError

    @contextlib.asynccontextmanager
    async def scaled(y, log):
        await asyncio.sleep(0)
        try:
            yield y * 3.0
        finally:
            log.append(y)

    async def main(x):
        log = []
        gate = Gate(x)
        async with gate as squared, scaled(x, log) as tripled:
            raise KeyError
        async with contextlib.AsyncExitStack() as stack:
            again = await stack.enter_async_context(scaled(x * x, log))
            stack.callback(log.append, x * 5.0)
            stack.push_async_callback(later, x)
        async with contextlib.aclosing(_first(_forever(x), 2)) as two:
            last = [v async for v in two]
        return squared + tripled + gate.k + again + sum(log) + sum(last)

    # xx + 3x + 2x + 3xx + (x + 5x + xx) + 2x
    runs(main, 1.3, 10 * 1.3 + 13)


async def _forever(x):
    while True:
        yield x


def test_coroutines_driven_by_hand():
    @types.coroutine
    def step(y):
        return (yield y * 2.0)

    async def double(x):
        a = await step(x)
        try:
            b = await step(a)
        except ValueError as error:
            b = error.args[0]
        return a * b

    def f(x):
        coroutine = double(x)
        assert inspect.iscoroutine(coroutine)
        assert coroutine.cr_code.co_name == "double"
        y = coroutine.send(None)
        z = coroutine.send(x * x)
        try:
            coroutine.throw(ValueError(x * 3.0))
        except StopIteration as stop:
            result = stop.value
        closed = double(x)
        closed.send(None)
        closed.close()
        return y + z + result

    # 2x + 2xx + 3xxx
    check(f, 1.3, 2 + 4 * 1.3 + 9 * 1.3**2)


def test_awaitables_of_the_user():
    class Ready:
        def __init__(self, y):
            self.y = y

        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return self.y * 3.0

    async def main(x):
        return await Ready(x) * await asyncio.ensure_future(_wrapped(Ready(x)))

    runs(main, 1.3, 18 * 1.3)


async def _wrapped(awaitable):
    return await awaitable


def test_what_inspect_says_is_what_it_says_of_plain_functions():
    async def g(x):
        return x

    async def h(x):
        yield x

    def f(x):
        assert inspect.iscoroutinefunction(g)
        assert inspect.isasyncgenfunction(h)
        assert not inspect.iscoroutinefunction(f)
        coroutine, generator = g(x), h(x)
        assert inspect.isawaitable(coroutine)
        assert inspect.isasyncgen(generator)
        assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
        y = asyncio.run(coroutine)
        assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
        return y * x

    check(f, 1.3, 2.6)


# Threads.


def test_work_in_other_threads():
    rate = contextvars.ContextVar("rate", default=1.0)

    async def main(x):
        loop = asyncio.get_running_loop()
        rate.set(x * 3.0)
        a = await asyncio.to_thread(lambda k: rate.get() * k, x)
        b = await loop.run_in_executor(None, lambda: x * rate.get())
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            c = sum(await asyncio.gather(*(loop.run_in_executor(pool, lambda k: x * x * k, k) for k in (1.0, 2.0))))
            d = await asyncio.wrap_future(pool.submit(lambda: x * 7.0))
        return a + b + c + d

    # 3xx; a worker's own context has the default: x; 3xx; 7x
    runs(main, 1.3, 6 * 1.3 + 1 + 6 * 1.3 + 7)


def test_a_loop_in_another_thread_of_the_program():
    async def double(x):
        await asyncio.sleep(0)
        return x * 2.0

    def f(x):
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            y = asyncio.run_coroutine_threadsafe(double(x * x), loop).result(10)
            box, done = [], threading.Event()
            loop.call_soon_threadsafe(lambda k: (box.append(x * k), done.set()), x)
            assert done.wait(10)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
        return y + box[0]

    check(f, 1.3, 6 * 1.3)


def test_a_loop_that_runs_in_a_thread_from_before_the_level():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def double(x):
        await asyncio.sleep(0)
        y = await asyncio.gather(later(x), later(x, 3))
        return y[0] + y[1]

    def f(x):
        future = asyncio.run_coroutine_threadsafe(double(x * x), loop)
        box, done = [], threading.Event()
        future.add_done_callback(lambda future: box.append(future.result() * x))
        y = future.result(10)

        def on_loop(k):
            box.append(x * k)
            made = asyncio.ensure_future(later(x * 5.0), loop=loop)
            made.add_done_callback(lambda made: (box.append(made.result() * x), done.set()))

        loop.call_soon_threadsafe(on_loop, x)
        assert done.wait(10)
        assert len(box) == 3
        return y + sum(box)

    try:
        # 2xx + 2xxx + xx + 5xx
        check(f, 1.3, 16 * 1.3 + 6 * 1.3**2)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


# Levels.


def test_derivatives_taken_inside_tasks():
    async def slope(x):
        await asyncio.sleep(0)
        g = plaingrad.grad(lambda y: y * y * x)(x)  # 2xx
        await asyncio.sleep(0)
        return g

    async def main(x):
        return sum(await asyncio.gather(*(slope(x * k) for k in (1.0, 2.0))))

    # 2xx + 8xx
    runs(main, 1.3, 20 * 1.3)


def test_an_event_loop_inside_a_derivative_inside_an_event_loop_in_a_thread():
    def cube(x):
        return asyncio.run(later(x * x)) * x

    def outer(x):
        return plaingrad.grad(cube)(x)

    check(outer, 1.3, 6 * 1.3)

    async def main():
        return await asyncio.gather(*(asyncio.to_thread(plaingrad.grad(cube), float(k)) for k in range(4)))

    assert asyncio.run(main()) == [0.0, 3.0, 12.0, 27.0]


def test_concurrent_levels_in_tasks_of_one_loop_do_not_meet():
    async def one(k):
        total = 0.0
        for _ in range(3):
            await asyncio.sleep(0)
            total += plaingrad.grad(lambda x: x * x * k)(2.0)
        return total

    async def main():
        return await asyncio.gather(*(one(float(k)) for k in range(5)))

    assert asyncio.run(main()) == [12.0 * k for k in range(5)]


def test_callbacks_left_on_a_loop_run_after_the_level_as_plain_python():
    loop = asyncio.new_event_loop()
    box = []

    def f(x):
        loop.call_soon(lambda: box.append(x * 3.0))
        task = loop.create_task(later(x * 2.0))
        task.add_done_callback(lambda task: box.append(task.result() * x))
        return x * x

    try:
        assert plaingrad.grad(f)(2.0) == 4.0
        assert box == []
        loop.run_until_complete(later(None, 5))
        assert sorted(box) == [6.0, 8.0]
        assert all(type(y) is float for y in box)
    finally:
        loop.close()


# What cannot be followed is refused.


def test_a_task_from_before_the_level_that_receives_an_active_value_is_refused():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    queue = asyncio.Queue()
    results = []

    async def consume():
        while (y := await queue.get()) is not None:
            results.append(y * 2.0)

    worker = loop.create_task(consume())

    def f(x):
        queue.put_nowait(x)
        loop.run_until_complete(later(None, 3))
        return results[0]

    try:
        loop.run_until_complete(later(None))
        with pytest.raises(plaingrad.PlaingradError, match="outside the differentiated call"):
            plaingrad.grad(f)(3.0)
    finally:
        worker.cancel()
        loop.run_until_complete(later(None, 2))
        asyncio.set_event_loop(None)
        loop.close()


def test_a_task_from_before_the_level_that_sees_nothing_active_runs():
    loop = asyncio.new_event_loop()
    ticks = []

    async def tick():
        while True:
            ticks.append(1.0)
            await asyncio.sleep(0)

    worker = loop.create_task(tick())

    def f(x):
        loop.run_until_complete(later(None, 3))
        return x * len(ticks)

    try:
        loop.run_until_complete(later(None))
        value, slope = plaingrad.value_and_grad(f)(2.0)
        assert value == 2.0 * slope == 2.0 * len(ticks)
    finally:
        worker.cancel()
        loop.run_until_complete(later(None, 2))
        loop.close()


def test_a_refusal_in_a_callback_ends_the_program_instead_of_being_logged(caplog):
    async def main(x):
        done = asyncio.Event()

        def callback():
            int(x * 1e300)
            done.set()

        asyncio.get_running_loop().call_soon(callback)
        await done.wait()
        return x

    with pytest.raises(plaingrad.RoundTripError):
        plaingrad.grad(lambda x: asyncio.run(main(x)))(1.5)


def test_a_refusal_in_a_task_is_raised_where_it_is_awaited():
    async def main(x):
        return await asyncio.create_task(fails(x))

    async def fails(x):
        return float(int(x * 1e300))

    with pytest.raises(plaingrad.RoundTripError):
        plaingrad.grad(lambda x: asyncio.run(main(x)))(1.5)


def test_nothing_is_kept_alive_when_the_loop_is_closed():
    class Token:
        pass

    seen = []

    async def main(x):
        token = Token()
        seen.append(weakref.ref(token))
        task = asyncio.create_task(later((token, x * x)))
        return (await task)[1]

    assert plaingrad.grad(lambda x: asyncio.run(main(x)))(1.5) == 3.0
    gc.collect()
    assert seen[0]() is None
