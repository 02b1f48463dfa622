"""What functions of the program keep from call to call: memos, counters, histories that a solver's calls leave behind.

A solver runs its function one level out, where the parameters are constants. A memo filled there would hand them to the
level that takes the derivative as constants, too. So the state that the function can reach is put back after each such
run: the equations at the solution fill a memo anew, with numbers that have derivatives. In the end all is as the solver's
own run has left it, with those numbers where they are equal; other numbers refuse their derivatives.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from contextvars import ContextVar
from functools import cached_property, partial
from types import (
    AsyncGeneratorType,
    CellType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from plaingrad import origin
from plaingrad.class_keys import is_among
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.contents import (
    CONTAINERS,
    LACKING,
    LIBRARIES,
    Scope,
    contents_of,
    is_of_library,
    is_same_contents,
    put_back,
    slots_of,
)

ATOMS = frozenset((float, int, bool, str, bytes, complex, type(None), np.float64, np.int64, CodeType))
#: Special methods that operators enter, but which keep nothing that outlives the call by themselves.
MAKERS = frozenset(
    "__init__ __new__ __post_init__ __set_name__ __init_subclass__ __class_getitem__ __repr__ __str__".split()
)
NUMBERS = (float, np.float64, complex)
MOST = 500_000  # objects that are looked at
_EFFECTS: dict[CodeType, tuple[bool, frozenset[str]]] = {}


class Kept:
    """The state that a solver's functions can reach, and what the solver's own run has left there.

    Attributes:
        function: the solver.
        holders: containers, objects, classes, cells and scopes.
        arrays: writable arrays.
        frames: what generators hold, whose state cannot be put back.
        numbers: numbers and arrays that were found.
        seen: all that was looked at, by identity.
        is_whole: whether all was looked at.
        before: for each holder its contents before the solver.
        first: contents of the arrays in the first run; None before it.
        left: for each holder its contents after the solver's run, and those of arrays; None before it.
    """

    def __init__(self, function: Any, walk: Walk) -> None:
        self.function, self.holders, self.arrays, self.frames = (
            function,
            walk.holders,
            walk.arrays,
            walk.frames,
        )
        self.numbers, self.seen, self.is_whole = walk.numbers, walk.seen, walk.is_whole
        self.before = [contents_of(holder) for holder in walk.holders]
        self.first: list[Any] | None = None
        self.left: tuple[list[Any], list[Any]] | None = None


KEPT: ContextVar[Kept | None] = ContextVar("KEPT", default=None)


# -- what is reached ---------------------------------------------------------------------------------------------------


def facts_of(code: CodeType) -> tuple[bool, frozenset[str]]:
    """(whether code changes what outlives its call, the names in it), of functions made inside, too."""
    found = _EFFECTS.get(code)
    if found is None:
        names, inner = set(code.co_names), [code]
        while inner:
            inner = [c for outer in inner for c in outer.co_consts if isinstance(c, CodeType)]
            names.update(*[c.co_names for c in inner])
        if len(_EFFECTS) > 4096:
            _EFFECTS.clear()
        found = _EFFECTS[code] = derivatives.has_effects(code), frozenset(names)
    return found


class Walk:
    """From functions to all that they may change."""

    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}
        self.stack: list[Any] = []
        self.holders: list[Any] = []
        self.arrays: list[Any] = []
        self.frames: list[Any] = []
        self.classes: list[type] = []
        self.names: set[str] = set()
        self.numbers: list[Any] = []
        self.changes, self.is_whole = False, True

    def run(self, roots: list[Any]) -> None:
        """Go on until nothing new is found; methods count if their names are used, or if operators enter them."""
        self.stack.extend(roots)
        while self.stack:
            while self.stack and len(self.seen) < MOST:
                o = self.stack.pop()
                if is_among(type(o), ATOMS):
                    self.numbers += [o] if isinstance(o, NUMBERS) else []
                elif id(o) not in self.seen:
                    self.seen[id(o)] = o
                    self.visit(o, type(o))
            if len(self.seen) >= MOST:
                self.is_whole, self.stack = False, []
            else:
                self.stack = [f for cls in self.classes for f in self.used(cls)]

    def used(self, cls: type) -> list[Any]:
        """Functions of a class that may be called, which were not seen yet."""
        found = []
        for name, f in vars(cls).items():
            if name in self.names or (name.startswith("__") and name not in MAKERS):
                self.changes |= type(f) is cached_property
                is_descriptor = hasattr(type(f), "__get__") and not is_of_library(type(f))
                f = f.fget if type(f) is property else getattr(f, "func", getattr(f, "__func__", f))
                if (type(f) is FunctionType or is_descriptor) and id(f) not in self.seen:
                    found.append(f)
        return found

    def visit(self, o: Any, t: type) -> None:
        """Note what one object may change, and what it holds."""
        if t is FunctionType:
            self.visit_function(o)
        elif t is CellType:
            self.holders.append(o)
            self.stack.append(contents_of(o)["contents"])
        elif t is MethodType:
            self.stack += [o.__func__, o.__self__]
        elif t is partial:
            self.stack += [o.func, *o.args, *o.keywords.values()]
        elif isinstance(o, np.ndarray):
            self.visit_array(o)
        elif t is ModuleType:
            if is_of_program(o):
                self.holders.append(Scope(vars(o), self.names))
                self.stack += [vars(o)[name] for name in self.names if name in vars(o)]
        elif t in (GeneratorType, CoroutineType, AsyncGeneratorType):
            self.visit_generator(o)
        elif isinstance(o, type):
            if not is_of_library(o):
                self.classes.append(o)
                home = sys.modules.get(str(o.__module__))
                if home is None or is_of_program(
                    home
                ):  # classes of packages install attributes when they are asked for
                    self.holders.append(o)
        elif isinstance(o, (tuple, frozenset)):
            self.stack.extend(o)
        else:
            self.visit_holder(o, t)

    def visit_array(self, o: Any) -> None:
        """The same of an array."""
        self.numbers += [o] if o.dtype.kind in "fc" else []
        if o.flags.writeable and o.dtype.kind in "fciub":
            self.arrays.append(o)
        elif o.dtype.kind == "O" and o.size <= MOST:
            self.holders.append(o)
            self.stack += o.ravel().tolist()

    def visit_generator(self, o: Any) -> None:
        """What it holds between two items."""
        frame = getattr(o, "gi_frame", None)
        if frame is not None:
            self.changes = True
            self.frames += frame.f_locals.values()
            self.stack += frame.f_locals.values()

    def visit_holder(self, o: Any, t: type) -> None:
        """The same of containers and objects."""
        if isinstance(o, dict) and (isinstance(o, defaultdict) or hasattr(t, "__missing__")):
            self.changes = True
            self.stack.append(getattr(o, "default_factory", None))
        wrapped = getattr(o, "__wrapped__", None) if not hasattr(o, "__dict__") or callable(o) else None
        is_container = isinstance(o, CONTAINERS)
        if is_container or (not is_of_library(t) and (hasattr(o, "__dict__") or slots_of(t))):
            self.holders.append(o)
            self.visit_held(list(contents_of(o).values()))
        if is_container and getattr(o, "__dict__", None) is not None:  # of a subclass
            self.holders.append(o.__dict__)
            self.visit_held(list(o.__dict__.values()))
        if not is_of_library(t):
            self.stack += t.__mro__[:-1]
        elif origin.is_of(t.__module__, ("scipy",)) and hasattr(o, "__dict__"):
            self.stack += vars(o).values()  # functions that it was given
        if wrapped is not None:
            self.stack.append(wrapped)

    def visit_held(self, held: list[Any]) -> None:
        """What a container holds."""
        if len(held) < 64 or not all(is_among(type(x), ATOMS) for x in held):
            self.stack += held
        else:
            self.numbers += [x for x in held if isinstance(x, NUMBERS)]

    def visit_function(self, f: Any) -> None:
        """What code names, and what it has captured."""
        if origin.is_of(f.__module__, LIBRARIES):
            if origin.is_of(f.__module__, ("scipy",)):
                self.stack += f.__closure__ or ()
            return
        changes, names = facts_of(f.__code__)
        self.changes |= changes
        self.names |= names
        if changes:
            self.holders.append(f.__dict__)
        self.stack += f.__dict__.values()
        self.stack += f.__closure__ or ()
        self.stack += f.__defaults__ or ()
        self.stack += (f.__kwdefaults__ or {}).values()
        if origin.is_standard(f.__module__):
            return  # its globals hold nothing of a program but tables of classes, each of which leads to whole packages
        scope = Scope(f.__globals__, names)
        if changes:
            self.holders.append(scope)
        self.stack += [scope.scope[name] for name in names if name in scope.scope]


def is_of_program(module: ModuleType) -> bool:
    """Whether a module is no library's."""
    return not origin.is_of(module.__name__, LIBRARIES) and not origin.is_of_package(module.__name__)


