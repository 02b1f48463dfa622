"""What a call can change: its arguments, the globals and cells that the function reads, random generators.

A state is a flat dictionary from a place, in words, to what is there; so two states can be compared in words too.
"""

from __future__ import annotations

import builtins
import functools
import random
from collections import deque
from collections.abc import Callable, Iterator
from enum import EnumType
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from plaingrad.class_keys import is_among
from plaingrad.engine.memory.entries import has_fields
from plaingrad.engine.memory.kinds import MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, is_heap, kind_of
from plaingrad.tangents import Tangent
from plaingrad.tangents.fields import fields_of
from plaingrad.tangents.project import for_numpy
from plaingrad.testing.structures import DEPTH, parts_of

PLAIN_TYPES = (
    str,
    bytes,
    bytearray,
    int,
    type(None),
    np.integer,
    np.bool_,
    np.dtype,
    slice,
    range,
    type(Ellipsis),
    type,
)
EXACT = frozenset({str, int, bool, bytes, type(None)})  # the commonest of those, found without a question
GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
LIMIT = 20_000  # places that are looked at; a larger world is looked at in part


class Array:
    """The contents of an array at one moment."""

    __slots__ = ("x",)

    def __init__(self, x: np.ndarray) -> None:
        self.x = np.array(x, copy=True, subok=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and same_array(self.x, other.x)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        text = np.array2string(self.x, precision=6, threshold=8, separator=", ").replace("\n", "")
        return f"{text} ({self.x.dtype}, shape {self.x.shape})"


class Number:
    """A number, compared to the bit: nan equals nan, and 0.0 differs from -0.0."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and type(self.x) is type(other.x) and same_number(self.x, other.x)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            repr(self.x)
            if type(self.x) is float or type(self.x) is complex
            else f"{self.x!r} ({type(self.x).__qualname__})"
        )


def same_number(a: Any, b: Any) -> bool:
    """Whether two numbers of one type are equal to the bit."""
    if isinstance(a, (float, complex, np.inexact)):
        return same_array(np.asarray(for_numpy(a)), np.asarray(for_numpy(b)))
    return bool(a == b) or (a != a and b != b)


def same_array(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal to the bit, in shape, type and contents."""
    if type(a) is not type(b) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "c":
        return same_array(np.asarray(a.real), np.asarray(b.real)) and same_array(
            np.asarray(a.imag), np.asarray(b.imag)
        )
    if a.dtype.kind != "f":
        return bool(np.array_equal(np.asarray(a), np.asarray(b)))
    a, b = np.asarray(a), np.asarray(b)
    equal = (a == b) & (np.signbit(a) == np.signbit(b))
    return bool(np.all(equal | (np.isnan(a) & np.isnan(b))))


def contents(x: Any, path: str) -> dict[str, Any]:
    """Every place in `x`, with what is in it; one thing in two places is said to be the same."""
    found: dict[str, Any] = {}
    _note(x, path, found, {}, 0)
    return found


def _note(x: Any, path: str, found: dict[str, Any], seen: dict[int, tuple[str, Any]], depth: int) -> None:
    cls = type(x)
    if is_among(cls, EXACT):
        found[path] = cls.__qualname__, x
        return
    kind = kind_of(cls)
    if kind == NUMBER:
        found[path] = Number(x)
        return
    if isinstance(x, type):  # classes may be made anew by each call
        found[path] = ("type", x.__qualname__)
        return
    if isinstance(x, PLAIN_TYPES):
        found[path] = (type(x).__qualname__, bytes(x) if isinstance(x, bytearray) else x)
        return
    if id(x) in seen:
        found[path] = ("the same as", seen[id(x)][0])
        return
    seen[id(x)] = path, x
    if depth > DEPTH or len(found) > LIMIT:
        found[path] = type(x).__qualname__
    elif isinstance(x, np.ndarray) and x.dtype.kind != "O":
        found[path] = Array(x)
    elif isinstance(x, np.ndarray):
        found[path] = ("array of objects", x.shape)
        for at in np.ndindex(x.shape):
            _note(x[at], f"{path}{list(at)}", found, seen, depth + 1)
    elif kind == SEQUENCE:
        found[path] = (cls.__qualname__, f"{len(x)} entries")
        for n, value in enumerate(x):
            _note(value, f"{path}[{n}]", found, seen, depth + 1)
    elif kind == MAPPING:
        keys = list(map(repr, x))
        found[path] = (cls.__qualname__, f"{len(keys)} entries", *keys)
        for key, value in zip(keys, list(x.values()), strict=False):
            _note(value, f"{path}[{key}]", found, seen, depth + 1)
    elif isinstance(x, (set, frozenset)):
        found[path] = (type(x).__qualname__, *sorted(map(repr, x)))
    elif isinstance(x, GENERATORS):
        found[path] = (type(x).__qualname__, generator_state(x))
    elif isinstance(x, BaseException):
        found[path] = (type(x).__qualname__, str(x))
    elif isinstance(x, (FunctionType, BuiltinFunctionType)):
        found[path] = ("function", x.__qualname__)
    elif type(x) is Tangent or (kind == OBJECT and has_fields(x)):
        fields = dict(parts_of(x)) if type(x) is Tangent else fields_of(x)
        found[path] = (type(x).__qualname__, *fields)
        for key, value in fields.items():
            _note(value, f"{path}.{key}", found, seen, depth + 1)
    else:
        found[path] = type(x).__qualname__


def generator_state(x: Any) -> str:
    """What a random generator will draw next, as a fingerprint of its state."""
    if isinstance(x, random.Random):
        state: Any = repr(x.getstate())
    elif isinstance(x, np.random.RandomState):
        state = tuple(
            [part.tobytes() if isinstance(part, np.ndarray) else part for part in x.get_state(legacy=True)]
        )
    else:
        state = repr((x.bit_generator if isinstance(x, np.random.Generator) else x).state)
    return f"in state {hash(state) & 0xFFFFFFFF:08x}"


def changes(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The places where `found` differs from `expected`, in words."""
    words = []
    for path, what in expected.items():
        if path not in found:
            words.append(f"{path} is gone; a plain call leaves {in_words(what)}")
        elif not same_thing(what, found[path]):
            words.append(f"{path} is {in_words(found[path])}; a plain call leaves {in_words(what)}")
    words.extend(f"{path} is new: {in_words(what)}" for path, what in found.items() if path not in expected)
    return words


def same_thing(a: Any, b: Any) -> bool:
    """Whether two notes are equal."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if is_among(type(a), EXACT):
        return a == b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_thing, a, b))
    if isinstance(a, (Array, Number)):
        return a == b
    try:
        return bool(a == b)
    except Exception:
        return a is b


