"""The special forms of loops in reverse mode, in the order in which they are tried.

All of them read a loop from one picture (`elements`): domain, reads and writes of elements, a body in single
assignments; each says what it needs and what it saves. Where none fits, a loop is reversed with tapes, iteration by
iteration.
"""

from __future__ import annotations

from plaingrad.native.loops import fission, parallel, stencils, sums, winners
from plaingrad.native.loops.array_loops import ArrayLoops
from plaingrad.native.loops.refills import refilled
from plaingrad.native.loops.row_groups import RowGroups
from plaingrad.native.reverse.forms import Forms, LoopForm, RunForm

FORMS = Forms(
    refilled=refilled,
    loops=(
        LoopForm(
            "parallel",
            "`numba.prange` in a function with `parallel=True`, that carries nothing but sums",
            "a part of the iterations in each of several threads, on both ways",
            parallel.side_by_side,
        ),
        LoopForm(
            "sum",
            "carries nothing but sums, with slopes that are cheap",
            "forward and reverse in one pass, with 1 for the cotangent of the sum; scaled at the end, no tape",
            sums.fused,
        ),
        LoopForm(
            "stencil",
            "`v[i, j] = f(u[i-1, j], u[i+1, j], ...)` into new memory",
            "gathered: every element of `u_b` is assigned once, so the loop vectorises; the rim is done apart",
            stencils.gathered,
        ),
        LoopForm(
            "sum, run again",
            "iterations that depend on nothing before them",
            "run again on the way back, ascending, without a tape",
            sums.rerun,
        ),
        LoopForm(
            "winner",
            "`if d < best: best = d`, or `best = min(best, d)`, where `d` depends on nothing before it",
            "the number of the last iteration that was taken: that one alone is done again on the way back, no tape",
            winners.replayed,
        ),
        LoopForm(
            "fission",
            "`exp`, `expm1`, `log`, `log1p`, `tanh`, `sin` or `cos` of something that no earlier iteration decides",
            "the arguments of 256 iterations, then the function of all of them in vector registers, then the rest",
            fission.split_form,
        ),
    ),
    runs=(
        RunForm(
            "rows",
            "arithmetic on rows of arrays inside a counted loop, with reductions in between",
            "a few loops over elements: no array of a row is made, nor its cotangent",
            RowGroups,
        ),
        RunForm(
            "elementwise",
            "an expression on whole arrays in C order, or the sum of one along an axis",
            "one loop forward, one loop back: no array in between is made, nor its cotangent",
            ArrayLoops,
        ),
    ),
)
