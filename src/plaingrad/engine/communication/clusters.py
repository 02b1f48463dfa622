"""Tasks for clusters that a differentiated function has a client of: Dask's `Client`, and Ray.

A task with differentiated arguments is recorded as one of a pool of processes is (`other_processes`): it runs again
with its derivative on the cluster. A future among the arguments of another task is replaced by its value, for which the
caller waits: so every number that enters a task has a derivative here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from plaingrad.critical import imported
from plaingrad.engine.communication.carried import is_future, reached
from plaingrad.engine.communication.other_processes import (
    begin_task,
    carries_active,
    refuse_globals,
    refuse_result,
)
from plaingrad.engine.communication.per_derivative import PerDerivative
from plaingrad.engine.refusals.refuse import refuse
from plaingrad.errors import RoundTripError

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


class Begun:
    """The tasks that were begun at a level, in one derivative, and the data that were sent ahead.

    Attributes:
        run: stands for the derivative.
        tasks: by the future: the future itself, and its task.
        data: by the future: the future itself, and what it holds.
        constant: other futures, by their identity.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.tasks: dict[Any, tuple[Any, Any]] = {}
        self.data: dict[Any, tuple[Any, Any]] = {}
        self.constant: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def note_constant(self, future: Any) -> None:
        """Such a future may have the name of one with a derivative: Dask names tasks by the bits of their arguments."""
        if self.tasks or self.data or not hasattr(future, "binary"):
            self.constant[id(future)] = future

    def has_one_like(self, future: Any) -> bool:
        """Whether a future that was made by its name stands for a result with a derivative."""
        if hasattr(future, "binary") or self.constant.get(id(future)) is future:
            return False
        return any(known.key == future.key for known, _ in [*self.tasks.values(), *self.data.values()])


_begun = PerDerivative(lambda run, _: Begun(run))


def begun_at(level: Level) -> Begun:
    """What was begun in the derivative that `level` takes."""
    return _begun.of(level)


def key_of(future: Any) -> Any:
    """What a future is known by: equal calls have equal keys at Dask, so it is the object; Ray hands out others."""
    return future.binary() if hasattr(future, "binary") else id(future)


def with_values(level: Level, x: Any, wait: Callable[[Any], Any]) -> Any:
    """`x`, in which values stand for the futures, in lists, tuples and dictionaries, that have a derivative here."""
    if is_future(x):
        begun, key = begun_at(level), key_of(x)
        if key in begun.data:
            return begun.data[key][1]
        return wait(x) if key in begun.tasks else x
    if type(x) in (list, tuple):
        parts = [with_values(level, part, wait) for part in x]
        return x if all(a is b for a, b in zip(x, parts, strict=True)) else type(x)(parts)
    if type(x) is dict:
        return {key: with_values(level, part, wait) for key, part in x.items()}
    return x


def recorded(
    level: Level, cluster: Any, method: Any, f: Any, args: Any, kwargs: Any, start: Callable[[], Any]
) -> Any:
    """The future that start() gives for the task f(*args, **kwargs), recorded."""
    refuse_globals(level, method, f, args, kwargs)
    if hides_future(level, (f, args, kwargs)):
        refuse_future(method)
    task = None
    if any(carries_active(level, x) for x in (f, args, kwargs)):
        task = begin_task(level, cluster, method, f, args, kwargs)
    future = start()
    if task is not None:
        begun_at(level).tasks[key_of(future)] = future, task
    else:
        begun_at(level).note_constant(future)
    return future


def hides_future(level: Level, x: Any) -> bool:
    """Whether x holds a future with a derivative, which a task would turn into a constant."""
    begun = begun_at(level)
    if not begun.tasks and not begun.data:
        return False
    futures = [key_of(part) for part, _ in reached(x) if is_future(part)]
    return any(key in begun.tasks or key in begun.data for key in futures)


def refuse_future(method: Any) -> NoReturn:
    """Refuse a future that a task would look into by itself."""
    refuse(
        RoundTripError,
        f"a task of `{method.__qualname__}` with differentiated values holds a future",
        why="What it gets from it there would be a constant.",
        fix="pass the future as an argument of its own, or its value",
        anchor="round-trip",
    )


def arrived(level: Level, method: Any, future: Any, value: Any) -> Any:
    """The result of a task with its derivative."""
    found = begun_at(level).tasks.get(key_of(future))
    if found is None:
        if begun_at(level).has_one_like(future):
            refuse_named(method)
        return value
    if found[1] is False:
        refuse_result(level, method)
    return level.calls.inside(imported("plaingrad.rules.processes.steps").arrived)([found[1]], value)


def refuse_named(method: Any) -> NoReturn:
    """Refuse a future with a derivative that has gone through something that keeps its name only."""
    refuse(
        RoundTripError,
        f"a future of a differentiated task goes by its name through something of the cluster, or pickle, and "
        f"`{method.__qualname__}` meets it",
        why="Only the future that the task was begun with is known to have a derivative.",
        fix="use that future itself",
        anchor="round-trip",
    )
