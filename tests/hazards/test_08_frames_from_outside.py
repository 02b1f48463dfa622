"""Hazard 8: frames that began outside the level: generators, coroutines, workers of pools made before it."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import queue
import threading

import pytest
from cases_b import check

import plaingrad

REFUSALS = (plaingrad.MissingRuleError, plaingrad.PlaingradError)


def right_or_refused(f, x, slope):
    """Never silently wrong; a refusal may be any of our errors, but ours and clear."""
    try:
        value, ours = plaingrad.value_and_grad(f)(x)
    except plaingrad.PlaingradError as refusal:
        assert len(str(refusal)) > 40
    else:
        assert ours == pytest.approx(slope, rel=1e-12)


def test_send_of_an_active_number_into_a_generator_made_before_is_refused():
    def scale():
        y = 0.0
        while True:
            y = (yield y * 2.0) or 0.0

    g = scale()
    next(g)
    with pytest.raises(plaingrad.PlaingradError):
        plaingrad.grad(lambda x: g.send(x))(3.0)


def test_throw_of_an_active_number_into_a_generator_made_before_is_refused():
    def catch():
        y = 0.0
        while True:
            try:
                yield y
            except ValueError as error:
                y = error.args[0] * 2.0

    g = catch()
    next(g)
    right_or_refused(lambda x: g.throw(ValueError(x)), 3.0, 2.0)


def test_a_generator_made_before_that_sees_active_values_through_a_cell_is_right_or_refused():
    box = [0.0]

    def numbers():
        while True:
            yield box[0] * box[0]

    g = numbers()
    next(g)

    def f(x):
        box[0] = x
        return next(g)

    right_or_refused(f, 3.0, 6.0)


SHARED = 1.0


def test_a_generator_made_before_that_reads_a_global_is_right_or_refused():
    def numbers():
        while True:
            yield SHARED * 2.0

    g = numbers()
    next(g)

    def f(x):
        global SHARED
        SHARED = x
        return next(g)

    right_or_refused(f, 3.0, 2.0)


def test_a_generator_made_before_that_sees_an_object_is_right_or_refused():
    class Box:
        v = 1.0

    box = Box()

    def numbers(b):
        while True:
            yield b.v * 3.0

    g = numbers(box)

    def f(x):
        box.v = x
        return next(g) + sum(v for v, _ in zip(g, range(2)))

    right_or_refused(f, 3.0, 9.0)


def test_a_generator_made_before_that_has_nothing_to_do_with_the_input_runs():
    def numbers():
        for i in range(100):
            yield float(i)

    g = numbers()
    next(g)
    assert plaingrad.value_and_grad(lambda x: x * next(g))(3.0) == (3.0, 1.0)
    assert plaingrad.value_and_grad(lambda x: x * sum(v for v, _ in zip(g, range(2))))(3.0) == (15.0, 5.0)


def test_a_generator_expression_made_before_over_a_list_that_becomes_active():
    items = [1.0, 2.0]
    g = (v * 2.0 for v in items)

    def f(x):
        items[0] = x
        items[1] = x * x
        return sum(g)

    right_or_refused(f, 3.0, 2.0 + 12.0)


def test_map_zip_and_enumerate_objects_made_before_over_active_items():
    items = [1.0, 2.0]
    m = map(lambda v: v * 5.0, items)

    def f(x):
        items[0] = x
        return next(m) * x

    right_or_refused(f, 3.0, 30.0)


def test_a_context_manager_generator_entered_before_and_left_inside():
    box = [1.0]

    @contextlib.contextmanager
    def manage():
        yield
        box.append(box[0] * 3.0)

    manager = manage()
    manager.__enter__()

    def f(x):
        box[0] = x
        manager.__exit__(None, None, None)
        return box[1]

    right_or_refused(f, 3.0, 3.0)


def test_a_generator_made_in_one_gradient_and_advanced_in_the_next():
    kept = []

    def numbers(x):
        y = x
        while True:
            y = y * x
            yield y

    def first(x):
        kept.append(numbers(x))
        return next(kept[0])

    assert plaingrad.grad(first)(3.0) == 6.0
    # its x is a plain number now: 27 on the second pull
    assert plaingrad.value_and_grad(lambda x: x * next(kept[0]))(2.0) == (54.0, 27.0)
    assert next(kept[0]) == 81.0


def test_a_generator_made_in_a_gradient_and_advanced_plainly():
    kept = []

    def numbers(x):
        while True:
            sent = yield x * 2.0
            x = x * (sent or 1.0)

    def f(x):
        kept.append(numbers(x))
        return next(kept[0])

    assert plaingrad.grad(f)(3.0) == 2.0
    assert kept[0].send(5.0) == 30.0
    assert type(next(kept[0])) is float


def test_a_worker_of_a_pool_made_before_runs_submitted_work_at_the_level():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert pool.submit(lambda: 1).result() == 1  # a worker exists now

        def f(x):
            futures = [pool.submit(lambda k: x * x * k, float(k)) for k in range(4)]
            return sum(future.result() for future in futures) + sum(pool.map(lambda v: v * 2.0, [x, x * x]))

        check(f, 1.5, 12 * 1.5 + 2 + 4 * 1.5)


def test_done_callbacks_of_futures_run_at_the_level():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:

        def f(x):
            box = []
            done = threading.Event()
            future = pool.submit(lambda: x * x)
            future.add_done_callback(lambda future: (box.append(future.result() * x), done.set()))
            assert done.wait(10)
            return box[0]

        check(f, 1.5, 3 * 1.5**2)


def test_timers_and_run_in_executor_and_call_soon_bind_their_callables():
    def by_timer(x):
        box = []
        timer = threading.Timer(0.001, lambda k: box.append(x * k), args=(x,))
        timer.start()
        timer.join()
        return box[0]

    check(by_timer, 1.5, 3.0)

    async def main(x):
        loop = asyncio.get_running_loop()
        box, done = [], asyncio.Event()
        loop.call_soon(lambda k: box.append(x * k), 5.0)
        loop.call_later(0.001, lambda: (box.append(x * x), done.set()))
        y = await loop.run_in_executor(None, lambda: x * 7.0)
        z = await asyncio.to_thread(lambda k: x * k, x)
        await done.wait()
        return y + z + sum(box)

    check(lambda x: asyncio.run(main(x)), 1.5, 7 + 2 * 1.5 + 5 + 2 * 1.5)


def test_a_loop_made_before_the_level_runs_coroutines_at_it():
    loop = asyncio.new_event_loop()

    async def double(x):
        await asyncio.sleep(0)
        return x * 2.0

    try:
        assert loop.run_until_complete(double(1.0)) == 2.0
        check(lambda x: loop.run_until_complete(double(x * x)), 1.5, 4 * 1.5)
    finally:
        loop.close()


def test_a_context_copied_before_the_level():
    context = contextvars.copy_context()
    check(lambda x: contextvars.copy_context().run(lambda: x * x), 1.5, 3.0)
    right_or_refused(lambda x: context.run(lambda: x * x), 1.5, 3.0)
    right_or_refused(lambda x: contextvars.Context().run(lambda v: v * v, x), 1.5, 3.0)


def test_context_variables_of_the_user_carry_active_values():
    rate = contextvars.ContextVar("rate", default=2.0)

    def f(x):
        token = rate.set(x * 3.0)
        y = rate.get() * x
        rate.reset(token)
        return y + rate.get() * x

    check(f, 1.5, 6 * 1.5 + 2)


def test_a_coroutine_made_before_the_level():
    box = [1.0]

    async def main():
        return box[0] * box[0]

    coroutine = main()

    def f(x):
        box[0] = x
        return asyncio.run(coroutine)

    try:
        right_or_refused(f, 3.0, 6.0)
    finally:
        coroutine.close()


def test_a_hand_made_worker_that_began_before_the_level_never_gives_a_silent_zero():
    # A bare queue of callables to a thread from outside is a documented limit: what is promised is no more than that
    # functions handed over as values of a plain call still work.
    work, done = queue.Queue(), queue.Queue()

    def serve():
        while (job := work.get()) is not None:
            done.put(job())

    thread = threading.Thread(target=serve)
    thread.start()
    try:

        def f(x):
            work.put(lambda: 5.0)
            return done.get() * x

        check(f, 1.5, 5.0)
    finally:
        work.put(None)
        thread.join()
