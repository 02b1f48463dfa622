"""Communications in terms of simpler ones: those that only move the contents of buffers, and those both ways at once.

These run rewritten at the level that differentiates them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.define import mover
from plaingrad.errors import MissingRuleError


def array_in(spec: Any) -> np.ndarray:
    """The array of a buffer given as such, or with the datatype that it has."""
    x = spec
    if isinstance(spec, (list, tuple)) and len(spec) == 2 and hasattr(spec[1], "Get_size"):
        x = spec[0]
        if isinstance(x, np.ndarray) and spec[1].Get_size() != x.itemsize:
            refuse_buffer(spec)
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fciub" or not x.flags.c_contiguous:
        refuse_buffer(spec)
    return x


def refuse_buffer(spec: Any) -> None:
    """Refuse a buffer of another form."""
    raise MissingRuleError(
        f"a buffer for MPI, {type(spec).__name__}, is not followed in this form.\n"
        "  To go on: pass a contiguous array, [array, datatype], or [array, counts] where the function takes counts; "
        "MPI.IN_PLACE for reductions only.\n  See docs: errors#missing-rule"
    )


def parts_of(spec: Any, size: int) -> tuple[np.ndarray, list[int]]:
    """The array of a buffer of which each rank has a part, and how many elements each has, in the order of the ranks."""
    counts = None
    if isinstance(spec, (list, tuple)) and len(spec) > 1 and not hasattr(spec[1], "Get_size"):
        counts, rest = spec[1], list(spec[2:])
        displs = None
        if isinstance(counts, tuple) and len(counts) == 2 and not isinstance(counts[0], int):
            counts, displs = counts
        elif rest and not hasattr(rest[0], "Get_size"):
            displs = rest[0]
        counts = [int(n) for n in counts]
        if displs is not None and [int(n) for n in displs] != [sum(counts[:k]) for k in range(len(counts))]:
            refuse_buffer(spec)
        spec = spec[0]
    x = array_in(spec)
    if counts is None:
        counts = [x.size // size] * size
    if len(counts) != size:
        refuse_buffer(spec)
    return x, counts


mover(array_in, parts_of, refuse_buffer)


def split_up(spec: Any, size: int) -> list[np.ndarray]:
    """A copy of the part of each rank."""
    x, counts = parts_of(spec, size)
    flat, parts, first = x.reshape(-1), [], 0
    for count in counts:
        parts.append(flat[first : first + count].copy())
        first += count
    return parts


def put_side_by_side(spec: Any, parts: list[np.ndarray], size: int) -> None:
    """Write the parts of the ranks into a buffer."""
    x, counts = parts_of(spec, size)
    flat, first = x.reshape(-1), 0
    for count, part in zip(counts, parts, strict=True):
        if part is not None:  # what comes from nobody
            flat[first : first + part.size] = part
        first += count


def put_in(spec: Any, part: np.ndarray) -> None:
    """Write a part into the buffer of a rank."""
    x = array_in(spec)
    x.reshape(-1)[: part.size] = part


def own_part(spec: Any) -> np.ndarray:
    """A copy of what a rank gives, flat."""
    if isinstance(spec, (list, tuple)) and len(spec) > 1 and isinstance(spec[1], int):
        return array_in(spec[0]).reshape(-1)[: spec[1]].copy()
    return array_in(spec).reshape(-1).copy()


def Bcast(comm: Any, buf: Any, root: int = 0) -> None:
    """From the root to all."""
    part = comm.bcast(own_part(buf) if comm.rank == root else None, root)
    if comm.rank != root:
        put_in(buf, part)


def Scatter(comm: Any, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
    """A part to each; Scatterv, too."""
    parts = split_up(sendbuf, comm.size) if comm.rank == root else None
    put_in(recvbuf, comm.scatter(parts, root))


def Gather(comm: Any, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
    """A part from each; Gatherv, too."""
    parts = comm.gather(own_part(sendbuf), root)
    if comm.rank == root:
        put_side_by_side(recvbuf, parts, comm.size)


def Allgather(comm: Any, sendbuf: Any, recvbuf: Any) -> None:
    """A part from each to all; Allgatherv, too."""
    put_side_by_side(recvbuf, comm.allgather(own_part(sendbuf)), comm.size)


def Alltoall(comm: Any, sendbuf: Any, recvbuf: Any) -> None:
    """A part from each to each; Alltoallv, too."""
    put_side_by_side(recvbuf, comm.alltoall(split_up(sendbuf, comm.size)), comm.size)


def Neighbor_allgather(comm: Any, sendbuf: Any, recvbuf: Any) -> None:
    """A part from each neighbour; Neighbor_allgatherv, too."""
    put_side_by_side(recvbuf, comm.neighbor_allgather(own_part(sendbuf)), comm.indegree)


def Neighbor_alltoall(comm: Any, sendbuf: Any, recvbuf: Any) -> None:
    """A part to each neighbour and from each; Neighbor_alltoallv, too."""
    parts = split_up(sendbuf, comm.outdegree)
    put_side_by_side(recvbuf, comm.neighbor_alltoall(parts), comm.indegree)


def sendrecv(
    comm: Any,
    sendobj: Any,
    dest: int,
    sendtag: int = 0,
    recvbuf: Any = None,
    source: int | None = None,
    recvtag: int | None = None,
    status: Any = None,
) -> Any:
    """Both ways at once."""
    request = comm.isend(sendobj, dest, sendtag)
    found = comm.recv(recvbuf, source, recvtag, status)
    request.wait()
    return found


def Sendrecv(
    comm: Any,
    sendbuf: Any,
    dest: int,
    sendtag: int = 0,
    recvbuf: Any = None,
    source: int | None = None,
    recvtag: int | None = None,
    status: Any = None,
) -> None:
    """Both ways at once."""
    request = comm.Isend(sendbuf, dest, sendtag)
    comm.Recv(recvbuf, source, recvtag, status)
    request.Wait()


def Sendrecv_replace(
    comm: Any, buf: Any, dest: int, sendtag: int = 0, source: int | None = None, recvtag: int | None = None, status: Any = None
) -> None:
    """Both ways at once, in one buffer."""
    Sendrecv(comm, array_in(buf).copy(), dest, sendtag, buf, source, recvtag, status)


#: By the name of the method.
DEFINITIONS: dict[str, Callable[..., Any]] = {
    "Bcast": Bcast,
    "Scatter": Scatter,
    "Scatterv": Scatter,
    "Gather": Gather,
    "Gatherv": Gather,
    "Allgather": Allgather,
    "Allgatherv": Allgather,
    "Alltoall": Alltoall,
    "Alltoallv": Alltoall,
    "Neighbor_allgather": Neighbor_allgather,
    "Neighbor_allgatherv": Neighbor_allgather,
    "Neighbor_alltoall": Neighbor_alltoall,
    "Neighbor_alltoallv": Neighbor_alltoall,
    "sendrecv": sendrecv,
    "Sendrecv": Sendrecv,
    "Sendrecv_replace": Sendrecv_replace,
}
