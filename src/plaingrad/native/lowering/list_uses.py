"""How a program uses its lists of numbers: whether they can be arrays with room to spare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import (
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
)

METHODS = {  # name -> the numbers of operands, the list among them
    "append": (2,),
    "extend": (2,),
    "insert": (3,),
    "pop": (1, 2),
    "clear": (1,),
    "reverse": (1,),
    "sort": (1,),
}


LENGTHENING = ("append", "extend", "insert")


SHORTENING = ("pop", "clear")


REDUCTIONS = (sum, min, max)


AS_ARRAYS = (np.array, np.asarray)


def is_list(t: Any) -> bool:
    """Whether `t` is a type of lists of numbers."""
    return isinstance(t, types.List) and isinstance(t.dtype, (types.Number, types.Boolean))


@dataclass(slots=True)
class _Place:
    """A statement and where it stands."""

    s: Any
    path: Path


class Uses:
    """How the lists of a program are used, and which of them can be arrays."""

    def __init__(self, program: Program, lists: set[str]) -> None:
        self.lists = lists
        self.kinds = program.types
        self.made: dict[str, list[_Place]] = {}
        self.changed: dict[str, list[_Place]] = {}
        self.copies: list[tuple[str, str, _Place]] = []
        self.bad = lists & set(program.params)
        if is_list(program.result):
            self.bad |= lists
        self.count = 0
        self._body(program.body, ())

    def convertible(self) -> set[str]:
        """The lists that can be arrays."""
        for target, source, place in self.copies:
            if target in self.changed or not self._is_finished(source, place):
                self.bad |= {target, source}
        grown = True
        while (
            grown
        ):  # a list that stays makes those stay that it is copied from or to, or is put together with
            more = {name for group in self.groups for name in group if group & self.bad} - self.bad
            self.bad |= more
            grown = bool(more)
        return self.lists - self.bad

    def _is_finished(self, name: str, copy: _Place) -> bool:
        """Whether the length of a list is not changed any more when it gets a second name."""
        changes = self.changed.get(name, [])
        if not changes:
            return True
        if len(self.made.get(name, [])) != 1:
            return False
        outer, (block, start) = self.made[name][0].path[:-1], self.made[name][0].path[-1]
        depth = len(outer)
        end = copy.path[-1]
        if copy.path[:-1] != outer or end[0] != block or end[1] < start:
            return False
        return all(
            p.path[:depth] == outer and len(p.path) > depth and p.path[depth][0] == block
            and start < p.path[depth][1] < end[1] for p in changes)  # fmt: skip

    @property
    def groups(self) -> list[set[str]]:
        """Lists that are arrays together or not at all."""
        return [{target, source} for target, source, _ in self.copies] + self.together

    together: list[set[str]]

    def _body(self, body: list[Stmt], path: Path) -> None:
        if not path:
            self.together = []
        self.count += 1
        block = self.count
        for k, s in enumerate(body):
            here = (*path, (block, k))
            self._statement(s, _Place(s, here))
            if isinstance(s, If):
                self._body(s.then, here)
                self._body(s.orelse, here)
            elif isinstance(s, (For, Loop)):
                self._body(s.body, here)

    def _statement(self, s: Stmt, place: _Place) -> None:
        call = s.call if isinstance(s, Do) else s
        used = {a.name for a in operands(s) if isinstance(a, Var) and a.name in self.lists}
        if isinstance(s, (Store, InPlace)):
            if isinstance(s, Store) and s.array in map(Var, self.lists) and isinstance(
                self._type(s.index), (types.Integer, types.Boolean)) and not isinstance(s.value, Ref):  # fmt: skip
                used -= {s.array.name}  # type: ignore[union-attr]
            self.bad |= used
            return
        if not isinstance(call, Let):
            self.bad |= used
            return
        if isinstance(s, Let) and s.target in self.lists:
            self.made.setdefault(s.target, []).append(place)
            if s.op == "copy":
                if isinstance(s.args[0], Var) and s.args[0].name in self.lists:
                    self.copies.append((s.target, s.args[0].name, place))
                else:
                    self.bad.add(s.target)
                return
            if not self._makes(s):
                self.bad |= used | {s.target}
            self.together.append({s.target, *used})
            return
        if used and not self._reads(call, place):
            self.bad |= used

    def _type(self, a: Operand) -> Any:
        if isinstance(a, Var):
            return self.kinds.get(a.name)
        return types.int64 if isinstance(a, Const) and isinstance(a.value, int) else None

    def _is_one(self, a: Operand) -> bool:
        return isinstance(a, Var) and a.name in self.lists

    def _makes(self, s: Let) -> bool:
        """Whether a new list is made in a way that is known."""
        if s.op == "list":
            return not any(map(self._is_one, s.args))
        if s.op == "binary" and s.detail == "+":
            return all(map(self._is_one, s.args))
        if s.op == "binary" and s.detail == "*":
            return self._is_one(s.args[0]) and isinstance(self._type(s.args[1]), types.Integer)
        if s.op == "item":
            return self._is_one(s.args[0]) and isinstance(self._type(s.args[1]), types.SliceType)
        return s.op == "method" and s.detail == ("copy", ())

    def _reads(self, s: Let, place: _Place) -> bool:
        """Whether a statement uses its only list in a way that is known."""
        if s.op == "item":
            return self._is_one(s.args[0]) and isinstance(self._type(s.args[1]), types.Integer)
        if s.op == "call" and isinstance(s.args[0], Const) and s.args[0].value in (len, bool, *REDUCTIONS):
            return len(s.args) == 2 and not s.detail
        if s.op == "call" and isinstance(s.args[0], Ref) and s.args[0].value in AS_ARRAYS:
            return len(s.args) == 2 and not s.detail
        if s.op != "method" or not self._is_one(s.args[0]) or s.detail[1]:
            return False
        name, count = s.detail[0], len(s.args)
        known = count in METHODS.get(name, ())
        if name in ("append", "insert") and self._is_one(s.args[-1]):
            return False
        if name == "extend":
            known = known and self._is_one(s.args[1]) and s.args[1] != s.args[0]
            if known:
                self.together.append({s.args[0].name, s.args[1].name})  # type: ignore[union-attr]
        if name in LENGTHENING + SHORTENING:
            self.changed.setdefault(s.args[0].name, []).append(place)  # type: ignore[union-attr]
        return known


Path = tuple[tuple[int, int], ...]  # of a statement: (which list, place in it), from the outside in
