"""Contributions to cotangents: slopes times cotangents, added where they belong."""

from __future__ import annotations

from typing import Any

from numba.core import types

from plaingrad.native.modes.transform import has_kinks
from plaingrad.native.modes.unused_values import has_wild_slope
from plaingrad.native.program.ir import Const, Do, Let, Operand, Ref, Stmt, Var
from plaingrad.native.program.value_types import is_array
from plaingrad.native.reverse.state import State
from plaingrad.native.runtime import helpers
from plaingrad.native.runtime.helpers import add_to

ALWAYS = Const(True)


class Contributions(State):
    """Arithmetic on the cotangents of numbers, and operands kept for the way back."""

    def add(self, out: list[Stmt], x: Operand, term: Operand, line: int, arrived: Operand = ALWAYS) -> None:
        """x_bar += term; `arrived`: whether something arrived at what x was used for."""
        assert isinstance(x, Var)
        flag = self.arrived.get(x.name)
        if flag is not None and arrived == ALWAYS:
            out.append(Let(flag, "copy", (arrived,), None, line))
        elif flag is not None:
            out.append(Let(flag, "binary", (Var(flag), arrived), "|", line))
        t = self.types[x.name]
        bar = Var(f"{x.name}_b")
        if is_array(t):
            out.append(Do(Let("_", "call", (Ref(add_to, "add_to"), bar, term), (), line), line))
            return
        if not isinstance(t, types.Complex):
            term = self.real(out, term, line)
        out.append(Let(bar.name, "binary", (bar, term), "+", line))

    def real(self, out: list[Stmt], term: Operand, line: int) -> Operand:
        """The real part of a cotangent that may be complex: of a number whose type is not known, too."""
        t = self.known_type(term)
        if isinstance(t, types.Complex) or t is None and self.has_complex:
            return self.emit(out, "attribute", (term,), "real", line)
        return term

    def complex_part(self, s: Let, z: Var, back: list[Stmt]) -> None:
        """z = x.real or x.imag of a number."""
        x = s.args[0]
        if s.detail == "real" or not isinstance(self.type_of(x), types.Complex):
            if s.detail == "real":
                self.add(back, x, z, s.line)
            return
        self.add(back, x, self.emit(back, "binary", (Const(1j), z), "*", s.line), s.line)

    def conjugated(self, z: Var, back: list[Stmt], line: int) -> Operand:
        """The conjugate of a cotangent; itself where it is real."""
        if not self.is_complex(z):
            return z
        found = self.emit(back, "method", (z,), ("conjugate", ()), line)
        self.types[found.name] = types.complex128
        return found

    def indicator(self, out: list[Stmt], taken: Var, line: int) -> Operand:
        """The slope of an operand that was or was not taken: the bool itself, which takes less room on a tape."""
        return taken

    def scalar(self, s: Let, z: Var, back: list[Stmt], forward: list[Stmt]) -> None:
        """x_bar += z_bar * conj(dz/dx) for every active operand.

        Where a slope jumps it is computed on the way forward: on the way back the operands may differ in the last bit.
        """
        jumps = has_kinks(s)
        for position, slope in self.slopes(s, forward if jumps else back):
            if jumps and isinstance(slope, Var):
                self.types.setdefault(slope.name, types.float64)
            x = s.args[position]
            if not self.is_active(x):
                continue
            flag = self.arrived.get(s.target)
            arrived: Operand = ALWAYS if flag is None else Var(flag)
            term = self.times(back, z, slope, s.line)
            if isinstance(self.type_of(slope), types.Boolean):
                arrived = slope if flag is None else self.emit(back, "binary", (slope, arrived), "&", s.line)
            elif s.target in self.unused and not isinstance(slope, int):
                term = self.if_used(back, s, z, term)
            self.add(back, x, term, s.line, arrived)

    def if_used(self, back: list[Stmt], s: Let, z: Var, term: Operand) -> Operand:
        """A product of a cotangent and a slope, 0 where nothing has arrived: the slope may be infinite.

        In what is not differentiated again, a zero stands for nothing: its derivatives do not matter.
        """
        if s.target in self.arrived:
            used: Operand = Var(self.arrived[s.target])
        elif has_wild_slope(s):
            used = self.emit(back, "compare", (z, Const(0.0)), "!=", s.line)
            self.types[used.name] = types.boolean  # type: ignore[union-attr]
        else:
            return term
        kept = self.emit(back, "call", (Ref(helpers.where_taken, "where_taken"), used, term), (), s.line)
        if isinstance(term, Var) and term.name in self.types:
            self.types[kept.name] = self.types[term.name]
        return kept

    def times(self, back: list[Stmt], z: Operand, slope: Any, line: int) -> Operand:
        """z * conj(slope); `slope` is an operand, or 1 or -1."""
        if slope == 1:
            return z
        if isinstance(self.type_of(slope), types.Boolean):
            return self.emit(back, "call", (Ref(helpers.where_taken, "where_taken"), slope, z), (), line)
        if slope == -1:
            minus = self.emit(back, "unary", (z,), "-", line)
            if self.is_complex(z):
                self.types[minus.name] = types.complex128
            return minus
        if self.is_complex(slope):
            slope = self.emit(back, "method", (slope,), ("conjugate", ()), line)
        product = self.emit(back, "binary", (z, slope), "*", line)
        if self.is_complex(z) or self.is_complex(slope):
            self.types[product.name] = types.complex128
        return product

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
