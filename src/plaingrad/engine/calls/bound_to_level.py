"""Functions and iterators that run at a level whatever the thread, or the context, that they are called in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from plaingrad.rewrite import in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def at_level(level: Level, f: Any) -> Callable[..., Any]:
    """`f`, rewritten, to be run with `level` in force whatever the context it is called in."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return in_force(level, level.prep(f), *args, **kwargs)

    return run


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
