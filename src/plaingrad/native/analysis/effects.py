"""What a call of a function of the user's does besides returning a value: writes, random draws, printing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaingrad.native.frontend.current import changes
from plaingrad.native.frontend.operands import constant
from plaingrad.native.program.dispatchers import python_function
from plaingrad.native.program.ir import Let, Operand, Program, Var
from plaingrad.native.program.per_function import PerFunction
from plaingrad.native.program.value_types import settled, type_of_value

_known = PerFunction()
_open: set[Any] = set()  # functions being looked at: those that call themselves


@dataclass(frozen=True, slots=True)
class Effects:
    """Of one function, for one list of argument types.

    Attributes:
        writes: the positions of the arguments that it may write into, or whose lists of arrays it may change.
        aliases: whether its result may share memory with an argument.
        once: what it does that must not be done again on the way back, in words; "" if nothing.
    """

    writes: frozenset[int]
    aliases: bool
    once: str


# (a function, argument types) -> its effects: set by `lowering/prepare.py`, since a callee is looked at in the form in
# which it is differentiated, and bringing a caller into that form asks for the effects of its callees.
_looked_at: Callable[[Any, tuple[Any, ...]], Effects] | None = None


def look_by(looked_at: Callable[[Any, tuple[Any, ...]], Effects]) -> None:
    """Let `looked_at(function, argument types)` be how effects are found."""
    global _looked_at
    _looked_at = looked_at


def effects_of(f: Any, signature: tuple[Any, ...]) -> Effects:
    """The effects of a Python function or dispatcher; the worst where it calls itself."""
    function = python_function(f)
    known, key = _known.of(function), (signature, changes())
    found = known.get(key)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if function.__code__ in _open:
        return Effects(frozenset(range(len(signature))), True, "")
    assert _looked_at is not None, "the lowering passes are not loaded"
    _open.add(function.__code__)
    try:
        known[key] = found = _looked_at(f, signature)
    finally:
        _open.discard(function.__code__)
    return found


def once_only(s: Let) -> str:
    """What a call does that must not be done twice; "" if nothing."""
    f = getattr(s.args[0], "value", None)
    module = str(getattr(f, "__module__", None) or "")
    owner = getattr(f, "__self__", None)
    if module in ("random", "numpy.random") or isinstance(owner, np.random.RandomState):
        return "draws random numbers"
    return "prints" if f is print else ""


def bound_operands(f: Any, args: tuple[Operand, ...], keywords: tuple[str, ...]) -> tuple[Operand, ...]:
    """The operands of a call by position: keywords put in their place, defaults filled in.

    Raises:
        TypeError: they do not fit the function's parameters.
    """
    positional = args[: len(args) - len(keywords)]
    named = dict(zip(keywords, args[len(positional) :], strict=True))
    arguments = inspect.signature(python_function(f)).bind(*positional, **named)
    given = dict(arguments.arguments)
    arguments.apply_defaults()
    if arguments.kwargs:
        raise TypeError("keyword-only parameters")
    return tuple(
        value if name in given else constant(value, name) for name, value in arguments.arguments.items()
    )


def argument_types(program: Program, s: Let) -> tuple[Any, ...]:
    """The Numba types of the arguments of a call, without those left to their defaults."""
    found = bound_operands(getattr(s.args[0], "value", None), s.args[1:], s.detail or ())
    return tuple(
        settled(program.types[a.name] if isinstance(a, Var) else type_of_value(a.value)) for a in found
    )
