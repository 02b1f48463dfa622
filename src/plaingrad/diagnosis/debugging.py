"""`debug=True`: derivatives that stop at the line where a value, tangent or cotangent is not finite any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.diagnosis.back import Event
from plaingrad.diagnosis.hints import ZERO_TIMES_INFINITY
from plaingrad.diagnosis.looking import looked_at
from plaingrad.diagnosis.watching import Watch
from plaingrad.errors import NotFiniteError


def stop(event: Event) -> None:
    """Raise what an event is, if it concerns the derivative."""
    if event.what == "value" and not event.output:
        return
    lines = [
        f"at {event.place}" if event.place else "in the cotangent that was given",
        f"  {event.sentence()}.",
    ]
    if event.place is not None and event.place.inside is not None:
        lines.insert(1, f"  It is computed at {event.place.inside}.")
    if event.what == "cotangent" and event.incoming is not None and event.incoming == 0:
        lines.append("  " + ZERO_TIMES_INFINITY)
    lines.append("  plaingrad.explain(f, *args) says more.\n  See docs: errors#not-finite")
    raise NotFiniteError("\n".join(lines))


def debugged(derivative: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """derivative(*args, **kwargs), which stops where something is not finite."""
    with looked_at(Watch(stop)):
        return derivative(*args, **kwargs)
