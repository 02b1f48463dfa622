"""Reverse mode: from a program to one that runs forward, keeping what the way back needs, and then backward.

The program made has the parameters of the given one, then the cotangents of the results, then a shadow array for every
array parameter. It returns the results and the cotangents of the scalar parameters; those of arrays are added into
the shadows. What is kept is decided for each loop body: a value that the reverse of that body reads is recomputed if
that is cheap, else stored on a tape of its own, one entry an iteration. No memory is undone: what is read from memory
that is written is kept when it is read. Arrays are kept by reference, with their shadows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.core import types

from plaingrad import rulebook
from plaingrad.errors import NativeError
from plaingrad.native import arrays, helpers, loop_forms, scalars
from plaingrad.native.activity import (
    Memory,
    active_variables,
    has_tangent,
    is_array,
    is_inert,
    is_real,
    is_users,
    varying_variables,
)
from plaingrad.native.effects import bound_operands, effects_of
from plaingrad.native.explode import exploded
from plaingrad.native.helpers import add_to, grown, trips
from plaingrad.native.tree import (
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

POWERS = (math.pow, np.power, pow)
ZEROS = {types.float64: 0.0, types.int64: 0, types.boolean: False, types.complex128: 0j}
CHEAP = frozenset(("copy", "attribute", "tuple", "slice"))
DTYPES = {types.boolean: np.bool_, types.float32: np.float32, types.complex64: np.complex64}


@dataclass(slots=True)
class Parts:
    """What becomes of a run of statements: the forward form, and the reverse one in the order it runs."""

    forward: list[Stmt] = field(default_factory=list)
    backward: list[Stmt] = field(default_factory=list)


def pullback_program(program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """The program that returns the results of `program` and its cotangents.

    Args:
        program: what is differentiated.
        wanted: the parameters to differentiate.
        callee: `callee(f, argument types)` is the compiled pullback of another function, of the same form.
    """
    return _Reverse(program, wanted, callee).program()


class Transform:
    """What both modes need to know of a program: its parts, its memory, what is active, and slopes of scalars."""

    def __init__(self, program: Program, wanted: list[str], callee: Callable[..., Any]) -> None:
        self.source = program
        self.exploded, self.results, self.leaves = exploded(program)
        self.types = self.exploded.types
        self.inner = {leaf for leaves in self.leaves.values() for leaf in leaves} - set(program.params)
        self.callee = callee
        self.memory = Memory(self.exploded)
        inputs = [leaf for name in wanted for leaf in self.leaves[name] if has_tangent(self.types[leaf])]
        self.inputs = inputs
        outputs = [name for name in self.results if has_tangent(self.types[name])]
        self.outputs = outputs
        # what is written into an argument is seen by the caller, so its cotangent may come in with the shadow
        seen = [leaf for leaves in self.leaves.values() for leaf in leaves if is_array(self.types.get(leaf))]
        self.active = active_variables(self.exploded, self.memory, inputs, outputs + seen)
        self.refuse_what_is_lost(inputs)
        self.count = 0
        self.setup: list[Stmt] = []  # tapes, before anything else
        # kept numbers that some way through the program leaves without a value
        self.initial: dict[str, Stmt] = {}
        self.assigned = self._assignments(self.exploded.body)
        self.definitions: dict[str, Let] = {}
        for s in statements(self.exploded.body):
            if isinstance(s, Let) and self.assigned[s.target] == 1:
                self.definitions[s.target] = s

    def refuse_what_is_lost(self, inputs: list[str]) -> None:
        """Refuse values with a derivative that go where derivatives are not followed: lists, optional values, ..."""
        varying = varying_variables(self.exploded, self.memory, inputs)

        def varies(x: Operand) -> bool:
            return isinstance(x, Var) and x.name in varying

        for s in statements(self.exploded.body):
            call = s.call if isinstance(s, Do) else s
            if (
                isinstance(s, Store)
                and varies(s.value)
                and not isinstance(self.type_of(s.array), types.Array)
            ):
                raise self.refuse(f"a write into a {self.type_of(s.array)}", s.line)
            if not isinstance(call, Let):
                continue
            line = call.line or s.line
            t = self.types.get(call.target)
            if isinstance(s, Let) and any(map(varies, call.args)) and not has_tangent(t) and not is_inert(t):
                raise self.refuse(f"a {t} that holds values with a derivative", line)
            f = getattr(call.args[0], "value", None) if call.op == "call" and call.args else None
            if is_users(f):
                continue
            if call.op == "method":
                owner = self.type_of(call.args[0])
                known = is_real(owner) or isinstance(owner, (types.Array, types.BaseTuple)) or is_inert(owner)
                if not known and any(map(varies, call.args)):
                    raise self.refuse(f"`.{call.detail[0]}` of a {owner}", line)
            written = any(varies(Var(name)) for name in self.memory.outputs(call))
            if written and call.op != "copy" and not arrays.may_write(call):
                name = call.detail[0] if call.op == "method" else getattr(f, "__name__", f)
                raise self.refuse(f"`{name}`, which writes into an array,", line)
            if isinstance(f, np.ufunc) and any(map(varies, call.args)) and call.detail:
                raise self.refuse(f"a keyword argument of `{f.__name__}`", line)

    def _assignments(self, body: list[Stmt]) -> dict[str, int]:
        found: dict[str, int] = {}
        for s in statements(body):
            if isinstance(s, (Let, For)):
                found[s.target] = found.get(s.target, 0) + 1
        return found

    # -- names -----------------------------------------------------------------------------------------------------

    def fresh(self, base: str) -> str:
        """A name that is not in use."""
        self.count += 1
        return f"{base}_{self.count}"

    def is_active(self, x: Operand) -> bool:
        """Whether an operand carries a derivative."""
        return isinstance(x, Var) and x.name in self.active

    def type_of(self, x: Operand) -> Any:
        """The Numba type of an operand; None if it is not a variable."""
        return self.types.get(x.name) if isinstance(x, Var) else None

    def refuse(self, what: str, line: int) -> NativeError:
        """The error that says that `what` has no native derivative."""
        return NativeError(
            f"{what} at {self.source.file}:{line}, in `{self.source.name}`, has no native derivative rule.\n"
            "  To go on: tier='plain' differentiates it as it is.\n  See docs: errors#native"
        )

    def zero(self, t: Any) -> Operand:
        """A zero cotangent of a scalar."""
        return Const(0j) if isinstance(t, types.Complex) else Const(0.0)

    def zeros(self, name: str) -> Stmt:
        """The shadow of a new array."""
        return Let(f"{name}_b", "call", (Ref(np.zeros_like, "zeros_like"), Var(name)), ())

    def emit(self, out: list[Stmt], op: str, args: tuple[Operand, ...], detail: Any, line: int) -> Var:
        """A new variable for op(args)."""
        name = self.fresh("d")
        out.append(Let(name, op, args, detail, line))
        return Var(name)

    def is_complex(self, x: Operand) -> bool:
        """Whether an operand of generated code is known to be complex."""
        t = self.types.get(x.name) if isinstance(x, Var) else None
        if isinstance(x, Var) and x.name.endswith("_b") and t is None:
            t = self.types.get(x.name[:-2])
        return isinstance(t, types.Complex) or (isinstance(x, Const) and isinstance(x.value, complex))

    def slopes(self, s: Let, out: list[Stmt]) -> list[tuple[int, Any]]:
        """(position, dz/dx) of every active operand of a scalar operation; statements that compute them go to `out`."""
        line = s.line
        z = Var(s.target)
        found: list[tuple[int, Any]] = []
        mixed = any(isinstance(self.type_of(a), types.Complex) for a in (*s.args, z))

        def emit(op: str, args: tuple[Operand, ...], detail: Any) -> Var:
            new = self.emit(out, op, args, detail, line)
            if mixed:
                self.types[new.name] = types.complex128
            return new

        if s.op == "copy":
            return [(0, 1)]
        if s.op == "unary":
            return [(0, {"-": -1, "+": 1}[s.detail])]
        if s.op == "binary":
            a, b = s.args
            if s.detail in "+-":
                found = [(0, 1), (1, 1 if s.detail == "+" else -1)]
            elif s.detail == "*":
                found = [(0, b), (1, a)]
            elif s.detail == "/":
                if self.is_active(a):
                    found.append((0, emit("binary", (Const(1.0), b), "/")))
                if self.is_active(b):
                    ratio = emit("binary", (z, b), "/")
                    found.append((1, emit("unary", (ratio,), "-")))
            elif s.detail == "**":
                found = self.power(s, (a, b), out)
            elif s.detail in scalars.OPERATORS:
                return self.by_row(s, scalars.OPERATORS[s.detail], (a, b), 0, out)
            elif s.detail != "//":
                raise self.refuse(f"`{s.detail}`", line)
            return [(k, slope) for k, slope in found if self.is_active(s.args[k])]
        if s.op == "call":
            f = getattr(s.args[0], "value", None)
            if f in (float, complex, np.float64, np.complex128, np.float32, np.complex64):
                return [(1, 1)] if len(s.args) == 2 else [(1, 1), (2, Const(1j))]
            if f in (int, round, np.int64):
                return []
            if f in (min, max):
                return self.extremum(s, f, out)
            if f in POWERS:
                return [
                    (k + 1, slope)
                    for k, slope in self.power(s, s.args[1:3], out)
                    if self.is_active(s.args[k + 1])
                ]
            return self.by_row(s, f, s.args[1:], 1, out)
        if s.op == "method" and s.detail[0] == "conjugate":
            raise self.refuse("`.conjugate()`", line)
        raise self.refuse(f"`{s.detail or s.op}`", line)

    def power(self, s: Let, args: tuple[Operand, ...], out: list[Stmt]) -> list[tuple[int, Any]]:
        """The slopes of x**y."""
        x, y = args
        whole = is_array(self.types.get(s.target))
        found: list[tuple[int, Any]] = []
        if self.is_active(x):
            f = helpers.power_slopes if whole else helpers.power_slope
            found.append((0, self.emit(out, "call", (Ref(f, "power_slope"), x, y), (), s.line)))
        if self.is_active(y):
            f = helpers.exponent_slopes if whole else helpers.exponent_slope
            args = (Ref(f, "exponent_slope"), x, y, Var(s.target))
            found.append((1, self.emit(out, "call", args, (), s.line)))
        for _, slope in found:
            if any(isinstance(self.type_of(a), types.Complex) for a in (x, y)):
                self.types[slope.name] = types.complex128
        return found

    def by_row(self, s: Let, f: Any, args: Any, shift: int, out: list[Stmt]) -> list[tuple[int, Any]]:
        """The slopes that a row of the rulebook tells."""
        row = scalars.row_of(f)
        if scalars.is_constant(f, [self.type_of(a) for a in args]):
            return []
        if row is None:
            rule = rulebook.find(f)
            if rule is not None and rule.kind == "no_tangent":
                return []  # steps: floor, sign, ...
            raise self.refuse(f"`{getattr(f, '__name__', f)}`", s.line)
        module = scalars.module_of(f, [self.type_of(a) for a in args])
        found: list[tuple[int, Any]] = []
        for k, a in enumerate(args):
            partial = row[k] if k < len(row) else None
            if partial is None or not self.is_active(a):
                continue
            if not callable(partial):
                found.append((k + shift, partial if partial in (1, -1) else Const(partial)))
                continue
            read = scalars.reads(partial)
            values: list[Operand] = [Ref(module, module.__name__)]
            names = (*args, Var(s.target))
            values += [x if n + 1 in read else self.placeholder(x) for n, x in enumerate(names)]
            slope = self.emit(
                out, "call", (Ref(scalars.compiled_partial(partial), "slope"), *values), (), s.line
            )
            if any(isinstance(self.type_of(x), types.Complex) for x in names):
                self.types[slope.name] = types.complex128
            found.append((k + shift, slope))
        return found

    def placeholder(self, x: Operand) -> Operand:
        """Any value of the type of `x`, where a partial does not look at it."""
        t = self.type_of(x)
        return (
            Const(1j)
            if isinstance(t, types.Complex)
            else Const(1.0)
            if isinstance(t, types.Float)
            else Const(1)
        )

    def extremum(self, s: Let, f: Any, out: list[Stmt]) -> list[tuple[int, Any]]:
        """min and max of numbers: the slope is 1 for the one that was taken, the first of equals."""
        found = []
        taken: Operand = Const(False)
        for k, a in enumerate(s.args[1:], 1):
            same = self.emit(out, "compare", (a, Var(s.target)), "==", s.line)
            free = self.emit(out, "unary", (taken,), "not", s.line)
            mine = self.emit(out, "binary", (same, free), "&", s.line)
            taken = self.emit(out, "binary", (taken, mine), "|", s.line)
            if self.is_active(a):
                found.append((k, self.emit(out, "binary", (Const(1.0), mine), "*", s.line)))
        return found

    def result_leaves(self, name: str) -> list[str]:
        """The parts of a result."""
        t = self.types.get(name)
        if isinstance(t, types.BaseTuple) and has_tangent(t):
            return [leaf for k in range(len(t)) for leaf in self.result_leaves(f"{name}_p{k}")]
        return [name]

    def argument_type(self, a: Operand) -> Any:
        """The Numba type of an argument."""
        if isinstance(a, Var):
            t = self.types[a.name]
            return types.unliteral(t)
        import numba

        return types.unliteral(numba.typeof(a.value))

    def checked_overlap(self, s: InPlace, out: list[Stmt]) -> None:
        """A check, if array and value of array op= value may overlap, that they do not."""
        array, value = s.array, s.value
        if (
            isinstance(array, Var)
            and isinstance(value, Var)
            and array != value
            and isinstance(self.types.get(value.name), types.Array)
            and self.memory.of(value.name) == self.memory.of(array.name)
        ):
            check = (Ref(helpers.check_disjoint, "check_disjoint"), array, value)
            out.append(Do(Let("_", "call", check, (), s.line), s.line))

    def callee_of(self, s: Let) -> tuple[Any, tuple[Operand, ...], list[int]]:
        """(function, arguments, positions of the active ones) of a call of a function that is derived."""
        f = s.args[0].value  # type: ignore[union-attr]
        try:
            args = bound_operands(f, s.args[1:], s.detail or ())
        except TypeError:
            raise self.refuse("a call with keyword-only arguments", s.line) from None
        for a in args:
            if isinstance(self.type_of(a), types.BaseTuple) and has_tangent(self.type_of(a)):
                raise self.refuse("a tuple with derivatives, given to a function", s.line)
        t = self.types.get(s.target)
        if is_array(t) or (isinstance(t, types.BaseTuple) and any(map(is_array, t))):
            raise self.refuse("a call of a function that returns an array", s.line)
        effects = effects_of(f, tuple(self.argument_type(a) for a in args))
        owners = [
            self.memory.of(a.name)
            for a in args
            if isinstance(a, Var) and isinstance(self.types.get(a.name), types.Array)
        ]
        if effects.writes and len(set(owners)) < len(owners):
            raise self.refuse("an array given twice to a function that writes into its arguments", s.line)
        return f, args, [k for k, a in enumerate(args) if self.is_active(a)]


class _Reverse(Transform):
    """The reverse transform of one program."""

    # -- the whole -------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The derivative program."""
        main = self.body(self.exploded.body)
        scalars_in = [name for name in self.inputs if is_real(self.types[name])]
        arrays_in = [name for name in self.inputs if is_array(self.types[name])]
        bars = sorted(name for name in self.active if is_real(self.types[name]))
        shadows = {leaf: f"{leaf}_b" for leaf in arrays_in}
        for leaves in self.leaves.values():
            for leaf in leaves:
                if leaf in self.active and leaf not in shadows and is_array(self.types[leaf]):
                    main.forward.insert(0, self.zeros(leaf))
        zero: list[Stmt] = [Let(f"{name}_b", "copy", (self.zero(self.types[name]),)) for name in bars]
        seeds: list[Stmt] = []
        seed_names = []
        for name in self.outputs:
            seed = f"{name}_seed"
            seed_names.append(seed)
            if name not in self.active:
                continue
            if is_real(self.types[name]):
                seeds.append(Let(f"{name}_b", "copy", (Var(seed),)))
            else:
                seeds.append(Do(Let("_", "call", (Ref(add_to, "add_to"), Var(f"{name}_b"), Var(seed)), ())))
        zeros = [Var(f"{name}_b") if name in self.active else Const(0.0) for name in scalars_in]
        returned = [*[Var(name) for name in self.results], *zeros]
        body = [
            *self.setup,
            *self.initial.values(),
            *main.forward,
            *zero,
            *seeds,
            *main.backward,
            Let("result", "tuple", tuple(returned)),
        ]
        params = [*self.source.params, *seed_names, *[shadows[name] for name in arrays_in]]
        return Program(f"{self.source.name}_pullback", self.source.file, params, body)

    # -- statements ------------------------------------------------------------------------------------------------

    def body(self, body: list[Stmt]) -> Parts:
        """A run of statements."""
        out = Parts()
        pieces = [self.statement(s) for s in body]
        for piece in pieces:
            out.forward += piece.forward
        for piece in reversed(pieces):
            out.backward += piece.backward
        return out

    def statement(self, s: Stmt) -> Parts:
        """One statement."""
        if isinstance(s, Let):
            return self.let(s)
        if isinstance(s, Store):
            return self.store(s)
        if isinstance(s, InPlace):
            return self.in_place(s)
        if isinstance(s, If):
            then, orelse = self.body(s.then), self.body(s.orelse)
            backward: list[Stmt] = []
            if then.backward or orelse.backward:
                backward = [If(s.test, then.backward, orelse.backward, s.line)]
            return Parts([If(s.test, then.forward, orelse.forward, s.line)], backward)
        if isinstance(s, (For, Loop)):
            return self.loop(s)
        if isinstance(s, Do):
            return self.call_for_effect(s)
        return Parts([s])

    def add(self, out: list[Stmt], x: Operand, term: Operand, line: int) -> None:
        """x_bar += term."""
        assert isinstance(x, Var)
        t = self.types[x.name]
        bar = Var(f"{x.name}_b")
        if is_array(t):
            out.append(Do(Let("_", "call", (Ref(add_to, "add_to"), bar, term), (), line), line))
            return
        if not isinstance(t, types.Complex):
            term = self.real(out, term, line)
        out.append(Let(bar.name, "binary", (bar, term), "+", line))

    def real(self, out: list[Stmt], term: Operand, line: int) -> Operand:
        """The real part of a cotangent that may be complex."""
        if isinstance(term, Var) and isinstance(self.types.get(term.name), types.Complex):
            return self.emit(out, "attribute", (term,), "real", line)
        return term

    def let(self, s: Let) -> Parts:
        """An assignment."""
        t = self.types.get(s.target)
        users = s.op == "call" and is_users(getattr(s.args[0], "value", None))
        if s.target not in self.active:
            if any(self.is_active(Var(name)) for name in self.memory.outputs(s)):
                return self.call(s) if users else arrays.writes(self, s)
            return Parts([s])
        if s.op == "item" and isinstance(self.type_of(s.args[0]), types.BaseTuple):
            return Parts([s])  # a leaf of a tuple parameter
        if isinstance(t, types.BaseTuple):
            if s.op in ("copy", "tuple"):
                return Parts([s])  # its parts are active, not the tuple
            return self.call(s) if users else arrays.reverse(self, s)
        if is_array(t):
            return self.array(s)
        z = Var(f"{s.target}_b")
        back: list[Stmt] = []
        forward: list[Stmt] = [s]
        if s.op == "item" and self.is_array_item(s):
            if self.is_active(s.args[0]):
                assert isinstance(s.args[0], Var)
                place = Var(f"{s.args[0].name}_b")
                now = self.emit(back, "item", (place, s.args[1]), None, s.line)
                total = self.emit(back, "binary", (now, z), "+", s.line)
                back.append(Store(place, s.args[1], total, s.line))
        elif users:
            return self.call(s)
        elif self.is_of_arrays(s):
            return arrays.reverse(self, s)
        elif s.op == "attribute":
            self.complex_part(s, z, back)
        else:
            self.scalar(s, z, back)
        back.append(Let(z.name, "copy", (self.zero(t),), None, s.line))
        return Parts(forward, back)

    def is_of_arrays(self, s: Let) -> bool:
        """Whether `s` makes a number out of whole arrays."""
        return (s.op == "binary" and s.detail == "@") or (
            s.op in ("call", "method", "attribute") and any(is_array(self.type_of(a)) for a in s.args)
        )

    def is_array_item(self, s: Let) -> bool:
        """Whether `s` reads one number out of an array."""
        return isinstance(self.type_of(s.args[0]), types.Array)

    def complex_part(self, s: Let, z: Var, back: list[Stmt]) -> None:
        """z = x.real or x.imag of a number."""
        x = s.args[0]
        if s.detail == "real" or not isinstance(self.type_of(x), types.Complex):
            if s.detail == "real":
                self.add(back, x, z, s.line)
            return
        self.add(back, x, self.emit(back, "binary", (Const(1j), z), "*", s.line), s.line)

    def scalar(self, s: Let, z: Var, back: list[Stmt]) -> None:
        """x_bar += z_bar * conj(dz/dx) for every active operand."""
        for position, slope in self.slopes(s, back):
            x = s.args[position]
            if not self.is_active(x):
                continue
            self.add(back, x, self.times(back, z, slope, s.line), s.line)

    def times(self, back: list[Stmt], z: Operand, slope: Any, line: int) -> Operand:
        """z * conj(slope); `slope` is an operand, or 1 or -1."""
        if slope == 1:
            return z
        if slope == -1:
            return self.emit(back, "unary", (z,), "-", line)
        if self.is_complex(slope):
            slope = self.emit(back, "method", (slope,), ("conjugate", ()), line)
        product = self.emit(back, "binary", (z, slope), "*", line)
        if self.is_complex(z) or self.is_complex(slope):
            self.types[product.name] = types.complex128
        return product

    # -- arrays ----------------------------------------------------------------------------------------------------

    def array(self, s: Let) -> Parts:
        """An assignment of an array: a view, another name, or new memory."""
        sources = [a for a in s.args if isinstance(a, Var) and a.name in self.memory.sources(s)]
        if s.op == "call" and is_users(getattr(s.args[0], "value", None)):
            return self.call(s)
        if s.op == "copy":
            return Parts([s, Let(f"{s.target}_b", "copy", (Var(f"{s.args[0].name}_b"),), None, s.line)])  # type: ignore[union-attr]
        if sources and not arrays.is_copy(self, s):
            args = tuple(Var(f"{a.name}_b") if a is sources[0] else a for a in s.args)
            return Parts([s, Let(f"{s.target}_b", s.op, args, s.detail, s.line)])
        return arrays.reverse(self, s)

    def kept(self, x: Operand, forward: list[Stmt], line: int) -> Operand:
        """An array as it is now, for the way back: itself if it is never written, else a copy made before the use."""
        if not isinstance(x, Var) or not isinstance(self.types.get(x.name), types.Array):
            return x
        if not self.memory.is_written(x.name):
            return x
        name = self.fresh(f"{x.name}_kept")
        self.types[name] = self.types[x.name].copy(layout="C")
        forward.append(Let(name, "method", (x,), ("copy", ()), line))
        return Var(name)

    def store(self, s: Store) -> Parts:
        """array[index] = value: the cotangent of what was overwritten ends, that of the value begins."""
        if not self.is_active(s.array):
            return Parts([s])
        assert isinstance(s.array, Var)
        bar = Var(f"{s.array.name}_b")
        back: list[Stmt] = []
        if arrays.is_fancy(self, s.index):
            return arrays.store(self, s)
        value_type = self.type_of(s.value)
        if not self.is_active(s.value):
            back.append(Store(bar, s.index, Const(0.0), s.line))
            return Parts([s], back)
        assert isinstance(s.value, Var)
        arriving = self.emit(back, "item", (bar, s.index), None, s.line)
        if is_array(value_type):
            if self.memory.of(s.value.name) == self.memory.of(s.array.name):  # perhaps the very same elements
                arriving = self.emit(back, "method", (arriving,), ("copy", ()), s.line)
                back.append(Store(bar, s.index, Const(0.0), s.line))
                self.add(back, s.value, arriving, s.line)
                return Parts([s], back)
        elif self.is_slice(s):
            arriving = self.emit(back, "call", (Ref(np.sum, "sum_of"), arriving), (), s.line)
        if isinstance(self.types[s.array.name].dtype, types.Complex):
            self.types[arriving.name] = types.complex128
        self.add(back, s.value, arriving, s.line)
        back.append(Store(bar, s.index, Const(0.0), s.line))
        return Parts([s], back)

    def is_slice(self, s: Store) -> bool:
        """Whether the index names several elements."""
        t = self.type_of(s.index)
        array = self.types[s.array.name]  # type: ignore[union-attr]
        parts = list(t) if isinstance(t, types.BaseTuple) else [t]
        if any(isinstance(part, types.SliceType) or part is types.ellipsis for part in parts):
            return True
        return len(parts) < array.ndim

    def in_place(self, s: InPlace) -> Parts:
        """array op= value."""
        if not self.is_active(s.array):
            return Parts([s])
        assert isinstance(s.array, Var)
        bar = Var(f"{s.array.name}_b")
        back: list[Stmt] = []
        forward: list[Stmt] = []
        line = s.line
        varies = self.is_active(s.value)

        def arrive(term: Operand) -> None:
            if not is_array(self.type_of(s.value)):
                term = self.emit(back, "call", (Ref(np.sum, "sum_of"), term), (), line)
            self.add(back, s.value, term, line)

        self.checked_overlap(s, forward)
        is_complex = isinstance(self.types[s.array.name].dtype, types.Complex)

        def conjugate(x: Operand) -> Operand:
            return self.emit(back, "call", (Ref(np.conj, "conj"), x), (), line) if is_complex else x

        if s.op in "+-":
            if varies:
                arrive(bar if s.op == "+" else self.emit(back, "unary", (bar,), "-", line))
            return Parts([*forward, s], back)
        if s.op not in "*/":
            raise self.refuse(f"`{s.op}=`", line)
        value = self.kept(s.value, forward, line)
        term = None
        if varies:
            old = self.kept(s.array, forward, line)
            slope = old
            if s.op == "/":
                square = self.emit(back, "binary", (value, value), "*", line)
                minus = self.emit(back, "unary", (old,), "-", line)
                slope = self.emit(back, "binary", (minus, square), "/", line)
            term = self.emit(back, "binary", (bar, conjugate(slope)), "*", line)
        back.append(InPlace(bar, s.op, conjugate(value), line))
        if term is not None:  # behind the line above: `value` may be `array` itself
            arrive(term)
        return Parts([*forward, s], back)

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, s: Let) -> Parts:
        """A call of a function whose pullback is derived: it is run again on the way back, with its cotangents."""
        f, args, active = self.callee_of(s)
        once = effects_of(f, tuple(self.argument_type(a) for a in args)).once
        if once:  # it is run again on the way back
            raise self.refuse(f"a call of `{f.__name__}`, which {once},", s.line)
        forward: list[Stmt] = []
        back: list[Stmt] = []
        signature = tuple(self.argument_type(a) for a in args)
        pullback = self.callee(f, signature, tuple(active))
        held = [self.kept(a, forward, s.line) for a in args]
        again: list[Operand] = []
        for a, h in zip(
            args, held, strict=True
        ):  # a callee that writes its arguments must not write what is kept
            again.append(self.emit(back, "method", (h,), ("copy", ()), s.line) if h is not a else h)
        leaves = self.result_leaves(s.target)
        seeds: list[Operand] = [
            Var(f"{leaf}_b") if leaf in self.active else self.zero(self.types[leaf])
            for leaf in leaves
            if is_real(self.types.get(leaf))
        ]
        shadows = [Var(f"{args[k].name}_b") for k in active if is_array(self.type_of(args[k]))]  # type: ignore[union-attr]
        out = self.emit(
            back, "call", (Ref(pullback, f"{f.__name__}_pullback"), *again, *seeds, *shadows), (), s.line
        )
        place = len(leaves)
        for k in active:
            if is_real(self.type_of(args[k])):
                part = self.emit(back, "item", (out, Const(place)), None, s.line)
                self.types[part.name] = self.type_of(args[k])
                self.add(back, args[k], part, s.line)
                place += 1
        for leaf in leaves:
            if leaf in self.active and is_real(self.types.get(leaf)):
                back.append(Let(f"{leaf}_b", "copy", (self.zero(self.types[leaf]),), None, s.line))
        return Parts([*forward, s], back)

    def call_for_effect(self, s: Do) -> Parts:
        """A call whose result is not used: it may still write arrays."""
        if any(self.is_active(Var(name)) for name in self.memory.outputs(s.call)):
            self.types.setdefault(s.call.target, types.none)
            return self.call(s.call)
        return Parts([s])

    # -- loops -----------------------------------------------------------------------------------------------------

    def loop(self, s: For | Loop) -> Parts:
        """A loop: in a special form, or forward with tapes, backward iteration by iteration."""
        for form in loop_forms.FORMS:
            parts = form(self, s)
            if parts is not None:
                return parts  # type: ignore[no-any-return]
        inner = self.body(s.body)
        if not inner.backward:
            return Parts([_with_body(s, inner.forward)])
        line = s.line
        self.count += 1
        mark = self.count
        sp, at = f"sp_{mark}", f"at_{mark}"
        self.setup.append(Let(sp, "copy", (Const(0),)))
        top, body, restored = self.tapes(s, inner, mark, at)
        counts = isinstance(s, Loop) or breaks(s.body)
        n = f"n_{mark}"
        self.types[n] = self.types[sp] = types.int64
        forward: list[Stmt] = []
        count: list[Stmt] = [Let(n, "binary", (Var(n), Const(1)), "+", line)] if counts else []
        if counts:
            forward.append(Let(n, "copy", (Const(0),), None, line))
            room = [
                s_ for name in self.tape_names(mark) for s_ in self.reserve(name, Var(sp), Const(1), line)
            ]
        else:
            assert isinstance(s, For)
            forward.append(Let(n, "call", (Ref(trips, "trips"), s.start, s.stop, s.step), (), line))
            room = []
            for name in self.tape_names(mark):
                forward += self.reserve(name, Var(sp), Var(n), line)
        step = [
            *room,
            Let(at, "copy", (Var(sp),), None, line),
            Let(sp, "binary", (Var(at), Const(1)), "+", line),
            *count,
            *top,
        ]
        forward.append(_with_body(s, [*step, *body]))
        back: list[Stmt] = [
            Let(sp, "binary", (Var(sp), Const(1)), "-", line),
            Let(at, "copy", (Var(sp),), None, line),
        ]
        r = f"r_{mark}"
        if isinstance(s, For):
            left = f"left_{mark}"
            back += [
                Let(f"{left}_a", "binary", (Var(n), Const(1)), "-", line),
                Let(left, "binary", (Var(f"{left}_a"), Var(r)), "-", line),
                Let(f"{left}_b", "binary", (Var(left), s.step), "*", line),
                Let(s.target, "binary", (s.start, Var(f"{left}_b")), "+", line),
            ]
        back += [*restored, *inner.backward]
        return Parts(forward, [For(r, Const(0), Var(n), Const(1), back, line)])

    def reserve(self, tape: str, sp: Operand, n: Operand, line: int) -> list[Stmt]:
        """Room on a tape for `n` more entries."""
        size = self.fresh("size")
        return [
            Let(size, "binary", (sp, n), "+", line),
            Let(tape, "call", (Ref(grown, "grown"), Var(tape), Var(size)), (), line),
        ]

    def tape_names(self, mark: int) -> list[str]:
        """The tapes of numbers that loop `mark` has."""
        return [
            s.target
            for s in self.setup
            if isinstance(s, Let) and s.target.endswith(f"_tape{mark}") and s.op == "call"
        ]

    def tapes(self, s: For | Loop, inner: Parts, mark: int, at: str) -> Any:
        """(statements at the top of an iteration, statements by the child they follow, statements that restore)."""
        forward = inner.forward
        assigned = {x.target for x in statements(forward) if isinstance(x, (Let, For))}
        local: dict[str, int] = {}
        definitions: dict[str, Let] = {}
        for x in statements(forward):
            if isinstance(x, Let):
                local[x.target] = local.get(x.target, 0) + 1
                definitions[x.target] = x
        outside = self.assigned_outside(s, assigned)
        machinery = {
            x.target for x in self.setup if isinstance(x, Let)
        }  # tapes and their pointers live throughout
        needed = [name for name in free_reads(inner.backward, machinery) if name in assigned]
        saved: list[str] = []
        redone: list[str] = []
        seen = set()
        while needed:
            name = needed.pop()
            if name in seen or (isinstance(s, For) and name == s.target):
                continue
            seen.add(name)
            d = definitions.get(name)
            if d is not None and local[name] == 1 and name not in outside and self.is_recomputable(d):
                redone.append(name)
                needed += [a.name for a in operands(d) if isinstance(a, Var) and a.name in assigned]
            else:
                saved.append(name)
        top: list[Stmt] = []
        restored: list[Stmt] = []
        for name in sorted(saved):
            keep, back = self.on_tape(name, f"{name}_tape{mark}", at)
            if name in outside and self.is_read_before(name, forward):
                top += keep
            else:
                forward = kept_behind(forward, name, keep)
            restored += back
        order = {x.target: k for k, x in enumerate(x for x in statements(forward) if isinstance(x, Let))}
        for name in sorted(redone, key=order.__getitem__):
            restored.append(definitions[name])
        return top, forward, restored

    def assigned_outside(self, s: For | Loop, assigned: set[str]) -> set[str]:
        """Of the variables that a loop assigns, those that hold a value before it."""
        inside: dict[str, int] = {}
        for x in statements(s.body):
            if isinstance(x, (Let, For)):
                inside[x.target] = inside.get(x.target, 0) + 1
        found = {name for name in inside if self.assigned.get(name, 0) > inside[name]}
        found |= {f"{name}_b" for name in found if isinstance(self.types.get(name), types.Array)}
        return found & assigned

    def is_read_before(self, name: str, body: list[Stmt]) -> bool:
        """Whether an iteration starts from the value that a variable had at the end of the one before."""
        base = name[:-2] if name.endswith("_b") and name not in self.types else name
        t = self.types.get(base)
        for child in body:
            if name in reads_of([child]) or (t is not None and base in reads_of([child])):
                return True
            if isinstance(child, Let) and child.target == name:
                return False
        return True

    def is_recomputable(self, s: Let) -> bool:
        """Whether a value is recomputed on the way back rather than kept."""
        t = self.types.get(s.target)
        if isinstance(t, types.Array) or s.target.endswith("_b"):
            source = s.args[0] if s.args else None
            return (
                s.op == "item"
                and isinstance(source, Var)
                and not isinstance(self.type_of(s.args[1]), types.Array)
            )
        if s.op in CHEAP or s.op == "unary":
            return True
        if s.op == "binary":
            return s.detail != "**" and s.detail != "@"
        if s.op == "compare":
            return not any(is_real(self.type_of(a)) for a in s.args)
        if s.op == "item":
            source = s.args[0]
            if not isinstance(source, Var):
                return True
            if isinstance(self.types.get(source.name), types.BaseTuple):
                made = self.definitions.get(source.name)
                return source.name in self.source.params or made is not None and self.is_recomputable(made)
            return not self.memory.is_written(source.name)
        return s.op == "call" and getattr(s.args[0], "value", None) in (len, float, int, trips)

    def on_tape(self, name: str, tape: str, at: str) -> tuple[list[Stmt], list[Stmt]]:
        """(statements that keep a variable's value, statements that bring it back)."""
        base = name[:-2] if name.endswith("_b") and name not in self.types else name
        t = self.types.get(base)
        if isinstance(t, types.BaseTuple):
            keep, back, parts = [], [], []
            for k, part_type in enumerate(t):
                part = self.fresh(f"{name}_at")
                self.types[part] = part_type
                kept, restored = self.on_tape(part, f"{part}_{tape}", at)
                keep += [Let(part, "item", (Var(name), Const(k))), *kept]
                back += restored
                parts.append(Var(part))
            return keep, [*back, Let(name, "tuple", tuple(parts))]
        if isinstance(t, types.Array):
            items = tuple([Const(0)] * t.ndim)
            empty = self.fresh("none")
            shape = self.fresh("shape")
            self.setup += [
                Let(shape, "tuple", items),
                Let(
                    empty,
                    "call",
                    (Ref(np.empty, "empty"), Var(shape), Ref(dtype_of(t.dtype), dtype_name(t.dtype))),
                    (),
                ),
            ]
            first: Operand = Var(empty)
            layout = t.layout if name == base else "C"
            if layout == "A":
                first = Var(self.fresh("view"))
                self.setup.append(Let(first.name, "item", (Var(empty), Const(Ellipsis)), None))
            self.setup.append(Let(tape, "list", (first,)))
            keep: list[Stmt] = [
                Do(
                    Let(
                        "_",
                        "call",
                        (Ref(helpers.keep_array, "keep_array"), Var(tape), Var(at), Var(name)),
                        (),
                    )
                )
            ]
            back: list[Stmt] = [
                Let(name, "call", (Ref(helpers.kept_array, "kept_array"), Var(tape), Var(at)), ())
            ]
            return keep, back
        assert t is not None, (name, base, self.definitions.get(name))
        dtype = dtype_of(t)
        if name not in self.source.params and t in ZEROS:  # another type would change that of the variable
            self.initial[name] = Let(name, "copy", (Const(ZEROS[t]),))
        self.setup.append(
            Let(tape, "call", (Ref(np.empty, "empty"), Const(0), Ref(dtype, dtype_name(t))), ())
        )
        return [Store(Var(tape), Var(at), Var(name))], [Let(name, "item", (Var(tape), Var(at)))]


