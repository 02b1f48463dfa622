"""Rules that the program has entered: a process that does not know them would take another derivative."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.define import mover
from plaingrad.errors import MissingRuleError

Name = tuple[str, str]  # of a function: its module, and what it is called there

_found: tuple[int, list[Any]] = -1, []  # the number of changes of the rulebook, and the functions


def functions_with_rules() -> list[Any]:
    """The functions and classes for which the program has entered rules."""
    global _found
    if _found[0] != rulebook.changes():
        _found = rulebook.changes(), [rule.function for rule in rulebook.entered() if rule.users]
    return _found[1]


def name_of(f: Any) -> Name:
    """By what name another process finds a function."""
    module = "numpy" if isinstance(f, np.ufunc) else getattr(f, "__module__", None) or ""
    return "__main__" if module == "__mp_main__" else str(module), str(getattr(f, "__qualname__", ""))


def goes_by_value(f: Any) -> bool:
    """Whether a function, where it is pickled by value, arrives as another object than the one that has a rule."""
    module, name = name_of(f)
    return module == "__main__" or "<locals>" in name


def names_with_rules() -> list[Name]:
    """The names of those that have one."""
    return [name for name in map(name_of, functions_with_rules()) if name[1] and "<locals>" not in name[1]]


def check_known(names: list[Name]) -> None:
    """Refuse where this process has a function, and not the rule that the one which began the task has."""
    for module, name in names:
        try:
            f = operator.attrgetter(name)(sys.modules[module])
        except (KeyError, AttributeError):
            continue  # it is not used here, or another module has its name
        rule = rulebook.find(f)
        if rule is None or not rule.users:
            raise MissingRuleError(
                f"the program has a rule for `{module}.{name}`, and another process does not know it.\n"
                "  The derivative would be that of the function's code there.\n"
                "  To go on: enter the rule in a module that the other process imports, beside the function, say.\n"
                "  See docs: errors#missing-rule"
            )


mover(names_with_rules, check_known)
