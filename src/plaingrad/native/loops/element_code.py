"""Code of loops over elements: variables, lengths, indices, loads, stores and sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native.loops import fission
from plaingrad.native.loops.elements import ONE, ZERO, Access, Along
from plaingrad.native.lowering.fused_reductions import axis_step, broadcast_length
from plaingrad.native.modes.transform import has_kinks
from plaingrad.native.program.ir import Const, Let, Operand, Ref, Stmt, Store, Var
from plaingrad.native.runtime.array_helpers import plus_in_any_order
from plaingrad.native.runtime.vector import vecmath
from plaingrad.native.runtime.vector.map import EACH

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

CHEAP = frozenset(
    (
        np.abs,
        np.fabs,
        np.maximum,
        np.minimum,
        np.square,
        np.add,
        np.subtract,
        np.multiply,
        np.divide,
        np.negative,
    )
    + (np.reciprocal, np.sqrt, abs)
)

ADDING = frozenset((np.add, np.subtract))


class ElementCode:
    """Statements of loops over the elements of arrays.

    Attributes:
        rt: the reverse transform.
        line: the user's line.
    """

    def __init__(self, rt: Reverse, line: int) -> None:
        self.rt, self.line = rt, line

    def element(self, x: Var) -> Var:
        """A new variable for one element of an array."""
        name = self.rt.fresh(f"{x.name}_each")
        self.rt.types[name] = types.float64
        if self.rt.is_active(x):
            self.rt.active.add(name)
        return Var(name)

    def variable(self, base: str, t: Any) -> Var:
        """A new variable of a type."""
        name = self.rt.fresh(base)
        self.rt.types[name] = t
        return Var(name)

    def whole_number(self, out: list[Stmt], op: str, args: tuple[Operand, ...], detail: Any) -> Var:
        """A new variable for a whole number that `op` gives."""
        found = self.rt.emit(out, op, args, detail, self.line)
        self.rt.types[found.name] = types.int64
        return found

    def shape(self, x: Var, out: list[Stmt]) -> list[Operand]:
        """The lengths of the axes of an array."""
        rt = self.rt
        shape = rt.emit(out, "attribute", (x,), "shape", self.line)
        ndim = rt.types[x.name[:-2] if x.name.endswith("_b") and x.name not in rt.types else x.name].ndim
        rt.types[shape.name] = types.UniTuple(types.int64, ndim)
        return [self.whole_number(out, "item", (shape, Const(axis)), None) for axis in range(ndim)]

    def step(self, length: Operand, out: list[Stmt]) -> Operand:
        """How far to go along an axis of this length for every step of the loop."""
        return self.whole_number(out, "call", (Ref(axis_step, "axis_step"), length), ())

    def common(self, a: Operand, b: Operand, out: list[Stmt]) -> Operand:
        """The length of an axis along which operands have the lengths `a` and `b`."""
        return self.whole_number(out, "call", (Ref(broadcast_length, "broadcast_length"), a, b), ())

    def index(self, out: list[Stmt], places: tuple[Operand, ...]) -> Operand:
        """An index of these places."""
        if len(places) == 1:
            return places[0]
        index = self.rt.emit(out, "tuple", places, None, self.line)
        self.rt.types[index.name] = types.UniTuple(types.int64, len(places))
        return index

    def unsigned(self, x: Operand, out: list[Stmt]) -> Var:
        """A whole number as one that is not negative: an index that is may be counted from the end."""
        found = self.rt.emit(out, "call", (Ref(np.uint64, "uint64"), x), (), self.line)
        self.rt.types[found.name] = types.uint64
        return found

    def placed(self, access: Access, counters: list[Operand], out: list[Stmt]) -> tuple[Operand, ...]:
        """The places of an access, where the counters of the loop are these."""
        return tuple(self.along(place, counters, out) for place in access.places or ())

    def along(self, place: Along, counters: list[Operand], out: list[Stmt]) -> Operand:
        """The place along one axis."""
        if place.axis is None:
            return place.fixed
        k, step = counters[place.axis], place.step
        if step in (ZERO, ONE):
            return k if step == ONE else ZERO
        if self.rt.types[step.name] != types.uint64:  # type: ignore[union-attr]
            return self.whole_number(out, "binary", (k, step), "*")
        k = self.rt.emit(out, "binary", (self.unsigned(k, out), step), "*", self.line)
        self.rt.types[k.name] = types.uint64
        return k

    def store(self, out: list[Stmt], array: Var, places: tuple[Operand, ...], value: Operand) -> None:
        """array[places] = value."""
        out.append(Store(array, self.index(out, places), value, self.line))

    def add_at(self, out: list[Stmt], array: Var, places: tuple[Operand, ...], term: Operand) -> None:
        """array[places] += term."""
        index = self.index(out, places)
        now = self.rt.emit(out, "item", (array, index), None, self.line)
        total = self.rt.emit(out, "binary", (now, term), "+", self.line)
        out.append(Store(array, index, total, self.line))

    def added(self, s: Stmt, own: set[str]) -> Stmt:
        """A statement of the way back of one element; what is added to a number from before the loop, in any order.

        Args:
            s: the statement.
            own: the numbers that belong to one element.
        """
        if isinstance(s, Let) and s.op == "binary" and s.detail == "+" and s.args[0] == Var(s.target):
            if s.target.endswith("_b") and s.target[:-2] not in own:
                return plus(s.target, s.args[0], s.args[1], s.line)
        return s


def plus(target: str, a: Operand, b: Operand, line: int) -> Let:
    """target = a + b, of a sum whose terms may be added in any order."""
    return Let(target, "call", (Ref(plus_in_any_order, "plus_in_any_order"), a, b), (), line)


def is_expensive(s: Let) -> bool:
    """Whether reading the result of an elementwise operation takes less than computing it."""
    if s.op == "binary":
        return s.detail == "**" and s.args[1] not in (Const(2), Const(2.0))
    return s.op == "call" and getattr(s.args[0], "value", None) not in CHEAP


def unsafe(rt: Reverse, nodes: list[Let]) -> set[str]:
    """The nodes that a jump of a slope depends on, where recomputed arithmetic may differ in the last bit."""
    made = {s.target: s for s in nodes}
    found: set[str] = set()
    for s in nodes:
        if not has_kinks(s):
            continue
        for a in s.args:
            if isinstance(a, Var) and a.name in made and not _is_exact(rt, a.name, made):
                found.add(a.name)
    return found


def _is_exact(rt: Reverse, name: str, made: dict[str, Let]) -> bool:
    """Whether both sweeps give a node the same bits: nothing in it that could be contracted to a*b + c."""
    adds = others = False
    todo = [name]
    while todo:
        s = made[todo.pop()]
        f = getattr(s.args[0], "value", None) if s.op == "call" else None
        if s.op == "unary" or has_kinks(s) or f is np.negative:
            pass
        elif f in ADDING or (s.op == "binary" and s.detail in "+-"):
            adds = True
        else:
            others = True
        todo += [a.name for a in s.args if isinstance(a, Var) and a.name in made]
    return not (adds and others) and not (rt.is_loose and (adds or others))


def at_once(s: Let) -> Ref | None:
    """What computes the function that `s` calls, of all elements of a vector in vector registers with the same bits."""
    f = getattr(s.args[0], "value", None) if s.op == "call" and len(s.args) == 2 else None
    name = fission.FUNCTIONS.get(f)
    if name is None or not isinstance(s.args[1], Var) or not vecmath.is_exact(name):
        return None
    return Ref(EACH[name], f"{name}_each")