def in_words(what: Any) -> str:
    """A note for a message."""
    text = " ".join(map(str, what)) if isinstance(what, tuple) else str(what)
    return text if len(text) <= 120 else text[:117] + "..."


# -- the world of a function -----------------------------------------------------------------------------------------


class World:
    """What a function can reach besides its arguments: globals that it names, closure cells, defaults, its object.

    Followed into the Python functions that it names. It can be looked at, saved and put back.
    """

    def __init__(self, f: Any) -> None:
        self.places: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {}
        self.seen: set[int] = set()
        self.spaces: dict[int, tuple[type, frozenset[str]]] = {}  # classes, and the names in them
        self.absent: list[tuple[dict[str, Any], str]] = []  # globals that are not there yet
        self._reach(f, "the function")

    def contents(self) -> dict[str, Any]:
        """Everything in it now."""
        found: dict[str, Any] = {}
        seen: dict[int, tuple[str, Any]] = {}
        for name, (read, _) in self.places.items():
            try:
                value = read()
            except (KeyError, ValueError, AttributeError):
                continue  # not bound now
            _note(value, name, found, seen, 0)
        for cls, names in self.spaces.values():
            for name in sorted(vars(cls).keys() - names):
                if is_data(vars(cls)[name]):
                    _note(vars(cls)[name], f"class attribute {cls.__qualname__}.{name}", found, seen, 0)
        for space, name in self.absent:
            if name in space:
                _note(space[name], f"global `{name}`", found, seen, 0)
        found["NumPy's global random generator"] = generator_state(np.random.mtrand._rand)
        found["Python's global random generator"] = f"in state {hash(random.getstate()) & 0xFFFFFFFF:08x}"
        return found

    def saved(self) -> Callable[[], None]:
        """What puts everything back as it is now."""
        undo: list[Callable[[], None]] = []
        seen: dict[int, Any] = {}
        for read, write in self.places.values():
            try:
                value = read()
            except (KeyError, ValueError, AttributeError):
                continue
            undo.append(functools.partial(write, value))
            undo.extend(restorers(value, seen, 0))
        undo.append(self._remove_what_is_new)
        undo.append(functools.partial(np.random.set_state, np.random.get_state()))
        undo.append(functools.partial(random.setstate, random.getstate()))

        def put_back() -> None:
            for step in undo:
                step()

        return put_back

    def _remove_what_is_new(self) -> None:
        for cls, names in self.spaces.values():
            for name in vars(cls).keys() - names:
                if is_data(vars(cls)[name]):
                    delattr(cls, name)
        for space, name in self.absent:
            space.pop(name, None)

    def _reach(self, f: Any, label: str) -> None:
        if id(f) in self.seen or len(self.seen) > 300 or len(self.places) > LIMIT:
            return
        self.seen.add(id(f))
        if isinstance(f, MethodType):
            self._thing(f.__self__, f"the object of {f.__qualname__}")
            self._reach(f.__func__, label)
        elif isinstance(f, functools.partial):
            self._thing(f.args, "the arguments of the partial")
            self._thing(f.keywords, "the keywords of the partial")
            self._reach(f.func, label)
        elif isinstance(f, FunctionType):
            if not (f.__module__ or "").startswith(("plaingrad.", "numpy.")):
                self._function(f)
        elif isinstance(f, type):
            self._class(f)
        elif kind_of(type(f)) == OBJECT and has_fields(f):
            self._thing(f, "the callable object")
            self._class(type(f))

    def _thing(self, x: Any, label: str) -> None:
        self.places.setdefault(label, (lambda: x, lambda _: None))

    def _function(self, f: FunctionType) -> None:
        names = set(names_in(f.__code__))
        for name in sorted(names):
            if name in f.__globals__:
                self._name(f.__globals__, name, names, f"global `{name}`")
            elif not hasattr(builtins, name):
                self.absent.append((f.__globals__, name))
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if name == "__classdict__":  # of lazy annotations: the collector may clear it at any time
                continue
            if callable(value) and not is_data(value):
                self._reach(value, name)
            elif is_data(value):
                self.places.setdefault(
                    f"`{name}` of the closure of {f.__qualname__}",
                    (functools.partial(getattr, cell, "cell_contents"), functools.partial(set_cell, cell)),
                )
                if is_heap(type(value)):
                    self._class(type(value))
        if f.__defaults__:
            self._thing(f.__defaults__, f"the defaults of {f.__qualname__}")
        if f.__kwdefaults__:
            self._thing(f.__kwdefaults__, f"the keyword defaults of {f.__qualname__}")

    def _name(self, space: dict[str, Any], name: str, names: set[str], label: str) -> None:
        value = space[name]
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] not in (
                "numpy",
                "plaingrad",
                "math",
                "builtins",
                "sys",
                "os",
            ):
                for inner in sorted(names & value.__dict__.keys()):
                    if is_data(value.__dict__[inner]):
                        self._name(value.__dict__, inner, set(), f"`{value.__name__}.{inner}`")
        elif is_data(value):
            self.places.setdefault(
                label,
                (functools.partial(space.__getitem__, name), functools.partial(space.__setitem__, name)),
            )
            if is_heap(type(value)):
                self._class(type(value))
        elif callable(value):
            self._reach(value, name)

    def _class(self, cls: type) -> None:
        for base in cls.__mro__:
            known = (base.__module__ or "").partition(".")[0] in (
                "numpy",
                "plaingrad",
                "abc",
                "enum",
                "typing",
            )
            if known or not is_heap(base) or isinstance(base, EnumType) or id(base) in self.spaces:
                continue
            self.spaces[id(base)] = base, frozenset(vars(base))
            for name, value in list(vars(base).items()):
                if not name.startswith("__") and is_data(value) and not hasattr(type(value), "__get__"):
                    self.places.setdefault(
                        f"class attribute {base.__qualname__}.{name}",
                        (
                            functools.partial(read_attribute, base, name),
                            functools.partial(setattr, base, name),
                        ),
                    )
                for f in (
                    value,
                    *(getattr(value, part, None) for part in ("__func__", "fget", "fset", "func")),
                ):
                    if isinstance(f, FunctionType):
                        self._reach(f, name)


