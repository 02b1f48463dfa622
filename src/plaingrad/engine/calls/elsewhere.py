"""Code that runs outside the frames of a level: threads, pools, event loops, other processes, callbacks held by C code.

A level is found through the context. What another thread runs is handed over bound to the level and keeps the
context of its thread, as in plain Python. What C code keeps to call later stays the object it was, since programs
ask for it back and compare it: its code is swapped for the rewritten code, which finds the level by itself.
"""

from __future__ import annotations

import contextvars
import functools
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from plaingrad.class_keys import is_among
from plaingrad.engine.communication import collectives, families, messages, on_dask, on_ray, other_processes
from plaingrad.engine.communication.bound_to_level import at_level, task_at_level
from plaingrad.engine.refusals.refuse import missing_rule, name_of
from plaingrad.engine.users_code import adopt, earlier_frames
from plaingrad.engine.values import text_into_c
from plaingrad.errors import PlaingradError
from plaingrad.rewrite import in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

Maker = Callable[["Level", Any], Callable[..., Any]]


def callback(level: Level, caller: Any, f: Any) -> Callable[..., Any]:
    """`f` for a C function `caller` that has no rule: rewritten, and refused when it returns an active value."""
    instead = level.prep(f)

    def called_back(*args: Any, **kwargs: Any) -> Any:
        try:
            result = instead(*args, **kwargs)
            if level.calls.finds_active(result):
                missing_rule(caller, f"It calls `{name_of(f)}`, which returns a differentiated value to it.")
            if level.texts:
                text_into_c.check_returned(level, f, result)
        except PlaingradError as refusal:
            _keep_refusal(level, refusal)  # the C code may only print it
            raise
        return result

    return called_back


# -- threads ------------------------------------------------------------------------------------------------------


