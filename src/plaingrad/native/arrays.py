"""Rules of whole arrays: elementwise operations, reductions, products, creation.

A rule is `rule(r, s, z, back, args)`: `r` the transform, `s` the statement, `z` the cotangent of its result; `back` is
the list to which the reverse statements go, `args` are the operands as they will be on the way back (arrays that are
written later are copies). `r.emit(back, op, args, detail, line)` makes a value, `r.add(back, x, term, line)` adds to a
cotangent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native import array_helpers as helpers
from plaingrad.native.activity import is_array, is_real
from plaingrad.native.tree import Const, InPlace, Let, Operand, Ref, Stmt, Var

Rule = Callable[..., None]
RULES: dict[Any, Rule] = {}  # a function, or ("method", name), or the symbol of an operator -> its rule
CREATION = frozenset(
    (np.zeros, np.empty, np.ones, np.zeros_like, np.empty_like, np.ones_like, np.arange, np.eye, np.identity)
)


def rule(*keys: Any) -> Callable[[Rule], Rule]:
    """Enter a rule for each of `keys`."""

    def enter(f: Rule) -> Rule:
        for key in keys:
            RULES[key] = f
        return f

    return enter


def reverse(r: Any, s: Let) -> Any:
    """The parts of a statement whose operands or result are arrays."""
    from plaingrad.native.reverse import Parts

    t = r.types.get(s.target)
    forward: list[Stmt] = []
    back: list[Stmt] = []
    args = s.args
    key: Any = s.detail if s.op == "binary" else ("method", s.detail[0]) if s.op == "method" else None
    if s.op == "call":
        key = getattr(s.args[0], "value", None)
    made: list[Stmt] = [s]
    if is_array(t):
        made.append(r.zeros(s.target))
    if key in CREATION and s.op == "call":
        return Parts(made)
    z = Var(f"{s.target}_b")
    found = RULES.get(key)
    if found is None and (s.op in ("binary", "unary", "call")) and is_array(t):
        found = elementwise
    if found is None:
        name = getattr(key, "__name__", None) or (key[1] if isinstance(key, tuple) else key or s.op)
        raise r.refuse(f"`{name}` of arrays", s.line)
    active = [a for a in args if r.is_active(a)]
    kept = tuple(r.kept(a, forward, s.line) if active else a for a in args)
    found(r, s, z, back, kept)
    if is_real(t):
        back.append(Let(z.name, "copy", (r.zero(t),), None, s.line))
    return Parts([*forward, *made], back)


def forward(t: Any, s: Let, out: list[Stmt]) -> None:
    """A statement whose operands or result are arrays, with the tangent of its result."""
    z = f"{s.target}_d"
    key: Any = s.detail if s.op == "binary" else ("method", s.detail[0]) if s.op == "method" else None
    if s.op == "call":
        key = getattr(s.args[0], "value", None)
    out.append(s)
    kind = t.types.get(s.target)
    if key in CREATION and s.op == "call":
        out.append(t.nothing(s.target))
        return
    if key in LINEAR:
        first = 1 if s.op == "call" else 0
        args = list(s.args)
        x_dot = t.dot(args[first])
        args[first] = x_dot
        for a in s.args[first + 1 :]:
            if t.is_active(a):
                raise t.refuse("an argument with a derivative", s.line)
        out.append(Let(z, s.op, tuple(args), s.detail, s.line))
        return
    if key in BILINEAR:
        first = 1 if s.op == "call" else 0
        total: Operand | None = None
        for k in (first, first + 1):
            x_dot = t.dot(s.args[k])
            if x_dot is not None:
                args = [x_dot if n == k else a for n, a in enumerate(s.args)]
                term = t.emit(out, s.op, tuple(args), s.detail, s.line)
                total = term if total is None else t.emit(out, "binary", (total, term), "+", s.line)
        out.append(Let(z, "copy", (total,), None, s.line))
        return
    if key in (np.full, np.full_like):
        x_dot = t.dot(s.args[2])
        args = tuple(x_dot if k == 2 else a for k, a in enumerate(s.args))
        out.append(Let(z, "call", args, s.detail, s.line))
        return
    if s.op in ("binary", "unary", "call") and is_array(kind) and not (s.op == "call" and s.detail):
        t.scalar(s, z, out)
        return
    name = getattr(key, "__name__", None) or (key[1] if isinstance(key, tuple) else key or s.op)
    raise t.refuse(f"`{name}` of arrays", s.line)


LINEAR = frozenset(
    (
        np.sum,
        ("method", "sum"),
        np.mean,
        ("method", "mean"),
        np.copy,
        ("method", "copy"),
        ("method", "flatten"),
    )
    + (np.array, np.diag, np.cumsum, np.trace, np.real, np.imag, np.conj, np.conjugate)
)
BILINEAR = frozenset((np.dot, "@", ("method", "dot"), np.matmul, np.outer, np.kron))


def keyword(s: Let, name: str, position: int | None = None) -> Operand | None:
    """An argument of a call or method by its name, or position behind the first operand; None if it is not given."""
    names = s.detail if s.op == "call" else s.detail[1]
    first = 1
    if names and name in names:
        return s.args[len(s.args) - len(names) + names.index(name)]
    positional = s.args[first : len(s.args) - len(names or ())]
    if position is not None and position < len(positional):
        return positional[position]
    return None


def elementwise(r: Any, s: Let, z: Var, back: list[Stmt], args: tuple[Operand, ...]) -> None:
    """z = f(x, y) element by element: x_bar += z_bar * conj(dz/dx), summed over broadcast axes."""
    if s.op == "call" and s.detail:
        raise r.refuse("a keyword argument of an elementwise function", s.line)
    target = s.target
    if r.memory.is_written(target) and _reads_result(r, s):
        raise r.refuse("a result that is needed on the way back and written later", s.line)
    again = Let(target, s.op, args, s.detail, s.line)
    shape = r.exploded.types
    for new, old in zip(args, s.args, strict=True):  # a kept copy is as active as what it was copied from
        if new is not old and r.is_active(old):
            r.active.add(new.name)
            shape[new.name] = shape[old.name]
    slopes = r.slopes(again, back)
    for position, slope in slopes:
        x = s.args[position]
        term = r.times(back, z, slope, s.line)
        spread(r, back, x, term, s.line)


def _reads_result(r: Any, s: Let) -> bool:
    from plaingrad.native import scalars

    if s.op == "binary":
        return s.detail in ("/", "**") and r.is_active(s.args[1])
    f = getattr(s.args[0], "value", None)
    row = scalars.row_of(f) or ()
    return any(callable(p) and len(s.args) in scalars.reads(p) for p in row)


def spread(r: Any, back: list[Stmt], x: Operand, term: Operand, line: int) -> None:
    """Add a term of the shape of a result to the cotangent of an operand that was broadcast to it."""
    if not is_array(r.type_of(x)):
        term = r.emit(back, "call", (Ref(helpers.total, "total"), term), (), line)
    r.add(back, x, term, line)


@rule(np.sum, ("method", "sum"))
def sum_rule(r: Any, s: Let, z: Var, back: list[Stmt], args: tuple[Operand, ...]) -> None:
    """z = sum(x): x_bar += z_bar, along the axis that was summed."""
    x = _first(s)
    axis = keyword(s, "axis", 1 if s.op == "call" else 0)
    bar = Var(f"{x.name}_b")
    if axis is None or axis == Const(None):
        back.append(InPlace(bar, "+", z, s.line))
        return
    term = r.emit(back, "call", (Ref(helpers.expanded, "expanded"), z, bar, axis), (), s.line)
    r.add(back, x, term, s.line)


@rule(np.mean, ("method", "mean"))
def mean_rule(r: Any, s: Let, z: Var, back: list[Stmt], args: tuple[Operand, ...]) -> None:
    """z = mean(x): x_bar += z_bar / size."""
    x = _first(s)
    if keyword(s, "axis", 1 if s.op == "call" else 0) is not None:
        raise r.refuse("`mean` along an axis", s.line)
    bar = Var(f"{x.name}_b")
    size = r.emit(back, "attribute", (bar,), "size", s.line)
    back.append(InPlace(bar, "+", r.emit(back, "binary", (z, size), "/", s.line), s.line))


@rule(np.dot, "@", ("method", "dot"), np.matmul)
def dot_rule(r: Any, s: Let, z: Var, back: list[Stmt], args: tuple[Operand, ...]) -> None:
    """z = a @ b of vectors and matrices."""
    shift = 1 if s.op == "call" else 0
    a, b = s.args[shift : shift + 2]
    a_now, b_now = args[shift : shift + 2]
    if r.is_active(a):
        term = r.emit(back, "call", (Ref(helpers.dot_bar_a, "dot_bar_a"), z, a_now, b_now), (), s.line)
        r.add(back, a, term, s.line)
    if r.is_active(b):
        term = r.emit(back, "call", (Ref(helpers.dot_bar_b, "dot_bar_b"), z, a_now, b_now), (), s.line)
        r.add(back, b, term, s.line)


@rule(np.copy, ("method", "copy"), ("method", "flatten"), np.array)
def copy_rule(r: Any, s: Let, z: Var, back: list[Stmt], args: tuple[Operand, ...]) -> None:
    """z = copy(x)."""
    x = _first(s)
    bar = r.emit(
        back,
        "method",
        (z, r.emit(back, "attribute", (Var(f"{x.name}_b"),), "shape", s.line)),
        ("reshape", ()),
        s.line,
    )
    r.add(back, x, bar, s.line)


@rule(np.full, np.full_like)
def full_rule(r: Any, s: Let, z: Var, back: list[Stmt], args: tuple[Operand, ...]) -> None:
    """z = full(shape, x): x_bar += sum(z_bar)."""
    x = keyword(s, "fill_value", 1)
    if x is not None and r.is_active(x):
        r.add(back, x, r.emit(back, "call", (Ref(helpers.total, "total"), z), (), s.line), s.line)


def _first(s: Let) -> Any:
    return s.args[1] if s.op == "call" else s.args[0]


__all__ = ["CREATION", "RULES", "keyword", "reverse", "rule", "types"]
