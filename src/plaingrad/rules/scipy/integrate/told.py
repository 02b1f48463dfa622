"""What a function of the program decides on: what it compares, and calls of what may branch by itself.

Told are pairs of numbers or of arrays, which are compared, and an `Unknown` for what may branch on its arguments by
itself: code without a derivative rule, an object's own operators. Code that tells this is made in `following`.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any

import numpy as np

from plaingrad.rules.scipy.implicit import mover

MOST = 2000  # comparisons of one evaluation; if there are more, it may branch by what is not known
LARGEST = 256  # numbers in arrays that are compared
TOLD: ContextVar[list[Any] | None] = ContextVar("TOLD", default=None)
NUMBERS = (float, int, np.floating, np.integer)
UNSAID = object()


class Unknown:
    """A call that may branch on what it is called with.

    Attributes:
        parts: the function and its arguments.
        answer: what it has returned, where that is known.
    """

    def __init__(self, *parts: Any) -> None:
        self.parts, self.answer = parts, UNSAID


@mover
def compared(a: Any, b: Any) -> None:
    """Note what is compared."""
    told = TOLD.get()
    if told is not None and len(told) < MOST:
        told.append((a, b) if is_numeric(a) and is_numeric(b) and len(told) < MOST - 1 else Unknown(a, b))


def is_numeric(x: Any) -> bool:
    """Whether x is a number, or a small array of numbers."""
    return isinstance(x, NUMBERS) or (
        isinstance(x, np.ndarray) and x.dtype.kind in "fiub" and x.size <= LARGEST
    )


@mover
def unknown(*parts: Any) -> Unknown:
    """Note a call that may branch by itself."""
    told, call = TOLD.get(), Unknown(*parts)
    if told is not None and len(told) < MOST:
        told.append(call)
    return call


@mover
def answered(call: Unknown, answer: Any) -> Any:
    """Note what a call has returned, if it is an answer of its own that nothing changes afterwards."""
    if isinstance(answer, (*NUMBERS, str, bytes)):
        call.answer = answer
    elif isinstance(answer, np.ndarray) and answer.dtype.kind in "fciub":
        call.answer = np.copy(answer)
    return answer


@mover
def whole(u: Any, shift: float = 0.0) -> None:
    """Note u and the whole number next to it, which a function of the kind of `floor` compares it with."""
    if isinstance(u, NUMBERS):
        if math.isfinite(u):
            compared(u, float(round(float(u) - shift)) + shift)
    elif is_numeric(u):
        compared(u, np.round(u - shift) + shift)


def divided(a: Any, b: Any, shift: float = 0.0) -> None:
    """Note a / b, whose whole part is taken."""
    if may_divide(a, b):
        whole(a / b, shift)


@mover
def may_divide(a: Any, b: Any) -> bool:
    """Whether a / b is a number, or numbers."""
    return is_numeric(a) and is_numeric(b) and bool(np.all(b != 0))


@mover
def each_edge(x: Any, edges: Any) -> None:
    """Note x, a number or an array, and every edge that it is looked up among."""
    if isinstance(edges, np.ndarray) and isinstance(x, NUMBERS):
        compared(x, edges)
    elif len(edges) <= LARGEST:
        for k in range(len(edges)):
            compared(x, edges[k : k + 1] if isinstance(edges, np.ndarray) else edges[k])
    else:
        unknown(x, edges)


@mover
def begin() -> Any:
    """From now on it is noted what is compared."""
    return TOLD.set([])


@mover
def end(token: Any) -> list[Any]:
    """What was noted."""
    told = TOLD.get()
    TOLD.reset(token)
    return told or []


def signs(pair: Any) -> tuple[int, ...]:
    """How each comparison of a pair comes out: -1, 0 or 1."""
    if isinstance(pair, Unknown):
        return ()
    a, b = pair
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        try:
            return tuple((np.greater(a, b).astype(int) - np.less(a, b)).ravel().tolist())
        except ValueError:  # shapes that do not fit
            return ()
    return (int(a > b) - int(a < b),)


def pattern(told: list[Any]) -> tuple[Any, ...]:
    """How all comparisons come out."""
    return tuple([signs(pair) for pair in told])


Reason = tuple[int, int] | None  # which pair, and which of its numbers; None: not known


@mover
def why(below: list[Any], above: list[Any]) -> Reason:
    """Which comparison comes out differently, the first."""
    for k, (a, b) in enumerate(zip(below, above, strict=False)):
        one, other = signs(a), signs(b)
        if len(one) != len(other):
            break
        for j in range(len(one)):
            if one[j] != other[j]:
                return k, j
    return None


@mover
def equal_beside(tell: Any, low: float, high: float, reason: Any) -> list[Any]:
    """Other comparisons than `reason` that come out differently at two places beside one another, because what they
    compare is equal there, too: what lies between is the zero of their gap from both sides."""
    far = 64.0 * (high - low)
    sides = [tell(low - far), tell(low), tell(high), tell(high + far)]
    found = []
    for k, pairs in enumerate(zip(*sides, strict=False)):
        counts = [len(signs(pair)) for pair in pairs]
        for j in range(counts[0] if len(set(counts)) == 1 else 0):
            gaps = [float(gap_of(told, (k, j))) for told in sides]
            ends = ((gaps[0], gaps[1]), (gaps[3], gaps[2]))
            near = all(64.0 * abs(g) <= 4.0 * abs(g - further) for further, g in ends)
            if (k, j) != reason and signs(pairs[1])[j] != signs(pairs[2])[j] and near:
                found.append((k, j))
    return found


def gap_of(told: list[Any], reason: Any) -> Any:
    """a - b of the comparison."""
    k, j = reason
    a, b = told[k]
    return np.reshape(a - b, (-1,))[j]


@mover
def deciding(below: list[Any], above: list[Any], least: float) -> list[Any] | None:
    """Calls, with their arguments, whose answers jump where no comparison says why f does; None: f may branch by itself.

    least: a difference that is smaller, beside an answer's size, is none.
    """
    found = []
    for a, b in zip(below, above, strict=False):
        if (
            isinstance(a, Unknown)
            and isinstance(b, Unknown)
            and not is_same_answer(a.answer, b.answer, least)
        ):
            found.append(a.parts)
    return found or None


def is_same_answer(a: Any, b: Any, least: float) -> bool:
    """Whether two answers tell nothing of a jump between them."""
    if a is UNSAID or b is UNSAID or isinstance(a, (str, bytes)) or isinstance(b, (str, bytes)):
        return bool(a is b or (a is not UNSAID and b is not UNSAID and a == b))
    if np.shape(a) != np.shape(b):
        return False
    size = max(float(np.max(np.abs(z), initial=0.0)) for z in (a, b))
    return bool(np.max(np.abs(np.subtract(b, a, dtype=complex)), initial=0.0) <= least * size)


def is_unknown(told: list[Any]) -> bool:
    """Whether there are calls that may branch by themselves."""
    return any(isinstance(pair, Unknown) for pair in told)


__all__ = [
    "Reason",
    "Unknown",
    "answered",
    "begin",
    "compared",
    "deciding",
    "divided",
    "each_edge",
    "end",
    "equal_beside",
    "gap_of",
    "is_unknown",
    "pattern",
    "unknown",
    "whole",
    "why",
]
