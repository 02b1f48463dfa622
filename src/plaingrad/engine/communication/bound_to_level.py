"""Functions and iterators that run at a level whatever the thread, or the context, that they are called in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from plaingrad.engine.compiled import core
from plaingrad.rewrite import PLAIN, in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def at_level(level: Level, f: Any) -> Callable[..., Any]:
    """`f`, rewritten, to be run with `level` in force whatever the context it is called in."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return in_force(level, level.prep(f), *args, **kwargs)

    return run


def task_at_level(level: Level, f: Any) -> Callable[..., Any]:
    """As `at_level`, of what is to run in another thread: each call is a task, with a stretch of tape of its own."""
    run = at_level(level, f)
    tapes = tapes_of(level)
    if not tapes:
        return run

    def run_task(*args: Any, **kwargs: Any) -> Any:
        entered = [(tape, tape.enter()) for tape in tapes]
        try:
            return run(*args, **kwargs)
        finally:
            for tape, before in entered:
                tape.leave(before)

    return run_task


def tapes_of(level: Any) -> list[Any]:
    """The compiled tapes of `level` and of those further out."""
    found = []
    while level is not PLAIN and level is not None:
        tape = getattr(level, "tape", None)
        if core is not None and type(tape) is core.Tape:
            found.append(tape)
        level = getattr(level, "parent", None)
    return found


class Stepped:
    """The items of `items`, each made with `level` in force wherever the next one is asked for; `look` sees them."""

    def __init__(self, level: Level, items: Iterable[Any], look: Callable[[Any], None]) -> None:
        self.step = at_level(level, iter(level.iterable(items)).__next__)
        self.look = look

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        item = self.step()
        self.look(item)
        return item
