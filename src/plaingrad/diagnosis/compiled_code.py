"""Where Numba's compiled code gives inf or nan and the Python source of it raises: what is computed instead.

`math.log(0.0)` raises in Python and is -inf in compiled code, so a compiled function that is explained by its source
would end where it becomes interesting.
"""

from __future__ import annotations

import math
from types import BuiltinFunctionType
from typing import Any

import numpy as np

RAISED = (ValueError, OverflowError, ZeroDivisionError)
NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "pow": "power",
}  # fmt: skip
FUNCTIONS = {
    f: getattr(np, NAMES.get(name, name))
    for name, f in vars(math).items()
    if isinstance(getattr(np, NAMES.get(name, name), None), np.ufunc)
}


def compiled_form(f: Any, name: str, kind: str, operands: tuple[Any, ...]) -> Any:
    """NumPy's function for a step that raised, which gives what compiled code gives; None where that raises, too."""
    if not all(isinstance(x, (int, float)) for x in operands):
        return None
    if kind == "operator":
        return np.power if name == "**" else None
    return FUNCTIONS.get(f) if type(f) is BuiltinFunctionType else None


def is_compiled(f: Any) -> bool:
    """Whether `f` is a function that Numba compiles."""
    t = type(f)
    return str(t.__module__).startswith("numba.") and getattr(f, "py_func", None) is not None
