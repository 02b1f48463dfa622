"""`tier="fastest"`: whether a derivative may be taken natively and be what the plain tier gives, to rounding.

That is decided once for a function, an operator, and the types of arguments: the plain tier does the first call, the
native one does it again on copies, and both are compared. What compiled code does otherwise than Python is looked for
in the program, and after every call: indices are checked, whole numbers must stay small, and where the processor has
noted an invalid operation, a division by zero or a number too large, or anything was raised, the plain tier does the
call again, on the arguments as they were.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.copying import deep_copy
from plaingrad.errors import NativeError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.border.aliases import live_arrays
from plaingrad.native.border.call import plainly
from plaingrad.native.border.conversion import opened, taken
from plaingrad.native.frontend.translation import program
from plaingrad.native.lowering.prepare import prepared
from plaingrad.native.machine import floating_point
from plaingrad.native.objects import structure
from plaingrad.native.objects.call import call_of, flat_of
from plaingrad.native.program.dispatchers import is_dispatcher, is_plain, with_bounds_checked
from plaingrad.native.program.ir import Const, Let, Program, Var, statements
from plaingrad.native.program.per_function import PerFunction
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents import Tangent

LARGEST = 10**6  # of whole numbers that a program is given: products of three of them are below 2**63
MOST_FACTORS = 3
MOST_FAILURES = 3  # calls that the plain tier had to do again, before it does all
RELATIVE = 1e-8  # more is no rounding
_choices = PerFunction()  # of functions: (operator, types of arguments) -> `Choice`


@dataclass(slots=True)
class Choice:
    """What was decided.

    Attributes:
        operator: for which operator, with its options.
        tier: "native" or "plain".
        why: why not natively; "" for the native tier.
        kind: the types of what the plain tier gave, in the form in which it is compared.
        writes: whether the function writes into its arguments.
        failures: how many calls in a row the plain tier had to do again.
    """

    operator: str
    tier: str
    why: str = ""
    kind: Any = None
    writes: bool = False
    failures: int = field(default=0, repr=False)


@dataclass(frozen=True, slots=True)
class Task:
    """A derivative to be taken.

    Attributes:
        operator: its name and options, in words.
        f: the function.
        args: its arguments.
        kwargs: those by keyword.
        positions: of the differentiated ones.
        by: (tier, args, kwargs) -> the result.
        shown: what there is to compare of a result: values in structures.
    """

    operator: str
    f: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    positions: tuple[int, ...]
    by: Callable[..., Any]
    shown: Callable[[Any], Any]

    def plain(self) -> Any:
        """The result by the tier that takes anything."""
        return self.by("auto", self.args, self.kwargs)

    def native(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result by the native tier, for arguments like these; indices are checked."""
        return with_bounds_checked(self.by, "native", args, kwargs)


def taken_fastest(task: Task) -> Any:
    """The result of a derivative, by the tier that was chosen for it, or is chosen now."""
    function = opened(task.f)[0]
    if not isinstance(function, FunctionType):
        return task.plain()
    key = key_of(task)
    choice = _choices.of(function).get(key) if key is not None else None
    if choice is None:
        return chosen_now(task, function, key)
    if choice.tier == "plain" or not are_small((task.args, task.kwargs)):
        return task.plain()
    before = deep_copy((task.args, task.kwargs)) if choice.writes else None
    floating_point.clear()
    try:
        found = task.native(task.args, task.kwargs)
        noted = floating_point.is_noted()
        found = None if noted else converted(found, choice.kind)
        failed = noted or not is_finite(found)
    except Exception:
        failed = True
    if not failed:
        choice.failures = 0
        return found
    choice.failures += 1
    if choice.failures >= MOST_FAILURES:
        choice.tier, choice.why = "plain", "the plain tier had to do it again, several times in a row"
    if before is not None:
        put_back((task.args, task.kwargs), before)
    return task.plain()


def key_of(task: Task) -> Any:
    """The types of arguments and captured variables that a choice is for; None of what is for the plain tier."""
    leaves: list[Any] = []
    seen: set[int] = set()
    try:
        kind = tuple([structure.flattened(x, leaves, seen) for x in (*task.args, *task.kwargs.values())])
    except NativeError:
        return None
    arrays = tuple([(x.dtype, x.ndim, x.flags.num) if isinstance(x, np.ndarray) else None for x in leaves])
    function = opened(task.f)[0]
    held = tuple([content(cell) for cell in function.__closure__ or ()])
    return task.operator, task.positions, kind, tuple(task.kwargs), arrays, held


