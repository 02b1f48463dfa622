"""Forward or reverse: what a whole derivative costs in each mode, estimated from one recorded run.

A recorded run says how many outputs there are and what the program consists of: operations on numbers, elements of
arrays read or written, and operations on arrays. The costs are those that `python -m benchmarks.modes` measures, in
microseconds on one machine; only their ratios count. A run that is pushed with one tangent costs about what recording
it does, whatever the program. So the first derivative that a function made by `jacobian` takes begins with a recorded
run, and later ones know what to do from the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plaingrad.engine.compiled import core
from plaingrad.rewrite import CURRENT, PLAIN

SINGLY = 8  # more directions than that are pushed together
COLUMN = 200  # directions with which a number of a chunk takes twice as long as with one, in the core
LARGE = 8000  # elements of an array, from which on a chunk costs half a run for each of its directions


@dataclass(frozen=True)
class Costs:
    """Of one run, in microseconds: for the call, each number, element and array operation, each direction of x."""

    call: float
    number: float
    element: float
    array: float
    direction: float = 0.0

    def of(self, program: Program, arrays: float = 1.0, scalars: float = 1.0) -> float:
        """Of a run of `program`, its operations on arrays, and on numbers, taking so many times as long."""
        singles = (program.numbers * self.number + program.elements * self.element) * scalars
        return (
            self.call + program.directions * self.direction + singles + program.arrays * self.array * arrays
        )


@dataclass(frozen=True)
class Ways:
    """Costs of a run with one tangent, of one pulled back, of one with a chunk of few tangents."""

    push: Costs
    pull: Costs
    chunk: Costs


COMPILED = Ways(
    Costs(60.0, 0.1, 0.3, 5.0, 0.7), Costs(25.0, 0.007, 0.03, 1.7, 1.0), Costs(130.0, 0.12, 0.35, 8.0, 6.0)
)
PYTHON = Ways(Costs(60.0, 1.6, 6.0, 13.0), Costs(25.0, 0.13, 0.6, 3.7), Costs(150.0, 4.0, 8.0, 18.0))


@dataclass(frozen=True)
class Program:
    """What a recorded run consists of.

    Attributes:
        numbers, elements, arrays: operations of each kind, the last including all that is not of the others.
        largest: the number of elements of the largest array.
        directions: in how many the argument can move.
        outputs: in how many the result can.
    """

    numbers: int
    elements: int
    arrays: int
    largest: int
    directions: int
    outputs: int

    @classmethod
    def of(cls, tape: Any, arrays: list[Any], sizes: list[int], directions: int, outputs: int) -> Program:
        """Of a tape, the active arrays that were alive at the end, and the sizes of the leaves."""
        if isinstance(tape, list):
            numbers = sum(type(what) is float for what in tape[2::3])
            kinds = numbers, 0, len(tape) // 3 - numbers
        else:
            kinds = tape.census()
        largest = max((1, *sizes, *[getattr(array, "size", 1) for array in arrays]))
        return cls(*kinds, largest, directions, outputs)


@dataclass
class Known:
    """What the last derivative of a function found."""

    program: Program | None = None


def ways_here() -> Ways:
    """What levels cost that are opened now."""
    return COMPILED if core is not None and CURRENT.get() is PLAIN else PYTHON


def singly(program: Program, ways: Ways) -> float:
    """What a run for each direction costs."""
    return program.directions * ways.push.of(program)


def together(program: Program, ways: Ways) -> float:
    """What a run with all directions costs: large arrays take half as long for each as in a run of its own.

    Numbers take longer in the core, too; see `COLUMN`.
    """
    large = program.directions * min(0.5, program.largest / LARGE) * ways.push.array / ways.chunk.array
    slower = 1.0 + program.directions / COLUMN if ways is COMPILED else 1.0
    return ways.chunk.of(program, max(1.0, large), slower)


def is_reverse(program: Program, recorded: bool) -> bool:
    """Whether to pull back from each output, which needs a recorded run, rather than to push each direction."""
    ways = ways_here()
    forward = together(program, ways)
    if program.directions <= SINGLY:
        forward = min(forward, singly(program, ways))
    reverse = program.outputs * ways.pull.of(program) + (0 if recorded else ways.push.of(program))
    return reverse <= forward


def are_singly(program: Program | None, directions: int) -> bool:
    """Whether directions are pushed one by one, in forward mode; `program` is None where no run was recorded.

    In the compiled core a chunk of few costs little more than one tangent, so that is only for the shortest programs.
    """
    ways = ways_here()
    if program is None or ways is PYTHON or directions > SINGLY:
        return directions == 1
    return singly(program, ways) <= together(program, ways)
