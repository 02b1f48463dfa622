"""Exceptions in the code of users' rules: they stay what they are, and get a note that names the rule and the call."""

from __future__ import annotations

from types import CodeType

from plaingrad.engine.refusals.blame import user_frame
from plaingrad.errors import PlaingradError
from plaingrad.rulebook import Rule

Place = tuple[CodeType, int]


def here() -> Place | None:
    """The line of the program that is being executed."""
    frame = user_frame()
    return None if frame is None else (frame.f_code, frame.f_lineno)


def name_rule(error: Exception, rule: Rule, part: str, place: Place | None) -> None:
    """Note on `error` in which part of which rule it was raised, and where the function was called.

    Our own errors say so themselves.
    """
    if isinstance(error, PlaingradError):
        return
    at = "" if place is None else f", at {place[0].co_filename}:{place[1]}, in `{place[0].co_name}`"
    text = f"It was raised by the {part} of the rule for {rule.name}, which was called{at}."
    if text not in getattr(error, "__notes__", ()):
        error.add_note(text)
