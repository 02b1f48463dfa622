"""Dask on a cluster, in a differentiated function: `Client`, its futures, graphs, and what else takes futures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.class_keys import is_among
from plaingrad.critical import imported
from plaingrad.engine.communication.carried import ATOMS, is_future, reached, shown_by
from plaingrad.engine.communication.clusters import (
    arrived,
    begun_at,
    hides_future,
    key_of,
    recorded,
    refuse_future,
    refuse_named,
    with_values,
)
from plaingrad.engine.communication.other_processes import (
    active_in,
    carries_active,
    file_tasks,
    further_out,
    refuse_process,
    take_in_error,
)
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.rewrite import in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


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
        refuse_asynchronous(level, method, client, f, args, own)
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


def refuse_asynchronous(level: Level, method: Any, client: Any, *given: Any) -> None:
    """Refuse differentiated values for a client that belongs to an event loop, in which the way back cannot wait."""
    if getattr(client, "_asynchronous", False) and any(carries_active(level, x) for x in given):
        missing_rule(method, "Tasks of a client with asynchronous=True are not followed.")


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
        refuse_asynchronous(level, method, client, data)
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
        if type(futures) not in (list, tuple, dict) and not is_future(futures):
            futures = list(level.iterable(futures))  # it may begin tasks
        begun = begun_at(level)
        if not begun.tasks and not begun.data:
            return further_out(level, method, client, futures, errors, *args, **kwargs)
        if errors != "raise":
            missing_rule(
                method, "With errors='skip' it is not followed where there are differentiated tasks."
            )
        values = with_values(level, futures, lambda future: result_of(level, future))
        return further_out(level, method, client, values, errors, *args, **kwargs)

    return gather_at_level


def result(level: Level, method: Any) -> Callable[..., Any]:
    """`Future.result`."""

    def result_at_level(future: Any, *args: Any, **kwargs: Any) -> Any:
        data = begun_at(level).data.get(key_of(future))
        if data is not None:
            return data[1]
        try:
            value = further_out(level, method, future, *args, **kwargs)
        except Exception as error:
            failed(level, method, future, error)
            raise
        return arrived(level, method, future, value)

    return result_at_level


def failed(level: Level, method: Any, future: Any, error: BaseException) -> None:
    """Give the exception that a task has raised its derivative."""
    found = begun_at(level).tasks.get(key_of(future))
    if found is None:
        if begun_at(level).has_one_like(future):
            refuse_named(method)
    elif future.status == "error":
        take_in_error(level, method, [found[1]], error)


def exception(level: Level, method: Any) -> Callable[..., Any]:
    """`Future.exception`."""

    def exception_at_level(future: Any, *args: Any, **kwargs: Any) -> Any:
        error = further_out(level, method, future, *args, **kwargs)
        if isinstance(error, BaseException):
            failed(level, method, future, error)
        return error

    return exception_at_level


def next_completed(level: Level, method: Any) -> Callable[..., Any]:
    """What `as_completed` gives: a future, or with `with_results` a future and its result; or a list of such."""

    def next_at_level(completed: Any, *args: Any, **kwargs: Any) -> Any:
        found = further_out(level, method, completed, *args, **kwargs)
        if not completed.with_results:
            return found
        if type(found) is list:
            return [(future, result_of(level, future)) for future, _ in found]
        return found[0], result_of(level, found[0]) if completed.raise_errors else found[1]

    return next_at_level


def as_executors(level: Level, method: Any) -> Callable[..., Any]:
    """The future of `concurrent.futures` that stands for one of Dask in `Client.get_executor`."""

    def wrap_at_level(executor: Any, future: Any) -> Any:
        wrapped = further_out(level, method, executor, future)
        found = begun_at(level).tasks.get(key_of(future))
        if found is not None:
            file_tasks(wrapped, found[1])
        return wrapped

    return wrap_at_level


def refused_there(level: Level, method: Any) -> Callable[..., Any]:
    """What takes values and futures to others by way of the scheduler."""

    def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
        if hides_future(level, (args, kwargs)):
            refuse_named(method)
        refuse_process(level, method, *args, *kwargs.values())
        return further_out(level, method, *([] if owner is None else [owner]), *args, **kwargs)

    return call


def of_actor(level: Level, method: Any) -> Callable[..., Any]:
    """A method of an actor. It gets no differentiated values, for an actor has a state."""
    refuse_first = refused_there(level, method)
    return lambda *args, **kwargs: refuse_first(None, *args, **kwargs)


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
        refuse_asynchronous(level, method, client, parts)
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


def store(level: Level, method: Any) -> Callable[..., Any]:
    """`dask.array.store`, which `Array.store` is: into arrays of NumPy, at once."""

    def store_at_level(sources: Any, targets: Any, *args: Any, **kwargs: Any) -> Any:
        is_one = hasattr(sources, "__dask_graph__")
        pair = ([sources], [targets]) if is_one else (list(sources), list(targets))
        active = [carries_active(level, pair[1]), *[is_differentiated(level, parts_of(x)) for x in pair[0]]]
        if not any(active) or len(pair[0]) != len(pair[1]):
            return further_out(level, method, sources, targets, *args, **kwargs)
        call = {**dict(zip(("lock", "regions", "compute", "return_stored"), args, strict=False)), **kwargs}
        is_now = call.pop("compute", True) and not call.pop("return_stored", False)
        if not is_now or any(type(target) is not np.ndarray for target in pair[1]):
            missing_rule(
                method, "It is followed where it writes into NumPy arrays, at once, and returns nothing."
            )
        regions = call.pop("regions", None)
        every = [regions] * len(pair[0]) if regions is None or type(regions) is tuple else list(regions)
        options = {name: x for name, x in call.items() if name not in ("lock", "load_stored")}
        return level.prep(imported("plaingrad.rules.processes.graphs").stored)(*pair, every, options)

    return store_at_level


def named(level: Level, tokenize: Any) -> Callable[..., Any]:
    """`dask.base.tokenize`: names of tasks are made of the bits of values.

    Equal numbers of which one depends on the inputs are two: by one name Dask would take them for one task.
    """

    def named_at_level(*args: Any, **kwargs: Any) -> Any:
        token = further_out(level, tokenize, *args, **kwargs)
        found: set[int] = set()
        for part, _ in reached((args, kwargs)):
            for x in (part, *shown_by(part)):
                if is_among(type(x), ATOMS) or isinstance(x, (np.ndarray, np.generic)):
                    found |= active_in(level.slot_of(x))
        return further_out(level, tokenize, token, sorted(found)) if found else token

    return named_at_level


def empty_example(level: Level, f: Any) -> Callable[..., Any]:
    """What Dask finds out of arrays without elements: types and shapes, which have no derivative."""
    return lambda *args, **kwargs: further_out(level, f, *args, **kwargs)


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
    ("distributed.client", "Future.exception"): exception,
    ("distributed.client", "as_completed._get_and_raise"): next_completed,
    ("distributed.client", "as_completed.next_batch"): next_completed,
    ("distributed.cfexecutor", "ClientExecutor._wrap_future"): as_executors,
    ("distributed.variable", "Variable.set"): refused_there,
    ("distributed.queues", "Queue.put"): refused_there,
    ("distributed.client", "Client.publish_dataset"): refused_there,
    ("distributed.client", "Client.log_event"): refused_there,
    ("distributed.client", "Client.run"): refused_there,
    ("distributed.client", "Client.run_on_scheduler"): refused_there,
    ("distributed.actor", "Actor.__getattr__.<locals>.func"): of_actor,
    ("joblib._dask", "DaskDistributedBackend.submit"): refused_there,
    ("dask.array.core", "store"): store,
    ("dask.tokenize", "tokenize"): named,
    ("dask.array.utils", "compute_meta"): empty_example,
    ("dask.array.utils", "meta_from_array"): empty_example,
}
