"""Tasks, futures, threads, signals and selectors: C code that hands references on, waits, or calls back later."""

from __future__ import annotations

import _signal
import _thread
import atexit
import select
import sys
import types
from collections.abc import AsyncIterator, Iterator
from typing import Any

from plaingrad.define import mover, movers, no_tangent
from plaingrad.rulebook import Rule
from plaingrad.rules.python.containers import enter_methods


def functions_of(module: types.ModuleType) -> list[Any]:
    """The C functions of a module."""
    return [f for f in vars(module).values() if isinstance(f, types.BuiltinFunctionType)]


def awaited_types() -> Iterator[type]:
    """The types of what `await` steps, which have no public names."""

    async def numbers() -> AsyncIterator[float]:
        yield 0.0

    async def nothing() -> None:
        pass

    stepped = numbers()
    for awaitable in (stepped.__anext__(), stepped.athrow(GeneratorExit), stepped.aclose(), anext(stepped, None)):
        yield type(awaitable)
        if hasattr(awaitable, "close"):
            awaitable.close()
    coroutine = nothing()
    yield type(coroutine.__await__())
    coroutine.close()


def rules_of_asyncio() -> Iterator[Rule]:
    """Futures keep results, exceptions and callbacks; a task steps its coroutine in a copy of the context.

    `_asyncio` must be imported by asyncio: imported first, CPython 3.11 makes two of it, which do not know each other.
    """
    import asyncio

    if "_asyncio" in sys.modules:
        yield from movers(*functions_of(sys.modules["_asyncio"]), asyncio.Future, asyncio.Task)
        for cls in (asyncio.Future, asyncio.Task):
            yield from movers(*[f for name, f in vars(cls).items() if callable(f) and name not in ("__repr__", "__class_getitem__")])


enter_methods(*dict.fromkeys(awaited_types()))
mover(sys.set_asyncgen_hooks, sys.get_asyncgen_hooks)

# What is registered to be called later is kept as it is: programs ask for it back and compare it.
mover(*functions_of(_signal), *functions_of(atexit), *functions_of(_thread))

# Waiting: how long is nobody's derivative.
no_tangent(*functions_of(select))
no_tangent(*[_f for _name, _cls in vars(select).items() if isinstance(_cls, type) and not issubclass(_cls, BaseException)
             for _f in vars(_cls).values() if isinstance(_f, types.MethodDescriptorType)])
