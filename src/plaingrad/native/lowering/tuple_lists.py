"""Lists of tuples as lists of their parts: xs.append((q, p)) is xs_0.append(q), xs_1.append(p).

Lists of arrays and lists of numbers have derivatives (`array_lists.py`, `lists.py`); what is done to a list of tuples
is done to both, in the same order. Only tuples that can hold derivatives are taken apart, and only where every list of
such tuples in the program is used in ways that are known here; else they stay, and are refused where they carry a
derivative.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba.core import types

from plaingrad.native.program.ir import (
    Const,
    Do,
    Let,
    Operand,
    Program,
    Ref,
    Stmt,
    Store,
    Var,
    operands,
    statements,
    unused,
    with_inner,
)
from plaingrad.native.program.value_types import has_tangent

# methods: name -> for each operand behind the list whether it is an element, another such list, or neither
METHODS = {
    "append": ("element",),
    "extend": ("list",),
    "insert": ("", "element"),
    "pop": (),
    "clear": (),
    "reverse": (),
    "copy": (),
}
FUNCTIONS = (len, bool)  # of which the answer is that for the list of the first parts


def is_tuple_list(t: Any) -> bool:
    """Whether `t` is a type of lists of tuples that can hold derivatives."""
    if not isinstance(t, types.List) or not isinstance(t.dtype, types.BaseTuple):
        return False
    return len(t.dtype) > 0 and has_tangent(t.dtype)


def without_tuple_lists(program: Program) -> Program:
    """`program` with lists of the parts for lists of tuples."""
    while any(map(is_tuple_list, program.types.values())):  # a part may be a tuple
        split = _Splitter(program)
        if not all(map(split.is_known, statements(program.body))):
            return program
        if is_tuple_list(program.result) or any(is_tuple_list(program.types[p]) for p in program.params):
            return program
        program = replace(program, body=split.body(program.body), types=split.types)
    return program


class _Splitter:
    """The program with parts for tuples in lists."""

    def __init__(self, program: Program) -> None:
        lists = {name: t.dtype for name, t in program.types.items() if is_tuple_list(t)}
        self.lists: dict[str, list[str]] = {}
        self.types = {name: t for name, t in program.types.items() if name not in lists}
        self.taken = set(program.types)
        for name, t in lists.items():
            self.lists[name] = [self.fresh(f"{name}_{k}", types.List(part)) for k, part in enumerate(t)]

    def fresh(self, base: str, t: Any) -> str:
        """A new variable."""
        name = unused(f"{base}_part", self.taken)
        self.types[name] = t
        return name

    def is_list(self, a: Operand) -> bool:
        """Whether an operand is a list of tuples."""
        return isinstance(a, Var) and a.name in self.lists

    def is_tuple(self, a: Operand) -> bool:
        """Whether an operand is a tuple."""
        return isinstance(a, Var) and isinstance(self.types.get(a.name), types.BaseTuple)

    def is_slice(self, a: Operand) -> bool:
        """Whether an operand is a slice."""
        return isinstance(a, Var) and isinstance(self.types.get(a.name), types.SliceType)

    # -- what is known ---------------------------------------------------------------------------------------------

    def is_known(self, s: Stmt) -> bool:
        """Whether nothing is done to a list of tuples but what can be done to lists of parts."""
        call = s.call if isinstance(s, Do) else s
        made = isinstance(s, Let) and s.target in self.lists
        if not made and not any(map(self.is_list, operands(s))):
            return True
        if isinstance(s, Store):
            return self.is_list(s.array) and self.is_tuple(s.value)
        if not isinstance(call, Let):
            return False
        a = call.args[0] if call.args else None
        if call.op == "list":
            return made and all(map(self.is_tuple, call.args))
        if call.op in ("copy", "item"):
            return self.is_list(a)  # type: ignore[arg-type]
        if call.op == "binary":
            both = call.detail == "+" and all(map(self.is_list, call.args))
            return made and (both or (call.detail == "*" and self.is_list(a)))  # type: ignore[arg-type]
        if call.op == "call":
            value = getattr(a, "value", None)
            return len(call.args) == 2 and (value in FUNCTIONS or (value is list and made))
        if call.op != "method" or not self.is_list(a) or call.detail[1]:  # type: ignore[arg-type]
            return False
        name, rest = call.detail[0], call.args[1:]
        if name == "pop":
            return len(rest) <= 1
        roles = METHODS.get(name)
        if roles is None or len(rest) != len(roles):
            return False
        fits = {"element": self.is_tuple, "list": self.is_list, "": lambda x: True}
        return all(fits[role](x) for role, x in zip(roles, rest, strict=True))

    # -- without them ----------------------------------------------------------------------------------------------

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """Statements on parts."""
        out: list[Stmt] = []
        for s in body:
            made = isinstance(s, Let) and s.target in self.lists
            if made or any(map(self.is_list, operands(s))):
                self.statement(s, out)
            else:
                out.append(with_inner(s, self.body))
        return out

    def statement(self, s: Stmt, out: list[Stmt]) -> None:
        """One statement that has to do with a list of tuples."""
        line = s.line
        if isinstance(s, Store):
            parts = self.parts(s.value, out, line)
            for k, part in enumerate(parts):
                out.append(Store(self.part(s.array, k), s.index, part, line))
            return
        call = s.call if isinstance(s, Do) else s
        assert isinstance(call, Let)
        if call.op == "call" and getattr(call.args[0], "value", None) in FUNCTIONS:
            out.append(replace(call, args=(call.args[0], self.part(call.args[1], 0))))
            return
        given = [self.parts(a, out, line) if self.is_tuple(a) else None for a in call.args]
        count = len(self.lists[next(a.name for a in (Var(call.target), *call.args) if self.is_list(a))])  # type: ignore[union-attr]
        taken: list[Operand] = []
        for k in range(count):
            args = tuple(
                self.part(a, k) if self.is_list(a) else a if parts is None else parts[k]
                for a, parts in zip(call.args, given, strict=True)
            )
            new = replace(call, args=args)
            if isinstance(s, Do):
                out.append(Do(new, line))
            elif call.target in self.lists:
                out.append(replace(new, target=self.lists[call.target][k]))
            elif self.is_tuple(Var(call.target)):
                part = self.fresh(f"{call.target}_{k}", list(self.types[call.target])[k])
                out.append(replace(new, target=part))
                taken.append(Var(part))
            else:  # a method that returns nothing
                out.append(Do(replace(new, target="_"), line))
        if taken:
            t = self.types[call.target]
            if isinstance(t, types.BaseNamedTuple):
                made = Ref(t.instance_class, t.instance_class.__name__)
                out.append(Let(call.target, "call", (made, *taken), (), line))
            else:
                out.append(Let(call.target, "tuple", tuple(taken), None, line))

    def part(self, a: Operand, k: int) -> Operand:
        """The list of the parts number k."""
        return Var(self.lists[a.name][k])  # type: ignore[union-attr]

    def parts(self, a: Operand, out: list[Stmt], line: int) -> list[Operand]:
        """The parts of a tuple."""
        found: list[Operand] = []
        for k, t in enumerate(self.types[a.name]):  # type: ignore[union-attr]
            part = self.fresh(f"{a.name}_{k}", t)  # type: ignore[union-attr]
            out.append(Let(part, "item", (a, Const(k)), None, line))
            found.append(Var(part))
        return found


__all__ = ["is_tuple_list", "without_tuple_lists"]
