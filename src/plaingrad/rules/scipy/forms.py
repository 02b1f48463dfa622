"""The forms in which facts about SciPy are stated. They gather rules; the rulebook takes them when SciPy is met.

Functions are found by name in whatever SciPy is installed. A name that it does not have costs its own row only.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plaingrad.define import elementwise_rrule, missing_partial, scaled
from plaingrad.errors import MissingRuleError
from plaingrad.rulebook import Rule
from plaingrad.rules.pushforwards import dot_of, lined_up, real_if, total, varies
from plaingrad.tangents import Thunk, ZeroTangent, is_zero, unthunk

RULES: dict[int, Rule] = {}  # by the identity of the function: some have several names
REASONS: dict[str, str] = {}  # by name, why a function is refused
RESULTS: dict[int, tuple[Any, ...]] = {}  # by the identity of a function with several results, their partials
UNKNOWN: set[Any] = set()  # partials that refuse
MODULES = ("scipy.special", "scipy.special._ufuncs", "scipy.special._special_ufuncs", "scipy.special._ufuncs_cxx")


def find(name: str, modules: tuple[str, ...] = MODULES) -> Any:
    """The function of this name in the first of `modules` that has it, or None."""
    for module in modules:
        try:
            function = getattr(importlib.import_module(module), name, None)
        except ImportError:
            continue
        if callable(function):  # some functions have the name of their module
            return function
    return find_in_boost(name) if modules is MODULES else None


def find_in_boost(name: str) -> Any:
    """The same in SciPy before 1.15, whose distributions had these functions to themselves, if they are imported."""
    boost = sys.modules.get("scipy.stats._boost")
    return getattr(boost, name, None) or getattr(boost, name.replace("_pmf", "_pdf"), None)


def keep(rule: Rule) -> None:
    """Let the rulebook have `rule`; of a function with several names the first row counts."""
    RULES.setdefault(id(rule.function), rule)


def source() -> str:
    """Where the row is that calls the form that calls this."""
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def row(name: str, domain: Any, *partials: Any, functions: tuple[Any, ...] = ()) -> None:
    """Enter a ufunc with one result: dz/d(argument) for each argument, as in `define.scalar`.

    Args:
        name: its name in `scipy.special`, or among the ufuncs behind that.
        domain: sample points where it is smooth.
        partials: for each argument `partial(m, *args, z)`; None where the function is constant between its steps.
        functions: the callables themselves, for functions of ours.
    """
    function = functions[0] if functions else find(name)
    if function is None or RULES.get(id(function)):
        return
    quietly = tuple([quiet(partial) for partial in partials])
    steps = None if functions else 0  # those of ours may take names; a ufunc takes numbers
    rule = elementwise_rrule(function, tuple([steps if partial is None else partial for partial in quietly]))
    keep(Rule(function, "scalar", rule, partials=quietly, domain=domain, source=source()))


def quiet(partial: Any) -> Any:
    """The partial derivative without warnings of its own: at poles the plain call has warned, if there was a reason."""
    if not callable(partial) or partial in UNKNOWN:
        return partial

    def slope(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return partial(*args)

    slope.__wrapped__ = partial  # type: ignore[attr-defined]  # what is compiled warns of nothing
    return slope


def unknown(name: str, position: int, why: str) -> Callable[..., Any]:
    """A partial derivative that is refused; `why` is said on the page of what is covered."""
    REASONS[f"{name}, argument {position}"] = why
    partial = missing_partial(f"scipy.special.{name}", position)
    UNKNOWN.add(partial)
    return partial


def several(name: str, domain: Any, *results: tuple[Any, ...], damping: tuple[Any, ...] = ()) -> None:
    """Enter a ufunc with several results: for each the partial derivatives, `partial(m, *args, z)`, z all results.

    Args:
        name: its name in `scipy.special`.
        domain: sample points where it is smooth.
        results: the partials of each.
        damping: of a function of one complex x, for each result None, or the rate of exp(-|part|) as in `damped`.
    """
    function = find(name)
    if function is None or RULES.get(id(function)):
        return

    results = tuple([tuple([quiet(partial) for partial in of_one]) for of_one in results])
    RESULTS[id(function)] = results

    def several_rrule(*args: Any) -> Any:
        z = function(*args)

        def several_pullback(z_bar: Any) -> tuple[Any, ...]:
            def cotangent(n: int) -> Any:
                parts = [(k, unthunk(z_bar[k])) for k in range(len(results)) if results[k][n] is not None]
                moved = [(k, part) for k, part in parts if not is_zero(part)]
                bars = [used(scaled(part, results[k][n], np, args, z), part, z[k]) for k, part in moved]
                if damping and np.iscomplexobj(args[0]):
                    bars += [-damped_bar(damping[k], args[0], z[k], part) for k, part in moved if damping[k]]
                return total(*bars)

            return tuple([Thunk(lambda n=n: cotangent(n)) for n in range(len(args))])

        return z, several_pullback

    def several_frule(*args: Any) -> Any:
        z = function(*args)
        ndim = np.ndim(z[0])

        def several_pushforward(dots: Any) -> Any:
            lined = [lined_up(dot_of(dots, n), args[n], ndim) if varies(dot_of(dots, n)) else ZeroTangent for n in range(len(args))]

            def tangent(k: int) -> Any:
                parts = [
                    results[k][n](np, *args, z) * lined[n]
                    for n in range(len(args))
                    if varies(lined[n]) and results[k][n] is not None
                ]
                if parts and damping and damping[k] and np.iscomplexobj(args[0]):
                    parts.append(-z[k] * damping[k](args[0], lined[0]))
                return real_if(z[k], total(*parts)) if parts else ZeroTangent

            return tuple([tangent(k) for k in range(len(results))])

        return z, several_pushforward

    keep(
        Rule(
            function, "full", several_rrule, frule=several_frule, chunked_frule=several_frule, domain=domain,
            source=source(),
        )
    )  # fmt: skip


def used(x_bar: Any, z_bar: Any, z: Any) -> Any:
    """`x_bar`, 0 where a result is nan that nobody used: its slope is nan, too."""
    unused = np.isnan(z)
    return np.where(unused & np.equal(z_bar, 0), 0.0, x_bar)[()] if np.any(unused) else x_bar


def damped_bar(rate: Any, x: Any, z: Any, z_bar: Any) -> Any:
    """What x_bar loses by the factor exp(-|part of x|) in z."""
    return np.real(np.conjugate(z_bar) * z) * (rate(x, 1.0) + 1j * rate(x, 1j))


def damped(name: str, domain: Any, order: Any, slope: Any, rate: Any, real: Any) -> None:
    """Enter z(v, x) = exp(-|part of x|) g(v, x), g holomorphic in x, which for complex x is not holomorphic itself.

    Args:
        name: its name in `scipy.special`.
        order: dz/dv as a partial.
        slope: exp(-|part|) dg/dx as a partial.
        rate: rate(x, x_dot) is the derivative of |part of x| along x_dot, linear over the reals.
        real: dz/dx as a partial, for real x.
        domain: sample points where it is smooth.
    """
    function = find(name)
    if function is None:
        return
    order, slope, real = quiet(order), quiet(slope), quiet(real)

    def damped_rrule(v: Any, x: Any) -> Any:
        z = function(v, x)

        def damped_pullback(z_bar: Any) -> tuple[Any, ...]:
            def x_bar() -> Any:
                if not np.iscomplexobj(x):
                    return scaled(z_bar, real, np, (v, x), z)
                return scaled(z_bar, slope, np, (v, x), z) - damped_bar(rate, x, z, z_bar)

            return Thunk(lambda: scaled(z_bar, order, np, (v, x), z)), Thunk(x_bar)

        return z, damped_pullback

    def damped_frule(v: Any, x: Any) -> Any:
        z = function(v, x)

        def damped_pushforward(dots: Any) -> Any:
            parts = []
            if varies(dots[0]):
                parts.append(order(np, v, x, z) * lined_up(dots[0], v, np.ndim(z)))
            if len(dots) > 1 and varies(dots[1]):
                x_dot = lined_up(dots[1], x, np.ndim(z))
                if np.iscomplexobj(x):
                    parts.append(slope(np, v, x, z) * x_dot - z * rate(x, x_dot))
                else:
                    parts.append(real(np, v, x, z) * x_dot)
            return real_if(z, total(*parts)) if parts else ZeroTangent

        return z, damped_pushforward

    keep(
        Rule(
            function, "full", damped_rrule, frule=damped_frule, chunked_frule=damped_frule, domain=domain,
            partials=(order, real), source=source(),
        )
    )  # fmt: skip


def none(*names: str) -> None:
    """Enter functions whose results are indices, integers or steps."""
    for name in names:
        function = find(name)
        if function is not None:
            keep(Rule(function, "no_tangent", source=source()))


def keep_quiet(*functions: Any) -> None:
    """Enter functions of ours that choose nodes: where these are is nobody's derivative."""
    for function in functions:
        keep(Rule(function, "no_tangent", source=source()))


