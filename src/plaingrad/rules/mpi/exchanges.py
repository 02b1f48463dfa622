"""What ranks send each other for the derivative of a communication: `pull` in reverse mode, `push` in forward mode.

`pull` takes the cotangents of what this rank has got, None for zero, and gives those of what it has given; `push` takes
tangents the other way. Every rank that took part takes part again. These functions run at the level further out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.mpi.channel import post, receive
from plaingrad.rules.processes.exchange import Exchange, summed


class Sent(Exchange):
    """A message that has left."""

    def __init__(self, comm: Any, peer: int, key: Any) -> None:
        self.comm, self.peer, self.key = comm, peer, key

    def pull(self, bars: list[Any]) -> list[Any]:
        """From the rank that has got it."""
        return receive(self.comm, self.peer, self.key)

    def push(self, dots: list[Any]) -> list[Any]:
        """To that rank."""
        post(self.comm, dots, self.peer, self.key)
        return []


class Received(Exchange):
    """A message that has arrived."""

    def __init__(self, comm: Any, peer: int, key: Any) -> None:
        self.comm, self.peer, self.key = comm, peer, key

    def pull(self, bars: list[Any]) -> list[Any]:
        """To the rank that has sent it."""
        post(self.comm, bars, self.peer, self.key)
        return []

    def push(self, dots: list[Any]) -> list[Any]:
        """From that rank."""
        return receive(self.comm, self.peer, self.key)


class Broadcast(Exchange):
    """bcast, of which the root gets a copy, too: the adjoint is a sum at the root."""

    def __init__(self, comm: Any, root: int, count: int) -> None:
        self.comm, self.root, self.count = comm, root, count

    def pull(self, bars: list[Any]) -> list[Any]:
        """A sum at the root."""
        every = self.comm.gather(bars, self.root)
        return summed(every, self.count) if self.comm.rank == self.root else []

    def push(self, dots: list[Any]) -> list[Any]:
        """The same way."""
        return self.comm.bcast(dots, self.root)


class Scattered(Exchange):
    """scatter of parts with `counts` numbers each: the adjoint gathers."""

    def __init__(self, comm: Any, root: int, counts: list[int]) -> None:
        self.comm, self.root, self.counts = comm, root, counts

    def pull(self, bars: list[Any]) -> list[Any]:
        """Gathered at the root."""
        return joined(self.comm.gather(bars, self.root))

    def push(self, dots: list[Any]) -> list[Any]:
        """The same way."""
        return self.comm.scatter(split(dots, self.counts) if self.comm.rank == self.root else None, self.root)


class Gathered(Exchange):
    """gather of parts with `counts` numbers each: the adjoint scatters."""

    def __init__(self, comm: Any, root: int, counts: list[int]) -> None:
        self.comm, self.root, self.counts = comm, root, counts

    def pull(self, bars: list[Any]) -> list[Any]:
        """Scattered from the root."""
        return self.comm.scatter(split(bars, self.counts) if self.comm.rank == self.root else None, self.root)

    def push(self, dots: list[Any]) -> list[Any]:
        """The same way."""
        return joined(self.comm.gather(dots, self.root))


class AllGathered(Exchange):
    """allgather: the adjoint sends every rank its own parts, to be summed there."""

    def __init__(self, comm: Any, counts: list[int], count: int) -> None:
        self.comm, self.counts, self.count = comm, counts, count

    def pull(self, bars: list[Any]) -> list[Any]:
        """All to all, and a sum."""
        return summed(self.comm.alltoall(split(bars, self.counts)), self.count)

    def push(self, dots: list[Any]) -> list[Any]:
        """The same way."""
        return joined(self.comm.allgather(dots))


class AllToAll(Exchange):
    """alltoall of parts, with `given` and `got` numbers in each: the adjoint goes from all to all, too."""

    def __init__(self, comm: Any, given: list[int], got: list[int]) -> None:
        self.comm, self.given, self.got = comm, given, got

    def pull(self, bars: list[Any]) -> list[Any]:
        """All to all."""
        return joined(self.comm.alltoall(split(bars, self.got)))

    def push(self, dots: list[Any]) -> list[Any]:
        """The same way."""
        return joined(self.comm.alltoall(split(dots, self.given)))


class Reduced(Exchange):
    """A reduction, whose result changes by the sum of weight * x_dot over the ranks; root None: all ranks have it."""

    def __init__(self, comm: Any, root: int | None, weight: Any, shape: tuple[int, ...], given: int) -> None:
        self.comm, self.root, self.weight, self.shape, self.given = comm, root, weight, shape, given

    def pull(self, bars: list[Any]) -> list[Any]:
        """The sum of the cotangents, or the one of the root, to every rank."""
        bar = filled(bars, self.shape)
        total = self.comm.allreduce(bar) if self.root is None else self.comm.bcast(bar, self.root)
        if not self.given:
            return []
        return [total if self.weight is None else total * np.conj(self.weight)]

    def push(self, dots: list[Any]) -> list[Any]:
        """The sum of the tangents."""
        dot = filled(dots, self.shape)
        if self.weight is not None:
            dot = dot * self.weight
        if self.root is None:
            return [self.comm.allreduce(dot)]
        total = self.comm.reduce(dot, root=self.root)
        return [total] if self.comm.rank == self.root else []


class ReducedScattered(Exchange):
    """A sum over the ranks, of which each gets `counts` elements: the adjoint gathers everywhere."""

    def __init__(self, comm: Any, counts: list[int], given: Any, got: Any) -> None:
        self.comm, self.counts, self.given, self.got = comm, counts, given, got  # what goes in and out, or its like

    def pull(self, bars: list[Any]) -> list[Any]:
        """All parts to every rank."""
        every = self.comm.allgather(filled(bars, np.shape(self.got)))
        if self.given.dtype.kind not in "fc":
            return []
        return [np.concatenate([np.reshape(bar, -1) for bar in every]).reshape(self.given.shape)]

    def push(self, dots: list[Any]) -> list[Any]:
        """The same way."""
        dot = self.comm.allreduce(filled(dots, self.given.shape)).reshape(-1)
        first = sum(self.counts[: self.comm.rank])
        if self.got.dtype.kind not in "fc":
            return []
        return [dot[first : first + self.counts[self.comm.rank]].reshape(self.got.shape)]


class Neighbours(Exchange):
    """A communication with the neighbours in a topology: the adjoint goes along the same edges, the other way.

    Attributes:
        edges: (neighbour, name of the edge) for what arrives, and for what leaves.
        given: how many numbers leave along each edge, or None: all, along every edge.
        got: how many arrive along each edge.
        count: how many leave.
    """

    def __init__(self, comm: Any, key: Any, edges: Any, given: Any, got: list[int], count: int) -> None:
        self.comm, self.key, self.given, self.got, self.count = comm, key, given, got, count
        self.arriving, self.leaving = edges

    def pull(self, bars: list[Any]) -> list[Any]:
        """From those to whom it went."""
        for (rank, edge), part in zip(self.arriving, split(bars, self.got), strict=True):
            if rank >= 0:
                post(self.comm, part, rank, (self.key, edge))
        every = []
        for n, (rank, edge) in enumerate(self.leaving):
            if rank >= 0:
                every.append(receive(self.comm, rank, (self.key, edge)))
            else:
                every.append([] if self.given is None else [None] * self.given[n])
        return summed(every, self.count) if self.given is None else joined(every)

    def push(self, dots: list[Any]) -> list[Any]:
        """The same way."""
        parts = [dots] * len(self.leaving) if self.given is None else split(dots, self.given)
        for (rank, edge), part in zip(self.leaving, parts, strict=True):
            if rank >= 0:
                post(self.comm, part, rank, (self.key, edge))
        every = []
        for rank, edge in self.arriving:
            if rank >= 0:
                every.append(receive(self.comm, rank, (self.key, edge)))
        return joined(every)


class Scanned(Exchange):
    """scan, a sum over this rank and those before it; exscan, a sum over those before it only."""

    def __init__(self, comm: Any, after: int, shape: tuple[int, ...], given: int, got: int) -> None:
        self.comm, self.after, self.shape, self.given, self.got = comm, after, shape, given, got

    def pull(self, bars: list[Any]) -> list[Any]:
        """A sum over this rank and those after it."""
        every = self.comm.allgather(filled(bars, self.shape))
        return [total(every[self.comm.rank + self.after :], self.shape)] if self.given else []

    def push(self, dots: list[Any]) -> list[Any]:
        """The same way."""
        every = self.comm.allgather(filled(dots, self.shape))
        return [total(every[: self.comm.rank + 1 - self.after], self.shape)] if self.got else []


def weight_of(comm: Any, name: str, x: Any, y: Any, root: int | None) -> Any:
    """What x_dot is multiplied by in a reduction by MAX, MIN or PROD; runs on every rank, further out."""
    if name == "PROD":
        weight: Any = 1.0
        for rank, other in enumerate(comm.allgather(x)):
            if rank != comm.rank:
                weight = weight * other
        return weight
    if root is not None:
        y = comm.bcast(y, root)
    share = np.where(np.equal(x, y) | np.isnan(x), 1.0, 0.0)  # ties share, as in np.max
    weight = share / comm.allreduce(share)
    return weight if np.ndim(x) else float(weight)


def filled(bars: list[Any], shape: tuple[int, ...]) -> Any:
    """The one cotangent, or zeros."""
    if not bars or bars[0] is None:
        return np.zeros(shape) if shape else 0.0
    return bars[0]


def total(every: list[Any], shape: tuple[int, ...]) -> Any:
    """The sum of some cotangents."""
    found = filled([], shape)
    for one in every:
        found = found + one
    return found


def split(bars: list[Any], counts: list[int]) -> list[list[Any]]:
    """Those of each part."""
    parts, first = [], 0
    for count in counts:
        parts.append(bars[first : first + count])
        first += count
    return parts


def joined(parts: list[list[Any]] | None) -> list[Any]:
    """Those of all parts, one after another; none where the parts did not arrive."""
    return [] if parts is None else [bar for part in parts for bar in part]
