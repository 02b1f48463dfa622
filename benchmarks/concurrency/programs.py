"""Programs with tasks: a shape (which task needs what) times a way to run tasks in threads.

A shape takes `run`, which calls a list of functions and gives the list of what they return, and an array. With
`one_after_another` it is a program without threads, which takes complex arrays, too.
"""

import asyncio
import concurrent.futures
import multiprocessing.pool
import queue
import threading

import numpy as np

SIZE = 16  # of the array


def call(task):
    """What a task returns."""
    return task()


def one_after_another(tasks):
    """No threads."""
    return [task() for task in tasks]


# -- ways to run tasks ------------------------------------------------------------------------------------------------


def by_map(tasks):
    """`Executor.map`."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(call, tasks))


def by_submit(tasks):
    """`Executor.submit`."""
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


def by_completion(tasks):
    """`as_completed`: what is done first is met first."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        places = {pool.submit(task): k for k, task in enumerate(tasks)}
        found = {places[future]: future.result() for future in concurrent.futures.as_completed(places)}
    return [found[k] for k in range(len(tasks))]


def by_callbacks(tasks):
    """Futures that hand their results to callbacks, in the workers."""
    found = [None] * len(tasks)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for k, task in enumerate(tasks):
            pool.submit(task).add_done_callback(lambda future, k=k: found.__setitem__(k, future.result()))
    return found


def by_thread_pool(tasks):
    """`ThreadPool.map`."""
    with multiprocessing.pool.ThreadPool(2) as pool:
        return pool.map(call, tasks)


def by_imap(tasks):
    """`ThreadPool.imap`."""
    with multiprocessing.pool.ThreadPool(2) as pool:
        return list(pool.imap(call, tasks))


def by_apply(tasks):
    """`ThreadPool.apply_async`."""
    with multiprocessing.pool.ThreadPool(2) as pool:
        return [result.get() for result in [pool.apply_async(task) for task in tasks]]


def by_hand(tasks):
    """A thread for each, which puts its result into a list."""
    found = [None] * len(tasks)

    def put(k, task):
        found[k] = task()

    join([threading.Thread(target=put, args=given) for given in enumerate(tasks)])
    return found


def by_queues(tasks):
    """Two threads that take tasks from one queue and put results into another."""
    left, right = queue.Queue(), queue.Queue()
    for given in enumerate(tasks):
        left.put(given)

    def work():
        while True:
            try:
                k, task = left.get_nowait()
            except queue.Empty:
                return
            right.put((k, task()))

    join([threading.Thread(target=work) for _ in range(2)])
    found = dict([right.get() for _ in tasks])
    return [found[k] for k in range(len(tasks))]


def by_to_thread(tasks):
    """`asyncio.to_thread`."""

    async def main():
        return await asyncio.gather(*[asyncio.to_thread(task) for task in tasks])

    return list(asyncio.run(main()))


def by_run_in_executor(tasks):
    """`run_in_executor` of an event loop."""

    async def main():
        loop = asyncio.get_running_loop()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return await asyncio.gather(*[loop.run_in_executor(pool, task) for task in tasks])

    return list(asyncio.run(main()))


def by_wait(tasks):
    """`concurrent.futures.wait`, for one after another."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        places = {pool.submit(task): k for k, task in enumerate(tasks)}
        found, left = {}, set(places)
        while left:
            done, left = concurrent.futures.wait(left, return_when=concurrent.futures.FIRST_COMPLETED)
            found.update({places[future]: future.result() for future in done})
    return [found[k] for k in range(len(tasks))]


def by_starmap(tasks):
    """`ThreadPool.starmap`, of more than one task at a time."""
    with multiprocessing.pool.ThreadPool(2) as pool:
        return pool.starmap(call, [(task,) for task in tasks], chunksize=2)


def by_unordered(tasks):
    """`ThreadPool.imap_unordered`: in the order of arrival."""
    with multiprocessing.pool.ThreadPool(2) as pool:
        found = dict(pool.imap_unordered(numbered, list(enumerate(tasks))))
    return [found[k] for k in range(len(tasks))]


def numbered(given):
    """A number, and what the task of this number returns."""
    return given[0], given[1]()


def by_condition(tasks):
    """A thread for each, which tells by a condition that its result is there."""
    found, changed = {}, threading.Condition()

    def put(k, task):
        value = task()
        with changed:
            found[k] = value
            changed.notify_all()

    threads = [threading.Thread(target=put, args=given) for given in enumerate(tasks)]
    for thread in threads:
        thread.start()
    with changed:
        changed.wait_for(lambda: len(found) == len(tasks))
    for thread in threads:
        thread.join()
    return [found[k] for k in range(len(tasks))]


def join(threads):
    """Start threads, and wait for all."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# -- shapes -----------------------------------------------------------------------------------------------------------


def parts(a, n):
    """Views of equal parts of `a`."""
    size = len(a) // n
    return [a[k * size : (k + 1) * size] for k in range(n)]


def work(a):
    """sin(a) a, summed."""
    return (np.sin(a) * a).sum()


def fan(run, a):
    """Tasks that know nothing of one another."""
    return sum(run([lambda part=part: work(part) for part in parts(a, 4)]))


def tree(run, a):
    """Results are combined in pairs, by tasks."""
    values = run([lambda part=part: work(part) for part in parts(a, 4)])
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = run([lambda u=u, v=v: u * v + u for u, v in pairs])
    return values[0]


def stages(run, a):
    """Each task of a second stage reads what two of the first have made."""
    made = run([lambda part=part: np.sin(part) * part for part in parts(a, 4)])
    return sum(run([lambda k=k: (made[k] * made[k - 1]).sum() for k in range(4)]))


def tasks_of_tasks(run, a):
    """Tasks that have tasks."""
    return sum(run([lambda half=half: fan(run, half) * 2.0 for half in parts(a, 2)]))


def shared(run, a):
    """All tasks read one array and one number."""
    total, turned = (a * a).sum(), np.cos(a)
    return sum(run([lambda k=k: (turned * a[k] + total).sum() for k in range(4)]))


def chain(run, a):
    """Each task needs the result of the one before."""
    value = a[0] * 2.0
    for part in parts(a, 4):
        value = run([lambda part=part, value=value: (part * value).sum() * 0.25 + value])[0]
    return value


def scattered(run, a):
    """Tasks that write into parts of one array."""
    out = np.zeros(len(a), a.dtype)

    def put(part, at):
        at[...] = np.sin(part) * part

    run([lambda given=given: put(*given) for given in zip(parts(a, 4), parts(out, 4), strict=True)])
    return (out * a).sum()


WAYS = [
    by_map,
    by_submit,
    by_completion,
    by_callbacks,
    by_thread_pool,
    by_imap,
    by_apply,
    by_hand,
    by_queues,
    by_to_thread,
    by_run_in_executor,
    by_wait,
    by_starmap,
    by_unordered,
    by_condition,
]
SHAPES = [fan, tree, stages, tasks_of_tasks, shared, chain, scattered]
