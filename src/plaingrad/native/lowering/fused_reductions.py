"""Sums of elementwise expressions as loops: np.sum(a * b + np.sin(c)) without an array for every operation.

The statements of such an expression become one loop (or nest) over the elements, with a number for every array in
between. It adds in the order in which Numba's `np.sum` adds, so the value is the same to the last bit; on the way back
there are no arrays in between either. Where the shapes of the operands, compared when the program runs, differ, the
statements are left as they were: they broadcast, or raise NumPy's error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.analysis.memory import Memory
from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.program.ir import (
    Const,
    For,
    Let,
    Operand,
    Program,
    Ref,
    Stmt,
    Var,
    operands,
    statements,
    with_inner,
)
from plaingrad.native.runtime.declare import register_jitable

SYMBOLS = {
    "/": np.true_divide,
    "**": np.power,
}  # where Python's operators on numbers differ from those on arrays
FUNCTIONS = frozenset(
    (
        np.exp,
        np.log,
        np.sin,
        np.cos,
        np.tan,
        np.tanh,
        np.sinh,
        np.cosh,
        np.sqrt,
        np.log1p,
        np.expm1,
        np.abs,
        np.fabs,
    )
    + (
        np.maximum,
        np.minimum,
        np.square,
        np.arctan,
        np.add,
        np.subtract,
        np.multiply,
        np.divide,
        np.negative,
        np.power,
    )
    + (np.logaddexp, np.hypot, np.reciprocal)
)
LIMIT = 3  # axes


def in_loops(program: Program) -> Program:
    """`program` with sums and means of elementwise expressions as loops, but for those that reverse mode makes of them.

    Those are sums of rows in a loop (`row_groups`) and of expressions that are broadcast (`array_sums`).
    """
    return _Chains(program, False).whole()


def every_one_in_loops(program: Program) -> Program:
    """`program` with all sums and means of elementwise expressions as loops."""
    return _Chains(program, True).whole()


class Trees:
    """Finds elementwise expressions: trees of statements of which only the last result is used elsewhere."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self.program = program
        self.types = program.types
        self.memory = memory
        self.readers: dict[str, list[Stmt]] = {}
        self.assigned: dict[str, int] = {}
        self.made: dict[str, Let] = {}  # how arrays are made
        for s in statements(program.body):
            for name in {a.name for a in operands(s) if isinstance(a, Var)}:
                self.readers.setdefault(name, []).append(s)
            if isinstance(s, (Let, For)):
                self.assigned[s.target] = self.assigned.get(s.target, 0) + 1
            if isinstance(s, Let):
                self.made[s.target] = s

    def tree(self, body: list[Stmt], at: int, ndim: int) -> list[int]:
        """The places in `body` of the statement at `at` and of the elementwise ones of its rank that only it needs."""
        found = [at]
        rebound: set[Operand] = set()  # variables with another value behind a place than in front of it
        for k in range(at - 1, -1, -1):
            s = body[k]
            if not isinstance(s, Let):
                break
            wanted = any(Var(s.target) in operands(body[j]) for j in found) and rebound.isdisjoint(s.args)
            if wanted and self.is_elementwise(s, ndim) and self.only_for(s, [body[j] for j in found]):
                found.append(k)
            elif self.is_silent(s):
                rebound |= {Var(s.target)} if self.assigned[s.target] > 1 else set()
            else:
                break
        return sorted(found)

    def is_elementwise(self, s: Let, ndim: int) -> bool:
        """Whether `s` is an elementwise operation on float64, with a result of so many axes."""
        t = self.types.get(s.target)
        if not isinstance(t, types.Array) or (t.ndim, t.dtype) != (ndim, types.float64):
            return False
        if s.op == "call":
            f = getattr(s.args[0], "value", None)
            try:
                if f not in FUNCTIONS and f is not abs or s.detail or self.memory.outputs(s):
                    return False
            except TypeError:
                return False
        elif s.op == "binary":
            if s.detail not in ("+", "-", "*", "/", "**"):
                return False
        elif s.op != "unary" or s.detail not in ("-", "+"):
            return False
        if self.assigned.get(s.target, 0) != 1 or s.target in self.program.params:
            return False
        args = s.args[1:] if s.op == "call" else s.args
        return all(isinstance(a, Const) and type(a.value) in (int, float) or self.is_plain(a) for a in args)

    def is_plain(self, a: Operand) -> bool:
        """Whether an operand is a variable: a number that is a float or integer, or an array of float64."""
        t = self.types.get(a.name) if isinstance(a, Var) else None
        if isinstance(t, types.Array):
            return t.dtype == types.float64 and t.ndim > 0
        return isinstance(t, (types.Float, types.Integer)) and not isinstance(t, types.Boolean)

    def only_for(self, s: Let, users: list[Stmt]) -> bool:
        """Whether nothing but `users` reads the result of `s`."""
        return all(any(r is u for u in users) for r in self.readers.get(s.target, []))

    def is_silent(self, s: Let) -> bool:
        """Whether `s` does nothing but compute a value, so that what comes before may as well come behind it."""
        users = s.op == "call" and is_users(getattr(s.args[0], "value", None))
        return not users and not self.memory.outputs(s)

    def is_column(self, x: Operand) -> bool:
        """Whether an array surely has 1 for the length of its last axis, of several.

        So has the result of `reshape(..., 1)`, `expand_dims(..., -1)` or `[..., None]`, and arithmetic on such arrays.
        """
        t = self.types.get(x.name) if isinstance(x, Var) else None
        made = self.made.get(x.name) if isinstance(x, Var) and self.assigned.get(x.name) == 1 else None
        if not isinstance(t, types.Array) or t.ndim < 2 or made is None:
            return False
        if self.is_elementwise(made, t.ndim):
            arrays = [
                a for a in made.args if isinstance(a, Var) and isinstance(self.types.get(a.name), types.Array)
            ]
            return all(map(self.is_column, arrays))
        if made.op == "method" and made.detail == ("reshape", ()):
            return self.last_of(made.args[-1], len(made.args) == 2) == Const(1)
        if made.op == "item":
            return self.ends_with_new_axis(made)
        if made.op == "call" and getattr(made.args[0], "value", None) is np.expand_dims:
            return len(made.args) == 3 and made.args[2] in (Const(-1), Const(t.ndim - 1))
        return False

    def ends_with_new_axis(self, s: Let) -> bool:
        """Whether `s` is a[:, None] or the like."""
        index = s.args[1]
        tuple_of = self.made.get(index.name) if isinstance(index, Var) else None
        if tuple_of is None or tuple_of.op != "tuple" or self.assigned.get(tuple_of.target) != 1:
            return False
        old = [part for part in tuple_of.args if part != Const(None)]
        t = self.types.get(s.args[0].name) if isinstance(s.args[0], Var) else None
        return tuple_of.args[-1] == Const(None) and isinstance(t, types.Array) and t.ndim == len(old)

    def last_of(self, x: Operand, may_be_tuple: bool) -> Operand:
        """The last operand of the tuple that a variable is; the operand itself otherwise."""
        made = self.made.get(x.name) if may_be_tuple and isinstance(x, Var) else None
        once = made is not None and self.assigned.get(made.target) == 1
        return made.args[-1] if once and made.op == "tuple" and made.args else x  # type: ignore[union-attr]

    def leaves(self, tree: list[Let]) -> list[Var]:
        """The arrays that a tree takes its elements from."""
        inside = {s.target for s in tree}
        found: list[Var] = []
        for s in tree:
            for a in operands(s):
                is_array = isinstance(a, Var) and isinstance(self.types.get(a.name), types.Array)
                if is_array and a.name not in inside and a not in found:  # type: ignore[union-attr]
                    found.append(a)  # type: ignore[arg-type]
        return found


