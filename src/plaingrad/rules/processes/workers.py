"""Where a task runs again: the pool that ran it, or, where that has been closed, another like it."""

from __future__ import annotations

import concurrent.futures
import math
import os
import threading
import types
import weakref
from typing import Any

from plaingrad import rulebook
from plaingrad.define import mover
from plaingrad.errors import ArgumentError
from plaingrad.rulebook import Rule
from plaingrad.rules.processes.lines import ARE_POSSIBLE

_of_pools: weakref.WeakKeyDictionary[Any, Workers] = weakref.WeakKeyDictionary()


class Workers:
    """The processes for the derivatives of tasks of one pool.

    A pool is mostly closed before the way back begins. The one made in its place has as many workers, made in the same
    way; it lives until nobody can need it: as long as a task that is recorded, and as the program's own pool.
    """

    __slots__ = ("__weakref__", "_again", "_hold", "_made", "_pool", "by_value", "is_held", "most", "most_bytes")

    is_cluster = False

    def __init__(self, pool: Any) -> None:
        self.by_value = pickler_of(pool)
        self._pool = weakref.ref(pool)
        self._again = recipe_of(pool)
        self._made: Any = None
        self.most = most_seconds()
        self.most_bytes = most_of_tapes() if keeps_tapes(pool) else 0
        self.is_held = False
        self._hold: Any = lambda: None

    def hold(self) -> Hold:
        """What keeps the program's pool from ending while somebody holds it."""
        found = self._hold()
        if found is None:
            found = Hold()
            self._hold = weakref.ref(found)
        return found

    def keep_open(self) -> bool:
        """Let the pool, which the program shuts down, end when no task needs its tape; False: none does now.

        As in a shutdown all tasks are waited for, and what is called when they are done.
        """
        pool, hold = self._pool(), self._hold()
        if pool is None or hold is None or not is_open(pool) or self.is_held:
            return self.is_held
        if pool._executor_manager_thread is threading.current_thread():
            return False  # the thread that would be waited for
        try:
            while begun := [item.future for item in list(pool._pending_work_items.values())]:
                concurrent.futures.wait(begun)
            pool.submit(abs, 0).result()  # done after what follows the others
        except Exception:  # a worker has ended
            return False
        self.is_held = True
        weakref.finalize(hold, close_held, os.getpid(), pool).atexit = False
        return True

    def pool(self, meanwhile: bool) -> Any:
        """The pool, or one in its place: where it is closed, or where the program's own tasks run `meanwhile`.

        These have callbacks, which run in the thread that handles the pool's results: such a callback may wait for the
        derivative of the task.
        """
        pool = self._pool()
        if not meanwhile and pool is not None and not self.is_held and is_open(pool):
            return pool
        if self._made is None or not is_open(self._made):
            make, close = self._again
            self._made = make()
            weakref.finalize(self, close, self._made)
        return self._made

    def begin(self, f: Any, args: tuple[Any, ...], meanwhile: bool) -> Any:
        """Begin f(*args) in a worker."""
        pool = opened(self, meanwhile)
        return pool.submit(f, *args) if hasattr(pool, "submit") else pool.apply_async(f, args)

    def wait(self, running: Any, task: Any) -> Any:
        """What came of it."""
        try:
            return running.result(self.most) if hasattr(running, "result") else running.get(self.most)
        except Exception as error:
            say_where(error, task)
            raise


class Hold:
    """Held by the tasks of a pool whose tapes its workers keep."""

    __slots__ = ("__weakref__",)


class DaskWorkers(Workers):
    """The workers of a Dask client, which computes again what a lost worker had."""

    __slots__ = ()

    is_cluster = True

    def __init__(self, client: Any) -> None:
        self.by_value = "cloudpickle"
        self._pool = weakref.ref(client)
        self.most = most_seconds()
        self.most_bytes = 0
        self.is_held = False

    def pool(self, meanwhile: bool) -> Any:
        """The client."""
        client = self._pool()
        if client is None or client.status != "running":
            raise RuntimeError("the Dask client that has run a task is closed, and its derivative cannot be computed")
        return client

    def begin(self, f: Any, args: tuple[Any, ...], meanwhile: bool) -> Any:
        """Begin f(*args) in a worker."""
        return opened(self, meanwhile).submit(f, *args, pure=False)


class RayWorkers(Workers):
    """The workers of Ray, which runs a task again whose worker is lost."""

    __slots__ = ()

    is_cluster = True

    def __init__(self, ray: Any) -> None:
        self.by_value = "cloudpickle"
        self._pool = weakref.ref(ray)
        self.most = most_seconds()
        self.most_bytes = 0
        self.is_held = False

    def pool(self, meanwhile: bool) -> Any:
        """The module."""
        return self._pool()

    def begin(self, f: Any, args: tuple[Any, ...], meanwhile: bool) -> Any:
        """Begin f(*args) in a worker."""
        return opened(self, meanwhile).remote(f).remote(*args)

    def wait(self, running: Any, task: Any) -> Any:
        """What came of it."""
        try:
            return opened(self, False).get(running, timeout=self.most)
        except Exception as error:
            say_where(error, task)
            raise


