"""The numbers that an integrand of Python reads, where all of them can be told: those that it and functions that it calls
have captured, and its arguments. Cotangents of these are then the derivative of its integral, and are not computed twice.

An integrand is understood if its code, and that of functions of the program in it, reads numbers, arrays of numbers,
functions and modules of libraries, and nothing else: no object that could hold more numbers than are seen.
"""

from __future__ import annotations

import builtins
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from plaingrad import origin
from plaingrad.class_keys import is_among
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.contents import contents_of
from plaingrad.rules.scipy.implicit import is_active, mover
from plaingrad.tangents import Tangent, unthunk

NUMBERS = frozenset((float, np.float64))
CONSTANTS = frozenset((int, bool, str, type(None), np.int64, np.bool_, np.ufunc, type(np.sum))) - {FunctionType}
LIBRARIES = ("numpy", "scipy", "math", "cmath")
#: Names through which code may reach what its scope does not show.
HIDDEN = frozenset(
    "globals locals vars eval exec compile getattr object __import__ open input super dir type memoryview id".split()
)
MOST_ITEMS = 1000  # of a container of constants
MOST_CODES = 4096
_NAMES: dict[CodeType, frozenset[str] | None] = {}


class Reads:
    """What an integrand reads.

    Attributes:
        leaves: (names of variables on the way to it, or the place of an argument; a number or an array).
        others: numbers and arrays that no cotangent is computed for.
        is_whole: whether that is all.
    """

    def __init__(self) -> None:
        self.leaves: list[tuple[tuple[Any, ...], Any]] = []
        self.others: list[Any] = []
        self.seen: dict[int, Any] = {}
        self.is_whole = True

    def value(self, x: Any, path: tuple[Any, ...] | None) -> None:
        """Note what is read under a path; None: from a scope that cotangents are not computed for."""
        t = type(x)
        if is_among(t, NUMBERS) or (t is np.ndarray and x.dtype.kind == "f"):
            if path is None or id(x) in self.seen:
                self.others.append(x)
            else:
                self.seen[id(x)] = x
                self.leaves.append((path, x))
        elif t is FunctionType:
            self.function(x, path)
        elif t in (tuple, list) and len(x) <= MOST_ITEMS and id(x) not in self.seen:
            self.seen[id(x)] = x
            for part in x:
                self.value(part, None)
        elif not is_constant(x, t):
            self.is_whole = False

    def function(self, f: Any, path: tuple[Any, ...] | None) -> None:
        """The same of what a function's code reads."""
        if id(f) in self.seen:
            return
        self.seen[id(f)] = f
        if f.__closure__ is None and origin.is_of(f.__module__, LIBRARIES):
            return
        names = names_of(f.__code__)
        if names is None or f.__dict__ or origin.is_of(f.__module__, ("plaingrad",)):
            self.is_whole = False
            return
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            held = contents_of(cell).get("contents")
            if id(cell) not in self.seen:
                self.seen[id(cell)] = cell
                self.value(held, None if path is None else (*path, name))
        for x in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self.value(x, None)
        for name in names:
            if name in f.__globals__:
                self.value(f.__globals__[name], None)
            elif name in HIDDEN:
                self.is_whole = False


@mover
def reads_of(f: Any, args: Any) -> Reads | None:
    """What f(x, *args) reads, if that can be told."""
    if type(f) is not FunctionType:
        return None
    reads = Reads()
    reads.function(f, ())
    for place, x in enumerate(args):
        if type(x) is FunctionType:
            return None
        reads.value(x, (place,))
    return reads if reads.is_whole else None


def active_leaves(reads: Reads | None) -> list[tuple[tuple[Any, ...], Any]] | None:
    """The leaves that depend on the inputs at this level; None if others may do so, too."""
    if reads is None or is_active(reads.others):
        return None
    leaves = [leaf for leaf in reads.leaves if is_active(leaf[1])]
    return leaves if are_plain([x for _, x in leaves]) else None


@mover
def are_plain(xs: list[Any]) -> bool:
    """Whether these are numbers and arrays of doubles that share no memory."""
    arrays = [x for x in xs if type(x) is np.ndarray]
    if any(a.dtype != float for a in arrays):
        return False
    return not any(np.may_share_memory(a, b) for k, a in enumerate(arrays) for b in arrays[:k])


def is_constant(x: Any, t: type) -> bool:
    """Whether there is no number in x that could have a derivative."""
    if is_among(t, CONSTANTS):
        return True
    if t is ModuleType:
        return origin.is_of(x.__name__, LIBRARIES)
    if t is BuiltinFunctionType:
        home = x.__self__
        of_library = type(home) is ModuleType and (home is builtins or origin.is_of(home.__name__, LIBRARIES))
        return of_library and x.__name__ not in HIDDEN
    return (t is np.ndarray and x.dtype.kind in "iub") or x is float or x is int or x is range


def names_of(code: CodeType) -> frozenset[str] | None:
    """Names in code, and in functions made inside; None if it reads what these do not tell."""
    found = _NAMES.get(code, ...)
    if found is ...:
        inside, names = [code], set(code.co_names)
        while inside:
            inside = [c for outer in inside for c in outer.co_consts if isinstance(c, CodeType)]
            names.update(*[c.co_names for c in inside])
        if len(_NAMES) > MOST_CODES:
            _NAMES.clear()
        is_clear = not derivatives.has_effects(code) and not derivatives.imports(code)
        found = _NAMES[code] = frozenset(names) if is_clear else None
    return found


# -- their cotangents --------------------------------------------------------------------------------------------------


@mover
def bars_of(leaves: list[tuple[tuple[Any, ...], Any]], f_bar: Any, args_bar: Any) -> list[Any] | None:
    """(cotangent, leaf) for those that have one; None if one is of a kind that is not expected."""
    found = []
    for path, x in leaves:
        bar = args_bar[path[0]] if type(path[0]) is int else f_bar
        for name in path if type(path[0]) is str else ():
            bar = unthunk(bar)
            bar = bar[name] if isinstance(bar, Tangent) and name in bar else None
        bar = unthunk(bar)
        if type(bar) is np.ndarray and bar.dtype == float and bar.shape == np.shape(x):
            found.append((bar, x))
        elif is_among(type(bar), NUMBERS) and is_among(type(x), NUMBERS):
            found.append((float(bar), x))
        else:
            return None
    return found


def linear_in(pairs: list[Any]) -> Any:
    """The sum of products of cotangents and leaves: what an integral is to first order."""
    z = 0.0
    for bar, x in pairs:
        z = z + (bar * x if type(bar) is float else np.vdot(bar, x))
    return z


__all__ = ["active_leaves", "bars_of", "linear_in", "reads_of"]
