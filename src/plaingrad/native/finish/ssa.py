"""Every variable assigned once, as far as that goes, copies followed to their source, and cotangents born when the
first contribution to them comes.

Numba brings a program into this form itself, in time that grows with the square of the number of assignments to a
name; and LLVM does not know that 0.0 + x is x (it is not for x = -0.0). Where branches meet, and where an iteration
ends, values move into a variable of the meeting place; only those variables are assigned more than once.

A cotangent that is known to be zero is not computed with: what it is multiplied with is skipped, even inf and nan.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import ModuleType, NoneType
from typing import Any

from numba.core import types

from plaingrad.native.finish.dead_code import is_pure
from plaingrad.native.finish.preaccumulate import preaccumulated
from plaingrad.native.program.ir import (
    RESULT,
    Break,
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Program,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    breaks,
    operands,
    statements,
)

ZERO, COMPLEX_ZERO = Const(0.0), Const(0j)  # of cotangents; told from the user's zeros by identity


def single_assignment(program: Program) -> Program:
    """`program` in single-assignment form."""
    work = _Single(program)
    top = _Scope(None)
    for name in program.params:
        top.local[name] = Var(name)
    body: list[Any] = []
    falls = work.body(program.body, top, body)
    if falls and RESULT not in work.unsure:
        value = top.find(RESULT)
        if value is not None and value != Var(RESULT):
            body.append(Let(RESULT, "copy", (value,)))
    return replace(program, body=_flat(body), types=work.types, own=frozenset(work.own))


@dataclass(slots=True)
class _Scope:
    """What names stand for, in a branch or loop: what it changed itself, else what is outside.

    Attributes:
        outside: the branch or loop around it.
        local: name -> what it stands for, of names that were assigned here.
        computed: (operation, operands) -> the variable that has the result, of those computed here.
    """

    outside: _Scope | None
    local: dict[str, Operand] = field(default_factory=dict)
    computed: dict[Any, str] = field(default_factory=dict)

    def find(self, name: str) -> Operand | None:
        """What a name stands for; None if it has no value on some way here."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.local:
                return scope.local[name]
            scope = scope.outside
        return None

    def found(self, key: Any) -> str | None:
        """The variable that has the result of an operation already."""
        scope: _Scope | None = self
        while scope is not None:
            if key in scope.computed:
                return scope.computed[key]
            scope = scope.outside
        return None


@dataclass(slots=True)
class _Exit:
    """A way out of a loop: what names stand for there, and the moves to be made, when they are known."""

    values: dict[str, Operand]
    moves: list[Stmt] = field(default_factory=list)


@dataclass(slots=True)
class _OpenLoop:
    scope: _Scope
    exits: list[_Exit] = field(default_factory=list)


