"""`max_memory=` and `tape_size`: the memory of a tape, counted at the interpreter's line events while it grows."""

from __future__ import annotations

import gc
import linecache
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from types import CodeType, FrameType
from typing import Any

import numpy as np

from plaingrad.api.leaves import Argnums, check_callable
from plaingrad.copying import deep_copy
from plaingrad.diagnosis.debugging import raised_again
from plaingrad.diagnosis.explanation import chosen_positions
from plaingrad.diagnosis.places import Place
from plaingrad.diagnosis.words import size
from plaingrad.engine.memory.holders import PARTS
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.blame import is_engine_frame, is_users
from plaingrad.engine.reverse.run import Run
from plaingrad.errors import ArgumentError, TapeMemoryError
from plaingrad.rewrite import CURRENT, PLAIN

ENTRY = 16  # bytes of an operation on numbers in the compiled core
TRIPLE = 80  # and in a list: three references, a float, an int
NUMBER = 72  # bytes of a number that is filed: a float, and its place in the table
OBJECT, PART = (
    250,
    60,
)  # bytes of a step or pullback, its tuples and cells; of each of two in a triple of a list
DEEPEST = 8  # functions in functions, containers in containers
MOST = 5000  # objects that are looked at for one entry
FEWEST = 64  # entries between two looks at numbers alone
SHOWN = 4  # lines that an error names
USERS, PACKAGES, ENGINES = range(3)  # whose code it is