class _Chains(Trees):
    def __init__(self, program: Program, every: bool) -> None:
        super().__init__(program, Memory(program))
        self.every = every
        self.types = dict(program.types)
        self.count = 0
        self.depth = 0  # loops around

    def whole(self) -> Program:
        """The program with its loops."""
        body = self.body(self.program.body)
        return replace(self.program, body=body, types=self.types)

    def fresh(self, base: str, t: Any) -> str:
        """A new variable of type `t`."""
        name = base
        while name in self.types:
            self.count += 1
            name = f"{base}_{self.count}"
        self.types[name] = t
        return name

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """A run of statements."""
        gone: set[int] = set()
        made: dict[int, list[Stmt]] = {}
        for at in range(len(body) - 1, -1, -1):
            tree = self.summed_tree(body, at)
            if tree:
                made[at] = self.loop(body, at, tree)
                gone.update(tree)
        out: list[Stmt] = []
        for at, s in enumerate(body):
            if at in made:
                out += made[at]
            elif at in gone:
                continue
            else:
                self.depth += isinstance(s, For)
                out.append(with_inner(s, self.body))
                self.depth -= isinstance(s, For)
        return out

    def summed_tree(self, body: list[Stmt], at: int) -> list[int]:
        """The places in `body` of the elementwise statements that only the reduction at `at` needs."""
        root = body[at]
        whole = summed(root)
        t = self.types.get(whole.name) if whole is not None else None
        if not isinstance(t, types.Array) or not 1 <= t.ndim <= LIMIT or not isinstance(root, Let):
            return []
        found = self.tree(body, at, t.ndim)
        leaves = self.leaves([body[k] for k in found])  # type: ignore[misc]
        plain = all(
            self.types[x.name].layout == "C" and self.types[x.name].dtype == types.float64 for x in leaves
        )
        if not plain or (not self.every and self.is_left(body, leaves)):
            return []
        return found[:-1]

    def is_left(self, body: list[Stmt], leaves: list[Var]) -> bool:
        """Whether reverse mode makes better loops of a sum."""
        broadcast = len({self.types[x.name].ndim for x in leaves}) > 1 or any(map(self.is_column, leaves))
        return (broadcast and not self.depth) or self.is_of_rows(body, leaves)

    def is_of_rows(self, body: list[Stmt], leaves: list[Var]) -> bool:
        """Whether elements come from vectors that each iteration makes in `body`: then `row_groups` makes the loops."""
        if not self.depth or any(self.types[x.name].ndim != 1 for x in leaves):
            return False
        made = [
            s for s in body if isinstance(s, Let) and Var(s.target) in leaves and self.is_elementwise(s, 1)
        ]
        return bool(made) and all(self.is_used_here(s, body) for s in made)

    def is_used_here(self, s: Let, body: list[Stmt]) -> bool:
        """Whether nothing but arithmetic in `body` reads the vector that `s` makes, or stores it."""
        for reader in self.readers.get(s.target, []):
            if not any(reader is x for x in body):
                return False
            if isinstance(reader, Let) and reader.op in ("copy", "tuple", "item", "list"):
                return False
        return True

    # -- what is made of it ----------------------------------------------------------------------------------------

    def loop(self, body: list[Stmt], at: int, tree: list[int]) -> list[Stmt]:
        """The loop for the reduction at `at`, with the statements as they were where shapes differ."""
        root, nodes = body[at], [body[k] for k in tree]
        assert isinstance(root, Let)
        leaves = self.leaves([*nodes, root])  # type: ignore[list-item]
        ndim = max(self.types[x.name].ndim for x in leaves)
        first = next(x for x in leaves if self.types[x.name].ndim == ndim)
        before: list[Stmt] = []
        shapes = {x: self.shape(x, before, root.line) for x in leaves}
        lengths = shapes[first]
        for x in leaves:
            if x is not first:
                mine = shapes[x]
                start = ndim - len(mine)
                lengths = [
                    *lengths[:start],
                    *[
                        self.together(a, b, before, root.line)
                        for a, b in zip(lengths[start:], mine, strict=True)
                    ],
                ]
        steps = {
            x: [] if len(leaves) == 1 else [self.step(n, before, root.line) for n in shapes[x]]
            for x in leaves
        }
        return [*before, *self.nest(root, nodes, steps, lengths)]  # type: ignore[arg-type]

    def together(self, a: Operand, b: Operand, out: list[Stmt], line: int) -> Operand:
        """The length of an axis along which operands have the lengths `a` and `b`."""
        length = self.fresh("length", types.int64)
        out.append(Let(length, "call", (Ref(broadcast_length, "broadcast_length"), a, b), (), line))
        return Var(length)

    def step(self, length: Operand, out: list[Stmt], line: int) -> Operand:
        """How far to go in an axis of this length for every step in the loop."""
        step = self.fresh("step", types.int64)
        out.append(Let(step, "call", (Ref(axis_step, "axis_step"), length), (), line))
        return self.unsigned(Var(step), out, line)

    def unsigned(self, x: Operand, out: list[Stmt], line: int) -> Operand:
        """A whole number as one that is not negative: an index that is may be counted from the end."""
        found = self.fresh("far", types.uint64)
        out.append(Let(found, "call", (Ref(np.uint64, "uint64"), x), (), line))
        return Var(found)

    def shape(self, x: Var, out: list[Stmt], line: int) -> list[Operand]:
        """The lengths of the axes of an array."""
        ndim = self.types[x.name].ndim
        shape = self.fresh("shape", types.UniTuple(types.int64, ndim))
        out.append(Let(shape, "attribute", (x,), "shape", line))
        found: list[Operand] = []
        for axis in range(ndim):
            length = self.fresh("length", types.int64)
            out.append(Let(length, "item", (Var(shape), Const(axis)), None, line))
            found.append(Var(length))
        return found

    def nest(
        self, root: Let, nodes: list[Let], steps: dict[Var, list[Operand]], lengths: list[Operand]
    ) -> list[Stmt]:
        """The loops that add up, and the result."""
        line = root.line
        total, more = self.fresh("total", types.float64), self.fresh("more", types.float64)
        at = [self.fresh("k", types.int64) for _ in lengths]
        inner: list[Stmt] = []
        numbers: dict[Operand, Operand] = {}
        for x in steps:
            ndim = self.types[x.name].ndim
            places: list[Operand] = [Var(k) for k in at[-ndim:]]
            for axis, step in enumerate(steps[x]):
                place = Var(self.fresh("place", types.uint64))
                k = self.unsigned(places[axis], inner, line)
                inner.append(Let(place.name, "binary", (k, step), "*", line))
                places[axis] = place
            index = places[0]
            if ndim > 1:
                kind = types.uint64 if steps[x] else types.int64
                index = Var(self.fresh("place", types.UniTuple(kind, ndim)))
                inner.append(Let(index.name, "tuple", tuple(places), None, line))
            element = Var(self.fresh(f"{x.name}_each", types.float64))
            inner.append(Let(element.name, "item", (x, index), None, line))
            numbers[x] = element
        for s in nodes:
            element = Var(self.fresh(f"{s.target}_each", types.float64))
            inner.append(of_numbers(s, element.name, numbers))
            numbers[Var(s.target)] = element
        whole = summed(root)
        assert whole is not None
        inner += [
            Let(more, "binary", (Var(total), numbers[whole]), "+", line),
            Let(total, "copy", (Var(more),), None, line),
        ]
        for k, length in zip(at[::-1], lengths[::-1], strict=True):
            inner = [For(k, Const(0), length, Const(1), inner, line)]
        out: list[Stmt] = [Let(total, "copy", (Const(0.0),), None, line), *inner]
        if not is_mean(root):
            return [*out, Let(root.target, "copy", (Var(total),), None, line)]
        size: Operand = lengths[0]
        for length in lengths[1:]:
            product = Var(self.fresh("size", types.int64))
            out.append(Let(product.name, "binary", (size, length), "*", line))
            size = product
        args = (Ref(np.true_divide, "true_divide"), Var(total), size)
        return [*out, Let(root.target, "call", args, (), line)]


