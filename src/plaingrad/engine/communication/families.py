"""Processes that a differentiated function starts, and what it sends them by queues and pipes.

A forked child goes on at the levels of the process that has started it: it has a copy of their tables and tapes, and
records on these. What crosses a queue or pipe goes in an envelope that says which message it is; both sides record an
exchange. When the child's function ends, or when it is needed, a copy of the child is forked that keeps the tapes
(`Keeper`): so the child itself ends as in a plain call. On the way back the keepers go back, too, and hand on to the
process that has started them the cotangents of what was there when they began.
"""

from __future__ import annotations

import contextvars
import os
import pickle
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from plaingrad.critical import exclusively, imported, shared_lock
from plaingrad.engine.communication.messages import given, got
from plaingrad.engine.communication.other_processes import (
    carries_active,
    further_out,
    refuse_process,
    to_process,
)
from plaingrad.engine.communication.per_derivative import PerDerivative
from plaingrad.engine.refusals.refuse import refuse, where
from plaingrad.engine.values.nesting import depth_of
from plaingrad.errors import PlaingradError, RoundTripError
from plaingrad.rewrite import PLAIN, in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

PATIENCE = 10.0  # seconds for a child to make its keeper before it is ended
SHORTEST, LONGEST = 0.01, 0.2  # seconds between looks at messages, where a semaphore is waited for

_lock = shared_lock()
_children: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # by process


def family() -> Any:
    """The module of what processes of a family send each other."""
    return imported("plaingrad.rules.processes.family")


def members() -> Any:
    """The module of the processes themselves."""
    return imported("plaingrad.rules.processes.members")


def wires() -> Any:
    """The module of connections."""
    return imported("plaingrad.rules.processes.wires")


def steps() -> Any:
    """The module of the steps for a process that is started."""
    return imported("plaingrad.engine.communication.forked")


def kin_of(level: Level) -> Any:
    """The processes of the derivative that `level` takes."""
    return exclusively(_lock, _kin.of, level)


_kin: PerDerivative[Any] = PerDerivative(lambda run, level: family().Kin(run, depth_of(level.parent)))


# -- starting processes ------------------------------------------------------------------------------------------------


def start_method(process: Any) -> str:
    """How a process is to be started."""
    found = type(process)._start_method
    if found is None:
        base = next(cls for cls in type(process).__mro__ if cls.__name__ == "BaseProcess")
        found = sys.modules[base.__module__.partition(".")[0]].get_start_method()
    return str(found)


def start_process(level: Level, start: Any) -> Callable[..., Any]:
    """`Process.start`: a forked child goes on at this level."""
    otherwise = to_process(level, start)

    def start_at_level(process: Any) -> None:
        if (
            start_method(process) != "fork"
            or not level.follows_processes
            or not getattr(level, "has_own_table", True)
        ):
            otherwise(process)
            return
        kin = kin_of(level)
        child = _children.get(process)
        if child is None or process.ident is not None:
            child = _children[process] = members().Child(process.name, where())
            process.run = run_in_child(level, child, process)
        first = child.firsts[kin.depth] = getattr(level, "new_index", int)()
        level.by_exchange([], [], steps().Forked(kin, child, first))
        kin.children.append(weakref.ref(child))
        try:
            further_out(level, start, process)
        finally:
            if vars(process).pop("run", None) is not None:
                members()._forking.is_of_family = False
                child.close_end()
                child.ran = process._popen
                child.is_lost = process.ident is None

    return start_at_level


def run_in_child(level: Level, child: Any, process: Any) -> Callable[[], Any]:
    """`run` of a process, at the level that has started it."""
    run = process.run

    def run_at_level() -> Any:
        del process.run
        members()._forking.is_of_family = False
        keeper = Keeper(level, child)
        try:
            return in_force(level, level.prep(run))
        except PlaingradError as refusal:
            keeper.tell(refusal)
            raise
        finally:
            keeper.keep()

    members()._forking.is_of_family = True
    return run_at_level


