"""Values in single assignment: versions of variables, copies, and what is known to be 0 or 1."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import ModuleType, NoneType
from typing import Any

from numba.core import types

from plaingrad.native.finish.dead_code import is_pure
from plaingrad.native.program.ir import (
    RESULT,
    Break,
    Const,
    For,
    If,
    Let,
    Loop,
    Operand,
    Program,
    Raise,
    Ref,
    Stmt,
    Var,
    operands,
    statements,
)

ZERO, COMPLEX_ZERO = Const(0.0), Const(0j)  # of cotangents; told from the user's zeros by identity


@dataclass(slots=True)
class Scope:
    """What names stand for, in a branch or loop: what it changed itself, else what is outside.

    Attributes:
        outside: the branch or loop around it.
        local: name -> what it stands for, of names that were assigned here.
        computed: (operation, operands) -> the variable that has the result, of those computed here.
    """

    outside: Scope | None
    local: dict[str, Operand] = field(default_factory=dict)
    computed: dict[Any, str] = field(default_factory=dict)

    def find(self, name: str) -> Operand | None:
        """What a name stands for; None if it has no value on some way here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.local:
                return scope.local[name]
            scope = scope.outside
        return None

    def found(self, key: Any) -> str | None:
        """The variable that has the result of an operation already."""
        scope: Scope | None = self
        while scope is not None:
            if key in scope.computed:
                return scope.computed[key]
            scope = scope.outside
        return None


@dataclass(slots=True)
class OpenLoop:
    """A loop whose body is at hand."""

    scope: Scope
    exits: list[Exit] = field(default_factory=list)


def unsure_names(program: Program) -> set[str]:
    """The variables that are read where, on some way, they have no value yet; they are left as they are."""
    found: set[str] = set()
    _certain(program.body, [set(program.params)], found, [])
    assigned = names_assigned(program.body)
    return {name for name in found if name in assigned}


@dataclass(slots=True)
class Exit:
    """A way out of a loop: what names stand for there, and the moves to be made, when they are known."""

    values: dict[str, Operand]
    moves: list[Stmt] = field(default_factory=list)


def names_assigned(body: list[Stmt]) -> dict[str, None]:
    """The names that statements assign, at any depth, in order."""
    return {s.target: None for s in statements(body) if isinstance(s, (Let, For))}


def _certain(body: list[Stmt], layers: list[set[str]], found: set[str], leaves: list[Any]) -> bool:
    """Enter what statements surely assign into the last of `layers`; whether control runs off their end.

    Args:
        body: the statements.
        layers: the names that surely have a value, those outside branches and loops first.
        found: gets the names that are read without.
        leaves: innermost last, for each open loop the number of layers at its top and what was assigned at its exits.
    """
    here = layers[-1]
    for s in body:
        for a in operands(s):
            if isinstance(a, Var) and not any(a.name in layer for layer in layers):
                found.add(a.name)
        if isinstance(s, Let):
            here.add(s.target)
        elif isinstance(s, If):
            left: set[str] = set()
            right: set[str] = set()
            then_falls = _certain(s.then, [*layers, left], found, leaves)
            else_falls = _certain(s.orelse, [*layers, right], found, leaves)
            if not (then_falls or else_falls):
                return False
            here |= left & right if then_falls and else_falls else left if then_falls else right
        elif isinstance(s, (For, Loop)):
            inner = {s.target} if isinstance(s, For) else set()
            exits: list[set[str]] = []
            _certain(s.body, [*layers, inner], found, [*leaves, (len(layers), exits)])
            if isinstance(s, Loop):
                if not exits:
                    return False
                here |= set.intersection(*exits)
        elif isinstance(s, Break):
            depth, exits = leaves[-1]
            exits.append(set().union(*layers[depth:]))
            return False
        elif isinstance(s, Raise):
            return False
    return True


