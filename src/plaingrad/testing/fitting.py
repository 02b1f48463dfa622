"""Which tangents fit a value, in type and shape, and which are equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plaingrad.engine.memory.kinds import MAPPING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.tangents import NoTangent, Tangent, ZeroTangent, is_zero, project, unthunk
from plaingrad.testing.structures import (
    flat,
    inner_path,
    is_container,
    is_leaf,
    leaves_of,
    parts_of,
    tangent_like,
    wide,
)
from plaingrad.testing.words import a


def exactly(bar: Any, x: Any, path: str, optional: bool = False, depth: int = 0) -> list[str]:
    """Why `bar` is not a tangent of `x` in the type that it should have."""
    if optional and (
        bar is None or (isinstance(x, (int, np.integer)) and isinstance(bar, float) and bar == 0)
    ):
        return []
    if is_leaf(x):
        if isinstance(x, np.ndarray):
            if type(bar) is not np.ndarray and not isinstance(bar, np.ndarray):
                return [f"{path} is an array, its derivative is {a(bar)}"]
            if bar.shape != x.shape or bar.dtype != x.dtype:
                return [
                    f"{path} is {a(x)}, its derivative has shape {bar.shape} and dtype {bar.dtype}",
                ]
            return []
        if type(x) is float or type(x) is complex or isinstance(x, np.inexact):
            return [] if type(bar) is type(x) else [f"{path} is {a(x)}, its derivative is {a(bar)}"]
        return [] if kind_of(type(bar)) == NUMBER else [f"{path} is {a(x)}, its derivative is {a(bar)}"]
    if bar is None or depth > 20:
        wants = depth <= 20 and any(True for _ in leaves_of(x, ""))
        return [f"{path} holds numbers, its derivative is None"] if wants else []
    kind = kind_of(type(x))
    if kind == SEQUENCE:
        if not isinstance(bar, tuple if isinstance(x, tuple) else list) or len(bar) != len(x):
            return [f"{path} is {a(x)}, its derivative is {a(bar)}"]
    elif kind == MAPPING:
        if not isinstance(bar, dict) or list(bar) != list(x):
            return [f"{path} is {a(x)} with keys {list(x)}, its derivative is {a(bar)}"]
    elif kind == OBJECT and is_container(x):
        if type(bar) is not Tangent:
            return [f"{path} is {a(x)}, its derivative is {a(bar)}, not a Tangent"]
    else:
        return [f"{path} is {a(x)}, which has no tangent; its derivative is {a(bar)}, not None"]
    found = []
    for key, value in parts_of(x):
        try:
            entry = bar[key]
        except (KeyError, IndexError):
            found.append(f"{inner_path(x, key, path)} has no entry in the derivative")
            continue
        found.extend(exactly(entry, value, inner_path(x, key, path), optional, depth + 1))
    return found


def loosely(bar: Any, x: Any, path: str) -> list[str]:
    """Why a cotangent returned by a rule does not belong to `x`; broadcasting and realness are mended outside."""
    bar = unthunk(bar)
    if is_zero(bar) or bar is None:
        return [] if bar is not None else [f"{path}: the pullback returns None; zero is ZeroTangent"]
    if is_leaf(x):
        if isinstance(x, np.ndarray):
            if (
                isinstance(bar, (list, tuple, dict, str, Tangent))
                or np.asarray(bar).dtype.kind not in "fciub"
            ):
                return [f"{path} is an array, but the pullback returns {a(bar)}"]
            try:
                np.broadcast_shapes(np.shape(bar), x.shape)
            except ValueError:
                return [f"{path} has shape {x.shape}, but its cotangent {np.shape(bar)}"]
            if x.size == 0 and np.ndim(bar) and np.shape(bar) != x.shape:
                return [f"{path} is empty, of shape {x.shape}, but its cotangent has shape {np.shape(bar)}"]
            return []
        if kind_of(type(bar)) == NUMBER or isinstance(bar, (int, np.integer)):
            return []
        if isinstance(bar, np.ndarray) and bar.dtype.kind in "fciub":
            return []  # the sum over the axes of broadcasting
        return [f"{path} is {a(x)}, but the pullback returns {a(bar)}"]
    found = []
    if is_container(x):
        if isinstance(bar, (str, float, complex, int)) or (
            not isinstance(bar, Mapping) and not hasattr(bar, "__getitem__")
        ):
            return [
                f"{path} is {a(x)}, but the pullback returns {a(bar)}; it must give one cotangent for each entry"
            ]
        for key, value in parts_of(x):
            if not any(True for _ in leaves_of(value, "")):
                continue
            inner = inner_path(x, key, path)
            try:
                entry = bar[key]
            except (KeyError, IndexError, TypeError):
                found.append(
                    f"{inner} has no cotangent in the {type(bar).__name__} that the pullback returns"
                )
                continue
            found.extend(loosely(entry, value, inner))
    return found


def projected(bar: Any, x: Any) -> Any:
    """A cotangent that a rule returned, in the space of its argument, entry by entry."""
    parts = iter(flat(bar, x))

    def make(leaf: Any) -> Any:
        part = next(parts)
        return None if part is None or is_zero(part) else project(part, leaf)

    return tangent_like(x, make)


def filled(t: Any, x: Any, chunk: int | None) -> Any:
    """A tangent as rules get it: explicit zeros inside containers, and where there is no tangent `NoTangent`."""
    if is_leaf(x):
        return t
    if not is_container(x):
        return NoTangent
    parts = [filled(None if t is None else t[key], value, chunk) for key, value in parts_of(x)]
    kind = kind_of(type(x))
    if kind == MAPPING:
        return dict(zip([key for key, _ in parts_of(x)], parts, strict=True))
    if kind == OBJECT:
        return Tangent(type(x), dict(zip([key for key, _ in parts_of(x)], parts, strict=True)))
    return tuple(parts) if isinstance(x, tuple) else parts


def as_rules_get_it(y_bar: Any, y: Any) -> Any:
    """A cotangent as the pullback of a rule gets it: a tuple for several outputs, `ZeroTangent` where there is none."""
    if is_leaf(y):
        return y_bar
    if not is_container(y):
        return ZeroTangent
    parts = [as_rules_get_it(None if y_bar is None else y_bar[key], value) for key, value in parts_of(y)]
    return tuple(parts)


def leading(y_dot: Any, y: Any, chunk: int | None) -> list[Any]:
    """The entries of y_dot as arrays of the shape of those of `y`, after a leading axis if there is a chunk."""
    found = []
    for t, leaf in zip(flat(y_dot, y), leaves_of(y, ""), strict=True):
        if t is None:
            found.append(None)
            continue
        shape = np.shape(leaf.x) if chunk is None else (chunk, *np.shape(leaf.x))
        found.append(np.broadcast_to(wide_array(t), shape))
    return found


def added(p: Any, q: Any) -> Any:
    """p + q, where None is zero."""
    if p is None or q is None:
        return q if p is None else p
    return p + q


def largest(t: Any) -> float:
    """The largest finite entry of a tangent of one leaf, by size."""
    if t is None:
        return 0.0
    absolute = np.atleast_1d(np.abs(wide_array(t)))
    return float(np.max(absolute[np.isfinite(absolute)], initial=0.0))


def near(p: Any, q: Any, tolerance: float, size: float = 0.0) -> bool:
    """Whether two tangents of one leaf agree, relative to the largest entry or to `size`; None is zero."""
    if p is None and q is None:
        return True
    with np.errstate(all="ignore"):
        scale = max(largest(p), largest(q), size)
        p = 0.0 if p is None else wide_array(p)
        q = 0.0 if q is None else wide_array(q)
        if np.shape(p) != np.shape(q) and np.ndim(p) and np.ndim(q):
            return False
        return bool(np.all(np.isclose(p, q, rtol=tolerance, atol=tolerance * scale, equal_nan=True)))


def wide_array(t: Any) -> Any:
    """A tangent as an array in double precision at least."""
    if isinstance(t, (np.ndarray, np.generic)):
        return np.asarray(wide(np.asarray(t)))
    return np.asarray(wide(t))


def has_no_tangent(x: Any) -> bool:
    """Whether no tangent belongs to `x`. A whole number may stand for a real one, a function may hold some."""
    return isinstance(x, (str, bytes, bool, type(None), type, slice))


def alike(x: Any, y: Any) -> bool:
    """Whether one value can be passed for both."""
    if isinstance(x, np.ndarray):
        return isinstance(y, np.ndarray) and x.shape == y.shape and x.dtype == y.dtype and x.size > 0
    return kind_of(type(x)) == NUMBER and type(x) is type(y)
