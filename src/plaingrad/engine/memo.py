"""`functools.lru_cache` inside a level: a memo of its own, keyed by identity where values are active."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plaingrad.engine.kinds import NOTHING, NUMBER, SEQUENCE, kind_of

if TYPE_CHECKING:
    from plaingrad.engine.level import Level

_ACTIVE = object()
_KEYWORD = object()


class Memo:
    """What a cached function returned at one level, least recently used first."""

    __slots__ = ("entries", "f", "hits", "level", "maxsize", "misses", "typed")

    def __init__(self, level: Level, f: Any) -> None:
        self.level = level
        self.f = f
        parameters = f.cache_parameters()
        self.maxsize = parameters["maxsize"]
        self.typed = parameters["typed"]
        self.entries: OrderedDict[Any, Any] = OrderedDict()
        self.hits = self.misses = 0

    def key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What calls must share to share a result."""
        parts: list[Any] = [identity_key(self.level, x) for x in args]
        for name, x in kwargs.items():
            parts += (_KEYWORD, name, identity_key(self.level, x))
        if self.typed:
            parts += [type(x) for x in itertools.chain(args, kwargs.values())]
        return tuple(parts)

    def caller(self) -> Callable[..., Any]:
        """What to call instead of the cached function."""
        entries, maxsize = self.entries, self.maxsize
        prep = self.level.prep
        wrapped = self.f.__wrapped__

        def cached(*args: Any, **kwargs: Any) -> Any:
            key = self.key(args, kwargs)
            try:
                found = entries.get(key)
            except TypeError:
                for x in itertools.chain(args, kwargs.values()):
                    hash(x)  # says what is unhashable as a plain call would
                raise
            if found is not None:
                self.hits += 1
                entries.move_to_end(key)
                return found[2]
            self.misses += 1
            value = prep(wrapped)(*args, **kwargs)
            if maxsize != 0:
                entries[key] = (args, kwargs, value)
                if maxsize is not None and len(entries) > maxsize:
                    entries.popitem(last=False)
            return value

        return cached

    def info(self) -> Any:
        """cache_info(): the calls of this level count, with those made before it."""
        outside = self.f.cache_info()
        return outside._replace(
            hits=outside.hits + self.hits, misses=outside.misses + self.misses, currsize=len(self.entries)
        )

    def clear(self) -> None:
        """cache_clear()."""
        self.f.cache_clear()
        self.entries.clear()
        self.hits = self.misses = 0


def identity_key(level: Level, x: Any) -> Any:
    """A key for a memo: the identity of what is active, else the value."""
    kind = kind_of(type(x))
    if kind == NUMBER:
        return (_ACTIVE, id(x)) if id(x) in level.index else x
    if kind == SEQUENCE and type(x) is tuple:
        return tuple([identity_key(level, part) for part in x])
    return x if kind == NOTHING else ("value", x)
