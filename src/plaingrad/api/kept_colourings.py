"""Colourings of sparsity patterns, kept for the patterns met last."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

import numpy as np

from plaingrad.critical import exclusively, shared_lock
from plaingrad.engine.sparsity.colouring import (
    Colouring,
    cheapest,
    colour_columns,
    colour_rows,
    colour_symmetric,
)

_colourings: OrderedDict[Any, tuple[Colouring, ...]] = OrderedDict()
_colourings_lock = shared_lock()
KEPT = 1 << 27  # bytes of colourings; the last one is kept whatever its size


def coloured(kind: str, starts: np.ndarray, columns: np.ndarray, n: int) -> tuple[Colouring, ...]:
    """Colourings that show the pattern together; the last ones are kept: the next step of an iteration asks again."""
    digest = hashlib.blake2b(np.ascontiguousarray(starts))
    digest.update(np.ascontiguousarray(columns))
    key = kind, n, digest.digest()
    known = exclusively(_colourings_lock, _known_colourings, key)
    if known is not None:
        return known  # type: ignore[no-any-return]
    if kind == "symmetric":
        made: tuple[Colouring, ...] = (colour_symmetric(starts, columns),)
    elif kind == "cheapest":
        made = cheapest(starts, columns, n)
    else:
        made = ((colour_columns if kind == "columns" else colour_rows)(starts, columns, n),)
    exclusively(_colourings_lock, _keep_colourings, key, made)
    return made


def _known_colourings(key: Any) -> tuple[Colouring, ...] | None:
    known = _colourings.get(key)
    if known is not None:
        _colourings.move_to_end(key)
    return known


def _keep_colourings(key: Any, made: tuple[Colouring, ...]) -> None:
    _colourings[key] = made
    while len(_colourings) > 1 and sum(map(size_of, _colourings.values())) > KEPT:
        _colourings.popitem(last=False)


def size_of(colourings: tuple[Colouring, ...]) -> int:
    """How many bytes some colourings take."""
    return sum(a.nbytes for part in colourings for a in (part.colours, part.entries, part.sweep, part.place))
