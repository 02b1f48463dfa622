"""What a statement may raise inside of a `try`, and how that is known before: the test that it passes.

Compiled code goes on with the handler where a division by zero, a matrix that cannot be factored, or shapes that do
not go together raise. Here that becomes a branch. What is neither known to raise nothing nor has a test is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.program.builder import Draft
from plaingrad.native.program.ir import Const, Do, InPlace, Let, Operand, Ref, Stmt, Store, Var, value_of
from plaingrad.native.program.value_types import type_of_value
from plaingrad.native.runtime import attempts

QUIET_OPS = ("copy", "tuple", "slice", "attribute", "unary", "list", "getiter", "iternext", "pair_first")
QUIET_BUILTINS = (float, int, bool, complex, abs, round, len, enumerate, zip, print, isinstance)
QUIET_OF_NUMPY = (
    np.zeros_like,
    np.ones_like,
    np.empty_like,
    np.copy,
    np.asarray,
    np.ascontiguousarray,
    np.sum,
    np.prod,
    np.mean,
    np.var,
    np.std,
    np.cumsum,
    np.ravel,
    np.transpose,
    np.trace,
    np.ndindex,
    np.ndenumerate,
)
QUIET_METHODS = frozenset(
    ("append", "copy", "sum", "prod", "mean", "var", "std", "cumsum", "ravel", "flatten", "transpose")
)
OF_SOME = (np.min, np.max, np.amin, np.amax, np.argmin, np.argmax)  # which raise where there is nothing
METHODS_OF_SOME = frozenset(("min", "max", "argmin", "argmax"))
OF_SHAPES = (np.zeros, np.ones, np.empty, np.full, np.eye, np.identity)
PRODUCTS = (np.dot, np.matmul)


@dataclass(slots=True)
class Test:
    """Statements that find out whether a statement raises nothing, and the operand that says so."""

    setup: list[Stmt]
    passed: Operand


class Tests:
    """The tests of one function's statements.

    Attributes:
        draft: the function.
        divides: whether a division by zero raises.
        checks: whether indices are checked.
        bound: variable that is a method -> the statement that takes it of its object.
    """

    def __init__(self, draft: Draft, options: dict[str, Any], body: dict[Any, list[Stmt]]) -> None:
        self.draft = draft
        self.divides = options.get("error_model", "python") == "python"
        self.checks = bool(options.get("boundscheck"))
        lets = (s for block in body.values() for s in block if isinstance(s, Let))
        self.bound = {s.target: s for s in lets if s.op == "attribute"}

    def of(self, s: Stmt) -> Test | None:
        """The test that `s` raises nothing, None where it cannot.

        Raises:
            NativeError: neither is known.
        """
        self.draft.line = s.line
        if isinstance(s, Do):
            return self.of_call(s.call)
        if isinstance(s, Let):
            if s.op in ("binary", "compare"):
                return self.of_operation(s)
            if s.op == "item":
                return self.of_item(s.args[0], s.args[1])
            if s.op == "call":
                return self.of_call(s)
            if s.op in QUIET_OPS or s.op == "pair_second":
                return None
        if isinstance(s, Store) and not self.is_array(s.value):
            return self.of_item(s.array, s.index)
        if isinstance(s, InPlace) and not self.is_array(s.value):
            return None
        raise self.refused("a write of an array into another")

    def refused(self, what: str) -> Exception:
        """The error that says that `what` is not taken."""
        return self.draft.refuse(f"{what}, inside of a `try` that catches what it raises,")

    def type(self, a: Operand) -> Any:
        """The type of an operand; None of what has none."""
        if isinstance(a, Var):
            return self.draft.types.get(a.name)
        try:
            return type_of_value(a.value)
        except Exception:  # what Numba does not know
            return None

    def is_array(self, a: Operand) -> bool:
        """Whether an operand is an array."""
        return isinstance(self.type(a), types.Array)

    def let(self, base: str, t: Any, op: str, args: tuple[Operand, ...], detail: Any = None) -> Let:
        """A new variable."""
        return Let(self.draft.fresh(base, t), op, args, detail, self.draft.line)

    def compared(self, a: Operand, symbol: str, b: Operand, setup: tuple[Stmt, ...] = ()) -> Test:
        """The test that `a` compares so with `b`."""
        ok = self.let("ok", types.boolean, "compare", (a, b), symbol)
        return Test([*setup, ok], Var(ok.target))

    def asked(self, f: Any, *args: Operand, setup: tuple[Stmt, ...] = ()) -> Test:
        """The test that a function of `attempts` is true."""
        ok = self.let("ok", types.boolean, "call", (Ref(f, f.__name__), *args), ())
        return Test([*setup, ok], Var(ok.target))

    def of_operation(self, s: Let) -> Test | None:
        """The test of an operation of two numbers or arrays."""
        a, b = s.args[:2]
        arrays = [x for x in (a, b) if self.is_array(x)]
        if s.detail == "@":
            return self.of_product(a, b)
        if len(arrays) == 2:
            return self.of_shapes(a, b)
        lists = (types.List, types.BaseTuple, types.UnicodeType)
        if any(isinstance(self.type(x), lists) for x in (a, b)) and s.op == "binary":
            raise self.refused(f"`{s.detail}` of lists, tuples or strings")
        if s.detail == "**" and self.divides and not arrays:
            return self.of_power(a, b)
        if arrays or s.op == "compare" or s.detail not in ("/", "//", "%") or not self.divides:
            return None
        if isinstance(b, Const):
            return None if b.value else self.compared(Const(1), "==", Const(0))
        return self.compared(b, "!=", Const(0))

    def of_power(self, a: Operand, b: Operand) -> Test | None:
        """The test that a power with a whole exponent is no division by zero: Numba multiplies, then divides."""
        if not isinstance(self.type(b), types.Integer) or isinstance(self.type(a), types.Complex):
            return None
        if not isinstance(b, Const):
            raise self.refused("a power with a whole exponent that is not known")
        if b.value >= 0:
            return None
        t = self.type(a) if isinstance(self.type(a), types.Float) else types.int64
        power = self.let("power", t, "binary", (a, Const(-b.value)), "**")
        return self.compared(Var(power.target), "!=", Const(0), (power,))

    def of_shapes(self, a: Operand, b: Operand) -> Test | None:
        """The test that two arrays go together elementwise."""
        kinds = [self.type(x) for x in (a, b)]
        if not all(t.ndim for t in kinds):
            return None
        shapes = [self.shape(x) for x in (a, b)]
        return self.asked(attempts.go_together, *[Var(s.target) for s in shapes], setup=tuple(shapes))

    def shape(self, a: Operand) -> Let:
        """A variable for the shape of an array."""
        t: Any = self.type(a)
        return self.let("shape", types.UniTuple(types.int64, t.ndim), "attribute", (a,), "shape")

    def of_product(self, a: Operand, b: Operand) -> Test | None:
        """The test that a product of vectors and matrices has as many terms on both sides."""
        if not (self.is_array(a) and self.is_array(b)):
            raise self.refused("this product")
        shapes = [self.shape(x) for x in (a, b)]
        places = (Const(self.type(a).ndim - 1), Const(max(self.type(b).ndim - 2, 0)))
        n, m = (
            self.let("n", types.int64, "item", (Var(s.target), k))
            for s, k in zip(shapes, places, strict=True)
        )
        return self.compared(Var(n.target), "==", Var(m.target), (*shapes, n, m))

    def of_item(self, owner: Operand, index: Operand) -> Test | None:
        """The test of `owner[index]`."""
        t, k = self.type(owner), self.type(index)
        if isinstance(t, types.Array):
            parts = k.types if isinstance(k, types.BaseTuple) else (k,)
            if any(isinstance(part, types.Array) for part in parts):
                raise self.refused("an index that is an array")
            if not self.checks:
                return None
            if t.ndim == 1 and isinstance(k, types.Integer):
                return self.asked(attempts.has_place, owner, index)
            raise self.refused("this index, which is checked")
        if isinstance(t, types.BaseTuple) and (isinstance(index, Const) or isinstance(k, types.Literal)):
            return None
        if isinstance(t, types.List) and isinstance(k, types.Integer):
            n = self.let("n", types.int64, "call", (Const(len), owner), ())
            return self.asked(attempts.is_place, index, Var(n.target), setup=(n,))
        if isinstance(t, types.List) and isinstance(k, types.SliceType) and not k.has_step:
            return None
        raise self.refused(f"an element of {t}")

    def of_call(self, s: Let) -> Test | None:
        """The test of a call that is no function of the user's."""
        callee, args = s.args[0], s.args[1:]
        f = value_of(callee)
        if isinstance(callee, Var):
            made = self.bound.get(callee.name)
            if made is not None:
                return self.of_method(made.args[0], made.detail, args)
        elif self.is_quiet(f, args):
            return None
        elif getattr(f, "__module__", "") == "math" or isinstance(f, np.ufunc):
            arrays = [a for a in args if self.is_array(a)]
            if len(arrays) < 2:
                return None
            if len(arrays) == 2 and len(args) == 2:
                return self.of_shapes(*arrays)
        elif isinstance(f, type) and issubclass(f, np.generic):
            return None
        elif is_one(f, OF_SHAPES) and len(args) > len(s.detail or ()):
            return self.asked(attempts.may_have_shape, args[0])
        elif is_one(f, OF_SOME) and len(args) == 1:
            return self.of_some(args[0])
        elif is_one(f, PRODUCTS) and len(args) == 2:
            return self.of_product(*args)
        elif f is np.array and isinstance(getattr(self.type(args[0]), "dtype", None), types.Number):
            return None
        elif (asked := attempts.asked_before(f)) is not None and not s.detail:
            return self.asked(asked, *args)
        raise self.refused(f"`{getattr(f, '__name__', getattr(callee, 'name', 'a call'))}`")

    def is_quiet(self, f: Any, args: tuple[Operand, ...]) -> bool:
        """Whether a call of a function of Python or NumPy raises nothing."""
        if is_one(f, QUIET_OF_NUMPY):
            return self.fits(args[0], args[1:])
        if f is range:
            return len(args) < 3 or bool(value_of(args[2]))
        if f is np.arange:
            return len(args) < 3
        if f is min or f is max:
            return len(args) > 1
        texts = any(isinstance(self.type(a), types.UnicodeType) for a in args)
        return is_one(f, QUIET_BUILTINS) and not texts

    def fits(self, a: Operand, more: tuple[Operand, ...]) -> bool:
        """Whether the numbers in `more`, if there are any, are axes of the array `a`."""
        n = getattr(self.type(a), "ndim", 0)
        numbers = [x for x in more if isinstance(self.type(x), types.Integer)]
        return all(isinstance(x, Const) and -n <= x.value < n for x in numbers)

    def of_method(self, owner: Operand, name: str, args: tuple[Operand, ...]) -> Test | None:
        """The test of a method."""
        if name in METHODS_OF_SOME and self.is_array(owner) and not args:
            return self.of_some(owner)
        if name in QUIET_METHODS and (name == "append" or self.fits(owner, args)):
            return None
        raise self.refused(f"`.{name}`")

    def of_some(self, a: Operand) -> Test | None:
        """The test that an array has elements."""
        if not self.is_array(a):
            raise self.refused("this call")
        size = self.let("size", types.int64, "attribute", (a,), "size")
        return self.compared(Var(size.target), ">", Const(0), (size,))


def is_one(f: Any, several: tuple[Any, ...]) -> bool:
    """Whether `f` is one of `several`."""
    return any(f is one for one in several)


__all__ = ["Test", "Tests"]
