"""What stands in the way of a native derivative: all constructs, of a function of numbers and arrays."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from typing import Any

from plaingrad.errors import PlaingradError
from plaingrad.native.border import call
from plaingrad.native.border.conversion import Taken, taken
from plaingrad.native.compile import build
from plaingrad.native.forward.survey import refusals
from plaingrad.native.frontend.translation import program
from plaingrad.native.frontend.typed_ir import typing_errors
from plaingrad.native.lowering.prepare import prepared
from plaingrad.native.program.dispatchers import python_function

IN_GENERAL = "write it with numbers, arrays and functions that Numba knows, or use tier='plain'"
PLACE = re.compile(
    r"(?: at |\()(?P<file>[^\s()]+|/[^:()]+):(?P<line>\d+)(?:, in `(?P<function>[^`]*)`)?\)?,?"
)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A construct that stands in the way of a native derivative.

    Attributes:
        file: the file that it is in.
        line: its line.
        function: the name of the function around it.
        expression: the text of it.
        why: why there is no native derivative.
        fix: what to do.
    """

    file: str
    line: int
    function: str
    expression: str
    why: str
    fix: str

    def __str__(self) -> str:
        """Four lines: the place, the expression, why, and what to do."""
        place = f"{self.file}:{self.line}, in `{self.function}`" if self.file else f"`{self.function}`"
        return f"{place}\n    {self.expression}\n  {self.why}\n  To go on: {self.fix}"


class Obstacles(tuple[Obstacle, ...]):
    """All obstacles, in the order of lines; printed, they are sentences."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Each obstacle with its place."""
        if not self:
            return "Nothing stands in the way of a native derivative."
        return "\n".join(map(str, self))


def of_numbers(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any], known: str = ""
) -> list[Obstacle]:
    """All that stands in the way of a native gradient of a function as Numba takes it. It is not called.

    Errors of types that name `known` are left out.
    """
    try:
        given = taken(f, args, positions, kwargs)
    except PlaingradError as error:
        return [of_error(f, error)]
    function = python_function(given.f)
    wrong = call.plainly(typing_errors, given.f, given.signature, known)
    if wrong:
        return [of_typing(function, *found) for found in wrong]
    if known:
        return []  # in part not known
    return [of_error(function, error) for error in call.plainly(_refusals, given)]


def _refusals(given: Taken) -> list[PlaingradError]:
    try:
        typed = prepared(program(given.f, given.signature))
        wanted = [typed.params[k] for k in given.positions]
        found: list[PlaingradError] = [*refusals(typed, wanted, _callee)]
    except PlaingradError as error:
        found = [error]
    if not found:
        try:
            build.derived("pullback", given.f, given.signature, given.positions)
        except PlaingradError as error:
            found = [error]
    return found


def _callee(g: Any, kinds: Any, positions: Any) -> Any:
    return build.derived("pushforward", g, kinds, positions).run


def of_typing(function: Any, file: str, line: int, what: str) -> Obstacle:
    """An error of Numba's type inference as an obstacle."""
    why = f"Numba cannot type it: {what}"
    return Obstacle(file, line, function.__name__, text_at(file, line), why, IN_GENERAL)


def of_error(f: Any, error: Exception) -> Obstacle:
    """An error that names its place in its message, as an obstacle; else it is about the whole function."""
    lines = str(error).splitlines()
    fix = next(
        (s.split("To go on:", 1)[1].strip().rstrip(".") for s in lines if "To go on:" in s), IN_GENERAL
    )
    words = [s.strip() for s in lines if "To go on:" not in s and "See docs:" not in s]
    text = " ".join(words)
    code = getattr(python_function(f), "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
    name = getattr(f, "__name__", type(f).__name__)
    place = PLACE.search(text)
    if place is not None:
        file, line, name = place["file"], int(place["line"]), place["function"] or name
        text = f"{text[: place.start()]}{text[place.end() :]}".strip()
    return Obstacle(file, line, name, text_at(file, line) or name, text.rstrip("."), fix)


def text_at(file: str, line: int) -> str:
    """The user's line."""
    return linecache.getline(file, line).strip()


__all__ = ["Obstacle", "Obstacles", "of_error", "of_numbers"]
