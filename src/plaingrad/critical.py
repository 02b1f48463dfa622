"""Critical sections that an asynchronous exception (KeyboardInterrupt) cannot tear, wherever it arrives.

An exception may arrive between any two instructions, also in a `finally` block, and between taking a lock and the `try`
that would release it. So the rules here are: record before changing; let every clean-up be one that may be done twice;
and do it twice, in a `finally` and in an `except BaseException` around that, so that one which is cut short is done
again from its beginning.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def exclusively(lock: Any, work: Callable[..., Any], *args: Any) -> Any:
    """work(*args) while this thread holds `lock`, a `threading.RLock`, which is free again whatever happens."""
    owned = lock._is_owned
    if owned():  # further out in this thread, or a finaliser came in between
        return work(*args)
    try:
        try:
            lock.acquire()
            return work(*args)
        finally:
            if owned():
                lock.release()
    except BaseException:
        if owned():
            lock.release()
        raise


def closing(work: Callable[..., Any], close: Callable[[], Any], *args: Any) -> Any:
    """work(*args), and then close(), which is done again from its beginning if an exception cuts it short."""
    try:
        try:
            return work(*args)
        finally:
            close()
    except BaseException:
        close()
        raise


forks = 0  # how many this process has behind it, as far as it is known


class Lock:
    """A lock for one call at a time, free in a forked child whoever held it."""

    __slots__ = ("forks", "lock")

    def __init__(self) -> None:
        self.forks = forks
        self.lock = threading.RLock()

    def hold(self, work: Callable[..., Any], *args: Any) -> Any:
        """work(*args) while this thread holds the lock."""
        if self.forks != forks:
            self.lock, self.forks = threading.RLock(), forks
        return exclusively(self.lock, work, *args)
