"""Rules that hold only where the program has said so: sets of primitives, entered with `with`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from plaingrad import rulebook
from plaingrad.extend import doors
from plaingrad.rule_data import Rule

F = TypeVar("F", bound=Callable[..., Any])


class primitives:
    """A set of rules that hold inside of `with`, before those that hold everywhere.

    It has the doors of rules: `rrule`, `frule`, `defined_as`, `scalar_rule`, `linear_rule`, `nondifferentiable`; and
    `without_rule(f)`: inside, `f` has none. Sets may be nested, the innermost is asked first; where none of its rules
    is for the arguments, or it declines, the next one is. A set is entered for the code that runs in the `with`, in
    this thread or task, however deep the calls; the same set may be entered again and in several threads.
    `remove_rule(f)` takes the rules of `f` out of every set.

    Examples:
        >>> import math, plaingrad
        >>> careful = plaingrad.primitives("careful")
        >>> @careful.rrule(math.sqrt)
        ... def sqrt_rrule(x):
        ...     z = math.sqrt(x)
        ...     return z, lambda z_bar: (z_bar / (2 * z) if z else 0.0,)
        >>> with careful:
        ...     plaingrad.grad(math.sqrt)(0.0)
        0.0
        >>> plaingrad.grad(math.sqrt)(0.0)
        inf
        >>> plaingrad.remove_rule(math.sqrt)
    """

    def __init__(self, name: str = "") -> None:
        self._context = rulebook.Context(name)

    def __repr__(self) -> str:
        return f"primitives({self._context.name!r})"

    def __enter__(self) -> primitives:
        entered = rulebook.entered_contexts
        entered.set((self._context, *entered.get()))
        return self

    def __exit__(self, *_: object) -> None:
        entered = rulebook.entered_contexts
        held = entered.get()
        place = held.index(self._context)
        entered.set((*held[:place], *held[place + 1 :]))

    def _inside(self, door: Callable[..., Any], *args: Any, **options: Any) -> Any:
        with rulebook.entering_in(self._context):
            return door(*args, **options)

    def _decorator(self, door: Callable[..., Any], f: Any, **options: Any) -> Callable[[F], F]:
        enter = door(f, **options)
        return functools.partial(self._inside, enter)

    def rrule(self, f: Callable[..., Any], **options: Any) -> Callable[[F], F]:
        """Decorate the reverse rule of `f` in this set."""
        return self._decorator(doors.rrule, f, **options)

    def frule(self, f: Callable[..., Any], **options: Any) -> Callable[[F], F]:
        """Decorate the forward rule of `f` in this set."""
        return self._decorator(doors.frule, f, **options)

    def defined_as(self, f: Callable[..., Any], **options: Any) -> Callable[[F], F]:
        """Decorate a definition of `f` in this set."""
        return self._decorator(doors.defined_as, f, **options)

    def scalar_rule(self, f: Callable[..., Any], *partials: Any, domain: Any = None) -> None:
        """Enter a function of numbers by its partial derivatives, in this set."""
        self._inside(doors.scalar_rule, f, *partials, domain=domain)

    def linear_rule(self, f: Callable[..., Any], adjoint: Callable[..., Any]) -> None:
        """Enter a linear function by its adjoint, in this set."""
        self._inside(doors.linear_rule, f, adjoint)

    def nondifferentiable(self, f: F) -> F:
        """Declare that, in this set, results of `f` do not depend differentiably on its arguments."""
        return self._inside(doors.nondifferentiable, f)  # type: ignore[no-any-return]

    def without_rule(self, f: Callable[..., Any]) -> None:
        """In this set `f` has no rule: its bytecode is differentiated, C code is refused."""
        function = doors.filed_under(f)
        self._inside(doors.enter_rule, Rule(function, "withdrawn", users=True))
