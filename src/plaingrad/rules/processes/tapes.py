"""Tasks that are recorded where they run, in a worker, and tapes that stay there until the way back asks for them.

A pool gives a task to any worker, but a tape is in one. So a worker with tapes has a thread that is asked by a line of
its own (`lines`). Nothing depends on it: where the worker has ended, or has kept no tape, the task runs again (`steps`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import threading
import weakref
from collections import deque
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

import numpy as np

from plaingrad.critical import exclusively
from plaingrad.errors import PlaingradError
from plaingrad.rules import derivatives
from plaingrad.rules.processes.lines import DROPS, drop, is_ours
from plaingrad.rules.processes.steps import Task, as_function, rest_of, with_leaves
from plaingrad.rules.processes.users_rules import check_known, names_with_rules

# -- where the task was begun ------------------------------------------------------------------------------------------


class Begun:
    """The tasks of this process that are recorded in workers, by key: who has begun them, and a number that grows."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.token = secrets.token_bytes(8)
        self.numbers = itertools.count()
        self.alive: weakref.WeakValueDictionary[bytes, Task] = weakref.WeakValueDictionary()
        self.order: deque[bytes] = deque()
        self.lock = threading.RLock()  # finalisers do not take it

    def enter(self, task: Task) -> bytes:
        """A key for a task; when nobody needs that any more, its worker is told."""
        return exclusively(self.lock, self._enter, task)  # type: ignore[no-any-return]

    def _enter(self, task: Task) -> bytes:
        key = self.token + next(self.numbers).to_bytes(8, "big")
        task.kept_at = []
        self.alive[key] = task
        self.order.append(key)
        weakref.finalize(task, drop, self.owner, key, task.kept_at).atexit = False
        return key

    def oldest(self) -> bytes:
        """The first key that somebody needs: tapes with smaller ones are nobody's. There is one."""
        return exclusively(self.lock, self._oldest)  # type: ignore[no-any-return]

    def _oldest(self) -> bytes:
        while self.order[0] not in self.alive:
            self.order.popleft()
        return self.order[0]


_begun = Begun()


