"""Several comparisons that come out differently at one place: whether their places move together."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.errors import PlaingradError
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import plainly
from plaingrad.rules.scipy.integrate.following import comparisons
from plaingrad.rules.scipy.integrate.planning import flat
from plaingrad.rules.scipy.integrate.told import gap_of


def gaps_of(f: Any, args: Any, x: Any, reasons: list[Any]) -> list[Any]:
    """a - b of some comparisons at x."""
    told = comparisons(f, args, x)
    return [gap_of(told, reason) for reason in reasons]


@plainly
def move_apart(f: Any, args: Any, x: float, direction: Any, reasons: list[Any]) -> bool:
    """Whether the places where gaps are zero, which are one place now, move differently with what f and args hold.

    direction: how args move with x.
    """
    try:
        _, pullback = derivatives.pulled(gaps_of, f, args, x, reasons)
        moves = []
        for k in range(len(reasons)):
            f_bar, args_bar, x_bar = pullback([float(j == k) for j in range(len(reasons))])[1:4]
            by_args = flat(args_bar)
            slope = float(np.sum(flat(x_bar))) + float(
                np.dot(by_args, direction) if np.size(direction) else 0.0
            )
            moves.append(np.concatenate([flat(f_bar), by_args]) / slope)
        size = max(float(np.max(np.abs(move), initial=0.0)) for move in moves)
        return not all(np.all(np.abs(move - moves[0]) <= 1e-7 * size) for move in moves)
    except (PlaingradError, ZeroDivisionError):  # what f holds cannot be told
        return True


__all__ = ["move_apart"]
