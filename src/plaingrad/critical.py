"""Critical sections that asynchronous exceptions (KeyboardInterrupt) cannot tear, wherever they arrive.

An exception may arrive between any two instructions, also in a `finally` block, in the handler of another one, and
between taking a lock and the `try` that would release it. So the rules here are: record before changing; let every
clean-up be one that may be done twice, from its beginning; and do it in a `finally`, and in `except BaseException`
around that, one around the other. The clean-up is done whole if at most as many further exceptions arrive until its
end as there are handlers: TIMES, everywhere. A loop, or a function that tries again, would not do: there are always
instructions before its own `try`. On the way without exceptions, handlers cost nothing.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

TIMES = 4  # exceptions that may arrive while what another one has ended is cleaned up


def exclusively(lock: Any, work: Callable[..., Any], *args: Any) -> Any:
    """work(*args) while this thread holds `lock`, a `threading.RLock`, which is free again whatever happens."""
    owned = lock._is_owned
    if owned():  # further out in this thread, or a finaliser came in between
        return work(*args)
    try:
        try:
            try:
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
            except BaseException:
                if owned():
                    lock.release()
                raise
        except BaseException:
            if owned():
                lock.release()
            raise
    except BaseException:
        if owned():
            lock.release()
        raise


def if_free(lock: Any, work: Callable[..., Any], *args: Any) -> Any:
    """work(*args) while this thread holds `lock`; False where somebody, this thread included, holds it already."""
    if lock._is_owned():
        return False

    def begin() -> Any:
        return lock.acquire(blocking=False) and work(*args)

    def end() -> None:
        if lock._is_owned():
            lock.release()

    return closing(begin, end)


def closing(work: Callable[..., Any], close: Callable[[], Any], *args: Any) -> Any:
    """work(*args), and then close(), which is done again from its beginning if an exception cuts it short."""
    is_closed = False
    try:
        try:
            try:
                try:
                    try:
                        return work(*args)
                    finally:
                        close()
                        is_closed = True
                except BaseException:
                    if not is_closed:
                        close()
                        is_closed = True
                    raise
            except BaseException:
                if not is_closed:
                    close()
                    is_closed = True
                raise
        except BaseException:
            if not is_closed:
                close()
                is_closed = True
            raise
    except BaseException:
        if not is_closed:
            close()
        raise


_shared: list[tuple[Any, float]] = []  # locks of modules, and how long a fork waits for each
forks = 0  # how many this process has behind it, since plaingrad was imported


def shared_lock(wait: float = 1.0) -> Any:
    """A new reentrant lock, which is free in a forked child.

    A fork waits until no other thread is in the middle of what the lock guards, at most for `wait` seconds.
    """
    lock = threading.RLock()
    guard_at_fork(lock, wait)
    return lock


def guard_at_fork(lock: Any, wait: float) -> None:
    """Let a fork wait for `lock`, an RLock, and the child have it free."""
    _shared.append((lock, wait))


def before_fork() -> None:
    """Take every shared lock, all at once: other threads take several of them in orders of their own."""
    begun = time.monotonic()
    while True:
        held_up = max([wait for lock, wait in _shared if not lock.acquire(blocking=False)], default=0.0)
        if time.monotonic() - begun >= held_up:
            return
        after_fork()
        time.sleep(0.0005)


def after_fork() -> None:
    """Let go of the shared locks."""
    for lock, _ in reversed(_shared):
        if lock._is_owned():
            lock.release()


def after_fork_in_child() -> None:
    """Let go of every shared lock in the child, where nobody else holds one."""
    global forks
    forks += 1
    for lock, _ in reversed(_shared):
        if lock._is_owned():
            lock.release()
        else:
            lock._at_fork_reinit()


_importing = shared_lock(60.0)


def imported(name: str) -> Any:
    """The module `name`, of ours; a fork waits for an import, which a child could never end."""
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    return exclusively(_importing, importlib.import_module, name)


class Lock:
    """A lock for one call at a time, free in a forked child whoever held it."""

    __slots__ = ("forks", "lock")

    def __init__(self) -> None:
        self.forks = forks
        self.lock: Any = threading.RLock()

    def hold(self, work: Callable[..., Any], *args: Any) -> Any:
        """work(*args) while this thread holds the lock."""
        if self.forks != forks:
            self.lock, self.forks = threading.RLock(), forks
        return exclusively(self.lock, work, *args)
