"""Whole derivatives natively: Jacobians, Hessians, products with them, and derivatives by one number.

Results and arguments are flat here: `Leaf`s with shapes, in the order in which structures hold them; the public door
puts the structures on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba.core import sigutils, types

from plaingrad.engine.values.borrowed import of_their_own
from plaingrad.errors import ArgumentError, NativeError, NonScalarOutputError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.border import aliases, call, conversion, directions
from plaingrad.native.border.counting import refuse_counted, taken_as_real
from plaingrad.native.border.jacobian_columns import (
    CHUNK,
    ROW,
    Block,
    blocks_of_columns,
    by_columns,
    by_rows,
    chunk_or_single,
    copies,
    directions_of,
    inputs_of,
    name_of,
    seeds,
    width_for,
)
from plaingrad.native.border.linear import applied, is_nothing
from plaingrad.native.compile.build import WIDTHS
from plaingrad.native.frontend.current import original
from plaingrad.native.program.dispatchers import is_dispatcher
from plaingrad.native.program.value_types import has_complex, is_array
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero

ALL_FORWARD = 16  # for so many columns the number of rows is not asked for
MOST_ORDER = 3  # every order doubles the program


@dataclass(frozen=True, slots=True)
class Whole:
    """What a function returned, and all derivatives of it.

    Attributes:
        y: the result.
        x: the numbers and arrays in the differentiated arguments.
        blocks: for each number or array in the result, and each of `x`, the block: dy/dx.
    """

    y: Any
    x: list[Any]
    blocks: list[list[Block]]


def jacobian(
    f: Any,
    args: tuple[Any, ...],
    positions: tuple[int, ...],
    kwargs: dict[str, Any],
    mode: str,
    chunk: int | None,
    has_aux: bool = False,
) -> Whole:
    """f(*args) and its derivative by the arguments at `positions`; with `has_aux` that of its first part only.

    Raises:
        NativeError: it cannot be derived natively.
        NonScalarOutputError: with `has_aux`: it does not return a pair.
    """
    taken = conversion.taken(f, args, positions, kwargs)
    aliases.refuse_shared(taken.f, taken.args, taken.signature)
    t = call.result_type(taken.f, taken.signature)
    if has_aux:
        t = first_of_pair(t)
    leaves = call.tangent_leaves(t)
    count = len(leaves)
    columns = sum(map(directions_of, inputs_of(taken)))
    rows = fixed_size(leaves)
    if mode == "auto":
        mode = getattr(f, "__plaingrad_mode__", mode)
    if mode == "auto" and columns > ALL_FORWARD and rows is not None:
        mode = "reverse" if rows * ROW < columns / WIDTHS[-1] * CHUNK else "forward"
    found = None if mode == "reverse" else by_columns(taken, count, mode == "auto", chunk)
    y, blocks = by_rows(taken, count) if found is None else found
    call.compared(taken.f, taken.args, taken.signature, y)
    return in_order(taken, Whole(y, inputs_of(taken), blocks))


def first_of_pair(t: Any) -> Any:
    """The type of y, of a function that returns (y, aux).

    Raises:
        NonScalarOutputError: it returns something else.
    """
    if not isinstance(t, types.BaseTuple) or len(list(t)) != 2:
        raise NonScalarOutputError(f"with has_aux=True the function must return (y, aux), not a {t}")
    return next(iter(t))


def hessian(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any], chunk: int | None
) -> Whole:
    """The gradient of f at the arguments at `positions` and its derivative: the reverse sweep, pushed forward.

    Raises:
        NativeError: it cannot be derived natively.
    """
    taken = conversion.taken(f, args, positions, kwargs)
    aliases.refuse_shared(taken.f, taken.args, taken.signature)
    gradient, signature = gradient_of(taken)
    call.compared_apart(taken.f, taken.args, taken.signature)
    inputs = inputs_of(taken)
    n, program = chunk_or_single(gradient, signature, taken.positions, inputs, chunk)
    parts: list[list[Any]] = []
    bars: list[Any] = []
    for _, dots in seeds(inputs, n):
        out = list(call.plainly(program.run, *copies(taken.args), 1.0, *dots))
        bars = out[: len(inputs)]
        parts.append(out[len(inputs) :])
    write_as(taken)
    blocks = blocks_of_columns(parts, inputs, inputs, n)
    row_order = in_order(taken, Whole(None, [[k] for k in range(len(inputs))], [])).x
    columns_in_order = in_order(taken, Whole(bars, inputs, blocks))
    return Whole(bars, columns_in_order.x, [columns_in_order.blocks[k] for (k,) in row_order])


def hvp(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...], fixed: tuple[int, ...] = ()) -> tuple[Any, ...]:
    """The Hessian of f times a direction, an entry for each argument; None for one without tangent.

    Args:
        f: a function that returns one real number.
        args: where.
        dots: the direction, an entry for each argument.
        fixed: the positions of the arguments that are not differentiated.

    Raises:
        NativeError: it cannot be derived natively.
    """
    taken, positions = call.plainly(taken_as_real, f, args, fixed)
    refuse_counted(args, positions, dots)
    aliases.refuse_shared(taken.f, taken.args, taken.signature)
    gradient, signature = gradient_of(taken)
    call.compared_apart(taken.f, taken.args, taken.signature)
    found = call.derived("pushforward", gradient, signature, taken.positions)
    by_parameter: dict[int, Any] = {}
    for (k, place), n in zip(taken.wanted, positions, strict=True):
        if place is not None:
            raise NativeError("natively, hvp is of functions without *args.\n  See docs: errors#native")
        by_parameter[k] = dots[n]
    given = [dot for k in taken.positions for dot in tangents_of(taken.args[k], by_parameter[k])]
    out = list(call.plainly(found.run, *copies(taken.args), 1.0, *given))
    write_as(taken)
    by_position = dict(zip(positions, taken.gradients_of(out[len(inputs_of(taken)) :]), strict=True))
    return tuple([by_position.get(n) for n in range(len(args))])


def derivative(
    f: Any, x: Any, order: int, others: tuple[Any, ...], kwargs: dict[str, Any], along: complex = 1.0
) -> tuple[Any, list[Any]]:
    """(f(x, *others), the derivative of that order of each number and array in it), by forward mode over itself.

    It is the derivative by a real number t at t = 0, with x + t * along for x.

    Raises:
        NativeError: it cannot be derived natively.
    """
    if order > MOST_ORDER:
        raise NativeError(
            f"natively, derivatives are of an order up to {MOST_ORDER}, not {order}.\n"
            "  To go on: tier='plain' uses Taylor arithmetic.\n  See docs: errors#native"
        )
    taken = conversion.taken(f, (x, *others), (0,), kwargs)
    if np.iscomplexobj(x):  # it is called again, to see that the derivative exists
        effects = call.plainly(effects_of, taken.f, taken.signature)
        if effects.once or effects.writes:
            raise NativeError(
                f"`{name_of(taken)}` {effects.once or 'writes into its arguments'}, so no complex derivative of it is "
                "taken natively.\n  See docs: errors#native"
            )
    t = call.result_type(taken.f, taken.signature)
    g, signature = taken.f, taken.signature
    for k in range(order):
        g = call.derived("pushforward" if k == order - 1 else "tangents", g, signature, taken.positions).run
        if not k:
            signature = conversion.signature_of(taken.args)
        signature = (*signature, types.float64 if along == 1.0 else types.complex128)
    out = list(call.plainly(g, *taken.args, *[along] * order))
    dots = out[len(out) - len(call.tangent_leaves(t)) :]
    y = call.rebuilt(t, out)
    if along == 1.0:
        call.compared(taken.f, taken.args, taken.signature, y)
    return y, dots


def linear_map(f: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """(f(*args), the map from tangents of the arguments to those of the leaves of the result).

    The arguments are copied; the map runs the function with its tangents each time.

    Raises:
        NativeError: it cannot be derived natively, or does more than return a value.
    """
    taken, positions = call.plainly(taken_as_real, f, args)
    effects = call.plainly(effects_of, taken.f, taken.signature)
    if effects.once or effects.writes:
        raise NativeError(
            f"`{getattr(taken.f, '__name__', taken.f)}` {effects.once or 'writes into its arguments'}; it is not run "
            "for every tangent.\n  See docs: errors#native"
        )
    found = call.derived("pushforward", taken.f, taken.signature, taken.positions)
    kept = copies(taken.args)
    args = of_their_own(args)  # memory of others may be given back before the map is used
    taken = replace(taken, args=kept, given=of_their_own(taken.given))
    t = call.result_type(taken.f, taken.signature)
    count = len(call.tangent_leaves(t))

    def pushed(dots: Any) -> tuple[Any, ...]:
        dots = (ZeroTangent,) * len(args) if is_nothing(dots) else dots
        given = [
            d for k, n in zip(taken.positions, positions, strict=True) for d in tangents_of(kept[k], dots[n])
        ]
        out = call.plainly(found.run, *kept, *given)
        return tuple(out[len(out) - count :])

    def pulled(weights: Any) -> tuple[Any, ...]:
        y, pull = call.pullback_of(taken)
        outputs = call.leaves(y)
        weights = (ZeroTangent,) * count if is_nothing(weights) else weights
        seeds = [w for z, bar in zip(outputs, weights, strict=True) for w in call.seeds_of(z, bar)]
        by_position = dict(zip(positions, taken.gradients_of(pull(seeds)), strict=True))
        return tuple([by_position.get(n, NoTangent) for n in range(len(args))])

    check = call.unchanged(aliases.live_arrays(taken.f))

    def push(dots: tuple[Any, ...]) -> Any:
        check()
        refuse_counted(args, positions, dots)
        return applied(pushed, pulled, dots)

    zero = [d for k in taken.positions for d in tangents_of(kept[k], ZeroTangent)]
    y = call.rebuilt(t, list(call.plainly(found.run, *kept, *zero)))
    call.compared(taken.f, taken.args, taken.signature, y)
    return y, push


def write_as(taken: Any) -> None:
    """Run a function that writes into its arguments for that alone: its derivatives are taken of copies."""
    if call.plainly(effects_of, taken.f, taken.signature).writes:
        f = original(taken.f)
        call.plainly(f if is_dispatcher(f) else taken.f, *taken.args)


def gradient_of(taken: Any) -> tuple[Any, tuple[Any, ...]]:
    """(the function of the arguments and 1.0 that returns the gradients, the types of these)."""
    t = call.result_type(taken.f, taken.signature)
    if isinstance(t, (types.Integer, types.Boolean)):
        raise NativeError(
            f"{getattr(taken.f, '__name__', 'the function')} returns a {t}, which has no second derivative natively.\n"
            "  To go on: tier='plain' gives its zeros.\n  See docs: errors#native"
        )
    if not isinstance(t, types.Float):
        raise NonScalarOutputError(
            f"a Hessian is of one real number, but {getattr(taken.f, '__name__', 'the function')} returns a {t}.\n"
            "  To go on: return a float, or use the jacobian of a gradient.\n  See docs: errors#non-scalar-output"
        )
    effects = call.plainly(effects_of, taken.f, taken.signature)
    if effects.once:
        raise NativeError(
            f"`{getattr(taken.f, '__name__', taken.f)}` {effects.once}, so no Hessian is taken of it natively.\n"
            "  See docs: errors#native"
        )
    gradient = call.derived("cotangents", taken.f, taken.signature, taken.positions).run
    return gradient, (*conversion.signature_of(taken.args), types.float64)


def tangents_of(x: Any, dot: Any) -> list[Any]:
    """The tangents of the numbers and arrays in an argument, zeros where none is given."""
    if isinstance(x, tuple):
        if is_zero(dot):
            dot = [ZeroTangent] * len(x)
        parts = list(dot.values()) if isinstance(dot, dict) else dot
        return [each for part, d in zip(x, parts, strict=True) for each in tangents_of(part, d)]
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "fc":
            return []
        # in memory of its own: a function that writes into an argument writes into its tangent
        return [directions.tangent_of(x, dot)]
    if isinstance(x, (complex, np.complexfloating)):
        return [0j if is_zero(dot) else complex(dot)]
    return [0.0 if is_zero(dot) else float(dot)] if isinstance(x, (float, np.floating)) else []


def compiled_jacobian(f: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> Any:
    """The dispatcher that returns f(*args) and writes the Jacobian to the matrix that is its last argument.

    Raises:
        NativeError: it cannot be derived natively, or is complex, or takes what compiled code does not.
    """
    taken = conversion.taken(f, args, positions, {})
    if not is_as_given(taken.given, taken.args):
        raise NativeError(
            "a compiled Jacobian takes numbers, arrays and tuples of these; lists and dataclasses are for "
            "jacobian(f, tier='native').\n  See docs: errors#native"
        )
    if taken.positions != tuple(positions):
        raise NativeError("natively, argnums of a compiled Jacobian are in order.\n  See docs: errors#native")
    refuse_complex(taken)
    n = width_for(sum(map(np.size, inputs_of(taken))))
    run = call.derived(f"jacobian{n}", taken.f, taken.signature, taken.positions).run
    with_checked_matrix(run)
    return run


def is_as_given(given: Any, taken: Any) -> bool:
    """Whether compiled code takes an argument as it is, and not a list, say, as a tuple."""
    if given is taken or not isinstance(given, tuple) or type(given) is not type(taken):
        return given is taken
    return all(map(is_as_given, given, taken))


def with_checked_matrix(run: Any) -> None:
    """Let a compiled Jacobian refuse what is no matrix of float64 to write into: it writes past every check of Numba's.

    Numba asks for the machine code of every list of argument types once, for calls from Python and from compiled code.
    """
    compile_it = getattr(run, "compile", None)
    if compile_it is None or hasattr(compile_it, "checks_matrix"):  # Numba may be told not to compile
        return

    def checked(signature: Any) -> Any:
        kinds, _ = sigutils.normalize_signature(signature)
        t = kinds[-1] if kinds else None
        wanted = isinstance(t, types.Array) and t.ndim == 2 and t.dtype == types.float64
        if not wanted or not t.mutable or not t.aligned:
            raise ArgumentError(
                f"`out`, the last argument of a compiled Jacobian, is a matrix of float64 to write into, not {t}.\n"
                "  To go on: pass np.empty((rows, columns)).\n  See docs: errors#argument"
            )
        return compile_it(signature)

    checked.checks_matrix = checked.is_silent = True  # type: ignore[attr-defined]
    run.compile = checked


def refuse_complex(taken: Any) -> None:
    """A compiled Jacobian is a matrix of real numbers."""
    t = call.result_type(taken.f, taken.signature)
    if any(map(has_complex, call.tangent_leaves(t))) or any(map(np.iscomplexobj, inputs_of(taken))):
        raise NativeError(
            "a compiled Jacobian is of real arguments and results; give it real and imaginary parts.\n"
            "  See docs: errors#native"
        )


def in_order(taken: Any, whole: Whole) -> Whole:
    """`whole` with the arguments in the order in which they were asked for."""
    start, places = 0, {}
    for k in taken.positions:
        places[k] = start
        start += len(call.leaves(taken.args[k]))
    order: list[int] = []
    for k, part in taken.wanted:
        begin, mine = places[k], taken.args[k]
        if part is not None:
            begin += len(call.leaves(mine[:part]))
            mine = mine[part]
        order += range(begin, begin + len(call.leaves(mine)))
    if order == list(range(len(whole.x))):
        return whole
    return Whole(whole.y, [whole.x[k] for k in order], [[row[k] for k in order] for row in whole.blocks])


def fixed_size(leaves: Sequence[Any]) -> int | None:
    """How many real numbers a result with leaves of these types holds; None if that depends on shapes."""
    return None if any(map(is_array, leaves)) else sum(2 if has_complex(t) else 1 for t in leaves)


__all__ = ["Whole", "compiled_jacobian", "derivative", "hessian", "hvp", "jacobian", "linear_map"]