class _Single:
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
        self.loops: list[_OpenLoop] = []
        self.chained: set[str] = set()  # names that `with_one_chain` has made
        self.rewritten: list[For] = []  # kept alive: `effects` has their ids

    # -- names -----------------------------------------------------------------------------------------------------

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

    def read(self, x: Operand, scope: _Scope) -> Operand:
        """The operand that `x` stands for."""
        if not isinstance(x, Var) or x.name in self.unsure:
            return x
        return scope.find(x.name) or x

    def bind(self, name: str, value: Operand, scope: _Scope, out: list[Any], line: int) -> None:
        """name = value."""
        steady = isinstance(value, Var) and value.name not in self.unsure
        if name not in self.unsure and (steady or value is ZERO or value is COMPLEX_ZERO):
            scope.local[name] = value
            return
        self.assign(name, Let(name, "copy", (value,), None, line), scope, out)

    def assign(self, name: str, s: Let, scope: _Scope, out: list[Any]) -> None:
        """A statement that gives `name` a value of its own."""
        if name not in self.unsure:
            new = self.version(name)
            scope.local[name] = Var(new)
            s = replace(s, target=new)
        out.append(s)

    # -- statements ------------------------------------------------------------------------------------------------

    def body(self, body: list[Stmt], scope: _Scope, out: list[Any]) -> bool:
        """Statements, appended to `out`; whether control runs off their end."""
        for s in body:
            if isinstance(s, Let):
                self.let(s, scope, out)
            elif isinstance(s, If):
                if not self.branch(s, scope, out):
                    return False
            elif isinstance(s, (For, Loop)):
                if not self.loop(s, scope, out):
                    return False
            elif isinstance(s, Break):
                found = _Exit(self.inside(scope))
                self.loops[-1].exits.append(found)
                out += [found, s]
                return False
            else:
                self.other(s, scope, out)
                if isinstance(s, Raise):
                    return False
        return True

    def other(self, s: Stmt, scope: _Scope, out: list[Any]) -> None:
        """A statement that assigns nothing."""
        if isinstance(s, Store):
            array, index, value = (self.read(x, scope) for x in (s.array, s.index, s.value))
            last = out[-1] if out else None
            same = isinstance(last, Let) and last.op == "item" and last.args == (array, index)
            if not (same and value == Var(last.target)):  # type: ignore[union-attr]
                out.append(Store(array, index, value, s.line))
        elif isinstance(s, InPlace):
            out.append(InPlace(self.read(s.array, scope), s.op, self.read(s.value, scope), s.line))
        elif isinstance(s, Do):
            args = tuple(self.read(a, scope) for a in s.call.args)
            out.append(Do(replace(s.call, args=args), s.line))
        elif isinstance(s, Raise):
            out.append(Raise(s.exception, tuple(self.read(a, scope) for a in s.args), s.line))

    def let(self, s: Let, scope: _Scope, out: list[Any]) -> None:
        """An assignment."""
        args = tuple(self.read(a, scope) for a in s.args)
        value = self.simplified(s, args)
        if value is not None:
            self.bind(s.target, value, scope, out, s.line)
            return
        if s.target in self.own and s.target not in self.types:
            t = self.number_type(s, args)
            if t is not None:
                self.types[s.target] = t
        key = self.key_of(s, args)
        before = scope.found(key) if key is not None else None
        if before is not None:
            self.bind(s.target, Var(before), scope, out, s.line)
            return
        self.assign(s.target, replace(s, args=args), scope, out)
        if key is not None:
            scope.computed[key] = out[-1].target

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

    # -- branches --------------------------------------------------------------------------------------------------

    def branch(self, s: If, scope: _Scope, out: list[Any]) -> bool:
        """A branch: names with a value on both ways that differ move into one variable."""
        left, right = _Scope(scope), _Scope(scope)
        then: list[Any] = []
        orelse: list[Any] = []
        then_falls = self.body(s.then, left, then)
        else_falls = self.body(s.orelse, right, orelse)
        out.append(If(self.read(s.test, scope), then, orelse, s.line))
        if not (then_falls and else_falls):
            if then_falls or else_falls:
                scope.local.update((left if then_falls else right).local)
            return then_falls or else_falls
        for name in list(dict.fromkeys((*left.local, *right.local))):
            a, b = left.find(name), right.find(name)
            if a is None or b is None:
                continue  # without a value on one way, so it is not read before it has got one
            if a == b and _is_zero(a) == _is_zero(b):
                scope.local[name] = a
                continue
            meeting = self.version(name)
            then.append(Let(meeting, "copy", (a,), None, s.line))
            orelse.append(Let(meeting, "copy", (b,), None, s.line))
            scope.local[name] = Var(meeting)
        return True

    # -- loops -----------------------------------------------------------------------------------------------------

    def inside(self, scope: _Scope) -> dict[str, Operand]:
        """What the names that the innermost open loop has changed stand for."""
        found: dict[str, Operand] = {}
        top = self.loops[-1].scope
        while True:
            found = {**scope.local, **found}
            if scope is top:
                return found
            assert scope.outside is not None
            scope = scope.outside

    def loop(self, s: For | Loop, scope: _Scope, out: list[Any]) -> bool:
        """A loop: names with a value before it that it assigns live in one variable at the top of every iteration."""
        bounds = tuple(self.read(x, scope) for x in operands(s))
        if isinstance(s, For):
            s = self.with_one_chain(s, scope)
        inner = _Scope(scope)
        effects = self.effects_of(s)
        homes: dict[str, str] = {}
        for name in _assigned([s]):
            value = scope.find(name)
            if value is None or name in self.unsure:
                continue
            if _is_zero(value) and effects.get(name, "varies") != "varies":
                continue  # zero it stays at the top of every iteration
            homes[name] = self.version(name)
            out.append(Let(homes[name], "copy", (value,), None, s.line))
            inner.local[name] = Var(homes[name])
        body: list[Any] = []
        self.loops.append(_OpenLoop(inner))
        if isinstance(s, For):
            counter = s.target
            if counter not in self.unsure:
                counter = self.version(counter)
                inner.local[s.target] = Var(counter)
            made: For | Loop = For(counter, *bounds, body, s.line)
        else:
            made = Loop(body, s.line)
        if self.body(s.body, inner, body):
            body += self.moves({homes[name]: inner.local[name] for name in homes}, s.line)
        exits = self.loops.pop().exits
        out.append(made)
        if isinstance(s, Loop):  # what every way out has a value for
            if not exits:
                return False
            for name in exits[0].values:
                if name not in homes and name not in self.unsure and all(name in e.values for e in exits):
                    values = [e.values[name] for e in exits]
                    if all(map(_is_zero, values)):
                        scope.local[name] = values[0]
                    else:
                        homes[name] = self.version(name)
        for e in exits:
            e.moves = self.moves({home: e.values[name] for name, home in homes.items()}, s.line)
        scope.local.update({name: Var(home) for name, home in homes.items()})
        return True

    def with_one_chain(self, s: For, scope: _Scope) -> For:
        """A loop of the reverse sweep with `preaccumulated` body where that goes, else as it is."""
        effects = self.effects_of(s)
        zero: set[str] = set()
        carried: list[str] = []
        for name in effects:
            value = scope.find(name)
            if name in self.unsure:
                return s
            if _is_zero(value) and effects[name] != "varies":
                zero.add(name)
            elif value is not None:
                carried.append(name)
        if not carried or any(self.types.get(name) != types.float64 for name in carried):
            return s
        body = preaccumulated(s, carried, zero, self.own)
        if body is None:
            return s
        new = _assigned(body).keys() - _assigned(s.body).keys()
        if not new.isdisjoint(self.taken - self.chained):
            return s
        self.chained |= new
        self.taken |= new
        self.own |= new
        self.rewritten.append(replace(s, body=body))
        return self.rewritten[-1]

    def moves(self, wanted: dict[str, Operand], line: int) -> list[Stmt]:
        """All of `wanted`, variable -> value, at once: one after the other, a value held where moves go in circles."""
        left = {to: value for to, value in wanted.items() if value != Var(to)}
        out: list[Stmt] = []
        readers: dict[str, int] = {}
        for value in left.values():
            if isinstance(value, Var):
                readers[value.name] = readers.get(value.name, 0) + 1
        ready = [to for to in left if not readers.get(to)]
        while left:
            if not ready:
                to = next(iter(left))
                held = self.version(to)
                out.append(Let(held, "copy", (Var(to),), None, line))
                left = {t: Var(held) if v == Var(to) else v for t, v in left.items()}
                readers[to] = 0
                ready = [to]
            to = ready.pop()
            value = left.pop(to)
            out.append(Let(to, "copy", (value,), None, line))
            if isinstance(value, Var) and value.name in readers:
                readers[value.name] -= 1
                if not readers[value.name] and value.name in left:
                    ready.append(value.name)
        return out

    def effects_of(self, s: For | Loop) -> dict[str, str]:
        """What an iteration does to the cotangents that it assigns, of those that are zero before: see `_effects`."""
        found = self.effects.get(id(s))
        if found is None:
            found = self._effects(s.body)
            if breaks(s.body):
                found = dict.fromkeys(found, "keeps")
                for inner in statements(s.body):
                    if isinstance(inner, Let) and inner.target in found and not self.is_zeroing(inner):
                        found[inner.target] = "varies"
            self.effects[id(s)] = found
        return found

    def _effects(self, body: list[Stmt]) -> dict[str, str]:
        """cotangent -> "zeroes" if it is zero at the end, "keeps" if it is so if it was before, else "varies"."""
        found: dict[str, str] = {}
        for s in body:
            if isinstance(s, Let) and s.target in self.own:
                found[s.target] = "zeroes" if self.is_zeroing(s) else "varies"
            elif isinstance(s, If):
                then, orelse = self._effects(s.then), self._effects(s.orelse)
                for name in dict.fromkeys((*then, *orelse)):
                    both = {then.get(name, "keeps"), orelse.get(name, "keeps")}
                    _follow(
                        found,
                        name,
                        both.pop() if len(both) == 1 else "varies" if "varies" in both else "keeps",
                    )
            elif isinstance(s, (For, Loop)):
                for name, effect in self.effects_of(s).items():
                    _follow(found, name, "varies" if effect == "varies" else "keeps")
        return found

    def is_zeroing(self, s: Let) -> bool:
        """Whether an assignment makes a cotangent zero."""
        a = s.args[0] if s.args else None
        return s.op == "copy" and isinstance(a, Const) and type(a.value) in (float, complex) and not a.value


def _follow(found: dict[str, str], name: str, effect: str) -> None:
    if effect != "keeps" or name not in found:
        found[name] = effect


def _is_zero(x: Operand | None) -> bool:
    return x is ZERO or x is COMPLEX_ZERO


def _assigned(body: list[Stmt]) -> dict[str, None]:
    """The names that statements assign, at any depth, in order."""
    return {s.target: None for s in statements(body) if isinstance(s, (Let, For))}


def _flat(body: list[Any]) -> list[Stmt]:
    """`body` with the moves at ways out of loops in their places."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, _Exit):
            out += s.moves
        elif isinstance(s, If):
            out.append(If(s.test, _flat(s.then), _flat(s.orelse), s.line))
        elif isinstance(s, (For, Loop)):
            out.append(replace(s, body=_flat(s.body)))
        else:
            out.append(s)
    return out


# -- names that may be read before they have a value -------------------------------------------------------------------


def unsure_names(program: Program) -> set[str]:
    """The variables that are read where, on some way, they have no value yet; they are left as they are."""
    found: set[str] = set()
    _certain(program.body, [set(program.params)], found, [])
    assigned = _assigned(program.body)
    return {name for name in found if name in assigned}


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
