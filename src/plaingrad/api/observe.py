"""Looking on while derivatives are taken."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

from plaingrad.errors import ArgumentError
from plaingrad.rewrite import describe


def show(f: Callable[..., Any]) -> str:
    """Print, and return, the instructions of `f` beside the rewritten ones that are run in its place.

    Args:
        f: a Python function, method, or object with a Python `__call__`; or a code object.

    Raises:
        ArgumentError: there is no Python bytecode behind `f`.

    Examples:
        >>> text = show(lambda x: x + 1.0)  # doctest: +ELLIPSIS
        <BLANKLINE>
        ...
    """
    code = _code_of(f)
    if code is None:
        raise ArgumentError(f"{f!r} has no Python bytecode to show")
    text = describe(code)
    print(text)
    return text


def _code_of(f: Any) -> CodeType | None:
    if isinstance(f, CodeType):
        return f
    if isinstance(f, MethodType):
        f = f.__func__
    elif not isinstance(f, FunctionType):
        f = getattr(f, "__wrapped__", None) or vars(type(f)).get("__call__")
    return getattr(f, "__code__", None)
