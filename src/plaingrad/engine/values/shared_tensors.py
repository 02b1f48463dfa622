"""Tensors of PyTorch in memory that NumPy has, too: what they hold is what the array holds now.

`torch.from_numpy(a)`, `torch.as_tensor(a)`, `t.numpy()` and DLPack give two names to one memory, often long before a
derivative is taken. NumPy's writes are followed, PyTorch's into such memory are not. So the array is the truth: a
tensor that lies in the memory of an active array is read as that part of the array each time it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.engine.memory.memory import address, extent
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.values.nesting import outwards
from plaingrad.systems.tensor_memory import is_lent, memory_of, parts_in_memory

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

#: Of a tensor that was read out of an active array, and of its views: no leaf of its own.
FROM_ARRAY = "_plaingrad_is_from_array"
#: Of a tensor: (an array of the same memory, or meant to be, what it held then).
LENT = "_plaingrad_is_lent"
#: The tensors into which numbers that depend on inputs were written, held weakly, by where their memory begins.
written_roots: dict[int, Any] = {}


def array_of(level: Level, x: Any) -> np.ndarray | None:
    """The view of an active array that has the memory of tensor `x`; None if no active array has it."""
    if not is_lent(x):
        if any(array_of(level, part) is not None for part in parts_in_memory(x)):
            missing_rule(
                type(x), "Its entries lie in memory of NumPy into which differentiated numbers were written."
            )
        return None
    a = plain_array(x)
    for at in outwards(level):
        for twin in at.twins:
            if np.may_share_memory(a, twin.original):
                twin.touched = True
                twin.check()
        owner = at.borrowed.active_owner(a)
        if owner is not None and at.owns_region(owner):
            return _as_view(x, a, owner)
    return None


def is_in_array(level: Level, x: Any) -> bool:
    """Whether tensor `x` lies in the memory of an active array."""
    return array_of(level, x) is not None


def has_memory_of_active(level: Level, x: Any) -> bool:
    """Whether tensor `x`, or another one with its memory, depends on the inputs, at this level or further out."""
    if any(id(x) in at.index for at in outwards(level)) or is_in_array(level, x):
        return True
    reference = written_roots.get(memory_of(x)) if written_roots else None
    root = None if reference is None else reference()
    return root is not None and any(id(root) in at.index for at in outwards(level))


def plain_array(x: Any) -> np.ndarray:
    """The memory of a tensor as an array; marks as conjugate or negative left out."""
    x = x.detach()
    if x.is_conj():
        x = x.conj()
    return (x._neg_view() if x.is_neg() else x).numpy()


def _as_view(x: Any, a: np.ndarray, owner: Any) -> np.ndarray:
    if not isinstance(owner, np.ndarray):
        missing_rule(type(x), "It lies in memory that was given differentiated numbers by another name.")
    if x.is_conj() or x.is_neg():
        missing_rule(type(x), "It is a conjugate or negative, by a mark alone, of an array of NumPy.")
    if a.dtype != owner.dtype and a.dtype.char.upper() != owner.dtype.char:
        missing_rule(type(x), "It shows the memory of an array of NumPy as numbers of another type.")
    buffer = owner if owner.flags.c_contiguous else owner.T
    start = extent(owner)[0]
    if not buffer.flags.c_contiguous or address(owner) != start:
        missing_rule(
            type(x), "An array of NumPy that shares memory with this tensor was written; use a copy."
        )
    return np.ndarray(a.shape, a.dtype, buffer, address(a) - start, a.strides)


def note_memory(x: Any) -> None:
    """Let it be seen when NumPy writes the memory of a differentiated tensor `x`, an argument."""
    if is_lent(x):
        a = plain_array(x)
        x.__dict__[LENT] = a, a.copy()


def check_own(level: Level, x: Any) -> None:
    """Refuse an active tensor that is an argument, or a view of one, in memory where an array is active, too."""
    if FROM_ARRAY not in x.__dict__ and any(id(x) in at.index for at in outwards(level)):
        missing_rule(
            type(x),
            "A differentiated tensor lies in memory of NumPy, into which differentiated numbers were written; "
            "pass x.clone().",
        )


def check_constant_write(level: Level, f: Any, x: Any) -> None:
    """Refuse to write, past NumPy, into an array that a derivative still reads."""
    if not is_lent(x):
        return
    a = plain_array(x)
    for at in outwards(level):
        if any(
            isinstance(owner, np.ndarray) and np.may_share_memory(a, owner) for owner in at.captured.values()
        ):
            missing_rule(
                f,
                "It writes into memory of NumPy that was used in this derivative. Write by the array "
                "(a[...] = ...), or into a copy.",
            )
