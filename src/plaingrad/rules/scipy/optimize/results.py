"""What solvers return: numbers in objects, which get their derivatives, or refuse them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize

from plaingrad.rules.scipy.implicit import mover, underived


def find(name: str) -> Any:
    """The function of this name in `scipy.optimize`, or None."""
    return getattr(optimize, name, None)


@mover
def put(result: Any, name: str, value: Any) -> None:
    """Replace a number in a result, which the solver has made."""
    if isinstance(result, dict):
        result[name] = value
    else:
        setattr(result, name, value)


@mover
def numbers_in(result: Any, but: tuple[str, ...]) -> list[tuple[str, Any]]:
    """The fields of a result that are real numbers or arrays of them, but those named."""
    fields = result.items() if isinstance(result, dict) else vars(result).items()
    found = []
    for name, value in fields:
        is_number = isinstance(value, (float, np.floating))
        if name not in but and (is_number or (isinstance(value, np.ndarray) and value.dtype.kind == "f")):
            found.append((name, value))
    return found


def spoil(function: Any, result: Any, r: Any, *but: str) -> None:
    """Let the other numbers of a result refuse their derivatives."""
    for name, value in numbers_in(result, but):
        put(result, name, underived(value, r, f"`{name}` of the result of `scipy.optimize.{function.__name__}`"))


__all__ = ["find", "numbers_in", "put", "spoil"]
