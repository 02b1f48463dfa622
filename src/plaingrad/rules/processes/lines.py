"""Lines to the workers that have kept tapes: sockets of this machine, by which cotangents go there and come back.

Both sides ask the system whose process the other one is: nobody else's is listened to, or asked.
"""

from __future__ import annotations

import atexit
import os
import socket
import struct
import sys
import threading
import weakref
from concurrent.futures import Future
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from plaingrad.critical import exclusively, shared_lock

#: Whether there are sockets that have a name, need no file, and tell who is at the other end, and a process knows its size.
ARE_POSSIBLE = (
    sys.platform == "linux" and hasattr(socket, "SO_PEERCRED") and os.path.exists("/proc/self/statm")
)
PATIENCE = 5.0  # seconds to be connected
DROPS = "-drops"  # what the name of the socket ends with to which is sent what nobody needs any more

_lock = shared_lock()
_lines: weakref.WeakValueDictionary[str, Line] = weakref.WeakValueDictionary()
_of_drops: dict[int, socket.socket] = {}  # by process


class Gone(Exception):
    """A worker has ended, or does not have the tape."""


class Line:
    """A connection to one worker; a thread asks, one question after the other, while somebody holds the line."""

    __slots__ = ("__weakref__", "asked")

    def __init__(self, address: str) -> None:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            end.settimeout(PATIENCE)
            end.connect(address)
            end.settimeout(None)
            if not is_ours(end):
                raise ConnectionRefusedError
        except BaseException:
            end.close()
            raise
        self.asked: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=ask_all, args=(Connection(end.detach()), self.asked), daemon=True).start()
        weakref.finalize(self, self.asked.put, None).atexit = False

    def ask(self, key: bytes, bars: list[Any]) -> Future[Any]:
        """What the worker makes of cotangents; fails with `Gone` where it cannot."""
        answer: Future[Any] = Future()
        self.asked.put((key, bars, answer))
        return answer


def ask_all(end: Any, asked: SimpleQueue[Any]) -> None:
    """Ask what is to be asked, until there is None."""
    while (question := asked.get()) is not None:
        key, bars, answer = question
        del question
        try:
            end.send((key, bars))
            is_there, found = end.recv()
        except BaseException:  # the worker has ended, or nobody can go on with what it has sent
            end.close()
            is_there, found = False, None
        if is_there:
            answer.set_result(found)
        else:
            answer.set_exception(Gone())
        del answer, found
    end.close()


def line_to(address: str) -> Line:
    """The line to a worker; an OSError where it has ended."""
    return exclusively(_lock, _line_to, address)  # type: ignore[no-any-return]


def _line_to(address: str) -> Line:
    found = _lines.get(address)
    if found is None:
        found = _lines[address] = Line(address)
    return found


def is_ours(end: socket.socket) -> bool:
    """Whether the process at the other end is of the same user."""
    _, uid, _ = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return bool(uid == os.geteuid())


def drop(owner: int, key: bytes, at: list[str]) -> None:
    """Tell the worker that has kept a tape that nobody needs it; called when its task is collected: it never waits."""
    if not at or os.getpid() != owner:
        return
    try:
        sender = _of_drops.get(owner)
        if sender is None:
            sender = _of_drops[owner] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            atexit.register(sender.close)
        sender.sendto(key, at[0] + DROPS)
    except OSError:  # it has ended, or has too much to read: the next task tells it, too
        pass


def after_fork_in_child() -> None:
    """The threads that ask are not in the child."""
    global _lock
    _lock = shared_lock()
    _lines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork_in_child)
