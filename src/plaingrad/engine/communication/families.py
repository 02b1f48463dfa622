"""Processes that a differentiated function starts.

A forked child goes on at the levels of the process that has started it: it has a copy of their tables and tapes, and
records on these. One that spawn or a fork server starts begins levels of the same kinds; what it is started with
arrives like a message. What crosses a queue or pipe goes in an envelope (`envelopes`). When the child's function ends,
or when it is needed, a copy of the child is forked that keeps the tapes (`kept`): so the child itself ends as in a
plain call. On the way back the copies go back, too, and hand on to the process that has started them the cotangents of
what was there when they began.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plaingrad.critical import imported
from plaingrad.engine.communication.envelopes import (
    acquire,
    arrived,
    enveloped,
    get,
    poll,
    post,
    put,
    receive,
    wait_among,
)
from plaingrad.engine.communication.kept import Keeper, family, kin_of, members, run_kept, steps
from plaingrad.engine.communication.other_processes import carries_active, further_out, to_process
from plaingrad.engine.refusals.refuse import where
from plaingrad.engine.users_code import adopt
from plaingrad.engine.values.nesting import outwards
from plaingrad.errors import PlaingradError
from plaingrad.rewrite import PLAIN, in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

PATIENCE = 10.0  # seconds for a child to make its keeper before it is ended
_children: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # by process

# -- starting processes ------------------------------------------------------------------------------------------------


def package_of(process: Any) -> str:
    """The package that a process is of: multiprocessing, or one like it."""
    base = next(cls for cls in type(process).__mro__ if cls.__name__ == "BaseProcess")
    return str(base.__module__.partition(".")[0])


def start_method(process: Any) -> str:
    """How a process is to be started."""
    found = type(process)._start_method
    return str(sys.modules[package_of(process)].get_start_method() if found is None else found)


def follows(level: Level) -> bool:
    """Whether processes that are started at a level can take part in its derivative."""
    return level.follows_processes and getattr(level, "has_own_table", True)


def start_process(level: Level, start: Any) -> Callable[..., Any]:
    """`Process.start`: the child goes on at this level."""
    otherwise = to_process(level, start)

    def start_at_level(process: Any) -> None:
        method = start_method(process)
        if method == "fork" and follows(level):
            fork(level, start, process)
        elif method in ("spawn", "forkserver") and may_take_part(level, process):
            spawn(level, start, process)
        else:
            otherwise(process)

    return start_at_level


def fork(level: Level, start: Any, process: Any) -> None:
    """Start a process that has a copy of the levels."""
    child = _children.get(process)
    if child is None or process.ident is not None:
        child = _children[process] = members().Child(process.name, where())
        process.run = run_in_child(level, child, process)
    record_start(level, child, getattr(level, "new_index", int)())
    try:
        further_out(level, start, process)
    finally:
        if vars(process).pop("run", None) is not None:
            members()._forking.is_of_family = False
            child.has_begun(process)


def record_start(level: Level, child: Any, first: int) -> None:
    """Record that a child begins; what it shares with this process has an index below `first`."""
    kin = kin_of(level)
    child.firsts[kin.depth] = first
    level.by_exchange([], [], steps().Forked(kin, child, first))
    kin.children.append(weakref.ref(child))


def run_in_child(level: Level, child: Any, process: Any) -> Callable[[], Any]:
    """`run` of a process, at the level that has started it."""
    run = process.run

    def run_at_level() -> Any:
        del process.run
        members()._forking.is_of_family = False
        members().become(child)
        return run_kept(level, Keeper(level, child), run)

    members()._forking.is_of_family = True
    return run_at_level


# -- processes with nothing of this one -------------------------------------------------------------------------------


#: Levels that are made of nothing but their kind, and how many tangents they carry.
BEGUN_ANEW = frozenset(("ReverseLevel", "ForwardLevel"))


def may_take_part(level: Level, process: Any) -> bool:
    """Whether a process that spawn or a fork server is to start can begin levels like those here."""
    return (
        hasattr(os, "fork")
        and all(type(one).__qualname__ in BEGUN_ANEW and follows(one) for one in outwards(level))
        and not pickles_in_its_own_way(type(process))
    )


def pickles_in_its_own_way(cls: type) -> bool:
    """Whether a program's class of processes has a say in how it is pickled."""
    own = ("__getstate__", "__setstate__", "__reduce__", "__reduce_ex__")
    return any(name in vars(base) for base in cls.__mro__[:-1] for name in own)


