"""Indices of arrays: frozen against later changes, and which elements one of them reads or writes twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.engine.memory.memory import address, byte_offsets, extent, overlaps_itself


def frozen_key(k: Any) -> Any:
    """An index that later changes to its arrays and lists do not reach."""
    t = type(k)
    if t is int or t is slice or t is type(Ellipsis) or k is None:
        return k
    if t is tuple:
        return tuple([frozen_key(part) for part in k])
    if t is list or isinstance(k, np.ndarray):
        return (
            np.array(k)
            if len(np.shape(k)) == 0 or np.size(k)
            else np.array(k, np.intp if t is list else None)
        )
    return k


def snapshot(a: np.ndarray, k: Any) -> np.ndarray:
    """A copy of a[k]."""
    return np.array(a[k])


def may_repeat(a: np.ndarray, k: Any) -> bool:
    """Whether a[k] may read one element twice: repeated entries of integer arrays, or elements that share bytes."""
    if overlaps_itself(a):
        return True
    parts = k if type(k) is tuple else (k,)
    whole = [part for part in parts if isinstance(part, np.ndarray) and part.dtype.kind in "iu"]
    if len(whole) == 1 and whole[0].ndim == 1:
        if len(parts) == 1 and a.shape[0]:
            return repeats(whole[0] % a.shape[0], a.shape[0])
    return bool(whole)


def repeats(places: np.ndarray, n: int) -> bool:
    """Whether one of these places among n stands twice; marks are faster than order where there are many."""
    if n > 64 * places.size + 1024:
        return bool(np.unique(places).size < places.size)
    seen = np.zeros(n, bool)
    seen[places] = True
    return int(np.count_nonzero(seen)) < places.size


def winners(a: np.ndarray, k: Any) -> np.ndarray | None:
    """Where an integer-array key repeats an element, which of the writes lasted; None where nothing repeats."""
    parts = k if type(k) is tuple else (k,)
    if not any(
        isinstance(part, np.ndarray) and part.dtype.kind in "iu" for part in parts
    ) and not overlaps_itself(a):
        return None
    places = np.arange(a.size).reshape(a.shape)[k] if not overlaps_itself(a) else _byte_places(a)[k]
    mask = _lasting(places.ravel())
    return None if mask is None else mask.reshape(places.shape)


FEW = 64  # places: fewer are told apart by a dictionary


def _lasting(places: np.ndarray) -> np.ndarray | None:
    """Which of these writes, in their order, is the last one at its place; None if all are."""
    if places.size > FEW:
        order = np.arange(places.size)
        last = np.empty(int(places.max()) + 1, np.intp)
        last[places] = order  # of a place that stands twice the last number remains
        mask = last[places] == order
        return None if np.count_nonzero(mask) == places.size else mask
    at_place = {place: at for at, place in enumerate(places.tolist())}
    if len(at_place) == places.size:
        return None
    mask = np.zeros(places.size, bool)
    mask[list(at_place.values())] = True
    return mask


def _byte_places(a: np.ndarray) -> np.ndarray:
    return byte_offsets(a, min(address(a), extent(a)[0]))
