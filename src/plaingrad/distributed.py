"""Data-parallel losses: the value and gradient of a sum over partitions of data, computed where the partitions are.

The engine is one that is there already: an executor or pool of processes, a Dask client, Ray, the ranks of an MPI
program.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from typing import Any

from plaingrad import api
from plaingrad.errors import ArgumentError
from plaingrad.tangents import accumulate

Loss = Callable[[Any, Any], Any]
Found = tuple[Any, Any]


def value_and_grad(
    f: Loss,
    on: Any,
    reduce: str = "sum",
    *,
    retries: int = 0,
    timeout: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Callable[[Any, Any], Found]:
    """A function that returns sum_k f(x, part_k) and its gradient in x, the parts being evaluated by an engine.

    What moves is x to each part, and one value and gradient back; parts that are file names, or Dask's delayed loads
    and arrays, are read where they are used. The sum is in the order of the parts, so it is the same from run to run;
    over the ranks of MPI in that of MPI's reduction.

    Args:
        f: f(x, part), a real number. A process pool needs a function of a module, Dask takes any.
        on: an executor, a `multiprocessing.Pool`, a `distributed.Client`, the module `ray`, or a communicator of
            `mpi4py`, of which every rank makes the same calls, each with its own parts.
        reduce: "sum", or "mean" over all parts.
        retries: how often Dask computes a part again that has failed; it does so by itself when a worker is lost. Other
            engines do not retry.
        timeout: seconds to wait for one part after those before it; then TimeoutError says which one, and where it is.
        progress: called with how many parts are done, and how many there are.

    Returns:
        g(x, parts) -> (value, gradient). The parts are a list; with Dask also a `dask.array`, or a tuple of them, split
        along the first axis as it is chunked.

    Raises:
        ArgumentError: `on` is no such engine, or `reduce` no such reduction.

    An exception in a part is raised as it is, with a note that names the part and the worker.

    Examples:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(2) as pool:
        ...     value_and_grad(lambda x, part: x * x * part, pool)(3.0, [1.0, 2.0])
        (27.0, 18.0)
    """
    if reduce not in ("sum", "mean"):
        raise ArgumentError(f"reduce={reduce!r} of distributed.value_and_grad is neither 'sum' nor 'mean'")
    if hasattr(on, "Get_rank"):
        return lambda x, parts: over_ranks(f, on, x, list(parts), reduce == "mean", progress)
    begin = engine_of(on, retries)

    def total(x: Any, parts: Any) -> Found:
        parts = partitions(parts)
        scale = 1.0 / len(parts) if reduce == "mean" else None
        running = [begin(n, part_of_sum, f, x, part, n, scale) for n, part in enumerate(parts)]
        try:
            return collected(on, running, timeout, progress)
        finally:
            for one in running:
                if hasattr(one, "cancel"):
                    one.cancel()  # what is left after an error

    return total


def part_of_sum(f: Loss, x: Any, part: Any, n: int, scale: float | None) -> Found:
    """The value and gradient of one part; runs in a worker."""

    def loss(x: Any) -> Any:
        y = f(x, part)
        return y if scale is None else y * scale

    try:
        return api.value_and_grad(loss)(x)
    except Exception as error:
        error.add_note(
            f"in partition {n} of a distributed loss, in process {os.getpid()} on {platform.node()}"
        )
        raise


def engine_of(on: Any, retries: int) -> Callable[..., Any]:
    """begin(n, function, *args) for an engine."""
    if is_dask(on):
        import dask  # type: ignore[import-not-found]

        lazy = dask.delayed(pure=False)(part_of_sum)
        return lambda n, _, *args: on.compute(lazy(*args), retries=retries)
    if is_ray(on):
        remote = on.remote(part_of_sum).options(max_retries=max(retries, 3), retry_exceptions=retries > 0)
        return lambda n, _, *args: OnRay(on, remote.remote(*args))
    if hasattr(on, "submit"):
        return lambda n, *call: on.submit(*call)
    if hasattr(on, "apply_async"):
        return lambda n, function, *args: on.apply_async(function, args)
    raise ArgumentError(
        f"distributed.value_and_grad got {type(on).__qualname__} to compute on; it takes an executor, a pool of "
        "multiprocessing, a Dask client, the module ray, or an MPI communicator"
    )


def is_ray(on: Any) -> bool:
    """Whether an engine is Ray, which is a module."""
    return getattr(on, "__name__", "") == "ray" and hasattr(on, "ObjectRef")


class OnRay:
    """A part that Ray computes."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self.ray, self.reference = ray, reference

    def result(self, timeout: float | None = None) -> Any:
        """Its value and gradient; TimeoutError if they do not arrive."""
        return self.ray.get(self.reference, timeout=timeout)

    def cancel(self) -> None:
        """Nobody needs it any more."""
        self.ray.cancel(self.reference)


