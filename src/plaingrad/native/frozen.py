"""Globals as a dispatcher has compiled them: Numba takes the values of its first call for good.

Which these were is read from the typed IR that a dispatcher keeps. There is none in machine code that was loaded from
Numba's own cache; there the first value shows a difference.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir

from plaingrad.native.outside import MISSING, content_of, global_names, is_same


def frozen(dispatcher: Any, signature: tuple[Any, ...]) -> dict[str, Any]:
    """Of the globals and captured variables in the form compiled for `signature`, those that have changed since."""
    compiled = dispatcher.overloads.get(signature)
    return {} if compiled is None else changed(dispatcher.py_func, compiled)


def changed(f: Any, compiled: Any) -> dict[str, Any]:
    """Name -> what `f` was compiled with, where that is not what it stands for now."""
    now = {name: f.__globals__.get(name, MISSING) for name in global_names(f.__code__)}
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        now[name] = content_of(cell)
    found: dict[str, list[Any]] = {}
    for block in getattr(compiled.type_annotation, "blocks", {}).values():
        for s in block.body:
            value = getattr(s, "value", None)
            if isinstance(value, (ir.Global, ir.FreeVar)) and value.name in now:
                found.setdefault(value.name, []).append(value.value)
    return {
        name: values[0]
        for name, values in found.items()
        if not any(x is now[name] or is_same(x, now[name]) for x in values)
        and now[name] is not MISSING
        or now[name] is MISSING
        and not is_builtin(f, name)
    }


def is_builtin(f: Any, name: str) -> bool:
    """Whether a name that is no global is one of Python's."""
    space = f.__globals__.get("__builtins__", {})
    return name in (space if isinstance(space, dict) else vars(space))


__all__ = ["changed", "frozen"]
