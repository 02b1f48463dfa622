"""Arithmetic of Series and frames where values are missing: the missing are left out before, not only after.

A missing value is nan, and so is the slope of what is computed of one, 1 / nan say. Most programs leave the result out
(`dropna`, `sum`, `std`), but in reverse mode its cotangent 0 meets that slope, and 0 times nan is nan.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule

ARITHMETIC = frozenset("add sub mul truediv pow mod floordiv radd rsub rmul rtruediv rpow rmod rfloordiv".split())


def evaluated(op: Any, op_str: Any, left_op: Any, right_op: Any) -> Any:
    """op(left, right); what is missing in an operand, and so in the result, is a constant nan."""
    z = op(left_op, right_op)
    if getattr(op, "__name__", "").strip("_") not in ARITHMETIC:
        return z
    if not isinstance(z, np.ndarray) or z.dtype.kind not in "fc" or not (is_plain(left_op) and is_plain(right_op)):
        return z
    missing = np.isnan(z) & (np.isnan(left_op) | np.isnan(right_op))
    if not missing.any():
        return z
    z = op(present(left_op, missing), present(right_op, missing))
    z[missing] = np.nan
    return z


def is_plain(x: Any) -> bool:
    """Whether `x` is a real number, or an array of numbers."""
    if isinstance(x, np.ndarray):
        return type(x) is np.ndarray and x.dtype.kind in "fciu"
    return isinstance(x, (float, int, np.floating, np.integer))


def present(x: Any, missing: Any) -> Any:
    """`x` with ones where something is missing, of the same type."""
    if not isinstance(x, np.ndarray):
        return np.where(missing, 1.0, x) if x != x else x
    return np.where(missing, x.dtype.type(1), x)


def rules() -> Iterable[Rule]:
    """Of `pandas.core.computation.expressions`."""
    expressions: Any = sys.modules.get("pandas.core.computation.expressions")
    function = getattr(expressions, "_evaluate_standard", None)
    if function is not None:
        yield Rule(function, "composed", definition=evaluated, source=f"{__file__}:1")
