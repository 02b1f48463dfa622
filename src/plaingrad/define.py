"""Rows in, rules out: what a row of mathematics means as a rule, and what forms of rules mean as others.

Plumbing that every rule needs (broadcasting, conjugation, projection, zeros) is applied here and in
`tangents.project`, never in a rule. Rule code is ordinary Python and is itself differentiable.
"""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Callable
from inspect import CO_VARARGS
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.errors import CotangentError, DeclinedError, MissingRuleError, RuleError
from plaingrad.misfits import misfit
from plaingrad.rule_data import Rule, name_of
from plaingrad.tangents import Dual, NoTangent, Thunk, ZeroTangent, explicit_tangent, is_zero, unthunk

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


def without_module(partial: Any) -> Any:
    """A user's partial takes the arguments and the result; a row's takes the module called first."""
    if not callable(partial):
        return partial

    def row_partial(m: Any, *args: Any) -> Any:
        return partial(*args)

    return row_partial


def missing_partial(name: str, position: int) -> Callable[..., Any]:
    """A partial derivative that is not known: whoever needs it is refused."""

    def unknown_partial(m: Any, *args: Any) -> Any:
        raise MissingRuleError(
            f"the rule for {name} gives no derivative for its argument {position}, which depends on the "
            "differentiated inputs.\n  If that derivative is zero, the rule should give 0 there.\n"
            "  See docs: errors#missing-rule"
        )

    unknown_partial.is_unknown = True  # type: ignore[attr-defined]
    return unknown_partial


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
        if number_classes.is_own(x):
            return number_classes.known[type(x)].functions(x)
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
                    for p in partials[: len(args)]
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
    if (
        isinstance(slope, complex)
        or (isinstance(slope, (np.ndarray, np.generic)) and slope.dtype.kind == "c")
        or number_classes.known
        and is_own_complex(slope)
    ):
        slope = slope.conjugate()
    return z_bar * slope


def is_own_complex(x: Any) -> bool:
    """Whether `x` is a complex number with arithmetic of its own."""
    known = number_classes.of(x)
    return known is not None and known.is_complex


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
    for rule in movers(*functions, source=_source()):
        rulebook.add(rule)


def movers(*functions: Any, source: str | None = None) -> list[Rule]:
    """The rules that `mover` enters, for `rulebook.when_met`."""
    source = source or _source()
    return [Rule(function, "mover", source=source) for function in functions]


def inspector(*functions: Any) -> None:
    """Enter C functions that move references too, and compare, hash or index with what they are given.

    Special methods that they enter on the way, in Python, run rewritten.
    """
    source = _source()
    for function in functions:
        rulebook.add(Rule(function, "inspector", source=source))


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
            rulebook.add(known.but(affine=affine or known.affine, **half))
        return rule

    return enter


def pair_of(rule: Rule, outcome: Any, half: str = "rrule", linear_map: str = "pullback") -> tuple[Any, Any]:
    """What a rule returned, checked to be a result and a linear map.

    Raises:
        DeclinedError: it returned `NotImplemented`.
    """
    if outcome is NotImplemented:
        raise DeclinedError(rule.name, rule.rrule if half == "rrule" else rule.frule)
    if type(outcome) is not tuple or len(outcome) != 2 or not callable(outcome[1]):
        raise RuleError(
            f"the {half} of {rule.name} returned {_described(outcome)}; it must return (y, {linear_map}).\n"
            "  See docs: errors#rule"
        )
    rrule = rule.rrule
    if (
        rule.users
        and half == "rrule"
        and type(rrule) is FunctionType
        and not rrule.__code__.co_flags & CO_VARARGS
    ):
        return outcome[0], counted(outcome[1], rule.name, rrule.__code__.co_argcount)
    return outcome


def counted(pullback: Callable[[Any], Any], name: str, most: int) -> Callable[[Any], Any]:
    """`pullback`, which may give no more cotangents than its rule has parameters: they would stand for others."""

    def counted_pullback(*y_bars: Any) -> Any:
        cotangents = pullback(*y_bars)
        if type(cotangents) is tuple and len(cotangents) > most:
            raise RuleError(
                f"the pullback of the rule for {name} returned {len(cotangents)} cotangents, but the rule has {most} "
                f"positional parameter{'' if most == 1 else 's'}; it must return one for each of these, and none for "
                "the function itself.\n  See docs: errors#rule"
            )
        return cotangents

    return counted_pullback


