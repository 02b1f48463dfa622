"""What a task reads beside its arguments: globals, attributes of modules and classes, context variables.

A forked worker has a copy of these. They are found by the names, and texts that may be names, in the program's code;
what libraries read is not theirs to change.
"""

from __future__ import annotations

import contextvars
import functools
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from plaingrad import origin
from plaingrad.engine.communication.carried import is_of_engine, reached
from plaingrad.engine.users_code.class_attributes import lookup

MOST = 1000  # functions and classes that are looked at for a task


def functions_in(f: Any) -> Iterator[FunctionType]:
    """The Python functions behind a callable."""
    while type(f) is functools.partial:
        f = f.func
    f = getattr(f, "__func__", f)
    if type(f) is not FunctionType and not isinstance(f, type):
        f = lookup(type(f), "__call__")
    if type(f) is FunctionType:
        yield f


def readers_in(x: Any) -> Iterator[Any]:
    """The program's functions and classes that are pickled with `x`."""
    for part, _ in reached(x):
        t = type(part)
        if t is FunctionType:
            if not is_of_engine(part.__module__):
                yield part
        elif isinstance(part, type):
            if is_of_program(part.__module__):
                yield part
        elif is_of_program(t.__module__):
            yield t


def globals_read(readers: list[Any]) -> Iterator[tuple[str, str, Any]]:
    """The name of a function, a name of what it may read, and what that is, for these functions and all they call."""
    todo: list[Any] = [*readers]
    seen: dict[int, Any] = {}
    home = {str(f.__module__).partition(".")[0] for f in readers}
    while todo and len(seen) < MOST:
        f = todo.pop()
        if id(f) in seen:
            continue
        seen[id(f)] = f
        for name, x in of_class(f) if isinstance(f, type) else read_by(f, home):
            reader = getattr(f, "__qualname__", repr(f))
            kind = type(x)
            if kind is MethodType or kind in (classmethod, staticmethod):
                x = x.__func__
            elif kind is functools._lru_cache_wrapper:
                x = x.__wrapped__
            if isinstance(x, property):
                todo += [g for g in (x.fget, x.fset) if is_followed(g, home)]
            elif type(x) is FunctionType:
                yield from ((reader, f"{name}.{own}", y) for own, y in vars(x).items())
                if is_followed(x, home):
                    todo.append(x)
            elif isinstance(x, type):
                if is_followed(x, home):
                    todo.append(x)
            elif isinstance(x, contextvars.ContextVar):
                yield reader, name, x.get(None)
            else:
                yield reader, name, x
                todo += [
                    g
                    for g in (kind, *(functions_in(x) if kind is functools.partial else ()))
                    if is_followed(g, home)
                ]


def is_followed(x: Any, home: set[str]) -> bool:
    """Whether a function or class is of the program: of a package of `home`, or of no installed one."""
    module = getattr(x, "__module__", None)
    return type(module) is str and (module.partition(".")[0] in home or is_of_program(module))


@functools.lru_cache(1000)
def is_of_program(module: str) -> bool:
    """Whether a module is of no library."""
    if is_of_engine(module) or origin.package_of(module) in ("plaingrad", "numpy"):
        return False
    return not origin.is_of_package(module)


def of_class(cls: type) -> Iterator[tuple[str, Any]]:
    """The attributes of a class of the program and of its bases."""
    for base in cls.__mro__:
        if is_of_program(base.__module__) or base is cls:
            yield from ((f"{base.__qualname__}.{name}", x) for name, x in list(vars(base).items()))


def read_by(f: FunctionType, home: set[str]) -> Iterator[tuple[str, Any]]:
    """What a function may read by names of its own."""
    space = f.__globals__
    names = names_in(f.__code__)
    modules: dict[str, ModuleType] = {}
    for name in names:
        x = space.get(name)
        if x is None:
            x = sys.modules.get(name)
        if type(x) is ModuleType:
            modules[name] = x
        elif x is not None:
            yield name, x
    for name, module in modules.items():
        if is_of_program(module.__name__) or module.__name__.partition(".")[0] in home:
            found = vars(module)
            yield from ((f"{name}.{own}", found[own]) for own in names if found.get(own) is not None)


@functools.lru_cache(10_000)
def names_in(code: CodeType) -> tuple[str, ...]:
    """Names in code and in what is defined inside, and texts that may be names."""
    found = list(code.co_names)
    for x in code.co_consts:
        if isinstance(x, CodeType):
            found += names_in(x)
        elif type(x) is str and x.isidentifier():
            found.append(x)
    return tuple(dict.fromkeys(found))
