"""Derivatives that rules take of the program's own functions: those of solvers do. The public operators, which are
above the rules, are put here when they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

#: Whether caches of the program are passed by: a solver has filled them one level out, with what is constant here.
PASSING_CACHES: ContextVar[bool] = ContextVar("PASSING_CACHES", default=False)
OPERATORS: dict[str, Callable[..., Any]] = {}


def gradient(f: Callable[[Any], Any], x: Any) -> Any:
    """The gradient of the number f(x)."""
    return OPERATORS["grad"](f)(x)


def hessian(f: Callable[[Any], Any], x: Any) -> Any:
    """The matrix of second derivatives of the number f(x)."""
    return OPERATORS["hessian"](f)(x)


def jacobian(f: Callable[[Any], Any], x: Any) -> Any:
    """The matrix df_i/dx_j of one array by another."""
    return OPERATORS["jacobian"](f)(x)


def along(f: Callable[[Any], Any], x: Any, x_dot: Any) -> Any:
    """The derivative of f along x_dot."""
    return OPERATORS["jvp"](f, (x,), (x_dot,))[1]


def value_along(f: Callable[[Any], Any], x: Any, x_dot: Any) -> tuple[Any, Any]:
    """(f(x), its derivative along x_dot)."""
    y, y_dot = OPERATORS["jvp"](f, (x,), (x_dot,))
    return y, y_dot


def pulled(f: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """(y, pullback) of f(*args), with cotangents of what functions among the arguments hold."""
    y, pullback = OPERATORS["rrule"](f, *args)
    return y, pullback


def watched(f: Any, told: dict[str, Any]) -> Any:
    """f as a function that tells what it compares: see `plaingrad.rewrite.watching`."""
    return OPERATORS["watched"](f, told)


def has_effects(code: Any) -> bool:
    """Whether code changes what outlives its call: see `plaingrad.rewrite.effects`."""
    return bool(OPERATORS["has_effects"](code))


def imports(code: Any) -> bool:
    """Whether code imports something: see `plaingrad.rewrite.effects`."""
    return bool(OPERATORS["imports"](code))


def is_outside() -> bool:
    """Whether no derivative is being taken around this call."""
    return bool(OPERATORS["is_outside"]())


def where() -> str:
    """The user's line that is being executed, as errors say it."""
    return str(OPERATORS["where"]())


__all__ = [
    "OPERATORS",
    "PASSING_CACHES",
    "along",
    "gradient",
    "has_effects",
    "hessian",
    "imports",
    "jacobian",
    "pulled",
    "value_along",
    "watched",
    "where",
]
