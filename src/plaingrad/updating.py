"""Functions that write into their arguments: as ones that return the new contents, and plain assignments of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.define import pair_of
from plaingrad.errors import RuleError
from plaingrad.rule_data import Rule, name_of
from plaingrad.tangents import NoTangent, ZeroTangent, explicit_tangent


class Updating:
    """A function that writes into some of its arguments, taken apart.

    `updated` is the same as a function that writes nothing: it returns which argument the result is (-1: none), the
    result, and the new contents of each argument that is written. `definition` writes these with plain assignments, of
    which the engine knows everything: what they overwrite, and where tangents and cotangents go.

    Attributes:
        function: the function.
        positions: the arguments that are written.
        names: the names of its positional parameters.
    """

    def __init__(self, function: Any, positions: tuple[int, ...], names: tuple[str, ...]) -> None:
        self.function = function
        self.positions = positions
        self.names = names

        def updated(*args: Any, **kwargs: Any) -> Any:
            args = with_copies(args, positions, function)
            return outcome_of(function(*args, **kwargs), args, positions)

        def definition(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = by_position(args, kwargs, names)
            which, y, *contents = updated(*args, **kwargs)
            for position, new in zip(positions, contents, strict=True):
                if position < len(args):
                    rewrite_contents(args[position], new)
            return y if which < 0 else args[which]

        self.updated = updated
        self.definition = definition
        updated.__qualname__ = updated.__name__ = getattr(function, "__qualname__", repr(function))
        definition.__name__ = getattr(function, "__name__", "definition")
        definition.updating = updated.updating = self  # type: ignore[attr-defined]

    def rrule(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """The rule of `updated` from one that writes, into copies: pullback(y_bar, *bars of the new contents)."""
        positions, function = self.positions, self.function

        def updating_rrule(*args: Any, **kwargs: Any) -> Any:
            args = with_copies(args, positions, function)
            y, pullback = pair_of(Rule(function, "full"), rule(*args, **kwargs))

            def updating_pullback(bars: Any) -> Any:
                return pullback(*bars[1:])

            return outcome_of(y, args, positions), updating_pullback

        return updating_rrule

    def step(self, step: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """The step of `updated` from one that writes into copies of the arguments and of their tangents."""
        positions, function = self.positions, self.function

        def updating_step(args: Any, dots: Any, kwargs: Any) -> tuple[Any, Any]:
            args = with_copies(args, positions, function)
            dots = [explicit_tangent(x, x_dot) for x, x_dot in zip(args, dots, strict=False)]
            dots = with_copies(dots, positions, function)
            y, y_dot = step(args, dots, kwargs)
            outcome = outcome_of(y, args, positions)
            written = [dots[position] for position in positions if position < len(args)]
            return outcome, (NoTangent, y_dot if outcome[0] < 0 else NoTangent, *written)

        return updating_step


def with_copies(args: Any, positions: tuple[int, ...], function: Any) -> tuple[Any, ...]:
    """`args` with copies at `positions`."""
    return tuple([copied(x, function) if k in positions else x for k, x in enumerate(args)])


def copied(x: Any, function: Any) -> Any:
    """A copy of an argument that a function writes into."""
    if isinstance(x, np.ndarray):
        return np.array(x)
    if isinstance(x, (list, dict)):
        return list(x) if isinstance(x, list) else dict(x)
    if x is None or x is NoTangent or x is ZeroTangent:
        return x
    raise RuleError(
        f"the rule of {name_of(function)} says that it writes into an argument which is a {type(x).__name__}; that can "
        "be said of arrays, lists and dictionaries.\n"
        "  To go on: plaingrad.defined_as.\n  See docs: errors#rule"
    )


def outcome_of(y: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> tuple[Any, ...]:
    """(which of the written arguments is the result, the result if it is none, the new contents of each)."""
    which = -1
    for position in positions:
        if position < len(args) and y is args[position]:
            which = position
    return (which, y if which < 0 else None, *[args[k] for k in positions if k < len(args)])


def rewrite_contents(x: Any, new: Any) -> None:
    """Put `new` in the place of what `x` holds."""
    if isinstance(x, np.ndarray):
        x[...] = new
    elif isinstance(x, list):
        x[:] = new
    elif isinstance(x, dict):
        x.clear()
        x.update(new)


def by_position(args: tuple[Any, ...], kwargs: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The arguments of a call with those given by name moved to their positions, as far as none is left out before."""
    found = list(args)
    options = dict(kwargs)
    for name in names[len(args) :]:
        if name not in options:
            break
        found.append(options.pop(name))
    return tuple(found), options
