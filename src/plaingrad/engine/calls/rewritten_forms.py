"""What every level calls instead of a function without rules and closure: its rewritten form, made once.

A closure may hold its function, which would then never go, and so may globals that are not those of a module; the
forms of such functions belong to a level.
"""

from __future__ import annotations

import functools
import sys
import weakref
from types import CodeType, FunctionType
from typing import Any

from plaingrad import rulebook
from plaingrad.rewrite import is_rewritten

# (id of f, which form) -> (f, code, defaults, kwdefaults, changes of the rulebook, the form); gone when f is
_forms: dict[tuple[int, str], tuple[Any, ...]] = {}


def find(f: FunctionType, code: CodeType, form: str) -> FunctionType | None:
    """The form of `f`, whose code is `code`, for levels that run `form`, if it is known and nothing has changed."""
    known = _forms.get((id(f), form))
    if (
        known is not None
        and known[0]() is f
        and known[1] is code
        and known[2] is f.__defaults__
        and known[3] is f.__kwdefaults__
        and known[4] == rulebook.changes()
    ):
        return known[5]
    return None


def keep(f: FunctionType, code: CodeType, form: str, instead: Any) -> None:
    """Keep `instead`, which was decided for `f`, if it is no more than its rewritten form."""
    if f.__closure__ is not None or f.__dict__ or type(instead) is not FunctionType or instead is f:
        return
    module = sys.modules.get(f.__module__) if type(f.__module__) is str else None
    if getattr(module, "__dict__", None) is not f.__globals__:
        return  # of a namespace that goes with it
    if is_rewritten(instead.__code__) and instead.__globals__ is f.__globals__:
        key = id(f), form
        reference = weakref.ref(f, functools.partial(_forms.pop, key))
        _forms[key] = reference, code, f.__defaults__, f.__kwdefaults__, rulebook.changes(), instead
