"""Arrays that have two names: the copy that a differentiated argument is, and the caller's original."""

from __future__ import annotations

import numpy as np

from plaingrad.engine.refusals.refuse import name_of_object, refuse
from plaingrad.errors import AliasError


class Twin:
    """A differentiated argument array was copied on entry; its original may be reachable under another name."""

    __slots__ = ("copy", "lent", "name", "original", "other", "torn", "touched", "written")

    def __init__(self, original: np.ndarray, copy: np.ndarray, name: str) -> None:
        self.original = original
        self.copy = copy
        self.name = name
        self.touched = False
        self.written = False
        self.torn = False
        self.other: str | None = None
        self.lent = False  # the original lies in memory that others can read past us

    def check(self) -> None:
        """Raise if the two names have come apart: one was written while the other is in use."""
        if self.written and self.touched:
            self.torn = True
            refuse(
                AliasError,
                f"the array passed as {self.name} is also reachable as {self.other or name_of_object(self.original)}, "
                "and one of the two is written",
                why="Differentiated arrays are copied on entry, so a write by one name would not show in the other.",
                fix="pass a copy (`x.copy()`) under one of the names, or pass the array once",
                anchor="alias",
            )
