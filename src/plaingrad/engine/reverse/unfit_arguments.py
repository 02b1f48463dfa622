"""What is said of an argument that holds no number with a tangent, or is nested too deeply."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.errors import ArgumentError


def too_deep(n: int) -> ArgumentError:
    """The error for an argument that recursion cannot look through."""
    return ArgumentError(
        f"argument {n} is nested deeper than Python's stack (sys.getrecursionlimit()), so its numbers were not "
        "reached.\n  Pass the numbers in a flat list or array.\n  See docs: errors#argument"
    )


def way_out(x: Any) -> str:
    """What to pass instead of `x`, which holds no number with a tangent."""
    parts = list(x.values()) if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else [x]
    while isinstance(x, (list, tuple)) and parts and all(isinstance(part, (list, tuple)) for part in parts):
        parts = [inner for part in parts for inner in part][:100]
    if any(isinstance(part, (int, np.integer)) and not isinstance(part, bool) for part in parts):
        example = reals(x)
        return (
            "Ints inside a structure are counts and indices, which have no derivative; write reals, "
            f"{example if example is not None else 'such as 1.0 for 1'}."
        )
    if isinstance(x, np.ndarray) and x.dtype.names is not None:
        return f"It is a structured array; pass its fields as arguments, such as a[{x.dtype.names[0]!r}]."
    return "Differentiate another argument (argnums=...), or pass a float, an array or a structure of them."


def reals(x: Any) -> str | None:
    """`x` as it should be written, if that is short."""
    try:
        text = repr(with_reals(x))
    except Exception:
        return None
    return text if len(text) <= 60 else None


def with_reals(x: Any) -> Any:
    """`x` with floats for ints."""
    if type(x) is int:
        return float(x)
    if isinstance(x, dict):
        return {key: with_reals(part) for key, part in x.items()}
    return type(x)([with_reals(part) for part in x]) if type(x) is list or type(x) is tuple else x


def describe_type(x: Any) -> str:
    """ "a str", "an int"."""
    name = type(x).__qualname__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
