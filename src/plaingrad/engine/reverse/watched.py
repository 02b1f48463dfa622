"""Implicit parameters: what a function reads from outside is differentiated where it lies, not as an argument.

An array is memory: its region is made active in place, so whatever name, attribute or view reaches it. Numbers in
lists, dictionaries and objects are patched with fresh ones for the duration of the call, as those of arguments are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from plaingrad.engine.memory.memory import overlaps_itself, owner_of
from plaingrad.engine.memory.structure import PlaceNode
from plaingrad.engine.reverse.inputs import Inputs
from plaingrad.engine.reverse.run import Run
from plaingrad.engine.values.borrowed import is_lent
from plaingrad.errors import ArgumentError


class WatchedInputs(Inputs):
    """Parameters that stay where they are: the first of `args` holds them, and the function does not get it."""

    __slots__ = ("met",)

    def __init__(self, level: Any, args: tuple[Any, ...]) -> None:
        super().__init__(level, args)
        self.met: list[tuple[np.ndarray, str, PlaceNode]] = []

    def _fresh_array(self, x: np.ndarray, name: str, as_real: bool) -> tuple[Any, Any]:
        if x.dtype.kind not in "fc":
            return x, None
        name = name.replace("argument 0", "parameters", 1)
        for other, its_name, node in self.met:
            if other is x:
                return x, node
            if np.shares_memory(other, x):
                raise ArgumentError(
                    f"{its_name} and {name} share memory, so that a step along both gradients would go twice as far.\n"
                    "  To go on: give one of them.\n  See docs: errors#argument"
                )
        owner = owner_of(x)
        if is_lent(owner) or overlaps_itself(x):
            what = (
                "lies in memory of another object" if is_lent(owner) else "has several elements in one place"
            )
            raise ArgumentError(
                f"{name} {what}, so it cannot be differentiated where it lies.\n"
                "  To go on: use a copy (`x.copy()`) as the parameter.\n  See docs: errors#argument"
            )
        level = self.level
        index = level.index.get(id(owner)) if level.owns_region(owner) else None
        node = PlaceNode(level.add_region(owner) if index is None else index, x)
        self.met.append((x, name, node))
        self.leaves += 1
        return x, node


class WatchedRun(Run):
    """f(*args[1:]), recorded, and the pullback to the parameters that args[0] holds."""

    inputs_kind: ClassVar[type[Inputs]] = WatchedInputs

    def __init__(
        self, f: Callable[..., Any], parameters: Any, args: tuple[Any, ...], kwargs: Any, result: Any
    ) -> None:
        self.record(f, (parameters, *args), (0,), kwargs, result)

    def _record(self, inputs: Inputs, f: Any, kwargs: dict[str, Any], result: Any) -> tuple[Inputs, Any]:
        del inputs.args[0]
        return super()._record(inputs, f, kwargs, result)
