"""Divergence analysis of a block of iterations: which values differ among them, and so become packs."""

from __future__ import annotations

from numba.core import types

from plaingrad.native.loops.block_rows import Declined, Rows
from plaingrad.native.program.ir import If, Let, Operand, Store, Var, statements

GROWING = frozenset(("grown", "more"))


def called_name(s: Let) -> str:
    """The name of the function that a statement calls; "" if it calls none."""
    return getattr(getattr(s.args[0], "value", None), "__name__", "")


class Spreads(Rows):
    """What varies within a block."""

    def spread(self, scratch: set[str], tapes: set[str]) -> set[str]:
        """The variables that differ between iterations."""
        rt = self.rt
        found = {f"{x}_b" for x in self.bars}
        self.arrays |= {f"{x}_b" for x in self.bars if isinstance(rt.types.get(x), types.Array)}
        self.arrays |= scratch
        grew = True
        while grew:
            before = len(found) + len(self.arrays)
            for x in self.every:
                if isinstance(x, Let) and x.target not in self.family:
                    self.let_spreads(x, found)
                elif isinstance(x, Store) and self.varies(x.value, found) and isinstance(x.array, Var):
                    if x.array.name not in tapes and x.array.name not in self.arrays:
                        raise Declined
                    self.arrays.add(x.array.name)
                elif isinstance(x, If) and self.varies(x.test, found):
                    targets = {y.target for y in statements([*x.then, *x.orelse]) if isinstance(y, Let)}
                    found |= targets - self.family
            grew = len(found) + len(self.arrays) > before
        return found

    def let_spreads(self, x: Let, found: set[str]) -> None:
        """Add the target of an assignment to `found`, if it differs among the iterations."""
        if x.op == "tuple" and Var(self.s.target) in x.args[:1]:
            return
        if x.op == "item":
            array, index = x.args
            if self.is_row(index):
                if isinstance(self.rt.types.get(x.target), types.Array):
                    self.arrays.add(x.target)
                else:
                    found.add(x.target)
                return
            if isinstance(array, Var) and array.name in self.arrays:
                t = self.rt.types.get(x.target[:-2] if x.target.endswith("_b") else x.target)
                if isinstance(t, types.Array):
                    self.arrays.add(x.target)
                else:
                    found.add(x.target)
                return
        elif x.op == "call" and called_name(x) in GROWING:
            if any(isinstance(a, Var) and a.name in self.arrays for a in x.args):
                self.arrays.add(x.target)
            return
        elif x.op == "attribute":
            return
        if any(self.varies(a, found) for a in x.args):
            found.add(x.target)

    def varies(self, a: Operand, found: set[str] | None = None) -> bool:
        """Whether an operand differs between iterations."""
        return isinstance(a, Var) and a.name in (self.varying if found is None else found)