@functools.lru_cache(None)
def dtype_of(t: Any) -> Any:
    """The NumPy scalar type for a Numba type."""
    from numba.np.numpy_support import as_dtype

    if isinstance(t, types.Boolean):
        return np.bool_
    return as_dtype(types.unliteral(t)).type


def dtype_name(t: Any) -> str:
    """A name for it in generated source."""
    return dtype_of(t).__name__


def reads_of(body: list[Stmt]) -> set[str]:
    """The variables that statements read, at any depth."""
    return {a.name for s in statements(body) for a in operands(s) if isinstance(a, Var)}


def free_reads(body: list[Stmt], bound: set[str]) -> set[str]:
    """The variables that statements read and do not give a value first."""
    found: set[str] = set()
    bound = set(bound)
    for s in body:
        found |= {a.name for a in operands(s) if isinstance(a, Var) and a.name not in bound}
        if isinstance(s, Let):
            bound.add(s.target)
        elif isinstance(s, If):
            found |= free_reads(s.then, bound) | free_reads(s.orelse, bound)
        elif isinstance(s, For):
            found |= free_reads(s.body, bound | {s.target})
        elif isinstance(s, Loop):
            found |= free_reads(s.body, bound)
    return found


def assigns(s: Stmt, name: str) -> bool:
    """Whether a statement, or one inside it, assigns `name`."""
    return any(isinstance(x, (Let, For)) and x.target == name for x in statements([s]))


