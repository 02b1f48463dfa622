"""Whole derivatives natively: Jacobians by columns, in chunks of forward mode, or by rows, in reverse.

Results and arguments are flat here: `Leaf`s with shapes, in the order in which structures hold them; the public door
puts the structures on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.errors import NativeError, NonScalarOutputError
from plaingrad.native import border, call
from plaingrad.native.activity import is_array
from plaingrad.native.build import WIDTHS
from plaingrad.native.counting import refuse_counted, taken_as_real
from plaingrad.native.effects import effects_of
from plaingrad.native.forward import has_complex
from plaingrad.tangents import ZeroTangent

ALL_FORWARD = 16  # for so many columns the number of rows is not asked for
MOST_ORDER = 3  # every order doubles the program
ROW, CHUNK = 3.0, 2.0  # what a row in reverse mode and a chunk of columns cost, in calls of the function


@dataclass(frozen=True, slots=True)
class Whole:
    """What a function returned, and all derivatives of it.

    Attributes:
        y: the result.
        x: the numbers and arrays in the differentiated arguments.
        blocks: for each number or array in the result, and each of `x`, dy/dx of shape y.shape + x.shape.
    """

    y: Any
    x: list[Any]
    blocks: list[list[np.ndarray]]


def jacobian(
    f: Any,
    args: tuple[Any, ...],
    positions: tuple[int, ...],
    kwargs: dict[str, Any],
    mode: str,
    chunk: int | None,
) -> Whole:
    """f(*args) and its derivative by the arguments at `positions`.

    Raises:
        NativeError: it cannot be derived natively, or is complex.
    """
    taken = border.taken(f, args, positions, kwargs)
    t = refuse_complex(taken)
    columns = sum(map(np.size, inputs_of(taken)))
    rows = fixed_size(t)
    if mode == "auto":
        mode = getattr(f, "__plaingrad_mode__", mode)
    if mode == "auto" and columns > ALL_FORWARD and rows is not None:
        mode = "reverse" if rows * ROW < columns / WIDTHS[-1] * CHUNK else "forward"
    if mode == "reverse":
        return in_order(taken, by_rows(taken))
    return in_order(taken, by_columns(taken, t, mode == "auto", chunk))


def hessian(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any], chunk: int | None
) -> Whole:
    """The gradient of f at the arguments at `positions` and its derivative: the reverse sweep, pushed forward.

    Raises:
        NativeError: it cannot be derived natively, or is complex.
    """
    taken = border.taken(f, args, positions, kwargs)
    gradient, signature = gradient_of(taken)
    inputs = inputs_of(taken)
    columns = sum(map(np.size, inputs))
    n = width_for(min(columns, chunk) if chunk else columns)
    found = call.derived(f"columns{n}", gradient, signature, taken.positions)
    parts: list[list[Any]] = []
    bars: list[Any] = []
    for first in range(0, max(columns, 1), n):
        out = list(call.plainly(found.run, *copies(taken.args), 1.0, first))
        bars = out[: len(inputs)]
        parts.append(out[len(inputs) :])
    blocks = []
    for k, z in enumerate(inputs):
        whole = np.concatenate([np.asarray(part[k]) for part in parts], axis=-1)
        blocks.append(split(whole, np.shape(z), inputs))
    row_order = in_order(taken, Whole(None, [[k] for k in range(len(inputs))], [])).x
    columns_in_order = in_order(taken, Whole(bars, inputs, blocks))
    return Whole(bars, columns_in_order.x, [columns_in_order.blocks[k] for (k,) in row_order])


def hvp(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...]) -> tuple[Any, ...]:
    """The Hessian of f times a direction, an entry for each argument; None for one without tangent.

    Args:
        f: a function of real arguments that returns one real number.
        args: where.
        dots: the direction, an entry for each argument.

    Raises:
        NativeError: it cannot be derived natively, or is complex.
    """
    taken, positions = call.plainly(taken_as_real, f, args)
    refuse_counted(args, positions, dots)
    gradient, signature = gradient_of(taken)
    found = call.derived("pushforward", gradient, signature, taken.positions)
    by_parameter: dict[int, Any] = {}
    for (k, place), n in zip(taken.wanted, positions, strict=True):
        if place is not None:
            raise NativeError("natively, hvp is of functions without *args.\n  See docs: errors#native")
        by_parameter[k] = dots[n]
    given = [dot for k in taken.positions for dot in tangents_of(taken.args[k], by_parameter[k])]
    out = list(call.plainly(found.run, *copies(taken.args), 1.0, *given))
    inputs = inputs_of(taken)
    found_dots = out[len(inputs) :]
    arrays = [d for x, d in zip(inputs, found_dots, strict=True) if isinstance(x, np.ndarray)]
    numbers = [d for x, d in zip(inputs, found_dots, strict=True) if not isinstance(x, np.ndarray)]
    by_position = dict(zip(positions, taken.gradients(numbers, arrays), strict=True))
    return tuple([by_position.get(n) for n in range(len(args))])


def derivative(
    f: Any, x: Any, order: int, others: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, list[Any]]:
    """(f(x, *others), the derivative of that order of each number and array in it), by forward mode over itself.

    Raises:
        NativeError: it cannot be derived natively, or is complex.
    """
    if order > MOST_ORDER:
        raise NativeError(
            f"natively, derivatives are of an order up to {MOST_ORDER}, not {order}.\n"
            "  To go on: tier='plain' uses Taylor arithmetic.\n  See docs: errors#native"
        )
    taken = border.taken(f, (x, *others), (0,), kwargs)
    t = refuse_complex(taken)
    g, signature = taken.f, taken.signature
    for k in range(order):
        g = call.derived("pushforward" if k == order - 1 else "tangents", g, signature, taken.positions).run
        if not k:
            signature = border.signature_of(taken.args)
        signature = (*signature, types.float64)
    out = list(call.plainly(g, *taken.args, *[1.0] * order))
    dots = out[len(out) - len(call.tangent_leaves(t)) :]
    return call.rebuilt(t, out), dots


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
    t = call.result_type(taken.f, taken.signature)
    count = len(call.tangent_leaves(t))

    def push(dots: tuple[Any, ...]) -> list[Any]:
        refuse_counted(args, positions, dots)
        given = [
            d for k, n in zip(taken.positions, positions, strict=True) for d in tangents_of(kept[k], dots[n])
        ]
        out = call.plainly(found.run, *kept, *given)
        return list(out[len(out) - count :])

    zero = (ZeroTangent,) * len(args)
    given = [d for k in taken.positions for d in tangents_of(kept[k], zero[0])]
    return call.rebuilt(t, list(call.plainly(found.run, *kept, *given))), push


def gradient_of(taken: Any) -> tuple[Any, tuple[Any, ...]]:
    """(the function of the arguments and 1.0 that returns the gradients, the types of these)."""
    t = refuse_complex(taken)
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
    return gradient, (*border.signature_of(taken.args), types.float64)


def tangents_of(x: Any, dot: Any) -> list[Any]:
    """The tangents of the numbers and arrays in an argument, zeros where none is given."""
    if isinstance(x, tuple):
        if dot is ZeroTangent:
            dot = [ZeroTangent] * len(x)
        parts = list(dot.values()) if isinstance(dot, dict) else dot
        return [each for part, d in zip(x, parts, strict=True) for each in tangents_of(part, d)]
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "fc":
            return []
        # in memory of its own: a function that writes into an argument writes into its tangent
        return [np.zeros(x.shape, x.dtype) if dot is ZeroTangent else np.array(dot, x.dtype, order="C")]
    return [0.0 if dot is ZeroTangent else float(dot)] if isinstance(x, (float, np.floating)) else []


def compiled_jacobian(f: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> Any:
    """The dispatcher that returns f(*args) and writes the Jacobian to the matrix that is its last argument.

    Raises:
        NativeError: it cannot be derived natively, or is complex, or takes what compiled code does not.
    """
    taken = border.taken(f, args, positions, {})
    if taken.given is not taken.args and any(
        a is not b for a, b in zip(taken.given, taken.args, strict=True)
    ):
        raise NativeError(
            "a compiled Jacobian takes numbers, arrays and tuples of these; lists and dataclasses are for "
            "jacobian(f, tier='native').\n  See docs: errors#native"
        )
    if taken.positions != tuple(positions):
        raise NativeError("natively, argnums of a compiled Jacobian are in order.\n  See docs: errors#native")
    refuse_complex(taken)
    n = width_for(sum(map(np.size, inputs_of(taken))))
    return call.derived(f"jacobian{n}", taken.f, taken.signature, taken.positions).run


def refuse_complex(taken: Any) -> Any:
    """The type of the result; complex numbers in it or in the arguments are refused."""
    t = call.result_type(taken.f, taken.signature)
    if any(map(has_complex, call.tangent_leaves(t))) or any(map(np.iscomplexobj, inputs_of(taken))):
        raise NativeError("natively, Jacobians are of real functions.\n  See docs: errors#native")
    return t


def inputs_of(taken: Any) -> list[Any]:
    """The numbers and arrays that a call is differentiated by, in the order of its columns."""
    return [x for k in taken.positions for x in call.leaves(taken.args[k])]


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


def fixed_size(t: Any) -> int | None:
    """How many numbers a result of type `t` holds; None if that depends on shapes."""
    found = call.tangent_leaves(t)
    return None if any(map(is_array, found)) else len(found)


def width_for(columns: int) -> int:
    """How many columns are pushed together."""
    return next((n for n in WIDTHS if n >= columns), WIDTHS[-1] if columns > 2 * WIDTHS[-1] else 8)


def by_columns(taken: Any, t: Any, may_turn: bool, chunk: int | None) -> Whole:
    """Chunk after chunk of columns; if `may_turn`, rows instead where the first chunk shows that there are few."""
    inputs = inputs_of(taken)
    columns = sum(map(np.size, inputs))
    n = width_for(min(columns, chunk) if chunk else columns)
    found = call.derived(f"columns{n}", taken.f, taken.signature, taken.positions)
    border.refuse_aliases(found, taken.args)
    effects = call.plainly(effects_of, taken.f, taken.signature)
    if effects.once and columns > n:
        raise NativeError(
            f"`{getattr(taken.f, '__name__', taken.f)}` {effects.once}, so it is not called more than once for a "
            "Jacobian.\n  See docs: errors#native"
        )
    y: Any = None
    parts: list[list[Any]] = []
    for first in range(0, max(columns, 1), n):
        last = first + n >= columns
        given = taken.args if last or not effects.writes else copies(taken.args)
        out = list(call.plainly(found.run, *given, first))
        y = call.rebuilt(t, out)
        parts.append(out)
        rows = sum(map(np.size, call.leaves(y)))
        if may_turn and not first and rows * ROW < (columns / n - 1) * CHUNK and not effects.writes:
            return by_rows(taken)
    blocks = []
    for k, z in enumerate(call.leaves(y)):
        whole = np.concatenate([np.asarray(part[k]) for part in parts], axis=-1)
        blocks.append(split(whole, np.shape(z), inputs))
    return Whole(y, inputs, blocks)


def copies(x: Any) -> Any:
    """`x`, a tuple of arguments, with its arrays copied."""
    if isinstance(x, np.ndarray):
        return x.copy()
    if not isinstance(x, tuple):
        return x
    return type(x)(*map(copies, x)) if hasattr(x, "_fields") else tuple(map(copies, x))


def split(whole: np.ndarray, shape: tuple[int, ...], inputs: list[Any]) -> list[np.ndarray]:
    """Columns along the last axis, for each input those that are its own."""
    start, found = 0, []
    for x in inputs:
        found.append(whole[..., start : start + np.size(x)].reshape(shape + np.shape(x)))
        start += np.size(x)
    return found


def by_rows(taken: Any) -> Whole:
    """One pullback for every number in the result."""
    effects = call.plainly(effects_of, taken.f, taken.signature)
    if effects.writes or effects.once:
        raise NativeError(
            f"`{getattr(taken.f, '__name__', taken.f)}` {effects.once or 'writes into its arguments'}, so no Jacobian "
            "by rows is taken of it natively.\n  See docs: errors#native"
        )
    y, pull = call.pullback_of(taken)
    inputs, outputs = inputs_of(taken), call.leaves(y)
    rows: list[list[Any]] = []
    for k, z in enumerate(outputs):
        for i in range(np.size(z)):
            seeds = [np.zeros(np.shape(other)) for other in outputs]
            seeds[k].flat[i] = 1.0
            rows.append(
                pull([s if isinstance(x, np.ndarray) else s[()] for s, x in zip(seeds, outputs, strict=True)])
            )
    blocks, start = [], 0
    for z in outputs:
        mine = rows[start : start + np.size(z)]
        start += np.size(z)
        found = []
        for m, x in enumerate(inputs):
            whole = np.array([row[m] for row in mine]) if mine else np.zeros((0, *np.shape(x)))
            found.append(whole.reshape(np.shape(z) + np.shape(x)))
        blocks.append(found)
    return Whole(y, inputs, blocks)


__all__ = ["Whole", "compiled_jacobian", "derivative", "hessian", "hvp", "jacobian", "linear_map"]
