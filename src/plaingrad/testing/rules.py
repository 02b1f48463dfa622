"""`check_rule`: everything that is promised of a derivative, looked at for one function at one point."""

# One thing: the docstring of `check_rule` is the list of all promises, and stands in the reference.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plaingrad.api.leaves import check_callable
from plaingrad.testing.alone import look_at_applied_rules, look_at_frule, look_at_rrule
from plaingrad.testing.case import Case, returning_what_is_written
from plaingrad.testing.modes import look_at_modes, look_at_second_order
from plaingrad.testing.numbers import look_at_differences
from plaingrad.testing.primal import look_at_primal
from plaingrad.testing.promises import look_at_accumulation, look_at_gradient
from plaingrad.testing.structures import leaves_of


def check_rule(
    f: Any,
    *args: Any,
    argnums: int | tuple[int, ...] | None = None,
    rtol: float = 1e-6,
    atol: float = 0.0,
    seed: int = 0,
    state: bool = True,
    differences: bool = True,
    forward: bool = True,
    second_order: bool = True,
    chunks: bool = True,
    accumulation: bool = True,
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Check every promise that plaingrad makes of the derivative of `f`, at these arguments.

    `f` is any callable, with a rule or without one; or a computed attribute (`complex.real`). Looked at are:

    - the primal: value, type and identity of the result are those of a plain call, in every mode; an exception is the
      same exception; arguments, globals, closures, defaults and random generators are left as a plain call leaves them;
    - the rule alone, if there is one, in both directions: one cotangent an argument, of a type and shape that fit it;
      `NoTangent` only where there is no tangent space and `ZeroTangent` only where there is one; linear; the same when
      called again; nothing captured, given or returned earlier is changed; each `Thunk` computed at most once, in any
      order;
    - the gradient: its exact types, shapes and dtypes; linear; the same for a postponed cotangent (a `Thunk`), for one
      output at a time, and for one argument at a time; in memory of its own; accumulated where `f` is called twice, and
      where one value is passed as two arguments;
    - its numbers: against central differences at many steps, extrapolated; against the complex step or mpmath where
      rounding blinds differences; and against forward mode, <y_bar, y_dot> = <x_bar, x_dot>;
    - the rule applied by hand, `rrule(f, *args)` and `frule(Dual(f, NoTangent), ...)`;
    - chunks of tangents against one tangent at a time;
    - second derivatives: reverse over reverse, forward over reverse and reverse over forward against each other, and
      against differences of the gradient.

    Args:
        f: the function.
        *args: its positional arguments. Those that hold real or complex numbers or arrays are differentiated.
        argnums: the positions to differentiate, if not all of those; an int there is taken as a real number.
        rtol: relative tolerance of the differences.
        atol: absolute tolerance of the differences, beyond the rounding that is to be expected of them.
        seed: of the random tangents and cotangents.
        state: compare what is left changed.
        differences: compare with differences.
        forward: look at forward mode.
        second_order: look at second derivatives.
        chunks: look at chunks of tangents.
        accumulation: look at values that are used twice.
        kwargs: keyword arguments of `f` that have the name of one of these options.
        **options: keyword arguments of `f`.

    Raises:
        AssertionError: something is wrong. Each line of the message says which check failed, where, and the numbers.

    Examples:
        >>> import math
        >>> check_rule(math.hypot, 3.0, 4.0)
        >>> import numpy as np
        >>> check_rule(np.sum, np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    """
    if not callable(f) and not hasattr(f, "__get__"):
        check_callable(f, "check_rule")
    case = Case(f, args, {**options, **(kwargs or {})}, argnums, rtol, atol, seed)
    problems = run(case, state, differences, forward, second_order, chunks, accumulation)
    if problems:
        what = "rule for" if case.rule is not None else "derivative of"
        raise AssertionError(f"the {what} {case.name} is wrong:\n  " + "\n  ".join(problems))


def run(
    case: Case,
    state: bool,
    differences: bool,
    forward: bool,
    second_order: bool,
    chunks: bool,
    accumulation: bool,
) -> list[str]:
    """Every check that is asked for; the lines of the report."""
    case.state = state
    case.call_plainly()
    rule = case.rule
    if rule is not None and rule.kind not in ("no_tangent", "mover", "inspector", "higher_order", "composed"):
        if rule.kind != "scalar" or not case.kwargs:
            look_at_rrule(case, rule)
            if forward:
                look_at_frule(case, rule)
    if any(any(True for _ in leaves_of(x, "")) for x in case.written(case.args, case.kwargs)):
        case.f = returning_what_is_written(case.f, case.written)  # its derivative is looked at too
        case.call_plainly()
    if not look_at_primal(case, forward):
        return case.problems
    if not case.active:
        return case.problems
    made = look_at_gradient(case)
    if made is None:
        return case.problems
    y_bar, bars = made
    if differences and case.smooth:
        with case.part("differences"):
            look_at_differences(case, y_bar, bars)
    if case.smooth:
        look_at_applied_rules(case, y_bar, bars, forward)
    if accumulation:
        look_at_accumulation(case, y_bar, bars)
    if forward:
        look_at_modes(case, y_bar, bars, chunks)
    if second_order:
        look_at_second_order(case, y_bar, forward, differences and case.smooth)
    return case.problems
