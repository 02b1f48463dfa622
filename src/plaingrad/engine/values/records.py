"""Structured arrays: a field of one is an array like any other; a whole record hides its numbers.

NumPy hands out a record as a `numpy.void`, which is neither a number nor an array, and its arithmetic takes the
numbers out in C. So fields and views are differentiated, copies and concatenations too, and the rest is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from plaingrad.engine.refusals.refuse import missing_rule, name_of, refuse
from plaingrad.errors import MissingRuleError

MOVED = frozenset(
    "copy __copy__ __deepcopy__ array asarray asanyarray ascontiguousarray concatenate append hstack vstack stack "
    "reshape ravel transpose squeeze flip atleast_1d".split()
)


def check_call(f: Any, a: np.ndarray) -> None:
    """Refuse f(a) for a differentiated structured array, except where `f` only copies whole records."""
    if name_of(f).rsplit(".", 1)[-1] not in MOVED:
        refuse_record(a, f"`{name_of(f)}` gets a differentiated structured array")


def refuse_record(
    a: np.ndarray, what: str = "a record of a differentiated structured array is read"
) -> NoReturn:
    """Refuse a record taken out whole."""
    field = a.dtype.names[0] if a.dtype.names else "name"
    refuse(
        MissingRuleError,
        what,
        f"A record ({a.dtype}) is neither a number nor an array, so the numbers in it could not be followed.",
        f"take a field first, which is an array: a[{field!r}], a[{field!r}][i]",
        "missing-rule",
    )


def elements(level: Any, v: Any, a: np.ndarray) -> Any:
    """A list or tuple that is written into `a`: as an array; a record stays what it is if nothing in it is active."""
    if a.dtype.names is None:
        return level.prep(np.array)(v)
    if level.is_active(v):
        refuse_write(a)
    return v


def refuse_write(a: np.ndarray) -> NoReturn:
    """Refuse `a[i] = (x, y)` with differentiated numbers."""
    field = a.dtype.names[0] if a.dtype.names else "name"
    refuse(
        MissingRuleError,
        "differentiated numbers are written into a record of a structured array",
        f"A record ({a.dtype}) is neither a number nor an array, so the numbers in it could not be followed.",
        f"write the fields, each of which is an array: a[{field!r}][i] = x",
        "missing-rule",
    )


def refuse_bits(a: np.ndarray) -> None:
    """Refuse an array of integers or objects that shares memory with differentiated numbers."""
    if a.dtype.names is not None:
        refuse_record(a)
    missing_rule(
        np.ndarray.view,
        f"It looks at the bits of differentiated numbers as {a.dtype}; that has no derivative.",
    )
