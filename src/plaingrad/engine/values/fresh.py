"""New objects that are equal to old ones, and the entries of objects replaced past any method of their own."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.engine.memory.kinds import MAPPING, is_heap
from plaingrad.tangents.fields import fields_of


def fresh_number(y: Any) -> Any:
    """A new object equal to the number `y`."""
    t = type(y)
    if t is float:
        return y * 1.0
    if t is complex:
        return complex(y.real, y.imag)
    if is_users_number(t) and isinstance(y, (float, complex)):
        base = float if isinstance(y, float) else complex
        copy = base.__new__(t, y)
        for name, value in fields_of(y).items():
            object.__setattr__(copy, name, value)
        return copy
    if number_classes.is_own(y):
        return number_classes.copied(y)
    if isinstance(y, np.generic):
        return y.copy()
    if isinstance(y, Decimal):
        return y.copy_sign(y)  # a sum would round it to the precision of the context
    return y + type(y)(0)


def is_users_number(t: type) -> bool:
    """Whether `t` is a subclass of a number that has attributes and operators of its own."""
    return is_heap(t) and t is not Fraction and t is not Decimal and number_classes.find(t) is None


def has_attributes(x: Any) -> bool:
    """Whether `x` is an object of a class of the program, with fields that may hold numbers."""
    t = type(x)
    return (is_heap(t) and not isinstance(x, type) and not str(t.__module__).startswith("plaingrad.")) or (
        t is SimpleNamespace
    )


def put_field(x: Any, key: Any, value: Any, kind: int) -> None:
    """Replace one entry of a dictionary or object, past any method of its own."""
    if kind == MAPPING:
        dict.__setitem__(x, key, value)
        return
    fields = getattr(x, "__dict__", None)
    if type(fields) is dict and key in fields:
        fields[key] = value
    else:
        object.__setattr__(x, key, value)


def copied_object(x: Any) -> Any:
    """Another object of the class of `x` with the same fields, past any method of its own."""
    whole = object.__new__(type(x))
    fields = getattr(x, "__dict__", None)
    if type(fields) is dict:
        whole.__dict__.update(fields)
    return whole


def rebuilt(y: Any, values: list[Any]) -> Any:
    """A sequence like `y` with other entries."""
    return type(y)(*values) if hasattr(y, "_fields") else type(y)(values)
