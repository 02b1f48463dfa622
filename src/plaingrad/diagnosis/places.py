"""Source locations of steps: the user's line and expression, and the line of a package where one stands between."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass
from types import CodeType, FrameType

from plaingrad.engine.refusals.blame import is_users, user_frame
from plaingrad.origin import INSTALLED, standard_folders
from plaingrad.rewrite import original

# Where something happens: the code and instruction of the innermost frame that is not plaingrad's, and of the user's.
Site = tuple[CodeType, int, CodeType, int]


@dataclass(frozen=True)
class Place:
    """A line of a program.

    Attributes:
        file: its file.
        line: its number, from 1.
        function: the function that it is in.
        expression: the part of it that is meant, as it is written; empty where the source is not known.
        inside: the place in a package that the user's line has called; None where there is none.
    """

    file: str
    line: int
    function: str
    expression: str = ""
    inside: Place | None = None

    def __str__(self) -> str:
        shown = f"{self.short}:{self.line}, in `{self.function}`"
        if self.expression:
            shown += f": {self.expression}"
        return shown

    @property
    def short(self) -> str:
        """The file, from the folder of packages or the current one on."""
        file = self.file
        for mark in INSTALLED:
            file = file.rpartition(mark)[2]
        for folder in standard_folders():
            file = file.removeprefix(folder)
        here = os.path.join(os.getcwd(), "")
        return file.removeprefix(here)


def site() -> Site | None:
    """Where the program is now."""
    inner: FrameType | None = user_frame()
    if inner is None:
        return None
    outer: FrameType | None = inner
    while outer is not None and not is_users(outer):
        outer = outer.f_back
    if outer is None:
        outer = inner
    return inner.f_code, inner.f_lasti, outer.f_code, outer.f_lasti


def place_of(at: Site | None) -> Place | None:
    """A site as lines of files."""
    if at is None:
        return None
    code, instruction, users, users_instruction = at
    inside = None
    if users is not code:
        inside = _place(code, instruction, None)
    return _place(users, users_instruction, inside)


def _place(code: CodeType, instruction: int, inside: Place | None) -> Place:
    code_now = code
    positions = None
    for k, found in enumerate(code_now.co_positions()):
        if k == instruction // 2:
            positions = found
            break
    line, end_line, column, end_column = positions or (None,) * 4
    name = (original(code) or code).co_name
    if line is None:
        return Place(code.co_filename, code.co_firstlineno, name, "", inside)
    expression = ""
    if None not in (end_line, column, end_column):
        expression = segment(code.co_filename, line, end_line, column, end_column)
    return Place(code.co_filename, line, name, expression, inside)


def segment(file: str, line: int, end_line: int | None, column: int | None, end_column: int | None) -> str:
    """The source between two places, on one line; columns count bytes."""
    lines = [linecache.getline(file, n).encode() for n in range(line, (end_line or line) + 1)]
    if not lines or not lines[0]:
        return ""
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    text = " ".join(part.decode(errors="replace").strip() for part in lines)
    return text if len(text) <= 100 else text[:97] + "..."
