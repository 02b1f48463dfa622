"""The engine's observer while a call is looked at: derivatives in this context run at observed levels."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

from plaingrad.diagnosis.back import pulled
from plaingrad.diagnosis.observed import ObservedForward
from plaingrad.diagnosis.watching import Recorded, Watch
from plaingrad.engine.forward import push as pushing
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.refusals import watch as seam
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents import NoTangent, ZeroTangent

WATCH: contextvars.ContextVar[Watch | None] = contextvars.ContextVar("plaingrad watch", default=None)
_lock = threading.Lock()
_open = 0  # how many calls are looked at now
_before: Any = None  # the observer that was there before


class Looking:
    """The observer of the engine while a call is looked at. Other threads, and other calls, are left alone."""

    def recorded(self, run: Any, f: Any, args: Any, argnums: Any, kwargs: Any, result: Any) -> None:
        """A call in reverse mode."""
        watch = WATCH.get()
        if watch is None:
            if _before is not None:
                _before.recorded(run, f, args, argnums, kwargs, result)
            else:
                run.record(f, args, argnums, kwargs, result)
            return
        seen = Recorded.__new__(Recorded)
        seen.result = result
        Recorded.__init__(seen, f, args, argnums, kwargs, watch, PLAIN)
        run.lock, run.watched = None, []
        run.level, run.nodes, run.value, run.slots = seen.level, seen.nodes, seen.value, seen.slots
        plain_pull = run._pull

        def pull(y_bar: Any) -> Any:
            if CURRENT.get() is not PLAIN:
                return plain_pull(y_bar)
            told = watch.told
            return pulled(run.level, run.slots, y_bar, run.nodes, watcher=told).gradients

        run._pull = pull

    def pushed(
        self, pushed: Any, f: Any, args: Any, dots: Any, kwargs: Any, chunk: Any, level_class: Any
    ) -> Any:
        """A call in forward mode."""
        watch = WATCH.get()
        if watch is None or level_class is not ForwardLevel:
            if _before is not None:
                return _before.pushed(pushed, f, args, dots, kwargs, chunk, level_class)
            return pushed(f, args, dots, kwargs, chunk, level_class)
        level = ObservedForward(PLAIN, chunk)
        level.observe(watch)
        active = tuple(
            [
                n
                for n, x_dot in enumerate(dots)
                if x_dot is not None and x_dot is not ZeroTangent and x_dot is not NoTangent
            ]
        )
        return pushing._pushed(level, f, args, active, dots, kwargs)

    def went_inside(self) -> None:
        """A derivative is taken inside another."""
        if _before is not None:
            _before.went_inside()

    def hooked(self) -> None:
        """A hook was put on a value."""
        if _before is not None:
            _before.hooked()


@contextlib.contextmanager
def looked_at(watch: Watch) -> Iterator[None]:
    """Derivatives that are taken inside, in this context, are looked at by `watch`."""
    global _open, _before
    with _lock:
        if _open == 0:
            _before = seam.observer
            seam.observer = Looking()
        _open += 1
    token = WATCH.set(watch)
    try:
        yield
    finally:
        WATCH.reset(token)
        with _lock:
            _open -= 1
            if _open == 0:
                seam.observer, _before = _before, None
