"""Forward mode: from a program to one that computes the tangent of every active variable beside the variable.

The program made has the parameters of the given one, then a tangent for each differentiated parameter (an array for an
array). It returns the results, then their tangents. Control flow stays as it is: pairs of variables, no pair objects.

In chunks every tangent is n tangents at once, the lanes of a vector (`forward/chunks.py`); the statements are the
same. A program of columns is given no tangents but the number of the first direction, and sets up n unit directions,
counted through all elements of the differentiated parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numba.core import types

from plaingrad.native.analysis import array_lists, helper_calls
from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.forward import chunk_arrays, chunk_rows, complex_chunks, second_order
from plaingrad.native.forward import chunks as lanes
from plaingrad.native.forward.array_statements import ArrayStatements
from plaingrad.native.modes.transform import called
from plaingrad.native.program.ir import (
    RESULT,
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Program,
    Ref,
    Stmt,
    Store,
    Var,
    operands,
    statements,
)
from plaingrad.native.program.value_types import has_complex, has_tangent, is_array, is_real
from plaingrad.native.rules import arrays, arrays_forward, scalars


def pushforward_program(program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """The program that returns the results of `program` and their tangents.

    Args:
        program: what is differentiated.
        wanted: the parameters to differentiate.
        callee: `callee(f, argument types, positions)` is the compiled pushforward of another function.
    """
    return Forward(program, wanted, callee).program()


def tangents_program(program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """`pushforward_program`, to be differentiated again: a tangent that is 0 may have a derivative."""
    return Forward(program, wanted, callee, is_again=True).program()


def chunk_program(n: int, program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """`pushforward_program` for n tangents at once: lanes for a number, an array of lanes for an array."""
    return Forward(program, wanted, callee, n).program()


def columns_program(n: int, program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """The program that returns the results of `program`, and n columns of their Jacobian, from a given one on.

    Its last parameter is the number of the first column. The columns of a number are n lanes, those of an array an
    array of floats with one axis more.
    """
    return Forward(program, wanted, callee, n).columns()


def gradient_program(n: int, program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """`columns_program` for a caller that takes reverse mode where an infinite slope meets a zero: faster."""
    made = Forward(program, wanted, callee, n)
    made.still = set()
    return replace(made.columns(), name=f"{program.name}_gradient{n}")


def jacobian_program(n: int, program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """The program that returns the result of `program` and writes its Jacobian into its last parameter, a matrix.

    A row for each number of the results, a column for each of the differentiated parameters; n columns a sweep.
    """
    return Forward(program, wanted, callee, n).jacobian()


class Forward(ArrayStatements):
    """The forward transform of one program.

    Attributes:
        n: how many tangents there are at once; 0 for one, without lanes.
        lane: the number of the lane that an array rule is being applied to, None outside of those.
        lane_out: where the statements go meanwhile.
        is_again: whether the program made is differentiated again.
        still: the numbers that are constant on some way through the program.
        units: input arrays that are only read, at constant places -> the column of their first element. Their
            tangents are unit vectors, made where they are read.
    """

    def program(self) -> Program:
        """The derivative program."""
        out = self.pushed([])
        out += [self.nothing(name) for name in self.outputs if self.n and name not in self.active]
        dots = [Var(f"{name}_d") if name in self.active or self.n else Const(0.0) for name in self.outputs]
        out.append(Let(RESULT, "tuple", (*map(Var, self.results), *dots)))
        params = [*self.source.params, *[f"{name}_d" for name in self.inputs]]
        suffix = str(self.n) if self.n else ""
        return Program(f"{self.source.name}_pushforward{suffix}", self.source.file, params, out)

    def columns(self) -> Program:
        """The program of columns."""
        first = self.fresh("first")
        out = self.pushed(self.seeds(Var(first)))
        dots: list[Operand] = []
        for name in self.outputs:
            if name not in self.active:
                out.append(self.nothing(name))
            dots.append(arrays.call(self, out, lanes.floats_of, Var(f"{name}_d"), Var(name), line=0))
        out.append(Let(RESULT, "tuple", (*map(Var, self.results), *dots)))
        name = f"{self.source.name}_columns{self.n}"
        return Program(name, self.source.file, [*self.source.params, first], out)

    def jacobian(self) -> Program:
        """The program that writes a Jacobian."""
        first, out = self.fresh("first"), self.fresh("out")
        body = self.pushed(self.seeds(Var(first)))
        row: Operand = Const(0)
        for name in self.outputs:
            if name not in self.active:
                body.append(self.nothing(name))
            place = (Var(out), row, Var(first), Var(f"{name}_d"))
            row = arrays.call(self, body, chunk_rows.put, *place, line=0)
        rows = Let("_", "call", (Ref(chunk_rows.check_rows, "check_rows"), Var(out), row), ())
        body.append(Do(rows))
        unpacked = self.unpacked(body)
        size: list[Stmt] = []
        for name in [x for x in (*self.source.params, *sorted(self.inner)) if is_array(self.types.get(x))]:
            apart = Let("_", "call", (Ref(chunk_rows.check_apart, "check_apart"), Var(out), Var(name)), ())
            size.append(Do(apart))
        count: Operand = Const(0)
        for name in self.inputs:
            own = (
                self.emit(size, "attribute", (Var(name),), "size", 0)
                if is_array(self.types[name])
                else Const(1)
            )
            count = self.emit(size, "binary", (count, own), "+", 0)
        check = Let("_", "call", (Ref(chunk_rows.check_columns, "check_columns"), Var(out), count), ())
        whole = [
            *body[:unpacked],
            *size,
            Do(check),
            For(first, Const(0), count, Const(self.n), body[unpacked:]),
        ]
        if isinstance(self.source.result, types.BaseTuple) and has_tangent(self.source.result):
            self.gather(RESULT, self.source.result, whole)
        else:
            whole.append(Let(RESULT, "copy", (Var(RESULT),)))
        name = f"{self.source.name}_jacobian{self.n}"
        return Program(name, self.source.file, [*self.source.params, out], whole)

    def seeds(self, first: Operand) -> list[Stmt]:
        """The unit tangents of the inputs, from column `first` on."""
        seeds: list[Stmt] = []
        lost = [name for name in self.inputs if has_complex(self.types[name])]
        if lost:
            raise self.refuse(f"a chunk of unit tangents of the complex `{lost[0]}`", 0)
        column: Operand = self.emit(seeds, "unary", (first,), "-", 0)
        for name in self.inputs:
            size: Operand = Const(1)
            unit: tuple[Operand, ...] = (Ref(lanes.unit_lanes, "unit_lanes"),)
            if is_array(self.types[name]):
                size = self.emit(seeds, "attribute", (Var(name),), "size", 0)
                unit = (Ref(lanes.unit_lanes_like, "unit_lanes_like"), Var(name))
            same = self.only_read(name) if is_array(self.types[name]) else None
            if same is not None:
                self.units.update(dict.fromkeys(same, column))
            elif name in self.active:
                seeds.append(Let(f"{name}_d", "call", (*unit, column, Const(self.n)), ()))
            column = self.emit(seeds, "binary", (column, size), "+", 0)
        return seeds

    def only_read(self, array: str) -> set[str] | None:
        """The names of an array, if all that is done with it is to read elements at constant places; else None."""
        owner = self.memory.of(array)
        names = {name for name in self.types if self.memory.of(name) == owner and is_array(self.types[name])}
        if self.memory.is_written(array) or names & {*self.results, *self.inputs} != {array}:
            return None
        for s in statements(self.exploded.body):
            if not names.intersection(a.name for a in operands(s) if isinstance(a, Var)):
                continue
            if not isinstance(s, Let):
                return None
            reads = s.op == "item" and is_real(self.types.get(s.target)) and self.is_fixed(s.args[1])
            shapes = s.op == "attribute" and s.detail in ("shape", "size", "ndim")
            renames = s.op == "copy" and self.assigned[s.target] == 1
            lengths = s.op == "call" and s.args[0] == Const(len)
            unpacks = s.op in ("item", "tuple") and isinstance(self.type_of(s.args[0]), types.BaseTuple)
            if not (reads or shapes or renames or lengths or unpacks):
                return None
        return names

    def is_fixed(self, place: Operand) -> bool:
        """Whether an index is constant: elsewhere a unit tangent costs more than to read one from memory."""
        made = self.definitions.get(place.name) if isinstance(place, Var) else None
        return isinstance(place, Const) or (
            made is not None and made.op == "tuple" and all(isinstance(a, Const) for a in made.args)
        )

    def pushed(self, seeds: list[Stmt]) -> list[Stmt]:
        """The statements of the program with their tangents, behind `seeds` for those of the inputs."""
        setup: list[Stmt] = []
        for leaves in self.leaves.values():
            for leaf in leaves:
                if leaf in self.active and leaf not in self.inputs:
                    setup.append(self.nothing(leaf))
        body = self.body(self.exploded.body)
        start = self.unpacked(body)
        return [*body[:start], *seeds, *setup, *body[start:]]

    def unpacked(self, body: list[Stmt]) -> int:
        """How many statements of `body` take tuples among the parameters apart."""
        places = [
            k for k, s in enumerate(body) if isinstance(s, Let) and s.op == "item" and s.target in self.inner
        ]
        return places[-1] + 1 if places else 0

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """Statements with their tangents."""
        out: list[Stmt] = []
        for s in body:
            self.step(s, out)
        return out

    def step(self, s: Stmt, out: list[Stmt]) -> None:
        """One statement with its tangents."""
        if array_lists.is_step(s, self.types) and self.is_active_list(s):
            out += array_lists.beside(s, self.types, lambda name: f"{name}_d")
        elif isinstance(s, If):
            out.append(If(s.test, self.body(s.then), self.body(s.orelse), s.line))
        elif isinstance(s, For):
            out.append(For(s.target, s.start, s.stop, s.step, self.body(s.body), s.line))
        elif isinstance(s, Loop):
            out.append(Loop(self.body(s.body), s.line))
        elif isinstance(s, Let):
            self.let(s, out)
        elif isinstance(s, Store):
            self.store(s, out)
        elif isinstance(s, InPlace):
            self.in_place(s, out)
        elif isinstance(s, Do) and helper_calls.name_of(s) is not None:
            self.let(s.call, out)
        elif isinstance(s, Do) and any(self.is_active(Var(name)) for name in self.memory.outputs(s.call)):
            self.types.setdefault(s.call.target, types.none)
            self.call(s.call, out)
        else:
            out.append(s)

    def let(self, s: Let, out: list[Stmt]) -> None:
        """An assignment."""
        t = self.types.get(s.target)
        users = s.op == "call" and is_users(getattr(s.args[0], "value", None))
        helper = helper_calls.name_of(s)
        if helper is not None:
            moved = s.target in self.active or any(
                self.is_active(Var(name)) for name in self.memory.outputs(s)
            )
            if moved:
                second_order.push(self, s, helper, out)
            else:
                out.append(s if second_order.has_result(self, s) else Do(s, s.line))
            return
        if s.op == "item" and isinstance(self.type_of(s.args[0]), types.BaseTuple):
            out.append(s)  # a leaf of a tuple parameter: its tangent is a parameter too, or set to zero
            return
        if not users and any(self.is_active(Var(name)) for name in self.memory.outputs(s)):
            if self.n and s.detail == ("fill", ()):
                self.filled(s, out)
            else:
                arrays_forward.forward_writes(self, s, out)
            return
        if s.target not in self.active and not (users and self.reaches(s)):
            out.append(s)
            return
        if users:
            self.call(s, out)
            return
        z = f"{s.target}_d"
        if scalars.is_complex_sign(self, s):
            self.sign(s, z, out)
            return
        if isinstance(t, types.BaseTuple):
            if s.op in ("copy", "tuple"):
                out.append(s)
            else:
                self.of_arrays(s, out)
            return
        if is_array(t):
            self.array(s, z, out)
            return
        out.append(s)
        self.number(s, z, t, out)

    def number(self, s: Let, z: str, t: Any, out: list[Stmt]) -> None:
        """The tangent `z` of a number of type `t`, behind the statement that assigns it."""
        if s.op == "item" and isinstance(self.type_of(s.args[0]), types.Array):
            name = s.args[0].name  # type: ignore[union-attr]
            if name in self.units:
                unit = (Ref(chunk_arrays.unit_at, "unit_at"), *s.args, self.units[name], Const(self.n))
                out.append(Let(z, "call", unit, (), s.line))
            else:
                out.append(Let(z, "item", (Var(f"{name}_d"), s.args[1]), None, s.line))
        elif s.op == "copy":
            x_dot = self.dot(s.args[0])
            if x_dot is not None and has_complex(t) and not has_complex(self.type_of(s.args[0])):
                x_dot = self.in_lanes(out, complex_chunks.as_complex, x_dot, s.line)
            out.append(self.nothing(s.target) if x_dot is None else Let(z, "copy", (x_dot,), None, s.line))
        elif (
            s.op in ("call", "method", "attribute")
            and any(is_array(self.type_of(a)) for a in s.args)
            or s.op == "binary"
            and s.detail == "@"
        ):
            self.of_arrays(s, out)
        elif s.op == "attribute":
            x_dot = self.dot(s.args[0])
            assert x_dot is not None
            if isinstance(self.type_of(s.args[0]), types.Complex):
                out.append(Let(z, "attribute", (x_dot,), s.detail, s.line))
            elif s.detail == "real":
                out.append(Let(z, "copy", (x_dot,), None, s.line))
            else:
                out.append(self.nothing(s.target))
        elif self.is_conjugate(s):
            x_dot = self.dot(s.args[-1])
            assert x_dot is not None
            if self.n:
                turned = (Ref(complex_chunks.conjugated, "conjugated"), x_dot)
                out.append(Let(z, "call", turned, (), s.line))
            else:
                out.append(Let(z, "method", (x_dot,), ("conjugate", ()), s.line))
        else:
            self.scalar(s, z, out)

    def filled(self, s: Let, out: list[Stmt]) -> None:
        """a.fill(x) with a chunk of tangents."""
        x_dot = self.dot(s.args[1])
        if x_dot is None:
            x_dot = arrays.call(self, out, lanes.zero_lanes, Const(self.n), line=s.line)
        whole = Var(f"{s.args[0].name}_d")  # type: ignore[union-attr]
        filled = Let("_", "call", (Ref(chunk_arrays.fill, "fill"), whole, x_dot), (), s.line)
        out += [s, Do(filled, s.line)]

    def call(self, s: Let, out: list[Stmt]) -> None:
        """A call of a function whose pushforward is derived."""
        f, args, active = self.callee_of(s)
        push = self.callee(f, tuple(self.argument_type(a) for a in args), tuple(active))
        dots = [Var(f"{args[k].name}_d") for k in active]  # type: ignore[union-attr]
        found = self.emit(out, "call", (Ref(push, f"{called(f)}_pushforward"), *args, *dots), (), s.line)
        leaves = self.result_leaves(s.target)
        t = self.types.get(s.target)
        place = 0
        for leaf in leaves:
            out.append(Let(leaf, "item", (found, Const(place)), None, s.line))
            place += 1
        for leaf in leaves:
            if has_tangent(self.types.get(leaf)):
                out.append(Let(f"{leaf}_d", "item", (found, Const(place)), None, s.line))
                place += 1
        if leaves != [s.target] and isinstance(t, types.BaseTuple):
            self.gather(s.target, t, out)

    def gather(self, name: str, t: Any, out: list[Stmt]) -> None:
        """A tuple put together from its parts."""
        for k, part in enumerate(t):
            if isinstance(part, types.BaseTuple) and has_tangent(part):
                self.gather(f"{name}_p{k}", part, out)
        out.append(Let(name, "tuple", tuple(Var(f"{name}_p{k}") for k in range(len(t)))))