def content(cell: Any) -> Any:
    """What a captured variable holds, as far as it matters for the choice."""
    try:
        x = cell.cell_contents
    except ValueError:
        return None
    return (type(x), x) if isinstance(x, (int, str)) else (type(x), id(x))


def chosen_now(task: Task, function: Any, key: Any) -> Any:
    """The result by the plain tier; and the choice, if one can be made."""
    copies = None
    try:
        why = "" if key is not None else "an argument is nothing that can be taken apart"
        writes = False if why else facts(task)
        copies = None if why else deep_copy((task.args, task.kwargs))
    except Exception as error:
        why = str(error)
        writes = False
    found = task.plain()
    if key is not None and copies is not None and not why and are_small((task.args, task.kwargs)):
        try:
            why = compared(task, found, copies)
        except Exception as error:
            why = str(error) or type(error).__name__
    kind = None if why else kind_of(task.shown(found))
    tier = "plain" if why else "native"
    _choices.of(function)[key] = Choice(task.operator, tier, why, kind, writes)
    return found


def compared(task: Task, found: Any, copies: Any) -> str:
    """Why the native tier does not do what the plain tier has done; "" if it does."""
    floating_point.clear()
    ours = task.native(*copies)
    if floating_point.is_noted():
        return "the processor has noted an operation without a proper result"
    expected = task.shown(found)
    if not is_alike(task.shown(converted(ours, kind_of(expected))), expected):
        return "the native tier gives another result than the plain one, or one of other types"
    if not is_alike(copies, (task.args, task.kwargs)):
        return "the native tier leaves other arguments behind than the plain one"
    return ""


# -- what compiled code does otherwise ------------------------------------------------------------------------------


def facts(task: Task) -> bool:
    """Whether the function writes into its arguments.

    Raises:
        NativeError: it is none for the native tier.
    """
    try:
        call: Any = taken(task.f, task.args, task.positions, task.kwargs)
        f, signature = call.f, call.signature
        typed = prepared(plainly(program, f, signature))
    except NativeError:
        call = call_of(task.f, task.args, task.positions, task.kwargs)
        flat = flat_of(call)
        if flat.results is None or flat.changes:
            raise
        call = taken(flat.results, call.leaves, call.positions, {})
        f, signature = call.f, call.signature
        typed = prepared(plainly(program, f, signature))
    effects = plainly(effects_of, f, signature)
    if effects.once:
        raise NativeError(f"it {effects.once}")
    if effects.writes and live_arrays(f):
        raise NativeError("it reads arrays from outside, and writes")
    why = may_overflow(typed)
    if why:
        raise NativeError(why)
    return bool(effects.writes)


def may_overflow(p: Program) -> str:
    """Why whole numbers of a program may become too large for 64 bits; "" if they stay small when they are given so."""
    products: set[str] = set()
    grows: dict[str, set[str]] = {}
    for s in statements(p.body):
        if not isinstance(s, Let):
            continue
        f = getattr(s.args[0], "value", None) if s.op == "call" and s.args else None
        if f is not None and (is_dispatcher(f) or is_plain(f)):
            return "it calls a function that is not looked into"
        if not isinstance(p.types.get(s.target), types.Integer):
            continue
        if f in (pow, math.gcd) or (s.op == "binary" and s.detail in ("**", "<<")):
            return f"whole numbers may become large, at line {int(s.line)}"
        grows.setdefault(s.target, set()).update(a.name for a in s.args if isinstance(a, Var))
    for s in statements(p.body):
        if not isinstance(s, Let) or s.op != "binary" or s.target not in grows or s.detail not in "+-*":
            continue
        own = [isinstance(a, Var) and s.target in reached(grows, a.name) for a in s.args]
        large = any(isinstance(a, Const) and abs(a.value) > LARGEST for a in s.args)
        unlike_one = [not (isinstance(a, Const) and abs(a.value) <= 1) for a in s.args]
        if all(own) or large or (s.detail == "*" and any(own) and all(unlike_one)):
            return f"whole numbers may become large, at line {int(s.line)}"
        if s.detail == "*":
            products.add(s.target)
    for name in products:
        if len(reached(grows, name) & products) >= MOST_FACTORS:
            return "products of whole numbers may become large"
    return ""


