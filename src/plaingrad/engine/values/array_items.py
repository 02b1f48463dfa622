"""Items of arrays whose class is a subclass of ndarray: as ndarray has them, or as the class does."""

from __future__ import annotations

from types import WrapperDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.engine.refusals.refuse import missing_rule
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


def read_in_c(level: Level, a: np.ndarray, k: Any) -> Any:
    """a[k] where the `__getitem__` of the class is C code, of which it is known only what it returns.

    A view is followed by its memory, and a copy of what ndarray has there as that copy; anything else is refused.
    """
    z = a[k]
    if a.dtype.kind not in "fc" or not level.calls.finds_active(a):
        return z
    if z is np.ma.masked or (isinstance(z, np.ndarray) and np.may_share_memory(z, a)):
        return z
    expected = read(level, a, k)
    if not isinstance(z, (np.ndarray, np.generic)) or not is_same(z, expected):
        missing_rule(
            lookup(type(a), "__getitem__"), "What it reads out of a differentiated array is not in the array."
        )
    z_bare = bare(expected) if isinstance(z, np.ndarray) else expected
    return WRAP(z, z_bare) if is_subclassed(z) else z_bare


def is_in_c(method: Any) -> bool:
    """Whether the `__getitem__` of a class is code of a C extension."""
    t = type(method)
    return t is WrapperDescriptorType or t.__name__ == "cython_function_or_method"


def is_same(z: Any, expected: Any) -> bool:
    """Whether two arrays or numbers have the same dtype, shape and elements, bit by bit."""
    z, expected = (np.asarray(bare(x) if isinstance(x, np.ndarray) else x) for x in (z, expected))
    return z.dtype == expected.dtype and z.shape == expected.shape and z.tobytes() == expected.tobytes()


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
    if is_in_c(method):
        return (read_in_c(level, a, k) for k in range(len(a)))
    return (level._call_own(method, a, k) for k in range(len(a)))
