"""Items of arrays whose class is a subclass of ndarray: as ndarray has them, or as the class does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.engine.values.array_classes import WRAP, bare, is_subclassed, overrides

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

GETITEM = vars(np.ndarray)["__getitem__"]
SETITEM = vars(np.ndarray)["__setitem__"]
ITER = vars(np.ndarray)["__iter__"]


def read(level: Level, a: np.ndarray, k: Any) -> Any:
    """a[k] as ndarray has it."""
    level.calls.meet(a)
    z = level.read_array(bare(a), bare_key(k))
    return WRAP(a, z) if isinstance(z, np.ndarray) and type(z) is np.ndarray else z


def bare_key(k: Any) -> Any:
    """An index with its arrays as plain ones."""
    if type(k) is tuple:
        return tuple([bare_key(part) for part in k])
    return bare(k) if is_subclassed(k) else k


def write(level: Level, v: Any, a: np.ndarray, k: Any) -> None:
    """a[k] = v as ndarray has it."""
    level.calls.meet(a)
    if is_subclassed(v):
        v = bare(v)
    if overrides(type(a), "__getitem__") and is_basic(
        k, a.ndim
    ):  # NumPy asks the class for what is to be written
        part = level._call_own(lookup(type(a), "__getitem__"), a, k)
        if isinstance(part, np.ndarray):
            a, k = part, Ellipsis
    level.write_array(v, bare(a), bare_key(k))


def is_basic(k: Any, ndim: int) -> bool:
    """Whether the index `k` names a part of an array of `ndim` axes that is a view, not one element."""
    parts = k if type(k) is tuple else (k,)
    ints = [part for part in parts if isinstance(part, (int, np.integer)) and not isinstance(part, bool)]
    rest = [part for part in parts if part is None or part is Ellipsis or type(part) is slice]
    return len(ints) + len(rest) == len(parts) and len(ints) < max(ndim, 1)


def elements(level: Level, a: np.ndarray) -> Any:
    """The entries of `a` one by one, as a loop over it gets them."""
    method = lookup(type(a), "__getitem__")
    if method is GETITEM:
        return (read(level, a, k) for k in range(len(a)))
    return (level._call_own(method, a, k) for k in range(len(a)))
