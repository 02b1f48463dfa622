"""`debug=True`: derivatives that stop at the line where a value, tangent or cotangent is not finite any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from plaingrad.diagnosis.back import Event
from plaingrad.diagnosis.hints import ZERO_TIMES_INFINITY
from plaingrad.diagnosis.looking import looked_at
from plaingrad.diagnosis.watching import Watch
from plaingrad.errors import NotFiniteError


def error_of(event: Event) -> NotFiniteError | None:
    """What an event is to be raised as; None if it does not concern the derivative."""
    if event.what == "value" and not event.output:
        return None
    lines = [
        f"at {event.place}" if event.place else "in the cotangent that was given",
        f"  {event.sentence()}.",
    ]
    if event.place is not None and event.place.inside is not None:
        lines.insert(1, f"  It is computed at {event.place.inside}.")
    if event.what == "cotangent" and event.incoming is not None and event.incoming == 0:
        lines.append("  " + ZERO_TIMES_INFINITY)
    lines.append("  plaingrad.explain(f, *args) says more.\n  See docs: errors#not-finite")
    return NotFiniteError("\n".join(lines))


def debugged(derivative: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """derivative(*args, **kwargs), which stops where something is not finite.

    A program that swallows the error goes on as a plain call does not, so the error is raised again in the end.
    """
    raised: list[NotFiniteError] = []

    def stop(event: Event) -> None:
        error = error_of(event)
        if error is not None:
            raised.append(error)
            raise error

    with raised_again(raised), looked_at(Watch(stop)):
        return derivative(*args, **kwargs)


@contextmanager
def raised_again(raised: Sequence[Exception]) -> Iterator[None]:
    """A block at whose end the first of `raised` is raised, if the program has swallowed it or raised another error."""
    try:
        yield
    except BaseException as error:
        if raised and not isinstance(error, (KeyboardInterrupt, SystemExit, type(raised[0]))):
            raise raised[0]  # noqa: B904 - what the program raised is its context
        raise
    if raised:
        raise raised[0]
