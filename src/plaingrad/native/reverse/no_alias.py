"""Alias analysis at loops that swap buffers (`u, v = v, u`): which names cannot share memory.

The classes of `activity.Memory` hold for the whole program: two buffers that change names are one class. Here every
array is followed from where it is made, statement by statement: a name stands for a *thing*, and names that stand for
different things share no memory. Around a loop the arrays that it carries are things of their own if they are
different when it begins, and an iteration leaves a permutation of them, or new arrays, behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.analysis.memory import Memory
from plaingrad.native.program.ir import For, If, Let, Loop, Program, Ref, Stmt, breaks, statements
from plaingrad.native.rules import arrays

Things = dict[
    str, Any
]  # name of an array -> the thing it stands for; a name that is missing may stand for anything


class Distinct:
    """For every counted loop of a program, what each array name stands for where it begins."""

    def __init__(self, program: Program, memory: Memory, leaves: set[str]) -> None:
        self.kinds = program.types
        self.memory = memory
        self.leaves = leaves
        self.count = 0
        self.at: dict[int, Things] = {}
        # arrays that arrive as arguments share no memory if any is written: such calls are refused at the border
        state = {name: name for name in leaves if isinstance(self.kinds.get(name), types.Array)}
        self._body(program.body, state)

    def are(self, a: str, b: str, loop: For) -> bool:
        """Whether the arrays `a` and `b` surely share no memory throughout `loop`, which assigns no arrays."""
        if self.memory.of(a) != self.memory.of(b):
            return True
        things = self.at.get(id(loop), {})
        return a in things and b in things and things[a] != things[b]

    def _new(self, name: str) -> Any:
        self.count += 1
        return name, self.count

    def _body(self, body: list[Stmt], state: Things) -> None:
        for s in body:
            if isinstance(s, Let):
                self._let(s, state)
            elif isinstance(s, If):
                one, other = dict(state), dict(state)
                self._body(s.then, one)
                self._body(s.orelse, other)
                state.clear()
                state.update({name: thing for name, thing in one.items() if other.get(name) == thing})
            elif isinstance(s, (For, Loop)):
                self._loop(s, state)

    def _let(self, s: Let, state: Things) -> None:

        if not isinstance(self.kinds.get(s.target), types.Array) or s.target in self.leaves:
            return
        sources = self.memory.sources(s)
        state.pop(s.target, None)
        if len(sources) == 1 and sources[0] in state:  # another name, or a view
            state[s.target] = state[sources[0]]
        elif not sources and makes_new(s):
            state[s.target] = self._new(s.target)

    def _loop(self, s: For | Loop, state: Things) -> None:
        if isinstance(s, For):
            self.at[id(s)] = dict(state)
        assigned = {x.target for x in statements(s.body) if isinstance(x, Let)}
        carried = sorted(name for name in assigned if name in state)
        entry = [state[name] for name in carried]
        # another name of what is carried on is left unknown: the loop may exchange what it stands for
        kept = {name: thing for name, thing in state.items() if name not in assigned and thing not in entry}
        carried = [name for name in carried if entry.count(state[name]) == 1]
        while True:
            begin = {**kept, **{name: self._new(name) for name in carried}}
            end = dict(begin)
            self._body(s.body, end)
            left = [end.get(name) for name in carried]
            fine = [
                name
                for name in carried
                if end.get(name) is not None and left.count(end[name]) == 1 and end[name] not in kept.values()
            ]
            if fine == carried:
                break
            carried = fine
        state.clear()
        state.update(kept)
        if not breaks(s.body):
            state.update({name: begin[name] for name in carried})


__all__ = ["Distinct"]


FRESH = arrays.CREATION | {np.copy, np.full, np.full_like}


def makes_new(s: Let) -> bool:
    """Whether a statement whose result is an array surely makes new memory for it."""
    if s.op in ("binary", "unary"):
        return True
    if s.op == "method":
        return s.detail == ("copy", ())
    f = s.args[0].value if s.op == "call" and isinstance(s.args[0], Ref) else None
    if isinstance(f, np.ufunc):
        return not s.detail and len(s.args) - 1 <= f.nin
    return f is not None and f in FRESH