class Keeper:
    """In a child: a copy of it is made, once, which goes back over its tapes when it is asked to."""

    def __init__(self, level: Level, child: Any) -> None:
        self.levels: list[Any] = []  # by depth
        while level is not PLAIN:
            kin = kin_of(level)
            kin.clear()
            beyond = getattr(level, "new_index", int)()
            level.by_exchange([], [], steps().Begun(kin, child, child.firsts[kin.depth], beyond))
            self.levels.insert(0, level)
            level = level.parent  # type: ignore[assignment]
        self.kin = kin_of(self.levels[-1])
        self.here = members().become(child)
        self.wakes, self.wake = os.pipe()
        self.is_made = threading.Event()
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(in_force, self.levels[-1], self.watch), daemon=True
        ).start()

    def tell(self, refusal: BaseException) -> None:
        """Let the process that has started this one raise a refusal."""
        family().tell(self.kin, picklable(refusal), True)

    def keep(self) -> None:
        """Make the copy now, and wait for it."""
        os.write(self.wake, b"!")
        self.is_made.wait()

    def watch(self) -> None:
        """Wait until a copy is needed."""
        up = self.here.up
        while True:
            ready = ready_among([up.end, self.wakes])
            if self.wakes in ready:
                break
            try:
                message = pickle.loads(up.end.recv_bytes())
            except (EOFError, OSError):
                self.is_made.set()  # nobody can ask for a derivative any more
                return
            self.here.pass_on(message)
            if message[0] == self.here.address and message[1][0] in ("begin", "keep"):
                break
        self.make()
        self.here.send(self.here.address[:-1], ("kept", self.here.address))
        up.close()
        self.is_made.set()

    def make(self) -> None:
        """Fork the copy; nobody has to wait for it to end, for it is not a child of this process."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that threads are running
            pid = exclusively(self.here.lock, self.leave)
            if pid:
                os.waitpid(pid, 0)
                return
            if forked():
                os._exit(0)
        try:
            self.go_back()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)

    def leave(self) -> int:
        """Fork where no thread is about to take a message; only the copy takes those that follow."""
        pid = forked()
        if pid:
            self.here.leave_children()
        return pid

    def go_back(self) -> None:
        """Go back as often as asked; ends with the process when nobody can ask any more."""
        here = self.here
        here.is_kept = True
        here.begin_to_listen()
        here.up = wires().Wire(here.up.end)
        for child in here.near():
            child.wire = wires().Wire(child.wire.end)
        kept = sorted({0, 1, 2, *(end.fileno() for end in here.ends())})
        for low, high in zip([-1, *kept], [*kept, os.sysconf("SC_OPEN_MAX")], strict=True):
            if low + 1 < high:
                os.closerange(low + 1, high)
        while True:
            here.listen(self.begun, None)
            begun = self.begun()
            level = self.levels[begun[1]]
            kin = kin_of(level)
            try:
                kin.shadow = None
                del here.arrived[begun]
                family().begin(kin, begun[2])
                kin.shadow = here  # it is under way
                in_force(level.parent, level.pull_through)
            except (members().PassedOver, members().Overtaken):
                continue
            except BaseException as error:
                family().tell(kin, picklable(error), False)

    def begun(self) -> Any:
        """The message that the first way back of those that are asked for is to begin; None: there is none."""
        return min((about for about in list(self.here.arrived) if about[0] == "begin"), default=None)


def picklable(error: BaseException) -> BaseException:
    """An error as another process can raise it."""
    error.add_note(f"in a process that the differentiated function has started, {os.getpid()}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__qualname__}: {error}")
    return error


def forked() -> int:
    """os.fork(), after which the child is still of the family."""
    forking = members()._forking
    forking.is_of_family = True
    try:
        return os.fork()
    finally:
        forking.is_of_family = False


def end_process(level: Level, end: Any) -> Callable[..., Any]:
    """`terminate` and `kill`: the child's derivatives live on."""
    inside = level.calls.inside(end)

    def end_at_level(process: Any) -> Any:
        child = _children.get(process)
        if child is not None and not child.is_kept and not child.is_lost and process.is_alive():
            here = members().own()
            here.send(child.address, ("keep", child.address))
            about = ("kept", child.address)
            here.listen(lambda: about in here.arrived or child.is_lost, PATIENCE)
            child.is_kept = here.arrived.pop(about, False) is None
        return inside(process)

    return end_at_level


def join_process(level: Level, join: Any) -> Callable[..., Any]:
    """`join`: what the child was refused is raised here; its results may come in a way that nobody follows."""
    inside = level.calls.inside(join)

    def join_at_level(process: Any, *args: Any, **kwargs: Any) -> Any:
        result = inside(process, *args, **kwargs)
        if process in _children:
            members().own().take()
            family().check(kin_of(level))
        return result

    return join_at_level


# -- messages ----------------------------------------------------------------------------------------------------------


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
    return family().Envelope(kin.name, kin.depth, left.key, x, left.dots)


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


def ready_among(ends: list[Any]) -> list[Any]:
    """Those of the ends of pipes that have something to read; waits for one."""
    return imported("multiprocessing.connection").wait(ends)  # type: ignore[no-any-return]


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


_OF_MULTIPROCESSING = {
    ("process", "BaseProcess.start"): start_process,
    ("process", "BaseProcess.terminate"): end_process,
    ("process", "BaseProcess.kill"): end_process,
    ("process", "BaseProcess.join"): join_process,
    ("queues", "Queue.put"): put,
    ("queues", "JoinableQueue.put"): put,
    ("queues", "SimpleQueue.put"): put,
    ("queues", "Queue.get"): get,
    ("queues", "SimpleQueue.get"): get,
    ("connection", "_ConnectionBase.send"): put,
    ("connection", "_ConnectionBase.recv"): get,
    ("connection", "_ConnectionBase.poll"): poll,
    ("connection", "wait"): wait_among,
}
#: What to call instead, by module and qualified name.
FUNCTIONS: dict[tuple[str, str], Callable[[Any, Any], Callable[..., Any]]] = {
    ("plaingrad.rules.processes.family", "post"): post,
    ("plaingrad.rules.processes.family", "receive"): receive,
    ("_multiprocessing", "SemLock.acquire"): acquire,
    ("_multiprocess", "SemLock.acquire"): acquire,
    **{
        (f"{package}.{module}", name): make
        for package in ("multiprocessing", "multiprocess")
        for (module, name), make in _OF_MULTIPROCESSING.items()
    },
}
