"""Names in classes: those that were joined, directly or by way of others, are in one."""

from __future__ import annotations


class Classes:
    """Classes of names; every name is in one of its own at first."""

    def __init__(self) -> None:
        self._next: dict[str, str] = {}  # name -> another one of its class, towards the one that `of` gives

    def of(self, name: str) -> str:
        """The class of a name: the name that stands for it."""
        while name in self._next:
            name = self._next[name]
        return name

    def join(self, a: str, b: str) -> None:
        """Make one class of those of `a` and `b`."""
        a, b = self.of(a), self.of(b)
        if a != b:
            self._next[a] = b