def of_numbers(s: Let, target: str, numbers: dict[Operand, Operand]) -> Let:
    """`s`, an elementwise operation, for one element of each array."""
    args = tuple(numbers.get(a, a) for a in s.args)
    by_products = s.detail == "**" and isinstance(s.args[-1], Const) and isinstance(s.args[-1].value, int)
    if (
        s.op == "binary" and s.detail in SYMBOLS and not by_products
    ):  # Numba multiplies for x**3, also of arrays
        f = SYMBOLS[s.detail]
        return Let(target, "call", (Ref(f, f.__name__), *args), (), s.line)
    if s.op == "call" and getattr(s.args[0], "value", None) is abs:
        return Let(target, "call", (Ref(np.abs, "abs"), *args[1:]), (), s.line)
    return Let(target, s.op, args, s.detail, s.line)


def summed(s: Stmt) -> Var | None:
    """The array of which `s` is the sum or mean over all elements."""
    if not isinstance(s, Let):
        return None
    if (
        s.op == "call"
        and len(s.args) == 2
        and not s.detail
        and getattr(s.args[0], "value", None) in (np.sum, np.mean)
    ):
        a = s.args[1]
    elif s.op == "method" and len(s.args) == 1 and s.detail[0] in ("sum", "mean"):
        a = s.args[0]
    else:
        return None
    return a if isinstance(a, Var) else None


def is_mean(s: Let) -> bool:
    """Whether a reduction is a mean rather than a sum."""
    return s.detail[0] == "mean" if s.op == "method" else s.args[0].value is np.mean  # type: ignore[union-attr]


@register_jitable
def axis_step(length):  # type: ignore[no-untyped-def]
    """How far to go in an axis for every step along the axis of the result that it is broadcast to."""
    return 0 if length == 1 else 1


@register_jitable
def broadcast_length(a, b):  # type: ignore[no-untyped-def]
    """The length of the axis that axes of the lengths a and b are broadcast to.

    Raises:
        ValueError: there is none.
    """
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    raise ValueError("operands could not be broadcast together")
