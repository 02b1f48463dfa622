"""The lowering pipeline: passes on the user's program before it is differentiated, each of which gives a better one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.native.analysis.effects import Effects, look_by
from plaingrad.native.analysis.effects_in_programs import effects_in
from plaingrad.native.analysis.shapes import with_shapes_of_roots
from plaingrad.native.frontend import translation
from plaingrad.native.lowering.constant_keys import without_keys
from plaingrad.native.lowering.counted_loops import counted_loops
from plaingrad.native.lowering.counters import counters_as_formulas
from plaingrad.native.lowering.fused_reductions import in_loops
from plaingrad.native.lowering.inline import inlined
from plaingrad.native.lowering.invariant_loads import cells_first
from plaingrad.native.lowering.list_references import with_references_counted
from plaingrad.native.lowering.lists import without_lists
from plaingrad.native.lowering.row_indexing import without_rows
from plaingrad.native.lowering.split_tuples import exploded
from plaingrad.native.lowering.tuple_lists import without_tuple_lists
from plaingrad.native.lowering.tuples_of_lists import without_tuples_of_lists
from plaingrad.native.program.ir import Program

PASSES: tuple[Callable[[Program], Program], ...] = (
    inlined,
    counted_loops,
    counters_as_formulas,
    without_tuples_of_lists,
    without_tuple_lists,
    with_references_counted,
    without_lists,
    in_loops,
    without_rows,
    without_keys,
    with_shapes_of_roots,
    cells_first,
)


def prepared(program: Program) -> Program:
    """`program` as the transforms take it."""
    for step in PASSES:
        program = step(program)
    return program


def _effects_of_callee(f: Any, signature: tuple[Any, ...]) -> Effects:
    return effects_in(*exploded(prepared(translation.program(f, signature))))


look_by(_effects_of_callee)
