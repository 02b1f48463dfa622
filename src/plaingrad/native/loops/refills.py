"""Scratch arrays that are cheap to fill again: nothing that is read from them is kept on a tape.

Where every iteration of a loop fills an array by arithmetic on memory that nobody writes, and then only reads it, its
way back begins by filling it once more: one number for each element, instead of one kept for each read of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba.core import types

from plaingrad.native.loops.elements import exposed_reads
from plaingrad.native.loops.scratch import scratch_arrays
from plaingrad.native.program.ir import For, Let, Store, Var, breaks, statements
from plaingrad.native.reverse.recomputation import is_recomputable

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


def refilled(rt: Reverse, s: For) -> dict[str, For]:
    """The scratch arrays of a loop that are cheap to fill, each with the loop in its body that fills it."""
    found: dict[str, For] = {}
    if breaks(s.body):
        return found
    for name in sorted(scratch_arrays(rt, s)):
        writers = [
            x for x in s.body if any(isinstance(y, Store) and y.array == Var(name) for y in statements([x]))
        ]
        if len(writers) == 1 and isinstance(writers[0], For) and _is_cheap(rt, writers[0]):
            found[name] = writers[0]
    return found


def _is_cheap(rt: Reverse, fill: For) -> bool:
    """Whether a loop only does arithmetic on memory that is not written."""
    inside = list(statements([fill]))
    assigned = {x.target for x in inside if isinstance(x, (Let, For))}
    if exposed_reads(fill.body, {fill.target}) & assigned:
        return False  # an iteration reads what one before it has made
    for x in inside:
        if isinstance(x, Let):
            if not is_recomputable(rt, x) or isinstance(rt.types.get(x.target), types.Array):
                return False
        elif not isinstance(x, (Store, For)):
            return False
    return len({x.array for x in inside if isinstance(x, Store)}) == 1
