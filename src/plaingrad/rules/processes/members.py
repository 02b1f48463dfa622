"""Processes that a differentiated function starts: their connections, and what they send each other for derivatives.

A process and those that it starts are a tree. Each has a connection to the one that has started it, beside those of the
program; a message to another process is passed on along the tree. Sending never waits: a thread does it.
"""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import threading
import time
from multiprocessing import connection
from queue import SimpleQueue
from typing import Any

from plaingrad.define import mover
from plaingrad.rules.processes.workers import most_seconds

Address = tuple[int, ...]  # of a process: which child of which child of the first one it is


class Wire:
    """A connection to another process of the family."""

    __slots__ = ("_leaving", "_sender", "end")

    def __init__(self, end: Any) -> None:
        self.end = end
        self._leaving: SimpleQueue[bytes | None] | None = None
        self._sender: threading.Thread | None = None

    def send(self, message: Any) -> None:
        """Send without waiting for the other side."""
        if self._leaving is None:
            self._leaving = SimpleQueue()
            self._sender = threading.Thread(target=self._send_all, args=(self._leaving,), daemon=True)
            self._sender.start()
        self._leaving.put(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def _send_all(self, leaving: SimpleQueue[bytes | None]) -> None:
        while (message := leaving.get()) is not None:
            try:
                self.end.send_bytes(message)
            except (OSError, ValueError):  # the other side has ended
                return

    def close(self) -> None:
        """Send what is to leave, and end."""
        if self._leaving is not None and self._sender is not None:
            self._leaving.put(None)
            self._sender.join(5.0)
        self.end.close()


class Child:
    """A process that was started at a level.

    Attributes:
        address: its place in the family.
        process: the program's object.
        where: the line that has started it.
        end: its end of the connection, until it has begun.
        wire: this end.
        is_kept: its derivatives live on when it ends.
        firsts: by the depth of the level, what was active when it was to be started has an index below this.
        is_lost: it has ended without.
    """

    def __init__(self, process: Any, where: str) -> None:
        self.address = (*here.address, next(here.children))
        self.process, self.where = process, where
        mine, self.end = connection.Pipe()
        self.wire = Wire(mine)
        self.is_kept = self.is_lost = False
        self.firsts: dict[int, int] = {}
        here.is_related = True
        here.down[self.address] = self

    def named(self) -> str:
        """The process, for messages."""
        code = self.process.exitcode
        ended = "" if code is None else f", which has ended with exit code {code}"
        if code is not None and code < 0:
            ended = f", which was ended by {signal.Signals(-code).name}"
        return f"`{self.process.name}`, started {self.where}{ended}"


class Member:
    """This process in the family.

    Attributes:
        address: its place.
        up: the wire to the process that has started this one.
        down: the children, by address.
        arrived: messages for this process, by what they are about.
        is_related: there are, or were, other processes.
        is_kept: this process only lives on for derivatives.
        failed: what another process has failed with.
    """

    def __init__(self, address: Address, up: Wire | None) -> None:
        self.address, self.up = address, up
        self.down: dict[Address, Child] = {}
        self.arrived: dict[Any, Any] = {}
        self.is_related = up is not None
        self.is_kept = False
        self.failed: Any = None
        self.messages = itertools.count()
        self.children = itertools.count()
        self.lock = threading.RLock()

    def send(self, to: Address, about: Any, what: Any = None) -> None:
        """Send a message to a process of the family, this one included."""
        self.pass_on((to, about, what))

    def pass_on(self, message: Any) -> None:
        """Keep a message if it is for this process, else send it on."""
        to, about, what = message
        if to == self.address:
            if about[0] == "failed":
                self.failed = self.failed or what
            else:
                self.arrived[about] = what
        elif to[: len(self.address)] == self.address:
            child = self.down.get(to[: len(self.address) + 1])
            if child is not None and not child.is_lost:
                child.wire.send(message)
        elif self.up is not None:
            self.up.send(message)

    def ends(self) -> list[Any]:
        """The connections on which messages may arrive."""
        found = [child.wire.end for child in list(self.down.values()) if not child.is_lost]
        return [*found, self.up.end] if self.is_kept and self.up is not None else found

    def listen(self, seconds: float | None) -> bool:
        """Take what has arrived, for which it waits so many seconds; False if nothing has."""
        with self.lock:
            ready = connection.wait(self.ends(), seconds)
            for end in ready:
                self._take_from(end)
            return bool(ready)

    def _take_from(self, end: Any) -> None:
        try:
            message = pickle.loads(end.recv_bytes())
        except (EOFError, OSError):
            if self.up is not None and end is self.up.end:
                os._exit(0)  # nobody can ask for a derivative any more
            for child in list(self.down.values()):
                if child.wire.end is end:
                    child.is_lost = True
            return
        self.pass_on(message)

    def wait(self, about: Any, whom: str, lost: Any = None) -> Any:
        """The message about something; `lost` says whether it cannot arrive any more."""
        most = most_seconds()
        began = time.monotonic()
        while about not in self.arrived:
            self.check()
            if lost is not None and lost():
                raise Lost
            if about[0] in ("bars", "fork", "go") and self.is_overtaken(about):
                raise Overtaken
            if not self.ends():
                raise ChildProcessError(f"nothing can arrive from {whom} any more")
            left = None if most is None else most - (time.monotonic() - began)
            if left is not None and left <= 0.0 or not self.listen(left):
                raise TimeoutError(
                    f"no answer within {most} s (PLAINGRAD_TASK_TIMEOUT) from {whom}, in the reverse pass"
                )
        return self.arrived.pop(about)

    def is_overtaken(self, about: Any) -> bool:
        """Whether another way back at the same level has begun."""
        return any(k[0] == "begin" and k[1] == about[1] and k[2] > about[2] for k in self.arrived)

    def check(self) -> None:
        """Raise what another process has failed with."""
        if self.failed is not None:
            error, self.failed = self.failed, None
            raise error

    def close(self) -> None:
        """Leave the family: what was forked for something else has no part in it."""
        for child in self.down.values():
            child.wire.end.close()
            child.is_lost = True
        self.down = {}
        if self.up is not None:
            self.up.end.close()
            self.up = None


class Overtaken(BaseException):
    """The way back was broken off where it began, and another one has begun."""


class Lost(Exception):
    """A process has ended that was to answer."""


class PassedOver(BaseException):
    """The way back has come to the place where this process was started."""


here = Member((), None)


def become(address: Address, up: Any) -> Member:
    """This process is now the child at `address`."""
    global here
    here.close()
    here = Member(address, Wire(up))
    return here


def own() -> Member:
    """This process."""
    return here


_forking = threading.local()  # a fork of a member of the family, in this thread


def after_fork_in_child() -> None:
    """A child that was forked for something else closes the connections."""
    if not getattr(_forking, "is_of_family", False):
        here.close()
        here.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork_in_child)


mover(own)
