"""If-conversion: both arms of a branch in the body of a nest are computed, and of what they assign one is chosen.

    if t: x = a             x_1 = a
    else: x = b      ->     x_2 = b
                            x = choice(t, x_1, x_2)

Only the reverse of the nest is derived from this; the way forward keeps its branches. An arm may therefore hold only
what does no harm where it is not taken: sums, products, comparisons, and reads of elements around the loop variables.
Such reads are *guarded*: the reverse looks whether they are elements at all. What goes out of an arm on the way back is
chosen too, 0 where the arm is not taken, whatever the slopes are (0 * inf is not 0). A test is computed again, so it
may depend only on what both sweeps compute to the same bits (`nests`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import Const, For, If, Let, Operand, Ref, Stmt, Store, Var, statements
from plaingrad.native.runtime.helpers import choice

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

HARMLESS = frozenset(("copy", "tuple", "attribute", "compare", "unary", "item"))
OPERATORS = frozenset(("+", "-", "*", "&", "|", "^"))
FUNCTIONS = (abs, min, max, float, len, np.float64, np.uint64)

Names = dict[str, str]  # variable -> the name that has its value now
Stores = dict[str, tuple[Operand, Operand]]  # array -> (index, value)


class Declined(Exception):
    """The loop is left to the general reverse."""


@dataclass(slots=True)
class Arms:
    """What is known of a body that was made straight.

    Attributes:
        of: variable assigned in an arm -> whether that arm is taken.
        guarded: the reads that an iteration does only if it takes some arm.
        partly: the arrays that only some iterations store to.
    """

    of: dict[str, Operand] = field(default_factory=dict)
    guarded: set[str] = field(default_factory=set)
    partly: set[str] = field(default_factory=set)


def straightened(
    rt: Reverse, loop: For, body: list[Stmt], place_of: Callable[[Operand, dict[str, Let]], Any]
) -> tuple[list[Stmt], Arms]:
    """(the innermost body of a nest without branches, what is known of its arms); `loop` is the nest.

    Raises:
        Declined: an arm holds what may do harm, or the arms store to different elements.
    """
    if not any(isinstance(s, If) for s in body):
        return body, Arms()
    work = _Straight(rt, loop, body, place_of)
    work.run(body, {}, None, None)
    return work.out, work.arms


class _Straight:
    def __init__(self, rt: Reverse, loop: For, body: list[Stmt], place_of: Any) -> None:
        self.rt, self.loop, self.place_of = rt, loop, place_of
        self.out: list[Stmt] = []
        self.arms = Arms()
        count: dict[str, int] = {}
        for s in statements(body):
            if isinstance(s, Let):
                count[s.target] = count.get(s.target, 0) + 1
        if any(rt.assigned[name] != n for name, n in count.items()):
            raise Declined  # a value goes from one iteration to the next
        if rt.values.is_used_outside(set(count), loop):
            raise Declined
        self.assigned = set(count)
        self.open: list[Stores] = []  # what the arms around a statement have stored so far

    def run(self, body: list[Stmt], now: Names, arm: Operand | None, stores: Stores | None) -> None:
        """Statements; `now` is brought up to date, and in an arm `stores`."""
        for s in body:
            if isinstance(s, Let):
                self.let(s, now, arm)
            elif isinstance(s, Store) and isinstance(s.array, Var):
                s = Store(s.array, self.read(s.index, now), self.read(s.value, now), s.line)
                self.put(s, stores)
            elif isinstance(s, If):
                self.branch(s, now, arm, stores)
            else:
                raise Declined

    def read(self, a: Operand, now: Names) -> Operand:
        """An operand by its present name."""
        if not isinstance(a, Var) or a.name not in self.assigned:
            return a
        if a.name not in now:
            raise Declined  # only some ways give it a value
        return Var(now[a.name])

    def let(self, s: Let, now: Names, arm: Operand | None) -> None:
        """An assignment."""
        rt = self.rt
        args = tuple(self.read(a, now) for a in s.args)
        name = s.target if rt.assigned[s.target] == 1 else self.renamed(s.target)
        made = replace(s, target=name, args=args)
        if arm is not None:
            self.check(made)
            self.arms.of[name] = arm
            if s.op == "item" and isinstance(rt.type_of(args[0]), types.Array):
                if any(args[0] == Var(array) for put in self.open for array in put):
                    raise Declined  # what the arm has stored before
                self.arms.guarded.add(name)
        now[s.target] = name
        self.out.append(made)

    def check(self, s: Let) -> None:
        """Decline what might do harm where its arm is not taken."""
        if s.op == "binary" and s.detail in OPERATORS or s.op in HARMLESS:
            return
        f = getattr(s.args[0], "value", None) if s.op == "call" and not s.detail else None
        if f is not choice and f not in FUNCTIONS:
            raise Declined

    def renamed(self, name: str) -> str:
        """A new name for a value of a variable."""
        rt = self.rt
        new = rt.fresh(name)
        rt.types[new] = rt.types[name]
        rt.assigned[new] = 1
        if name in rt.active:
            rt.active.add(new)
        return new

    def put(self, s: Store, stores: Stores | None) -> None:
        """A store, or what an arm will store."""
        assert isinstance(s.array, Var)
        if stores is None:
            self.out.append(s)
        elif s.array.name in stores:
            raise Declined
        else:
            stores[s.array.name] = s.index, s.value

    def branch(self, s: If, now: Names, arm: Operand | None, stores: Stores | None) -> None:
        """A branch: its arms one behind the other, then the choices."""
        test = self.read(s.test, now)
        if not isinstance(self.rt.type_of(test), types.Boolean):
            raise Declined
        ways: list[tuple[Names, Stores]] = []
        for body, taken in ((s.then, test), (s.orelse, self.flag("unary", (test,), "not", s.line))):
            if arm is not None:
                taken = self.flag("binary", (arm, taken), "&", s.line)
            names: Names = dict(now)
            put: Stores = {}
            self.open.append(put)
            self.run(body, names, taken, put)
            self.open.pop()
            ways.append((names, put))
        (then, given), (orelse, other) = ways
        for name in sorted(then.keys() | orelse.keys()):
            a, b = then.get(name), orelse.get(name)
            if a is None or b is None:  # who reads it has come by the way that gives it a value
                now[name] = a or b or name
            elif a != b:
                now[name] = self.chosen(name, (test, Var(a), Var(b)), arm, s.line)
        for array in sorted(given.keys() | other.keys()):
            index, value = self.both(array, given, other, test, arm, s.line)
            self.put(Store(Var(array), index, value, s.line), stores)

    def flag(self, op: str, args: tuple[Operand, ...], detail: str, line: int) -> Operand:
        """A new bool."""
        made = self.rt.emit(self.out, op, args, detail, line)
        self.rt.types[made.name] = types.boolean
        self.rt.assigned[made.name] = 1
        return made

    def chosen(self, name: str, args: tuple[Operand, ...], arm: Operand | None, line: int) -> str:
        """A new name for the value that one of two ways gives."""
        new = self.renamed(name)
        self.out.append(Let(new, "call", (Ref(choice, "choice"), *args), (), line))
        if arm is not None:
            self.arms.of[new] = arm
        return new

    def both(
        self, array: str, put: Stores, other: Stores, test: Operand, arm: Operand | None, line: int
    ) -> tuple[Operand, Operand]:
        """(index, value) of one store instead of one in each arm, or instead of one in some arm."""
        rt = self.rt
        definitions = {x.target: x for x in self.out if isinstance(x, Let)}
        index = (put.get(array) or other[array])[0]
        if array in put and array in other:
            place = self.place_of(index, definitions)
            if place is None or place != self.place_of(other[array][0], definitions):
                raise Declined
        values = []
        for stores in (put, other):
            values.append(stores[array][1] if array in stores else self.before(array, index, line))
        new = rt.fresh("chosen")
        rt.types[new] = rt.types[array].dtype
        rt.assigned[new] = 1
        if rt.is_active(Var(array)):
            rt.active.add(new)
        self.out.append(Let(new, "call", (Ref(choice, "choice"), test, *values), (), line))
        if arm is not None:
            self.arms.of[new] = arm
        return index, Var(new)

    def before(self, array: str, index: Operand, line: int) -> Operand:
        """What an element holds that an iteration does not store to."""
        rt = self.rt
        self.arms.partly.add(array)
        source, birth = array, rt.values.births.get(array)
        if birth is not None and birth.made.op == "method" and birth.made.detail == ("copy", ()):
            origin = birth.made.args[0]
            if isinstance(origin, Var) and rt.values.follows(array, origin.name, self.loop):
                source = origin.name
        elif birth is not None and getattr(birth.made.args[0], "value", None) in (np.zeros, np.zeros_like):
            if rt.values.follows(array, None, self.loop):
                return Const(0.0)
        new = rt.fresh("before")
        rt.types[new] = rt.types[array].dtype
        rt.assigned[new] = 1
        if rt.is_active(Var(source)):
            rt.active.add(new)
        self.out.append(Let(new, "item", (Var(source), index), None, line))
        self.arms.guarded.add(new)
        return Var(new)


__all__ = ["Arms", "Declined", "straightened"]
