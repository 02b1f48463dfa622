"""Every exception that plaingrad raises on purpose.

A message has four parts: what and where (the user's file and line), why, what to do, and where to read more.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
# The page of errors: in an installed package beside this file, in a source tree among the docs.
_PAGES = (
    os.path.join(_HERE, "reference", "errors.md"),
    os.path.join(os.path.dirname(os.path.dirname(_HERE)), "docs", "reference", "errors.md"),
)
_SECTION = re.compile(r"(See docs: )errors#([a-z-]+)")


@functools.lru_cache(1)
def _sections() -> dict[str, str]:
    """Where each section of the page of errors stands, as `file:line`, by its anchor."""
    for page in _PAGES:
        try:
            with open(page, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        return {
            line[1:-2]: f"{page}:{n}"
            for n, line in enumerate(lines, 1)
            if re.fullmatch(r"\([a-z-]+\)=", line)
        }
    return {}


def _with_places(message: str) -> str:
    """`message` with the section that it refers to as a file and line, which editors and terminals open."""
    if "See docs: errors#" not in message:
        return message
    return _SECTION.sub(lambda found: found[1] + _sections().get(found[2], f"errors#{found[2]}"), message)


def _with_places_in(args: tuple[object, ...]) -> list[object]:
    """The arguments of an exception, with places in its message."""
    return [_with_places(x) if type(x) is str else x for x in args]


def _unnoticed(error: Any) -> None:
    """Nobody wants to know."""


# Told of each error when it is made: the engine remembers refusals that a program swallows.
raised_in_programs: Callable[[Any], None] = _unnoticed


class PlaingradError(Exception):
    """Base of all errors raised by plaingrad. `errors#rule` in its message becomes the place of that section."""

    def __init__(self, *args: object) -> None:
        super().__init__(*_with_places_in(args))
        raised_in_programs(self)


class MissingRuleError(PlaingradError, NotImplementedError):
    """A value that depends on the inputs reached code that has neither Python bytecode nor a rule."""


class AliasError(PlaingradError):
    """One array is reachable under two names, and one was written: an argument and a global, a row and a column."""


class ChangedSinceError(PlaingradError):
    """An array that a pullback needs was changed between the call and the pullback."""


class RoundTripError(PlaingradError):
    """A number that depends on the inputs left as text, bytes or digits and came back."""


class TruncationWarning(UserWarning):
    """A whole number that was made of a number that depends on the inputs became a time: the derivative ends there."""

    def __init__(self, *args: object) -> None:
        super().__init__(*_with_places_in(args))


class CheckpointError(PlaingradError, RuntimeError):
    """A checkpointed function did something else when it was run again, so its derivative cannot be known."""


class ArgumentError(PlaingradError, TypeError):
    """An argument to be differentiated has no tangent (a string, say), or does not exist."""


class NonScalarOutputError(PlaingradError, TypeError):
    """`grad` needs one real number; the function returned something else."""


class CotangentError(PlaingradError, ValueError):
    """A cotangent has the wrong structure, shape or dtype for the output it belongs to."""


class TangentError(PlaingradError, ValueError):
    """A tangent has the wrong structure, shape or dtype for the argument it belongs to."""


class NotHolomorphicError(PlaingradError, ValueError):
    """A complex derivative was asked for where it does not exist: the function is not holomorphic."""


class PatternError(PlaingradError, ValueError):
    """A sparsity pattern that was given leaves out entries of the derivative."""


class RuleError(PlaingradError):
    """A rule returned something that is no cotangent of its argument."""


class DeclinedError(RuleError):
    """A rule returned `NotImplemented`, where no other is asked.

    Attributes:
        half: the function that declined.
    """

    def __init__(self, name: str, half: Any) -> None:
        super().__init__(
            f"the rule for {name} declined (it returned NotImplemented), and here no other can be asked.\n"
            "  See docs: errors#rule"
        )
        self.half = half


class CheckError(PlaingradError, AssertionError):
    """In checked mode: a derivative did not do what a plain call does, or its two modes disagree."""


class NotFiniteError(PlaingradError, ArithmeticError):
    """With `debug=True`: a value, tangent or cotangent became nan or infinite at this line."""


class TapeMemoryError(PlaingradError, MemoryError):
    """With `max_memory=`: the tape takes more than that at this line."""


class VerificationError(PlaingradError, AssertionError):
    """With `verify=True`: a gradient and differences along a random direction do not agree."""


class UnsupportedPythonError(PlaingradError, RuntimeError):
    """This CPython version, or one of its instructions, is unknown to the rewriter."""


class NativeError(PlaingradError):
    """A function cannot be differentiated natively: Numba cannot compile it, or a construct in it has no rule."""
