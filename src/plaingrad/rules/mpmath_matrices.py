"""Matrices and extrapolation of mpmath.

A matrix of mpmath stores what is not zero. An element that depends on the inputs and happens to be zero has a
derivative, so while a derivative is taken it is stored too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from plaingrad import number_classes, rulebook
from plaingrad.errors import MissingRuleError
from plaingrad.rule_data import Rule

SOURCE = "plaingrad/rules/mpmath_matrices.py:1"
BY_SIGNS = "It only looks at signs, so its result does not depend on the numbers in the function."
BY_DIFFERENCES = "It extrapolates from differences of terms, of which rounding errors are left where they converge."


def is_active(x: Any) -> bool:
    """Whether `x` depends on the inputs at this level."""
    return False


rulebook.add(Rule(is_active, "asks", source=SOURCE))


def stored(elements: dict[Any, Any], key: Any, value: Any) -> None:
    """Put `value` under `key`, if it is not zero or depends on the inputs; else nothing is left there."""
    if value or is_active(value):
        elements[key] = value
    elif key in elements:
        del elements[key]


def set_element(matrix: Any, key: Any, value: Any) -> None:
    """What mpmath does with a number that is known to fit."""
    stored(matrix._matrix__data, key, value)


def setter(as_it_is: Callable[..., Any]) -> Callable[..., Any]:
    """matrix[key] = value; `as_it_is` is mpmath's own."""

    def set_item(matrix: Any, key: Any, value: Any) -> None:
        as_it_is(matrix, key, value)
        if not isinstance(key, tuple):
            key = (0, key) if matrix.rows == 1 else (key, 0)
        if not any(isinstance(k, slice) for k in key):  # mpmath puts slices in by `set_element`
            stored(matrix._matrix__data, key, matrix.ctx.convert(value))

    return set_item


def estimate(x: Any) -> Any:
    """A limit that was guessed from differences of terms."""
    return number_classes.copied(x)


def _estimate_rrule(x: Any) -> Any:
    def estimate_pullback(z_bar: Any) -> Any:
        raise MissingRuleError(
            f"mpmath.shanks has no derivative here: {BY_DIFFERENCES}\n  To go on: for nsum and limit, "
            "method='richardson' or 'euler-maclaurin', or a sum of as many terms as are needed.\n"
            "  See docs: errors#missing-rule"
        )

    return estimate(x), estimate_pullback


def _estimate_frule(x: Any) -> Any:
    def estimate_pushforward(dots: Any) -> Any:
        return number_classes.made(x, math.nan) * dots[0]  # not refused: another method may do better, and be used

    return estimate(x), estimate_pushforward


rulebook.add(Rule(estimate, "full", _estimate_rrule, _estimate_frule, source=SOURCE))


def extrapolation(as_it_is: Callable[..., Any]) -> Callable[..., Any]:
    """context.shanks(terms); `as_it_is` is mpmath's own."""

    def shanks(*args: Any, **kwargs: Any) -> Any:
        return [[estimate(x) for x in row] for row in as_it_is(*args, **kwargs)]

    return shanks


def compared(y: Any) -> None:
    """A value of a function, whose sign alone says how a bracket is halved."""


def _bisection_refused(y: Any) -> Any:
    raise MissingRuleError(
        f"findroot with solver='bisect' has no derivative: {BY_SIGNS}\n  To go on: another solver, or one step of "
        "Newton's method from its result.\n  See docs: errors#missing-rule"
    )


rulebook.add(Rule(compared, "full", _bisection_refused, source=SOURCE, refuses=BY_SIGNS))


def bisection(as_it_is: Callable[..., Any]) -> Callable[..., Any]:
    """The steps of a bisection; `as_it_is` is mpmath's own."""

    def steps(solver: Any) -> Any:
        compared(solver.f(solver.a))
        return as_it_is(solver)

    return steps


def copy_of(function: FunctionType) -> FunctionType:
    """A function of the same code, which is not found by the rule of `function`."""
    return FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def rules() -> Iterator[Rule]:
    """Rules of mpmath's matrices, and of its extrapolation."""
    matrices = sys.modules.get("mpmath.matrices.matrices")
    cls = getattr(matrices, "_matrix", None)
    for name, definition in (("__setitem__", setter), ("_matrix__set_element", lambda _: set_element)):
        function = vars(cls).get(name) if cls is not None else None
        if isinstance(function, FunctionType):
            yield Rule(function, "composed", definition=definition(copy_of(function)), source=SOURCE)
    solver = getattr(sys.modules.get("mpmath.calculus.optimization"), "Bisection", None)
    iterate = vars(solver).get("__iter__") if solver is not None else None
    if isinstance(iterate, FunctionType):
        yield Rule(iterate, "composed", definition=bisection(copy_of(iterate)), source=SOURCE)
    context = getattr(sys.modules.get("mpmath"), "mp", None)
    shanks = getattr(getattr(context, "shanks", None), "__func__", None)
    if isinstance(shanks, FunctionType):
        yield Rule(shanks, "composed", definition=extrapolation(copy_of(shanks)), source=SOURCE)


def wait() -> None:
    """Have the rules entered when a program first calls a function of these modules."""
    for module in ("mpmath.matrices.matrices", "mpmath.calculus.extrapolation", "mpmath.calculus.optimization"):
        rulebook.when_met(module, rules)
