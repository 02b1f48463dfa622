"""Values, tangents and errors in words, for reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.tangents import NoTangent, ZeroTangent


def first_line(error: BaseException) -> str:
    """The message of an error, in one line."""
    text = str(error).partition("\n")[0]
    return text if len(text) <= 200 else text[:197] + "..."


def in_short(x: Any) -> str:
    """A value or an error for a message."""
    if isinstance(x, BaseException):
        return f"{type(x).__name__}({first_line(x)!r})"
    text = repr(x).replace("\n", " ")
    return text if len(text) <= 80 else f"{a(x)}"


def short(t: Any) -> str:
    """A tangent for a message."""
    if t is None:
        return "zero"
    if isinstance(t, np.ndarray):
        return np.array2string(t, precision=6, threshold=6).replace("\n", "")
    return f"{t:.10g}" if isinstance(t, (float, complex)) else repr(t)


def a(x: Any) -> str:
    """ "a list", "an int", "an array of shape (3,)"."""
    if x is None or x is NoTangent or x is ZeroTangent:
        return repr(x)
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape} and dtype {x.dtype}"
    name = type(x).__qualname__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def told(ids: list[str]) -> str:
    """Identities in words."""
    return ", ".join(ids) if ids else "the result is new"
