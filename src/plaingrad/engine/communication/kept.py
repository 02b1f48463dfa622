"""What lives on of a process that a differentiated function has started: a copy of it that keeps its tapes.

When the process's function ends, or when its derivatives are needed, the copy is forked; it goes back over the tapes as
often as it is asked to.
"""

from __future__ import annotations

import contextvars
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plaingrad.critical import exclusively, imported, shared_lock
from plaingrad.engine.communication.per_derivative import PerDerivative
from plaingrad.engine.values.nesting import depth_of
from plaingrad.errors import PlaingradError
from plaingrad.rewrite import PLAIN, in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

_lock = shared_lock()


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


def ready_among(ends: list[Any]) -> list[Any]:
    """Those of the ends of pipes that have something to read; waits for one."""
    return imported("multiprocessing.connection").wait(ends)  # type: ignore[no-any-return]


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
        self.here = members().own()
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
        """Make the copy now, and wait for it; where threads go on that the process waits for, when they have ended."""
        if going_on():
            threading.Thread(target=self.keep_after).start()
        else:
            self.keep_now()

    def keep_after(self) -> None:
        """The process waits for this thread, too."""
        while others := going_on():
            others[0].join()
        self.keep_now()

    def keep_now(self) -> None:
        """Make the copy, and wait for it."""
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
        self.here.is_copied = True  # before: what is sent without having seen it is on the copy's tapes
        pid = forked()
        if pid:
            self.here.leave_children()
        return pid

    def go_back(self) -> None:
        """Go back as often as asked; ends with the process when nobody can ask any more."""
        here = self.here
        here.is_kept, here.is_copied = True, False
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


def going_on() -> list[threading.Thread]:
    """The threads that this process waits for when it ends, but for its main thread and this one."""
    own = (threading.main_thread(), threading.current_thread())
    return [thread for thread in threading.enumerate() if not thread.daemon and thread not in own]


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


def run_kept(level: Level, keeper: Keeper, run: Callable[[], Any]) -> Any:
    """Run the function of a process at its level, and keep what it has recorded."""
    try:
        return in_force(level, level.prep(run))
    except PlaingradError as refusal:
        keeper.tell(refusal)
        raise
    finally:
        keeper.keep()
