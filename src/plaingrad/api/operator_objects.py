"""What `grad(f)`, `jacobian(f)` and the like return: functions that can be pickled, copied and compared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

WORDS = {
    "grad": "The gradient",
    "value_and_grad": "The value and the gradient",
    "jacobian": "The Jacobian",
    "hessian": "The Hessian",
    "derivative": "The derivative",
    "wirtinger": "The Wirtinger derivatives",
}


def wraps(f: Any) -> Callable[[Any], Any]:
    """Carry over the name and documentation of `f`, where it has them."""
    present = [name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(f, name)]
    return functools.wraps(f, assigned=present, updated=())


def _said_by(f: Any) -> dict[str, Any]:
    """What `wraps(f)` sets, by name: its own way takes as long as a small gradient."""
    said = {"__wrapped__": f}
    for name in functools.WRAPPER_ASSIGNMENTS:
        value = getattr(f, name, said)
        if value is not said:
            said[name] = value
    return said


class Derivative:
    """A derivative of a function, as a function of the same arguments.

    It is pickled, copied and compared as what made it: the operator, the function, and the options. So it goes to other
    processes (`pool.map(grad(f), xs)`) wherever the function itself can go.
    """

    __plaingrad_derivative__ = True  # derivatives of it are not Numba's business

    def __init__(
        self, function: Callable[..., Any], operator: Any, f: Any, options: tuple[Any, ...], marks: Any = ()
    ) -> None:
        said = _said_by(f)
        for name, value in said.items():  # with the module of `f` it runs rewritten inside of others
            setattr(function, name, value)
        self.function = function
        self._made_by = operator, f, options
        self._marks: tuple[tuple[str, Any], ...] = tuple(marks)  # options by keyword
        self.__dict__.update(said)
        what = WORDS.get(operator.__name__, operator.__name__)
        about = f"{what} of {getattr(f, '__name__', repr(f))}, by plaingrad.{operator.__name__}."
        self.__doc__ = f"{about}\n\n{getattr(f, '__doc__', None) or ''}".rstrip()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at these arguments."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        operator, f, options = self._made_by
        return made_again, (operator, (f, *options), self._marks)

    def __eq__(self, other: Any) -> Any:
        if type(other) is not Derivative:
            return NotImplemented
        return self._made_by == other._made_by and self._marks == other._marks

    def __hash__(self) -> int:
        return hash((self._made_by, self._marks))

    def __repr__(self) -> str:
        operator, f, _ = self._made_by
        return f"<plaingrad.{operator.__name__} of {f!r}>"


def made_again(operator: Any, given: tuple[Any, ...], marks: tuple[tuple[str, Any], ...]) -> Any:
    """What `operator` returns for these arguments, and these by keyword."""
    return operator(*given, **dict(marks))


def derives(operator: Any, f: Any, *options: Any, **marks: Any) -> Callable[[Callable[..., Any]], Derivative]:
    """Decorate a function that computes derivatives of `f`, for `operator(f, *options, **marks)` to return."""

    def decorate(function: Callable[..., Any]) -> Derivative:
        return Derivative(function, operator, f, options, marks.items())

    return decorate
