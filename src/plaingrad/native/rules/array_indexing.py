"""Rules of indexing with arrays and masks, and which operations copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.program.ir import Let, Operand, Parts, Ref, Stmt, Store, Var
from plaingrad.native.program.value_types import has_complex, part_types
from plaingrad.native.rules.arrays import call, name_of, spread
from plaingrad.native.runtime import array_helpers as helpers

MAYBE_VIEWS = frozenset(("ravel", "ascontiguousarray", "asfortranarray", "astype"))


def is_fancy(r: Any, x: Operand) -> bool:
    """Whether an index is an array, or a tuple with an array in it."""
    t = r.type_of(x) if isinstance(x, Var) else None
    if isinstance(x, Ref):
        return isinstance(x.value, np.ndarray)
    return isinstance(t, types.Array) or (
        isinstance(t, types.BaseTuple) and any(isinstance(part, types.Array) for part in part_types(t))
    )


def is_copy(r: Any, s: Let) -> bool:
    """Whether a statement that is a view of its first operand in other cases, is none here."""
    if s.op == "item":
        return is_fancy(r, s.args[1])
    if s.op == "attribute":
        return s.detail == "imag" and not has_complex(r.type_of(s.args[0]))
    if s.op not in ("call", "method"):
        return False
    x, t = (r.type_of(a) for a in (s.args[1 if s.op == "call" else 0], Var(s.target)))
    name = name_of(s)
    if name in ("ravel", "ascontiguousarray"):
        return x.layout != "C"
    if name == "asfortranarray":
        return x.layout == "A" or (x.layout == "C" and x.ndim > 1)
    if name == "imag" and not has_complex(x):
        return True
    return name == "broadcast_to" or (s.op == "call" and name not in ("real", "imag") and x.dtype != t.dtype)


def numbers_of(r: Any, array: Operand, place: Operand, ndim: int, out: list[Stmt], line: int) -> Var:
    """The numbers of the elements that an index by an array names, for the way back."""
    found = Var(r.fresh("places"))
    r.types[found.name] = types.Array(types.int64, ndim, "C")
    out.append(Let(found.name, "call", (Ref(helpers.places, "places"), array, place), (), line))
    return found


def index(r: Any, s: Let, z: Var, after: list[Stmt], back: list[Stmt]) -> None:
    """z = x[indices]: a copy."""
    x, place = s.args
    numbers = numbers_of(r, x, place, r.types[s.target].ndim, after, s.line)
    bar = Var(f"{x.name}_b")  # type: ignore[union-attr]
    r.add(back, x, call(r, back, helpers.scattered, z, bar, numbers, line=s.line), s.line)


def store(r: Any, s: Store) -> Any:
    """x[indices] = value."""
    import operator

    from numba.core.registry import cpu_target

    t = r.types[s.array.name]  # type: ignore[union-attr]
    place_type = r.type_of(s.index)
    found = cpu_target.typing_context.resolve_function_type(operator.getitem, (t, place_type), {})
    if found is None or not isinstance(found.return_type, types.Array):
        raise r.refuse("a write through an array of indices", s.line)
    forward: list[Stmt] = []
    back: list[Stmt] = []
    numbers = numbers_of(r, s.array, s.index, found.return_type.ndim, forward, s.line)
    bar = Var(f"{s.array.name}_b")  # type: ignore[union-attr]
    term = call(r, back, helpers.withdrawn, bar, numbers, line=s.line)
    if r.is_active(s.value):
        spread(r, back, s.value, term, s.line)
    return Parts([*forward, s], back)
