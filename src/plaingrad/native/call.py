"""The native tier from outside: arguments in, gradients out; and Numba functions met by the plain tier."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaError

from plaingrad.errors import AliasError, ArgumentError, NativeError, NonScalarOutputError
from plaingrad.native import build
from plaingrad.native.activity import has_tangent, is_array, is_real, part_types
from plaingrad.native.build import Derived
from plaingrad.native.effects import effects_of
from plaingrad.native.frontend import dispatcher_of, is_dispatcher, program, python_function
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.rulebook import Rule
from plaingrad.tangents import NoTangent, ZeroTangent


def derived(mode: str, f: Any, signature: tuple[Any, ...], active: tuple[int, ...]) -> Derived:
    """`build.derived`, with no derivative in force: Numba is not to be differentiated."""
    return plainly(build.derived, mode, f, signature, active)


def plainly(f: Any, *args: Any) -> Any:
    """f(*args) with no derivative in force.

    Raises:
        NativeError: Numba cannot compile what was derived.
    """
    token = CURRENT.set(PLAIN)
    try:
        return f(*args)
    except NumbaError as error:
        raise NativeError(
            f"Numba cannot compile the derivative, `{getattr(f, '__name__', f)}`:\n  {str(error).strip()}\n"
            "  To go on: tier='plain' differentiates the function as it is.\n  See docs: errors#native"
        ) from error
    finally:
        CURRENT.reset(token)


def value_and_gradient(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """(f(*args), the gradient of each of the arguments at `positions`), natively."""
    args = bound(f, args, kwargs)
    args = tuple([float(x) if k in positions and _is_int(x) else x for k, x in enumerate(args)])
    found = pullback_for(f, args, positions)
    refuse_aliases(found, args)
    shadows, signature = shadows_of(args, positions), signature_of(args)
    out = plainly(found.run, *args, 1.0, *shadows)
    value = out[0]
    if not isinstance(value, (float, np.floating)) or isinstance(value, complex):
        raise NonScalarOutputError(
            f"grad needs one real number, but {getattr(f, '__name__', 'the function')} returned "
            f"{type(value).__name__}.\n  To go on: return a float, or use vjp.\n  See docs: errors#non-scalar-output"
        )
    return value, cotangents(args, signature, positions, list(out[1:]), shadows)


def pullback_for(f: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> Derived:
    """The compiled pullback for these arguments."""
    signature = signature_of(args)
    for k in positions:
        if not has_tangent(signature[k]):
            raise ArgumentError(
                f"argument {k} is of Numba type {signature[k]}, which has no tangent.\n  See docs: errors#argument"
            )
    return derived("pullback", f, signature, positions)


def bound(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, defaults filled in."""
    function = python_function(f)
    if not kwargs and not getattr(function, "__defaults__", None):
        return args
    arguments = inspect.signature(function).bind(*args, **kwargs)
    arguments.apply_defaults()
    if arguments.kwargs:
        raise NativeError(
            f"`{function.__name__}` has keyword-only arguments; natively they must be positional.\n"
            "  See docs: errors#native"
        )
    return arguments.args


