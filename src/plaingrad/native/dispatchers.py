"""Numba's dispatchers: the functions behind them, what they call, and plain functions made dispatchers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CellType, FunctionType
from typing import Any

from numba.core.registry import CPUDispatcher

LIBRARIES = ("numpy", "numba", "math", "scipy", "plaingrad.native", "plaingrad.rules")
# options of a dispatcher that its numbers and exceptions depend on, as they usually are
OPTIONS = {"fastmath": False, "error_model": "python", "boundscheck": None}


def reached_from(f: Any) -> list[Any]:
    """The dispatchers that a Python function calls by a global or captured name, and those that they call."""
    found: list[Any] = []
    todo = [f]
    while todo:
        g = todo.pop()
        named = [g.__globals__.get(name) for code in _codes(g.__code__) for name in code.co_names]
        named += [_content(c) for c in g.__closure__ or ()]
        for other in named:
            if is_dispatcher(other) and not any(other is known for known in found):
                found.append(other)
                todo.append(other.py_func)
    return found


def python_function(f: Any) -> Callable[..., Any]:
    """The Python function behind a Numba dispatcher, or `f` itself."""
    return getattr(f, "py_func", f)


def with_compiled_callees(f: FunctionType) -> FunctionType:
    """`f` with the plain Python functions that it calls by a global or captured name made dispatchers."""
    return python_function(dispatcher_of(f))  # type: ignore[return-value]


_dispatchers: dict[FunctionType, Any] = {}


def dispatcher_of(f: FunctionType) -> Any:
    """The dispatcher of a plain Python function, with those that it calls compiled along; itself too."""
    found = _dispatchers.get(f)
    if found is not None:
        return found
    space = f.__globals__
    names = {name for code in _codes(f.__code__) for name in code.co_names if is_plain(space.get(name))}
    cells = [c for c in f.__closure__ or () if is_plain(_content(c))]
    new = f
    if names or cells:
        closure = tuple([CellType() if any(c is d for d in cells) else c for c in f.__closure__ or ()])
        new = FunctionType(f.__code__, dict(space), f.__name__, f.__defaults__, closure or None)
        new.__kwdefaults__ = f.__kwdefaults__
        new.__module__, new.__qualname__ = f.__module__, f.__qualname__
    if len(_dispatchers) > 4096:
        _dispatchers.clear()
    found = _dispatchers[f] = _dispatchers[new] = _jitted(new)  # before its callees, which may call it
    for name in names:
        new.__globals__[name] = dispatcher_of(space[name])
    for old, cell in zip(f.__closure__ or (), new.__closure__ or (), strict=True):
        if old is not cell:
            cell.cell_contents = dispatcher_of(old.cell_contents)
    return found


def _jitted(f: FunctionType) -> Any:
    """numba.njit(f), with NUMBA_DISABLE_JIT too: the types of what it returns are asked for, then CPython runs it."""
    return CPUDispatcher(py_func=f, targetoptions={"nopython": True})


def _codes(code: Any) -> Iterator[Any]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, type(code)):
            yield from _codes(inner)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_plain(f: Any) -> bool:
    """Whether `f` is somebody's Python function, not a library's."""
    if not isinstance(f, FunctionType):
        return False
    return not str(f.__module__).startswith(LIBRARIES)


def options_of(f: Any) -> dict[str, Any]:
    """Of the options of a dispatcher, those that its numbers and exceptions depend on and that are not as usual."""
    given = getattr(f, "targetoptions", {})
    return {k: given[k] for k, usual in OPTIONS.items() if given.get(k) and given[k] != usual}


def options_inside(options: dict[str, Any], f: Any) -> dict[str, Any]:
    """The options of `f` where a function with `options` calls it: Numba hands on what it was not told itself.

    Numba compiles `f` once, for the caller that comes first; derived functions are compiled for every such caller.
    """
    own = getattr(f, "targetoptions", {})
    return {**{k: value for k, value in options.items() if k not in own}, **options_of(f)}


def is_dispatcher(f: Any) -> bool:
    """Whether `f` was made by `numba.njit`."""
    return isinstance(getattr(f, "py_func", None), FunctionType) and hasattr(f, "targetoptions")
