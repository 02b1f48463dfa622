"""The two steps of a task in another process, forwards and back, and what a worker runs for their derivatives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.define import mover
from plaingrad.errors import CheckpointError, MissingRuleError, PlaingradError
from plaingrad.rulebook import Rule
from plaingrad.rules import derivatives
from plaingrad.rules.processes.lines import Gone, line_to
from plaingrad.rules.processes.transfer import Parts, has_tangent, put_together
from plaingrad.rules.processes.users_rules import check_known, names_with_rules
from plaingrad.rules.processes.workers import Workers
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero

NEAR = 1e-6  # how far sums of a result may be off, of their size, when its task runs again


class Task:
    """One task at one level.

    Attributes:
        f: what the worker calls, for messages.
        workers: where it is run again.
        where: the user's line that has begun it.
        pickled: the task, without its leaves.
        leaves: its numbers and arrays, until they are recorded.
        strange: why there may be others that are not among the leaves.
        others: the leaves; arrays are copies.
        places: which leaves depend on the inputs.
        kept: these, as they were when the task began.
        token: the number that stands for the result until it arrives.
        sums: what is to be the same when it runs again.
        running: the derivative of it that is being computed.
        lock: held by who takes the result in.
        is_joined: the result has arrived at this level.
        failed: the class of the exception that it has raised; empty: none.
        value: that result.
        key: what its tape is called, where a worker records it.
        kept_at: the address of that worker, once the result has arrived; None: it is not recorded.
        hold: keeps the workers from ending.
    """

    __slots__ = (
        "__weakref__",
        "f",
        "failed",
        "hold",
        "is_joined",
        "kept",
        "kept_at",
        "key",
        "leaves",
        "lock",
        "others",
        "pickled",
        "places",
        "running",
        "strange",
        "sums",
        "token",
        "value",
        "where",
        "workers",
    )

    def __init__(self) -> None:
        self.places: list[int] = []
        self.running: Any = None
        self.lock = threading.Lock()
        self.is_joined = False
        self.failed = ""
        self.sums: Any = None
        self.key = b""
        self.kept_at: list[str] | None = None
        self.hold: Any = None


def task_of(workers: Workers, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], where: str) -> Task:
    """The task f(*args, **kwargs), begun at `where`."""
    parts = Parts((f, args, kwargs), by_value=workers.by_value)
    task = Task()
    task.f, task.workers, task.where = f, workers, where
    task.pickled, task.leaves, task.strange = parts.pickled, parts.leaves, parts.strange
    task.others = [x.copy() if isinstance(x, np.ndarray) else x for x in parts.leaves]
    return task


def is_active(x: Any) -> bool:
    """Whether `x` depends on the inputs at this level."""
    return False


def copied(x: Any) -> Any:
    """A number or array like x that is another object."""
    return np.array(x) if isinstance(x, np.ndarray) else x * 1.0


class Step:
    """A step that pools take part in: their code, in Python, may run rewritten, so its rule runs one level out always.

    The engine does that for objects that are called, and for functions only where a level is further out.
    """

    def __init__(self, name: str, primal: Callable[..., Any]) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = __name__
        self.primal = primal

    def __call__(self, *args: Any) -> Any:
        """The value alone."""
        return self.primal(*args)


#: forked(task, xs): the arguments xs of a task leave for a worker; a number that stands for its result.
forked = Step("forked", lambda task, xs: new_token())


def forked_rrule(task: Task, xs: list[Any]) -> Any:
    """xs_bar is what a worker has made of the cotangent of the result."""
    task.kept = [copied(x) for x in xs]

    def forked_pullback(token_bar: Any) -> tuple[Any, ...]:
        return NoTangent, ended(task)

    return new_token(), forked_pullback


def forked_frule(task: Task, xs: list[Any]) -> Any:
    """A worker begins to push the tangents forward, along one direction or along a chunk of them."""
    task.kept = [copied(x) for x in xs]

    def forked_pushforward(dots: Any) -> Any:
        x_dots = dots[1]
        if is_zero(x_dots):
            return ZeroTangent
        lead = lead_of(task.kept, x_dots)
        begin(task, pushed_forward, [None if is_zero(dot) else dot for dot in x_dots], lead)
        return np.ones(lead) if lead else 1.0

    return new_token(), forked_pushforward


#: joined(task, token, ys): the numbers and arrays of the result, with their derivatives.
joined = Step("joined", lambda task, token, ys: [copied(y) for y in ys])


def joined_rrule(task: Task, token: float, ys: list[Any]) -> Any:
    """A worker begins to pull the cotangents back."""
    task.sums = sums_of(ys, task.failed)

    def joined_pullback(y_bars: Any) -> tuple[Any, ...]:
        begin(task, pulled_back, [None if is_zero(bar) else bar for bar in y_bars], ())
        return NoTangent, 1.0, ZeroTangent

    return [copied(y) for y in ys], joined_pullback


def joined_frule(task: Task, token: float, ys: list[Any]) -> Any:
    """The tangents arrive that `forked` has sent for."""
    sums = sums_of(ys, task.failed)

    def joined_pushforward(dots: Any) -> Any:
        if is_zero(dots[1]):
            return ZeroTangent
        y_dots, again = ended(task)
        check_alike(sums, again)
        return y_dots

    return [copied(y) for y in ys], joined_pushforward


def lead_of(xs: list[Any], dots: list[Any]) -> tuple[int, ...]:
    """The leading axis of tangents of which there are several."""
    for x, dot in zip(xs, dots, strict=True):
        if not is_zero(dot):
            return np.shape(dot)[: np.ndim(dot) - np.ndim(x)]
    return ()


def begin(task: Task, derivative: Callable[..., Any], moved: list[Any], lead: tuple[int, ...]) -> None:
    """Let a worker compute a derivative of the task."""
    task.running = asked(task, moved) if derivative is pulled_back else None
    if task.running is None:
        begin_again(task, derivative, moved, lead)


def begin_again(task: Task, derivative: Callable[..., Any], moved: list[Any], lead: tuple[int, ...]) -> None:
    """Let a worker run the task again, with a derivative."""
    call = (task.pickled, rest_of(task), task.places, task.kept, moved, lead, task.sums, names_with_rules())
    task.running = task.workers.begin(derivative, call, derivative is pushed_forward)


def ended(task: Task) -> Any:
    """What the derivative that was begun last has given: one whose way back was broken off is nobody's."""
    running, task.running = task.running, None
    if type(running) is not Asked:
        return task.workers.wait(running, task)
    try:
        return task.workers.wait(running, task)
    except Gone:
        begin_again(task, pulled_back, running.bars, ())
        return ended(task)


