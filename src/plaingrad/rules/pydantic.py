"""Facts about pydantic's compiled classes, entered when a program that has imported it calls one of them.

What its validators do with numbers is the engine's business: they call the program's functions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from plaingrad import rulebook
from plaingrad.rulebook import Rule
from plaingrad.tangents import fields

MODULE = "pydantic_core._pydantic_core"


def rules() -> Iterable[Rule]:
    """The arguments of a call, as an object: it holds them as they are."""
    cls: Any = getattr(sys.modules.get(MODULE), "ArgsKwargs", None)
    if cls is not None:
        for function in (cls, cls.__new__):
            yield Rule(function, "mover", source=f"{__file__}:1")


def wait() -> None:
    """Let the rulebook enter these rules when pydantic is met."""
    fields.holds(f"{MODULE}.ArgsKwargs", ("args", "kwargs"))
    rulebook.when_met(MODULE, rules)
