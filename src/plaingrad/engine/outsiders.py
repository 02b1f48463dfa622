"""Code that runs outside the frames of a level: threads, pools, callbacks held by C code.

A level is found through the context, so what runs elsewhere is handed a copy of the context; what C code calls
is handed over rewritten and may not return active values to it.
"""

from __future__ import annotations

import concurrent.futures
import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plaingrad.engine.refuse import missing_rule

if TYPE_CHECKING:
    from plaingrad.engine.level import Level


def callback(level: Level, f: Any) -> Callable[..., Any]:
    """`f` for C code that has no rule: rewritten, and refused when it returns an active value."""
    instead = level.prep(f)

    def called_back(*args: Any, **kwargs: Any) -> Any:
        result = instead(*args, **kwargs)
        if level.calls.finds_active(result):
            missing_rule(f, "It is called by C code without a rule, and returns a differentiated value to it.")
        return result

    return called_back


def in_context(level: Level, f: Any) -> Callable[..., Any]:
    """`f` to be run by another thread: rewritten, in a copy of this context."""
    instead = level.prep(f)
    context = contextvars.copy_context()

    def run(*args: Any, **kwargs: Any) -> Any:
        return context.copy().run(instead, *args, **kwargs)

    return run


def _thread_start(level: Level) -> Callable[..., Any]:
    def start(thread: threading.Thread) -> None:
        """Start the thread in a copy of this context."""
        thread.run = in_context(level, thread.run)  # type: ignore[method-assign]
        threading.Thread.start(thread)

    return start


def _submit(level: Level) -> Callable[..., Any]:
    def submit(executor: Any, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Submit to the pool, to run in a copy of this context."""
        return concurrent.futures.ThreadPoolExecutor.submit(executor, in_context(level, f), *args, **kwargs)

    return submit


FUNCTIONS: dict[Any, Callable[[Any], Any]] = {
    threading.Thread.start: _thread_start,
    concurrent.futures.ThreadPoolExecutor.submit: _submit,
}