class Asked:
    """A question to the worker that has kept the tape of a task."""

    __slots__ = ("answer", "bars", "line")

    def __init__(self, line: Any, key: bytes, bars: list[Any]) -> None:
        self.line, self.bars = line, bars
        self.answer = line.ask(key, bars)

    def result(self, most: float | None) -> Any:
        """What it has answered."""
        return self.answer.result(most)


def asked(task: Task, bars: list[Any]) -> Any:
    """Ask the worker that has kept the tape; None: there is none, or somebody differentiates this way back."""
    if not task.kept_at or not derivatives.is_outside():
        return None
    try:
        return Asked(line_to(task.kept_at[0]), task.key, bars)
    except OSError:  # it has ended
        return None


def new_token() -> float:
    """A number that nobody else holds."""
    return float("0.5")


def rest_of(task: Task) -> list[Any]:
    """The leaves of a task that do not depend on the inputs, with gaps where the others belong."""
    gaps = set(task.places)
    return [None if n in gaps else x for n, x in enumerate(task.others)]


def sums_of(ys: list[Any], failed: str) -> list[Any]:
    """Which exception was raised, and for each number or array of a result its shape and the sum of its absolute values."""
    return [(failed, 0.0), *((np.shape(y), float(np.sum(np.abs(np.nan_to_num(y))))) for y in ys)]


# -- what follows the program -----------------------------------------------------------------------------------------


