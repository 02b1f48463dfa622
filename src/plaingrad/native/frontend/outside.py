"""What functions read from outside: globals, captured variables, defaults, arrays; and whether it is as it was.

A derived program is made of what these were. Python looks them up at every call, so before a derived program is used
its snapshot is compared with them: names by identity, or the digits of numbers, small arrays by their bytes. Arrays
that Numba does not copy into machine code are read where they are, and need no look.
"""

from __future__ import annotations

import dis
import operator
import weakref
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import ir, types

from plaingrad import origin
from plaingrad.native.program.dispatchers import LIBRARIES, is_dispatcher, is_plain, made_by, python_function

MISSING = object()
ROOT = object()  # stands for the function itself
NUMBERS = (int, float, complex, bool, str, np.generic)
COPIED = 10**6  # bytes: Numba copies contiguous arrays up to this size into machine code


class Snapshot:
    """All that a function reads from outside, itself or by the functions that it calls, as it was.

    The function is held weakly, so that what is known of it goes when it goes.

    Attributes:
        root: the function or dispatcher.
        code: its code, its defaults, a copy of those of its keywords, what its captured variables held.
        names: (a namespace, a name, what it stood for).
        codes: of the plain functions that it calls: (function, as `code`).
        compiled: of dispatchers: (the function to ask for one, its compiled forms).
        arrays: (an array, its layout, its bytes).
        live: arrays that compiled code reads where they are.
    """

    __slots__ = ("arrays", "code", "codes", "compiled", "live", "names", "root")

    def __init__(self, f: Any) -> None:
        self.root = weakref.ref(f)
        self.names: list[tuple[dict[str, Any], str, Any]] = []
        self.codes: list[tuple[FunctionType, tuple[Any, ...]]] = []
        self.compiled: list[tuple[Any, list[Any]]] = []
        self.arrays: list[tuple[np.ndarray, Any, bytes]] = []
        self.live: list[np.ndarray] = []
        seen = {id(f)}
        todo: list[Any] = []
        if is_dispatcher(f):
            self.compiled.append((self.root, forms_of(f)))
        self.code = self._said_by(python_function(f), f, todo)
        while todo:
            x = todo.pop()
            if id(x) not in seen:
                seen.add(id(x))
                self._note(x, f, todo)

    def _note(self, x: Any, root: Any, todo: list[Any]) -> None:
        """Note an object; what it refers to goes to `todo`."""
        if is_dispatcher(x):
            self.compiled.append((weakref.ref(x), forms_of(x)))
            x = x.py_func
        if type(x) is FunctionType:
            self.codes.append((x, self._said_by(x, root, todo)))
        elif isinstance(x, tuple):
            todo += x
        elif isinstance(x, np.ndarray) and not x.dtype.hasobject:
            if x.flags.forc and x.nbytes <= COPIED:
                self.arrays.append((x, layout(x), x.tobytes()))
            else:
                self.live.append(x)

    def _said_by(self, f: Any, root: Any, todo: list[Any]) -> tuple[Any, ...]:
        """What a function itself says; what it refers to goes to `todo`."""
        attributes = {name for code in codes_of(f.__code__) for name in code.co_names}
        for name in global_names(f.__code__):
            value = f.__globals__.get(name, MISSING)
            self.names.append((f.__globals__, name, ROOT if value is root else value))
            self._read(value, attributes, todo, set())
        for value in held_by(f):
            self._read(value, attributes, todo, set())
        return said_by(f, root)

    def _read(self, value: Any, attributes: set[str], todo: list[Any], seen: set[int]) -> None:
        """What is read of a value that a function names: of a user's module the attributes with these names."""
        if isinstance(value, ModuleType):
            if not origin.is_of(value.__name__, LIBRARIES) and id(value) not in seen:
                seen.add(id(value))
                space = vars(value)
                for name in attributes & space.keys():
                    self.names.append((space, name, space[name]))
                    self._read(space[name], attributes, todo, seen)
        elif (made := made_by(value)) is not None:
            todo.append(made[1])
        elif is_plain(value) or is_dispatcher(value) or isinstance(value, (np.ndarray, tuple)):
            todo.append(value)

    def is_current(self) -> bool:
        """Whether all is as it was."""
        root = self.root()
        if root is None:
            return False
        first = python_function(root)
        if not says(first, self.code) and not are_same(said_by(first, root), self.code):
            return False
        for space, name, value in self.names:
            now = space.get(name, MISSING)
            if now is not value and not (value is ROOT and now is root) and not is_same(now, value):
                return False
        for f, said in self.codes:
            if says(f, said):  # at a third of the time of what follows
                continue
            if not are_same(said_by(f, root), said):
                return False
        for reference, forms in self.compiled:
            f = reference()
            if f is None:
                return False
            now = forms_of(f)
            if len(now) == len(forms) and all(map(operator.is_, now, forms)):
                continue
            if any(form is not then for form, then in zip(now, forms, strict=False)) or len(now) < len(forms):
                return False
            if len(now) > len(
                forms
            ):  # compiled for other types since: it matters if a global was another one then
                if any(changed(f.py_func, form) for form in now[len(forms) :]):
                    return False
                forms[:] = now
        return all(layout(a) == there and a.tobytes() == then for a, there, then in self.arrays)