class Account:
    """The memory of one tape: what its entries refer to, each array once while it lives."""

    def __init__(self) -> None:
        self.entries = 0
        self.bytes = 0
        self.counted: dict[int, Any] = {}  # id of the owner of memory -> weak reference to it

    def look(self, tape: Any) -> int:
        """Count what was recorded since the last look; how many bytes that is."""
        length = len(tape) // 3
        if length < self.entries:  # the tape was begun anew
            self.__init__()  # type: ignore[misc]
        start, self.entries = 3 * self.entries, length
        if type(tape) is list:
            added, each = TRIPLE * (length - start // 3), PART
            marks = [i < 0 for i in tape[start + 1 :: 3]]
            held: Iterable[Any] = [
                *compress(tape[start::3], marks),
                *compress(tape[start + 2 :: 3], marks),
            ]
        else:
            added, each = ENTRY * (length - start // 3), OBJECT
            held = tape.held(start)
        for x in held:
            added += each + sum([self._new(owner) for owner in owners_in(x)])
        self.bytes += added
        return added

    def _new(self, owner: Any) -> int:
        known = self.counted.get(id(owner))
        if known is not None and known() is owner:
            return 0
        try:
            self.counted[id(owner)] = weakref.ref(owner)
        except TypeError:  # a buffer of another class
            self.counted[id(owner)] = lambda: owner
        return int(getattr(owner, "nbytes", 0))


def owners_in(x: Any) -> Iterator[Any]:
    """The owners of the memory of arrays that a step or pullback refers to."""
    waiting, seen = [(x, 0)], {id(x)}
    while waiting and len(seen) < MOST:
        x, depth = waiting.pop()
        if isinstance(x, np.ndarray):
            yield owner_of(x)
            continue
        try:
            parts = PARTS.get(type(x))
        except TypeError:  # a class without hash
            continue
        if parts is None and type(x).__module__.startswith("plaingrad.engine.memory"):
            parts = gc.get_referents
        if parts is None or depth > DEEPEST:
            continue
        for part in parts(x):
            if id(part) not in seen and not isinstance(part, (float, int, str, type)):
                seen.add(id(part))
                waiting.append((part, depth + 1))


class Here(threading.local):
    """Where a thread is: the line whose is what it records now, and whether that is the user's."""

    line: tuple[str, int, str] | None = None
    is_users = False
    is_thread = False


class Counting:
    """A trace function, which counts the memory of the tapes that are open and gives it to the lines that record.

    Attributes:
        by_line: bytes, by line: a pair of file and number, and the function.
        total: bytes of all tapes at the last look.
    """

    def __init__(self, looked: Callable[[Counting], None]) -> None:
        self.looked = looked
        self.accounts: dict[int, tuple[Any, Account]] = {}
        self.by_line: dict[tuple[str, int, str], int] = {}
        self.whose: dict[CodeType, int] = {}
        self.total = 0
        self.before: tuple[int, Any] = (0, None)
        self.level: Any = None
        self.here = Here()
        self.lock = threading.RLock()  # of the counts; threads that are started meanwhile are looked at, too

    def run(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """work(*args, **kwargs), looked at."""
        old, of_threads = sys.gettrace(), threading.gettrace()
        sys.settrace(self.enter)
        threading.settrace(self.enter_in_thread)
        try:
            return work(*args, **kwargs)
        finally:
            sys.settrace(old)
            threading.settrace(of_threads)  # type: ignore[arg-type]

    def enter_in_thread(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A function is called in a thread that was started meanwhile: only what records for this derivative counts."""
        self.here.is_thread = True
        return self.enter(frame, event, arg)

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A function is called."""
        return None if self._whose(frame) == ENGINES else self.step

    def _whose(self, frame: FrameType) -> int:
        code = frame.f_code
        whose = self.whose.get(code)
        if whose is None:
            whose = USERS if is_users(frame) else ENGINES if is_engine_frame(frame) else PACKAGES
            self.whose[code] = whose
        return whose

    def step(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A line begins, or a function ends."""
        level = CURRENT.get()
        tape = getattr(level, "tape", None)
        if tape is not None and (level is self.level or not self.here.is_thread):
            with self.lock:
                self.level = level
                length, last = self.before
                grown = len(tape) // 3 - length
                if (
                    last is not tape
                    or grown < 0
                    or grown >= FEWEST
                    or (grown and has_objects(tape, 3 * length))
                ):
                    self.before = len(tape) // 3, tape
                    self.count(level)
        if event == "line":
            self._at(frame)
        elif event == "return":
            back = frame.f_back
            while back is not None and self._whose(back) == ENGINES:
                back = back.f_back
            if back is not None and back.f_code in self.whose:
                self._at(back)
        return self.step

    def _at(self, frame: FrameType) -> None:
        users = self._whose(frame) == USERS
        here = self.here
        if users or not here.is_users:  # what packages record is the line's that calls them
            here.line, here.is_users = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name), users

    def count(self, level: Any) -> None:
        """Count the tapes of `level` and of those around it."""
        total, new = 0, 0
        while level is not None and level is not PLAIN:
            tape = getattr(level, "tape", None)
            if tape is not None:
                known, account = self.accounts.get(id(level), (None, None))
                if account is None or known is not level:
                    account = Account()
                    self.accounts[id(level)] = level, account
                new += account.look(tape)
                total += account.bytes
            level = getattr(level, "base", None) or level.parent
        self.total = total
        line = self.here.line
        if line is not None and new:
            self.by_line[line] = self.by_line.get(line, 0) + new
        self.looked(self)

    def lines(self) -> list[tuple[Place, int]]:
        """The lines that have recorded most, and how many bytes."""
        most = sorted(self.by_line.items(), key=lambda one: -one[1])
        return [(Place(*key), count) for key, count in most]


def has_objects(tape: Any, start: int) -> bool:
    """Whether there is more than slopes of numbers on a tape from a place on."""
    if type(tape) is list:
        return any(i < 0 for i in tape[start + 1 :: 3])
    return bool(tape.held(start))


def bounded(derivative: Callable[..., Any], most: float, *args: Any, **kwargs: Any) -> Any:
    """derivative(*args, **kwargs), which stops where its tape takes more than `most` bytes.

    A program that swallows the error goes on as a plain call does not, so the error is raised again in the end.
    """
    raised: list[TapeMemoryError] = []

    def stop(counting: Counting) -> None:
        if counting.total > most:
            raised.append(too_much(counting, most))
            raise raised[-1]

    with raised_again(raised):
        return Counting(stop).run(derivative, *args, **kwargs)


def too_much(counting: Counting, most: float) -> TapeMemoryError:
    """What to raise when a tape is too large."""
    place = Place(*counting.here.line) if counting.here.line else None
    shown = [
        f"    {count / max(counting.total, 1):4.0%}  {place.short}:{place.line}, in `{place.function}`"
        for place, count in counting.lines()[:SHOWN]
    ]
    first = f"at {place}: {linecache.getline(place.file, place.line).strip()}" if place else "in a package"
    lines = [
        first,
        f"  The tape takes {size(counting.total)}, and max_memory allows {size(int(most))}. What has recorded it:",
        *shown,
        "  To go on: plaingrad.checkpoint around a part that can be run again, forward mode for few inputs, the native",
        "  tier for a loop; plaingrad.tape_size(f, *args) says how large the whole tape would be.",
        "  See docs: errors#tape-memory",
    ]
    return TapeMemoryError("\n".join(lines))


@dataclass
class TapeSize:
    """How large a tape would be.

    Attributes:
        bytes: of the whole tape, with the arrays that it keeps.
        operations: its entries.
        lines: (line of the program, bytes), those with most first.
    """

    bytes: int
    operations: int
    lines: list[tuple[Place, int]]

    def __repr__(self) -> str:
        rows = [
            f"{size(count):>10}  {place.short}:{place.line}, in `{place.function}`"
            for place, count in self.lines
        ]
        return "\n".join([f"{size(self.bytes)}, {self.operations:,} operations", *rows[:20]])


def tape_size(f: Callable[..., Any], *args: Any, argnums: Argnums | None = None, **kwargs: Any) -> TapeSize:
    """How much memory the tape of a gradient of `f` takes, by line, without keeping the tape.

    `f` is called once, on deep copies of the arguments, and what it records is counted and let go of. So it says in
    the memory of little more than a plain call what `grad` would need. An estimate: small objects are counted by
    averages. Other threads are not looked at.

    Args:
        f: a function, which is differentiated in the plain tier and reverse mode.
        args: its arguments.
        argnums: which of them to differentiate; by default all that have a tangent, but for ints.
        kwargs: its arguments by keyword.

    Raises:
        ArgumentError: no argument has a tangent, or a derivative is being taken around this call.

    Examples:
        >>> import numpy as np
        >>> def f(x):
        ...     for _ in range(100):
        ...         x = np.sin(x)
        ...     return x.sum()
        >>> size = tape_size(f, np.ones(10_000))
        >>> 8_000_000 <= size.bytes < 8_300_000
        True
    """
    check_callable(f, "tape_size")
    if CURRENT.get() is not PLAIN:
        raise ArgumentError(
            "tape_size is called inside of a derivative.\n  To go on: call it for the function itself.\n"
            "  See docs: errors#argument"
        )
    active = chosen_positions(args, argnums)
    args, kwargs = deep_copy((args, kwargs))
    sums = [0, 0]

    def let_go(counting: Counting) -> None:
        level = counting.level
        account = counting.accounts[id(level)][1]
        if getattr(level, "base", None) is None and level.parent is PLAIN:
            sums[0] += account.bytes
            sums[1] += account.entries
            level.tape.clear()
            account.entries = account.bytes = 0
            counting.before = 0, level.tape
            for key in level.captured:
                level.captured[key] = None

    counting = Counting(let_go)
    counting.run(recorded, f, args, active, kwargs, counting)
    return TapeSize(sums[0], sums[1], counting.lines())


def recorded(f: Any, args: Any, active: tuple[int, ...], kwargs: Any, counting: Counting) -> None:
    """Run f, recorded, and count what the last line has recorded."""

    def counted(value: Any) -> Any:
        if counting.level is not None:
            counting.count(counting.level)
        return None

    Run(f, args, active, kwargs, counted)
