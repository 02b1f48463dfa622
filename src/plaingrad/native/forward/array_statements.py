"""Forward mode of statements on arrays: what makes them, and what is written into them."""

from __future__ import annotations

from numba.core import types

from plaingrad.native.forward import array_chunks, chunk_arrays
from plaingrad.native.forward import chunks as lanes
from plaingrad.native.forward.tangents import Tangents
from plaingrad.native.program.ir import Const, Do, For, InPlace, Let, Operand, Ref, Stmt, Store, Var
from plaingrad.native.program.value_types import has_tangent
from plaingrad.native.rules import array_indexing, arrays, arrays_forward


class ArrayStatements(Tangents):
    """Statements whose values or places are arrays."""

    def array(self, s: Let, z: str, out: list[Stmt]) -> None:
        """An assignment of an array: a view, another name, or new memory."""
        sources = [a for a in s.args if isinstance(a, Var) and a.name in self.memory.sources(s)]
        if s.target in self.units:
            out.append(s)
        elif s.op == "copy":
            out += [s, Let(z, "copy", (Var(f"{s.args[0].name}_d"),), None, s.line)]  # type: ignore[union-attr]
        elif sources and not array_indexing.is_copy(self, s):
            args = tuple(Var(f"{a.name}_d") if a is sources[0] else a for a in s.args)
            out += [s, Let(z, s.op, args, s.detail, s.line)]
        else:
            self.of_arrays(s, out)

    def of_arrays(self, s: Let, out: list[Stmt]) -> None:
        """A statement by an array rule; of a chunk in one loop if there is one, else lane by lane."""
        if not self.n:
            arrays_forward.forward(self, s, out)
            return
        if not out or out[-1] is not s:
            out.append(s)
        if not array_chunks.push(self, s, out):
            self.lane_by_lane(s, out)

    def lane_by_lane(self, s: Let, out: list[Stmt]) -> None:
        """The rule applied to each lane, in a loop."""
        t = self.types.get(s.target)
        leaves = [s.target]
        if isinstance(t, types.BaseTuple):
            leaves = [f"{s.target}_p{k}" for k in range(len(t))]
            out += [
                Let(leaf, "item", (Var(s.target), Const(k)), None, s.line) for k, leaf in enumerate(leaves)
            ]
        leaves = [leaf for leaf in leaves if has_tangent(self.types.get(leaf))]
        out += [self.nothing(leaf) for leaf in leaves]
        self.lane = Var(self.fresh("lane"))
        self.lane_out = body = []
        arrays_forward.forward(self, s, body)
        for leaf in leaves:
            placed = (Ref(lanes.with_lane, "with_lane"), Var(f"{leaf}_d"), self.lane, Var(self.d(leaf)))
            body.append(Let(f"{leaf}_d", "call", placed, (), s.line))
        out.append(For(self.lane.name, Const(0), Const(self.n), Const(1), body, s.line))
        self.lane = None

    def store(self, s: Store, out: list[Stmt]) -> None:
        """array[index] = value."""
        self.checked_reading(s, out)
        out.append(s)
        self.stored(s, out)

    def stored(self, s: Store, out: list[Stmt]) -> None:
        """What array[index] = value does to the tangent of the array."""
        if not self.is_active(s.array):
            return
        x_dot = self.dot(s.value)
        if x_dot is None:
            x_dot = Const(0.0)
            if self.n:
                x_dot = arrays.call(self, out, lanes.zero_lanes, Const(self.n), line=s.line)
        if self.n and self.fills(s):
            view = self.emit(out, "item", (Var(f"{s.array.name}_d"), s.index), None, s.line)  # type: ignore[union-attr]
            out.append(
                Do(Let("_", "call", (Ref(chunk_arrays.fill, "fill"), view, x_dot), (), s.line), s.line)
            )
            return
        if not self.n and self.is_active(s.value):
            self.checked_reading(s, out, "_d")
        out.append(Store(Var(f"{s.array.name}_d"), s.index, x_dot, s.line))  # type: ignore[union-attr]

    def in_place(self, s: InPlace, out: list[Stmt]) -> None:
        """array op= value: array_dot = factor * array_dot + slope * value_dot."""
        if not self.is_active(s.array):
            out.append(s)
            return
        bar = Var(f"{s.array.name}_d")  # type: ignore[union-attr]
        x_dot = self.dot(s.value)
        self.checked_overlap(s, out)
        if s.op not in "+-*/":
            raise self.refuse(f"`{s.op}=`", s.line)
        if self.n:
            array_chunks.change(self, s, bar, x_dot, out)
            out.append(s)
            return
        if s.op in "+-":
            if x_dot is not None:
                out.append(InPlace(bar, s.op, x_dot, s.line))
        else:
            term: Operand | None = None
            if x_dot is not None:  # before the line below: `value` may be `array` itself
                slope: Operand = s.array
                if s.op == "/":
                    square = self.emit(out, "binary", (s.value, s.value), "*", s.line)
                    slope = self.emit(out, "binary", (s.array, square), "/", s.line)
                term = self.emit(out, "binary", (slope, x_dot), "*", s.line)
            out.append(InPlace(bar, s.op, s.value, s.line))
            if term is not None:
                out.append(InPlace(bar, "+" if s.op == "*" else "-", term, s.line))
        out.append(s)
