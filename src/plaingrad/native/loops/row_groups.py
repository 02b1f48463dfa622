"""Loop fusion of arithmetic on rows inside a loop, with reductions in between: a few loops over elements, no arrays.

    for i in range(n):
        row = x[i] - np.max(x[i])
        e = np.exp(row)
        out[i] = e / np.sum(e)

Every vector here is used in this iteration only. On the way forward the elementwise statements become as few loops as
the reductions between them allow, each of which does what the statements do, element by element in their order, so
that the bits are the same. On the way back it is likewise. Elements that are cheap are computed where they are read;
what is expensive (exp, ...), and what a jump of a slope depends on, lies in a row of a buffer that is made in front
of the loop, one row for each iteration if the way back reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.core import config, types

from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.loops.row_loops import Group
from plaingrad.native.loops.row_questions import reduced
from plaingrad.native.lowering.fused_reductions import Trees
from plaingrad.native.program.dispatchers import options_of
from plaingrad.native.program.ir import Const, For, Let, Loop, Operand, Stmt, Store, Var, breaks

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

NUMBERS = ("binary", "unary", "copy", "compare", "item", "attribute", "tuple")


class RowGroups(Trees):
    """The runs of statements on rows that reverse mode turns into loops over elements."""

    def __init__(self, rt: Reverse) -> None:
        super().__init__(rt.exploded, rt.memory)
        self.rt = rt
        options = options_of(rt.source.function)
        self.is_off = bool(
            options.get("boundscheck") or config.BOUNDSCHECK
        )  # elements are not looked for twice

    def find(self, body: list[Stmt], taken: set[int]) -> tuple[dict[int, Group], set[int]]:
        """(the groups in `body` by the place of their last statement, the places of their other statements).

        Args:
            body: a run of statements.
            taken: the places of those that belong to something else.
        """
        loop = self.loop_around()
        found: dict[int, Group] = {}
        gone: set[int] = set()
        if loop is None or self.is_off:
            return found, gone
        start = 0
        for at in range(len(body) + 1):
            if at < len(body) and at not in taken and self.fits(body[at]):
                continue
            run = body[start:at]
            if any(self.is_vector_work(s) for s in run):
                group = Group(self, loop, run)
                if group.is_sound():
                    group.plan()
                    found[at - 1] = group
                    gone.update(range(start, at - 1))
            start = at + 1
        return found, gone

    def loop_around(self) -> For | None:
        """The counted loop, differentiated in its general form, whose body is at hand."""
        around = self.rt.enclosing
        loops = [s for s in around if isinstance(s, (For, Loop))]
        if not loops or not any(s is around[0] for s in self.rt.exploded.body):
            return None  # an iteration of a loop in a special form keeps nothing
        loop = loops[-1]
        counted = isinstance(loop, For) and loop.step == Const(1) and not breaks(loop.body)
        return loop if counted else None  # type: ignore[return-value]

    # -- statements ------------------------------------------------------------------------------------------------

    def fits(self, s: Stmt) -> bool:
        """Whether a statement may be one of a group."""
        if isinstance(s, Store):
            return self.is_row_store(s) or (self.is_number(s.value) and self.is_element(s))
        if not isinstance(s, Let):
            return False
        return self.is_vector_work(s) or self.is_view(s) or self.is_number_work(s)

    def is_vector_work(self, s: Stmt) -> bool:
        """Whether a statement makes a vector element by element, or a number of a vector."""
        if not isinstance(s, Let):
            return False
        if self.is_elementwise(s, 1):
            return all(not self.is_array(a) or self.types[a.name].ndim == 1 for a in s.args)  # type: ignore[union-attr]
        return reduced(s) is not None and self.is_vector(reduced(s))

    def is_number(self, x: Operand) -> bool:
        """Whether an operand is a number."""
        t = self.types.get(x.name) if isinstance(x, Var) else None
        return isinstance(x, Const) or isinstance(types.unliteral(t), (types.Number, types.Boolean))

    def is_array(self, x: Operand | None) -> bool:
        """Whether an operand is an array."""
        return isinstance(x, Var) and isinstance(self.types.get(x.name), types.Array)

    def is_vector(self, x: Operand | None) -> bool:
        """Whether an operand is a vector of float64."""
        t = self.types.get(x.name) if isinstance(x, Var) else None
        return isinstance(t, types.Array) and (t.ndim, t.dtype) == (1, types.float64)

    def is_element(self, s: Store) -> bool:
        """Whether a store changes one element."""
        t = self.types.get(s.array.name) if isinstance(s.array, Var) else None
        return isinstance(t, types.Array) and len(self.places(s.index) or ()) == t.ndim

    def is_row_store(self, s: Store) -> bool:
        """Whether a store puts a vector into a row."""
        t = self.types.get(s.array.name) if isinstance(s.array, Var) else None
        if not isinstance(t, types.Array) or t.dtype != types.float64 or not self.is_vector(s.value):
            return False
        places = self.places(s.index)
        return places is not None and len(places) == t.ndim - 1

    def is_view(self, s: Let) -> bool:
        """Whether a statement takes a row of an array."""
        if s.op != "item" or not self.is_array(s.args[0]) or not self.is_vector(Var(s.target)):
            return False
        whole = self.types[s.args[0].name]  # type: ignore[union-attr]
        places = self.places(s.args[1])
        return bool(places) and len(places) == whole.ndim - 1 and self.assigned.get(s.target) == 1  # type: ignore[arg-type]

    def places(self, index: Operand) -> tuple[Operand, ...] | None:
        """The whole numbers in front in an index, behind which there is nothing, or one slice of everything.

        None of any other index: of one with another slice, an array of indices, a mask.
        """
        parts: tuple[Operand, ...] = (index,)
        if isinstance(index, Var) and isinstance(self.types.get(index.name), types.BaseTuple):
            made = self.rt.definitions.get(index.name)
            if made is None or made.op != "tuple":
                return None
            parts = made.args
        if parts and self.is_everything(parts[-1]):
            parts = parts[:-1]
        whole = all(
            isinstance(types.unliteral(self.types.get(x.name)), types.Integer)
            and self.assigned.get(x.name, 0) <= 1
            if isinstance(x, Var)
            else isinstance(x, Const) and type(x.value) is int
            for x in parts
        )
        return parts if whole else None

    def is_everything(self, x: Operand) -> bool:
        """Whether an operand is the slice `:`."""
        made = self.rt.definitions.get(x.name) if isinstance(x, Var) else None
        return made is not None and made.op == "slice" and all(a == Const(None) for a in made.args)

    def is_number_work(self, s: Let) -> bool:
        """Whether a statement computes a number, or an index, of numbers, and does nothing else."""
        t = types.unliteral(self.types.get(s.target))
        if isinstance(t, types.SliceType):
            return s.op == "slice"
        simple = isinstance(t, (types.Number, types.Boolean))
        if isinstance(t, types.BaseTuple):
            simple = all(isinstance(types.unliteral(x), (types.Integer, types.SliceType)) for x in t.types)
        if not simple:
            return False
        if s.op in NUMBERS:
            return s.op in ("item", "attribute") or not any(map(self.is_array, s.args))
        f = getattr(s.args[0], "value", None) if s.op == "call" else None
        plain = isinstance(f, np.ufunc) or getattr(f, "__module__", "") in ("math", "builtins")
        return plain and not s.detail and not is_users(f) and not any(map(self.is_array, s.args))


__all__ = ["RowGroups"]
