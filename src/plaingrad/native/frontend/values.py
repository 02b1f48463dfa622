"""Variables and constants of Numba's typed IR as operands."""

from __future__ import annotations

import builtins
import re
from types import ModuleType
from typing import Any

from numba.core import ir, types
from numba.core.unsafe import eh

from plaingrad.native.frontend.operands import constant
from plaingrad.native.program.builder import Draft
from plaingrad.native.program.ir import (
    RESULT,
    Const,
    For,
    Let,
    Operand,
    Ref,
    Stmt,
    Var,
    moved,
    operands,
    statements,
    value_of,
)

CHANGED_IN_PLACE = (types.Array, types.List)  # by x += y, which makes a new value of other types
UNSET = Var("unset")  # a variable that has no value yet
ZEROS = {types.float64: 0.0, types.int64: 0, types.boolean: False, types.complex128: 0j}
# endings and beginnings of names that the transforms make, and that a user's variable must not have
RESERVED = re.compile(r"_(b|d|seed|p\d+|tape\d*)$|^exit_")


def zero_of(t: Any) -> Any:
    """What Numba finds in a variable that has no value yet, a number or a tuple of these; None of other types."""
    if isinstance(t, (types.UniTuple, types.Tuple)):
        parts = tuple([zero_of(part) for part in t.types])
        return None if None in parts else parts
    return ZEROS.get(types.unliteral(t))


class ValuesOf(Draft):
    """Names and operands of a function that is translated."""

    def __init__(self, function: Any, func_ir: Any, typemap: dict[str, Any], result: Any) -> None:
        super().__init__(function, func_ir.loc.line)
        self.ir = func_ir
        self.typemap = typemap
        self.result = result
        self.known: dict[str, Any] = {}  # name of a variable -> the operand it stands for
        self.names: dict[str, str] = {}  # variable of the IR -> of the tree
        self.nice: dict[str, str] = {}  # a nameless variable -> the user's name for it
        self.tests: set[str] = set()  # variables that branches test
        self.target = ""  # of the current assignment, in the IR

    def _check(self, tree: list[Stmt], params: list[str]) -> None:
        """Refuse iterators that are left: those of loops are gone, and so is what made them."""
        assigned = {s.target for s in statements(tree) if isinstance(s, (Let, For))} | set(params)
        for s in statements(tree):
            lost = any(isinstance(a, Var) and a.name not in assigned for a in operands(s))
            if lost or (isinstance(s, Let) and s.op in ("getiter", "iternext", "pair_first", "pair_second")):
                self.line = s.line
                raise self.refuse("this iteration")

    def _moves(self, phis: list[Any], source: Any) -> list[Stmt]:
        """What the phis of a block take on the way from `source`: parallel moves, with copies where they cross."""
        pairs = []
        for phi in phis:
            where = [k for k, b in enumerate(phi.value.incoming_blocks) if b == source]
            value = phi.value.incoming_values[where[0]]
            target = self.name(phi.target.name)
            if value is ir.UNDEFINED or not isinstance(value, ir.Var):
                zero = zero_of(self.typemap.get(phi.target.name))
                if zero is not None:
                    pairs.append((target, Const(zero), phi.loc.line))
                continue
            taken = self.operand(value)
            if taken != Var(target):
                pairs.append((target, taken, phi.loc.line))
        targets = {target for target, _, _ in pairs}
        out: list[Stmt] = []
        later: list[Stmt] = []
        for k, (target, taken, line) in enumerate(pairs):
            crossing = (
                isinstance(taken, Var)
                and taken.name in targets
                and any(earlier == taken.name for earlier, _, _ in pairs[:k])
            )
            if crossing:
                held = self.fresh("held", self.types[target])
                out.insert(0, Let(held, "copy", (taken,), None, line))
                taken = Var(held)
            later.append(moved(target, taken, line))
        return out + later

    def name(self, name: str) -> str:
        """A Python identifier for a variable of the IR; the user's own names stay readable."""
        mine = self.names.get(name)
        if mine is None:
            base = name[4:] if name.startswith("arg.") else name
            if base.startswith("$"):
                base = self.nice.get(name, "t")
            base = "".join(c if c.isalnum() or c == "_" else "_" for c in base) or "t"
            if base[0].isdigit() or base == RESULT:
                base = "v_" + base
            if RESERVED.search(base) or hasattr(builtins, base):
                base += "_"
            mine = self.names[name] = self.fresh(base, self.typemap.get(name))
        return mine

    def operand(self, v: Any) -> Operand:
        """What a variable of the IR stands for."""
        seen = v.name
        while isinstance(self.known.get(seen), str):
            seen = self.known[seen]
        found = self.known.get(seen)
        return Var(self.name(seen)) if found is None else found

    def _note(self, s: Any) -> None:
        """Remember variables that are another name for a constant, an object outside, or another variable."""
        name, value = s.target.name, s.value
        if isinstance(value, ir.Const):
            self.known[name] = Const(value.value)
        elif isinstance(value, (ir.Global, ir.FreeVar)):
            self.known[name] = constant(value.value, value.name)
        elif isinstance(value, ir.Var):
            self.known[name] = value.name
            if value.name.startswith("$") and not name.startswith("$"):
                self.nice.setdefault(value.name, name)
        elif isinstance(value, ir.Arg):
            self.known[name] = f"arg.{value.name}"
            self.typemap.setdefault(f"arg.{value.name}", self.typemap[name])
        elif isinstance(value, ir.Expr):
            if value.op in ("cast", "exhaust_iter"):
                self.known[name] = value.value.name
            elif value.op == "phi" and isinstance(self.typemap.get(name), types.NoneType):
                self.known[name] = Const(None)  # in handlers: exceptions, which nothing reads
            elif value.op == "undef":  # CPython 3.12+: what a comprehension's variable was before it
                self.known[name] = UNSET
            elif value.op == "getattr":
                owner = self.operand(value.value)
                if isinstance(owner, Ref) and isinstance(owner.value, ModuleType):
                    self.known[name] = constant(getattr(owner.value, value.attr), value.attr)
            elif value.op == "call" and value_of(self.operand(value.func)) is eh.exception_match:
                self.known[name] = Const(
                    True
                )  # of an exception and Exception, the only class that Numba takes
            elif value.op == "call" and self.operand(value.func) == Const(bool) and value.args:
                given = value.args[0].name
                tested = name in self.tests and not isinstance(self.typemap[given], types.List)
                if tested or isinstance(self.typemap[given], types.Boolean):
                    self.known[name] = given  # elsewhere it is a number of its own: bool(x) * x
            elif value.op == "inplace_binop" and isinstance(self.typemap[value.lhs.name], CHANGED_IN_PLACE):
                self.known[name] = value.lhs.name
