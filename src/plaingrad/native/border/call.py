"""The native tier from outside: arguments in, gradients out; and Numba functions met by the plain tier."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import NumbaError

from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.reverse.run import fingerprint, refuse_changed
from plaingrad.engine.values.borrowed import is_lent, of_their_own
from plaingrad.errors import AliasError, NativeError, NonScalarOutputError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.border import shortcuts
from plaingrad.native.border.aliases import arrays_in, live_arrays, refuse_aliases
from plaingrad.native.border.conversion import Taken, bound, packed, signature_of, taken, type_of
from plaingrad.native.border.counting import refuse_counted, taken_as_real, whole_numbers, with_tangents
from plaingrad.native.border.directions import directions, order_of, shadows_of
from plaingrad.native.border.records import as_real
from plaingrad.native.compile import build
from plaingrad.native.compile.build import Derived
from plaingrad.native.frontend.current import as_now
from plaingrad.native.frontend.meaning import (
    as_declared,
    compare,
    is_to_compare,
)
from plaingrad.native.frontend.translation import program
from plaingrad.native.frontend.typed_ir import in_short
from plaingrad.native.modes.known_zeros import zeros_among
from plaingrad.native.program.dispatchers import is_dispatcher, python_function
from plaingrad.native.program.per_function import PerFunction
from plaingrad.native.program.value_types import has_tangent, part_types
from plaingrad.rewrite import PLAIN, in_force
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero

FEW_COLUMNS = 16  # for so many inputs, a gradient may be taken in one sweep of forward mode


def derived(
    mode: str, f: Any, signature: tuple[Any, ...], active: tuple[int, ...], zeros: tuple[int, ...] = ()
) -> Derived:
    """`build.derived`, with no derivative in force: Numba is not to be differentiated."""
    return plainly(build.derived, mode, f, signature, active, zeros)


def plainly(f: Any, *args: Any) -> Any:
    """f(*args) with no derivative in force.

    Raises:
        NativeError: Numba cannot compile what was derived.
    """
    try:
        return in_force(PLAIN, f, *args)
    except (NumbaError, AssertionError, NotImplementedError) as error:
        if not isinstance(error, NumbaError) and not is_of_numba(error):
            raise
        raise NativeError(
            f"Numba cannot compile the derivative, `{name_of(f)}`:\n  {in_short(error)}\n"
            "  To go on: tier='plain' differentiates the function as it is.\n  See docs: errors#native"
        ) from error


def is_of_numba(error: BaseException) -> bool:
    """Whether an exception was raised by Numba's own code, not by a compiled function."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).startswith("numba.")


def name_of(f: Any) -> Any:
    """What a derived function, or a method of its sweeps, is called in messages."""
    owner = getattr(f, "__self__", None)
    return getattr(owner if isinstance(owner, (build.Sweeps, build.Recorded)) else f, "__name__", f)


def value_and_gradient(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any], has_aux: bool = False
) -> tuple[Any, tuple[Any, ...]]:
    """(f(*args), the gradient of each of the arguments at `positions`), natively.

    Args:
        f: the function or dispatcher.
        args: its arguments.
        positions: of the differentiated ones.
        kwargs: its arguments by keyword.
        has_aux: `f` returns (y, aux); only `y` is differentiated.
    """
    call = taken(f, args, positions, kwargs)
    pushed = None if has_aux else by_columns(call)
    if pushed is not None:
        if not kwargs:
            keep_columns(f, args, positions, call)
        return pushed
    zeros = zeros_among(python_function(call.f), call.signature, call.args, call.positions)
    found = derived("pullback", call.f, call.signature, call.positions, zeros)
    refuse_aliases(found, call.args)
    shadows = shadows_of(call.args, call.positions)
    if found.result in ("float64", "float32") and not has_aux:
        value, *out = plainly(found.run, *call.args, 1.0, *shadows)
        compared(call.f, call.args, call.signature, value)
        if not kwargs:
            shortcuts.keep(f, args, positions, call, shortcuts.in_sweeps(found))
        return value, call.gradients(out, shadows)
    t = result_type(call.f, call.signature)  # by the front end, in every process
    out = list(plainly(found.run, *call.args, *unit_seeds(f, t, has_aux), *shadows))
    value = rebuilt(t, out) if has_aux else out.pop(0)
    compared(call.f, call.args, call.signature, value)
    return value, call.gradients(out, shadows)


