"""Loop fusion of elementwise expressions on whole arrays, in reverse mode: one loop forward, one loop back.

`h = np.maximum(x @ w + b, 0.0)` is one loop on the way forward, which does for every element what the statements do,
in their order, so the bits are the same. On the way back one loop computes again what the slopes read, and adds to the
cotangents of all operands; arrays in between have no cotangent of their own. What is expensive to compute again (exp,
a power, ...) and read by a slope, and what a jump of a slope depends on and rounding might move, stays an array.

Operands may have fewer axes than the result, or axes of length 1. One that is broadcast along its last axis is copied
first, so that every loop runs along memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba.core import types

from plaingrad.native.loops import array_sums
from plaingrad.native.loops.array_trees import Tree
from plaingrad.native.lowering.fused_reductions import Trees
from plaingrad.native.program.ir import (
    Let,
    Stmt,
    Var,
)

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


class ArrayLoops(Trees):
    """The elementwise expressions of a program that reverse mode turns into loops.

    Attributes:
        rt: the reverse transform.
        cut: the arrays that stay arrays although only one expression reads them.
    """

    def __init__(self, rt: Reverse) -> None:
        super().__init__(rt.exploded, rt.memory)
        self.rt = rt
        self.cut: set[str] = set()

    def find(self, body: list[Stmt], taken: set[int]) -> tuple[dict[int, Tree], set[int]]:
        """(the expressions in `body` by the place of the array that they end in, the places of what leads to them).

        Args:
            body: a run of statements.
            taken: the places of those that belong to something else.
        """
        found: dict[int, Tree] = {}
        gone: set[int] = set(taken)
        for at in range(len(body) - 1, -1, -1):
            root = body[at]
            if at in gone or not isinstance(root, Let):
                continue
            sum_of = array_sums.added_up(self.rt, root)
            if sum_of is None and not self.may_end(root):
                continue
            while True:
                whole = root.target if sum_of is None else sum_of.array.name
                places = self.tree(body, at, self.types[whole].ndim)
                nodes = [body[k] for k in places]
                if not self.is_plain_tree(nodes):  # type: ignore[arg-type]
                    break
                if sum_of is not None and not array_sums.pays(sum_of, len(nodes)):
                    break
                tree = (
                    Tree(self, nodes, root)
                    if sum_of is None
                    else array_sums.SumTree(self, nodes[:-1], root, sum_of)  # type: ignore[arg-type]
                )
                if not tree.to_cut:
                    found[at] = tree
                    gone.update(places[:-1])
                    self.name_shapes_after(tree)
                    break
                self.cut |= tree.to_cut
        return found, gone - taken

    def name_shapes_after(self, tree: Tree) -> None:
        """Let the shapes that are known to be those of an array that is no longer made be those of the root."""
        roots, end = self.rt.values.root, tree.root.target
        old = roots.get(end, end)
        if any(s.target == old for s in tree.nodes[:-1]):
            roots.update({name: end for name, root in roots.items() if root == old})

    def may_end(self, s: Let) -> bool:
        """Whether the result of `s` is an array that a loop may make."""
        t = self.types.get(s.target)
        if not isinstance(t, types.Array) or not 1 <= t.ndim <= 3 or t.layout != "C":
            return False
        return self.rt.is_active(Var(s.target)) and self.is_elementwise(s, t.ndim)

    def only_for(self, s: Let, users: list[Stmt]) -> bool:
        """Whether nothing but `users` reads the result of `s`."""
        if s.target in self.cut or s.target in self.rt.results or self.memory.is_written(s.target):
            return False
        if self.is_column(Var(s.target)):  # computed once for a row, not for each of its elements
            readers = self.readers.get(s.target, [])
            if not all(isinstance(r, Let) and self.is_column(Var(r.target)) for r in readers):
                return False
        return super().only_for(s, users)

    def is_plain_tree(self, nodes: list[Let]) -> bool:
        """Whether the arrays that a tree takes its elements from are in C order."""
        leaves = self.leaves(nodes)
        return bool(leaves) and all(self.types[x.name].layout == "C" for x in leaves)


__all__ = ["ArrayLoops", "Tree"]
