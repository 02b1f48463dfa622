"""Times of functions called in turn, in one process, so that a slower minute of the machine slows all of them."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any


def seconds_of(
    run: Callable[..., Any], args: tuple[Any, ...], clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """(the seconds of the processor, or of another clock, that a call takes, what it returns)."""
    begun = clock()
    found = run(*args)
    return clock() - begun, found


def least(
    runs: Sequence[Callable[..., Any]],
    args: tuple[Any, ...],
    repeat: int,
    clock: Callable[[], float] = time.process_time,
) -> list[float]:
    """The least of the seconds that each of several functions takes, in two rounds of `repeat` calls each."""
    found = [math.inf] * len(runs)
    for k, run in [*enumerate(runs)] * 2:
        for _ in range(repeat):
            found[k] = min(found[k], seconds_of(run, args, clock)[0])
    return found


def row(name: str, times: Sequence[float]) -> str:
    """Two times in a line of a table, and how many times the second one is the first."""
    first, second = times
    return f"{name:32} {first * 1e3:10.2f}ms {second * 1e3:10.2f}ms {second / first:7.2f}"


def title(name: str, first: str, second: str) -> str:
    """The titles of the columns of `row`."""
    return f"{name:32} {first:>12} {second:>12} {'ratio':>7}"
