"""Tangents and cotangents at the border: from what users pass to what derived programs take, and back."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba.core import types

from plaingrad.native.border.aliases import arrays_in
from plaingrad.native.border.records import class_of, fields_of, is_record
from plaingrad.native.program.value_types import has_tangent, is_array, is_real, part_types
from plaingrad.tangents import Tangent, ZeroTangent, is_zero


def shadows_of(args: tuple[Any, ...], positions: tuple[int, ...]) -> list[np.ndarray]:
    """Zeros for every differentiated array, in its order: a view of it is one of them, too."""
    return [
        np.zeros(x.shape, x.dtype, order_of(x))
        for k in positions
        for x in arrays_in(args[k])
        if x.dtype.kind in "fc"
    ]


def order_of(x: np.ndarray) -> Literal["C", "F"]:
    """Fortran order for what compiled code sees in Fortran order, C order for everything else."""
    return "F" if x.flags.fnc else "C"


def cotangents(
    args: tuple[Any, ...],
    signature: tuple[Any, ...],
    positions: tuple[int, ...],
    bars: list[Any],
    shadows: list[Any],
) -> tuple[Any, ...]:
    """The gradient of each differentiated argument, with its structure."""
    bars, shadows = list(bars), list(shadows)
    return tuple([mirrored(args[k], signature[k], bars, shadows) for k in positions])


def tangent_of(x: np.ndarray, dot: Any) -> np.ndarray:
    """A tangent of an array in new memory, in the order of the array."""
    return (
        np.zeros(x.shape, x.dtype, order_of(x)) if is_zero(dot) else np.array(dot, x.dtype, order=order_of(x))
    )


def directions(x: Any, t: Any, dot: Any) -> list[Any]:
    """The tangents of the numbers and arrays in an argument, in arrays of their own: a program may write into them."""
    if is_real(t):
        zero = 0j if isinstance(t, types.Complex) else 0.0
        return [zero if is_zero(dot) else type(zero)(dot)]
    if is_array(t):
        return [tangent_of(x, dot)]
    if not has_tangent(t):
        return []
    if isinstance(t, types.LiteralStrKeyDict):
        parts = list(x.items())
    elif is_record(x):
        parts = list(fields_of(x).items())
    else:
        parts = list(enumerate(x))
    found = []
    for (key, part), kind in zip(parts, part_types(t), strict=True):
        found += directions(part, kind, ZeroTangent if is_zero(dot) else dot[key])
    return found


def mirrored(x: Any, t: Any, bars: list[Any], shadows: list[Any]) -> Any:
    """The gradient of an argument: a list for a list, a dictionary for a dictionary, a `Tangent` for a dataclass."""
    if is_real(t):
        bar = bars.pop(0)
        return type(x)(bar.real if not isinstance(t, types.Complex) and isinstance(bar, complex) else bar)
    if is_array(t):
        return shadows.pop(0)
    if isinstance(t, types.LiteralStrKeyDict):
        pairs = zip(x.items(), t.types, strict=True)
        return {key: mirrored(value, kind, bars, shadows) for (key, value), kind in pairs}
    if not isinstance(t, types.BaseTuple):
        return None
    if is_record(x):
        if not has_tangent(t):
            return None
        pairs = zip(fields_of(x).items(), t, strict=True)
        return Tangent(
            class_of(x), {name: mirrored(value, kind, bars, shadows) for (name, value), kind in pairs}
        )
    parts = [mirrored(part, kind, bars, shadows) for part, kind in zip(x, t, strict=True)]
    if isinstance(x, list):
        return parts
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
