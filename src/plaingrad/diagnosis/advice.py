"""What would make a gradient cheaper, told from a profile: the native tier, a checkpoint, forward mode."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

MANY = 20_000  # operations on the tape for which the native tier is worth its compilation
LARGE = 200_000_000  # bytes
FEW = 8  # inputs


def advice(args: tuple[Any, ...], active: tuple[int, ...], found: Any) -> list[str]:
    """Lines, each beginning with what to do."""
    lines = []
    hot = max(found.rows, key=lambda row: row.cost.entries, default=None)
    if hot is not None and hot.cost.entries >= MANY:
        lines.append(natively(hot))
    if found.peak >= LARGE and hot is not None:
        large = max(found.rows, key=lambda row: row.cost.held)
        lines.append(
            f"Memory: line {large.line} (`{large.source}`) holds most; put plaingrad.checkpoint around the call that"
            " it is in, or plaingrad.checkpoint_sequence around the loop."
        )
    count = sum([inputs(args[n]) for n in active])
    if count <= FEW and found.entries >= MANY:
        lines.append(
            f"Forward mode: {count} input{'s' * (count != 1)} only; plaingrad.jvp and"
            " jacobian(f, mode='forward') keep no tape."
        )
    return lines or ["Nothing stands out: no loop over numbers that is long, and no large memory."]


def natively(hot: Any) -> str:
    """What to say of a line with many operations on numbers."""
    text = f"Natively: line {hot.line} (`{hot.source}`) puts {hot.cost.entries:,} operations on the tape"
    if importlib.util.find_spec("numba") is None:
        return text + "; with Numba installed, grad(f, tier='native') may compile it."
    return (
        text
        + "; try grad(f, tier='native'), and plaingrad.why_not_native(f, *args) for what stands in its way."
    )


def inputs(x: Any) -> int:
    """How many numbers are in `x`."""
    if isinstance(x, np.ndarray):
        return int(x.size)
    if isinstance(x, (list, tuple)):
        return sum(map(inputs, x))
    if isinstance(x, dict):
        return sum(map(inputs, x.values()))
    return 1
