"""Native calls inside of plain programs: the rule by which the plain tier differentiates a dispatcher."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.errors import NativeError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.analysis.users_functions import has_own_rule
from plaingrad.native.border import call
from plaingrad.native.border.aliases import live_arrays
from plaingrad.native.border.call import (
    as_tangent,
    compared,
    differentiable,
    met,
    plainly,
    rebuilt,
    result_type,
    seeds_of,
)
from plaingrad.native.border.conversion import bound, signature_of
from plaingrad.native.border.directions import cotangents, shadows_of
from plaingrad.native.border.linear import applied, is_nothing
from plaingrad.native.frontend.current import as_now, dispatcher_of
from plaingrad.native.frontend.meaning import is_known_to_differ, refuse_source
from plaingrad.native.lowering.stencil_kernels import captured
from plaingrad.rulebook import Rule
from plaingrad.tangents import NoTangent, ZeroTangent


def rule_of(dispatcher: Any) -> Rule:
    """The rule of a Numba function: its derived pullback and pushforward."""

    def native_rrule(*given: Any) -> Any:
        now, args, signature, positions = met(dispatcher, given)
        live = live_arrays(now)
        sweeps = call.derived("pullback", now, signature, positions).run
        recorded = plainly(sweeps.recorded, *args)
        y = rebuilt(result_type(now, signature), list(recorded.results))
        compared(now, args, signature, y)
        # now, while the plain tier can still be taken instead
        plainly(recorded.compile, *seeds_of(y, ZeroTangent), *shadows_of(args, positions))

        def pull(y_bar: Any) -> tuple[Any, ...]:
            return as_given(given, bars_of(args, signature, positions, recorded, seeds_of(y, y_bar)))

        def native_pullback(y_bar: Any) -> tuple[Any, ...]:
            return applied(pull, push_of(now, args, live), y_bar)  # type: ignore[no-any-return]

        return y, native_pullback

    def native_frule(*given: Any) -> Any:
        y = plainly(dispatcher, *given)
        now, args, signature, positions = met(dispatcher, given)

        live = live_arrays(now)

        def pull(y_bar: Any) -> tuple[Any, ...]:
            recorded = plainly(call.derived("pullback", now, signature, positions).run.recorded, *args)
            return as_given(given, bars_of(args, signature, positions, recorded, seeds_of(y, y_bar)))

        def native_pushforward(dots: tuple[Any, ...]) -> Any:
            return applied(push_of(now, args, live), pull, tuple(dots))

        return y, native_pushforward

    return Rule(
        dispatcher, "full", native_rrule, native_frule, source=f"native:{dispatcher.py_func.__qualname__}"
    )


@functools.lru_cache(256)
def of_stencil(f: Any, count: int) -> Any:
    """A dispatcher of `count` arguments that calls the stencil `f`."""
    given = ", ".join([f"x{n}" for n in range(count)])
    return dispatcher_of(captured(f"def form({given}):\n    return kernel({given})\n", {"kernel": f}))


def bars_of(
    args: tuple[Any, ...],
    signature: tuple[Any, ...],
    positions: tuple[int, ...],
    recorded: Any,
    seeds: list[Any],
) -> tuple[Any, ...]:
    """The cotangents of all arguments, from those of the leaves of the result."""
    shadows = shadows_of(args, positions)
    bars = plainly(recorded.pulled, *seeds, *shadows)
    found = cotangents(args, signature, positions, list(bars), shadows)
    named = dict(zip(positions, found, strict=True))
    return tuple([named.get(k, NoTangent) for k in range(len(args))])


def as_given(given: Any, bar: Any) -> Any:
    """The cotangent of an argument, with a list where the argument `given` is one; compiled code takes tuples."""
    if not isinstance(given, (list, tuple)) or not isinstance(bar, tuple) or hasattr(given, "_fields"):
        return bar
    return type(given)(map(as_given, given, bar))


def push_of(f: Any, args: tuple[Any, ...], live: list[np.ndarray]) -> Callable[[Any], Any]:
    """The map from tangents of all arguments of a Numba function to that of its result.

    It reads the arrays `live` again. It holds them, so that the engine undoes what the program has written there since,
    and notices what was written after the call.
    """

    return functools.partial(_push, f, args, live)


def _push(f: Any, args: tuple[Any, ...], live: list[np.ndarray], dots: Any) -> Any:
    return pushed_forward(f, args, (ZeroTangent,) * len(args) if is_nothing(dots) else dots)


def pushed_forward(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...]) -> Any:
    """The tangent of the result of a Numba function."""
    signature = signature_of(args)
    zeros = (None, ZeroTangent, NoTangent)
    positions = tuple(k for k in differentiable(signature) if not any(dots[k] is zero for zero in zeros))
    if not positions:
        return ZeroTangent
    found = call.derived("pushforward", f, signature, positions)
    given = [dot for k in positions for dot in seeds_of(args[k], dots[k])]
    out = list(plainly(found.run, *args, *given))
    y = rebuilt(result_type(f, signature), out)
    compared(f, args, signature, y)
    return as_tangent(y, out)


def source_of(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The Python function behind a dispatcher, to be differentiated in its place.

    Raises:
        NativeError: it is another function than the dispatcher.
    """
    if not has_own_rule(f):
        try:
            signature = signature_of(bound(f, args, kwargs))
        except (NativeError, TypeError):
            return f.py_func
        refuse_source(f, signature)
    return f.py_func


def takes(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether a Numba function met by the plain tier is differentiated natively for these arguments.

    One that writes into its arguments, hands one back, draws random numbers or prints (it is run again on the way
    back), or that cannot be derived, is differentiated as the Python function it was.
    """
    try:
        if has_own_rule(f):
            return False
        now, args, signature, positions = met(f, args)
        effects = plainly(effects_of, now, signature)
        if effects.writes or effects.aliases or effects.once:
            return False
        call.derived("pullback", now, signature, positions)
        return not is_known_to_differ(now, signature)
    except NativeError:
        return False


def compiled_form(f: Any, args: tuple[Any, ...], mode: str) -> Any:
    """`f` as a dispatcher whose derivative is taken natively, as one step.

    Raises:
        NativeError: its derivative cannot be derived for these arguments.
    """
    signature = signature_of(args)
    dispatcher = as_now(f, signature)
    call.derived(mode, dispatcher, signature, differentiable(signature))
    if not takes(dispatcher, args):
        raise NativeError(
            f"`{getattr(f, '__name__', f)}` writes into its arguments, hands one back, draws random numbers or prints; "
            "natively only grad and value_and_grad take such a function.\n"
            "  To go on: tier='plain' differentiates it as it is.\n  See docs: errors#native"
        )
    return dispatcher
