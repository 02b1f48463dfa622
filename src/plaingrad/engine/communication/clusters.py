"""Tasks for clusters that a differentiated function has a client of: Dask's `Client`, and Ray.

A task with differentiated arguments is recorded as one of a pool of processes is (`other_processes`): it runs again
with its derivative on the cluster. A future among the arguments of another task is replaced by its value, for which the
caller waits: so every number that enters a task has a derivative here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from plaingrad.critical import imported
from plaingrad.engine.communication.carried import carried, reached
from plaingrad.engine.communication.other_processes import (
    active_in,
    begin_task,
    carries_active,
    further_out,
    refuse_globals,
    refuse_process,
    refuse_result,
)
from plaingrad.engine.communication.per_derivative import PerDerivative
from plaingrad.engine.refusals.refuse import missing_rule, refuse
from plaingrad.errors import RoundTripError
from plaingrad.rewrite import in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


class Begun:
    """The tasks that were begun at a level, in one derivative, and the data that were sent ahead.

    Attributes:
        run: stands for the derivative.
        tasks: by the future: the future itself, and its task.
        data: by the future: the future itself, and what it holds.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.tasks: dict[Any, tuple[Any, Any]] = {}
        self.data: dict[Any, tuple[Any, Any]] = {}


_begun = PerDerivative(lambda run, _: Begun(run))


def begun_at(level: Level) -> Begun:
    """What was begun in the derivative that `level` takes."""
    return _begun.of(level)


def key_of(future: Any) -> Any:
    """What a future is known by: equal calls have equal keys at Dask, so it is the object; Ray hands out others."""
    return future.binary() if hasattr(future, "binary") else id(future)


def is_future(x: Any) -> bool:
    """Whether x stands for a result on a cluster."""
    t = type(x)
    return t.__name__ in ("Future", "ObjectRef") and t.__module__.partition(".")[0] in ("distributed", "ray")


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
        return value
    if found[1] is False:
        refuse_result(level, method)
    return level.calls.inside(imported("plaingrad.rules.processes.steps").arrived)([found[1]], value)


# -- Dask --------------------------------------------------------------------------------------------------------------

#: What `Client.submit` and `map` take for themselves.
OPTIONS = frozenset(
    "key workers resources retries priority fifo_timeout allow_other_workers actor actors pure batch_size".split()
)


def result_of(level: Level, future: Any) -> Any:
    """The result of a future of Dask at a level."""
    return level.prep(type(future).result)(future)


