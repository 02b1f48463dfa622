"""Each code object is rewritten once, found again by identity, and forgotten with its original.

Code objects compare and hash by value, and slowly, so they are never keys: `id` is, with a weak reference that says
whose id it is.
"""

import weakref
from functools import cache, partial
from types import CodeType, FunctionType

from plaingrad.critical import exclusively, imported, shared_lock
from plaingrad.rewrite.hooks import PLAIN, in_force
from plaingrad.rewrite.versions import running

_LOCK = shared_lock()  # reentrant: a weak reference may die while it is held
_FORMS: dict = {}  # id(code) -> Entry


class Entry(weakref.ref):
    """A weak reference to a code object, with its rewritten form (None: it is one) and its original."""

    __slots__ = ("original", "rewritten")

    def __new__(cls, code, original, rewritten):  # noqa: D102 - weakref.ref takes its arguments here
        return super().__new__(cls, code, partial(_FORMS.pop, id(code)))  # before another has its id

    def __init__(self, code, original, rewritten):
        super().__init__(code, self.__callback__)
        self.original, self.rewritten = original, rewritten


def entry_of(code):
    """The entry of `code`, or None."""
    entry = _FORMS.get(id(code))
    return entry if entry is not None and entry() is code else None


facts = cache(running)


def rewritten(code: CodeType) -> CodeType:
    """`code` with its instructions turned into calls of the current hooks; `code` itself if it is such code."""
    entry = entry_of(code)
    if entry is None:
        # The rewriter's own enums and classes may be under derivation.
        new = in_force(PLAIN, _transformed, code)
        entry = exclusively(_LOCK, enter, code, new)
    return code if entry.rewritten is None else entry.rewritten


def _transformed(code):
    transform = imported(
        "plaingrad.rewrite.transform"
    ).transform  # and `bytecode`: when there is a derivative to take
    return transform(code, facts(), rewritten)


def enter(code, new):
    """The entry of `code`, whose rewritten form is `new` unless another thread was faster."""
    entry = entry_of(code)
    if entry is None:
        _FORMS[id(new)] = Entry(new, weakref.ref(code), None)
        entry = _FORMS[id(code)] = Entry(code, None, new)
    return entry


def is_rewritten(code: CodeType) -> bool:
    """Whether `code` was made by `rewritten`."""
    entry = entry_of(code)
    return entry is not None and entry.rewritten is None


def original(code: CodeType) -> CodeType | None:
    """The code that `code` was made from, `code` itself if it was not, None if the original is gone."""
    entry = entry_of(code)
    return code if entry is None or entry.original is None else entry.original()


def rewrite_function(f: FunctionType) -> FunctionType:
    """`f` with rewritten code and its own globals, closure, defaults, name and attributes."""
    new = FunctionType(rewritten(f.__code__), f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    new.__kwdefaults__ = f.__kwdefaults__
    new.__dict__ = f.__dict__
    new.__qualname__ = f.__qualname__
    new.__module__ = f.__module__
    new.__doc__ = f.__doc__
    return new