def refused(why: str, *names: str, modules: tuple[str, ...] = MODULES) -> None:
    """Enter functions that have a derivative which nobody computes here; `why` stands in the error."""
    for name in names:
        function = find(name, modules)
        if function is None:
            continue
        REASONS[name] = why
        keep(Rule(function, "full", refusing(name, why), source=source(), refuses=why))


def refusing(name: str, why: str) -> Callable[..., Any]:
    """A rule that refuses."""

    def refused_rrule(*args: Any, **kwargs: Any) -> Any:
        raise MissingRuleError(
            f"scipy.special.{name} has no derivative here: {why}.\n"
            "  If it does not matter: plaingrad.nondifferentiable. Otherwise: plaingrad.rrule, plaingrad.scalar_rule.\n"
            "  See docs: errors#missing-rule"
        )

    return refused_rrule


def defined(name: str, modules: tuple[str, ...] = MODULES) -> Callable[[Any], Any]:
    """Decorate a Python definition of a function of SciPy's; it runs as user code would."""

    def enter(definition: Any) -> Any:
        function = find(name, modules)
        if function is not None:
            code = definition.__code__
            place = f"{code.co_filename}:{code.co_firstlineno}"
            keep(Rule(function, "composed", definition=definition, source=place))
        return definition

    return enter


def gathered() -> Iterator[Rule]:
    """The rules stated so far."""
    return iter([*RULES.values()])


__all__ = ["damped", "defined", "find", "gathered", "none", "refused", "row", "several", "unknown"]
