"""The rule author's door: derivatives of one's own, and functions that have none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from plaingrad import define, rulebook
from plaingrad.engine.stop import stopped
from plaingrad.errors import RuleError
from plaingrad.rulebook import Rule

F = TypeVar("F", bound=Callable[..., Any])


def rrule(f: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate the reverse rule of `f`: `rule(*args, **kwargs) -> (y, pullback)`.

    `pullback(y_bar)` returns a tuple with one cotangent per positional parameter of the rule; `NoTangent` for one
    without tangent, `Thunk(compute)` for one that is to be computed only if asked for. It takes effect at once.

    Examples:
        >>> import plaingrad
        >>> def clipped(x): return x
        >>> @plaingrad.rrule(clipped)
        ... def clipped_rrule(x):
        ...     return x, lambda y_bar: (max(-1.0, min(1.0, y_bar)),)
        >>> plaingrad.grad(lambda x: 10.0 * clipped(x))(3.0)
        1.0
    """
    _check_callable(f)
    return define.rrule(f)


def scalar_rule(f: Callable[..., Any], *partials: Any, domain: Any = None) -> None:
    """Enter a function of numbers by its partial derivatives.

    Args:
        f: a function of one or more numbers, elementwise on arrays if it takes them.
        partials: one per argument: a number, or `partial(*args, z)` with `z = f(*args)`; `None` for an argument
            without tangent.
        domain: for each argument a tuple of sample points where `f` is smooth; `testing.check_rule` uses them.

    Examples:
        >>> import math, plaingrad
        >>> def softplus(x): return math.log1p(math.exp(x))
        >>> plaingrad.scalar_rule(softplus, lambda x, z: 1 / (1 + math.exp(-x)))
        >>> plaingrad.grad(softplus)(0.0)
        0.5
    """
    _check_callable(f)
    define.scalar(getattr(f, "__name__", repr(f)), domain, *map(_without_module, partials), functions=(f,))


def linear_rule(f: Callable[..., Any], adjoint: Callable[..., Any]) -> None:
    """Enter a function that is linear in its first argument: x_bar = adjoint(y_bar, x, *others).

    Examples:
        >>> import plaingrad
        >>> def double(x): return 2 * x
        >>> plaingrad.linear_rule(double, lambda y_bar, x: 2 * y_bar)
        >>> plaingrad.grad(double)(5.0)
        2.0
    """
    _check_callable(f)
    define.linear(f, adjoint)


def nondifferentiable(f: F) -> F:
    """Declare that results of `f` do not depend differentiably on its arguments; returns `f`, so it decorates too.

    Examples:
        >>> import plaingrad
        >>> @plaingrad.nondifferentiable
        ... def bucket(x): return float(int(x))
        >>> plaingrad.grad(lambda x: x * bucket(x))(2.5)
        2.0
    """
    _check_callable(f)

    @functools.wraps(f)
    def constant(*args: Any, **kwargs: Any) -> Any:
        return stopped(f(*args, **kwargs))

    def constant_rrule(*args: Any, **kwargs: Any) -> Any:
        return constant(*args, **kwargs), lambda y_bar: ()

    rulebook.add(Rule(f, "no_tangent", constant_rrule, definition=constant, source=define._source_of(f)))
    return f


def stop_gradient(x: Any) -> Any:
    """`x`, with no derivative: numbers and arrays are copied, containers rebuilt; at every level.

    Examples:
        >>> import plaingrad
        >>> plaingrad.grad(lambda x: x * plaingrad.stop_gradient(x))(3.0)
        3.0
    """
    return stopped(x)


def _without_module(partial: Any) -> Any:
    """A user's partial takes the arguments and the result; a row's takes the module called first."""
    if not callable(partial):
        return partial

    def row_partial(m: Any, *args: Any) -> Any:
        return partial(*args)

    return row_partial


def _check_callable(f: Any) -> None:
    if not callable(f):
        raise RuleError(f"a rule is about a callable, not {f!r}")
