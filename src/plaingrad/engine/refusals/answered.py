"""Refusals that the program swallows: they are raised again where the level ends, unless the program names them.

A plain call would not have raised. A program that catches a refusal in `except Exception` and goes on takes a way that
the plain call does not take, so its value, and the derivative, may be those of another function. One that names the
error answers it.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from plaingrad import errors
from plaingrad.engine.refusals.blame import is_engine_frame, is_users
from plaingrad.errors import AliasError, MissingRuleError, PlaingradError, RoundTripError

# The names by which an `except` of the program may speak of an error. A package that catches NotImplementedError means
# what its own functions have not implemented, and knows nothing of derivatives.
NAMES = {
    RoundTripError: (RoundTripError.__name__, PlaingradError.__name__),
    MissingRuleError: (MissingRuleError.__name__, PlaingradError.__name__, NotImplementedError.__name__),
    AliasError: (AliasError.__name__, PlaingradError.__name__),
}
PULLING = (
    "pull",
    "_pull",
    "pull_back",
    "pull_back_inside",
)  # of `engine.run`: the way back is not the program's
running: list[CodeType] = []  # of functions that run a program at the level, or derivation, `self`
SWALLOWED = (
    "The program caught this error in an `except` that does not name it, and went on as a plain call does not.\n"
    "  To answer it there: except plaingrad.{name}."
)


def note(refusal: PlaingradError) -> None:
    """Remember, at the level in which the program runs, a refusal that is about to be raised there.

    That of text that comes back is remembered by `texts`, at the level in which it was written out.
    """
    if not isinstance(refusal, (MissingRuleError, AliasError)):
        return
    level, is_named = found(NAMES[type(refusal)])
    if level is not None and not is_named and level.refusal is None:
        level.refusal = refusal


def found(names: tuple[str, ...]) -> tuple[Any, bool]:
    """(the level in which the program runs here, whether the code inside it speaks of one of `names`)."""
    frame: FrameType | None = sys._getframe(1)
    is_named = False
    while frame is not None:
        code = frame.f_code
        if not is_engine_frame(frame):
            is_named = is_named or any(
                name in code.co_names and (name != NotImplementedError.__name__ or is_users(frame))
                for name in names
            )
        elif code.co_name == "run" and ("CURRENT" in code.co_names or any(code is one for one in running)):
            level = frame.f_locals.get(
                "self"
            )  # where the level was opened; other code of ours runs things, too
            if hasattr(level, "refusal"):
                return level, is_named
        elif code.co_name in PULLING:
            break
        frame = frame.f_back
    return None, is_named


def is_expected() -> bool:
    """Whether code inside the level names the error of text that comes back, and so answers it itself."""
    return found(NAMES[RoundTripError])[1]


def settled(refusal: BaseException, error: BaseException | None = None) -> BaseException:
    """What is to be raised where a level ends that remembers `refusal`.

    Args:
        error: with what the program ended, if with an exception.
    """
    if isinstance(error, PlaingradError):
        return error
    if isinstance(refusal, PlaingradError):
        text = SWALLOWED.format(name=type(refusal).__name__)
        if text not in getattr(refusal, "__notes__", ()):
            refusal.add_note(text)
    return refusal


errors.raised_in_programs = note
