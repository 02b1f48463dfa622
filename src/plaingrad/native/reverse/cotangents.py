"""Reverse mode as a function without side effects: what the second derivative is taken of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from plaingrad.native.lowering.split_tuples import exploded
from plaingrad.native.program.ir import RESULT, Let, Program, Ref, Stmt, Var
from plaingrad.native.program.value_types import has_tangent, is_array
from plaingrad.native.reverse.reverse import Reverse


class Plain(Reverse):
    """The reverse transform without special forms of loops and products."""

    plain = True


def cotangents_program(
    program: Program, wanted: list[str], callee: Callable[..., Any], with_results: bool = False
) -> Program:
    """The function of the parameters of `program` and the cotangents of its results that returns cotangents.

    One for every number and array in the differentiated parameters, in their order, in memory of its own: unlike a
    pullback it writes nothing that its caller has. `with_results` it returns the results before them.
    """
    made = Plain(program, wanted, callee, in_arena=False).whole()
    whole, results, leaves = exploded(program)
    inputs = [leaf for name in wanted for leaf in leaves[name] if has_tangent(whole.types[leaf])]
    of_arrays = [name for name in inputs if is_array(whole.types[name])]
    params, shadows = split_at(made.params, len(made.params) - len(of_arrays))
    inner = {leaf for parts in leaves.values() for leaf in parts} - set(program.params)
    unpacked = [k for k, s in enumerate(made.body) if isinstance(s, Let) and s.target in inner]
    start = max(unpacked, default=-1) + 1
    zeros: list[Stmt] = [
        Let(shadow, "call", (Ref(np.zeros_like, "zeros_like"), Var(name)), ())
        for shadow, name in zip(shadows, of_arrays, strict=True)
    ]
    last = made.body[-1]
    assert isinstance(last, Let) and last.target == RESULT
    bars = iter(last.args[len(results) :])
    own = dict(zip(of_arrays, map(Var, shadows), strict=True))
    out = tuple([own[name] if name in own else next(bars) for name in inputs])
    out = (*last.args[: len(results)], *out) if with_results else out
    body = [*made.body[:start], *zeros, *made.body[start:-1], Let(RESULT, "tuple", out)]
    return replace(made, name=f"{program.name}_cotangents", params=params, body=body)


def split_at(names: list[str], k: int) -> tuple[list[str], list[str]]:
    """(the first k names, the others)."""
    return names[:k], names[k:]
