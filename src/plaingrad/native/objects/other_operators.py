"""The operators besides gradients, of functions of objects: those of the border, with structure put on around them.

Each is first done by the border as it stands; where that is refused, the call is taken apart.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from plaingrad.errors import NativeError
from plaingrad.native.border import call as border
from plaingrad.native.border import operators
from plaingrad.native.border.counting import whole_numbers
from plaingrad.native.border.operators import Whole
from plaingrad.native.frontend.typed_ir import LostWriteError
from plaingrad.native.objects import structure
from plaingrad.native.objects.call import Call, Flat, call_of, flat_of, leave, refusal_of, run
from plaingrad.native.objects.results import built, parts_of, tangent_of
from plaingrad.native.program.dispatchers import is_dispatcher
from plaingrad.tangents import ZeroTangent


def otherwise(
    work: Callable[..., Any], apart: Callable[..., Any], f: Any, args: tuple[Any, ...], *more: Any
) -> Any:
    """work(f, args, *more); where that is refused, apart(f, args, *more).

    Raises:
        NativeError: both are.
    """
    try:
        return work(f, args, *more)
    except NativeError as error:
        refusal = error
    if is_dispatcher(f) and isinstance(refusal, LostWriteError):  # it computes something else than its source
        raise refusal
    try:
        return apart(f, args, *more)
    except NativeError as error:
        raise NativeError(f"{refusal}\n  Taken apart, it is refused too: {error}") from refusal


def apart(
    f: Any,
    args: tuple[Any, ...],
    positions: tuple[int, ...] = (),
    kwargs: Any = None,
    is_number: bool = False,
    may_write: bool = False,
) -> tuple[Call, Flat]:
    """The call of the function of numbers and arrays that a call of objects is.

    Raises:
        NativeError: there is none.
    """
    call = call_of(f, args, positions, kwargs or {}, False)
    found = flat_of(call)
    if found.results is None or (is_number and found.run is None):
        raise NativeError(refusal_of(found))
    if found.changes and not may_write:
        raise NativeError("it changes objects that are arguments")
    return call, found


def kept_apart(call: Call, found: Flat) -> tuple[Any, ...]:
    """The leaves of a call; copies of its arrays where it changes objects: they are changed by one call of it only.

    Raises:
        NativeError: it does, and two arrays may share memory.
    """
    if not found.changes:
        return call.leaves
    arrays = [x for x in call.leaves if isinstance(x, np.ndarray)]
    if any(np.may_share_memory(x, y) for x, y in combinations(arrays, 2)):
        raise NativeError("it changes objects that are arguments, of which two arrays may share memory")
    return tuple([x.copy() if isinstance(x, np.ndarray) else x for x in call.leaves])


def leave_as_called(f: Any, args: tuple[Any, ...], call: Call, found: Flat) -> None:
    """Leave in the arguments what one call of the function leaves there."""
    if found.changes:
        nothing = (ZeroTangent,) * len(call.leaves)
        y, _ = run(
            f, args, {}, (call, found), border.jvp, found.results, call.leaves, nothing, counts_in(call, args)
        )
        leave(call, found, numbers(y, found)[found.count :])


def numbers(y: Any, found: Flat) -> tuple[Any, ...]:
    """What the function that was made returns, as a tuple of numbers and arrays."""
    return y if found.count + found.extra != 1 else (y,)


def jvp(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...]) -> tuple[Any, Any]:
    """(f(*args), its tangent along `dots`)."""
    return otherwise(border.jvp, _jvp, f, args, dots)  # type: ignore[no-any-return]


def _jvp(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...]) -> tuple[Any, Any]:
    call, found = apart(f, args, may_write=True)
    counts = counts_in(call, args)
    y, y_dot = run(
        f, args, {}, (call, found), border.jvp, found.results, call.leaves, spread(call, args, dots), counts
    )
    parts = numbers(y, found)
    leave(call, found, parts[found.count :])
    moved = (ZeroTangent,) * len(parts) if y_dot is ZeroTangent else numbers(y_dot, found)
    return built(found.returned, parts), tangent_of(found.returned, moved)


def vjp(f: Any, args: tuple[Any, ...]) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """(f(*args), the map from a cotangent of it to those of the arguments)."""
    return otherwise(border.vjp, _vjp, f, args)  # type: ignore[no-any-return]


def _vjp(f: Any, args: tuple[Any, ...]) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    call, found = apart(f, args, may_write=True)
    y, pull = run(f, args, {}, (call, found), border.vjp, found.results, call.leaves, counts_in(call, args))
    count = found.count + found.extra
    args = tuple(map(structure.kept, args)) if found.changes else args
    leave(call, found, numbers(y, found)[found.count :])

    def pullback(y_bar: Any) -> tuple[Any, ...]:
        seeds: list[Any] = [ZeroTangent] * count
        for place, bar in parts_of(found.returned, y_bar):
            seeds[place] = bar
        bars = pull(seeds[0] if count == 1 else tuple(seeds))
        return gathered(call, args, bars)

    return built(found.returned, numbers(y, found)), pullback


def hvp(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...], fixed: tuple[int, ...] = ()) -> tuple[Any, ...]:
    """The Hessian of f times a direction, an entry for each argument."""
    return otherwise(operators.hvp, _hvp, f, args, dots, fixed)  # type: ignore[no-any-return]


def _hvp(f: Any, args: tuple[Any, ...], dots: tuple[Any, ...], fixed: tuple[int, ...]) -> tuple[Any, ...]:
    call, found = apart(f, args, (), None, True, True)
    ranges = call.ranges(len(args))
    still = tuple([k for n in fixed for k in range(*ranges[n])]) + counts_in(call, args)
    leaves = kept_apart(call, found)
    bars = run(
        f, args, {}, (call, found), operators.hvp, found.alone, leaves, spread(call, args, dots), still
    )
    made = gathered(call, args, bars)
    leave_as_called(f, args, call, found)
    return tuple([None if n in fixed else x for n, x in enumerate(made)])


def linear_map(f: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """(f(*args), the map from tangents of the arguments to those of the leaves of the result)."""
    return otherwise(operators.linear_map, _linear_map, f, args)  # type: ignore[no-any-return]


def _linear_map(f: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    call, found = apart(f, args)
    y, push = run(f, args, {}, (call, found), operators.linear_map, found.results, call.leaves)
    return built(found.returned, numbers(y, found)), lambda dots: push(spread(call, args, dots))


def jacobian(
    f: Any,
    args: tuple[Any, ...],
    positions: tuple[int, ...],
    kwargs: dict[str, Any],
    mode: str,
    chunk: int | None,
    has_aux: bool = False,
) -> Whole:
    """f(*args) and its derivative by the arguments at `positions`."""
    return otherwise(operators.jacobian, _jacobian, f, args, positions, kwargs, mode, chunk, has_aux)  # type: ignore[no-any-return]


def _jacobian(
    f: Any, args: Any, positions: Any, kwargs: Any, mode: str, chunk: int | None, has_aux: bool
) -> Whole:
    if has_aux:
        raise NativeError("has_aux of a function of objects")
    call, found = apart(f, args, positions, kwargs)
    at = in_turn(call)
    whole = run(
        f, args, kwargs, (call, found), operators.jacobian, found.results, call.leaves, at, {}, mode, chunk
    )
    return Whole(built(found.returned, numbers(whole.y, found)), whole.x, whole.blocks)


def hessian(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any], chunk: int | None
) -> Whole:
    """The gradient of f at the arguments at `positions` and its derivative."""
    return otherwise(operators.hessian, _hessian, f, args, positions, kwargs, chunk)  # type: ignore[no-any-return]


def _hessian(f: Any, args: Any, positions: Any, kwargs: Any, chunk: int | None) -> Whole:
    call, found = apart(f, args, positions, kwargs, True, True)
    leaves = kept_apart(call, found)
    whole = run(
        f, args, kwargs, (call, found), operators.hessian, found.alone, leaves, in_turn(call), {}, chunk
    )
    leave_as_called(f, args, call, found)
    return whole  # type: ignore[no-any-return]


def derivative(
    f: Any, x: Any, order: int, others: tuple[Any, ...], kwargs: dict[str, Any], along: complex = 1.0
) -> tuple[Any, list[Any]]:
    """(f(x, *others), the derivative of that order of each number and array in it)."""

    def direct(f: Any, args: Any) -> Any:
        return operators.derivative(f, args[0], order, args[1:], kwargs, along)

    def taken_apart(f: Any, args: Any) -> Any:
        call, found = apart(f, args, (0,), kwargs)
        if not call.leaves or call.leaves[0] is not x:
            raise NativeError("what is differentiated by is not the first parameter")
        first, *rest = call.leaves
        y, dots = run(
            f,
            args,
            kwargs,
            (call, found),
            operators.derivative,
            found.results,
            first,
            order,
            tuple(rest),
            {},
            along,
        )
        return built(found.returned, numbers(y, found)), dots

    return otherwise(direct, taken_apart, f, (x, *others))  # type: ignore[no-any-return]


# -- structure --------------------------------------------------------------------------------------------------------


def in_turn(call: Call) -> tuple[int, ...]:
    """The places of the leaves that are differentiated by, in the order in which their arguments were asked for."""
    found: list[int] = []
    for k, start in call.wanted:
        end = call.starts[k + 1]
        found += [n for n in range(start, end) if structure.has_tangent(call.leaves[n])]
    return tuple(found)


def counts_in(call: Call, args: tuple[Any, ...]) -> tuple[int, ...]:
    """The places of the whole numbers inside of arguments: they stay what they are."""
    alone = [
        start for (start, _), x in zip(call.ranges(len(args)), args, strict=True) if structure.is_leaf(x)
    ]
    return tuple([k for k in whole_numbers(call.leaves) if k not in alone])


def spread(call: Call, args: tuple[Any, ...], dots: Any) -> tuple[Any, ...]:
    """The tangents of the leaves of a call, from those of its arguments."""
    found: list[Any] = [ZeroTangent] * len(call.leaves)
    if dots is None or dots is ZeroTangent:
        return tuple(found)
    for (start, end), x, dot in zip(call.ranges(len(args)), args, dots, strict=True):
        found[start:end] = structure.parts(x, dot)
    return tuple([ZeroTangent if is_constant(x) else d for x, d in zip(call.leaves, found, strict=True)])


def is_constant(leaf: Any) -> bool:
    """Whether a leaf never has a tangent."""
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "fciu"


def gathered(call: Call, args: tuple[Any, ...], bars: Any) -> tuple[Any, ...]:
    """The cotangents of the arguments, from those of the leaves; None for an argument without any."""
    made: list[Any] = []
    for (start, end), x in zip(call.ranges(len(args)), args, strict=True):
        if structure.is_leaf(x):  # an int is a real number there
            made.append(bars[start])
            continue
        leaves = zip(call.leaves[start:end], bars[start:end], strict=True)
        part = [bar if structure.has_tangent(leaf) else None for leaf, bar in leaves]
        made.append(None if all(bar is None for bar in part) else structure.mirrored(x, iter(part), False))
    return tuple(made)


__all__ = ["derivative", "hessian", "hvp", "jacobian", "jvp", "linear_map", "vjp"]
