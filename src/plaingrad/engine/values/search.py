"""Whether an active number or array can be reached from a value, as data."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import number_classes
from plaingrad.class_keys import all_among, is_among
from plaingrad.engine.memory.kinds import ARRAY, FLAT, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.values.shared_tensors import is_in_array
from plaingrad.tangents.fields import held_by

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

DICT_VIEWS = frozenset(map(type, ({}.keys(), {}.values(), {}.items())))


def finds_any(index: Any, values: Any) -> bool:
    """Whether one of `values`, a list or tuple, is in the table `index`."""
    if isinstance(index, dict):
        return not index.keys().isdisjoint(map(id, values))
    return index.finds_any(values)


def is_in_reach(level: Level, x: Any) -> bool:
    """Whether something reachable from `x` as data is active at `level`."""
    index = level.index
    seen: dict[int, Any] = {}
    todo = [x]
    while todo:
        x = todo.pop()
        t = type(x)
        kind = kind_of(t)
        if kind == NOTHING or t is FunctionType or id(x) in seen:
            continue
        if kind == NUMBER:
            if id(x) in index or (number_classes.known and is_in_array(level, x)):
                return True
            continue
        if kind == ARRAY and x.dtype.kind != "O":
            if level.region(x) is not None:
                return True
            if t is not np.ndarray:  # a subclass: it may hold numbers as attributes
                seen[id(x)] = x
                todo += (getattr(x, "__dict__", None) or {}).values()
            continue
        seen[id(x)] = x
        if (t is list or t is tuple) and all_among(x, FLAT):
            if finds_any(index, x):
                return True
        elif kind == MAPPING:
            todo += [*x.values(), *x.keys()]
        elif kind in (SEQUENCE, ARRAY) or t is set or t is frozenset or is_among(t, DICT_VIEWS):
            todo.extend(x.flat if kind == ARRAY else x)  # not +=, which a subclass of list may define
        elif t is MethodType:
            todo.append(x.__self__)
        elif t is memoryview:
            if level.owns_region(owner_of(x)):
                return True
        else:
            todo += held_by(x)
    return False
