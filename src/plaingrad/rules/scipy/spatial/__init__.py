"""Facts about `scipy.spatial`: distances, trees, hulls and rotations."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.spatial import (
    compiled_rotations,
    distances,
    hulls,
    motions,
    pairs,
    quaternions,
    rotations,
    trees,
)


def rules() -> Iterable[Rule]:
    """All of them."""
    return forms.gathered()


__all__ = [
    "compiled_rotations",
    "distances",
    "hulls",
    "motions",
    "pairs",
    "quaternions",
    "rotations",
    "trees",
]
