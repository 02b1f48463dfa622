"""Exceptions put in at any instruction of plaingrad's own code, and whether everything is as before afterwards."""

import contextvars
import ctypes
import gc
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from tests.sampling import ALL, number_of

import plaingrad
from plaingrad import critical
from plaingrad.engine.users_code import adopt, codes
from plaingrad.engine.reverse import exclusive
from plaingrad.engine.checkpoints import segment
from plaingrad.rewrite import CURRENT, PLAIN, is_rewritten

HOME = str(Path(plaingrad.__file__).parent)
#: What opens and closes: here every instruction is tried, elsewhere some.
OPENING = (
    "critical",
    "rewrite/hooks",
    "engine/reverse/run",
    "engine/calls/reuse",
    "engine/calls/opening",
    "engine/reverse/exclusive",
    "engine/reverse/inputs",
    "engine/users_code/adopt",
    "engine/users_code/codes",
    "engine/forward/push",
)
OPENING_IN_PART = ("engine/calls/level", "engine/calls/calls", "engine/checkpoints/segment")
OPENING_METHODS = ("run", "close", "_hand_over", "closed", "during", "_opened", "_end")
MODULE_LOCKS = (codes.lock, exclusive._lock, segment._lock)


class Put(KeyboardInterrupt):
    """The exception that is put in."""


def is_ours(code: CodeType) -> bool:
    """Whether `code` is plaingrad's own, its generated hooks included."""
    return code.co_filename.startswith((HOME, "<plaingrad"))


def opens(code: CodeType) -> bool:
    """Whether `code` is part of opening or closing a level."""
    name = code.co_filename[len(HOME) + 1 : -3]
    return name in OPENING or (name in OPENING_IN_PART and code.co_name in OPENING_METHODS)


class Tracer:
    """Counts the instructions (or lines) of plaingrad's code that a thread runs, and raises at one or several of them.

    Attributes:
        at: the numbers of the events at which `error` is raised.
        later: how many events after `aim` was called it is raised.
        places: (code, offset) of every event, if they are wanted.
        raised: how often.
    """

    def __init__(
        self,
        at: int | tuple[int, ...] | None,
        error: type[BaseException] = Put,
        lines: bool = False,
        keep: bool = False,
        watched: Callable[[CodeType], bool] = is_ours,
        later: int | None = None,
    ) -> None:
        self.at = () if at is None else (at,) if isinstance(at, int) else at
        self.error, self.event, self.keep, self.watched = error, "line" if lines else "opcode", keep, watched
        self.count = self.raised = 0
        self.later = later
        self.places: list[tuple[CodeType, int]] = []

    def aim(self) -> None:
        """Raise so many events from now as `later` says; once."""
        if self.later is not None:
            self.at, self.later = (self.count + self.later,), None

    def begin(self, frame: Any, event: str, arg: Any) -> Any:
        if not self.watched(frame.f_code):
            return None
        frame.f_trace_opcodes = self.event == "opcode"
        return Follower(self, frame) if len(self.at) > 1 else self.follow

    def is_due(self, frame: Any, event: str) -> bool:
        """Count an event; whether to raise now. Instructions without a line are CPython's own; no signal arrives there."""
        if event != self.event or frame.f_lineno is None:
            return False
        if self.keep:
            self.places.append((frame.f_code, frame.f_lasti))
        self.count += 1
        if self.count not in self.at:
            return False
        self.raised += 1
        return True

    def follow(self, frame: Any, event: str, arg: Any) -> Any:
        if self.is_due(frame, event):
            raise self.error
        return self.follow

    def run(self, program: Callable[[], Any]) -> Any:
        def apart() -> Any:
            # Where an exception arrives among the first instructions of a handler, CPython leaves the handled one on the
            # stack of the thread, for good. A generator has a stack of its own.
            yield program()

        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # CPython 3.12 looks for that when tracing begins
        sys.settrace(self.begin)
        try:
            return next(apart())
        finally:
            sys.settrace(before)


class Follower:
    """Follows one frame. CPython ends tracing where a tracing function raises; this one begins it anew."""

    def __init__(self, tracer: Tracer, frame: Any) -> None:
        self.tracer, self.frame, self.has_raised = tracer, frame, False

    def __call__(self, frame: Any, event: str, arg: Any) -> Any:
        tracer = self.tracer
        if tracer.is_due(frame, event):
            self.has_raised = True
            del self, frame  # the traceback keeps what is here
            raise tracer.error
        return self

    def __del__(self) -> None:
        # CPython drops the tracing function of the frame after it has ended tracing, and before the frame goes on.
        if self.has_raised and self.tracer.raised < len(self.tracer.at):
            frame = self.frame
            while frame is not None:
                if self.tracer.watched(frame.f_code):
                    frame.f_trace, frame.f_trace_opcodes = Follower(self.tracer, frame), self.tracer.event == "opcode"
                frame = frame.f_back
            sys.settrace(self.tracer.begin)


