"""The special forms of loops in reverse mode, in the order in which they are tried.

All of them see a loop as a domain, reads and writes of elements, and a body in single assignments; each says what it
needs and what it saves. Where none fits, a loop is reversed with tapes, iteration by iteration.
"""

from __future__ import annotations

from plaingrad.native.loops import fission, stencils, sums
from plaingrad.native.loops.array_loops import ArrayLoops
from plaingrad.native.loops.row_groups import RowGroups
from plaingrad.native.reverse.forms import Forms, LoopForm, RunForm

FORMS = Forms(
    loops=(
        LoopForm(
            "sum",
            "iterations that only add to numbers, each on its own, with slopes that are cheap",
            "the way back: the cotangents of what is read are added on the way forward, and no tape is kept",
            sums.fused,
        ),
        LoopForm(
            "stencil",
            "nests that store to elements of arrays, and read elements at fixed distances from these",
            "tapes, and scattered additions: each cotangent is gathered from its readers in one vectorised loop",
            stencils.gathered,
        ),
        LoopForm(
            "sum, run again",
            "iterations that only add to numbers, whose results are cheap to compute again",
            "tapes: an iteration is computed again on the way back",
            sums.rerun,
        ),
        LoopForm(
            "fission",
            "calls of exp, log, sin, ... with arguments that no iteration passes to the next",
            "time in these calls: they are made for a block of iterations at once, in vector registers",
            fission.split_form,
        ),
    ),
    runs=(
        RunForm(
            "rows",
            "arithmetic on rows of arrays inside a counted loop, with reductions in between",
            "the arrays of rows, their cotangents, and their allocation in every iteration",
            RowGroups,
        ),
        RunForm(
            "elementwise",
            "elementwise expressions on whole arrays in C order, or sums of such along an axis",
            "the arrays in between and their cotangents: one loop forward, one loop back",
            ArrayLoops,
        ),
    ),
)
