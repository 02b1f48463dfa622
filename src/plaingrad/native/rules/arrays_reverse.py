"""Reverse rules of functions and methods of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import Const, Do, Let, Operand, Parts, Ref, Stmt, Var
from plaingrad.native.program.value_types import has_complex, is_array, is_real
from plaingrad.native.rules import scalars
from plaingrad.native.rules.array_indexing import index
from plaingrad.native.rules.arrays import (
    CREATION,
    JOINS,
    ROWS,
    Row,
    call,
    has_row,
    in_arena,
    key_of,
    name_of,
    number_at,
    operands_of,
    ordering,
    parts_of,
    real_vectors,
    refuse_options,
    refuse_written_copies,
    spread,
)
from plaingrad.native.runtime import array_helpers as helpers
from plaingrad.native.runtime import reduction_helpers
from plaingrad.native.runtime.products import ADDING


def reverse(r: Any, s: Let) -> Any:
    """The parts of a statement whose operands or result are arrays."""
    t = r.types.get(s.target)
    key = key_of(s)
    forward: list[Stmt] = []
    back: list[Stmt] = []
    after: list[Stmt] = [r.zeros(s.target)] if is_array(t) else []
    end: list[Stmt] = r.cleared(s.target) if is_array(t) else []
    if s.op == "call" and key in CREATION:
        if any(r.is_active(a) and not is_array(r.type_of(a)) for a in s.args):
            raise r.refuse(f"`{name_of(s)}` of numbers with derivatives", s.line)
        return Parts([s, *after], end)
    if s.op == "call" and scalars.is_constant(key, [r.type_of(a) for a in s.args]):
        return Parts([s, *after], end)
    refuse_written_copies(r, s, key, after)
    z = Var(f"{s.target}_b")
    if s.op == "item":
        index(r, s, z, after, back)
    elif s.op == "call" and key in JOINS:
        join(r, s, z, back)
    elif s.op == "call" and key is helpers.array_of:
        for k, x in enumerate(s.args[1:]):
            if r.is_active(x):
                r.add(back, x, number_at(r, back, z, k, s), s.line)
    elif s.op == "call" and key is helpers.fitted:  # a tangent, of which another derivative is taken
        if r.is_active(s.args[2]):
            spread(r, back, s.args[2], z, s.line)
    elif s.op == "call" and key in (np.full, np.full_like):
        x = s.args[2] if len(s.args) > 2 else None
        if (
            (s.detail and "fill_value" in s.detail)
            or x is None
            or (len(s.args) > 1 and r.is_active(s.args[1]) and key is np.full)
        ):
            raise r.refuse(f"this form of `{name_of(s)}`", s.line)
        if r.is_active(x):
            spread(r, back, x, z, s.line)
    elif has_row(key):
        by_row(r, s, ROWS[key], forward, after, back)
        s = in_arena(r, s)
    elif s.op in ("binary", "unary", "call") and is_array(t):
        elementwise(r, s, z, forward, after, back)
    else:
        raise r.refuse(f"`{name_of(s)}` of arrays", s.line)
    if is_real(t):
        back.append(Let(z.name, "copy", (r.zero(t),), None, s.line))
    if isinstance(t, types.BaseTuple):
        end = [x for k, part in enumerate(t) if is_array(part) for x in r.cleared(f"{s.target}_p{k}")]
    return Parts([*forward, s, *after], [*back, *end])


def by_row(r: Any, s: Let, made: Row, forward: list[Stmt], after: list[Stmt], back: list[Stmt]) -> None:
    """x_bar += helper(z_bar, z, *operands) for every active operand."""
    given = operands_of(r, s, made)
    operands: list[Operand] = []
    for name, x in given.items():
        if name in made.values:
            x = r.kept(x, forward, s.line)
        elif r.is_active(x) and is_array(r.type_of(x)):
            x = Var(f"{x.name}_b")  # type: ignore[union-attr]
        elif isinstance(r.type_of(x), types.BaseTuple) or (isinstance(x, Ref) and not is_array(r.type_of(x))):
            x = Const(None)
        operands.append(x)
    bars, z = result_of(r, s, made, after)
    for name, bar in made.bars.items():
        x = given[name]
        if r.is_active(x):
            args = [*operands]
            if bar is helpers.sum_bar and is_array(r.types[s.target]):
                bar = helpers.sum_along_bar
            if bar in ADDING and not r.plain and is_array(r.type_of(x)):
                adding = Ref(ADDING[bar], ADDING[bar].__name__)
                shadow = Var(f"{x.name}_b")  # type: ignore[union-attr]
                back.append(Do(Let("_", "call", (adding, shadow, *bars, *args), (), s.line), s.line))
                continue
            params = bar.__code__.co_argcount - len(bars) - 1
            spread(r, back, x, call(r, back, bar, *bars, z, *args[:params], line=s.line), s.line)


def result_of(r: Any, s: Let, made: Row, after: list[Stmt]) -> tuple[list[Operand], Operand]:
    """(cotangents of the parts of a result, the result for the way back)."""
    t = r.types[s.target]
    if isinstance(t, types.BaseTuple):
        bars: list[Operand] = []
        for k, part in enumerate(t):
            leaf = f"{s.target}_p{k}"
            if is_array(part):
                after.append(Let(leaf, "item", (Var(s.target), Const(k)), None, s.line))
                after.append(r.zeros(leaf))
                if r.memory.is_written(leaf):
                    raise r.refuse(f"a result of `{name_of(s)}` that is written later", s.line)
            bars.append(Var(f"{leaf}_b") if is_array(part) or leaf in r.active else r.zero(part))
        return bars, Var(s.target) if "z" in made.values else Const(None)
    if "z" not in made.values:
        return [Var(f"{s.target}_b")], Const(None)
    return [Var(f"{s.target}_b")], kept_result(r, s, after)


def kept_result(r: Any, s: Let, after: list[Stmt]) -> Var:
    """The result of `s` as it is now, for the way back."""
    return r.kept(Var(s.target), after, s.line)


def elementwise(r: Any, s: Let, z: Var, forward: list[Stmt], after: list[Stmt], back: list[Stmt]) -> None:
    """z = f(x, y) element by element: x_bar += z_bar * conj(dz/dx), summed over broadcast axes."""
    refuse_options(r, s)
    mixed = any(has_complex(r.type_of(x)) for x in (*s.args, Var(s.target)))
    trial: list[Stmt] = []
    read = {a for _, slope in r.slopes(s, trial) if isinstance(slope, Var) for a in (slope,)}
    for x in trial:
        read |= {a for a in x.args if isinstance(a, Var)}  # type: ignore[union-attr]
    args = tuple(r.kept(a, forward, s.line) if a in read else a for a in s.args)
    target = kept_result(r, s, after).name if Var(s.target) in read else s.target
    for new, old in zip(args, s.args, strict=True):  # a kept copy is as active as what it was copied from
        if new is not old and r.is_active(old):
            r.active.add(new.name)  # type: ignore[union-attr]
    again = Let(target, s.op, args, s.detail, s.line)
    for position, slope in r.slopes(again, back):
        x = s.args[position]
        term: Operand = z
        if slope == -1:
            term = r.emit(back, "unary", (z,), "-", s.line)
        elif slope != 1:
            if mixed:
                slope = call(r, back, np.conj, slope, line=s.line)
            term = r.emit(back, "binary", (z, slope), "*", s.line)
        spread(r, back, x, term, s.line)


def join(r: Any, s: Let, z: Var, back: list[Stmt]) -> None:
    """Every array that was joined gets its part of the cotangent."""
    names, axis, layers = parts_of(r, s)
    start: Operand = Const(0)
    for k, name in enumerate(names):
        part = Var(name)
        like = Var(f"{name}_b") if r.is_active(part) else part
        n: Operand = Const(1) if layers else call(r, back, helpers.extent, like, Const(axis), line=s.line)
        if r.is_active(part):
            term = call(r, back, helpers.piece, z, like, start, n, Const(axis), line=s.line)
            r.add(back, part, term, s.line)
        if k + 1 < len(names):
            start = r.emit(back, "binary", (start, n), "+", s.line)


def may_write(s: Let) -> bool:
    """Whether there is a rule for a call or method that writes into an array."""
    return s.op == "method" and s.detail in (("fill", ()), ("sort", ()))


def writes(r: Any, s: Let) -> Any:
    """A method that writes into an active array."""
    bar = Var(f"{s.args[0].name}_b")  # type: ignore[union-attr]
    back: list[Stmt] = []
    if s.detail == ("fill", ()):
        if r.is_active(s.args[1]):
            spread(r, back, s.args[1], bar, s.line)
        back.append(Do(Let("_", "method", (bar, Const(0.0)), ("fill", ()), s.line), s.line))
        return Parts([s], back)
    if s.detail == ("sort", ()) and real_vectors(r.type_of(s.args[0])):
        order = ordering(r, s)
        undo = Let("_", "call", (Ref(reduction_helpers.unsort, "unsort"), bar, Var(order.target)), (), s.line)
        return Parts([order, s], [Do(undo, s.line)])
    raise r.refuse(f"`{name_of(s)}`, which writes into an array,", s.line)
