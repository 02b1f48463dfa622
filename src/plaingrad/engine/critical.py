"""Critical sections that an asynchronous exception (KeyboardInterrupt) cannot tear, wherever it arrives.

An exception may arrive between any two instructions, also in a `finally` block, and between taking a lock and the `try`
that would release it. So the rules here are: record before changing; let every clean-up be one that may be done twice;
and do it twice, in a `finally` and in an `except BaseException` around that, so that one which is cut short is done
again from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.rewrite import CURRENT


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


def in_force(hooks: Any, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """work(*args, **kwargs) while `hooks` are the current ones."""
    before = CURRENT.get()
    try:
        try:
            CURRENT.set(hooks)
            return work(*args, **kwargs)
        finally:
            CURRENT.set(before)
    except BaseException:
        CURRENT.set(before)
        raise


def closing(work: Callable[[], Any], close: Callable[[], Any]) -> Any:
    """work(), and then close(), which is done again if an exception cuts it short."""
    try:
        try:
            return work()
        finally:
            close()
    except BaseException:
        close()
        raise