def reached(edges: dict[str, set[str]], name: str) -> set[str]:
    """All that a variable is computed from, and itself."""
    found, todo = {name}, [name]
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def are_small(x: Any) -> bool:
    """Whether the whole numbers in arguments are small enough that products of a few of them fit into 64 bits."""
    return all(type(leaf) is not int or abs(leaf) <= LARGEST for leaf in leaves_of(x))


# -- results --------------------------------------------------------------------------------------------------------


def parts_of(x: Any) -> list[Any] | None:
    """What is directly inside of a structure, in order; None of what is a leaf."""
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, (tuple, list)):
        return list(x)
    if isinstance(x, Tangent):
        return list(x.values())
    if structure.is_object(x) or dataclasses.is_dataclass(x):
        return list(structure.fields_of(x).values())
    return None


def leaves_of(x: Any) -> Iterator[Any]:
    """The leaves of a structure."""
    parts = parts_of(x)
    if parts is None:
        yield x
    else:
        for part in parts:
            yield from leaves_of(part)


def kind_of(x: Any) -> Any:
    """The types of the numbers in a result."""
    parts = parts_of(x)
    return type(x) if parts is None else (type(x), [kind_of(part) for part in parts])


def converted(x: Any, kind: Any) -> Any:
    """A result whose numbers are of the types that the plain tier gives: np.float64 in the place of float."""
    if isinstance(x, FunctionType) and kind is not FunctionType:

        @functools.wraps(x)
        def in_types(*args: Any) -> Any:
            found = x(*args)
            return converted(found, kind) if CURRENT.get() is PLAIN else found

        return in_types
    if isinstance(x, (float, np.floating)) and kind in (float, np.float64):
        return x if type(x) is kind else kind(x)
    if type(x) is float and isinstance(kind, type) and kind is not float and issubclass(kind, np.floating):
        return kind(x)
    if type(x) not in (tuple, list) or not isinstance(kind, tuple) or not kind[1]:
        return x
    kinds = kind[1] if len(kind[1]) == len(x) else [kind[1][0]] * len(x)
    return type(x)([converted(part, each) for part, each in zip(x, kinds, strict=True)])


def is_finite(x: Any) -> bool:
    """Whether all numbers in a result are."""
    for leaf in leaves_of(x):
        if isinstance(leaf, (float, complex, np.inexact)) and not np.isfinite(leaf):
            return False
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc" and not np.isfinite(leaf).all():
            return False
    return True


def is_alike(x: Any, y: Any) -> bool:
    """Whether two structures are of the same types, and their numbers the same to rounding."""
    if type(x) is not type(y):
        return False
    mine, its = parts_of(x), parts_of(y)
    if mine is not None and its is not None:
        keys_alike = not isinstance(x, dict) or list(x) == list(y)
        return keys_alike and len(mine) == len(its) and all(map(is_alike, mine, its))
    if isinstance(x, np.ndarray):
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        if x.dtype.kind in "fc":
            scale = float(np.max(np.abs(y), initial=0.0))
            return bool(np.allclose(x, y, RELATIVE, RELATIVE * scale, equal_nan=True))
        return bool(np.array_equal(x, y))
    if isinstance(x, (float, complex, np.inexact)):
        return bool(np.isclose(x, y, RELATIVE, 1e-300, equal_nan=True))
    return x is y or bool(x == y)


def put_back(x: Any, before: Any) -> None:
    """Write what arrays in arguments held into them again."""
    for now, then in zip(leaves_of(x), leaves_of(before), strict=True):
        if isinstance(now, np.ndarray):
            now[...] = then


def choices_of(f: Any) -> list[Choice]:
    """What was chosen for a function so far."""
    function = opened(f)[0]
    return list(_choices.of(function).values()) if isinstance(function, FunctionType) else []


__all__ = ["Choice", "Task", "choices_of", "taken_fastest"]