def _with_body(s: For | Loop, body: list[Stmt]) -> Stmt:
    if isinstance(s, For):
        return For(s.target, s.start, s.stop, s.step, body, s.line)
    return Loop(body, s.line)


def kept_behind(body: list[Stmt], name: str, keep: list[Stmt]) -> list[Stmt]:
    """`body` with `keep` done as soon as `name` has its value for the iteration: in the smallest list of statements
    that holds all of its assignments, behind the last; in front of a jump out of the loop."""
    places = [k for k, s in enumerate(body) if assigns(s, name)]
    last = places[-1]
    s = body[last]
    if isinstance(s, If):
        inside = [arm for arm in (s.then, s.orelse) if any(assigns(x, name) for x in arm)]
        if len(places) == 1 and len(inside) == 1:
            then = kept_behind(s.then, name, keep) if inside[0] is s.then else s.then
            orelse = kept_behind(s.orelse, name, keep) if inside[0] is s.orelse else s.orelse
            return [*body[:last], If(s.test, then, orelse, s.line), *body[last + 1 :]]
        if breaks([s]) or _raises([s]):  # it is assigned on several ways, of which some leave
            then = kept_behind(s.then, name, keep) if any(assigns(x, name) for x in s.then) else s.then
            orelse = (
                kept_behind(s.orelse, name, keep) if any(assigns(x, name) for x in s.orelse) else s.orelse
            )
            return [*body[:last], If(s.test, then, orelse, s.line), *body[last + 1 :]]
    return [*body[: last + 1], *keep, *body[last + 1 :]]


def _raises(body: list[Stmt]) -> bool:
    return any(isinstance(s, Raise) for s in statements(body))
