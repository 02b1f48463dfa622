"""Whole numbers made of differentiated ones: refused where they keep every digit, noticed where they become times."""

from __future__ import annotations

import datetime
import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.engine.refusals.refuse import name_of, refuse, user_frame
from plaingrad.errors import RoundTripError, TruncationWarning

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

MOST = 100_000  # so many whole numbers are looked at, or remembered
INTEGER_LIMIT = 2.0**52  # beyond it int(x) keeps every digit of x, and code takes numbers apart that way
SPANS = (datetime.timedelta, datetime.datetime, datetime.date, np.timedelta64, np.datetime64)
# Where a whole number beside a time becomes one; as a factor it is a count.
SUMS = {"add", "sub", "iadd", "isub", operator.add, operator.sub, np.add, np.subtract}


def refuse_digits(name: str) -> None:
    """Refuse to make an integer that keeps every digit of a differentiated number."""
    refuse(
        RoundTripError,
        f"`{name}` is taken of a differentiated number beyond 2**52",
        why="All its digits go into the integer, which has no derivative.",
        fix="keep the number a float, or write a rule for the function that does this",
        anchor="round-trip",
    )


def is_span(f: Any) -> bool:
    """Whether `f` makes times or time spans of numbers."""
    if isinstance(f, type):
        return any(issubclass(f, cls) for cls in SPANS)
    return getattr(f, "__name__", "") in ("fromtimestamp", "utcfromtimestamp", "fromordinal")


def spans(level: Level, f: Callable[..., Any], make: Callable[..., Any]) -> Callable[..., Any]:
    """The class `f` of times or time spans: warn if it is given a whole number made of a differentiated one."""

    def make_span(*args: Any, **kwargs: Any) -> Any:
        if level.texts.truncated:
            warn_of_truncated(level, f, (*args, *kwargs.values()))
        return make(*args, **kwargs)

    return make_span


def is_time(x: Any) -> bool:
    """Whether `x` is a time or a time span of Python or NumPy, or an array of these."""
    return (x.dtype.kind in "mM") if isinstance(x, (np.ndarray, np.generic)) else isinstance(x, SPANS)


def check_times(level: Level, made: Any, values: Iterable[Any]) -> None:
    """Warn if `made` is, or holds, times that were made of a whole number made of a differentiated one."""
    if is_time(made):
        kind = made.dtype.type if isinstance(made, np.ndarray) else type(made)
        warn_of_truncated(level, kind, values)


def warn_of_truncated(level: Level, f: Any, values: Iterable[Any]) -> None:
    """Warn of the first whole number in `values` that was made of a differentiated one; `f` makes times of them."""
    found = level.texts.truncated.intersection(itertools.islice(whole_numbers(values), MOST))
    if found:
        warn_truncated(f, min(found))


def whole_numbers(x: Any) -> Iterator[int]:
    """The whole numbers in lists, tuples and arrays."""
    if isinstance(x, (int, np.integer)):
        if not isinstance(x, (bool, np.timedelta64)):
            yield int(x)
    elif isinstance(x, np.ndarray):
        if x.dtype.kind in "iu":
            yield from x.ravel()[:MOST].tolist()
    elif isinstance(x, (list, tuple)):
        for part in x[:MOST]:
            yield from whole_numbers(part)


def warn_truncated(f: Any, x: Any) -> None:
    """Warn that the derivative ends at the whole number `x`."""
    frame = user_frame()
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("<unknown>", 0)
    warnings.warn_explicit(
        f"{name_of(f)} is given the whole number {x}, which was made of a number that depends on the inputs, at "
        f"{file}:{line}.\n  Times have no derivative, and whole numbers have none: the result is a constant.\n"
        "  To go on: keep the number a float; or plaingrad.stop_gradient(x) before it is rounded.\n"
        "  See docs: errors#round-trip",
        TruncationWarning,
        file,
        line,
    )
