"""Forward rules of functions and methods of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import Const, Do, Let, Operand, Ref, Stmt, Var
from plaingrad.native.program.value_types import has_tangent, is_array
from plaingrad.native.rules import scalars
from plaingrad.native.rules.array_indexing import MAYBE_VIEWS
from plaingrad.native.rules.arrays import (
    CREATION,
    EACH,
    JOINS,
    ROWS,
    SAME,
    Row,
    call,
    has_row,
    key_of,
    name_of,
    operands_of,
    ordering,
    parts_of,
    real_vectors,
    refuse_numbers,
    refuse_options,
    refuse_written_copies,
)
from plaingrad.native.runtime import array_helpers as helpers
from plaingrad.native.runtime import reduction_helpers


def forward_writes(t: Any, s: Let, out: list[Stmt]) -> None:
    """A method that writes into an active array, with its tangent."""
    bar = Var(f"{s.args[0].name}_d")  # type: ignore[union-attr]
    if s.detail == ("fill", ()):
        x_dot = t.dot(s.args[1])
        filled = Let("_", "method", (bar, Const(0.0) if x_dot is None else x_dot), s.detail, s.line)
        out += [s, Do(filled, s.line)]
        return
    if s.detail == ("sort", ()) and real_vectors(t.type_of(s.args[0])):
        order = ordering(t, s)
        again = Let(
            "_", "call", (Ref(reduction_helpers.resort, "resort"), bar, Var(order.target)), (), s.line
        )
        out += [order, s, Do(again, s.line)]
        return
    raise t.refuse(f"`{name_of(s)}`, which writes into an array,", s.line)


def forward(t: Any, s: Let, out: list[Stmt]) -> None:
    """A statement whose operands or result are arrays, with the tangent of its result."""
    z = t.d(s.target)
    key = key_of(s)
    kind = t.types.get(s.target)
    if t.lane is None and (not out or out[-1] is not s):
        out.append(s)
    if s.op == "call" and key in CREATION:
        refuse_numbers(t, s)
        out.append(t.nothing(s.target))
        return
    if s.op == "call" and scalars.is_constant(key, [t.type_of(a) for a in s.args]):
        out.append(t.nothing(s.target))
        return
    if key is np.broadcast_to:
        refuse_written_copies(t, s, key, out)
    given = [Var(name) for name in parts_of(t, s)[0]] if s.op == "call" and key in JOINS else s.args
    if not any(map(t.is_active, given)) and not isinstance(kind, types.BaseTuple):
        out.append(t.nothing(s.target))  # only what is written into it later has a tangent
        return
    if s.op == "item":
        out.append(Let(z, "item", (t.dot(s.args[0]), s.args[1]), None, s.line))
    elif s.op == "call" and key in JOINS:
        forward_join(t, s, z, out)
    elif s.op == "call" and key is helpers.array_of:
        dots = [t.dot(x) or Const(0.0) for x in s.args[1:]]
        found = call(t, out, helpers.array_of, *dots, line=s.line)
        out.append(Let(z, "call", (Ref(helpers.fitted, "fitted"), Var(s.target), found), (), s.line))
    elif s.op == "call" and key in (np.full, np.full_like):
        x_dot = t.dot(s.args[2]) if len(s.args) > 2 else None
        if x_dot is None:
            raise t.refuse(f"this form of `{name_of(s)}`", s.line)
        out.append(Let(z, "call", (Ref(helpers.fitted, "fitted"), Var(s.target), x_dot), (), s.line))
    elif has_row(key):
        forward_row(t, s, ROWS[key], z, kind, out)
    elif s.op in ("binary", "unary", "call") and is_array(kind):
        refuse_options(t, s)
        found = summed(t, s, out)
        if found is None:
            out.append(t.nothing(s.target))
        else:
            out.append(Let(z, "call", (Ref(helpers.fitted, "fitted"), Var(s.target), found), (), s.line))
    else:
        raise t.refuse(f"`{name_of(s)}` of arrays", s.line)


def summed(t: Any, s: Let, out: list[Stmt]) -> Operand | None:
    """The sum of dz/dx * x_dot of an elementwise function."""
    total: Operand | None = None
    for position, slope in t.slopes(s, out):
        x_dot = t.dot(s.args[position])
        if x_dot is None:
            continue
        if slope == -1:
            x_dot = t.emit(out, "unary", (x_dot,), "-", s.line)
        elif slope != 1:
            x_dot = t.emit(out, "binary", (slope, x_dot), "*", s.line)
        total = x_dot if total is None else t.emit(out, "binary", (total, x_dot), "+", s.line)
    return total


def forward_row(t: Any, s: Let, made: Row, z: str, kind: Any, out: list[Stmt]) -> None:
    """The tangent of the result of a function that has a row."""
    given = operands_of(t, s, made)
    first = 1 if s.op == "call" else 0
    if made.dot is SAME:
        args = list(s.args)
        args[first] = t.dot(args[first])
        found = t.emit(out, s.op, tuple(args), s.detail, s.line)
    elif made.dot is EACH:
        terms: list[Operand] = []
        for k in (first, first + 1):
            x_dot = t.dot(s.args[k])
            if x_dot is not None:
                args = [x_dot if n == k else a for n, a in enumerate(s.args)]
                terms.append(t.emit(out, s.op, tuple(args), s.detail, s.line))
        found = terms[0] if len(terms) == 1 else t.emit(out, "binary", tuple(terms), "+", s.line)
    else:
        dots: list[Operand] = []
        for name in made.bars:
            x = given[name]
            x_dot = t.dot(x)
            if x_dot is None and isinstance(t.type_of(x), types.Array):
                x_dot = t.emit(out, "call", (Ref(np.zeros_like, "zeros_like"), x), (), s.line)
            dots.append(Const(0.0) if x_dot is None else x_dot)
        args = [*dots, Var(s.target), *given.values()]
        found = call(t, out, made.dot, *args[: made.dot.__code__.co_argcount], line=s.line)
    if isinstance(kind, types.BaseTuple):
        for k, part in enumerate(kind):
            leaf = f"{s.target}_p{k}"
            if has_tangent(part):
                out.append(Let(t.d(leaf), "item", (found, Const(k)), None, s.line))
    elif is_array(kind) and (made.dot is not SAME or name_of(s) in MAYBE_VIEWS):
        out.append(Let(z, "call", (Ref(helpers.fitted, "fitted"), Var(s.target), found), (), s.line))
    else:
        out.append(Let(z, "copy", (found,), None, s.line))


def forward_join(t: Any, s: Let, z: str, out: list[Stmt]) -> None:
    """The tangents joined."""
    names, _, _ = parts_of(t, s)
    dots: list[Operand] = []
    for name in names:
        x_dot = t.dot(Var(name))
        if x_dot is None:
            x_dot = t.emit(out, "call", (Ref(np.zeros_like, "zeros_like"), Var(name)), (), s.line)
        dots.append(x_dot)
    joined = t.emit(out, "tuple", tuple(dots), None, s.line)
    args = tuple(joined if k == 1 else a for k, a in enumerate(s.args))
    out.append(Let(z, "call", args, s.detail, s.line))
