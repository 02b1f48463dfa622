"""How definitions of SciPy's distributions are entered: methods are found by class and name in whatever SciPy is installed."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from plaingrad.rules.scipy.implicit import Rules

RULES = Rules()


def followed(function: Any) -> Any:
    """The Python code of a function without its rule, which is followed like a user's."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def method_of(instance: Any, name: str) -> Any:
    """The method of this name that the class of `instance` itself has, a plain function; or None."""
    found = vars(type(instance)).get(name) if instance is not None else None
    return found if isinstance(found, FunctionType) else None


def methods(instance: Any, *names: str) -> Callable[[Any], Any]:
    """Decorate a definition of methods of a distribution; as `Rules.defined`."""
    return RULES.defined(*[method_of(instance, name) for name in names])