def projected_cotangents(rule: Rule, pullback: Any, y_bar: Any, projections: list[Any]) -> tuple[Any, ...]:
    """What the pullback of a rule gives for the arguments of a call, each in the tangent space of its argument."""
    cotangents = pullback(unthunk(y_bar))
    if type(cotangents) is not tuple:
        raise RuleError(
            f"the pullback of the rule for {rule.name} returned {_described(cotangents)}; it must return a tuple with "
            "one cotangent per argument.\n  See docs: errors#rule"
        )
    given = len(cotangents)
    try:
        return tuple([f(cotangents[k] if k < given else NoTangent) for k, f in enumerate(projections)])
    except CotangentError as error:
        raise RuleError(f"the rule for {rule.name} gives a cotangent that is none: {error}") from None


def _described(outcome: Any) -> str:
    if type(outcome) is tuple:
        return "(" + ", ".join(type(part).__name__ for part in outcome) + ")"
    return f"a {type(outcome).__name__}"


# -- forward rules over pairs -------------------------------------------------------------------------------------


def dual_step(
    function: Any, rule: Callable[..., Any], names: tuple[str, ...]
) -> Callable[..., tuple[Any, Any]]:
    """`step(args, dots, kwargs) -> (y, y_dot)` for `rule(Dual(f, df), Dual(x, x_dot), ...) -> Dual(y, y_dot)`.

    Args:
        function: the function that the rule is for.
        rule: the rule.
        names: its positional parameters after the function; keyword arguments of these names come as pairs too.
    """

    def step(args: Any, dots: Any, kwargs: Any) -> tuple[Any, Any]:
        duals = [Dual(x, explicit_tangent(x, x_dot)) for x, x_dot in zip(args, dots, strict=False)]
        options = {}
        pending = {k for k in range(len(args), len(dots)) if not is_zero(dots[k])}
        for name, x in kwargs.items():
            if name in names:
                k = names.index(name)
                x = Dual(x, explicit_tangent(x, dots[k] if k < len(dots) else ZeroTangent))
                pending.discard(k)
            options[name] = x
        if pending:
            raise RuleError(
                f"the frule of {name_of(function)} has no positional parameter for one of the differentiated arguments "
                f"given by name ({', '.join(kwargs)}).\n  See docs: errors#rule"
            )
        outcome = rule(Dual(function, NoTangent), *duals, **options)
        if outcome is NotImplemented:
            raise DeclinedError(name_of(function), step)
        if type(outcome) is not Dual:
            raise RuleError(
                f"the frule of {name_of(function)} returned {_described(outcome)}; it must return Dual(y, y_dot).\n"
                "  See docs: errors#rule"
            )
        y, y_dot = outcome
        y_dot = unthunk(y_dot)
        problem = misfit(y_dot, y, summed=False)
        if problem:
            raise RuleError(
                f"the frule of {name_of(function)} gives as tangent of its result {problem}.\n  See docs: errors#rule"
            )
        return y, y_dot

    return step


def frule_of_steps(step: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """`frule(*args, **kwargs) -> (y, pushforward)` that evaluates `step` for the value, and again for tangents."""

    def dual_frule(*args: Any, **kwargs: Any) -> Any:
        y, _ = step(args, [ZeroTangent for _ in args], kwargs)

        def dual_pushforward(dots: Any) -> Any:
            return step(args, dots, kwargs)[1]

        return y, dual_pushforward

    return dual_frule


def rrule_of_derived(rule: Any) -> Callable[..., Any]:
    """A rule whose pullback gives the cotangent of the function first, without that."""

    def derived_rrule(*args: Any, **kwargs: Any) -> Any:
        y, pullback = rule(*args, **kwargs)

        def derived_pullback(y_bar: Any) -> Any:
            return pullback(y_bar)[1:]

        return y, derived_pullback

    return derived_rrule


def step_of_derived(rule: Any, function: Any) -> Callable[..., tuple[Any, Any]]:
    """The step of a rule over pairs that was derived from `function`."""

    def derived_step(args: Any, dots: Any, kwargs: Any) -> tuple[Any, Any]:
        duals = [Dual(x, x_dot) for x, x_dot in zip(args, dots, strict=False)]
        y, y_dot = rule(Dual(function, NoTangent), *duals, **kwargs)
        return y, y_dot

    return derived_step


def _source(depth: int = 2) -> str:
    frame = sys._getframe(depth)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _source_of(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
