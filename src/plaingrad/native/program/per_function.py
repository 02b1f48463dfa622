"""What is known of functions: it goes when they go."""

from __future__ import annotations

import weakref
from typing import Any

MOST = 1024  # entries for one function, before all of them are forgotten


class PerFunction:
    """A table for each function, held weakly."""

    def __init__(self) -> None:
        self.tables: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    def of(self, function: Any) -> dict[Any, Any]:
        """The table for a function."""
        table = self.tables.get(function)
        if table is None:
            table = self.tables[function] = {}
        elif len(table) > MOST:
            table.clear()
        return table

    def clear(self) -> None:
        """Forget all."""
        self.tables.clear()


__all__ = ["PerFunction"]
