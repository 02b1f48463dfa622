"""The entries of lists, dictionaries and objects, and putting others in their places."""

from __future__ import annotations

from collections import deque
from types import CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from plaingrad.class_keys import all_among
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, SEQUENCE, is_heap, kind_of
from plaingrad.tangents.fields import fields_of, slot_names

FLOATS = frozenset((float,))


def has_fields(x: Any) -> bool:
    """Whether `x` is an instance of a user class, with attributes that may hold numbers."""
    t = type(x)
    if t is SimpleNamespace or t is CellType:
        return True
    if not is_heap(t) or isinstance(x, (FunctionType, MethodType, ModuleType, type)):
        return False
    return type(getattr(x, "__dict__", None)) is dict or bool(slot_names(t))


def is_of_floats(x: Any) -> bool:
    """Whether `x` is a list or tuple, of no other class, of floats of no other class, and not empty."""
    if type(x) is not list and type(x) is not tuple:
        return False
    return len(x) > 0 and all_among(x, FLOATS) if core is None else core.all_floats(x)


def items_of(x: Any) -> list[tuple[Any, Any]]:
    """(key, value) of every entry of a mapping, which another thread may be changing.

    A dictionary is copied first, in one step: making the pairs may start the collector, and that lets threads change.
    """
    return list((x.copy() if type(x) is dict else x).items())


def entries_of(container: Any) -> list[tuple[Any, Any]]:
    """(key, value) of every entry of a list, dictionary, array of objects or object."""
    kind = kind_of(type(container))
    if kind == SEQUENCE:
        return list(enumerate(container))
    if kind == MAPPING:
        return items_of(container)
    if kind == ARRAY:
        return list(np.ndenumerate(container))
    return list(fields_of(container).items())


def put(container: Any, key: Any, value: Any) -> None:
    """Replace one entry of a list, dictionary, array of objects or object, past any method of its own."""
    kind = kind_of(type(container))
    if kind == SEQUENCE:
        (list if isinstance(container, list) else deque).__setitem__(container, key, value)
    elif kind == MAPPING:
        dict.__setitem__(container, key, value)
    elif kind == ARRAY:
        np.ndarray.__setitem__(container, key, value)
    else:
        fields = getattr(container, "__dict__", None)
        if type(fields) is dict and key in fields:
            fields[key] = value
        else:
            object.__setattr__(container, key, value)
