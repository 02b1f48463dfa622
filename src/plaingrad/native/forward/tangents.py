"""Tangents of numbers: slopes times tangents, one at a time or in chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.forward import chunks as lanes
from plaingrad.native.forward import complex_chunks
from plaingrad.native.lowering.fused_reductions import every_one_in_loops
from plaingrad.native.modes.transform import Transform
from plaingrad.native.modes.unused_values import has_wild_slope, may_stand_still
from plaingrad.native.program.ir import Const, Let, Operand, Program, Ref, Stmt, Var
from plaingrad.native.program.value_types import has_complex, is_array, is_real
from plaingrad.native.rules import arrays
from plaingrad.native.runtime import helpers


class Tangents(Transform):
    """What forward mode knows, and tangents of numbers."""

    def __init__(
        self,
        program: Program,
        wanted: list[str],
        callee: Callable[..., Any],
        n: int = 0,
        is_again: bool = False,
    ) -> None:
        super().__init__(every_one_in_loops(program), wanted, callee)
        self.n = n
        self.is_again = is_again
        self.still = may_stand_still(self.exploded.body, self.types, self.is_active)
        self.lane: Var | None = None
        self.lane_out: list[Stmt] = []
        self.units: dict[str, Operand] = {}
        lost = [name for name in sorted(self.active) if n and has_complex(self.types[name])]
        lost = [name for name in lost if not isinstance(self.types[name], types.Complex)]
        if lost:
            raise self.refuse(f"a chunk of tangents of the complex array `{lost[0]}`", 0)

    def nothing(self, name: str) -> Stmt:
        """A tangent of zero."""
        z = self.d(name)
        width = (Const(self.n),) if self.n and self.lane is None else ()
        if is_array(self.types[name]):
            zeros = (
                Ref(lanes.zero_lanes_like, "zero_lanes_like") if width else Ref(np.zeros_like, "zeros_like")
            )
            return Let(z, "call", (zeros, Var(name), *width), ())
        if width and has_complex(self.types[name]):
            zeros = Ref(complex_chunks.zero_complex_lanes, "zero_complex_lanes")
            return Let(z, "call", (zeros, *width), ())
        if width:
            return Let(z, "call", (Ref(lanes.zero_lanes, "zero_lanes"), *width), ())
        return Let(z, "copy", (self.zero(self.types[name]),))

    def d(self, name: str) -> str:
        """The name of the tangent of a variable."""
        return f"{name}_d" if self.lane is None else f"{name}_d_{self.lane.name}"

    def dot(self, x: Operand) -> Operand | None:
        """The tangent of an operand, None if it is zero."""
        if not self.is_active(x):
            return None
        whole = Var(f"{x.name}_d")  # type: ignore[union-attr]
        if self.lane is None:
            return whole
        return arrays.call(self, self.lane_out, lanes.lane, whole, self.lane, line=0)

    def reaches(self, s: Let) -> bool:
        """Whether a call passes derivatives on: it has active arguments."""
        return any(self.is_active(a) for a in s.args)

    def scalar(self, s: Let, z: str, out: list[Stmt]) -> None:
        """z_dot = the sum of dz/dx * x_dot; of arrays elementwise."""
        total: Operand | None = None
        if self.is_choice(s):
            x_dot = self.dot(s.args[2])
            out.append(
                self.nothing(s.target)
                if x_dot is None
                else Let(z, "copy", (self.chosen(s.args[1], x_dot, out, s.line),))
            )
            return
        wild = has_wild_slope(s) and not self.is_again
        for position, slope in self.slopes(s, out):
            x = s.args[position]
            x_dot = self.dot(x)
            if x_dot is None:
                continue
            if isinstance(self.type_of(slope), types.Boolean):
                x_dot = self.chosen(slope, x_dot, out, s.line)
            elif slope == -1:
                x_dot = self.emit(out, "unary", (x_dot,), "-", s.line)
            elif slope != 1:
                product = self.emit(out, "binary", (slope, x_dot), "*", s.line)
                if wild and isinstance(x, Var) and x.name in self.still:
                    moved = (Ref(lanes.if_moving, "if_moving"), x_dot, product)
                    product = self.emit(out, "call", moved, (), s.line)
                x_dot = product
            total = x_dot if total is None else self.emit(out, "binary", (total, x_dot), "+", s.line)
        t = self.types[s.target]
        if total is None:
            out.append(self.nothing(s.target))
        elif is_real(t) and not isinstance(t, types.Complex) and self.mixes(s):
            if self.n:
                out.append(Let(z, "call", (Ref(complex_chunks.real_part, "real_part"), total), (), s.line))
            else:
                out.append(Let(z, "attribute", (total,), "real", s.line))
        else:
            if has_complex(t):
                total = self.in_lanes(out, complex_chunks.as_complex, total, s.line)
            out.append(Let(z, "copy", (total,), None, s.line))

    def is_choice(self, s: Let) -> bool:
        """Whether a statement of a derived program hands a number on, or not."""
        return s.op == "call" and getattr(s.args[0], "value", None) is helpers.where_taken

    def chosen(self, taken: Operand, x_dot: Operand, out: list[Stmt], line: int) -> Operand:
        """A tangent where it is taken, else zero."""
        f = lanes.chosen if self.n and self.lane is None else helpers.where_taken
        return self.emit(out, "call", (Ref(f, f.__name__), taken, x_dot), (), line)

    def indicator(self, out: list[Stmt], taken: Var, line: int) -> Operand:
        """The slope of an operand that was or was not taken: the bool itself, 0 * inf would be nan."""
        return taken

    def in_lanes(self, out: list[Stmt], f: Any, x_dot: Operand, line: int) -> Operand:
        """f(x_dot) of a chunk of tangents; one tangent as it is."""
        return arrays.call(self, out, f, x_dot, line=line) if self.n and self.lane is None else x_dot

    def sign(self, s: Let, z: str, out: list[Stmt]) -> None:
        """The slope of |x| at complex x, which turns with x."""
        x_dot = self.dot(s.args[1])
        assert x_dot is not None
        out.append(s)
        if not self.n:
            out.append(
                Let(z, "call", (Ref(helpers.sign_pushed, "sign_pushed"), s.args[1], x_dot), (), s.line)
            )
            return
        slope = Var(s.target)
        across = self.emit(out, "binary", (slope, x_dot), "*", s.line)
        across = self.in_lanes(out, complex_chunks.real_part, across, s.line)  # type: ignore[assignment]
        across = self.emit(out, "binary", (slope, across), "*", s.line)
        turned = self.in_lanes(out, complex_chunks.conjugated, x_dot, s.line)
        turned = self.emit(out, "binary", (turned, across), "-", s.line)
        shrunk = self.emit(out, "call", (Ref(helpers.inverse_size, "inverse_size"), s.args[1]), (), s.line)
        out.append(Let(z, "binary", (shrunk, turned), "*", s.line))

    def mixes(self, s: Let) -> bool:
        """Whether an operand is complex."""
        return any(map(self.is_complex, s.args))
