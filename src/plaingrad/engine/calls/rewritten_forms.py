"""What every level calls instead of a function without rules and closure: its rewritten form, made once.

A closure may hold its function, which would then never go, and so may attributes, and globals that are not those of a
module; the forms of such functions belong to a level. Each is made `anew` of the rewritten code, which lasts, without
the whole decision: nothing but rules, its module and its code can make another one of it.
"""

from __future__ import annotations

import functools
import sys
import weakref
from types import CodeType, FunctionType
from typing import Any

from plaingrad import rulebook, rules_of_functions
from plaingrad.engine.calls import elsewhere
from plaingrad.engine.calls.own_code import is_immortal, is_own_module
from plaingrad.engine.compiled import core
from plaingrad.engine.users_code import codes
from plaingrad.engine.users_code.compilers import COMPILERS
from plaingrad.rewrite import cache, is_rewritten, known_form, with_code

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


# Modules of functions that are called in a way of their own for no other reason than a rule. Not among them: NumPy,
# whose implementations have the rules of what is public, compilers, what `elsewhere` knows, the engine.
_common_modules: set[str] = set()
UNCOMMON = ("numpy", *COMPILERS, elsewhere.BRANCHING)


def anew(f: FunctionType, code: CodeType, form: str) -> FunctionType | None:
    """A rewritten form of `f`, whose code is `code`, if that code is rewritten already; None: it is to be decided.

    For functions that are made again and again, or whose form is not kept: closures, functions with attributes. The
    form refers to the cells, defaults and attributes of `f` itself.
    """
    module = f.__module__
    if type(module) is not str or (module not in _common_modules and not _is_common(module)):
        return None
    new = known_form(code, form)
    if new is None or rulebook.has_rule(f) or codes.is_exchanged(f):
        return None
    if f.__closure__ is None and is_immortal(f):
        return None
    return with_code(f, new)


def _is_common(module: str) -> bool:
    if module.startswith(UNCOMMON) or module in elsewhere.MODULES or is_own_module(module):
        return False
    if len(_common_modules) > 4096:
        _common_modules.clear()
    _common_modules.add(module)
    return True


if core is not None:
    core.set_closures(
        {
            "common": _common_modules,
            "codes": cache._FORMS,
            "rules": rulebook._rules,
            "of_functions": rules_of_functions._functions,
            "waiting": rulebook._waiting,
            "exchanged": codes._exchanged,
        }
    )
