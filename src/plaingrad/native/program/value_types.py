"""Kinds of values: which of Numba's types have a derivative, and what they are to NumPy."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import types


@functools.lru_cache(None)
def dtype_of(t: Any) -> Any:
    """The NumPy scalar type for a Numba type."""
    from numba.np.numpy_support import as_dtype

    if isinstance(t, types.Boolean):
        return np.bool_
    return as_dtype(types.unliteral(t)).type


def is_array_list(t: Any) -> bool:
    """Whether `t` is a type of lists of arrays."""
    return isinstance(t, types.List) and isinstance(t.dtype, types.Array)


def is_real(t: Any) -> bool:
    """Whether `t` is a type of floats or complex numbers."""
    return isinstance(t, (types.Float, types.Complex))


def has_complex(t: Any) -> bool:
    """Whether values of type `t` are complex numbers, or arrays of these."""
    return isinstance(getattr(t, "dtype", t), types.Complex)


def is_array(t: Any) -> bool:
    """Whether `t` is a type of arrays of floats or complex numbers."""
    return isinstance(t, types.Array) and is_real(t.dtype)


def part_types(t: Any) -> list[Any]:
    """The types of the parts of a tuple type, or of a dictionary with known keys."""
    return list(t)


def has_tangent(t: Any) -> bool:
    """Whether values of type `t` have a tangent."""
    if isinstance(t, (types.BaseTuple, types.LiteralStrKeyDict)):
        return any(map(has_tangent, part_types(t)))
    return is_real(t) or is_memory(t) and is_real(t.dtype if isinstance(t, types.Array) else t.dtype.dtype)


def is_memory(t: Any) -> bool:
    """Whether `t` is a type of arrays, or of lists of arrays."""
    return isinstance(t, types.Array) or is_array_list(t)


def holds_arrays(t: Any) -> bool:
    """Whether values of type `t` are arrays, or tuples in which there are some."""
    return is_memory(t) or (isinstance(t, types.BaseTuple) and any(map(holds_arrays, t)))


INERT = (
    types.Integer,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.StringLiteral,
    types.SliceType,
    types.RangeType,
    types.EllipsisType,
    types.Callable,
    types.Module,
    types.DType,
    types.NumberClass,
    types.BooleanLiteral,
    types.IntegerLiteral,
)


def is_inert(t: Any) -> bool:
    """Whether values of type `t` surely hold nothing that has a derivative."""
    if isinstance(t, types.Array):
        return isinstance(t.dtype, (types.Integer, types.Boolean))
    if isinstance(t, types.BaseTuple):
        return all(map(is_inert, t))
    return t is None or isinstance(t, INERT)


def type_of_value(value: Any) -> Any:
    """The Numba type of a constant, or of a module."""
    return types.Module(value) if isinstance(value, ModuleType) else numba.typeof(value)


def type_of_captured(a: Any) -> Any:
    """The Numba type of an operand that is a global or captured array; None of any other."""
    value = getattr(a, "value", None)
    return numba.typeof(value) if isinstance(value, np.ndarray) else None


def settled(t: Any) -> Any:
    """A type as a function is compiled for it: of a number, not of this number."""
    return t if isinstance(t, types.LiteralStrKeyDict) else types.unliteral(t)
