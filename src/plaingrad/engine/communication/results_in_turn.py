"""`Pool.imap` and `imap_unordered` of a pool of processes: an iterator over results, each with its derivative.

A pool walks what it is given in a thread of its own, before it is known whether anything in it is differentiated. Here
it is walked where the results are asked for, some parcels ahead of them, and each parcel is a task by `apply_async`.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from plaingrad.critical import imported
from plaingrad.engine.communication.bound_to_level import at_level
from plaingrad.rewrite import in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

AHEAD = 4  # parcels for each process that are begun before their results are asked for


class ResultsInTurn:
    """The results f(x) of `items`, in their order or in that of their arrival.

    Attributes:
        level: where the items are made and the results get their derivatives.
        pool: the pool.
        f: what its processes call.
        step: gives the next item.
        size: how many items are a parcel.
        ordered: results come in the order of the items.
        running: parcels that were begun and have not been handed out: what `apply_async` gave, or an exception.
        finished: the numbers of parcels whose results have arrived.
        results: those of a parcel that are yet to be handed out.
        count: how many parcels were begun.
        is_walked: there are no more items.
        has_failed: a parcel of several items has; as with the pool's own, that is the last.
    """

    def __init__(
        self, level: Level, pool: Any, f: Any, items: Iterable[Any], size: int, ordered: bool
    ) -> None:
        self.level, self.pool, self.f, self.size, self.ordered = level, pool, f, size, ordered
        self.step = at_level(level, iter(level.iterable(items)).__next__)
        self.running: dict[int, Any] = {}
        self.finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.results: deque[Any] = deque()
        self.count = 0
        self.is_walked = self.has_failed = False
        self.fill()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        """The next result; `multiprocessing.TimeoutError` if there is none within `timeout` seconds."""
        while not self.results:
            self.fill()
            if not self.running or self.has_failed:
                raise StopIteration
            self.take(timeout)
        return self.results.popleft()

    def fill(self) -> None:
        """Begin parcels until enough are under way."""
        while not self.is_walked and len(self.running) < AHEAD * self.pool._processes:
            parcel: list[Any] = []
            failed: BaseException | None = None
            try:
                while len(parcel) < self.size:
                    parcel.append(self.step())
            except StopIteration:
                self.is_walked = True
            except Exception as error:  # it is raised where its result would have been
                self.is_walked, failed = True, error
            if parcel and failed is None:
                self.running[self.count] = self.begun(parcel, self.count)
                self.count += 1
            if failed is not None:
                self.running[self.count] = failed
                self.finished.put(self.count)
                self.count += 1

    def begun(self, parcel: list[Any], number: int) -> Any:
        """What `apply_async` gives for a parcel."""
        arrived = Arrival(self.finished, number)
        mapped = imported("plaingrad.rules.processes.steps").mapped
        begin = self.level.prep(self.pool.apply_async)
        return in_force(self.level, begin, mapped, (self.f, False, parcel), {}, arrived, arrived)

    def take(self, timeout: float | None) -> None:
        """Hand out the next parcel."""
        if self.ordered:
            number = min(self.running)
        else:
            try:
                number = self.finished.get(timeout=timeout)
            except queue.Empty:
                raise timed_out(self.pool) from None
        found = self.running[number]
        if isinstance(found, BaseException):
            del self.running[number]
            raise found
        began = time.monotonic()
        found.wait(timeout)
        if not found.ready():
            raise timed_out(self.pool)
        left = None if timeout is None else max(timeout - (time.monotonic() - began), 0.0)
        del self.running[number]
        try:
            self.results.extend(in_force(self.level, self.level.prep(found.get), left))
        except Exception:
            self.has_failed = self.size > 1
            raise


class Arrival:
    """Tells that the result of a parcel has arrived, of which it takes nothing.

    It runs in the thread that handles the pool's results, where an exception would leave all others waiting.
    """

    __slots__ = ("finished", "number")

    def __init__(self, finished: queue.SimpleQueue[int], number: int) -> None:
        self.finished, self.number = finished, number

    def __call__(self, _: Any) -> None:
        """The parcel is there."""
        self.finished.put(self.number)


def timed_out(pool: Any) -> Exception:
    """The exception of multiprocessing, or multiprocess, for a result that has not arrived in time."""
    home = "multiprocess" if type(pool).__module__.startswith("multiprocess.") else "multiprocessing"
    error: Callable[[], Exception] = imported(home).TimeoutError
    return error()


def results_in_turn(level: Level, pool: Any, method: Any, f: Any, call: dict[str, Any]) -> ResultsInTurn:
    """What `Pool.imap` or `imap_unordered` returns at a level."""
    pool._check_running()
    size = call.get("chunksize", 1)
    if size < 1:
        raise ValueError(f"Chunksize must be 1+, not {size:n}")
    return ResultsInTurn(level, pool, f, call["iterable"], size, method.__name__ == "imap")
