"""Facts about builtins and the standard library."""

from plaingrad import rulebook
from plaingrad.rules.python import (
    arithmetic,
    calls,
    constructors,
    containers,
    iteration,
    objects,
    operators,
    text,
)

# Many programs never import these.
WAITING = {
    "averages": ("statistics", "_statistics"),
    "randomness": ("random", "_random"),
}


def wait() -> None:
    """Let the rulebook enter the rules of `statistics` and `random` when these are met."""
    rulebook.files_when_met(__name__, WAITING)


__all__ = [
    "arithmetic",
    "calls",
    "constructors",
    "containers",
    "iteration",
    "objects",
    "operators",
    "text",
]