def reached(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Kept | None:
    """What functions among the arguments of a solver may change; None if nothing."""
    walk = Walk()
    walk.run([x for x in (*args, *kwargs.values()) if not isinstance(x, np.ndarray)])
    return Kept(function, walk) if walk.changes else None


def numbers_in(*roots: Any) -> list[Any]:
    """Numbers and arrays that functions may read."""
    walk = Walk()
    walk.run(list(roots))
    return walk.numbers


def differing(arrays: list[Any], contents: list[Any]) -> list[int]:
    """Which arrays have other contents."""
    return [
        k for k, a in enumerate(arrays) if not np.array_equal(a, contents[k], equal_nan=a.dtype.kind in "fc")
    ]


# -- runs one level out ------------------------------------------------------------------------------------------------


def state() -> Any:
    """(what a solver's functions may change, what the holders among that hold now); (None, None) if nothing."""
    kept = KEPT.get()
    return (None, None) if kept is None else (kept, [contents_of(holder) for holder in kept.holders])


def begin_run(kept: Kept, contents: list[Any]) -> list[int]:
    """Let all holders hold what they have held before the solver; which arrays have other contents than then."""
    if kept.first is None:
        kept.first = contents
    put_all_back(kept, kept.before)
    return differing(kept.arrays, kept.first)


def end_run(kept: Kept, before: Any, contents: list[Any], function: Any) -> None:
    """Let all holders hold what they have held before this run; remember what the solver's own run has left, the first."""
    if kept.left is None and function is kept.function:
        kept.left = [contents_of(holder) for holder in kept.holders], contents
    put_all_back(kept, before)


def put_all_back(kept: Kept, before: Any) -> None:
    """Let all holders hold what they have held."""
    for holder, old in zip(kept.holders, before, strict=True):
        if not is_same_contents(contents_of(holder), old):
            put_back(holder, old)


def is_equal(a: Any, b: Any, depth: int = 4) -> bool:
    """Whether what the level has computed anew is what the solver's run had computed."""
    if a is b:
        return True
    if type(a) is not type(b) or not depth:
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, (float, int, complex, str, bytes, np.generic)):
        return bool(a == b) or (a != a and b != b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(is_equal(x, y, depth - 1) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(is_equal(x, b[key], depth - 1) for key, x in a.items())
    if getattr(a, "__dict__", None) is not None:
        return is_equal(vars(a), vars(b), depth - 1)
    return True  # of one class, kept under one name


def changed(kept: Kept) -> list[tuple[Any, dict[Any, Any], list[Any]]]:
    """(holder, what it is to hold, keys of what the level has not computed as the solver's run had)."""
    found = []
    assert kept.left is not None
    for holder, left in zip(kept.holders, kept.left[0], strict=True):
        now = contents_of(holder)
        if not is_same_contents(now, left):
            new = {key: now[key] if key in now and is_equal(now[key], x) else x for key, x in left.items()}
            found.append((holder, new, [key for key, x in new.items() if now.get(key, LACKING) is not x]))
    return found


def numbers_of(z: Any) -> list[Any]:
    """Numbers and arrays in what a solver returns."""
    if isinstance(z, (float, complex, np.ndarray, np.floating)):
        return [z]
    if isinstance(z, dict):
        return [x for part in z.values() for x in numbers_of(part)]
    if isinstance(z, tuple):
        return [x for part in z for x in numbers_of(part)]
    return [
        x
        for part in getattr(z, "__dict__", {}).values()
        for x in numbers_of(part)
        if isinstance(part, (float, np.ndarray))
    ]


def may_hold(x: Any, seen: dict[int, Any]) -> bool:
    """Whether x, which a function has kept, is a container or an object that may hold numbers, and was not seen."""
    t = type(x)
    if is_among(t, ATOMS) or id(x) in seen or isinstance(x, (type, FunctionType, ModuleType)):
        return False
    is_array = isinstance(x, np.ndarray) and x.dtype.kind == "O"
    is_object = not is_of_library(t) and (hasattr(x, "__dict__") or bool(slots_of(t)))
    return isinstance(x, (tuple, dict, list, set, deque)) or is_array or is_object


def tuple_like(x: Any, parts: list[Any]) -> Any:
    """A tuple with other parts, of the class of x; x itself if they are the same."""
    if all(a is b for a, b in zip(x, parts, strict=True)):
        return x
    return tuple.__new__(type(x), parts)


#: What only moves references, and runs as it is at every level.
MOVERS = (
    reached,
    numbers_in,
    state,
    begin_run,
    end_run,
    contents_of,
    is_same_contents,
    may_hold,
    tuple_like,
    put_back,
    changed,
    numbers_of,
    differing,
)

__all__ = [
    "KEPT",
    "MOVERS",
    "Kept",
    "begin_run",
    "changed",
    "differing",
    "end_run",
    "numbers_in",
    "numbers_of",
    "put_back",
    "reached",
    "state",
]