def begun(task: Task) -> None:
    """Record that a task leaves; runs at the level."""
    leaves = task.leaves
    task.places = [n for n, x in enumerate(leaves) if is_active(x)]
    task.token = forked(task, [leaves[n] for n in task.places])
    task.leaves = None


def arrived(entries: list[Any], value: Any) -> Any:
    """The result of a task, or of a list of tasks with the counts of their results, with its derivative at this level.

    There is an entry for each level at which one of these tasks is differentiated.
    """
    for entry in entries:
        if isinstance(entry, Task):
            if is_active(entry.token):
                return taken_in(entry, value)
        elif any(task is not None and is_active(task.token) for task, _ in entry):
            whole = []
            first = 0
            for task, count in entry:
                some = value[first : first + count]
                whole += some if task is None else taken_in(task, some)
                first += count
            return whole
    return value


def raised(tasks: list[Any], error: BaseException) -> None:
    """Give the exception of a task its derivative at this level: the numbers among its arguments and attributes."""
    held = held_by(error)
    if not has_numbers(held):
        return
    for task in tasks:
        if isinstance(task, Task) and is_active(task.token):
            task.failed = type(error).__qualname__
            hold(error, *taken_in(task, held))


def held_by(error: BaseException) -> tuple[Any, dict[str, Any]]:
    """The arguments and attributes of an exception."""
    return error.args, {name: x for name, x in vars(error).items() if name != "__notes__"}


