"""Second-order rules: pushforwards of the helper functions that derived programs call.

A derived program goes through the front end like any other. Its tapes are memory, of which the tangents are a second
tape; what is added to a shadow is added, with its tangent, to the tangent of the shadow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.analysis.helper_calls import ADDED, ADOPTED, NEW, SAME_CALL
from plaingrad.native.forward import chunk_tapes, chunks, complex_chunks
from plaingrad.native.program.ir import Const, Do, Let, Operand, Ref, Stmt, Var
from plaingrad.native.runtime.helpers import add_to

OF_CHUNKS = {
    "more": chunk_tapes.more,
    "add_to": chunk_tapes.add_to,
    "fitted": chunk_tapes.fitted,
    "conj_of": chunk_tapes.conj_of,
    "withdrawn": chunk_tapes.withdrawn,
}


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


__all__ = ["like_nothing", "push"]