def _start_thread(level: Level, start: Any) -> Callable[..., Any]:
    """A thread begins at the level that starts it."""

    def start_thread(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return start(task_at_level(level, function), *args, **kwargs)

    return start_thread


def _end_thread(level: Level, report: Any) -> Callable[..., Any]:
    """An error that ends a thread is only printed: a refusal is raised where the level ends, too."""

    def report_error(thread: Any) -> None:
        _keep_refusal(level, sys.exc_info()[1])
        level.calls.inside(report)(thread)

    return report_error


def _keep_refusal(level: Level, error: Any) -> None:
    if isinstance(error, PlaingradError) and level.refusal is None:
        level.refusal = error


def _submit(level: Level, submit: Any) -> Callable[..., Any]:
    """Work for a pool of threads."""

    def submit_at_level(executor: Any, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        if any(cls.__name__ == "InterpreterPoolExecutor" for cls in type(executor).__mro__):
            return other_processes.refused(level, submit)(executor, f, *args, **kwargs)
        return submit(executor, task_at_level(level, f), *args, **kwargs)

    return submit_at_level


def _make_pool(level: Level, make: Any) -> Callable[..., Any]:
    """A pool of threads, or its `__init__`: each thread begins with the initializer."""
    place = 2 if isinstance(make, type) else 3

    def make_pool(*args: Any, **kwargs: Any) -> Any:
        if len(args) > place and args[place] is not None:
            args = (*args[:place], at_level(level, args[place]), *args[place + 1 :])
        elif kwargs.get("initializer") is not None:
            kwargs["initializer"] = at_level(level, kwargs["initializer"])
        return make(*args, **kwargs)

    return make_pool


def _add_done_callback(level: Level, add: Any) -> Callable[..., Any]:
    """A callback of a pool's future runs in whichever thread finishes it; its errors are only logged."""

    def add_done_callback(future: Any, f: Any) -> None:
        run = at_level(level, f)

        def done(future: Any) -> None:
            try:
                run(future)
            except PlaingradError as refusal:
                _keep_refusal(level, refusal)
                raise

        add(future, done)

    return add_done_callback


# -- contexts and event loops ---------------------------------------------------------------------------------------


def _context_run(level: Level, run: Any) -> Callable[..., Any]:
    """context.run(f): the context is the user's, the level is the caller's."""

    def run_at_level(context: contextvars.Context, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(f, "__self__", None)
        if type(f) is not MethodType and hasattr(type(owner), "get_coro"):  # a step of a task, in C
            _check_coroutine(level, owner.get_coro(), args)
            return run(context, in_force, level, f, *args)
        return run(context, at_level(level, f), *args, **kwargs)

    return run_at_level


def _check_coroutine(level: Level, coroutine: Any, futures: tuple[Any, ...]) -> None:
    """Refuse a step of a coroutine from outside the level that can see active values, or is about to receive one."""
    while earlier_frames.is_generator(type(coroutine)):
        if earlier_frames.is_foreign(coroutine):
            earlier_frames.check(level, coroutine)
            for future in futures:
                if future.done() and not future.cancelled() and future.exception() is None:
                    if level.calls.finds_active(future.result()):
                        missing_rule(
                            coroutine,
                            "It began outside the differentiated call and awaits a differentiated value.",
                        )
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)


def _make_task(level: Level, cls: Any) -> Callable[..., Any]:
    """Task(coroutine): one that began outside the level may not see active values."""

    def make_task(*args: Any, **kwargs: Any) -> Any:
        for coroutine in (*args[:1], *kwargs.values()):
            _check_coroutine(level, coroutine, ())
        return cls(*args, **kwargs)

    return make_task


def _handle_error(level: Level, handle: Any) -> Callable[..., Any]:
    """An error in a callback of an event loop is only logged: a refusal among them ends the loop instead."""

    def handle_error(loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, PlaingradError):
            _keep_refusal(level, error)
            loop.stop()
        level.calls.inside(handle)(loop, context)

    return handle_error


def _register(level: Level, register: Any) -> Callable[..., Any]:
    """A C function that keeps callbacks for later."""

    def register_callbacks(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()):
            adopt_callback(x)
        return register(*args, **kwargs)

    return register_callbacks


def _register_in_python(level: Level, register: Any) -> Callable[..., Any]:
    return _register(level, level.calls.inside(register))


def _refer(level: Level, refer: Any) -> Callable[..., Any]:
    """A weak reference, whose callback runs when its object dies."""

    def refer_to(x: Any, *callbacks: Any) -> Any:
        for f in callbacks:
            adopt_callback(f)
        return refer(x, *callbacks)

    return refer_to


def adopt_callback(f: Any) -> None:
    """Make `f`, which stays the object it is, run rewritten until the last open level closes."""
    while type(f) is functools.partial or type(f) is MethodType:
        f = f.func if type(f) is functools.partial else f.__func__
    if type(f) is FunctionType:
        adopt.adopt_function(f)
    else:
        adopt.adopt(type(f))


def adopt_callbacks(values: Iterable[Any]) -> None:
    """Make the functions among `values` run rewritten until the last open level closes."""
    for x in values:
        if is_among(type(x), adopt.PYTHON_CALLABLES):
            adopt_callback(x)
        elif isinstance(x, type):
            adopt.adopt(x)


#: What to call instead, by module and qualified name: naming the functions themselves would import their modules.
FUNCTIONS: dict[tuple[str, str], Maker] = {
    ("_thread", "start_new_thread"): _start_thread,
    ("_thread", "start_new"): _start_thread,
    ("_thread", "start_joinable_thread"): _start_thread,
    ("threading", "_make_invoke_excepthook.<locals>.invoke_excepthook"): _end_thread,
    ("concurrent.futures.thread", "ThreadPoolExecutor"): _make_pool,
    ("concurrent.futures.thread", "ThreadPoolExecutor.__init__"): _make_pool,
    ("concurrent.futures.thread", "ThreadPoolExecutor.submit"): _submit,
    ("concurrent.futures._base", "Future.add_done_callback"): _add_done_callback,
    ("_contextvars", "Context.run"): _context_run,
    ("_asyncio", "Task"): _make_task,
    ("_asyncio", "Future.add_done_callback"): _register,
    ("_asyncio", "Task.add_done_callback"): _register,
    ("asyncio.base_events", "BaseEventLoop.call_soon_threadsafe"): _register_in_python,
    ("asyncio.base_events", "BaseEventLoop.call_exception_handler"): _handle_error,
    ("_signal", "signal"): _register,
    ("atexit", "register"): _register,
    ("weakref", "ReferenceType"): _refer,
    ("_weakref", "proxy"): _refer,
    **other_processes.FUNCTIONS,
    **families.FUNCTIONS,
    **on_dask.FUNCTIONS,
    **on_ray.FUNCTIONS,
    **messages.FUNCTIONS,
    **collectives.FUNCTIONS,
}
MODULES = frozenset(module for module, _ in FUNCTIONS)
#: Methods of C code that programs meet bound to their object, and which their table takes so.
BOUND = frozenset(("SemLock.acquire", "ObjectRef.future", "ObjectRef.as_future"))


#: Functions of mpmath branch on whether a number is whole: what is then computed depends on it no more.
BRANCHING = "mpmath.functions."


def _of_numbers(level: Level, f: FunctionType) -> Callable[..., Any]:
    """A function of mpmath that has no rule; its first argument is the context."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(level.is_active, (*args[1:], *kwargs.values()))):
            missing_rule(f, "It is computed in another way where a number is whole.")
        return level.native(f, args, kwargs)

    return call


def special(f: Any, level: Level) -> Callable[..., Any] | None:
    """What to call instead of `f` if it hands work to code outside the level, else None."""
    module = getattr(f, "__module__", None) or getattr(getattr(f, "__objclass__", None), "__module__", None)
    if module is None and getattr(f, "__qualname__", "") in BOUND:
        module = getattr(type(getattr(f, "__self__", None)), "__module__", None)
    if type(module) is not str:
        return None
    make = FUNCTIONS.get((module, getattr(f, "__qualname__", "")))
    if (
        make is None and type(f) is FunctionType and "__wrapped__" in vars(f)
    ):  # it has the name of another function
        make = FUNCTIONS.get((str(f.__globals__.get("__name__")), f.__code__.co_qualname))
    if make is None and module.startswith(BRANCHING) and type(f) is FunctionType:
        return _of_numbers(level, f)
    return None if make is None else make(level, f)
