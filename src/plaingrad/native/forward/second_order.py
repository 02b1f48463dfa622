"""Derivatives of derived programs: forward rules of what these call and users' programs do not.

A derived program goes through the front end like any other. Its tapes are memory, of which the tangents are a second
tape; what is added to a shadow is added, with its tangent, to the tangent of the shadow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.forward import chunk_tapes, chunks, complex_chunks
from plaingrad.native.program.ir import Const, Do, Let, Operand, Ref, Stmt, Var
from plaingrad.native.runtime.helpers import add_to

# helper -> the places of the operands that are replaced by their tangents, in a call beside the helper's own call
SAME_CALL = {
    "more": (2,),
    "kept": (1, 3),
    "references": (2,),
    "keep": (2, 4),
    "add_to": (1, 2),
    "conj_of": (1,),
    "fitted": (2,),
}
RETURNED = frozenset(("more", "kept", "references", "keep"))  # memory of these operands
WRITTEN = {"keep": 2, "add_to": 1}
KEPT = {"keep": (2, 4)}  # (the tape, what is kept)
ADOPTED = {"adopted": (1, 2)}  # (a buffer, a term): the result is the term, summed to the shape of the buffer
NEW = frozenset(("room", "spare"))  # of which nothing is set yet
OF_CHUNKS = {
    "more": chunk_tapes.more,
    "add_to": chunk_tapes.add_to,
    "fitted": chunk_tapes.fitted,
    "conj_of": chunk_tapes.conj_of,
}
ADDED = "add_to"


HARMLESS = frozenset(
    (
        "trips",
        "check_disjoint",
        "check_read_first",
        "extent",
        "places",
        "order_of",
        "check_columns",
        "check_rows",
    )
)
NO_FORMULAS = frozenset(  # helpers of array rules that have a rule here, or return nothing with a derivative
    ("conj_of", "fitted", "withdrawn", "array_of", "extent", "places", "order_of")
)


def is_formula(f: Any) -> bool:
    """Whether `f` is a formula or loop of an array rule, whose derivative is that of its code."""
    if (
        getattr(f, "__module__", "") != "plaingrad.native.runtime.array_helpers"
        or type(f).__name__ != "function"
    ):
        return False
    return f.__name__ not in NO_FORMULAS


def may_write(f: Any) -> bool:
    """Whether `f` is a helper of derived programs that may write into what it is given."""
    if not str(getattr(f, "__module__", "")).startswith("plaingrad.native"):
        return False
    return getattr(f, "__name__", "") not in HARMLESS


def is_our_own(f: Any) -> bool:
    """Whether `f` is a slope or such a formula: it stands for mathematics, and may be compiled with any options."""
    return is_formula(f) or getattr(f, "__module__", "") == "plaingrad.native.rules.scalars"


def name_of(s: Any) -> str | None:
    """The name of the helper of derived programs that a statement calls; None if it calls none."""
    call = s.call if isinstance(s, Do) else s
    if not isinstance(call, Let) or call.op != "call":
        return None
    f = getattr(call.args[0], "value", None)
    if not str(getattr(f, "__module__", "")).startswith("plaingrad.native"):
        return None
    name = getattr(f, "__name__", "")
    return name if name in SAME_CALL or name in NEW or name in ADOPTED else None


def sources(s: Let) -> tuple[Operand, ...]:
    """The operands whose memory the result of a helper, or a list, may lie in."""
    if s.op == "list":
        return s.args
    name = name_of(s)
    if name in ADOPTED or name == "spare":
        return s.args[1:]
    return tuple(s.args[k] for k in SAME_CALL[name]) if name in RETURNED else ()  # type: ignore[index]


def written(s: Let) -> tuple[Operand, ...]:
    """The operands that a helper writes into."""
    name = name_of(s)
    return (s.args[WRITTEN[name]],) if name in WRITTEN else ()


def kept_by(s: Any) -> tuple[str, str] | None:
    """(a tape, an array that is put on it by reference), if that is what a statement does."""
    name = name_of(s)
    if name not in KEPT:
        return None
    call = s.call if isinstance(s, Do) else s
    tape, x = (call.args[k] for k in KEPT[name])
    return tape.name, x.name


def is_derived(file: str) -> bool:
    """Whether a program from this file was derived."""
    return file.startswith("<plaingrad native") or "plaingrad_native_" in file


def has_result(t: Any, s: Let) -> bool:
    """Whether a helper returns something that is used."""
    return isinstance(t.types.get(s.target), (types.Array, types.List, types.Number, types.Boolean))


def push(t: Any, s: Let, name: str, out: list[Stmt]) -> None:
    """A call of a helper, and the same for the tangents."""
    returns = has_result(t, s)
    if name in NEW:
        out += [s, t.nothing(s.target)]
        return
    if name in ADOPTED:
        out += [s, t.nothing(s.target)]
        x_dot = t.dot(s.args[2])
        if x_dot is not None:
            add = chunk_tapes.add_to if t.n else add_to
            given = (Ref(add, "add_to"), Var(f"{s.target}_d"), x_dot)
            out.append(Do(Let("_", "call", given, (), s.line), s.line))
        return
    args = list(s.args)
    for place in SAME_CALL[name]:
        x = args[place]
        x_dot = t.dot(x)
        if x_dot is None:
            if name == ADDED and place == 2:
                out.append(s if returns else Do(s, s.line))
                return
            x_dot = like_nothing(t, x, out, s.line)
        args[place] = x_dot
    if t.n and name in OF_CHUNKS:
        args[0] = Ref(OF_CHUNKS[name], name)
    if returns:
        out += [s, Let(f"{s.target}_d", "call", tuple(args), s.detail, s.line)]
    else:
        out += [Do(s, s.line), Do(Let("_", "call", tuple(args), s.detail, s.line), s.line)]


def like_nothing(t: Any, x: Operand, out: list[Stmt], line: int) -> Operand:
    """Tangents of zero for an operand that has none."""
    kind = t.type_of(x)
    if not isinstance(kind, types.Array):
        if not t.n:
            return Const(0.0)
        zeros = complex_chunks.zero_complex_lanes if isinstance(kind, types.Complex) else chunks.zero_lanes
        return t.emit(out, "call", (Ref(zeros, zeros.__name__), Const(t.n)), (), line)
    if t.n:
        made = (Ref(chunks.zero_lanes_like, "zero_lanes_like"), x, Const(t.n))
    else:
        made = (Ref(np.zeros_like, "zeros_like"), x)
    found = t.emit(out, "call", made, (), line)
    if kind.layout == "A":  # a tape of such arrays has a type of its own
        return t.emit(out, "item", (found, Const(Ellipsis)), None, line)
    return found


__all__ = ["is_derived", "like_nothing", "name_of", "push"]
