"""Concurrent programs in many styles: reverse, forward and second derivatives, against differences of plain calls."""

import asyncio
import collections
import contextlib
import contextvars
import functools
import math
import queue
import threading
import weakref
from concurrent import futures
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest

import plaingrad

CONTEXT = contextvars.ContextVar("CONTEXT")


def taskgroup(x):

    async def worker(k, q):
        await asyncio.sleep(0)
        await q.put((k, math.sin(x * k)))

    async def main():
        q = asyncio.Queue(2)
        tot = 0.0

        async def drain():
            nonlocal tot
            while (it := (await q.get())) is not None:
                tot += it[1] * it[0]
        async with asyncio.TaskGroup() as tg:
            d = tg.create_task(drain())
            async with asyncio.TaskGroup() as tg2:
                for k in range(1, 6):
                    tg2.create_task(worker(k, q))
            await q.put(None)
        return tot
    return asyncio.run(main())


def pipeline_threads(x):

    def stage(f, a, b):
        for v in iter(a.get, None):
            b.put(f(v))
        b.put(None)
    qs = [queue.Queue(1) for _ in range(4)]
    ts = [threading.Thread(target=stage, args=(f, qs[i], qs[i + 1])) for i, f in enumerate([math.sin, lambda v: v * v + x, math.exp])]
    for t in ts:
        t.start()

    def feed():
        for k in range(5):
            qs[0].put(x * k)
        qs[0].put(None)
    ft = threading.Thread(target=feed)
    ft.start()
    s = 0.0
    for v in iter(qs[3].get, None):
        s += v
    for t in ts + [ft]:
        t.join()
    return s


