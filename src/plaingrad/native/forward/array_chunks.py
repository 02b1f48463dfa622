"""Chunks of tangents of whole arrays: the rules that have a loop over all lanes at once.

What has none here is pushed forward lane by lane, by the rules of `plaingrad.native.rules.arrays`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.forward import chunk_arrays
from plaingrad.native.program.ir import Const, Do, InPlace, Let, Operand, Ref, Stmt, Var
from plaingrad.native.program.value_types import is_array
from plaingrad.native.rules import arrays, scalars
from plaingrad.native.runtime import array_helpers

COPIES = frozenset((np.copy, ("method", "copy")))
SUMS = frozenset((np.sum, ("method", "sum")))
PRODUCTS = frozenset((np.dot, np.matmul, "@", ("method", "dot")))
SPECIAL = (array_helpers.array_of, np.full, np.full_like, *arrays.JOINS)


def push(t: Any, s: Let, out: list[Stmt]) -> bool:
    """The tangent of the result of a statement that was put out; False if there is no loop for it."""
    key = arrays.key_of(s)
    z = f"{s.target}_d"
    width = Const(t.n)
    if s.op == "call" and (key in arrays.CREATION or scalars.is_constant(key, list(map(t.type_of, s.args)))):
        if key in arrays.CREATION:
            arrays.refuse_numbers(t, s)
        out.append(t.nothing(s.target))
        return True
    if not any(map(t.is_active, s.args)):  # the name is that of active memory on another way
        out.append(t.nothing(s.target))
        return True
    args: list[Operand] = list(s.args)
    first = args[1] if s.op == "call" and len(args) > 1 else args[0]
    options = s.detail[1] if s.op == "method" else s.op == "call" and s.detail
    alone = len(s.args) == (2 if s.op == "call" else 1) and not options
    if s.op == "item":  # by an array of places: a copy
        out.append(Let(z, "item", (t.dot(first), args[1]), None, s.line))
    elif _in(key, COPIES) and alone:
        out.append(Let(z, "call", (Ref(chunk_arrays.copied, "copied"), t.dot(first)), (), s.line))
    elif _in(key, SUMS) and alone:
        out.append(Let(z, "call", (Ref(chunk_arrays.total, "total"), t.dot(first), width), (), s.line))
    elif _in(key, PRODUCTS) and not options and _is_product(t, s):
        product(t, s, z, out)
    elif (
        s.op in ("binary", "unary", "call")
        and is_array(t.types.get(s.target))
        and not (_in(key, SPECIAL) or _in(key, arrays.ROWS))
    ):
        elementwise(t, s, z, out)
    else:
        return False
    return True


def _in(key: Any, found: Any) -> bool:
    try:
        return key in found
    except TypeError:
        return False


def elementwise(t: Any, s: Let, z: str, out: list[Stmt]) -> None:
    """z_dot = the sum of dz/dx * x_dot, element by element."""
    arrays.refuse_options(t, s)
    slopes = t.slopes(s, out)
    out.append(t.nothing(s.target))
    for position, slope in slopes:
        x_dot = t.dot(s.args[position])
        if x_dot is None:
            continue
        add(Var(z), Const(float(slope)) if slope in (1, -1) else slope, x_dot, s.line, out)


def add(target: Var, slope: Operand, x_dot: Operand, line: int, out: list[Stmt]) -> None:
    """target += slope * x_dot."""
    args = (Ref(chunk_arrays.add_scaled, "add_scaled"), target, slope, x_dot)
    out.append(Do(Let("_", "call", args, (), line), line))


def _is_product(t: Any, s: Let) -> bool:
    a, b = (t.type_of(x) for x in s.args[-2:])
    return is_array(a) and is_array(b) and a.ndim in (1, 2) and b.ndim in (1, 2)


def product(t: Any, s: Let, z: str, out: list[Stmt]) -> None:
    """z = a @ b: z_dot = a_dot @ b + a @ b_dot."""
    a, b = s.args[-2:]
    terms: list[Operand] = []
    for x, other, f in ((a, b, chunk_arrays.left_product), (b, a, chunk_arrays.right_product)):
        x_dot = t.dot(x)
        if x_dot is not None:
            terms.append(arrays.call(t, out, f, x_dot, other, line=s.line))
    if len(terms) == 1:
        out.append(Let(z, "copy", (terms[0],), None, s.line))
    elif isinstance(t.types[s.target], types.Array):
        out.append(Let(z, "copy", (terms[0],), None, s.line))
        add(Var(z), Const(1.0), terms[1], s.line, out)
    else:
        out.append(Let(z, "binary", tuple(terms), "+", s.line))


def change(t: Any, s: InPlace, target: Var, x_dot: Operand | None, out: list[Stmt]) -> None:
    """array op= value, before it is done: what becomes of the tangent of the array."""
    line = s.line
    if s.op in "+-":
        if x_dot is not None:
            add(target, Const(1.0 if s.op == "+" else -1.0), x_dot, line, out)
        return
    factor: Operand = s.value
    slope: Operand = s.array
    if s.op == "/":
        factor = t.emit(out, "binary", (Const(1.0), s.value), "/", line)
        square = t.emit(out, "binary", (s.value, s.value), "*", line)
        slope = t.emit(out, "binary", (s.array, square), "/", line)
        slope = t.emit(out, "unary", (slope,), "-", line)
    if x_dot is None:
        call = (Ref(chunk_arrays.scale, "scale"), target, factor)
    else:
        call = (Ref(chunk_arrays.blend, "blend"), target, factor, slope, x_dot)
    out.append(Do(Let("_", "call", call, (), line), line))
