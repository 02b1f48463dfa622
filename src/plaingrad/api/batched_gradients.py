"""Gradients of every example of a batch, in one pass back over a run for the whole batch.

No example's value depends on another example's arguments. So where each has arguments of its own, the gradient of the
sum of all values has the gradient of each in it; what the examples share is given to each by itself before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.api.gradients import grad, value_and_grad
from plaingrad.api.leaves import Branch, Leaf, positions_in, positions_of
from plaingrad.api.operator_objects import Derivative
from plaingrad.api.parameters import vars_of, with_values
from plaingrad.engine.batches import forms
from plaingrad.engine.batches.admitted import refusal_of
from plaingrad.engine.batches.level import OF_CLASSES
from plaingrad.engine.batches.mapped import Mapped
from plaingrad.engine.batches.run import BatchLevel, run, try_batch
from plaingrad.engine.memory.entries import entries_of, has_fields
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.values.fresh import rebuilt
from plaingrad.rewrite import CURRENT, in_force
from plaingrad.tangents import Tangent
from plaingrad.tangents.types import primal_type_of


def gradients_of_batch(level: BatchLevel, derivative: Derivative, *args: Any, **kwargs: Any) -> Any:
    """What `grad(f)` or `value_and_grad(f)` gives for every example."""
    operator, f, options = derivative._made_by
    if operator not in (grad, value_and_grad) or derivative._marks or options[2] not in ("auto", "plain"):
        level.give_up(f"{operator.__name__} of a batch")
    if getattr(f, "__plaingrad_mode__", None) is not None or type(f).__module__.startswith("numba."):
        level.give_up("a function with a mode or tier of its own")
    argnums, has_aux, _ = options
    at = positions_in(positions_of(argnums), args)
    found: list[Any] = []
    leaves = [Leaves(level, args[n]) for n in at]

    def of_batch(*contents: Any) -> Any:
        inner = BatchLevel(CURRENT.get(), level.batch)
        given = list(args)
        for n, of_argument, x in zip(at, leaves, contents, strict=True):
            given[n] = of_argument.mapped(inner, x)
        y = run(inner, f, given, kwargs)
        found.append(y)
        value = y[0] if has_aux and type(y) is tuple and len(y) == 2 else y
        if (
            type(value) is not Mapped
            or value.batch is not level.batch
            or value.shape
            or value.dtype.kind != "f"
        ):
            level.give_up("a value that is no number, or the same for all examples")
        return inner.outside(forms.total, value.value)

    of_batch.__plaingrad_batched__ = f  # type: ignore[attr-defined]
    contents = [of_argument.contents() for of_argument in leaves]
    taken = grad(of_batch, tuple(range(len(at))), tier="plain")
    try:
        if type(level.parent) is BatchLevel:
            x_bars = in_force(level.parent, level.parent.prep(taken), *contents)
        else:
            x_bars = in_force(level.parent, taken, *contents)
    except Exception as error:
        level.give_up_for(error)
    x_bars = [mapped_gradient(level, x_bar) for x_bar in x_bars]
    x_bar = tuple(x_bars) if isinstance(argnums, tuple) else x_bars[0]
    if operator is value_and_grad:
        return found[0], x_bar
    return (x_bar, found[0][1]) if has_aux else x_bar


class Leaves:
    """The numbers and arrays of a differentiated argument, each of them once for every example."""

    def __init__(self, level: BatchLevel, x: Any) -> None:
        self.level, self.x = level, x
        self.leaves: list[Any] = []
        if isinstance(x, (bool, int, np.integer)):
            level.give_up("an integer that is differentiated")
        self.structure = self._structure(x, self.leaves, {})
        if not self.leaves:
            level.give_up("an argument without numbers")

    def _structure(self, x: Any, leaves: list[Any], seen: dict[int, Any]) -> Any:
        """The structure of `x`, whose leaves are put into `leaves`."""
        if type(x) is Mapped or type(x) is np.ndarray:
            if x.dtype.kind not in "fc":
                self.level.give_up("an array of integers that is differentiated")
            leaves.append(x)
            return Leaf(None, len(leaves) - 1)
        kind = kind_of(type(x))
        if kind == NUMBER and isinstance(x, (float, complex, np.inexact)):
            leaves.append(x)
            return Leaf(None, len(leaves) - 1)
        if kind in (NUMBER, ARRAY):
            self.level.give_up(f"{type(x).__name__} is differentiated")
        if kind == NOTHING or (kind == OBJECT and not has_fields(x)):
            return None
        if id(x) in seen:
            self.level.give_up("an object in two places")
        seen[id(x)] = branch = Branch(x, {})
        for key, part in entries_of(x):
            branch.entries[key] = self._structure(part, leaves, seen)
        return branch

    def contents(self) -> Any:
        """The argument with arrays of what all examples have."""
        level = self.level
        parts = [
            level.value(x) if type(x) is Mapped else level.outside(forms.spread, x, level.batch.size)
            for x in self.leaves
        ]
        return with_values(self.structure, self.x, parts)

    def mapped(self, level: BatchLevel, contents: Any) -> Any:
        """The argument with mapped values of these contents."""
        arrays: list[Any] = []
        self._structure(contents, arrays, {})
        pairs = zip(self.leaves, arrays, strict=True)
        parts = [Mapped(level.batch, a, x.cls if type(x) is Mapped else type(x)) for x, a in pairs]
        return with_values(self.structure, self.x, parts)


def mapped_gradient(level: BatchLevel, x_bar: Any) -> Any:
    """A gradient with mapped values for its arrays."""
    if type(x_bar) is np.ndarray or type(x_bar) is Mapped:
        found = level.made(x_bar)
        if not found.shape:
            found.cls = None  # of Python or NumPy, as the argument was
        return found
    if type(x_bar) is Tangent:
        fields = {name: mapped_gradient(level, part) for name, part in vars_of(x_bar).items()}
        return Tangent(primal_type_of(x_bar), fields)
    kind = kind_of(type(x_bar))
    if kind == SEQUENCE:
        return rebuilt(x_bar, [mapped_gradient(level, part) for part in x_bar])
    if kind == MAPPING:
        return {key: mapped_gradient(level, part) for key, part in x_bar.items()}
    if x_bar is not None:
        level.give_up("a gradient of another kind")
    return None


OF_CLASSES[Derivative] = gradients_of_batch

__all__ = ["gradients_of_batch", "refusal_of", "try_batch"]
