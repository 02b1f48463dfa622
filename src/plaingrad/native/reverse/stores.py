"""Reverse mode of stores: what is written into arrays, whole, by element or in place."""

from __future__ import annotations

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import Const, InPlace, Operand, Parts, Ref, Stmt, Store, Var
from plaingrad.native.program.value_types import is_array
from plaingrad.native.reverse.calls import CallsOfUsers
from plaingrad.native.rules import array_indexing


class Stores(CallsOfUsers):
    """Statements that write into arrays."""

    def store(self, s: Store) -> Parts:
        """array[index] = value: the cotangent of what was overwritten ends, that of the value begins."""
        if not self.is_active(s.array):
            return Parts([s])
        assert isinstance(s.array, Var)
        bar = Var(f"{s.array.name}_b")
        back: list[Stmt] = []
        if array_indexing.is_fancy(self, s.index):
            return array_indexing.store(self, s)
        value_type = self.type_of(s.value)
        if not self.is_active(s.value):
            back.append(Store(bar, s.index, Const(0.0), s.line))
            return Parts([s], back)
        assert isinstance(s.value, Var)
        index = s.index
        if index == Const(Ellipsis):  # Numba writes, but does not read, array[...]
            scalar = self.types[s.array.name].ndim == 0
            every = ("tuple", ()) if scalar else ("slice", (Const(None), Const(None)))
            index = self.emit(back, *every, None, s.line)
        arriving = self.emit(back, "item", (bar, index), None, s.line)
        if is_array(value_type):
            if self.memory.of(s.value.name) == self.memory.of(s.array.name):  # perhaps the very same elements
                arriving = self.emit(back, "method", (arriving,), ("copy", ()), s.line)
                back.append(Store(bar, s.index, Const(0.0), s.line))
                self.add(back, s.value, arriving, s.line)
                forward: list[Stmt] = []
                self.checked_reading(s, forward)
                return Parts([*forward, s], back)
        elif self.fills(s):
            arriving = self.emit(back, "call", (Ref(np.sum, "sum_of"), arriving), (), s.line)
        if isinstance(self.types[s.array.name].dtype, types.Complex):
            self.types[arriving.name] = types.complex128
        self.add(back, s.value, arriving, s.line)
        back.append(Store(bar, s.index, Const(0.0), s.line))
        return Parts([s], back)

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
