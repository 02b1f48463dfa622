"""Each code object is rewritten once in each form, found again by identity, and forgotten with its original.

There are three forms: a hook an operation (`HOOKED`, quickest to make); besides, runs of arithmetic that record
themselves in one step (`FUSED`), for levels that can do that; or expressions that are evaluated in one call
(`EXPRESSIONS`), which are quick where the level is compiled.

Code objects compare and hash by value, and slowly, so they are never keys: `id` is, with a weak reference that says
whose id it is.
"""

import weakref
from functools import cache, partial
from types import CodeType, FunctionType

from plaingrad.critical import exclusively, imported, shared_lock
from plaingrad.rewrite.hooks import FUSED, PLAIN, in_force
from plaingrad.rewrite.versions import running

_LOCK = shared_lock()  # reentrant: a weak reference may die while it is held
_FORMS: dict = {}  # id(code) -> Entry


class Entry(weakref.ref):
    """A weak reference to a code object; of one of ours, its `original`, else its `forms` by name."""

    __slots__ = ("forms", "original")

    def __new__(cls, code, original):  # noqa: D102 - weakref.ref takes its arguments here
        return super().__new__(cls, code, partial(_FORMS.pop, id(code)))  # before another has its id

    def __init__(self, code, original):
        super().__init__(code, self.__callback__)
        self.original, self.forms = original, {}


def entry_of(code):
    """The entry of `code`, or None."""
    entry = _FORMS.get(id(code))
    return entry if entry is not None and entry() is code else None


facts = cache(running)


def rewritten(code: CodeType, form: str = FUSED) -> CodeType:
    """`code` with its instructions turned into calls of the current hooks; `code` itself if it is such code."""
    entry = entry_of(code)
    if entry is not None and entry.original is not None:
        return code
    new = None if entry is None else entry.forms.get(form)
    if new is None:
        # The rewriter's own enums and classes may be under derivation.
        new = in_force(PLAIN, _transformed, code, form)
        new = exclusively(_LOCK, enter, code, new, form)
    return new


def _transformed(code, form):
    transform = imported("plaingrad.rewrite.transform").transform  # when there is a derivative to take
    return transform(code, facts(), rewritten, form)


def enter(code, new, form=FUSED):
    """A form of `code`: `new`, unless another thread was faster."""
    entry = entry_of(code)
    if entry is None:
        entry = _FORMS[id(code)] = Entry(code, None)
    if form not in entry.forms:
        _FORMS[id(new)] = Entry(new, weakref.ref(code))
        entry.forms[form] = new
    return entry.forms[form]


def is_rewritten(code: CodeType) -> bool:
    """Whether `code` was made by `rewritten`."""
    entry = entry_of(code)
    return entry is not None and entry.original is not None


def original(code: CodeType) -> CodeType | None:
    """The code that `code` was made from, `code` itself if it was not, None if the original is gone."""
    entry = entry_of(code)
    return code if entry is None or entry.original is None else entry.original()


def known_form(code: CodeType, form: str) -> CodeType | None:
    """`code` rewritten, if that was done; None also for code that was made so."""
    entry = _FORMS.get(id(code))
    return entry.forms.get(form) if entry is not None and entry() is code else None


def rewrite_function(f: FunctionType, form: str = FUSED) -> FunctionType:
    """`f` with rewritten code and its own globals, closure, defaults, name and attributes."""
    return with_code(f, rewritten(f.__code__, form))


def with_code(f: FunctionType, code: CodeType) -> FunctionType:
    """`f` with other code."""
    new = FunctionType(code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    new.__kwdefaults__ = f.__kwdefaults__
    new.__dict__ = f.__dict__
    new.__qualname__ = f.__qualname__
    new.__module__ = f.__module__
    new.__doc__ = f.__doc__
    return new


def locals_read(code: CodeType) -> set[str]:
    """The names of the locals that `code` reads, and of those that it might."""
    version, names = facts(), code.co_varnames
    found = set()
    for name, arg in imported("plaingrad.rewrite.listing").Listing(code).instructions:
        if name in version.pairs:
            found |= {names[arg >> 4], names[arg & 15]}
        elif "FAST" in name and name != "STORE_FAST":
            found.add(names[arg])
    return found