def by_columns(call: Taken) -> tuple[Any, tuple[Any, ...]] | None:
    """The value and the gradients in one sweep of forward mode; None where reverse mode is to be taken.

    Forward mode serves few inputs of a program that makes no array of tangents: it keeps nothing. It multiplies a
    slope with the tangents of inputs that it has nothing to do with, which are zero: where that slope is infinite,
    nan comes of it that reverse mode has not.
    """
    inputs = [x for k in call.positions for x in leaves(call.args[k])]
    try:
        found = columns_of(call, inputs)
        if found is None:
            return None
        out = plainly(found.run, *call.args, 0)
    except NativeError:
        return None
    if len(out) != 2 or not isinstance(out[0], (float, np.floating)):
        return None
    value, row = out
    compared(call.f, call.args, call.signature, value)
    if not all(map(math.isfinite, row)) and not plainly(effects_of, call.f, call.signature).once:
        return None
    bars: list[Any] = []
    shadows: list[Any] = []
    start = 0
    for x in inputs:
        if isinstance(x, np.ndarray):
            shadows.append(np.array(row[start : start + x.size], x.dtype).reshape(x.shape))
        else:
            bars.append(row[start])
        start += np.size(x)
    return value, call.gradients(bars, shadows)


def columns_of(call: Taken, inputs: list[Any]) -> Derived | None:
    """The sweep of forward mode that `by_columns` takes for these inputs; None where reverse mode is to be taken.

    Raises:
        NativeError: it cannot be derived natively.
    """
    columns = sum(np.size(x) for x in inputs)
    n = next((n for n in build.WIDTHS if n >= columns), None)
    if columns > FEW_COLUMNS or n is None or any(np.iscomplexobj(x) for x in inputs):
        return None
    if "lanes_between" in derived("pullback", call.f, call.signature, call.positions).calls:
        return (
            None  # a loop of sums whose iterations are done several at once: faster, however few the inputs
        )
    found = derived(f"gradient{n}", call.f, call.signature, call.positions)
    return None if found.writes or found.calls & {"zero_lanes_like", "copied"} else found


def keep_columns(f: Any, args: tuple[Any, ...], positions: tuple[int, ...], call: Taken) -> None:
    """Keep that calls like this one are done by `by_columns`."""
    found = columns_of(call, [x for k in call.positions for x in leaves(call.args[k])])
    if found is not None:
        draws = bool(plainly(effects_of, call.f, call.signature).once)
        shortcuts.keep(f, args, positions, call, shortcuts.in_columns(found, draws))


def pullback_of(call: Taken) -> tuple[Any, Any]:
    """(the result, the map from cotangents of its leaves to those of the leaves of the differentiated arguments)."""
    found = derived("pullback", call.f, call.signature, call.positions)
    inputs = [x for k in call.positions for x in leaves(call.args[k])]
    recorded = plainly(found.run.recorded, *call.args)

    def pull(seeds: list[Any]) -> list[Any]:
        shadows = shadows_of(call.args, call.positions)
        bars, arrays = iter(plainly(recorded.pulled, *seeds, *shadows)), iter(shadows)
        return [next(arrays) if isinstance(x, np.ndarray) else next(bars) for x in inputs]

    return rebuilt(result_type(call.f, call.signature), list(recorded.results)), pull


def leaves(x: Any) -> list[Any]:
    """The numbers and arrays in `x` that have a tangent, in order; `x` is as compiled functions take or give it."""
    if isinstance(x, tuple):
        return [leaf for part in x for leaf in leaves(part)]
    if isinstance(x, np.ndarray):
        return [x] if x.dtype.kind in "fc" else []
    return [x] if isinstance(x, (float, complex, np.inexact)) else []


