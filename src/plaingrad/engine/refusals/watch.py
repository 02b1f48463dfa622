"""The seam of checked mode: who looks on while derivatives are taken.

`plaingrad.testing` puts an observer here while `PLAINGRAD_CHECK` is set or inside `testing.checked()`. Recorded calls
and pushed ones ask once, as they begin; hooks, whose work no other mode sees, leave a note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from plaingrad.rewrite import CURRENT, PLAIN


class Observer(Protocol):
    """What looks on."""

    def recorded(
        self, run: Any, f: Callable[..., Any], args: Any, argnums: Any, kwargs: Any, result: Any
    ) -> None:
        """In place of `run.record(...)`, a call in reverse mode with no derivative around it; calls that."""

    def pushed(
        self,
        pushed: Any,
        f: Callable[..., Any],
        args: Any,
        dots: Any,
        kwargs: Any,
        chunk: Any,
        level_class: Any,
    ) -> Any:
        """In place of `pushed(...)`, a call in forward mode with no derivative around it; calls that."""

    def went_inside(self) -> None:
        """A derivative is taken inside another."""

    def hooked(self) -> None:
        """A hook was put on a value."""


observer: Observer | None = None


def looking_on() -> Observer | None:
    """The observer, if there is one and no derivative is being taken around this call; else it is told."""
    if observer is not None and CURRENT.get() is not PLAIN:
        observer.went_inside()
        return None
    return observer
