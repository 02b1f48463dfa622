"""Graphs of Dask on a cluster as tasks that are submitted one by one, where a graph has differentiated values.

Dask's scheduler for threads walks the graph here; its threads wait for the tasks, which the cluster computes.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

MOST_THREADS = 64  # that wait for tasks at the same time


def computed(client: Any, graph: Any, keys: Any, threads: int) -> Any:
    """The values of `keys` of a graph whose tasks are submitted to a client of Dask."""
    import concurrent.futures

    from dask.threaded import get

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return get(submitted(client, graph), keys, pool=pool)


def submitted(client: Any, graph: Any) -> dict[Any, Any]:
    """The graph with tasks that submit those of `graph`, and wait."""
    from dask._task_spec import Task, convert_legacy_graph

    found: dict[Any, Any] = {}
    for key, node in convert_legacy_graph(dict(graph)).items():
        if type(node) is Task:
            node = Task(key, functools.partial(submit, client, node.func), *node.args, **node.kwargs)
        found[key] = node
    return found


def submit(client: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs), computed by a worker."""
    if kwargs or getattr(f, "__module__", None) == "dask._task_spec":
        # some names are those of options of `Client.submit`; a graph among the arguments would be the client's to compute
        return client.submit(functools.partial(f, *args, **kwargs), pure=False).result()
    return client.submit(f, *args, pure=False).result()


def stored(sources: list[Any], targets: list[Any], regions: list[Any], options: dict[str, Any]) -> None:
    """Write lazy arrays into arrays, or into regions of them."""
    import dask

    for value, target, region in zip(dask.compute(*sources, **options), targets, regions, strict=True):
        whole = target if region is None else target[region]
        whole[tuple([slice(0, n) for n in np.shape(value)])] = value
