"""Processes that a differentiated function starts: their connections, and what they send each other for derivatives.

A process and those that it starts are a tree. Each has a connection to the one that has started it, beside those of the
program; a message to another process is passed on along the tree. Sending never waits: a thread does it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import signal
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from plaingrad.critical import exclusively, shared_lock
from plaingrad.define import mover
from plaingrad.rules.processes.wires import Listener, Listeners, Wire
from plaingrad.rules.processes.workers import most_seconds

Address = tuple[int, ...]  # of a process: which child of which child of the first one it is


class Child:
    """A process that was started at a level. It is held by the program's object and by tapes, and ends with these.

    Attributes:
        address: its place in the family.
        name: that of the program's object.
        ran: what knows its exit code, when it was started.
        where: the line that has started it.
        end: its end of the connection, until it has begun.
        wire: this end.
        is_kept: its derivatives live on when it ends.
        firsts: by the depth of the level, what was active when it was to be started has an index below this.
        is_lost: it has ended without.
    """

    def __init__(self, name: str, where: str) -> None:
        self.address = (*here.address, next(here.children))
        self.name, self.where = name, where
        self.ran: Any = None
        self.is_kept = self.is_lost = False
        self.firsts: dict[int, int] = {}
        here.is_related = True
        exclusively(_connecting, self._connect)
        weakref.finalize(self, self.wire.close)

    def _connect(self) -> None:
        mine, self.end = connection.Pipe()
        self.wire = Wire(mine)
        here.add(self)

    def close_end(self) -> None:
        """It has its end now; a fork finds it open or closed, and not in between."""
        exclusively(_connecting, self.end.close)

    def has_begun(self, process: Any) -> None:
        """The program's object was started, or was not."""
        self.close_end()
        self.ran = process._popen
        self.is_lost = process.ident is None

    def named(self) -> str:
        """The process, for messages."""
        code = None if self.ran is None else self.ran.poll()
        ended = "" if code is None else f", which has ended with exit code {code}"
        if code is not None and code < 0:
            ended = f", which was ended by {signal.Signals(-code).name}"
        return f"`{self.name}`, started {self.where}{ended}"


class Member:
    """This process in the family.

    Attributes:
        address: its place.
        up: the wire to the process that has started this one.
        down: the children, by address.
        arrived: messages for this process, by what they are about.
        is_related: there are, or were, other processes.
        is_kept: this process only lives on for derivatives.
        is_copied: one that does was made of this process; it knows nothing of what is recorded here from now on.
        lock: held by who takes messages.
        listeners: the threads that wait for some.
    """

    def __init__(self, address: Address, up: Wire | None) -> None:
        self.address, self.up = address, up
        self.down: weakref.WeakValueDictionary[Address, Child] = weakref.WeakValueDictionary()
        self.arrived: dict[Any, Any] = {}
        self.is_related = up is not None
        self.is_kept = self.is_copied = False
        self.messages = itertools.count()
        self.children = itertools.count()
        self.begin_to_listen()

    def begin_to_listen(self) -> None:
        """Begin where no other thread listens."""
        self.lock: Any = threading.RLock()
        self.listeners = Listeners(self.lock)

    def add(self, child: Child) -> None:
        """There is one more."""
        self.down[child.address] = child
        exclusively(self.lock, self.listeners.wake)

    def near(self) -> list[Child]:
        """The children."""
        return [child for child in (ref() for ref in self.down.valuerefs()) if child is not None]

    def send(self, to: Address, about: Any, what: Any = None) -> None:
        """Send a message to a process of the family, this one included."""
        self.pass_on((to, about, what))

    def pass_on(self, message: Any) -> None:
        """Keep a message if it is for this process, else send it on."""
        to, about, what = message
        if to == self.address:
            self.arrived[about] = what
        elif to[: len(self.address)] == self.address:
            child = self.down.get(to[: len(self.address) + 1])
            if child is not None and not child.is_lost:
                child.wire.send(message)
        elif self.up is not None:
            self.up.send(message)

    def ends(self) -> list[Any]:
        """The connections on which messages may arrive."""
        found = [child.wire.end for child in self.near() if not child.is_lost]
        found = [end for end in found if not end.closed]
        return [*found, self.up.end] if self.is_kept and self.up is not None else found

    def take(self) -> None:
        """Take the messages that have arrived."""
        exclusively(self.lock, self._take)

    def _take(self) -> None:
        for end in self._ready():
            self._take_from(end)
        self.listeners.wake()

    def _ready(self) -> list[Any]:
        """The connections on which messages have arrived; while they are asked another thread may let go of a child."""
        while True:
            ends = self.ends()
            try:
                return connection.wait(ends, 0)
            except (OSError, ValueError):
                if not any(end.closed for end in ends):
                    raise

    def _take_from(self, end: Any) -> None:
        try:
            message = pickle.loads(end.recv_bytes())
        except (EOFError, OSError):
            if self.up is not None and end is self.up.end:
                os._exit(0)  # nobody can ask for a derivative any more
            for child in self.near():
                if child.wire.end is end:
                    child.is_lost = True
            return
        self.pass_on(message)

    def listen(self, is_over: Callable[[], Any], seconds: float | None) -> bool:
        """Take messages until `is_over`, which may be by another thread; False if it is not within so many seconds."""
        end = None if seconds is None else time.monotonic() + seconds
        with Listener(self.listeners) as listener:
            while not is_over():
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0.0:
                    return False
                with contextlib.suppress(OSError, ValueError):  # one was closed meanwhile
                    if listener.wait(self.ends(), left):
                        self.take()
        return True

    def wait(self, about: Any, whom: str, lost: Callable[[], bool], check: Callable[[], Any]) -> Any:
        """The message about something; `lost` says whether it cannot arrive any more, `check` may raise an error."""

        def is_over() -> bool:
            if about in self.arrived:
                return True
            check()
            if lost():
                raise Lost
            if about[0] in ("bars", "fork", "go") and self.is_overtaken(about):
                raise Overtaken
            if not self.ends():
                raise ChildProcessError(f"nothing can arrive from {whom} any more")
            return False

        most = most_seconds()
        if not self.listen(is_over, most):
            raise TimeoutError(f"no answer within {most} s (PLAINGRAD_TASK_TIMEOUT) from {whom}, in the reverse pass")
        return self.arrived.pop(about)

    def is_overtaken(self, about: Any) -> bool:
        """Whether another way back at the same level has begun."""
        return any(k[0] == "begin" and k[1] == about[1] and k[2] > about[2] for k in list(self.arrived))

    def leave_children(self) -> None:
        """Let go of the children; a copy of this process may hold them."""
        for child in self.near():
            for end in (child.wire.end, child.end):
                with contextlib.suppress(OSError):  # another thread was about to close it at the fork
                    end.close()
            child.is_lost = True
        self.down.clear()

    def close(self) -> None:
        """Leave the family: what was forked for something else has no part in it."""
        self.leave_children()
        self.listeners.forget()
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
_connecting = shared_lock()  # a fork sees a connection with the child that it is for, or none


def become(child: Child) -> Member:
    """This process is now that child."""
    global here
    mine = os.dup(child.end.fileno())
    here.close()
    here = Member(child.address, Wire(connection.Connection(mine)))
    return here


def own() -> Member:
    """This process."""
    return here


_forking = threading.local()  # a fork of a member of the family, in this thread


def after_fork_in_child() -> None:
    """A child that was forked for something else closes the connections."""
    if not getattr(_forking, "is_of_family", False):
        here.close()
        here.begin_to_listen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork_in_child)


mover(own)
