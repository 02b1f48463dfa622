"""Linear functions, asked with labels: which one element of the argument each element of the result is, or back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.engine.sparsity.dependent_calls import Call, leaves, shaped
from plaingrad.tangents import NoTangent, ZeroTangent, unthunk

LABELS = 1 << 24  # labels are whole numbers below this: exact in single precision


def by_labels(call: Call) -> Any:
    """A linear function that only moves elements, or adds them up each in one place; None for any other."""
    ids = call.ids[0]
    flat = np.concatenate([np.zeros(1, np.int64), *[np.ravel(part) for part in leaves(ids)]])
    random = np.random.default_rng(flat.size)
    if flat.size >= LABELS:
        return None
    forward = found_by(lambda labels: pushed(call, labels), flat.size - 1, random)
    if forward is not None:  # the tangent of a result need only broadcast to its shape
        return shaped(flat[forward], call.y)
    if isinstance(ids, list) or call.rule.rrule is None:
        return None
    back = found_by(lambda labels: pulled(call, labels), np.size(call.y), random)
    if back is not None and back.shape == np.shape(ids):
        groups = back.ravel()
        count = np.size(call.y) + 1  # place 0 is for elements that reach nothing
        return call.sets.union_of_groups(groups, np.ravel(ids), count)[1:].reshape(np.shape(call.y))
    return None


def found_by(linear_map: Callable[[np.ndarray], Any], n: int, random: np.random.Generator) -> Any:
    """For each element of the result which of the n elements it is, counted from 1 (0: none); None if it is neither.

    The map is tried with the places themselves and twice with random labels: a result that mixes two elements would
    have to be right by chance three times.
    """
    try:
        places = quietly(linear_map, np.arange(n + 1))
        if places.dtype.kind not in "fciu":
            return None
        found = whole(places)
        if found is None or found.max(initial=0) > n:
            return None
        for _ in range(2):
            labels = random.integers(1, LABELS, n + 1)
            labels[0] = 0
            seen = quietly(linear_map, labels)
            for part in ("real", "imag"):
                expected = np.where(getattr(places, part) != 0, labels[found], 0)
                if not np.array_equal(np.abs(getattr(seen, part)), expected):
                    return None
    except (TypeError, ValueError, IndexError):
        return None
    return found


def quietly(linear_map: Callable[[np.ndarray], Any], labels: np.ndarray) -> np.ndarray:
    """What the map makes of labels: they may be too large for the dtype it gives."""
    with np.errstate(all="ignore"):
        return np.asarray(linear_map(labels))


def whole(places: np.ndarray) -> Any:
    """|places| as whole numbers, the same in the real and imaginary parts that are not zero; else None."""
    real, imaginary = np.abs(places.real), np.abs(places.imag)
    top = np.maximum(real, imaginary)
    if not np.all(np.isfinite(top)) or not np.all(top < 2.0**53):
        return None
    found = top.astype(np.int64)
    if not np.array_equal(found, top):
        return None
    if not np.all(((real == top) | (real == 0)) & ((imaginary == top) | (imaginary == 0))):
        return None
    return found


def pushed(call: Call, labels: np.ndarray) -> Any:
    """The function, or its pushforward, on labels for the elements of its argument."""
    x = call.args[0]
    if isinstance(x, (list, tuple)):
        parts, first = [], 1
        for entry in x:
            n = np.size(entry)
            parts.append(labelled(labels[first : first + n], entry))
            first += n
        x_dot: Any = parts
    else:
        x_dot = labelled(labels[1:], x)
    if call.rule.frule is not None:
        _, push = call.outside(call.rule.frule, *call.args, **call.kwargs)
        dots = [ZeroTangent] * len(call.args)
        dots[0] = x_dot
        return unthunk(push(tuple(dots)))
    return call.f(x_dot, *call.args[1:], **call.kwargs)


def pulled(call: Call, labels: np.ndarray) -> Any:
    """The pullback of labels for the elements of the result."""
    _, pullback = call.outside(call.rule.rrule, *call.args, **call.kwargs)
    x_bar = unthunk(pullback(labelled(labels[1:], call.y))[0])
    return np.zeros(np.shape(call.ids[0])) if x_bar is ZeroTangent or x_bar is NoTangent else x_bar


def labelled(labels: np.ndarray, x: Any) -> Any:
    """Labels in the shape of `x`, in both parts of complex numbers."""
    is_complex = np.iscomplexobj(x)
    return (labels * (1.0 + 1.0j) if is_complex else labels * 1.0).reshape(np.shape(x))
