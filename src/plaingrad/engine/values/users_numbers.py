"""Numbers of a class of the program that is a subclass of float or complex: rules compute with their values.

The class may define operators that do something else. Where C code takes the value of such a number, a rule must not
meet these operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.engine.memory.kinds import is_heap
from plaingrad.engine.users_code.class_attributes import has_python_operator
from plaingrad.rewrite import PLAIN

BY_VALUE = (
    "math",
    "cmath",
    "_operator",
)  # modules of C functions that take the value, where no operator is asked


def is_users(x: Any) -> bool:
    """Whether `x` is a float or complex of a class of the program."""
    return isinstance(x, (float, complex)) and is_heap(type(x))


def constant(level: Any, x: Any) -> Any:
    """`x`, without the class of the program if it depends on no inputs."""
    return value_of(x) if is_users(x) and not level.calls.finds_active(x) else x


def value_of(x: Any) -> Any:
    """The number `x` without the class of the program."""
    if isinstance(x, np.generic):
        return x.dtype.type(x)
    return float.__pos__(x) if isinstance(x, float) else complex.__pos__(x)


def by_value(level: Any, f: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments as the rule of `f` gets them at `level`, which knows those that depend on inputs by identity."""
    if type(f) is not np.ufunc:
        module = getattr(f, "__module__", None)
        if module not in BY_VALUE:
            return args
        if module == "_operator" and any(
            is_users(x) and has_python_operator(type(x), f.__name__) for x in args
        ):
            return args
    is_outermost = level.parent is PLAIN
    return tuple([value_of(x) if is_outermost and is_users(x) else constant(level, x) for x in args])
