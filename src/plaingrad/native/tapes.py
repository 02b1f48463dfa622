"""Loops in reverse: which values an iteration keeps for the way back, on which tapes, and which are computed again."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native import helpers, loop_forms
from plaingrad.native.activity import is_real
from plaingrad.native.helpers import grown, trips
from plaingrad.native.tree import (
    Const,
    Do,
    For,
    If,
    Let,
    Loop,
    Operand,
    Parts,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    assigns,
    breaks,
    free_reads,
    operands,
    reads_of,
    statements,
)

if TYPE_CHECKING:
    from plaingrad.native.reverse import Reverse

ZEROS = {types.float64: 0.0, types.int64: 0, types.boolean: False, types.complex128: 0j}
CHEAP = frozenset(("copy", "attribute", "tuple", "slice"))


def loop(rt: Reverse, s: For | Loop) -> Parts:
    """A loop: in a special form, or forward with tapes, backward iteration by iteration."""
    for form in loop_forms.FORMS:
        parts = form(rt, s)
        if parts is not None:
            return parts  # type: ignore[no-any-return]
    return general(rt, s)


def general(rt: Reverse, s: For | Loop) -> Parts:
    """A loop forward with tapes, backward iteration by iteration."""
    inner = rt.body(s.body)
    if not inner.backward:
        return Parts([_with_body(s, inner.forward)])
    line = s.line
    rt.count += 1
    mark = rt.count
    sp, at = f"sp_{mark}", f"at_{mark}"
    rt.setup.append(Let(sp, "copy", (Const(0),)))
    top, body, restored = tapes(rt, s, inner, mark, at)
    counts = isinstance(s, Loop) or breaks(s.body)
    n = f"n_{mark}"
    rt.types[n] = rt.types[sp] = types.int64
    forward: list[Stmt] = []
    count: list[Stmt] = [Let(n, "binary", (Var(n), Const(1)), "+", line)] if counts else []
    if counts:
        forward.append(Let(n, "copy", (Const(0),), None, line))
        room = [s_ for name in tape_names(rt, mark) for s_ in reserve(rt, name, Var(sp), Const(1), line)]
    else:
        assert isinstance(s, For)
        forward.append(Let(n, "call", (Ref(trips, "trips"), s.start, s.stop, s.step), (), line))
        room = []
        for name in tape_names(rt, mark):
            forward += reserve(rt, name, Var(sp), Var(n), line)
    step = [
        *room,
        Let(at, "copy", (Var(sp),), None, line),
        Let(sp, "binary", (Var(at), Const(1)), "+", line),
        *count,
        *top,
    ]
    forward.append(_with_body(s, [*step, *body]))
    back: list[Stmt] = [
        Let(sp, "binary", (Var(sp), Const(1)), "-", line),
        Let(at, "copy", (Var(sp),), None, line),
    ]
    r = f"r_{mark}"
    if isinstance(s, For):
        left = f"left_{mark}"
        back += [
            Let(f"{left}_a", "binary", (Var(n), Const(1)), "-", line),
            Let(left, "binary", (Var(f"{left}_a"), Var(r)), "-", line),
            Let(f"{left}_b", "binary", (Var(left), s.step), "*", line),
            Let(s.target, "binary", (s.start, Var(f"{left}_b")), "+", line),
        ]
    back += [*restored, *inner.backward]
    return Parts(forward, [For(r, Const(0), Var(n), Const(1), back, line)])


def reserve(rt: Reverse, tape: str, sp: Operand, n: Operand, line: int) -> list[Stmt]:
    """Room on a tape for `n` more entries."""
    size = rt.fresh("size")
    return [
        Let(size, "binary", (sp, n), "+", line),
        Let(tape, "call", (Ref(grown, "grown"), Var(tape), Var(size)), (), line),
    ]


def tape_names(rt: Reverse, mark: int) -> list[str]:
    """The tapes of numbers that loop `mark` has."""
    return [
        s.target
        for s in rt.setup
        if isinstance(s, Let) and s.target.endswith(f"_tape{mark}") and s.op == "call"
    ]


def tapes(rt: Reverse, s: For | Loop, inner: Parts, mark: int, at: str) -> Any:
    """(statements at the top of an iteration, statements by the child they follow, statements that restore)."""
    forward = inner.forward
    assigned = {x.target for x in statements(forward) if isinstance(x, (Let, For))}
    local: dict[str, int] = {}
    definitions: dict[str, Let] = {}
    for x in statements(forward):
        if isinstance(x, Let):
            local[x.target] = local.get(x.target, 0) + 1
            definitions[x.target] = x
    outside = assigned_outside(rt, s, assigned)
    machinery = {x.target for x in rt.setup if isinstance(x, Let)}  # tapes and their pointers live throughout
    needed = [name for name in free_reads(inner.backward, machinery) if name in assigned]
    saved: list[str] = []
    redone: list[str] = []
    seen = set()
    while needed:
        name = needed.pop()
        if name in seen or (isinstance(s, For) and name == s.target):
            continue
        seen.add(name)
        d = definitions.get(name)
        if d is not None and local[name] == 1 and name not in outside and is_recomputable(rt, d):
            redone.append(name)
            needed += [a.name for a in operands(d) if isinstance(a, Var) and a.name in assigned]
        else:
            saved.append(name)
    top: list[Stmt] = []
    restored: list[Stmt] = []
    for name in sorted(saved):
        keep, back = on_tape(rt, name, f"{name}_tape{mark}", at)
        if name in outside and is_read_before(rt, name, forward):
            top += keep
        else:
            forward = kept_behind(forward, name, keep)
        restored += back
    order = {x.target: k for k, x in enumerate(x for x in statements(forward) if isinstance(x, Let))}
    for name in sorted(redone, key=order.__getitem__):
        restored.append(definitions[name])
    return top, forward, restored


def assigned_outside(rt: Reverse, s: For | Loop, assigned: set[str]) -> set[str]:
    """Of the variables that a loop assigns, those that hold a value before it."""
    inside: dict[str, int] = {}
    for x in statements(s.body):
        if isinstance(x, (Let, For)):
            inside[x.target] = inside.get(x.target, 0) + 1
    found = {name for name in inside if rt.assigned.get(name, 0) > inside[name]}
    found |= {f"{name}_b" for name in found if isinstance(rt.types.get(name), types.Array)}
    return found & assigned


def is_read_before(rt: Reverse, name: str, body: list[Stmt]) -> bool:
    """Whether an iteration starts from the value that a variable had at the end of the one before."""
    base = name[:-2] if name.endswith("_b") and name not in rt.types else name
    t = rt.types.get(base)
    for child in body:
        if name in reads_of([child]) or (t is not None and base in reads_of([child])):
            return True
        if isinstance(child, Let) and child.target == name:
            return False
    return True


def is_recomputable(rt: Reverse, s: Let) -> bool:
    """Whether a value is recomputed on the way back rather than kept."""
    t = rt.types.get(s.target)
    if isinstance(t, types.Array) or s.target.endswith("_b"):
        source = s.args[0] if s.args else None
        return (
            s.op == "item" and isinstance(source, Var) and not isinstance(rt.type_of(s.args[1]), types.Array)
        )
    if s.op in CHEAP or s.op == "unary":
        return True
    if s.op == "binary":
        return s.detail != "**" and s.detail != "@"
    if s.op == "compare":
        return not any(is_real(rt.type_of(a)) for a in s.args)
    if s.op == "item":
        source = s.args[0]
        if not isinstance(source, Var):
            return True
        if isinstance(rt.types.get(source.name), types.BaseTuple):
            made = rt.definitions.get(source.name)
            return source.name in rt.source.params or made is not None and is_recomputable(rt, made)
        return not rt.memory.is_written(source.name) or rt.values.is_settled(source.name)
    return s.op == "call" and getattr(s.args[0], "value", None) in (len, float, int, trips)


def on_tape(rt: Reverse, name: str, tape: str, at: str) -> tuple[list[Stmt], list[Stmt]]:
    """(statements that keep a variable's value, statements that bring it back)."""
    base = name[:-2] if name.endswith("_b") and name not in rt.types else name
    t = rt.types.get(base)
    if isinstance(t, types.BaseTuple):
        keep, back, parts = [], [], []
        for k, part_type in enumerate(t):
            part = rt.fresh(f"{name}_at")
            rt.types[part] = part_type
            kept, restored = on_tape(rt, part, f"{part}_{tape}", at)
            keep += [Let(part, "item", (Var(name), Const(k))), *kept]
            back += restored
            parts.append(Var(part))
        return keep, [*back, Let(name, "tuple", tuple(parts))]
    if isinstance(t, types.Array):
        items = tuple([Const(0)] * t.ndim)
        empty = rt.fresh("none")
        shape = rt.fresh("shape")
        rt.setup += [
            Let(shape, "tuple", items),
            Let(
                empty,
                "call",
                (Ref(np.empty, "empty"), Var(shape), Ref(dtype_of(t.dtype), dtype_name(t.dtype))),
                (),
            ),
        ]
        first: Operand = Var(empty)
        layout = t.layout if name == base else "C"
        if layout == "A":
            first = Var(rt.fresh("view"))
            rt.setup.append(Let(first.name, "item", (Var(empty), Const(Ellipsis)), None))
        rt.setup.append(Let(tape, "list", (first,)))
        keep: list[Stmt] = [
            Do(
                Let(
                    "_",
                    "call",
                    (Ref(helpers.keep_array, "keep_array"), Var(tape), Var(at), Var(name)),
                    (),
                )
            )
        ]
        back: list[Stmt] = [
            Let(name, "call", (Ref(helpers.kept_array, "kept_array"), Var(tape), Var(at)), ())
        ]
        return keep, back
    assert t is not None, (name, base, rt.definitions.get(name))
    dtype = dtype_of(t)
    if name not in rt.source.params and t in ZEROS:  # another type would change that of the variable
        rt.initial[name] = Let(name, "copy", (Const(ZEROS[t]),))
    rt.setup.append(Let(tape, "call", (Ref(np.empty, "empty"), Const(0), Ref(dtype, dtype_name(t))), ()))
    return [Store(Var(tape), Var(at), Var(name))], [Let(name, "item", (Var(tape), Var(at)))]


@functools.lru_cache(None)
def dtype_of(t: Any) -> Any:
    """The NumPy scalar type for a Numba type."""
    from numba.np.numpy_support import as_dtype

    if isinstance(t, types.Boolean):
        return np.bool_
    return as_dtype(types.unliteral(t)).type


def dtype_name(t: Any) -> str:
    """A name for it in generated source."""
    return dtype_of(t).__name__


def _with_body(s: For | Loop, body: list[Stmt]) -> Stmt:
    if isinstance(s, For):
        return For(s.target, s.start, s.stop, s.step, body, s.line)
    return Loop(body, s.line)


def kept_behind(body: list[Stmt], name: str, keep: list[Stmt]) -> list[Stmt]:
    """`body` with `keep` done as soon as `name` has its value for the iteration: in the smallest list of statements
    that holds all of its assignments, behind the last; in front of a jump out of the loop."""
    places = [k for k, s in enumerate(body) if assigns(s, name)]
    last = places[-1]
    s = body[last]
    if isinstance(s, If):
        inside = [arm for arm in (s.then, s.orelse) if any(assigns(x, name) for x in arm)]
        if len(places) == 1 and len(inside) == 1:
            then = kept_behind(s.then, name, keep) if inside[0] is s.then else s.then
            orelse = kept_behind(s.orelse, name, keep) if inside[0] is s.orelse else s.orelse
            return [*body[:last], If(s.test, then, orelse, s.line), *body[last + 1 :]]
        if breaks([s]) or _raises([s]):  # it is assigned on several ways, of which some leave
            before = kept_behind(body[:last], name, keep) if len(places) > 1 else body[:last]
            then = kept_behind(s.then, name, keep) if any(assigns(x, name) for x in s.then) else s.then
            orelse = (
                kept_behind(s.orelse, name, keep) if any(assigns(x, name) for x in s.orelse) else s.orelse
            )
            return [*before, If(s.test, then, orelse, s.line), *body[last + 1 :]]
    return [*body[: last + 1], *keep, *body[last + 1 :]]


def _raises(body: list[Stmt]) -> bool:
    return any(isinstance(s, Raise) for s in statements(body))
