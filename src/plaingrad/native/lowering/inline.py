"""Functions of the user's put in the place of their calls, before anything is differentiated.

What a function returns (arrays, tuples), writes, draws at random or prints then needs no rule of its own: its
statements stand in the caller, with variables renamed, parameters replaced by arguments and the result assigned to the
target of the call. Statements keep their own file and line (`ir.Place`). A call stays a call where

- the function calls itself (of functions that call each other, all but one are put into that one),
- it is long and called in many places, so that the caller would grow without need,
- it was compiled with other options than the caller (`fastmath`, ...), so that its numbers could change,
- Numba's form of it cannot be taken over; if its derivative is wanted that is told when it is derived.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from numba.core import types

from plaingrad.errors import NativeError
from plaingrad.native.analysis import helper_calls
from plaingrad.native.analysis.effects import bound_operands, effects_of
from plaingrad.native.analysis.inner_gradients import gradient_of
from plaingrad.native.analysis.users_functions import has_own_rule, is_users
from plaingrad.native.frontend.current import dispatcher_of
from plaingrad.native.frontend.translation import program
from plaingrad.native.frontend.values import RESERVED
from plaingrad.native.lowering import (
    decompositions,
    formulas_again,
    kernels,
    of_python,
    statistics,
    stencil_kernels,
)
from plaingrad.native.lowering.composition import COMPOSED
from plaingrad.native.program.dispatchers import identity, is_dispatcher, options_of, python_function
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
    Place,
    Program,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    moved,
    statements,
    with_inner,
)
from plaingrad.native.program.value_types import has_tangent, is_array, settled, type_of_value

# the files that enter their functions into the table
COMPOSITIONS = tuple(
    file.__name__ for file in (decompositions, formulas_again, of_python, statistics, stencil_kernels)
)
SHORT = 12  # statements: a function this long is put in the place of every call
ROOM = 300  # statements that the copies of one longer function may take in one caller, beyond the first copy


def inlined(program: Program) -> Program:
    """`program` with the functions that it calls put in place of the calls."""
    if not any(is_taken_apart(callee_of(s)) for s in statements(program.body)):
        return program
    return _Inliner().whole(program)


def callee_of(s: Stmt) -> Any:
    """What a statement calls; None if it is no call."""
    call = s.call if isinstance(s, Do) else s
    return getattr(call.args[0], "value", None) if isinstance(call, Let) and call.op == "call" else None


def is_taken_apart(f: Any) -> bool:
    """Whether calls of `f` are looked at: a function of the user's, or one of NumPy put together from others."""
    if has_own_rule(f) or gradient_of(f) is not None:
        return False
    return (
        is_users(f)
        or is_part(f)
        or kernels.is_kernel(f)
        or (callable(f) and f.__hash__ is not None and f in COMPOSED)
    )


def is_part(f: Any) -> bool:
    """Whether `f` is one of the functions that others are put together from."""
    return getattr(python_function(f), "__module__", None) in COMPOSITIONS


class _Inliner:
    """One derivation: which functions are being looked at, and what the others are, with their callees in them."""

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.met: set[Any] = set()  # of the open functions, those called again
        self.known: dict[Any, Program | None] = {}

    def whole(self, program: Program) -> Program:
        """`program` with its callees in it."""
        self.open.append(identity(program.function))
        try:
            return _Caller(self, program).made()
        finally:
            self.open.pop()

    def callee(self, f: Any, signature: tuple[Any, ...]) -> Program | None:
        """The function `f`, with its own callees in it; None if its calls must stay."""
        me = identity(f)
        if me in self.open:
            self.met.add(me)
            return None
        if (me, signature) in self.known:
            return self.known[me, signature]
        others, self.met = self.met, set()
        found: Program | None = None
        try:
            found = self.whole(program(f, signature))
        except NativeError:
            pass  # it may not matter for the derivative
        if me in self.met:
            found = None
            self.met.discard(me)
        if not self.met:  # else it is only right below the functions that are open now
            self.known[me, signature] = found
        self.met |= others
        return found