def submit(level: Level, method: Any) -> Callable[..., Any]:
    """`Client.submit`."""

    def submit_at_level(client: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        args = with_values(level, args, lambda future: result_of(level, future))
        own = {name: x for name, x in kwargs.items() if name not in OPTIONS}
        own = with_values(level, own, lambda future: result_of(level, future))
        kwargs = {**kwargs, **own}
        if kwargs.get("actor") or kwargs.get("actors"):
            refuse_process(level, method, f, args, own)
        return recorded(
            level,
            client,
            method,
            f,
            args,
            own,
            lambda: further_out(level, method, client, f, *args, **kwargs),
        )

    return submit_at_level


def submit_all(level: Level, method: Any) -> Callable[..., Any]:
    """`Client.map`: a task for each item if one of them is differentiated."""

    def submit_all_at_level(client: Any, f: Any, *iterables: Any, **kwargs: Any) -> Any:
        items = [
            with_values(level, list(level.iterable(x)), lambda future: result_of(level, future))
            for x in iterables
        ]
        own = {name: x for name, x in kwargs.items() if name not in OPTIONS}
        if not any(carries_active(level, x) for x in (f, items, own)):
            return further_out(level, method, client, f, *items, **kwargs)
        keys = kwargs.get("key")
        options = {name: x for name, x in kwargs.items() if name not in ("key", "batch_size")}
        start = submit(level, type(client).submit)
        futures = []
        for n, args in enumerate(zip(*items, strict=False)):
            key = {"key": keys[n]} if isinstance(keys, (list, tuple)) else {}
            futures.append(start(client, f, *args, **options, **key))
        return futures

    return submit_all_at_level


def scatter(level: Level, method: Any) -> Callable[..., Any]:
    """`Client.scatter`: who uses the future gets the differentiated value itself."""

    def scatter_at_level(client: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        if not carries_active(level, data):
            return further_out(level, method, client, data, *args, **kwargs)
        is_list = type(data) in (list, tuple)
        parts = list(data) if is_list else [data]
        for part in parts:
            if not isinstance(part, (float, complex, np.number, np.ndarray)):
                refuse_process(level, method, part)
        parts = [level.calls.inside(np.copy)(x) if isinstance(x, np.ndarray) else x for x in parts]
        futures = further_out(level, method, client, parts, *args, **kwargs)
        for future, part in zip(futures, parts, strict=True):
            begun_at(level).data[key_of(future)] = future, part
        return futures if is_list else futures[0]

    return scatter_at_level


def gather(level: Level, method: Any) -> Callable[..., Any]:
    """`Client.gather`."""

    def gather_at_level(client: Any, futures: Any, errors: str = "raise", *args: Any, **kwargs: Any) -> Any:
        begun = begun_at(level)
        if not begun.tasks and not begun.data:
            return further_out(level, method, client, futures, errors, *args, **kwargs)
        if errors != "raise":
            missing_rule(
                method, "With errors='skip' it is not followed where there are differentiated tasks."
            )
        if type(futures) not in (list, tuple, dict) and not is_future(futures):
            futures = list(level.iterable(futures))
        values = with_values(level, futures, lambda future: result_of(level, future))
        return further_out(level, method, client, values, errors, *args, **kwargs)

    return gather_at_level


def result(level: Level, method: Any) -> Callable[..., Any]:
    """`Future.result`."""

    def result_at_level(future: Any, *args: Any, **kwargs: Any) -> Any:
        data = begun_at(level).data.get(key_of(future))
        if data is not None:
            return data[1]
        return arrived(level, method, future, further_out(level, method, future, *args, **kwargs))

    return result_at_level


def parts_of(graph: Any) -> Any:
    """The tasks of a graph or collection of Dask, by key."""
    inner = graph.__dask_graph__() if hasattr(graph, "__dask_graph__") else graph
    return dict(inner) if hasattr(inner, "keys") else inner


def is_differentiated(level: Level, graph: Any) -> bool:
    """Whether there is something in a graph that has a derivative at this level."""
    return carries_active(level, graph) or hides_future(level, graph)


def compute_graph(level: Level, method: Any) -> Callable[..., Any]:
    """`Client.get`: the tasks of a graph with differentiated values are submitted one by one."""

    def compute_at_level(client: Any, graph: Any, keys: Any, *args: Any, **kwargs: Any) -> Any:
        parts = parts_of(graph)
        if not is_differentiated(level, parts):
            return further_out(level, method, client, parts, keys, *args, **kwargs)
        if any(is_future(part) for part, _ in reached(parts)):
            refuse_future(method)
        graphs = imported("plaingrad.rules.processes.graphs")
        threads = min(max(sum(client.nthreads().values()), 1), graphs.MOST_THREADS)
        return level.prep(graphs.computed)(client, parts, keys, threads)

    return compute_at_level


def run_graph(level: Level, method: Any) -> Callable[..., Any]:
    """`compute` and `persist` of graphs: with differentiated values they wait for what they begin.

    The cluster computes the values as `Client.get` does. Futures of `compute` stand for them as those of `scatter` do;
    what `persist` gives holds them itself.
    """

    def run_at_level(client: Any, collections: Any, *args: Any, **kwargs: Any) -> Any:
        parts = collections if type(collections) in (list, tuple, set, frozenset) else [collections]
        if not any(is_differentiated(level, parts_of(part)) for part in parts):
            return further_out(level, method, client, collections, *args, **kwargs)
        dask = imported("dask")
        is_one = parts is not collections
        run = dask.persist if method.__name__ == "persist" else dask.compute
        found = level.prep(run)(
            *parts, scheduler=getter(level, client), optimize_graph=kwargs.get("optimize_graph", True)
        )
        if method.__name__ == "compute" and not kwargs.get("sync", False):
            found = futures_of(level, client, found)
        return found[0] if is_one else type(collections)(found)

    return run_at_level


def getter(level: Level, client: Any) -> Callable[..., Any]:
    """What computes a graph for `dask.compute`: a function, for methods of a client are told from others."""
    compute = compute_graph(level, type(client).get)

    def get(graph: Any, keys: Any, **kwargs: Any) -> Any:
        return in_force(level, compute, client, graph, keys)

    return get


def futures_of(level: Level, client: Any, values: Any) -> list[Any]:
    """Futures that have arrived; who uses them gets the values themselves."""
    futures = further_out(level, type(client).scatter, client, list(values), hash=False)
    for future, value in zip(futures, values, strict=True):
        begun_at(level).data[key_of(future)] = future, value
    return list(futures)


def named(level: Level, tokenize: Any) -> Callable[..., Any]:
    """`dask.base.tokenize`: names of tasks are made of the bits of values.

    Equal numbers of which one depends on the inputs are two: by one name Dask would take them for one task.
    """

    def named_at_level(*args: Any, **kwargs: Any) -> Any:
        token = further_out(level, tokenize, *args, **kwargs)
        found: set[int] = set()
        for x in carried((args, kwargs)):
            found |= active_in(level.slot_of(x))
        return further_out(level, tokenize, token, sorted(found)) if found else token

    return named_at_level


def empty_example(level: Level, f: Any) -> Callable[..., Any]:
    """What Dask finds out of arrays without elements: types and shapes, which have no derivative."""
    return lambda *args, **kwargs: further_out(level, f, *args, **kwargs)


# -- Ray ---------------------------------------------------------------------------------------------------------------


def remote(level: Level, method: Any) -> Callable[..., Any]:
    """`remote` of a function of Ray; it gets the values of references that are arguments themselves."""

    def remote_at_level(function: Any, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        get_one = level.prep(imported("ray").get)
        args = [with_values(level, x, get_one) if is_future(x) else x for x in args or ()]
        kwargs = {
            name: with_values(level, x, get_one) if is_future(x) else x for name, x in (kwargs or {}).items()
        }
        f = function._function
        if options.get("num_returns") not in (None, 1):
            refuse_process(level, method, f, args, kwargs)
        return recorded(
            level,
            imported("ray"),
            method,
            f,
            tuple(args),
            kwargs,
            lambda: further_out(level, method, function, args, kwargs, **options),
        )

    return remote_at_level


def fetch(level: Level, method: Any) -> Callable[..., Any]:
    """`ray.get`."""

    def fetch_at_level(references: Any, *args: Any, **kwargs: Any) -> Any:
        values = further_out(level, method, references, *args, **kwargs)
        if is_future(references):
            return fetched(level, method, references, values)
        if type(references) is not list:
            return values
        return [fetched(level, method, one, value) for one, value in zip(references, values, strict=True)]

    return fetch_at_level


def fetched(level: Level, method: Any, reference: Any, value: Any) -> Any:
    """The value of a reference with its derivative."""
    data = begun_at(level).data.get(key_of(reference)) if is_future(reference) else None
    if data is not None:
        return data[1]
    return arrived(level, method, reference, value) if is_future(reference) else value


def store(level: Level, method: Any) -> Callable[..., Any]:
    """`ray.put`: who uses the reference gets the differentiated value itself."""

    def store_at_level(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not carries_active(level, x):
            return further_out(level, method, x, *args, **kwargs)
        if not isinstance(x, (float, complex, np.number, np.ndarray)):
            refuse_process(level, method, x)
        x = level.calls.inside(np.copy)(x) if isinstance(x, np.ndarray) else x
        reference = further_out(level, method, x, *args, **kwargs)
        begun_at(level).data[key_of(reference)] = reference, x
        return reference

    return store_at_level


def to_actor(level: Level, method: Any) -> Callable[..., Any]:
    """A call of an actor, which has a state: it gets no differentiated values."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args[1:], *kwargs.values())
        refuse_process(level, method, *given)
        if hides_future(level, given):
            refuse_future(method)
        return further_out(level, method, *args, **kwargs)

    return call


#: What to call instead, by module and qualified name.
FUNCTIONS: dict[tuple[str, str], Callable[[Any, Any], Callable[..., Any]]] = {
    ("distributed.client", "Client.submit"): submit,
    ("distributed.client", "Client.map"): submit_all,
    ("distributed.client", "Client.scatter"): scatter,
    ("distributed.client", "Client.gather"): gather,
    ("distributed.client", "Client.get"): compute_graph,
    ("distributed.client", "Client.compute"): run_graph,
    ("distributed.client", "Client.persist"): run_graph,
    ("distributed.client", "Future.result"): result,
    ("dask.tokenize", "tokenize"): named,
    ("dask.array.utils", "compute_meta"): empty_example,
    ("dask.array.utils", "meta_from_array"): empty_example,
    ("ray.remote_function", "RemoteFunction._remote"): remote,
    ("ray.actor", "ActorClass._remote"): to_actor,
    ("ray.actor", "ActorMethod._remote"): to_actor,
    ("ray._private.worker", "get"): fetch,
    ("ray._private.worker", "put"): store,
}
