"""A call of which some arguments depend on the inputs, each element by a set of indices.

What that says of an elementwise function is here too: its result depends on the elements that broadcast together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaingrad.engine.sparsity.index_sets import Ids, IndexSets
from plaingrad.rulebook import Rule

Handler = Callable[["Call"], Any]


@dataclass(frozen=True)
class Call:
    """One call of a function with a rule, some of whose arguments depend on the inputs.

    Attributes:
        rule: its rule.
        f: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        ids: the sets of the active arguments by position: a number, an array, a list for a sequence.
        y: the result.
        sets: what the numbers of sets mean.
        outside: calls a function one level out.
    """

    rule: Rule
    f: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    ids: dict[int, Any]
    y: Any
    sets: IndexSets
    outside: Callable[..., Any]

    @property
    def names(self) -> tuple[str, ...]:
        """What the rule calls its positional parameters."""
        code = getattr(self.rule.rrule or self.rule.frule, "__code__", None)
        return code.co_varnames[: code.co_argcount] if code is not None else ()

    def argument(self, name: str, default: Any = None, position: int | None = None) -> Any:
        """An argument by the name that the rule has for it; `position`: where it stands if the rule has no name."""
        if name in self.kwargs:
            return self.kwargs[name]
        names = self.names
        if name in names:
            position = names.index(name)
        return self.args[position] if position is not None and position < len(self.args) else default

    def at(self, position: int) -> Any:
        """An argument by its position."""
        return self.args[position] if position < len(self.args) else self.kwargs[self.names[position]]

    def array(self, position: int) -> Ids:
        """The sets of an argument as an array of its shape; empty ones for a constant."""
        ids = self.ids.get(position)
        if ids is None:
            return np.zeros(np.shape(self.at(position)), np.int64)
        return np.asarray(ids)

    def of_others(self, *positions: int) -> int:
        """The union of all sets of the arguments but those at `positions`."""
        found = 0
        for position, ids in self.ids.items():
            if position not in positions:
                found = self.sets.union_of_two(found, everything(self.sets, ids))
        return found


def everything(sets: IndexSets, ids: Any) -> int:
    """The union of all sets in an array or nested list."""
    flat = np.concatenate([np.ravel(part) for part in leaves(ids)] or [np.zeros(0, np.int64)])
    return int(sets.reduce(flat, (0,))) if flat.size else 0


def leaves(ids: Any) -> list[Any]:
    """The arrays and numbers of a nested list."""
    return [leaf for part in ids for leaf in leaves(part)] if isinstance(ids, list) else [ids]


def shaped(ids: Any, y: Any) -> Ids:
    """`ids`, repeated to the shape of `y`."""
    return np.broadcast_to(ids, np.shape(y))


def has_partial(rule: Rule, position: int) -> bool:
    """Whether a row has a derivative with respect to an argument that is not zero everywhere."""
    if not rule.partials:
        return True
    partial = rule.partials[position] if position < len(rule.partials) else None
    return callable(partial) or bool(partial)


def elementwise(call: Call) -> Any:
    """Each element depends on the elements that broadcast to it."""
    parts = [ids for position, ids in call.ids.items() if has_partial(call.rule, position)]
    found = call.sets.union(*parts) if parts else np.zeros((), np.int64)
    if isinstance(call.y, tuple):  # modf, divmod
        return [shaped(found, part) for part in call.y]
    return shaped(found, call.y)