def spawn(level: Level, start: Any, process: Any) -> None:
    """Start a process that gets what it is started with as a message."""
    child = _children[process] = members().Child(process.name, where())
    held = vars(process)
    state = {name: x for name, x in held.items() if carries_active(level, x)}
    around = reversed([*outwards(level)])
    kinds = [(type(one), getattr(one, "lead", ()), kin_of(one).name) for one in around]
    process.run = Spawned(process, child.address, child.end, kinds)
    try:
        held.update(dict.fromkeys(state))
        launch(level, family().launch)(start, process, child, state)
    finally:
        held.pop("run", None)
        held.update({name: x for name, x in state.items() if name in held})
        child.has_begun(process)


def launch(level: Level, f: Any) -> Callable[..., Any]:
    """Start a process with differentiated attributes."""

    def launch_at_level(start: Any, process: Any, child: Any, state: Any) -> None:
        record_start(level, child, 0)
        further_out(level, f, start, process, child, enveloped(level, f, state))

    return launch_at_level


class Spawned:
    """`run` of a process that is started with nothing of this one: it arrives there with the process.

    Attributes:
        process: the process, whose attributes are to have derivatives.
        address: its place in the family.
        end: its connection to the process that has started it.
        kinds: from the outside in, the kind of each level, how many tangents it carries, and its derivative's name.
        state: these attributes, in envelopes.
        ruled: the functions for which the program has rules.
    """

    def __init__(self, process: Any, address: Any, end: Any, kinds: Any) -> None:
        self.process, self.address, self.end, self.kinds = process, address, end, kinds
        self.ruled = imported("plaingrad.rules.processes.users_rules").names_with_rules()
        self.firsts: Any = defaultdict(int)
        self.state: Any = None

    def __reduce__(self) -> Any:
        # The file goes along in a way of the package that starts the process, which may not know others' connections.
        duplicate = imported(f"{package_of(self.process)}.reduction").DupFd
        rest = {"process": self.process, "state": self.state, "ruled": self.ruled}
        return spawned, (self.address, duplicate(self.end.fileno()), self.kinds), rest

    def __call__(self) -> Any:
        """Run the process there, at levels like those here."""
        process = self.process
        del process.run
        level: Any = PLAIN
        for kind, lead, name in self.kinds:
            level = kind(level, *lead)
            adopt.level_opened(level)
            kin_of(level).name = name
        keeper = Keeper(level, self)
        vars(process).update(in_force(level, arrived, level, family().opened, self))
        try:
            imported("plaingrad.rules.processes.users_rules").check_known(self.ruled)
        except PlaingradError as refusal:
            keeper.tell(refusal)
            keeper.keep()  # what was told is on its way
            raise
        return run_kept(level, keeper, process.run)


def spawned(address: Any, end: Any, kinds: Any) -> Spawned:
    """In a process that has just begun: it takes part from now on, so that envelopes may arrive."""
    self = Spawned(None, address, imported("multiprocessing.connection").Connection(end.detach()), kinds)
    members().become(self)
    self.end.close()
    return self


# -- the end of processes ----------------------------------------------------------------------------------------------


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
    ("plaingrad.rules.processes.family", "launch"): launch,
    ("plaingrad.rules.processes.family", "opened"): receive,
    ("_multiprocessing", "SemLock.acquire"): acquire,
    ("_multiprocess", "SemLock.acquire"): acquire,
    **{
        (f"{package}.{module}", name): make
        for package in ("multiprocessing", "multiprocess")
        for (module, name), make in _OF_MULTIPROCESSING.items()
    },
}