def hold(error: BaseException, args: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    """Give an exception such arguments and attributes."""
    error.args = args
    vars(error).update(attributes)


def has_numbers(held: Any) -> bool:
    """Whether there is a number or array that may have a tangent, or what may hide one."""
    parts = Parts(held)
    return bool(parts.strange or parts.numbers())


def taken_in(task: Task, value: Any) -> Any:
    """The result of a task with its derivative, which it gets when it is asked for first."""
    with task.lock:
        if not task.is_joined:
            pickled, leaves, places = taken_apart(task, value)
            if places:
                ys = joined(task, task.token, [leaves[n] for n in places])
                value = with_leaves(pickled, leaves, places, ys)
            task.value = value
            task.is_joined = True
        return task.value


def taken_apart(task: Task, value: Any) -> tuple[bytes, list[Any], list[int]]:
    """A result as it is pickled, its leaves, and which of these may have a tangent."""
    parts = Parts(value, is_result=not task.failed)
    if parts.strange:
        refuse_result(task, parts.strange)
    return parts.pickled, parts.leaves, parts.numbers()


def refuse_result(task: Task, strange: str) -> None:
    """Refuse a result that may hold numbers which nobody can find."""
    raise MissingRuleError(
        f"the result of `{getattr(task.f, '__qualname__', task.f)}`, begun {task.where}, which another process has "
        f"computed from differentiated numbers, holds {strange}.\n"
        "  Derivatives come back with floats, complex numbers and arrays of these only, in lists, tuples, dictionaries "
        "and plain objects.\n"
        "  To go on: return such, or give the task plaingrad.stop_gradient(x).\n  See docs: errors#missing-rule"
    )


def with_leaves(pickled: bytes, leaves: list[Any], places: list[int], xs: list[Any]) -> Any:
    """The object whose parts these are, with `xs` for the leaves at `places`."""
    every = list(leaves)
    for n, x in zip(places, xs, strict=True):
        every[n] = x
    return put_together(pickled, every)


def mapped(f: Callable[..., Any], stars: bool, items: list[Any]) -> list[Any]:
    """A parcel of a map."""
    return [f(*x) if stars else f(x) for x in items]


# -- what a worker runs ------------------------------------------------------------------------------------------------


def as_function(pickled: bytes, rest: list[Any], places: list[int], failed: list[Any], values: list[Any]) -> Callable[[list[Any]], list[Any]]:
    """The task as a function from the leaves at `places` to the numbers and arrays of its result.

    The result itself goes into `values`. If it raises an exception, that goes into `failed`, and its numbers are those
    of the result.
    """

    def run(xs: list[Any]) -> list[Any]:
        f, args, kwargs = with_leaves(pickled, rest, places, xs)
        try:
            value = f(*args, **kwargs)
        except PlaingradError:
            raise
        except Exception as error:
            failed.append(error)
            value = held_by(error)
        values.append(value)
        return numbers_of(value)

    return run


def name_of_failed(failed: list[Any]) -> str:
    """The class of the exception that a task has raised; empty: none."""
    return type(failed[0]).__qualname__ if failed else ""


def numbers_of(value: Any) -> list[Any]:
    """The numbers and arrays in a result, in the order in which they are pickled."""
    return [x for x in Parts(value).leaves if has_tangent(x)]


def pulled_back(
    pickled: bytes, rest: Any, places: Any, xs: list[Any], y_bars: list[Any], lead: tuple[int, ...], sums: Any, ruled: Any
) -> list[Any]:
    """The cotangents of xs; `ruled` has rules where the task was begun."""
    failed: list[Any] = []
    ys, pullback = derivatives.OPERATORS["vjp"](as_function(pickled, rest, places, failed, []), xs)
    check_known(ruled)
    if failed and not sums[0][0]:
        raise failed[0]
    check_alike(sums, sums_of(ys, name_of_failed(failed)))
    return pullback([y * 0.0 if bar is None else bar for y, bar in zip(ys, y_bars, strict=True)])[0]


def pushed_forward(
    pickled: bytes, rest: Any, places: Any, xs: list[Any], x_dots: list[Any], lead: tuple[int, ...], sums: Any, ruled: Any
) -> tuple[list[Any], Any]:
    """The tangents of the result, with a leading axis those of a chunk; and what says whether the result is the same."""
    failed: list[Any] = []
    f = as_function(pickled, rest, places, failed, [])
    jvp = derivatives.OPERATORS["jvp"]
    ys: Any = []
    each = []
    for k in range(lead[0] if lead else 1):
        dots = [tangent_of(x, dot, k, lead) for x, dot in zip(xs, x_dots, strict=True)]
        ys, y_dots = jvp(f, (xs,), (dots,))
        each.append(y_dots)
    check_known(ruled)
    return [stacked([y_dots[n] for y_dots in each]) if lead else y_dot for n, y_dot in enumerate(each[0])], sums_of(ys, name_of_failed(failed))


def tangent_of(x: Any, dot: Any, k: int, lead: tuple[int, ...]) -> Any:
    """A tangent of x, the k-th of a chunk."""
    if dot is None:
        return x * 0.0
    return one_of(x, dot[k]) if lead else dot


def stacked(dots: list[Any]) -> Any:
    """Tangents as a chunk."""
    return np.stack(dots)


def one_of(x: Any, dot: Any) -> Any:
    """One tangent out of a chunk; that of a Python number is one."""
    return dot if isinstance(x, (np.ndarray, np.generic)) else dot.item()


def check_alike(first: Any, again: Any) -> None:
    """Refuse a task that has computed something else when it ran again."""
    if first is None:
        return
    alike = len(first) == len(again) and all(
        a[0] == b[0] and np.isclose(a[1], b[1], rtol=NEAR, atol=0.0, equal_nan=True) for a, b in zip(first, again, strict=True)
    )
    if not alike:
        raise CheckpointError(
            "a task of another process was run again in the reverse pass, and its result is another one.\n"
            "  The derivative of the second run is not that of the first. It depends on something that has changed "
            "since, or on random numbers.\n"
            "  To go on: pass what it depends on as arguments (a seed, say).\n  See docs: errors#checkpoint"
        )


mover(taken_apart, with_leaves, numbers_of, rest_of, sums_of, new_token, check_alike, refuse_result)
mover(hold, has_numbers, held_by, asked)
rulebook.add(Rule(is_active, "asks", source="plaingrad/rules/processes/steps.py:1"))
rulebook.add(Rule(forked, "full", forked_rrule, frule=forked_frule, chunked_frule=forked_frule))
rulebook.add(Rule(joined, "full", joined_rrule, frule=joined_frule, chunked_frule=joined_frule))
