"""`profile`: time and memory of a gradient, forward and back, by the user's lines."""

from __future__ import annotations

import bisect
import functools
import linecache
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from plaingrad.api.leaves import Argnums, check_callable
from plaingrad.copying import deep_copy
from plaingrad.diagnosis.advice import advice
from plaingrad.diagnosis.explanation import chosen_positions, ones_like, shown_name
from plaingrad.diagnosis.page import page
from plaingrad.diagnosis.places import Place
from plaingrad.diagnosis.tracing import Cost, Key, Lines
from plaingrad.diagnosis.words import seconds, size
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.memory import Shadow
from plaingrad.engine.memory.structure import seed
from plaingrad.engine.memory.tape import CALLED, STEP, redo
from plaingrad.engine.reverse.run import Run
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tables import aligned

LEAST = 1e-8  # seconds of a slope of numbers on the way back


@dataclass
class Row:
    """A line of the program, and what it has cost; see `Cost`."""

    file: str
    line: int
    function: str
    source: str
    cost: Cost


@dataclass
class Profile:
    """What `profile` has found.

    Attributes:
        name: of the function.
        rows: the lines, those that take most time first.
        plain: seconds of a plain call.
        forward: seconds of the call that is recorded, as it is without looking.
        reverse: seconds of the way back.
        entries: operations on the tape.
        peak: bytes, at most, in use during the recorded call, above what was in use before.
        advice: what would help.
    """

    name: str
    rows: list[Row]
    plain: float
    forward: float
    reverse: float
    entries: int
    peak: int
    advice: list[str] = field(default_factory=list)

    def head(self) -> str:
        """The sums, in one line."""
        times = (self.forward + self.reverse) / self.plain if self.plain else 0.0
        return (
            f"{self.name}: plain {seconds(self.plain)}, forward {seconds(self.forward)}, reverse"
            f" {seconds(self.reverse)} ({times:.1f} times the plain call); {self.entries:,} operations on the tape,"
            f" peak {size(self.peak)}"
        )

    def table(self, most: int = 20) -> str:
        """The lines that take most time, one a row."""
        cells = [("line", "hits", "forward", "reverse", "tape", "held", "peak", "source")]
        for row in self.rows[:most]:
            cost = row.cost
            cells.append(
                (
                    f"{Place(row.file, row.line, row.function).short}:{row.line}",
                    f"{cost.hits:,}",
                    seconds(cost.time),
                    seconds(cost.back),
                    f"{cost.entries:,}",
                    size(cost.held),
                    size(cost.peak),
                    row.source,
                )
            )
        return aligned(cells, right=(1, 2, 3, 4, 5, 6))

    def __repr__(self) -> str:
        lines = [self.head(), self.table()]
        if len(self.rows) > 20:
            lines.append(f"... {len(self.rows) - 20} more lines in `rows`")
        return "\n".join([*lines, *self.advice])

    def _repr_html_(self) -> str:
        return page(self, whole=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the annotated source as one HTML page, which needs no other file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(page(self))

    def as_json(self) -> dict[str, Any]:
        """The same in dictionaries and lists; times in seconds, memory in bytes."""
        found = {name: getattr(self, name) for name in ("plain", "forward", "reverse", "entries", "peak")}
        rows = [
            {
                "file": row.file,
                "line": row.line,
                "function": row.function,
                "source": row.source,
                **asdict(row.cost),
            }
            for row in self.rows
        ]
        return {"function": self.name, **found, "rows": rows, "advice": self.advice}


def profile(f: Callable[..., Any], *args: Any, argnums: Argnums | None = None, **kwargs: Any) -> Profile:
    """Where the time and the memory of a gradient of `f` go, line by line.

    `f` is called seven times, on deep copies of the arguments: plainly, twice, for what it compiles or keeps the first
    time; recorded, with and without a look at each line; and once more for memory. What it reads and changes elsewhere
    is not put back in between. Other threads are not looked at.

    Args:
        f: a function, which is differentiated in the plain tier and reverse mode.
        args: its arguments.
        argnums: which of them to differentiate; by default all that have a tangent, but for ints.
        kwargs: its arguments by keyword.

    Returns:
        An object that prints a table; `rows` has it as data, `save("page.html")` writes the annotated source, and
        `advice` says what would help. Time spent in code of packages counts for the user's line that calls it. The
        time of a line on the way back is measured for arrays, and shared evenly among operations on numbers.

    Raises:
        ArgumentError: no argument has a tangent, or a derivative is being taken around this call.

    Examples:
        >>> def f(x):
        ...     for _ in range(100):
        ...         x = x * 1.01
        ...     return x
        >>> profile(f, 1.0).entries
        100
    """
    check_callable(f, "profile")
    if CURRENT.get() is not PLAIN:
        raise ArgumentError(
            "profile is called inside of a derivative.\n  To go on: profile the function itself.\n"
            "  See docs: errors#argument"
        )
    active = chosen_positions(args, argnums)

    found = measured(f, lambda: deep_copy((args, kwargs)), active)
    found.advice = advice(args, active, found)
    if not found.rows or is_compiled(f) and not any(row.cost.entries for row in found.rows):
        found.rows, found.advice = whole(f, found), [COMPILED if is_compiled(f) else WITHOUT_LINES]
    return found


def seconds_of(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """How long a plain call takes."""
    begun = perf_counter()
    f(*args, **kwargs)
    return perf_counter() - begun


SHORT = 0.05  # seconds


def seconds_of_gradient(f: Callable[..., Any], call: tuple[Any, ...]) -> tuple[float, float]:
    """How long a run and its way back took."""
    begun = perf_counter()
    run = Run(f, *call)
    forward = perf_counter() - begun
    begun = perf_counter()
    if run.slots is not None:
        run.pull(ones_like(run.value))
    return forward, perf_counter() - begun


def measured(f: Callable[..., Any], given: Callable[[], Any], active: tuple[int, ...]) -> Profile:
    """The profile, without advice; given() is a new copy of the arguments."""
    plain = min(seconds_of(f, *given()), seconds_of(f, *given()))
    Run(f, *call_of(given, active))  # what is prepared once is prepared
    forward, reverse = seconds_of_gradient(f, call_of(given, active))
    if forward + reverse < SHORT:  # a pause of the machine counts for much
        again = [seconds_of_gradient(f, call_of(given, active)) for _ in range(3)]
        forward, reverse = map(min, zip((forward, reverse), *again, strict=True))
    counted, timed, spaced = Lines(), Lines(), Lines(memory=True)
    some, named = given()
    counted.run(functools.partial(f, **named), *some)
    seen = timed.run(Run, f, *call_of(given, active))
    spaced.run(Run, f, *call_of(given, active))
    merge(timed, counted, spaced)
    share_back(seen, timed, reverse)
    scale_forward(timed, forward)
    rows = [
        Row(file, line, function, linecache.getline(file, line).strip(), cost)
        for (file, line, function), cost in timed.costs.items()
    ]
    rows.sort(key=lambda row: -(row.cost.time + row.cost.back))
    peak = max([cost.peak for cost in spaced.costs.values()], default=0)
    return Profile(shown_name(f), rows, plain, forward, reverse, len(seen.level.tape) // 3, peak)


COMPILED = "Compiled by Numba: one native step without lines; profile(f.py_func, ...) shows them, in Python."
WITHOUT_LINES = "No line of yours ran: it is code of packages, or compiled code."


def is_compiled(f: Any) -> bool:
    """Whether a function is one that Numba has compiled."""
    return getattr(f, "py_func", None) is not None


def whole(f: Any, found: Profile) -> list[Row]:
    """A function none of whose lines was seen as one row; none where its code is not known either."""
    code = getattr(getattr(f, "py_func", f), "__code__", None)
    if code is None:
        return []
    cost = Cost(1, found.forward, found.reverse, found.entries)
    first = code.co_firstlineno
    lines = [linecache.getline(code.co_filename, first + k).strip() for k in range(10)]
    past = next((k for k, line in enumerate(lines) if line.startswith(("def ", "lambda"))), 0)  # decorators
    return [Row(code.co_filename, first + past, code.co_name, lines[past], cost)]


def merge(timed: Lines, counted: Lines, spaced: Lines) -> None:
    """Put what was seen of lines in other runs beside their times: memory, and how often a plain call comes there.

    Rewritten code may come to a line in several places.
    """
    for key, cost in spaced.costs.items():
        mine = timed.costs.setdefault(key, Cost())
        mine.held, mine.peak = cost.held, cost.peak
    for key, cost in counted.costs.items():
        if key in timed.costs:
            timed.costs[key].hits = cost.hits


def call_of(given: Callable[[], Any], active: tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments of `Run`, on copies."""
    args, kwargs = given()
    return args, active, kwargs


def scale_forward(lines: Lines, forward: float) -> None:
    """Let the times of lines sum up to that of the call, as it is without looking."""
    total = sum([cost.time for cost in lines.costs.values()])
    if total > 0:
        for cost in lines.costs.values():
            cost.time *= forward / total


def share_back(run: Run, lines: Lines, reverse: float) -> None:
    """Share the time of the way back among the lines whose entries are on the tape."""
    if run.slots is None:
        return
    spent, numbers = times_back(run)
    ends = [length for length, _ in lines.marks]
    owners = [key for _, key in lines.marks]
    by_line: dict[Key, float] = {}
    each = max((reverse - sum(spent.values())) / max(len(numbers), 1), LEAST)

    def give(k: int, time: float) -> None:
        at = bisect.bisect_right(ends, k)
        key = owners[at] if at < len(owners) else None
        if key is not None:
            by_line[key] = by_line.get(key, 0.0) + time

    for k, time in spent.items():
        give(k, time)
    for k in numbers:
        give(k, each)
    total = sum(by_line.values())
    for key, time in by_line.items():
        lines.costs[key].back = time * (reverse / total if total else 0.0)


def times_back(run: Run) -> tuple[dict[int, float], list[int]]:
    """(seconds of each entry with a step of its own, the entries that are slopes of numbers) of a way back."""
    tape = run.level.tape
    size = run.level.new_index()
    shadow = Shadow(size, None if type(tape) is list else core.Bars(size))
    undone: list[Any] = []
    spent: dict[int, float] = {}
    numbers: list[int] = []
    bars = shadow.bars
    seed(shadow, run.slots, ones_like(run.value))
    back = reversed(tape)
    k = len(tape) // 3
    try:
        with np.errstate(all="ignore"):
            for partial, i, o in zip(back, back, back, strict=True):
                k -= 1
                if i >= 0:
                    numbers.append(k)
                    if bars[o] is not None:
                        term = bars[o] * partial
                        bars[i] = term if bars[i] is None else bars[i] + term
                    continue
                begun = perf_counter()
                if i == CALLED:
                    partial(shadow, *o)
                elif i == STEP:
                    partial.back(shadow, undone)
                spent[k] = perf_counter() - begun
    finally:
        redo(undone)
    return spent, numbers