def read_attribute(cls: type, name: str) -> Any:
    """What a class itself has under a name."""
    return vars(cls)[name]


def set_cell(cell: Any, value: Any) -> None:
    """Bind a closure cell."""
    cell.cell_contents = value


def is_data(x: Any) -> bool:
    """Whether `x` holds values, rather than being code."""
    kind = kind_of(type(x))
    if kind == NOTHING:
        return isinstance(x, (int, str, bytes, bytearray, type(None)))
    if kind == OBJECT:
        if isinstance(x, (type, ModuleType, FunctionType, MethodType, property, staticmethod, classmethod)):
            return False
        return has_fields(x) or isinstance(x, (set, frozenset, np.random.Generator, np.random.RandomState))
    return True


def names_in(code: CodeType) -> Iterator[str]:
    """Every name that the code, or a function in it, may read from its globals."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def restorers(x: Any, seen: dict[int, Any], depth: int) -> Iterator[Callable[[], None]]:
    """What puts the contents of `x`, and of what is in it, back as they are now."""
    if is_among(type(x), EXACT) or id(x) in seen or depth > DEPTH or len(seen) > LIMIT:
        return
    kind = kind_of(type(x))
    seen[id(x)] = x
    values: Any = ()
    if isinstance(x, np.ndarray):
        if x.flags.writeable:
            yield functools.partial(np.copyto, x, x.copy())
        values = list(x.flat) if x.dtype.kind == "O" else ()
    elif isinstance(x, (list, deque)):
        values = list(x)
        yield functools.partial(refill, x, values)
    elif kind == MAPPING and isinstance(x, dict):
        values = list(x.values())
        yield functools.partial(refill_mapping, x, dict(x))
    elif isinstance(x, set):
        yield functools.partial(refill_mapping, x, set(x))
    elif isinstance(x, np.random.Generator):
        yield functools.partial(setattr, x.bit_generator, "state", x.bit_generator.state)
    elif isinstance(x, np.random.RandomState):
        yield functools.partial(x.set_state, x.get_state())
    elif isinstance(x, random.Random):
        yield functools.partial(x.setstate, x.getstate())
    elif kind == SEQUENCE:
        values = list(x)
    elif kind == OBJECT and has_fields(x):
        fields = fields_of(x)
        values = list(fields.values())
        yield functools.partial(refill_object, x, fields)
    for value in values:
        yield from restorers(value, seen, depth + 1)


def refill(x: Any, values: list[Any]) -> None:
    """Put the entries of a list back."""
    x.clear()
    x.extend(values)


def refill_mapping(x: Any, values: Any) -> None:
    """Put the entries of a dictionary or a set back."""
    x.clear()
    x.update(values)


def refill_object(x: Any, fields: dict[str, Any]) -> None:
    """Put the attributes of an object back."""
    for name in fields_of(x).keys() - fields.keys():
        object.__delattr__(x, name)
    for name, value in fields.items():
        object.__setattr__(x, name, value)
