"""Compiled code of matplotlib with a derivative: points under an affine map."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.rulebook import Rule

MODULE = "matplotlib._path"


def affine_transform(points: Any, trans: Any) -> Any:
    """The points, rows of two numbers or one such row, under the first two rows of a 3 by 3 matrix."""
    points, trans = np.asarray(points, float), np.asarray(trans, float)
    return points @ trans[:2, :2].T + trans[:2, 2]


def rules() -> Iterable[Rule]:
    """Of `matplotlib._path`; its other functions cut and count, and are refused."""
    function = getattr(sys.modules.get(MODULE), "affine_transform", None)
    if function is not None:
        yield Rule(function, "composed", definition=affine_transform, source=f"{__file__}:18")


def wait() -> None:
    """Let the rulebook enter these rules when matplotlib is met."""
    rulebook.when_met(MODULE, rules)
