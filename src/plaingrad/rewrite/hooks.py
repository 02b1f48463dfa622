"""The hooks that rewritten code calls: their names, and the set that does exactly what Python does.

Rewritten code reads the current hooks from `CURRENT` after every resume and calls their attributes. An engine makes
its own object with the attributes `HOOK_NAMES` (most simply a `Hooks`) and sets `CURRENT` to it.
"""

import operator
import sys
from contextvars import ContextVar

from plaingrad.rewrite.evaluation import evaluate

try:
    from _typing import _idfunc as unchanged  # the one C function that returns its argument
except ImportError:  # pragma: no cover - other implementations of typing

    def unchanged(x):
        """`x` itself."""
        return x


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
BINARY += ("lshift", "rshift", "and_", "or_", "xor")
IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul")
IN_PLACE += ("ilshift", "irshift", "iand", "ior", "ixor")
UNARY = ("neg", "pos", "invert")
COMPARE = ("lt", "le", "eq", "ne", "gt", "ge")
ACCESS = ("contains", "getitem", "setitem", "attr", "method", "set_attr")
WITNESS = ("prep", "iterable", "meet", "meet_all", "met_items", "text")
SEVERAL = ("expression",)

#: The forms of rewritten code: see `rewrite.cache`.
HOOKED, FUSED, EXPRESSIONS = "hooked", "fused", "expressions"

#: Every attribute that rewritten code may ask of a hooks object.
HOOK_NAMES = BINARY + IN_PLACE + UNARY + COMPARE + ACCESS + WITNESS + SEVERAL


class Hooks:
    """One callable for each of `HOOK_NAMES`; those not given are taken from `base`.

    Hooks are called with their operands placed on the stack by the interpreter: a plain function or a builtin is
    fastest, a bound method costs an extra copy of the arguments.
    """

    __slots__ = (*HOOK_NAMES, "__weakref__", "blocks", "fuses")

    def __init__(self, base=None, **hooks):
        self.fuses = False  # whether runs of arithmetic may be recorded by `blocks[run]` in one step
        self.blocks = {}
        hooks.setdefault("expression", by_hooks(self))
        for name in HOOK_NAMES:
            setattr(self, name, hooks.pop(name) if name in hooks else getattr(base, name))
        if hooks:
            raise TypeError(f"no such hooks: {', '.join(hooks)}")


def setter(assignments, *names):
    """A function of `names` that does `assignments`, lines of code: opening a level sets dozens of attributes."""
    source = f"def set_attributes({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in assignments)
    namespace = {}
    exec(compile(source, "<plaingrad setter of hooks>", "exec"), namespace)
    return namespace["set_attributes"]


#: set_hooks(hooks, outer): from now on `hooks` does what `outer` does.
set_hooks = setter([f"hooks.{name} = outer.{name}" for name in HOOK_NAMES], "hooks", "outer")


def contains(x, container):
    """`x in container`."""
    return x in container


def setitem(v, o, k):
    """`o[k] = v`."""
    o[k] = v


def set_attr(v, o, name):
    """`o.name = v`."""
    setattr(o, name, v)


def by_hooks(hooks):
    """The hook of expressions that asks the other hooks, one after another."""

    def expression(*given):
        return evaluate(hooks, given, sys._getframe(1))

    return expression


PLAIN = Hooks(
    **{name: getattr(operator, name) for name in BINARY + IN_PLACE + UNARY + COMPARE},
    contains=contains,
    getitem=operator.getitem,
    setitem=setitem,
    attr=getattr,
    method=getattr,
    set_attr=set_attr,
    prep=unchanged,
    iterable=unchanged,
    meet=unchanged,
    meet_all=unchanged,
    met_items=unchanged,
    text=unchanged,
)


#: The hooks that rewritten code calls now.
CURRENT: ContextVar = ContextVar("plaingrad hooks", default=PLAIN)
FETCH = CURRENT.get  # one object: rewritten code holds it as a constant


def in_force(hooks, work, *args, **kwargs):
    """work(*args, **kwargs) while `hooks` are the current ones; see `plaingrad.critical`."""
    before = CURRENT.get()
    token = None
    try:
        try:
            try:
                try:
                    try:
                        token = CURRENT.set(hooks)
                        return work(*args, **kwargs) if kwargs else work(*args)
                    finally:
                        if token is not None:
                            CURRENT.reset(token)
                except BaseException:
                    if CURRENT.get() is not before:
                        CURRENT.set(before)
                    raise
            except BaseException:
                if CURRENT.get() is not before:
                    CURRENT.set(before)
                raise
        except BaseException:
            if CURRENT.get() is not before:
                CURRENT.set(before)
            raise
    except BaseException:
        if CURRENT.get() is not before:
            CURRENT.set(before)
        raise
