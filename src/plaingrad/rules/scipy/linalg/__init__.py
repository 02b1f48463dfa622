"""The rules of `scipy.linalg`."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.linalg import (
    banded_factors,
    control,
    eigenvectors,
    entering,
    equations,
    factored,
    functions,
    lapack,
    least_squares,
    orthogonal,
    schur,
    singular,
    spectra,
    structured,
    updated,
)


def rules() -> Iterable[Rule]:
    """All of them."""
    return entering.gathered()


__all__ = [
    "banded_factors",
    "control",
    "eigenvectors",
    "equations",
    "factored",
    "functions",
    "lapack",
    "least_squares",
    "orthogonal",
    "schur",
    "singular",
    "spectra",
    "structured",
    "updated",
]
