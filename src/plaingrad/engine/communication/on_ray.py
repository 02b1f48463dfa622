"""Ray in a differentiated function: remote functions and references; actors get no differentiated values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.critical import imported
from plaingrad.engine.communication.carried import is_future
from plaingrad.engine.communication.clusters import (
    arrived,
    begun_at,
    hides_future,
    key_of,
    recorded,
    refuse_future,
    refuse_named,
    with_values,
)
from plaingrad.engine.communication.other_processes import (
    carries_active,
    further_out,
    refuse_process,
    refuse_result,
)
from plaingrad.engine.refusals.refuse import missing_rule

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def remote(level: Level, method: Any) -> Callable[..., Any]:
    """`remote` of a function of Ray; it gets the values of references that are arguments themselves."""

    def remote_at_level(function: Any, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        get_one = level.prep(imported("ray").get)
        args = [with_values(level, x, get_one) if is_future(x) else x for x in args or ()]
        kwargs = {
            name: with_values(level, x, get_one) if is_future(x) else x for name, x in (kwargs or {}).items()
        }
        f = function._function
        if options.get("num_returns") not in (None, 1) or gives_many(f):
            refuse_process(level, method, f, args, kwargs)
        if is_in_event_loop() and any(carries_active(level, x) for x in (f, args, kwargs)):
            missing_rule(method, "In an event loop, where its result may be awaited, it is not followed.")
        return recorded(
            level,
            imported("ray"),
            method,
            f,
            tuple(args),
            kwargs,
            lambda: further_out(level, method, function, args, kwargs, **options),
        )

    return remote_at_level


def gives_many(f: Any) -> bool:
    """Whether a task gives its results one by one, by references that nobody here sees being made."""
    return inspect.isgeneratorfunction(f) or inspect.isasyncgenfunction(f)


def is_in_event_loop() -> bool:
    """Whether an event loop runs in this thread."""
    return imported("asyncio")._get_running_loop() is not None


def fetch(level: Level, method: Any) -> Callable[..., Any]:
    """`ray.get`."""

    def fetch_at_level(references: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            values = further_out(level, method, references, *args, **kwargs)
        except Exception as error:
            refuse_numbers_of(level, method, references, error)
            raise
        if is_future(references):
            return fetched(level, method, references, values)
        if not isinstance(references, list):
            return values
        return [fetched(level, method, one, value) for one, value in zip(references, values, strict=True)]

    return fetch_at_level


def refuse_numbers_of(level: Level, method: Any, references: Any, error: Any) -> None:
    """Refuse the exception of a differentiated task that holds numbers: nobody knows which task has raised it."""
    every = references if isinstance(references, list) else [references]
    tasks = begun_at(level).tasks
    if any(is_future(one) and key_of(one) in tasks for one in every):
        steps = imported("plaingrad.rules.processes.steps")
        cause = getattr(error, "cause", None)
        if isinstance(cause, BaseException) and steps.has_numbers(steps.held_by(cause)):
            refuse_result(level, method)


def as_future(level: Level, method: Any) -> Callable[..., Any]:
    """A future of `concurrent.futures` or asyncio for a reference: its result would be a constant."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if hides_future(level, [getattr(method, "__self__", None), *args]):
            refuse_named(method)
        return further_out(level, method, *args, **kwargs)

    return call


def fetched(level: Level, method: Any, reference: Any, value: Any) -> Any:
    """The value of a reference with its derivative."""
    data = begun_at(level).data.get(key_of(reference)) if is_future(reference) else None
    if data is not None:
        return data[1]
    return arrived(level, method, reference, value) if is_future(reference) else value


def store(level: Level, method: Any) -> Callable[..., Any]:
    """`ray.put`: who uses the reference gets the differentiated value itself."""

    def store_at_level(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not carries_active(level, x):
            return further_out(level, method, x, *args, **kwargs)
        if not isinstance(x, (float, complex, np.number, np.ndarray)):
            refuse_process(level, method, x)
        x = level.calls.inside(np.copy)(x) if isinstance(x, np.ndarray) else x
        reference = further_out(level, method, x, *args, **kwargs)
        begun_at(level).data[key_of(reference)] = reference, x
        return reference

    return store_at_level


def to_actor(level: Level, method: Any) -> Callable[..., Any]:
    """A call of an actor, which has a state: it gets no differentiated values."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args[1:], *kwargs.values())
        refuse_process(level, method, *given)
        if hides_future(level, given):
            refuse_future(method)
        return further_out(level, method, *args, **kwargs)

    return call


#: What to call instead, by module and qualified name.
FUNCTIONS: dict[tuple[str, str], Callable[[Any, Any], Callable[..., Any]]] = {
    ("ray.remote_function", "RemoteFunction._remote"): remote,
    ("ray.actor", "ActorClass._remote"): to_actor,
    ("ray.actor", "ActorMethod._remote"): to_actor,
    ("ray._raylet", "ObjectRef.future"): as_future,
    ("ray._raylet", "ObjectRef.as_future"): as_future,
    ("ray._private.worker", "get"): fetch,
    ("ray._private.worker", "put"): store,
}
