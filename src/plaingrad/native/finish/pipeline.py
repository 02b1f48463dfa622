"""The cleanup pipeline: passes on a derived program, which computes the same in fewer and faster statements then."""

from __future__ import annotations

from collections.abc import Callable

from plaingrad.native.finish.dead_code import without_dead
from plaingrad.native.finish.expressions import with_expressions
from plaingrad.native.finish.ssa import single_assignment
from plaingrad.native.program.ir import Program

PASSES: tuple[Callable[[Program], Program], ...] = (single_assignment, without_dead, with_expressions)


def polished(program: Program) -> Program:
    """`program` as it is compiled."""
    for step in PASSES:
        program = step(program)
    return program