class _Caller:
    """One program that takes over what it calls."""

    def __init__(self, inliner: _Inliner, program: Program) -> None:
        self.inliner = inliner
        self.program = program
        self.types = dict(program.types)
        self.taken = set(self.types) | {t for s in statements(program.body) for t in targets(s)}
        self.copied: dict[Any, int] = {}  # callee -> how many statements of it are here

    def made(self) -> Program:
        """The program."""
        body = self.body(self.program.body)
        return replace(self.program, body=body, types=self.types)

    def fresh(self, base: str) -> str:
        """A name that is not in use, and that no transform makes of another: `x_b` is the shadow of `x`."""
        base = f"{base}_" if RESERVED.search(base) else base
        name, n = base, 1
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        return name

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """Statements with their callees in them."""
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, (If, For, Loop)):
                out.append(with_inner(s, self.body))
            else:
                found = self.taken_over(s) if is_taken_apart(callee_of(s)) else None
                out += [s] if found is None else found
        return out

    def taken_over(self, s: Stmt) -> list[Stmt] | None:
        """The statements that a call stands for; None if it stays."""
        call = s.call if isinstance(s, Do) else s
        assert isinstance(call, Let)
        f = callee_of(s)
        setup: list[Stmt] = []
        composed = not is_users(f)
        if composed and not is_part(f):
            f = self.composed(f, call)
            if f is None:
                return None
        try:
            args = self.arguments(f, call, setup)
        except (TypeError, ValueError):
            return None
        found = self.inliner.callee(f, tuple(self.type_of(a) for a in args))
        if found is None or len(found.params) != len(args):
            return None
        if not composed and not self.fits(f, found, call, args):
            return None
        if composed and isinstance(s, Let) and isinstance(self.types[s.target], types.Optional):
            self.types[s.target] = found.result  # Numba types `matrix_power` so
        body = self.copy(found, args, call.target if isinstance(s, Let) else None, call.line)
        return setup + (placed(decided(body, {}), call.line) if composed else body)

    def composed(self, f: Any, call: Let) -> Any:
        """The function that computes what `f`, one of NumPy, does for these arguments; None if there is none."""
        keywords = tuple(call.detail or ())
        kinds = [self.type_of(a) for a in call.args[1:]]
        if kernels.is_kernel(f):
            made = None if keywords else kernels.by_elements(f, kinds, self.types.get(call.target))
            return made and dispatcher_of(made)
        named = dict(zip(keywords, kinds[len(kinds) - len(keywords) :], strict=True))
        try:
            found = COMPOSED[f](*kinds[: len(kinds) - len(keywords)], **named)
        except TypeError:
            return None
        return found and dispatcher_of(found)

    def arguments(self, f: Any, call: Let, setup: list[Stmt]) -> tuple[Operand, ...]:
        """The operand for every parameter; what has to be computed for that goes to `setup`."""
        parameters = inspect.signature(python_function(f)).parameters
        rest = [p for p in parameters.values() if p.kind is inspect.Parameter.VAR_POSITIONAL]
        if not rest:
            args = bound_operands(f, call.args[1:], call.detail or ())
        else:
            count = list(parameters).index(rest[0].name)
            if call.detail or len(call.args) - 1 < count or len(parameters) > count + 1:
                raise TypeError("keywords beside *args")
            more = self.fresh(rest[0].name)
            parts = call.args[1 + count :]
            kinds = [self.type_of(a) for a in parts]
            self.types[more] = types.StarArgTuple.from_types(kinds)
            setup.append(Let(more, "tuple", parts, None, call.line))
            args = (*call.args[1 : 1 + count], Var(more))
        if is_dispatcher(f) and not f._can_compile:
            args = self.as_declared(f, args, call.line, setup)
        return args

    def as_declared(
        self, f: Any, args: tuple[Operand, ...], line: int, setup: list[Stmt]
    ) -> tuple[Operand, ...]:
        """The arguments converted to the types of the only signature that was declared for `f`."""
        kinds = tuple(self.type_of(a) for a in args)
        if kinds in f.overloads:
            return args
        (declared,) = f.overloads  # ValueError: there are several, of which Numba chooses
        out = []
        for a, kind, wanted in zip(args, kinds, declared, strict=True):
            if (
                kind != wanted
                and isinstance(wanted, types.Number)
                and isinstance(kind, (types.Number, types.Boolean))
            ):
                from numba.np.numpy_support import as_dtype

                name = self.fresh("declared")
                self.types[name] = wanted
                scalar = as_dtype(wanted).type
                setup.append(Let(name, "call", (Ref(scalar, scalar.__name__), a), (), line))
                a = Var(name)
            out.append(a)
        return tuple(out)

    def type_of(self, a: Operand) -> Any:
        """The Numba type of an argument."""
        return settled(self.types[a.name] if isinstance(a, Var) else type_of_value(a.value))

    def fits(self, f: Any, found: Program, call: Let, args: tuple[Operand, ...]) -> bool:
        """Whether `found` is put in the place of this call."""
        mine, its = options_of(self.program.function), options_of(f)
        size = sum(1 for _ in statements(found.body))
        if mine != its and not helper_calls.is_our_own(f):
            return not self.may_stay(f, found, call, args) and may_compile_alike(mine, its)
        copied = self.copied.get(identity(f), 0)
        if copied and size > SHORT and copied + size > ROOM and self.may_stay(f, found, call, args):
            return False
        self.copied[identity(f)] = copied + size
        return True

    def may_stay(self, f: Any, found: Program, call: Let, args: tuple[Operand, ...]) -> bool:
        """Whether the derivative of the call can be had from the function's own pullback."""
        t = found.result
        if is_array(t) or (isinstance(t, types.BaseTuple) and any(map(is_array, t))):
            return False
        kinds = tuple(self.type_of(a) for a in args)
        if any(isinstance(kind, types.BaseTuple) and has_tangent(kind) for kind in kinds):
            return False
        if any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(python_function(f)).parameters.values()):
            return False
        effects = effects_of(f, kinds)
        return not (effects.once or effects.writes or effects.aliases)

    def copy(self, found: Program, args: tuple[Operand, ...], target: str | None, line: int) -> list[Stmt]:
        """The statements of `found` for these arguments, the result assigned to `target`."""
        names: dict[str, Operand] = {}
        out: list[Stmt] = []
        owners = {a.name for s in statements(found.body) for a in owners_in(s)}
        assigned = {name for s in statements(found.body) for name in targets(s)}
        for param, a in zip(found.params, args, strict=True):
            if param in assigned or (isinstance(a, Const) and param in owners) or a == Var(target or ""):
                bound = self.fresh(f"{found.name}_{param}")
                self.types[bound] = found.types[param]
                out.append(moved(bound, a, line))
                a = Var(bound)
            names[param] = a
        for name in assigned:
            if name in names:
                continue
            if name == RESULT and target is not None:
                names[name] = Var(target)
            elif name != "_":
                new = self.fresh(f"{found.name}_{name}")
                names[name] = Var(new)
                if name in found.types:
                    self.types[new] = found.types[name]
        return out + renamed(found.body, names, found)


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def decided(body: list[Stmt], known: dict[str, Any]) -> list[Stmt]:
    """`body` without the branches on comparisons of constants; `known` holds what is computed of constants."""

    def is_known(a: Operand) -> bool:
        return isinstance(a, Const) or (isinstance(a, Var) and a.name in known)

    def value(a: Any) -> Any:
        return a.value if isinstance(a, Const) else known[a.name]

    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Let) and all(map(is_known, s.args)):
            if s.op == "compare" and s.detail in COMPARED:
                known[s.target] = COMPARED[s.detail](*map(value, s.args))
            elif s.op == "unary" and s.detail == "-":
                known[s.target] = -value(s.args[0])
        if isinstance(s, If) and isinstance(s.test, Var) and s.test.name in known:
            out += decided(s.then if known[s.test.name] else s.orelse, known)
            continue
        out.append(with_inner(s, lambda inner: decided(inner, known)))
    return out


