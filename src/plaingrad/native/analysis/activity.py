"""Which variables of a program carry a derivative: those that depend on the inputs and that the result depends on.

Arrays are memory: all names that may stand for one piece of memory form a class, found by following views and copies
of references, and are active together.
"""

from __future__ import annotations

from typing import Any

from plaingrad.native.analysis.memory import VIEWS, Memory
from plaingrad.native.program.ir import Do, InPlace, Let, Program, Store, Var, operands, statements
from plaingrad.native.program.value_types import has_tangent, is_array


def active_variables(program: Program, memory: Memory, wanted: list[str], results: list[str]) -> set[str]:
    """The variables with a derivative: reached from the parameters `wanted`, and reaching one of `results`."""
    return _spread(program, memory, set(wanted), True) & _spread(program, memory, set(results), False)


def varying_variables(program: Program, memory: Memory, wanted: list[str]) -> set[str]:
    """The variables that depend on the parameters `wanted`."""
    return _spread(program, memory, set(wanted), True)


def _spread(program: Program, memory: Memory, found: set[str], onward: bool) -> set[str]:
    types_of = program.types
    found = {memory.of(name) for name in found}
    flows = []
    for s in statements(program.body):
        outs, ins = ({memory.of(name) for name in names} for names in _flow(s, types_of, memory))
        if outs and ins:
            flows.append((ins, outs) if onward else (outs, ins))
    if not onward:
        flows.reverse()  # with the direction of the spread few rounds are needed
    changed = True
    while changed:
        changed = False
        for out_of, into in flows:
            if not out_of.isdisjoint(found) and not into <= found:
                found |= into
                changed = True
    return {name for name, t in types_of.items() if has_tangent(t) and memory.of(name) in found}


def _flow(s: Any, types_of: dict[str, Any], memory: Memory) -> tuple[list[str], list[str]]:
    """(variables that a statement gives values with a tangent, variables that it takes them from)."""
    ins = [a.name for a in operands(s) if isinstance(a, Var) and has_tangent(types_of.get(a.name))]
    if isinstance(s, Let):
        if s.op == "compare" or (s.op == "attribute" and s.detail not in VIEWS):
            return [], []
        outs = [s.target] if has_tangent(types_of.get(s.target)) else []
        return [*outs, *memory.outputs(s)], ins
    if isinstance(s, Do):
        return memory.outputs(s.call), ins
    if isinstance(s, (Store, InPlace)) and isinstance(s.array, Var) and is_array(types_of.get(s.array.name)):
        return [s.array.name], ins
    return [], []
