"""Rows of the rulebook as native code: a partial is a function that Numba compiles, with the module for an argument."""

from __future__ import annotations

import cmath
import dis
import functools
import math
import operator
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import types

from plaingrad import rulebook

OPERATORS = {"%": operator.mod, "**": operator.pow}


def row_of(function: Any) -> tuple[Any, ...] | None:
    """The partial derivatives of `function` if a scalar row tells them."""
    rule = rulebook.find(function)
    if rule is None or rule.kind != "scalar":
        return None
    return rule.partials


def module_of(function: Any, kinds: list[Any]) -> Any:
    """The module that a row computes with: the function's own, else the one that suits the argument types."""
    name = getattr(function, "__module__", None)
    if isinstance(function, np.ufunc):
        return np
    if name in ("math", "cmath"):
        return math if name == "math" else cmath
    if any(isinstance(t, types.Array) for t in kinds):
        return np
    return cmath if any(isinstance(t, types.Complex) for t in kinds) else math


@functools.lru_cache(None)
def compiled_partial(partial: Any) -> Any:
    """`partial(m, *args, z)` for calls from compiled code; the functions it calls are compiled along."""
    space = partial.__globals__
    for name in partial.__code__.co_names:
        if isinstance(space.get(name), FunctionType):
            space = {**space, name: compiled_partial(space[name])}
    return numba.njit(
        FunctionType(partial.__code__, space, partial.__name__, partial.__defaults__, partial.__closure__)
    )


@functools.lru_cache(None)
def reads(partial: Any) -> frozenset[int]:
    """Which positional arguments of a partial its code looks at."""
    names = partial.__code__.co_varnames[: partial.__code__.co_argcount]
    loaded: set[str] = set()
    for i in dis.get_instructions(partial):
        if i.opname.startswith("LOAD_FAST") or i.opname.startswith("LOAD_DEREF"):
            loaded.update(i.argval if isinstance(i.argval, tuple) else (i.argval,))
    return frozenset(k for k, name in enumerate(names) if name in loaded)
