"""A program that is being made: the names and types of its variables so far, and how it is refused."""

from __future__ import annotations

from typing import Any

from plaingrad.errors import NativeError
from plaingrad.native.program.ir import Operand, Place, Var
from plaingrad.native.program.value_types import type_of_captured


class Draft:
    """What is known of a program that is being made out of the IR of `function`.

    Attributes:
        function: the Python function.
        line: the user's line that is being looked at.
        types: the Numba type of every variable.
    """

    def __init__(self, function: Any, line: int) -> None:
        self.function = function
        self.line = line
        self.types: dict[str, Any] = {}
        self._taken: set[str] = set()
        self._suffixes: dict[str, int] = {}  # the next number to try behind a name

    def refuse(self, what: str) -> NativeError:
        """The error that says that `what`, on the current line, cannot be done natively."""
        at = self.line
        file, name = (
            (at.file, at.function)
            if isinstance(at, Place)
            else (self.function.__code__.co_filename, self.function.__name__)
        )
        return NativeError(
            f"{what} at {file}:{int(at)}, in `{name}`, cannot be "
            "differentiated natively.\n  To go on: tier='plain' differentiates it as it is.\n"
            "  See docs: errors#native"
        )

    def type_of(self, a: Operand) -> Any:
        """The type of an operand; None of what is neither a variable nor a captured array."""
        return self.types.get(a.name) if isinstance(a, Var) else type_of_captured(a)

    def fresh(self, base: str, t: Any = None) -> str:
        """A new variable of type `t`."""
        name = self.unused(base)
        self.types[name] = t
        return name

    def unused(self, base: str) -> str:
        """A name that no variable has, nor will have."""
        name, n = base, self._suffixes.get(base, 1)
        while name in self._taken:
            name = f"{base}_{n}"
            n += 1
        self._suffixes[base] = n
        self._taken.add(name)
        return name
