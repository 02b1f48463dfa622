"""Derivatives of coroutine functions (`async def`): coroutine functions themselves.

A level belongs to one thread that runs from beginning to end. So the coroutine runs in an event loop of its own, in
another thread, and whoever awaits the derivative leaves its own loop free meanwhile.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import Any

from plaingrad.critical import imported
from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.errors import ArgumentError, MissingRuleError
from plaingrad.rewrite import CURRENT, PLAIN


def is_coroutine_function(f: Any) -> bool:
    """Whether `f(*args)` is a coroutine: an `async def`, a method, a partial application, or an object with such."""
    if type(f) is partial:
        return is_coroutine_function(f.func)
    if type(f) is MethodType:
        return is_coroutine_function(f.__func__)
    if type(f) is not FunctionType and not isinstance(f, type):
        f = lookup(type(f), "__call__")
    return type(f) is FunctionType and bool(f.__code__.co_flags & inspect.CO_COROUTINE)


def check_awaited(f: Any, name: str) -> None:
    """Refuse a coroutine function as the first argument of an operator that would take the coroutine for a value."""
    if name not in AWAITED and is_coroutine_function(f):
        raise ArgumentError(
            f"the first argument of {name} is a coroutine function (`async def`), which gives no number when called.\n"
            f"  To go on: {name} of a function that runs it: lambda x: asyncio.run(f(x)).\n"
            "  See docs: errors#argument"
        )


#: Operators whose results are awaited then, and what takes functions of any kind.
AWAITED = frozenset(
    "grad value_and_grad vjp jvp jacobian hessian hvp derivative tree_map why_not_native tiers_chosen checkpoint "
    "checkpointed checkpoint_sequence forwarddiff prefer_mode watch check_rule".split()
)


def run_to_the_end(f: Callable[..., Any]) -> Callable[..., Any]:
    """f(*args), awaited in an event loop of its own."""

    @wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        return imported("asyncio").run(f(*args, **kwargs))

    del run.__wrapped__  # which says that it is a coroutine function
    return run


def awaited(operator: Callable[..., Any], f: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The coroutine of operator(f, *args, **options), for operators that take the arguments of `f` at once."""
    return in_a_thread(operator, run_to_the_end(f), *args, **options)


def awaitable(
    operator: Callable[..., Any], f: Callable[..., Any], *options: Any, **named: Any
) -> Callable[..., Any]:
    """operator(f, *options, **named), for operators that return a function, as a coroutine function."""
    derived = operator(run_to_the_end(f), *options, **named)

    async def derivative(*args: Any, **kwargs: Any) -> Any:
        return await in_a_thread(derived, *args, **kwargs)

    derivative.__name__ = f"{operator.__name__}_of_{getattr(f, '__name__', 'coroutine')}"
    return derivative


async def in_a_thread(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs) in another thread; refused inside of another derivative, whose level stays in its thread."""
    if CURRENT.get() is not PLAIN:
        raise MissingRuleError(
            "a derivative of a coroutine function is taken inside of another derivative, which is not followed.\n"
            "  To go on: write the inner function without `async`.\n  See docs: errors#missing-rule"
        )
    return await imported("asyncio").to_thread(f, *args, **kwargs)
