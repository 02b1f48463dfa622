"""Numba's dispatchers: the functions behind them, what they call, and which options matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import local
from types import FunctionType
from typing import Any

from numba.core.registry import cpu_target

from plaingrad import origin

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


def identity(f: Any) -> Any:
    """What two names of one function have in common."""
    f = python_function(f)
    return f.__code__, tuple([id(_content(cell)) for cell in f.__closure__ or ()])


def is_plain(f: Any) -> bool:
    """Whether `f` is somebody's Python function, not a library's."""
    if not isinstance(f, FunctionType) or is_operator(f):
        return False
    return not origin.is_of(f.__module__, LIBRARIES)


# modules whose functions take derivatives: calls of them are derived (`frontend/inner_operators.py`)
OPERATORS = ("plaingrad.api.gradients", "plaingrad.api.jacobians", "plaingrad.api.forward")


def is_operator(f: Any) -> bool:
    """Whether `f` is one of plaingrad's own operators, `grad` and the like."""
    return isinstance(f, FunctionType) and f.__module__ in OPERATORS


_in_force = local()


def with_bounds_checked(work: Callable[..., Any], *args: Any) -> Any:
    """work(*args), in which functions that the user has not compiled are derived with their indices checked."""
    before = bounds_are_checked()
    _in_force.bounds = True
    try:
        return work(*args)
    finally:
        _in_force.bounds = before


def bounds_are_checked() -> bool:
    """Whether this thread is in `with_bounds_checked`."""
    return getattr(_in_force, "bounds", False)


def options_of(f: Any) -> dict[str, Any]:
    """Of the options of a dispatcher, those that its numbers and exceptions depend on and that are not as usual."""
    given = getattr(f, "targetoptions", {})
    if "boundscheck" not in given:  # it is in those of every dispatcher that the user made
        given = {**given, "boundscheck": bounds_are_checked()}
    return {k: given[k] for k, usual in OPTIONS.items() if given.get(k) and given[k] != usual}


def is_parallel(f: Any) -> bool:
    """Whether a dispatcher was made with `parallel=True`."""
    return bool(getattr(f, "targetoptions", {}).get("parallel"))


def options_inside(options: dict[str, Any], f: Any) -> dict[str, Any]:
    """The options of `f` where a function with `options` calls it: Numba hands on what it was not told itself.

    Numba compiles `f` once, for the caller that comes first; derived functions are compiled for every such caller.
    """
    own = getattr(f, "targetoptions", {})
    return {**{k: value for k, value in options.items() if k not in own}, **options_of(f)}


def is_dispatcher(f: Any) -> bool:
    """Whether `f` was made by `numba.njit`."""
    return isinstance(getattr(f, "py_func", None), FunctionType) and hasattr(f, "targetoptions")


def made_by(held: Any) -> tuple[Any, Any, tuple[Any, ...]] | None:
    """(operator, function, options) of a derivative, as `grad(f)` returns it; None of anything else."""
    if not getattr(type(held), "__plaingrad_derivative__", False):
        return None
    return getattr(held, "_made_by", None)


def overloads_of(f: Any) -> list[Any]:
    """The templates of `numba.extending.overload` for a user's function: what compiled code runs in its place."""
    if not is_plain(f):
        return []
    cpu_target.typing_context.refresh()
    t = cpu_target.typing_context._lookup_global(f)
    return [x for x in getattr(t, "templates", ()) if hasattr(x, "_overload_func")]
