"""Code object in, code object out: ordinary code that tells what it compares, and asks what to call.

Not for a level, which rewrites what comes out of here like any code of the program. Solvers look in this way where a
function of theirs branches.
"""

from __future__ import annotations

import weakref
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from plaingrad.rewrite.cache import facts
from plaingrad.rewrite.emission import Emission, call_above
from plaingrad.rewrite.encoding import JUMPS, encoded
from plaingrad.rewrite.transform import INLINE, KEEP, Rewriting

#: What becomes of the instructions that do not stay as they are.
ACTIONS = {
    "COMPARE_OP": ("compared",),
    "BINARY_OP": ("operated",),
    "BINARY_SUBSCR": ("operands", 2),
    "CONTAINS_OP": ("operands", 2),
    "GET_ITER": ("operands", 1),
    "STORE_SUBSCR": ("stored", 3),
    "STORE_SLICE": ("stored", 4),
    "UNARY_NEGATIVE": ("operands", 1),
    "UNARY_NOT": ("operands", 1),
    "TO_BOOL": ("operands", 1),
    **{name: ("operands", 1) for name in JUMPS if name.endswith(("IF_TRUE", "IF_FALSE", "OR_POP"))},
    "CALL": ("call",),
    "CALL_KW": ("call",),
    "CALL_FUNCTION_EX": ("call_function_ex",),
    "LOAD_METHOD": ("load_method",),
    "LOAD_ATTR": ("load_attr",),
    "KW_NAMES": ("call",),
    "PRECALL": ("call",),
}
WHOLE = {"floordiv", "mod", "ifloordiv", "imod"}
_MADE: dict[
    int, tuple[Any, Any, CodeType]
] = {}  # id(code) -> (a weak reference to it, what is told, new code)


class Watching(Rewriting):
    """One code object on its way; `told` has the functions that are called, by name."""

    def __init__(self, code: CodeType, version: Any, told: dict[str, Any]) -> None:
        Emission.__init__(self, code, version)
        self.told, self.keeps_level = told, False
        self.inline, self.fetch_before, self.local_names = set(), set(), code.co_varnames
        for i, const in enumerate(code.co_consts):
            if isinstance(const, CodeType) and const.co_name in INLINE:
                self.inline.add(i)
                self.consts[i] = watching(const, told)

    def made_of(self, i: int) -> bytes | None:
        """The instruction itself, if it is not one of those above and no jump."""
        name, arg = self.instructions[i]
        return None if name in ACTIONS or name in JUMPS else encoded(name, arg)

    def action(self, name: str) -> tuple[str, ...]:
        """What becomes of an instruction."""
        return ACTIONS.get(name, KEEP)

    def level_attribute(self, name: str) -> None:
        """Push a function that is called."""
        self.const(self.told[name])

    def is_prepared_early(self, i: int, above: int) -> bool:
        """Calls are asked about where they are."""
        return False

    def load_method(self, i: int) -> None:
        """Load a method, of what is said to have it."""
        self.hook("method", 1, self.code.co_names[self.instructions[i][1] >> self.version.method_bit])
        self.keep(i)

    def load_attr(self, i: int) -> None:
        """Load a method, or ask for an attribute."""
        arg = self.instructions[i][1]
        if self.version.method_bit and arg & 1:
            self.load_method(i)
        else:
            self.hook("attribute", 1, self.code.co_names[arg >> self.version.method_bit])

    def call_function_ex(self, i: int) -> None:
        """Ask for the function below the tuple and the dictionary of its arguments."""
        above = 1 if self.version.ex_keywords else self.instructions[i][1] & 1
        self.hook_at("prep", 2 + above + (not self.version.null_first))
        self.keep(i)

    def tell(self, name: str, operands: int = 2, depth: int = 0) -> None:
        """Call a function with the operands at the top, or from a depth on, which stay there."""
        for _ in range(operands):
            self.emit("COPY", depth or operands)
        self.put_below(name, operands)
        self.parts.append(call_above(operands, self.version.precall))
        self.emit("POP_TOP")

    def compared(self, i: int) -> None:
        """Tell of the operands of a comparison."""
        self.tell("compared")
        self.keep(i)

    def operands(self, i: int, count: int) -> None:
        """Tell of operands, whose class may do as it likes."""
        self.tell("operands", count)
        self.keep(i)

    def stored(self, i: int, depth: int) -> None:
        """Tell of what is stored, and in what."""
        self.tell("stored", 2, depth)
        self.keep(i)

    def operated(self, i: int) -> None:
        """Tell of the operands of an operator, and of a division that leaves a remainder."""
        whole = self.version.arithmetic[self.instructions[i][1]] in WHOLE
        self.tell("divided" if whole else "operands")
        self.keep(i)


def watching(code: CodeType, told: dict[str, Any]) -> CodeType:
    """`code` that calls told["compared"](a, b) before it compares a with b, told["divided"](a, b) before a // b and
    a % b, told["operands"](...) before other operators and before it asks whether something is true, and
    told["stored"](x, o) before it stores x in o; and instead of a function f told["prep"](f), of o's method that of
    told["method"](o, name), of o.name told["attribute"](o, name)."""
    known = _MADE.get(id(code))
    if known is not None and known[0]() is code and known[1] is told:
        return known[2]
    new = Watching(code, facts(), told).run()
    _MADE[id(code)] = weakref.ref(code, partial(forget, id(code))), told, new
    return new


def watching_function(f: FunctionType, told: dict[str, Any]) -> FunctionType:
    """`f` with such code, and its own globals, closure and defaults."""
    new = FunctionType(watching(f.__code__, told), f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    new.__kwdefaults__, new.__module__ = f.__kwdefaults__, f.__module__
    return new


def forget(key: int, _: Any, made: dict[int, Any] = _MADE) -> None:
    """The code at a key is gone, perhaps as the interpreter ends."""
    made.pop(key, None)


__all__ = ["watching", "watching_function"]
