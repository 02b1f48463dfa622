"""Which numbers may be computed and not used, or may stand still: what infinite slopes are not multiplied with.

A cotangent that nothing was added to is zero because the value was not used on the way that the program took. Its
operation is left out, as in the plain tier: 0 * inf would be nan. Where a value surely is used, a zero has arrived and
counts as any other number. The analysis goes along all ways from an assignment: each has to meet a statement that
hands the cotangent on. Forward, a variable may stand still where one way assigns a constant to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.native.program.ir import (
    Break,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Raise,
    Stmt,
    Store,
    Var,
    statements,
    value_of,
)
from plaingrad.native.program.value_types import has_tangent, is_array, is_memory

USED, FALLS, LEAVES, LOST = "used", "falls", "leaves", "lost"
CHOICES = frozenset(("min", "max", "choice", "where_taken", "where"))  # what they do not take is not used
# functions whose slopes are finite wherever their arguments are
TAME = frozenset(
    (
        "sin",
        "cos",
        "tanh",
        "arctan",
        "atan",
        "erf",
        "erfc",
        "abs",
        "fabs",
        "absolute",
        "min",
        "max",
        "minimum",
        "maximum",
    )
    + (
        "float",
        "float64",
        "float32",
        "complex",
        "complex128",
        "complex64",
        "sign",
        "copysign",
        "floor",
        "ceil",
        "trunc",
        "round",
        "fmin",
        "fmax",
        "radians",
    )
    + ("degrees", "deg2rad", "rad2deg", "conj", "conjugate", "choice", "where_taken", "real", "square")
)


def has_wild_slope(s: Let) -> bool:
    """Whether a slope of a scalar operation may be infinite, or nan, where its operands are finite."""
    if s.op == "binary":
        return s.detail in ("/", "**", "%")
    return s.op == "call" and getattr(value_of(s.args[0]), "__name__", "") not in TAME


class Arrivals:
    """The numbers of a program that may be computed and not used.

    Attributes:
        unused: their names.
    """

    def __init__(
        self,
        body: list[Stmt],
        results: list[str],
        types: dict[str, Any],
        is_active: Callable[[Operand], bool],
    ) -> None:
        self.results = set(results)
        self.types = types
        self.is_active = is_active
        self.above: dict[int, tuple[str, list[Stmt], int]] = {}
        self.lists: dict[str, list[tuple[list[Stmt], int]]] = {}  # where a variable is assigned
        self.top = body
        self.note(body)
        self.unused: set[str] = set()
        changed = any(has_wild_slope(s) for s in statements(body) if isinstance(s, Let))
        while changed:
            changed = False
            for name, places in self.lists.items():
                if name not in self.unused and not all(
                    self.is_met(name, at, k + 1, set()) for at, k in places
                ):
                    self.unused.add(name)
                    changed = True

    def note(self, body: list[Stmt]) -> None:
        """Note where the active numbers are assigned, and what every list of statements stands in."""
        for k, s in enumerate(body):
            if (
                isinstance(s, Let)
                and self.is_active(Var(s.target))
                and not is_memory(self.types.get(s.target))
            ):
                self.lists.setdefault(s.target, []).append((body, k))
            inner = (
                (s.then, s.orelse) if isinstance(s, If) else (s.body,) if isinstance(s, (For, Loop)) else ()
            )
            kind = "arm" if isinstance(s, If) else "for" if isinstance(s, For) else "loop"
            for part in inner:
                self.above[id(part)] = kind, body, k
                self.note(part)

    def is_met(self, name: str, body: list[Stmt], k: int, seen: set[int]) -> bool:
        """Whether the value of a variable is used on all ways on from a place."""
        ways = self.ways(name, body, k)
        if LOST in ways:
            return False
        if FALLS in ways and not self.is_met_behind(name, body, seen):
            return False
        return LEAVES not in ways or self.is_met_outside(name, body, seen)

    def is_met_behind(self, name: str, body: list[Stmt], seen: set[int]) -> bool:
        """Whether it is used behind the end of a list of statements."""
        if body is self.top:
            return name in self.results
        kind, around, k = self.above[id(body)]
        if kind == "arm":
            return self.is_met(name, around, k + 1, seen)
        if id(body) not in seen:  # the next iteration
            seen.add(id(body))
            if not self.is_met(name, body, 0, seen):
                return False
        return kind == "loop" or self.is_met(name, around, k + 1, seen)

    def is_met_outside(self, name: str, body: list[Stmt], seen: set[int]) -> bool:
        """Whether it is used behind the loop around a list of statements."""
        while body is not self.top:
            kind, around, k = self.above[id(body)]
            if kind != "arm":
                return self.is_met(name, around, k + 1, seen)
            body = around
        return False

    def ways(self, name: str, body: list[Stmt], k: int) -> set[str]:
        """What becomes of the value of a variable on the ways through a list of statements."""
        found: set[str] = set()
        for s in body[k:]:
            if self.uses(s, name):
                return found | {USED}
            if isinstance(s, Let) and s.target == name:
                return found | {LOST}
            if isinstance(s, Break):
                return found | {LEAVES}
            if isinstance(s, Raise):
                return found | {USED}
            if isinstance(s, If):
                both = self.ways(name, s.then, 0) | self.ways(name, s.orelse, 0)
                found |= both - {FALLS}
                if FALLS not in both:
                    return found
            elif isinstance(s, Loop):
                inner = self.ways(name, s.body, 0)
                found |= inner & {USED, LOST}
                if LEAVES not in inner:
                    return found
        return found | {FALLS}

    def uses(self, s: Stmt, name: str) -> bool:
        """Whether a statement hands the cotangent of what it makes on to a variable."""
        if isinstance(s, Let):
            read = any(isinstance(a, Var) and a.name == name for a in s.args)
            if not read or s.op == "compare":
                return False
            if s.target in self.results:
                return True
            if s.op == "call" and getattr(value_of(s.args[0]), "__name__", "") in CHOICES:
                return False
            return self.is_active(Var(s.target)) and s.target not in self.unused
        if isinstance(s, (Store, InPlace)):
            return isinstance(s.value, Var) and s.value.name == name and self.is_active(s.array)
        return isinstance(s, Do) and any(isinstance(a, Var) and a.name == name for a in s.call.args)


def may_stand_still(
    body: list[Stmt], types: dict[str, Any], is_active: Callable[[Operand], bool]
) -> set[str]:
    """The numbers that depend on the inputs on some ways through a program, and are constant on others."""
    lets = [s for s in statements(body) if isinstance(s, Let) and is_active(Var(s.target))]
    lets = [s for s in lets if not is_array(types.get(s.target))]
    assigned: dict[str, list[Let]] = {}
    for s in statements(body):
        if isinstance(s, Let):
            assigned.setdefault(s.target, []).append(s)
    found: set[str] = set()

    def moves(x: Operand) -> bool:
        return isinstance(x, Var) and is_active(x) and x.name not in found

    changed = any(map(has_wild_slope, lets))
    while changed:
        changed = False
        for s in lets:
            if s.target in found:
                continue
            operands = [a for a in s.args if not isinstance(a, Var) or has_tangent(types.get(a.name))]
            chooses = s.op == "call" and getattr(value_of(s.args[0]), "__name__", "") in CHOICES
            if chooses:
                still = not all(map(moves, operands[1:]))
            else:
                still = s.op in ("copy", "unary", "binary", "call") and not any(map(moves, operands))
                still = still or len(assigned[s.target]) > 1 and s.op == "copy" and not moves(s.args[0])
            if not still:
                others = [x for x in assigned[s.target] if not is_active(Var(x.target))]
                still = bool(others)
            if still:
                found.add(s.target)
                changed = True
    return found


__all__ = ["Arrivals", "has_wild_slope", "may_stand_still"]
