"""What a task reads beside its arguments: globals, attributes of modules and classes, context variables.

A forked worker has a copy of these. They are found by the names, and texts that may be names, in the program's code;
what libraries read is not theirs to change.
"""

from __future__ import annotations

import functools
import operator
import sys
import weakref
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from types import CodeType, FunctionType, ModuleType
from typing import Any

from plaingrad import origin
from plaingrad.class_keys import all_among, is_among
from plaingrad.engine.communication.carried import (
    ATOMS,
    ENGINES,
    is_machinery,
    is_of_engine,
    kept_by,
    reached,
    shown_by,
)
from plaingrad.engine.users_code.class_attributes import lookup

MOST = 10_000  # functions and classes that are looked at for a task
#: Whose objects hold tasks and threads, beside those of the machinery itself.
CONCURRENT = ENGINES | {"pathos", "mpi4py", "plaingrad"}


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


def meets(readers: list[Any], functions: list[Any]) -> Any:
    """The first of some functions that these, or what they call, may read; None: none."""
    ids = {id(f) for f in functions}
    walked: dict[int, Any] = {id(f): f for f in readers}
    for _ in globals_read(readers, walked):
        pass
    return next((walked[n] for n in walked if n in ids), None)


def globals_read(readers: list[Any], walked: dict[int, Any] | None = None) -> Iterator[tuple[str, str, Any]]:
    """The name of a function, a name of what it may read, and what that is, for these functions and all they call.

    All that was looked at goes into `walked`.
    """
    home = {origin.package_of(f.__module__) for f in readers if not is_of_engine(f.__module__)}
    home -= {"plaingrad", "numpy", ""}
    todo: list[Any] = [*readers]
    seen: dict[int, Any] = {}
    walked = {} if walked is None else walked
    while todo and len(seen) < MOST:
        f = todo.pop()
        if id(f) in seen:
            continue
        seen[id(f)] = f
        reader = getattr(f, "__qualname__", repr(f))
        for name, x in of_class(f) if isinstance(f, type) else read_by(f, home):
            for part, is_data in held_by(x, walked):
                if is_data:
                    yield reader, name, part
                todo += [g for g in code_of(part) if is_followed(g, home)]


def held_by(x: Any, walked: dict[int, Any]) -> Iterator[tuple[Any, bool]]:
    """All that can be had from `x`, and whether it has to be looked at for data; `walked` is left out.

    What is in containers and plain objects is found by who looks at these.
    """
    todo = [(x, True)]
    while todo:
        x, is_data = todo.pop()
        if id(x) in walked:
            continue
        t = type(x)
        if is_among(t, ATOMS):
            if is_data:
                yield x, True
            continue
        walked[id(x)] = x
        kept = kept_by(x) if t is not ContextVar and not issubclass(t, weakref.ref) else [seen_through(x)]
        yield x, is_data and kept is None
        if kept is not None:
            todo += [(part, True) for part in kept]
        elif not (
            is_machinery(t)
            or origin.package_of(t.__module__) in CONCURRENT
            or ((t is list or t is tuple) and all_among(x, ATOMS))
        ):
            todo += [(part, False) for part in shown_by(x)]
            if isinstance(x, (set, frozenset)):
                todo += [(part, False) for part in x]


def seen_through(x: Any) -> Any:
    """What a context variable or a weak reference stands for."""
    return x.get(None) if type(x) is ContextVar else x()


def code_of(x: Any) -> list[Any]:
    """The function or class whose code may run where `x` is used."""
    if type(x) is FunctionType:
        return [x]
    return [x, type(x)] if isinstance(x, type) else [type(x)]


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
    """What a function may read by names, in its own module and in those that it names."""
    space = f.__globals__
    names = names_in(f.__code__)
    getters = [space[name] for name in names if type(space.get(name)) in GETTERS]
    if getters:
        names += tuple(
            name for get in getters for text in get.__reduce__()[1] for name in names_in_text(str(text))
        )
    any_global = any(name in OF_OWN_MODULE for name in names)
    any_attribute = any_global or any(name in OF_ANY_MODULE for name in names)
    modules: list[Any] = []
    for name in dict.fromkeys([*names, *(space if any_global else ())]):
        x = space.get(name)
        if x is None:
            x = sys.modules.get(name)
        if type(x) is ModuleType:
            modules.append(x)
        elif x is not None:
            yield name, x
    seen = set()
    while modules:
        module = modules.pop()
        package = module.__name__.partition(".")[0]
        if module in seen or not (is_of_program(module.__name__) or package in home):
            continue
        seen.add(module)
        found = vars(module)
        for own in dict.fromkeys([*names, *(found if any_attribute else ())]):
            x = found.get(own)
            if type(x) is ModuleType:
                modules.append(x)
            elif x is not None:
                yield f"{module.__name__}.{own}", x


#: By these code reads globals whose names it computes, and by those attributes of modules.
OF_OWN_MODULE = frozenset(("globals", "eval", "exec", "__globals__", "__name__"))
OF_ANY_MODULE = frozenset(("vars", "getattr", "__dict__", "__getattribute__"))
GETTERS = (operator.attrgetter, operator.methodcaller)


@functools.lru_cache(10_000)
def names_in(code: CodeType) -> tuple[str, ...]:
    """Names in code and in what is defined inside, and texts that may be names."""
    return tuple(dict.fromkeys([*code.co_names, *names_in_constants(code.co_consts)]))


def names_in_constants(constants: Iterable[Any]) -> Iterator[str]:
    """The names in constants of code."""
    for x in constants:
        if isinstance(x, CodeType):
            yield from names_in(x)
        elif type(x) is str:
            yield from names_in_text(x)
        elif type(x) in (tuple, frozenset):
            yield from names_in_constants(x)


def names_in_text(text: str) -> list[str]:
    """The names in a text that is a name, or several with dots between them."""
    parts = text.split(".")
    return [text, *parts] if all(part.isidentifier() for part in parts) else []