class Values:
    """Which value every variable stands for."""

    def __init__(self, program: Program) -> None:
        self.own = set(program.own)
        self.types = dict(program.types)
        self.unsure = unsure_names(program)
        self.used = {*self.unsure, *program.params}
        self.taken = {RESULT, *program.params}
        for s in statements(program.body):
            if isinstance(s, (Let, For)):
                self.taken.add(s.target)
            self.taken.update(a.name for a in operands(s) if isinstance(a, Var))
        self.counts: dict[str, int] = {}
        self.effects: dict[int, dict[str, str]] = {}
        self.loops: list[OpenLoop] = []
        self.chained: set[str] = set()  # names that `with_one_chain` has made
        self.rewritten: list[For] = []  # kept alive: `effects` has their ids

    def version(self, name: str) -> str:
        """A new variable for a value of `name`."""
        new = name
        if new in self.used:
            n = self.counts.get(name, 0) + 1
            while f"{name}_{n}" in self.taken:
                n += 1
            self.counts[name] = n
            new = f"{name}_{n}"
            self.taken.add(new)
            if name in self.types:
                self.types[new] = self.types[name]
            if name in self.own:
                self.own.add(new)
        self.used.add(new)
        return new

    def is_number(self, x: Operand) -> bool:
        """Whether an operand is known to be a number."""
        if isinstance(x, Const):
            return isinstance(x.value, (int, float, complex))
        return isinstance(x, Var) and isinstance(self.types.get(x.name), (types.Number, types.Boolean))

    def read(self, x: Operand, scope: Scope) -> Operand:
        """The operand that `x` stands for."""
        if not isinstance(x, Var) or x.name in self.unsure:
            return x
        return scope.find(x.name) or x

    def bind(self, name: str, value: Operand, scope: Scope, out: list[Any], line: int) -> None:
        """name = value."""
        steady = isinstance(value, Var) and value.name not in self.unsure
        if name not in self.unsure and (steady or value is ZERO or value is COMPLEX_ZERO):
            scope.local[name] = value
            return
        self.assign(name, Let(name, "copy", (value,), None, line), scope, out)

    def assign(self, name: str, s: Let, scope: Scope, out: list[Any]) -> None:
        """A statement that gives `name` a value of its own."""
        if name not in self.unsure:
            new = self.version(name)
            scope.local[name] = Var(new)
            s = replace(s, target=new)
        out.append(s)

    def key_of(self, s: Let, args: tuple[Operand, ...]) -> Any:
        """What tells an operation of the reverse sweep on numbers, which need not be done twice; None for others."""
        if s.target not in self.own or s.target in self.unsure or self.number_type(s, args) is None:
            return None
        if s.op not in ("binary", "unary", "call") or not isinstance(s.detail, (str, tuple, NoneType)):
            return None
        parts: list[Any] = [s.op, s.detail]
        for a in args:
            if isinstance(a, Var):
                if a.name in self.unsure:
                    return None
                parts.append(a.name)
            else:
                parts.append((type(a.value), repr(a.value)) if isinstance(a, Const) else id(a.value))
        return tuple(parts)

    def number_type(self, s: Let, args: tuple[Operand, ...]) -> Any:
        """A type of numbers if a temporary of the reverse sweep is sure to be a number."""
        if s.op == "item":
            array, index = (self.types.get(x.name) if isinstance(x, Var) else None for x in args)
            if not isinstance(array, types.Array):
                return None
            places = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
            whole = all(isinstance(t, types.Integer) for t in places) or isinstance(args[1], Const)
            return array.dtype if whole and len(places) == array.ndim else None
        if s.op == "call":
            f, *rest = args
            if not is_pure(getattr(f, "value", None)):
                return None
            args = tuple([a for a in rest if not (isinstance(a, Ref) and isinstance(a.value, ModuleType))])
        if s.op not in ("binary", "unary", "call") or not all(map(self.is_number, args)):
            return None
        return types.complex128 if any(map(self.is_complex, args)) else types.float64

    def is_complex(self, x: Operand) -> bool:
        """Whether an operand is known to be a complex number."""
        if isinstance(x, Const):
            return isinstance(x.value, complex)
        return isinstance(x, Var) and isinstance(self.types.get(x.name), types.Complex)

    def simplified(self, s: Let, args: tuple[Operand, ...]) -> Operand | None:
        """The operand that an assignment comes to, None if it has to be computed."""
        a = args[0] if args else None
        if s.op == "copy":
            if (
                isinstance(a, Const)
                and s.target in self.own
                and type(a.value) in (float, complex)
                and not a.value
            ):
                return COMPLEX_ZERO if isinstance(a.value, complex) else ZERO
            return a
        zeros = [x is ZERO or x is COMPLEX_ZERO for x in args]
        if not any(zeros):
            return None
        if s.op == "unary" and s.detail in "+-":
            return a
        if s.op == "attribute" and s.detail in ("real", "imag"):
            return ZERO
        if s.op == "method" and s.detail[0] == "conjugate":
            return a
        if s.op != "binary":
            return None
        b = args[1]
        if s.detail in "+-" and zeros[1]:
            return a
        if s.detail == "+":
            return None if a is COMPLEX_ZERO else b  # the sum is to be complex
        if (s.detail == "*" or (s.detail == "/" and zeros[0])) and all(map(self.is_number, args)):
            return a if zeros[0] else b
        return None