def condition(x):
    c = threading.Condition()
    box = []
    out = []

    def prod():
        for k in range(4):
            with c:
                c.wait_for(lambda: not box)
                box.append(x ** (k + 1))
                c.notify_all()

    def cons():
        for k in range(4):
            with c:
                c.wait_for(lambda: box)
                out.append(box.pop())
                c.notify_all()
    ts = [threading.Thread(target=prod), threading.Thread(target=cons)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return sum(out)


def barrier_jacobi(x):
    n = 4
    u = [x * k for k in range(n)]
    v = [0.0] * n
    b = threading.Barrier(n)

    def w(i):
        nonlocal u, v
        for it in range(3):
            v[i] = 0.5 * (u[i - 1] + u[(i + 1) % n]) * math.cos(u[i])
            if b.wait() == 0:
                u, v = (v, u)
            b.wait()
    ts = [threading.Thread(target=w, args=(i,)) for i in range(n)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return sum((ui * ui for ui in u))


def semaphore(x):
    s = threading.BoundedSemaphore(2)
    lock = threading.Lock()
    acc = {}

    def w(k):
        with s:
            val = math.tanh(x * k)
            with lock:
                acc[k] = val
    with futures.ThreadPoolExecutor(4) as ex:
        list(ex.map(w, range(8)))
    return sum((acc[k] for k in sorted(acc)))


def threadlocal(x):
    loc = threading.local()

    def init():
        loc.scale = x * 2

    def w(k):
        if not hasattr(loc, 'n'):
            loc.n = 0.0
        return loc.scale * k
    with futures.ThreadPoolExecutor(2, initializer=init) as ex:
        return sum(ex.map(w, range(6)))


def callbacks(x):
    out = []

    def w(k):
        if k == 2:
            raise ValueError(x * k)
        return x ** k

    def cb(fut):
        out.append(fut.exception().args[0] if fut.exception() else fut.result() * 2)
    with futures.ThreadPoolExecutor(3) as ex:
        for k in range(5):
            ex.submit(w, k).add_done_callback(cb)
    return math.fsum(out)


def context_variables(x):
    CONTEXT.set(x)

    def w():
        y = CONTEXT.get()
        CONTEXT.set(y * 3)
        return CONTEXT.get() * y
    ctxs = [contextvars.copy_context() for _ in range(3)]
    with futures.ThreadPoolExecutor(2) as ex:
        r = [ex.submit(c.run, w).result() for c in ctxs]
    return sum(r) + sum((c[CONTEXT] for c in ctxs)) + CONTEXT.get()


def nested_pools(x):

    def inner(k):
        return math.sin(k * x)

    def outer(k):
        with futures.ThreadPoolExecutor(2) as ex:
            return sum(ex.map(inner, [k, k + 1])) * x
    with futures.ThreadPoolExecutor(2) as ex:
        return sum(ex.map(outer, range(3)))


def generator_across(x):

    def gen():
        s = x
        while True:
            r = (yield (s * s))
            s = s + (r if r is not None else 0.1) * x
    g = gen()
    first = next(g)
    lk = threading.Lock()
    out = [first]

    def w(k):
        with lk:
            out.append(g.send(0.3))
    ts = [threading.Thread(target=w, args=(k,)) for k in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return sum(out)


def priority(x):
    q = queue.PriorityQueue()

    def w(k):
        q.put((math.cos(x * k), k, x * k))
    ts = [threading.Thread(target=w, args=(k,)) for k in range(6)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    s = 0.0
    n = 0
    while not q.empty():
        p, k, v = q.get()
        n += 1
        s += p * v * n
    return s


def weakrefs(x):

    class Node:

        def __init__(self, v):
            self.v = v
    wd = weakref.WeakValueDictionary()
    keep = []
    wk = weakref.WeakKeyDictionary()

    def w(k):
        n = Node(x ** k)
        keep.append(n)
        wd[k] = n
        wk[n] = x * k
    ts = [threading.Thread(target=w, args=(k,)) for k in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return sum((wd[k].v * wk[wd[k]] for k in range(4)))


def lock_across_yield(x):
    lk = threading.RLock()

    @contextlib.contextmanager
    def held(st):
        with lk:
            yield st
            st['s'] = st['s'] * 1.5
    st = {'s': x}

    def w(k):
        with held(st) as d:
            d['s'] = d['s'] + math.sin(x) * 0.1
    ts = [threading.Thread(target=w, args=(k,)) for k in range(5)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return st['s']


def async_to_thread_gather(x):

    async def one(k):
        return await asyncio.to_thread(lambda: math.exp(-x * k))

    async def main():
        r = await asyncio.gather(*[one(k) for k in range(4)])
        try:
            async with asyncio.timeout(5):
                r2 = await asyncio.wait_for(one(7), 5)
        finally:
            pass
        return sum(r) + r2
    return asyncio.run(main())


def futures_by_hand(x):
    f = futures.Future()
    f2 = futures.Future()

    def w():
        f.set_result(x * x)

    def w2():
        f2.set_result(f.result() * x)
    ts = [threading.Thread(target=w2), threading.Thread(target=w)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return f2.result() + f.result()


def timer_event(x):
    ev = threading.Event()
    box = []

    def fire(a, b=0):
        box.append(a * b)
        ev.set()
    t = threading.Timer(0.001, fire, (x,), {'b': x * x})
    t.start()
    ev.wait()
    t.join()
    return box[0]


def lru_shared(x):

    @functools.lru_cache(None)
    def g(k):
        return x ** k
    with futures.ThreadPoolExecutor(3) as ex:
        return sum(ex.map(g, [1, 2, 3, 1, 2, 3]))


def numpy_shared_writes(x):
    a = np.zeros(8)

    def w(i):
        a[i::4] += np.arange(2) * x + x * x
    with futures.ThreadPoolExecutor(4) as ex:
        list(ex.map(w, range(4)))
    return float(np.sum(a ** 2))


def deque_workers(x):
    d = collections.deque([x * k for k in range(10)])
    out = []

    def w():
        while True:
            try:
                v = d.popleft()
            except IndexError:
                return
            out.append(v * v)
    ts = [threading.Thread(target=w) for _ in range(3)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return math.fsum(out)


def async_gen_pipeline(x):

    async def src():
        for k in range(4):
            await asyncio.sleep(0)
            yield (x * k)

    async def sq(it):
        async for v in it:
            yield (v * v * x)

    async def main():
        tot = 0.0
        async with contextlib.aclosing(sq(src())) as it:
            async for v in it:
                tot += v
        return tot
    with asyncio.Runner() as r:
        return r.run(main())


def excgroup(x):

    async def bad(k):
        raise ValueError(x ** k)
    got = []

    async def m2():
        try:
            async with asyncio.TaskGroup() as tg:
                for k in range(1, 4):
                    tg.create_task(bad(k))
        except* ValueError as eg:
            got.extend((e.args[0] for e in eg.exceptions))
    asyncio.run(m2())
    return sum(got)


def as_completed_wait(x):
    with futures.ThreadPoolExecutor(3) as ex:
        fs = {ex.submit(pow, x, k): k for k in range(5)}
        s = math.fsum((f.result() * fs[f] for f in futures.as_completed(fs)))
        f = ex.submit(lambda: x)
        d, nd = futures.wait([f], return_when=futures.FIRST_COMPLETED)
        return s + d.pop().result()


def threadpool_imap(x):
    with ThreadPool(3) as p:
        s = math.fsum(p.imap_unordered(lambda k: x ** k, range(6), chunksize=2))
        r = p.map_async(lambda k: x * k, range(3)).get()
        return s + sum(r) + p.apply(math.sin, (x,))


def run_coroutine_threadsafe(x):
    loop = asyncio.new_event_loop()
    t = threading.Thread(target=loop.run_forever)
    t.start()

    async def g(k):
        await asyncio.sleep(0.001)
        return x ** k
    fs = [asyncio.run_coroutine_threadsafe(g(k), loop) for k in range(4)]
    s = sum((f.result() for f in fs))
    loop.call_soon_threadsafe(loop.stop)
    t.join()
    loop.close()
    return s


def greenlike_scheduler(x):

    def task(n):
        s = 0.0
        for k in range(n):
            s += (yield (x * k))
        return s
    ready = collections.deque(((task(n), None) for n in (2, 3, 4)))
    tot = 0.0

    def runner():
        nonlocal tot
        while True:
            try:
                g, v = ready.popleft()
            except IndexError:
                return
            try:
                r = g.send(v)
            except StopIteration as e:
                tot += e.value
            else:
                ready.append((g, r * x))
    t = threading.Thread(target=runner)
    t.start()
    t.join()
    return tot


def raise_in_thread_excinfo(x):
    out = []

    def w(k):
        try:
            try:
                raise KeyError(x * k)
            except KeyError as e:
                raise RuntimeError('r', x) from e
        except RuntimeError as e:
            out.append(e.__cause__.args[0] * e.args[1])
    ts = [threading.Thread(target=w, args=(k,)) for k in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return math.fsum(out)


def shutdown_cancel(x):
    ex = futures.ThreadPoolExecutor(1)
    ev = threading.Event()
    f = ex.submit(lambda: (ev.wait(), x * x)[1])
    g = ex.submit(lambda: x ** 3)
    g.cancel()
    ev.set()
    ex.shutdown(wait=True, cancel_futures=True)
    return f.result() + (0.0 if g.cancelled() else g.result())


def async_lock_cond(x):

    async def main():
        lk = asyncio.Lock()
        cond = asyncio.Condition(lk)
        st = {'v': x}
        bar = asyncio.Barrier(3)

        async def w(k):
            await bar.wait()
            async with cond:
                st['v'] = st['v'] * 1.1 + x
                cond.notify_all()
        await asyncio.gather(*[w(k) for k in range(3)])
        return st['v']
    return asyncio.run(main())


def local_subclass(x):

    class L(threading.local):

        def __init__(self, v):
            self.v = v
    l = L(x * x)
    out = []

    def w(k):
        l.v = l.v * k
        out.append(l.v)
    ts = [threading.Thread(target=w, args=(k,)) for k in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return math.fsum(out) + l.v


PROGRAMS = [
    taskgroup,
    pipeline_threads,
    condition,
    barrier_jacobi,
    semaphore,
    threadlocal,
    callbacks,
    context_variables,
    nested_pools,
    generator_across,
    priority,
    weakrefs,
    lock_across_yield,
    async_to_thread_gather,
    futures_by_hand,
    timer_event,
    lru_shared,
    numpy_shared_writes,
    deque_workers,
    async_gen_pipeline,
    excgroup,
    as_completed_wait,
    threadpool_imap,
    run_coroutine_threadsafe,
    greenlike_scheduler,
    raise_in_thread_excinfo,
    shutdown_cancel,
    async_lock_cond,
    local_subclass,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_has_the_derivatives_of_its_differences(program):
    x, h, wide = 0.7, 1e-5, 1e-3
    y = program(x)
    slope = (program(x + h) - program(x - h)) / (2.0 * h)
    second = (program(x + wide) - 2.0 * y + program(x - wide)) / wide**2
    for _ in range(2):
        value, found = plaingrad.value_and_grad(program)(x)
        assert value == pytest.approx(y, rel=1e-14)
        assert found == pytest.approx(slope, rel=1e-6)
    assert plaingrad.jvp(program, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-6)
    assert plaingrad.derivative(plaingrad.grad(program))(x) == pytest.approx(second, rel=1e-3, abs=1e-3)