def placed(body: list[Stmt], line: int) -> list[Stmt]:
    """`body` with one line of the user's for all of its statements."""
    for s in statements(body):
        s.line = line
        if isinstance(s, Do):
            s.call.line = line
    return body


def may_compile_alike(mine: dict[str, Any], its: dict[str, Any]) -> bool:
    """Whether a callee with options `its`, compiled with the options `mine`, still does what its user asked for.

    Less freedom than fast mathematics allows is no harm; more is. Checks may be added but not lost.
    """
    if mine.get("error_model", "python") != its.get("error_model", "python"):
        return False
    if its.get("boundscheck") and not mine.get("boundscheck"):
        return False
    return not mine.get("fastmath") or its.get("fastmath") is True


def targets(s: Stmt) -> Iterator[str]:
    """The variables that a statement itself assigns."""
    if isinstance(s, (Let, For)):
        yield s.target


def owners_in(s: Stmt) -> Iterator[Var]:
    """The variables of which a statement takes an item or an attribute: a number in their place would give none."""
    if isinstance(s, Let) and s.op in ("item", "attribute", "method") and isinstance(s.args[0], Var):
        yield s.args[0]
    if isinstance(s, (Store, InPlace)) and isinstance(s.array, Var):
        yield s.array


def renamed(body: list[Stmt], names: dict[str, Operand], source: Program) -> list[Stmt]:
    """`body`, a part of `source`, with other operands for its variables."""

    def new(a: Operand) -> Operand:
        return names.get(a.name, a) if isinstance(a, Var) else a

    def target(name: str) -> str:
        found = names.get(name)
        return found.name if isinstance(found, Var) else name

    def let(s: Let, line: int) -> Let:
        if s.op == "copy":
            return moved(target(s.target), new(s.args[0]), line)
        return Let(target(s.target), s.op, tuple(map(new, s.args)), s.detail, line)

    out: list[Stmt] = []
    for s in body:
        line = s.line if isinstance(s.line, Place) else Place(s.line, source.file, source.name)
        if isinstance(s, Let):
            out.append(let(s, line))
        elif isinstance(s, Do):
            out.append(Do(let(s.call, line), line))
        elif isinstance(s, Store):
            out.append(Store(new(s.array), new(s.index), new(s.value), line))
        elif isinstance(s, InPlace):
            out.append(InPlace(new(s.array), s.op, new(s.value), line))
        elif isinstance(s, If):
            arms = (renamed(s.then, names, source), renamed(s.orelse, names, source))
            out.append(If(new(s.test), *arms, line))
        elif isinstance(s, For):
            bounds = (new(s.start), new(s.stop), new(s.step))
            inner = renamed(s.body, names, source)
            out.append(For(target(s.target), *bounds, inner, line, s.parallel))
        elif isinstance(s, Loop):
            out.append(Loop(renamed(s.body, names, source), line))
        elif isinstance(s, Raise):
            out.append(replace(s, args=tuple(map(new, s.args)), line=line))
        else:
            assert isinstance(s, Break)
            out.append(Break(line))
    return out
