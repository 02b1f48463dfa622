"""What rules of packages share: a value of compiled code with the derivative of a formula for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from plaingrad.errors import MissingRuleError
from plaingrad.rulebook import Rule
from plaingrad.rules.derivatives import where
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, source_of

NEAR = 1e-6  # the most that a formula may differ from the value, relative to its size


def like(name: str, value: Any, z: Any) -> Any:
    """`value`, an array, number, or tuple of such, with the derivative of z, which has to be the same."""
    if isinstance(value, tuple):
        return tuple([like(name, part, y) for part, y in zip(value, z, strict=True)])
    if not is_near(value, z):
        raise MissingRuleError(
            f"`{name}` {where()}, has no derivative here: its value is not that of the formula that is known for it.\n"
            "  See docs: errors#missing-rule"
        )
    return carrying(fresh(value), z)


def is_near(value: Any, z: Any) -> bool:
    """Whether two numbers or arrays are the same but for rounding, where the first is finite."""
    if np.shape(value) != np.shape(z):
        return False
    finite = np.isfinite(value)
    difference = np.abs(np.where(finite, value, 0.0) - np.where(finite, z, 0.0))
    return bool(np.all((difference <= NEAR * (1.0 + np.abs(z))) | ~finite))  # not where the formula is nan


def by_formula(function: Any, formula: Callable[..., Any]) -> Rule:
    """The rule of a compiled function by formula(value, *args, **kwargs), which has its derivative."""
    name = f"{getattr(function, '__module__', '')}.{function.__name__}"

    def definition(*args: Any, **kwargs: Any) -> Any:
        value = called(function, (args, kwargs))
        return value if value is None else like(name, value, formula(value, *args, **kwargs))

    return Rule(function, "composed", definition=definition, source=source_of(formula))


def rules_by_formulas(module: Any, formulas: dict[str, Callable[..., Any]]) -> Iterable[Rule]:
    """The rules of what a module has by these names, and those of helpers."""
    yield from Rules()
    for name, formula in formulas.items():
        function = getattr(module, name, None)
        if function is not None:
            yield by_formula(function, formula)
