"""Which whole numbers among the arguments are real numbers, and which ones count.

An int that is an argument is a real number for the plain tier, and `range(n)` raises there. Natively it is one where
that can be; a function may count with the others.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from plaingrad.errors import ArgumentError, NativeError
from plaingrad.native.border.conversion import Taken, taken, type_of
from plaingrad.native.border.records import is_whole
from plaingrad.native.frontend.translation import program
from plaingrad.native.lowering.prepare import prepared
from plaingrad.native.program.dispatchers import python_function
from plaingrad.native.program.ir import For, Let, Operand, Var, statements
from plaingrad.native.program.per_function import PerFunction
from plaingrad.native.program.value_types import has_tangent
from plaingrad.tangents import is_zero

_reals = (
    PerFunction()
)  # (types of the arguments, whole numbers among them) -> which of these are real numbers


def taken_as_real(
    f: Any, args: tuple[Any, ...], fixed: tuple[int, ...] = ()
) -> tuple[Taken, tuple[int, ...]]:
    """(the call f(*args), the positions of the arguments that it is differentiated by).

    These are all that have a tangent, and the whole numbers, which are taken as real numbers as the plain tier does.
    One that counts stays as it is and has no tangent: where Numba finds no types for a real number in its place.
    Those at the positions `fixed` stay as they are, whatever they are.

    Raises:
        ArgumentError: no argument has a tangent.
        NativeError: an argument is nothing that Numba takes, or the function is nothing that it compiles.
    """
    able = tuple([k for k in with_tangents(args) if k not in fixed])
    whole = tuple([k for k in whole_numbers(args) if k not in fixed])
    if not able and not whole:
        raise ArgumentError(
            "none of the arguments holds a real or complex number.\n  See docs: errors#argument"
        )
    call = taken(f, args, able, {})
    if not whole:
        return call, able
    known, key = _reals.of(python_function(call.f)), (call.signature, whole)
    if key not in known:
        found = whole
        if not are_real(f, args, (*able, *whole)):
            found = ()
            for k in whole if len(whole) > 1 else ():
                if are_real(f, args, (*able, *found, k)):
                    found = (*found, k)
        known[key] = found
    positions = tuple(sorted((*able, *known[key])))
    if not positions:
        # This refuses what cannot be real: arrays that are written into.
        taken(f, args, tuple(sorted(whole)), {})
        raise ArgumentError(
            "none of the arguments is a real or complex number: the function counts with them.\n"
            "  See docs: errors#argument"
        )
    return taken(f, args, positions, {}), positions


def are_real(f: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> bool:
    """Whether the arguments at these positions may all be real numbers: none is counted with, or declared whole."""
    try:
        call = taken(f, args, tuple(sorted(positions)), {})
    except NativeError:
        return False
    return is_typed(call)


def is_typed(call: Taken) -> bool:
    """Whether a function takes these arguments, and counts with none of those that are differentiated.

    Numba takes a float for a count in some places, where Python does not.
    """
    try:
        found = prepared(program(call.f, call.signature))
    except NativeError:
        return False
    for s in statements(found.body):
        counts: tuple[Operand, ...] = ()
        if isinstance(s, For):
            counts = (s.start, s.stop, s.step)
        elif isinstance(s, Let) and s.op == "slice":
            counts = s.args
        if any(isinstance(a, Var) and isinstance(found.types.get(a.name), types.Float) for a in counts):
            return False
    return True


def with_tangents(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions of the arguments that have a tangent."""
    return tuple([k for k, x in enumerate(args) if has_tangent(type_of(x, f"argument {k}"))])


def whole_numbers(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions of the ints, and arrays of them, which are real numbers where they are differentiated by."""
    return tuple([k for k, x in enumerate(args) if is_whole(x)])


def refuse_counted(args: tuple[Any, ...], positions: tuple[int, ...], dots: tuple[Any, ...]) -> None:
    """A whole number that the function counts with has no tangent; one that was given is not dropped.

    Raises:
        NativeError: there is one.
    """
    for n, dot in enumerate(dots):
        if is_whole(args[n]) and n not in positions and not is_zero(dot):
            raise NativeError(
                f"argument {n} is a whole number that the function counts with, so it has no tangent natively.\n"
                "  To go on: give None for it.\n  See docs: errors#native"
            )


__all__ = ["refuse_counted", "taken_as_real", "whole_numbers", "with_tangents"]
