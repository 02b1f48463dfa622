"""Products of mapped vectors and matrices, and linear algebra."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from plaingrad.engine.batches import forms
from plaingrad.engine.batches.elementwise_steps import broadcast
from plaingrad.engine.batches.mapped import Mapped
from plaingrad.engine.batches.shape_steps import as_one, mapped_array
from plaingrad.engine.batches.steps import WIDE, Steps, ndim_of


def matmul(level: Steps, f: Any, a: Any, b: Any) -> Any:
    """a @ b, np.dot of vectors and matrices."""
    a, b = as_one(level, a), as_one(level, b)
    dims = ndim_of(a), ndim_of(b)
    if 0 in dims and f not in (operator.matmul, np.matmul):
        if any(isinstance(x, (Mapped, np.ndarray, np.generic)) and x.dtype not in WIDE for x in (a, b)):
            level.give_up("np.dot of a number and narrow ones")
        return broadcast(level, operator.mul, (a, b), False)
    if not set(dims) <= {1, 2} or not all(isinstance(x, (Mapped, np.ndarray)) for x in (a, b)):
        level.give_up("a product of arrays of more than two axes")
    if a.dtype.kind == "b" or b.dtype.kind == "b" or a.shape[-1] != b.shape[0]:
        level.give_up("a product of truths, or of arrays that do not fit")
    if (a.dtype.kind in "iu" and a.dtype.itemsize < 8) and (b.dtype.kind in "iu" and b.dtype.itemsize < 8):
        level.give_up("a product of narrow integers")  # sums of which are wide
    level.check_types((a, b))
    of_both = type(a) is Mapped, type(b) is Mapped
    return level.made(level.outside(forms.times, level.value(a), level.value(b), *of_both))


def dot(level: Steps, f: Any, a: Any, b: Any) -> Any:
    """np.dot, and the method."""
    return matmul(level, np.dot, a, b)


def inner(level: Steps, f: Any, a: Any, b: Any) -> Any:
    """np.inner and np.vdot of real vectors."""
    if ndim_of(a) != 1 or ndim_of(b) != 1 or a.dtype.kind == "c" or b.dtype.kind == "c":
        level.give_up("an inner product of anything but real vectors")
    return matmul(level, np.dot, a, b)


def outer(level: Steps, f: Any, a: Any, b: Any) -> Any:
    """np.outer of vectors."""
    a, b = as_one(level, a), as_one(level, b)
    if ndim_of(a) != 1 or ndim_of(b) != 1:
        level.give_up("an outer product of anything but vectors")
    level.check_types((a, b))
    mapped = type(a) is Mapped, type(b) is Mapped
    return level.made(level.outside(forms.outer, level.value(a), level.value(b), *mapped))


def einsum(level: Steps, f: Any, subscripts: Any, *operands: Any) -> Any:
    """np.einsum by letters."""
    if not isinstance(subscripts, str) or "." in subscripts:
        level.give_up("einsum without letters")
    subscripts = subscripts.replace(" ", "")
    ins, arrow, out = subscripts.partition("->")
    if not arrow:
        letters = sorted(set(ins) - {","})
        out = "".join([letter for letter in letters if ins.count(letter) == 1])
    free = next(letter for letter in "zyxwvutsrqponm" if letter not in subscripts)
    parts = ins.split(",")
    if len(parts) != len(operands):
        level.give_up("einsum of too few operands")
    level.check_types(operands)
    named = [free + part if type(x) is Mapped else part for part, x in zip(parts, operands, strict=True)]
    values = tuple(map(level.value, operands))
    z = level.made(level.outside(forms.summed, f"{','.join(named)}->{free}{out}", values))
    if len(operands) == 1:  # a transpose, or a diagonal, is a view
        operands[0].is_fresh = z.is_fresh = False
    return z


def of_matrices(level: Steps, f: Any, a: Any) -> Any:
    """np.linalg.inv, det: of the last two axes."""
    x = mapped_array(level, a)
    if x.ndim != 2:
        level.give_up("a stack of matrices")
    return level.made(level.outside(forms.called, f, (x.value,), {}))


def solve(level: Steps, f: Any, a: Any, b: Any) -> Any:
    """np.linalg.solve of a vector or matrix."""
    if ndim_of(a) != 2 or ndim_of(b) not in (1, 2):
        level.give_up("a stack of matrices")
    if type(a) is Mapped:
        z = level.outside(forms.solved, level.value(a), level.value(b), type(b) is Mapped or ndim_of(b) == 2)
        if type(b) is not Mapped and ndim_of(b) == 1:
            level.give_up("a shared vector")
    elif ndim_of(b) == 1:
        z = level.outside(forms.solved_at_once, a, level.value(b))
    else:
        z = level.outside(forms.called, np.linalg.solve, (a, level.value(b)), {})
    return level.made(z)