def unit_seeds(f: Any, t: Any, has_aux: bool) -> list[Any]:
    """The cotangents of a result of type `t`, y or (y, aux): 1 for y, 0 for every number and array in aux.

    A y without a tangent, a whole number, has none.

    Raises:
        NonScalarOutputError: y is no real number, or with `has_aux` the function does not return a pair.
    """
    if has_aux and (not isinstance(t, types.BaseTuple) or len(list(t)) != 2):
        raise NonScalarOutputError(f"with has_aux=True the function must return (y, aux), not a {t}")
    y, *aux = list(t) if has_aux else [t]
    is_number = isinstance(y, (types.Float, types.Integer)) and not isinstance(y, types.Boolean)
    if not is_number and not (
        isinstance(y, types.Array) and y.ndim == 0 and isinstance(y.dtype, types.Float)
    ):
        raise NonScalarOutputError(
            f"grad needs one real number, but {getattr(f, '__name__', 'the function')} returns a {y}.\n"
            "  To go on: return a float, or use vjp.\n  See docs: errors#non-scalar-output"
        )
    one = np.ones((), y.dtype.name) if isinstance(y, types.Array) else 1.0
    return [one for _ in tangent_leaves(y)] + [0.0 for part in aux for _ in tangent_leaves(part)]


def tangent_leaves(t: Any) -> list[Any]:
    """The types of the numbers and arrays with a tangent in a type."""
    if isinstance(t, types.BaseTuple):
        return [leaf for part in part_types(t) for leaf in tangent_leaves(part)]
    return [t] if has_tangent(t) else []


def vjp(
    f: Any, args: tuple[Any, ...], fixed: tuple[int, ...] = ()
) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """(f(*args), the map from a cotangent of it to those of the arguments); `f` runs once, writes and draws as it does.

    A cotangent has the structure that `COTANGENT.of` gives it; an argument without a tangent has None. Whole numbers at
    the positions `fixed` are not taken as real ones.
    """
    call, positions = plainly(taken_as_real, f, args, fixed)
    refuse_aliases(derived("pullback", call.f, call.signature, call.positions), call.args)
    call = replace(call, args=unlent(call.f, call.signature, call.args), given=of_their_own(call.given))
    y, pull = pullback_of(call)
    compared(call.f, call.args, call.signature, y)
    read = [a for x in (*call.args, y) for a in arrays_in(x)] + live_arrays(call.f)
    check = unchanged(read)
    count = len(args)

    def pullback(y_bar: Any) -> tuple[Any, ...]:
        check()
        found = call.gradients_of(pull(seeds_of(y, y_bar)))
        named = dict(zip(positions, found, strict=True))
        return tuple([named.get(k) for k in range(count)])

    return y, pullback


def unchanged(arrays: list[np.ndarray]) -> Callable[[], None]:
    """A function that refuses to go on when the contents of `arrays` are no longer what they are now."""
    read = [a for a in arrays if not is_lent(owner_of(a))]  # memory that is lent may be given back
    before = [fingerprint(a) for a in read]

    def check() -> None:
        for a, then in zip(read, before, strict=True):
            if fingerprint(a) != then:
                refuse_changed(a)

    return check


