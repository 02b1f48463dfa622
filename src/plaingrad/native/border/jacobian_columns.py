"""Columns and rows of Jacobians, natively: chunks of forward mode, single directions, or pullbacks.

A number or array of n complex numbers can move in 2 n directions: along 1 for each of them, then along i. A block
belongs to one number or array of the result and one of the arguments: (derivative along 1, along i or None), each of
shape y.shape + x.shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from plaingrad.errors import NativeError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.border import aliases, call, directions
from plaingrad.native.compile.build import WIDTHS
from plaingrad.tangents import ZeroTangent

ROW, CHUNK = 3.0, 2.0  # what a row in reverse mode and a chunk of columns cost, in calls of the function

Block = tuple[Any, Any]


def inputs_of(taken: Any) -> list[Any]:
    """The numbers and arrays that a call is differentiated by, in the order of its columns."""
    return [x for k in taken.positions for x in call.leaves(taken.args[k])]


def directions_of(x: Any) -> int:
    """In how many directions a number or array can move."""
    return int(np.size(x)) * (2 if np.iscomplexobj(x) else 1)


def width_for(columns: int) -> int:
    """How many columns are pushed together."""
    return next((n for n in WIDTHS if n >= columns), WIDTHS[-1] if columns > 2 * WIDTHS[-1] else 8)


def copies(x: Any) -> Any:
    """`x`, a tuple of arguments, with its arrays copied: what was in C or Fortran order, or in neither, still is."""
    if isinstance(x, np.ndarray):
        if x.flags.contiguous or x.flags.fnc:
            return x.copy(directions.order_of(x))
        made = np.empty((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::2]
        made[...] = x
        return made
    if not isinstance(x, tuple):
        return x
    return type(x)(*map(copies, x)) if hasattr(x, "_fields") else tuple(map(copies, x))


def name_of(taken: Any) -> str:
    """What the function is called in messages."""
    return str(getattr(taken.f, "__name__", taken.f))


# -- forward -----------------------------------------------------------------------------------------------------------


def by_columns(
    taken: Any, count: int | None, may_turn: bool, chunk: int | None
) -> tuple[Any, list[list[Block]]] | None:
    """(f(*args), blocks), all directions of the arguments.

    Args:
        taken: the call.
        count: how many of the numbers and arrays in the result are differentiated; None for all.
        may_turn: None is returned where the first columns show that rows are fewer.
        chunk: how many directions are pushed together at most.

    Raises:
        NativeError: it cannot be derived, or may not be called more than once.
    """
    inputs = inputs_of(taken)
    columns = sum(map(directions_of, inputs))
    n, program = chunk_or_single(taken.f, taken.signature, taken.positions, inputs, chunk)
    aliases.refuse_aliases(program, taken.args)
    effects = call.plainly(effects_of, taken.f, taken.signature)
    if effects.once and columns > n:
        raise NativeError(
            f"`{name_of(taken)}` {effects.once}, so it is not called more than once for a Jacobian.\n"
            "  See docs: errors#native"
        )
    t = call.result_type(taken.f, taken.signature)
    y: Any = None
    parts: list[list[Any]] = []
    for first, dots in seeds(inputs, n):
        last = first + n >= columns
        given = taken.args if last or not effects.writes else copies(taken.args)
        out = list(call.plainly(program.run, *given, *dots))
        y = call.rebuilt(t, out)
        parts.append(out)
        rows = sum(map(directions_of, call.leaves(y)[:count]))
        if may_turn and not first and rows * ROW < (columns / n - 1) * CHUNK and not effects.writes:
            return None
    return y, blocks_of_columns(parts, call.leaves(y)[:count], inputs, n)


def chunk_or_single(
    f: Any, signature: Any, positions: tuple[int, ...], inputs: list[Any], chunk: int | None
) -> tuple[int, Any]:
    """(how many directions are pushed together, the program): one by one where there is no program of a chunk.

    Raises:
        NativeError: there is none of either kind.
    """
    columns = sum(map(directions_of, inputs))
    if not any(map(np.iscomplexobj, inputs)):
        n = width_for(min(columns, chunk) if chunk else columns)
        try:
            return n, call.derived(f"columns{n}", f, signature, positions)
        except NativeError:
            pass  # complex numbers in it have no chunks
    return 1, call.derived("pushforward", f, signature, positions)


def seeds(inputs: list[Any], n: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """(first direction, what is given to the program behind its arguments) for every n directions; one at least."""
    columns = sum(map(directions_of, inputs))
    if n > 1:
        for first in range(0, max(columns, 1), n):
            yield first, (first,)
        return
    first = 0
    for k, x in enumerate(inputs):
        for i in range(directions_of(x)):
            dots = [
                directions.tangent_of(x, ZeroTangent) if isinstance(x, np.ndarray) else type(x)(0)
                for x in inputs
            ]
            one = 1 if i < np.size(x) else 1j
            if isinstance(x, np.ndarray):
                dots[k].flat[i % x.size] = one
            else:
                dots[k] = type(x)(one)
            yield first, tuple(dots)
            first += 1
    if not columns:
        yield 0, tuple([np.zeros_like(x) for x in inputs])


def blocks_of_columns(
    parts: list[list[Any]], outputs: list[Any], inputs: list[Any], n: int
) -> list[list[Block]]:
    """For each of `outputs` and of `inputs` their block, from the columns of each sweep."""
    found = []
    for k, z in enumerate(outputs):
        if n > 1:
            whole = np.concatenate([np.asarray(part[k]) for part in parts], axis=-1)
        else:
            whole = np.stack([np.asarray(part[k]) for part in parts], axis=-1)
        start, mine = 0, []
        for x in inputs:
            along = []
            for _ in range(2 if np.iscomplexobj(x) else 1):
                columns = whole[..., start : start + np.size(x)]
                along.append(columns.reshape(np.shape(z) + np.shape(x)))
                start += np.size(x)
            mine.append((along[0], along[1] if len(along) > 1 else None))
        found.append(mine)
    return found


# -- reverse -----------------------------------------------------------------------------------------------------------


def by_rows(taken: Any, count: int | None) -> tuple[Any, list[list[Block]]]:
    """(f(*args), blocks): one pullback for every number in the result, after one forward sweep.

    Raises:
        NativeError: the function writes into its arguments, or may not run again.
    """
    effects = call.plainly(effects_of, taken.f, taken.signature)
    if effects.writes or effects.once:
        raise NativeError(
            f"`{name_of(taken)}` {effects.once or 'writes into its arguments'}, so no Jacobian by rows is taken of it "
            "natively.\n  See docs: errors#native"
        )
    y, pull = call.pullback_of(taken)
    inputs, outputs = inputs_of(taken), call.leaves(y)
    blocks = []
    for k, z in enumerate(outputs[:count]):
        rows = [pull(weights) for weights in unit_weights(outputs, k)]
        blocks.append([block_of_rows([row[m] for row in rows], z, x) for m, x in enumerate(inputs)])
    return y, blocks


def unit_weights(outputs: list[Any], k: int) -> Iterator[list[Any]]:
    """Weight 1 on each number of output `k` in turn, then weight i where they are complex."""
    for one in (1, 1j) if np.iscomplexobj(outputs[k]) else (1,):
        for i in range(np.size(outputs[k])):
            found = [np.zeros(np.shape(z), np.asarray(z).dtype) for z in outputs]
            found[k].flat[i] = one
            yield [w if isinstance(z, np.ndarray) else w[()] for w, z in zip(found, outputs, strict=True)]


def block_of_rows(rows: list[Any], z: Any, x: Any) -> Block:
    """The block of output `z` and input `x`, from cotangents of x for weight 1, then for weight i, on each of z.

    With weight w on y the cotangent of x = u + iv is Re(conj(w) dy/du) + i Re(conj(w) dy/dv), of real x its real part.
    """
    shape = np.shape(z) + np.shape(x)
    dtype = np.asarray(x).dtype
    of_real = np.array(rows[: np.size(z)], dtype).reshape(shape)
    if not np.iscomplexobj(z):
        return (of_real.real, of_real.imag) if np.iscomplexobj(x) else (of_real, None)
    of_imag = np.array(rows[np.size(z) :], dtype).reshape(shape)
    if not np.iscomplexobj(x):
        return of_real + 1j * of_imag, None
    return of_real.real + 1j * of_imag.real, of_real.imag + 1j * of_imag.imag