def places_to_try(
    program: Callable[[], Any], others: int, lines: bool = False, tried: set[Any] | None = None
) -> list[int]:
    """Numbers of events: for places in code that opens and closes the first, and `others` spread over the rest.

    Of the lines of such code each of CPython 3.12 to 3.14 tries a third, and 3.11 the same as 3.14.

    Args:
        program: what is traced.
        others: how many.
        lines: events are lines, not instructions.
        tried: places that need no event any more; those chosen are added.
    """
    program()  # what is made once is made now
    tracer = Tracer(None, lines=lines, keep=True)
    tracer.run(program)
    first: dict[Any, int] = {}
    for number, place in enumerate(tracer.places, 1):
        first.setdefault((lines, *place), number)
    tried = set() if tried is None else tried
    chosen = {n for place, n in first.items() if opens(place[1]) and place not in tried and is_tried_here(*place[1:])}
    tried.update(place for place in first if opens(place[1]))
    rest = list(range(1, tracer.count + 1))
    if others:
        chosen.update(rest[:: max(1, len(rest) // others)])
    return sorted(chosen)


def is_tried_here(code: CodeType, offset: int) -> bool:
    """Whether the instruction is in a line that this CPython tries; all with PLAINGRAD_TEST_ALL=1."""
    line = next((line for begin, end, line in code.co_lines() if begin <= offset < end), 0)
    return ALL or number_of(f"{code.co_filename[len(HOME) :]}:{line}") % 3 == sys.version_info.minor % 3


def functions_of(*classes: type) -> list[FunctionType]:
    """The functions in the dictionaries of classes, behind properties too."""
    found = []
    for cls in classes:
        for value in vars(cls).values():
            parts = (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),)
            found += [f for f in parts if isinstance(f, FunctionType)]
    return found


def shape(x: Any, seen: set[int] | None = None) -> Any:
    """The identities of a structure's containers and leaves, and the contents of its arrays."""
    seen = set() if seen is None else seen
    if id(x) in seen:
        return id(x)
    seen.add(id(x))
    if isinstance(x, np.ndarray):
        return id(x), x.tobytes()
    if isinstance(x, dict):
        return id(x), [(key, shape(value, seen)) for key, value in x.items()]
    if isinstance(x, (list, tuple)):
        return id(x), [shape(value, seen) for value in x]
    if hasattr(x, "__dict__") and not isinstance(x, type):
        return id(x), shape(vars(x), seen)
    return id(x), repr(x)


class State:
    """What must be as before: classes, their code, arguments, the context, counts and locks."""

    def __init__(self, classes: tuple[type, ...], arguments: Any) -> None:
        self.classes, self.arguments = classes, arguments
        self.before = self.now()

    def now(self) -> dict[str, Any]:
        """Everything that is compared."""
        functions = functions_of(*self.classes)
        return {
            "classes": [dict(vars(cls)) for cls in self.classes],
            "code": [f.__code__ for f in functions],
            "code that runs": [codes.running(f) for f in functions],
            "arguments": shape(self.arguments),
            "level": CURRENT.get() is PLAIN,
            "errors of NumPy": np.geterr(),
            "open levels": set(adopt._open),
            "exchanged": dict(codes._exchanged),
            "adopted": set(adopt._adopted),
            "being adopted": set(adopt._adopting),
            "known": [cls in adopt.known or cls in adopt.settled or cls in adopt.watched for cls in self.classes],
            "at work": set(exclusive.at_work),
            "patched": dict(exclusive._patched),
            "held": dict(segment._held),
            "locks": any(lock._is_owned() for lock, _ in critical._shared),
            "variables": sum(type(value).__name__.endswith("Level") for value in contextvars.copy_context().values()),
        }

    def differences(self) -> list[str]:
        """The names of what is not as before."""
        now = self.now()
        found = [name for name, value in self.before.items() if now[name] != value]
        if any(is_rewritten(code) for code in now["code that runs"]):
            found.append("rewritten code")
        return found


def interrupted(program: Callable[[], Any], at: int | tuple[int, ...], error: type[BaseException] = Put, lines: bool = False) -> bool:
    """Whether program() was ended by `error`, put in at event `at`."""
    try:
        Tracer(at, error, lines).run(program)
    except error:
        return True
    return False


def asynchronously(thread: int, error: type[BaseException]) -> None:
    """Raise `error` in another thread, at its next chance."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def free_locks() -> bool:
    """Whether another thread can take every lock."""
    got: list[bool] = []

    def take() -> None:
        for lock in [lock for lock, _ in critical._shared]:
            free = lock.acquire(timeout=5)
            got.append(free)
            if free:
                lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return all(got)


def without_collection(work: Callable[[], Any]) -> Any:
    """work() without the garbage collector, whose runs are not the same each time."""
    was = gc.isenabled()
    gc.disable()
    try:
        return work()
    finally:
        if was:
            # Collect here, not where the next container is made. In CPython up to 3.11 that may be inside the
            # release of a function: PyObject_ClearWeakRefs takes the first weak reference, then makes a tuple
            # for the callbacks. If this begins a collection, and the reference is that of an interrupted level
            # that is garbage, it is freed, and then used. Since 3.12 a collection waits for the next instruction.
            gc.collect()
            gc.enable()
