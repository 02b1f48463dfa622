"""Values without their derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.copying import shallow_copy
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.values.fresh import copied_object, fresh_number, has_attributes, put_field, rebuilt
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents.fields import fields_of


def stopped(x: Any) -> Any:
    """`x` made of new numbers and arrays that no level knows; run natively, never rewritten."""
    return _stopped(x, {})


def stopped_if_active(x: Any) -> Any:
    """`x` itself where nothing in it depends on the inputs of a derivative, else `x` without its derivative."""
    return stopped(x) if _is_active(x) else x


def _stopped(x: Any, made: dict[int, Any]) -> Any:
    kind = kind_of(type(x))
    if kind == NUMBER:
        return fresh_number(x)
    if kind == ARRAY:
        return np.array(x)
    if id(x) in made:
        return made[id(x)]
    if kind == SEQUENCE:
        if isinstance(x, list):
            made[id(x)] = whole = shallow_copy(x)
            whole[:] = [_stopped(part, made) for part in x]
            return whole
        return rebuilt(x, [_stopped(part, made) for part in x])
    if kind == MAPPING:
        made[id(x)] = whole = shallow_copy(x) if isinstance(x, dict) else {}
        for key, part in x.items():
            dict.__setitem__(whole, key, _stopped(part, made))
        return whole
    if type(x) is set or type(x) is frozenset:
        return type(x)([_stopped(part, made) for part in x])
    if kind == OBJECT and has_attributes(x) and _is_active(x):
        made[id(x)] = whole = copied_object(x)
        for name, part in fields_of(x).items():
            put_field(whole, name, _stopped(part, made), kind)
        return whole
    return x


def _is_active(x: Any) -> bool:
    """Whether something in `x` depends on the inputs of a derivative that is being taken."""
    level = CURRENT.get()
    while level is not PLAIN:
        if level.is_active(x):
            return True
        level = level.parent
    return False
