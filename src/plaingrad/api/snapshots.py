"""What arguments hold, put back so that a function that changes them can be called again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.leaves import here
from plaingrad.engine.memory.entries import entries_of, has_fields, put
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NUMBER, SEQUENCE, kind_of
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents.fields import slot_names


class Snapshot:
    """What some arguments hold, so that a function that changes them can be called again."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.arrays: list[tuple[np.ndarray, Any]] = []
        self.containers: dict[int, tuple[Any, Any]] = {}
        for x in arguments:
            self._look(x)

    def _look(self, x: Any) -> None:
        kind = kind_of(type(x))
        if kind == ARRAY:
            self.arrays.append((x, here(recorded.copied, x)))
        elif kind in (SEQUENCE, MAPPING) or has_fields(x):
            if id(x) in self.containers:
                return
            entries = entries_of(x)
            if not isinstance(x, tuple):
                self.containers[id(x)] = x, entries
            for _, value in entries:
                self._look(value)

    def is_changed(self) -> bool:
        """Whether something is not as it was."""
        if any(has_changed(x, entries) for x, entries in self.containers.values()):
            return True
        return not all(np.array_equal(x, saved, equal_nan=True) for x, saved in self.arrays)

    def restore(self) -> None:
        """Put everything back."""
        for x, entries in self.containers.values():
            if not has_changed(x, entries):
                continue
            if isinstance(x, (list, deque)):
                x.clear()
                x.extend([value for _, value in entries])
            elif isinstance(x, dict):
                x.clear()
                x.update(entries)
            else:
                fields = getattr(x, "__dict__", None)
                if type(fields) is dict:  # emptied: the order of the attributes is that of the leaves
                    kept = {key: value for key, value in entries if key not in slot_names(type(x))}
                    fields.clear()
                    fields.update(kept)
                for key, value in entries:
                    put(x, key, value)
        for x, saved in self.arrays:
            if x.flags.writeable:
                here(recorded.overwrite, x, saved)


def has_changed(x: Any, entries: list[Any]) -> bool:
    """Whether container `x` holds something else than `entries`.

    Another thread that differentiates by the same container has equal numbers in the place of its numbers; they will
    go again.
    """
    now = entries_of(x)
    if [key for key, _ in now] != [key for key, _ in entries]:
        return True
    plain = CURRENT.get() is PLAIN
    return any(
        a is not b and not (plain and type(a) is type(b) and kind_of(type(a)) == NUMBER and a == b)
        for (_, a), (_, b) in zip(now, entries, strict=True)
    )
