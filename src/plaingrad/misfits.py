"""What is wrong with a value as a tangent or cotangent of another, in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.class_keys import is_instance
from plaingrad.tangents import NoTangent, Tangent, Thunk, ZeroTangent
from plaingrad.tangents.fields import parts_of
from plaingrad.tangents.types import entries, primal_type_of

NUMERIC = (float, complex, int, Fraction, Decimal, np.number)


def misfit(d: Any, x: Any, summed: bool = True) -> str | None:
    """What is wrong with `d` as a tangent or cotangent of `x`, if it cannot be one; None if it can.

    Args:
        summed: it may have more axes, over which it will be summed: a cotangent.
    """
    if d is None or d is NoTangent or d is ZeroTangent or isinstance(d, Thunk):
        return None
    if is_instance(x, (float, complex, Fraction, Decimal, np.inexact)) or number_classes.is_own(x):
        is_number = _is_numeric(d) and (summed or np.shape(d) == ())
        return None if is_number else f"{_described(d)} for {_described(x)}"
    if isinstance(x, np.ndarray):
        if x.dtype.kind == "O":
            return None
        if not _is_numeric(d) or not _broadcasts(np.shape(d), x.shape, summed):
            return f"{_described(d)} for {_described(x)}"
        return None
    if isinstance(x, (list, tuple, deque)):
        if not isinstance(d, (list, tuple, deque, np.ndarray)) or np.shape(d)[:1] == () or len(d) != len(x):
            return f"{_described(d)} for {_described(x)}"
        problems = [misfit(part, of, summed) for part, of in zip(d, x, strict=True)]
        return next((f"{problem}, its entry {k}" for k, problem in enumerate(problems) if problem), None)
    if isinstance(x, (int, str, bytes, type(None))) or (type(d) is type(x) and not is_instance(x, Mapping)):
        return None
    return keys_misfit(d, x, x if is_instance(x, Mapping) else parts_of(x)) or _fields_misfit(d, x, summed)


def keys_misfit(d: Any, x: Any, known: Any) -> str | None:
    """What is wrong with the keys of `d` as a tangent of a mapping or object with the keys `known`."""
    if not is_instance(d, Mapping):
        return f"{_described(d)} for {_described(x)}"
    if type(d) is Tangent and (is_instance(x, Mapping) or primal_type_of(d) is not type(x)):
        return f"a Tangent of {primal_type_of(d).__qualname__} for {_described(x)}"
    unknown = [key for key in entries(d) if key not in known]
    return f"an entry {unknown[0]!r}, which {_described(x)} has not," if unknown else None


def _fields_misfit(d: Any, x: Any, summed: bool) -> str | None:
    parts = x if is_instance(x, Mapping) else parts_of(x)
    for key, part in entries(d).items():
        problem = misfit(part, parts[key], summed) if part is not d else None
        if problem:
            return f"{problem}, its entry {key!r}"
    return None


def _is_numeric(d: Any) -> bool:
    return (
        is_instance(d, NUMERIC)
        or number_classes.is_own(d)
        or (isinstance(d, np.ndarray) and d.dtype.kind in "fciubO")
    )


def _broadcasts(shape: tuple[int, ...], other: tuple[int, ...], summed: bool) -> bool:
    try:
        return np.broadcast_shapes(shape, other) == other or summed
    except ValueError:
        return False


def _described(x: Any) -> str:
    name = type(x).__qualname__
    article = "an" if name[0] in "aeiouAEIOU" else "a"
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape} and dtype {x.dtype}"
    if isinstance(x, (list, tuple, deque)):
        return f"{article} {name} of {len(x)}"
    return f"{article} {name}"