def recording(task: Task) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What a worker is to call in place of the task, with its arguments, so that it is recorded there."""
    task.key = key = _begun.enter(task)
    task.hold = task.workers.hold()
    call = task.pickled, rest_of(task), task.places, task.kept
    return run_recorded, (call, names_with_rules(), key, _begun.oldest(), task.workers.most_bytes)


class Recorded:
    """The result of a task on its way back; who takes it out of its bytes has the result alone."""

    def __init__(self, value: Any, key: bytes, address: str) -> None:
        self.parts = value, key, address

    def __reduce__(self) -> Any:
        return arrived, self.parts


def arrived(value: Any, key: bytes, address: str) -> Any:
    """The result of a task, of which it becomes known where its tape is."""
    task = _begun.alive.get(key)
    if task is not None and task.kept_at is not None:
        task.kept_at.append(address)
    return value


# -- in the worker -----------------------------------------------------------------------------------------------------


class Tapes:
    """The tapes that a worker keeps.

    Attributes:
        kept: by key the pullback, the numbers and arrays of the result, and their sums.
        before: how much memory the process had, in bytes, when there was none.
        address: where the thread is asked; empty: there is none yet.
        ends: its sockets.
    """

    def __init__(self) -> None:
        self.kept: dict[bytes, Any] = {}
        self.before = 0
        self.address = ""
        self.ends: list[Any] = []

    def has_room(self, most: int, oldest: bytes) -> bool:
        """Whether another tape may be kept, when those are gone that nobody needs."""
        for key in [key for key in list(self.kept) if key[:8] == oldest[:8] and key < oldest]:
            self.kept.pop(key, None)
        if not self.kept:
            self.before = resident()
        return resident() - self.before < most

    def listen(self) -> None:
        """Let a thread be asked."""
        address = f"\0plaingrad-{secrets.token_hex(16)}"
        asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        dropped = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        asked.bind(address)
        asked.listen(128)
        dropped.bind(address + DROPS)
        self.ends = [asked, dropped]
        threading.Thread(target=self.serve, args=(asked, dropped), daemon=True).start()
        self.address = address

    def serve(self, asked: socket.socket, dropped: socket.socket) -> None:
        """Answer, one question after the other. However it ends, nobody waits for an answer in vain."""
        try:
            while True:
                for end in connection.wait(self.ends):
                    if end is asked:
                        self.accept(asked)
                    elif end is dropped:
                        with contextlib.suppress(OSError):
                            self.kept.pop(dropped.recv(64), None)
                    else:
                        self.answer(end)
        finally:
            self.close()

    def accept(self, asked: socket.socket) -> None:
        """Somebody wants to ask."""
        try:
            end, _ = asked.accept()
        except OSError:  # not any more
            return
        if is_ours(end):
            end.setblocking(True)
            self.ends.append(connection.Connection(end.detach()))
        else:
            end.close()

    def answer(self, end: Any) -> None:
        """Answer a question: cotangents of the arguments for those of the result."""
        try:
            key, bars = end.recv()
            end.send(self.pulled(key, bars))
        except Exception:  # who asks has ended, or cannot be answered; there it runs again
            self.ends.remove(end)
            end.close()

    def pulled(self, key: bytes, bars: list[Any]) -> tuple[bool, Any]:
        """Whether it could be done, and the cotangents. A task that fails here runs again, and then that is told."""
        found = self.kept.get(key)
        if found is None:
            return False, None
        ys, pullback = found
        try:
            return True, pullback([y * 0.0 if bar is None else bar for y, bar in zip(ys, bars, strict=True)])[0]
        except Exception:
            return False, None

    def close(self) -> None:
        """Close all sockets."""
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.close()
        self.ends = []


_tapes = Tapes()


def run_recorded(call: Any, ruled: Any, key: bytes, oldest: bytes, most: int) -> Any:
    """What the task returns, and its tape is kept; or, where that cannot be recorded or is too large, as without.

    An exception of the task is raised; its numbers have their derivative when the task runs again.
    """
    tapes = _tapes
    kept = record(call, ruled, most) if tapes.has_room(most, oldest) else None
    if kept is None:
        f, args, kwargs = with_leaves(*call)
        return f(*args, **kwargs)
    value, ys, pullback = kept
    if resident() - tapes.before > most:
        return value
    if not tapes.address:
        tapes.listen()
    tapes.kept[key] = ys, pullback
    return Recorded(value, key, tapes.address)


def record(call: Any, ruled: Any, most: int) -> Any:
    """The result of a task, its numbers and arrays, and its pullback; None: it cannot be recorded."""
    pickled, rest, places, xs = call
    failed: list[Any] = []
    values: list[Any] = []
    f = as_function(pickled, of_their_own(rest), places, failed, values)
    try:
        check_known(ruled)
        ys, pullback = derivatives.OPERATORS["vjp"](f, of_their_own(xs))
        check_known(ruled)
    except PlaingradError:  # it is told on the way back, where it runs again
        return None
    if failed and isinstance(failed[0], (MemoryError, RecursionError)):
        return None  # it may be the tape's
    if failed:
        raise failed[0]
    return values[0], ys, pullback


def of_their_own(xs: list[Any]) -> list[Any]:
    """The same with copies of arrays: a task may write into them, and run once more."""
    return [x.copy() if isinstance(x, np.ndarray) else x for x in xs]


def resident() -> int:
    """The memory of this process, in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def after_fork_in_child() -> None:
    """What a child has of its parent's sockets is closed: nobody is to wait for an answer there."""
    global _begun, _tapes
    _tapes.close()
    _begun, _tapes = Begun(), Tapes()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork_in_child)
