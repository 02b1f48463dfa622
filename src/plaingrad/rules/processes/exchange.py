"""What an exchange of derivatives between processes, or between ranks of MPI, is to a tape."""

from __future__ import annotations

from typing import Any


class Exchange:
    """What processes exchange for the derivative of a communication."""

    def meet(self, shadow: Any) -> None:
        """The way back that has the cotangents `shadow` comes here."""


def summed(every: list[list[Any]], count: int) -> list[Any]:
    """For each number the sum over the ranks, None for zero."""
    found: list[Any] = [None] * count
    for bars in every:
        for n, bar in enumerate(bars):
            if bar is not None:
                found[n] = bar if found[n] is None else found[n] + bar
    return found
