"""The forms in which facts about compiled functions of arrays are stated; functions are found by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.define import _source_of
from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep


def enter(function: Any, rrule: Any, frule: Any, kind: Any = "full") -> None:
    """Enter a function with both halves of its rule; `frule` serves one tangent and a chunk of them."""
    keep(Rule(function, kind, rrule, frule=frule, chunked_frule=frule, source=_source_of(rrule)))


def constant(*functions: Any) -> None:
    """Enter functions whose results are structure: positions, counts, shapes."""
    for function in functions:
        if function is not None:
            keep(Rule(function, "no_tangent", source=getattr(function, "__name__", "")))


def definitions(module: Any) -> Callable[..., Any]:
    """The decorator `defined(*names, mutates=False)` of Python definitions of functions of `module`.

    With `mutates` a definition serves calls without differentiated arguments, too: they write into memory that the
    program may have used before.
    """

    def defined(*names: str, mutates: bool = False) -> Callable[[Any], Any]:
        def enter_definition(definition: Any) -> Any:
            for name in names:
                function = getattr(module, name, None)
                if function is not None:
                    place = _source_of(definition)
                    keep(Rule(function, "composed", definition=definition, mutates=mutates, source=place))
            return definition

        return enter_definition

    return defined


def each(f: Callable[[Any], Any], x_dot: Any, x: Any) -> Any:
    """f(x_dot) for one tangent, or for each of a chunk."""
    return f(x_dot) if np.ndim(x_dot) == np.ndim(x) else np.stack([f(part) for part in x_dot])