def most_seconds() -> float | None:
    """How long to wait for the derivative of a task, as the environment says; None: for ever."""
    given = os.environ.get("PLAINGRAD_TASK_TIMEOUT")
    if not given:
        return None
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not seconds > 0.0:  # nan, too
        raise ArgumentError(
            f"PLAINGRAD_TASK_TIMEOUT={given!r} is no number of seconds above 0.\n  See docs: errors#argument"
        )
    return None if seconds == math.inf else seconds


def keeps_tapes(pool: Any) -> bool:
    """Whether the workers of a pool may keep tapes: they can be asked, and live as long as the pool."""
    is_executor = type(pool).__module__ == "concurrent.futures.process"
    return ARE_POSSIBLE and is_executor and getattr(pool, "_max_tasks_per_child", None) is None


def most_of_tapes() -> int:
    """How many bytes the memory of a worker may grow by for the tapes that it keeps, as the environment says."""
    given = os.environ.get("PLAINGRAD_TASK_TAPES") or "512"
    if not given.isdecimal():
        raise ArgumentError(
            f"PLAINGRAD_TASK_TAPES={given!r} is no number of megabytes.\n  See docs: errors#argument"
        )
    return int(given) * 1_000_000


def opened(workers: Workers, meanwhile: bool) -> Any:
    """An open pool of workers. It is made outside of every level, for the threads that serve it are nobody's."""
    return workers.pool(meanwhile)


def opened_further_out(order: int, workers: Workers, meanwhile: bool) -> Any:
    """The same one level out, and so on."""
    return opened(workers, meanwhile)


def say_where(error: BaseException, task: Any) -> None:
    """Note on an error which task it is about."""
    name = getattr(task.f, "__qualname__", None) or repr(task.f)
    error.add_note(f"for the derivative of the task `{name}`, begun {task.where}, in another process")


def workers_of(pool: Any) -> Workers:
    """The workers for the tasks of a pool."""
    found = _of_pools.get(pool)
    if found is None:
        kind = DaskWorkers if type(pool).__module__.startswith("distributed.") else Workers
        kind = RayWorkers if isinstance(pool, types.ModuleType) else kind
        found = _of_pools[pool] = kind(pool)
    return found


def is_lokys(pool: Any) -> bool:
    """Whether a pool is one of loky's, which joblib uses."""
    return hasattr(pool, "_flags")


def pickler_of(pool: Any) -> str:
    """The package by which functions without a name travel, too; empty: they do not."""
    if is_lokys(pool):
        return "cloudpickle"
    return "dill" if type(pool).__module__.startswith("multiprocess.") else ""


def is_open(pool: Any) -> bool:
    """Whether a pool takes tasks."""
    if is_lokys(pool):
        return not pool._flags.shutdown and pool._flags.broken is None
    if hasattr(pool, "submit"):
        return not pool._shutdown_thread and not pool._broken
    return pool._state == "RUN"


def recipe_of(pool: Any) -> Any:
    """Two functions: one makes a pool like this one, one closes what it has made."""
    if is_lokys(pool):
        base = next(cls for cls in type(pool).__mro__ if cls.__name__ == "ProcessPoolExecutor")
        count, start = pool._max_workers, (pool._initializer, pool._initargs)
        context, env = pool._context, pool._env
        return (lambda: base(count, context=context, initializer=start[0], initargs=start[1], env=env)), close_executor
    if hasattr(pool, "submit"):
        from concurrent.futures import ProcessPoolExecutor  # its subclasses may be made in other ways

        options = {"mp_context": pool._mp_context, "initializer": pool._initializer, "initargs": pool._initargs}
        most = getattr(pool, "_max_tasks_per_child", None)
        if most is not None:
            options["max_tasks_per_child"] = most
        count = pool._max_workers
        return (lambda: ProcessPoolExecutor(count, **options)), close_executor
    count, initializer, initargs, most = (
        pool._processes,
        pool._initializer,
        pool._initargs,
        pool._maxtasksperchild,
    )
    context = pool._ctx
    return (lambda: context.Pool(count, initializer, initargs, most)), close_pool


def close_executor(pool: Any) -> None:
    """Let the workers of an executor end."""
    pool.shutdown(wait=False)


def close_held(owner: int, pool: Any) -> None:
    """The same in the process that has made it: a child that was forked has a copy of what is collected here."""
    if os.getpid() == owner:
        close_executor(pool)


def close_pool(pool: Any) -> None:
    """End the workers of a pool of multiprocessing."""
    pool.terminate()


mover(say_where)
rulebook.add(Rule(opened, "outside", definition=opened_further_out, source="plaingrad/rules/processes/workers.py"))
