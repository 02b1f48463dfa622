"""The arguments of a call by the names of a function's parameters."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

UNNAMED = ("_no_deco",)  # what SciPy gives its own functions although their signatures do not have it


class Parameters:
    """Those of a function.

    Attributes:
        sign: its signature.
        names: of those that may be given by position, None where not all can be bound by position and name alone.
        defaults: of all that have one.
    """

    def __init__(self, sign: Signature) -> None:
        self.sign = sign
        parts = sign.parameters.values()
        simple = {p.kind for p in parts} <= {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
        self.names = tuple([p.name for p in parts if p.kind is not p.KEYWORD_ONLY]) if simple else None
        self.defaults = {p.name: p.default for p in parts if p.default is not p.empty}


def bound(parameters: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, defaults too; what `**options` gathers is under its own name."""
    named = {name: x for name, x in kwargs.items() if name not in UNNAMED}
    names = parameters.names
    if names is not None and len(args) <= len(names):
        first = dict(zip(names, args, strict=False))
        found = {**parameters.defaults, **named, **first}
        if found.keys() == parameters.sign.parameters.keys() and first.keys().isdisjoint(named):
            return found
    given = parameters.sign.bind(*args, **named)
    given.apply_defaults()
    return dict(given.arguments)
