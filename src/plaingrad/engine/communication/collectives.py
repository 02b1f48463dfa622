"""Communication among all ranks of a communicator at a level; see `messages`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.critical import imported
from plaingrad.engine.communication.messages import (
    OWNERS,
    Maker,
    exchanges,
    given,
    got,
    key_of,
    written,
)
from plaingrad.engine.communication.other_processes import further_out
from plaingrad.engine.refusals.refuse import missing_rule

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def broadcast(level: Level, f: Any) -> Callable[..., Any]:
    """`bcast`."""

    def at_level(comm: Any, obj: Any = None, root: int = 0) -> Any:
        xs = given(level, f, obj) if comm.rank == root else []
        value = further_out(level, f, comm, obj, root)
        return got(
            level, value, xs, lambda counts: exchanges().Broadcast(comm, root, len(xs))
        )  # the root, too

    return at_level


def counted(level: Level, f: Any, parts: list[Any]) -> tuple[list[Any], list[int]]:
    """The numbers in what goes to each rank, and how many these are."""
    found = [given(level, f, part) for part in parts]
    return [x for xs in found for x in xs], [len(xs) for xs in found]


def scatter(level: Level, f: Any) -> Callable[..., Any]:
    """`scatter`."""

    def at_level(comm: Any, sendobj: Any = None, root: int = 0) -> Any:
        parts = list(level.iterable(sendobj)) if comm.rank == root else None
        xs, counts = counted(level, f, parts or [])
        value = further_out(level, f, comm, parts, root)
        return got(level, value, xs, lambda _: exchanges().Scattered(comm, root, counts))

    return at_level


def gather(level: Level, f: Any) -> Callable[..., Any]:
    """`gather`."""

    def at_level(comm: Any, sendobj: Any = None, root: int = 0) -> Any:
        xs = given(level, f, sendobj)
        value = further_out(level, f, comm, sendobj, root)
        return got(level, value, xs, lambda counts: exchanges().Gathered(comm, root, counts), value)

    return at_level


def gather_everywhere(level: Level, f: Any) -> Callable[..., Any]:
    """`allgather`."""

    def at_level(comm: Any, sendobj: Any = None) -> Any:
        xs = given(level, f, sendobj)
        value = further_out(level, f, comm, sendobj)
        return got(level, value, xs, lambda counts: exchanges().AllGathered(comm, counts, len(xs)), value)

    return at_level


def all_to_all(level: Level, f: Any) -> Callable[..., Any]:
    """`alltoall`."""

    def at_level(comm: Any, sendobj: Any) -> Any:
        parts = list(level.iterable(sendobj))
        xs, counts = counted(level, f, parts)
        value = further_out(level, f, comm, parts)
        return got(level, value, xs, lambda arrive: exchanges().AllToAll(comm, counts, arrive), value)

    return at_level


def operation(f: Any, op: Any) -> str:
    """The name of a reduction; others than these are refused."""
    mpi = imported("mpi4py.MPI")
    name = f.__name__.lower()
    names = ("SUM",) if "sca" in name else ("SUM", "PROD", "MAX", "MIN")
    for kind in names:
        if op is None or op == getattr(mpi, kind):
            return kind
    missing_rule(f, f"It reduces by an operation other than {', '.join(names)}.")


def reduced_number(level: Level, f: Any, x: Any) -> tuple[Any, list[Any]]:
    """What a rank gives to a reduction: a number or array, and the list of it if it has derivatives."""
    if (
        not isinstance(x, (int, float, complex, np.number, np.ndarray))
        or getattr(x, "dtype", np.dtype(int)).kind == "O"
    ):
        missing_rule(f, "It reduces other objects than numbers and arrays of numbers.")
    return x, [x] if isinstance(x, (float, complex)) or getattr(
        x, "dtype", np.dtype(int)
    ).kind in "fc" else []


def reduce(level: Level, f: Any) -> Callable[..., Any]:
    """`reduce`, `allreduce`, `Reduce`, `Allreduce`, `scan`, `exscan`, `Scan` and `Exscan`."""
    name = f.__name__
    by_buffer = name[0].isupper()
    to_root = name.lower() == "reduce"

    def at_level(comm: Any, *args: Any, **kwargs: Any) -> Any:
        names = ("sendbuf", "recvbuf", "op", "root") if by_buffer else ("sendobj", "op", "root")
        call = {**dict(zip(names, args, strict=False)), **kwargs}
        kind = operation(f, call.get("op"))
        root = call.get("root", 0) if to_root else None
        x, buffer = call.get("sendbuf" if by_buffer else "sendobj"), None
        has_result = root is None or comm.rank == root
        if by_buffer:
            array_in = imported("plaingrad.rules.mpi.definitions").array_in
            buffer = array_in(call["recvbuf"]) if has_result else None
            in_place = x is imported("mpi4py.MPI").IN_PLACE
            x = level.calls.inside(copied)(buffer if in_place else array_in(x))
        x, xs = reduced_number(level, f, x)
        options = {"op": call["op"]} if call.get("op") is not None else {}
        if to_root:
            options["root"] = root
        if by_buffer:
            value: Any = None if buffer is None else np.empty_like(buffer)
            further_out(level, f, comm, x, value, **options)
        else:
            value = further_out(level, f, comm, x, **options)
        if name.lower() == "exscan" and comm.rank == 0:
            value = buffer = None  # nothing arrives there
        value = settled(level, comm, kind, x, xs, value, root, name.lower())
        return None if buffer is None and by_buffer else overwritten(level, buffer, value)

    return at_level


def reduce_scatter(level: Level, f: Any) -> Callable[..., Any]:
    """`Reduce_scatter` and `Reduce_scatter_block`."""
    names = ("op",) if f.__name__.endswith("block") else ("recvcounts", "op")

    def at_level(comm: Any, sendbuf: Any, recvbuf: Any, *args: Any, **kwargs: Any) -> None:
        call = {**dict(zip(names, args, strict=False)), **kwargs}
        operation(f, call.get("op"))
        array_in = imported("plaingrad.rules.mpi.definitions").array_in
        buffer = array_in(recvbuf)
        x, xs = reduced_number(level, f, level.calls.inside(copied)(array_in(sendbuf)))
        counts = call.get("recvcounts")
        counts = comm.allgather(buffer.size) if counts is None else [int(n) for n in counts]
        value = np.empty(counts[comm.rank], buffer.dtype)
        further_out(level, f, comm, x, value, **call)
        exchange = exchanges().ReducedScattered(comm, counts, np.empty_like(x), np.empty_like(value))
        value = got(level, value, xs, lambda _: exchange)
        level.calls.inside(written)(buffer, value, value.size)

    return at_level


def edges_of(comm: Any) -> tuple[list[Any], list[Any]]:
    """The neighbours from whom something arrives, and to whom it leaves, with names of the edges on which both agree.

    In a Cartesian topology what leaves downwards arrives from above; elsewhere edges between two ranks are counted.
    """
    if comm.Get_topology() == imported("mpi4py.MPI").CART:
        return [(r, n ^ 1) for n, r in enumerate(comm.inedges)], [(r, n) for n, r in enumerate(comm.outedges)]
    found = []
    for ranks in (list(comm.inedges), list(comm.outedges)):
        found.append([(rank, ranks[:n].count(rank)) for n, rank in enumerate(ranks)])
    return found[0], found[1]


def neighbours(level: Level, f: Any) -> Callable[..., Any]:
    """`neighbor_allgather` and `neighbor_alltoall`."""

    def at_level(comm: Any, sendobj: Any) -> Any:
        key = key_of(level, comm, True, -1, "neighbours")
        if f.__name__ == "neighbor_allgather":
            xs, counts = given(level, f, sendobj), None
        else:
            sendobj = list(level.iterable(sendobj))
            xs, counts = counted(level, f, sendobj)
        value = further_out(level, f, comm, sendobj)
        edges = edges_of(comm)
        make = exchanges().Neighbours
        return got(level, value, xs, lambda arrive: make(comm, key, edges, counts, arrive, len(xs)), value)

    return at_level


def overwritten(level: Level, buffer: Any, value: Any) -> Any:
    """The value of a reduction, or None where it was written into a buffer."""
    if buffer is None:
        return value
    level.calls.inside(written)(buffer, value, buffer.size)
    return None


def settled(
    level: Level, comm: Any, kind: str, x: Any, xs: list[Any], value: Any, root: Any, name: str
) -> Any:
    """The value of a reduction with its derivative."""
    taken = imported("plaingrad.rules.mpi.numbers").taken_apart
    ys = [] if value is None else taken(value)[1]
    if "scan" in name:
        exchange = exchanges().Scanned(comm, int(name == "exscan"), np.shape(x), len(xs), len(ys))
    else:
        weight = None
        if kind != "SUM":
            weight = level.outside(exchanges().weight_of, comm, kind, x, value, root)
        exchange = exchanges().Reduced(comm, root, weight, np.shape(x), len(xs))
    return got(level, value, xs, lambda counts: exchange)


def copied(x: np.ndarray) -> np.ndarray:
    """A copy of an array."""
    return x.copy()


def in_one_group(make: Maker) -> Maker:
    """The same, refused for a communicator between two groups, where a root is something else."""

    def made(level: Level, f: Any) -> Callable[..., Any]:
        at_level = make(level, f)

        def checked(comm: Any, *args: Any, **kwargs: Any) -> Any:
            if comm.Is_inter():
                missing_rule(f, "It communicates between two groups (an Intercomm).")
            return at_level(comm, *args, **kwargs)

        return checked

    return made


_KINDS: dict[Maker, str] = {
    broadcast: "bcast",
    scatter: "scatter",
    gather: "gather",
    gather_everywhere: "allgather",
    all_to_all: "alltoall",
    neighbours: "neighbor_allgather neighbor_alltoall",
    reduce_scatter: "Reduce_scatter Reduce_scatter_block",
    reduce: "reduce allreduce scan exscan Reduce Allreduce Scan Exscan",
}
#: What to call instead, by module and qualified name.
FUNCTIONS: dict[tuple[str, str], Maker] = {
    ("mpi4py.MPI", f"{cls}.{name}"): in_one_group(make)
    for make, names in _KINDS.items()
    for cls in OWNERS
    for name in names.split()
}
