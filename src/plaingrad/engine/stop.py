"""Values without their derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.engine.kinds import ARRAY, MAPPING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.level import fresh_number, rebuilt


def stopped(x: Any) -> Any:
    """`x` made of new numbers and arrays that no level knows; run natively, never rewritten."""
    kind = kind_of(type(x))
    if kind == NUMBER:
        return fresh_number(x)
    if kind == ARRAY:
        return np.array(x)
    if kind == SEQUENCE:
        return rebuilt(x, [stopped(part) for part in x])
    if kind == MAPPING:
        return {key: stopped(part) for key, part in x.items()}
    return x
