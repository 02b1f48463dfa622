"""Calls whose pullback has the tape and nothing else of their level, so that the next derivative has that.

For functions of floats, and of lists, tuples and dictionaries of them, that return a float and go through nothing else
on the way: there the pullback reads no array, undoes no write, and calls no rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from plaingrad.engine.memory.tape import NumberSlot
from plaingrad.engine.reverse.run import Run, in_core, node_of
from plaingrad.rewrite import CURRENT, PLAIN


def recorded(
    f: Callable[..., Any], args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: dict[str, Any]
) -> Run | TakenRun:
    """f(*args, **kwargs), recorded, with its pullback to the arguments at `argnums`."""
    found = in_core(f, args, argnums, kwargs, later=True) if CURRENT.get() is PLAIN else None
    if type(found) is tuple:
        return TakenRun(*found)
    return Run(f, args, argnums, kwargs) if found is None else found  # type: ignore[return-value]


@dataclass(slots=True)
class TakenRun:
    """As `Run`: the value of a call, and its pullback."""

    value: Any
    tape: Any  # a `TakenTape`

    def watch(self) -> None:
        """There is no array that may change before the pullback reads it."""

    def captured(self) -> list[Any]:
        """The arrays that the pullback reads."""
        return []

    def pull(self, y_bar: Any) -> tuple[Any, ...]:
        """The cotangents of the differentiated arguments for that of the value."""
        if type(y_bar) is float and CURRENT.get() is PLAIN:
            return self.tape.pull(y_bar)  # type: ignore[no-any-return]
        return self._as_run().pull(y_bar)  # another number, or one that a derivative around this one follows

    def _as_run(self) -> Run:
        tape = self.tape
        run = Run.__new__(Run)
        run.lock, run.watched, run.value = None, [], self.value
        run.level = ClosedLevel(tape.tape, tape.size)
        run.slots = NumberSlot(tape.y, self.value) if tape.y >= 0 else None
        index = {id(x): k for k, x in enumerate(tape.fresh)}
        run.nodes = [node_of(shape, tape.fresh, index) for shape in tape.shapes]
        return run


@dataclass(slots=True)
class ClosedLevel:
    """What the way back asks of the level that recorded the tape."""

    tape: Any
    size: int
    parent: Any = PLAIN
    recorder: Any = None
    working: Any = None
    arrays: list[Any] = field(default_factory=list)

    def new_index(self) -> int:
        """An index above all that there are."""
        return self.size
