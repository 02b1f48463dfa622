"""Facts about builtins and the standard library."""

from functools import partial

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
    for name, modules in WAITING.items():
        for module in modules:
            rulebook.when_met(module, partial(rulebook.rules_of_file, f"{__name__}.{name}"))


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
