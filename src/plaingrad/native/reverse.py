"""Reverse mode: from a program to one that runs forward, keeping what the way back needs, and then backward.

The program made has the parameters of the given one, then the cotangents of the results, then a shadow array for every
array parameter. It returns the results and the cotangents of the scalar parameters; those of arrays are added into
the shadows. What is kept is decided for each loop body: a value that the reverse of that body reads is recomputed if
that is cheap, else stored on a tape of its own, one entry an iteration. No memory is undone: what is read from memory
that is written is kept when it is read. Arrays are kept by reference, with their shadows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native import arrays, tapes, values
from plaingrad.native.activity import is_array, is_real, is_users
from plaingrad.native.effects import effects_of
from plaingrad.native.helpers import add_to
from plaingrad.native.transform import Transform
from plaingrad.native.tree import (
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Parts,
    Program,
    Ref,
    Stmt,
    Store,
    Var,
)
from plaingrad.native.values import Values


def pullback_program(program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """The program that returns the results of `program` and its cotangents.

    Args:
        program: what is differentiated.
        wanted: the parameters to differentiate.
        callee: `callee(f, argument types)` is the compiled pullback of another function, of the same form.
    """
    return Reverse(program, wanted, callee).program()


class Reverse(Transform):
    """The reverse transform of one program."""

    def __init__(self, program: Program, wanted: list[str], callee: Callable[..., Any]) -> None:
        super().__init__(program, wanted, callee)
        leaves = {leaf for leaves in self.leaves.values() for leaf in leaves}
        self.values = Values(self.exploded, self.memory, leaves)

    # -- the whole -------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The derivative program."""
        main = self.body(self.exploded.body)
        buffers = values.with_buffers(self, main)
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
            *buffers,
            *zero,
            *seeds,
            *main.backward,
            Let("result", "tuple", tuple(returned)),
        ]
        params = [*self.source.params, *seed_names, *[shadows[name] for name in arrays_in]]
        kinds = {**self.types, **{f"{name}_b": self.types[name] for name in bars}}
        own = frozenset((*self.made, *[f"{name}_b" for name in bars]))
        return Program(f"{self.source.name}_pullback", self.source.file, params, body, kinds, own=own)

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
            return tapes.loop(self, s)
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
        if self.is_complex(term):
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
            return values.reverse(self, s) if s.target in self.values.owned else self.array(s)
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
        if not self.memory.is_written(x.name) or self.values.is_settled(x.name):
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
