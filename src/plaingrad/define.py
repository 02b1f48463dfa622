"""Rows in, rules out: what a row of mathematics means as a reverse rule.

Plumbing that every rule needs (broadcasting, conjugation, projection, zeros) is applied here and in
`tangents.project`, never in a rule. Rule code is ordinary Python and is itself differentiable.
"""

from __future__ import annotations

import cmath
import dataclasses
import math
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from plaingrad import rulebook
from plaingrad.rulebook import Rule
from plaingrad.tangents import NoTangent, Thunk

F = TypeVar("F", bound=Callable[..., Any])

# Domains: sample points where a row is smooth, one tuple per argument. Tests draw from them.
REAL = ((-2.3, -0.7, 0.4, 1.9),)
POSITIVE = ((0.2, 0.9, 1.7, 3.1),)
UNIT = ((-0.8, -0.3, 0.2, 0.7),)  # inside (-1, 1)
ABOVE_ONE = ((1.2, 1.9, 3.4),)
PAIR = ((-1.7, 0.6, 2.2), (0.8, -1.3, 1.5))
POSITIVE_PAIR = ((0.3, 1.1, 2.4), (0.7, 1.6, 0.2))


def scalar(name: str, domain: Any, *partials: Any, functions: tuple[Any, ...] | None = None) -> None:
    """Enter a function of numbers, elementwise on arrays: one partial derivative per argument.

    A partial is a number or `partial(m, *args, z)`: `m` the module called (math, cmath or NumPy), `z` the result.

    Args:
        name: the function's name; entered for every one of `math`, `cmath` and `numpy` that has it.
        domain: sample points where it is smooth.
        functions: the callables themselves, instead of looking `name` up.
    """
    if functions is None:
        functions = tuple(getattr(m, name) for m in (math, cmath, np) if hasattr(m, name))
    source = _source()
    for function in functions:
        rule = elementwise_rrule(function, partials)
        rulebook.add(Rule(function, "scalar", rule, partials=partials, domain=domain, source=source))


def as_callable(function: Any) -> Callable[..., Any]:
    """`function`, or for a computed attribute (`complex.real`) the function that reads it."""
    if callable(function):
        return function
    name = function.__name__
    return lambda x: getattr(x, name)


def module_for(function: Any, args: tuple[Any, ...]) -> Any:
    """The module `m` that a row computes with: the function's own, else the one that suits the arguments."""
    if isinstance(function, np.ufunc):
        return np
    name = getattr(function, "__module__", None)
    if name == "math":
        return math
    if name == "cmath":
        return cmath
    for x in args:
        if isinstance(x, (np.ndarray, np.generic)):
            return np
    for x in args:
        if isinstance(x, complex):
            return cmath
    return math


def elementwise_rrule(function: Any, partials: tuple[Any, ...]) -> Callable[..., Any]:
    """The reverse rule x_bar = z_bar * conj(dz/dx) of an elementwise function."""

    call = as_callable(function)

    def rrule(*args: Any) -> Any:
        z = call(*args)
        m = module_for(function, args)

        def elementwise_pullback(z_bar: Any) -> tuple[Any, ...]:
            return tuple(
                [
                    NoTangent if p is None else Thunk(lambda p=p: scaled(z_bar, p, m, args, z))
                    for p in partials
                ]
            )

        return z, elementwise_pullback

    return rrule


def scaled(z_bar: Any, partial: Any, m: Any, args: tuple[Any, ...], z: Any) -> Any:
    """z_bar * conj(partial)."""
    if not callable(partial):
        if partial == 1:
            return z_bar
        return -z_bar if partial == -1 else z_bar * partial
    slope = partial(m, *args, z)
    if isinstance(slope, complex) or (
        isinstance(slope, (np.ndarray, np.generic)) and slope.dtype.kind == "c"
    ):
        slope = slope.conjugate()
    return z_bar * slope