def forms_of(f: Any) -> list[Any]:
    """The forms that a dispatcher is compiled in.

    They are in a table sorted by use, which looks each of them up by its types, hashed in Python, when it lists them.
    """
    return list(dict.values(f.overloads))


def says(f: Any, said: tuple[Any, ...]) -> bool:
    """Whether a function that captures nothing has surely the code and defaults that were noted of it."""
    return (
        f.__code__ is said[0]
        and f.__defaults__ is said[1]
        and f.__closure__ is None
        and f.__kwdefaults__ is None
        and said[2] is None
        and said[3] == ()
    )


def said_by(f: Any, root: Any) -> tuple[Any, ...]:
    """(code, defaults, defaults of keywords, captured variables) of a function; `ROOT` for `root` among these."""
    keywords = f.__kwdefaults__
    held = () if f.__closure__ is None else tuple([ROOT if x is root else x for x in held_by(f)])
    return f.__code__, f.__defaults__, keywords and tuple(keywords.items()), held


def held_by(f: Any) -> list[Any]:
    """What the captured variables of a function hold."""
    return [content_of(cell) for cell in f.__closure__ or ()]


def are_same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two tuples have the same entries."""
    return len(a) == len(b) and all(x is y or is_same(x, y) for x, y in zip(a, b, strict=True))


def layout(a: np.ndarray) -> tuple[Any, ...]:
    """How an array lies in memory."""
    return a.dtype, a.shape, a.strides


def is_same(a: Any, b: Any) -> bool:
    """Whether two values are one number, or tuples of these: -0.0 is not 0.0, and nan is nan."""
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return are_same(a, b)
    return isinstance(a, NUMBERS) and repr(a) == repr(b)


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Code with that of the functions inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes_of(inner)


def global_names(code: CodeType) -> list[str]:
    """The names that code looks up in its globals."""
    found: dict[str, None] = {}
    for part in codes_of(code):
        for i in dis.get_instructions(part):
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                found[i.argval] = None
    return list(found)


def content_of(cell: CellType) -> Any:
    """What a captured variable holds; `MISSING` if nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def frozen(dispatcher: Any, signature: tuple[Any, ...]) -> dict[str, Any]:
    """Of the globals and captured variables in the form compiled for `signature`, those that have changed since.

    Numba takes the values of its first call for good. They are read from the typed IR that a dispatcher keeps. There is
    none in machine code that was loaded from Numba's own cache; there the first value shows a difference.
    """
    kinds = form_for(dispatcher, signature)
    return {} if kinds is None else changed(dispatcher.py_func, dispatcher.overloads[kinds])


def form_for(dispatcher: Any, signature: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The types that a dispatcher has been compiled for, of a call of these types; None if it has not been.

    Numba has a type of its own for an argument that is left to its default.
    """
    if signature in dispatcher.overloads:
        return signature
    for kinds in dispatcher.overloads:
        pairs = list(zip(kinds, signature, strict=False))
        if len(kinds) == len(signature) and all(k == t or isinstance(k, types.Omitted) for k, t in pairs):
            return kinds  # type: ignore[no-any-return]
    return None


def changed(f: Any, compiled: Any) -> dict[str, Any]:
    """Name -> what `f` was compiled with, where that is not what it stands for now."""
    now = {name: f.__globals__.get(name, MISSING) for name in global_names(f.__code__)}
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        now[name] = content_of(cell)
    found: dict[str, list[Any]] = {}
    for block in getattr(compiled.type_annotation, "blocks", {}).values():
        for s in block.body:
            value = s.value if isinstance(s, ir.Assign) else None
            if isinstance(value, (ir.Global, ir.FreeVar)) and value.name in now:
                was = value.value if value.value is not ir.UNDEFINED else itself(compiled, s.target.name)
                found.setdefault(value.name, []).append(was)
    return {
        name: values[0]
        for name, values in found.items()
        if not any(x is now[name] or is_same(x, now[name]) for x in values)
        and now[name] is not MISSING
        or now[name] is MISSING
        and not is_builtin(f, name)
    }


def itself(compiled: Any, variable: str) -> Any:
    """The dispatcher that a function means by its own name where it was compiled before that name was given.

    Numba compiles for declared types while the decorator is applied.
    """
    kind = compiled.type_annotation.typemap.get(variable)
    kind = kind.dispatcher_type if isinstance(kind, types.RecursiveCall) else kind
    return kind.dispatcher if isinstance(kind, types.Dispatcher) else ir.UNDEFINED


def is_builtin(f: Any, name: str) -> bool:
    """Whether a name that is no global is one of Python's."""
    space = f.__globals__.get("__builtins__", {})
    return name in (space if isinstance(space, dict) else vars(space))


__all__ = ["MISSING", "Snapshot", "changed", "content_of", "form_for", "frozen", "global_names", "is_same"]
