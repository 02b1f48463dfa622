"""Work for other processes: a task with differentiated values becomes two steps (see `rules.processes`); what goes by
pipes, queues and arguments of a process is refused if it is differentiated.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.critical import imported
from plaingrad.engine.communication.bound_to_level import Stepped, at_level, task_at_level
from plaingrad.engine.communication.carried import carried
from plaingrad.engine.communication.globals_read import functions_in, globals_read, meets, readers_in
from plaingrad.engine.communication.results_in_turn import Arrival, results_in_turn
from plaingrad.engine.memory.kinds import holds_nothing
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.memory.tape import Tree
from plaingrad.engine.refusals.refuse import missing_rule, refuse, where
from plaingrad.engine.values import text_into_c, texts
from plaingrad.errors import PlaingradError, RoundTripError
from plaingrad.rewrite import PLAIN, in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

#: The tasks behind a future (or a result of a pool), one for each level at which they are differentiated.
_tasks: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()


def refuse_process(level: Level, f: Any, *values: Any) -> None:
    """Refuse values on their way to another process if one of them is active: they go there as bytes."""
    if any(carries_active(level, x) for x in values):
        refuse(
            RoundTripError,
            f"a differentiated value is handed to another process by `{f.__qualname__}`",
            why="It goes there as bytes, and what comes back has lost its derivative.",
            fix="use threads, a pool's submit, map, starmap or apply, or pass plaingrad.stop_gradient(x)",
            anchor="round-trip",
        )
    refuse_text(level, f, values)


def refuse_text(level: Level, f: Any, values: tuple[Any, ...]) -> None:
    """Refuse text that carries a differentiated number, on its way to another process."""
    if level.texts:
        number = texts.first_number(level, values)
        if number is not None:
            text_into_c.refuse_text(level, f, number)


def carries_active(level: Level, x: Any) -> bool:
    """Whether something that is pickled with `x` is active, at this level or further out."""
    return any(map(level.calls.finds_active, carried(x)))


def further_out(level: Level, f: Any, *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs) at the next level out, where it may be recorded, too."""
    parent = level.parent
    return in_force(parent, f if parent is PLAIN else parent.prep(f), *args, **kwargs)


# -- tasks ----------------------------------------------------------------------------------------------------------


