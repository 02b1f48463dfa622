"""Facts about builtins and the standard library."""

from plaingrad.rules.python import (
    arithmetic,
    averages,
    calls,
    constructors,
    containers,
    iteration,
    objects,
    operators,
    randomness,
    text,
)

__all__ = [
    "arithmetic",
    "averages",
    "calls",
    "constructors",
    "containers",
    "iteration",
    "objects",
    "operators",
    "randomness",
    "text",
]
