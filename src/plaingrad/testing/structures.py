"""Values and tangents as the checks see them: the numbers and arrays in any structure, in one order.

Some of this runs inside a differentiated function: it is ordinary Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from plaingrad.copying import deep_copy
from plaingrad.engine.memory.entries import entries_of, has_fields, put
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.tangents import Tangent, is_zero, unthunk

DEPTH = 30  # of containers in containers; deeper ones are taken as they are


class Leaf(NamedTuple):
    """A number or an array of numbers in a structure, and where it is: "argument 0[2].rate"."""

    path: str
    x: Any


def is_leaf(x: Any) -> bool:
    """Whether `x` is a number or an array of numbers that a derivative can be taken in."""
    kind = kind_of(type(x))
    return kind == NUMBER or (kind == ARRAY and x.dtype.kind in "fc")


def is_container(x: Any) -> bool:
    """Whether numbers may be in `x`."""
    kind = kind_of(type(x))
    return kind in (SEQUENCE, MAPPING) or type(x) is Tangent or (kind == OBJECT and has_fields(x))


def parts_of(x: Any) -> list[tuple[Any, Any]]:
    """(key, value) of every entry of a list, dictionary, object or `Tangent`."""
    return [(name, x[name]) for name in x] if type(x) is Tangent else entries_of(x)


def inner_path(x: Any, key: Any, path: str) -> str:
    """The path of the entry `key` of `x`."""
    return f"{path}.{key}" if kind_of(type(x)) == OBJECT else f"{path}[{key!r}]"


def leaves_of(x: Any, path: str, depth: int = 0, seen: frozenset[int] = frozenset()) -> Iterator[Leaf]:
    """Every number and array in `x`; what is in itself is followed once."""
    if is_leaf(x):
        yield Leaf(path, x)
    elif depth < DEPTH and is_container(x) and id(x) not in seen:
        for key, value in parts_of(x):
            yield from leaves_of(value, inner_path(x, key, path), depth + 1, seen | {id(x)})


def flat(t: Any, x: Any, depth: int = 0, seen: frozenset[int] = frozenset()) -> list[Any]:
    """The entries of the tangent `t`, one for each leaf of its primal `x`; `None` for one that is zero."""
    t = unthunk(t)
    if t is not None and is_zero(t):
        t = None
    if is_leaf(x):
        return [t]
    found: list[Any] = []
    if depth < DEPTH and is_container(x) and id(x) not in seen:
        for key, value in parts_of(x):
            entry = None if t is None else entry_of(t, key)
            found.extend(flat(entry, value, depth + 1, seen | {id(x)}))
    return found


def entry_of(t: Any, key: Any) -> Any:
    """The tangent of one entry; None where there is none."""
    if isinstance(t, Mapping):  # a field may be named `get`
        return t[key] if key in t else None  # noqa: SIM401
    if isinstance(key, int) and key < len(t):
        return t[key]
    return None


def mapped(x: Any, change: Callable[[Any], Any], depth: int = 0, seen: frozenset[int] = frozenset()) -> Any:
    """`x` with change(leaf) in place of each leaf. Lists, dictionaries and objects are changed in place."""
    if is_leaf(x):
        return change(x)
    if depth >= DEPTH or not is_container(x) or id(x) in seen:
        return x
    seen = seen | {id(x)}
    values = [(key, value, mapped(value, change, depth + 1, seen)) for key, value in parts_of(x)]
    if isinstance(x, tuple):
        parts = [new for _, _, new in values]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    for key, value, new in values:
        if new is not value:
            put(x, key, new)
    return x


def tangent_like(
    x: Any, make: Callable[[Any], Any], depth: int = 0, seen: frozenset[int] = frozenset()
) -> Any:
    """A tangent of `x`: make(leaf) for each leaf, a list for a list, a `Tangent` for an object, `None` elsewhere."""
    if is_leaf(x):
        return make(x)
    if depth >= DEPTH or not is_container(x) or id(x) in seen:
        return None
    seen = seen | {id(x)}
    values = {key: tangent_like(value, make, depth + 1, seen) for key, value in parts_of(x)}
    kind = kind_of(type(x))
    if kind == MAPPING:
        return values
    if kind == OBJECT:
        return Tangent(type(x), values)
    parts = list(values.values())
    if hasattr(x, "_fields"):
        return type(x)(*parts)
    return tuple(parts) if isinstance(x, tuple) else parts


def random_like(random: np.random.Generator) -> Callable[[Any], Any]:
    """What makes a random tangent of a leaf: of its type, shape and dtype."""

    def make(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            t = random.normal(size=x.shape)
            if x.dtype.kind == "c":
                t = t + 1j * random.normal(size=x.shape)
            return np.asarray(t, x.dtype)
        t = float(random.normal())
        if isinstance(x, (complex, np.complexfloating)):
            t = complex(t, random.normal())
        return as_number(t, x)

    return make


def as_number(t: Any, x: Any) -> Any:
    """The number `t` in the type of the number `x`; of a subclass the tangent is a plain number."""
    for plain in (float, complex):
        if isinstance(x, plain) and not isinstance(x, np.generic):
            return plain(t)
    return type(x)(t)


def copied(x: Any, memo: dict[int, Any] | None = None) -> Any:
    """A deep copy; of what cannot be copied (a generator, a lock) the thing itself."""
    memo = {} if memo is None else memo
    if id(x) in memo:
        return memo[id(x)]
    if type(x) is list:
        memo[id(x)] = new = []
        new.extend([copied(part, memo) for part in x])
        return new
    if type(x) is tuple:
        return tuple([copied(part, memo) for part in x])
    if isinstance(x, np.ndarray) and x.dtype.kind != "O":
        return array_copy(x)
    try:
        return deep_copy(x, memo)
    except Exception:
        return x


def array_copy(x: np.ndarray) -> np.ndarray:
    """A copy with the same memory layout: negative strides stay negative, read-only stays read-only."""
    forwards = (..., *(slice(None, None, -1 if stride < 0 else 1) for stride in x.strides))
    new = x[forwards].copy(order="K")[forwards] if any(s < 0 for s in x.strides) else x.copy(order="K")
    if not x.flags.writeable:
        new.flags.writeable = False
    return new


def inner(a: Any, b: Any, x: Any) -> float:
    """The real inner product Re <a, b> of two tangents of `x`."""
    return sum((leaf_inner(p, q) for p, q in zip(flat(a, x), flat(b, x), strict=True)), 0.0)


def leaf_inner(a: Any, b: Any) -> float:
    """The real inner product of two tangents of one leaf."""
    if a is None or b is None:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.sum(np.real(np.conjugate(wide(a)) * wide(b))))


def magnitude(a: Any, b: Any, x: Any) -> float:
    """The sum of the absolute values of the terms of <a, b>: what rounding errors are relative to."""
    total = 0.0
    with np.errstate(all="ignore"):
        for p, q in zip(flat(a, x), flat(b, x), strict=True):
            if p is not None and q is not None:
                total += float(np.sum(np.abs(wide(p)) * np.abs(wide(q))))
    return total


def wide(x: Any) -> Any:
    """`x` in double precision at least, as something NumPy can count with."""
    if isinstance(x, np.ndarray):
        if x.dtype.kind == "O":  # exact numbers
            return x.astype(float)
        return x.astype(np.result_type(x.dtype, np.float64), copy=False)
    if isinstance(x, (np.longdouble, np.clongdouble)):
        return x
    return complex(x) if isinstance(x, (complex, np.complexfloating)) else float(x)


def combined(a: float, s: Any, b: float, t: Any, x: Any) -> Any:
    """a s + b t, of two tangents of `x`, with the structure of a tangent of `x`."""
    ss, ts = iter(flat(s, x)), iter(flat(t, x))

    def make(leaf: Any) -> Any:
        p, q = next(ss), next(ts)
        terms = [scaled(factor, term, leaf) for factor, term in ((a, p), (b, q)) if term is not None]
        if not terms:
            return None
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    return tangent_like(x, make)


def scaled(factor: float, t: Any, x: Any) -> Any:
    """factor * t in the precision of the leaf `x`."""
    if isinstance(x, np.ndarray):
        return np.asarray(factor * np.asarray(t), np.result_type(x.dtype, np.asarray(t).dtype))
    if isinstance(t, (float, complex, np.generic, np.ndarray, int)):
        return t * factor if isinstance(t, np.ndarray) else type(t)(t * factor)
    return t * type(t)(factor)


def precision_of(*structures: Any) -> float:
    """The largest rounding unit among the numbers in `structures`."""
    unit = float(np.finfo(np.float64).eps)
    for structure in structures:
        for leaf in leaves_of(structure, ""):
            dtype = leaf.x.dtype if isinstance(leaf.x, (np.ndarray, np.generic)) else None
            if dtype is not None:
                unit = max(unit, float(np.finfo(dtype).eps))
    return unit
