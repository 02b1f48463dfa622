"""Hooks that record, hooks that rewrite all they meet, and what a program does, in comparable form."""

import builtins
import re
import traceback
from types import CodeType, FunctionType, MethodType
from weakref import WeakKeyDictionary

from plaingrad.rewrite import CURRENT, HOOK_NAMES, PLAIN, Hooks, is_rewritten, rewrite_function, rewritten


class using:
    """The context in which `hooks` are the current ones."""

    def __init__(self, hooks):
        self.hooks = hooks

    def __enter__(self):
        self.token = CURRENT.set(self.hooks)
        return self.hooks

    def __exit__(self, *exc):
        CURRENT.reset(self.token)


def recording(log):
    """Hooks that do as PLAIN does and note (name, operands) first; that of expressions asks the others."""

    def noting(name):
        plain = getattr(PLAIN, name)

        def hook(*operands):
            log.append((name, *operands))
            return plain(*operands)

        return hook

    return Hooks(**{name: noting(name) for name in HOOK_NAMES if name != "expression"})


def rewriting(form="fused"):
    """Hooks whose prep rewrites every Python function, method and class body that is called."""
    made = WeakKeyDictionary()

    def build_class(body, *args, **kwargs):
        return builtins.__build_class__(prep(body), *args, **kwargs)

    def prep(f):
        if type(f) is FunctionType:
            if is_rewritten(f.__code__):
                return f
            if f not in made:
                made[f] = rewrite_function(f, form)
            return made[f]
        if type(f) is MethodType and type(f.__func__) is FunctionType:
            return MethodType(prep(f.__func__), f.__self__)
        return build_class if f is builtins.__build_class__ else f

    return Hooks(PLAIN, prep=prep, method=lambda o, name: prep(getattr(o, name)))


def deep(code):
    """`code` rewritten with all the code objects in it."""
    consts = tuple(deep(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return rewritten(code.replace(co_consts=consts))


def all_code(code):
    """`code` and every code object in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from all_code(const)


def outcome(f, filename):
    """("value", text) or ("error", what the exception and the traceback in `filename` say)."""
    try:
        return "value", plain_text(f())
    except BaseException as e:
        return "error", *described(e, filename)


def described(e, filename):
    lines = [n for frame, n in traceback.walk_tb(e.__traceback__) if frame.f_code.co_filename == filename]
    rest = tuple(described(o, filename) for o in (e.__cause__, e.__context__) if o is not None)
    return type(e), plain_text(str(e)), lines, getattr(e, "name", None), rest


def plain_text(value):
    """The repr without addresses and without the names that only rewritten frames have."""
    return re.sub(r"0x[0-9a-f]+", "0x", repr(value))
