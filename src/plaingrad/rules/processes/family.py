"""What processes that a differentiated function starts send each other: messages in envelopes, and their derivatives.

A message that crosses a queue or pipe is known by who has sent it and how many it had sent before. On the way back
everybody who has taken it sends its cotangents to who has sent it. What nobody has taken has none: so a way back begins
with all processes telling which messages they have taken. `post` and `receive` run at the level further out.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np

from plaingrad.define import mover
from plaingrad.errors import RoundTripError
from plaingrad.rules.processes.exchange import Exchange, summed
from plaingrad.rules.processes.members import Address, Child, Lost, own

_names = itertools.count()


class Kin:
    """What a level knows, in this process, of the processes that take part in its derivative.

    Attributes:
        run: stands for the derivative.
        depth: how many levels are further out.
        children: processes that were started at this level, weakly.
        taken: the messages that have arrived here: key, who took it, which of theirs it is.
        count: how many have arrived.
        first: the exchange that was recorded first; the way back ends there.
        shadow: what tells the way back that was begun last from others: a part of its cotangents.
        passes: how many there were.
        takers: who took each message, by key, in this way back.
        silent: processes that have ended early and whose messages nobody took.
    """

    def __init__(self, run: Any, depth: int) -> None:
        self.run, self.depth = run, depth
        self.name = (os.getpid(), next(_names))
        self.passes = 0
        self.clear()

    def clear(self) -> None:
        """Begin in a new process."""
        self.children: list[Any] = []
        self.taken: list[Any] = []
        self.count = 0
        self.shadow: Any = None
        self.takers: dict[Any, list[Any]] = {}
        self.silent: set[Address] = set()


class Envelope:
    """A differentiated object on its way to another process.

    Attributes:
        kin: which derivative it is about.
        depth: at which level.
        key: who has sent it, and which of theirs it is; None: too late for derivatives.
        x: the object.
        dots: the tangents of its numbers, in forward mode.
    """

    __slots__ = ("depth", "dots", "key", "kin", "x")

    def __init__(self, kin: Any, depth: int, key: Any, x: Any, dots: Any) -> None:
        self.kin, self.depth, self.key, self.x, self.dots = kin, depth, key, x, dots

    def __reduce__(self) -> Any:
        return enveloped_again, (self.kin, self.depth, self.key, self.x, self.dots)


def enveloped_again(*parts: Any) -> Envelope:
    """An envelope that has arrived."""
    if not own().is_related:
        raise RoundTripError(
            "a differentiated value has arrived in a process that takes no part in the derivative, where it would be a "
            "constant.\n  To go on: start the process in the differentiated function, or send plaingrad.stop_gradient(x).\n"
            "  See docs: errors#round-trip"
        )
    return Envelope(*parts)


def post(to: Address, about: Any, values: Any) -> None:
    """Send something about a derivative."""
    own().send(to, about, values)


def receive(about: Any, kin: Kin, of: Address) -> Any:
    """What process `of` has posted."""
    whom = name_of(of)
    try:
        return own().wait(about, whom, lambda: is_lost(of) or not in_order(kin), lambda: check(kin))
    except Lost:
        raise ended_early([of] if is_lost(of) else lost_of(kin)) from None


def launch(start: Any, process: Any, child: Child, state: Any) -> None:
    """Start a process with `state`, which may be in envelopes."""
    process.run.state = state
    start(process)


def opened(parcel: Any) -> Any:
    """What a process was started with."""
    state, parcel.state = parcel.state, None
    return state


def as_they_are(xs: list[Any]) -> list[Any]:
    """Copies of arrays, for a queue's thread pickles them later; followed further out."""
    return [x.copy() if isinstance(x, np.ndarray) else x for x in xs]


def name_of(address: Address) -> str:
    """A process, for messages."""
    child = own().down.get(address[: len(own().address) + 1])
    return f"process {child.named()}" if child is not None else "the process that has started this one"


def is_lost(address: Address) -> bool:
    """Whether the way to a process is gone."""
    child = own().down.get(address[: len(own().address) + 1])
    return child is not None and child.is_lost


def children_of(kin: Kin) -> list[Child]:
    """The processes that were started here at a level."""
    return [child for child in (ref() for ref in kin.children) if child is not None]


def lost_of(kin: Kin) -> list[Address]:
    """Those that have ended in this way back."""
    return [child.address for child in children_of(kin) if child.is_lost and child.address not in kin.silent]


def in_order(kin: Kin) -> bool:
    """Whether all processes that take part in a way back are there."""
    return not lost_of(kin)


