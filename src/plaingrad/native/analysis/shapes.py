"""Which arrays surely have the same shape: a pass that asks for the shape of the first of them only.

`v = u.copy()`, `np.empty_like(u)`, `np.zeros(u.shape)`, `2 * u` and `u = v` give arrays of the shape of `u`, also
around a loop.
The *root* of an array is the parameter, or the array made once and outside of loops and branches, whose shape it
surely has; it is itself where nothing is known. `x.shape` then reads the root's, which the way back has at hand
without keeping `x`, and the compiler sees bounds that do not change from iteration to iteration.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import (
    Const,
    For,
    If,
    Let,
    Loop,
    Operand,
    Program,
    Ref,
    Stmt,
    Var,
    operands,
    statements,
)

ALIKE = (np.empty_like, np.zeros_like, np.ones_like, np.copy)
OF_SHAPE = (np.empty, np.zeros, np.ones)


def with_shapes_of_roots(program: Program) -> Program:
    """`program` with the shapes of arrays taken from their roots, unless these are of no other use.

    An array that only another elementwise operation reads need not be there at all (`array_loops.py`).
    """
    found = roots(program)
    passing = _passing(program)
    found = {name: name if root in passing else root for name, root in found.items()}
    return replace(program, body=_rewritten(program.body, found))


def roots(program: Program) -> dict[str, str]:
    """The root of every array of `program`."""
    assigned: dict[str, list[Stmt]] = {}
    for s in statements(program.body):
        if isinstance(s, (Let, For)):
            assigned.setdefault(s.target, []).append(s)
    lasting = {p for p in program.params if p not in assigned}
    lasting |= {s.target for s in program.body if isinstance(s, Let) and len(assigned[s.target]) == 1}
    arrays = [name for name, t in program.types.items() if isinstance(t, types.Array)]
    found: dict[str, str] = {name: name for name in arrays if name not in assigned}
    changed = True
    while changed:  # optimistic: what is not found yet agrees with everything
        changed = False
        for name in arrays:
            if found.get(name) == name:
                continue
            known = set()
            for s in assigned[name]:
                sources = _sources(s, program, assigned)
                if not sources:
                    known.add(name)
                known |= {found[x] if found[x] in lasting else name for x in sources if x in found}
            root = known.pop() if len(known) == 1 else name if known else None
            if root is not None and found.get(name) != root:
                found[name] = root
                changed = True
    return {name: found.get(name, name) for name in arrays}


def _passing(program: Program) -> set[str]:
    """The results of elementwise operations that one other elementwise operation reads, and nothing else but shapes."""
    readers: dict[str, list[Stmt]] = {}
    for s in statements(program.body):
        if isinstance(s, Let) and s.op == "attribute" and s.detail in ("shape", "size"):
            continue
        for name in {a.name for a in operands(s) if isinstance(a, Var)}:
            readers.setdefault(name, []).append(s)
    made = {s.target for s in statements(program.body) if _is_elementwise(s)}
    return {name for name in made if len(readers.get(name, ())) == 1 and _is_elementwise(readers[name][0])}


def _is_elementwise(s: Stmt) -> bool:
    f = s.args[0].value if isinstance(s, Let) and s.op == "call" and isinstance(s.args[0], Ref) else None
    return isinstance(s, Let) and (
        s.op == "unary"
        or (s.op == "binary" and s.detail != "@")
        or (isinstance(f, np.ufunc) and not s.detail)
    )


def _sources(s: Stmt, program: Program, assigned: dict[str, list[Stmt]]) -> list[str]:
    """The arrays whose shape, if it is the same, the result of `s` surely has."""
    if not isinstance(s, Let):
        return []
    found: list[Operand] = []
    f = s.args[0].value if s.op == "call" and isinstance(s.args[0], Ref) else None
    if s.op == "copy" or (s.op == "method" and s.detail == ("copy", ())):
        found = [s.args[0]]
    elif (
        (s.op == "binary" and s.detail != "@")
        or s.op == "unary"
        or (isinstance(f, np.ufunc) and not s.detail)
    ):
        found = [x for x in s.args if not _is_number(x, program)]
        found = found[1:] if f is not None else found
    elif f is not None and len(s.args) > 1 and set(s.detail or ()) <= {"dtype"}:
        if f in ALIKE:
            found = [s.args[1]]
        elif f in OF_SHAPE:
            source = _of_shape(s.args[1], program, assigned)
            found = [] if source is None else [Var(source)]
    names = [x.name for x in found if isinstance(x, Var)]
    ranks = [getattr(program.types.get(name), "ndim", None) for name in [*names, s.target]]
    return names if len(names) == len(found) and None not in ranks and len(set(ranks)) == 1 else []


def _is_number(x: Operand, program: Program) -> bool:
    if isinstance(x, Const):
        return isinstance(x.value, (int, float, complex))
    return isinstance(x, Var) and isinstance(program.types.get(x.name), (types.Number, types.Boolean))


def _of_shape(x: Operand, program: Program, assigned: dict[str, list[Stmt]]) -> str | None:
    """The array whose shape is `x`: its shape, the tuple of all its extents, or for a vector its length."""

    def definition(x: Operand) -> Let | None:
        made = assigned.get(x.name, []) if isinstance(x, Var) else []
        return made[0] if len(made) == 1 and isinstance(made[0], Let) else None

    def extent(x: Operand) -> tuple[str, int] | None:
        """(array, axis) that `x` is the extent of."""
        s = definition(x)
        if s is not None and s.op == "call" and s.args[0] == Const(len) and isinstance(s.args[1], Var):
            return s.args[1].name, 0
        if s is None or s.op != "item" or not isinstance(s.args[1], Const):
            return None
        whole = definition(s.args[0])
        if whole is None or whole.op != "attribute" or whole.detail != "shape":
            return None
        return whole.args[0].name, s.args[1].value  # type: ignore[union-attr]

    s = definition(x)
    if s is None:
        return None
    if s.op == "attribute" and s.detail == "shape":
        return s.args[0].name if isinstance(s.args[0], Var) else None
    parts = list(s.args) if s.op == "tuple" else [x]
    places = [extent(part) for part in parts]
    first = places[0] if places else None
    if first is None or any(place != (first[0], k) for k, place in enumerate(places)):
        return None
    t = program.types.get(first[0])
    return first[0] if isinstance(t, types.Array) and t.ndim == len(parts) else None


def _rewritten(body: list[Stmt], found: dict[str, str]) -> list[Stmt]:
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, If):
            s = replace(s, then=_rewritten(s.then, found), orelse=_rewritten(s.orelse, found))
        elif isinstance(s, (For, Loop)):
            s = replace(s, body=_rewritten(s.body, found))
        elif isinstance(s, Let):
            place = 1 if s.op == "call" and s.args[0] == Const(len) else 0
            if place or (s.op == "attribute" and s.detail in ("shape", "size")):
                x = s.args[place]
                if isinstance(x, Var) and found.get(x.name, x.name) != x.name:
                    s = replace(s, args=(*s.args[:place], Var(found[x.name])))
        out.append(s)
    return out


__all__ = ["roots", "with_shapes_of_roots"]