def signature_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The Numba types of arguments."""
    found = []
    for k, x in enumerate(args):
        try:
            t = numba.typeof(x)
        except ValueError:
            t = None
        if t is None or isinstance(t, (types.List, types.Set, types.PyObject)):
            raise NativeError(
                f"argument {k}, of type {type(x).__name__}, is nothing that Numba takes.\n  To go on: pass numbers, "
                "arrays and tuples of these, or use tier='plain'.\n  See docs: errors#native"
            )
        found.append(t)
    return tuple(found)


def refuse_aliases(found: Derived, args: tuple[Any, ...]) -> None:
    """Arrays that share memory, one of which is written, have no derivatives of their own."""
    if not found.writes:
        return
    every = [x for arg in args for x in _arrays(arg)]
    for k, a in enumerate(every):
        for b in every[:k]:
            if np.may_share_memory(a, b) and np.shares_memory(a, b):
                raise AliasError(
                    "two of the arguments share memory, and the function writes into its arguments.\n"
                    "  To go on: pass a copy of one of them.\n  See docs: errors#alias"
                )


def _arrays(x: Any) -> list[np.ndarray]:
    if isinstance(x, np.ndarray):
        return [x]
    return [a for part in x for a in _arrays(part)] if isinstance(x, tuple) else []


def _is_int(x: Any) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def shadows_of(args: tuple[Any, ...], positions: tuple[int, ...]) -> list[np.ndarray]:
    """Zeros for every differentiated array."""
    return [np.zeros(x.shape, x.dtype) for k in positions for x in _arrays(args[k]) if x.dtype.kind in "fc"]


def cotangents(
    args: tuple[Any, ...],
    signature: tuple[Any, ...],
    positions: tuple[int, ...],
    bars: list[Any],
    shadows: list[Any],
) -> tuple[Any, ...]:
    """The gradient of each differentiated argument, with its structure."""
    bars, shadows = list(bars), list(shadows)
    return tuple([_mirrored(args[k], signature[k], bars, shadows) for k in positions])


def _mirrored(x: Any, t: Any, bars: list[Any], shadows: list[Any]) -> Any:
    if is_real(t):
        bar = bars.pop(0)
        return type(x)(bar.real if not isinstance(t, types.Complex) and isinstance(bar, complex) else bar)
    if is_array(t):
        return shadows.pop(0)
    if isinstance(t, types.BaseTuple):
        parts = [_mirrored(part, kind, bars, shadows) for part, kind in zip(x, t, strict=True)]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return None


# -- Numba functions met by the plain tier -----------------------------------------------------------------------------


def rule_of(dispatcher: Any) -> Rule:
    """The rule of a Numba function: its derived pullback and pushforward."""

    def native_rrule(*args: Any) -> Any:
        y = plainly(dispatcher, *args)
        compile_pullback(dispatcher, args, y)

        def native_pullback(y_bar: Any) -> tuple[Any, ...]:
            return pulled_back(dispatcher, args, y, y_bar)

        return y, native_pullback

    def native_frule(*args: Any) -> Any:
        y = plainly(dispatcher, *args)

        def native_pushforward(dots: tuple[Any, ...]) -> Any:
            return pushed_forward(dispatcher, args, dots)

        return y, native_pushforward

    return Rule(
        dispatcher, "full", native_rrule, native_frule, source=f"native:{dispatcher.py_func.__qualname__}"
    )


def compile_pullback(f: Any, args: tuple[Any, ...], y: Any) -> None:
    """Compile the pullback now, while the plain tier can still be taken instead.

    Raises:
        NativeError: Numba cannot compile it.
    """
    signature = signature_of(args)
    positions = differentiable(signature)
    run = derived("pullback", f, signature, positions).run
    if hasattr(run, "compile"):
        values = (*args, *seeds_of(y, ZeroTangent), *shadows_of(args, positions))
        plainly(run.compile, tuple([numba.typeof(x) for x in values]))


def pulled_back(f: Any, args: tuple[Any, ...], y: Any, y_bar: Any) -> tuple[Any, ...]:
    """The cotangents of all arguments of a Numba function."""
    signature = signature_of(args)
    positions = differentiable(signature)
    found = derived("pullback", f, signature, positions)
    shadows = shadows_of(args, positions)
    out = plainly(found.run, *args, *seeds_of(y, y_bar), *shadows)
    count = len(out) - sum(1 for k in positions for _ in _scalars(signature[k]))
    bars = cotangents(args, signature, positions, list(out[count:]), shadows)
    named = dict(zip(positions, bars, strict=True))
    return tuple([named.get(k, NoTangent) for k in range(len(args))])


def pushed_forward(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...]) -> Any:
    """The tangent of the result of a Numba function."""
    signature = signature_of(args)
    zeros = (None, ZeroTangent, NoTangent)
    positions = tuple(k for k in differentiable(signature) if not any(dots[k] is zero for zero in zeros))
    if not positions:
        return ZeroTangent
    found = derived("pushforward", f, signature, positions)
    given = [dot for k in positions for dot in seeds_of(args[k], dots[k])]
    out = list(plainly(found.run, *args, *given))
    y, y_dots = _result_of(found, f, signature, out)
    return _as_tangent(y, y_dots)


def _result_of(found: Derived, f: Any, signature: tuple[Any, ...], out: list[Any]) -> tuple[Any, list[Any]]:
    """(the result of a pushforward's call, the tangents of its leaves)."""
    y = _rebuilt(result_type(f, signature), out)
    return y, out


_result_types: dict[Any, Any] = {}


def result_type(f: Any, signature: tuple[Any, ...]) -> Any:
    """The Numba type of the result of a function."""
    key = python_function(f), signature
    if key not in _result_types:
        _result_types[key] = types.unliteral(plainly(program, f, signature).result)
    return _result_types[key]


def _rebuilt(t: Any, out: list[Any]) -> Any:
    if isinstance(t, types.BaseTuple) and has_tangent(t):
        return tuple([_rebuilt(part, out) for part in part_types(t)])
    return out.pop(0)


def _as_tangent(y: Any, dots: list[Any]) -> Any:
    if isinstance(y, tuple):
        return tuple([_as_tangent(part, dots) for part in y])
    if isinstance(y, (float, complex, np.floating, np.complexfloating)):
        return dots.pop(0)
    if isinstance(y, np.ndarray) and y.dtype.kind in "fc":
        return dots.pop(0)
    return NoTangent


def compiled_form(f: Any, args: tuple[Any, ...], mode: str) -> Any:
    """`f` as a dispatcher whose derivative is taken natively, as one step.

    Raises:
        NativeError: its derivative cannot be derived for these arguments.
    """
    dispatcher = f if is_dispatcher(f) else dispatcher_of(f)
    signature = signature_of(args)
    derived(mode, dispatcher, signature, differentiable(signature))
    if not takes(dispatcher, args):
        raise NativeError(
            f"`{getattr(f, '__name__', f)}` writes into its arguments, hands one back, draws random numbers or prints; "
            "natively only grad and value_and_grad take such a function.\n"
            "  To go on: tier='plain' differentiates it as it is.\n  See docs: errors#native"
        )
    return dispatcher


def _scalars(t: Any) -> list[Any]:
    if is_real(t):
        return [t]
    return [s for part in part_types(t) for s in _scalars(part)] if isinstance(t, types.BaseTuple) else []


def seeds_of(y: Any, y_bar: Any) -> list[Any]:
    """The cotangents of a result, one for each number or array in it."""
    if isinstance(y, tuple):
        parts = [ZeroTangent] * len(y) if y_bar is ZeroTangent else y_bar
        return [seed for part, bar in zip(y, parts, strict=True) for seed in seeds_of(part, bar)]
    if isinstance(y, np.ndarray):
        if y.dtype.kind not in "fc":
            return []
        return [np.zeros(y.shape, y.dtype) if y_bar is ZeroTangent else np.ascontiguousarray(y_bar, y.dtype)]
    if isinstance(y, (float, np.floating)):
        return [0.0 if y_bar is ZeroTangent else float(y_bar)]
    if isinstance(y, (complex, np.complexfloating)):
        return [0j if y_bar is ZeroTangent else complex(y_bar)]
    return []


def differentiable(signature: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions of arguments that have a tangent."""
    return tuple(k for k, t in enumerate(signature) if has_tangent(t))


def takes(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether a Numba function met by the plain tier is differentiated natively for these arguments.

    One that writes into its arguments, hands one back, draws random numbers or prints (it is run again on the way
    back), or that cannot be derived, is differentiated as the Python function it was.
    """
    try:
        signature = signature_of(args)
        effects = plainly(effects_of, f, signature)
        if effects.writes or effects.aliases or effects.once:
            return False
        derived("pullback", f, signature, differentiable(signature))
        return True
    except NativeError:
        return False


Callback = Callable[..., Any]
__all__ = ["is_dispatcher", "rule_of", "takes", "value_and_gradient"]
