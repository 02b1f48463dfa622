"""Messages of derivatives, and receiving beside them.

They have tags of their own, in the upper half of those there are, and say what they are about. One that arrives where
the program receives with any tag is put aside until it is asked for.
"""

from __future__ import annotations

import time
import zlib
from typing import Any

from plaingrad.critical import imported
from plaingrad.errors import PlaingradError
from plaingrad.rules.processes.workers import most_seconds

_begun: list[Any] = []  # requests of messages that have not left yet
_aside: dict[tuple[int, int, int], list[Any]] = {}  # (communicator, source, tag) -> messages that came too early


def first_tag(comm: Any) -> int:
    """The first tag of those that are used for derivatives."""
    return int(comm.Get_attr(imported("mpi4py.MPI").TAG_UB)) // 2


def tag_of(comm: Any, key: Any) -> int:
    """The tag of messages about `key`."""
    first = first_tag(comm)
    return first + zlib.crc32(repr(key).encode()) % (first - 1)


def post(comm: Any, values: list[Any], dest: int, key: Any) -> None:
    """Send values about `key`, without waiting for the other side."""
    _begun[:] = [request for request in _begun if not request.Test()]
    _begun.append(comm.isend((key, values), dest, tag_of(comm, key)))


def receive(comm: Any, source: int, key: Any) -> list[Any]:
    """What `source` has posted about `key`."""
    tag = tag_of(comm, key)
    early = _aside.get((place_of(comm), source, tag))
    if not early:
        wait_for(comm, source, tag)
    found, values = early.pop(0) if early else comm.recv(None, source, tag)
    if found != key:
        raise PlaingradError(
            f"rank {source} has sent a derivative of another message than the one that is asked for: {found}, not {key}.\n"
            "  Every rank of a communicator is to take the same derivatives, in the same order.\n"
            "  See docs: how-to/distributed"
        )
    return values


def wait_for(comm: Any, source: int, tag: int) -> None:
    """Wait for a message of a derivative as long as PLAINGRAD_TASK_TIMEOUT says."""
    most = most_seconds()
    if most is None:
        return
    began = time.monotonic()
    while not comm.iprobe(source, tag):
        if time.monotonic() - began > most:
            raise TimeoutError(
                f"rank {source} has not sent the derivative of a message to rank {comm.rank} within {most} s "
                "(PLAINGRAD_TASK_TIMEOUT).\n  Every rank of a communicator is to take the same derivatives, in the same "
                "order.\n  See docs: how-to/distributed"
            )
        time.sleep(0.0005)


def place_of(comm: Any) -> int:
    """A number for the communicator."""
    return int(comm.py2f())


def receive_object(comm: Any, source: int, tag: int, status: Any) -> Any:
    """comm.recv; derivatives that arrive meanwhile are put aside."""
    mpi = imported("mpi4py.MPI")
    if tag != mpi.ANY_TAG:
        return comm.recv(None, source, tag, status)
    while True:
        message = comm.mprobe(source, tag, status)
        if status.Get_tag() < first_tag(comm):
            return message.recv(status)
        put_aside(comm, message.recv(), status)


def receive_buffer(comm: Any, buffer: Any, source: int, tag: int, status: Any) -> None:
    """comm.Recv; derivatives that arrive meanwhile are put aside."""
    mpi = imported("mpi4py.MPI")
    if tag != mpi.ANY_TAG:
        comm.Recv(buffer, source, tag, status)
        return
    while True:
        message = comm.Mprobe(source, tag, status)
        if status.Get_tag() < first_tag(comm):
            message.Recv(buffer, status)
            return
        data = bytearray(status.Get_count(mpi.BYTE))  # a pickle
        message.Recv([data, mpi.BYTE])
        put_aside(comm, mpi.pickle.loads(data), status)


def put_aside(comm: Any, values: Any, status: Any) -> None:
    """Keep a derivative that arrived before it was asked for."""
    _aside.setdefault((place_of(comm), status.Get_source(), status.Get_tag()), []).append(values)