def begin_task(
    level: Level, pool: Any, method: Any, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The task f(*args, **kwargs) for a worker of `pool`, recorded at this level.

    None if nothing in it is active there; False if it cannot be pickled, which whoever asks for its result is told.
    """
    refuse_text(level, method, (f, args, kwargs))
    found: set[int] = set()
    for x in (*carried(f), *carried(args), *carried(kwargs)):
        found |= active_in(level.slot_of(x))
    if not found:
        return None
    if not level.follows_processes:
        missing_rule(method, "Taylor coefficients do not pass through work for other processes.")
    steps = imported("plaingrad.rules.processes.steps")
    holds_nothing(steps.Task)  # its arguments are the business of the two steps
    workers = imported("plaingrad.rules.processes.workers").workers_of(pool)
    if workers.by_value:
        refuse_rules(method, f, args, kwargs)
    try:
        task = steps.task_of(workers, f, args, kwargs, where())
    except Exception:
        return False
    taken: set[int] = set()
    for x in task.leaves:
        taken |= active_in(level.slot_of(x))
    if not taken and workers.by_value and not workers.is_cluster:
        return None  # joblib's parcels know the whole of the work, but do not send it
    if task.strange or not (found <= taken or (workers.by_value and not workers.is_cluster)):
        refuse_strange(method, task)
    level.calls.inside(steps.begun)(task)
    return task


def refuse_globals(level: Level, method: Any, f: Any, *given: Any) -> None:
    """Refuse a function that reads a differentiated global: its copy in the other process has no derivative.

    It may be the task's, or among what the task is given.
    """
    for reader, name, x in globals_read([*functions_in(f), *readers_in((f, given))]):
        if level.calls.finds_active(x):
            refuse(
                RoundTripError,
                f"a task for another process, `{method.__qualname__}` of `{reader}`, reads the global "
                f"`{name}`, which holds a differentiated value",
                why="The other process has a copy of it, which has lost its derivative.",
                fix="pass it as an argument of the task",
                anchor="round-trip",
            )


def refuse_rules(method: Any, f: Any, *given: Any) -> None:
    """Refuse a task that reaches a function of the script with a rule: its copy in the other process has none."""
    rules = imported("plaingrad.rules.processes.users_rules")
    ruled = [g for g in rules.functions_with_rules() if rules.goes_by_value(g)]
    found = meets([*functions_in(f), *readers_in((f, given))], ruled) if ruled else None
    if found is not None:
        missing_rule(
            method,
            f"Its task reaches `{found.__qualname__}`, for which the program has a rule; it goes to the other process "
            "by value, without the rule. Put both into a module that is imported there.",
        )


def active_in(slot: Any) -> set[int]:
    """The identities of the numbers at `slot`, and of what owns the memory of the arrays there."""
    if slot is None:
        return set()
    if type(slot) is Tree:
        return set().union(*map(active_in, slot.slots.values()))
    return {id(owner_of(slot.x)) if isinstance(slot.x, np.ndarray) else id(slot.x)}


def refuse_strange(method: Any, task: Any) -> None:
    """Refuse a task whose arguments hold differentiated numbers in a form that cannot be followed."""
    refuse(
        RoundTripError,
        f"a differentiated value is handed to another process by `{method.__qualname__}`",
        why=f"Among what goes there is {task.strange or 'an object that its class pickles in its own way'}, "
        "in which its derivative would be lost.",
        fix="pass floats, complex numbers and arrays, in lists, tuples, dictionaries and plain objects",
        anchor="round-trip",
    )


def submit_to_process(level: Level, submit: Any) -> Callable[..., Any]:
    """Work for a pool of processes."""

    def submit_task(executor: Any, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        refuse_initializer(level, submit, executor)
        refuse_globals(level, submit, f, args, kwargs)
        task = None
        if any(carries_active(level, x) for x in (f, args, kwargs)):
            task = begin_task(level, executor, submit, f, args, kwargs)
        else:
            refuse_text(level, submit, (f, args, kwargs))
        future = begin(level, submit, executor, task, f, args, kwargs)
        file_tasks(future, task)
        return future

    return submit_task


def begin(level: Level, submit: Any, executor: Any, task: Any, f: Any, args: Any, kwargs: Any) -> Any:
    """The future of a task; where this level is the only one around, a worker may record it at once."""
    if level.parent is not PLAIN or not level.keeps_tasks:
        return further_out(level, submit, executor, f, *args, **kwargs)
    if is_held(executor):
        raise RuntimeError("cannot schedule new futures after shutdown")
    if task and task.workers.most_bytes:
        f, args = imported("plaingrad.rules.processes.tapes").recording(task)
        kwargs = {}
    return further_out(level, submit, executor, f, *args, **kwargs)


def is_held(executor: Any) -> bool:
    """Whether the program has shut an executor down whose workers still keep tapes."""
    workers = imported("plaingrad.rules.processes.workers")._of_pools.get(executor)
    return workers is not None and workers.is_held


def shut_down(level: Level, shutdown: Any) -> Callable[..., Any]:
    """`ProcessPoolExecutor.shutdown`: workers that keep tapes end with the derivative."""

    def shut_down_at_level(executor: Any, wait: bool = True, *, cancel_futures: bool = False) -> Any:
        if level.parent is PLAIN and level.keeps_tasks:
            workers = imported("plaingrad.rules.processes.workers")._of_pools.get(executor)
            if workers is not None and wait and not cancel_futures and workers.keep_open():
                return None
        return further_out(level, shutdown, executor, wait, cancel_futures=cancel_futures)

    return shut_down_at_level


def refuse_initializer(level: Level, submit: Any, executor: Any) -> None:
    """Refuse what a pool's processes begin with, if it holds or reads differentiated values."""
    initializer = getattr(executor, "_initializer", None)
    refuse_process(level, submit, initializer, getattr(executor, "_initargs", None))
    refuse_globals(level, submit, initializer)


def refused(level: Level, submit: Any) -> Callable[..., Any]:
    """Work for a pool of interpreters, which gets no differentiated values."""

    def submit_task(executor: Any, /, *args: Any, **kwargs: Any) -> Any:
        refuse_initializer(level, submit, executor)
        refuse_process(level, submit, *args, *kwargs.values())
        return submit(executor, *args, **kwargs)

    return submit_task


def result_of(level: Level, result: Any) -> Callable[..., Any]:
    """What a task has returned: `Future.result`, and `get` of the results of a pool of multiprocessing."""
    inside = level.calls.inside(result)

    def result_at_level(future: Any, *args: Any, **kwargs: Any) -> Any:
        entries = _tasks.get(future)
        if entries is None:
            return inside(future, *args, **kwargs)
        try:
            value = further_out(level, result, future, *args, **kwargs)
        except Exception as error:
            if error is getattr(future, "_exception", getattr(future, "_value", None)):
                take_in_error(level, result, entries, error)
            raise
        if False in entries:
            refuse_result(level, result)
        value = level.calls.inside(imported("plaingrad.rules.processes.steps").arrived)(entries, value)
        if hasattr(future, "_result"):
            future._result = value
        else:
            future._value = value
        return value

    return result_at_level


def exception_of(level: Level, exception: Any) -> Callable[..., Any]:
    """The exception of a task: `Future.exception`."""
    inside = level.calls.inside(exception)

    def exception_at_level(future: Any, *args: Any, **kwargs: Any) -> Any:
        entries = _tasks.get(future)
        if entries is None:
            return inside(future, *args, **kwargs)
        error = further_out(level, exception, future, *args, **kwargs)
        if error is not None:
            take_in_error(level, exception, entries, error)
        return error

    return exception_at_level


def take_in_error(level: Level, method: Any, entries: list[Any], error: BaseException) -> None:
    """Give the exception that a task has raised its derivative; which task of several is not known."""
    if isinstance(error, PlaingradError):
        return
    steps = imported("plaingrad.rules.processes.steps")
    tasks = [
        task
        for entry in entries
        for task in ([entry] if type(entry) is not list else [task for task, _ in entry])
    ]
    tasks = [task for task in tasks if task is not None]
    if len(tasks) > 1 and type(entries[-1]) is list or False in tasks:
        if steps.has_numbers(steps.held_by(error)):
            refuse_result(level, method)
        return
    texts.remember_text(level, [x for x in error.args if type(x) is str])
    level.calls.inside(steps.raised)(tasks, error)


def refuse_result(level: Level, method: Any) -> None:
    """Refuse the result of a task that could not be pickled here, although it was elsewhere."""
    refuse(
        RoundTripError,
        f"`{method.__qualname__}` gives what another process has made of differentiated values",
        why="The task could not be taken apart by pickle, so its derivative cannot be followed.",
        fix="pass functions of modules, and objects that pickle can take",
        anchor="round-trip",
    )


def file_tasks(result: Any, entry: Any) -> None:
    """Let whoever asks for `result` at this level find its tasks."""
    if entry is not None:
        _tasks.setdefault(result, []).append(entry)


def to_process(level: Level, f: Any) -> Callable[..., Any]:
    """What starts a process, or sends something to one."""

    def send(*args: Any, **kwargs: Any) -> Any:
        target = getattr(args[0], "_target", None) if args else None
        refuse_process(level, f, target, *args, *kwargs.values())
        refuse_globals(level, f, target)
        return level.calls.inside(f)(*args, **kwargs)

    return send


def make_pool(level: Level, make: Any) -> Callable[..., Any]:
    """`Pool`, or its `__init__`: the threads that hand its work to other processes are not the program's."""

    def make_at_level(*args: Any, **kwargs: Any) -> Any:
        if args and any(cls.__name__ == "ThreadPool" for cls in type(args[0]).__mro__):
            return level.calls.inside(make)(*args, **kwargs)
        refuse_process(level, make, *args, *kwargs.values())
        refuse_globals(level, make, None, *args, *kwargs.values())
        return further_out(level, make, *args, **kwargs)

    return make_at_level


def pool_work(level: Level, method: Any) -> Callable[..., Any]:
    """Work for a `multiprocessing` pool, of threads or of processes; what it iterates over is walked by its threads."""
    names = method.__code__.co_varnames[2 : method.__code__.co_argcount]
    is_map = method.__name__ == "_map_async"

    def work(pool: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        call = {**dict(zip(names, args, strict=False)), **kwargs}
        threads = any(cls.__name__ == "ThreadPool" for cls in type(pool).__mro__)
        if not threads:
            refuse_globals(level, method, f, *[call.get(name) for name in ("args", "kwds", "iterable")])
        if not threads and method.__name__.startswith("imap"):
            return results_in_turn(level, pool, method, f, call)
        if not threads and (is_map or method.__name__ == "apply_async"):
            if is_map:
                call["iterable"] = list(level.iterable(call["iterable"]))
            if any(carries_active(level, x) for x in (f, *call.values())):
                return work_for_processes(level, method, pool, f, call)

        def look(x: Any) -> None:
            if not threads:
                refuse_process(level, method, x)

        for x in (f, call.get("args"), call.get("kwds")):
            look(x)
        if "iterable" in call:
            items = Stepped(level, call["iterable"], look)
            call["iterable"] = list(items) if is_map else items
        for name in ("callback", "error_callback"):
            if call.get(name) is not None:
                call[name] = at_level(level, call[name])
        return level.calls.inside(method)(pool, task_at_level(level, f) if threads else f, **call)

    return work


def work_for_processes(level: Level, method: Any, pool: Any, f: Any, call: dict[str, Any]) -> Any:
    """Differentiated work for a pool of processes: one task, or for a map as many as it makes parcels."""
    entry: Any
    if method.__name__ == "apply_async":
        args, kwargs = tuple(call.get("args", ())), dict(call.get("kwds") or {})
        entry = begin_task(level, pool, method, f, args, kwargs)
    else:
        items, size = call["iterable"], call.get("chunksize")
        if not size:
            size = -(-len(items) // (4 * pool._processes))  # as the pool does
        mapped = imported("plaingrad.rules.processes.steps").mapped
        stars = call["mapper"].__name__ == "starmapstar"
        entry = []
        for first in range(0, len(items), size):
            some = items[first : first + size]
            task = begin_task(level, pool, method, mapped, (f, stars, some), {})
            if task is False:
                entry = False
                break
            entry.append((task, len(some)))
        if entry and all(task is None for task, _ in entry):
            entry = None
    if call.get("callback") is not None:
        call["callback"] = taking_in(level, entry, call["callback"])
    if call.get("error_callback") is not None:
        failed = call["error_callback"]
        call["error_callback"] = taking_in_error(level, method, entry, failed)
    result = further_out(level, method, pool, f, **call)
    file_tasks(result, entry)
    return result


def taking_in(level: Level, entry: Any, callback: Any) -> Callable[[Any], None]:
    """A callback for a result that it gets with its derivative."""
    if type(callback) is Arrival:
        return callback  # type: ignore[no-any-return]
    run = at_level(level, callback)

    def called(value: Any) -> None:
        if entry is not None:
            steps = imported("plaingrad.rules.processes.steps")
            value = in_force(level, level.calls.inside(steps.arrived), [entry], value)
        run(value)

    return called


def taking_in_error(level: Level, method: Any, entry: Any, callback: Any) -> Callable[[Any], None]:
    """A callback for an exception that it gets with its derivative."""
    if type(callback) is Arrival:
        return callback  # type: ignore[no-any-return]
    run = at_level(level, callback)

    def called(error: Any) -> None:
        if entry is not None:
            in_force(level, take_in_error, level, method, [entry], error)
        run(error)

    return called


#: What to call instead, by the name in multiprocessing; multiprocess, which pathos uses, has the same names.
_OF_MULTIPROCESSING = {
    ("pool", "ApplyResult.get"): result_of,
    ("pool", "Pool"): make_pool,
    ("pool", "Pool.__init__"): make_pool,
    ("pool", "Pool.apply_async"): pool_work,
    ("pool", "Pool._map_async"): pool_work,
    ("pool", "Pool.imap"): pool_work,
    ("pool", "Pool.imap_unordered"): pool_work,
    ("reduction", "ForkingPickler.dumps"): to_process,
}
#: The same by module and qualified name: naming the functions themselves would import their modules.
FUNCTIONS: dict[tuple[str, str], Callable[[Any, Any], Callable[..., Any]]] = {
    ("concurrent.futures.process", "ProcessPoolExecutor.submit"): submit_to_process,
    ("loky.process_executor", "ProcessPoolExecutor.submit"): submit_to_process,
    ("joblib.externals.loky.process_executor", "ProcessPoolExecutor.submit"): submit_to_process,
    ("concurrent.futures.process", "ProcessPoolExecutor.shutdown"): shut_down,
    ("concurrent.futures._base", "Future.result"): result_of,
    ("concurrent.futures._base", "Future.exception"): exception_of,
    **{
        (f"{package}.{module}", name): make
        for package in ("multiprocessing", "multiprocess")
        for (module, name), make in _OF_MULTIPROCESSING.items()
    },
}
