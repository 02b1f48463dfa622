"""Questions about values: which element of them is nan or infinite, and how a number is written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from plaingrad.engine.values.probes import is_masked

LONGEST = 1000  # entries of a list that are looked at


@dataclass(frozen=True)
class Bad:
    """An element that is nan or infinite.

    Attributes:
        value: the element.
        index: where in the array it is; () for a number.
        count: how many such elements the array has.
        size: how many elements it has.
    """

    value: Any
    index: tuple[int, ...]
    count: int = 1
    size: int = 1

    @property
    def word(self) -> str:
        """nan, inf or -inf."""
        value = self.value
        if isinstance(value, (complex, np.complexfloating)):
            return "nan" if value != value else "inf"
        return "nan" if value != value else "inf" if value > 0 else "-inf"

    @property
    def where(self) -> str:
        """Which element, in words; empty for a number."""
        if not self.index:
            return ""
        others = (
            "" if self.count == 1 else f" and {self.count - 1} other{'s' * (self.count > 2)} of {self.size}"
        )
        return f" at [{', '.join(map(str, self.index))}]{others}"


def bad_in(x: Any) -> Bad | None:
    """The first element of a number, array, or list of these, that is nan or infinite; None if all are finite."""
    t = type(x)
    if t is float:
        return None if math.isfinite(x) else Bad(x, ())
    if is_array(x):
        if x.dtype.kind not in "fc":
            return None
        finite = np.isfinite(numbers_of(x))
        if is_masked(x):
            finite |= np.ma.getmaskarray(x)
        if finite.all():
            return None
        wrong = np.flatnonzero(~finite.ravel())
        index = np.unravel_index(int(wrong[0]), x.shape)
        place = tuple(int(k) for k in index)
        return Bad(numbers_of(x)[place], place, len(wrong), x.size)
    if t is complex or issubclass(t, (np.floating, np.complexfloating)):
        return None if np.isfinite(x) else Bad(x, ())
    if t is list or t is tuple:
        for part in x[:LONGEST]:
            if (found := bad_in(part)) is not None:
                return found
    return None


def numbers_of(x: np.ndarray) -> np.ndarray:
    """`x` without its class, which may do anything at an operation, also look at what is being looked at."""
    return x if type(x) is np.ndarray else np.ndarray.view(x, np.ndarray)


def is_array(x: Any) -> TypeGuard[np.ndarray]:
    """Whether `x` is an array, by its type: `isinstance` asks for `x.__class__`, code of the program."""
    return issubclass(type(x), np.ndarray)


def is_number(x: Any) -> bool:
    """Whether `x` is a real or complex number, or an array of them, by its type."""
    t = type(x)
    if t is bool:
        return False
    if is_array(x):
        return x.dtype.kind in "fciu"
    return issubclass(t, (float, int, complex, np.number))


def element(x: Any, index: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Any:
    """The element of `x` that belongs to `index` of an array of `shape`, as broadcasting has it; None: not known."""
    if not is_array(x):
        return x if is_number(x) else None
    x = numbers_of(x)
    if not index:
        return x[()] if x.ndim == 0 else None
    if shape is not None and x.shape != shape:
        try:
            x = np.broadcast_to(x, shape)
        except ValueError:
            return None
    return x[index] if len(index) == x.ndim else None


def written(x: Any) -> str:
    """A number in few digits."""
    if isinstance(x, (complex, np.complexfloating)):
        return f"{complex(x):.6g}"
    if isinstance(x, (float, np.floating)):
        return f"{float(x):.6g}"
    return str(x)