def is_dask(on: Any) -> bool:
    """Whether an engine is a client of Dask."""
    return type(on).__module__.startswith("distributed.")


def partitions(parts: Any) -> Sequence[Any]:
    """The parts of the data, one by one."""
    if hasattr(parts, "to_delayed"):
        return blocks(parts)
    if isinstance(parts, tuple) and parts and all(hasattr(x, "to_delayed") for x in parts):
        return [list(part) for part in zip(*map(blocks, parts), strict=True)]
    return list(parts)


def blocks(x: Any) -> list[Any]:
    """The blocks of a dask.array along the first axis."""
    if hasattr(x, "rechunk"):
        x = x.rechunk(dict.fromkeys(range(1, x.ndim), -1))
        return list(x.to_delayed().ravel())
    return list(x.to_delayed())


def collected(on: Any, running: list[Any], timeout: float | None, progress: Any) -> Found:
    """The sum of what the parts give, in their order."""
    value: Any = 0.0
    slope: Any = None
    for n, one in enumerate(running):
        try:
            y, y_slope = one.result(timeout=timeout) if hasattr(one, "result") else one.get(timeout)
        except Exception as error:
            error.add_note(f"for partition {n} of {len(running)}{place_of(on, one)}")
            raise
        value = value + y
        slope = y_slope if slope is None else accumulate(slope, y_slope)
        if progress is not None:
            progress(n + 1, len(running))
    return value, slope


def place_of(on: Any, one: Any) -> str:
    """Which worker has a part, as far as its engine says."""
    if not is_dask(on):
        return ", on Ray" if is_ray(on) else f", on {type(on).__qualname__}"
    places = [worker for worker, keys in on.processing().items() if one.key in keys]
    return f", on worker {places[0]}" if places else ""


def over_ranks(f: Loss, comm: Any, x: Any, parts: list[Any], is_mean: bool, progress: Any) -> Found:
    """The same where each rank has its own parts: every rank gets the sum over all."""
    count = comm.allreduce(len(parts))
    scale = 1.0 / count if is_mean else None
    found: Any = None
    failed: Exception | None = None
    try:
        for n, part in enumerate(parts):
            one = part_of_sum(f, x, part, n, scale)
            found = one if found is None else (found[0] + one[0], accumulate(found[1], one[1]))
            if progress is not None:
                progress(n + 1, len(parts))
    except Exception as error:
        failed = error
        error.add_note(f"on rank {comm.Get_rank()}")
    troubles = comm.allgather(
        None if failed is None else repr(failed)
    )  # so that no rank waits for one that failed
    if failed is not None:
        raise failed
    for rank, trouble in enumerate(troubles):
        if trouble is not None:
            raise RuntimeError(f"a part of a distributed loss has failed on rank {rank}: {trouble}")
    total: Found = comm.allreduce(found, op=added)
    return total


def added(a: Any, b: Any) -> Any:
    """The sum of two values and gradients; None is one of no parts."""
    if a is None or b is None:
        return b if a is None else a
    return a[0] + b[0], accumulate(a[1], b[1])


__all__ = ["value_and_grad"]
