"""Heads of loops: what a loop iterates over, and whether it may change it."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numba.core import types

from plaingrad.native.frontend.list_names import ListNames
from plaingrad.native.frontend.operands import is_range
from plaingrad.native.program.builder import Draft
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    Let,
    Loop,
    Operand,
    Ref,
    Stmt,
    Var,
    operands,
    statements,
    value_of,
)
from plaingrad.native.runtime.helpers import trips

STEPS = ("iternext", "pair_first", "pair_second")
PURE = ("binary", "unary", "compare", "copy")
OVER_INDICES = (np.ndindex, np.ndenumerate, np.nditer)


class LoopHeads:
    """Questions about one loop."""

    def __init__(self, draft: Draft, body: list[Stmt]) -> None:
        self.draft = draft
        self.definitions = {s.target: s for s in statements(body) if isinstance(s, Let)}
        self.lists = ListNames(draft, body)
        self.assigned = Counter(s.target for s in statements(body) if isinstance(s, (Let, For)))
        self.reads = Counter(a.name for s in statements(body) for a in operands(s) if isinstance(a, Var))

    def _begun_once(self, body: list[Stmt]) -> list[Stmt]:
        """`body` of which parts are `for` loops whose body always leaves them: it runs once, if there are items."""
        steps = {(s.op, s.args[0]): s.target for s in body if isinstance(s, Let) and s.op in STEPS}
        out: list[Stmt] = []
        bound: dict[Operand, list[Stmt]] = {}  # whether there is an item -> what takes it
        for s in body:
            if isinstance(s, Let) and s.op == "iternext":
                self.draft.line = s.line
                item, test = steps.get(("pair_first", Var(s.target))), steps["pair_second", Var(s.target)]
                k, setup, bounds, bind = self._iterated(s.args[0], item)
                bound[Var(test)] = [Let(k, "copy", bounds[:1], None, s.line), *bind]
                n = self.draft.fresh("n", types.int64)
                out += [*setup, Let(n, "call", (Ref(trips, "trips"), *bounds), (), s.line)]
                out.append(Let(test, "compare", (Const(0), Var(n)), "<", s.line))
            elif isinstance(s, If) and s.test in bound:
                out.append(If(s.test, [*bound[s.test], *s.then], s.orelse, s.line))
            elif not (isinstance(s, Let) and s.op in STEPS):
                out.append(s)
        return out

    def _begins_inside(self, iterator: Operand, body: list[Stmt]) -> bool:
        """Whether an iterator is made by one of the statements of `body`."""
        inside = {id(s) for s in body}
        while isinstance(iterator, Var) and (made := self.definitions.get(iterator.name)) is not None:
            if id(made) in inside:
                return True
            if made.op != "copy":
                return False
            iterator = made.args[0]
        return False

    def _only_iterates(self, s: Let) -> bool:
        """Whether a statement makes what a counted loop has made superfluous: a range, an iterator."""
        if s.op == "copy" or (s.op == "call" and s.args[0] in (Const(enumerate), Const(zip))):
            return isinstance(self.draft.types.get(s.target), types.IteratorType)
        made = value_of(s.args[0]) if s.op == "call" else None
        return s.op == "getiter" or (s.op == "call" and is_range(s.args[0])) or made in OVER_INDICES

    def _changes_its_list(self, iterator: Operand, body: list[Stmt], loop: Loop) -> bool:
        """Whether the body of a loop over a list may change its length, so that it is not a counted loop."""
        under, seen, lists = [iterator], set(), []
        while under:
            a = under.pop()
            if a in seen:  # variables that change names in a loop
                continue
            seen.add(a)
            t = self.draft.type_of(a)
            made = self.definitions.get(a.name) if isinstance(a, Var) else None
            if isinstance(t, types.List):
                lists.append(a)
            elif made is not None and (made.op in ("copy", "getiter") or isinstance(t, types.IteratorType)):
                under += made.args
        for s in statements(body) if lists else ():
            call = s.call if isinstance(s, Do) else s
            if (
                isinstance(call, Let)
                and call.op in ("call", "method")
                and not isinstance(call.args[0], Const)
            ):
                given = [a for a in call.args if isinstance(self.draft.type_of(a), types.List)]
                if any(self.lists.may_be_one(a, b, loop) for a in given for b in lists):
                    self.draft.line = s.line
                    return True
        return False

    def _may_sink(self, before: list[Stmt], then: list[Stmt]) -> bool:
        """Whether statements before the test of a loop may as well stand behind it, at the top of the body."""
        inside = Counter(
            a.name for s in statements([*before, *then]) for a in operands(s) if isinstance(a, Var)
        )
        return all(
            isinstance(s, Let) and s.op in PURE and self.reads[s.target] == inside[s.target] for s in before
        )

    def _only_definition(self, x: Operand) -> Let | None:
        """The statement that assigns a variable; None if there are several, or none."""
        return self.definitions.get(x.name) if isinstance(x, Var) and self.assigned[x.name] == 1 else None
