"""Line by line: what happens while a function runs at a level, by the interpreter's line events in the user's code."""

from __future__ import annotations

import functools
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any

from plaingrad.engine.refusals.blame import is_users
from plaingrad.rewrite import CURRENT

Key = tuple[str, int, str]  # file, line, function


@dataclass
class Cost:
    """What one line has cost.

    Attributes:
        hits: how often the interpreter came to it.
        time: in seconds, on the way forward, without what other lines of the user's that it calls have cost.
        back: in seconds, on the way back.
        entries: operations that it has put on the tape.
        held: bytes that were allocated there, and not freed there.
        peak: the most bytes that were in use at this line, above what was in use before the call.
    """

    hits: int = 0
    time: float = 0.0
    back: float = 0.0
    entries: int = 0
    held: int = 0
    peak: int = 0


class Lines:
    """A trace function, which gives what passes between two line events to the line where it began.

    Attributes:
        costs: by line.
        marks: (length of the tape, line), in order: to which line an entry of the tape belongs.
    """

    def __init__(self, memory: bool = False) -> None:
        self.costs: dict[Key, Cost] = {}
        self.marks: list[tuple[int, Key | None]] = []
        self.stack: list[Key | None] = []  # the line of each frame of the user's
        self.places: list[int] = []  # and the instruction that it began with
        self.known: dict[CodeType, bool] = {}
        self.memory = memory
        self.now: Key | None = None  # where the program is
        self.before = self.last = 0
        self.length = 0
        self.base = 0

    def run(self, work: Callable[..., Any], *args: Any) -> Any:
        """work(*args), looked at."""
        old = sys.gettrace()
        if self.memory:
            tracemalloc.start()
            tracemalloc.reset_peak()
            self.base = self.before = tracemalloc.get_traced_memory()[0]
        self.last = perf_counter_ns()
        sys.settrace(self.enter)
        try:
            return work(*args)
        finally:
            sys.settrace(old)
            if self.memory:
                tracemalloc.stop()

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A function is called."""
        code = frame.f_code
        users = self.known.get(code)
        if users is None:
            users = self.known[code] = is_users(frame)
        if not users:
            return None
        self.spend()
        self.stack.append(None)
        self.places.append(-1)
        self.last = perf_counter_ns()
        return self.step

    def step(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A line begins, or a function ends."""
        self.spend()
        if event == "line":
            key = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
            if not self.stack:  # a frame that was there before
                self.stack.append(None)
                self.places.append(-1)
            cost = self.costs.get(key)
            if cost is None:
                cost = self.costs[key] = Cost()
            # Rewritten code may come to a line in two places, the second further on: that is no second time.
            if self.stack[-1] != key or frame.f_lasti < self.places[-1]:
                cost.hits += 1
            self.now = self.stack[-1] = key
            self.places[-1] = frame.f_lasti
        elif event == "return" and self.stack:
            self.stack.pop()
            self.places.pop()
            self.now = next((one for one in reversed(self.stack) if one is not None), None)
        self.last = perf_counter_ns()
        return self.step

    def spend(self) -> None:
        """Give what has passed to the line where the program was."""
        now = perf_counter_ns()
        key = self.now
        length = len(getattr(CURRENT.get(), "tape", ())) // 3
        cost = None if key is None else self.costs[key]
        if length > self.length:
            if cost is not None:
                cost.entries += length - self.length
            self.marks.append((length, key))
            self.length = length
        if self.memory:
            traced, peak = tracemalloc.get_traced_memory()
            if cost is not None:
                cost.held += traced - self.before
                cost.peak = max(cost.peak, peak - self.base)
            tracemalloc.reset_peak()
            self.before = tracemalloc.get_traced_memory()[0]
        elif cost is not None:
            cost.time += max(now - self.last - overhead(), 0) * 1e-9


@functools.cache
def overhead() -> int:
    """The nanoseconds that a line event itself takes, between the two looks at the clock."""

    def lines() -> None:
        a = 1
        b = a
        a = b
        b = a
        a = b

    found: list[int] = []
    last = 0

    def step(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal last
        now = perf_counter_ns()
        if last:
            found.append(now - last)
        last = perf_counter_ns()
        return step

    old = sys.gettrace()
    try:
        for _ in range(50):
            last = 0
            sys.settrace(lambda frame, event, arg: step)
            lines()
            sys.settrace(old)
    finally:
        sys.settrace(old)
    return min(found) if found else 0
