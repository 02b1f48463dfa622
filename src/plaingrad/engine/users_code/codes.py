"""The code of functions: what runs while a level is open, and what everybody sees, in every thread.

C code enters special methods and callbacks by itself, so while a level is open these functions run rewritten code (see
`engine.adopt`). Nobody else is to know: `f.__code__` is the code that the program put there, also while other code
runs, and code that is put there takes effect at once, rewritten too. Functions are one type for the whole process, so
its attribute `__code__` is wrapped, once, when the first function is exchanged.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from plaingrad import rulebook
from plaingrad.critical import exclusively, shared_lock
from plaingrad.rewrite import is_rewritten, original

_descriptor: Any = vars(FunctionType)["__code__"]
#: The code that a function runs, whatever is seen in its place.
running: Callable[[FunctionType], CodeType] = _descriptor.__get__
_put: Callable[[FunctionType, Any], None] = _descriptor.__set__

lock = shared_lock()  # held while code, or what is known of classes, changes

Maker = Callable[[FunctionType, CodeType], CodeType]
# function -> (the program's code, what makes the code that runs of it)
_exchanged: dict[FunctionType, tuple[CodeType, Maker]] = {}
is_watched = False  # whether every assignment of a `__code__` is noticed here


def runs_rewritten(f: FunctionType) -> bool:
    """Whether `f` runs rewritten code."""
    return is_rewritten(running(f))


def exchange(f: FunctionType, make: Maker) -> None:
    """Make `f` run make(f, its code) until `put_back`; code that is assigned meanwhile is exchanged likewise.

    This and `put_back` are called with `lock` held.
    """
    if not is_watched:
        _watch()
    if f not in _exchanged:
        code = running(f)
        new = make(f, code)
        _exchanged[f] = code, make  # before it is done, so that it is undone whenever an exception arrives
        _put(f, new)


def is_exchanged(f: FunctionType) -> bool:
    """Whether `f` runs other code than is seen."""
    return f in _exchanged


def any_exchanged() -> bool:
    """Whether any function does."""
    return bool(_exchanged)


def put_back(f: FunctionType) -> None:
    """Let `f` run the program's code again."""
    found = _exchanged.get(f)
    if found is not None:
        _put(f, found[0])
        _exchanged.pop(f, None)


def put_all_back() -> None:
    """Let every function run the program's code again."""
    while _exchanged:
        put_back(next(iter(_exchanged)))


# -- what everybody sees ---------------------------------------------------------------------------------------------


def _seen(f: FunctionType) -> CodeType:
    """The code object of the function."""
    code = running(f)
    found = _exchanged.get(f)
    return code if found is None else found[0]


def _assign(f: FunctionType, code: Any) -> None:
    if type(code) is CodeType and is_rewritten(code):  # taken from a frame
        code = original(code) or code
    exclusively(lock, _assign_alone, f, code)
    for calls in rulebook.watchers():
        calls.code_changed(f)


def _assign_alone(f: FunctionType, code: Any) -> None:
    found = _exchanged.get(f)
    if found is None or type(code) is not CodeType or len(code.co_freevars) != len(f.__closure__ or ()):
        _put(f, code)  # which says so if it does not fit
    else:
        new = found[1](f, code)
        _exchanged[f] = code, found[1]
        _put(f, new)


def _delete(f: FunctionType) -> None:
    _descriptor.__delete__(f)


def _watch() -> None:
    """Wrap the attribute `__code__` of functions. Where that cannot be done, exchanged code is seen as it is."""
    global is_watched
    is_watched = True
    for attributes in gc.get_referents(vars(FunctionType)):  # what the read-only view is a view of
        if type(attributes) is dict and attributes.get("__code__") is _descriptor:
            attributes["__code__"] = property(_seen, _assign, _delete, _descriptor.__doc__)
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(FunctionType))  # attribute lookups are cached
