"""All that has no derivative in a program: forward mode, which goes on after each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.errors import NativeError
from plaingrad.native.forward.forward import Forward
from plaingrad.native.program.ir import Operand, Program, Stmt


class Survey(Forward):
    """A forward transform that collects what it would refuse."""

    def __init__(self, program: Program, wanted: list[str], callee: Callable[..., Any]) -> None:
        self.found: list[NativeError] = []
        super().__init__(program, wanted, callee)

    def step(self, s: Stmt, out: list[Stmt]) -> None:
        """One statement with its tangents, if it has any."""
        try:
            super().step(s, out)
        except NativeError as error:
            self.found.append(error)

    def refuse_loss(self, s: Stmt, varies: Callable[[Operand], bool]) -> None:
        """Note a statement by which a derivative is lost."""
        try:
            super().refuse_loss(s, varies)
        except NativeError as error:
            self.found.append(error)


def refusals(program: Program, wanted: list[str], callee: Callable[..., Any]) -> list[NativeError]:
    """What stands in the way of a derivative of a program, each with its line."""
    survey = None
    try:
        survey = Survey(program, wanted, callee)
        survey.program()
    except NativeError as error:
        return [*(survey.found if survey is not None else ()), error]
    return survey.found


__all__ = ["refusals"]
