"""Forward mode inside reverse mode: what a forward run leaves behind is put on the tape of the level around it.

When a forward level that ran inside a reverse one is closed, some of the numbers and arrays that it knows are still
alive: in the result, and wherever else the function put them (a list, an attribute, an array that it wrote into). The
reverse level knows them only as far as they depend on anything but the forward level's inputs. One step on its tape
adds the rest, from their tangents. It stands where the run ended, so it sees exactly the cotangents of later uses;
those of uses during the run come further back, and their way to the inputs is in the tangents already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.forward.push import push
from plaingrad.engine.memory.tape import STEP, ArraySlot, NumberSlot, RuleStep, Tree
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.rulebook import Rule


def push_inside(
    level: ReverseLevel,
    f: Callable[[Any], Any],
    x: Any,
    x_dot: Any,
    chunk: int,
    leaves: list[tuple[Any, Any, Any]],
    pull_by: Callable[[list[Any]], Callable[[Any], Any]],
) -> Any:
    """f(x), pushed forward along `x_dot`; at `level` all that it leaves behind depends on the inputs by its tangents.

    Args:
        level: the reverse level around it.
        f: the function.
        x: its argument, made of numbers and arrays that `level` does not know.
        x_dot: the tangents, a chunk of them.
        chunk: how many.
        leaves: of the argument: (what `level` knows, what is in `x` for it, its tangents).
        pull_by: the pullback from a tuple of values to that of the leaves, given the tangents of the values; it runs
            rewritten where it must.
    """
    made: list[ForwardLevel] = []

    def level_class(parent: Any, chunk: int | None) -> ForwardLevel:
        made.append(ForwardLevel(parent, chunk))
        return made[0]

    try:
        return push(f, (x,), (x_dot,), {}, chunk, level_class)[0]
    finally:  # also what was put somewhere before an exception
        if made:
            values = [(new, dot) for _, new, dot in leaves] + left_behind(made[0])
            attach(level, f, values, [known for known, _, _ in leaves], pull_by([dot for _, dot in values]))


def left_behind(level: ForwardLevel) -> list[tuple[Any, Any]]:
    """(x, x_dot) for the numbers, and the arrays that own memory, which are alive and have tangents."""
    level._sweep_numbers()
    level._sweep_arrays()
    index = level.index
    found = [(x, index[id(x)]) for x in level.numbers()]
    for owner in level.arrays:
        region = index.get(id(owner))
        if isinstance(region, level.region_class) and region.dot is not None:
            if not isinstance(owner, np.ndarray) or owner.dtype.kind not in "fc":
                missing_rule(type(owner), "It is the memory of an array, and holds numbers of forward mode.")
            found.append((owner, region.dot))
    return [(x, x_dot) for x, x_dot in found if np.ndim(x_dot)]


def attach(
    level: ReverseLevel, f: Any, values: list[tuple[Any, Any]], inputs: list[Any], pull: Callable[[Any], Any]
) -> None:
    """One step on the tape: `values` depend on `inputs` by `pull`, besides what they depend on already."""
    outputs: dict[int, Any] = {}
    for k, (x, _) in enumerate(values):
        i = level.index.get(id(x))
        if isinstance(x, np.ndarray):
            outputs[k] = ArraySlot(level.add_region(x) if i is None else i, x)
        else:
            outputs[k] = NumberSlot(level.add_number(x) if i is None else i, x)
    slots = dict(enumerate([level.slot_of(x) for x in inputs]))
    step = RuleStep(
        Tree(outputs),
        ((0, Tree({k: slot for k, slot in slots.items() if slot is not None}, tuple(inputs))),),
        pull,
        Rule(f, "full"),
    )
    level.tape.extend((-1, STEP, step))
