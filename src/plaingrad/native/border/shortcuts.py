"""Calls like earlier ones: what a gradient natively is to do for numbers and arrays of these types, decided once.

A call is looked at, typed, compared and derived by `call`. What was found is kept here as a `Shortcut`, under the types
of the arguments. It is used as long as nothing has changed that it was decided by: what the function reads from outside
(its `Snapshot`), the rulebook, the forms that the user's dispatcher has, whether indices are checked. Functions that
write into their arguments have none: whether two arguments share memory is looked at in every call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.native.border.conversion import Taken
from plaingrad.native.border.directions import order_of
from plaingrad.native.compile.build import Derived, Sweeps
from plaingrad.native.frontend.current import version_made
from plaingrad.native.frontend.meaning import is_to_compare
from plaingrad.native.frontend.outside import Snapshot
from plaingrad.native.program.dispatchers import bounds_are_checked, is_dispatcher
from plaingrad.native.program.per_function import PerFunction
from plaingrad.native.runtime.workspace import Arena

FEW = 16  # arrays of at most so many elements have their shape in the key: the sweep may depend on it
INT64 = range(-(1 << 63), 1 << 63)  # Numba takes greater ints as unsigned
NUMBERS = frozenset((float, np.float64))

_shortcuts = PerFunction()  # of functions: types -> `Shortcut`


@dataclass(frozen=True, slots=True)
class Shortcut:
    """What is to be done for a call.

    Attributes:
        snapshot: what the function read from outside.
        changes: the state of the rulebook.
        bounds: whether indices were checked.
        forms: how many forms the user's dispatcher had; -1 of a plain function.
        run: (arguments as floats and arrays) -> (value, gradients in the order of `positions`), or None.
    """

    snapshot: Snapshot
    changes: int
    bounds: bool
    forms: int
    run: Callable[[Any], Any]

    def is_current(self, f: Any) -> bool:
        """Whether all that was decided holds still."""
        return (
            self.changes == rulebook.changes()
            and self.bounds is bounds_are_checked()
            and (self.forms < 0 or len(f.overloads) == self.forms)
            and self.snapshot.is_current()
        )


def by_shortcut(f: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> Any:
    """(f(*args), the gradients of the arguments at `positions`); None where the call is to be looked at.

    No derivative is in force.
    """
    if type(f) is not FunctionType and not is_dispatcher(f):
        return None
    known = _shortcuts.of(f)
    if not known:
        return None
    kinds = kinds_of(args, positions)
    found = known.get(kinds)
    if found is None:
        return None
    if not found.is_current(f):
        known.pop(kinds, None)
        return None
    return found.run(args)


def kinds_of(args: tuple[Any, ...], positions: tuple[int, ...]) -> Any:
    """What a call is decided by: types and layouts, and which numbers are zero; None of what is looked at each time."""
    found: list[Any] = [positions]
    for k, x in enumerate(args):
        cls = type(x)
        if cls is np.ndarray:
            found.append((x.dtype, x.flags.num, x.shape if x.size <= FEW else x.ndim))
        elif cls in NUMBERS:
            found.append(cls if x or k in positions else (cls, 0))  # zeros that are given: see `known_zeros`
        elif cls is bool or (cls is int and x in INT64):
            found.append(cls)
        else:
            return None
    return tuple(found)


def keep(f: Any, args: tuple[Any, ...], positions: tuple[int, ...], call: Taken, run: Any) -> None:
    """Keep how a call was done, where every call of these types is done so.

    Args:
        f: the function or dispatcher.
        args: its arguments, as the user passed them.
        positions: of the differentiated ones.
        call: the call as it was taken.
        run: see `Shortcut`; None where there is none.
    """
    kinds = kinds_of(args, positions)
    version = version_made(f, call.f)
    if run is None or kinds is None or version is None or is_to_compare(call.f, call.signature):
        return
    if len(args) != len(call.args) or call.wanted != tuple([(k, None) for k in positions]):
        return
    for k, (x, y) in enumerate(zip(args, call.args, strict=True)):
        if k in positions and (np.iscomplexobj(x) or isinstance(x, np.ndarray) and x.dtype.kind != "f"):
            return
        if x is not y and not (k in positions and type(x) is int and type(y) is float):
            return
    forms = len(f.overloads) if is_dispatcher(f) else -1
    _shortcuts.of(f)[kinds] = Shortcut(
        version.snapshot, rulebook.changes(), bounds_are_checked(), forms, run(args, positions)
    )


# -- the ways to do a call ---------------------------------------------------------------------------------------------


def with_reals(args: tuple[Any, ...], positions: tuple[int, ...]) -> Callable[[Any], Any] | None:
    """What makes floats of ints that are differentiated; None where there are none."""
    ints = [k for k in positions if type(args[k]) is int]
    if not ints:
        return None
    return lambda given: tuple([float(x) if k in ints else x for k, x in enumerate(given)])


def in_sweeps(found: Derived) -> Any:
    """A call by both sweeps of a pullback, of a function that returns one float and writes into no argument."""
    sweeps = found.run
    if type(sweeps) is not Sweeps or sweeps.results != 1 or found.writes:
        return None
    forward, backward = sweeps.forward, sweeps.backward

    def prepared(args: tuple[Any, ...], positions: tuple[int, ...]) -> Callable[[Any], Any]:
        reals = with_reals(args, positions)
        zeros = {k: order_of(args[k]) for k in sorted(positions) if isinstance(args[k], np.ndarray)}
        types = [(k, type(args[k]) if type(args[k]) is not int else float) for k in positions]
        numbers = [k for k in sorted(positions) if k not in zeros]

        def run(given: tuple[Any, ...]) -> Any:
            if reals is not None:
                given = reals(given)
            bars: dict[int, Any] = {k: np.zeros(given[k].shape, given[k].dtype, zeros[k]) for k in zeros}
            arena = Arena()
            value, *frame = forward(arena.header, *given)
            out = backward(arena.header, *frame, 1.0, *bars.values())
            for k, bar in zip(numbers, out, strict=True):
                bars[k] = bar
            return value, tuple([bars[k] if cls is np.ndarray else cls(bars[k]) for k, cls in types])

        return run

    return prepared


def in_columns(found: Derived, draws: bool) -> Any:
    """A call by one sweep of forward mode: see `by_columns`. `draws`: it must not be done twice."""
    gradient = found.run

    def prepared(args: tuple[Any, ...], positions: tuple[int, ...]) -> Callable[[Any], Any]:
        reals = with_reals(args, positions)
        places: dict[int, Any] = {}
        start = 0
        for k in sorted(positions):
            x = args[k]
            if isinstance(x, np.ndarray):
                places[k] = slice(start, start + x.size), x.dtype, x.shape
                start += x.size
            else:
                places[k] = start, float if type(x) is int else type(x), None
                start += 1
        parts = [places[k] for k in positions]

        def run(given: tuple[Any, ...]) -> Any:
            value, row = gradient(*(given if reals is None else reals(given)), 0)
            if not all(map(math.isfinite, row)) and not draws:
                return None
            return value, tuple(
                [
                    kind(row[at]) if shape is None else np.array(row[at], kind).reshape(shape)
                    for at, kind, shape in parts
                ]
            )

        return run

    return prepared


__all__ = ["by_shortcut", "in_columns", "in_sweeps", "keep"]