def unlent(f: Any, signature: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`args` for a pullback to keep: copies of the arrays whose memory may be given back before it is called.

    Raises:
        AliasError: the function writes into its arguments, or hands one back, and there are such arrays.
    """
    copies = of_their_own(args)
    if copies is not args:
        effects = plainly(effects_of, f, signature)
        if effects.writes or effects.aliases:
            raise AliasError(
                f"`{getattr(f, '__name__', f)}` writes into its arguments or hands one back, and is given an array in "
                "memory that NumPy does not own (a memory map, a buffer), which its pullback would have to keep.\n"
                "  To go on: pass a copy, or use grad.\n  See docs: errors#alias"
            )
    return copies


def jvp(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...], fixed: tuple[int, ...] = ()) -> tuple[Any, Any]:
    """(f(*args), its tangent along `dots`, `ZeroTangent` where nothing varies); `f` runs once.

    Whole numbers at the positions `fixed` are not taken as real ones.
    """
    whole = whole_numbers(args)
    moved = {k: d for k, d in enumerate(dots) if k in (*with_tangents(args), *whole) and not is_zero(d)}
    if moved and not set(moved).intersection(whole):
        positions = tuple(sorted(moved))
        call = taken(f, args, positions, {})
    else:
        call, positions = plainly(taken_as_real, f, args, fixed)
        refuse_counted(args, positions, dots)
    found = derived("pushforward", call.f, call.signature, call.positions)
    refuse_aliases(found, call.args)
    given = [dot for k in positions for x in [as_real(args[k])] for dot in directions(
        x, type_of(x, ""), moved.get(k, ZeroTangent))]  # fmt: skip
    out = list(plainly(found.run, *call.args, *given))
    y = rebuilt(result_type(call.f, call.signature), out)
    compared(call.f, call.args, call.signature, y)
    return y, as_tangent(y, out)


# -- Numba functions met by the plain tier -----------------------------------------------------------------------------


def met(f: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]:
    """(what to derive, the arguments as it takes them, their types, the positions of those with a tangent)."""
    signature = signature_of(args)
    args = packed(args)
    args, signature = as_declared(f, args, signature, differentiable(signature))
    return as_now(f, signature), args, signature, differentiable(signature)


def compared(f: Any, args: tuple[Any, ...], signature: tuple[Any, ...], y: Any) -> None:
    """Compare the first value with that of the dispatcher, where this does nothing else.

    Raises:
        NativeError: it is another one.
    """
    if is_to_compare(f, signature):
        effects = plainly(effects_of, f, signature)
        if not effects.writes and not effects.once:
            plainly(compare, f, args, signature, y)


def compared_apart(f: Any, args: tuple[Any, ...], signature: tuple[Any, ...]) -> None:
    """`compared`, for a derivative in which no value is computed: that of the stand-in `f`, which Numba compiles, is.

    Raises:
        NativeError: it is another one.
    """
    if is_to_compare(f, signature):
        effects = plainly(effects_of, f, signature)
        if not effects.writes and not effects.once:
            plainly(compare, f, args, signature, plainly(f, *args))


_result_types = PerFunction()


def result_type(f: Any, signature: tuple[Any, ...]) -> Any:
    """The Numba type of the result of a function."""
    known = _result_types.of(python_function(f))
    if signature not in known:
        known[signature] = types.unliteral(plainly(program, f, signature).result)
    return known[signature]


def rebuilt(t: Any, out: list[Any]) -> Any:
    """A result of type `t` from its leaves, which are taken from the front of `out`."""
    if isinstance(t, types.BaseTuple) and has_tangent(t):
        parts = [rebuilt(part, out) for part in part_types(t)]
        return t.instance_class(*parts) if isinstance(t, types.BaseNamedTuple) else tuple(parts)
    return out.pop(0)


def as_tangent(y: Any, dots: list[Any]) -> Any:
    if isinstance(y, tuple):
        return tuple([as_tangent(part, dots) for part in y])
    if isinstance(y, (float, complex, np.floating, np.complexfloating)):
        return dots.pop(0)
    if isinstance(y, np.ndarray) and y.dtype.kind in "fc":
        return dots.pop(0)
    return NoTangent


def seeds_of(y: Any, y_bar: Any) -> list[Any]:
    """The cotangents of a result, or the tangents of an argument, one for each number or array in it."""
    if isinstance(y, tuple):
        parts = [ZeroTangent] * len(y) if y_bar is ZeroTangent else y_bar
        return [seed for part, bar in zip(y, parts, strict=True) for seed in seeds_of(part, bar)]
    if isinstance(y, np.ndarray):
        if y.dtype.kind not in "fc":
            return []
        if y_bar is ZeroTangent:
            return [np.zeros(y.shape, y.dtype, order_of(y))]
        return [np.asarray(y_bar, y.dtype, order=order_of(y))]
    if isinstance(y, (float, np.floating)):
        return [0.0 if y_bar is ZeroTangent else float(y_bar)]
    if isinstance(y, (complex, np.complexfloating)):
        return [0j if y_bar is ZeroTangent else complex(y_bar)]
    return []


def differentiable(signature: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions of arguments that have a tangent."""
    return tuple(k for k, t in enumerate(signature) if has_tangent(t))


Callback = Callable[..., Any]
__all__ = [
    "as_now",
    "bound",
    "is_dispatcher",
    "signature_of",
    "value_and_gradient",
]