def linear(function: Any, adjoint: Callable[..., Any]) -> None:
    """Enter a function linear in its first argument: x_bar = adjoint(z_bar, x, *others)."""

    call = as_callable(function)

    def rrule(x: Any, *others: Any, **options: Any) -> Any:
        z = call(x, *others, **options)

        def linear_pullback(z_bar: Any) -> tuple[Any, ...]:
            return (Thunk(lambda: adjoint(z_bar, x, *others, **options)),)

        return z, linear_pullback

    rulebook.add(Rule(function, "linear", rrule, source=_source()))


def bilinear(function: Any, adjoint_a: Callable[..., Any], adjoint_b: Callable[..., Any]) -> None:
    """Enter a function linear in each of its first two arguments: a_bar = adjoint_a(z_bar, a, b), b_bar likewise."""

    def rrule(a: Any, b: Any, *others: Any, **options: Any) -> Any:
        z = function(a, b, *others, **options)

        def bilinear_pullback(z_bar: Any) -> tuple[Any, ...]:
            return (
                Thunk(lambda: adjoint_a(z_bar, a, b, *others, **options)),
                Thunk(lambda: adjoint_b(z_bar, a, b, *others, **options)),
            )

        return z, bilinear_pullback

    rulebook.add(Rule(function, "bilinear", rrule, source=_source()))


def no_tangent(*functions: Any) -> None:
    """Enter functions whose results have no tangent (indices, shapes, comparisons), or a zero one everywhere."""
    source = _source()
    for function in functions:
        rulebook.add(Rule(function, "no_tangent", source=source))


def mover(*functions: Any) -> None:
    """Enter C functions that only move references or return views: they are called natively."""
    source = _source()
    for function in functions:
        rulebook.add(Rule(function, "mover", source=source))


def higher_order(*functions: Any) -> None:
    """Enter C functions that only move references but iterate over arguments or call them (`map`, `sorted`).

    Callables among the arguments are handed over rewritten; differentiated arrays among them as their elements.
    """
    source = _source()
    for function in functions:
        rulebook.add(Rule(function, "higher_order", source=source))


def composed(function: Any, *, mutates: bool = False) -> Callable[[F], F]:
    """Decorate a Python definition of `function` in terms of simpler ones; it runs as user code would.

    Args:
        function: the callable that is defined.
        mutates: it writes into its arguments, so the definition is used even when no argument is active.
    """

    def enter(definition: F) -> F:
        rulebook.add(
            Rule(function, "composed", definition=definition, mutates=mutates, source=_source_of(definition))
        )
        return definition

    return enter


def rrule(*functions: Any) -> Callable[[F], F]:
    """Decorate a reverse rule `f_rrule(*args, **kwargs) -> (y, pullback)` for each of `functions`.

    `pullback(y_bar)` returns one cotangent per positional parameter of the rule, `NoTangent` where there is none.
    """

    def enter(rule: F) -> F:
        for function in functions:
            rulebook.add(Rule(function, "full", rule, source=_source_of(rule)))
        return rule

    return enter


def frule(*functions: Any, chunked: bool = False, affine: bool = False) -> Callable[[F], F]:
    """Decorate a forward rule `f_frule(*args, **kwargs) -> (y, pushforward)` for each of `functions`.

    `pushforward(dots)` takes one tangent per positional parameter of the rule, `ZeroTangent` where it does not vary
    (inside lists and tuples explicit zeros), and returns y_dot, which must be linear in them.

    Args:
        functions: the callables; a rule that is known already, in whatever form, keeps its reverse half.
        chunked: every tangent, and y_dot, carries a leading axis, one entry for each tangent of a chunk. The plain
            form is needed too.
        affine: the pushforward is the same for all arguments of these shapes, or on this piece of the function.
    """

    def enter(rule: F) -> F:
        for function in functions:
            known = rulebook.find(function)
            if known is None:
                known = Rule(function, "full", source=_source_of(rule))
            half = {"chunked_frule" if chunked else "frule": rule}
            rulebook.add(dataclasses.replace(known, affine=affine or known.affine, **half))
        return rule

    return enter


def _source() -> str:
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _source_of(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
