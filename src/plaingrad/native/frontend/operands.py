"""Operands for constants."""

from __future__ import annotations

import builtins
from typing import Any

import numba

from plaingrad.class_keys import is_among
from plaingrad.native.program.ir import Const, Operand, Ref

PRINTED = frozenset((int, float, complex, bool, str))


def constant(value: Any, name: str) -> Operand:
    """An object outside the program: a constant if it prints itself, else a reference."""
    if value is numba.prange:
        return Const(value)
    if value is None or is_among(type(value), PRINTED):
        return Const(value)
    if isinstance(value, type) or callable(value):
        if getattr(builtins, getattr(value, "__name__", ""), None) is value:
            return Const(value)
    return Ref(value, name)


def is_range(a: Operand) -> bool:
    """Whether an operand is `range`, or `numba.prange`, which means a range whose items may be taken side by side."""
    return isinstance(a, Const) and (a.value is range or a.value is numba.prange)