def check(kin: Kin) -> None:
    """Raise what a child was refused, or has failed with in this way back."""
    arrived = own().arrived
    for child in children_of(kin):
        for about in (("refused", child.address), ("failed", kin.depth, kin.passes, child.address)):
            if about in arrived:
                raise arrived[about]


def tell(kin: Kin, error: BaseException, is_refusal: bool) -> None:
    """Let the process that has started this one raise an error, in its derivative; it tells the next one, and so on."""
    address = own().address
    about = ("refused", address) if is_refusal else ("failed", kin.depth, kin.passes, address)
    own().send(address[:-1], about, error)


def ended_early(addresses: list[Address]) -> ChildProcessError:
    """The error where a process is no more that would have to take part in the reverse pass."""
    return ChildProcessError(
        f"the reverse pass needs {name_of(addresses[0])}: what it has done with differentiated values is gone with it.\n"
        "  A process that is ended from outside cannot be gone back over.\n  See docs: how-to/processes"
    )


def met(kin: Kin, shadow: Any) -> None:
    """A way back with cotangents `shadow` comes by; if it has just begun, all processes begin theirs."""
    if own().is_kept and kin.shadow is not None:
        return
    if kin.shadow is not shadow.owned:
        kin.shadow = shadow.owned
        begin(kin, kin.passes + 1)


def begin(kin: Kin, number: int) -> None:
    """Let all processes begin way back `number`, when it is known who has taken what."""
    kin.passes = number
    depth = kin.depth
    waiting = []
    kin.silent = set()
    dead = []
    for child in children_of(kin):
        if not child.is_lost:
            own().send(child.address, ("begin", depth, number))
            waiting.append(child)
    taken = list(kin.taken)
    for child in waiting:
        about = ("ready", depth, number, child.address)
        try:
            found, gone = own().wait(about, name_of(child.address), lambda child=child: child.is_lost, lambda: check(kin))
        except Lost:
            continue
        taken += found
        dead += gone
    dead += [child.address for child in children_of(kin) if child.is_lost]
    kin.silent = set(dead)
    if own().is_kept:
        own().send(own().address[:-1], ("ready", depth, number, own().address), (taken, dead))
        go = "go", depth, number
        taken = own().wait(go, "the process that has started this one", lambda: False, lambda: check(kin))
    else:
        for key, _, _ in taken:
            missed = [address for address in dead if key[0][: len(address)] == address]
            if missed:
                raise ended_early(missed)
    kin.takers = {}
    for key, *taker in taken:
        kin.takers.setdefault(key, []).append(taker)
    for child in waiting:
        own().send(child.address, ("go", depth, number), taken)


def takers_of(kin: Kin, key: Any) -> list[Any]:
    """Who has taken a message; a fixed order, so that sums are the same from run to run."""
    return sorted(kin.takers.get(key, []))


def about_bars(kin: Kin, key: Any, taker: Address, nth: int) -> Any:
    """What a message with cotangents is about."""
    return "bars", kin.depth, kin.passes, key, taker, nth


class Left(Exchange):
    """A message that was put into a queue or sent: on the way back, its cotangents from all that took it."""

    def __init__(self, kin: Kin, key: Any, count: int) -> None:
        self.kin, self.key, self.count = kin, key, count
        self.dots: list[Any] = []

    def meet(self, shadow: Any) -> None:
        """See `met`."""
        met(self.kin, shadow)

    def pull(self, bars: list[Any]) -> list[Any]:
        """The sum over those that took it."""
        found = []
        for taker, nth in takers_of(self.kin, self.key):
            found.append(receive(about_bars(self.kin, self.key, taker, nth), self.kin, taker))
        return summed(found, self.count)

    def push(self, dots: list[Any]) -> list[Any]:
        """They go with it."""
        self.dots = dots
        return []


class Came(Exchange):
    """A message that was taken."""

    def __init__(self, kin: Kin, key: Any, nth: int, dots: list[Any]) -> None:
        self.kin, self.key, self.nth, self.dots = kin, key, nth, dots

    def meet(self, shadow: Any) -> None:
        """See `met`."""
        met(self.kin, shadow)

    def pull(self, bars: list[Any]) -> list[Any]:
        """To the process that has sent it."""
        post(self.key[0], about_bars(self.kin, self.key, own().address, self.nth), bars)
        return []

    def push(self, dots: list[Any]) -> list[Any]:
        """They came with it."""
        return self.dots


mover(met, takers_of, about_bars, name_of, check)
