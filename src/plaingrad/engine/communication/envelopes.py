"""What a differentiated function sends to processes that it has started, and what it waits for meanwhile.

What crosses a queue or pipe goes in an envelope that says which message it is; both sides record an exchange.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from plaingrad.critical import imported
from plaingrad.engine.communication.kept import _kin, family, kin_of, members, wires
from plaingrad.engine.communication.messages import given, got
from plaingrad.engine.communication.other_processes import carries_active, further_out, refuse_process
from plaingrad.engine.refusals.refuse import refuse
from plaingrad.errors import RoundTripError
from plaingrad.rewrite import PLAIN

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

SHORTEST, LONGEST = 0.01, 0.2  # seconds between looks at messages, where a semaphore is waited for


def put(level: Level, f: Any) -> Callable[..., Any]:
    """`put` of a queue, `send` of a connection."""

    def put_at_level(queue: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        return further_out(level, f, queue, enveloped(level, f, obj), *args, **kwargs)

    return put_at_level


def enveloped(level: Level, f: Any, x: Any) -> Any:
    """`x` as it goes to another process: in an envelope if it is active."""
    if type(x) is family().Envelope and not level.calls.finds_active((x.x, x.dots)):
        return x
    if not carries_active(level, x):
        refuse_process(level, f, x)
        return x
    kin = kin_of(level)
    here = members().own()
    if (
        not kin.children
        and here.up is None
        or not level.follows_processes
        or not getattr(level, "has_own_table", True)
    ):
        refuse_process(level, f, x)
    xs = given(level, f, x)
    if not level.calls.finds_active(xs):
        refuse_process(level, f, x)
    left = family().Left(kin, (here.address, next(here.messages)), len(xs))
    level.by_exchange(xs, [], left)
    numbers = imported("plaingrad.rules.mpi.numbers")
    structure = numbers.taken_apart(x)[0]
    x = numbers.with_numbers(structure, further_out(level, family().as_they_are, xs))
    here.is_related = True
    is_late = here.is_copied and hasattr(level, "tape")  # asked after it was recorded: see `Keeper.leave`
    return family().Envelope(kin.name, kin.depth, None if is_late else left.key, x, left.dots)


_asked = threading.local()  # by a level further in


def arrived(level: Level, f: Any, *args: Any, **kwargs: Any) -> Any:
    """What f(*args, **kwargs) gets from another process, with its derivatives at this level and further out."""
    is_innermost = not getattr(_asked, "by_level", False)
    _asked.by_level = True
    try:
        x = further_out(level, f, *args, **kwargs)
    finally:
        _asked.by_level = not is_innermost
    if type(x) is not family().Envelope:
        return x
    kin = kin_of(level)
    if x.depth > kin.depth and not is_innermost:
        return x  # it is constant at this level
    if (x.kin, x.depth) != (kin.name, kin.depth):
        refuse_stranger(f)
    if x.key is None:
        refuse_late(f)
    here = members().own()
    nth, kin.count = kin.count, kin.count + 1
    came = family().Came(kin, x.key, nth, x.dots)
    value = got(level, x.x, [], lambda counts: came)
    kin.taken.append((x.key, here.address, nth))  # only now: whoever is listed here answers on the way back
    return value


def get(level: Level, f: Any) -> Callable[..., Any]:
    """`get` of a queue, `recv` of a connection."""

    def get_at_level(queue: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs:
            wait_for(level, getattr(queue, "_reader", queue))
        return arrived(level, f, queue, *args, **kwargs)

    return get_at_level


def wait_for(level: Level, *readers: Any) -> None:
    """Wait until something has arrived at one of them; what a child was refused is raised here meanwhile."""
    kin = _kin.last(level)
    if kin is None or not kin.children or level.parent is not PLAIN:
        return
    here = members().own()
    with wires().Listener(here.listeners) as listener:
        while True:
            family().check(kin)
            try:
                ready = listener.wait([*readers, *here.ends()], None)
            except (OSError, ValueError, TypeError):
                return  # the call itself says what is wrong
            if any(reader in ready for reader in readers):
                return
            if ready:
                here.take()


def poll(level: Level, f: Any) -> Callable[..., Any]:
    """`poll` of a connection, which may wait."""

    def poll_at_level(connection: Any, timeout: Any = 0.0) -> Any:
        if timeout is None:
            wait_for(level, connection)
        return further_out(level, f, connection, timeout)

    return poll_at_level


def wait_among(level: Level, f: Any) -> Callable[..., Any]:
    """`multiprocessing.connection.wait`."""

    def wait_at_level(object_list: Any, timeout: Any = None) -> Any:
        every = list(object_list)
        if timeout is None:
            wait_for(level, *every)
        return further_out(level, f, every, timeout)

    return wait_at_level


def acquire(level: Level, f: Any) -> Callable[..., Any]:
    """`acquire` of a semaphore between processes, by which events, conditions and barriers wait, too.

    Nothing tells when one is free, so the messages of children are looked at from time to time.
    """

    def acquire_at_level(block: bool = True, timeout: Any = None) -> Any:
        kin = _kin.last(level)
        if level.parent is not PLAIN or not block or timeout is not None or kin is None or not kin.children:
            return further_out(level, f, block, timeout)
        seconds = SHORTEST
        while not f(True, seconds):
            members().own().take()
            family().check(kin)
            seconds = min(2.0 * seconds, LONGEST)
        return True

    return acquire_at_level


def refuse_stranger(f: Any) -> NoReturn:
    """Refuse what belongs to a derivative that was begun after this process."""
    refuse(
        RoundTripError,
        f"a differentiated value arrives by `{f.__qualname__}` in a process that takes no part in its derivative",
        why="The process was started before that derivative was begun, or outside of it.",
        fix="start the process in the differentiated function, or send plaingrad.stop_gradient(x)",
        anchor="round-trip",
    )


def refuse_late(f: Any) -> NoReturn:
    """Refuse what a process has sent when the copy of it had been made that goes back."""
    refuse(
        RoundTripError,
        f"a differentiated value arrives by `{f.__qualname__}` that was sent when its process's function had ended, or "
        "when the process was being ended",
        why="What a process records is kept until then, and the way back would not know of it.",
        fix="send it before, or by a thread that is no daemon",
        anchor="round-trip",
    )


def post(level: Level, f: Any) -> Callable[..., Any]:
    """A message of a derivative that is taken at a level inside this one."""

    def post_at_level(to: Any, about: Any, values: Any) -> None:
        further_out(level, f, to, about, enveloped(level, f, values))

    return post_at_level


def receive(level: Level, f: Any) -> Callable[..., Any]:
    """The other side of it."""

    def receive_at_level(*args: Any) -> Any:
        return arrived(level, f, *args)

    return receive_at_level
