"""Which functions are the user's: differentiated from their code, or by a rule of their own."""

from __future__ import annotations

from typing import Any

from plaingrad import origin, rulebook
from plaingrad.native.analysis import helper_calls
from plaingrad.native.frontend.current import original
from plaingrad.native.program.dispatchers import python_function

DERIVED = (
    "plaingrad.native.compile.build",
    "plaingrad.native.rules.scalars",
)  # where derived programs, and slopes, seem to be


def is_users(f: Any) -> bool:
    """Whether `f` is a Python function or a Numba dispatcher, whose derivative is derived.

    Functions of ours have rules instead, but for formulas made of others, and for derived programs, which are derived
    again for derivatives of higher order.
    """
    module = str(getattr(f, "__module__", ""))
    if origin.is_of(module, ("plaingrad.native", "plaingrad.rules")):
        return module in DERIVED and hasattr(f, "py_func") or helper_calls.is_formula(f)
    return hasattr(f, "py_func") or type(f).__name__ == "function" and not _is_numpys(f)


def has_own_rule(f: Any) -> bool:
    """Whether a function of the user's was given a rule, or declared constant."""
    if not is_users(f):
        return False
    of = original(f)
    return any(rulebook.find(g) is not None for g in (f, python_function(f), of, python_function(of)))


def _is_numpys(f: Any) -> bool:
    return origin.is_of(getattr(f, "__module__", ""), ("numpy", "math", "cmath", "builtins"))
