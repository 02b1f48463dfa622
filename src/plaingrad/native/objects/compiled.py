"""Functions that the user compiled, followed as the Python functions that they are of, and compiled in the same way."""

from __future__ import annotations

from typing import Any

import numba

from plaingrad.copying import deep_copy
from plaingrad.errors import NativeError
from plaingrad.native.border.conversion import signature_of
from plaingrad.native.frontend.meaning import are_close, is_jitable
from plaingrad.native.frontend.outside import changed
from plaingrad.native.objects.engine import Frame
from plaingrad.native.program import dispatchers
from plaingrad.native.program.dispatchers import overloads_of
from plaingrad.rewrite import PLAIN, in_force


def options_of(dispatcher: Any) -> dict[str, Any]:
    """The options of a dispatcher that its numbers depend on; none of None."""
    return {} if dispatcher is None else dispatchers.options_of(dispatcher)


def like(dispatcher: Any, f: Any) -> Any:
    """A function that was made, compiled with the options of a dispatcher."""
    options = options_of(dispatcher)
    return numba.njit(**options)(f) if options else f


def refuse_other(f: Frame, dispatcher: Any) -> None:
    """Refuse to follow what is compiled as another function than its source now is.

    Raises:
        Refused: it is.
    """
    name = dispatcher.__name__
    if not dispatcher._can_compile:
        raise f.refuse(f"`{name}` is compiled for declared types")
    for form in dispatcher.overloads.values():
        if changed(dispatcher.py_func, form):
            raise f.refuse(f"what `{name}` reads from outside has changed since it was compiled")


def refuse_replaced(f: Frame, function: Any) -> None:
    """Refuse to follow a function that compiled code runs another one in the place of.

    Raises:
        Refused: it is one.
    """
    if f.whole.enters and overloads_of(function) and not is_jitable(function):
        raise f.refuse(f"`{function.__name__}` is replaced when it is compiled (numba.extending.overload)")


def own_value(dispatcher: Any, args: tuple[Any, ...], compared: set[Any]) -> Any:
    """What the user's compiled function returns for such arguments; None where nothing is to be compared.

    It runs once for a list of types, on copies. Nothing that is followed draws at random or prints.
    """
    if dispatcher is None:
        return None
    signature = signature_of(args)
    if signature in compared:
        return None
    compared.add(signature)
    try:
        return in_force(PLAIN, dispatcher, *deep_copy(args))
    except Exception:
        return None  # so does what is derived


def compare(dispatcher: Any, own: Any, y: Any) -> None:
    """Compare the first value with that of the user's compiled function.

    Raises:
        NativeError: they differ.
    """
    if own is not None and not are_close(own, y):
        raise NativeError(
            f"`{dispatcher.__name__}`, as it was compiled, returns {own}, but its Python source {y}.\n"
            "  To go on: differentiate its `py_func`.\n  See docs: errors#native"
        )
