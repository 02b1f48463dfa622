"""Loop invariants and value numbers: which integers a loop leaves as they are, and which are surely the same.

A value counts if it is a constant, a variable that the loop does not assign, or computed in the loop out of such by
integer arithmetic, lengths and shapes; then it may be computed in front of the loop as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from numba.core import types

from plaingrad.native.program.ir import (
    Const,
    For,
    Let,
    Operand,
    Program,
    Stmt,
    Var,
    operands,
    statements,
    unused,
    value_of,
)
from plaingrad.native.runtime.helpers import trips


def is_same(a: Operand, b: Operand) -> bool:
    """Whether two operands are one variable, or one constant to the last bit."""
    if isinstance(a, Const) and isinstance(b, Const):
        return type(a.value) is type(b.value) and repr(a.value) == repr(b.value)
    return isinstance(a, Var) and a == b


class Invariants:
    """What is known of the integers of a program.

    Attributes:
        types: the type of every variable; variables that are made get theirs.
        assigned: how often a variable is assigned.
        reads: how often it is read.
    """

    def __init__(self, program: Program) -> None:
        self.types = dict(program.types)
        self.assigned: Counter[str] = Counter(program.params)
        self.assigned.update(s.target for s in statements(program.body) if isinstance(s, (Let, For)))
        self.reads = self.reads_in(program.body)
        self.reads.update(["result"])
        self._definitions: dict[str, Let] = {}
        self._taken = {*self.types, *self.assigned}
        self.learn(program.body)

    def learn(self, body: list[Stmt]) -> None:
        """Take the statements of `body` for the definitions of what is assigned once."""
        for s in statements(body):
            if isinstance(s, Let):
                self._definitions[s.target] = s

    def reads_in(self, body: list[Stmt]) -> Counter[str]:
        """How often statements read each variable."""
        return Counter(a.name for s in statements(body) for a in operands(s) if isinstance(a, Var))

    def fresh(self, base: str) -> str:
        """A new variable for an integer, which is assigned once."""
        name = unused(base, self._taken)
        self.types[name] = types.int64
        self.assigned[name] = 1
        return name

    def unused(self, base: str) -> str:
        """Another variable of the type of one."""
        name = self.fresh(base)
        self.types[name] = self.types[base]
        return name

    def is_integer(self, x: Operand) -> bool:
        """Whether an operand is a signed integer of 64 bits, as all arithmetic here takes it to be."""
        if isinstance(x, Const):
            return type(x.value) is int
        return isinstance(x, Var) and types.unliteral(self.types.get(x.name)) == types.int64

    def definition(self, x: Operand) -> Let | None:
        """The one statement that assigns a variable."""
        return self._definitions.get(x.name) if isinstance(x, Var) and self.assigned[x.name] == 1 else None

    def is_harmless(self, s: Stmt) -> bool:
        """Whether a statement only computes an integer, or gives a name: it may be done where it was not to be."""
        if not isinstance(s, Let):
            return False
        if s.op == "copy":
            return True
        if s.op == "compare":
            return all(map(self.is_integer, s.args))
        return self._is_arithmetic(s)

    def _is_arithmetic(self, s: Let) -> bool:
        """Whether `s` is a length, a shape, a part of one, or a sum, difference or product of integers."""
        t = self.types.get(s.args[0].name) if s.args and isinstance(s.args[0], Var) else None
        if s.op == "attribute":
            return s.detail in ("shape", "size", "ndim") and isinstance(t, types.Array)
        if s.op == "item":
            return isinstance(t, types.BaseTuple) and isinstance(s.args[1], Const)
        if s.op == "unary":
            return s.detail in ("-", "+") and self.is_integer(s.args[0])
        if s.op == "binary":
            return s.detail in ("+", "-", "*") and all(map(self.is_integer, s.args))
        if s.op != "call" or s.detail:
            return False
        if value_of(s.args[0]) is trips:
            return all(map(self.is_integer, s.args[1:])) and value_of(s.args[3]) not in (0, None)
        return (
            value_of(s.args[0]) is len
            and isinstance(s.args[1], Var)
            and isinstance(self.types.get(s.args[1].name), (types.Array, types.BaseTuple))
        )

    # -- a loop leaves it as it is -----------------------------------------------------------------------------------

    def is_fixed(self, x: Operand, inside: set[str]) -> bool:
        """Whether a value is the same throughout a loop that assigns the variables `inside`, and known before it."""
        if not isinstance(x, Var) or x.name not in inside:
            return True
        d = self.definition(x)
        if d is None or not (d.op == "copy" or self._is_arithmetic(d)):
            return False
        return all(self.is_fixed(a, inside) for a in d.args)

    def before(self, x: Operand, inside: set[str], out: list[Stmt]) -> Operand:
        """A value that `is_fixed`, computed in front of the loop by statements that go to `out`."""
        if not isinstance(x, Var) or x.name not in inside:
            return x
        d = self.definition(x)
        assert d is not None
        args = tuple([self.before(a, inside, out) for a in d.args])
        if d.op == "copy":
            return args[0]
        name = self.fresh(x.name)
        self.types[name] = self.types.get(x.name)
        made = Let(name, d.op, args, d.detail, d.line)
        out.append(made)
        self._definitions[name] = made
        return Var(name)

    # -- two are the same --------------------------------------------------------------------------------------------

    def is_steady(self, x: Operand) -> bool:
        """Whether a value is assigned in one place only."""
        return not isinstance(x, Var) or self.assigned[x.name] <= 1

    def number(self, x: Operand) -> Any:
        """A value number: equal for values that are surely the same."""
        if isinstance(x, Const):
            return "constant", type(x.value), x.value
        d = self.definition(x)
        if not isinstance(x, Var):
            return "object", id(x.value)
        if (
            d is None
            or not (d.op == "copy" or self._is_arithmetic(d))
            or not all(map(self.is_steady, d.args))
        ):
            return "variable", x.name
        if d.op == "copy":
            return self.number(d.args[0])
        array = d.args[-1] if d.op in ("call", "attribute") else None
        t = self.types.get(array.name) if isinstance(array, Var) else None
        is_length = d.op == "call" or (d.op == "attribute" and d.detail == "size" and t.ndim == 1)
        if isinstance(t, types.Array) and is_length:
            shape = ("attribute", "shape", (self.number(array),))  # type: ignore[arg-type]
            return "item", None, (shape, self.number(Const(0)))
        return d.op, d.detail or None, tuple(map(self.number, d.args))


def assigned_in(body: Iterable[Stmt]) -> set[str]:
    """The variables that statements assign."""
    return {s.target for s in statements(list(body)) if isinstance(s, (Let, For))}
