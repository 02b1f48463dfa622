"""Connections between processes: what sends without waiting, and threads that wait for several at once."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
from multiprocessing import connection
from queue import SimpleQueue
from typing import Any

from plaingrad.critical import exclusively


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


class Listeners:
    """The threads of a process that wait for the same connections.

    A message may be taken by a thread that it is not for. So each waits at a pipe of its own, too: who takes a message
    wakes the others, and so does who makes a new connection. Nobody holds `lock` while waiting.
    """

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.waiting: list[Listener] = []

    def wake(self) -> None:
        """Let all look again; the lock is held."""
        for listener in self.waiting:
            with contextlib.suppress(BlockingIOError):  # it is full: the thread is being woken
                os.write(listener.wakes, b"!")

    def forget(self) -> None:
        """Forget all, whose threads this process has not."""
        for listener in self.waiting:
            listener.close()
        self.waiting = []


class Listener:
    """A thread that waits: from `with` on it misses nothing."""

    def __init__(self, listeners: Listeners) -> None:
        self.listeners = listeners

    def __enter__(self) -> Listener:
        self.woken, self.wakes = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(self.wakes, False)
        exclusively(self.listeners.lock, self.listeners.waiting.append, self)
        return self

    def __exit__(self, *_: object) -> None:
        exclusively(self.listeners.lock, self._leave)

    def _leave(self) -> None:
        if self in self.listeners.waiting:
            self.listeners.waiting.remove(self)
            self.close()

    def close(self) -> None:
        """Close the pipe."""
        os.close(self.woken)
        os.close(self.wakes)

    def wait(self, ends: list[Any], seconds: float | None) -> list[Any]:
        """Those of the connections that have something to read; none if the thread was woken, or after the time."""
        ready = connection.wait([*ends, self.woken], seconds)
        if self.woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self.woken, 4096)
            ready.remove(self.woken)
        return ready
